/* What a scenario may hold, once: parsing, defaults, resolved output, help and schema all come from these tables. */
#include "scenario/scenario.h"

#include <string.h>

const char *const dimension_names[] = {
    [DIMENSION_TENSOR] = "tensor", [DIMENSION_DATA] = "data", [DIMENSION_PIPELINE] = "pipeline",
    [DIMENSION_CONTEXT] = "context", NULL,
};
static const char *const recompute_rule_names[] = {
    [RECOMPUTE_WITH_GRADIENT] = "with-gradient", [RECOMPUTE_EARLY] = "early",
    [RECOMPUTE_JUST_IN_TIME] = "just-in-time", NULL,
};
const char *const recompute_names[] = {"none", "selective", "full", "optimal", NULL};

#define NAMES(...) (const char *const[]){__VA_ARGS__, NULL}
#define TABLE(text, help, record) \
    .name = text, .brief = help, .fields = record##_fields, .count = COUNT(record##_fields), \
    .size = sizeof(struct record), .node_offset = offsetof(struct record, node)

#define MEMBER(member) .offset = offsetof(struct batch, member)
static const struct field batch_fields[] = {
    {.key = "global", .kind = FIELD_INT, MEMBER(global), .min = 1, .max = 1e9,
     .brief = "samples an iteration, over all replicas"},
    {.key = "micro", .kind = FIELD_INT, MEMBER(micro), .min = 1, .max = 1e6, .fallback = "1",
     .brief = "samples a micro-batch"},
    {.key = "micro_batches", .kind = FIELD_INT, MEMBER(micro_batches), .min = 1, .max = 1e6,
     .brief = "micro-batches per replica; instead of global"},
    {.key = "count", .kind = FIELD_INT, MEMBER(count), .min = 1, .max = 1e6,
     .brief = "batches in a row, for schedules without a flush between them (pipedream-2bw)"},
};
#undef MEMBER
static const struct table batch_table = {TABLE("batch", "how many samples an iteration trains on", batch)};

#define MEMBER(member) .offset = offsetof(struct schedule_spec, member)
static const struct field schedule_spec_fields[] = {
    {.key = "name", .kind = FIELD_CHOICE, MEMBER(name), .choice = strategy_name,
     .brief = "one that dtsim knows (dtsim list strategies)"},
    {.key = "csv", .kind = FIELD_STRING, MEMBER(csv),
     .brief = "a file with an order of one's own, as 'show --orders' and PyTorch write it: a line a rank, cells such "
              "as 0F0"},
    {.key = "recomputation",
     .kind = FIELD_CHOICE,
     MEMBER(recomputation),
     .choices = recompute_rule_names,
     .brief = "with csv: when a recomputation may begin, once the gradient is there, at once, or to end with the next "
              "stage's backward; left out: with-gradient"},
};
#undef MEMBER
static const struct table schedule_table = {
    TABLE("strategy: schedule", "a schedule by its name, or an order from a file", schedule_spec),
    .shorthand = "name", .bare = true, .exactly_one = "name csv",
};

#define MEMBER(member) .offset = offsetof(struct compression_spec, member)
static const struct field compression_spec_fields[] = {
    {.key = "method", .kind = FIELD_CHOICE, MEMBER(method), .required = true,
     .choices = NAMES("none", "powersgd", "top-k", "quantized"),
     .brief = "low-rank factors of every matrix, the largest values, or fewer bits a value"},
    {.key = "rank", .kind = FIELD_INT, MEMBER(rank), .min = 1, .max = 128,
     .brief = "powersgd: columns of the factors; left out: 1"},
    {.key = "share", .kind = FIELD_QUANTITY, MEMBER(share), .unit = UNIT_NUMBER, .positive = true, .max = 1,
     .brief = "top-k: of the values, those that are sent; left out: 0.01"},
    {.key = "bits", .kind = FIELD_INT, MEMBER(bits), .min = 1, .max = 16,
     .brief = "quantized: bits a value, a scale beside each bucket; left out: 8"},
    {.key = "error_feedback", .kind = FIELD_BOOL, MEMBER(error_feedback),
     .brief = "what was not sent is kept and added to the next gradients; left out: true"},
};
#undef MEMBER
static const struct table compression_table = {
    TABLE("strategy: compression", "what is sent instead of gradients", compression_spec),
    .shorthand = "method", .bare = true,
};

