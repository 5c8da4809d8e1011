#include "steady/shorter.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

/* A multiple of the number of micro-batches in which most pipelines repeat themselves that do so soon. */
enum { OFTEN = 4 };

/* Works of all replicas; share of the micro-batches that attempts may simulate. */
enum { FEW = 1000 };
static const double MOST_SPENT = 0.6;

/* Micro-batches in the stretches of the shorter rows, in addition to those that fill the pipeline. The first attempt is
 * enough for a pipeline that repeats itself every one or two micro-batches. The second is enough for a period of as
 * many micro-batches as there are ranks. The third is for a pipeline that is slow to reach its steady state. */
static int kept(const struct shorter *shorter, int stages)
{
    int period = shorter->period.micro_batches, most = stages > period ? stages : period;
    const int more[] = {period < 4 ? 8 : 2 * period, 2 * most + 2 * period, 8 * most};

    return shorter->attempts < (int)COUNT(more) ? more[shorter->attempts] : -1;
}

/* Takes out the micro-batches that the attempt leaves out, in multiples of a step. False: there are none, or attempts
 * would simulate too much. */
static bool take_out(struct shorter *shorter, const struct workload *whole, int keep, int step)
{
    const struct plan *plan = &whole->plan;
    int all = plan_micro_batches(plan), spare = shorter->period.spare, fill = all - spare;

    if (keep < 0 || !step)
        return false;
    shorter->taken = (spare - fill - keep) / step * step;
    shorter->spent += all - shorter->taken;
    if (shorter->taken <= 0 || shorter->spent > MOST_SPENT * all)
        return false;
    if (shorter->workload.rows)
        rows_release(shorter->workload.rows, plan->stages);
    shorter->workload = *whole;
    shorter->workload.plan = period_plan(plan, shorter->taken);
    shorter->workload.rows = period_take(&shorter->period, whole->rows, plan, shorter->taken);
    return shorter->workload.rows != NULL;
}

/* Whether it is simulated sooner than it is looked at. */
static bool is_small(const struct workload *whole)
{
    size_t works = 0;

    for (int rank = 0; rank < whole->plan.stages; rank++)
        works += whole->rows[rank].count;
    return works * (size_t)scenario_replicas(whole->scenario) < FEW;
}

bool shorter_next(struct shorter *shorter, const struct workload *whole)
{
    int unit = OFTEN;

    if (!shorter->period.rows) {
        if (is_small(whole) || !period_find(whole->rows, &whole->plan, &shorter->period))
            return false;
    } else if (shorter->found) {         /* the pipeline repeats itself after this number of micro-batches */
        unit = shorter->found;
        shorter->found = 0;
    } else {
        unit = whole->plan.stages;
        shorter->attempts++;
    }
    return take_out(shorter, whole, kept(shorter, whole->plan.stages),
                    lcm(shorter->period.micro_batches, unit, shorter->period.spare));
}

void shorter_release(struct shorter *shorter)
{
    if (shorter->workload.rows)
        rows_release(shorter->workload.rows, shorter->workload.plan.stages);
    period_release(&shorter->period);
    memset(shorter, 0, sizeof *shorter);
}
