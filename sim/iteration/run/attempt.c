#include "run/attempt.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "auto/auto.h"
#include "base/base.h"
#include "run/memory_fit.h"
#include "scenario/scenario.h"
#include "workload/workload.h"

void attempt_set(struct attempt *attempt, const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = xvprintf(format, args);
    va_end(args);
    for (char *line = text, *end; *line; line = end + (*end == '\n')) {
        end = strchrnul(line, '\n');
        BUG_IF(attempt->nsets == ATTEMPT_SETS);
        attempt->sets[attempt->nsets++] = arena_strndup(&attempt->arena, line, (size_t)(end - line));
    }
    free(text);
}

static enum attempted refused(const struct attempt *attempt)
{
    return attempt->found.system ? ATTEMPT_FAILED :
           attempt->found.messages[0].kind == ERROR_MEMORY ? ATTEMPT_SHORT : ATTEMPT_REFUSED;
}

enum attempted attempt_build(struct attempt *attempt)
{
    const struct scenario *scenario = attempt->of;

    if (attempt->nsets) {
        if (scenario_vary(scenario, attempt->sets, attempt->nsets, &attempt->varied, &attempt->found))
            return refused(attempt);
        attempt->varied.simulation.engine = scenario->simulation.engine;
        scenario = &attempt->varied;
    }
    return workload_init(&attempt->workload, scenario, &attempt->found) ? refused(attempt) : ATTEMPT_RAN;
}

static enum attempted simulate_and_look(struct attempt *attempt, struct simulate_options how)
{
    if (simulate(&attempt->workload, how, &attempt->run, &attempt->found))
        return refused(attempt);
    return !attempt->anyway && memory_refuse(&attempt->run, "", &attempt->found) ? ATTEMPT_SHORT : ATTEMPT_RAN;
}

enum attempted attempt_simulate(struct attempt *attempt, struct simulate_options how)
{
    struct simulate_options needs = memory_options_of(attempt->workload.scenario);

    if (needs.memory && !how.memory && !attempt->anyway &&
        !memory_seems_to_fit(&attempt->workload)) {
        enum attempted came = simulate_and_look(attempt, needs);

        if (came)
            return came;
        run_release(&attempt->run);
    }
    return simulate_and_look(attempt, how);
}

enum attempted attempt_run(struct attempt *attempt, struct simulate_options how)
{
    enum attempted came = attempt_build(attempt);

    return came ? came : attempt_simulate(attempt, how);
}

int attempt_end(struct attempt *attempt, struct error *err)
{
    int rc = error_pass_system(&attempt->found, err);

    run_release(&attempt->run);
    workload_release(&attempt->workload);
    scenario_release(&attempt->varied);
    arena_release(&attempt->arena);
    error_release(&attempt->found);
    return rc;
}
