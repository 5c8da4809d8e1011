/* Which values come from the scenario and which from its software. The values of a software file stand below the
 * scenario's own. An option of the scenario that has no effect with its other keys is refused, because its author
 * expects an effect. Two kinds of such options are accepted, so that sweeps keep their base: defaults, which resolved
 * scenarios repeat, and options that have no effect only at a degree of 1, at this ZeRO stage or in this format of
 * products. */
#include "scenario/scenario_internal.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "collective/collective.h"
#include "config/conf.h"
#include "config/field.h"
#include "files/data.h"
#include "hardware/cluster.h"
#include "hardware/precision.h"
#include "kernels/costs.h"
#include "model/operator.h"
#include "software/software.h"

/* The parts of a scenario that software may set. */
enum { PART_STRATEGY, PART_MEMORY, PART_RECOMPUTE, PART_COSTS, PART_TRANSFORMER, PART_BATCH, PARTS };

static void parts_of(struct scenario *scenario, struct software_part parts[PARTS])
{
    parts[PART_STRATEGY] = (struct software_part){"strategy", &strategy_table, &scenario->parallelism,
                                                   FILES_MAY_GIVE};
    parts[PART_MEMORY] = (struct software_part){"memory", &memory_table, &scenario->memory, NULL};
    parts[PART_RECOMPUTE] = (struct software_part){"memory.recompute", &recompute_table, &scenario->memory.recompute,
                                                    NULL};
    parts[PART_COSTS] = (struct software_part){"costs", &costs_table, &scenario->costs, FILES_MAY_COST};
    parts[PART_TRANSFORMER] =
        (struct software_part){"model.transformer", &transformer_table, scenario->model.transformer, NULL};
    parts[PART_BATCH] = (struct software_part){"batch", &batch_table, &scenario->batch, NULL};
}

struct idle {
    int part;                    /* that has the key */
    const char *key;
    bool said, means;            /* the option is not its default; it changes something */
    const char *why;             /* where it does not */
};

static int refuse(struct scenario *scenario, const struct idle *options, size_t count, struct error *err)
{
    struct software_part parts[PARTS];
    int rc = 0;

    parts_of(scenario, parts);
    for (size_t i = 0; i < count; i++) {
        const struct software_part *part = &parts[options[i].part];

        if (!options[i].said || options[i].means)
            continue;
        if (field_supplied(part->table, part->object, options[i].key))
            field_withdraw(&scenario->arena, part->table, part->object, options[i].key);
        else
            rc = error_clash(err, field_loc(part->table, part->object, options[i].key),
                             "%s: %s: has no effect here: %s; or leave it out",
                             word_in(part->table->delegated, options[i].key) ? "software" : part->path, options[i].key,
                             options[i].why);
    }
    return rc;
}

