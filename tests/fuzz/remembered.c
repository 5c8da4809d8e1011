/* A scenario with the cache of all that came before it and without any: their rows are the same bytes. The text is read
 * as a scenario; its names find presets, platforms and profiles, which are remembered too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "report/outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is larger takes its time, and is well all the same. */
static bool is_small(const struct scenario *scenario)
{
    const struct plan *plan = &scenario->plan;

    return scenario_gpus(scenario) <= 128 && scenario->simulation.repeat <= 4 &&
           (double)plan->stages * plan->chunks * plan->micro_batches * plan->batches <= 2000;
}

/* The row; NULL where the scenario is large. */
static char *row_of(const char *text, size_t size, struct cache *cache)
{
    const char *set = "simulation.engine=fast";
    struct arena arena = {.cache = cache};
    struct scenario scenario = {0};
    struct error err = {0};
    json_t *row = json_object();
    struct node *root;
    char *line = NULL;
    bool read = !conf_parse(&arena, "fuzz.yaml", text, size, &root, &err) &&
                !scenario_read(&arena, root, &set, 1, "fuzz", &scenario, &err);

    if (!read)
        outcome_refused(row, &err);
    else if (is_small(&scenario))
        outcome_simulate(row, &scenario, NULL, &err);
    if (!read || is_small(&scenario))
        line = json_dumps(row, JSON_COMPACT);
    json_decref(row);
    arena_release(&arena);
    scenario_release(&scenario);
    error_release(&err);
    return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { LITTLE = 1 << 20 };           /* it is full and emptied now and then */
    static struct cache cache;
    char *cold, *warm;

    if (!cache.limit)
        cache_init(&cache, LITTLE);
    cold = row_of((const char *)data, size, NULL);
    warm = row_of((const char *)data, size, &cache);
    if (!cold != !warm || (cold && strcmp(cold, warm))) {
        fprintf(stderr, "without the cache: %s\nwith it: %s\n", cold ? cold : "none", warm ? warm : "none");
        abort();
    }
    cache_renew(&cache);
    free(cold);
    free(warm);
    return 0;
}
