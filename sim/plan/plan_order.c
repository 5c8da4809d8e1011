/* The rows of a plan: which are its own, and their order. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "plan/plan_internal.h"
#include "results/results.h"
#include "store/store.h"

static int by_id(const void *left, const void *right)
{
    return strcmp(((const struct located *)left)->id, ((const struct located *)right)->id);
}

void plan_sort_located(struct plan_outcome *outcome)
{
    array_sort(outcome->located.items, outcome->located.count, sizeof *outcome->located.items, by_id);
}

const struct located *plan_located_of(const struct plan_outcome *outcome, const json_t *row)
{
    struct located key;
    const char *id = store_id(row);

    if (!id || strlen(id) != ID_DIGITS || !outcome->located.count)
        return NULL;
    memcpy(key.id, id, sizeof key.id);
    return array_find(&key, outcome->located.items, outcome->located.count, sizeof key, by_id);
}

void plan_keep_located(struct results *results, const void *context)
{
    bool *keep = xcalloc(results->rows.count + 1, sizeof *keep);

    for (size_t i = 0; i < results->rows.count; i++)
        keep[i] = plan_located_of(context, results->rows.items[i]) != NULL;
    results_keep(results, keep);
    free(keep);
}

/* Drops the rows that miss a limit. */
static void keep_limits(struct results *results, const struct goal *goal)
{
    bool *keep = xcalloc(results->rows.count + 1, sizeof *keep);
    const struct goal_limit *limit;
    double value;

    for (size_t i = 0; i < results->rows.count; i++)
        keep[i] = !(goal_miss(goal, results->rows.items[i], &limit, &value) > 0);
    results_keep(results, keep);
    free(keep);
}

/* Whether rows have several values under the key. */
static bool several(const struct results *results, const char *name)
{
    int key = results_find(results, name);

    for (size_t i = 1; key >= 0 && i < results->rows.count; i++)
        if (!json_equal(results_json(results, i, key), results_json(results, 0, key)))
            return true;
    return false;
}

/* What is fast: the time of an iteration or, of batches that differ, the throughput. */
static struct objective speed_of(const struct results *results)
{
    if (!several(results, "batch.global") && !several(results, "batch.micro_batches"))
        return (struct objective){"iteration_time_s", false};
    return (struct objective){results_find(results, "tokens_per_s") >= 0 ? "tokens_per_s" : "samples_per_s", true};
}

/* The columns by which rows are ordered. A number of GPUs alone does not order rows of equal numbers. */
static size_t objectives_of(const struct results *results, const struct goal *goal, struct objective *objectives)
{
    size_t count = goal->nobjectives;

    memcpy(objectives, goal->objectives, count * sizeof *objectives);
    if (!count)
        objectives[count++] = speed_of(results);
    if (!goal->nobjectives && several(results, "gpus"))
        objectives[count++] = (struct objective){"gpus", false};
    if (count == 1 && !strcmp(objectives[0].name, "gpus"))
        objectives[count++] = speed_of(results);
    return count;
}

int plan_order(struct results *results, const struct plan_outcome *outcome, const struct goal *goal, bool *front,
               struct error *err)
{
    const struct results_question question = {.choose = plan_keep_located, .context = outcome};
    struct objective objectives[GOAL_OBJECTIVES];
    bool most[GOAL_OBJECTIVES];
    int keys[GOAL_OBJECTIVES];
    size_t count;

    if (results_read(results, &question, err))
        return -1;
    keep_limits(results, goal);
    results_keep_numbers(results, NULL, 0);
    count = objectives_of(results, goal, objectives);
    for (size_t i = 0; i < count; i++) {
        keys[i] = results_find(results, objectives[i].name);
        most[i] = objectives[i].most;
        if (keys[i] < 0)
            return 0;
    }
    results_keep_numbers(results, keys, count);
    *front = count > 1;
    if (*front)
        results_front(results, keys, most, count);
    results_sort(results, keys[0], most[0]);
    results_rank(results, keys[0], most[0]);
    return 0;
}
