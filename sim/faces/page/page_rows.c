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
#include "view/view.h"

static void put_double(FILE *out, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 8; i++)
        putc_unlocked((int)(bits >> 8 * i & 0xff), out);
}

static const char *const from[] = {[KEY_POINT] = "point", [KEY_ROW] = "row", [KEY_METRIC] = "metric"};

#define ROW_KEY(ROW) \
    ROW(key, json_words(it->name), "of rows") \
    ROW(from, json_words(from[it->from]), "point, row or metric")
VIEW(key_view, struct row_key, it, ROW_KEY)

/* One key, and its values in `columns`, or behind the others in `numbers`. */
static void put_key(const struct results *results, int key, json_t *keys, json_t *columns, FILE *numbers)
{
    const struct row_key *row_key = &results->keys.items[key];
    json_t *values = row_key->from == KEY_METRIC ? NULL : json_array();

    if (row_key->from == KEY_METRIC && !row_key->number)
        return;
    for (size_t row = 0; row < results->rows.count; row++) {
        const json_t *value = results_json(results, row, key);

        if (values)
            json_append(values, value ? json_deep_copy(value) : json_null());
        else
            put_double(numbers, json_is_number(value) ? json_number_value(value) : NAN);
    }
    json_append(keys, view_json(&key_view, row_key));
    if (values)
        json_append(columns, values);
}

struct places { json_t *ranks, *shared, *order; };

#define PLACES(ROW) \
    ROW(ranks, it->ranks, "place of each row; 0: none") \
    ROW(shared, it->shared, "whether others share it") \
    ROW(order, it->order, "of a plan: its own")
VIEW(places_view, struct places, it, PLACES)

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
    view_put(&places_view, &(struct places){ranks, shared, order}, page->head);
    json_decref(places);
}

/* What the first line of a file of rows says under the key. */
static json_t *header_json(const struct results *results, const char *key)
{
    const json_t *value = json_object_get(results->header, key);

    return value ? json_deep_copy(value) : NULL;
}

static json_t *base_json(const struct results *results)
{
    json_t *base = header_json(results, "base");

    return base ? base : json_null();
}

static json_t *tie_json(const struct results *results)
{
    char *words = NULL;
    size_t size;
    FILE *text = text_open(&words, &size);
    json_t *json;

    if (results->ranked >= 0 && results->rows.count)
        results_explain_ranks(results, text);
    text_close(text, &words);
    json = json_words(words);
    free(words);
    return json;
}

#define RANKED(ROW) \
    ROW(tie, tie_json(it), "what it means that rows share a place") \
    ROW(ranked, it->ranked < 0 ? json_null() : json_words(it->keys.items[it->ranked].name), "the metric that orders rows")
VIEW(ranked_rows_view, struct results, it, RANKED)

struct stored { const struct results *results; json_t *keys; };

#define STORED(ROW) \
    ROW(keys, it->keys, "of the columns") \
    ROW(rows, json_count(it->results->rows.count), "how many there are") \
    ROW(name, header_json(it->results, "name"), "of the sweep") \
    ROW(base, base_json(it->results), "the scenario that points change")
VIEW(stored_view, struct stored, it, STORED)

static void put_rows(struct page *page, const struct results *results)
{
    json_t *keys = json_array(), *columns = json_array();
    FILE *numbers = page_part(page, "numbers");

    for (size_t key = 0; key < results->keys.count; key++)
        put_key(results, (int)key, keys, columns, numbers);
    page_json(page, "columns", columns);
    json_decref(columns);
    view_put(&stored_view, &(struct stored){results, keys}, page->head);
}

int page_of_rows(const struct page_request *request, const struct results *results, FILE *log, struct error *err)
{
    struct page page = {.request = request};
    const char **names;
    size_t count = 0;
    json_t *plan;
    int rc = page_read_plan(request->input, &plan, err);

    if (rc)
        return -1;
    page_init(&page, "store");
    view_put(&ranked_rows_view, results, page.head);
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
    json_decref(plan);
    page_release(&page);
    return rc;
}
