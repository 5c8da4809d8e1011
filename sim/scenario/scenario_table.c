/* All keys of a scenario. Parsing, defaults, resolved output, help and schema all come from these tables. */
#include "scenario/scenario.h"

#include "hardware/slow_parts.h"

#include <string.h>

const char *const dimension_names[] = {
    [DIMENSION_TENSOR] = "tensor", [DIMENSION_DATA] = "data", [DIMENSION_PIPELINE] = "pipeline",
    [DIMENSION_CONTEXT] = "context", NULL,
};
_Static_assert(COUNT(dimension_names) == DIMENSION_COUNT + 1, "a name for every dimension");
static const char *const recompute_rule_names[] = {
    [RECOMPUTE_WITH_GRADIENT] = "with-gradient", [RECOMPUTE_EARLY] = "early",
    [RECOMPUTE_JUST_IN_TIME] = "just-in-time", NULL,
};
_Static_assert(COUNT(recompute_rule_names) == RECOMPUTE_JUST_IN_TIME + 2, "a name for every rule");
const char *const recompute_names[] = ENUM_NAMES(RECOMPUTES);
static const char *const module_names[] = ENUM_NAMES(RECOMPUTE_PARTS);

static const struct field batch_fields[] = {
    {KEY(batch, global), .also = "gbs global_batch_size batch_size",
     .kind = FIELD_INT, .min = 1, .max = 1e9,
     .brief = "samples in an iteration, over all replicas"},
    {KEY(batch, micro), .also = "mbs micro_batch_size train_micro_batch_size_per_gpu",
     .kind = FIELD_INT, .min = 1, .max = 1e6, .fallback = "1", .brief = "samples in a micro-batch"},
    {KEY(batch, micro_batches), .also = "gradient_accumulation_steps",
     .kind = FIELD_INT, .min = 1, .max = 1e6,
     .brief = "micro-batches per replica; give this or global"},
    {KEY(batch, count), .kind = FIELD_INT, .min = 1, .max = 1e6,
     .brief = "number of consecutive batches, for schedules that do not flush between batches (pipedream-2bw)"},
};
static const struct table batch_table = {
    TABLE("batch", "how many samples an iteration trains on", batch, batch_fields),
};

static const struct field schedule_spec_fields[] = {
    {KEY(schedule_spec, name), .kind = FIELD_CHOICE, .choice = schedule_name,
     .brief = "a schedule that dtsim knows (dtsim list strategies)"},
    {KEY(schedule_spec, csv), .kind = FIELD_STRING,
     .brief = "a file with your own order of the work, in the format of 'show --orders' and PyTorch: one line per "
              "rank, with cells such as 0F0"},
    {KEY(schedule_spec, recomputation), .kind = FIELD_CHOICE, .choices = recompute_rule_names,
     .choice_briefs = NAMES("when the gradient that its backward needs has arrived",
                            "as soon as the rank comes to it",
                            "so late that it ends together with the backward of the next stage"),
     .brief = "with csv: when a recomputation may begin; left out: with-gradient"},
};
static const struct table schedule_table = {
    TABLE("strategy: schedule", "a schedule by its name, or an order from a file", schedule_spec, schedule_spec_fields),
    .shorthand = "name", .bare = true, .exactly_one = "name csv",
};

static const struct field compression_spec_fields[] = {
    {KEY(compression_spec, method), .kind = FIELD_CHOICE, .required = true, .choices = CHOICES(COMPRESSIONS),
     .choice_briefs = NAMES("gradients are sent as they are", "sends low-rank factors of every matrix",
                            "sends only the values that are largest in magnitude", "sends fewer bits per value"),
     .brief = "how gradients are compressed"},
    {KEY(compression_spec, rank), .kind = FIELD_INT, .min = 1, .max = 128,
     .brief = "powersgd: columns of the factors; left out: 1"},
    {KEY(compression_spec, share), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1e-6, .max = 1,
     .brief = "top-k: share of the values that is sent; left out: 0.01"},
    {KEY(compression_spec, bits), .kind = FIELD_INT, .min = 1, .max = 16,
     .brief = "quantized: bits per value; each bucket also sends a scale; left out: 8"},
    {KEY(compression_spec, error_feedback), .kind = FIELD_BOOL,
     .brief = "the part of the gradients that was not sent is kept and added to the next gradients; left out: true"},
};
static const struct table compression_table = {
    TABLE("strategy: compression", "how gradients are compressed before replicas exchange them",
          compression_spec, compression_spec_fields),
    .shorthand = "method", .bare = true,
};

