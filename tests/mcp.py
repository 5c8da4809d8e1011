"""`dtsim serve --mcp`, by its pipes: mcp.py DTSIM. The wire of the Model Context Protocol, without its SDK (tests/clients/mcp_sdk.mjs
has that): versions, tools, calls, errors, progress, cancelling, budgets, long answers, files that are not of the folder."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

dtsim = os.path.abspath(sys.argv[1])
LIMIT = 25000
stages = {'model': {'stages': {'forward': '1 s', 'backward': '2 s'}}, 'cluster': 'ideal', 'batch': {'micro_batches': 4},
          'strategy': {'pipeline': 2}}
endless = {**stages, 'batch': {'micro_batches': 2048}, 'strategy': {'pipeline': 32},
           'simulation': {'jitter': 0.1, 'repeat': 1000}}
TEXT = json.dumps(stages, indent=1)


class Client:
    def __init__(self, *options):
        self.server = subprocess.Popen([dtsim, 'serve', '--mcp', *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, encoding='utf-8')
        self.last = 0

    def put(self, method, params=None, number=True):
        message = {'jsonrpc': '2.0', 'method': method, 'params': params or {}}
        if number:
            self.last += 1
            message['id'] = self.last
        self.write(json.dumps(message))
        return self.last

    def write(self, line):
        self.server.stdin.write(line + '\n')
        self.server.stdin.flush()

    def get(self):
        message = json.loads(self.server.stdout.readline())
        assert message['jsonrpc'] == '2.0', message
        return message

    def ask(self, method, params=None):
        number = self.put(method, params)
        message = self.get()
        assert message['id'] == number, message
        return message

    def call(self, tool, **arguments):
        result = self.ask('tools/call', {'name': tool, 'arguments': arguments})['result']
        assert sum(len(part['text']) for part in result['content']) + len(json.dumps(result.get('structuredContent', ''))) <= LIMIT
        return result, '\n'.join(part['text'] for part in result['content'])

    def end(self):
        self.server.stdin.close()
        rest = self.server.stdout.read()
        assert self.server.wait(60) == 0, self.server.stderr.read()
        assert not self.server.stderr.read()
        return [json.loads(line) for line in rest.splitlines()]


def versions(client):
    for asked, given in (('2025-11-25', '2025-11-25'), ('2025-06-18', '2025-06-18'), ('2024-11-05', '2024-11-05'),
                         ('2099-01-01', '2025-11-25')):
        result = client.ask('initialize', {'protocolVersion': asked, 'capabilities': {}})['result']
        assert result['protocolVersion'] == given and result['capabilities'] == {'tools': {}}, result
    client.put('notifications/initialized', number=False)
    assert client.ask('ping')['result'] == {}


def mistakes(client):
    assert client.ask('resources/list')['error']['code'] == -32601
    assert client.ask('tools/call', {'name': 'rm', 'arguments': {}})['error']['code'] == -32602
    assert client.ask('tools/call', {'name': 'run', 'arguments': []})['error']['code'] == -32602
    for line in ('{"id": 7, "method": 5}', '{"id": 7}', '{"method": 5}', '{}'):
        client.write(line)
        message = client.get()
        assert message['error']['code'] == -32600 and message['id'] == (7 if '7' in line else None), message
    client.write('{"id": 7, "result": {}}')             # answers nothing: it is passed over
    assert client.ask('ping')['result'] == {}
    for nothing in ({}, {'arguments': None}):
        assert client.ask('tools/call', {'name': 'list', **nothing})['result']['isError'] is False
    for line, code in (('{', -32700), ('[]', -32600), ('{"id": {}, "method": "ping"}', -32600), ('{"id": 1, "id": 2}', -32700)):
        client.write(line)
        assert client.get()['error']['code'] == code


def tools(client):
    listed = {tool['name']: tool['inputSchema'] for tool in client.ask('tools/list')['result']['tools']}
    wanted = 'run explain plan check compare import emit collective train'.split()
    assert set(wanted) <= set(listed), listed
    schema = json.loads(subprocess.run([dtsim, 'schema'], capture_output=True, text=True, check=True).stdout)
    inline = listed['run']['properties']['scenario']['anyOf'][1]
    assert set(inline['properties']) == set(schema['properties'])
    for name in wanted:                                 # each option of the command, but for forms of output and scripts
        words = subprocess.run([dtsim, 'completion', 'words', name, '-'], capture_output=True, text=True).stdout
        assert '--help' in words
        for word in words.split():
            word = word.strip('=')
            if word.startswith('--') and word not in ('--json --csv --markdown --keys --plot --trust --read --env --launch --help '
                                                      '--color').split():
                assert word[2:].replace('-', '_') in listed[name]['properties'], (name, word)


def calls(client):
    result, text = client.call('run', scenario='scenario.yaml', set={'strategy.pipeline': 4})
    assert not result['isError'] and json.loads(result['content'][0]['text'])['iteration_time_s'] == 21, text
    whole = subprocess.run([dtsim, 'run', 'scenario.yaml', '--json'], capture_output=True, text=True, check=True).stdout
    assert json.loads(client.call('run', scenario=stages)[0]['content'][0]['text'])['makespan_s'] == json.loads(whole)['makespan_s']
    result, text = client.call('run', scenario='wrong.yaml')
    assert result['isError'] and 'wrong.yaml:3:1: error: ' in text, text
    found = result['structuredContent']
    assert found['exit_code'] == 4 and [(e['file'], e['line']) for e in found['errors']] == [('wrong.yaml', 1), ('wrong.yaml', 3)], found
    assert client.call('run', scenario=stages, set={'strategy.schedule': 'dualpipe', 'batch.micro_batches': 3})[0][
        'structuredContent']['exit_code'] == 5
    for arguments in ({}, {'scenario': 3}, {'scenario': stages, 'trust': True}, {'scenario': stages, 'set': 'a=b'}):
        assert client.call('run', **arguments)[0]['isError'], arguments
    assert not client.call('run', scenario=stages, output='out')[0]['isError'] and os.path.exists('out/result.json')
    assert not client.call('explain', scenario='out')[0]['isError']
    for tool, arguments in (('check', {'scenario': stages}), ('compare', {'scenario': ['scenario.yaml', stages]}),
                            ('plan', {'scenario': {**stages, 'cluster': 'dgx-a100'}, 'gpus': '8', 'jobs': 2,
                                      'set': {'strategy.pipeline': [1, 2], 'strategy.schedule': '1f1b,gpipe'}}),
                            ('collective', {'cluster': ['dgx-a100'], 'ranks': '8', 'bytes': '1M', 'engine': 'fast'}),
                            ('import', {'kind': 'megatron', 'file': 'list.txt'}), ('list', {'topic': 'strategies'}),
                            ('help', {'topic': 'zero'})):
        result, text = client.call(tool, **arguments)
        assert not result['isError'], (tool, text)


def whole_lines(client):
    """Nothing of a call is left out: it is done, or refused with a sentence."""
    many = ['scenario.yaml'] * 256
    result, text = client.call('compare', scenario=many)
    assert len(json.loads(open(text.rstrip().rsplit(' ', 1)[-1], encoding='utf-8').read())) == 256
    for arguments, said in (({'scenario': [*many, stages]}, 'at most 256 arguments'),
                            ({'scenario': many[:1], 'set': {f'meta.{i}': i for i in range(257)}}, '--set: at most 256')):
        result, text = client.call('compare', **arguments)
        assert result['structuredContent']['exit_code'] == 2 and said in text, text


def budgets(client):
    """A tool is held to the budget by its own option, or by the server alone where that does not go with others."""
    large = {'model': {'preset': 'llama3-70b'}, 'cluster': {'platform': 'dgx-h100', 'nodes': 128}, 'batch': {'global': 1024}}
    for tool, arguments in (('check', {'scenario': stages, 'values': 'strategy.schedule'}),
                            ('compare', {'scenario': [stages], 'methods': True}),
                            ('compare', {'scenario': [stages], 'methods': False})):
        for budget in ({}, {'budget': '9 s'}, {'budget': ['9 s', '1 GiB']}):
            result, text = client.call(tool, **arguments, **budget)
            assert not result['isError'], text
            assert 'budget: expected' in client.call(tool, **arguments, budget='much')[1]
    for asked, more in ((large, {}), (large, {'time_limit': '100 s'}), ({**large, 'plan': {'time_limit': '100 s'}}, {})):
        result, text = client.call('plan', scenario=asked, exhaustive=True, budget='2 s', output='planned', **more)
        assert not result['isError'] and json.loads(result['content'][0]['text'])['status'] == 'not proven', text
        shutil.rmtree('planned', ignore_errors=True)


def several_trainings(client):
    scenario = {**stages, 'cluster': {'nodes': 4, 'gpus_per_node': 1, 'network': {'bandwidth': '50 GB/s', 'latency': '5 us'}},
                'batch': {'global': 8, 'micro': 1}, 'train': {'steps': 10}}
    for degrees, code in (([2, 4], None), ([2, 3], 3), ([3, 8], 5)):
        result, _ = client.call('train', scenario=scenario, set={'strategy.pipeline': degrees})
        rows = json.loads(result['content'][0]['text'])
        assert [row['name'] for row in rows] == [f'pipeline={degree}' for degree in degrees]
        assert all(row['metrics']['days'] > 0 if 4 % degree == 0 else row['rule'] and row['reason'] for row, degree in zip(rows, degrees))
        assert result.get('structuredContent', {}).get('exit_code') == code, result


def held(client):
    """No script runs, and no file of elsewhere is opened: by its path, by a link, by a scenario, to write."""
    result, text = client.call('import', kind='megatron', file='job.sh')
    assert result['isError'] and 'is a script' in text and not os.path.exists('ran'), text
    for path in ('/etc/hostname', '../secret.yaml', 'link.yaml'):
        result, text = client.call('check', scenario=path)
        assert result['isError'] and 'cannot open' in text and 'xyzzy' not in text, text
    inner = {**stages, 'strategy': {'schedule': {'csv': '../secret.yaml'}}}
    result, text = client.call('check', scenario=inner)
    assert result['isError'] and 'xyzzy' not in text, text
    assert client.call('run', scenario=stages, output='../elsewhere')[0]['isError'] and not os.path.exists('../elsewhere')


def long_answers(client):
    result, text = client.call('compare', scenario=[stages], set={'batch.micro_batches': list(range(2, 102))})
    path = text.rstrip().rsplit(' ', 1)[-1]
    whole = open(path, encoding='utf-8').read()
    assert len(whole) > LIMIT and len(json.loads(whole)) == 100, text[-200:]
    assert text[:20000] == whole[:20000]
    for wrong in ({'x' * 9000: 1}, {'batch': {f'k{i}': 1 for i in range(9000)}}, {'y' * 300 + str(i): 1 for i in range(30)}, {'model': '\x01' * 9000}):
        for arguments in ({'scenario': stages, 'set': wrong}, {'scenario': {**stages, **wrong}}):
            result, text = client.call('check', **arguments)
            assert result['structuredContent']['exit_code'] in (2, 4) and result['structuredContent']['errors'], result
    os.rename('dtsim-answers', 'kept')
    os.mkdir('../elsewhere')
    os.symlink('../elsewhere', 'dtsim-answers')         # a link leads out of the folder: nothing is written behind it
    text = client.call('compare', scenario=[stages], set={'batch.micro_batches': list(range(2, 102))})[1]
    assert 'could not be written to dtsim-answers/' in text and not os.listdir('../elsewhere'), text[-200:]
    os.remove('dtsim-answers')
    os.rmdir('../elsewhere')


def patience(client):
    number = client.put('tools/call', {'name': 'run', 'arguments': {'scenario': endless}, '_meta': {'progressToken': 'p'}})
    told = [client.get() for _ in range(2)]
    assert all(m['method'] == 'notifications/progress' and m['params']['progressToken'] == 'p' for m in told), told
    assert told[0]['params']['progress'] < told[1]['params']['progress'] < told[1]['params']['total'] == 50
    assert client.ask('ping')['result'] == {}           # while the call runs
    client.put('notifications/cancelled', {'requestId': number}, number=False)
    began = time.monotonic()
    assert client.ask('ping')['result'] == {} and time.monotonic() - began < 5
    result, text = client.call('run', scenario=endless, budget=['0.5 s'])
    assert result['structuredContent']['exit_code'] == 7, text
    children = f'/proc/{client.server.pid}/task/{client.server.pid}/children'
    assert not open(children).read().split()


def skill():
    """Commands, options and exit codes of SKILL.md are those that there are."""
    text = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'SKILL.md'), encoding='utf-8').read()
    words = lambda *line: subprocess.run([dtsim, 'completion', 'words', *line], capture_output=True, text=True).stdout
    lines = re.findall(r'`dtsim ([^`]+)`', text)
    assert len(lines) > 20
    for name, *rest in map(str.split, lines):
        assert name in words('').split(), name
        for word in rest:
            assert not word.startswith('--') or word in words(name, '-').replace('=', '').split(), (name, word)
    told = subprocess.run([dtsim, 'help'], capture_output=True, text=True, check=True).stdout.split('Exit codes:')[1]
    codes = lambda pattern, where: re.findall(pattern, where, re.MULTILINE)
    assert codes(r'^\| (\d+) \|', text) == codes(r'^  (\d+) ', told)


def main():
    skill()
    with tempfile.TemporaryDirectory() as above:
        os.mkdir(f'{above}/work')
        os.chdir(f'{above}/work')
        for path, text in (('scenario.yaml', TEXT), ('../secret.yaml', 'xyzzy: 1\n'), ('wrong.yaml', 'model: x\ncluster: ideal\nbach: 1\n'),
                           ('job.sh', '#!/bin/bash\ntouch ran\ntorchrun pretrain_gpt.py --num-layers 2\n'),
                           ('list.txt', '--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 '
                                        '--micro-batch-size 1 --global-batch-size 8 --vocab-size 50304\n')):
            with open(path, 'w') as file:
                file.write(text)
        os.symlink('../secret.yaml', 'link.yaml')
        client = Client('-j', '2')
        if client.server.poll() is None:
            time.sleep(0.2)
        if client.server.poll() == 6:
            print('skipped: the kernel has no Landlock')
            sys.exit(77)
        for part in (versions, mistakes, tools, calls, whole_lines, budgets, several_trainings, held, long_answers, patience):
            part(client)
        number = client.put('tools/call', {'name': 'run', 'arguments': {'scenario': stages}})
        client.server.stdin.write('{"id": "last", "method": "ping"}')       # without the end of its line
        assert {message['id'] for message in client.end()} == {number, 'last'}      # the end of input lets calls end


main()