static int check_schedule(struct scenario *scenario, struct error *err)
{
    static const char by_layer[] = "weights are not gathered tensor by tensor; expected 'zero: 3' and 'flatten: false'";
    static const char layers[] = "no layer's weights are gathered whole to be kept on the GPU; expected 'zero: 3', "
                                 "without 'flatten: false' and 'offload: weights'";
    const struct parallelism *spec = &scenario->parallelism;
    bool by_tensor = spec->zero == 3 && !spec->flatten;
    bool gathers = spec->zero == 3 && spec->flatten && !scenario_offloads(scenario, OFFLOAD_WEIGHTS);
    const struct idle options[] = {
        {PART_STRATEGY, "server", spec->server != 0, spec->data_parallel == DATA_PARALLEL_SERVER,
         "there is no server; expected 'data_parallel: parameter-server' with it"},
        {PART_STRATEGY, "flatten", !spec->flatten,
         spec->data_parallel == DATA_PARALLEL_SYNCHRONOUS || spec->zero == 3,
         "DDP has buckets, and others sum all at once; expected 'data_parallel: synchronous' or 'zero: 3' with it"},
        {PART_STRATEGY, "live_parameters", spec->live_parameters < 1e9 || spec->live_parameters > 1e9, by_tensor,
         by_layer},
        {PART_STRATEGY, "reuse_distance", spec->reuse_distance < 1e9 || spec->reuse_distance > 1e9, by_tensor,
         by_layer},
        {PART_STRATEGY, "prefetch", spec->prefetch < 50e6 || spec->prefetch > 50e6, by_tensor, by_layer},
        {PART_STRATEGY, "partitioned_outputs", spec->partitioned_outputs,
         spec->scatter_gather && !spec->sequence_parallel,
         spec->sequence_parallel ? "under sequence_parallel nobody needs a whole boundary; expected that to be false"
                                 : "without scatter_gather boundaries are sent whole; expected that to be true"},
        {PART_STRATEGY, "overlap_gathers", spec->overlap_gathers, spec->zero == 1 || spec->zero == 2,
         "no replica updates weights for others; expected 'zero: 1' or 'zero: 2'"},
        {PART_STRATEGY, "reshard_after_forward", !spec->reshard_after_forward, gathers, layers},
        {PART_STRATEGY, "sums_once", spec->sums_once, spec->zero == 2 || gathers,
         spec->zero == 3 && !gathers ? layers :
         "no replica scatters the gradients of every micro-batch; expected 'zero: 2' or 'zero: 3'"},
        {PART_STRATEGY, "dispatcher", spec->dispatcher != DISPATCHER_ALLTOALL,
         scenario->model.transformer && scenario->model.transformer->experts > 0,
         "the model has no experts; expected a transformer with 'experts' above 0"},
        {PART_STRATEGY, "dispatch", spec->dispatch != DISPATCH_COPIES,
         spec->expert > 1 || field_given(&strategy_table, spec, "dispatcher"),
         "every replica has all experts; expected an expert degree above 1"},
        {PART_STRATEGY, "context_blocks", spec->context_blocks, spec->context_attention != CONTEXT_ALL_TO_ALL,
         "each GPU attends to all keys of its heads at once; expected another context_attention"},
        {PART_STRATEGY, "overlap_context", !spec->overlap_context,
         spec->context_attention != CONTEXT_ALL_TO_ALL &&
         (spec->context_blocks || spec->context_attention != CONTEXT_ALL_GATHER),
         "attention needs all that is exchanged before it begins; expected 'context_attention: ring', or context_blocks"},
        {PART_STRATEGY, "overlap_products", spec->overlap_products, spec->sequence_parallel,
         "only sequence_parallel gathers and scatters rows; expected that to be true"},
    };

    return refuse(scenario, options, COUNT(options), err);
}

/* Whether recomputation can tell a block's operators apart. */
static bool tells_operators(const struct scenario *scenario)
{
    const struct transformer *shape = scenario->model.transformer;
    const struct parallelism *spec = &scenario->parallelism;

    return shape && shape->experts == 0 && shape->kv_rank == 0 && !scenario->memory.lora && spec->context == 1 &&
           scenario->memory.activations == ACTIVATIONS_KORTHIKANTI;
}