static const struct field parallelism_fields[] = {
    {KEY(parallelism, schedule), .kind = FIELD_RECORD, .table = &schedule_table, .fallback = "1f1b",
     .brief = "pipeline schedule: a name (dtsim list strategies), or {csv: FILE}"},
    {KEY(parallelism, tensor), .also = "tp tensor_parallel tensor_model_parallel_size",
     .kind = FIELD_INT, .min = 1, .max = 65536, .fallback = "1",
     .brief = "tensor-parallel degree"},
    {KEY(parallelism, pipeline), .also = "pp pipeline_parallel pipeline_model_parallel_size",
     .kind = FIELD_INT, .min = 1, .max = 65536, .fallback = "1",
     .brief = "pipeline-parallel degree: ranks of one replica"},
    {KEY(parallelism, data), .also = "dp data_parallel_size",
     .kind = FIELD_INT, .min = 1, .max = 1048576,
     .brief = "data-parallel degree: number of replicas; left out: as many as the cluster's GPUs allow"},
    {KEY(parallelism, chunks), .also = "vp vpp virtual_pipeline_model_parallel_size virtual_stages",
     .kind = FIELD_INT, .min = 1, .max = 1024,
     .brief = "model chunks (virtual stages) per rank; left out: the fewest that the schedule works with; 2 for "
              "interleaved, interleaved-zb and looped-bfs where pipeline is more than 1"},
    {KEY(parallelism, zero), .also = "zero_stage fsdp",
     .kind = FIELD_INT, .min = 0, .max = 3, .fallback = "0",
     .brief = "ZeRO stage: replicas divide among them (1) the optimizer states, (2) also the gradients, (3) also the "
              "parameters (FSDP); 0: no ZeRO"},
    {KEY(parallelism, shard), .kind = FIELD_INT, .min = 1, .max = 1048576,
     .brief = "number of replicas among which ZeRO divides, for example the replicas of a node (FSDP's hybrid "
              "sharding, MiCS); left out: all replicas"},
    {KEY(parallelism, sequence_parallel), .also = "sp",
     .kind = FIELD_BOOL, .fallback = "false",
     .brief = "the tensor-parallel group divides activations outside the tensor-parallel products along the sequence"},
    {KEY(parallelism, context), .also = "cp context_parallel_size",
     .kind = FIELD_INT, .min = 1, .max = 65536, .fallback = "1",
     .brief = "context-parallel degree: GPUs that divide the tokens of every sample"},
    {KEY(parallelism, context_attention), .kind = FIELD_CHOICE, .choices = CHOICES(CONTEXT_ATTENTIONS),
     .fallback = "ring",
     .choice_briefs = NAMES("the GPUs pass keys and values around a ring while they compute",
                            "the GPUs gather all keys and values before they compute"),
     .brief = "how the GPUs of a context-parallel group exchange keys and values"},
    {KEY(parallelism, expert), .also = "ep expert_model_parallel_size",
     .kind = FIELD_INT, .min = 1, .max = 65536, .fallback = "1",
     .brief = "expert-parallel degree: number of replicas (of data x context) that divide the experts among them; "
              "with expert_tensor 1, number of GPUs (of data x context x tensor)"},
    {KEY(parallelism, expert_tensor), .also = "etp expert_tensor_parallel_size",
     .kind = FIELD_INT, .min = 1, .max = 65536,
     .brief = "GPUs of a tensor-parallel group that divide each expert: all of them, or 1, so that each has whole "
              "experts; left out: all"},
    {KEY(parallelism, capacity_factor), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 0, .max = 1000,
     .fallback = "0",
     .brief = "rows that an expert computes, padding included, divided by its rows under balanced routing: 1 or more; "
              "0: no padding"},
    {KEY(parallelism, dispatch), .kind = FIELD_CHOICE, .choices = CHOICES(TOKEN_DISPATCHES), .fallback = "copies",
     .choice_briefs = NAMES("once for each of them, ordered by experts before it is sent (NCCL's all-to-all)",
                            "once to each GPU and each node that has any of them, and there copied (DeepEP, HybridEP)"),
     .brief = "how often a GPU sends a token whose experts are on other GPUs"},
    {KEY(parallelism, scatter_gather), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "true: each GPU of a tensor-parallel group sends a share of the stage's output, and the receiving group "
              "gathers the shares; false: each GPU sends all of it; sequence_parallel always sends shares"},
    {KEY(parallelism, partitioned_outputs), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "each GPU of a tensor-parallel group keeps only its share of the stage's output; the group gathers the "
              "shares again before the backward, and each such gather also clears, copies and clones the tensor "
              "(DeepSpeed's pipeline engine)"},
    {KEY(parallelism, overlap_p2p), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "a stage computes on while it sends to its neighbours; false: it waits until they have received it "
              "(Megatron-LM before --overlap-p2p-communication, DeepSpeed's pipeline engine)"},
    {KEY(parallelism, one_communicator), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "over sockets: one NCCL communicator carries all sends and receives of a stage, so a receive, and the "
              "work that needs it, waits until the sockets have taken all data that was sent before"},
    {KEY(parallelism, duplex_p2p), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "neighbouring stages send to each other at the same time (Megatron-LM's batched calls); false: one "
              "after the other (DeepSpeed's pipeline engine)"},
    {KEY(parallelism, overlap_tensor), .kind = FIELD_BOOL,
     .brief = "the tensor-parallel group sums the gradient of a product's input while it computes the gradient of the "
              "product's weights (Megatron-LM since 2022, but not DeepSpeed's forks of it); left out: as "
              "sequence_parallel"},
    {KEY(parallelism, overlap_products), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "a product is cut into pieces, and the tensor-parallel group gathers its input or scatters its result "
              "while the pieces are computed (Transformer Engine's user buffers, ub_tp_comm_overlap); needs "
              "sequence_parallel"},
    {KEY(parallelism, overlap_gathers), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "under ZeRO 1 and 2 the replicas gather updated weights while the next iteration's first forwards run "
              "(Megatron-LM's overlap_param_gather); false: at the end of the update"},
    {KEY(parallelism, reduce_scatter), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "under ZeRO a reduce-scatter gives each replica the sums of its share; false, with ZeRO 1: an "
              "all-reduce gives all sums to all replicas (DeepSpeed with reduce_scatter: false, with its bf16 "
              "optimizer, and its ZeRO 1 of 2022)"},
    {KEY(parallelism, data_parallel), .kind = FIELD_CHOICE, .fallback = "ddp", .choices = CHOICES(DATA_PARALLELS),
     .choice_briefs = NAMES("all-reduces gradients in buckets, overlapped with the last backward",
                            "all-reduces gradients after the last backward; with ZeRO 3, no gather or scatter "
                            "overlaps computation",
                            "replica 0 gathers all gradients, updates all weights and sends them to all replicas",
                            "PyTorch's DataParallel: GPU 0 sends the model to all replicas at every forward"),
     .brief = "how replicas exchange gradients"},
    {KEY(parallelism, compression), .kind = FIELD_RECORD, .table = &compression_table, .fallback = "none",
     .brief = "compression of the gradients that replicas exchange"},
    {KEY(parallelism, local_steps), .kind = FIELD_INT, .min = 1, .max = 1000, .fallback = "1",
     .brief = "iterations that each replica makes alone before all replicas average their weights (local SGD); the "
              "result is the mean over these iterations"},
    {KEY(parallelism, first_bucket), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true,
     .fallback = "1 MiB", .brief = "size of DDP's first gradient bucket; ZeRO 3 has no buckets"},
    {KEY(parallelism, bucket), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true, .fallback = "25 MiB",
     .brief = "size of DDP's other gradient buckets"},
    {KEY(parallelism, flatten), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "synchronous: one all-reduce for all gradients of a stage; false: one all-reduce per tensor, one after "
              "another, as a loop over the parameters does; zero 3: one gather and one scatter for a layer (FSDP); "
              "false: one for each of its tensors of more than 100,000 parameters (DeepSpeed)"},
    {KEY(parallelism, live_parameters), .kind = FIELD_QUANTITY, .unit = UNIT_COUNT, .positive = true,
     .fallback = "1 B",
     .brief = "zero 3 that gathers tensor by tensor: no tensor is gathered ahead while a GPU has so many whole "
              "parameters or more (DeepSpeed's stage3_max_live_parameters)"},
    {KEY(parallelism, reuse_distance), .kind = FIELD_QUANTITY, .unit = UNIT_COUNT, .fallback = "1 B",
     .brief = "zero 3 that gathers tensor by tensor: a tensor stays whole if its next use comes before so many "
              "parameters of other tensors are used (DeepSpeed's stage3_max_reuse_distance)"},
    {KEY(parallelism, prefetch), .kind = FIELD_QUANTITY, .unit = UNIT_COUNT, .fallback = "50 M",
     .brief = "zero 3 that gathers tensor by tensor: with each tensor that is used so many parameters are gathered "
              "ahead, and the rest of the last tensor (DeepSpeed's stage3_prefetch_bucket_size); 0: none"},
    {KEY(parallelism, server), .kind = FIELD_CHOICE, .choices = server_names, .fallback = "star",
     .choice_briefs = NAMES("directly from and to each replica", "along a ring, as NCCL's reduce and broadcast",
                            "along a tree"),
     .brief = "how the parameter server gathers gradients and sends weights"},
    {KEY(parallelism, all_reduce), .kind = FIELD_CHOICE, .choice = all_reduce_name,
     .brief = "all-reduce algorithm (dtsim list collectives); ZeRO runs its two halves, a reduce-scatter and an "
              "all-gather, or ring's where it has none; left out: auto, what the communication library would take, "
              "where the cluster has a profile of one, else ring"},
    {KEY(parallelism, channels), .kind = FIELD_INT, .min = 0, .max = 64, .fallback = "0",
     .brief = "rings that an all-reduce uses at the same time; 0: one per NIC of a node if the group has several GPUs "
              "per node, else 1"},
    {KEY(parallelism, placement), .kind = FIELD_CHOICES, .choices = dimension_names,
     .fallback = "[tensor, data, pipeline]",
     .brief = "the degrees in the order in which they vary over the GPUs, the fastest first; GPUs are numbered node by "
              "node; if context is left out, it follows tensor"},
    {KEY(parallelism, split), .kind = FIELD_INTS, .max = 1000000,
     .brief = "number of layers of each stage (of each chunk, in model order); left out: as even as possible; if the "
              "layers do not divide evenly, the last stage and then the first stages get one layer less; or as "
              "software balances them"},
    {KEY(parallelism, balance), .kind = FIELD_CHOICE, .fallback = "layers", .choices = CHOICES(BALANCES),
     .choice_briefs = NAMES("as many layers to each stage", "so that the stage that takes longest takes the least"),
     .brief = "how stages share the layers where split is left out"},
};
static const struct table *strategy_options(struct arena *arena, void *object, void **extra)
{
    struct parallelism *spec = object;

    spec->options_table = spec->schedule.csv ? NULL : schedule_at((size_t)spec->schedule.name)->options;
    if (spec->options_table && !spec->options)
        spec->options = arena_alloc(arena, spec->options_table->size);
    *extra = spec->options;
    return spec->options_table;
}
static const struct table *strategy_options_at(size_t index)
{
    for (size_t i = 0; schedule_at(i); i++)
        if (schedule_at(i)->options && index-- == 0)
            return schedule_at(i)->options;
    return NULL;
}
/* The key is an option of another schedule: the user changed the schedule, or confused it with a similar one. */
static const char *option_misplaced(struct arena *arena, const void *object, const char *key)
{
    const struct parallelism *spec = object;
    const char *chosen = spec->schedule.csv ? "an order from a file" : schedule_at((size_t)spec->schedule.name)->name;

    for (size_t i = 0; schedule_at(i); i++)
        for (size_t k = 0; schedule_at(i)->options && k < schedule_at(i)->options->count; k++)
            if (!strcmp(schedule_at(i)->options->fields[k].key, key))
                return arena_printf(arena, "'%s' is an option of %s, not of %s", key, schedule_at(i)->name,
                                    chosen);
    return NULL;
}
const struct table strategy_table = {
    TABLE("strategy", "how the model is divided and in which order it is computed",
          parallelism, parallelism_fields),
    .extension = strategy_options, .extension_at = strategy_options_at, .misplaced = option_misplaced,
    .lent = "scatter_gather partitioned_outputs overlap_p2p one_communicator duplex_p2p overlap_tensor overlap_products "
            "overlap_gathers dispatch reduce_scatter first_bucket bucket flatten live_parameters reuse_distance prefetch server "
            "balance",
};

