/* Where nothing fits: what kept most configurations out, and how many GPUs would do. */
#include "cli/plan_print.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/text.h"
#include "plan/plan.h"
#include "plan/space.h"
#include "process/pool.h"
#include "run/facts.h"

enum { FACTOR_MOST = 64 };       /* times the GPUs */
#define SEARCH_MOST 20.0         /* s for all of them, where a limit of the time leaves twice as much */

void plan_print_cause(const struct space *space, const struct plan_outcome *outcome, FILE *out)
{
    uint64_t most = 0;
    const char *why = NULL;

    for (size_t i = 0; i < space->nrules; i++)
        if (space->rules[i].of_release && space->selection.dropped[i] > most) {
            most = space->selection.dropped[i];
            why = space->rules[i].why;
        }
    if (!why && !outcome->counts.memory)
        return;
    fprintf(out, "what keeps them out: memory %llu", (unsigned long long)outcome->counts.memory);
    if (why) {
        fprintf(out, ", and of the release most, %llu: ", (unsigned long long)most);
        text_write(TEXT_LINE, why, out);
        fputs("; another 'software:' may have that ('dtsim list software')", out);
    }
    fputc('\n', out);
}

/* Whether a configuration that runs and fits on so many GPUs is found within these s. */
static bool fits_on(const struct plan_question *question, const struct plan_options *said, int gpus, double seconds)
{
    char *count = xprintf("%d", gpus), *folder = xprintf("%s/gpus-%d", said->folder, gpus);
    struct plan_question more = *question;
    struct plan_options options = {.folder = folder, .jobs = said->jobs, .top = 1, .time_limit = seconds};
    struct plan_outcome outcome = {0};
    struct space space = {0};
    struct error ignored = {0};
    bool fits;

    more.gpus = count;
    fits = !space_load(&more, &space, &ignored) && !plan_search(&space, &options, &outcome, &ignored) &&
           outcome.counts.replayed > 0;
    plan_release(&outcome);
    space_release(&space);
    error_release(&ignored);
    free(count);
    free(folder);
    return fits;
}

int plan_fewest(const struct plan_question *question, const struct space *space, const struct plan_options *options, double spent)
{
    double most = options->time_limit > 0 ? fmin(SEARCH_MOST, (options->time_limit - spent) / 2) : SEARCH_MOST;
    struct arena arena = {0};
    struct error ignored = {0};
    struct facts facts;
    double begun = pool_now();
    int gpus = 0;

    if (!question->gpus && !facts_find(&arena, space->sweep.points.base, "plan", &facts, &ignored) && !facts.in_parts)
        gpus = facts.nodes * facts.per_node;
    error_release(&ignored);
    arena_release(&arena);
    for (int factor = 2; gpus && factor <= FACTOR_MOST && pool_now() - begun < most; factor *= 2)
        if (fits_on(question, options, gpus * factor, most))
            return gpus * factor;
    return 0;
}
