/* How many operations a simulation would have, and whether these are too many. */
#include "alike/alike_internal.h"

#include "recompute/stage_plan.h"
#include "stage/compression.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/progress.h"
#include "collective/placed_group.h"
#include "scenario/process_group.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

static double tensors_of(const struct stage *stage)
{
    double tensors = 0;

    for (size_t i = 0; i < stage->nslices; i++)
        tensors += (double)stage->slices[i].ntensors;
    return tensors;
}

double count_messages(const struct scenario *scenario, const struct stage *stages, int flows)
{
    const struct parallelism *spec = &scenario->parallelism;
    const struct recipe *recipe = &scenario->recipe;
    int data = scenario_rank_replicas(scenario, 0), *gpus = xcalloc((size_t)scenario_replicas(scenario), sizeof *gpus);
    int channels = spec->channels;
    double messages = 0, each = scenario_parameter_bytes(scenario).sent, updates = 1;

    if (scenario_schedule(scenario)->asynchronous)
        updates = scenario_schedule(scenario)->batches ? scenario->plan.batches : scenario->plan.micro_batches;
    group_gpus(scenario, &scenario_groups(scenario, 0)->of[GROUP_DATA], 0, 0, 0, gpus);
    if (!channels) {
        struct placed_group group = placed_group_of(&scenario->cluster, gpus, data);

        channels = placed_group_channels(&group);
    }
    for (int s = 0; s < plan_virtual_stages(&scenario->plan); s++) {
        double tensors = tensors_of(&stages[s]), buckets;
        double n = scenario_rank_replicas(scenario, plan_rank(&scenario->plan, 0, s, 0, NULL)) * plan_sharers(&scenario->plan, s);
        double first = recipe->gradients.across ? scenario->groups.of[GROUP_SHARD].size : n, steps;

        steps = first - 1 + n / first - 1;       /* within a group that divides the states, and across these groups */
        buckets = isinf(recipe->gradients.bucket) ? 1 :
                   fmin(tensors, 1 + floor(stages[s].parameters * each / recipe->gradients.bucket));
        messages += 2 * n * steps * buckets / plan_sharers(&scenario->plan, s);
    }
    free(gpus);
    if (recipe->gradients.unit == SUM_BUFFERS)       /* weights and gradients, in pieces of 512 KiB */
        return 2.0 * scenario->plan.micro_batches * (data - 1) *
               (tensors_of(stages) + stages[0].parameters * each / 524288);
    if (spec->compression.method != COMPRESSION_NONE)
        messages *= LEGS_MAX + 1;
    if (recipe->gradients.every)
        updates = scenario->plan.micro_batches;
    return messages * channels * flows * updates;
}

double count_works(const struct scenario *scenario, const struct stage *stages)
{
    const struct plan *plan = &scenario->plan;
    double each = 4, works = (double)plan_virtual_stages(plan) * plan->micro_batches * plan_slices(plan) *
                             plan->batches * scenario->parallelism.local_steps;

    for (int s = 0; s < plan_virtual_stages(plan); s++)
        if (stages[s].plan)
            each = fmax(each, (double)(2 * stages[s].nslices + stages[s].plan->nsteps));
    return each * works;
}

int alike_check(const struct alike *alike, const struct scenario *scenario, bool whole, struct error *err)
{
    enum { MOST = 1 << 26 };
    double work = alike->works * alike->replicas, messages = whole && !alike->measured ? alike->messages : 0;
    const char *fewer = work <= MOST && scenario->simulation.collectives == COLLECTIVES_AUTO ?
                            "'collectives: measured' needs fewer, but ignores other traffic on the links of an all-reduce" :
                            "'collectives: auto' and 'fold: auto' need the fewest";

    if (work + messages <= MOST)
        return progress_admit(scenario->progress, work + messages, err);
    return error_clash(err, scenario->simulation.node ? scenario->simulation.node->loc : scenario->node->loc,
                       "simulation: up to %.2g operations; expected at most %.2g: %s", work + messages, (double)MOST,
                       fewer);
}
