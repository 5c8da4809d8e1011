#!/usr/bin/env python3
"""What importers make of what launches and job files say of GPUs, and what they say where a reading is not sure.

    tests/importers.py DTSIM"""
import os
import random
import re
import shutil
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
# warning about the number of GPUs, or 0 where there is none. No nodes: it is an error there.
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
     "torchrun --nnodes $N --nproc_per_node gpu PROGRAM", 2, None, 16, 2),
    ("#SBATCH --nodes=4\nsrun torchrun --nproc_per_node 8 PROGRAM", None, None, None, 2),
    ("#SBATCH --nodes=4\nsrun torchrun --nnodes 2 --nproc_per_node 8 PROGRAM", None, None, None, 2),
    ("#SBATCH --nodes=2\n#SBATCH --gres=gpu:8\nsrun torchrun --nnodes 2 --nproc_per_node 4 PROGRAM", None, None, None, 3),
    ("#SBATCH --nodes=2-4\nsrun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 PROGRAM", None, None, None, 2),
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
    ("aprun -n 16 -N 4 python PROGRAM", 4, 4, 16, 0),
    ("#SBATCH -N 2\n#SBATCH -n 16\nibrun python PROGRAM", 2, None, 16, 0),
    ("deepspeed --num_nodes 2 --num_gpus 8 PROGRAM", 2, None, 16, 0),
    ("deepspeed --num_nodes 4 PROGRAM", 4, None, 32, 0),
    ("deepspeed --num_gpus=4 PROGRAM", 1, None, 4, 0),
    ("deepspeed --hostfile hosts PROGRAM", 1, None, 8, 1),
    ("printf 'a slots=4\\nb slots=4 # second\\n#c slots=4\\nd slots=4' > hosts; deepspeed --hostfile hosts PROGRAM", 3, 4, 12, 0),
    ("printf 'a slots=4\\nb slots=8\\n' > hosts; deepspeed --hostfile=hosts PROGRAM", 1, None, 8, 1),
    ("#PBS -l select=4:ncpus=8:ngpus=8:mpiprocs=8\nmpirun -np 32 python PROGRAM", 4, None, 32, 0),
    ("#PBS -l nodes=4:ppn=8\ntorchrun --nnodes 4 --nproc_per_node 8 PROGRAM", 4, None, 32, 0),
    ("#PBS -l select=2:ngpus=8\ntorchrun --nnodes 4 --nproc_per_node 8 PROGRAM", None, None, None, 2),
    ("torchrun PROGRAM", 1, None, 1, 0),
    ("torchrun --standalone PROGRAM", 1, None, 1, 0),
    ("sbatch -N 3 <<E\n#!/bin/bash\n#SBATCH --nodes=2\nsrun torchrun --nnodes \\$SLURM_NNODES --nproc_per_node 8 PROGRAM\nE", 3, None, 24, 0),
    ("cat > job.sh <<'E'\n#!/bin/bash\n#SBATCH -N 2\nN=${SLURM_NNODES:-1}\nsrun torchrun --nnodes $N --nproc_per_node 8 PROGRAM\nE\n"
     "sbatch job.sh", 2, None, 16, 0),
    ("N=$(nvidia-smi -L | wc -l)\ntorchrun --nproc_per_node $N PROGRAM", 1, None, 8, 0),
    ("N=$(nvidia-smi --query-gpu=name --format=csv,noheader | wc -l)\ntorchrun --nproc_per_node $N PROGRAM", 1, None, 8, 0),
    ("N=`python -c \"import torch; print(torch.cuda.device_count())\"`\ntorchrun --nproc_per_node $N PROGRAM", 1, None, 8, 0),
    ("set -u\nif command -v nvidia-smi > /dev/null; then N=$(nvidia-smi -L | wc -l); else N=2; fi\n"
     "torchrun --nproc_per_node $N PROGRAM", 1, None, 8, 0),
    ("N=$(python -c 'print(4)')\ntorchrun --nproc_per_node $N PROGRAM", None, None, None, 2),
    ("N=$(python -c 'print(4)' | wc -l)\ntorchrun --nproc_per_node $N PROGRAM", None, None, None, 2),
    ("if python x.py; then N=8; else N=4; fi\ntorchrun --nproc_per_node $N PROGRAM", None, None, None, 2),
    ("torchrun --nproc_per_node ${GPUS:-4} PROGRAM", 1, None, 4, 0),
    ("torchrun --nproc_per_node $GPUS PROGRAM", None, None, None, 1),
    ("set -u\ntorchrun --nproc_per_node $GPUS PROGRAM", None, None, None, 2),
    ("torchrun --nproc_per_node $((GPUS * 2 + 4)) PROGRAM", None, None, None, 1),
    ("torchrun --nproc_per_node $((${GPUS:-2} * 2 + 4)) PROGRAM", 1, None, 8, 0),
    ("[ -n \"$GPUS\" ] || GPUS=8\ntorchrun --nproc_per_node $GPUS PROGRAM", 1, None, 8, 0),
    ("if [ -z $NIGHT ]; then torchrun --nproc_per_node 8 PROGRAM; fi", 1, None, 8, 0),
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
        refused = re.search(r"^file:%d:\d+: error: " % line, said, re.M)
        right = rc == 0 and found == (nodes, per_node, gpus) and (line in warned if line else not warned)
        expect(right if nodes else rc == 4 and refused, launch,
               "nodes, GPUs a node, GPUs: expected %s, found %s; warnings in lines %s, expected %d\n%s" %
               ((nodes, per_node, gpus), found, warned, line, said))
    rc, scenario, said = run("megatron", "torchrun --nproc_per_node 4 pretrain_gpt.py --tensor-model-parallel-size 8 " + MODEL)
    expect(rc == 5 and "do not divide the 4 GPUs" in said, "tensor 8 on 4 GPUs", said)


KINDS = [
    ("megatron", "torchrun --nnodes 1 --nproc_per_node 4 pretrain_gpt.py " + MODEL, []),
    ("deepspeed", '{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}}',
     ["--hf-config", "config.json", "--set", "sequence=4096"]),
    ("torchtitan", '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nseq_len = 4096\n', []),
    ("transformers", "max_length: 4096\nbf16: true\n", ["--hf-config", "config.json"]),
    ("bridge", "model: {seq_length: 4096}\ntrain: {micro_batch_size: 1, global_batch_size: 64}\n", ["--hf-config", "config.json"]),
    ("nemo", "data: {seq_length: 4096, micro_batch_size: 1, global_batch_size: 64}\n"
     "model: {config: {_target_: nemo.collections.llm.gpt.model.llama.Llama3Config8B}}\n", []),
]


def test_titan_formats():
    """torchtitan's formats: all in bf16, sums in fp32 unless said otherwise; narrow products of such weights."""
    text = '[model]\nname = "llama3"\nflavor = "8B"\n%s[training]\nseq_len = 4096\n%s'
    for model, training, says in (("", "", "precision: mixed-bf16"), ("", 'dtype = "float32"', "precision: mixed-bf16"),
                                  ("", 'mixed_precision_param = "float32"', "precision: fp32"),
                                  ("", 'dtype = "bfloat16"', "precision: bf16 optimizer: adam-half gradients: widened"),
                                  ("", 'dtype = "bfloat16"\nmixed_precision_reduce = "bfloat16"', "precision: bf16 gradients: half"),
                                  ('converters = ["float8"]\n', 'dtype = "bfloat16"',
                                   "precision: mixed-fp8 optimizer: adam-half master: none gradients: widened")):
        rc, scenario, said = run("torchtitan", text % (model, training))
        words = re.sub(r"\s+", " ", scenario) + " "
        expect(rc == 0 and all(key + " " in words for key in re.findall(r"\S+: \S+", says)), training, scenario + said)
    rc, scenario, said = run("torchtitan", text % ("", 'dtype = "float16"'))
    expect(rc == 4 and "expected bfloat16 or float32" in said, "dtype float16", said)


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


MOE = ("torchrun --nproc_per_node 8 pretrain_gpt.py " + MODEL + " --num-experts 8 --moe-router-topk 2 "
       "--moe-token-dispatcher-type alltoall ")


