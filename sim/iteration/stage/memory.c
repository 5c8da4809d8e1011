#include "stage/memory.h"
#include "stage/stage_exchange.h"
#include "stage/stage_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "engine/program.h"
#include "hardware/gpu.h"
#include "hardware/precision.h"
#include "model/model.h"
#include "scenario/recipe.h"
#include "scenario/scenario.h"
#include "scenario/settled.h"
#include "schedule/schedule.h"

const char *const memory_kind_names[] = {
    [MEMORY_PARAMETERS] = "parameters",   [MEMORY_GATHERED] = "gathered", [MEMORY_GRADIENTS] = "gradients",
    [MEMORY_OPTIMIZER] = "optimizer",     [MEMORY_ACTIVATIONS] = "activations",
    [MEMORY_WORKSPACE] = "workspace",     [MEMORY_BUFFERS] = "buffers",   [MEMORY_CONTEXT] = "context",
    [MEMORY_DUMMIES] = "dummies",         [MEMORY_FRAGMENTATION] = "fragmentation", NULL,
};
_Static_assert(COUNT(memory_kind_names) == MEMORY_KIND_COUNT + 1, "a name for every kind");

const char *memory_kind_title(enum memory_kind kind)
{
    return kind == MEMORY_CONTEXT ? "CUDA context" : memory_kind_names[kind];
}

/* Parameters of the two largest layers, under ZeRO 3 a replica's share of them: one layer is computed while the other
 * one's weights come from the host. */
static double two_largest(const struct scenario *scenario, const struct stage *stage)
{
    double most = 0, second = 0;

    for (size_t i = 0; i < stage->nslices; i++) {
        const struct slice *slice = &stage->slices[i];
        double here = recipe_share(&scenario->recipe, HELD_WEIGHTS, slice_weights(slice));

        second = fmax(second, fmin(most, here));
        most = fmax(most, here);
    }
    return most + second;
}

/* Sums and maxima over the chunks of a rank. */
struct holding {
    double trained, largest;     /* trained elements: of all chunks, of the largest one */
    double updated;              /* elements that this replica updates */
    double gradients, weights;   /* elements that it holds; of weights the newest version */
    double stashed;              /* B of older versions of weights */
    double states, compression;  /* B that it holds: optimizer states, state of compression */
    double scattered;            /* elements of gradients that are whole at once under ZeRO 3 */
    double fetched;              /* elements of weights that are fetched from the host at once */
    struct narrow_copies copies; /* of weights */
    double arrives;              /* B that arrive from both neighbours */
    struct whole_units gathered; /* B of weights */
};

static struct holding holding_of(const struct scenario *scenario, const struct stage *stages, int rank)
{
    const struct plan *plan = &scenario->plan;
    struct holding sum = {0};

    for (int chunk = 0; chunk < plan_chunks(plan, rank); chunk++) {
        int at = plan_virtual_stage(plan, rank, chunk);
        const struct stage *stage = &stages[at];
        const struct recipe *recipe = &scenario->recipe;
        const struct narrow_copies copies = stage_narrow_copies(stage, scenario);
        double arrives = 0;

        sum.trained += stage->parameters;
        sum.largest = fmax(sum.largest, stage->parameters);
        sum.updated += recipe_share(recipe, HELD_STATES, stage->trained);
        sum.gradients += recipe_share(recipe, HELD_GRADIENTS, stage->trained);
        sum.weights += recipe_share(recipe, HELD_WEIGHTS, stage_weights(stage));
        sum.stashed += stage_stashed(stage, scenario);
        sum.states += recipe_share(recipe, HELD_STATES, stage->states) + stage->whole_matrices;
        sum.compression += stage->compression;
        sum.gathered.root += stage->gathered.root; /* every chunk has an outermost unit, which stays */
        sum.gathered.blocks = fmax(sum.gathered.blocks, stage->gathered.blocks);
        sum.copies.lasting += copies.lasting;
        sum.copies.passing = fmax(sum.copies.passing, copies.passing);
        sum.scattered = fmax(sum.scattered, stage->scattered.root + stage->scattered.blocks);
        sum.fetched = fmax(sum.fetched, two_largest(scenario, stage));
        if (at > 0)
            arrives += boundary_arriving(scenario, stages, at - 1, rank);
        if (at + 1 < plan_virtual_stages(plan))
            arrives += boundary_arriving(scenario, stages, at, rank);
        sum.arrives = fmax(sum.arrives, arrives);
    }
    return sum;
}