static const struct field recompute_spec_fields[] = {
    {KEY(recompute_spec, mode), .kind = FIELD_CHOICE, .fallback = "none", .choices = recompute_names,
     .choice_briefs = NAMES("all activations are kept", "the attention core is recomputed",
                            "each block keeps the results of its fused attention and of every second product, and "
                            "recomputes the others (torchtitan's selective_ac_option: op)",
                            "each block recomputes the results of some cheap modules (Megatron-LM's "
                            "recompute-modules)",
                            "everything is recomputed from the inputs of blocks, which are kept",
                            "each block recomputes the part that makes the stage fit in the least time"),
     .brief = "which activations are recomputed"},
    {KEY(recompute_spec, modules), .kind = FIELD_CHOICES, .choices = module_names,
     .choice_briefs = NAMES("norms before attention, MLP and experts",
                            "the functions between the two products of MLPs and experts",
                            "latent attention: norms, products and rotation from the latent vectors to queries, keys "
                            "and values"),
     .brief = "under modules: which; left out: all of these"},
    {KEY(recompute_spec, every), .kind = FIELD_INT, .min = 1, .max = 100000,
     .brief = "under full: only the input of every N-th block is kept, and all blocks are recomputed from these; left "
              "out: of every block"},
    {KEY(recompute_spec, blocks), .kind = FIELD_INT, .max = 100000,
     .brief = "under full: only the first N blocks of each chunk are recomputed, the others keep all activations "
              "(Megatron-LM's recompute-method block); left out: all blocks"},
    {KEY(recompute_spec, share), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .max = 1,
     .brief = "under full: only this share of each chunk's blocks, evenly spread, is recomputed, the others keep all "
              "activations (every second block: 0.5); left out: all blocks"},
    {KEY(recompute_spec, early_stop), .kind = FIELD_BOOL,
     .brief = "under full: the recomputation of a dense block without dropout stops before its last product (PyTorch's "
              "checkpoint with use_reentrant=False, since 2.1); left out: false"},
};
const struct table recompute_table = {
    TABLE("memory: recompute", "which activations the backward recomputes", recompute_spec, recompute_spec_fields),
    .shorthand = "mode", .bare = true, .lent = "early_stop",
};

