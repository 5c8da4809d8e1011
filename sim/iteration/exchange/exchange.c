/* All exchanges of a workload: they are found, measured, and at last their bytes are counted on links. */
#include "exchange/exchange_internal.h"

#include <limits.h>
#include <stdlib.h>

#include "alike/alike.h"
#include "base/base.h"
#include "collective/measure.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/stage.h"
#include "workload/workload.h"

/* The size of a lockstep group: it holds whole groups of all kinds that exchange within works. 1 if one replica stands
 * for all. */
static int lockstep_replicas(const struct exchanges *exchanges)
{
    int replicas = 1;

    for (enum sending i = 0; i < SENT_COUNT && exchanges->alike.replicas > 1; i++) {
        const struct process_group *group = &exchanges->scenario->groups.of[sending_groups[i]];

        if (group->axis == AXIS_REPLICA)
            replicas = lcm(replicas, group->size, INT_MAX);
    }
    return replicas;
}

/* Nobody is a member of anything yet. */
static void forget_members(struct exchanges *exchanges)
{
    int stages = plan_virtual_stages(exchanges->plan);

    exchanges->members = ARENA_ARRAY(exchanges->arena, struct members *, stages * GROUP_KIND_COUNT);
    exchanges->tied = ARENA_ARRAY(exchanges->arena, struct members *, tied_sums(exchanges));
}

void exchanges_find(struct exchanges *exchanges, const struct workload *workload, bool whole, struct measure *measure,
                    struct arena *arena, struct error *err)
{
    struct alike before;

    *exchanges = (struct exchanges){
        .workload = workload, .scenario = workload->scenario, .plan = &workload->plan, .whole = whole, .measure = measure,
        .err = err, .arena = arena, .alike = workload->alike,
    };
    exchanges->alike.micro_batches = workload->plan.micro_batches;
    measure->failed = false;
    exchanges->buckets = ARENA_ARRAY(arena, struct buckets, plan_virtual_stages(exchanges->plan));
    forget_members(exchanges);
    before = exchanges->alike;
    if (!whole)
        alike_look_at_one(&before);
    else
        sums_build(exchanges);
    if (whole && before.exact && !sums_together(exchanges))
        alike_part(&before, exchanges->scenario);
    exchanges->alike = before;       /* nothing was used so far */
    exchanges->used = (struct exchanges_used){0};
    exchanges->lockstep = lockstep_replicas(exchanges);
    forget_members(exchanges);       /* their number depends on `alike` */
}

int exchanges_measure(struct exchanges *exchanges)
{
    if (within_measure(exchanges))
        return -1;
    sums_contend(exchanges);
    return exchanges->measure->failed ? -1 : 0;
}

void exchanges_release(struct exchanges *exchanges)
{
    for (int s = 0; exchanges->buckets && s < plan_virtual_stages(exchanges->plan); s++)
        free(exchanges->buckets[s].items);
}

void exchanges_carry(const struct exchanges *exchanges, int program_rank, int chunk, const double *sent)
{
    const struct exchange_list *list = exchanges_stage(exchanges, program_rank, chunk)->exchanges;
    const struct process_groups *groups =
        scenario_groups(exchanges->scenario, program_rank % exchanges->plan->stages);
    const struct exchange_cost *costs = costs_of(exchanges, program_rank, chunk);

    for (int i = 0; i < list->count; i++) {
        enum group_kind kind = sending_groups[list->items[i].what];
        const struct process_group *group = &groups->of[kind];
        int members = group_members(group), own = kind == GROUP_TENSOR ? members : group->tensors;

        measure_carry(exchanges->measure, costs[i].index, costs[i].first, (int)kind,
                      sent[i] * stands_for(exchanges, own, members));
    }
}
