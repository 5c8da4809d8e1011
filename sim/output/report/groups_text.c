/* Which GPUs form which group, as text. */
#include "report/figure.h"

#include <stdlib.h>

#include "base/base.h"
#include "hardware/cluster.h"
#include "scenario/parallelism.h"
#include "scenario/process_group.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

/* The GPUs of one group. */
static void print_gpus(const struct scenario *scenario, const struct process_group *group, int t, int replica, int p,
                       FILE *out)
{
    int *gpus = xcalloc((size_t)group_members(group), sizeof *gpus);

    group_gpus(scenario, group, t, replica, p, gpus);
    for (int i = 0; i < group_members(group); i++)
        fprintf(out, "%s%d", i ? " " : "", gpus[i]);
    fputc('\n', out);
    free(gpus);
}

/* Groups of replicas, on each stage and, unless they have whole tensor groups, tensor index. */
static void print_replicas(const struct scenario *scenario, const struct process_group *group, FILE *out)
{
    enum group_kind kind = (enum group_kind)(group - scenario->groups.of);

    for (int p = 0; p < scenario->parallelism.pipeline; p++) {
        int groups = scenario_rank_replicas(scenario, p) / scenario_groups(scenario, p)->of[kind].size;

        group = &scenario_groups(scenario, p)->of[kind];
        for (int t = 0; t < scenario_tensor(scenario, p); t += group->tensors)
            for (int g = 0; g < groups; g++) {
                fprintf(out, "  stage %d", p);
                if (group->tensors == 1)
                    fprintf(out, " tensor %d", t);
                if (groups > 1)
                    fprintf(out, " group %d", g);
                fputs(": ", out);
                print_gpus(scenario, group, t, group_index(group, g, 0), p, out);
            }
    }
}

static void print_tensor(const struct scenario *scenario, const struct process_group *group, FILE *out)
{
    for (int r = 0; r < scenario_replicas(scenario); r++)
        for (int p = 0; p < scenario->parallelism.pipeline; p++) {
            if (r >= scenario_rank_replicas(scenario, p))
                continue;
            fprintf(out, "  stage %d replica %d: ", p, r);
            print_gpus(scenario, &scenario_groups(scenario, p)->of[group - scenario->groups.of], 0, r, p, out);
        }
}

static void print_pipeline(const struct scenario *scenario, const struct process_group *group, FILE *out)
{
    for (int r = 0; r < scenario_replicas(scenario); r++)
        for (int t = 0; t < scenario_most_tensor(scenario); t++) {
            fprintf(out, "  replica %d tensor %d: ", r, t);
            print_gpus(scenario, group, t, r, 0, out);
        }
}

/* How many groups of the kind there are, and of how many GPUs each. */
static void print_title(const struct scenario *scenario, enum group_kind kind, FILE *out)
{
    const struct process_group *group = &scenario->groups.of[kind];
    int count = scenario_replicas(scenario) * scenario_most_tensor(scenario), least = group_members(group), most = least;

    for (int p = 0; group->axis != AXIS_PIPELINE && p < scenario->parallelism.pipeline; p++) {
        const struct process_group *own = &scenario_groups(scenario, p)->of[kind];
        int members = group_members(own), replicas = scenario_rank_replicas(scenario, p);

        count = p == 0 ? 0 : count;
        count += group->axis == AXIS_TENSOR ? replicas : replicas / own->size * scenario_tensor(scenario, p) / own->tensors;
        least = members < least ? members : least;
        most = members > most ? members : most;
    }
    fprintf(out, "%s groups (%d of %d", group->name, count, least);
    if (most > least)
        fprintf(out, " to %d", most);
    fputs(" GPUs)\n", out);
}