#define MEMBER(member) .offset = offsetof(struct strategy_spec, member)
static const struct field strategy_spec_fields[] = {
    {.key = "schedule",
     .kind = FIELD_RECORD,
     MEMBER(schedule),
     .table = &schedule_table,
     .fallback = "1f1b",
     .brief = "pipeline schedule: a name (dtsim list strategies), or {csv: FILE}"},
    {.key = "tensor", .kind = FIELD_INT, MEMBER(tensor), .min = 1, .max = 65536, .fallback = "1",
     .brief = "tensor-parallel degree"},
    {.key = "pipeline",
     .kind = FIELD_INT,
     MEMBER(pipeline),
     .min = 1,
     .max = 65536,
     .fallback = "1",
     .brief = "pipeline-parallel degree: ranks of one replica"},
    {.key = "data",
     .kind = FIELD_INT,
     MEMBER(data),
     .min = 1,
     .max = 1048576,
     .brief = "data-parallel degree: replicas; left out: what remains of the cluster"},
    {.key = "chunks", .kind = FIELD_INT, MEMBER(chunks), .min = 1, .max = 1024,
     .brief = "model chunks per rank; left out: the fewest that the schedule works with"},
    {.key = "context",
     .kind = FIELD_INT,
     MEMBER(context),
     .min = 1,
     .max = 65536,
     .fallback = "1",
     .brief = "context-parallel degree: GPUs that divide the tokens of every sample"},
    {.key = "context_attention",
     .kind = FIELD_CHOICE,
     MEMBER(context_attention),
     .choices = NAMES("ring", "all-gather"),
     .fallback = "ring",
     .brief = "they pass keys and values around while they compute; or gather them all before"},
    {.key = "expert",
     .kind = FIELD_INT,
     MEMBER(expert),
     .min = 1,
     .max = 65536,
     .fallback = "1",
     .brief = "expert-parallel degree: replicas (data x context) that divide the experts"},
    {.key = "capacity_factor",
     .kind = FIELD_QUANTITY,
     MEMBER(capacity_factor),
     .unit = UNIT_NUMBER,
     .min = 0,
     .max = 1000,
     .fallback = "0",
     .brief = "rows that an expert computes, padded, over those of balanced routing, 1 or more; 0: no padding"},
    {.key = "sequence_parallel", .kind = FIELD_BOOL, MEMBER(sequence_parallel), .fallback = "false",
     .brief = "activations outside the tensor-parallel products divided along the sequence"},
    {.key = "scatter_gather", .kind = FIELD_BOOL, MEMBER(scatter_gather), .fallback = "true",
     .brief = "a tensor group sends each boundary once, in shares that the receivers gather, instead of once a GPU; "
              "under sequence_parallel always"},
    {.key = "partitioned_outputs", .kind = FIELD_BOOL, MEMBER(partitioned_outputs), .fallback = "false",
     .brief = "a GPU keeps but its share of the boundary that it sent, which the group gathers again before its "
              "backward; every gather of a boundary also clears, copies and clones it (DeepSpeed's pipeline engine)"},
    {.key = "overlap_p2p", .kind = FIELD_BOOL, MEMBER(overlap_p2p), .fallback = "true",
     .brief = "a stage computes on while it sends to its neighbours; false: it waits until they have it, as "
              "Megatron-LM before --overlap-p2p-communication and DeepSpeed's pipeline engine"},
    {.key = "one_communicator", .kind = FIELD_BOOL, MEMBER(one_communicator), .fallback = "false",
     .brief = "over sockets: a stage's sends and receives belong to one NCCL communicator, so that a receive waits "
              "until the sockets have taken what was sent before it, and the next work with it"},
    {.key = "duplex_p2p", .kind = FIELD_BOOL, MEMBER(duplex_p2p), .fallback = "true",
     .brief = "neighbouring stages send to each other at once (Megatron-LM's batched calls); false: in turn "
              "(DeepSpeed's pipeline engine)"},
    {.key = "overlap_tensor", .kind = FIELD_BOOL, MEMBER(overlap_tensor),
     .brief = "the tensor group sums the gradient of a product's input while that of its weights is computed, as "
              "Megatron-LM since 2022, but not DeepSpeed's forks of it; left out: with sequence_parallel"},
    {.key = "overlap_products", .kind = FIELD_BOOL, MEMBER(overlap_products), .fallback = "false",
     .brief = "what the tensor group gathers for a product, or sums behind one, travels beside pieces of it "
              "(Transformer Engine's user buffers, ub_tp_comm_overlap); with sequence_parallel"},
    {.key = "zero", .kind = FIELD_INT, MEMBER(zero), .min = 0, .max = 3, .fallback = "0",
     .brief = "ZeRO stage: replicas share 1 optimizer states, 2 also gradients, 3 also parameters (FSDP)"},
    {.key = "shard", .kind = FIELD_INT, MEMBER(shard), .min = 1, .max = 1048576,
     .brief = "replicas among which ZeRO divides, such as those of a node (FSDP's hybrid sharding, MiCS); left out: "
              "all"},
    {.key = "reduce_scatter", .kind = FIELD_BOOL, MEMBER(reduce_scatter), .fallback = "true",
     .brief = "under ZeRO each replica gets the sums of its share; false, with ZeRO 1: all get all by an all-reduce "
              "(DeepSpeed's reduce_scatter: false, its bf16 optimizer, and its ZeRO 1 of 2022)"},
    {.key = "data_parallel",
     .kind = FIELD_CHOICE,
     MEMBER(data_parallel),
     .fallback = "ddp",
     .choices = NAMES("ddp", "synchronous", "parameter-server", "dataparallel"),
     .brief = "gradient all-reduce in buckets during the last backward; at once after it, and with ZeRO 3 nothing is "
              "gathered or scattered beside computation; a server (replica 0), which gathers all gradients, "
              "updates, and sends all weights; or PyTorch's DataParallel, which replicates the model from GPU 0 at "
              "every forward"},
    {.key = "compression",
     .kind = FIELD_RECORD,
     MEMBER(compression),
     .table = &compression_table,
     .fallback = "none",
     .brief = "of gradients, for their sum over the replicas"},
    {.key = "local_steps",
     .kind = FIELD_INT,
     MEMBER(local_steps),
     .min = 1,
     .max = 1000,
     .fallback = "1",
     .brief = "iterations that a replica makes alone before all average their weights (local SGD); the result is their "
              "mean"},
    {.key = "first_bucket", .kind = FIELD_QUANTITY, MEMBER(first_bucket), .unit = UNIT_BYTES, .positive = true,
     .fallback = "1 MiB",
     .brief = "size of DDP's first gradient bucket; ZeRO 3 has none"},
    {.key = "bucket", .kind = FIELD_QUANTITY, MEMBER(bucket), .unit = UNIT_BYTES, .positive = true,
     .fallback = "25 MiB",
     .brief = "size of DDP's further gradient buckets"},
    {.key = "flatten", .kind = FIELD_BOOL, MEMBER(flatten), .fallback = "true",
     .brief = "synchronous: one all-reduce for all gradients of a stage; false: one a tensor, one after another, as a "
              "loop over the parameters does"},
    {.key = "server", .kind = FIELD_CHOICE, MEMBER(server), .choices = server_names, .fallback = "star",
     .brief = "how a server gathers and sends: to and from each replica; along a ring or a tree, as NCCL's reduce and "
              "broadcast"},
    {.key = "all_reduce",
     .kind = FIELD_CHOICE,
     MEMBER(all_reduce),
     .choice = all_reduce_name,
     .fallback = "ring",
     .brief = "all-reduce algorithm (dtsim list collectives); ZeRO runs its two halves, a reduce-scatter and an "
              "all-gather, or ring's where it has none"},
    {.key = "channels",
     .kind = FIELD_INT,
     MEMBER(channels),
     .min = 0,
     .max = 64,
     .fallback = "0",
     .brief = "rings of an all-reduce at once; 0: as many as a node has NICs where the group has several GPUs a node"},
    {.key = "placement",
     .kind = FIELD_CHOICES,
     MEMBER(placement),
     .choices = dimension_names,
     .fallback = "[tensor, data, pipeline]",
     .brief = "which degree varies fastest over the GPUs, numbered node by node; context, if left out, after tensor"},
    {.key = "split",
     .kind = FIELD_INTS,
     MEMBER(split),
     .max = 1000000,
     .brief = "layers of every stage (of every chunk, in model order); left out: as even as they divide, the last "
              "stage and then the first ones one less where they do not"},
};
#undef MEMBER
static const struct table *strategy_options(struct arena *arena, void *object, void **extra)
{
    struct strategy_spec *spec = object;

    spec->options_table = spec->schedule.csv ? NULL : strategy_at((size_t)spec->schedule.name)->options;
    if (spec->options_table && !spec->options)
        spec->options = arena_alloc(arena, spec->options_table->size);
    *extra = spec->options;
    return spec->options_table;
}
/* An option of another schedule: the user changed the schedule, or took its neighbour for it. */
static const char *option_misplaced(struct arena *arena, const void *object, const char *key)
{
    const struct strategy_spec *spec = object;
    const char *chosen = spec->schedule.csv ? "an order from a file" : strategy_at((size_t)spec->schedule.name)->name;

    for (size_t i = 0; strategy_at(i); i++)
        for (size_t k = 0; strategy_at(i)->options && k < strategy_at(i)->options->count; k++)
            if (!strcmp(strategy_at(i)->options->fields[k].key, key))
                return arena_printf(arena, "'%s' is an option of %s, not of %s", key, strategy_at(i)->name,
                                    chosen);
    return NULL;
}
static const struct table strategy_table = {
    TABLE("strategy", "how the model is divided and in which order it is computed", strategy_spec),
    .extension = strategy_options, .misplaced = option_misplaced,
};

