#include "planners/choice.h"

#include <math.h>
#include <stdlib.h>

#include "auto/auto.h"
#include "base/base.h"
#include "config/conf.h"
#include "planners/choice_internal.h"
#include "run/memory_advice.h"
#include "scenario/scenario.h"
#include "workload/workload.h"

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

/* "file:line: ..." is of the scenario that was made; its text alone tells a reader more. */
static const char *first_reason(struct planner_choices *choices, const struct error *found)
{
    return arena_strdup(&choices->arena, found->count ? found->messages[0].text : "failed");
}

static void simulate_choice(struct planner_choices *choices, struct planner_choice *choice,
                            const struct scenario *scenario)
{
    struct simulate_options options;
    struct scenario varied = {0};
    struct workload workload = {0};
    struct run run = {0};
    struct error found = {0};

    if (!scenario_vary(scenario, choice->sets, choice->nsets, &varied, &found) &&
        !workload_init(&workload, &varied, &found)) {
        options = simulate_numbers_of(&varied);
        options.engine = ENGINE_FAST;
        choice->gpus = scenario_gpus(&varied);
        if (!simulate(&workload, options, &run, &found)) {
            choice->seconds = run.metrics.iteration_time;
            choice->samples_per_s = run.metrics.samples_per_s;
            choice->memory = run.metrics.peak_memory;
            memory_check(&run, false, &found);
        }
    }
    if (found.count)
        choice->reason = first_reason(choices, &found);
    run_release(&run);
    workload_release(&workload);
    scenario_release(&varied);
    error_release(&found);
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
            simulate_choice(choices, &choices->items[i], scenario);
    profiled_release(&profiled);
    return rc;
}

void planners_release(struct planner_choices *choices)
{
    free(choices->items);
    arena_release(&choices->arena);
}
