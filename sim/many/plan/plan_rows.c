/* The rows of a plan: which are its own, what their replays gave, and their order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "files/json.h"
#include "plan/plan_internal.h"
#include "report/outcome.h"
#include "results/results.h"
#include "store/store.h"
#include "store/tie.h"

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

static int by_point(const void *left, const void *right)
{
    const struct plan_failure *a = left, *b = right;

    return (a->number > b->number) - (a->number < b->number);
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

/* The text is the store's, which is released. */
static void note_failure(struct search *search, size_t point, const json_t *row)
{
    struct plan_outcome *outcome = search->outcome;
    const char *reason = json_string_value(json_object_get(row, "reason"));

    *GROW(&outcome->failures) = (struct plan_failure){
        search->space->selection.items[point], outcome_names[outcome_of(row)],
        arena_strdup(&outcome->arena, reason ? reason : ""),
    };
}

void plan_count_refusal(struct plan_outcome *outcome, const char *name, const char *reason, bool replayed)
{
    const char *rule = name && *name ? name : "mistake";
    size_t i = 0;

    while (i < outcome->refusals.count && strcmp(outcome->refusals.items[i].rule, rule))
        i++;
    if (i == outcome->refusals.count)
        *GROW(&outcome->refusals) = (struct plan_refusal){
            arena_strdup(&outcome->arena, rule), arena_strdup(&outcome->arena, reason), 0, 0,
        };
    outcome->refusals.items[i].count++;
    outcome->refusals.items[i].replayed += replayed;
    outcome->counts.refused++;
}

/* Forgets the refusals that were counted when the rows were read before. */
static void forget_replays(struct plan_outcome *outcome)
{
    for (size_t i = 0; i < outcome->refusals.count; i++) {
        struct plan_refusal *refusal = &outcome->refusals.items[i];

        outcome->counts.refused -= refusal->replayed;
        refusal->count -= refusal->replayed;
        refusal->replayed = 0;
    }
}

/* Counts a row that cannot be: for lack of memory, or by another rule. */
static size_t note_infeasible(struct search *search, const json_t *row)
{
    const char *rule = json_string_value(json_object_get(row, "rule")), *why = json_string_value(json_object_get(row, "reason"));

    if (rule && strcmp(rule, error_kind_names[ERROR_MEMORY])) {
        plan_count_refusal(search->outcome, rule, why ? why : "", true);
        return 0;
    }
    plan_note_short(search, plan_point_of(search, plan_located_of(search->outcome, row)->number), -margin_of(row));
    return 1;
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
    search->nreplayed = outcome->failures.count = 0;
    forget_replays(outcome);
    for (size_t i = 0; i < results.rows.count && !rc; i++) {
        const json_t *row = results.rows.items[i];
        double seconds = goal_seconds(&search->space->goal, json_object_get(row, "metrics"));

        if (outcome_of(row) == OUTCOME_INFEASIBLE)
            memory += note_infeasible(search, row);
        if (outcome_failed(outcome_of(row)))
            note_failure(search, plan_point_of(search, plan_located_of(outcome, row)->number), row);
        if (outcome_of(row) == OUTCOME_OK && !search->options->exhaustive)
            search->longest = fmin(search->longest, goal_longest_step(&search->space->goal, json_object_get(row, "metrics")));
        if (outcome_of(row) == OUTCOME_OK && note_miss(search, row))
            outside++;
        else if (outcome_of(row) == OUTCOME_OK)
            search->replayed[search->nreplayed++] = (struct replayed){
                plan_point_of(search, plan_located_of(outcome, row)->number), seconds,
                tie_number_of(row, "iteration_time_s", seconds).ratio, plan_fits_of(row),
            };
    }
    results_release(&results);
    array_sort(search->replayed, search->nreplayed, sizeof *search->replayed, by_seconds);
    array_sort(outcome->failures.items, outcome->failures.count, sizeof *outcome->failures.items, by_point);
    outcome->counts.failed = outcome->failures.count;
    outcome->counts.replayed = search->nreplayed;
    outcome->counts.outside = outside + search->beyond;
    outcome->counts.memory += memory;
    return rc ? -1 : (int)memory;
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
        if (!results_alike(results, i, 0, (struct results_keys){&key, 1}))
            return true;
    return false;
}

/* Whether the key is of hardware that the rows compare. */
static bool is_compared(const struct results *results, size_t key)
{
    return results->keys.items[key].from == KEY_POINT && plan_is_hardware(results->keys.items[key].name) &&
           several(results, results->keys.items[key].name);
}

/* The keys of the hardware that the rows compare. */
static struct results_keys hardware_of(struct results *results)
{
    int *keys = ARENA_ARRAY(&results->arena, int, results->keys.count + 1);
    size_t count = 0;

    for (size_t i = 0; i < results->keys.count; i++)
        if (is_compared(results, i))
            keys[count++] = (int)i;
    return (struct results_keys){keys, count};
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

bool plan_compares(const struct results *results)
{
    for (size_t i = 0; i < results->keys.count; i++)
        if (is_compared(results, i))
            return true;
    return false;
}

const char *plan_hardware(struct arena *arena, const struct results *results, const bool *which)
{
    const char *said = "";

    for (size_t i = 0; i < results->rows.count; i++) {
        const char *own = "";

        for (size_t k = 0; k < results->keys.count && which[i]; k++)
            if (is_compared(results, k)) {
                const json_t *value = results_json(results, i, (int)k);
                char *text = value && !json_is_string(value) ? json_text(value) : NULL;

                own = arena_printf(arena, "%s%s%s %s", own, *own ? " " : "", results->keys.items[k].name,
                                   text ? text : value ? json_string_value(value) : "none");
                free(text);
            }
        if (*own && !strstr(arena_printf(arena, "%s, ", said), arena_printf(arena, "%s, ", own)))
            said = arena_printf(arena, "%s%s%s", said, *said ? ", " : "", own);
    }
    return said;
}

/* Drops the rows without a number of what is ordered by. */
static void drop_numberless(struct results *results, const int *keys, size_t count, struct plan_outcome *outcome)
{
    bool *lacks = xcalloc(results->rows.count + 1, sizeof *lacks);

    outcome->numberless = 0;
    for (size_t i = 0; i < results->rows.count; i++) {
        for (size_t k = 0; k < count; k++)
            lacks[i] |= results_value(results, i, keys[k]).kind != VALUE_NUMBER;
        outcome->numberless += lacks[i];
    }
    outcome->without = plan_hardware(&outcome->arena, results, lacks);
    results_keep_numbers(results, keys, count);
    free(lacks);
}

int plan_order(struct results *results, struct plan_outcome *outcome, const struct goal *goal, bool *front,
               struct error *err)
{
    const struct results_question question = {.choose = plan_keep_located, .context = outcome};
    struct objective objectives[GOAL_OBJECTIVES];
    bool most[GOAL_OBJECTIVES];
    int keys[GOAL_OBJECTIVES];
    struct results_keys hardware;
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
    drop_numberless(results, keys, count, outcome);
    hardware = hardware_of(results);
    *front = count > 1 || hardware.count;
    if (count > 1)
        results_front(results, keys, most, count, hardware);
    results_sort(results, keys[0], most[0]);
    results_rank(results, keys[0], most[0]);
    if (count == 1)
        plan_order_ties(results, keys[0], most[0]);
    if (count == 1 && hardware.count) {
        results_per(results, hardware, 1);
        results_sort(results, keys[0], most[0]);
        results_rank(results, keys[0], most[0]);
    }
    return 0;
}