static const struct field memory_spec_fields[] = {
    {.key = "precision",
     AT(memory_spec, precision.format),
     .kind = FIELD_CHOICE,
     .fallback = "mixed-fp16",
     .choices = CHOICES(PRECISIONS),
     .choice_briefs = NAMES("everything in fp32", "data in fp32, products on tensor cores in tf32",
                            "weights and products in fp16, master weights in fp32",
                            "weights and products in bf16, master weights in fp32",
                            "as mixed-bf16, but the blocks' products of weights are in fp8, one scale a tensor",
                            "the same, with a scale for 1 x 128 activations and 128 x 128 weights",
                            "the same, with a scale for 32 values", "the same, in 4 bits with a scale for 16 values"),
     .brief = "number formats of weights and products"},
    {.key = "fp8_weights",
     AT(memory_spec, precision.fp8_weights),
     .kind = FIELD_CHOICE,
     .fallback = "cast",
     .choices = CHOICES(FP8_WEIGHTS),
     .choice_briefs = NAMES("in every forward",
                            "once per iteration, with the update; they are kept in addition to the bf16 weights "
                            "(Megatron-LM's is_first_microbatch)",
                            "once per iteration, with the update; there are no bf16 weights (NeMo's fp8_params)"),
     .brief = "under mixed-fp8, mixed-fp8-block, mixed-mxfp8 and mixed-nvfp4: when weights are cast"},
    {.key = "optimizer",
     AT(memory_spec, precision.optimizer),
     .kind = FIELD_CHOICE,
     .fallback = "adam",
     .choices = CHOICES(OPTIMIZERS),
     .choice_briefs = NAMES("keeps two moments", "keeps two moments in 8 bits", "keeps one moment", "keeps no moment",
                            "keeps a factored second moment", "keeps a first moment and a factored second moment",
                            "keeps two moments, and computes norms of every tensor (Apex's FusedLAMB)",
                            "keeps two moments in half precision"),
     .brief = "the optimizer, which says what states each parameter has"},
    {.key = "master",
     AT(memory_spec, precision.master),
     .kind = FIELD_CHOICE,
     .fallback = "fp32",
     .choices = CHOICES(MASTERS),
     .choice_briefs = NAMES("a copy of the weights in fp32",
                            "the 16 bits by which fp32 weights exceed bf16 weights (Apex's store_param_remainders)",
                            "a copy of the weights in half precision", "no copy: the weights themselves are updated"),
     .brief = "under mixed precision: the master weights, which the update changes"},
    {.key = "gradients",
     AT(memory_spec, precision.gradients),
     .kind = FIELD_CHOICE,
     .fallback = "half",
     .choices = CHOICES(GRADIENTS),
     .choice_briefs = NAMES("kept and sent in the format of the weights",
                            "accumulated and sent in fp32 (Megatron-LM with bf16)",
                            "accumulated and sent in fp32, with a further copy in the format of the weights "
                            "(DeepSpeed)",
                            "kept in the format of the weights, sent in fp32 (FSDP's reduce_dtype)"),
     .brief = "under mixed precision: the format of gradients; left out under mixed-bf16 or narrower with master "
              "weights, up to ZeRO 1: fp32"},
    {.key = "clip_gradients",
     AT(memory_spec, precision.clip_gradients),
     .kind = FIELD_BOOL,
     .fallback = "true",
     .brief = "before an update the norm of all gradients is computed, and the gradients are scaled by it "
              "(max_grad_norm)"},
    {.key = "fused_optimizer",
     AT(memory_spec, precision.fused_optimizer),
     .kind = FIELD_BOOL,
     .fallback = "true",
     .brief = "one kernel reads gradients, weights and states once and writes them (Apex's FusedAdam, PyTorch's "
              "fused=True); false: Adam goes over them operation by operation (PyTorch's foreach)"},
    {.key = "fused_accumulation",
     AT(memory_spec, precision.fused_accumulation),
     .kind = FIELD_BOOL,
     .fallback = "false",
     .brief = "the products that compute weight gradients also add them to the accumulated gradients (Megatron-LM "
              "since 2022); false: a separate kernel adds them after each backward"},
    {KEY(memory_spec, recompute), .also = "checkpointing activation_checkpointing gradient_checkpointing",
     .kind = FIELD_RECORD, .table = &recompute_table, .fallback = "none",
     .brief = "which activations the backward recomputes: a mode, or a mapping such as {mode: full, blocks: 4}"},
    {KEY(memory_spec, offload), .kind = FIELD_CHOICES, .single = true, .fallback = "none", .choices = CHOICES(OFFLOADS),
     .choice_briefs = NAMES("nothing is offloaded", "activations that do not fit in GPU memory",
                            "half-precision weights", "optimizer states; the host's CPUs also do the update"),
     .brief = "what is kept in host memory until it is needed"},
    {KEY(memory_spec, lora), .kind = FIELD_OPTIONAL, .table = &lora_table,
     .brief = "low-rank adapters are trained and the model's own weights are frozen (LoRA)"},
    {KEY(memory_spec, activations), .kind = FIELD_CHOICE, .fallback = "korthikanti",
     .choices = CHOICES(ACTIVATION_FORMULAS),
     .choice_briefs = NAMES("every tensor that the backward reads", "ZeRO's estimate: 12 x hidden values per token"),
     .brief = "the formula for the activations that a block keeps"},
    {KEY(memory_spec, cross_entropy), .kind = FIELD_CHOICE, .fallback = "fp32", .choices = CHOICES(CROSS_ENTROPIES),
     .choice_briefs = NAMES("logits are converted to fp32 and kept in fp32",
                            "PyTorch's log_softmax of the logits in their own format",
                            "one kernel that reads the logits in their own format",
                            "as fp32, compiled into fewer kernels (Megatron-LM's cross_entropy_loss_fusion)"),
     .brief = "how the loss is computed from the logits"},
    {KEY(memory_spec, logits), .kind = FIELD_CHOICE, .fallback = "freed", .choices = CHOICES(LOGITS),
     .choice_briefs = NAMES("after the backward of the output layer",
                            "after the whole backward, by a training loop that then computes two metrics from them "
                            "(Composer)"),
     .brief = "when the memory of the logits is freed"},
    {KEY(memory_spec, fused_gradients), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "a GPU has an fp32 buffer for all its gradients (under ZeRO: for its share): 4 bytes per parameter"},
    {KEY(memory_spec, flat_gradients), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "gradients are copied into a bucket before they are reduced, and the gradients of this GPU's share are "
              "copied into one more buffer before the update (DeepSpeed's ZeRO 1 and 2)"},
    {KEY(memory_spec, bucket_copies), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "without ZeRO: DDP's buckets are copies of the gradients (PyTorch without gradient_as_bucket_view)"},
    {KEY(memory_spec, gradient_accesses), .kind = FIELD_INT, .min = 0, .max = 100, .fallback = "0",
     .brief = "up to zero 2, where replicas sum gradients: how often kernels of their own read or write each gradient "
              "for a sum: 1 to clear it or to look it through for NaN, 2 to divide it by the number of replicas, to "
              "copy it into a bucket, or to copy it back"},
    {KEY(memory_spec, context), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES,
     .brief = "memory of the driver, CUDA and NCCL; left out: 1 GiB, and 544 MiB for each communicator of 2 GPUs or "
              "688 MiB for each larger one"},
    {KEY(memory_spec, fragmentation), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .max = 0.9,
     .brief = "share of the allocator's memory that fragmentation makes unusable; left out: 0.055, or 0 for a model "
              "whose times are given"},
    {KEY(memory_spec, limit), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true,
     .brief = "memory of a GPU that the training may use; left out: all of it"},
    {KEY(memory_spec, enforce), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "a scenario that needs more memory than the limit is an error"},
};
const struct table memory_table = {
    TABLE("memory", "which data is stored, where and in which format", memory_spec, memory_spec_fields),
    .lent = "fp8_weights master gradients clip_gradients fused_optimizer fused_accumulation cross_entropy logits fused_gradients "
            "flat_gradients bucket_copies gradient_accesses fragmentation",
};
static const struct field simulation_spec_fields[] = {
    {KEY(simulation_spec, engine), .kind = FIELD_CHOICE, .choices = engine_names, .fallback = "simgrid",
     .brief = "what replays the program; simgrid: transfers share the bandwidth of links, by the library SimGrid; fast: "
              "the same times, many times sooner (what sweeps, comparisons and validation take if nothing is said); "
              "ideal: every transfer has its links to itself"},
    {KEY(simulation_spec, collectives), .kind = FIELD_CHOICE, .fallback = "auto", .choices = CHOICES(COLLECTIVES_MODES),
     .choice_briefs = NAMES("measured where that gives the same times and bytes as messages; else messages if there are "
                            "few of them or if collectives share links with other traffic, else measured",
                            "every message is a flow of its own",
                            "each distinct collective is simulated once, alone, and its duration is used wherever it "
                            "runs; this ignores other traffic on its links"),
     .brief = "how collectives are simulated; the collectives of ZeRO 3 are always measured"},
    {KEY(simulation_spec, fold), .kind = FIELD_CHOICE, .fallback = "auto", .choices = CHOICES(FOLDS),
     .brief = "whether one replica stands for all; auto: if all are identical and collectives are measured, unless "
              "'collectives: auto' measures a small scenario; off: all are simulated"},
    {KEY(simulation_spec, jitter), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .max = 1, .fallback = "0",
     .brief = "standard deviation of the time of each work, divided by its mean (log-normal factor of mean 1); turns "
              "folding off"},
    {KEY(simulation_spec, stragglers), .kind = FIELD_LIST, .table = &straggler_table, .single = true,
     .may_be_empty = true,
     .brief = "GPUs that compute slower; of a tensor-parallel group the slowest decides; turns folding off"},
    {KEY(simulation_spec, slow_links), .kind = FIELD_LIST, .table = &slow_link_table, .single = true,
     .may_be_empty = true,
     .brief = "NICs with less bandwidth, in both directions; turns folding off"},
    {KEY(simulation_spec, seed), .kind = FIELD_INT, .min = 0, .max = 2147483647, .fallback = "1",
     .brief = "seed of all random numbers"},
    {KEY(simulation_spec, repeat), .kind = FIELD_INT, .min = 1, .max = 10000, .fallback = "1",
     .brief = "number of replays with jitter, each with its seed, from 'seed' on; the result is the run of the median "
              "time, with quantiles of all"},
};
static const struct table simulation_table = {
    TABLE("simulation", "how the program is replayed", simulation_spec, simulation_spec_fields),
};

