/* plan.json of a plan's folder: how the search ended, and the place of each row. */
#include "page/page_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "files/look.h"

static int refuse(const char *path, const char *key, const char *expected, struct error *err)
{
    return error_add(err, EXIT_INPUT, (struct loc){.file = path}, "%s: expected %s; repeat 'dtsim plan -o'", key, expected);
}

static int check(const json_t *plan, const char *path, struct error *err)
{
    const json_t *counts = json_object_get(plan, "counts"), *places = json_object_get(plan, "places"), *item;
    const char *key;
    size_t i;

    if (!json_is_string(json_object_get(plan, "status")))
        return refuse(path, "status", "a text", err);
    if (!json_is_object(counts))
        return refuse(path, "counts", "an object of numbers", err);
    json_object_foreach((json_t *)(uintptr_t)counts, key, item)
        if (!json_is_integer(item) || json_integer_value(item) < 0)
            return refuse(path, "counts", "an object of numbers", err);
    if (!json_is_array(places))
        return refuse(path, "places", "an array", err);
    json_array_foreach(places, i, item)
        if (!json_is_string(json_object_get(item, "id")) || !json_is_integer(json_object_get(item, "rank")))
            return refuse(path, "places", "the id and the rank of each row", err);
    return 0;
}

int page_read_plan(const char *folder, json_t **plan, struct error *err)
{
    char *path = xprintf("%s/plan.json", folder);
    enum look there;
    int rc = look_at(path, &there, err);

    *plan = NULL;
    if (!rc && there == LOOK_FILE) {
        *plan = json_of_file(path, "what a search found", err);
        rc = *plan ? check(*plan, path, err) : -1;
    }
    if (rc) {
        json_decref(*plan);
        *plan = NULL;
    }
    free(path);
    return rc;
}

json_t *page_plan_places(const json_t *plan)
{
    json_t *places = json_object(), *place;
    size_t i;

    json_array_foreach(json_object_get(plan, "places"), i, place) {
        json_put(place, "order", json_integer((json_int_t)i));
        json_object_set(places, json_string_value(json_object_get(place, "id")), place);
    }
    return places;
}

void page_put_plan(struct page *page, const json_t *plan)
{
    static const char *const taken[] = {"ranked", "tie", "name"};
    json_t *rest = json_copy((json_t *)(uintptr_t)plan);

    json_object_del(rest, "places");
    for (size_t i = 0; i < COUNT(taken); i++) {
        json_t *value = json_object_get(rest, taken[i]);

        json_put(page->head, taken[i], value ? json_incref(value) : json_null());
        json_object_del(rest, taken[i]);
    }
    json_put(page->head, "plan", rest);
}