def test_experts():
    """Experts one after another are warned of, where a GPU has several."""
    for more, warned in (("", True), ("--moe-grouped-gemm", False), ("--expert-model-parallel-size 4", True),
                         ("--expert-model-parallel-size 8", False), ("--expert-model-parallel-size 4 --moe-grouped-gemm", False)):
        rc, scenario, said = run("megatron", MOE + more)
        expect(rc == 0 and ("SequentialMLP" in said) == warned, "experts " + more, said)
        if warned:
            expect(re.search(r"^file:1:\d+: warning: .*SequentialMLP", said, re.M), "experts' line " + more, said)
            expect(run("megatron", MOE + more, "--strict")[0] == 4, "experts, --strict", said)
    rc, scenario, said = run("bridge", "model: {num_layers: 8, hidden_size: 512, num_attention_heads: 8, seq_length: 128, "
                             "vocab_size: 1024, num_moe_experts: 8, moe_router_topk: 2}\ntrain: {micro_batch_size: 1}\n")
    expect("model.moe_grouped_gemm" in said, "experts of Bridge", said)


LOG = """------------------------ arguments ------------------------
  num_layers ...................................... 8
  hidden_size ..................................... 512
  num_attention_heads ............................. 8
  seq_length ...................................... 128
  micro_batch_size ................................ 1
  global_batch_size ............................... 8
  vocab_size ...................................... 1024
  bf16 ............................................ True
  world_size ...................................... 8
  optimizer ....................................... %s
  use_distributed_optimizer ....................... %s
  use_layer_wise_distributed_optimizer ............ %s
-------------------- end of arguments ---------------------
"""


def test_muon():
    """A log says dist_muon by muon and a switch of its own."""
    for optimizer, distributed, wise, zero in (("muon", False, True, 1), ("muon", False, False, None), ("muon", True, False, 1),
                                               ("dist_muon", False, False, 1), ("adam", False, False, None)):
        rc, scenario, said = run("megatron", LOG % (optimizer, distributed, wise))
        expect(rc == 0 and number("zero", scenario) == zero, "muon %s %s %s" % (optimizer, distributed, wise), scenario + said)


