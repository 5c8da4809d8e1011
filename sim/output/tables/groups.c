/* groups.tsv: the groups that exchange something, as ranks of spans.tsv. */
#include "tables/tables_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/cells.h"
#include "base/decimal.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

/* Sums and gathers of weights are exchanges of all ranks that hold a virtual stage. Tokens, keys and values are
 * exchanged among the ranks in one place of their pipelines. */
static bool by_stage(enum group_kind kind)
{
    return kind >= GROUP_SAME_EXPERTS && kind <= GROUP_SAME_SHARE;
}

static int slots_of(const struct scenario *scenario, enum group_kind kind)
{
    if (kind == GROUP_PIPELINE || kind == GROUP_EMBEDDING)
        return 1;
    return by_stage(kind) ? plan_virtual_stages(&scenario->plan) : scenario->parallelism.pipeline;
}

/* The pipeline rank of a slot, the first one where the slot is for all. */
static int slot_rank(const struct scenario *scenario, enum group_kind kind, int slot)
{
    return by_stage(kind) ? plan_rank(&scenario->plan, 0, slot, 0, NULL) : slot;
}

/* The groups of the kind in a slot: of replicas, or a group for each replica. */
static int count_groups(const struct scenario *scenario, enum group_kind kind, int slot)
{
    int rank = slot_rank(scenario, kind, slot);
    const struct process_group *like = &scenario_groups(scenario, rank)->of[kind];

    return like->axis == AXIS_PIPELINE ? scenario_replicas(scenario) :
           like->axis == AXIS_REPLICA  ? scenario_rank_replicas(scenario, rank) / like->size
                                       : scenario_rank_replicas(scenario, rank);
}

static void add_rank(struct rank_group *group, int replica, int p, int pipeline)
{
    group->ranks[group->nranks++] = replica * pipeline + p;
}

/* The group of that number in a slot. */
static struct rank_group group_make(const struct scenario *scenario, enum group_kind kind, int slot, int number)
{
    int rank = slot_rank(scenario, kind, slot);
    const struct process_group *like = &scenario_groups(scenario, rank)->of[kind];
    const struct plan *plan = &scenario->plan;
    int pipeline = scenario->parallelism.pipeline, directions = plan_directions(plan);
    int holders = by_stage(kind) ? plan_holders(plan, slot) : 1;
    struct rank_group group = {.kind = kind, .gpus = like->size * like->tensors * holders,
                               .alike = (like->axis == AXIS_PIPELINE ? scenario_most_tensor(scenario)
                                                                     : scenario_tensor(scenario, rank)) / like->tensors};

    group.ranks = xcalloc((size_t)(like->size * holders), sizeof *group.ranks);
    if (like->axis == AXIS_TENSOR) {
        group.alike = 1;
        add_rank(&group, number, slot, pipeline);
        return group;
    }
    for (int i = 0; i < like->size; i++)
        for (int h = 0; h < holders; h++)
            if (like->axis == AXIS_PIPELINE)
                add_rank(&group, layout_partners(number, scenario_replicas(scenario), scenario_rank_replicas(
                    scenario, like->first + i * like->stride)).first, like->first + i * like->stride, pipeline);
            else if (!by_stage(kind))
                add_rank(&group, group_index(like, number, i), slot, pipeline);
            else
                add_rank(&group, group_index(like, number, i),
                         plan_rank(plan, h % directions, slot, h / directions, NULL), pipeline);
    return group;
}

/* The slot of an earlier virtual stage that the same ranks hold; else the slot itself. */
static int same_ranks(const struct rank_groups *groups, enum group_kind kind, int slot)
{
    int numbers = groups->numbers[kind];
    const struct rank_group *own = &groups->list.items[groups->ids[kind][slot * numbers]];

    for (int s = 0; s < slot; s++) {
        const struct rank_group *other = &groups->list.items[groups->ids[kind][s * numbers]];

        if (other->nranks == own->nranks &&
            !memcmp(other->ranks, own->ranks, (size_t)own->nranks * sizeof *own->ranks))
            return s;
    }
    return slot;
}