/* Whether each replica holds a share only. */
static bool divides(const struct recipe *recipe, enum held held)
{
    return recipe->divided[held][PARAMETERS_COMMON] > 1;
}

static double buffers(const struct scenario *scenario, const struct holding *holding, int program_rank)
{
    const struct parallelism *spec = &scenario->parallelism;
    const struct recipe *recipe = &scenario->recipe;
    double each = scenario_parameter_bytes(scenario).gradients, gradients = holding->trained * each, bytes = 0;
    bool several = scenario_replicas(scenario) > 1, buckets = isfinite(recipe->gradients.bucket);
    bool states = divides(recipe, HELD_STATES), sums = divides(recipe, HELD_GRADIENTS),
         weights = divides(recipe, HELD_WEIGHTS);

    if (scenario->memory.fused_gradients)
        bytes += 4 * holding->updated;
    if (scenario->memory.flat_gradients)
        bytes += holding->updated * each;
    if (several && buckets && !states && scenario->memory.bucket_copies)
        bytes += gradients;
    else if (sums && !weights && !buckets)
        bytes += holding->largest * each;
    else if ((sums && !weights) || (states && !sums && scenario->memory.flat_gradients))
        bytes += fmin(gradients, fmax(spec->bucket, spec->first_bucket));
    if (weights)
        bytes += holding->scattered * scenario_parameter_bytes(scenario).sent;
    if (several && recipe->rooted && recipe->weights.when == WEIGHTS_UPDATED && program_rank < scenario->plan.stages)
        bytes += gradients;
    if (!model_is_timed(&scenario->model) && spec->pipeline > 1)
        bytes += holding->arrives;
    return bytes;
}

static double context(const struct scenario *scenario)
{
    const double mib = 1048576;
    double bytes = 1024 * mib;

    if (!isnan(scenario->memory.context))
        return scenario->memory.context;
    if (model_is_timed(&scenario->model))
        return 0;
    for (enum group_kind kind = 0; kind < GROUP_EMBEDDING; kind++) {      /* only two stages have an embedding group */
        const struct process_group *group = &scenario->groups.of[kind];

        bytes += !group->exchanges || group_members(group) == 1 ? 0 : group_members(group) == 2 ? 544 * mib : 688 * mib;
    }
    return bytes;
}

/* Of ranks that all have the same degrees. */
static struct memory states_of(const struct scenario *scenario, const struct stage *stages, int program_rank)
{
    struct parameter_bytes each = scenario_parameter_bytes(scenario);
    struct holding holding = holding_of(scenario, stages, program_rank % scenario->plan.stages);
    const struct recipe *recipe = &scenario->recipe;
    bool first = program_rank < scenario->plan.stages;
    struct memory memory = {0};

    memory.bytes[MEMORY_CONTEXT] = context(scenario);
    if (recipe->weights.when == WEIGHTS_FORWARD && !first)       /* each forward receives its weights */
        return memory;
    memory.bytes[MEMORY_PARAMETERS] = holding.weights * each.weights + holding.stashed;
    if (divides(recipe, HELD_WEIGHTS))
        memory.bytes[MEMORY_GATHERED] = holding.gathered.root + holding.gathered.blocks;
    memory.bytes[MEMORY_GRADIENTS] = holding.gradients * (each.gradients + each.converted) + holding.compression;
    memory.bytes[MEMORY_OPTIMIZER] = recipe->rooted && !first ? 0 : holding.states;
    if (scenario_offloads(scenario, OFFLOAD_WEIGHTS)) {
        memory.bytes[MEMORY_PARAMETERS] = 0;
        memory.bytes[MEMORY_GATHERED] += holding.fetched * each.weights;
    }
    if (precision_is_narrow(&scenario->memory.precision)) {
        const struct precision_spec *precision = &scenario->memory.precision;
        double copies = 2 * dtype_scaled_bytes(precision_products(precision));
        double instead = precision->fp8_weights == FP8_WEIGHTS_PRIMARY ? each.weights : 0;

        memory.bytes[MEMORY_PARAMETERS] += (copies - instead) * (holding.copies.lasting + holding.copies.passing);
    }
    if (scenario_offloads(scenario, OFFLOAD_OPTIMIZER))
        memory.bytes[MEMORY_OPTIMIZER] = 0;
    memory.bytes[MEMORY_BUFFERS] = buffers(scenario, &holding, program_rank);
    memory.bytes[MEMORY_DUMMIES] = rank_dummy_gradients(scenario, stages, program_rank % scenario->plan.stages);
    return memory;
}

