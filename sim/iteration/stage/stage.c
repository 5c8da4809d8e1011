#include "stage/layer_cost.h"
#include "stage/stage_exchange.h"
#include "stage/stage_kernels.h"
#include "stage/stage_memory.h"

#include <math.h>

#include "base/base.h"
#include "collective/token_dispatcher.h"
#include "config/conf.h"
#include "hardware/cluster.h"
#include "hardware/precision.h"
#include "kernels/cost.h"
#include "model/model.h"
#include "scenario/memory_policy.h"
#include "scenario/process_group.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/compression.h"
#include "stage/split.h"

static struct model_io model_io_of(const struct scenario *scenario, const struct layer *last)
{
    const struct transformer *transformer = scenario->model.transformer;

    return (struct model_io){
        .input = transformer ? scenario->batch.micro * transformer_sample(transformer) : 0,
        .output = transformer ? last->output : last->boundary,
        .activation = last->loss_activation,
    };
}

/* What each layer adds to its stage, where costs balance the stages; else NULL. */
static const struct split_cost *split_costs(struct arena *arena, struct layer_costs *costs,
                                            const struct layer *layers, size_t count)
{
    const struct scenario *scenario = costs->scenario;
    struct split_cost *splits = ARENA_ARRAY(arena, struct split_cost, count);
    int balance = scenario->parallelism.balance;
    double sent = precision_bytes(&scenario->memory.precision, false).sent;
    double sending = scenario->cluster.ideal ? 0 : sent * (1 / cluster_slowest_link(&scenario->cluster));

    if (balance != BALANCE_TIMES && balance != BALANCE_EXCHANGES)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const struct layer_cost *cost = layer_cost(costs, &layers[i]);

        splits[i].seconds = cost->forward.times.seconds + cost->backward.times.seconds;
        splits[i].sending = balance == BALANCE_EXCHANGES ? layers[i].parameters * sending : 0;
    }
    return splits;
}

static int from_layers(struct arena *arena, const struct scenario *scenario, const struct kernel_costs *kernels,
                       struct exchange_list *exchanges, struct stage *stages, struct stage_times *times, struct error *err)
{
    const struct parallelism *spec = &scenario->parallelism;
    const struct precision_spec *precision = &scenario->memory.precision;
    struct shard shard = {
        .micro = scenario->batch.micro,
        .slices = plan_slices(&scenario->plan),
        .slice = scenario->batch.slice,
        .tensor = scenario_most_tensor(scenario),
        .sequence_parallel = spec->sequence_parallel,
        .gathers_apart = !spec->overlap_products,
        .dtype = precision_dtype(precision),
        .fp8 = precision_is_narrow(precision),
        .narrow = precision_products(precision),
        .fp8_kept = precision->fp8_weights != FP8_WEIGHTS_CAST,
        .recompute = (enum recompute)scenario->memory.recompute.mode,
        .recomputed = recomputed_modules(&scenario->memory.recompute),
        .context = spec->context,
        .ulysses = scenario_ulysses(spec),
        .blocks_apart = spec->context_blocks,
        .ring = spec->context_attention == CONTEXT_RING || spec->context_attention == CONTEXT_HYBRID,
        .expert_tensor = spec->expert_tensor,
        .dispatch_group = group_members(&scenario->groups.of[GROUP_EXPERT]),
        .dispatch_nodes = group_nodes(scenario, GROUP_EXPERT),
        .dispatch_once = dispatcher_sends_once((enum token_dispatcher)spec->dispatcher),
        .dispatch_gathers = spec->dispatcher == DISPATCHER_ALLGATHER,
        .capacity = spec->capacity_factor,
        .lora = scenario->memory.lora,
        .formula = (enum activation_formula)scenario->memory.activations,
        .saved = scenario->memory.saved,
        .cross_entropy = (enum cross_entropy)scenario->memory.cross_entropy,
        .measured = scenario->memory.logits == LOGITS_HELD,
    };
    struct layer_costs costs = {.arena = arena, .scenario = scenario, .kernels = kernels, .list = exchanges};
    const struct layer *layers;
    size_t count, *begins = NULL, last = (size_t)plan_virtual_stages(&scenario->plan) - 1;

    if (model_layers(arena, &scenario->model, &shard, node_loc(spec->node, node_get(spec->node, "tensor") ? "tensor" : "context"), &layers, &count,
                     err) ||
        split_blocks(arena, scenario, layers, split_costs(arena, &costs, layers, count), count, &begins, err))
        return -1;
    if (stages_fill(arena, &costs, layers, count, begins, stages, times, err))
        return -1;
    if (spec->partitioned_outputs && scenario_most_tensor(scenario) > 1)
        assembly_add(arena, times, stages, scenario, kernels);
    stages[last].io = model_io_of(scenario, &layers[count - 1]);
    times[last].loss = stage_loss(scenario, kernels, &layers[count - 1]);
    return 0;
}

