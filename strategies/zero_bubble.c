/* Zero-bubble pipelines are built, not given by a formula. Works are placed round by round while the time of all ranks
 * advances: a forward and a backward for the input (I) for each round and rank, and backwards for the weights (W) where
 * a rank would wait, or where memory needs them. Eight variants are tried, and the shortest is kept.
 *
 * These are the rules of the authors' heuristic scheduler (sail-sg, zb.py). */
#include "zero_bubble.h"

#include <math.h>
#include <stdlib.h>

/* Without attention scores a micro-batch's activations are 34 bytes a token and hidden element. The W needs 32 of them,
 * the inputs of the products (Qi et al. 2023, table 1; Korthikanti et al. 2022). With the scores they are 34 h + 5 a s,
 * as in the authors' tables. */
static const struct field fields[] = {
    {KEY(zero_bubble_options, variant), .kind = FIELD_CHOICE, .fallback = "greedy",
     .choices = CHOICES(ZERO_BUBBLE_VARIANTS),
     .brief = "how the order is made",
     .choice_briefs = NAMES("built for the times of the works in the same memory, as the authors' scheduler does "
                            "(their ZB-1p and ZB-2p)", "the order in the paper's figure")},
    {KEY(zero_bubble_options, input_frees), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .fallback = "0.05882353",
     .max = 0.99,
     .brief = "share of the activations that a backward for the input frees, for the greedy order: 2/34 in a"
              " transformer without attention scores in memory, (2 h + 5 a s) / (34 h + 5 a s) with them"},
};
const struct table zero_bubble_options = {TABLE("strategy", "options of zb-h1 and zb-h2", zero_bubble_options, fields)};
static const double tiny = 1e-6;     /* rounding of shares, in a micro-batch's activations */

/* A variant of the builder. */
struct variant {
    bool wait_for_first_backward;    /* no warm-up forward may delay the first backward, though the rank waits for it */
    bool backward_first;             /* no later forward may delay a backward from the next rank */
    bool fill;                       /* a W longer than the wait fills it even if the rank may still wait */
};

struct progress {
    int done[WORK_KIND_COUNT];       /* micro-batches */
    double now;                      /* the end of the last placed work */
    double idle;                     /* waiting time since the first forward */
};

struct builder {
    const struct plan *plan;
    struct variant variant;
    double cost[WORK_KIND_COUNT], communication;     /* multiples of a common unit, so that sums are exact */
    double limit, input_frees;                       /* of memory, in micro-batches; the option */
    double most_idle;                                /* the largest idle time of a rank */
    struct progress *at;                             /* a rank */
    double *end[WORK_KIND_COUNT];                    /* of FORWARD and BACKWARD_INPUT: a rank and micro-batch */
    struct row *rows;
};

static double later(double a, double b)
{
    return a > b ? a : b;
}

static double *end_of(const struct builder *builder, enum work_kind kind, int rank, int mb)
{
    return &builder->end[kind][(size_t)rank * (size_t)builder->plan->micro_batches + (size_t)mb];
}

/* The arrival of the input of a rank's next work of a kind; 0 if it waits for no other rank. */
static double arrival(const struct builder *builder, int rank, enum work_kind kind)
{
    int from = kind == FORWARD ? rank - 1 : rank + 1;

    if (kind == BACKWARD_WEIGHT || from < 0 || from == builder->plan->stages)
        return 0;
    return *end_of(builder, kind, from, builder->at[rank].done[kind]) + builder->communication;
}

static void put(struct builder *builder, int rank, enum work_kind kind)
{
    struct progress *at = &builder->at[rank];
    double start = later(at->now, arrival(builder, rank, kind));
    int mb = at->done[kind];

    if (at->done[FORWARD])
        at->idle += start - at->now;
    builder->most_idle = later(builder->most_idle, at->idle);
    at->now = start + builder->cost[kind];
    at->done[kind]++;
    if (kind != BACKWARD_WEIGHT)
        *end_of(builder, kind, rank, mb) = at->now;
    if (kind == FORWARD)
        forward(&builder->rows[rank], 0, mb);
    if (kind == BACKWARD_INPUT && builder->plan->recompute)
        recompute(&builder->rows[rank], 0, mb);
    if (kind == BACKWARD_INPUT)
        backward_input(&builder->rows[rank], 0, mb);
    if (kind == BACKWARD_WEIGHT)
        backward_weight(&builder->rows[rank], 0, mb);
}

/* The memory that one more forward would need beyond the limit, in micro-batches. */
static double exceeds(const struct builder *builder, const struct progress *at)
{
    int held = at->done[FORWARD] - at->done[BACKWARD_WEIGHT];
    int pending = at->done[BACKWARD_INPUT] - at->done[BACKWARD_WEIGHT];

    return held + 1 - builder->input_frees * pending - builder->limit - tiny;
}

