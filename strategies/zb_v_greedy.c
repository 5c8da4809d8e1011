/* ZB-V, built greedily as in sail-sg's zero-bubble-pipeline-parallelism (zbv.py). The order follows from the times of
 * forwards, input gradients, weight gradients and communication. Forwards and backwards are placed in rounds over all
 * ranks, as early as possible. Weight gradients are postponed, and fill the time in which a rank would wait. */
#include "zb_v.h"

#include <math.h>
#include <stdlib.h>

enum { F, I, W, KINDS };
static const enum work_kind work_kinds[KINDS] = {FORWARD, BACKWARD_INPUT, BACKWARD_WEIGHT};

struct state {
    double now;              /* when its last work ends */
    double bubble;           /* waiting time since its first work */
    int count[KINDS][LEGS];  /* works placed */
    int held;                /* activations held: forwards whose weight gradient has not been placed */
    char *late;              /* legs of the input gradients, in order; weight gradients follow this order */
    int nlate, taken;
};

/* One variant of the order. */
struct attempt {
    int ranks, micro_batches, limit;
    double costs[KINDS], communication;
    bool fill_forwards, fill_backwards;  /* a weight gradient may delay a forward, a backward that goes down */
    const double *approved;  /* bubbles of the ranks in the attempt before, or NULL */
    double most_approved;
    double worst;            /* the largest bubble of a rank */
    struct state *states;
    double *ends[2][LEGS];   /* of F and I; rank * micro_batches + mb; -1: not placed */
    struct row *rows;
};

static double end_of(const struct attempt *attempt, int kind, int leg, int rank, int mb)
{
    return attempt->ends[kind][leg][(size_t)rank * (size_t)attempt->micro_batches + (size_t)mb];
}

/* The arrival of the input of a rank's next work of a kind; -1: it needs none from another rank. */
static double arrival(const struct attempt *attempt, int kind, int leg, int rank)
{
    int from = leg_from(attempt->ranks, rank, leg);
    double end;

    if (kind == W || from < 0)
        return -1;
    end = end_of(attempt, kind, leg, from, attempt->states[rank].count[kind][leg]);
    BUG_IF(end < 0);
    return end + attempt->communication;
}

static void place(struct attempt *attempt, int rank, int kind, int leg)
{
    static const int takes[KINDS] = {[F] = 1, [I] = 0, [W] = -1};
    struct state *state = &attempt->states[rank];
    int mb = state->count[kind][leg];
    double begins = fmax(state->now, arrival(attempt, kind, leg, rank));

    BUG_IF(mb >= attempt->micro_batches);
    if (state->count[F][DOWN] > 0)
        state->bubble += begins - state->now;
    attempt->worst = fmax(attempt->worst, state->bubble);
    state->now = begins + attempt->costs[kind];
    state->held += takes[kind];
    state->count[kind][leg]++;
    if (kind == I)
        state->late[state->nlate++] = (char)leg;
    if (kind != W)
        attempt->ends[kind][leg][(size_t)rank * (size_t)attempt->micro_batches + (size_t)mb] = state->now;
    *GROW(&attempt->rows[rank]) =
        (struct work){.kind = work_kinds[kind], .chunk = leg_chunk(work_kinds[kind], leg), .mb = mb};
}

static bool place_weight(struct attempt *attempt, int rank)
{
    struct state *state = &attempt->states[rank];

    if (state->taken == state->nlate)
        return false;
    place(attempt, rank, W, state->late[state->taken++]);
    return true;
}

/* Places weight gradients before a work that has to wait: all that fit into the wait, and with `partly` one that does
 * not, if the rank would otherwise have the largest bubble. */
static void fill_wait(struct attempt *attempt, int rank, int kind, int leg, bool partly)
{
    const struct state *state = &attempt->states[rank];
    double arrives = arrival(attempt, kind, leg, rank), worst;

    if (arrives < 0)
        return;
    while (arrives - state->now >= attempt->costs[W] && place_weight(attempt, rank))
        ;
    worst = fmax(attempt->worst, attempt->approved ? attempt->most_approved - attempt->approved[rank] : 0);
    if (partly && arrives - state->now > worst - state->bubble)
        place_weight(attempt, rank);
}

