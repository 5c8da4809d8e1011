#!/usr/bin/env python3
"""import nccl-tests --platform: a profile fitted to a log finds what the log was made with.
    nccl_fit.py DTSIM
Logs are what dtsim simulates on a platform, each time multiplied: then latencies are so many times as long and rates so many times as
low. Of a log without small sizes the latencies stay the platform's, and that is said."""
import json
import os
import random
import re
import subprocess
import sys
import tempfile

DTSIM = os.path.abspath(sys.argv[1])


def dtsim(*arguments):
    done = subprocess.run([DTSIM, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f'{arguments}: {done.stderr}')
    return done


def times(cluster, op, sizes):
    rows = json.loads(dtsim('collective', cluster, '--ranks', '8', '--bytes', sizes, '--op', op, '--json', '--engine', 'fast').stdout)
    return [(int(row['bytes']), row['time_s']) for row in rows]


def write_log(rows, op, factor):
    share = {'all_reduce': 2 * 7 / 8}.get(op, 7 / 8)
    with open('log', 'w', encoding='utf-8') as out:
        print(f'# Collective test starting: {op}_perf', file=out)
        for rank in range(8):
            print(f'#  Rank  {rank} Group  0 Pid {rank + 1} on   node-1 device  {rank} [0x01] Some GPU', file=out)
        print('#  size  count  type  redop  root  time  algbw  busbw #wrong', file=out)
        for size, seconds in rows:
            rate = size / seconds / factor / 1e9
            print(f'{size} {size // 4} float sum -1 {seconds * factor * 1e6:.2f} {rate:.2f} {rate * share:.2f} 0', file=out)


random.seed(int(os.environ.get("DTSIM_SEED", "67")))
with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    for platform, op in (('dgx-h100', 'all_gather'), ('dgx-h100', 'all_reduce'), ('dgx-a100', 'all_reduce'), ('dgx-b200', 'reduce_scatter')):
        factor = random.uniform(1.05, 1.6)
        rows = times(platform, op, '1K:1G')
        write_log(rows, op, factor)
        done = dtsim('import', 'nccl-tests', 'log', '--platform', platform)
        with open('mine.yaml', 'w', encoding='utf-8') as out:
            out.write(done.stdout)
        with open('cluster.yaml', 'w', encoding='utf-8') as out:
            out.write(f'platform: {platform}\ncommunication: ./mine.yaml\n')
        assert 'the network between nodes: not measured' in done.stderr, done.stderr
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'platforms', 'communication', 'nccl-ampere.yaml'), encoding='utf-8') as base:
            kept = re.findall(r'network_share: [0-9.]+', base.read())
        if platform == 'dgx-a100':
            assert re.findall(r'network_share: [0-9.]+', done.stdout) == kept, done.stdout
        found = float(re.search(r'latencies x ([0-9.]+)', done.stderr)[1])
        after = float(re.search(r'profile, ([0-9.]+) %', done.stderr)[1])
        assert abs(found / factor - 1) < 0.06, (platform, op, factor, done.stderr)
        assert after < 4, (platform, op, factor, done.stderr)
        off = [(mine / (theirs * factor) - 1) for (_, mine), (_, theirs) in zip(times('cluster.yaml', op, '1K:1G'), rows)]
        assert max(map(abs, off)) < 0.15, (platform, op, factor, off)
        write_log([row for row in rows if row[0] >= 1 << 24], op, factor)
        done = dtsim('import', 'nccl-tests', 'log', '--platform', platform)
        assert "latencies: as the platform's" in done.stderr, done.stderr
    write_log(rows, op, 20)
    done = subprocess.run([DTSIM, 'import', 'nccl-tests', 'log', '--platform', platform], capture_output=True, text=True, check=False)
    assert done.returncode == 4 and 'with the best factors' in done.stderr and not done.stdout, done.stderr
    done = subprocess.run([DTSIM, 'import', 'nccl-tests', 'log', '--platform', 'dgx-h1000'], capture_output=True, text=True, check=False)
    assert done.returncode == 4 and "did you mean 'dgx-h100'" in done.stderr, done.stderr
