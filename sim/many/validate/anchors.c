#include "validate/anchors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "config/conf.h"
#include "files/digest.h"
#include "run/certainty.h"
#include "validate/validation.h"

/* SCENARIO=TIME: what is behind the last '='. Returns 1 if it is that, 0 if there is no '='. */
static int split_time(struct arena *arena, const char *text, const char **path, double *seconds, struct error *err)
{
    const char *at = strrchr(text, '=');
    char why[256];

    *path = text;
    if (!at)
        return 0;
    *path = arena_printf(arena, "%.*s", (int)(at - text), text);
    if (!unit_parse(UNIT_TIME, at + 1, seconds, why, sizeof why) && *seconds > 0)
        return 1;
    return error_add(err, EXIT_USAGE, (struct loc){.file = *path}, "--anchor: expected a time such as '12.5 s' behind "
                     "'=', found '%s'", at + 1);
}

static void add_anchor(struct arena *arena, const struct validation *validation, size_t row, double error,
                       struct anchors *anchors)
{
    const struct outcome *outcome = &validation->outcomes[row];
    struct anchor *anchor = GROW(&anchors->list);

    *anchor = (struct anchor){
        .name = arena_strdup(arena, validation->paper->rows[row].id), .likeness = outcome->likeness,
        .predicted = outcome->metrics.iteration_time, .measured = outcome->metrics.iteration_time / (1 + error),
    };
    certainty_shares(&outcome->metrics, anchor->shares);
}

/* The key of everything that decides the anchors' correction. */
static void digest_anchors(struct anchors *anchors)
{
    struct digest digest;

    digest_init(&digest);
    for (size_t i = 0; i < anchors->list.count; i++) {
        const struct anchor *anchor = &anchors->list.items[i];

        digest_add(&digest, &anchor->measured, sizeof anchor->measured);
        digest_add(&digest, &anchor->predicted, sizeof anchor->predicted);
        digest_add(&digest, &anchor->likeness, sizeof anchor->likeness);
        digest_add(&digest, anchor->shares, sizeof anchor->shares);
    }
    digest_end(&digest, anchors->digest);
}

static int take_rows(struct arena *arena, struct paper *paper, size_t jobs, struct anchors *anchors, struct error *err)
{
    const struct validation_options options = {.jobs = jobs, .configured = true};
    struct validation validation;
    int rc = validation_init(&validation, paper, &options, err) || validation.failed ? -1 : 0;
    struct anchor *settled;

    for (size_t i = 0; !rc && i < paper->nrows; i++) {
        double error = validation.outcomes[i].measurable ? validation_time_error(&validation, i) : NAN;

        if (!isnan(error))
            add_anchor(arena, &validation, i, error, anchors);
    }
    validation_release(&validation);
    if (!rc && !anchors->list.count)
        rc = error_add(err, EXIT_INPUT, (struct loc){.file = paper->file}, "--anchor: no row has a measured time or rate, on "
                       "a network that takes time; expected a column such as measured.iteration_time_s");
    settled = ARENA_ARRAY(arena, struct anchor, anchors->list.count + 1);
    if (anchors->list.count)
        memcpy(settled, anchors->list.items, anchors->list.count * sizeof *settled);
    free(anchors->list.items);
    anchors->list.items = settled;
    digest_anchors(anchors);
    return rc;
}

/* A scenario alone says nothing of its time. */
static int refuse_scenario(const char *path, struct error *err)
{
    struct arena arena = {0};
    struct node *root = NULL;
    int rc = conf_load(&arena, path, &root, err);

    if (!rc && !node_get(root, "rows") && node_get(root, "model"))
        rc = error_add(err, EXIT_USAGE, (struct loc){.file = path}, "--anchor: this is a scenario; expected its measured "
                       "time behind it (--anchor %s='12.5 s'), or a table as 'dtsim help paper' has it", path);
    arena_release(&arena);
    return rc;
}

int anchors_load(struct arena *arena, const char *text, size_t jobs, const struct anchors **anchors, struct error *err)
{
    struct anchors *read = text ? ARENA_ARRAY(arena, struct anchors, 1) : NULL;
    struct paper paper;
    double seconds = NAN;
    int one, rc;

    *anchors = read;
    if (!text)
        return 0;
    one = split_time(arena, text, &read->file, &seconds, err);
    if (one < 0 || (!one && refuse_scenario(read->file, err)))
        return -1;
    rc = one ? paper_of_scenario(read->file, seconds, &paper, err) : paper_load(read->file, &paper, err);
    if (!rc)
        rc = take_rows(arena, &paper, jobs, read, err);
    paper_release(&paper);
    return rc;
}
