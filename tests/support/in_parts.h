/* in_parts: a scenario whose cluster is written as two equal parts. */
#ifndef DTSIM_IN_PARTS_H
#define DTSIM_IN_PARTS_H

#include "simulated.h"

/* "[{name: a, KEYS, nodes: 1}, {name: b, KEYS, nodes: REST}]": the scenario's cluster in two parts. */
static inline char *in_parts(struct arena *arena, const struct scenario *scenario)
{
    const struct node *given = node_get(scenario->node, "cluster");
    struct node *keys = node_mapping(arena);
    int nodes = scenario->cluster.nodes;
    const char *text;

    if (given->kind == NODE_SCALAR)
        node_put(arena, keys, "platform", node_scalar(arena, given->text, given->quoted));
    for (size_t i = 0; given->kind == NODE_MAPPING && i < given->count; i++)
        if (strcmp(given->keys[i], "nodes"))
            node_put(arena, keys, given->keys[i], given->items[i]);
    text = node_flow(arena, keys);
    text = arena_strndup(arena, text + 1, strlen(text) - 2);         /* without the braces */
    return arena_printf(arena, "cluster={parts: [{name: a, %s, nodes: 1}, {name: b, %s, nodes: %d}]}", text, text,
                        nodes - 1);
}

static inline json_t *metrics_of(const struct scenario *scenario, struct error *err)
{
    struct workload workload = {0};
    struct run run = {0};
    struct simulate_options options = simulate_numbers_of(scenario);
    json_t *json = NULL;

    options.engine = ENGINE_FAST;
    if (!workload_init(&workload, scenario, err) && !simulate(&workload, options, &run, err))
        json = result_metrics_json(&run);
    if (json)
        json_object_del(json, "engine");     /* the scenario's, which is not asked here */
    run_release(&run);
    workload_release(&workload);
    return json;
}

/* Whether the scenario has several nodes: then in two parts it is the same. `name` says which scenario it is. */
static inline bool same_in_parts(const struct scenario *whole, const char *name)
{
    bool several = whole->cluster.nodes > 1 && !whole->cluster.ideal && !cluster_given_parts(&whole->cluster);
    struct scenario parts = {0};
    struct error err = {0};
    struct arena arena = {0};

    if (several) {
        const char *changed[] = {in_parts(&arena, whole)};
        json_t *one = NULL, *other = NULL, *value;
        const char *key;

        if (scenario_vary(whole, changed, 1, &parts, &err) || !(one = metrics_of(whole, &err)) ||
            !(other = metrics_of(&parts, &err)))
            fail_at(name, &err);
        json_object_foreach(one, key, value)
            if (!json_equal(value, json_object_get(other, key)))
                fail_msg("%s: with %s %s is %s instead of %s", name, changed[0], key,
                         json_dumps(json_object_get(other, key), JSON_ENCODE_ANY), json_dumps(value, JSON_ENCODE_ANY));
        assert_true(json_equal(one, other));
        json_decref(one);
        json_decref(other);
        scenario_release(&parts);
    }
    arena_release(&arena);
    return several;
}

#endif