def stages_of(layers, per, first, last, pipeline, single):
    """torchtitan's number of chunks, or None where it refuses (pipeline_parallel.py, _get_pipeline_metadata)."""
    stages = -(-(layers + first + last) // per)
    if stages % pipeline or (single and stages != pipeline) or (not single and stages < 2 * pipeline):
        return None
    if (layers + first + last) // stages < max(first, last, 1):
        return None
    return stages // pipeline


def test_titan():
    """The stages of torchtitan's ranks: every number of blocks a stage."""
    for layers, flavor in ((32, "8B"), (80, "70B"), (126, "405B")):
        for pipeline, schedule in ((2, "Interleaved1F1B"), (4, "Interleaved1F1B"), (8, "interleaved1f1b"), (4, "1F1B")):
            for per in range(1, 34):
                for first, last in ((1, 1), (0, 0), (2, 1)):
                    text = ('[model]\nname = "llama3"\nflavor = "%s"\n[training]\nlocal_batch_size = 16\nseq_len = 4096\n'
                            '[parallelism]\npipeline_parallel_degree = %d\npipeline_parallel_schedule = "%s"\n'
                            'pipeline_parallel_layers_per_stage = %d\npipeline_parallel_first_stage_less_layers = %d\n'
                            'pipeline_parallel_last_stage_less_layers = %d\n' % (flavor, pipeline, schedule, per, first, last))
                    if (layers + per) % 5 and per > 4:
                        continue                             # a fifth of them is enough
                    chunks = stages_of(layers, per, first, last, pipeline, schedule == "1F1B")
                    rc, scenario, said = run("torchtitan", text, "--set", "nnodes=8", "--set", "nproc_per_node=8")
                    found = (number("chunks", scenario) or 1) if rc == 0 else None
                    expect(found == chunks, "torchtitan " + text, "expected %s chunks, found %s\n%s" % (chunks, found, said))
                    split = re.search(r"split: \[([^]]*)\]|split:\n((?:  +- \d+\n)+)", scenario)
                    if found and split:
                        blocks = [int(n) for n in re.findall(r"\d+", split.group(0))]
                        expect(sum(blocks) == layers and len(blocks) == chunks * pipeline, "split of " + text, scenario)


def test_titan_models():
    """Models of torchtitan's registry that are presets here; keys of its first releases."""
    text = '[model]\nname = "%s"\nflavor = "%s"\n[training]\nlocal_batch_size = 1\nseq_len = 4096\n'
    for name, flavor, preset in (("qwen3", "30B-A3B", "qwen3-30b-a3b"), ("deepseek_v3", "16B", "deepseek-v2-lite"),
                                 ("llama2", "13B", "llama2-13b"), ("qwen3", "31B", None)):
        rc, scenario, said = run("torchtitan", text % (name, flavor), "--set", "nnodes=1", "--set", "nproc_per_node=8")
        expect((rc == 0 and "preset: " + preset in scenario) if preset else rc == 4, name + flavor, said)
    old = text % ("llama3", "8B") + 'data_parallel_degree = %d\nfp8_linear = "%s"\n'
    for data, narrow, zero in ((-1, "", 3), (8, "", 3), (-1, "dynamic", None)):
        rc, scenario, said = run("torchtitan", old % (data, narrow), "--set", "nnodes=1", "--set", "nproc_per_node=8")
        expect((rc == 0 and number("zero", scenario) == zero) if zero else rc == 4, "of 2024", said + scenario)


NEMO = """data: {seq_length: 4096, micro_batch_size: 1, global_batch_size: 64}
trainer: {devices: 8, num_nodes: 1}
model: {config: {_target_: nemo.collections.llm.gpt.model.llama.Llama3Config8B}}
"""
ALL = "qkv, projection, mlp-up, mlp-down"


def lora_of(scenario):
    rank, targets = re.search(r"lora:\s+\{?rank: (\d+)", scenario), re.search(r"targets:((?:\s+-? ?\[?[a-z-]+[\],]?)+)", scenario)
    return (int(rank.group(1)) if rank else None), re.findall(r"(?:qkv|projection|mlp-up|mlp-down)", targets.group(1)) if targets else None


def test_adapters():
    """LoRA is read by each reader that has it, and other adapters are refused."""
    bridge = "model: {seq_length: 4096}\ntrain: {micro_batch_size: 1, global_batch_size: 64}\n"
    for kind, text, options in (("nemo", NEMO, []), ("bridge", bridge, ["--hf-config", "config.json"])):
        for key in ("peft", "model_transform") if kind == "nemo" else ("peft",):
            for said_so, rank, targets in (("{dim: 8, alpha: 16}", 8, ALL),
                                           ("{_target_: x.LoRA, dim: 16, target_modules: [linear_qkv]}", 16, "qkv"),
                                           ("{_target_: nemo.collections.llm.peft.lora.LoRA}", 32, ALL),
                                           ("{_target_: x.LoRA, target_modules: [linear_fc1, linear_proj]}", 32, "mlp-up, projection"),
                                           ("{dim: 8, target_modules: [linear_q_down_proj, linear_kv_up_proj]}", 8, "qkv"),
                                           ("{dim: 8, share_expert_adapters: false}", 8, ALL),
                                           ("{_target_: x.DoRA, dim: 8}", None, None), ("{_target_: x.LoRA, dim: 0}", None, None),
                                           ("{_target_: x.LoRA, target_modules: ['*.layers.0.*']}", None, None)):
                rc, scenario, said = run(kind, "%s%s: %s\n" % (text, key, said_so), *options)
                expect((rc == 0 and lora_of(scenario) == (rank, targets.split(", "))) if rank else (rc == 4 and "peft" in said),
                       "%s %s: %s" % (kind, key, said_so), scenario + said)
                expect(("expert_adapters: each" in scenario) == ("share_expert" in said_so), "%s: %s" % (kind, said_so), scenario)
        rc, scenario, said = run(kind, text + "peft: null\n", *options)
        expect(rc == 0 and "lora" not in scenario, kind + " peft: null", scenario + said)


def test_nemo():
    """A file that is no recipe of NeMo 2 is refused at its key; what is not read is warned of."""
    for text, key in (("recipe: X\nstep_scheduler: {global_batch_size: 64}\n", "recipe"),
                      ("model: {a: 1}\ndistributed: {tp_size: 4}\n", "distributed"),
                      ("exp_manager: {}\n" + NEMO, "exp_manager"), ("log: {}\n", "model nor trainer")):
        rc, scenario, said = run("nemo", text)
        expect(rc == 4 and key in said and re.search(r"^file:\d+:\d+: error", said, re.M), "nemo " + text, said)
    for more in ("accumulate_grad_batches: 4", "overlap_everything: true",
                 "callbacks: [{_target_: nemo.lightning.pytorch.callbacks.MegatronTokenDropCallback}]"):
        rc, scenario, said = run("nemo", NEMO.replace("num_nodes: 1", "num_nodes: 1, " + more))
        expect(rc == 0 and re.search(r"^file:2:\d+: warning: trainer\.", said, re.M), "nemo " + more, said)
    rc, scenario, said = run("nemo", NEMO)
    expect(rc == 0 and "warning: trainer" not in said, "nemo", said)


def test_length():
    """A length that nobody says is warned of, by importers and where a scenario does not fit."""
    bridge = "model: {tensor_model_parallel_size: 2}\ntrain: {micro_batch_size: 1, global_batch_size: 64}\n"
    for kind, text, key in (("bridge", bridge, "model.seq_length"), ("nemo", NEMO.replace("seq_length: 4096, ", ""), "model.seq_length"),
                            ("deepspeed", KINDS[1][1], "sequence")):
        rc, scenario, said = run(kind, text, "--hf-config", "config.json")
        expect(rc == 0 and "131072 is taken" in said and number("sequence", scenario) == 131072, kind + "'s length", said)
        rc, scenario, said = run(kind, text, "--hf-config", "config.json", "--set", key + "=4096")
        expect(rc == 0 and "is taken, the most" not in said and number("sequence", scenario) == 4096, kind + "'s length said", said)
    for model, said_so in (("hf_config: config.json", True), ("hf_config: config.json, with: {sequence: 131072}", False)):
        with open("run.yaml", "w") as scenario:
            scenario.write("model: {%s}\ncluster: {platform: dgx-h100, nodes: 1}\nbatch: {global: 8, micro: 1}\n"
                           "strategy: {zero: 3}\nmemory: {recompute: full}\n" % model)
        done = subprocess.run([DTSIM, "run", "run.yaml"], capture_output=True, text=True, timeout=60, check=False)
        expect(done.returncode == 5 and ("as many as config.json allows" in done.stderr) == said_so, "run of " + model, done.stderr)


def test_scripts():
    """Arguments, variables and other files of a script; its exits; several launches."""
    launch = "torchrun --nproc_per_node 8 pretrain_gpt.py " + MODEL + " --tensor-model-parallel-size "
    with open("other.sh", "w") as other:
        other.write("TP=4\n")
    beside = tempfile.mkdtemp()
    with open(os.path.join(beside, "env.sh"), "w") as other:
        other.write("TP=4\n")
    with open("words", "w") as other:
        other.write("no words\n")
    with open("broken.sh", "w") as other:
        other.write("#\nTP=<a degree>\n")
    for text, options, degree, named in (
            (launch + "$2", ["8", "2"], 2, None), (launch + "$2", ["8"], None, "file:1:"), (launch + "${2:-4}", [], 4, None),
            (launch + "$TP", ["--env", "TP=2"], 2, None), (launch + "${TP:-2}", [], 2, None), (launch + "$TP", [], None, "TP"),
            (". ./other.sh\n" + launch + "$TP", [], 4, None), (". broken.sh\n" + launch + "$TP", [], None, "broken.sh:2:"),
            (". ./none.sh\n" + launch + "${TP:-2}", [], 2, "file:1:"), ("exit 1\n" + launch + "2", [], 2, "file:1:"),
            (launch + "2\nexit\n" + launch + "4", [], 2, None), (launch + "2\n" + launch + "4", [], None, "lines 1 and 2"),
            (launch + "2\n" + launch + "4", ["--launch", "2"], 4, None), (launch + "2 --lr 1\n" + launch + "2 --lr 2", [], 2, None),
            ("python x.py --rows 3\n" + launch + "2", [], 2, None), (launch + "2 > /nowhere/log 2>&1", [], 2, None),
            ("/opt/bin/" + launch + "2", [], 2, None), ("exec " + launch + "2", [], 2, None),
            ("set -e\nmkdir -p a/b\ncp x y\ncd /nowhere/else\n" + launch + "2 | tee log", [], 2, None),
            ("set -e\nsource $WORK/start\nX=`cat words`\n" + launch + "2", [], 2, "file:2:"),
            (". %s/env.sh\n" % beside + launch + "${TP:-2}", [], 2, "--read FOLDER"),
            (". %s/env.sh\n" % beside + launch + "${TP:-2}", ["--read", beside], 4, None),
            ("A=(" + MODEL + ")", ["--set", "nnodes=1", "--set", "nproc_per_node=8"], 1, None)):
        rc, scenario, said = run("megatron", text + "\n", "--cluster", "dgx-h100", *options)
        expect((rc == 0) == (degree is not None), text, said)
        expect(not degree or (number("tensor", scenario) or 1) == degree, text, scenario)
        expect(not named or named in said, text, said)
    shutil.rmtree(beside)


PLACE = "torchrun --nproc_per_node 8 "


def test_programs():
    """A program that is not Megatron-LM's own has arguments of its own: warned of, or refused where they make another model."""
    rolls = random.Random(61)
    plain = ["--max-padding-length 128", "--patch-tokenizer-type LLamaTokenizer", "--hf-checkpoint /a", "--rollout-batch-size 32",
             "--sglang-moe-dense-tp-size 1", "--train-mode finetune", "--ref-load /b", "--kl-loss-coef 0.1", "--model-path /c"]
    shapes = ["--vision-model-type clip", "--n-head-kv 8", "--use-alibi-mask", "--freeze-vit", "--num-hidden-layer 3",
              "--moe-sparse-steps 2", "--sequence_parallelism 2", "--mtp-weight 1", "--rope-percent 0.5"]
    for program in ("pretrain_qwen.py", "./a/train.py", "examples/multimodal/train.py", "../pretrain_megatron_llama.py"):
        own, shape = rolls.sample(plain, 3), rolls.choice(shapes)
        rc, scenario, said = run("megatron", PLACE + "%s %s %s" % (program, MODEL, " ".join(own)))
        expect(rc == 0 and all(o.split()[0] in said for o in own) and "warning: " + program in said, program + str(own), said)
        expect(run("megatron", PLACE + "%s %s %s" % (program, MODEL, " ".join(own)), "--strict")[0] == 4, program, "--strict takes it")
        rc, scenario, said = run("megatron", PLACE + "%s %s %s" % (program, MODEL, shape))
        expect(rc == 4 and shape.split()[0] in said, program + shape, said)
    for less, more, named in (("--bf16", "", "--bf16"), ("--bf16", "--fp16", None), ("--global-batch-size 384", "", "--global-batch-size")):
        for program in ("train.py", "pretrain_gpt.py"):
            rc, scenario, said = run("megatron", PLACE + program + " " + MODEL.replace(less, more))
            expect((rc == 4 and named in said) if named and program == "train.py" else rc == 0, program + less + more, said)
    rc, scenario, said = run("megatron", PLACE + "train.py " + MODEL.replace("--bf16", ""), "--set", "bf16=false")
    expect(rc == 0 and "precision: fp32" in scenario, "fp32 that is said", said)
    for text in (PLACE + "pretrain_gpt.py %s " + rolls.choice(plain), "%s " + rolls.choice(plain)):
        expect(run("megatron", text % MODEL)[0] == 4, text, "it is taken")
    for program in ("generate_text.py", "tools/run_inference.py", "-m tools.text_server", "evaluate_llama.py"):
        rc, scenario, said = run("megatron", PLACE + "%s %s" % (program, MODEL))
        expect(rc == 4 and "trains nothing" in said, program, said)
    patched = "--patch-tokenizer-type %sTokenizer --extra-vocab-size %d"    # the sums are published models' vocabularies
    for more, size in (("--vocab-size 1000 --extra-vocab-size 24", 1024), ("--extra-vocab-size 24", None),
                       (patched % ("LLama3", 256), 128256), (patched % ("Qwen3", 293), 151936), (patched % ("Qwen2", 421), 152064),
                       (patched % ("DeepSeekV2", 2400), 102400), (patched % ("DeepSeekV2", 467), 129280),
                       (patched % ("DeepSeekV2", 1), None), (patched % ("Unheard", 0), None)):
        rc, scenario, said = run("megatron", PLACE + "pretrain_qwen.py %s %s" % (MODEL.replace("--vocab-size 1024", ""), more))
        expect((rc == 0 and number("vocabulary", scenario) == size) if size else "--set vocab-size" in said, more, said)


def test_forks():
    """Arguments of Pai-Megatron-Patch and of Megatron-DeepSpeed are read as their code means them."""
    moe = "--num-experts 8 --moe-router-topk 2 --moe-grouped-gemm "
    for more, key, value in (("--use-llama2-rotary-position-embeddings", "positions", 0),
                             ("--num-key-value-heads 4 --use-flash-attn-v2", "kv_heads", 4),
                             ("--glu-activation geglu --data-impl mmap --kill-switch-path /x", "mlp: swiglu", None),
                             (moe + "--enable-shared-expert --shared-moe-ffn-hidden-size 5632", "shared_experts", None),
                             ("--multi-latent-attention --kv-lora-rank 512 --qk-nope-head-dim 96 --qk-rope-head-dim 32 "
                              "--v-head-dim 64", "rope_head_size", 32)):
        rc, scenario, said = run("megatron", PLACE + "pretrain_llama.py %s %s" % (MODEL, more))
        expect(rc == 0 and key in scenario and (value is None or number(key, scenario) == value), more, said + scenario)
    for more, dense in (("--num-experts 1 --moe-loss-coeff 0.01", True), ("--num-experts 16", False)):
        rc, scenario, said = run("megatron", PLACE + "pretrain_gpt.py %s --zero-stage 1 --deepspeed %s" % (MODEL, more))
        expect((rc == 0 and "experts" not in scenario) if dense else "--num-experts: DeepSpeed's" in said, more, said + scenario)
    for zero, strategy in ((2, "optim_grads"), (3, "optim_grads_params")):
        rc, scenario, said = run("megatron", PLACE + "pretrain_gpt.py %s --use-megatron-fsdp --ckpt-format fsdp_dtensor "
                                 "--data-parallel-sharding-strategy %s --use-distributed-optimizer --overlap-grad-reduce "
                                 "--overlap-param-gather" % (MODEL, strategy))
        expect(rc == 0 and number("zero", scenario) == zero, "weights are gathered beside forwards anyway", said)


def test_other_models():
    """What makes another model is refused where it is given, and a log that does not give it is taken."""
    for more, refused in (("--experimental-attention-variant gated_delta_net", True), ("--linear-attention-freq 4", True),
                          ("--experimental-attention-variant dsa --linear-attention-freq 4", True),
                          ("--hybrid-override-pattern M-D*", True), ("--hybrid-layer-pattern M-X*", True),
                          ("--hybrid-layer-pattern M-M*/MM", True), ("--hybrid-layer-pattern M-M*/*-/M-", True),
                          ("--hybrid-layer-pattern 'M-|M*'", True), ("--is-hybrid-model", True), ("--hybrid-attention-ratio 0.1", True),
                          ("--mtp-use-repeated-layer --mtp-num-layers 2", False),
                          ("--mtp-use-repeated-layer --hybrid-layer-pattern M-M*/M-/M-", False),
                          ("--hybrid-layer-pattern M-M*/M- --mtp-use-repeated-layer --position-embedding-type rope", False),
                          ("--gdp-num-householder 2", True),
                          ("--spec megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec", True), ("--spec a b", True), ("--spec local", False), ("--moe-router-dtype fp32", False)):
        rc, scenario, said = run("megatron", PLACE + "pretrain_gpt.py %s %s" % (MODEL, more))
        expect((rc == 4 and more.split()[0] + ":" in said) if refused else rc == 0, more, said)
    for value in ("None", "gated_delta_net"):
        rc, scenario, said = run("megatron", (LOG % ("adam", False, False)).replace(
            "  bf16 ", "  experimental_attention_variant .................. %s\n  bf16 " % value))
        expect((rc == 0) == (value == "None"), "log with " + value, said)


def test_hybrids():
    """Letters of a hybrid are its layers, '|' ends stages, '/' begins multi-token prediction; lists of layers with linear attention
    and with experts are put together."""
    rolls = random.Random(64)
    for _ in range(60):
        stages, depths = rolls.choice((1, 2, 4)), rolls.choice((0, 0, 1, 2))
        parts = ["".join(rolls.choice("MMG*-E") for _ in range(rolls.randint(1, 5))) for _ in range(rolls.choice((1, 2)) * stages)]
        letters, ahead = "".join(parts), rolls.choice(("*E", "M-", "*", "M"))
        text = (parts[0] if stages == 1 else "|".join(parts)) + ("/" + ahead) * depths
        letters = letters if stages > 1 else parts[0]
        experts = "E" in letters + ahead * (depths > 0)
        period = next(n for n in range(1, len(letters) + 1) if len(letters) % n == 0 and letters[:n] * (len(letters) // n) == letters)
        more = "--group-query-attention --num-query-groups 2 --pipeline-model-parallel-size %d --%s '%s'" % (
            stages, rolls.choice(("hybrid-layer-pattern", "hybrid-override-pattern")), text)
        if experts:
            more += " --num-experts 8 --moe-grouped-gemm"
        rc, scenario, said = run("megatron", PLACE.replace("8", "4") + "pretrain_mamba.py %s %s" % (
            MODEL.replace("--num-layers 8", rolls.choice(("", "--num-layers %d" % len(letters)))).replace("learned", "rope") +
            " --position-embedding-type none", more))
        expect(rc == 0, more, said)
        if rc:
            continue
        expect('pattern: "%s%s"' % (letters[:period], "/" + ahead if depths else "") in scenario, more, scenario)
        expect(number("layers", scenario) == len(letters) and number("mtp", scenario) == (depths or None), more, scenario)
        expect(("mamba:" in scenario) == ("M" in letters + ahead * depths) and ("delta:" in scenario) == ("G" in letters + ahead * depths), more, scenario)
        split = re.search(r"split: \[(.*)\]", scenario)
        expect((split.group(1) if split else None) == (", ".join(str(len(p)) for p in parts) if stages > 1 else None), more, scenario)
        expect(number("chunks", scenario) == (len(parts) // stages if len(parts) > stages > 1 else None), more, scenario)
    for linear, has in (("4", "GGG*GGG*"), ("([1]*3+[0]*1)*2", "GGG*GGG*"), ("[1]*7+[0]", "GGGGGGG*"), ("([0]+([1]*2+[0])*2+[1])", "*GG*GG*G"),
                        ("[1]*7", None), ("([1]*8", None)):
        for freq, sparse in (("", ""), ("--num-experts 8 --moe-grouped-gemm", "EEEEEEEE"),
                             ("--num-experts 8 --moe-layer-freq [0]*1+[1]*7 --moe-grouped-gemm", "-EEEEEEE"),
                             ("--num-experts 8 --moe-layer-freq ([0]+[1])*4 --moe-grouped-gemm", "-E-E-E-E")):
            more = "--experimental-attention-variant gated_delta_net --linear-attention-freq '%s' %s" % (
                linear, freq.replace("(", "'(").replace(")*4", ")*4'"))
            rc, scenario, said = run("megatron", PLACE + "pretrain_gpt.py %s %s" % (MODEL, more))
            if not has:
                expect(rc == 4 and "--linear-attention-freq:" in said, more, said)
                continue
            units = ["(%s%s)" % (has[i], sparse[i] if sparse else "-") for i in range(8)]
            period = next(n for n in (1, 2, 4, 8) if units[:n] * (8 // n) == units)
            expect(rc == 0 and 'pattern: "%s"' % "".join(units[:period]) in scenario, more, scenario + said)


def test_missing_arguments():
    """Arguments that a script uses and nobody gives are named, each at the option that it decides."""
    rolls = random.Random(62)
    options = ["--micro-batch-size", "--tensor-model-parallel-size", "--seq-length", "--global-batch-size"]
    rest = "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --max-position-embeddings 128 --vocab-size 1024 --bf16"
    for _ in range(4):
        places = rolls.sample(range(1, 20), len(options))
        names = "".join("V%d=${%d}\n" % (i, place) for i, place in enumerate(places))
        words = " ".join("%s ${V%d}" % (option, i) for i, option in enumerate(options))
        text = ("if [ ${1}x = x ]; then A=1; fi\n" + names + "[ $(( ($V1 > 1) ? 1 : 0 )) -eq 1 ] && S=--sequence-parallel\n"
                'run="torchrun --nproc_per_node 8 pretrain_gpt.py %s %s $S"\neval $run\n' % (rest, words))
        rc, scenario, said = run("megatron", text)
        for place, option in zip(places, options):
            expect(re.search(re.escape(option) + r": the script's argument \$%d is not given" % place, said), text, said)
        values = dict(zip(places, ("1", "2", "128", "64")))
        rc, scenario, said = run("megatron", text, *[values.get(i, "x") for i in range(1, 20)])
        expect(rc == 0 and number("tensor", scenario) == 2 and number("global", scenario) == 64, text, said)
    rc, scenario, said = run("megatron", 'C="python $CODE/pretrain_gpt.py $PARAMETERS"\nsrun sh -c "$C"\n')
    expect(rc == 4 and "CODE, PARAMETERS" in said, "variables that nobody sets", said)


def deepspeed(zero, *options):
    text = '{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "zero_optimization": %s}' % zero
    return run("deepspeed", text, "--set", "sequence=4096", "--set", "nnodes=1", "--set", "nproc_per_node=8", *options)


def test_deepspeed_keys():
    """Three "auto" are functions of the model; fields have names of their own; comments are passed over."""
    rolls = random.Random(63)
    for _ in range(4):
        hidden = 64 * rolls.randint(1, 200)
        with open("model.json", "w") as config:
            config.write(CONFIG.replace('"hidden_size": 2048', '"hidden_size": %d' % hidden).replace(
                '"num_attention_heads": 32, "num_key_value_heads": 8', '"num_attention_heads": 8, "num_key_value_heads": 8'))
        rc, scenario, said = deepspeed('{"stage": 3, "stage3_prefetch_bucket_size": "auto", "reduce_bucket_size": "auto", '
                                       '"stage3_param_persistence_threshold": "auto"}', "--hf-config", "model.json")
        expect(rc == 0 and number("prefetch", scenario) == hidden * hidden * 9 // 10, "auto of %d" % hidden, scenario + said)
        rc, scenario, said = deepspeed('{"stage": 2, "reduce_bucket_size": "auto"}', "--hf-config", "model.json")
        expect(rc == 0 and number("bucket", scenario) == 2 * hidden * hidden, "bucket of %d" % hidden, scenario + said)
    rc, scenario, said = deepspeed('{"stage": "auto"}', "--hf-config", "config.json")
    expect(rc == 4 and "zero_optimization.stage:" in said, "another auto", said)
    names = ["prefetch_bucket_size", "max_live_parameters", "max_reuse_distance"]
    values = [rolls.randint(1, 10**9) for _ in names]
    told = []
    for prefix in ("", "stage3_"):
        rc, scenario, said = deepspeed('{"stage": 3, %s, "%sgather_16bit_weights_on_model_save": true}' % (", ".join(
            '"%s%s": %d' % (prefix, name, value) for name, value in zip(names, values)), prefix), "--hf-config", "config.json")
        told.append((rc, scenario))
    expect(told[0] == told[1] and told[0][0] == 0 and str(values[1]) in told[0][1], "names of fields", told)
    expect(deepspeed('{"stage": 3, "max_live_parameters": 0}', "--hf-config", "config.json")[0] == 0, "no live parameters", "")
    expect(deepspeed('{"stage": 3, "live_parameters": 1}', "--hf-config", "config.json")[0] == 4, "no such field", "")
    for key, rc in (("_comment", 0), ("//", 0), ("#note", 0), ("comment", 0), ("remark", 4)):
        text = '{"train_micro_batch_size_per_gpu": 1, "%s": {"a": "auto"}}' % key
        found = run("deepspeed", text, "--hf-config", "config.json", "--set", "sequence=128")
        expect(found[0] == rc, "comment " + key, found[2])


def test_arguments_in_yaml():
    """Arguments in YAML say what they say on a command's line."""
    rolls = random.Random(64)
    for _ in range(8):
        words = MODEL.split() + " ".join(rolls.sample(CHOICES, 4)).split()
        pairs = {}
        for word in words:
            if word.startswith("--"):
                name = word
                pairs[name] = []
            else:
                pairs[name].append(word)
        for head, indent in (("ENV_VARS:\n  A: 1\nMODEL_ARGS:\n", "  "), ("", "")):
            text = head + "".join("%s%s: %s\n" % (indent, name, value[0] if value else "true") for name, value in pairs.items())
            text += indent + "--recompute-activations-not: false\n"
            with open("arguments.yaml", "w") as file:
                file.write(text)
            done = subprocess.run([DTSIM, "import", "megatron", "arguments.yaml", "--cluster", "dgx-h100"], capture_output=True,
                                  text=True, timeout=60, check=False)
            rc, scenario, said = run("megatron", " ".join(words), "--cluster", "dgx-h100")
            expect((done.returncode, done.stdout.partition("\n")[2]) == (rc, scenario.partition("\n")[2]), text, done.stderr + said)
    for text, named in (("a: 1\n", "bridge and nemo"), ("MODEL_ARGS: {a: 1}\n", "arguments.yaml:1:14")):
        with open("arguments.yaml", "w") as file:
            file.write(text)
        done = subprocess.run([DTSIM, "import", "megatron", "arguments.yaml"], capture_output=True, text=True, check=False)
        expect(done.returncode == 4 and named in done.stderr, text, done.stderr)


def test_transformers():
    """TrainingArguments: batch, shares and formats by closed forms; through DeepSpeed what its file says with these values."""
    rolls = random.Random(65)
    for _ in range(12):
        micro, steps, nodes, length = rolls.randint(1, 8), rolls.randint(1, 8), rolls.randint(1, 4), 128 * rolls.randint(1, 40)
        fsdp, zero = rolls.choice((('"full_shard auto_wrap"', 3), ("[shard_grad_op, auto_wrap]", 2), ("full_shard", 3),
                                   ("true", 3), ('""', None), ("hybrid_shard auto_wrap", 3), ("[]", None)))
        form, precision = rolls.choice((("bf16", "mixed-bf16"), ("fp16", "mixed-fp16"), ("tf32", "tf32"), ("do_train", "fp32")))
        again, limit = rolls.choice(("true", "false")), rolls.choice(("1.0", "0"))
        text = ("per_device_train_batch_size: %d\ngradient_accumulation_steps: %d\nmax_length: %d\nfsdp: %s\n%s: true\n"
                "gradient_checkpointing: %s\nmax_grad_norm: %s\nlearning_rate: 1.0e-5\noutput_dir: a\n" %
                (micro, steps, length, fsdp, form, again, limit))
        options = ["--hf-config", "config.json", "--set", "nnodes=%d" % nodes, "--set", "nproc_per_node=8"]
        rc, scenario, said = run("transformers", text, *options)
        expect(rc == 0 and (number("micro", scenario), number("global", scenario), number("sequence", scenario)) ==
               (micro, micro * steps * nodes * 8, length) and number("zero", scenario) == zero and
               "precision: " + precision in scenario and ("recompute: full" in scenario) == (again == "true") and
               ("shard: 8" in scenario) == ("hybrid" in fsdp) and ("clip_gradients: true" in scenario) == (limit != "0"),
               text, scenario + said)
        keys = '{"train_micro_batch_size_per_gpu": %s, "gradient_accumulation_steps": %s, "gradient_clipping": %s, "train_batch_size": ' \
               '%s, "bf16": {"enabled": %s}, "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": "auto"}}'
        with open("ds.json", "w") as file:
            file.write(keys % (('"auto"',) * 5))
        text = ('{"per_device_train_batch_size": %d, "gradient_accumulation_steps": %d, "max_length": %d, "bf16": true, '
                '"deepspeed": "ds.json", "max_grad_norm": %s}' % (micro, steps, length, limit))
        rc, scenario, said = run("transformers", text, *options)
        own = run("deepspeed", keys % (micro, steps, limit, micro * steps * nodes * 8, "true"), "--set", "sequence=%d" % length, *options)
        expect(rc == 0 and scenario.partition("\n")[2] == own[1].partition("\n")[2], text, scenario + own[1] + said + own[2])
        rc, scenario, said = run("transformers", text, *options[:2])
        expect(rc == 0 and number("global", scenario) == micro * steps * 8, "no GPUs said", scenario + said)
        with open("ds.json", "w") as file:
            file.write(keys % (micro + 1, '"auto"', '"auto"', '"auto"', '"auto"'))
        rc, scenario, said = run("transformers", text, *options)
        expect(rc == 4 and "ds.json:1:" in said and "train_micro_batch_size_per_gpu" in said, "another batch", said)
    for text, rank, targets, weights in (
            ("use_peft: true\nlora_target_modules: all-linear\n", 16, ALL, ""),
            ("use_peft: true\nlora_r: 64\nlora_target_modules: [o_proj, q_proj, v_proj, k_proj]\n", 64, "qkv, projection", ""),
            ("use_peft: true\nlora_target_modules: [qkv_proj, down_proj]\nload_in_4bit: true\n", 16, "qkv, mlp-down", "nf4"),
            ("lora_r: 64\n", None, None, "")):
        for more in ("bf16: true\n", "bf16: true\ndeepspeed: {zero_optimization: {stage: 2}}\n"):
            rc, scenario, said = run("transformers", "max_length: 128\n" + more + text, "--hf-config", "config.json")
            expect(rc == 0 and lora_of(scenario) == (rank, targets and targets.split(", ")) and ("weights: nf4" in scenario) == bool(weights),
                   "transformers " + more + text, scenario + said)
    for again, fsdp, size in ((a, f, s) for a in ("true", "false") for f in ("full_shard", "shard_grad_op") for s in (0, 100000000)):
        rc, scenario, said = run("transformers", "max_length: 128\nbf16: true\ngradient_checkpointing: %s\nfsdp: [%s, auto_wrap]\n"
                                 "fsdp_config: {min_num_params: %d}\n" % (again, fsdp, size), "--hf-config", "config.json")
        expect(rc == 0 and ("small_units: true" in scenario) == (again == "true" and fsdp == "full_shard" and size > 0), "small units",
               scenario + said)
    for text, named in (("optim: adamw_bnb_8bit\n", "optim"), ("use_peft: true\n", "lora_target_modules"), ("load_in_8bit: true\n", "load_in_8bit"),
                        ("use_peft: true\nlora_target_modules: [q_proj, v_proj]\n", "q_proj k_proj v_proj"),
                        ("use_peft: true\nlora_target_modules: [lm_head]\n", "all-linear"),
                        ("bf16: true\nfp16: true\n", "fp16"), ("gradient_checkpoint: true\n", "gradient_checkpointing"),
                        ("per_device_train_batch_size: 0\n", "per_device_train_batch_size"), ("fsdp: zero3\n", "fsdp"),
                        ("deepspeed: none.json\n", "none.json"), ("tp_size: 2\n", "tp_size")):
        rc, scenario, said = run("transformers", "max_length: 128\n" + text, "--hf-config", "config.json")
        expect(rc == 4 and named in said, "transformers " + text, said)
    expect(run("transformers", "max_length: 128\n")[0] == 4, "no model", "")
    for text in ("[1]\n", "a\n", "{}\n", "deepspeed: [1]\n", "deepspeed: {a: {b: 1}}\n", "fsdp: {a: 1}\n", "max_length: [1, 2]\n"):
        rc, scenario, said = run("transformers", text, "--hf-config", "config.json")
        expect(rc in (0, 4, 5), text, "it ended by %d" % rc)
    rc, scenario, said = run("transformers", "bf16: true\n", "--hf-config", "config.json")
    expect(rc == 0 and "131072 is taken" in said, "transformers' length", said)


def test_accelerate():
    """Accelerate's file says the processes, and what TrainingArguments leave to it: as if they said it."""
    rolls = random.Random(66)
    for _ in range(10):
        nodes, per_node, form = rolls.randint(1, 4), rolls.choice((4, 8)), rolls.choice(("bf16", "fp16"))
        number_of, fsdp = rolls.choice((("1", "[full_shard]"), ("SHARD_GRAD_OP", "[shard_grad_op]"), ("FULL_SHARD", "[full_shard]"),
                                        ("3", "[no_shard]"), ("FULL_SHARD", "[full_shard, offload]")))
        again, stage = rolls.choice(("true", "false")), rolls.randint(1, 3)
        head = "num_processes: %d\nnum_machines: %d\nmixed_precision: %s\n" % (nodes * per_node, nodes, form)
        plain = "per_device_train_batch_size: 2\nmax_length: 256\n"
        sharded = ("distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: %s\n  fsdp_offload_params: %s\n"
                   "  fsdp_activation_checkpointing: %s\n" % (number_of, "true" if "offload" in fsdp else "false", again))
        zero = ("distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: %d\n  offload_optimizer_device: cpu\n"
                "  gradient_clipping: 1.0\n" % stage)
        for file, more in ((head + "distributed_type: MULTI_GPU\n", ""),
                           (head + sharded, "fsdp: %s\nfsdp_config: {activation_checkpointing: %s}\n" % (fsdp, again)),
                           (head + zero, "deepspeed: {zero_optimization: {stage: %d, offload_optimizer: {device: cpu}}, "
                            "gradient_clipping: 1.0, bf16: {enabled: auto}, fp16: {enabled: auto}}\n" % stage)):
            with open("accelerate.yaml", "w") as out:
                out.write(file)
            mine = run("transformers", plain, "accelerate.yaml", "--hf-config", "config.json")
            own = run("transformers", plain + "%s: true\n%s" % (form, more), "--hf-config", "config.json", "--set",
                      "nnodes=%d" % nodes, "--set", "nproc_per_node=%d" % per_node)
            expect(mine[0] == 0 and mine[1] == own[1] and ("fp16" in mine[1]) == (form == "fp16"), file, mine[1] + own[1] + mine[2] + own[2])
        said = run("transformers", plain + ("fp16: true\n" if form == "bf16" else "bf16: true\n"), "accelerate.yaml", "--hf-config", "config.json")
        expect(said[0] == 0 and form not in said[1], "TrainingArguments hold", said[1] + said[2])
    for file, named in (("distributed_type: TPU\n", "TPU"), ("a: 1\n", "distributed_type"), (head.replace(form, "fp8") + "distributed_type: NO\n", "fp8"),
                        ("distributed_type: MULTI_GPU\nnum_processes: 5\nnum_machines: 2\n", "num_processes")):
        with open("accelerate.yaml", "w") as out:
            out.write(file)
        found = run("transformers", plain, "accelerate.yaml", "--hf-config", "config.json")
        expect(found[0] == 4 and named in found[2], file, found[2])


def test_other_kinds():
    """A file of another kind is refused, and the message names its reader."""
    for kind, name, named in (("torchtitan", "c.py", "Python"), ("nemo", "c.py", "Python"), ("bridge", "c.sh", "import megatron"),
                              ("deepspeed", "c.toml", "import torchtitan"), ("torchtitan", "c.json", "import deepspeed")):
        with open(name, "w") as file:
            file.write("x = 1\n")
        done = subprocess.run([DTSIM, "import", kind, name], capture_output=True, text=True, check=False)
        expect(done.returncode == 4 and named in done.stderr, kind + " " + name, done.stderr)


CHOICES = ["--use-megatron-fsdp", "--data-parallel-sharding-strategy optim_grads_params", "--use-distributed-optimizer",
           "--overlap-param-gather", "--overlap-grad-reduce", "--fp8-format hybrid", "--fp8-param-gather", "--fp8-recipe blockwise",
           "--use-precision-aware-optimizer", "--optimizer-cpu-offload", "--grad-reduce-in-bf16", "--tp-comm-overlap",
           "--sequence-parallel", "--recompute-activations", "--optimizer muon", "--use-torch-fsdp2", "--calculate-per-token-loss",
           "--num-distributed-optimizer-instances 2", "--tensor-model-parallel-size 2", "--pipeline-model-parallel-size 2",
           "--context-parallel-size 2", "--expert-model-parallel-size 2", "--num-experts 8"]


def test_checked():
    """What 'dtsim check' refuses, import refuses, at a line of the file where an argument says the key."""
    rolls = random.Random(60)
    refused = 0

    for _ in range(400 if os.environ.get("DTSIM_TESTS") == "all" else 60):
        text = MODEL + "\n" + "\n".join(rolls.sample(CHOICES, rolls.randint(2, 6))) + "\n"
        rc, scenario, said = run("megatron", text, "--cluster", "dgx-h100")
        if rc:
            refused += 1
            expect(scenario == "", text, "it printed a scenario that it refused")
            continue
        with open("checked.yaml", "w") as file:
            file.write(scenario)
        done = subprocess.run([DTSIM, "check", "checked.yaml"], capture_output=True, text=True, check=False)
        expect(done.returncode == 0, text, "check refuses what import printed:\n" + done.stderr)
    rc, scenario, said = run("megatron", MODEL + "\n--use-megatron-fsdp --data-parallel-sharding-strategy "
                             "optim_grads_params\n--fp8-format hybrid --fp8-param-gather\n", "--cluster", "dgx-h100")
    expect(rc == 5 and re.search(r"^file:3:\d+: error: .*zero 3", said, re.M), "fp8 weights of zero 3", said)
    expect(refused > 0, "refused", "none")


def test_release():
    """The software is the release that alone has the arguments, else any."""
    for argument, software in (("", "megatron-core"), ("--moe-router-fusion --num-experts 8", "megatron-core"),
                               ("--attention-output-gate", "megatron-core-2026"), ("--optimizer muon", "megatron-core-2026"),
                               ("--num-experts 8 --moe-token-dispatcher-type flex", "megatron-core")):
        rc, scenario, said = run("megatron", MODEL + " " + argument + "\n", "--cluster", "dgx-h100")
        expect(rc == 0 and re.search(r"like: %s[,}\n]" % software, scenario), argument, said + scenario)


AXOLOTL = """base_model: x/y
sequence_len: 4096
micro_batch_size: 2
gradient_accumulation_steps: 4
num_epochs: 1
datasets:
  - {path: a/b, type: alpaca}
optimizer: adamw_torch_fused
learning_rate: 0.0002
gradient_checkpointing: true
"""
FACTORY = """model_name_or_path: x/y
stage: sft
do_train: true
dataset: identity
output_dir: saves
per_device_train_batch_size: 1
gradient_accumulation_steps: 2
learning_rate: 1.0e-4
"""


def test_trainers():
    """Axolotl and LLaMA-Factory, which are files of platforms/dialects/: their defaults, adapters, and what is refused."""
    nodes = ("--hf-config", "config.json", "--cluster", "dgx-h100", "--set", "nnodes=1", "--set", "nproc_per_node=8")
    full = "targets: [qkv, projection, mlp-up, mlp-down]"
    for kind, text, wanted in (
            ("axolotl", AXOLOTL, ["sequence: 4096", "micro: 2, global: 64", "precision: mixed-bf16", "recompute: full", "like: axolotl"]),
            ("axolotl", AXOLOTL + "bf16: false\ntf32: true\n", ["precision: tf32"]),
            ("axolotl", AXOLOTL + "fsdp: [full_shard, auto_wrap]\nfsdp_config: {fsdp_auto_wrap_policy: X}\n", ["zero: 3"]),
            ("axolotl", AXOLOTL + "adapter: qlora\nload_in_4bit: true\nlora_r: 16\nlora_target_linear: true\n",
             ["rank: 16", full, "weights: nf4"]),
            ("axolotl", AXOLOTL + "adapter: lora\nlora_r: 8\nlora_target_modules: [q_proj, k_proj, v_proj, o_proj]\n",
             ["rank: 8", "targets: [qkv, projection]"]),
            ("axolotl", AXOLOTL + "adapter: lora\nlora_r: 8\nlora_target_modules: [q_proj, v_proj]\n", None),
            ("axolotl", AXOLOTL + "fsdp: [full_shard, auto_wrap]\nfsdp_config: {sharding_strategy: FULL_SHARD}\n"
             "use_sonicmoe: true\nflash_attn_rms_norm: true\neta_min: 0\n", ["zero: 3"]),
            ("axolotl", AXOLOTL + "fsdp: [full_shard]\nfsdp_config: {sharding_strategy: SHARD_GRAD_OP}\n", None),
            ("axolotl", AXOLOTL + "model_quantization_config: Mxfp4Config\n", None),
            ("axolotl", AXOLOTL + "model_quantization_config: Mxfp4Config\nmodel_quantization_config_kwargs: {dequantize: true}\n", ["mixed-bf16"]),
            ("axolotl", AXOLOTL + "trl: {beta: 0.1}\n", None), ("axolotl", AXOLOTL + "expert_parallel_size: 2\n", None),
            ("axolotl", AXOLOTL + "fsdp_config: {auto_wrap_policy: X}\n", None),
            ("axolotl", AXOLOTL + "load_in_8bit: true\n", None), ("axolotl", AXOLOTL + "gradient_chekpointing: true\n", None),
            ("llama-factory", FACTORY + "finetuning_type: full\nbf16: true\n",
             ["sequence: 2048", "micro: 1, global: 16", "precision: mixed-bf16", "recompute: full", "like: llama-factory"]),
            ("llama-factory", FACTORY + "bf16: true\ncutoff_len: 1024\n", ["sequence: 1024", "rank: 8", full]),
            ("llama-factory", FACTORY + "finetuning_type: full\ndisable_gradient_checkpointing: true\ndeepspeed: {zero_optimization: "
             "{stage: 2}, bf16: {enabled: auto}}\nbf16: true\n", ["zero: 2", "precision: mixed-bf16"]),
            ("llama-factory", FACTORY + "finetuning_type: freeze\n", None), ("llama-factory", FACTORY + "stage: dpo\n", None)):
        rc, scenario, said = run(kind, text, *nodes)
        expect((rc == 0 and all(word in scenario for word in wanted)) if wanted else (rc == 4 and not scenario), kind + text, said + scenario)
        if wanted and "disable_gradient" in text:
            expect("recompute" not in scenario, text, scenario)


TENFOLD = """title: Tenfold
source: this test
dashes: '%s'
form: %s
software: megatron-core
programs: [tenfold.py]
arguments:
  depth: {kind: int, is: model.transformer.layers}
  width: {kind: int, is: model.transformer.hidden}
  heads: {kind: word, told: true}
  length: {kind: int, is: model.transformer.sequence}
  words: {kind: int, is: model.transformer.vocabulary}
  tp: {kind: int, default: 1, is: strategy.tensor}
  stages: {kind: int, default: 1, is: strategy.pipeline}
  shard: {kind: word, default: none}
  batch: {kind: word}
  format: {kind: word, default: bf16, is: memory.precision, words: {bf16: mixed-bf16, fp16: mixed-fp16, single: fp32}}
rows:
  all:
    - {say: {heads: 'H,G'}, is: {model.transformer.heads: H, model.transformer.kv_heads: G}}
    - {say: {heads: H}, is: {model.transformer.heads: H}}
    - {say: {shard: states}, is: {strategy.zero: 1}}
    - {say: {shard: all}, is: {strategy.zero: 3}}
    - {say: {shard: S}, where: S != 'none', missing: strategy.zero, refuse: <S> is not simulated}
    - {say: {batch: 'M,S'}, is: {batch.micro: M, batch.global: M * S * strategy.data}}
"""


def body(scenario):
    return scenario[scenario.index("\nmodel:"):]


def test_tenfold():
    """A framework of ten arguments is added in one file: it is imported and emitted, in each form, and comes back."""
    first = None
    for form in ("arguments", "toml", "json", "yaml", "python"):
        with open("tenfold.yaml", "w") as file:
            file.write(TENFOLD % ("--" if form == "arguments" else "", form))
        if first is None:
            rc, first, said = run("./tenfold.yaml", "torchrun --nnodes 2 --nproc_per_node 8 tenfold.py --depth 24 --width 1024 --heads "
                                  "16,4 --length 2048 --words 32000 --tp 4 --shard all --batch 2,8\n", "--cluster", "dgx-h100")
            expect(rc == 0 and "layers: 24" in first and "kv_heads: 4" in first and number("global", first) == 64 and
                   number("zero", first) == 3 and number("data", first) == 4 and "mixed-bf16" in first, "tenfold", said + first)
            with open("first.yaml", "w") as file:
                file.write(first)
        done = subprocess.run([DTSIM, "emit", "./tenfold.yaml", "first.yaml"], capture_output=True, text=True, check=False)
        expect(done.returncode == 0 and "16,4" in done.stdout, form, done.stderr + done.stdout)
        rc, back, said = run("./tenfold.yaml", done.stdout, "--cluster", "dgx-h100", "--set", "nnodes=2", "--set", "nproc_per_node=8")
        expect(rc == 0 and body(back) == body(first), form, said + back)
    rc, _, said = run("./tenfold.yaml", "    config.shard = \"half\"\n    config.batch = \"1,1\"\n", "--cluster", "dgx-h100")
    expect(rc == 4 and "file:1" in said and "shard: half is not simulated" in said, "half", said)


def test_torchtitan_2026():
    """What is emitted for torchtitan of 2026 is Python that compiles, and says the degrees and tokens that torchtitan counts."""
    for context, shard, data in ((1, 4, 4), (1, 2, 4), (2, 4, 2), (1, 1, 4)):
        with open("titan.yaml", "w") as file:
            file.write("model: {preset: llama3-70b}\ncluster: {platform: dgx-h100, nodes: 8}\nbatch: {micro: 2, global: 64}\n"
                       "strategy: {tensor: 8, data: %d, pipeline: 2, zero: %d, %ssequence_parallel: true, context: %d, schedule: "
                       "interleaved, chunks: 2}\nmemory: {recompute: full, precision: mixed-bf16, enforce: false}\n"
                       "software: torchtitan-2026\n" %
                       (data, 0 if shard == 1 else 3, "" if shard == 1 else "shard: %d, " % shard, context))
        done = subprocess.run([DTSIM, "emit", "torchtitan", "titan.yaml"], capture_output=True, text=True, check=False)
        expect(done.returncode == 0, "titan.yaml", done.stderr)
        if done.returncode:
            continue
        compile(done.stdout, "job.py", "exec")
        said = dict(re.findall(r"^    config\.(\S+) = (.*)$", done.stdout, re.M))
        expect(int(said["training.num_tokens_per_train_step"]) == 64 * 8192 and
               int(said["training.num_tokens_per_microbatch_per_dp_rank"]) == 2 * 8192 and
               int(said["parallelism.pipeline_parallel_layers_per_stage"]) == 20 and
               int(said["parallelism.data_parallel_shard_degree"]) == shard // context and
               int(said["parallelism.data_parallel_replicate_degree"]) == data * context // shard and
               said["activation_checkpoint"] == "FullAC.Config()" and "import llama3_70b" in done.stdout, "titan", done.stdout)
    nodes = ("--cluster", "dgx-h100", "--set", "nnodes=8", "--set", "nproc_per_node=8", "--hf-config", "config.json")
    job = done.stdout.replace("per_stage = 20", "per_stage = 4")
    for line, wanted in (("training.dtype = \"float16\"", "training.dtype: 'float16' is not simulated"),
                         ("activation_checkpoint = MemoryBudgetAC.Config()", "'MemoryBudgetAC.Config()' is not simulated"),
                         ("optimizer.implementation = \"for-loop\"", "'for-loop' is not simulated"),
                         ("parallelism.pipeline_parallel_schedule = \"Other\"", "'Other' is not simulated"),
                         ("parallelism.fsdp_reshard_after_forward = \"sometimes\"", "'sometimes' is not simulated")):
        rc, scenario, message = run("torchtitan-2026", job.replace("    return", "    config." + line + "\n    return"), *nodes)
        expect(rc == 4 and wanted in message, line, message)
    rc, scenario, message = run("torchtitan-2026", job, *nodes)
    expect(rc == 0 and "not known here" not in message, "job", message)
    rc, scenario, message = run("torchtitan-2026", job.replace("= llama3_70b()", "= mine()"), *nodes)
    expect(rc == 0 and "warning: config: what mine sets is not known here" in message, "mine", message)
    steps = re.sub(r"\n.*num_tokens_per_train_step.*", "", job)
    rc, scenario, message = run("torchtitan-2026", steps, *nodes)
    expect(rc == 0 and "micro_batches: 8" in scenario and "global" not in scenario, "num_pp_microbatches", message + scenario)
    for model in "vit-l-16", "t5-large", "bert-large":
        with open("other.yaml", "w") as file:
            file.write("model: {preset: %s}\ncluster: {platform: dgx-h100, nodes: 1}\nbatch: {micro: 1, global: 64}\n"
                       "memory: {precision: mixed-bf16}\n" % model)
        for kind in "torchtitan", "torchtitan-2026":
            done = subprocess.run([DTSIM, "emit", kind, "other.yaml"], capture_output=True, text=True, check=False)
            expect(done.returncode == 5 and "cannot be told to torchtitan" in done.stderr, kind + " " + model, done.stdout + done.stderr)


def test_wrong_dialects():
    """A dialect that anybody may write: what nobody would read, or nothing would say, is an error at its place."""
    good = TENFOLD % ("--", "arguments")
    for old, new, said in (
            ("rows:\n", "  odd: {kind: word}\nrows:\n", r":18:8: error: nobody reads 'odd'"),
            ("{say: {shard: states}, is: {strategy.zero: 1}}", "{say: {shard: states}, is: {strategy.zerro: 1}}",
             r":\d+:7: error: scenarios have no 'strategy.zerro'"),
            ("{strategy.zero: 1}}", "{strategy.zero: Z}}", r":\d+:7: error: nothing says what Z is"),
            ("{say: {heads: H}, is", "{say: {heads: H, depth: D}, is", r":\d+:7: error: nothing says what D is"),
            ("{strategy.zero: 3}}", "{strategy.zero: 3}, only: imports}", r":\d+:\d+: error: expected import or emit"),
            ("{strategy.zero: 3}}", "{strategy.zero: 3}, where: strategy.tensr > 1}", r"'strategy.tensr' is no key of a scenario"),
            ("{strategy.zero: 3}}", "{strategy.zero: 3}, unless: shards}", r":\d+:7: error: a row.* asks for 'shards', which is no"),
            ("refuse: <S> is", "refuse: <T> is", r":\d+:7: error: nothing says what T is")):
        with open("wrong.yaml", "w") as file:
            file.write(good.replace(old, new))
        expect(good != good.replace(old, new), new, "the text is not there")
        rc, scenario, message = run("./wrong.yaml", "torchrun --nnodes 1 --nproc_per_node 8 tenfold.py --depth 24\n", "--cluster", "dgx-h100")
        expect(rc == 4 and not scenario and re.search(said, message), new, message)


def test_words_of_rows():
    """A value that no row takes is refused, and an argument that no row asks for is named."""
    begin = "torchrun --nnodes 2 --nproc_per_node 8 tenfold.py --depth 24 --width 1024 --length 2048 --words 32000 --batch "
    with open("tenfold.yaml", "w") as file:
        file.write(TENFOLD.replace("    - {say: {shard: S}, where: S != 'none', missing: strategy.zero, refuse: <S> is not simulated}\n", "") %
                   ("--", "arguments"))
    for words, said in (("2,8 --heads 16 --shard most", "shard: 'most' is not simulated; expected one of states, all"),
                        ("2 --heads 16", "batch: '2' is not simulated"), ("2,8,4 --heads 16", "batch: '2,8,4' is not simulated"),
                        ("2,8 --heads 16 --format double", "format: 'double' is not simulated"),
                        ("2,8 --heads 16 --shard none", None), ("2,8 --heads 16 --shard all", None)):
        rc, scenario, message = run("./tenfold.yaml", begin + words + "\n", "--cluster", "dgx-h100")
        expect((rc == 4 and said in message) if said else (rc == 0 and scenario), words, message)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("config.json", "w") as config:
            config.write(CONFIG)
        if "no Landlock" in run("megatron", "torchrun pretrain_gpt.py " + MODEL)[2]:
            print("skipped: this kernel has no Landlock")
            return 0
        tests = [test for name, test in sorted(globals().items()) if name.startswith("test_")]
        for test in tests:
            test()
        os.chdir("/")
    print("%d tests, %d mistakes" % (len(tests), wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