/* The given stage that stands for virtual stage s: the only one, its rank's, or its own. */
static const struct given_layer *given_of(const struct model *model, const struct plan *plan, int s)
{
    const struct given_layer *items = model->stages.items;

    if (model->stages.count == 1)
        return items;
    return items + (model_is_per_rank(model) ? plan_rank(plan, 0, s, 0, NULL) : s);
}

/* How many virtual stages share its numbers, in equal parts: the stages of the rank that a micro-batch visits. */
static int given_parts(const struct model *model, const struct plan *plan, int s)
{
    int rank = plan_rank(plan, 0, s, 0, NULL), parts = 0;

    if (!model_is_per_rank(model))
        return 1;
    for (int chunk = 0; chunk < plan_chunks(plan, rank); chunk++)
        parts += plan_direction(plan, rank, chunk) == 0;
    return parts;
}

/* Stages whose times are given: one for all, or a list. Full recomputation keeps the stage's input: the boundary of the
 * stage before it. */
static void from_given(struct arena *arena, const struct model *model, const struct plan *plan, double speed,
                       struct stage *stages, struct stage_times *times)
{
    static const struct work_counts nothing;
    int count = plan_virtual_stages(plan);

    for (int s = 0; s < count; s++) {
        const struct given_layer *given = given_of(model, plan, s), *before = given_of(model, plan, s > 0 ? s - 1 : 0);
        int parts = given_parts(model, plan, s), slices = plan_slices(plan);
        struct stage *stage = &stages[s];
        const double seconds[WORK_KIND_COUNT] = {
            [FORWARD] = given->forward, [BACKWARD] = given->backward, [BACKWARD_INPUT] = given->backward_input,
            [BACKWARD_WEIGHT] = given->backward_weight, [RECOMPUTE] = given->recompute,
        };

        stage->parameters = given->parameters / parts;
        stage->trained = (struct by_class){{stage->parameters}};
        stage->activation = stage->working = stage->working_split = given->activation / (parts * slices);
        stage->checkpoint = before->boundary / slices;
        stage->boundary = stage->io.output = given->boundary / slices;
        stage->slices = ARENA_ARRAY(arena, struct slice, 1);
        stage->slices[0] = (struct slice){
            .tensors = &stage->parameters, .ntensors = 1, .ncommon = 1, .parameters = stage->parameters,
            .trained = stage->trained,
            .input = s > 0 ? stage->checkpoint : 0, .activation = stage->activation, .block = true, .recompute = true,
        };
        stage->nslices = 1;
        times[s].slices = ARENA_ARRAY(arena, struct slice_times, 1);
        for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
            struct work_times *own = ARENA_ARRAY(arena, struct work_times, 1);

            times[s].work[kind].seconds = own->seconds = seconds[kind] / (parts * slices * speed);
            times[s].slices[0].work[kind] = own;
            stage->slices[0].work[kind] = &nothing;
        }
    }
}

int stages_cost(struct arena *arena, const struct scenario *scenario, const struct kernel_costs *kernels,
                struct stage **stages, struct stage_times **times, struct error *err)
{
    int count = plan_virtual_stages(&scenario->plan);
    struct exchange_list *exchanges = ARENA_ARRAY(arena, struct exchange_list, 1);

    *stages = ARENA_ARRAY(arena, struct stage, count);
    *times = ARENA_ARRAY(arena, struct stage_times, count);
    (*times)[0].hidings = ARENA_ARRAY(arena, struct hiding, HIDINGS_MAX);
    for (int s = 1; s < count; s++)
        (*times)[s].hidings = (*times)[0].hidings;
    if (scenario->model.stages.count)
        from_given(arena, &scenario->model, &scenario->plan, kernels->speed, *stages, *times);
    else if (from_layers(arena, scenario, kernels, exchanges, *stages, *times, err))
        return -1;
    if (!exchanges->count)
        exchange_gather(exchanges, 0);       /* given stages have no exchanges */
    for (int s = 0; s < count; s++) {
        if (stages_repeat(&scenario->plan, *stages, s)) {
            (*stages)[s] = (*stages)[s - 1];
            (*times)[s] = (*times)[s - 1];
            continue;
        }
        stage_update(scenario, kernels, &(*stages)[s], &(*times)[s]);
        stage_exchange_matrices(scenario, exchanges, &(*stages)[s]);
        (*stages)[s].exchanges = exchanges;
        (*stages)[s].states = stage_states(&(*stages)[s], scenario);
        (*stages)[s].compression = compression_memory(
            scenario, &(*stages)[s], scenario_replicas(scenario) * plan_holders(&scenario->plan, s));
        stage_whole_layers(&(*stages)[s], scenario);
    }
    return 0;
}
