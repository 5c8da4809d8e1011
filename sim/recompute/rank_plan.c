#include "recompute/rank_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* When a rank may hold most: so many micro-batches of each chunk in flight, one of that chunk at work. */
struct moment { int *flying, chunk; };

struct sharing {
    struct arena *arena;
    const struct scenario *scenario;
    const struct stage *stages;
    int rank, chunks, flying;    /* micro-batches in flight, at most, of all chunks */
    double memory;               /* B that they have */
    struct moments { struct moment *items; size_t count, capacity; } moments;
};

/* No moment is noted that another one covers. */
static void note_moment(struct sharing *sharing, const int *flying, int chunk)
{
    struct arena *arena = sharing->arena;
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

/* B that a rank has for activations: its limit without what it holds all the time and fragmentation. */
static double budget_of(const struct scenario *scenario, const struct stage *stages, int rank)
{
    double least = INFINITY;

    for (int d = 0; d < scenario_replicas(scenario) && d < 2; d++) {     /* a parameter server is replica 0 */
        struct memory states = memory_states(scenario, stages, d * scenario->plan.stages + rank);
        double context = states.bytes[MEMORY_CONTEXT];

        least = fmin(least, (scenario_room(scenario) - context) * (1 - memory_fragmentation(scenario)) -
                            (memory_total(&states) - context));
    }
    return least;
}

/* A chunk's plan for so many bytes and micro-batches in flight; -1 where none fits. */
static int plan_chunk(const struct sharing *sharing, int chunk, double memory, int flying, struct chain_plan *plan)
{
    const struct scenario *scenario = sharing->scenario;
    const struct stage *stage = &sharing->stages[plan_virtual_stage(&scenario->plan, sharing->rank, chunk)];
    bool offloads = scenario_offloads(scenario, OFFLOAD_ACTIVATIONS);
    struct chain_limit limit = {
        .memory = memory, .in_flight = flying, .recompute = scenario->memory.recompute.mode == RECOMPUTE_OPTIMAL,
        .host_bandwidth = offloads ? cluster_host_bandwidth(&scenario->cluster) : 0,
    };

    return chain_plan(sharing->arena, stage->chain, stage->nslices, &limit, plan);
}

/* What a chunk chooses among. */
struct menu { struct chain_plan *items; size_t count, capacity; };

static void add_choice(struct menu *choices, const struct chain_plan *plan)
{
    for (size_t i = 0; i < choices->count; i++) {
        const struct chain_plan *other = &choices->items[i];

        if (other->held <= plan->held && other->working <= plan->working && other->moving <= plan->moving &&
            other->seconds <= plan->seconds)
            return;
    }
    *GROW(choices) = *plan;
}

/* Plans for shares of what it takes to keep everything, down to about the least that is found. */
static void find_choices(const struct sharing *sharing, int chunk, int flying, struct menu *choices)
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

/* Bytes too many, and seconds of all chunks: fewer bytes too many are better, then fewer seconds. */
struct standing { double over, seconds; };

static struct standing standing_of(const struct sharing *sharing, const struct chain_plan *plans)
{
    struct standing standing = {.over = fmax(0, held_together(sharing, plans) - sharing->memory)};

    for (int c = 0; c < sharing->chunks; c++)
        standing.seconds += plans[c].seconds;
    return standing;
}

static bool better(struct standing a, struct standing b)
{
    return a.over < b.over || (!(a.over > b.over) && a.seconds < b.seconds * (1 - 1e-12));
}

/* The best change of the choices of two chunks, or of one; false: none is better. */
static bool improve(const struct sharing *sharing, const struct menu *choices, struct chain_plan *plans)
{
    struct standing before = standing_of(sharing, plans), best = before;
    struct chain_plan first = {0}, second = {0};
    int at = -1, other = -1;

    for (int c = 0; c < sharing->chunks; c++)
        for (int d = c; d < sharing->chunks; d++) {
            struct chain_plan kept[] = {plans[c], plans[d]};

            for (size_t i = 0; i < choices[c].count; i++)
                for (size_t k = 0; k < (d > c ? choices[d].count : 1); k++) {
                    plans[d] = d > c ? choices[d].items[k] : plans[d];
                    plans[c] = choices[c].items[i];
                    struct standing now = standing_of(sharing, plans);

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

/* The best that is found from what needs the least, or -1. */
static int share(const struct sharing *sharing, const struct menu *choices, struct chain_plan *plans)
{
    for (int c = 0; c < sharing->chunks; c++)
        plans[c] = choices[c].items[choices[c].count - 1];
    while (improve(sharing, choices, plans))
        ;
    return held_together(sharing, plans) <= sharing->memory ? 0 : -1;
}

/* What the chunks' plans are for the memory there is, or -1. */
static int plan_all(const struct sharing *sharing, const struct menu *choices, struct chain_plan *plans)
{
    if (sharing->chunks == 1)
        return plan_chunk(sharing, 0, sharing->memory, sharing->flying, plans);
    return share(sharing, choices, plans);
}

/* Of what is left when a rank holds all but activations; where that is nothing, no plan is looked for. */
static int infeasible(struct sharing *sharing, const struct menu *choices, struct chain_plan *plans, struct error *err)
{
    enum { HALVINGS = 10 };
    const struct scenario *scenario = sharing->scenario;
    double memory = sharing->memory, low = fmax(memory, 0), high = fmax(2 * low, 1e6);
    bool optimal = scenario->memory.recompute.mode == RECOMPUTE_OPTIMAL;
    struct loc loc = node_loc(scenario->memory.node, optimal ? "recompute" : "offload");
    char have[48], need[48];

    unit_format_short(UNIT_BYTES, fabs(memory), have, sizeof have);
    if (memory < 0)
        return error_infeasible(err, ERROR_MEMORY, loc,
                                "memory: rank %d has %s too little for what it always holds, without activations",
                                sharing->rank, have);
    while (sharing->memory = high, high < 1e18 && plan_all(sharing, choices, plans))
        low = high, high *= 2;
    for (int i = 0; i < HALVINGS; i++) {
        sharing->memory = (low + high) / 2;
        *(plan_all(sharing, choices, plans) ? &low : &high) = sharing->memory;
    }
    return error_infeasible(err, ERROR_MEMORY, loc,
                            "memory: rank %d has %s for the activations in flight (micro-batches: %d), beside "
                            "all else that it holds; the least that a plan was found for is about %s",
                            sharing->rank, have, sharing->flying,
                            unit_format_short(UNIT_BYTES, high, need, sizeof need));
}

int rank_plan(struct arena *arena, const struct scenario *scenario, const struct stage *stages, int rank,
              const struct row *row, struct chain_plan *plans, struct error *err)
{
    struct sharing sharing = {
        .arena = arena, .scenario = scenario, .stages = stages, .rank = rank,
        .chunks = plan_chunks(&scenario->plan, rank),
        .flying = row_in_flight(row, -1), .memory = budget_of(scenario, stages, rank),
    };
    struct menu *choices = xcalloc((size_t)sharing.chunks, sizeof *choices);
    int rc;

    note_row(&sharing, row);
    for (int c = 0; sharing.chunks > 1 && sharing.memory >= 0 && c < sharing.chunks; c++)
        find_choices(&sharing, c, row_in_flight(row, c), &choices[c]);
    rc = sharing.memory < 0 || plan_all(&sharing, choices, plans) ? infeasible(&sharing, choices, plans, err) : 0;
    for (int c = 0; c < sharing.chunks; c++)
        free(choices[c].items);
    free(choices);
    free(sharing.moments.items);
    return rc;
}