/* The number of W that must come before the next forward, to free its memory. */
static int weights_before_forward(const struct builder *builder, const struct progress *at)
{
    double over = exceeds(builder, at), each = 1 - builder->input_frees;
    int pending = at->done[BACKWARD_INPUT] - at->done[BACKWARD_WEIGHT];

    return over <= 0 ? 0 : over > pending * each ? pending : (int)ceil(over / each);
}

/* Places W where the rank would wait until `until`: all that fit, and one that does not, unless the wait leaves the
 * rank's idle time below the largest one. */
static void fill_wait(struct builder *builder, int rank, double until)
{
    struct progress *at = &builder->at[rank];
    double weight = builder->cost[BACKWARD_WEIGHT];

    while (at->done[BACKWARD_WEIGHT] < at->done[BACKWARD_INPUT] && at->now + weight <= until)
        put(builder, rank, BACKWARD_WEIGHT);
    if (at->done[BACKWARD_WEIGHT] < at->done[BACKWARD_INPUT] && at->now < until &&
        (builder->variant.fill || until - at->now > builder->most_idle - at->idle))
        put(builder, rank, BACKWARD_WEIGHT);
}

/* The number of further forwards of a rank before its first gradient arrives. */
static int warm_up_forwards(const struct builder *builder, int rank, double gradient)
{
    struct progress at = builder->at[rank];
    int more = 0;

    while (at.done[FORWARD] < builder->plan->micro_batches && exceeds(builder, &at) <= 0) {
        double end = at.now + builder->cost[FORWARD];

        if (builder->variant.wait_for_first_backward ? end > gradient : at.now >= gradient)
            break;
        at.now = end;
        at.done[FORWARD]++;
        more++;
    }
    return more;
}

/* Places all works up to each rank's first I. */
static void warm_up(struct builder *builder)
{
    int last = builder->plan->stages - 1, *more = xcalloc((size_t)last + 1, sizeof *more);
    double gradient, forward_cost = builder->cost[FORWARD];

    for (int rank = 0; rank <= last; rank++)
        put(builder, rank, FORWARD);
    gradient = builder->at[last].now + builder->cost[BACKWARD_INPUT] + builder->communication;
    for (int rank = last - 1; rank >= 0; rank--) {
        more[rank] = warm_up_forwards(builder, rank, gradient);
        gradient = later(builder->at[rank].now + more[rank] * forward_cost, gradient) + builder->cost[BACKWARD_INPUT] +
                   builder->communication;
    }
    /* each rank has fewer than the rank before it, unless all forwards are in the warm-up */
    for (int rank = 1; rank <= last; rank++)
        while (more[rank] > 0 && more[rank] >= more[rank - 1] && 1 + more[rank] < builder->plan->micro_batches)
            more[rank]--;
    for (int rank = 0; rank <= last; rank++)
        for (int i = 0; i < more[rank]; i++)
            put(builder, rank, FORWARD);
    for (int rank = last; rank >= 0; rank--)
        put(builder, rank, BACKWARD_INPUT);
    free(more);
}

/* Whether a rank's next forward comes in this round, before its next I. */
static bool forward_now(const struct builder *builder, int rank)
{
    const struct progress *at = &builder->at[rank], *next = at + 1;

    if (at->done[FORWARD] == builder->plan->micro_batches)
        return false;
    if (!builder->variant.backward_first || rank == builder->plan->stages - 1)
        return true;
    if (at->done[FORWARD] < next->done[FORWARD] + 2)
        return true;
    double gradient = next->now + builder->cost[FORWARD] + builder->cost[BACKWARD_INPUT] + builder->communication;
    double weights = weights_before_forward(builder, at) * builder->cost[BACKWARD_WEIGHT];

    if (at->now >= gradient)
        return false;
    return at->now + weights + builder->cost[FORWARD] <= gradient ||
           gradient - at->now > builder->most_idle - at->idle;
}

static void round_of_forwards(struct builder *builder, bool *wanted)
{
    int ranks = builder->plan->stages;

    for (int rank = 0; rank < ranks; rank++)
        wanted[rank] = forward_now(builder, rank);
    for (int rank = ranks - 2; rank >= 0; rank--)
        wanted[rank] = wanted[rank] && wanted[rank + 1];
    for (int rank = 0; rank < ranks; rank++) {
        if (!wanted[rank])
            continue;
        for (int weights = weights_before_forward(builder, &builder->at[rank]); weights > 0; weights--)
            put(builder, rank, BACKWARD_WEIGHT);
        fill_wait(builder, rank, arrival(builder, rank, FORWARD));
        put(builder, rank, FORWARD);
    }
}

static void drain(struct builder *builder, int rank)
{
    while (builder->at[rank].done[BACKWARD_WEIGHT] < builder->at[rank].done[BACKWARD_INPUT])
        put(builder, rank, BACKWARD_WEIGHT);
}