struct memory memory_states(const struct scenario *scenario, const struct stage *stages, int program_rank)
{
    struct scenario seen;

    if (!scenario->views)
        return states_of(scenario, stages, program_rank);
    seen = scenario_seen(scenario, program_rank % scenario->plan.stages);
    return states_of(&seen, stages, program_rank);
}

double memory_fragmentation(const struct scenario *scenario)
{
    const double usual = 0.055;

    if (!isnan(scenario->memory.fragmentation))
        return scenario->memory.fragmentation;
    return model_is_timed(&scenario->model) ? 0 : usual;
}

static void add_fragmentation(struct memory *memory, const struct scenario *scenario)
{
    double lost = memory_fragmentation(scenario), allocated = memory_total(memory) - memory->bytes[MEMORY_CONTEXT];

    memory->bytes[MEMORY_FRAGMENTATION] = allocated * lost / (1 - lost);
}

double memory_offloaded_states(const struct scenario *scenario, const struct stage *stages, int rank)
{
    struct parameter_bytes each = scenario_parameter_bytes(scenario);
    const struct scenario seen = scenario_seen(scenario, rank);
    struct holding holding = holding_of(&seen, stages, rank);
    double bytes = 0;

    if (scenario_offloads(scenario, OFFLOAD_WEIGHTS))
        bytes += holding.weights * each.weights;
    if (scenario_offloads(scenario, OFFLOAD_OPTIMIZER))
        bytes += holding.states + holding.updated * each.gradients;
    return bytes;
}

static int by_time(const void *a, const void *b)
{
    const struct memory_event *x = a, *y = b;

    if (x->at < y->at || x->at > y->at)
        return x->at < y->at ? -1 : 1;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return (int)x->ends - (int)y->ends;
}

/* A rank's events are sorted already, unless several of its lanes take memory. */
static void sort_events(struct memory_event *events, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (by_time(&events[i - 1], &events[i]) > 0) {
            array_sort(events, count, sizeof *events, by_time);
            return;
        }
}

/* Writes an operation's events, at most two, and returns their number. */
static size_t events_of(const struct timeline *timeline, uint32_t id, uint32_t order, struct memory_event *events)
{
    const struct op *op = &timeline->program->ops.items[id];
    const struct traits *traits = op_traits(timeline->program, op);
    struct memory_event event = {.order = order, .traits = op->traits & INT32_MAX};
    size_t count = 0;

    event.at = timeline->start[id];
    if (traits->takes + traits->workspace > 0)
        events[count++] = event;
    event.at = timeline->end[id];
    event.ends = 1;
    if (traits->frees + traits->workspace > 0)
        events[count++] = event;
    return count;
}

struct memory_events memory_events(const struct timeline *timeline)
{
    const struct program *program = timeline->program;
    size_t ranks = (size_t)program->ranks, *next = xcalloc(ranks + 2, sizeof *next);
    struct memory_events events = {.first = next};
    struct memory_event both[2];
    uint32_t *order = timeline_order(timeline);

