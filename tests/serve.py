"""`dtsim serve`, by its pipes: serve.py DTSIM [REQUESTS]. Order, cancel, budgets, lost processes, long lines, ends; and
REQUESTS random requests (left out: 10,000), of which a sample is held against `dtsim run --json`."""
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

dtsim = os.path.abspath(sys.argv[1])
count = int(sys.argv[2]) if len(sys.argv) > 2 else 10000
small = {'model': {'stages': {'forward': '1 s', 'backward': '2 s'}}, 'cluster': 'ideal',
         'batch': {'micro_batches': 4}, 'strategy': {'pipeline': 2}}
endless = {**small, 'batch': {'micro_batches': 2048}, 'strategy': {'pipeline': 32},
           'simulation': {'jitter': 0.1, 'repeat': 1000}}
sanitized = b'__asan_init' in open(dtsim, 'rb').read()


def start(*options, **how):
    return subprocess.Popen([dtsim, 'serve', *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, encoding='utf-8', **how)


def put(server, *requests):
    server.stdin.write(''.join(json.dumps(request) + '\n' for request in requests))
    server.stdin.flush()


def get(server):
    return json.loads(server.stdout.readline())


def end(server, code=0):
    server.stdin.close()
    rest = server.stdout.read()
    assert server.wait(60) == code, (server.returncode, server.stderr.read())
    return [json.loads(line) for line in rest.splitlines()]


def workers(server):
    with open(f'/proc/{server.pid}/task/{server.pid}/children') as file:
        return [int(pid) for pid in file.read().split()]


def gone(pids):
    for _ in range(100):
        if not any(os.path.exists(f'/proc/{pid}') for pid in pids):
            return True
        time.sleep(0.1)
    return False


def order():
    server = start('-j', '4')
    requests = [{'id': i, 'scenario': small, 'set': {'batch.micro_batches': 4 + i * 997 % 512}} for i in range(300)]
    put(server, *requests)
    answers = end(server)
    assert [answer['id'] for answer in answers] == list(range(300))
    for request, answer in zip(requests, answers):
        assert answer['metrics']['iteration_time_s'] == 3 * (request['set']['batch.micro_batches'] + 1), answer


def cancel():
    server = start('-j', '1')
    put(server, {'id': 'slow', 'scenario': endless}, {'id': 'waits', 'scenario': small}, {'id': 3, 'scenario': small})
    time.sleep(0.5)
    begun = time.time()
    put(server, {'cancel': 'waits'}, {'cancel': 'slow'}, {'cancel': 'unknown'})
    assert get(server) == {'id': 'slow', 'errors': [{'file': None, 'line': None, 'column': None, 'message': 'cancelled',
                                                     'rule': None}], 'exit_code': 130}
    assert get(server)['exit_code'] == 130
    assert get(server)['metrics']['iteration_time_s'] == 15
    assert time.time() - begun < 30
    assert end(server) == []


def budgets():
    server = start('-j', '2', '--budget', '20 s')
    put(server, {'id': 1, 'scenario': endless, 'budget': '0.3 s'}, {'id': 2, 'scenario': endless, 'budget': '1 MiB'},
        {'id': 3, 'scenario': small, 'budget': ['20 s', '4 GiB']}, {'id': 4, 'scenario': small, 'budget': 'soon'})
    answers = end(server)
    assert [answer['exit_code'] for answer in answers] == [7, 7, 0, 4], answers
    assert answers[0]['errors'][0]['message'].startswith('stopped by --budget 300 ms'), answers[0]
    assert "found 'soon'" in answers[3]['errors'][0]['message']


def lost():
    server = start('-j', '1')
    put(server, {'id': 1, 'scenario': endless}, {'id': 2, 'scenario': small})
    time.sleep(0.5)
    os.kill(workers(server)[0], signal.SIGKILL)
    first = get(server)
    assert first['exit_code'] == 1 and 'signal 9' in first['errors'][0]['message'], first
    assert get(server)['exit_code'] == 0
    assert end(server) == []


def idle():
    """A worker that dies while it has nothing to do costs no request."""
    server = start('-j', '1')
    for number in range(3):
        put(server, {'id': number, 'scenario': small})
        assert get(server)['exit_code'] == 0, number
        os.kill(workers(server)[0], signal.SIGKILL)
        time.sleep(0.2)
    assert end(server) == []


def keys():
    """A request of 100,000 keys, in whatever part: its changes are one change, in time and in memory; it ends within a second (of
    a processor) behind its budget, and within 1.2 times its memory."""
    count = 100000
    parts = [('set', {f'model.layers.{i}.forward': i for i in range(count)}),
             ('set', {f'cluster.{"inside." * (i % 2)}k{i}': [1, 2] for i in range(count)}),
             ('scenario', {f'k{i}': {'a': 1} for i in range(count)}), ('base', {f'k{i}': {'a': 1} for i in range(count)})]
    with tempfile.TemporaryDirectory() as folder:
        for part, values in parts:
            request = {'scenario': small, part: values}
            if part == 'base':
                request = {'base': folder + '/base.yaml'}
                with open(request['base'], 'w') as file:
                    json.dump({**small, **values}, file, indent=0)
            elif part == 'scenario':
                request = {'scenario': {**small, **values}}
            server = start('-j', '1')
            for budget, code, most, seconds in ('5 ms', 7, 30, 1), ('30 MiB', 7, 36, 2), ('1 GiB', 4, 200, 6):
                put(server, {'id': 1, **request, 'budget': budget})
                answer = get(server)
                pid = workers(server)[0]
                words = open(f'/proc/{pid}/stat').read().rsplit(') ', 1)[1].split()
                spent = (int(words[11]) + int(words[12])) / os.sysconf('SC_CLK_TCK')     # so far
                held = next(int(line.split()[1]) >> 10 for line in open(f'/proc/{pid}/status') if line.startswith('VmHWM'))
                assert answer['exit_code'] == code, (part, budget, answer)
                assert sanitized or (spent < seconds and held <= most), (part, list(values)[1], budget, spent, held)
            assert end(server) == []


def pipes():
    """Nobody may ever write them."""
    with tempfile.TemporaryDirectory() as folder:
        pipe = folder + '/pipe'
        os.mkfifo(pipe)
        server = start('-j', '1')
        put(server, {'id': 1, 'base': pipe}, {'id': 2, 'scenario': {**small, 'cluster': pipe}})
        answers = end(server)
    assert [answer['exit_code'] for answer in answers] == [4, 4], answers
    assert all('a pipe' in answer['errors'][0]['message'] for answer in answers), answers


def memory():
    """A scenario that needs more than there is."""
    if sanitized:            # the sanitizer itself takes more addresses than the limit leaves
        return
    limit = 1 << 30
    server = start('-j', '1', preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    large = {**small, 'batch': {'micro_batches': 65536}, 'strategy': {'pipeline': 64, 'schedule': '1f1b'}}
    put(server, {'id': 1, 'scenario': large}, {'id': 2, 'scenario': small})
    answers = end(server)
    assert [answer['exit_code'] for answer in answers] == [1, 0], answers


def long_names():
    """What an error says does not grow with what was wrong."""
    long = 'a' * 100000
    many = {f'k{i}': 1 for i in range(20000)}
    server = start('-j', '1')
    wrong = [{long: 1}, {'batch': many}, many, {'batch.micro': long}, {'batch.' + long: 1}, {'batch': {long: many}},
             {'strategy.schedule': long}, {'batch.micro': [1] * 20000}]
    put(server, *({'id': 1, 'scenario': small, 'set': one} for one in wrong))
    put(server, {'id': 1, 'scenario': small, 'set': many, 'budget': '1 MiB'})
    answers = end(server)
    for one, answer in zip(wrong, answers):
        assert answer['exit_code'] in (2, 4) and len(json.dumps(answer)) < 10000, (str(one)[:80], len(json.dumps(answer)))
    spent = answers[-1]
    assert spent['exit_code'] == 7 and all(spent['errors'][0][key] is None for key in ('file', 'line', 'column')), spent


def lines():
    server = start('-j', '1')
    server.stdin.write('{"id": 1, "scenario": {\n\n  \r\n' + ' ' * (8 << 20) + '{}\n' + '[' * 100000 + '\n' +
                       '{"id": 2, "scenario": ' + '{"a":' * 100 + '1' + '}' * 101 +
                       '\n{"id": "\\ud83d\\ude00", "base": []}')
    answers = end(server)
    places = [(answer['id'], answer['errors'][0]['line'], answer['exit_code']) for answer in answers]
    assert places == [(None, 1, 4), (None, 4, 4), (None, 5, 4), (2, 6, 4), ('\U0001f600', 7, 4)], places
    assert 'more than 8 MiB' in answers[1]['errors'][0]['message']
    assert 'nested more than 64 deep' in answers[3]['errors'][0]['message'], answers[3]


def ends():
    for number in signal.SIGTERM, signal.SIGINT:
        server = start('-j', '2')
        put(server, {'id': 1, 'scenario': small})
        assert get(server)['exit_code'] == 0
        pids = workers(server)
        server.send_signal(number)
        assert server.wait(20) == 130 and gone(pids)
        server.stdin.close()
    server = start('-j', '2')
    put(server, {'id': 1, 'scenario': small})
    get(server)
    pids = workers(server)
    server.stdout.close()                        # nobody reads
    assert server.wait(20) == 1 and gone(pids)
    assert 'cannot write to standard output' in server.stderr.read()
    server = start('-j', '2')
    put(server, {'id': 1, 'scenario': endless})
    time.sleep(0.3)
    pids = workers(server)
    server.kill()
    assert server.wait(20) == -9 and gone(pids)
    with open('/dev/full', 'w') as full:
        done = subprocess.run([dtsim, 'serve', '-j', '1'], input=json.dumps({'scenario': small}), stdout=full,
                              stderr=subprocess.PIPE, encoding='utf-8')
    assert done.returncode == 1 and 'cannot write' in done.stderr, done
    assert end(start()) == []


def greedy():
    """Requests that are all written before any answer is read."""
    server = start('-j', '1')
    put(server, *[{'id': i, 'scenario': small} for i in range(3000)])
    assert len(end(server)) == 3000


def random_request(random_, number, folder):
    forward = f'{random_.randint(1, 99)} ms'
    scenario = {'model': {'stages': {'forward': forward, 'backward': '50 ms', 'boundary': '1 MB'}},
                'cluster': {'nodes': 2, 'gpus_per_node': random_.choice([1, 2, 4]),
                            'inside': {'bandwidth': '300 GB/s', 'latency': '1 us'},
                            'network': {'bandwidth': f'{random_.randint(1, 50)} GB/s', 'latency': '5 us'}},
                'batch': {'micro_batches': random_.randint(1, 12)}}
    sets = {'strategy.pipeline': random_.choice([1, 2, 3, 4, 8]),
            'strategy.schedule': random_.choice(['1f1b', 'gpipe', 'interleaved', 'zb-h1', 'gpip', 'pipedream']),
            'simulation.jitter': random_.choice([0, 0, 0.1])}
    file = os.path.join(folder, f'{number % 7}.yaml')
    if number < 7:
        with open(file, 'w') as out:
            json.dump(scenario, out)
    request = {'id': number, 'set': sets, 'engine': random_.choice(['fast', 'fast', 'fast', 'ideal'])}
    if number % 500 == 0:
        del request['engine']                    # as run has it: simgrid
    request.update({'base': file} if random_.random() < 0.5 else {'scenario': scenario})
    return request


def run_alone(request, folder):
    file = request.get('base')
    if not file:
        file = os.path.join(folder, 'own.yaml')
        with open(file, 'w') as out:
            json.dump(request['scenario'], out)
    command = [dtsim, 'run', file, '--json']
    if 'engine' in request:
        command += ['--engine', request['engine']]
    for path, value in request['set'].items():
        command += ['--set', f'{path}={value}']
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding='utf-8')
    said = json.loads(done.stdout)
    said.pop('scenario', None)
    return done.returncode, said, file


def same(request, answer, folder):
    """Same metrics, digit by digit; same messages, at the same places of a base."""
    code, said, file = run_alone(request, folder)
    assert answer['exit_code'] == code, (request, answer, said)
    if code == 0:
        assert answer['metrics'] == said, (request, answer, said)
        return
    assert [(e['message'].replace('stdin', file), e['rule']) for e in answer['errors']] == \
           [(e['message'], e['rule']) for e in said['errors']], (request, answer, said)
    if 'base' in request:
        assert answer['errors'] == said['errors'], (request, answer, said)


def as_run():
    random_ = random.Random(33)
    with tempfile.TemporaryDirectory() as folder:
        requests = [random_request(random_, i, folder) for i in range(count)]
        server = start()
        put(server, *requests)
        answers = end(server)
        assert [answer['id'] for answer in answers] == list(range(count))
        sample = [0] + random_.sample(range(count), min(60, count))
        for i in sample:
            same(requests[i], answers[i], folder)
        refused = sum('errors' in answer for answer in answers)
        assert count < 100 or 0 < refused < count
        print(f'{count} requests, {refused} refused; {len(sample)} as dtsim run --json has them')


for test in order, cancel, budgets, lost, idle, keys, pipes, memory, long_names, lines, ends, greedy, as_run:
    begun = time.time()
    test()
    print(f'{test.__name__}: {time.time() - begun:.1f} s', flush=True)
