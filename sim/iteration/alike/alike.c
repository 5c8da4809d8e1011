#include "alike/alike_internal.h"

#include <string.h>

#include "base/base.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

const char *const alike_way_names[] = {
    [ALIKE_FLOWS] = "flows", [ALIKE_REPLICAS] = "replicas", [ALIKE_MEASURED] = "collectives", [ALIKE_NODES] = "nodes",
    [ALIKE_CHANNELS] = "channels", [ALIKE_MICRO_BATCHES] = "micro_batches", [ALIKE_WAY_COUNT] = NULL,
};

/* Whether sums over replicas may meet anything but each other on shared links. If not, they take, measured, as long as
 * their messages. */
static uint32_t sums_disturbed(const struct scenario *scenario, unsigned uneven)
{
    return (scenario->recipe.weights.when == WEIGHTS_FORWARD ? WHY_ROOTED : 0) | sums_meet_others(scenario) |
           sums_overlap(scenario) | members_uneven(uneven & (UNEVEN_GPUS | UNEVEN_SAMPLES | UNEVEN_KINDS));
}

/* Whether a pipeline's sums and gathers have their links for themselves: every GPU has its own, and a rank begins with
 * them once, when it has computed everything, and so received everything, and when all that it sends to other stages
 * has arrived. One rank of a replica holds a stage, no copy of tied weights is summed besides, and there is one stream.
 * `differ`: of replicas. */
static bool pipeline_drained(const struct scenario *scenario, const struct alike *alike, uint32_t differ)
{
    const struct recipe *recipe = &scenario->recipe;

    return alike->private_links && !differ && !sums_overlap(scenario) &&
           recipe->gradients.flush && !recipe->gradients.across &&
           recipe->weights.when != WEIGHTS_FORWARD && recipe->weights.when != WEIGHTS_NEXT &&
           !scenario->parallelism.overlap_p2p && scenario->parallelism.local_steps == 1 &&
           plan_most_holders(&scenario->plan) == 1 && !scenario->groups.of[GROUP_EMBEDDING].exchanges;
}

/* Chooses messages or measured durations, and whether one replica stands for all: as the scenario says, else by the
 * number of operations. Durations are never chosen if all-reduces of different stages would meet on the same links, nor
 * if members of a sum end it at different times because a link is slower. Few messages give way to durations where all
 * members of all sums begin each sum together, if they ended the one before together: then durations give the same
 * times of all ranks. All replicas are there to be seen if few enough. */
static void choose_replicas(const struct scenario *scenario, struct alike *alike)
{
    enum { FEW_WORKS = 200000, FEW_MESSAGES = 1000000, FEW_SEEN = 1000 };    /* some seconds; some 0.1 ms */
    const struct recipe *recipe = &scenario->recipe;
    double works = alike->works * alike->replicas;
    bool automatic = scenario->simulation.collectives == COLLECTIVES_AUTO;
    bool few = works <= FEW_WORKS && alike->messages <= FEW_MESSAGES;
    uint32_t uneven = members_uneven(alike->uneven), disturbed = sums_disturbed(scenario, alike->uneven);
    uint32_t differ = uneven | replicas_differ(scenario) | (recipe->rooted ? WHY_ROOTED : 0), blind = 0;

    alike->exact = automatic && few && (!disturbed || pipeline_drained(scenario, alike, differ)) && !uneven &&
                   recipe->gradients.unit != SUM_LAYERS && !scenario_schedule(scenario)->asynchronous;
    if (scenario->simulation.collectives == COLLECTIVES_MESSAGES)
        blind = WHY_MESSAGES;
    else if (automatic && few && !alike->exact)
        blind = WHY_FEW;
    else if (automatic && !few)
        blind = (uneven & (WHY_SLOW_LINKS | WHY_KINDS)) | (disturbed && !alike->private_links ?
                                             disturbed | links_shared(&scenario->cluster) : 0);
    if (recipe->gradients.unit == SUM_LAYERS)
        blind = 0;
    if (scenario_replicas(scenario) * plan_most_holders(&scenario->plan) == 1)
        return;
    alike->measured = !blind;
    alike->reasons[ALIKE_MEASURED] = blind;
    differ |= blind | (scenario->simulation.fold == FOLD_OFF ? WHY_FOLD_OFF : 0) |
              (alike->exact && works <= FEW_SEEN ? WHY_SMALL : 0);
    alike->folded = !differ;
    if (alike->folded)
        alike->replicas = 1;
    else if (alike->replicas > 1)
        alike->reasons[ALIKE_REPLICAS] = differ;
}

