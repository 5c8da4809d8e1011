/* Which GPUs form which group, as text. */
#include "report/figure.h"

#include <stdlib.h>

/* The GPUs of replicas, `count` of them from `first` on and `step` apart. */
static void print_replicas(const struct scenario *scenario, int t, int p, int first, int count, int step, FILE *out)
{
    for (int i = 0; i < count; i++)
        fprintf(out, "%s%d", i ? " " : "", scenario_gpu(scenario, t, first + i * step, p));
    fputc('\n', out);
}

/* Groups of replicas on each stage and tensor index: `count` of them `step` apart. */
static void print_kind(const struct scenario *scenario, const char *kind, int count, int step, FILE *out)
{
    const struct strategy_spec *spec = &scenario->strategy;
    int replicas = scenario_replicas(scenario), groups = replicas / count;

    fprintf(out, "%s groups (%d of %d GPUs)\n", kind, groups * spec->pipeline * spec->tensor, count);
    for (int p = 0; p < spec->pipeline; p++)
        for (int t = 0; t < spec->tensor; t++)
            for (int g = 0; g < groups; g++) {
                fprintf(out, "  stage %d tensor %d", p, t);
                if (groups > 1)
                    fprintf(out, " group %d", g);
                fputs(": ", out);
                print_replicas(scenario, t, p, g / step * step * count + g % step, count, step, out);
            }
}

static int by_gpu(const void *a, const void *b)
{
    return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b;
}

/* Replicas hold the same weights; with context parallelism several of them share samples. */
static void print_replica_groups(const struct scenario *scenario, FILE *out)
{
    const struct strategy_spec *spec = &scenario->strategy;
    int replicas = scenario_replicas(scenario);

    if (spec->context > 1)
        print_kind(scenario, "context", spec->context, 1, out);
    if (spec->expert > 1) {
        print_kind(scenario, "expert", spec->expert, 1, out);
        print_kind(scenario, "same-experts", replicas / spec->expert, spec->expert, out);
    }
    print_kind(scenario, "data", replicas, 1, out);
    if (scenario_hybrid(scenario)) {
        print_kind(scenario, "shard", spec->shard, 1, out);
        print_kind(scenario, "same-share", replicas / spec->shard, spec->shard, out);
    }
}

static void print_places(const struct scenario *scenario, FILE *out)
{
    const struct strategy_spec *spec = &scenario->strategy;
    int gpus = scenario_gpus(scenario), replicas = scenario_replicas(scenario);
    int (*place)[4] = xcalloc((size_t)gpus, sizeof *place);

    for (int i = 0; i < gpus; i++) {
        int t = i % spec->tensor, r = i / spec->tensor % replicas, p = i / spec->tensor / replicas;

        place[i][0] = scenario_gpu(scenario, t, r, p);
        place[i][1] = t;
        place[i][2] = r;
        place[i][3] = p;
    }
    qsort(place, (size_t)gpus, sizeof *place, by_gpu);
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
    fputs("\nranks that share a stage, and the GPUs that sum its gradients\n", out);
    for (int s = 0; s < plan_global_stages(plan); s++)
        for (int t = 0; t < scenario->strategy.tensor; t++) {
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
    const struct strategy_spec *spec = &scenario->strategy;
    int replicas = scenario_replicas(scenario);

    fprintf(out, "%d GPUs = %d-way tensor x ", scenario_gpus(scenario), spec->tensor);
    if (spec->context > 1)
        fprintf(out, "%d-way context x ", spec->context);
    fprintf(out, "%d-way pipeline x %d-way data, fastest first: ", spec->pipeline, spec->data);
    for (size_t i = 0; i < spec->placement.count; i++)
        fprintf(out, "%s%s", i ? ", " : "", dimension_names[((const int *)spec->placement.items)[i]]);
    fprintf(out, "\n\ntensor groups (%d of %d GPUs)\n", replicas * spec->pipeline, spec->tensor);
    for (int r = 0; r < replicas; r++)
        for (int p = 0; p < spec->pipeline; p++) {
            fprintf(out, "  stage %d replica %d: ", p, r);
            for (int t = 0; t < spec->tensor; t++)
                fprintf(out, "%s%d", t ? " " : "", scenario_gpu(scenario, t, r, p));
            fputc('\n', out);
        }
    fprintf(out, "pipeline groups (%d of %d GPUs)\n", replicas * spec->tensor, spec->pipeline);
    for (int r = 0; r < replicas; r++)
        for (int t = 0; t < spec->tensor; t++) {
            fprintf(out, "  replica %d tensor %d: ", r, t);
            for (int p = 0; p < spec->pipeline; p++)
                fprintf(out, "%s%d", p ? " " : "", scenario_gpu(scenario, t, r, p));
            fputc('\n', out);
        }
    print_replica_groups(scenario, out);
    print_places(scenario, out);
    print_sharers(scenario, out);
}
