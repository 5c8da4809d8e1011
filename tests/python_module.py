"""The Python module python/dtsim.py: python_module.py DTSIM. What gives DataFrames needs pandas."""
import os
import pickle
import random
import subprocess
import sys
import tempfile
import threading
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(here, '..', 'python'))
os.environ['DTSIM'] = os.path.abspath(sys.argv[1])
import dtsim  # noqa: E402

try:
    import pandas
except ImportError:
    pandas = None

scenario = {'model': {'stages': {'forward': '1 s', 'backward': '2 s'}}, 'cluster': 'ideal',
            'batch': {'micro_batches': 4}, 'strategy': {'pipeline': 2}}


def refusal(call, kind=dtsim.Error):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError('not refused')


# 1F1B (GPipe's time): (micro-batches + stages - 1) x (forward + backward)
assert dtsim.run(scenario)['iteration_time_s'] == 15
assert dtsim.run(scenario, set={'strategy.pipeline': 4})['iteration_time_s'] == 21

error = refusal(lambda: dtsim.run(scenario, set={'strategy.schedule': 'gpip'}))
assert error.exit_code == 4 and "did you mean 'gpipe'?" in str(error), error
again = pickle.loads(pickle.dumps(error))
assert (again.errors, again.exit_code, str(again)) == (error.errors, error.exit_code, str(error))
refusal(lambda: dtsim.run(scenario, set={'batch.micro_batches': float('nan')}), ValueError)
refusal(lambda: dtsim.run(scenario, set={'batch.micro_batches': {1}}), TypeError)
assert refusal(lambda: dtsim.run('/absent.yaml')).errors[0]['file'] == '/absent.yaml'

with dtsim.Server(jobs=1) as server:
    rows = server.rows(scenario, {'strategy.pipeline': [1, 2, 3], 'batch.micro_batches': [2, 4]})
    assert [row['iteration_time_s'] for row in rows] == [3 * (m + p - 1) for p in (1, 2, 3) for m in (2, 4)]
    slow = server.submit(scenario, {'simulation': {'jitter': 0.1, 'repeat': 1000},
                                    'batch.micro_batches': 4096, 'strategy.pipeline': 64})
    behind = server.submit(scenario)
    assert slow.cancel() and slow.cancelled()
    assert behind.result(60)['iteration_time_s'] == 15
    # What JSON lacks is refused before it is sent: the others, before and after it, are answered.
    nested = eval('[' * 90 + ']' * 90)           # is JSON, which the program refuses
    for value in (10**30, -10**30, float('inf'), 'a\0b', '\ud800', 'a\\\0', {1: 1, '1': 2}, 'a' * (9 << 20), nested,
                  '\udc00\ud800'):
        before = server.submit(scenario)
        for deeper in value, [[value]]:
            refused = refusal(lambda: server.run(scenario, set={'name': deeper}), (ValueError, dtsim.Error))
            assert isinstance(refused, ValueError) == (value != nested), refused
        rows = server.rows(scenario, [{}, {'name': value}, {}])
        assert [row['status'] for row in rows] == ['ok', 'error', 'ok'] and rows[1]['reason'], rows
        assert before.result(60)['iteration_time_s'] == 15
    deep = []
    for _ in range(5000):
        deep = [deep]
    refusal(lambda: server.run(scenario, set={'name': deep}), ValueError)
    for whole in ('\\u0000', '\\ud800', '\U0001f600', 'a' * (1 << 20), '"{[' * 2000):
        assert server.run(scenario, set={'name': whole})['iteration_time_s'] == 15, whole[:20]
    assert server.run(scenario, set={'name': 2**63 - 1})['iteration_time_s'] == 15
    bad = server.rows(scenario, [{'strategy.pipeline': 0}])
    assert bad[0]['status'] == 'error' and 'pipeline' in bad[0]['reason'], bad
refusal(lambda: server.run(scenario))            # a server that was closed

for _ in range(5):                               # the module's own process is another one once it has ended
    first = dtsim._server()
    first._write('no JSON')
    first._reader.join(20)
    assert dtsim.run(scenario)['iteration_time_s'] == 15

