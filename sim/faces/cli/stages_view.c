#include "cli/stages_view.h"

#include <math.h>

#include "base/text.h"
#include "base/units.h"
#include "model/model.h"
#include "recompute/stage_plan.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "workload/workload.h"

/* What the first forward leaves of every layer, a letter each. */
static void show_plan(const struct stage_plan *plan, FILE *out)
{
    fputs("  ", out);
    for (size_t l = 0; l < plan->count; l++) {
        const struct chain_kept *kept = &plan->kept[l];

        if (kept->rest)
            fputc(kept->selective ? (kept->rest_offloaded ? 'P' : 'S') : kept->rest_offloaded ? 'O' : 'K', out);
        else
            fputc(!kept->input ? '.' : kept->input_offloaded ? 'o' : 'k', out);
    }
}

/* Prints a virtual stage, on the first replica's GPUs where nodes are of several kinds. */
static const struct stage_times *times_of(const struct workload *workload, int s)
{
    if (!workload->scenario->layout.mixed)
        return &ordinary_times(workload)[s];
    return &workload_times(workload, 0, plan_rank(&workload->plan, 0, s, 0, NULL))[s];
}

/* s: the longest of the stages' forwards and backwards. */
static double longest_work(const struct workload *workload)
{
    double longest = 0;

    for (int s = 0; s < plan_virtual_stages(&workload->scenario->plan); s++) {
        const struct stage_times *times = times_of(workload, s);

        longest = fmax(longest, fmax(times->work[FORWARD].seconds, times->work[BACKWARD].seconds));
    }
    return longest;
}

/* The GPUs of a pipeline rank, whose names its cluster may not say. */
static void show_gpus(const struct scenario *scenario, int rank, FILE *out)
{
    struct arena arena = {0};
    const char *names = scenario_gpu_names(&arena, scenario, rank);

    fprintf(out, "  %s", names ? names : "");
    arena_release(&arena);
}

void stages_show(const struct workload *workload, FILE *out)
{
    const struct scenario *scenario = workload->scenario;
    const struct stage *stages = workload->stages;
    bool recomputes = scenario->plan.recompute, layers = scenario->model.stages.count == 0,
         plans = stages[0].plan != NULL;
    double longest = longest_work(workload);
    char text[6][48], degrees[128];

    text_write(TEXT_LINE, scenario->name, out);
    fprintf(out, ": %s, %s = %d GPU%s, %d micro-batch%s a replica\n\n",
            scenario_schedule(scenario)->title, scenario_degrees(scenario, degrees, sizeof degrees),
            scenario_gpus(scenario), scenario_gpus(scenario) == 1 ? "" : "s", scenario->plan.micro_batches,
            scenario->plan.micro_batches == 1 ? "" : "es");
    if (model_active_parameters(&scenario->model) < model_parameters(&scenario->model))
        fprintf(out, "%s parameters, of which a token meets %s\n\n",
                unit_format_short(UNIT_COUNT, model_parameters(&scenario->model), text[0], 48),
                unit_format_short(UNIT_COUNT, model_active_parameters(&scenario->model), text[1], 48));
    fprintf(out, "%-6s%s %12s %12s %12s %12s %12s %12s%s\n", "stage", layers ? " layers" : "", "parameters",
            "forward", "backward", "recompute", "activations", "boundary",
            plans ? "    offloaded  layer by layer" : scenario->layout.mixed ? "  GPU" : "");
    for (int s = 0; s < plan_virtual_stages(&scenario->plan); s++) {
        const struct stage *stage = &stages[s];
        const struct stage_times *times = times_of(workload, s);

        fprintf(out, layers ? "%-6d %6d" : "%-6d", s, stage->layers);
        double recompute = stage->plan ? times->recomputed.seconds : recomputes ? times->work[RECOMPUTE].seconds : 0;
        double held = stage->plan ? stage->plan->held : recomputes ? stage->checkpoint : stage->activation;

        fprintf(out, " %12s %12s %12s %12s %12s %12s",
                unit_format_short(UNIT_COUNT, stage->parameters + stage->frozen + stage->packed, text[0], 48),
                unit_format_like(UNIT_TIME, longest, times->work[FORWARD].seconds, text[1], 48),
                unit_format_like(UNIT_TIME, longest, times->work[BACKWARD].seconds, text[2], 48),
                unit_format_like(UNIT_TIME, longest, recompute, text[3], 48),
                unit_format_short(UNIT_BYTES, held, text[4], 48),
                unit_format_short(UNIT_BYTES, stage->boundary, text[5], 48));
        if (stage->plan) {
            fprintf(out, " %12s", unit_format_short(UNIT_BYTES, stage->plan->offloaded, text[0], 48));
            show_plan(stage->plan, out);
        } else if (scenario->layout.mixed) {
            show_gpus(scenario, plan_rank(&scenario->plan, 0, s, 0, NULL), out);
        }
        fputc('\n', out);
    }
    fprintf(out, "\nper GPU and %s, without communication; activations are what a forward keeps\n",
            plan_slices(&scenario->plan) > 1 ? "slice of a micro-batch, in the mean of its slices" : "micro-batch");
    if (plans)
        fprintf(out, "layer by layer, in the order of the forward: K keeps all, S all but the core of attention, k its "
                "input alone, O, P and o the same%s in host memory, . nothing: what it does not keep is computed again\n",
                scenario_offloads(scenario, OFFLOAD_TENSORS) ? ", or a part of it (see --memory)," : "");
}
