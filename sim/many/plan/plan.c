#include "plan/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "plan/plan_internal.h"
#include "plan/space_states.h"
#include "process/pool.h"
#include "results/results.h"
#include "sweep/sweep.h"

/* Replays before each look at what they gave, and later a share of those before: each look reads them all. As many for any
 * number of workers: which points are replayed, and so what is printed, does not depend on it. */
enum { BATCH = 32, BATCH_SHARE = 4 };

#define GRACE 1.0                /* s after the end of the time, or after an interruption, that a point may go on */

static int by_bound(const void *left, const void *right, void *context)
{
    const struct bounded *bounds = context;
    size_t a = *(const size_t *)left, b = *(const size_t *)right;

    if (bounds[a].seconds < bounds[b].seconds || bounds[a].seconds > bounds[b].seconds)
        return bounds[a].seconds < bounds[b].seconds ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* Counts what is closed and orders what is open. */
static void take_bounds(struct search *search)
{
    struct plan_outcome *outcome = search->outcome;

    for (size_t i = 0; i < search->space->selection.count; i++) {
        const struct bounded *bounded = &search->bounds[i];

        if (bounded->status == BOUNDED_OPEN) {
            search->order[search->nopen++] = i;
        } else if (bounded->status == BOUNDED_REFUSED) {
            plan_count_refusal(outcome, error_kind_names[bounded->rule], bounded->reason, false);
        } else if (bounded->status == BOUNDED_SHORT) {
            outcome->counts.memory++;
            plan_note_short(search, i, bounded->lacks);
        } else {
            outcome->counts.left++;
        }
    }
    if (search->nopen)
        array_sort_by(search->order, search->nopen, sizeof *search->order, by_bound, search->bounds);
}

/* Above which bound no point of that size is among the best, nor the next one, which tells whether the last of the best
 * shares its place; INFINITY: too few ran. One that likely fits goes before others of its place, and one that is plain before
 * others that are nearly as fast (plan_order). */
static double threshold_of(const struct search *search, uint32_t size)
{
    size_t found = 0, likely = 0;
    double place = INFINITY;

    if (search->options->exhaustive || search->options->anchors || !goal_is_timely(&search->space->goal))
        return INFINITY;
    for (size_t i = 0; i < search->nreplayed; i++) {
        const struct replayed *row = &search->replayed[i];

        if (search->bounds[row->point].size != size)
            continue;
        if (found++ == search->options->top)
            place = row->seconds * (1 + row->ratio);
        if (row->fits >= PLAN_LIKELY && likely++ == search->options->top)
            return fmin(place, row->seconds) * (1 + PLAN_NEAR);
    }
    return place * (1 + PLAN_NEAR);
}

static void tell(struct search *search, const char *doing, size_t done, size_t points)
{
    search->state = (struct plan_state){doing, done, points};
    if (search->options->progress)
        search->options->progress(search->options->context, &search->state);
}

static void tell_bounds(void *context, size_t points)
{
    struct search *search = context;

    tell(search, "read", points, search->space->selection.count);
}

static void tell_replays(void *context, const struct sweep_state *state)
{
    struct search *search = context;

    if (state->verify.chosen)
        tell(search, "verified on simgrid", state->verify.done, state->verify.chosen);
    else
        tell(search, "replayed or surely slower", search->next - state->points + state->done, search->nopen);
}

static struct sweep_options sweep_options_of(const struct search *search)
{
    return (struct sweep_options){
        .folder = search->options->folder, .shard = 1, .shards = 1, .jobs = search->options->jobs,
        .located = &search->outcome->located, .anchors = search->options->anchors,
        .retry_failed = search->options->retry_failed, .until = search->until, .grace = GRACE,
    };
}

static int by_number(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

/* Replays the points (`count` numbers), and verifies the best `verify` of them. */
static int replay_points(struct search *search, uint64_t *numbers, size_t count, size_t verify, struct error *err)
{
    struct selection selection = {numbers, count, count, search->space->selection.looked,
                                  search->space->selection.dropped};
    struct sweep_options options = sweep_options_of(search);
    struct sweep_state state;
    int rc;

    array_sort(numbers, count, sizeof *numbers, by_number);
    options.verify = verify;
    options.located = verify ? NULL : options.located;       /* they are known already */
    rc = sweep_run(&search->space->sweep, &selection, &options, tell_replays, search, &state, err);
    search->outcome->interrupted |= state.interrupted;
    search->outcome->verified = state.verify;
    return rc;
}

/* Counts a point that need not be replayed; false: it must. The first ones are, so that the nearest miss is known. */
static bool is_closed(struct search *search, struct bounded *bounded)
{
    struct plan_counts *counts = &search->outcome->counts;

    if (bounded->seconds > search->longest && counts->replayed + counts->outside > 0) {
        search->beyond++;
        counts->outside++;
        return true;
    }
    bounded->pruned = bounded->seconds > threshold_of(search, bounded->size);
    counts->pruned += bounded->pruned;
    return bounded->pruned;
}

/* The next points whose bounds are below their thresholds; those above are pruned. */
static size_t next_batch(struct search *search, uint64_t *numbers)
{
    size_t count = 0, share = search->outcome->located.count / BATCH_SHARE, most = share > BATCH ? share : BATCH;

    while (search->next < search->nopen && count < most) {
        size_t point = search->order[search->next++];
        struct bounded *bounded = &search->bounds[point];

        if (!is_closed(search, bounded))
            numbers[count++] = search->space->selection.items[point];
    }
    return count;
}

static bool time_is_up(const struct search *search)
{
    return search->outcome->interrupted || (search->until > 0 && pool_now() > search->until);
}

/* Keeps the numbers that have no row yet. */
static void note_missed(struct search *search, const uint64_t *numbers, size_t count)
{
    const struct locations *located = &search->outcome->located;

    for (size_t i = 0; i < count && time_is_up(search); i++) {
        size_t at = 0;

        while (at < located->count && located->items[at].number != numbers[i])
            at++;
        if (at == located->count)
            *GROW(&search->missed) = plan_point_of(search, numbers[i]);
    }
}

static int replay_all(struct search *search, struct error *err)
{
    struct plan_outcome *outcome = search->outcome;
    uint64_t memory = outcome->counts.memory;
    size_t count;
    uint64_t *numbers = xcalloc(search->nopen + 1, sizeof *numbers);
    int rc = 0;

    while (!rc && !time_is_up(search) && (count = next_batch(search, numbers))) {
        outcome->counts.memory = memory;
        rc = replay_points(search, numbers, count, 0, err) || plan_read_replays(search, err) < 0 ? -1 : 0;
        note_missed(search, numbers, count);
    }
    free(numbers);
    return rc;
}

/* s of the fastest that ran of that size; INFINITY: none did. */
static double best_of(const struct search *search, uint32_t size)
{
    for (size_t i = 0; i < search->nreplayed; i++)
        if (search->bounds[search->replayed[i].point].size == size)
            return search->replayed[i].seconds;
    return INFINITY;
}

/* Counts a point that was not reached, unless it need not be. */
static void note_left(struct search *search, size_t point)
{
    struct bounded *bounded = &search->bounds[point];
    double best = best_of(search, bounded->size);

    if (is_closed(search, bounded))
        return;
    search->outcome->counts.left++;
    search->outcome->gap = fmax(search->outcome->gap, isfinite(best) ? 1 - bounded->seconds / best : 1);
}

/* Whether the point, whose row failed, may be among the best. */
static bool note_failed(struct search *search, size_t point)
{
    const struct bounded *bounded = &search->bounds[point];
    double best = best_of(search, bounded->size);

    if (bounded->seconds > threshold_of(search, bounded->size) || bounded->seconds > search->longest)
        return false;
    search->outcome->gap = fmax(search->outcome->gap, isfinite(best) && goal_is_timely(&search->space->goal) ?
                                1 - bounded->seconds / best : 1);
    return true;
}

/* What was not reached or failed, and by how much the fastest of it may be faster than the best of as many GPUs and
 * samples. */
static void find_gap(struct search *search)
{
    struct plan_outcome *outcome = search->outcome;
    bool failed = false;

    outcome->gap = outcome->counts.left || search->options->anchors ? 1 : 0;     /* without a bound any time is possible */
    for (size_t i = 0; i < search->missed.count; i++)
        note_left(search, search->missed.items[i]);
    for (size_t i = search->next; i < search->nopen; i++)
        note_left(search, search->order[i]);
    for (size_t i = 0; i < outcome->failures.count; i++)
        failed |= note_failed(search, plan_point_of(search, outcome->failures.items[i].number));
    outcome->status = outcome->counts.left || outcome->interrupted || failed ? PLAN_NOT_PROVEN :
                      search->nreplayed ? PLAN_PROVEN : PLAN_NONE_FEASIBLE;
}

/* How many pruned points may tie with the fastest of their size: their bounds do not exceed its time by more than the
 * error of a ratio. */
static void count_ties(struct search *search)
{
    double ratio = 0;

    for (size_t i = 0; i < search->nreplayed; i++)
        ratio = fmax(ratio, search->replayed[i].ratio);
    for (size_t i = 0; i < search->nopen; i++) {
        const struct bounded *bounded = &search->bounds[search->order[i]];

        search->outcome->may_tie += bounded->pruned &&
                                    bounded->seconds <= best_of(search, bounded->size) * (1 + ratio);
    }
}

/* The numbers of the first `verify` rows that are shown. */
static size_t best_numbers(const struct search *search, const struct results *results, uint64_t *numbers)
{
    const struct plan_options *options = search->options;
    size_t most = options->verify < options->top ? options->verify : options->top, count = 0;

    for (size_t i = 0; i < results->rows.count && i < most; i++)
        if (results_rank_of(results, i).rank)
            numbers[count++] = plan_located_of(search->outcome, results->rows.items[i])->number;
    return count;
}

/* The best of the shown rows by the goal. */
static int verify_replays(struct search *search, struct error *err)
{
    const char *folder = search->options->folder;
    uint64_t *numbers = xcalloc(search->nreplayed + 1, sizeof *numbers);
    struct results results;
    size_t count = 0;
    bool front;
    int rc = 0;

    if (search->options->verify && search->nreplayed) {
        rc = results_open(&folder, 1, &results, err) ||
             plan_order(&results, search->outcome, &search->space->goal, &front, err) ? -1 : 0;
        count = rc ? 0 : best_numbers(search, &results, numbers);
        results_release(&results);
    }
    search->outcome->unverified = count && time_is_up(search);
    if (count && !search->outcome->unverified)
        rc = replay_points(search, numbers, count, count, err);
    free(numbers);
    return rc;
}

static int run(struct search *search, struct error *err)
{
    struct plan_outcome *outcome = search->outcome;
    double begun = pool_now(), bounded;
    struct bounds_options bounds = {.jobs = search->options->jobs, .grace = GRACE, .progress = tell_bounds,
                                    .context = search};
    int rc;

    search->until = bounds.until = search->options->time_limit > 0 ? begun + search->options->time_limit : 0;
    if (bounds_find(search->space, &bounds, search->bounds, &outcome->interrupted, err))
        return -1;
    take_bounds(search);
    bounded = pool_now();
    outcome->seconds[0] = bounded - begun;
    rc = replay_all(search, err);
    outcome->seconds[1] = pool_now() - bounded;
    if (rc)
        return -1;
    find_gap(search);
    count_ties(search);
    bounded = pool_now();
    rc = verify_replays(search, err);
    outcome->seconds[2] = pool_now() - bounded;
    return rc;
}

int plan_search(struct space *space, const struct plan_options *options, struct plan_outcome *outcome,
                struct error *err)
{
    size_t count = space->selection.count;
    struct search search = {
        .space = space, .options = options, .outcome = outcome, .bounds = xcalloc(count + 1, sizeof *search.bounds),
        .longest = options->exhaustive || options->anchors ? INFINITY : goal_longest(&space->goal),
        .order = xcalloc(count + 1, sizeof *search.order), .replayed = xcalloc(count + 1, sizeof *search.replayed),
    };
    int rc;

    *outcome = (struct plan_outcome){.counts.considered = space->selection.looked, .nearest.lacks = INFINITY,
                                     .miss.share = INFINITY, .halved = {0, NAN, NAN, false}};
    for (size_t i = 0; i < space->nrules; i++)
        *(space->rules[i].of_states ? &outcome->counts.memory : &outcome->counts.by_rule) += space->selection.dropped[i];
    rc = run(&search, err);
    if (isinf(outcome->nearest.lacks))
        outcome->nearest.lacks = states_nearest(space, &outcome->nearest.number);
    free(search.bounds);
    free(search.order);
    free(search.replayed);
    free(search.missed.items);
    return rc;
}

void plan_release(struct plan_outcome *outcome)
{
    free(outcome->refusals.items);
    free(outcome->failures.items);
    free(outcome->located.items);
    arena_release(&outcome->arena);
    memset(outcome, 0, sizeof *outcome);
}
