#include "serve/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/cache.h"
#include "base/progress.h"
#include "config/conf.h"
#include "config/field.h"
#include "files/data.h"
#include "report/outcome.h"
#include "report/result.h"
#include "run/memory_advice.h"
#include "run/run.h"
#include "scenario/scenario.h"
#include "serve/request.h"
#include "workload/workload.h"

/* An object without its opening bracket; releases it. */
static void put_rest(json_t *object, FILE *out)
{
    char *text = json_text(object);

    fputs(text + 1, out);
    free(text);
    json_decref(object);
}

char *answer_errors(const struct error *err)
{
    char *text = NULL;
    size_t size;
    FILE *out = text_open(&text, &size);

    put_rest(errors_json(err), out);
    text_close(out, &text);
    return text;
}

/* The scenario of the request's file, whose tree stays in the cache, or of the request itself; changed in a copy. */
static int read_scenario(struct arena *arena, const struct request *request, struct scenario *scenario,
                         struct error *err)
{
    struct node *root = ARENA_ARRAY(arena, struct node, 1);
    const struct node *tree = request->scenario.node;
    const char *base = request->base;

    if (base && !strcmp(base, "-"))
        return error_add(err, EXIT_INPUT, field_loc(&request_table, request, "base"), "request: base: expected a file; "
                         "standard input brings the requests");
    if (base && conf_shared(arena, base, &tree, err))
        return -1;
    *root = *tree;
    if (!scenario_read(arena, root, request->sets, request->nsets, base ? data_stem(arena, base) : REQUESTS, scenario,
                       err))
        return 0;
    if (!base || error_exit_code(err) != EXIT_INPUT)
        return -1;
    /* If the file is none of a scenario, scenario_load() says of what it is. */
    scenario_release(scenario);
    error_release(err);
    return scenario_load(base, request->sets, request->nsets, scenario, err);
}

/* Simulates what was asked for. 0: the run may be shown. */
static int simulate_request(const struct request *request, struct scenario *scenario, struct workload *workload,
                            struct run *run, struct error *err)
{
    struct simulate_options options;

    if (request->engine != ENGINE_OF_SCENARIO)
        scenario->simulation.engine = request->engine;
    options = simulate_options_of(scenario);
    options.links = true;
    options.no_advice = !request->advice;
    return simulate_scenario(scenario, options, workload, run, err);
}

void answer_write(struct cache *cache, const char *text, size_t length, int line, struct budget usual, FILE *out)
{
    struct arena arena = {.cache = cache}, own = arena;
    struct scenario scenario = {0};
    struct workload workload = {0};
    struct run run = {0};
    struct error err = {0};
    struct progress progress;
    struct request request;
    json_t *answer = json_object(), *errors;
    int rc = request_read(&own, text, length, line, usual, &request, &err);

    if (!rc) {
        progress_begin(&progress, "--budget", request.budget.seconds, request.budget.bytes);
        rc = read_scenario(&arena, &request, &scenario, &err);
        scenario.progress = &progress;
    }
    if (!rc && !simulate_request(&request, &scenario, &workload, &run, &err))
        json_put(answer, "metrics", result_metrics_json(&run));
    errors = err.count ? errors_json(&err) : json_pack("{s:i}", "exit_code", (int)EXIT_OK);
    json_object_update(answer, errors);
    put_rest(answer, out);
    json_decref(errors);
    run_release(&run);
    workload_release(&workload);
    scenario_release(&scenario);
    error_release(&err);
    arena_release(&arena);
    arena_release(&own);
    cache_renew(cache);
}