/* The first forwards: each rank does all that time and memory allow before the first micro-batch comes back up; then
 * forwards of both legs until every rank has at least the forwards of the rank before it. */
static void warm_up(struct attempt *attempt)
{
    struct state *states = attempt->states;
    int last = attempt->ranks - 1, leg = DOWN;

    for (int rank = 0; rank <= last; rank++)
        place(attempt, rank, F, DOWN);
    for (int rank = last; rank >= 0; rank--) {
        while (rank < last && states[rank].held + 2 + 2 * rank <= attempt->limit &&
               states[rank].now + attempt->costs[F] <= arrival(attempt, F, UP, rank) &&
               states[rank].count[F][DOWN] < attempt->micro_batches)
            for (int r = 0; r <= rank; r++)
                place(attempt, r, F, DOWN);
        place(attempt, rank, F, UP);
    }
    for (int rank = 1; rank <= last; rank++) {
        const int *mine = states[rank].count[F], *before = states[rank - 1].count[F];

        while (mine[DOWN] + mine[UP] < before[DOWN] + before[UP] ||
               (mine[UP] <= before[UP] && before[UP] < attempt->micro_batches)) {
            for (int r = last; r >= rank; r--)
                if (states[r].count[F][leg] < attempt->micro_batches)
                    place(attempt, r, F, leg);
            leg = 1 - leg;
        }
    }
}

/* The leg of a rank's next backward: up, unless its input comes from a backward that has not been placed. */
static int backward_leg(const struct attempt *attempt, int rank)
{
    const int *count = attempt->states[rank].count[I];

    if (count[UP] >= count[DOWN])
        return DOWN;
    if (rank == attempt->ranks - 1 || count[DOWN] >= attempt->micro_batches)
        return UP;
    return end_of(attempt, I, UP, rank + 1, count[UP]) >= 0 ? UP : DOWN;
}

/* Places a backward on every rank: first those that go up, from the last rank to the first, then those that go down. */
static void place_backwards(struct attempt *attempt, int *legs)
{
    for (int rank = 0; rank < attempt->ranks; rank++)
        legs[rank] = backward_leg(attempt, rank);
    for (int i = 0; i < 2 * attempt->ranks; i++) {
        int leg = i < attempt->ranks ? UP : DOWN, rank = leg == UP ? attempt->ranks - 1 - i : i - attempt->ranks;

        if (legs[rank] != leg)
            continue;
        fill_wait(attempt, rank, I, leg, leg == UP || attempt->fill_backwards);
        place(attempt, rank, I, leg);
    }
}

/* Places a forward of a leg whose input is there. */
static void place_forward(struct attempt *attempt, int rank)
{
    const struct state *state = &attempt->states[rank];
    const int *count = state->count[F];
    bool more = count[DOWN] < attempt->micro_batches;
    int leg;

    if (count[UP] >= attempt->micro_batches)
        return;
    if (count[UP] >= count[DOWN])
        leg = DOWN;
    else if (rank == attempt->ranks - 1 || end_of(attempt, F, UP, rank + 1, count[UP]) >= 0)
        leg = UP;
    else if (more && (rank == 0 || end_of(attempt, F, DOWN, rank - 1, count[DOWN]) >= 0))
        leg = DOWN;
    else
        return;
    while (state->held + 1 > attempt->limit && place_weight(attempt, rank))
        ;
    fill_wait(attempt, rank, F, leg, attempt->fill_forwards);
    place(attempt, rank, F, leg);
}

static void build(struct attempt *attempt)
{
    int *legs = xcalloc((size_t)attempt->ranks, sizeof *legs);

    warm_up(attempt);
    for (int round = 0; round < 2 * attempt->micro_batches; round++) {
        place_backwards(attempt, legs);
        for (int rank = 0; rank < attempt->ranks; rank++)
            place_forward(attempt, rank);
    }
    for (int rank = 0; rank < attempt->ranks; rank++)
        while (place_weight(attempt, rank))
            ;
    free(legs);
}

