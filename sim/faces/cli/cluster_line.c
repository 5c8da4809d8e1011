#include "cli/cluster_line.h"

#include <stdlib.h>

#include "base/text.h"
#include "hardware/cluster.h"
#include "hardware/gpu.h"
#include "layout/layout.h"
#include "report/caveats.h"
#include "scenario/scenario.h"

/* `parts`: where the idle GPUs are; NULL: not known, or nodes are equal. */
static void print_idle(const struct scenario *scenario, const char *parts, FILE *out)
{
    int all = scenario_paid_gpus(scenario), idle = all - scenario_gpus(scenario);

    if (idle)
        fprintf(out, "; %d of the %d GPUs %s idle%s%s%s", idle, all, idle == 1 ? "is" : "are", parts ? " (" : "",
                parts ? parts : "", parts ? ")" : "");
}

/* "2 nodes of 8 NVIDIA A100-SXM4-80GB (old)", of each part, what each changes and what the job leaves idle. */
static void print_parts(const struct scenario *scenario, FILE *out)
{
    const struct cluster *cluster = &scenario->cluster;
    struct arena arena = {0};
    const char *differs = cluster_changes_text(&arena, cluster);

    for (int i = 0; i < cluster_given_parts(cluster); i++) {
        struct given_part part = cluster_given_part(cluster, i);
        int gpu = cluster_node_gpu(cluster, part.first, 0);
        const struct gpu_spec *spec = cluster_gpu_spec(cluster, gpu);
        const char *changes = spec ? gpu_changes(&arena, spec) : "";

        fprintf(out, "%s%d node%s of %d ", i ? ", " : "", part.nodes, part.nodes == 1 ? "" : "s",
                cluster_node_gpus(cluster, part.first));
        if (cluster_gpu_name(cluster, gpu))
            text_write(TEXT_LINE, cluster_sheet(cluster, gpu)->title, out);
        else
            fputs(cluster_node_gpus(cluster, part.first) == 1 ? "GPU" : "GPUs", out);
        if (*changes)
            fprintf(out, " with %s", changes);
        fprintf(out, " (%s", part.name);
        if (part.slower > 1)
            fprintf(out, ", %.4g times slower", part.slower);
        fputc(')', out);
    }
    print_idle(scenario, idle_text(&arena, scenario), out);
    if (cluster->ideal)
        fputs("; a network that takes no time", out);
    if (*differs) {
        fputs("; ", out);
        text_write(TEXT_LINE, differs, out);
    }
    arena_release(&arena);
}

static void print_cluster(const struct scenario *scenario, FILE *out)
{
    const struct cluster *cluster = &scenario->cluster;
    int taken = layout_node_seats(&scenario->layout, 0);
    struct arena arena = {0};
    const char *changes = cluster_gpu_spec(cluster, 0) ? gpu_changes(&arena, cluster_gpu_spec(cluster, 0)) : "";
    const char *differs = cluster_changes_text(&arena, cluster);

    if (cluster_given_parts(cluster)) {
        print_parts(scenario, out);
        arena_release(&arena);
        return;
    }
    if (cluster->ideal)
        fputs(cluster_gpu_name(cluster, 0) ? "GPUs on a network that takes no time, each "
                                           : "a network that takes no time", out);
    else
        fprintf(out, "%d node%s of %d ", cluster->nodes, cluster->nodes == 1 ? "" : "s", cluster_node_gpus(cluster, 0));
    if (cluster_gpu_name(cluster, 0))
        text_write(TEXT_LINE, cluster_sheet(cluster, 0)->title, out);
    else if (!cluster->ideal)
        fputs(cluster_node_gpus(cluster, 0) == 1 ? "GPU" : "GPUs", out);
    if (*changes)
        fprintf(out, " with %s", changes);
    if (!cluster->ideal && taken < cluster_node_gpus(cluster, 0) && scenario_gpus(scenario) > taken)
        fprintf(out, ", %d of each used", taken);
    print_idle(scenario, NULL, out);
    if (cluster->title) {
        fputs("; ", out);
        text_write(TEXT_LINE, cluster->title, out);
    }
    if (*differs) {
        fputs(cluster->title ? ", but " : "; ", out);
        text_write(TEXT_LINE, differs, out);
    }
    arena_release(&arena);
}

const char *cluster_line(struct arena *arena, const struct scenario *scenario)
{
    char *text = NULL;
    size_t size;
    FILE *out = text_open(&text, &size);
    const char *line;

    print_cluster(scenario, out);
    text_close(out, &text);
    line = arena_strdup(arena, text);
    free(text);
    return line;
}
