/* The whole way of a scenario file: reading, presets and platforms, resolving, dividing the layers, printing. What the
 * printing says must read back. */
#include <stdlib.h>

#include "auto/auto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *print_resolved(const struct scenario *scenario, size_t *size)
{
    struct arena arena = {0};
    char *text = NULL;
    FILE *out = open_memstream(&text, size);

    node_print(scenario_dump(&arena, scenario), out);
    fclose(out);
    arena_release(&arena);
    return text;
}

/* What is larger takes its time, and is well all the same. */
static bool is_small(const struct scenario *scenario)
{
    const struct plan *plan = &scenario->plan;

    return scenario_gpus(scenario) <= 4096 &&
           (double)plan->stages * plan->chunks * plan->micro_batches * plan->batches <= 100000;
}

/* The resolved scenario as text, or NULL when it is refused or large; a refusal says why. */
static char *resolve_text(const char *text, size_t size, size_t *length)
{
    struct arena arena = {0};
    struct error err = {0};
    struct scenario scenario = {0};
    struct node *root;
    struct workload workload = {0};
    char *resolved = NULL;

    if (!conf_parse(&arena, "fuzz.yaml", text, size, &root, &err) &&
        !scenario_read(&arena, root, NULL, 0, "fuzz", &scenario, &err) && is_small(&scenario) &&
        !workload_init(&workload, &scenario, &err))
        resolved = print_resolved(&scenario, length);
    else if (!err.count && is_small(&scenario))
        abort();
    arena_release(&arena);
    workload_release(&workload);
    scenario_release(&scenario);
    error_release(&err);
    return resolved;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t once = 0, twice = 0;
    char *first = resolve_text((const char *)data, size, &once), *second;

    if (!first)
        return 0;
    second = resolve_text(first, once, &twice);
    if (!second)
        abort();
    free(first);
    free(second);
    return 0;
}
