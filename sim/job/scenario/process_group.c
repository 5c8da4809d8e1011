#include "scenario/process_group.h"

#include <stdlib.h>

#include "base/base.h"
#include "collective/collective.h"
#include "config/conf.h"
#include "hardware/cluster.h"
#include "layout/layout.h"
#include "scenario/scenario_internal.h"
#include "schedule/schedule.h"

static int context_node(const struct scenario *scenario, int member)
{
    return cluster_node_of(&scenario->cluster, scenario_gpu(scenario, 0, member, 0));
}

/* Where the degree of a hybrid context group is left out, its GPUs on the first node exchange heads. */
void ulysses_resolve(struct scenario *scenario)
{
    struct parallelism *spec = &scenario->parallelism;
    int node = context_node(scenario, 0);

    if (spec->context_attention != CONTEXT_HYBRID || spec->ulysses)
        return;
    while (spec->ulysses < spec->context && context_node(scenario, spec->ulysses) == node)
        spec->ulysses++;
}

/* A tied model's embedding and output layer stand on different ranks. Two directions hold both copies on either rank,
 * and sum them there. Asynchronous schedules do not sum them: waiting for the other end of the pipeline at every update
 * would be a flush. */
static struct process_group embedding_group(const struct scenario *scenario)
{
    const struct plan *plan = &scenario->plan;
    const struct transformer *shape = scenario->model.transformer;
    int first = plan_rank(plan, 0, 0, 0, NULL), last = plan_rank(plan, 0, plan_virtual_stages(plan) - 1, 0, NULL);
    bool sums = shape && shape->tied && shape->head != HEAD_NONE && !scenario->memory.lora && first != last &&
                plan_directions(plan) == 1 && !scenario_schedule(scenario)->asynchronous;

    return (struct process_group){
        "embedding", AXIS_PIPELINE, sums ? 2 : 1, 1, sums ? last - first : 1, first, sums,
    };
}

void process_groups_make(struct scenario *scenario)
{
    const struct parallelism *spec = &scenario->parallelism;
    int replicas = scenario_replicas(scenario), shard = scenario_hybrid(scenario) ? spec->shard : 1;
    int tensors = spec->tensor / scenario_expert_tensor(spec), experts = spec->expert / tensors;
    bool hybrid = shard > 1, divided = spec->expert > 1, rings = spec->context_attention == CONTEXT_HYBRID;
    int heads = scenario_ulysses(spec);

    scenario->groups = (struct process_groups){
        .of = {
            [GROUP_TENSOR] = {"tensor", AXIS_TENSOR, spec->tensor, 1, 1, 0, true},
            [GROUP_PIPELINE] = {"pipeline", AXIS_PIPELINE, spec->pipeline, 1, 1, 0, true},
            [GROUP_CONTEXT] = {"context", AXIS_REPLICA, spec->context, 1, 1, 0, spec->context > 1 && !rings},
            [GROUP_HEADS] = {"heads", AXIS_REPLICA, heads, 1, 1, 0, rings && heads > 1},
            [GROUP_RING] = {"ring", AXIS_REPLICA, spec->context / heads, 1, heads, 0, rings && spec->context > heads},
            [GROUP_EXPERT] = {"expert", AXIS_REPLICA, experts, tensors, 1, 0, divided},
            [GROUP_SAME_EXPERTS] = {"same-experts", AXIS_REPLICA, divided ? replicas / experts : 1, 1, experts, 0,
                                    divided},
            [GROUP_DATA] = {"data", AXIS_REPLICA, replicas, 1, 1, 0, !hybrid},
            [GROUP_SHARD] = {"shard", AXIS_REPLICA, shard, 1, 1, 0, hybrid},
            [GROUP_SAME_SHARE] = {"same-share", AXIS_REPLICA, hybrid ? replicas / shard : 1, 1, shard, 0, hybrid},
            [GROUP_EMBEDDING] = embedding_group(scenario),
        },
        .holds = {[PARAMETERS_COMMON] = GROUP_DATA, [PARAMETERS_APART] = GROUP_SAME_EXPERTS},
        .sums = {[PARAMETERS_COMMON] = hybrid ? GROUP_SHARD : GROUP_DATA, [PARAMETERS_APART] = GROUP_SAME_EXPERTS},
    };
}

