/* All keys of `strategy:`. */
#include "scenario/scenario_internal.h"

#include <string.h>

#include "base/base.h"
#include "collective/collective.h"
#include "collective/token_dispatcher.h"
#include "config/field.h"
#include "hardware/cluster.h"
#include "layout/stage_spec.h"
#include "model/model.h"
#include "schedule/schedule.h"

const char *const dimension_names[] = {
    [DIMENSION_TENSOR] = "tensor", [DIMENSION_DATA] = "data", [DIMENSION_PIPELINE] = "pipeline",
    [DIMENSION_CONTEXT] = "context", NULL,
};
_Static_assert(COUNT(dimension_names) == DIMENSION_COUNT + 1, "a name for every dimension");
const char *const server_names[] = {"star", "ring", "tree", NULL};
static const char *const recompute_rule_names[] = {
    [RECOMPUTE_WITH_GRADIENT] = "with-gradient", [RECOMPUTE_EARLY] = "early",
    [RECOMPUTE_JUST_IN_TIME] = "just-in-time", NULL,
};
_Static_assert(COUNT(recompute_rule_names) == RECOMPUTE_JUST_IN_TIME + 2, "a name for every rule");

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
const struct table schedule_table = {
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
const struct table compression_table = {
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
     .brief = "the tensor-parallel group divides activations outside the tensor-parallel GEMMs along the sequence"},
    {KEY(parallelism, context), .also = "cp context_parallel_size",
     .kind = FIELD_INT, .min = 1, .max = 65536, .fallback = "1",
     .brief = "context-parallel degree: GPUs that divide the tokens of every sample"},
    {KEY(parallelism, context_attention), .kind = FIELD_CHOICE, .choices = CHOICES(CONTEXT_ATTENTIONS),
     .fallback = "ring",
     .choice_briefs = NAMES("the GPUs pass keys and values around a ring while they compute",
                            "the GPUs gather all keys and values before they compute",
                            "each GPU gets all tokens of its share of the heads, and gives its results back "
                            "(DeepSpeed-Ulysses)",
                            "all-to-all among neighbours, as many as `ulysses` says, and rings from one such group to "
                            "the next (Megatron Core's a2a+p2p, USP)"),
     .brief = "how the GPUs of a context-parallel group exchange what attention reads"},
    {KEY(parallelism, ulysses), .also = "ulysses_degree", .kind = FIELD_INT, .min = 1, .max = 65536,
     .brief = "neighbouring GPUs of a context group that exchange heads for tokens under context_attention hybrid; left "
              "out: those of a node"},
    {KEY(parallelism, context_blocks), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "a context group attends to gathered keys and values block by block too, kernels of their own merge the "
              "blocks' results and add up gradients in fp32, and gradients of keys and values go around the ring in fp32 "
              "(PyTorch's context parallelism); false: gathered ones at once, and their gradients are scattered"},
    {KEY(parallelism, overlap_context), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "keys, values and gradients travel while a block that is already there is attended to; false: attention "
              "waits for each (functional collectives in a model that torch.compile traced)"},
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
    {KEY(parallelism, dispatcher), .also = "moe_token_dispatcher_type moe_flex_dispatcher_backend token_dispatcher",
     .kind = FIELD_CHOICE, .choices = CHOICES(TOKEN_DISPATCHERS),
     .choice_briefs = NAMES("each GPU sends a copy of a token for each of its experts (NCCL's all-to-all)",
                            "each GPU gathers all tokens of the expert group, and results are reduce-scattered",
                            "a token goes to each GPU and each node that has any of its experts once (DeepEP)",
                            "as deepep, with NVIDIA's kernels for NVLink domains of several nodes (HybridEP)"),
     .brief = "how tokens go to experts on other GPUs, in Megatron Core's words; left out: as the software does"},
    {KEY(parallelism, overlap_dispatch), .also = "overlap_moe_expert_parallel_comm moe_shared_expert_overlap",
     .kind = FIELD_CHOICE, .choices = CHOICES(OVERLAP_DISPATCHES), .fallback = "none",
     .choice_briefs = NAMES("kernels wait for them", "the GEMMs of shared experts (--moe-shared-expert-overlap)",
                            "another micro-batch's forward or backward: from the second forward on each goes together with "
                            "a backward (--overlap-moe-expert-parallel-comm)"),
     .brief = "beside what tokens travel to their experts and back"},
    {KEY(parallelism, dispatch), .kind = FIELD_CHOICE, .choices = CHOICES(TOKEN_DISPATCHES), .fallback = "copies",
     .choice_briefs = NAMES("once for each of them, ordered by experts before it is sent (NCCL's all-to-all)",
                            "once to each GPU and each node that has any of them, and there copied (DeepEP, HybridEP)"),
     .brief = "how often a GPU sends a token whose experts are on other GPUs; where strategy.dispatcher is left out, copies "
              "is alltoall, and once is the software's own dispatcher that does so, else deepep"},
    {KEY(parallelism, sm_margin), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "GEMMs leave the multiprocessors free that a collective beside them occupies; false: on Hopper each takes twice "
              "as long while one runs (PyTorch, unless sm_carveout is set)"},
    {KEY(parallelism, sequence_first), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "activations have the sequence as their first dimension (Megatron-LM); false: the batch, so that under "
              "sequence_parallel each gather and each scatter also copies the whole tensor (PyTorch's DTensor)"},
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
     .brief = "the tensor-parallel group sums the gradient of a GEMM's input while it computes the gradient of the "
              "GEMM's weights (Megatron-LM since 2022, but not DeepSpeed's forks of it); left out: as "
              "sequence_parallel"},
    {KEY(parallelism, overlap_products), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "a GEMM is cut into pieces, and the tensor-parallel group gathers its input or scatters its result "
              "while the pieces are computed (Transformer Engine's user buffers, ub_tp_comm_overlap); needs "
              "sequence_parallel"},
    {KEY(parallelism, overlap_gathers), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "under ZeRO-1 and ZeRO-2 the replicas gather updated weights while the next iteration's first forwards run "
              "(Megatron-LM's overlap_param_gather); false: at the end of the optimizer step"},
    {KEY(parallelism, divided_states), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "under zero 0 replicas divide the optimizer's states all the same, as under zero 1 with reduce_scatter: false "
              "(DeepSpeed's BF16_Optimizer)"},
    {KEY(parallelism, reduce_scatter), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "under ZeRO a reduce-scatter gives each replica its share of the gradients; false, with ZeRO-1: an "
              "all-reduce gives all gradients to all replicas (DeepSpeed with reduce_scatter: false, with its bf16 "
              "optimizer, and its ZeRO-1 of 2022)"},
    {KEY(parallelism, reshard_after_forward), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "under ZeRO-3 a replica gives a layer's gathered weights back after its forward, and gathers them again "
              "for its backward; false: it keeps them until then (FSDP2's reshard_after_forward=False, FSDP's "
              "SHARD_GRAD_OP)"},
    {KEY(parallelism, small_units), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "under ZeRO-3 with recompute: full, units of weights are parts of the blocks that are recomputed (FSDP's policy by "
              "size, min_num_params): a block's second forward gathers its weights and gives them back, and its backward gathers "
              "them a third time"},
    {KEY(parallelism, sums_once), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "under ZeRO-2 and ZeRO-3 micro-batches add up whole gradients, which replicas scatter once (FSDP's no_sync); in "
              "a pipeline after all works, and backwards give no weights back (PyTorch's pipeline stages); false: "
              "replicas scatter the gradients of every micro-batch"},
    {KEY(parallelism, data_parallel), .kind = FIELD_CHOICE, .fallback = "ddp", .choices = CHOICES(DATA_PARALLELS),
     .choice_briefs = NAMES("all-reduces gradients in buckets, overlapped with the last backward",
                            "all-reduces gradients after the last backward; with ZeRO-3, no gather or scatter "
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
     .fallback = "1 MiB", .brief = "size of DDP's first gradient bucket; ZeRO-3 has no buckets"},
    {KEY(parallelism, bucket), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true, .fallback = "25 MiB",
     .brief = "size of DDP's other gradient buckets"},
    {KEY(parallelism, flatten), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "synchronous: one all-reduce for all gradients of a stage; false: one all-reduce per tensor, one after "
              "another, as a loop over the parameters does; zero 3: one gather and one scatter for a layer (FSDP); "
              "false: one for each of its tensors of more than 100,000 parameters (DeepSpeed)"},
    {KEY(parallelism, live_parameters), .kind = FIELD_QUANTITY, .unit = UNIT_COUNT, .positive = true,
     .fallback = "1 B",
     .brief = "zero 3 that gathers tensor by tensor: no tensor is gathered ahead while a GPU has this many whole "
              "parameters or more (DeepSpeed's stage3_max_live_parameters)"},
    {KEY(parallelism, reuse_distance), .kind = FIELD_QUANTITY, .unit = UNIT_COUNT, .fallback = "1 B",
     .brief = "zero 3 that gathers tensor by tensor: a tensor stays whole if its next use comes before this many "
              "parameters of other tensors are used (DeepSpeed's stage3_max_reuse_distance)"},
    {KEY(parallelism, prefetch), .kind = FIELD_QUANTITY, .unit = UNIT_COUNT, .fallback = "50 M",
     .brief = "zero 3 that gathers tensor by tensor: with each tensor that is used this many parameters are gathered "
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
    {KEY(parallelism, stages), .kind = FIELD_LIST, .table = &stage_spec_table,
     .brief = "an entry for each pipeline rank: its layers, on which part of the cluster it is, and its degrees where they are "
              "not strategy's: [{layers: 10, on: old, tensor: 4, data: 2}, {layers: 22, on: new, tensor: 8, data: 1}]"},
    {KEY(parallelism, stages_on), .kind = FIELD_CHOICE, .choices = CHOICES(STAGES_ONS),
     .choice_briefs = NAMES("in the order of 'placement'",
                            "of all distinct orders in which each rank is on one part the one that ends first on engine "
                            "fast; of equal ones the first; at most 10,000 are tried"),
     .brief = "on which part of the cluster each pipeline rank is, where 'stages' does not say 'on'; left out: placement"},
    {KEY(parallelism, split), .kind = FIELD_INTS, .max = 1000000, .may_be_auto = true,
     .brief = "number of layers of each stage (of each chunk, in model order); auto: those that fit and with which the "
              "iteration ends first; left out: as even as possible; if the layers do not divide evenly, the last stage and "
              "then the first stages get one layer less; or as software balances them"},
    {KEY(parallelism, balance), .kind = FIELD_CHOICE, .fallback = "layers", .choices = CHOICES(BALANCES),
     .choice_briefs = NAMES("as many layers to each stage", "so that the stage that takes longest takes the least",
                            "as times, but a stage also takes the time in which its ranks exchange gradients",
                            "a stage ends with the block with which it has its share of the weights of blocks and "
                            "output layer"),
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
/* Where 'stages' says the layers of ranks. */
static bool hides_split(const void *object, const char *key)
{
    const struct list *stages = &((const struct parallelism *)object)->stages;

    return stages->count && ((const struct stage_spec *)stages->items)->layers && !strcmp(key, "split");
}
const struct table strategy_table = {
    TABLE("strategy", "how the model is divided and in which order it is computed",
          parallelism, parallelism_fields),
    .extension = strategy_options, .extension_at = strategy_options_at, .misplaced = option_misplaced, .hides = hides_split,
    .delegated = "context_blocks overlap_context sm_margin sequence_first scatter_gather partitioned_outputs overlap_p2p "
                 "one_communicator duplex_p2p overlap_tensor overlap_products overlap_gathers dispatch divided_states "
                 "reduce_scatter reshard_after_forward small_units sums_once first_bucket bucket flatten live_parameters "
                 "reuse_distance prefetch "
                 "server balance",
};

int scenario_settle_dispatcher(struct scenario *scenario, struct error *err)
{
    struct parallelism *spec = &scenario->parallelism;
    bool given = field_given(&strategy_table, spec, "dispatcher");
    bool own = given && !field_supplied(&strategy_table, spec, "dispatcher");
    bool older = field_given(&strategy_table, spec, "dispatch") &&
                 !(given && field_supplied(&strategy_table, spec, "dispatch"));
    bool once = spec->dispatch == DISPATCH_ONCE;
    bool agree = once == dispatcher_sends_once((enum token_dispatcher)spec->dispatcher);

    if (!scenario->model.transformer || scenario->model.transformer->experts == 0) {
        if (!given)              /* a software's file may have said another one */
            spec->dispatcher = DISPATCHER_ALLTOALL;
        return 0;
    }
    if (own && older && !agree)
        return error_clash(err, field_loc(&strategy_table, spec, "dispatch"), "software: dispatch: does not go with "
                           "'strategy: dispatcher', which says more; expected one of the two");
    if (!own && older && !agree)
        spec->dispatcher = once ? DISPATCHER_DEEPEP : DISPATCHER_ALLTOALL;
    spec->dispatch = dispatcher_sends_once((enum token_dispatcher)spec->dispatcher) ? DISPATCH_ONCE : DISPATCH_COPIES;
    return 0;
}