/* The groups of each kind in turn, where there are any; the groups of all replicas are always listed. */
static void print_groups(const struct scenario *scenario, FILE *out)
{
    static void (*const prints[])(const struct scenario *, const struct process_group *, FILE *) = {
        [AXIS_TENSOR] = print_tensor, [AXIS_REPLICA] = print_replicas, [AXIS_PIPELINE] = print_pipeline,
    };

    for (enum group_kind kind = 0; kind < GROUP_KIND_COUNT; kind++) {
        const struct process_group *group = &scenario->groups.of[kind];

        if (!group->exchanges && kind != GROUP_DATA)
            continue;
        print_title(scenario, kind, out);
        prints[group->axis](scenario, group, out);
    }
}

static int by_gpu(const void *a, const void *b)
{
    return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b;
}

static void print_places(const struct scenario *scenario, FILE *out)
{
    const struct parallelism *spec = &scenario->parallelism;
    int gpus = scenario_gpus(scenario), replicas = scenario_replicas(scenario);
    int (*place)[4] = xcalloc((size_t)gpus, sizeof *place), count = 0;

    for (int i = 0; i < replicas * spec->pipeline; i++)
        for (int t = 0; t < scenario_tensor(scenario, i / replicas); t++) {
            int r = i % replicas, p = i / replicas;

            if (r >= scenario_rank_replicas(scenario, p))
                continue;
            place[count][0] = scenario_gpu(scenario, t, r, p);
            place[count][1] = t;
            place[count][2] = r;
            place[count++][3] = p;
        }
    array_sort(place, (size_t)gpus, sizeof *place, by_gpu);
    fputs("\ngpu\tnode\tstage\treplica\ttensor\n", out);
    for (int i = 0; i < gpus; i++)
        fprintf(out, "%d\t%d\t%d\t%d\t%d\n", place[i][0],
                scenario->cluster.ideal ? 0 : cluster_node_of(&scenario->cluster, place[i][0]), place[i][3],
                place[i][2], place[i][1]);
    free(place);
}

/* Which GPUs hold each stage, if any is shared. */
static void print_sharers(const struct scenario *scenario, FILE *out)
{
    const struct plan *plan = &scenario->plan;

    if (!plan_shares(plan))
        return;
    fputs("\nranks that share a stage, and the GPUs that all-reduce its gradients\n", out);
    for (int s = 0; s < plan_virtual_stages(plan); s++)
        for (int t = 0; t < scenario_most_tensor(scenario); t++) {
            int first = plan_rank(plan, 0, s, 0, NULL), sharers = plan_sharers(plan, s);

            fprintf(out, "  stage %d on rank%s %d", s, sharers > 1 ? "s" : "", first);
            if (sharers > 1)
                fprintf(out, " to %d", first + sharers - 1);
            fprintf(out, ", tensor %d:", t);
            for (int d = 0; d < scenario_replicas(scenario); d++)
                for (int i = 0; i < sharers; i++)
                    fprintf(out, " %d", scenario_gpu(scenario, t, d, first + i));
            fputc('\n', out);
        }
}

void groups_print(const struct scenario *scenario, FILE *out)
{
    const struct parallelism *spec = &scenario->parallelism;

    if (spec->ranks) {
        char degrees[512];

        fprintf(out, "%d GPUs = %s, fastest first: ", scenario_gpus(scenario),
                scenario_degrees(scenario, degrees, sizeof degrees));
    } else {
        fprintf(out, "%d GPUs = %d-way tensor x ", scenario_gpus(scenario), scenario_most_tensor(scenario));
        if (spec->context > 1)
            fprintf(out, "%d-way context x ", spec->context);
        fprintf(out, "%d-way pipeline x %d-way data, fastest first: ", spec->pipeline, spec->data);
    }
    for (size_t i = 0; i < spec->placement.count; i++)
        fprintf(out, "%s%s", i ? ", " : "", dimension_names[((const int *)spec->placement.items)[i]]);
    fputs("\n\n", out);
    print_groups(scenario, out);
    print_places(scenario, out);
    print_sharers(scenario, out);
}
