#include "scenario/search.h"

#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"

const char *const search_method_names[] = ENUM_NAMES(SEARCH_METHODS);

bool search_is_planner(int method)
{
    return method >= SEARCH_PIPEDREAM;
}

static int keep(struct arena *arena, const struct node *value, void *object, struct error *err)
{
    (void)arena;
    (void)err;
    ((struct search_value *)object)->node = value;
    return 0;
}

/* Its mapping holds axes too, which stand in no table: search_load has taken them out. */
static const struct table *no_more(struct arena *arena, void *object, void **extra)
{
    (void)arena;
    (void)object;
    (void)extra;
    return NULL;
}

static const struct table value_table = {.name = "plan", .brief = "a value or a list",
                                         .size = sizeof(struct search_value)};
static const struct table limits_table = {.name = "plan", .brief = "metrics and values",
                                          .size = sizeof(struct search_value)};
static const struct field search_fields[] = {
    {KEY(search_spec, gpus), .kind = FIELD_RECORD, .table = &value_table, .load = keep,
     .brief = "numbers of GPUs, whole nodes: a list, or auto: 1 to 8 nodes, 10, 12, 14, 16, 20, ... up to the "
              "cluster's; left out: the cluster's"},
    {KEY(search_spec, objective), .kind = FIELD_RECORD, .table = &value_table, .load = keep,
     .brief = "metrics by which configurations are ordered: iteration_time_s, gpus, cost or any other; of several those "
              "configurations are shown that no other one betters in all; left out: iteration_time_s, and gpus where "
              "several are searched"},
    {KEY(search_spec, subject_to), .kind = FIELD_RECORD, .table = &limits_table, .load = keep,
     .brief = "limits that configurations must keep: {iteration_time_s: 12 s, mfu: 0.4}; a most, or for rates and "
              "shares of use at least"},
    {KEY(search_spec, method), .kind = FIELD_CHOICE, .choices = search_method_names, .fallback = "bound",
     .choice_briefs = NAMES("configurations whose bound is above the time of the last that is shown are not replayed",
                            "all are replayed",
                            "no search: the choice of PipeDream's planner, by its own objective",
                            "the choice of PipeDream-2BW's planner", "the choice of Piper's planner",
                            "the choice of FlexFlow's planner", "the choice of Alpa's planner",
                            "the choice of DAPPLE's planner", "the choice of Varuna's planner",
                            "a choice like theirs, with this simulator as the objective",
                            "the choice of each of these planners"),
     .brief = "how the search goes; a planner stands alone, without axes and limits"},
    {KEY(search_spec, top), .kind = FIELD_INT, .min = 1, .max = 1000, .brief = "configurations that are shown; left out: "
                                                                               "10"},
    {KEY(search_spec, verify), .kind = FIELD_INT, .min = 0, .max = 1000,
     .brief = "the best rows that run on simgrid too, with all shown rows that tie with them; left out: 3"},
    {KEY(search_spec, time_limit), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .positive = true,
     .brief = "the search ends after this time; left out: when all is proven"},
};
const struct table search_table = {
    TABLE("plan", "what 'dtsim plan' searches: axes, each a dotted path with a list of values or auto "
          "(strategy.tensor: auto, batch.micro: [1, 2]), and how; other commands ignore it", search_spec, search_fields),
    .extension = no_more,
};

int search_load(struct arena *arena, const struct node *value, void *object, struct error *err)
{
    struct search_spec *spec = object;
    struct node *own = node_mapping(arena), *axes = node_mapping(arena);
    int rc;

    if (value->kind != NODE_MAPPING)
        return error_add(err, EXIT_INPUT, value->loc, "plan: expected a mapping such as {strategy.tensor: auto, "
                         "batch.micro: [1, 2]}");
    own->loc = axes->loc = value->loc;
    for (size_t i = 0; i < value->count; i++) {
        struct node *to = strchr(value->keys[i], '.') ? axes : own;

        node_put(arena, to, value->keys[i], value->items[i]);
        to->key_locs[to->count - 1] = value->key_locs[i];
    }
    rc = field_parse(arena, &search_table, own, spec, err);
    if (!rc && search_is_planner(spec->method) && value->count > 1)
        rc = error_clash(err, node_loc(value, "method"), "plan: method: %s makes one choice, and looks at no axes and no "
                         "limits; expected no other key here", search_method_names[spec->method]);
    spec->axes = axes->count ? axes : NULL;
    spec->node = value;
    spec->top = node_get(own, "top") ? spec->top : -1;
    spec->verify = node_get(own, "verify") ? spec->verify : -1;
    return rc;
}
