/* Ranks of rows that are ordered by a key. */
#include "results/results.h"

#include <math.h>
#include <stdlib.h>

#include "run/tie.h"

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

void results_rank(struct results *results, int key, bool largest_first)
{
    struct tie_number *numbers = numbers_of(results, key);
    struct tie_rank *ranks = xcalloc(results->rows.count + 1, sizeof *ranks);

    tie_ranks(numbers, results->rows.count, largest_first, ranks);
    for (size_t i = 0; i < results->rows.count; i++)
        if (ranks[i].rank)
            json_object_set_new(results->rows.items[i], "rank", json_integer((json_int_t)ranks[i].rank));
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

    tie_explain(numbers, results->rows.count, out);
    free(numbers);
}
