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
#include "run/attempt.h"
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

/* Simulates the row with these changes, whether it fits or not. -1: it could not be. */
static int simulate_row(const struct paper *paper, size_t row, bool plain, const char *const *sets, size_t nsets,
                        struct attempt *attempt)
{
    struct scenario *scenario = &attempt->varied;

    *attempt = (struct attempt){.of = scenario, .anyway = true};
    if (paper_scenario(paper, row, plain, sets, nsets, scenario, &attempt->found))
        return -1;
    if (!attempt_run(attempt, simulate_numbers_of(scenario)))
        return 0;
    memory_advise(scenario, &attempt->found);
    return -1;
}

/* How many times as long the row takes on kernels of the data sheet, asked plainly; NaN: it cannot be simulated so. */
static double sheet_ratio(const struct outcome *outcome, const struct paper *paper, size_t row,
                          const struct validation_options *options)
{
    const char **sets = xcalloc(options->nsets + 1, sizeof *sets);
    struct attempt attempt;
    struct error ignored = {0};
    double ratio = NAN;

    for (size_t i = 0; i < options->nsets; i++)
        sets[i] = options->sets[i];
    sets[options->nsets] = "costs.gpu=roofline";
    if (!simulate_row(paper, row, true, sets, options->nsets + 1, &attempt))
        ratio = attempt.run.metrics.iteration_time / outcome->metrics.iteration_time;
    attempt_end(&attempt, &ignored);
    error_release(&ignored);
    free(sets);
    return ratio;
}

/* Whether what data sheets predict of the row is asked for: of rows whose first error is known, as it counts for work that
 * is not alike. */
static bool needs_sheet(const struct paper *paper, size_t row, const struct validation_options *options)
{
    return options->firsts && first_error_find(options->firsts, paper->name, paper->rows[row].id);
}

void outcome_find(struct outcome *outcome, const struct paper *paper, size_t row, bool plain,
                  const struct validation_options *options)
{
    struct attempt attempt;
    const struct scenario *scenario = &attempt.varied;
    struct metrics *metrics = &attempt.run.metrics;
    struct error err = {0};

    outcome->simulated = !simulate_row(paper, row, plain, options->sets, options->nsets, &attempt);
    outcome->fits = outcome->simulated && memory_lack(&attempt.run) <= 0;
    if (outcome->simulated && !plain && paper->largest && !paper->rows[row].oom)
        outcome->simulated = !memory_fits_micro(scenario, 2 * scenario->batch.micro, &outcome->fits_twice, &attempt.found);
    outcome->limited = outcome->simulated && isfinite(memory_limit(scenario));
    outcome->measurable = outcome->simulated && likeness_exists(scenario);
    if (outcome->measurable)
        outcome->likeness = likeness_of(scenario, metrics);
    if (outcome->measurable)
        outcome->unsure = certainty_unsure(scenario, metrics);
    if (outcome->simulated)
        digest_asked(scenario, outcome);
    outcome->metrics = *metrics;
    outcome->metrics.ranks = NULL;
    outcome->sheet = outcome->measurable && plain && needs_sheet(paper, row, options) &&
                     !word_in("roofline given", outcome->likeness.costs) ? sheet_ratio(outcome, paper, row, options) : NAN;
    if (!outcome->simulated)
        outcome_fail(outcome, &attempt.found);
    attempt_end(&attempt, &err);
    error_release(&err);
}
