#!/usr/bin/env python3
"""What importers make of what launches and job files say of GPUs, and what they say where a reading is not sure.

    tests/importers.py DTSIM"""
import os
import re
import subprocess
import sys
import tempfile

DTSIM = os.path.abspath(sys.argv[1])
MODEL = ("--num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 128 --max-position-embeddings 128 "
         "--micro-batch-size 1 --global-batch-size 384 --vocab-size 1024 --bf16")
CONFIG = ('{"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, '
          '"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072, '
          '"tie_word_embeddings": true}')
wrong = 0


def run(kind, text, *options):
    """The exit status, the scenario, and what is said."""
    with open("file", "w") as file:
        file.write(text)
    done = subprocess.run([DTSIM, "import", kind, "file", *options], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def expect(good, what, told):
    global wrong
    if not good:
        print("%s:\n%s" % (what, told))
        wrong += 1


def number(key, text):
    found = re.search(r"\b%s: (\d+)" % key, text)
    return int(found.group(1)) if found else None


# A launch, where PROGRAM is the program with its arguments; nodes, GPUs a node that differ from 8, all GPUs; the line of a
# warning about the number of GPUs, or 0 where there is none.
COUNTS = [
    ("torchrun --nnodes 4 --nproc_per_node 8 PROGRAM", 4, None, 32, 0),
    ("torchrun --nnodes=4 --nproc-per-node=8 PROGRAM", 4, None, 32, 0),
    ("torchrun --nproc_per_node 4 PROGRAM", 1, None, 4, 0),
    ("torchrun --standalone --nproc_per_node 2 PROGRAM", 1, None, 2, 0),
    ("torchrun --nproc_per_node gpu PROGRAM", 1, None, 8, 0),
    ("torchrun --nnodes 2 --nproc_per_node auto PROGRAM", 2, None, 16, 0),
    ("torchrun --nnodes 2 PROGRAM", 2, 1, 2, 0),
    ("torchrun --nnodes 1:4 --nproc_per_node 8 PROGRAM", 1, None, 8, 1),
    ("torchrun --nnodes 2:2 --nproc_per_node 8 PROGRAM", 2, None, 16, 0),
    ("torchrun --nnodes 3 --nproc_per_node 4 PROGRAM", 3, 4, 12, 0),
    ("torchrun --nnodes 2 --nproc_per_node 16 PROGRAM", 4, None, 32, 1),
    ("python -m torch.distributed.launch --nproc_per_node 8 PROGRAM", 1, None, 8, 0),
    ("python3 -m torch.distributed.run --nnodes 2 --nproc-per-node 8 PROGRAM", 2, None, 16, 0),
    ("torchrun $UNKNOWN PROGRAM", 1, None, 8, 1),
    ("python PROGRAM", 1, None, 8, 1),
    ("#SBATCH --nodes=4\nsrun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 PROGRAM", 4, None, 32, 0),
    ("#!/bin/bash\n\n# a job\n#SBATCH -N 4  # nodes\nsrun torchrun --nnodes=$SLURM_JOB_NUM_NODES --nproc_per_node 8 PROGRAM",
     4, None, 32, 0),
    ("#SBATCH -N4\nN=${SLURM_NNODES:-1}\ntorchrun --nnodes $N --nproc_per_node 8 PROGRAM", 4, None, 32, 0),
    ("##SBATCH -N 4\nN=${SLURM_NNODES:-1}\ntorchrun --nnodes $N --nproc_per_node 8 PROGRAM", 1, None, 8, 0),
    ("true\n#SBATCH -N 4\nN=${SLURM_NNODES:-1}\ntorchrun --nnodes $N --nproc_per_node 8 PROGRAM", 1, None, 8, 0),
    ("#SBATCH --nodes=4 --gres=gpu:h100:4\nG=$SLURM_GPUS_ON_NODE\nsrun torchrun --nnodes 4 --nproc_per_node $G PROGRAM",
     4, 4, 16, 0),
    ("#SBATCH --nodes 2\n#SBATCH --gpus-per-node=8\nN=$(scontrol show hostnames | wc -l)\n"
     "torchrun --nnodes $N --nproc_per_node gpu PROGRAM", 2, None, 16, 1),
    ("#SBATCH --nodes=4\nsrun torchrun --nproc_per_node 8 PROGRAM", 1, None, 8, 1),
    ("#SBATCH --nodes=4\nsrun torchrun --nnodes 2 --nproc_per_node 8 PROGRAM", 2, None, 16, 1),
    ("#SBATCH --nodes=2\n#SBATCH --gres=gpu:8\nsrun torchrun --nnodes 2 --nproc_per_node 4 PROGRAM", 2, 4, 8, 2),
    ("#SBATCH --nodes=2-4\nsrun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 PROGRAM", 1, None, 8, 2),
    ("srun -N 4 --ntasks-per-node=8 python PROGRAM", 4, None, 32, 0),
    ("srun -N4 --ntasks-per-node 4 python PROGRAM", 4, 4, 16, 0),
    ("srun --nodes=2 --ntasks 16 python PROGRAM", 2, None, 16, 0),
    ("srun -n16 -N2 python PROGRAM", 2, None, 16, 0),
    ("srun -n 32 python PROGRAM", 4, None, 32, 0),
    ("#SBATCH -N 3\n#SBATCH --ntasks-per-node=8\nsrun python PROGRAM", 3, None, 24, 0),
    ("#SBATCH -N 3\n#SBATCH --ntasks-per-node=8\nsrun -N 2 python PROGRAM", 2, None, 16, 0),
    ("#SBATCH -N 3\n#SBATCH --ntasks-per-node=8\nsrun bash -c \"python -u PROGRAM\"", 3, None, 24, 0),
    ("#SBATCH -N 2\nsrun bash -c \"torchrun --nnodes 2 --nproc_per_node 8 PROGRAM\"", 2, None, 16, 0),
    ("mpirun -np 32 -npernode 8 python PROGRAM", 4, None, 32, 0),
    ("mpirun -n 16 --npernode 4 python PROGRAM", 4, 4, 16, 0),
    ("mpiexec -n 16 -ppn 8 python PROGRAM", 2, None, 16, 0),
    ("mpirun --np 24 --map-by ppr:8:node python PROGRAM", 3, None, 24, 0),
    ("mpirun -np 16 python PROGRAM", 2, None, 16, 0),
    ("deepspeed --num_nodes 2 --num_gpus 8 PROGRAM", 2, None, 16, 0),
    ("deepspeed --num_nodes 4 PROGRAM", 4, None, 32, 0),
    ("deepspeed --num_gpus=4 PROGRAM", 1, None, 4, 0),
    ("deepspeed --hostfile hosts PROGRAM", 1, None, 8, 1),
    ("deepspeed --hostfile hosts --num_nodes 2 --num_gpus 8 PROGRAM", 2, None, 16, 0),
    ("accelerate launch --num_processes 16 --num_machines 2 PROGRAM", 2, None, 16, 0),
    ("accelerate launch --num_processes=16 PROGRAM", 2, None, 16, 0),
    ("accelerate launch --config_file c.yaml PROGRAM", 1, None, 8, 1),
]


def test_counts():
    for launch, nodes, per_node, gpus, line in COUNTS:
        rc, scenario, said = run("megatron", launch.replace("PROGRAM", "pretrain_gpt.py " + MODEL) + "\n", "--cluster", "dgx-h100")
        warned = [int(n) for n, _ in re.findall(r"^file:(\d+):\d+: warning: (.*(GPUs|Slurm|nodes).*)$".replace("(GPUs", "(?:GPUs"),
                                                said, re.M)]
        found = number("nodes", scenario), number("gpus_per_node", scenario), number("data", scenario)
        expect(rc == 0 and found == (nodes, per_node, gpus) and (line in warned if line else not warned), launch,
               "nodes, GPUs a node, GPUs: expected %s, found %s; warnings in lines %s, expected %d\n%s" %
               ((nodes, per_node, gpus), found, warned, line, said))
    rc, scenario, said = run("megatron", "torchrun --nproc_per_node 4 pretrain_gpt.py --tensor-model-parallel-size 8 " + MODEL)
    expect(rc == 5 and "do not divide the 4 GPUs" in said, "tensor 8 on 4 GPUs", said)


KINDS = [
    ("megatron", "torchrun --nnodes 1 --nproc_per_node 4 pretrain_gpt.py " + MODEL, []),
    ("deepspeed", '{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}}',
     ["--hf-config", "config.json", "--set", "sequence=4096"]),
    ("torchtitan", '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nseq_len = 4096\n', []),
    ("bridge", "model: {seq_length: 4096}\ntrain: {micro_batch_size: 1, global_batch_size: 64}\n", ["--hf-config", "config.json"]),
    ("nemo", "data: {seq_length: 4096, micro_batch_size: 1, global_batch_size: 64}\n"
     "model: {config: {_target_: nemo.collections.llm.gpt.model.llama.Llama3Config8B}}\n", []),
]


def test_platforms():
    """Every platform that is listed is taken by every importer."""
    listed = subprocess.run([DTSIM, "list", "platforms"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.splitlines() if line[:1].isalnum()]
    expect(len(names) > 30 and "ideal" in names, "dtsim list platforms", listed)
    for name in names:
        for kind, text, options in KINDS:
            rc, scenario, said = run(kind, text, "--cluster", name, *options)
            if name == "ideal":
                expect(rc == 4 and "has no GPUs" in said, kind + " --cluster ideal", said)
            else:
                expect(rc == 0 and "platform: %s," % name in scenario, "%s --cluster %s" % (kind, name), scenario + said)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("config.json", "w") as config:
            config.write(CONFIG)
        tests = [test for name, test in sorted(globals().items()) if name.startswith("test_")]
        for test in tests:
            test()
        os.chdir("/")
    print("%d tests, %d mistakes" % (len(tests), wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
