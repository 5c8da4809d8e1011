/* megatron_table: the rows, by topic. megatron_names.c has the arguments without a row of their own. */
#include "megatron/megatron_table.h"

#include "megatron/megatron_names.h"

#define MAPPED(type, text, ...) {.name = text, .class = ARGUMENT_MAPPED, .kind = type, __VA_ARGS__}
#define NUMBER(name, initial, key) MAPPED(KIND_INT, name, .fallback = initial, .path = key)
#define SHARE(name, initial, key) MAPPED(KIND_NUMBER, name, .fallback = initial, .path = key)
#define FLAG(name, key, value) MAPPED(KIND_FLAG, name, .path = key, .words = value)
#define OFF(name, key, value, log) MAPPED(KIND_FLAG, name, .path = key, .words = value, .logged = log)
#define READ(name, type, initial) MAPPED(type, name, .fallback = initial)
#define WITH(other, name, type, initial) MAPPED(type, name, .fallback = initial, .needs = other)
#define IDLE(text) {.name = text, .class = ARGUMENT_IDLE, .kind = KIND_ANY}
#define LACKS(text, type, initial, ...) \
    {.name = text, .class = ARGUMENT_LACKS, .kind = type, .fallback = initial, .why = __VA_ARGS__}

static const struct argument_row rows[] = {
    /* the model */
    NUMBER("num-layers", NULL, "model.transformer.layers"),
    NUMBER("hidden-size", NULL, "model.transformer.hidden"),
    NUMBER("num-attention-heads", NULL, "model.transformer.heads"),
    NUMBER("seq-length", NULL, "model.transformer.sequence"),
    READ("ffn-hidden-size", KIND_INT, NULL),
    READ("kv-channels", KIND_INT, NULL),
    READ("group-query-attention", KIND_FLAG, NULL),
    WITH("group-query-attention", "num-query-groups", KIND_INT, "1"),
    READ("max-position-embeddings", KIND_INT, NULL),
    READ("position-embedding-type", KIND_WORD, "learned_absolute"),
    READ("use-rotary-position-embeddings", KIND_FLAG, NULL),
    READ("no-position-embedding", KIND_FLAG, NULL),
    READ("make-vocab-size-divisible-by", KIND_INT, "128"),
    READ("vocab-size", KIND_INT, NULL),
    READ("padded-vocab-size", KIND_INT, NULL),
    READ("extra-vocab-size", KIND_INT, NULL),                      /* alibaba/Pai-Megatron-Patch */
    READ("pad-vocab-size-to", KIND_INT, NULL),                     /* bigscience-workshop/Megatron-DeepSpeed */
    READ("tokenizer-type", KIND_ANY, NULL),
    OFF("untie-embeddings-and-output-weights", "model.transformer.tied", "false", "!share-embeddings-and-output-weights"),
    MAPPED(KIND_WORD, "normalization", .fallback = "LayerNorm", .path = "model.transformer.norm",
           .words = "LayerNorm=layernorm RMSNorm=rmsnorm"),
    READ("swiglu", KIND_FLAG, NULL),
    READ("quick-geglu", KIND_FLAG, NULL),
    READ("squared-relu", KIND_FLAG, NULL),
    OFF("disable-bias-linear", "model.transformer.bias", "false", "!add-bias-linear"),
    READ("add-qkv-bias", KIND_FLAG, NULL),
    READ("qk-layernorm", KIND_FLAG, NULL),
    SHARE("hidden-dropout", "0.1", "model.transformer.dropout"),
    SHARE("attention-dropout", "0.1", "model.transformer.attention_dropout"),
    READ("window-size", KIND_LIST, NULL),
    WITH("window-size", "window-attn-skip-freq", KIND_WORD, NULL),
    FLAG("embed-layernorm", "model.transformer.embedding_norm", "true"),     /* bigscience-workshop/Megatron-DeepSpeed */
    READ("multi-latent-attention", KIND_FLAG, NULL),
    WITH("multi-latent-attention", "q-lora-rank", KIND_INT, NULL),
    WITH("multi-latent-attention", "kv-lora-rank", KIND_INT, "32"),
    WITH("multi-latent-attention", "qk-head-dim", KIND_INT, "128"),
    WITH("multi-latent-attention", "qk-pos-emb-head-dim", KIND_INT, "64"),
    WITH("multi-latent-attention", "v-head-dim", KIND_INT, "128"),
    NUMBER("mtp-num-layers", NULL, "model.transformer.mtp"),

    /* experts */
    READ("num-experts", KIND_INT, NULL),
    WITH("num-experts", "moe-router-topk", KIND_INT, "2"),
    WITH("num-experts", "moe-ffn-hidden-size", KIND_INT, NULL),
    WITH("num-experts", "moe-layer-freq", KIND_WORD, "1"),
    WITH("num-experts", "moe-shared-expert-intermediate-size", KIND_INT, NULL),
    WITH("num-experts", "moe-expert-capacity-factor", KIND_NUMBER, NULL),
    WITH("moe-expert-capacity-factor", "moe-pad-expert-input-to-capacity", KIND_FLAG, NULL),
    WITH("num-experts", "moe-token-dispatcher-type", KIND_WORD, "allgather"),
    WITH("num-experts", "moe-enable-deepep", KIND_FLAG, NULL),
    WITH("num-experts", "moe-grouped-gemm", KIND_FLAG, NULL),
    WITH("num-experts", "moe-router-force-load-balancing", KIND_FLAG, NULL),
    WITH("moe-token-dispatcher-type", "moe-flex-dispatcher-backend", KIND_WORD, "deepep"),
    LACKS("moe-router-num-groups", KIND_INT, NULL, "tokens may go to experts of all nodes"),
    LACKS("moe-router-group-topk", KIND_INT, NULL, "tokens may go to experts of all nodes"),
    LACKS("moe-input-jitter-eps", KIND_NUMBER, NULL, "no kernel multiplies tokens by noise before the router"),
    WITH("num-experts", "moe-permute-fusion", KIND_FLAG, NULL),
    WITH("num-experts", "moe-router-fusion", KIND_FLAG, NULL),
    WITH("moe-shared-expert-intermediate-size", "moe-shared-expert-overlap", KIND_FLAG, NULL),
    WITH("num-experts", "overlap-moe-expert-parallel-comm", KIND_FLAG, NULL),
    LACKS("delay-wgrad-compute", KIND_FLAG, NULL, "weight gradients are not delayed"),

    /* degrees and schedule */
    NUMBER("tensor-model-parallel-size", "1", "strategy.tensor"),
    NUMBER("pipeline-model-parallel-size", "1", "strategy.pipeline"),
    READ("num-layers-per-virtual-pipeline-stage", KIND_INT, NULL),
    READ("num-virtual-stages-per-pipeline-rank", KIND_INT, NULL),
    READ("microbatch-group-size-per-virtual-pipeline-stage", KIND_INT, NULL),
    READ("pipeline-model-parallel-layout", KIND_WORD, NULL),
    READ("decoder-first-pipeline-num-layers", KIND_INT, NULL),
    READ("decoder-last-pipeline-num-layers", KIND_INT, NULL),
    READ("account-for-embedding-in-pipeline-split", KIND_FLAG, NULL),
    READ("account-for-loss-in-pipeline-split", KIND_FLAG, NULL),
    READ("pp-partition-method", KIND_ANY, NULL),                   /* bigscience-workshop/Megatron-DeepSpeed */
    READ("no-pipeline-parallel", KIND_FLAG, NULL),                 /* deepspeedai/Megatron-DeepSpeed */
    OFF("no-overlap-p2p-communication", "software.overlap_p2p", "false", "!overlap-p2p-comm"),
    LACKS("overlap-p2p-communication-warmup-flush", KIND_FLAG, NULL, "warm-up and flush overlap as the steady phase does"),
    NUMBER("context-parallel-size", "1", "strategy.context"),
    WITH("context-parallel-size", "cp-comm-type", KIND_LIST, "p2p"),
    WITH("cp-comm-type", "hierarchical-context-parallel-sizes", KIND_LIST, NULL),
    READ("sequence-parallel", KIND_FLAG, NULL),
    NUMBER("expert-model-parallel-size", "1", "strategy.expert"),
    WITH("num-experts", "expert-tensor-parallel-size", KIND_INT, NULL),
    FLAG("use-tp-pp-dp-mapping", "strategy.placement", "[tensor, pipeline, data]"),
    OFF("no-scatter-gather-tensors-in-pipeline", "software.scatter_gather", "false", "!scatter-gather-tensors-in-pipeline"),

    /* data parallelism */
    READ("use-distributed-optimizer", KIND_FLAG, NULL),
    READ("use-layer-wise-distributed-optimizer", KIND_FLAG, NULL),
    WITH("use-distributed-optimizer", "num-distributed-optimizer-instances", KIND_INT, "1"),
    READ("overlap-grad-reduce", KIND_FLAG, NULL),
    WITH("use-distributed-optimizer use-megatron-fsdp", "overlap-param-gather", KIND_FLAG, NULL),
    WITH("overlap-grad-reduce", "ddp-bucket-size", KIND_INT, NULL),
    READ("ddp-average-in-collective", KIND_FLAG, NULL),
    READ("grad-reduce-in-bf16", KIND_FLAG, NULL),
    READ("accumulate-allreduce-grads-in-fp32", KIND_FLAG, NULL),
    READ("use-megatron-fsdp", KIND_FLAG, NULL),
    WITH("use-megatron-fsdp", "data-parallel-sharding-strategy", KIND_WORD, "no_shard"),
    READ("use-torch-fsdp2", KIND_FLAG, NULL),
    FLAG("torch-fsdp2-no-reshard-after-forward", "software.reshard_after_forward", "false"),
    READ("zero-stage", KIND_INT, NULL),                            /* deepspeedai/Megatron-DeepSpeed */
    READ("deepspeed", KIND_FLAG, NULL),
    READ("deepspeed-config", KIND_ANY, NULL),
    LACKS("ds-sequence-parallel-size", KIND_INT, "1", "Ulysses' exchange of heads is missing"),
    LACKS("ddp-num-buckets", KIND_INT, NULL, "buckets have the default size"),
    LACKS("ddp-pad-buckets-for-high-nccl-busbw", KIND_FLAG, NULL, "buckets are not padded to multiples of 65,536 elements"),
    LACKS("calculate-per-token-loss", KIND_FLAG, NULL, "no kernel scales each gradient once more behind its sum"),
                                                /* core/distributed/finalize_model_grads.py: scale_gradients */
    LACKS("create-all-gather-group", KIND_FLAG, NULL, "gathers and reductions share a communicator"),
    LACKS("suggested-communication-unit-size", KIND_INT, NULL, "buckets have the default size"),
    LACKS("overlap-param-gather-with-optimizer-step", KIND_FLAG, NULL, "weights are gathered behind the optimizer step alone"),
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
    MAPPED(KIND_WORD, "fp8-format", .logged = "fp8"),
    WITH("fp8-format", "fp8-recipe", KIND_WORD, "delayed"),
    MAPPED(KIND_WORD, "fp4-format", .logged = "fp4"),
    MAPPED(KIND_FLAG, "fp8-param-gather", .path = "software.fp8_weights", .words = "primary", .needs = "fp8-format",
           .logged = "fp8-param"),
    LACKS("first-last-layers-bf16", KIND_FLAG, NULL, "all blocks are in the narrow format"),
    READ("use-precision-aware-optimizer", KIND_FLAG, NULL),
    WITH("use-precision-aware-optimizer", "main-params-dtype", KIND_WORD, "fp32"),
    WITH("use-precision-aware-optimizer", "main-grads-dtype", KIND_WORD, "fp32"),
    WITH("use-precision-aware-optimizer", "exp-avg-dtype", KIND_WORD, "fp32"),
    WITH("use-precision-aware-optimizer", "exp-avg-sq-dtype", KIND_WORD, "fp32"),
    READ("optimizer", KIND_WORD, "adam"),
    READ("muon-tp-mode", KIND_WORD, NULL),
    READ("muon-no-split-qkv", KIND_FLAG, NULL),
    LACKS("muon-num-ns-steps", KIND_INT, "5", "five iterations orthogonalize a matrix"),
    LACKS("muon-fp32-matmul-prec", KIND_WORD, "medium", "matrices are orthogonalized in half precision"),
    LACKS("muon-scalar-optimizer", KIND_WORD, "adam", "AdamW updates all that is no matrix of a block"),
    LACKS("muon-use-syrk", KIND_FLAG, NULL, "both triangles of symmetric products are computed"),
    READ("optimizer-cpu-offload", KIND_FLAG, NULL),
    READ("cpu-optimizer", KIND_FLAG, NULL),                        /* deepspeedai/Megatron-DeepSpeed */
    LACKS("no-pin-cpu-grads", KIND_FLAG, NULL, "the host's memory is pinned", .logged = "!pin-cpu-grads"),
    LACKS("no-pin-cpu-params", KIND_FLAG, NULL, "the host's memory is pinned", .logged = "!pin-cpu-params"),
    LACKS("optimizer-offload-fraction", KIND_NUMBER, "1.0", "all states are on the host, or none"),
    READ("clip-grad", KIND_NUMBER, "1.0"),
    OFF("no-check-for-nan-in-loss-and-grad", NULL, NULL, "!check-for-nan-in-loss-and-grad"),
    READ("recompute-activations", KIND_FLAG, NULL),
    READ("recompute-granularity", KIND_WORD, NULL),
    WITH("recompute-granularity", "recompute-method", KIND_WORD, NULL),
    WITH("recompute-granularity", "recompute-num-layers", KIND_INT, NULL),
    WITH("recompute-granularity recompute-activations", "recompute-modules", KIND_LIST, "core_attn"),
    READ("checkpoint-activations", KIND_FLAG, NULL),               /* Megatron-LM of 2019 to 2021, and its forks */
    READ("activations-checkpoint-method", KIND_WORD, NULL),        /* Megatron-LM of 2021 and 2022 */
    WITH("activations-checkpoint-method", "activations-checkpoint-num-layers", KIND_INT, "1"),
    WITH("checkpoint-activations activations-checkpoint-method", "checkpoint-num-layers", KIND_INT, "1"),
    READ("deepspeed-activation-checkpointing", KIND_FLAG, NULL),
    READ("DDP-impl", KIND_WORD, NULL),                              /* Megatron-LM to 2022 */
    LACKS("partition-activations", KIND_FLAG, NULL, "kept inputs are whole on each GPU"),
    LACKS("distribute-saved-activations", KIND_FLAG, NULL, "kept inputs are whole on each GPU"),
    LACKS("cpu-offloading-num-layers", KIND_INT, "0", "activations stay on the GPU"),
    LACKS("fine-grained-activation-offloading", KIND_FLAG, NULL, "activations stay on the GPU"),

    /* kernels */
    READ("transformer-impl", KIND_WORD, "transformer_engine"),
    READ("attention-backend", KIND_WORD, "auto"),
    READ("flash-attention-version", KIND_INT, NULL),
    READ("use-flash-attn", KIND_FLAG, NULL),
    WITH("sequence-parallel", "tp-comm-overlap", KIND_FLAG, NULL),
    OFF("no-rope-fusion", "software.rotary", "halves", "!apply-rope-fusion"),
    OFF("no-gradient-accumulation-fusion", "software.fused_accumulation", "false", "!gradient-accumulation-fusion"),
    OFF("no-async-tensor-model-parallel-allreduce", "software.overlap_tensor", "false",
        "!async-tensor-model-parallel-allreduce"),                 /* Megatron-LM of 2022 */
    READ("cross-entropy-loss-fusion", KIND_FLAG, NULL),
    WITH("cross-entropy-loss-fusion", "cross-entropy-fusion-impl", KIND_WORD, "native"),
    FLAG("use-transformer-engine-op-fuser", "software.fused_clamp", "true"),
    LACKS("no-masked-softmax-fusion", KIND_FLAG, NULL, "scale, mask and softmax stay one kernel",
          .logged = "!masked-softmax-fusion"),
    LACKS("no-bias-gelu-fusion", KIND_FLAG, NULL, "bias and GELU stay fused",
          .logged = "!bias-gelu-fusion"),
    LACKS("no-bias-swiglu-fusion", KIND_FLAG, NULL, "bias and SwiGLU stay fused",
          .logged = "!bias-swiglu-fusion"),
    LACKS("no-bias-dropout-fusion", KIND_FLAG, NULL, "bias, dropout and sum stay fused",
          .logged = "!bias-dropout-fusion"),
    LACKS("no-persist-layer-norm", KIND_FLAG, NULL, "norms are the persistent kernel", .logged = "!persist-layer-norm"),
    LACKS("defer-embedding-wgrad-compute", KIND_FLAG, NULL, "the output layer's weight gradient is not deferred"),
    LACKS("cuda-graph-impl", KIND_WORD, "none", "the host launches each kernel"),
    LACKS("empty-unused-memory-level", KIND_INT, "0", "the allocator's cache is never emptied"),
    LACKS("deterministic-mode", KIND_FLAG, NULL, "kernels are the fastest ones"),
    LACKS("sync-tp-duplicated-parameters", KIND_FLAG, NULL, "weights that all GPUs of a tensor group hold are not made "
          "equal"),                                                /* bigscience-workshop/Megatron-DeepSpeed */

    /* of whole runs */
    IDLE("train-iters"), IDLE("train-samples"), IDLE("exit-duration-in-mins"), IDLE("save-interval"),
    IDLE("non-persistent-save-interval"), IDLE("non-persistent-ckpt-type"), IDLE("async-save"), IDLE("ckpt-format"),
    {.name = "no-ckpt-fully-parallel-save", .class = ARGUMENT_IDLE, .kind = KIND_ANY, .logged = "!ckpt-fully-parallel-save"},
    IDLE("ckpt-fully-parallel-load"), IDLE("replication"), IDLE("replication-factor"), IDLE("inprocess-restart"),
};

/* What a log or an older release calls them. */
static const struct { const char *other, *name; } aliases[] = {
    {"virtual-pipeline-model-parallel-size", "num-virtual-stages-per-pipeline-rank"},
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

const struct argument_table megatron_arguments = {
    .framework = "Megatron-LM", .dashes = "--", .at = megatron_row_at, .find = megatron_row, .is_inner = megatron_is_inner,
    .is_own = megatron_is_own, .is_shape = megatron_is_shape,
};
