#!/bin/bash
#SBATCH --nodes=4
# A comment with --num-layers 3
set -euo pipefail
export CUDA_DEVICE_MAX_CONNECTIONS=1
TP=${TP:-8}; PP=4
NODES=${SLURM_NNODES:-16}
WORLD=$((NODES * 8))
DP=$(( WORLD / (TP*PP) ))
MBS=2
GBS=$((${MBS} * DP * 16))
SIZE="7b"
if [ "$SIZE" == "7b" ]; then
  LAYERS=32 HIDDEN=4096
elif [[ $SIZE = 13b ]]; then
  LAYERS=40; HIDDEN=5120
else
  echo "unknown"; exit 1
fi
[ -z "$EXTRA" ] && EXTRA=""
USE_FLASH=1
if [ $USE_FLASH -eq 1 ]; then FLASH="--use-flash-attn"; fi
MODEL_ARGS=(
    --num-layers $LAYERS     # blocks
    --hidden-size "$HIDDEN"
    --num-attention-heads '32'
    --seq-length=4096
    --max-position-embeddings 4096
    --swiglu --normalization RMSNorm
    --disable-bias-linear
    # --qk-layernorm
    --group-query-attention --num-query-groups 8
    --position-embedding-type rope
)
MODEL_ARGS+=(--untie-embeddings-and-output-weights)
TRAIN=" \
    --micro-batch-size $MBS \
    --global-batch-size ${GBS} \
    --bf16 \
    --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
    --lr 3e-4 --min-lr 3e-5 --weight-decay 0.1 --clip-grad 1.0"
TRAIN+=" $FLASH --tp-comm-overlap"
cat <<EOF > ds.json
{ "a": "$TP --num-layers 99 pretrain.py" }
EOF
DATA_ARGS="--data-path $1 --tokenizer-type GPT2BPETokenizer --split 949,50,1 --save ${CHECKPOINT_PATH}/$(date +%s)"
CMD="torchrun --nproc_per_node 8 --nnodes $NODES --node_rank $SLURM_NODEID pretrain_gpt.py \
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP --sequence-parallel \
  ${MODEL_ARGS[@]} $TRAIN $DATA_ARGS"
echo $CMD
for i in 1 2 3; do echo $i; done
srun bash -c "$CMD" 2>&1 | tee log.txt
