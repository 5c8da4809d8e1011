/* The order of rows that cannot be told apart by what they are ordered by: as a person chooses among them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/field.h"
#include "files/json.h"
#include "plan/plan_internal.h"
#include "results/results.h"
#include "store/store.h"

#define SURE 0.95                /* probability that a row fits, above which more of it decides nothing */

struct tied { json_t *row; double worse, fits; int exotic; bool likely, near; char *point; size_t rank; };

double plan_fits_of(const json_t *row)
{
    const json_t *fits = json_object_get(json_object_get(row, "metrics"), "fits_probability");

    return json_is_number(fits) ? json_number_value(fits) : 1;
}

/* How many degrees and choices of the strategy are more than the plainest. */
static int exotic_of(const json_t *row)
{
    const json_t *value;
    const char *path;
    int count = 0;

    json_object_foreach(json_object_get((json_t *)row, "point"), path, value)
        count += !strncmp(path, "strategy.", strlen("strategy.")) &&
                 (json_number_value(value) > 1 || json_is_true(value) ||
                  (json_is_string(value) && !word_in("1f1b none ddp synchronous alltoall", json_string_value(value))));
    return count;
}

static int by_choice(const void *left, const void *right)
{
    const struct tied *a = left, *b = right;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->likely != b->likely)
        return b->likely - a->likely;
    if (a->near != b->near)
        return b->near - a->near;
    if (a->near && (a->fits >= SURE) != (b->fits >= SURE))
        return b->fits >= SURE ? 1 : -1;
    if (a->near && a->exotic != b->exotic)
        return a->exotic - b->exotic;
    if (a->worse < b->worse || a->worse > b->worse)
        return a->worse < b->worse ? -1 : 1;
    return a->exotic != b->exotic ? a->exotic - b->exotic : strverscmp(a->point, b->point);
}

/* Of each place, those that likely fit and are nearly as good as the best of them, and of the others likewise. */
static void find_near(struct tied *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double best = all[i].worse;

        for (size_t j = 0; j < count; j++)
            if (all[j].rank == all[i].rank && all[j].likely == all[i].likely)
                best = fmin(best, all[j].worse);
        all[i].near = all[i].worse - best <= PLAN_NEAR * fabs(best);
    }
}

void plan_order_ties(struct results *results, int key, bool most)
{
    size_t count = results->rows.count;
    struct tied *all = xcalloc(count + 1, sizeof *all);

    for (size_t i = 0; i < count; i++) {
        json_t *row = results->rows.items[i];
        double number = json_number_value(results_json(results, i, key));
        json_t *point = json_object_get(row, "point");

        all[i] = (struct tied){.row = row, .worse = most ? -number : number, .fits = plan_fits_of(row),
                               .exotic = exotic_of(row), .likely = plan_fits_of(row) >= PLAN_LIKELY,
                               .point = point ? json_text(point) : xstrdup(""),
                               .rank = results_rank_of(results, i).rank};
    }
    find_near(all, count);
    array_sort(all, count, sizeof *all, by_choice);
    for (size_t i = 0; i < count; i++) {
        results->rows.items[i] = all[i].row;
        free(all[i].point);
    }
    free(all);
}
