/* Which GPUs form which group, as text. */
#include "figure.h"

#include <stdlib.h>

#include "sharers.h"

static void print_group(const struct scenario *scenario, enum dimension dimension, int a, int b, FILE *out)
{
    const struct strategy_spec *spec = &scenario->strategy;
    int n = dimension == DIMENSION_TENSOR ? spec->tensor : dimension == DIMENSION_DATA ? spec->data : spec->pipeline;

    for (int i = 0; i < n; i++) {
        int gpu = dimension == DIMENSION_TENSOR ? scenario_gpu(scenario, i, a, b)
                : dimension == DIMENSION_DATA   ? scenario_gpu(scenario, a, i, b)
                                                : scenario_gpu(scenario, a, b, i);
        fprintf(out, "%s%d", i ? " " : "", gpu);
    }
    fputc('\n', out);
}

/* Groups of replicas: `count` of them `step` apart. */
static void print_kind(const struct scenario *scenario, const char *kind, int count, int step, FILE *out)
{
    const struct strategy_spec *spec = &scenario->strategy;
    int groups = spec->data / count, all = groups * spec->pipeline * spec->tensor;

    fprintf(out, "%s groups (%d of %d GPUs)\n", kind, all, count);
    for (int i = 0; i < all; i++) {
        int g = i % groups, t = i / groups % spec->tensor, p = i / groups / spec->tensor;
        fprintf(out, "  stage %d tensor %d group %d:", p, t, g);
        for (int k = 0; k < count; k++)
            fprintf(out, " %d%s", scenario_gpu(scenario, t, g / step * step * count + g % step + k * step, p),
                    k + 1 < count ? "" : "\n");
    }
}

static int by_gpu(const void *a, const void *b)
{
    return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b;
}

void groups_print(const struct scenario *scenario, FILE *out)
{
    const struct strategy_spec *spec = &scenario->strategy;
    int gpus = scenario_gpus(scenario), (*place)[4] = xcalloc((size_t)gpus, sizeof *place);

    fprintf(out, "%d GPUs = %d-way tensor x %d-way pipeline x %d-way data, fastest first: ", gpus, spec->tensor,
            spec->pipeline, spec->data);
    for (int i = 0; i < DIMENSION_COUNT; i++)
        fprintf(out, "%s%s", i ? ", " : "", dimension_names[((const int *)spec->placement.items)[i]]);
    fprintf(out, "\n\ntensor groups (%d of %d GPUs)\n", spec->data * spec->pipeline, spec->tensor);
    for (int d = 0; d < spec->data; d++)
        for (int p = 0; p < spec->pipeline; p++) {
            fprintf(out, "  stage %d replica %d: ", p, d);
            print_group(scenario, DIMENSION_TENSOR, d, p, out);
        }
    fprintf(out, "pipeline groups (%d of %d GPUs)\n", spec->data * spec->tensor, spec->pipeline);
    for (int d = 0; d < spec->data; d++)
        for (int t = 0; t < spec->tensor; t++) {
            fprintf(out, "  replica %d tensor %d: ", d, t);
            print_group(scenario, DIMENSION_PIPELINE, t, d, out);
        }
    fprintf(out, "data groups (%d of %d GPUs)\n", spec->pipeline * spec->tensor, spec->data);
    for (int p = 0; p < spec->pipeline; p++)
        for (int t = 0; t < spec->tensor; t++) {
            fprintf(out, "  stage %d tensor %d: ", p, t);
            print_group(scenario, DIMENSION_DATA, t, p, out);
        }
    if (scenario_hybrid(scenario)) {
        print_kind(scenario, "shard", spec->shard, 1, out);
        print_kind(scenario, "same-share", spec->data / spec->shard, spec->shard, out);
    }
    for (int i = 0; i < gpus; i++) {
        int t = i % spec->tensor, d = i / spec->tensor % spec->data, p = i / spec->tensor / spec->data;

        place[i][0] = scenario_gpu(scenario, t, d, p);
        place[i][1] = t;
        place[i][2] = d;
        place[i][3] = p;
    }
    qsort(place, (size_t)gpus, sizeof *place, by_gpu);
    fputs("\ngpu\tnode\tstage\treplica\ttensor\n", out);
    for (int i = 0; i < gpus; i++)
        fprintf(out, "%d\t%d\t%d\t%d\t%d\n", place[i][0],
                scenario->cluster.ideal ? 0 : cluster_node_of(&scenario->cluster, place[i][0]), place[i][3],
                place[i][2], place[i][1]);
    free(place);
    sharers_print(scenario, out);
}