static void add_kind(struct rank_groups *groups, const struct scenario *scenario, enum group_kind kind)
{
    int slots = slots_of(scenario, kind), numbers = 0, *ids;

    for (int slot = 0; slot < slots; slot++) {
        int count = count_groups(scenario, kind, slot);

        numbers = count > numbers ? count : numbers;
    }
    ids = xcalloc((size_t)slots * (size_t)numbers, sizeof *ids);
    groups->ids[kind] = ids;
    groups->numbers[kind] = numbers;
    for (int slot = 0; slot < slots; slot++) {
        for (int number = 0; number < count_groups(scenario, kind, slot); number++) {
            ids[slot * numbers + number] = (int)groups->list.count;
            *GROW(&groups->list) = group_make(scenario, kind, slot, number);
            int same = number == 0 && by_stage(kind) ? same_ranks(groups, kind, slot) : slot;

            if (same == slot)
                continue;
            free(groups->list.items[--groups->list.count].ranks);
            memcpy(ids + slot * numbers, ids + same * numbers, (size_t)numbers * sizeof *ids);
            break;
        }
    }
}

struct rank_groups rank_groups_of(const struct scenario *scenario)
{
    struct rank_groups groups = {0};

    for (enum group_kind kind = 0; kind < GROUP_KIND_COUNT; kind++) {
        const struct process_group *like = &scenario->groups.of[kind];
        bool holders = false;

        for (int stage = 0; by_stage(kind) && stage < plan_virtual_stages(&scenario->plan); stage++)
            holders |= plan_holders(&scenario->plan, stage) > 1;
        if (like->exchanges && (group_members(like) > 1 || holders))
            add_kind(&groups, scenario, kind);
    }
    return groups;
}

void rank_groups_release(struct rank_groups *groups)
{
    for (size_t i = 0; i < groups->list.count; i++)
        free(groups->list.items[i].ranks);
    for (enum group_kind kind = 0; kind < GROUP_KIND_COUNT; kind++)
        free(groups->ids[kind]);
    free(groups->list.items);
}

int rank_group_find(const struct rank_groups *groups, const struct scenario *scenario, enum group_kind kind, int rank,
                    int stage)
{
    int pipeline = scenario->parallelism.pipeline, replica = rank / pipeline;
    const struct process_group *like = &scenario_groups(scenario, rank % pipeline)->of[kind];
    int slot = slots_of(scenario, kind) == 1 ? 0 : by_stage(kind) ? stage : rank % pipeline;

    if (!groups->ids[kind] || slot < 0)
        return -1;
    return groups->ids[kind][slot * groups->numbers[kind] +
                             (like->axis == AXIS_REPLICA ? group_of(like, replica) : replica)];
}

void groups_write(const struct run *run, FILE *out)
{
    const struct scenario *scenario = run->workload->scenario;
    struct rank_groups groups = rank_groups_of(scenario);
    struct cells cells = {.out = out};

    fputs("group\tkind\tgpus\talike\tranks\n", out);
    for (size_t i = 0; i < groups.list.count; i++) {
        const struct rank_group *group = &groups.list.items[i];

        cells_integer(&cells, (long long)i);
        cells_text(&cells, scenario->groups.of[group->kind].name);
        cells_integer(&cells, group->gpus);
        cells_integer(&cells, group->alike);
        cells_text(&cells, "");
        for (int k = 0; k < group->nranks; k++) {
            char text[DECIMAL_SIZE + 1] = ",", *end = decimal_integer(group->ranks[k], text + (k > 0));

            cells_more(&cells, text, (size_t)(end - text));
        }
        cells_end_line(&cells);
    }
    cells_flush(&cells);
    rank_groups_release(&groups);
}
