/* A training: its result and its tables, as they are. */
#include "page/page_internal.h"

#include <stdlib.h>

#include "base/base.h"
#include "files/look.h"

int page_is_training(const char *folder, bool *training, struct error *err)
{
    char *path = xprintf("%s/result.json", folder);
    enum look there;
    json_t *result = NULL;
    int rc = look_at(path, &there, err);

    *training = false;
    if (!rc && there == LOOK_FILE) {
        result = json_of_file(path, "a result", err);
        rc = result ? 0 : -1;
        *training = json_is_object(json_object_get(result, "time_shares"));
    }
    json_decref(result);
    free(path);
    return rc;
}

/* Numbers that are not known stand as nan in these tables: their columns are texts. */
static int put_tables(struct page *page, const char *dir, struct error *err)
{
    static const char *const progress[] = {"steps", "samples", "tokens", "uninterrupted_s", "p10_s", "p50_s", "p90_s", NULL};
    static const char *const trials[] = {"end", "wall_s", "failures", NULL};
    static const char *const phases[] = {
        "phase", "ramp", "batch", "sequence", "gpus", "nodes", "steps", "step_s", "samples", "mfu", "tokens", "power_w", NULL,
    };
    static const char *const events[] = {"time_s", "kind", "node", "cause", "steps_lost", NULL};

    return page_table(page, dir, "progress", progress, 1 << 2, err) | page_table(page, dir, "trials", trials, 1 << 0, err) |
           page_table(page, dir, "phases", phases, 7u << 9, err) |
           page_table(page, dir, "events", events, 1 << 1 | 1 << 3, err) ? -1 : 0;
}

int page_of_training(const struct page_request *request, FILE *log, struct error *err)
{
    static const char *const names[] = {"result.json", "trials.tsv", "events.tsv", "phases.tsv", "progress.tsv", NULL};
    struct page page = {.request = request};
    char *path = xprintf("%s/result.json", request->input);
    json_t *result = json_of_file(path, "the result of a training", err);
    int rc = result ? 0 : -1;

    page_init(&page, "training");
    if (!rc)
        rc = put_tables(&page, request->input, err);
    if (!rc) {
        page_json(&page, "result", result);
        rc = page_put(&page, "training.html", names, log, err);
    }
    json_decref(result);
    page_release(&page);
    free(path);
    return rc;
}
