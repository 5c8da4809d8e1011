#include "recompute/rank_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/progress.h"
#include "base/units.h"
#include "config/conf.h"
#include "recompute/tensors.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/memory.h"

int row_in_flight(const struct row *row, int chunk)
{
    int now = 0, most = 0;

    for (size_t i = 0; i < row->count; i++) {
        struct work work = row->items[i];

        if (chunk >= 0 && work.chunk != chunk)
            continue;
        now += work.kind == FORWARD ? 1 : work.kind == BACKWARD ? -1 : 0;
        most = now > most ? now : most;
    }
    return most;
}

/* A moment when a rank may hold most: micro-batches of each chunk in flight, and the chunk at work. */
struct moment { int *flying, chunk; };

struct sharing {
    const struct planning *planning;
    int rank, chunks, flying;    /* flying: the most micro-batches in flight, of all chunks */
    double memory;               /* B for all chunks */
    struct moments { struct moment *items; size_t count, capacity; } moments;
};

/* Notes a moment, unless another one holds at least as much. */
static void note_moment(struct sharing *sharing, const int *flying, int chunk)
{
    struct arena *arena = sharing->planning->arena;
    struct moments *moments = &sharing->moments;

    for (size_t i = 0; i < moments->count; i++) {
        bool covered = moments->items[i].chunk == chunk;

        for (int c = 0; c < sharing->chunks; c++)
            covered &= moments->items[i].flying[c] >= flying[c];
        if (covered)
            return;
    }
    struct moment moment = {.flying = ARENA_ARRAY(arena, int, sharing->chunks), .chunk = chunk};

    memcpy(moment.flying, flying, (size_t)sharing->chunks * sizeof *flying);
    *GROW(moments) = moment;
}

static void note_row(struct sharing *sharing, const struct row *row)
{
    int *flying = xcalloc((size_t)sharing->chunks, sizeof *flying);

    for (size_t i = 0; i < row->count; i++) {
        struct work work = row->items[i];

        if (work.kind != FORWARD && work.kind != BACKWARD)
            continue;
        flying[work.chunk] += work.kind == FORWARD;
        note_moment(sharing, flying, work.chunk);
        flying[work.chunk] -= work.kind == BACKWARD;
    }
    free(flying);
}

/* B that the chunks hold together, at most. */
static double held_together(const struct sharing *sharing, const struct chain_plan *plans)
{
    double most = 0, moving = 0;

    for (size_t i = 0; i < sharing->moments.count; i++) {
        const struct moment *moment = &sharing->moments.items[i];
        double held = plans[moment->chunk].working;

        for (int c = 0; c < sharing->chunks; c++)
            held += moment->flying[c] * plans[c].held;
        most = fmax(most, held);
    }
    for (int c = 0; c < sharing->chunks; c++)
        moving = fmax(moving, plans[c].moving);
    return most + moving;
}

/* B that a rank has for activations: its limit without fragmentation and without memory_states. */
static double budget_of(const struct scenario *scenario, const struct stage *stages, int rank)
{
    double least = INFINITY, room = scenario_room(scenario, rank);

    if (scenario->memory.planned > 0)
        room = scenario->layout.mixed && isnan(scenario->memory.limit) ? fmin(room, scenario->memory.planned)
                                                                       : scenario->memory.planned;

    for (int d = 0; d < scenario_rank_replicas(scenario, rank) && d < 2; d++) {     /* a parameter server is replica 0 */
        struct memory states = memory_states(scenario, stages, d * scenario->plan.stages + rank);
        double context = states.bytes[MEMORY_CONTEXT];

        least = fmin(least, (room - context) * (1 - memory_fragmentation(scenario)) -
                            (memory_total(&states) - context));
    }
    return least;
}

/* A chunk's plan for `memory` bytes and `flying` micro-batches in flight; -1: none fits. */
static int plan_chunk(const struct sharing *sharing, int chunk, double memory, int flying, struct chain_plan *plan)
{
    const struct scenario *scenario = sharing->planning->scenario;
    int s = plan_virtual_stage(&scenario->plan, sharing->rank, chunk);
    enum recompute mode = (enum recompute)scenario->memory.recompute.mode;
    struct chain_limit limit = {
        .memory = memory,
        .in_flight = flying,
        .recompute = mode == RECOMPUTE_OPTIMAL,
        .host_bandwidth = scenario_moves_activations(scenario) ? scenario_host_bandwidth(scenario, sharing->rank) : 0,
        .progress = scenario->progress,
        .tensors = scenario_offloads(scenario, OFFLOAD_TENSORS),
    };

    if (limit.tensors) {
        limit.host_latency = scenario_host_latency(scenario, sharing->rank);
        limit.full = mode == RECOMPUTE_FULL;
        limit.shared = sharing->chunks > 1;
    }

    return chain_plan(sharing->planning->arena, sharing->planning->chains[s], sharing->planning->stages[s].nslices,
                      &limit, plan);
}

