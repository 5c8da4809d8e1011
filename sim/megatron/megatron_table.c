/* megatron_table: the rows, by topic. megatron_names.c has the arguments without a row of their own. */
#include "megatron/megatron_table.h"

#include "megatron/megatron_names.h"

#define NUMBER(name, fallback, path) {name, ARGUMENT_MAPPED, KIND_INT, fallback, path, NULL, NULL, NULL}
#define SHARE(name, fallback, path) {name, ARGUMENT_MAPPED, KIND_NUMBER, fallback, path, NULL, NULL, NULL}
#define WORD(name, fallback, path, words) {name, ARGUMENT_MAPPED, KIND_WORD, fallback, path, words, NULL, NULL}
#define FLAG(name, path, value) {name, ARGUMENT_MAPPED, KIND_FLAG, NULL, path, value, NULL, NULL}
#define OFF(name, path, value, logged) {name, ARGUMENT_MAPPED, KIND_FLAG, NULL, path, value, NULL, logged}
#define READ(name, kind, fallback) {name, ARGUMENT_MAPPED, kind, fallback, NULL, NULL, NULL, NULL}
#define IDLE(name) {name, ARGUMENT_IDLE, KIND_ANY, NULL, NULL, NULL, NULL, NULL}
#define LACKS(name, kind, fallback, why) {name, ARGUMENT_LACKS, kind, fallback, NULL, NULL, why, NULL}

