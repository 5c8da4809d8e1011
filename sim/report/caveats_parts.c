/* Caveats of clusters whose nodes are of several kinds. */
#include "report/caveats.h"

const char *caveat_order(struct arena *arena, const struct scenario *scenario)
{
    const struct cluster *cluster = &scenario->cluster;
    const char *order = "";

    if (scenario->parallelism.stages_on != STAGES_ON_AUTO || !scenario->layout.gpus)
        return NULL;
    for (int p = 0; p < scenario->parallelism.pipeline; p++) {
        int node = scenario_seat(scenario, 0, 0, p).node, i = 0;

        while (i + 1 < cluster_said_parts(cluster) && cluster_said_part(cluster, i + 1).first <= node)
            i++;
        order = arena_printf(arena, "%s%s%s", order, p ? ", " : "", cluster_said_part(cluster, i).name);
    }
    return arena_printf(arena, "stages_on: auto puts the pipeline ranks on %s", order);
}

/* A tensor group waits for its slowest GPU in every layer. */
const char *caveat_mixed_groups(struct arena *arena, const struct scenario *scenario)
{
    const char *kinds = scenario_gpu_names(arena, scenario, -1);

    for (int r = 0; scenario->layout.mixed && r < scenario_replicas(scenario); r++)
        for (int p = 0; p < scenario->parallelism.pipeline; p++)
            for (int t = 1; t < scenario->parallelism.tensor; t++)
                if (scenario_seat(scenario, t, r, p).kind != scenario_seat(scenario, 0, r, p).kind)
                    return arena_printf(arena, "tensor groups (the first: replica %d, pipeline rank %d) are on nodes of "
                                        "several kinds%s%s%s: each work takes as long as on the slowest of their GPUs", r,
                                        p, kinds ? " (" : "", kinds ? kinds : "", kinds ? ")" : "");
    return NULL;
}