/* The plans that a chunk chooses among. */
struct chunk_choices { struct chain_plan *items; size_t count, capacity; };

static void add_choice(struct chunk_choices *choices, const struct chain_plan *plan)
{
    for (size_t i = 0; i < choices->count; i++) {
        const struct chain_plan *other = &choices->items[i];

        if (other->held <= plan->held && other->working <= plan->working && other->moving <= plan->moving &&
            other->seconds <= plan->seconds)
            return;
    }
    *GROW(choices) = *plan;
}

/* Plans for shares of the memory that keeps everything, down to about the least memory that suffices. */
static void find_choices(const struct sharing *sharing, int chunk, int flying, struct chunk_choices *choices)
{
    enum { SHARES = 8, HALVINGS = 4 };
    struct chain_plan plan;
    double low = 0, high;

    plan_chunk(sharing, chunk, INFINITY, flying, &plan);
    add_choice(choices, &plan);
    high = plan.held * flying + plan.working;
    for (int i = 0; i < SHARES + HALVINGS; i++) {
        double memory = low > 0 || i >= SHARES ? (low + high) / 2 : high * (SHARES - 1 - i) / (SHARES - i);

        if (plan_chunk(sharing, chunk, memory, flying, &plan))
            low = memory;
        else
            add_choice(choices, &plan), high = memory;
    }
}

/* The merit of a choice: less excess memory is better, then less time. */
struct merit { double over, seconds; };          /* B beyond the memory; s of all chunks */

static struct merit merit_of(const struct sharing *sharing, const struct chain_plan *plans)
{
    struct merit merit = {.over = fmax(0, held_together(sharing, plans) - sharing->memory)};

    for (int c = 0; c < sharing->chunks; c++)
        merit.seconds += plans[c].seconds;
    return merit;
}

static bool better(struct merit a, struct merit b)
{
    return a.over < b.over || (!(a.over > b.over) && a.seconds < b.seconds * (1 - 1e-12));
}

/* Makes the best change of one or two chunks' choices; false: no change is better. */
static bool improve(const struct sharing *sharing, const struct chunk_choices *choices, struct chain_plan *plans)
{
    struct merit before = merit_of(sharing, plans), best = before;
    struct chain_plan first = {0}, second = {0};
    int at = -1, other = -1;

    for (int c = 0; c < sharing->chunks; c++)
        for (int d = c; d < sharing->chunks; d++) {
            struct chain_plan kept[] = {plans[c], plans[d]};

            for (size_t i = 0; i < choices[c].count; i++)
                for (size_t k = 0; k < (d > c ? choices[d].count : 1); k++) {
                    plans[d] = d > c ? choices[d].items[k] : plans[d];
                    plans[c] = choices[c].items[i];
                    struct merit now = merit_of(sharing, plans);

                    if (better(now, best))
                        best = now, at = c, other = d, first = plans[c], second = plans[d];
                }
            plans[d] = kept[1];
            plans[c] = kept[0];
        }
    if (at < 0)
        return false;
    plans[other] = second;
    plans[at] = first;
    return true;
}

/* Improves the choices that need the least memory; -1: they do not fit. */
static int share(const struct sharing *sharing, const struct chunk_choices *choices, struct chain_plan *plans)
{
    for (int c = 0; c < sharing->chunks; c++)
        plans[c] = choices[c].items[choices[c].count - 1];
    while (improve(sharing, choices, plans))
        ;
    return held_together(sharing, plans) <= sharing->memory ? 0 : -1;
}

/* Plans all chunks for sharing->memory; -1: nothing fits. */
static int plan_all(const struct sharing *sharing, const struct chunk_choices *choices, struct chain_plan *plans)
{
    if (sharing->chunks == 1)
        return plan_chunk(sharing, 0, sharing->memory, sharing->flying, plans);
    return share(sharing, choices, plans);
}

static bool is_over(const struct scenario *scenario)
{
    return scenario->progress && scenario->progress->over;
}