static void attempt_init(struct attempt *attempt, const struct attempt *like)
{
    size_t cells = (size_t)like->ranks * (size_t)like->micro_batches;

    *attempt = *like;
    attempt->worst = 0;
    attempt->states = xcalloc((size_t)like->ranks, sizeof *attempt->states);
    attempt->rows = xcalloc((size_t)like->ranks, sizeof *attempt->rows);
    for (int rank = 0; rank < like->ranks; rank++)
        attempt->states[rank].late = xcalloc(LEGS * (size_t)like->micro_batches, 1);
    for (int i = 0; i < 2 * LEGS; i++) {
        attempt->ends[i / LEGS][i % LEGS] = xcalloc(cells, sizeof(double));
        for (size_t k = 0; k < cells; k++)
            attempt->ends[i / LEGS][i % LEGS][k] = -1;
    }
}

static void attempt_release(struct attempt *attempt)
{
    for (int rank = 0; rank < attempt->ranks; rank++) {
        free(attempt->states[rank].late);
        free(attempt->rows[rank].items);
    }
    for (int i = 0; i < 2 * LEGS; i++)
        free(attempt->ends[i / LEGS][i % LEGS]);
    free(attempt->states);
    free(attempt->rows);
}

/* Builds the order, and builds it anew with the bubbles of the ranks in the last attempt, as long as this makes it
 * better. */
static void build_best(struct attempt *best, const struct attempt *like)
{
    double *bubbles = xcalloc((size_t)like->ranks, sizeof *bubbles);
    bool better = true;

    attempt_init(best, like);
    build(best);
    while (better) {
        struct attempt next, worse;

        for (int rank = 0; rank < like->ranks; rank++)
            bubbles[rank] = best->states[rank].bubble;
        attempt_init(&next, like);
        next.approved = bubbles;
        next.most_approved = best->worst;
        build(&next);
        better = next.worst < best->worst;
        worse = better ? *best : next;
        *best = better ? next : *best;
        attempt_release(&worse);
    }
    free(bubbles);
}

/* Rounds times to multiples of a small unit, so that sums and comparisons are exact. */
static void set_costs(struct attempt *attempt, const struct plan_times *times)
{
    enum { PARTS = 5040 };       /* units in the shortest work; most works are then whole numbers of units */
    double costs[KINDS] = {times->forward, times->backward_input, times->backward_weight}, unit = 0;

    for (int i = 0; i < KINDS; i++)
        if (costs[i] > 0 && (unit == 0 || costs[i] < unit))
            unit = costs[i];
    unit /= PARTS;
    for (int i = 0; i < KINDS; i++)
        attempt->costs[i] = unit > 0 ? round(costs[i] / unit) : 1;
    attempt->communication = unit > 0 ? round(times->communication / unit) : 0;
}

void zb_v_greedy(struct row *rows, const struct plan *plan)
{
    struct attempt best, like = {
        .ranks = plan->stages, .micro_batches = plan->micro_batches, .limit = 2 * plan->stages,
    };

    set_costs(&like, &plan->times);
    for (int i = 0; i < 4; i++) {
        struct attempt next, worse;

        like.fill_backwards = i < 2;
        like.fill_forwards = i % 2 == 0;
        build_best(i ? &next : &best, &like);
        if (i == 0)
            continue;
        worse = next.worst < best.worst ? best : next;
        best = next.worst < best.worst ? next : best;
        attempt_release(&worse);
    }
    for (int rank = 0; rank < plan->stages; rank++)
        for (size_t i = 0; i < best.rows[rank].count; i++) {
            struct work work = best.rows[rank].items[i];

            zb_v_append(&rows[rank], plan, work.kind, work.chunk, work.mb);
        }
    attempt_release(&best);
}
