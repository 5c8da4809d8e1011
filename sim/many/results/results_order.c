#include "results/results_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/sheet.h"
#include "files/json.h"
#include "report/outcome.h"
#include "store/store.h"
#include "store/tie.h"
#include "view/view.h"

char *results_point(const json_t *row)
{
    const json_t *point = json_object_get(row, "point");

    return point ? json_text(point) : xstrdup("");
}

void results_keep(struct results *results, const bool *keep)
{
    size_t kept = 0;

    for (size_t i = 0; i < results->rows.count; i++)
        if (keep[i])
            results->rows.items[kept++] = results->rows.items[i];
        else
            json_decref(results->rows.items[i]);
    results->rows.count = kept;
}

void results_keep_first(struct results *results, size_t most)
{
    while (results->rows.count > most)
        json_decref(results->rows.items[--results->rows.count]);
}

void results_keep_numbers(struct results *results, const int *keys, size_t count)
{
    bool *keep = xcalloc(results->rows.count, sizeof *keep);

    for (size_t i = 0; i < results->rows.count; i++) {
        keep[i] = outcome_of(results->rows.items[i]) == OUTCOME_OK;
        for (size_t k = 0; k < count; k++)
            keep[i] &= results_value(results, i, keys[k]).kind == VALUE_NUMBER;
    }
    results_keep(results, keep);
    free(keep);
}

/* A row and the text of its point. */
struct placed { char *point; json_t *row; };

static int compare_points(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    int order = strverscmp(x->point, y->point);

    return order ? order : strcmp(store_id(x->row), store_id(y->row));
}

void results_sort_points(struct results *results)
{
    struct placed *placed = xcalloc(results->rows.count, sizeof *placed);

    for (size_t i = 0; i < results->rows.count; i++)
        placed[i] = (struct placed){results_point(results->rows.items[i]), results->rows.items[i]};
    array_sort(placed, results->rows.count, sizeof *placed, compare_points);
    for (size_t i = 0; i < results->rows.count; i++) {
        results->rows.items[i] = placed[i].row;
        free(placed[i].point);
    }
    free(placed);
}

/* A row while it is ordered. */
struct ordered { double number; size_t row; json_t *json; };

static int compare_numbers(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;

    if (isnan(x->number) || isnan(y->number) || x->number == y->number)
        return isnan(x->number) != isnan(y->number) ? isnan(x->number) ? 1 : -1 :
               (x->row > y->row) - (x->row < y->row);
    return x->number < y->number ? -1 : 1;
}

void results_sort(struct results *results, int key, bool largest_first)
{
    struct ordered *all = xcalloc(results->rows.count, sizeof *all);

    for (size_t i = 0; i < results->rows.count; i++) {
        struct value value = results_value(results, i, key);
        double number = value.kind == VALUE_NUMBER ? value.number : NAN;

        all[i] = (struct ordered){largest_first ? -number : number, i, results->rows.items[i]};
    }
    array_sort(all, results->rows.count, sizeof *all, compare_numbers);
    for (size_t i = 0; i < results->rows.count; i++)
        results->rows.items[i] = all[i].json;
    free(all);
}

/* Whether `a` is as good as `b` in every key; numbers are such that less is better. */
static bool as_good(const double *a, const double *b, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (a[k] > b[k])
            return false;
    return true;
}

bool results_alike(const struct results *results, size_t a, size_t b, struct results_keys keys)
{
    for (size_t k = 0; k < keys.count; k++) {
        const json_t *one = results_json(results, a, keys.items[k]), *other = results_json(results, b, keys.items[k]);

        if (one != other && !json_equal(one, other))
            return false;
    }
    return true;
}

/* Ordered by the first key, a row can be bettered only by one before it, or by one that is alike in that key. */
void results_front(struct results *results, const int *keys, const bool *largest, size_t count, struct results_keys within)
{
    double *numbers;
    bool *keep;

    results_sort(results, keys[0], largest[0]);
    numbers = xcalloc(results->rows.count * count, sizeof *numbers);
    keep = xcalloc(results->rows.count, sizeof *keep);
    for (size_t i = 0; i < results->rows.count; i++) {
        double *own = numbers + i * count;

        keep[i] = true;
        for (size_t k = 0; k < count; k++)
            own[k] = results_value(results, i, keys[k]).number * (largest[k] ? -1 : 1);
        for (size_t j = 0; j < i && keep[i]; j++)
            keep[i] = !keep[j] || !as_good(numbers + j * count, own, count) ||
                      as_good(own, numbers + j * count, count) || !results_alike(results, i, j, within);
        for (size_t j = i; j-- > 0 && keep[i] && numbers[j * count] == own[0];)
            keep[j] &= !as_good(own, numbers + j * count, count) || as_good(numbers + j * count, own, count) ||
                       !results_alike(results, i, j, within);
    }
    results_keep(results, keep);
    free(numbers);
    free(keep);
}

void results_per(struct results *results, struct results_keys keys, size_t most)
{
    bool *keep = xcalloc(results->rows.count, sizeof *keep);

    for (size_t i = 0; i < results->rows.count; i++) {
        size_t before = 0;

        for (size_t j = 0; j < i && before < most; j++)
            before += keep[j] && results_alike(results, i, j, keys);
        keep[i] = before < most;
    }
    results_keep(results, keep);
    free(keep);
}

/* The rows' numbers under a key. */
static struct tie_number *numbers_of(const struct results *results, int key)
{
    struct tie_number *numbers = xcalloc(results->rows.count + 1, sizeof *numbers);

    for (size_t i = 0; i < results->rows.count; i++) {
        struct value value = results_value(results, i, key);

        numbers[i] = tie_number_of(results->rows.items[i], results->keys.items[key].name,
                                   value.kind == VALUE_NUMBER ? value.number : NAN);
    }
    return numbers;
}

#define RANKED(ROW) ROW(rank, json_count(it->rank), "place by what orders the rows; rows that cannot be told apart share one")
VIEW_SHARED(ranked_view, struct tie_rank, it, RANKED)

void results_rank(struct results *results, int key, bool largest_first)
{
    struct tie_number *numbers = numbers_of(results, key);
    struct tie_rank *ranks = xcalloc(results->rows.count + 1, sizeof *ranks);

    tie_ranks(numbers, results->rows.count, largest_first, ranks);
    for (size_t i = 0; i < results->rows.count; i++)
        if (ranks[i].rank)
            view_put(&ranked_view, &ranks[i], results->rows.items[i]);
    results->ranked = key;
    free(ranks);
    free(numbers);
}

/* Rows of one rank follow one another. */
struct tie_rank results_rank_of(const struct results *results, size_t row)
{
    json_int_t rank = json_integer_value(json_object_get(results->rows.items[row], "rank")), before = 0, after = 0;

    if (row > 0)
        before = json_integer_value(json_object_get(results->rows.items[row - 1], "rank"));
    if (row + 1 < results->rows.count)
        after = json_integer_value(json_object_get(results->rows.items[row + 1], "rank"));
    return (struct tie_rank){(size_t)rank, rank && (rank == before || rank == after)};
}

void results_explain_ranks(const struct results *results, FILE *out)
{
    struct tie_number *numbers = numbers_of(results, results->ranked);
    char *words;
    size_t size;
    FILE *text = text_open(&words, &size);

    tie_explain(numbers, results->rows.count, text);
    if (tally_failed(&results->tally)) {
        fputs("; ", text);
        tally_print_failed(&results->tally, text);
    }
    text_close(text, &words);
    sheet_note(words, out);
    free(words);
    free(numbers);
}
