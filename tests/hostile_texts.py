"""Texts of others in all that is printed: hostile_texts.py DTSIM. Names, titles, paths and values of a scenario hold what steers
a terminal, turns the direction of writing, ends a line or begins HTML; no command prints it as it is, into whatever place."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

dtsim = os.path.abspath(sys.argv[1])
source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
mark = '\u202e\u2066\u200f\u2028\x9b<img src=x>|`a`'
written = json.dumps(mark)
printable = mark.replace('\x9b', '')        # in --set, where YAML refuses others
harmful = re.compile('[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]')
raw = re.compile(r'(^|[^\\`])<img')
folder = tempfile.mkdtemp()
os.chdir(folder)
odd = mark.replace('/', '') + '.yaml'


def write(path, *lines):
    with open(path, 'w', encoding='utf-8') as out:
        print(*lines, sep='\n', file=out)


scenario = [f'name: {written}', f'model: {{title: {written}, transformer: {{layers: 4, hidden: 256, heads: 4, sequence: 128, '
            'vocabulary: 1024}}', 'batch: {global: 8}', 'strategy: {pipeline: 2}', 'memory: {precision: mixed-bf16}',
            'train: {steps: 100}']
gpu = open(os.path.join(source, 'platforms/gpus/a100-80gb.yaml'), encoding='utf-8').read()
write('gpu.yaml', re.sub('^title:.*', lambda found: f'title: {written}', gpu, flags=re.M))
write('s.yaml', *scenario, 'cluster: {nodes: 1, gpus_per_node: 2, gpu: gpu.yaml, inside: {bandwidth: 10 GB/s, latency: 1 us}}')
write(odd, *scenario, 'cluster: {platform: dgx-a100, nodes: 1}')
write('sweep.yaml', 'base: s.yaml', 'sweep: {grid: {batch.micro: [1, 2], strategy.pipeline: [2, 3]}}')
write('wrong.yaml', *scenario, f'cluster: {written}', f'{written}: {written}')
write('csv.yaml', *scenario[:-2], f'strategy.schedule: {written}')
os.mkdir(mark)
commands = []
for file in 's.yaml', odd:
    commands += [['check', file], ['check', file, '--json'], ['check', file, '--memory'], ['run', file], ['run', file, '--json'],
                 ['run', file, '-o', mark + '/out'], ['show', file], ['show', file, '--memory'], ['show', file, '--program'],
                 ['show', file, '--figure'], ['show', file, '--alike'],
                 ['explain', file], ['explain', file, '--markdown'], ['compare', file, odd, '--markdown'],
                 ['compare', file, odd], ['compare', file, odd, '--csv'], ['compare', file, odd, '--json'],
                 ['compare', file, '--methods'], ['compare', file, '--methods', '--markdown'], ['train', file],
                 ['train', file, '--markdown'], ['train', file, '--json'], ['emit', 'megatron', file], ['emit', 'deepspeed', file],
                 ['emit', 'torchtitan', file], ['check', file, '--values', 'strategy.schedule'],
                 ['plan', file, '--verify', '0', '-o', mark + '/plan'],
                 ['plan', file, '--verify', '0', '-o', mark + '/plan2', '--json'],
                 ['plan', file, '--method', 'all', '--markdown'],
                 *[[command, file, '--set', path + '=' + printable] for command in ('check', 'run', 'compare', 'train', 'explain')
                   for path in ('name', printable, 'strategy.schedule', 'strategy.schedule.csv', 'cluster', 'software',
                                'cluster.gpu', 'model.preset', 'strategy.' + printable)]]
commands += [['run', 'wrong.yaml'], ['check', 'wrong.yaml'], ['check', 'wrong.yaml', '--json'], ['compare', 'wrong.yaml', odd],
             ['compare', 'wrong.yaml', odd, '--markdown'], ['run', 'csv.yaml'], ['sweep', 'sweep.yaml', '-o', mark + '/rows'],
             ['sweep', 'sweep.yaml', '--dry-run'], ['results', mark + '/rows'], ['results', mark + '/rows', '--markdown'],
             ['results', mark + '/rows', '--csv'], ['results', mark + '/rows', '--json'], ['results', mark],
             ['results', mark + '/rows', '--where', mark], ['results', mark + '/rows', '--by', mark], ['compare', mark + '/out'],
             ['compare', mark + '/out', odd, '--markdown'], ['explain', mark + '/out'], ['trace', mark + '/out', '-o', mark + '/t'],
             ['plot', 'gantt', mark + '/out'], ['plot', mark, mark + '/out'], ['report', mark + '/out', '-o', mark + '/p.html'],
             ['import', mark, 's.yaml'], ['import', 'megatron', mark], ['import', 'megatron', odd], ['validate', odd],
             ['validate', mark], ['help', mark], ['list', mark], ['list', 'gpus'], [mark], ['run', '--' + mark],
             ['calibrate', 'fit', odd], ['collective', mark], ['collective', 'dgx-h100', '--op', mark],
             ['serve', mark], ['run', 's.yaml', '--engine', mark], ['run', 's.yaml', '--budget', mark]]
wrong, codes = [], {}
for words in commands:
    done = subprocess.run([dtsim, *words], capture_output=True, stdin=subprocess.DEVNULL, timeout=300)
    codes[done.returncode] = codes.get(done.returncode, 0) + 1
    for name, text in ('stdout', done.stdout), ('stderr', done.stderr):
        for line in text.decode('utf-8', 'surrogateescape').split('\n'):
            if harmful.search(line) or ('--markdown' in words and name == 'stdout' and raw.search(line)):
                wrong.append(f'{words[0]} {[w for w in words[1:]]!r}, {name}: {line!r}')
                break
for path in glob.glob(glob.escape(mark) + '/**/*.tsv', recursive=True) + glob.glob(glob.escape(mark) + '/**/*.json*', recursive=True):
    with open(path, encoding='utf-8', errors='surrogateescape', newline='') as file:
        if harmful.search(file.read().replace('\n', ' ').replace('\t', ' ')):
            wrong.append('a file: ' + repr(path))
print(f'{len(commands)} commands; exit codes {sorted(codes.items())}')
assert not wrong, '\n'.join(wrong)
