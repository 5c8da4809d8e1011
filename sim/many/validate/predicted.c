/* What is predicted for a row of a paper. */
#include "validate/validation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "evidence/evidence.h"
#include "evidence/first.h"
#include "files/digest.h"
#include "run/memory_advice.h"
#include "scenario/scenario.h"
#include "stage/memory.h"

void outcome_fail(struct outcome *outcome, const struct error *err)
{
    for (int i = 0; i < err->count && outcome->nmessages < (int)COUNT(outcome->messages); i++) {
        const struct error_message *message = &err->messages[i];
        int k = outcome->nmessages++;

        outcome->messages[k].code = message->code;
        outcome->messages[k].line = message->loc.line;
        outcome->messages[k].column = message->loc.column;
        snprintf(outcome->messages[k].file, sizeof outcome->messages[k].file, "%s",
                 message->loc.file ? message->loc.file : "");
        snprintf(outcome->messages[k].text, sizeof outcome->messages[k].text, "%s", message->text);
    }
    outcome->simulated = false;
    outcome->unread |= err->system;
}

static void digest_tree(const struct node *tree, char hex[DIGEST_HEX])
{
    struct digest digest;
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    BUG_IF(!out);
    node_print(tree, out);
    fclose(out);
    digest_init(&digest);
    digest_add(&digest, text, length);
    digest_end(&digest, hex);
    free(text);
}

/* Digests of the scenario as it is resolved, without the name of its row. */
static void digest_asked(const struct scenario *scenario, struct outcome *outcome)
{
    static const char *const batches[] = {"global", "micro_batches"};
    struct arena arena = {0};
    struct node *dump = scenario_dump(&arena, scenario), *none = node_scalar(&arena, "", true);
    struct node *batch = node_merge(&arena, node_get(dump, "batch"), node_mapping(&arena));

    node_put(&arena, dump, "name", none);
    digest_tree(dump, outcome->asked);
    for (size_t i = 0; i < COUNT(batches); i++)
        node_put(&arena, batch, batches[i], none);
    node_put(&arena, dump, "batch", batch);
    digest_tree(dump, outcome->asked_but_batches);
    outcome->micro_batches = scenario->batch.micro_batches;
    arena_release(&arena);
}

/* Simulates the row with these changes. -1: it could not be. */
static int simulate_row(struct paper *paper, size_t row, bool plain, const char *const *sets, size_t nsets,
                        struct scenario *scenario, struct run *run, bool *fits, struct error *err)
{
    struct workload *workload = ARENA_ARRAY(&paper->arena, struct workload, 1);
    struct simulate_options options;

    if (paper_scenario(paper, row, plain, sets, nsets, scenario, err) || workload_init_advised(workload, scenario, err))
        return -1;
    options = simulate_numbers_of(scenario);
    options.no_advice = true;            /* nobody reads it: a row that does not fit has its numbers */
    *fits = !simulate_advised(workload, options, run, err);
    return run->metrics.ranks ? 0 : -1;
}

/* How many times as long the row takes on kernels of the data sheet, asked plainly; NaN: it takes these already, or
 * cannot be simulated so. */
static double sheet_ratio(const struct outcome *outcome, struct paper *paper, size_t row,
                          const struct validation_options *options)
{
    const char **sets = ARENA_ARRAY(&paper->arena, const char *, options->nsets + 1);
    struct scenario scenario;
    struct run run = {0};
    struct error ignored = {0};
    bool fits;
    int rc;

    if (word_in("roofline given", outcome->likeness.costs))
        return NAN;
    for (size_t i = 0; i < options->nsets; i++)
        sets[i] = options->sets[i];
    sets[options->nsets] = "costs.gpu=roofline";
    rc = simulate_row(paper, row, true, sets, options->nsets + 1, &scenario, &run, &fits, &ignored);
    error_release(&ignored);
    return rc ? NAN : run.metrics.iteration_time / outcome->metrics.iteration_time;
}

/* Whether what data sheets predict of the row is asked for: of rows whose first error is known, as it counts for work that
 * is not alike. */
static bool needs_sheet(const struct paper *paper, size_t row, const struct validation_options *options)
{
    return options->firsts && first_error_find(options->firsts, paper->name, paper->rows[row].id);
}

void outcome_find(struct outcome *outcome, struct paper *paper, size_t row, bool plain,
                  const struct validation_options *options)
{
    struct error err = {0};
    struct scenario scenario;
    struct run run = {0};

    outcome->simulated = !simulate_row(paper, row, plain, options->sets, options->nsets, &scenario, &run, &outcome->fits, &err);
    if (outcome->simulated && !plain && paper->largest && !paper->rows[row].oom)
        outcome->simulated = !memory_fits_twice(&scenario, &outcome->fits_twice, &err);
    outcome->limited = outcome->simulated && isfinite(memory_limit(&scenario));
    outcome->measurable = outcome->simulated && likeness_exists(&scenario);
    if (outcome->measurable)
        outcome->likeness = likeness_of(&scenario, &run.metrics);
    if (outcome->measurable)
        outcome->unsure = certainty_unsure(&scenario, &run.metrics);
    if (outcome->simulated)
        digest_asked(&scenario, outcome);
    outcome->metrics = run.metrics;
    outcome->metrics.ranks = NULL;
    outcome->sheet = outcome->measurable && plain && needs_sheet(paper, row, options) ?
                     sheet_ratio(outcome, paper, row, options) : NAN;
    if (!outcome->simulated)
        outcome_fail(outcome, &err);
}