/* The search for a stage's plan takes the cube of its layers, unless all that its only chunk keeps fits. */
static int check_effort(const struct sharing *sharing, struct error *err)
{
    enum { MOST = 400 };             /* layers: half a GB, some 20 s */
    const struct scenario *scenario = sharing->planning->scenario;
    bool optimal = scenario->memory.recompute.mode == RECOMPUTE_OPTIMAL;
    struct chain_plan whole;
    char bytes[48], steps[48];

    if (sharing->chunks == 1 && !plan_chunk(sharing, 0, INFINITY, sharing->flying, &whole) &&
        whole.held * sharing->flying + whole.working <= sharing->memory)
        return 0;
    for (int c = 0; c < sharing->chunks; c++) {
        size_t layers = sharing->planning->stages[plan_virtual_stage(&scenario->plan, sharing->rank, c)].nslices;
        struct chain_effort effort = chain_effort(layers);

        if (layers > MOST)
            return error_clash(err, node_loc(scenario->memory.node, optimal ? "recompute" : "offload"),
                               "memory: the plan of rank %d's %zu layers would need tables of about %s and %s steps; "
                               "expected at most %d layers in a stage: more pipeline ranks%s",
                               sharing->rank, layers, unit_format_short(UNIT_BYTES, effort.bytes, bytes, sizeof bytes),
                               unit_format_short(UNIT_COUNT, effort.steps, steps, sizeof steps), MOST,
                               optimal ? ", or 'recompute: full'" : "");
    }
    return 0;
}

/* The error that no plan fits, with the least memory that suffices; none is searched if no memory is left at all. */
static int infeasible(struct sharing *sharing, const struct chunk_choices *choices, struct chain_plan *plans,
                      struct error *err)
{
    enum { HALVINGS = 10 };
    const struct scenario *scenario = sharing->planning->scenario;
    double memory = sharing->memory, low = fmax(memory, 0), high = fmax(2 * low, 1e6);
    bool optimal = scenario->memory.recompute.mode == RECOMPUTE_OPTIMAL;
    struct loc loc = node_loc(scenario->memory.node, optimal ? "recompute" : "offload");
    char have[48], need[48];

    unit_format_short(UNIT_BYTES, fabs(memory), have, sizeof have);
    if (scenario->memory.planned > 0)        /* one of many limits that are tried */
        return error_infeasible(err, ERROR_MEMORY, loc, "memory: rank %d has no plan for %s", sharing->rank, have);
    if (memory < 0)
        return error_infeasible(err, ERROR_MEMORY, loc,
                                "memory: rank %d has %s too little for what it always holds, without activations",
                                sharing->rank, have);
    while (sharing->memory = high, high < 1e18 && !is_over(scenario) && plan_all(sharing, choices, plans))
        low = high, high *= 2;
    for (int i = 0; i < HALVINGS && !is_over(scenario); i++) {
        sharing->memory = (low + high) / 2;
        *(plan_all(sharing, choices, plans) ? &low : &high) = sharing->memory;
    }
    if (progress_check(scenario->progress, err))
        return -1;
    return error_infeasible(err, ERROR_MEMORY, loc,
                            "memory: rank %d has %s for the activations in flight (micro-batches: %d), in "
                            "addition to all else that it holds; the least that a plan was found for is about %s",
                            sharing->rank, have, sharing->flying,
                            unit_format_short(UNIT_BYTES, high, need, sizeof need));
}

/* Tensors on their way have the largest window of all chunks. */
static void share_window(const struct sharing *sharing, struct chain_plan *plans)
{
    const struct planning *planning = sharing->planning;
    double window = 0;

    for (int c = 0; c < sharing->chunks; c++)
        window = fmax(window, plans[c].moving);
    for (int c = 0; c < sharing->chunks; c++) {
        int s = plan_virtual_stage(&planning->scenario->plan, sharing->rank, c);

        tensors_share(planning->arena, planning->stages[s].nslices, window, &plans[c]);
    }
}

int rank_plan(const struct planning *planning, int rank, struct chain_plan *plans, struct error *err)
{
    const struct row *row = &planning->rows[rank];
    struct sharing sharing = {
        .planning = planning, .rank = rank, .chunks = plan_chunks(&planning->scenario->plan, rank),
        .flying = row_in_flight(row, -1), .memory = budget_of(planning->scenario, planning->stages, rank),
    };
    struct chunk_choices *choices;
    int rc;

    if (check_effort(&sharing, err))
        return -1;
    choices = xcalloc((size_t)sharing.chunks, sizeof *choices);
    note_row(&sharing, row);
    for (int c = 0; sharing.chunks > 1 && sharing.memory >= 0 && c < sharing.chunks; c++)
        find_choices(&sharing, c, row_in_flight(row, c), &choices[c]);
    rc = sharing.memory < 0 || plan_all(&sharing, choices, plans) ? infeasible(&sharing, choices, plans, err) : 0;
    if (!rc && sharing.chunks > 1 && scenario_offloads(planning->scenario, OFFLOAD_TENSORS))
        share_window(&sharing, plans);
    for (int c = 0; c < sharing.chunks; c++)
        free(choices[c].items);
    free(choices);
    free(sharing.moments.items);
    return rc;
}