static int check_memory(struct scenario *scenario, struct error *err)
{
    const struct memory_spec *memory = &scenario->memory;
    const struct transformer *shape = scenario->model.transformer;
    bool mixed = memory->precision.format >= PRECISION_MIXED_FP16, head = shape && shape->head != HEAD_NONE;
    bool muon = memory->precision.optimizer == OPTIMIZER_MUON;
    const char *no_muon = "no matrix is orthogonalized; expected 'optimizer: muon'";
    const char *no_head = shape ? "the model has no head, and so no logits; expected a transformer with one"
                                : "this model says nothing of its logits; expected a transformer";
    const struct idle options[] = {
        {PART_MEMORY, "gradients", memory->precision.gradients != GRADIENTS_HALF, mixed,
         "without mixed precision all gradients are fp32; expected 'precision: mixed-bf16' or the like beside it"},
        {PART_MEMORY, "master", memory->precision.master != MASTER_FP32, mixed,
         "without mixed precision weights are fp32 themselves; expected 'precision: mixed-bf16' or the like beside it"},
        {PART_MEMORY, "recompute", memory->recompute.mode == RECOMPUTE_SELECTIVE, shape,
         "selective recomputes the core of attention, which this model does not tell of; expected a transformer, or "
         "'recompute: full'"},
        {PART_MEMORY, "recompute", memory->recompute.mode == RECOMPUTE_OPERATORS, tells_operators(scenario),
         "operators tells the GEMMs of dense blocks apart; expected a transformer without experts, latent attention "
         "and LoRA, context 1, and 'activations: korthikanti'"},
        {PART_MEMORY, "recompute", memory->recompute.mode == RECOMPUTE_MODULES,
         shape && memory->activations == ACTIVATIONS_KORTHIKANTI,
         "modules are parts of a transformer's blocks; expected a transformer, and 'activations: korthikanti'"},
        {PART_MEMORY, "recompute",
         recomputed_modules(&memory->recompute) & (1u << MODULE_EXPERTS | 1u << MODULE_SHARED), shape && shape->experts,
         "this model has no experts; expected 'model.transformer.experts', or other modules"},
        {PART_MEMORY, "activations", memory->activations != ACTIVATIONS_KORTHIKANTI, shape,
         "this model says itself what it keeps; expected a transformer"},
        {PART_MEMORY, "cross_entropy", memory->cross_entropy != CROSS_ENTROPY_FP32, head, no_head},
        {PART_MEMORY, "logits", memory->logits != LOGITS_FREED, head, no_head},
        {PART_MEMORY, "fused_accumulation", memory->precision.fused_accumulation, !model_is_timed(&scenario->model),
         "this model's times are given whole; expected a transformer, or layers by their FLOPs"},
        {PART_MEMORY, "dummy_gradients", memory->dummy_gradients != DUMMIES_NONE,
         shape && memory->precision.fused_accumulation,
         "they are of GEMMs that add to gradients themselves; expected a transformer, and 'fused_accumulation: true'"},
        {PART_MEMORY, "fused_optimizer", !memory->precision.fused_optimizer,
         memory->precision.optimizer == OPTIMIZER_ADAM || memory->precision.optimizer == OPTIMIZER_ADAM_HALF || muon,
         "the operations of other optimizers are not known one by one; expected 'optimizer: adam' or 'adam-half'"},
        {PART_MEMORY, "muon_tensor", memory->precision.muon_tensor != MUON_TENSOR_DUPLICATED,
         muon && scenario->parallelism.tensor > 1,
         "no matrix is divided and orthogonalized; expected 'optimizer: muon' and a tensor degree above 1"},
        {PART_MEMORY, "muon_split_qkv", !memory->precision.muon_split_qkv, muon, no_muon},
        {PART_MEMORY, "newton_schulz", memory->precision.newton_schulz != NEWTON_SCHULZ_STANDARD, muon, no_muon},
        {PART_MEMORY, "bucket_copies", memory->bucket_copies, scenario->parallelism.data_parallel == DATA_PARALLEL_DDP,
         "buckets are DDP's; expected 'data_parallel: ddp' with it"},
    };

    return refuse(scenario, options, COUNT(options), err);
}

static int check_costs(struct scenario *scenario, struct error *err)
{
    const struct costs_spec *costs = &scenario->costs;
    const char *why = "this model's times are given, not computed; expected a transformer, or layers by their FLOPs";
    const struct idle options[] = {
        {PART_COSTS, "profile", costs->profile, false, why},
        {PART_COSTS, "attention", costs->attention != ATTENTION_NEWEST, false, why},
        {PART_COSTS, "launch_blocking", costs->launch_blocking, false, why},
        {PART_COSTS, "cuda_graphs", costs->cuda_graphs != GRAPHS_NONE, false, why},
        {PART_COSTS, "unaligned_batches", costs->unaligned_batches != UNALIGNED_TENSOR_CORES, false, why},
    };

    return model_is_timed(&scenario->model) ? refuse(scenario, options, COUNT(options), err) : 0;
}

/* Without loss scaling, gradients in half precision lose what is small when they are added up. In bf16 Megatron-LM lets
 * nobody do that (megatron/training/arguments.py: accumulate_allreduce_grads_in_fp32), DeepSpeed's optimizer adds up in
 * fp32 (runtime/bf16_optimizer.py), and under PyTorch's autocast weights and gradients are in fp32. ZeRO 2 and 3 of
 * DeepSpeed and FSDP keep and send them as the weights unless told otherwise; so does who has no master weights. */
int memory_default_gradients(const struct scenario *scenario)
{
    const struct precision_spec *precision = &scenario->memory.precision;
    bool wide = precision->format >= PRECISION_MIXED_BF16;

    wide = wide && scenario->parallelism.zero <= 1 && precision->master != MASTER_NONE;
    return wide ? GRADIENTS_FP32 : GRADIENTS_HALF;
}

/* What the library takes, where it is known what that would be; else the collective that all libraries have. */
static int usual_all_reduce(const struct scenario *scenario)
{
    bool known = !scenario->cluster.ideal && cluster_communication(&scenario->cluster, ~0u);
    int i = 0;

    while (strcmp(all_reduce_name((size_t)i), known ? "auto" : "ring"))
        i++;
    return i;
}

