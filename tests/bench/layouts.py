#!/usr/bin/env python3
"""How near layouts that people published are to the best that a plan finds: layouts.py DTSIM [TABLE]... [-j N]

Each row's model, cluster, batch, software and formats are held; the tensor and pipeline degrees, the schedule, chunks and
the micro-batch are searched, first with the row's recomputation, then with any that the software has. A line a layout:
its time over the best, less 1, the best, and whether that is proven. Needs python3-yaml. scenarios/paper/README.md has
what it printed."""
import copy, json, os, subprocess, sys, tempfile
import yaml

LAYOUTS = {
    'narayanan-sc21-table1': None,
    'bigscience-bloom': ['prod-gbs2048'],
    'nemo-2208-a100': ['5b-010', '175b-016', '175b-128'],
    'megatron-bridge-h100-fp8': ['llama3-8b-2511', 'llama3-70b-2602'],
}
# Where the published pipeline neither divides the layers nor is a power of two, as the degrees of `auto` are.
LISTED = {'bigscience-bloom': {'strategy.pipeline': '1,2,4,6,8,12,16,24'}}
SEARCHED = ['strategy.tensor', 'strategy.pipeline', 'strategy.schedule', 'strategy.chunks', 'batch.micro']
RECOMPUTE = 'memory.recompute'
SHORTHANDS = {'software': 'like', 'cluster': 'platform', 'recompute': 'mode', 'schedule': 'name'}
GPUS_OF_NODE = {'dgx-a100': 8, 'dgx-h100': 8, 'gb200-nvl72': 72}


def put(tree, path, value):
    keys = path.split('.')
    for key in keys[:-1]:
        if isinstance(tree.get(key), str):           # a name stands for a mapping
            tree[key] = {SHORTHANDS[key]: tree[key]}
        tree = tree.setdefault(key, {})
    if value is None:
        tree.pop(keys[-1], None)
    else:
        tree[keys[-1]] = value


def get(tree, path):
    for key in path.split('.'):
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def scenario_of(paper, row):
    tree = copy.deepcopy(paper['base'])
    for column, value in zip(paper['columns'], row):
        if not column.startswith('measured.') and column not in ('id', 'group', 'expect') and value is not None:
            put(tree, column, value)
    put(tree, 'cluster.nodes', 1)
    gpus = 1
    for degree in ('tensor', 'pipeline', 'data', 'context'):
        gpus *= get(tree, 'strategy.' + degree) or 1
    each = GPUS_OF_NODE[tree['cluster']['platform']]
    tree['cluster']['nodes'] = max(1, -(-gpus // each))
    return tree, gpus


def run(dtsim, *arguments):
    return subprocess.run([dtsim, *arguments], capture_output=True, text=True)


def best_of(dtsim, tree, searched, listed, options):
    """The first row of a plan, and its status."""
    tree = copy.deepcopy(tree)
    for path in searched + ['strategy.data', 'strategy.split']:
        put(tree, path, None)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, 'open.yaml')
        with open(file, 'w') as out:
            yaml.safe_dump(tree, out)
        plan = run(dtsim, 'plan', file, '--verify', '0', '--json', '-o', folder + '/plan', '--top', '3',
                   *[word for path in searched for word in ('--set', f'{path}={listed.get(path, "auto")}')], *options)
    found = json.loads(plan.stdout) if plan.stdout.startswith('{') else {}
    return (found.get('rows') or [None])[0], found.get('status', plan.stderr.strip()[:200])


def time_of(dtsim, tree):
    with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
        yaml.safe_dump(tree, file)
        file.flush()
        said = run(dtsim, 'run', file.name, '--engine', 'fast', '--json', '--no-advice', '--set', 'memory.enforce=true')
    return json.loads(said.stdout)['iteration_time_s'] if said.returncode == 0 else said.stderr.strip()[:160]


def words_of(time, best, status):
    if not best:
        return f'no plan ({status})'
    seconds = best['metrics']['iteration_time_s']
    point = ', '.join(f'{key.split(".")[-1]} {value}' for key, value in best['point'].items())
    over = f'{100 * (time / seconds - 1):.1f} %' if isinstance(time, float) else f'does not run: {time}'
    return f'{over} over {seconds:.4g} s ({point}; {status})'


def main():
    names = [name for name in sys.argv[2:] if name in LAYOUTS]
    options = [word for word in sys.argv[2:] if word not in LAYOUTS]
    dtsim, papers = sys.argv[1], os.path.join(os.path.dirname(__file__), '../../scenarios/paper')
    for name, rows in LAYOUTS.items():
        if names and name not in names:
            continue
        with open(os.path.join(papers, name + '.yaml')) as file:
            paper = yaml.safe_load(file)
        for row in paper['rows']:
            if rows is not None and row[0] not in rows:
                continue
            tree, gpus = scenario_of(paper, row)
            time = time_of(dtsim, tree)
            for searched in (SEARCHED, SEARCHED + [RECOMPUTE]):
                held = 'any recomputation' if RECOMPUTE in searched else f'recompute {get(tree, RECOMPUTE) or "none"}'
                print(f'{name} {row[0]}, {gpus} GPUs, {held}: '
                      f'{words_of(time, *best_of(dtsim, tree, searched, LISTED.get(name, {}), options))}', flush=True)


main()