/* Whether GPUs that do the same for the same stage are on nodes of several kinds: GPUs of a tensor group, or of
 * replicas. Stages on kinds of their own do not need more than one replica. */
static bool mixes_kinds(const struct scenario *scenario)
{
    for (int p = 0; scenario->layout.mixed && p < scenario->parallelism.pipeline; p++) {
        int kind = scenario_seat(scenario, 0, 0, p).kind;

        for (int r = 0; r < scenario_rank_replicas(scenario, p); r++)
            for (int t = 0; t < scenario_tensor(scenario, p); t++)
                if (scenario_seat(scenario, t, r, p).kind != kind)
                    return true;
    }
    return false;
}

unsigned scenario_uneven(const struct scenario *scenario)
{
    const struct cluster *cluster = &scenario->cluster;
    int gpus = scenario_gpus(scenario);
    unsigned uneven = (scenario->simulation.jitter > 0 ? UNEVEN_WORKS : 0) | (scenario->batch.samples ? UNEVEN_SAMPLES : 0) |
                      (mixes_kinds(scenario) ? UNEVEN_KINDS : 0);
    bool network = cluster->nic_shares && !cluster->ideal && scenario->layout.spans;

    for (int i = 0; i < gpus && cluster->gpu_slower; i++)
        uneven |= cluster->gpu_slower[layout_nth_gpu(&scenario->layout, i)] > 1 ? UNEVEN_GPUS : 0;
    for (int i = 0; i < gpus && network; i++)
        uneven |= cluster_nic_share(cluster, layout_nth_gpu(&scenario->layout, i)) < 1 ? UNEVEN_LINKS : 0;
    return uneven;
}

double scenario_slower(const struct scenario *scenario, int replica, int p)
{
    double slowest = 1;

    for (int t = 0; t < scenario_tensor(scenario, p) && scenario->cluster.gpu_slower; t++) {
        double slower = scenario->cluster.gpu_slower[scenario_gpu(scenario, t, replica, p)];

        slowest = slower > slowest ? slower : slowest;
    }
    return slowest;
}

/* A member's GPU. Along a pipeline of ranks with unequal degrees there are as many groups as the largest have GPUs: others
 * are in several, each for a part of its samples and tensors. */
static int place_gpu(const struct scenario *scenario, enum group_axis axis, const int *place)
{
    int t = place[AXIS_TENSOR], replica = place[AXIS_REPLICA], q = place[AXIS_PIPELINE];

    if (axis == AXIS_PIPELINE && scenario->views) {
        t = t * scenario_tensor(scenario, q) / scenario->parallelism.tensor;
        replica = replica * scenario_rank_replicas(scenario, q) / scenario_replicas(scenario);
    }
    return scenario_gpu(scenario, t, replica, q);
}

void group_gpus(const struct scenario *scenario, const struct process_group *group, int t, int replica, int p,
                int *gpus)
{
    int place[AXIS_COUNT] = {[AXIS_TENSOR] = t, [AXIS_REPLICA] = replica, [AXIS_PIPELINE] = p};
    int number = group->axis == AXIS_PIPELINE ? 0 : group_of(group, place[group->axis]);

    for (int i = 0; i < group_members(group); i++) {
        place[group->axis] = group_index(group, number, i / group->tensors);
        if (group->tensors > 1)
            place[AXIS_TENSOR] = i % group->tensors;
        gpus[i] = place_gpu(scenario, group->axis, place);
    }
}

/* The members of the first group of a pipeline rank. */
static int nodes_of(const struct scenario *scenario, enum group_kind kind, int p)
{
    const struct process_group *group = &scenario_groups(scenario, p)->of[kind];
    const struct cluster *cluster = &scenario->cluster;
    int members = group_members(group), nodes = 1;
    int *gpus = xcalloc((size_t)members, sizeof *gpus);

    group_gpus(scenario, group, 0, 0, p, gpus);
    for (int i = 1; i < members; i++)
        nodes += cluster_node_of(cluster, gpus[i]) != cluster_node_of(cluster, gpus[i - 1]);
    free(gpus);
    return nodes;
}

