/* What `memory:` means. */
#include "scenario/scenario_internal.h"

#include <math.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "hardware/cluster.h"
#include "hardware/gpu.h"
#include "hardware/precision.h"
#include "model/model.h"
#include "schedule/schedule.h"

/* Whether several backwards add to the same gradients: not where each ends with an update (PipeDream). */
static bool gradients_add_up(const struct scenario *scenario)
{
    const struct schedule *schedule = scenario_schedule(scenario);

    return scenario->plan.micro_batches > 1 && (!schedule->asynchronous || schedule->batches > 0);
}

struct parameter_bytes scenario_parameter_bytes(const struct scenario *scenario)
{
    struct precision_spec precision = scenario->memory.precision;

    /* whole gradients add up in the format in which they are sent (_fsdp_param.py: to_accumulated_grad_if_needed) */
    if (precision.gradients == GRADIENTS_WIDENED && scenario->recipe.gradients.once)
        precision.gradients = GRADIENTS_FP32;
    return precision_bytes(&precision, gradients_add_up(scenario));
}

bool scenario_says_precision(const struct scenario *scenario)
{
    return node_get(scenario->memory.node, "precision") != NULL;
}

const struct gpu *scenario_sheet_without(const struct scenario *scenario, enum dtype dtype)
{
    const struct cluster *cluster = &scenario->cluster;

    for (int kind = 0; kind < cluster_kinds(cluster); kind++) {
        int gpu = cluster_kind_gpu(cluster, kind);

        if (cluster_gpu_name(cluster, gpu) && gpu_rate(cluster_sheet(cluster, gpu), dtype) == 0)
            return cluster_sheet(cluster, gpu);
    }
    return NULL;
}

void scenario_settle_precision(struct scenario *scenario)
{
    const char *dtype = scenario->model.dtype;

    if (dtype && !strcmp(dtype, "bfloat16") && !scenario_says_precision(scenario) &&
        !scenario_sheet_without(scenario, DTYPE_BF16))
        scenario->memory.precision.format = PRECISION_MIXED_BF16;
}

int scenario_lay_bf16(struct scenario *scenario, struct error *err)
{
    struct arena *arena = &scenario->arena;
    struct precision_spec *precision = &scenario->memory.precision;
    struct node *values = node_mapping(arena);

    if (precision->format != PRECISION_BF16)
        return 0;
    precision->format = PRECISION_MIXED_BF16;
    if (precision->optimizer == OPTIMIZER_ADAM)
        precision->optimizer = OPTIMIZER_ADAM_HALF;
    node_put(arena, values, "master", node_scalar(arena, "none", false));
    node_put(arena, values, "gradients", node_scalar(arena, "half", false));
    return field_supply(arena, &memory_table, &scenario->memory, values, (struct supplying){.name = "memory"}, err);
}

static bool says_blocks(const struct recompute_spec *recompute)
{
    return node_get(recompute->node, "blocks") != NULL;
}

unsigned recomputed_modules(const struct recompute_spec *recompute)
{
    const int *modules = recompute->modules.items;
    bool cheap = recompute->mode == RECOMPUTE_MODULES && !node_get(recompute->node, "modules");
    unsigned bits = cheap ? MODULES_CHEAP : 0;

    for (size_t i = 0; recompute->mode == RECOMPUTE_MODULES && i < recompute->modules.count; i++)
        bits |= 1u << modules[i];
    return bits;
}

bool recompute_is_partial(const struct recompute_spec *recompute)
{
    return says_blocks(recompute) || !isnan(recompute->share);
}

bool scenario_has_recomputations(const struct scenario *scenario)
{
    const struct recompute_spec *recompute = &scenario->memory.recompute;
    bool none = says_blocks(recompute) ? recompute->blocks == 0 : recompute->share == 0;

    /* layer by layer a recomputation is part of its backward */
    return recompute->mode == RECOMPUTE_FULL && !none && !scenario_by_layers(scenario);
}

/* Shares are spread as in IBM's fms-fsdp (policies/ac_handler.py): a half is the first block, the third, and so on. */
bool recompute_covers(const struct recompute_spec *recompute, int block)
{
    if (says_blocks(recompute))
        return block < recompute->blocks;
    return isnan(recompute->share) ||
           floor((block + 1) * recompute->share + 0.5) > floor(block * recompute->share + 0.5);
}

bool scenario_offloads(const struct scenario *scenario, enum offload what)
{
    return list_has(&scenario->memory.offload, (int)what);
}

bool scenario_moves_activations(const struct scenario *scenario)
{
    return scenario_offloads(scenario, OFFLOAD_ACTIVATIONS) || scenario_offloads(scenario, OFFLOAD_TENSORS);
}

bool scenario_by_layers(const struct scenario *scenario)
{
    return scenario->memory.recompute.mode == RECOMPUTE_OPTIMAL || scenario_moves_activations(scenario) ||
           scenario_offloads(scenario, OFFLOAD_WEIGHTS) || scenario_offloads(scenario, OFFLOAD_OPTIMIZER);
}

bool scenario_plans_memory(const struct scenario *scenario)
{
    int mode = scenario->memory.recompute.mode;

    return mode == RECOMPUTE_OPTIMAL || scenario_offloads(scenario, OFFLOAD_TENSORS) ||
           (mode != RECOMPUTE_FULL && scenario_offloads(scenario, OFFLOAD_ACTIVATIONS));
}

int scenario_check_saved(const struct scenario *scenario, struct error *err)
{
    const struct memory_spec *memory = &scenario->memory;
    const struct shard shard = {
        .saved = memory->saved,
        .recompute = (enum recompute)memory->recompute.mode,
        .lora = memory->lora,
        .recomputed = recomputed_modules(&memory->recompute),
        .formula = (enum activation_formula)memory->activations,
        .fp8 = precision_is_narrow(&memory->precision),
        .sequence_parallel = scenario->parallelism.sequence_parallel,
    };

    return saved_form_check(scenario->model.transformer, &shard, memory->node, err);
}
