/* Sums of gradients over the replicas, before any operation is written: what is summed together, which members end
 * together, and how much sums slow down the backward that they overlap with.
 *
 * Reads the recipe and the buckets of each stage.
 * Adds the contention of each bucket's sums. */
#include "exchange/exchange_internal.h"

#include "kernels/contention.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "workload/buckets.h"

/* Measures DDP's sums, which overlap with the rest of the backward, for the first replica's group. Without buckets the
 * backward has ended. */
static void bucket_contention(struct exchanges *exchanges, int stage, struct bucket *bucket)
{
    const struct scenario *scenario = exchanges->scenario;
    const struct leg *leg = &bucket->sum.legs[0];
    const struct { const struct collective *collective; double bytes; } sums[] = {
        {leg->collective, leg->bytes}, {scenario_all_reduce(scenario), leg->plain},
    };

    for (size_t i = 0; i < COUNT(sums); i++)
        if (sums[i].bytes > 0 && contention_possible(&scenario->cluster))
            exchange_overlapped(exchanges, scenario->groups.sums[bucket->class], stage, 0, sums[i].collective, sums[i].bytes,
                                &bucket->overlapped);
}

void sums_build(struct exchanges *exchanges)
{
    enum sum_unit unit = exchanges->scenario->recipe.gradients.unit;

    for (int s = 0; s < plan_virtual_stages(exchanges->plan); s++)
        if (unit == SUM_BUCKETS || unit == SUM_TENSORS || unit == SUM_STAGES)
            exchanges->buckets[s] = buckets_of(exchanges->workload, s);
}

void sums_contend(struct exchanges *exchanges)
{
    bool overlap = exchanges->scenario->recipe.gradients.unit == SUM_BUCKETS;

    for (int s = 0; s < plan_virtual_stages(exchanges->plan) && overlap; s++)
        for (size_t b = 0; b < exchanges->buckets[s].count; b++)
            bucket_contention(exchanges, s, &exchanges->buckets[s].items[b]);
}

/* Clears `together` if members of one of the stage's groups do not end the collective together. */
static void end_together(struct exchanges *exchanges, enum group_kind kind, int stage, const struct collective *collective,
                         double bytes, bool *together)
{
    struct members *members = members_of(exchanges, kind, stage);

    for (int first = 0; first < members->all && members->size > 1 && bytes > 0; first += members->size)
        *together &= members_measure(exchanges, members, first, collective, bytes).alike;
}

/* The same of all exchanges of a bucket, and of its weights where these are gathered bucket by bucket. */
static void bucket_together(struct exchanges *exchanges, int stage, const struct bucket *bucket, bool *together)
{
    const struct scenario *scenario = exchanges->scenario;
    const struct recipe *recipe = &scenario->recipe;
    enum group_kind kind = scenario->groups.sums[bucket->class], kinds[LEGS_MAX] = {kind, GROUP_DATA};
    double share = bucket->sum.legs[0].bytes / stage_recipe(exchanges, stage)->divided[HELD_STATES][bucket->class];

    for (int i = 0; i < LEGS_MAX; i++) {
        const struct leg *leg = &bucket->sum.legs[i];

        end_together(exchanges, kinds[i], stage, scenario_all_reduce(scenario), leg->plain, together);
        end_together(exchanges, kinds[i], stage, leg->collective, leg->bytes, together);
    }
    if (recipe->gradients.across)
        end_together(exchanges, GROUP_SAME_SHARE, stage, recipe->gradients.across, share, together);
    if (recipe->weights.when == WEIGHTS_NEXT)
        end_together(exchanges, kind, stage, recipe->weights.collective, bucket->weights, together);
}

bool sums_together(struct exchanges *exchanges)
{
    const struct scenario *scenario = exchanges->scenario;
    bool together = true, updated = scenario->recipe.weights.when == WEIGHTS_UPDATED;

    for (int stage = 0; stage < plan_virtual_stages(exchanges->plan); stage++) {
        for (size_t b = 0; b < exchanges->buckets[stage].count; b++)
            bucket_together(exchanges, stage, &exchanges->buckets[stage].items[b], &together);
        for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT && updated && is_shared(exchanges, stage); class++)
            end_together(exchanges, scenario->groups.sums[class], stage, scenario->recipe.weights.collective,
                         buckets_weights(exchanges->workload, stage, class), &together);
    }
    return together;
}