int group_nodes(const struct scenario *scenario, enum group_kind kind)
{
    int most = nodes_of(scenario, kind, 0);

    for (int p = 1; scenario->views && p < scenario->parallelism.pipeline; p++) {
        int nodes = nodes_of(scenario, kind, p);

        most = nodes > most ? nodes : most;
    }
    return most;
}

int group_count(const struct scenario *scenario, const struct process_group *group)
{
    const struct parallelism *spec = &scenario->parallelism;
    const int lengths[AXIS_COUNT] = {
        [AXIS_TENSOR] = spec->tensor, [AXIS_REPLICA] = scenario_replicas(scenario), [AXIS_PIPELINE] = group->size,
    };

    return lengths[group->axis] / group->size;
}

/* Whether the all-reduce runs in all groups of one kind and pipeline rank, and all have equally many dimensions, since
 * they have equally many lanes. */
static bool all_reduces(const struct scenario *scenario, const struct collective *collective, enum group_kind kind,
                        int p)
{
    const struct process_group *group = &scenario_groups(scenario, p)->of[kind];
    int members = group_members(group), tensor = scenario_tensor(scenario, p), dims = -1;
    int *gpus = xcalloc((size_t)members, sizeof *gpus);
    bool run = true;

    for (int i = 0; i < scenario_rank_replicas(scenario, p) * tensor && run && members > 1; i++) {
        int replica = i / tensor, t = i % tensor, index = group->axis == AXIS_TENSOR ? t : replica;
        struct placed_group placed;

        if (index != group_index(group, group_of(group, index), 0))
            continue;                                /* not its group's first member */
        group_gpus(scenario, group, t, replica, p, gpus);
        placed = placed_group_of(&scenario->cluster, gpus, members);
        dims = dims < 0 ? placed.torus.dims : dims;
        run = collective_runs_in(collective, &placed) && placed.torus.dims == dims;
    }
    free(gpus);
    return run;
}

int process_groups_check(const struct scenario *scenario, struct error *err)
{
    const struct collective *collective = scenario_all_reduce(scenario);
    const struct process_groups *groups = &scenario->groups;
    const enum group_kind kinds[] = {GROUP_TENSOR, groups->sums[PARAMETERS_COMMON], groups->sums[PARAMETERS_APART],
                                     GROUP_SAME_SHARE};

    for (int s = 0; s < plan_virtual_stages(&scenario->plan) && collective->torus; s++)
        if (plan_holders(&scenario->plan, s) > 1)
            return error_clash(err, STRATEGY_LOC(scenario, "all_reduce"), "strategy: all_reduce: %s does not go with "
                               "pipeline ranks that hold the same stage; expected 'ring', or another schedule",
                               collective->name);
    for (int p = 0; p < scenario->plan.stages && collective->torus; p++)
        for (size_t k = scenario->parallelism.sequence_parallel ? 1 : 0; k < COUNT(kinds); k++)
            if (!all_reduces(scenario, collective, kinds[k], p))
                return error_clash(err, STRATEGY_LOC(scenario, "all_reduce"), "strategy: all_reduce: %s does not run "
                                   "in the %s groups of pipeline rank %d; it needs %s", collective->name,
                                   groups->of[kinds[k]].name, p, collective_needs(collective));
    return 0;
}

double recipe_share(const struct recipe *recipe, enum held held, struct by_class amount)
{
    double share = 0;

    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++)
        share += amount.of[class] / recipe->divided[held][class];
    return share;
}

double recipe_exchanged(const struct scenario *scenario, struct by_class amount)
{
    const struct process_groups *groups = &scenario->groups;
    double exchanged = 0;

    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++)
        exchanged += groups->of[groups->holds[class]].size > 1 ? amount.of[class] : 0;
    return exchanged;
}