/* Whether fewer micro-batches may tell less: something is random, decided at run time or without end. */
static uint32_t periods_differ(const struct scenario *scenario)
{
    const struct schedule *schedule = scenario_schedule(scenario);

    if (scenario->plan.micro_batches == 1)
        return 0;
    return (scenario->simulation.jitter == 0 ? 0 : WHY_JITTER) |
           (scenario->parallelism.local_steps == 1 ? 0 : WHY_LOCAL_STEPS) |
           (schedule->asynchronous || scenario->plan.batches > 1 || plan_slices(&scenario->plan) > 1 ||
            plan_opportunistic(schedule, &scenario->plan) ? WHY_SCHEDULE : 0);
}

void alike_make(const struct scenario *scenario, const struct stage *stages, struct alike *alike)
{
    unsigned uneven = scenario->cluster.ideal ? scenario->uneven & ~(unsigned)UNEVEN_LINKS : scenario->uneven;
    uint32_t flows = flows_differ(scenario, uneven);

    *alike = (struct alike){
        .flows = flows ? scenario_most_tensor(scenario) : 1, .replicas = scenario_replicas(scenario),
        .micro_batches = scenario->plan.micro_batches, .private_links = !links_shared(&scenario->cluster),
        .uneven = uneven,
        .reasons = {[ALIKE_FLOWS] = flows, [ALIKE_MICRO_BATCHES] = periods_differ(scenario)},
        .works = count_works(scenario, stages),
    };
    alike->messages = count_messages(scenario, stages, alike->flows);
    choose_replicas(scenario, alike);
}

void alike_part(struct alike *alike, const struct scenario *scenario)
{
    alike->exact = alike->measured = alike->folded = false;
    alike->replicas = scenario_replicas(scenario);
    alike->reasons[ALIKE_MEASURED] = WHY_APART;
    if (alike->replicas > 1)
        alike->reasons[ALIKE_REPLICAS] = WHY_APART | (scenario->simulation.fold == FOLD_OFF ? WHY_FOLD_OFF : 0);
    alike->reasons[ALIKE_NODES] = alike->reasons[ALIKE_CHANNELS] = 0;
    memset(alike->groups, 0, sizeof alike->groups);
}

void alike_look_at_one(struct alike *alike)
{
    alike->replicas = 1;
    alike->measured = alike->folded = false;
}

/* Notes how much of a collective was simulated. It counts if it has more than `least` nodes or channels. */
static void note(struct stood *known, struct extent extent, int least, uint32_t *reasons)
{
    if (extent.all <= least || (known->all && (double)known->simulated / known->all >=
                                              (double)extent.simulated / extent.all))
        return;
    *known = (struct stood){.simulated = extent.simulated, .all = extent.all};
    if (extent.why)
        known->reasons = (uint32_t)WHY_FOLD_FIRST << (extent.why - 1);
    *reasons |= known->reasons;
}

void alike_note(struct alike *alike, enum group_kind kind, const struct measured *measured)
{
    note(&alike->groups[kind].nodes, measured->of_nodes, 2, &alike->reasons[ALIKE_NODES]);
    note(&alike->groups[kind].channels, measured->of_channels, 1, &alike->reasons[ALIKE_CHANNELS]);
}

struct stood alike_stood(const struct alike *alike, const struct scenario *scenario, enum alike_way way)
{
    uint32_t reasons = alike->reasons[way];

    if (way == ALIKE_FLOWS)
        return (struct stood){alike->flows, scenario_most_tensor(scenario), reasons};
    if (way == ALIKE_REPLICAS)
        return (struct stood){alike->replicas, scenario_replicas(scenario), reasons};
    BUG_IF(way != ALIKE_MICRO_BATCHES);
    return (struct stood){alike->micro_batches, scenario->plan.micro_batches, reasons};
}