static bool batch_dispensable(const struct node *scenario)
{
    return node_at(scenario, "strategy.schedule.csv") != NULL;
}

static int load_model(struct arena *arena, const struct node *node, void *object, struct error *err)
{
    return model_load(arena, node, object, err);
}

static int load_cluster(struct arena *arena, const struct node *node, void *object, struct error *err)
{
    return cluster_load(arena, node, object, err);
}

static const struct field scenario_fields[] = {
    {KEY(scenario, name), .kind = FIELD_STRING, .brief = "name of the scenario in results; left out: the file's name"},
    {KEY(scenario, model), .kind = FIELD_RECORD, .table = &model_table, .load = load_model, .required = true,
     .brief = "the network that is trained"},
    {KEY(scenario, cluster), .kind = FIELD_RECORD, .table = &cluster_table, .load = load_cluster, .required = true,
     .brief = "the cluster: a name (dtsim list platforms), a file, or a mapping"},
    {KEY(scenario, batch), .kind = FIELD_RECORD, .table = &batch_table, .required = true,
     .dispensable = batch_dispensable,
     .brief = "samples and micro-batches; not needed with an order from a file, which has its own"},
    {.key = "strategy", AT(scenario, parallelism), .kind = FIELD_RECORD, .table = &strategy_table,
     .brief = "parallelism; a key about the group of a degree has no effect if that degree is 1"},
    {KEY(scenario, memory), .kind = FIELD_RECORD, .table = &memory_table,
     .brief = "number formats, optimizer, recomputation and offloading"},
    {KEY(scenario, costs), .kind = FIELD_RECORD, .table = &costs_table, .brief = "how kernels are timed"},
    {KEY(scenario, software), .kind = FIELD_RECORD, .table = &software_table,
     .brief = "the framework that trains: a name (dtsim list software), or a mapping"},
    {KEY(scenario, simulation), .kind = FIELD_RECORD, .table = &simulation_table,
     .brief = "how the iteration is simulated"},
};
const struct table scenario_table = {TABLE("scenario", "one training iteration", scenario, scenario_fields)};
