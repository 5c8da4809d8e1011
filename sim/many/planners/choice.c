#include "planners/choice.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "planners/choice_internal.h"
#include "run/attempt.h"
#include "run/memory_fit.h"
#include "scenario/scenario.h"

static const struct planner_method methods[] = {
    {"pipedream", "Narayanan et al. 2019, SOSP", choose_pipedream},
    {"2bw", "Narayanan et al. 2021, ICML", choose_two_bw},
    {"piper", "Tarnawski et al. 2021, NeurIPS", choose_piper},
    {"mcmc", "FlexFlow: Jia et al. 2019, MLSys", choose_mcmc},
    {"alpa", "Zheng et al. 2022, OSDI", choose_alpa},
    {"dapple", "Fan et al. 2021, PPoPP", choose_dapple},
    {"varuna", "Athlur et al. 2022, EuroSys", choose_varuna},
    {"dtsim", "this simulator as the objective", choose_dtsim},
};

const struct planner_method *planner_method_at(size_t i)
{
    return i < COUNT(methods) ? &methods[i] : NULL;
}

static int simulate_choice(struct planner_choices *choices, struct planner_choice *choice,
                           const struct scenario *scenario, struct error *err)
{
    struct attempt attempt = {.of = scenario, .anyway = true};
    const struct metrics *metrics = &attempt.run.metrics;

    for (size_t i = 0; i < choice->nsets; i++)
        attempt_set(&attempt, "%s", choice->sets[i]);
    if (!attempt_build(&attempt)) {
        choice->gpus = scenario_gpus(&attempt.varied);
        if (!attempt_simulate(&attempt, (struct simulate_options){.engine = ENGINE_FAST, .numbers = true})) {
            choice->seconds = metrics->iteration_time;
            choice->samples_per_s = metrics->samples_per_s;
            choice->memory = metrics->peak_memory;
            memory_refuse(&attempt.run, "", &attempt.found);
        }
    }
    if (attempt.found.count)         /* without its place, which is of the scenario that was made */
        choice->reason = arena_strdup(&choices->arena, attempt.found.messages[0].text);
    return attempt_end(&attempt, err);
}

int planners_choose(const struct scenario *scenario, const char *method, struct planner_choices *choices,
                    struct error *err)
{
    struct profiled profiled;
    int rc;

    if (scenario->model.stages.count)
        return error_clash(
            err, node_loc(scenario->node, "model"),
            "model: stages are given, so planners have no layers to divide; expected 'layers' or a transformer");
    rc = profiled_read(scenario, scenario->batch.micro, &profiled, err);
    if (!rc && profiled.count > PLANNED_MOST)
        rc = error_add(err, EXIT_INFEASIBLE, node_loc(scenario->node, "model"),
                       "model: %zu layers; expected at most %d for planners", profiled.count, PLANNED_MOST);
    for (size_t i = 0; !rc && i < COUNT(methods); i++)
        if (!method || !strcmp(method, methods[i].name))
            rc = methods[i].choose(choices, &profiled, err);
    for (size_t i = 0; !rc && i < choices->count; i++)
        if (choices->items[i].nsets)
            rc = simulate_choice(choices, &choices->items[i], scenario, err);
    profiled_release(&profiled);
    return rc;
}

void planners_release(struct planner_choices *choices)
{
    free(choices->items);
    arena_release(&choices->arena);
}