#define MEMBER(member) .offset = offsetof(struct recompute_spec, member)
static const struct field recompute_spec_fields[] = {
    {.key = "mode", .kind = FIELD_CHOICE, MEMBER(mode), .fallback = "none", .choices = recompute_names,
     .brief = "none; the attention core (selective); everything but the inputs of blocks (full); or of each block "
              "what makes the stage fit for the least time (optimal)"},
    {.key = "every", .kind = FIELD_INT, MEMBER(every), .min = 1, .max = 100000,
     .brief = "under full: all are computed again, from the input of every so many-th; left out: of each"},
    {.key = "blocks", .kind = FIELD_INT, MEMBER(blocks), .max = 100000,
     .brief = "under full: of the first so many blocks of each chunk, the others keep all (Megatron-LM's "
              "recompute-method block); left out: of all"},
    {.key = "share", .kind = FIELD_QUANTITY, MEMBER(share), .unit = UNIT_NUMBER, .max = 1,
     .brief = "under full: of this share of each chunk's blocks, evenly spread, the others keep all (every second "
              "one: 0.5); left out: of all"},
    {.key = "early_stop", .kind = FIELD_BOOL, MEMBER(early_stop),
     .brief = "under full: of a dense block without dropout, its last product and all behind it are not (PyTorch's "
              "checkpoint with use_reentrant=False, since 2.1); left out: false"},
};
#undef MEMBER
static const struct table recompute_table = {
    TABLE("memory: recompute", "which activations are computed again in the backward", recompute_spec),
    .shorthand = "mode", .bare = true,
};

