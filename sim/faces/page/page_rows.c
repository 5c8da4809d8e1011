/* The rows of a sweep, a column for each key: texts in JSON, metrics as doubles of 8 bytes, the lowest first, NaN where a
 * row has none. */
#include "page/page_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "files/json.h"
#include "results/results.h"
#include "store/store.h"

static void put_double(FILE *out, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 8; i++)
        putc_unlocked((int)(bits >> 8 * i & 0xff), out);
}

/* One key: {"key", "from"}, and its values in `columns`, or behind the others in `numbers`. */
static void put_key(const struct results *results, int key, json_t *keys, json_t *columns, FILE *numbers)
{
    static const char *const from[] = {[KEY_POINT] = "point", [KEY_ROW] = "row", [KEY_METRIC] = "metric"};
    const struct row_key *row_key = &results->keys.items[key];
    json_t *values = row_key->from == KEY_METRIC ? NULL : json_array(), *about;

    if (row_key->from == KEY_METRIC && !row_key->number)
        return;
    for (size_t row = 0; row < results->rows.count; row++) {
        const json_t *value = results_json(results, row, key);

        if (values)
            json_append(values, value ? json_deep_copy(value) : json_null());
        else
            put_double(numbers, json_is_number(value) ? json_number_value(value) : NAN);
    }
    about = json_object();
    json_put(about, "key", json_words(row_key->name));
    json_put(about, "from", json_words(from[row_key->from]));
    json_append(keys, about);
    if (values)
        json_append(columns, values);
}

/* The places of rows, and whether others share them: as a plan ordered its own, 0 of other rows; else as the results are. */
static void put_places(struct page *page, const struct results *results, const json_t *plan)
{
    json_t *ranks = json_array(), *shared = json_array(), *order = json_array();
    json_t *places = plan ? page_plan_places(plan) : NULL;

    for (size_t row = 0; row < results->rows.count; row++) {
        struct tie_rank rank = results_rank_of(results, row);

        if (plan) {
            const json_t *place = json_object_get(places, store_id(results->rows.items[row]));

            rank = (struct tie_rank){(size_t)json_integer_value(json_object_get(place, "rank")),
                                     json_is_true(json_object_get(place, "shared"))};
            json_append(order, place ? json_incref(json_object_get(place, "order")) : json_null());
        }
        json_append(ranks, json_integer((json_int_t)rank.rank));
        json_append(shared, json_boolean(rank.shared));
    }
    json_put(page->head, "ranks", ranks);
    json_put(page->head, "shared", shared);
    json_put(page->head, "order", order);
    json_decref(places);
}

static void put_rows(struct page *page, const struct results *results)
{
    json_t *keys = json_array(), *columns = json_array();
    const json_t *name = json_object_get(results->header, "name"), *base = json_object_get(results->header, "base");
    FILE *numbers = page_part(page, "numbers");

    for (size_t key = 0; key < results->keys.count; key++)
        put_key(results, (int)key, keys, columns, numbers);
    page_json(page, "columns", columns);
    json_decref(columns);
    json_put(page->head, "keys", keys);
    json_put(page->head, "rows", json_integer((json_int_t)results->rows.count));
    if (name)
        json_put(page->head, "name", json_deep_copy(name));
    json_put(page->head, "base", base ? json_deep_copy(base) : json_null());
}

int page_of_rows(const struct page_request *request, const struct results *results, FILE *log, struct error *err)
{
    struct page page = {.request = request};
    const char **names;
    char *words = NULL;
    size_t size, count = 0;
    json_t *plan;
    int rc = page_read_plan(request->input, &plan, err);
    FILE *text;

    if (rc)
        return -1;
    text = text_open(&words, &size);
    page_init(&page, "store");
    if (results->ranked >= 0 && results->rows.count)
        results_explain_ranks(results, text);
    text_close(text, &words);
    json_put(page.head, "tie", json_words(words));
    json_put(page.head, "ranked", results->ranked < 0 ? json_null() :
             json_words(results->keys.items[results->ranked].name));
    if (plan)
        page_put_plan(&page, plan);
    put_rows(&page, results);
    put_places(&page, results, plan);
    while (results->files && results->files[count])
        count++;
    names = xcalloc(count + 2, sizeof *names);
    names[count] = "plan.json";
    for (size_t i = 0; i < count; i++)
        names[i] = strrchr(results->files[i], '/') ? strrchr(results->files[i], '/') + 1 : results->files[i];
    rc = page_put(&page, "store.html", names, log, err);
    free(names);
    free(words);
    json_decref(plan);
    page_release(&page);
    return rc;
}
