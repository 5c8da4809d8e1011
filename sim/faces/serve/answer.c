#include "serve/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "files/data.h"
#include "report/result.h"
#include "scenario/scenario.h"
#include "serve/request.h"
#include "serve/requested.h"

/* An object without its opening bracket. */
static void put_rest(const json_t *object, FILE *out)
{
    char *text = json_text(object);

    fputs(text + 1, out);
    free(text);
}

char *answer_errors(const struct error *err)
{
    json_t *errors = errors_json(err);
    char *text = NULL;
    size_t size;
    FILE *out = text_open(&text, &size);

    put_rest(errors, out);
    json_decref(errors);
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
    struct progress *progress = arena->progress;         /* scenario_read takes the arena */

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
    return scenario_load(base, request->sets, request->nsets, progress, scenario, err);
}

void answer_write(struct cache *cache, const char *text, size_t length, int line, struct budget budget, FILE *out)
{
    struct requested is = requested_begin(cache);
    struct request request;
    int rc;

    progress_begin(&is.progress, "--budget", budget.seconds, budget.bytes);
    is.own.progress = is.arena.progress = &is.progress;
    rc = request_read(&is.own, text, length, line, &request, &is.err) ||
         read_scenario(&is.arena, &request, &is.scenario, &is.err) ? -1 : 0;
    if (!rc && !requested_simulate(&is, request.engine, request.advice))
        json_put(is.answer, "metrics", result_metrics_json(&is.run));
    requested_errors(&is);
    put_rest(is.answer, out);
    requested_release(&is, cache);
}