/* What other rules refuse, or give no effect to, where the scenario itself says it: software may say it of any. */
static void take_back(struct scenario *scenario)
{
    const struct parallelism *spec = &scenario->parallelism;
    const struct communication *library = cluster_communication(&scenario->cluster, ~0u);
    bool scatters = spec->zero != 1 || spec->shard < scenario_replicas(scenario);
    bool sockets = !scenario->cluster.ideal && library && !isnan(library->send->copy);
    const struct { int part; const char *key; bool idle;
    } supplied[] = {
        {PART_STRATEGY, "dispatcher", !scenario->model.transformer || scenario->model.transformer->experts == 0},
        {PART_STRATEGY, "reduce_scatter", scatters},
        {PART_STRATEGY, "scatter_gather", spec->partitioned_outputs},
        {PART_STRATEGY, "overlap_tensor", spec->overlap_products && !spec->overlap_tensor},
        {PART_MEMORY, "fused_accumulation", scenario->memory.precision.gradients == GRADIENTS_CONVERTED},
        {PART_STRATEGY, "one_communicator", !sockets},
        {PART_RECOMPUTE, "early_stop", memory_early_stop_fault(scenario) != NULL},
        {PART_MEMORY, "logits", scenario_by_layers(scenario)},
        {PART_MEMORY, "fp8_weights", !precision_is_narrow(&scenario->memory.precision)},
    };
    struct software_part parts[PARTS];

    parts_of(scenario, parts);
    for (size_t i = 0; i < COUNT(supplied); i++) {
        const struct software_part *part = &parts[supplied[i].part];

        if (supplied[i].idle && field_supplied(part->table, part->object, supplied[i].key))
            field_withdraw(&scenario->arena, part->table, part->object, supplied[i].key);
    }
    if (!node_get(spec->node, "overlap_tensor"))
        scenario->parallelism.overlap_tensor = spec->sequence_parallel;
    if (!node_get(spec->node, "all_reduce"))
        scenario->parallelism.all_reduce = usual_all_reduce(scenario);
}

int scenario_settle_idle(struct scenario *scenario, struct error *err)
{
    int rc;

    take_back(scenario);
    rc = scenario_settle_dispatcher(scenario, err);
    if (check_schedule(scenario, err))
        rc = -1;
    if (check_memory(scenario, err))
        rc = -1;
    return check_costs(scenario, err) ? -1 : rc;
}

int scenario_lay_own(struct scenario *scenario, struct error *err)
{
    struct arena *arena = &scenario->arena;
    struct software_part items[PARTS];
    const struct software_parts parts = {items, PARTS};

    if (scenario->model.transformer) {   /* many scenarios may share it */
        struct transformer *shape = ARENA_ARRAY(arena, struct transformer, 1);

        *shape = *scenario->model.transformer;
        scenario->model.transformer = shape;
    }
    parts_of(scenario, items);
    return software_lay_own(arena, scenario->software.node, &parts, err);
}

/* What most people run who say no more than these degrees. Times that are given hold all that a framework does.
 * Pipelines and tensor-parallel groups are Megatron's: of version 2 where the GPU has no bf16 (before Ampere), and on
 * one without fp8 (before Hopper) in fp16, if the model is a GPT; it knew no RMSNorm, SwiGLU or experts. */
static const char *usual_software(const struct scenario *scenario)
{
    const struct gpu_rates *peak = &cluster_sheet(&scenario->cluster, 0)->peak;
    const struct parallelism *spec = &scenario->parallelism;
    const struct transformer *shape = scenario->model.transformer;
    bool known = !shape || (shape->norm == NORM_LAYERNORM && shape->mlp == MLP_GELU && !shape->experts);
    bool half = known && scenario->memory.precision.format == PRECISION_MIXED_FP16;

    if (model_is_timed(&scenario->model))
        return NULL;
    if (spec->pipeline > 1 || spec->tensor > 1)
        return peak->bf16 <= 0 || (half && peak->fp8 <= 0) ? "megatron-lm-2021" : "megatron-core";
    return spec->zero == 3 ? "pytorch-fsdp" : spec->zero ? "deepspeed" : "pytorch-ddp";
}