# Halves of answers, as a process leaves them that is killed, and what is no answer: nobody waits for ever, now or later.
real = os.environ['DTSIM']
with tempfile.TemporaryDirectory() as folder:
    os.environ['DTSIM'] = os.path.join(folder, 'half.sh')
    whole = b'{"id": 1, "errors": [{"message": "no"}], "exit_code": 4, "metrics": {"a": 1}}'
    for said in [whole[:length] for length in range(0, len(whole), 7)] + [b'[]', b'7', b'{"id": 1}', b'{"metrics": {}}',
                                                                         b'\xff{}', b'{"id": 1, "errors": [{}]}',
                                                                         b'[' * 100000, b'{"id": 2, "metrics": {}}',
                                                                         b'{"id": null, "metrics": {}}']:
        for ends in b'', b'\n':
            with open(os.path.join(folder, 'said'), 'wb') as out:
                out.write(said + ends)
            with open(os.environ['DTSIM'], 'w') as out:
                print(f'#!/bin/sh\nread line; cat {folder}/said' + ('; exec sleep 60' if ends and said else ''), file=out)
            os.chmod(os.environ['DTSIM'], 0o755)
            with dtsim.Server() as server:
                first = server.submit(scenario)
                assert 'has ended' in str(refusal(lambda: first.result(20))), said
                assert 'has ended' in str(refusal(lambda: server.submit(scenario).result(20))), said
    with open(os.environ['DTSIM'], 'w') as out:      # one that leaves its standard output to another program
        print('#!/bin/sh\nsleep 60 </dev/null 2>/dev/null &\nread line; kill -9 $$', file=out)
    with dtsim.Server() as server:
        assert 'has ended' in str(refusal(lambda: server.submit(scenario).result(20)))
os.environ['DTSIM'] = real

# A process that is killed at any moment: all requests end, by an answer or by an error.
chosen = random.Random(70)
for trial in range(40):
    server = dtsim.Server(jobs=1)
    killer = threading.Timer(chosen.random() * 0.1, server._process.kill)
    killer.start()
    futures = []
    while not futures or not futures[-1].done() or not futures[-1].exception():
        futures.append(server.submit(scenario, {'strategy.pipeline': 1 + len(futures) % 4}))
        time.sleep(chosen.random() * 0.005)
        assert len(futures) < 10000
    for future in futures:
        future.exception(20)
    server.close()

help_of_plan = subprocess.run([os.environ['DTSIM'], 'plan'], capture_output=True, encoding='utf-8')
if 'unknown command' in help_of_plan.stderr:
    assert 'plan' in str(refusal(lambda: dtsim.plan('scenario.yaml'), NotImplementedError))

if not pandas:
    assert 'pandas' in str(refusal(lambda: dtsim.sweep(scenario, {}), ImportError))
    print('skipped: pandas is not installed, so sweep() and results() were not tried')
    sys.exit()
frame = dtsim.sweep(scenario, {'strategy.pipeline': [1, 2, 4]})
numbers = pandas.Series([1, 2, 4])               # of numpy
assert frame.equals(dtsim.sweep(scenario, {'strategy.pipeline': numbers}))
assert isinstance(frame, pandas.DataFrame) and list(frame['iteration_time_s']) == [12, 15, 21]
with tempfile.TemporaryDirectory() as folder:
    file, rows = os.path.join(folder, 'scenario.yaml'), os.path.join(folder, 'rows')
    with open(file, 'w') as out:
        print(scenario, file=out)                # Python's dict of texts and numbers is YAML too
    subprocess.run([os.environ['DTSIM'], 'sweep', file, '--set', 'strategy.pipeline=1,2,4', '-o', rows], check=True,
                   capture_output=True)
    stored = dtsim.results(rows)
    assert sorted(stored['iteration_time_s']) == [12, 15, 21] and set(stored['status']) == {'ok'}
    assert len(dtsim.results(rows, top=1)) == 1