#define MEMBER(member) .offset = offsetof(struct memory_spec, member)
static const struct field memory_spec_fields[] = {
    {.key = "precision", .kind = FIELD_CHOICE, MEMBER(precision), .fallback = "mixed-fp16",
     .choices = NAMES("fp32", "tf32", "mixed-fp16", "mixed-bf16", "mixed-fp8"),
     .brief = "mixed: half-precision weights and products, fp32 master weights; fp8: bf16 but for the blocks' "
              "products"},
    {.key = "fp8_weights", .kind = FIELD_CHOICE, MEMBER(fp8_weights), .fallback = "cast",
     .choices = NAMES("cast", "kept", "primary"),
     .brief = "under mixed-fp8: cast in every forward; once an iteration, with the update, and kept beside those in "
              "bf16 (Megatron-LM's is_first_microbatch); or kept alone (NeMo's fp8_params)"},
    {.key = "optimizer", .kind = FIELD_CHOICE, MEMBER(optimizer), .fallback = "adam",
     .choices = NAMES("adam", "adam-8bit", "momentum", "sgd", "adafactor", "adafactor-momentum", "lamb", "adam-half"),
     .brief = "its states: two moments, the same in 8 bits, one, none, a factored second one, that and a first; lamb "
              "keeps Adam's and takes norms of every tensor (Apex's FusedLAMB); two in half precision"},
    {.key = "master", .kind = FIELD_CHOICE, MEMBER(master), .fallback = "fp32",
     .choices = NAMES("fp32", "remainders", "half", "none"),
     .brief = "weights that the update adds to, under mixed precision: whole; the 16 bits that weights in bf16 lack "
              "(Apex's store_param_remainders); in half precision; or those that compute themselves"},
    {.key = "gradients", .kind = FIELD_CHOICE, MEMBER(gradients), .fallback = "half",
     .choices = NAMES("half", "fp32", "converted", "widened"),
     .brief = "their format under mixed precision: as the weights; added up and sent in fp32 (Megatron-LM's bf16); "
              "that, from a copy beside them (DeepSpeed's); as the weights, sent in fp32 (FSDP's reduce_dtype); left "
              "out under mixed-bf16 or mixed-fp8 with master weights, up to ZeRO 1: fp32"},
    {.key = "clip_gradients", .kind = FIELD_BOOL, MEMBER(clip_gradients), .fallback = "true",
     .brief = "before an update the norm of all gradients is taken, and they are scaled by it (max_grad_norm)"},
    {.key = "fused_accumulation", .kind = FIELD_BOOL, MEMBER(fused_accumulation), .fallback = "false",
     .brief = "weight products add to the gradients themselves (Megatron-LM since 2022); else a pass after each "
              "backward"},
    {.key = "recompute", .kind = FIELD_RECORD, MEMBER(recompute), .table = &recompute_table, .fallback = "none",
     .brief = "activations computed again in the backward: a mode, or {mode: full, blocks: 4}"},
    {.key = "offload", .kind = FIELD_CHOICES, MEMBER(offload), .single = true, .fallback = "none",
     .choices = NAMES("none", "activations", "weights", "optimizer"),
     .brief = "what waits in host memory: activations that do not fit, half-precision weights, optimizer states with "
              "the update"},
    {.key = "lora", .kind = FIELD_OPTIONAL, MEMBER(lora), .table = &lora_table,
     .brief = "low-rank adapters are trained, the model's own weights are frozen"},
    {.key = "activations", .kind = FIELD_CHOICE, MEMBER(activations), .fallback = "korthikanti",
     .choices = NAMES("korthikanti", "rajbhandari"),
     .brief = "formula of what a block keeps: all that a backward reads; or ZeRO's estimate, 12 hidden values a token"},
    {.key = "cross_entropy", .kind = FIELD_CHOICE, MEMBER(cross_entropy), .fallback = "fp32",
     .choices = NAMES("fp32", "plain", "fused", "compiled"),
     .brief = "logits converted and kept in fp32 for the loss; PyTorch's log_softmax of logits as they are; one kernel "
              "that reads them as they are; or fp32 compiled (Megatron-LM's cross_entropy_loss_fusion)"},
    {.key = "logits", .kind = FIELD_CHOICE, MEMBER(logits), .fallback = "freed", .choices = NAMES("freed", "held"),
     .brief = "after the output layer's backward; held: until all of the backward is over, by a training loop that "
              "computes two metrics from them afterwards (Composer)"},
    {.key = "fused_gradients", .kind = FIELD_BOOL, MEMBER(fused_gradients), .fallback = "false",
     .brief = "one fp32 buffer for all gradients (of this GPU's share under ZeRO): 4 bytes a parameter"},
    {.key = "flat_gradients", .kind = FIELD_BOOL, MEMBER(flat_gradients), .fallback = "false",
     .brief = "gradients are copied into a bucket to be reduced, and those that this GPU updates by stand once more in "
              "one piece (DeepSpeed's ZeRO 1 and 2)"},
    {.key = "bucket_copies", .kind = FIELD_BOOL, MEMBER(bucket_copies), .fallback = "false",
     .brief = "without ZeRO: DDP's buckets are copies of the gradients (PyTorch without gradient_as_bucket_view)"},
    {.key = "context", .kind = FIELD_QUANTITY, MEMBER(context), .unit = UNIT_BYTES,
     .brief = "of driver, CUDA and NCCL; left out: 1 GiB, and 544 or 688 MiB a communicator of 2 or more GPUs"},
    {.key = "fragmentation", .kind = FIELD_QUANTITY, MEMBER(fragmentation), .unit = UNIT_NUMBER, .max = 0.9,
     .brief = "share of the allocator's memory that cannot be used; left out: 0.055"},
    {.key = "limit", .kind = FIELD_QUANTITY, MEMBER(limit), .unit = UNIT_BYTES, .positive = true,
     .brief = "memory of a GPU that may be used; left out: all of it"},
    {.key = "enforce", .kind = FIELD_BOOL, MEMBER(enforce), .fallback = "true",
     .brief = "a scenario that needs more is infeasible"},
};
#undef MEMBER
static const struct table memory_table = {TABLE("memory", "what is stored, and in which format", memory_spec)};