static const struct argument_row rows[] = {
    /* the model */
    NUMBER("num-layers", NULL, "model.transformer.layers"),
    NUMBER("hidden-size", NULL, "model.transformer.hidden"),
    NUMBER("num-attention-heads", NULL, "model.transformer.heads"),
    NUMBER("seq-length", NULL, "model.transformer.sequence"),
    READ("ffn-hidden-size", KIND_INT, NULL),
    READ("kv-channels", KIND_INT, NULL),
    READ("group-query-attention", KIND_FLAG, NULL),
    READ("num-query-groups", KIND_INT, "1"),
    READ("max-position-embeddings", KIND_INT, NULL),
    READ("position-embedding-type", KIND_WORD, "learned_absolute"),
    READ("use-rotary-position-embeddings", KIND_FLAG, NULL),
    READ("no-position-embedding", KIND_FLAG, NULL),
    READ("make-vocab-size-divisible-by", KIND_INT, "128"),
    READ("vocab-size", KIND_INT, NULL),
    READ("padded-vocab-size", KIND_INT, NULL),
    READ("pad-vocab-size-to", KIND_INT, NULL),                     /* bigscience-workshop/Megatron-DeepSpeed */
    READ("tokenizer-type", KIND_ANY, NULL),
    FLAG("untie-embeddings-and-output-weights", "model.transformer.tied", "false"),
    WORD("normalization", "LayerNorm", "model.transformer.norm", "LayerNorm=layernorm RMSNorm=rmsnorm"),
    READ("swiglu", KIND_FLAG, NULL),
    READ("quick-geglu", KIND_FLAG, NULL),
    LACKS("squared-relu", KIND_FLAG, NULL, "simulated as GELU, which has the same two products"),
    OFF("disable-bias-linear", "model.transformer.bias", "false", "!add-bias-linear"),
    READ("add-qkv-bias", KIND_FLAG, NULL),
    LACKS("qk-layernorm", KIND_FLAG, NULL, "the two norms of queries and keys in each block are missing"),
    SHARE("hidden-dropout", "0.1", "model.transformer.dropout"),
    SHARE("attention-dropout", "0.1", "model.transformer.attention_dropout"),
    READ("window-size", KIND_LIST, NULL),
    READ("window-attn-skip-freq", KIND_ANY, NULL),
    FLAG("embed-layernorm", "model.transformer.embedding_norm", "true"),     /* bigscience-workshop/Megatron-DeepSpeed */
    READ("multi-latent-attention", KIND_FLAG, NULL),
    READ("q-lora-rank", KIND_INT, NULL),
    READ("kv-lora-rank", KIND_INT, "32"),
    READ("qk-head-dim", KIND_INT, "128"),
    READ("qk-pos-emb-head-dim", KIND_INT, "64"),
    READ("v-head-dim", KIND_INT, "128"),
    LACKS("mtp-num-layers", KIND_INT, NULL, "each block of multi-token prediction costs a block, a product of 2 hidden x "
          "hidden and an output layer, which are missing"),

    /* experts */
    READ("num-experts", KIND_INT, NULL),
    READ("moe-router-topk", KIND_INT, "2"),
    READ("moe-ffn-hidden-size", KIND_INT, NULL),
    READ("moe-layer-freq", KIND_ANY, "1"),
    READ("moe-shared-expert-intermediate-size", KIND_INT, NULL),
    READ("moe-expert-capacity-factor", KIND_NUMBER, NULL),
    READ("moe-pad-expert-input-to-capacity", KIND_FLAG, NULL),
    READ("moe-token-dispatcher-type", KIND_WORD, "allgather"),
    READ("moe-enable-deepep", KIND_FLAG, NULL),
    READ("moe-grouped-gemm", KIND_FLAG, NULL),
    READ("moe-router-force-load-balancing", KIND_FLAG, NULL),
    READ("moe-flex-dispatcher-backend", KIND_ANY, "deepep"),
    LACKS("moe-router-num-groups", KIND_INT, NULL, "tokens may go to experts of all nodes"),
    LACKS("moe-router-group-topk", KIND_INT, NULL, "tokens may go to experts of all nodes"),
    LACKS("moe-permute-fusion", KIND_FLAG, NULL, "tokens are ordered by kernels that are not fused"),
    LACKS("moe-router-fusion", KIND_FLAG, NULL, "the router's kernels are not fused"),
    LACKS("moe-shared-expert-overlap", KIND_FLAG, NULL, "the shared expert waits for the dispatch"),
    LACKS("overlap-moe-expert-parallel-comm", KIND_FLAG, NULL, "the all-to-alls hide behind no other micro-batch"),
    LACKS("delay-wgrad-compute", KIND_FLAG, NULL, "weight gradients are not delayed"),

    /* degrees and schedule */
    NUMBER("tensor-model-parallel-size", "1", "strategy.tensor"),
    NUMBER("pipeline-model-parallel-size", "1", "strategy.pipeline"),
    READ("num-layers-per-virtual-pipeline-stage", KIND_INT, NULL),
    READ("num-virtual-stages-per-pipeline-rank", KIND_INT, NULL),
    READ("microbatch-group-size-per-virtual-pipeline-stage", KIND_INT, NULL),
    READ("pipeline-model-parallel-layout", KIND_ANY, NULL),
    READ("decoder-first-pipeline-num-layers", KIND_INT, NULL),
    READ("decoder-last-pipeline-num-layers", KIND_INT, NULL),
    READ("account-for-embedding-in-pipeline-split", KIND_FLAG, NULL),
    READ("account-for-loss-in-pipeline-split", KIND_FLAG, NULL),
    READ("pp-partition-method", KIND_ANY, NULL),                   /* bigscience-workshop/Megatron-DeepSpeed */
    READ("no-pipeline-parallel", KIND_FLAG, NULL),                 /* deepspeedai/Megatron-DeepSpeed */
    OFF("no-overlap-p2p-communication", "software.overlap_p2p", "false", "!overlap-p2p-comm"),
    LACKS("overlap-p2p-communication-warmup-flush", KIND_FLAG, NULL, "warm-up and flush overlap as the steady phase does"),
    NUMBER("context-parallel-size", "1", "strategy.context"),
    READ("cp-comm-type", KIND_LIST, "p2p"),
    LACKS("hierarchical-context-parallel-sizes", KIND_LIST, NULL, "a context group has one level"),
    READ("sequence-parallel", KIND_FLAG, NULL),
    NUMBER("expert-model-parallel-size", "1", "strategy.expert"),
    READ("expert-tensor-parallel-size", KIND_INT, NULL),
    FLAG("use-tp-pp-dp-mapping", "strategy.placement", "[tensor, pipeline, data]"),
    OFF("no-scatter-gather-tensors-in-pipeline", "software.scatter_gather", "false", "!scatter-gather-tensors-in-pipeline"),

    /* data parallelism */
    READ("use-distributed-optimizer", KIND_FLAG, NULL),
    READ("num-distributed-optimizer-instances", KIND_INT, "1"),
    READ("overlap-grad-reduce", KIND_FLAG, NULL),
    READ("overlap-param-gather", KIND_FLAG, NULL),
    READ("ddp-bucket-size", KIND_INT, NULL),
    READ("ddp-average-in-collective", KIND_FLAG, NULL),
    READ("grad-reduce-in-bf16", KIND_FLAG, NULL),
    READ("accumulate-allreduce-grads-in-fp32", KIND_FLAG, NULL),
    READ("use-megatron-fsdp", KIND_FLAG, NULL),
    READ("data-parallel-sharding-strategy", KIND_WORD, "no_shard"),
    READ("use-torch-fsdp2", KIND_FLAG, NULL),
    FLAG("torch-fsdp2-no-reshard-after-forward", "software.reshard_after_forward", "false"),
    READ("zero-stage", KIND_INT, NULL),                            /* deepspeedai/Megatron-DeepSpeed */
    READ("deepspeed", KIND_FLAG, NULL),
    READ("deepspeed-config", KIND_ANY, NULL),
    LACKS("ds-sequence-parallel-size", KIND_INT, "1", "Ulysses' exchange of heads is missing"),
    LACKS("ddp-num-buckets", KIND_INT, NULL, "buckets have the default size"),
    LACKS("overlap-param-gather-with-optimizer-step", KIND_FLAG, NULL, "weights are gathered behind the update alone"),
    LACKS("outer-dp-sharding-strategy", KIND_WORD, "no_shard", "there is one level of shards"),
    LACKS("use-sharp", KIND_FLAG, NULL, "switches do not add up; a communication profile may say so"),
    LACKS("use-nccl-ub", KIND_FLAG, NULL, "collectives use NCCL's own buffers"),

    /* batch */
    NUMBER("micro-batch-size", NULL, "batch.micro"),
    NUMBER("global-batch-size", NULL, "batch.global"),
    LACKS("rampup-batch-size", KIND_LIST, NULL, "the scenario is an iteration with the full batch"),
    LACKS("step-batch-size-schedule", KIND_ANY, NULL, "the scenario is an iteration with the full batch"),

    /* formats and memory */
    READ("bf16", KIND_FLAG, NULL),
    READ("fp16", KIND_FLAG, NULL),
    {"fp8-format", ARGUMENT_MAPPED, KIND_WORD, NULL, NULL, NULL, NULL, "fp8"},
    READ("fp8-recipe", KIND_WORD, "delayed"),
    {"fp4-format", ARGUMENT_MAPPED, KIND_WORD, NULL, NULL, NULL, NULL, "fp4"},
    {"fp8-param-gather", ARGUMENT_MAPPED, KIND_FLAG, NULL, "software.fp8_weights", "primary", NULL, "fp8-param"},
    LACKS("first-last-layers-bf16", KIND_FLAG, NULL, "all blocks are in the narrow format"),
    READ("use-precision-aware-optimizer", KIND_FLAG, NULL),
    READ("main-params-dtype", KIND_WORD, "fp32"),
    READ("main-grads-dtype", KIND_WORD, "fp32"),
    READ("exp-avg-dtype", KIND_WORD, "fp32"),
    READ("exp-avg-sq-dtype", KIND_WORD, "fp32"),
    READ("optimizer", KIND_WORD, "adam"),
    READ("optimizer-cpu-offload", KIND_FLAG, NULL),
    READ("cpu-optimizer", KIND_FLAG, NULL),                        /* deepspeedai/Megatron-DeepSpeed */
    LACKS("optimizer-offload-fraction", KIND_NUMBER, "1.0", "all states are on the host, or none"),
    READ("clip-grad", KIND_NUMBER, "1.0"),
    OFF("no-check-for-nan-in-loss-and-grad", NULL, NULL, "!check-for-nan-in-loss-and-grad"),
    READ("recompute-activations", KIND_FLAG, NULL),
    READ("recompute-granularity", KIND_WORD, NULL),
    READ("recompute-method", KIND_WORD, NULL),
    READ("recompute-num-layers", KIND_INT, NULL),
    READ("recompute-modules", KIND_LIST, "core_attn"),
    READ("checkpoint-activations", KIND_FLAG, NULL),               /* Megatron-LM of 2019 to 2021, and its forks */
    READ("activations-checkpoint-method", KIND_WORD, NULL),        /* Megatron-LM of 2021 and 2022 */
    READ("activations-checkpoint-num-layers", KIND_INT, "1"),
    READ("checkpoint-num-layers", KIND_INT, "1"),
    READ("deepspeed-activation-checkpointing", KIND_FLAG, NULL),
    READ("DDP-impl", KIND_ANY, NULL),                              /* Megatron-LM to 2022 */
    LACKS("partition-activations", KIND_FLAG, NULL, "kept inputs are whole on each GPU"),
    LACKS("distribute-saved-activations", KIND_FLAG, NULL, "kept inputs are whole on each GPU"),
    LACKS("cpu-offloading-num-layers", KIND_INT, "0", "activations stay on the GPU"),
    LACKS("fine-grained-activation-offloading", KIND_FLAG, NULL, "activations stay on the GPU"),

    /* kernels */
    READ("transformer-impl", KIND_WORD, "transformer_engine"),
    READ("attention-backend", KIND_ANY, "auto"),
    READ("flash-attention-version", KIND_INT, NULL),
    READ("use-flash-attn", KIND_FLAG, NULL),
    READ("tp-comm-overlap", KIND_FLAG, NULL),
    OFF("no-rope-fusion", "software.rotary", "halves", "!apply-rope-fusion"),
    OFF("no-gradient-accumulation-fusion", "software.fused_accumulation", "false", "!gradient-accumulation-fusion"),
    OFF("no-async-tensor-model-parallel-allreduce", "software.overlap_tensor", "false",
        "!async-tensor-model-parallel-allreduce"),                 /* Megatron-LM of 2022 */
    READ("cross-entropy-loss-fusion", KIND_FLAG, NULL),
    READ("cross-entropy-fusion-impl", KIND_WORD, "native"),
    FLAG("use-transformer-engine-op-fuser", "software.fused_clamp", "true"),
    {"no-masked-softmax-fusion", ARGUMENT_LACKS, KIND_FLAG, NULL, NULL, NULL, "scale, mask and softmax stay one kernel",
     "!masked-softmax-fusion"},
    {"no-bias-gelu-fusion", ARGUMENT_LACKS, KIND_FLAG, NULL, NULL, NULL, "bias and GELU stay fused", "!bias-gelu-fusion"},
    {"no-bias-swiglu-fusion", ARGUMENT_LACKS, KIND_FLAG, NULL, NULL, NULL, "bias and SwiGLU stay fused",
     "!bias-swiglu-fusion"},
    {"no-bias-dropout-fusion", ARGUMENT_LACKS, KIND_FLAG, NULL, NULL, NULL, "bias, dropout and sum stay fused",
     "!bias-dropout-fusion"},
    LACKS("no-persist-layer-norm", KIND_FLAG, NULL, "norms are the persistent kernel"),
    LACKS("defer-embedding-wgrad-compute", KIND_FLAG, NULL, "the output layer's weight gradient is not deferred"),
    LACKS("cuda-graph-impl", KIND_WORD, "none", "the host launches each kernel"),
    LACKS("empty-unused-memory-level", KIND_INT, "0", "the allocator's cache is never emptied"),
    LACKS("deterministic-mode", KIND_FLAG, NULL, "kernels are the fastest ones"),
    LACKS("sync-tp-duplicated-parameters", KIND_FLAG, NULL, "weights that all GPUs of a tensor group hold are not made "
          "equal"),                                                /* bigscience-workshop/Megatron-DeepSpeed */

    /* of whole runs */
    IDLE("train-iters"), IDLE("train-samples"), IDLE("exit-duration-in-mins"), IDLE("save-interval"),
    IDLE("non-persistent-save-interval"), IDLE("non-persistent-ckpt-type"), IDLE("async-save"), IDLE("ckpt-format"),
    {"no-ckpt-fully-parallel-save", ARGUMENT_IDLE, KIND_ANY, NULL, NULL, NULL, NULL, "!ckpt-fully-parallel-save"},
    IDLE("ckpt-fully-parallel-load"), IDLE("replication"), IDLE("replication-factor"), IDLE("inprocess-restart"),
};

/* What a log or an older release calls them. */
static const struct { const char *other, *name; } aliases[] = {
    {"encoder-seq-length", "seq-length"}, {"model-parallel-size", "tensor-model-parallel-size"},
    {"batch-size", "micro-batch-size"}, {"deepspeed_config", "deepspeed-config"},
};

const struct argument_row *megatron_row_at(size_t index)
{
    return index < COUNT(rows) ? &rows[index] : megatron_other_at(index - COUNT(rows));
}

const struct argument_row *megatron_row(const char *name, bool log)
{
    const struct argument_row *row;

    for (size_t i = 0; i < COUNT(aliases); i++)
        if (text_same(name, aliases[i].other))
            name = aliases[i].name;
    for (size_t i = 0; (row = megatron_row_at(i)); i++)
        if (text_same(row->name, name) ||
            (log && row->logged && text_same(row->logged[0] == '!' ? row->logged + 1 : row->logged, name)))
            return row;
    return NULL;
}

const char *megatron_name(size_t index, const void *context)
{
    const struct argument_row *row = megatron_row_at(index);

    (void)context;
    return row ? row->name : NULL;
}
