/* What the replays of a plan gave. */
#include <math.h>
#include <stdlib.h>

#include "plan/plan_internal.h"
#include "base/base.h"
#include "report/outcome.h"
#include "results/results.h"
#include "store/tie.h"

void plan_note_short(struct search *search, size_t point, double lacks)
{
    if (lacks >= search->outcome->nearest.lacks)
        return;
    search->outcome->nearest.number = search->space->selection.items[point];
    search->outcome->nearest.lacks = lacks;
}

static int by_seconds(const void *left, const void *right)
{
    const struct replayed *a = left, *b = right;

    return (a->seconds > b->seconds) - (a->seconds < b->seconds);
}

size_t plan_point_of(const struct search *search, uint64_t number)
{
    const struct selection *selection = &search->space->selection;
    size_t low = 0, high = selection->count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        *(selection->items[middle] <= number ? &low : &high) = middle;
    }
    return low;
}

/* B that are left on the fullest GPU; -INFINITY: the row does not say. */
static double margin_of(const json_t *row)
{
    const json_t *margin = json_object_get(json_object_get(row, "metrics"), "memory_margin_bytes");

    return json_is_number(margin) ? json_number_value(margin) : -INFINITY;
}

/* Whether the row misses a limit. The outcome keeps the row that misses by least. */
static bool note_miss(struct search *search, const json_t *row)
{
    const struct goal_limit *limit;
    double value, miss = goal_miss(&search->space->goal, row, &limit, &value);

    if (miss > 0 && miss < search->outcome->miss.share)
        search->outcome->miss = (struct plan_miss){limit, value, miss};
    return miss > 0;
}

int plan_read_replays(struct search *search, struct error *err)
{
    struct plan_outcome *outcome = search->outcome;
    const char *folder = search->options->folder;
    const struct results_question question = {.choose = plan_keep_located, .context = outcome};
    struct results results;
    size_t memory = 0, outside = 0;
    int rc;

    plan_sort_located(outcome);
    rc = results_open(&folder, 1, &results, err) || results_read(&results, &question, err) ? -1 : 0;
    search->nreplayed = outcome->counts.failed = 0;
    for (size_t i = 0; i < results.rows.count && !rc; i++) {
        const json_t *row = results.rows.items[i];
        double seconds = json_number_value(json_object_get(json_object_get(row, "metrics"), "iteration_time_s"));

        if (outcome_of(row) == OUTCOME_INFEASIBLE) {
            memory++;
            plan_note_short(search, plan_point_of(search, plan_located_of(outcome, row)->number), -margin_of(row));
        }
        outcome->counts.failed += outcome_failed(outcome_of(row));
        if (outcome_of(row) == OUTCOME_OK && note_miss(search, row))
            outside++;
        else if (outcome_of(row) == OUTCOME_OK)
            search->replayed[search->nreplayed++] = (struct replayed){
                plan_point_of(search, plan_located_of(outcome, row)->number), seconds,
                tie_number_of(row, "iteration_time_s", seconds).ratio,
            };
    }
    results_release(&results);
    array_sort(search->replayed, search->nreplayed, sizeof *search->replayed, by_seconds);
    outcome->counts.replayed = search->nreplayed;
    outcome->counts.outside = outside + search->beyond;
    outcome->counts.memory += memory;
    return rc ? -1 : (int)memory;
}