#define MEMBER(member) .offset = offsetof(struct simulation_spec, member)
static const struct field simulation_spec_fields[] = {
    {.key = "engine", .kind = FIELD_CHOICE, MEMBER(engine), .choices = engine_names, .fallback = "simgrid",
     .brief = "simgrid: flows share links; ideal: nothing contends"},
    {.key = "collectives",
     .kind = FIELD_CHOICE,
     MEMBER(collectives),
     .fallback = "auto",
     .choices = NAMES("auto", "messages", "measured"),
     .brief =
         "every message a flow, or each distinct collective replayed alone once (blind to other traffic on its links); "
          "auto: messages while they are few, or where collectives meet others on their links; ZeRO 3's are always "
          "measured"},
    {.key = "fold", .kind = FIELD_CHOICE, MEMBER(fold), .fallback = "auto", .choices = NAMES("auto", "off"),
     .brief = "simulate one replica where all are identical and collectives are measured"},
    {.key = "jitter", .kind = FIELD_QUANTITY, MEMBER(jitter), .unit = UNIT_NUMBER, .max = 1, .fallback = "0",
     .brief = "standard deviation of the time of each work, as a share of it (log-normal, mean 1); no folding then"},
    {.key = "seed", .kind = FIELD_INT, MEMBER(seed), .min = 0, .max = 2147483647, .fallback = "1",
     .brief = "of everything random"},
};
#undef MEMBER
static const struct table simulation_table = {TABLE("simulation", "how the program is replayed", simulation_spec)};

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