    for (uint32_t id = 0; id < program->ops.count; id++)
        next[program->lanes.items[program->ops.items[id].lane].rank + 2] += events_of(timeline, id, 0, both);
    for (size_t r = 0; r < ranks; r++)
        next[r + 2] += next[r + 1];
    events.items = xcalloc(next[ranks + 1], sizeof *events.items);
    for (uint32_t k = 0; k < program->ops.count; k++) {
        uint32_t id = order_at(order, k);
        size_t *at = &next[program->lanes.items[program->ops.items[id].lane].rank + 1];
        size_t count = events_of(timeline, id, k, both);

        memcpy(events.items + *at, both, count * sizeof *both);
        *at += count;
    }
    for (size_t r = 0; r < ranks; r++)
        sort_events(events.items + next[r], next[r + 1] - next[r]);
    free(order);
    return events;
}

void memory_events_release(struct memory_events *events)
{
    free(events->items);
    free(events->first);
}

static void pass_events(const struct timeline *timeline, struct memory_peak *peaks)
{
    const struct program *program = timeline->program;
    struct memory_events events = memory_events(timeline);

    for (int r = 0; r < program->ranks; r++)
        for (size_t i = events.first[r]; i < events.first[r + 1]; i++) {
            const struct traits *traits = &program->traits.items[events.items[i].traits];

            if (events.items[i].ends)
                peaks[r].now -= traits->frees;
            else
                memory_peak_take(&peaks[r], traits->takes, traits->workspace);
        }
    memory_events_release(&events);
}

/* The same as pass_events() where one lane of each rank at most has operations that take or free memory, none of them a
 * transfer, and these run in the order of ids: then each of them frees what it does before the next one takes anything.
 * False if it finds that this is not so. */
static bool pass_operations(const struct program *program, struct memory_peak *peaks)
{
    uint32_t *lanes = xcalloc((size_t)program->ranks, sizeof *lanes);    /* a rank: the lane of these, counted from 1 */
    bool alone = true;

    for (size_t i = 0; i < program->ops.count && alone; i++) {
        const struct op *op = &program->ops.items[i];
        const struct traits *traits = op_traits(program, op);

        if (traits->takes + traits->workspace + traits->frees == 0)
            continue;
        int rank = program->lanes.items[op->lane].rank;

        alone = op->kind == OP_COMPUTE && (!lanes[rank] || lanes[rank] == op->lane + 1);
        lanes[rank] = op->lane + 1;
        memory_peak_take(&peaks[rank], traits->takes, traits->workspace);
        peaks[rank].now -= traits->frees;
    }
    free(lanes);
    return alone;
}

struct memory_peak *memory_peaks_begin(const struct scenario *scenario, const struct stage *stages, int ranks)
{
    struct memory_peak *peaks = xcalloc((size_t)ranks, sizeof *peaks);

    for (int r = 0; r < ranks; r++)
        if (scenario_has_rank(scenario, r))
            peaks[r].memory = memory_states(scenario, stages, r);
    return peaks;
}

void memory_peaks_end(const struct scenario *scenario, struct memory_peak *peaks, int ranks)
{
    for (int r = 0; r < ranks; r++)
        add_fragmentation(&peaks[r].memory, scenario);
}

struct memory_peak *memory_peaks(const struct scenario *scenario, const struct stage *stages,
                                 const struct timeline *timeline)
{
    const struct program *program = timeline->program;
    struct memory_peak *peaks = memory_peaks_begin(scenario, stages, program->ranks);

    if (program->choices.count || !pass_operations(program, peaks)) {
        free(peaks);
        peaks = memory_peaks_begin(scenario, stages, program->ranks);
        pass_events(timeline, peaks);
    }
    memory_peaks_end(scenario, peaks, program->ranks);
    return peaks;
}

double memory_total(const struct memory *memory)
{
    double total = 0;

    for (int kind = 0; kind < MEMORY_KIND_COUNT; kind++)
        total += memory->bytes[kind];
    return total;
}

double memory_limit(const struct scenario *scenario)
{
    if (!scenario->memory.enforce)
        return INFINITY;
    return scenario_least_room(scenario);
}

double memory_limit_of(const struct scenario *scenario, int rank)
{
    return scenario->memory.enforce ? scenario_room(scenario, rank) : INFINITY;
}