const char *scenario_usual_software(const struct scenario *parsed, bool parallel)
{
    struct scenario scenario = *parsed;

    if (parsed->software.like)
        return NULL;
    if (parallel)
        scenario.parallelism.pipeline = 2;
    scenario_settle_precision(&scenario);
    return usual_software(&scenario);
}

int scenario_lay_software(struct scenario *scenario, struct error *err)
{
    struct software_spec *spec = &scenario->software;
    struct arena *arena = &scenario->arena;
    struct loc loc = node_loc(spec->node ? spec->node : scenario->node, "like");
    struct software_part items[PARTS];
    const struct software_parts parts = {items, PARTS};

    parts_of(scenario, items);
    spec->assumed = !spec->like;
    if (spec->assumed)
        spec->like = usual_software(scenario);
    if (spec->like && strcmp(spec->like, "none")) {
        if (software_supply(arena, spec->like, loc, &parts, &spec->names, err))
            return -1;
        spec->like = spec->names.name;
    }
    if (spec->like && data_is_path(spec->like) && (!(spec->like = data_relative(arena, loc, spec->like, err)) ||
                                                   !(spec->like = data_absolute(arena, spec->like, err))))
        return -1;
    return scenario->model.transformer ? transformer_finish((struct transformer *)items[PART_TRANSFORMER].object, err) :
           0;
}

enum software_has scenario_in_framework(struct arena *arena, const struct scenario *scenario, struct software_lack *lack)
{
    const struct parallelism *spec = &scenario->parallelism;
    const struct software_ask asks[] = {
        {"strategy.schedule", spec->pipeline == 1, true},
        {"strategy.context_attention", spec->context == 1, false},
        {"strategy.zero", scenario_replicas(scenario) == 1, spec->zero > 0},
        {"memory.recompute", false, scenario->memory.recompute.mode != RECOMPUTE_NONE},
    };
    struct software_part items[PARTS];
    const struct software_parts parts = {items, PARTS};

    if (!scenario->software.names.title)
        return SOFTWARE_UNKNOWN;
    parts_of((struct scenario *)(uintptr_t)scenario, items);
    return software_has(arena, &scenario->software.names, &parts, asks, COUNT(asks), lack);
}

/* A mapping of which only its shorthand is left becomes that scalar, as field_dump prints it. */
static struct node *bared(struct node *mapping, const struct table *table)
{
    return table->bare && mapping->count == 1 && !strcmp(mapping->keys[0], table->shorthand) ? mapping->items[0] :
           mapping;
}

/* The tree without the keys that the part delegates, which go to `software`. */
static struct node *without_delegated(struct arena *arena, struct node *dump, const char *path,
                                      const struct table *table, struct node *software)
{
    size_t length = strcspn(path, ".");
    struct node *left = node_mapping(arena);

    if (dump->kind != NODE_MAPPING)
        return dump;
    left->loc = dump->loc;
    for (size_t i = 0; i < dump->count; i++) {
        const char *key = dump->keys[i];
        struct node *value = dump->items[i];

        if (!*path && word_in(table->delegated, key)) {
            node_put(arena, software, key, value);
            continue;
        }
        if (*path && strlen(key) == length && !memcmp(key, path, length))
            value = without_delegated(arena, value, path + length + (path[length] == '.'), table, software);
        node_put(arena, left, key, value);
    }
    return *path ? left : bared(left, table);
}

struct node *scenario_dump(struct arena *arena, const struct scenario *scenario)
{
    struct scenario resolved = *scenario;
    struct node *dump, *written, *whole, *software = node_mapping(arena);
    struct software_part parts[PARTS];

    resolved.costs = scenario_resolved_costs(scenario);
    dump = field_dump(arena, &scenario_table, &resolved);
    written = node_get(dump, "software");
    if (written && written->kind == NODE_SCALAR)
        node_put(arena, software, software_table.shorthand, written);
    parts_of(&resolved, parts);
    for (size_t p = PARTS; p-- > 0; )
        dump = without_delegated(arena, dump, parts[p].path, parts[p].table, software);
    whole = node_mapping(arena);
    for (size_t i = 0; i < scenario_table.count; i++) {
        const char *key = scenario_table.fields[i].key;
        struct node *value = !strcmp(key, "software") ? software : strcmp(key, "plan") ? node_get(dump, key) : NULL;

        if (value)
            node_put(arena, whole, key, value);
    }
    return whole;
}