#define MEMBER(member) .offset = offsetof(struct scenario, member)
static const struct field scenario_fields[] = {
    {.key = "name", .kind = FIELD_STRING, MEMBER(name), .brief = "of the results; left out: the file's name"},
    {.key = "model", .kind = FIELD_RECORD, MEMBER(model), .table = &model_table, .load = load_model, .required = true,
     .brief = "the network that is trained"},
    {.key = "cluster", .kind = FIELD_RECORD, MEMBER(cluster), .table = &cluster_table, .load = load_cluster,
     .required = true, .brief = "the machines: a name (dtsim list platforms), a file, or a mapping"},
    {.key = "batch", .kind = FIELD_RECORD, MEMBER(batch), .table = &batch_table, .required = true,
     .dispensable = batch_dispensable, .brief = "samples and micro-batches; an order from a file has its own"},
    {.key = "strategy", .kind = FIELD_RECORD, MEMBER(strategy), .table = &strategy_table,
     .brief = "parallelism; what is said of the GPUs of a degree changes nothing where that is 1"},
    {.key = "memory", .kind = FIELD_RECORD, MEMBER(memory), .table = &memory_table, .brief = "formats and policies"},
    {.key = "costs", .kind = FIELD_RECORD, MEMBER(costs), .table = &costs_table, .brief = "compute costs"},
    {.key = "simulation", .kind = FIELD_RECORD, MEMBER(simulation), .table = &simulation_table, .brief = "the engine"},
};
#undef MEMBER
const struct table scenario_table = {TABLE("scenario", "one training iteration", scenario)};