static void build(struct builder *builder)
{
    int ranks = builder->plan->stages, count = builder->plan->micro_batches;
    bool *wanted = xcalloc((size_t)ranks, sizeof *wanted);

    warm_up(builder);
    for (int round = 1; round < count; round++) {
        round_of_forwards(builder, wanted);
        for (int rank = ranks - 1; rank >= 0; rank--) {
            fill_wait(builder, rank, arrival(builder, rank, BACKWARD_INPUT));
            /* no rank waits for the first rank's I */
            if (rank == 0 && builder->at[rank].done[FORWARD] == count)
                drain(builder, rank);
            put(builder, rank, BACKWARD_INPUT);
        }
    }
    for (int rank = 0; rank < ranks; rank++)
        drain(builder, rank);
    free(wanted);
}

/* The longest time of a rank from its first forward to its last W. */
static double longest_span(const struct builder *builder)
{
    double span = 0;

    for (int rank = 0; rank < builder->plan->stages; rank++)
        span = later(span, builder->at[rank].now - *end_of(builder, FORWARD, rank, 0) + builder->cost[FORWARD]);
    return span;
}

/* The greatest number of which both are whole multiples, up to rounding. */
static double common_unit(double a, double b)
{
    double rounding = 1e-9 * later(a, b);

    while (b > rounding) {
        double rest = fabs(remainder(a, b));

        a = b;
        b = rest;
    }
    return a;
}

static void set_costs(struct builder *builder)
{
    const struct plan_times *times = &builder->plan->times;
    double unit = common_unit(common_unit(times->forward, times->backward_input),
                              common_unit(times->backward_weight, times->communication));
    bool any = times->forward > 0 || times->backward_input > 0 || times->backward_weight > 0;

    builder->cost[FORWARD] = any ? round(times->forward / unit) : 1;
    builder->cost[BACKWARD_INPUT] = any ? round(times->backward_input / unit) : 1;
    builder->cost[BACKWARD_WEIGHT] = any ? round(times->backward_weight / unit) : 1;
    builder->communication = any ? round(times->communication / unit) : 0;
}

/* The paper's figure: each rank's first I comes `limit` micro-batches earlier than on the rank before it, and its first
 * W `limit` micro-batches later. */
static void fixed_row(struct row *row, const struct plan *plan, int rank, int limit)
{
    int count = plan->micro_batches, early = limit * (plan->stages - 1 - rank), late = limit * rank;

    for (int mb = 0; mb < early && mb < count; mb++)
        forward(row, 0, mb);
    for (int mb = 0; mb < count; mb++) {
        if (early + mb < count)
            forward(row, 0, early + mb);
        if (plan->recompute)
            recompute(row, 0, mb);
        backward_input(row, 0, mb);
        if (mb >= late)
            backward_weight(row, 0, mb - late);
    }
    for (int mb = late < count ? count - late : 0; mb < count; mb++)
        backward_weight(row, 0, mb);
}

bool zero_bubble_is_fixed(const struct plan *plan)
{
    const struct zero_bubble_options *options = plan->options;

    return options->variant == ZERO_BUBBLE_FIXED;
}

void zero_bubble_rows(struct row *rows, const struct plan *plan, int limit)
{
    const struct zero_bubble_options *options = plan->options;
    size_t ranks = (size_t)plan->stages, cells = ranks * (size_t)plan->micro_batches;
    struct builder builder = {.plan = plan, .limit = limit * plan->stages, .input_frees = options->input_frees};
    double best = INFINITY;

    for (int rank = 0; zero_bubble_is_fixed(plan) && rank < plan->stages; rank++)
        fixed_row(&rows[rank], plan, rank, limit);
    if (zero_bubble_is_fixed(plan))
        return;
    set_costs(&builder);
    builder.end[FORWARD] = xcalloc(cells, sizeof(double));
    builder.end[BACKWARD_INPUT] = xcalloc(cells, sizeof(double));
    for (int variant = 0; variant < 8; variant++) {
        builder.variant = (struct variant){!(variant & 4), !(variant & 2), !(variant & 1)};
        builder.most_idle = 0;
        builder.at = xcalloc(ranks, sizeof *builder.at);
        builder.rows = xcalloc(ranks, sizeof *builder.rows);
        build(&builder);
        if (longest_span(&builder) < best) {
            best = longest_span(&builder);
            for (int rank = 0; rank < plan->stages; rank++) {
                struct row better = builder.rows[rank];

                builder.rows[rank] = rows[rank];
                rows[rank] = better;
            }
        }
        rows_release(builder.rows, plan->stages);
        free(builder.at);
    }
    free(builder.end[FORWARD]);
    free(builder.end[BACKWARD_INPUT]);
}
