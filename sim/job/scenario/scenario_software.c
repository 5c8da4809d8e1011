/* Which values come from the scenario and which from its software. The values of a software file stand below the
 * scenario's own. What has no effect stands in strategy_rules.c and memory_rules.c. An option of the
 * scenario that has no effect with its other keys is refused, because its author expects an effect. Two kinds of such options are accepted, so that sweeps keep their base: defaults, which resolved
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

int scenario_settle_idle(struct scenario *scenario, struct error *err)
{
    struct parallelism *spec = &scenario->parallelism;
    int rc = scenario_ask(scenario, &yielding_rules, err);

    if (!node_get(spec->node, "overlap_tensor"))
        spec->overlap_tensor = spec->sequence_parallel;
    if (!node_get(spec->node, "all_reduce"))
        spec->all_reduce = usual_all_reduce(scenario);
    if (scenario_settle_dispatcher(scenario, err))
        rc = -1;
    if (scenario_ask(scenario, &idle_strategy_rules, err))
        rc = -1;
    return scenario_ask(scenario, &idle_memory_rules, err) ? -1 : rc;
}

int scenario_lay_own(struct scenario *scenario, struct error *err)
{
    struct arena *arena = &scenario->arena;
    struct key_part items[PARTS];

    if (scenario->model.transformer) {   /* many scenarios may share it */
        struct transformer *shape = ARENA_ARRAY(arena, struct transformer, 1);

        *shape = *scenario->model.transformer;
        scenario->model.transformer = shape;
    }
    const struct key_parts parts = scenario_parts(scenario, items, SOFTWARE_PARTS);

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

/* Whether attention is fused: as the scenario says by either key, else as its software. */
static void settle_attention(const struct scenario *scenario, struct transformer *shape)
{
    const struct costs_spec *costs = &scenario->costs;
    bool said = field_given(&costs_table, costs, "attention") && !field_supplied(&costs_table, costs, "attention");
    bool told = field_given(&transformer_table, shape, "flash_attention") &&
                !field_supplied(&transformer_table, shape, "flash_attention");

    if (!told && costs->attention == ATTENTION_EAGER)
        shape->ways.flash_attention = false;
    else if (!told && said && costs->attention != ATTENTION_NEWEST)
        shape->ways.flash_attention = true;
    if (shape->relative_positions)       /* fused kernels have no table of biases */
        shape->ways.flash_attention = false;
}

/* Where ZeRO may be. */
static void settle_states(const struct scenario *scenario, struct parallelism *spec)
{
    bool plain = spec->data_parallel == DATA_PARALLEL_DDP || spec->data_parallel == DATA_PARALLEL_SYNCHRONOUS;

    if (!spec->divided_states || spec->zero || !plain || scenario_schedule(scenario)->asynchronous ||
        spec->local_steps > 1 || spec->compression.method)
        return;
    spec->zero = 1;
    spec->reduce_scatter = false;
}

int scenario_lay_software(struct scenario *scenario, struct error *err)
{
    struct software_spec *spec = &scenario->software;
    struct arena *arena = &scenario->arena;
    struct loc loc = node_loc(spec->node ? spec->node : scenario->node, "like");
    struct key_part items[PARTS];
    const struct key_parts parts = scenario_parts(scenario, items, SOFTWARE_PARTS);

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
    settle_states(scenario, &scenario->parallelism);
    if (!scenario->model.transformer)
        return 0;
    settle_attention(scenario, items[PART_TRANSFORMER].object);
    return transformer_finish((struct transformer *)items[PART_TRANSFORMER].object, err);
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
    struct key_part items[PARTS];
    struct key_parts parts = scenario_parts((struct scenario *)(uintptr_t)scenario, items, SOFTWARE_PARTS);

    if (!scenario->software.names.title)
        return SOFTWARE_UNKNOWN;
    parts.settled = true;
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
    struct key_part parts[PARTS];

    resolved.costs = scenario_resolved_costs(scenario);
    dump = field_dump(arena, &scenario_table, &resolved);
    written = node_get(dump, "software");
    if (written && written->kind == NODE_SCALAR)
        node_put(arena, software, software_table.shorthand, written);
    scenario_parts(&resolved, parts, SOFTWARE_PARTS);
    for (size_t p = SOFTWARE_PARTS; p-- > 0; )
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
