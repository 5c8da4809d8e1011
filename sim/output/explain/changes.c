#include "explain/changes.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "config/conf.h"
#include "config/field.h"
#include "hardware/cluster.h"
#include "hardware/gpu.h"
#include "run/values.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

static void add(struct changes *changes, const char *lines)
{
    BUG_IF(changes->count == COUNT(changes->items));
    if (*lines)
        changes->items[changes->count++] = lines;
}

/* A line that makes a mapping of a cluster that is a name, so that others can change its keys. */
static const char *named_cluster(struct arena *arena, const struct scenario *scenario)
{
    const struct node *node = node_get(scenario->node, "cluster");

    if (!node || node->kind != NODE_SCALAR || !scenario->cluster.platform)
        return "";
    return arena_printf(arena, "cluster={platform: %s}\n", scenario->cluster.platform);
}

static const char *twice(struct arena *arena, const char *lines, const char *path, double bandwidth)
{
    char text[48];

    if (!(bandwidth > 0))                    /* NaN: there is no such link */
        return lines;
    return arena_printf(arena, "%scluster.%s=%s\n", lines, path,
                        unit_format(UNIT_BANDWIDTH, 2 * bandwidth, text, sizeof text));
}

/* The links of nodes like that one, whose keys stand below the prefix: "parts.0." or "". */
static const char *twice_links(struct arena *arena, const struct cluster *cluster, const char *lines, const char *prefix,
                               int node)
{
    lines = twice(arena, lines, arena_printf(arena, "%sinside.bandwidth", prefix),
                  cluster_bandwidth(cluster, node, true));
    lines = twice(arena, lines, arena_printf(arena, "%snetwork.bandwidth", prefix),
                  cluster_bandwidth(cluster, node, false));
    return twice(arena, lines, arena_printf(arena, "%snetwork.rate", prefix), cluster_nic_limit(cluster, node));
}

void changes_of_links(struct changes *changes, const struct workload *workload)
{
    const struct scenario *scenario = workload->scenario;
    const struct cluster *cluster = &scenario->cluster;
    const char *lines = named_cluster(changes->arena, scenario);

    if (cluster_given_parts(cluster) && !node_at(scenario->node, "cluster.parts"))
        return;                              /* a file says them */
    for (int i = 0; i < cluster_given_parts(cluster); i++)
        lines = twice_links(changes->arena, cluster, lines, arena_printf(changes->arena, "parts.%d.", i),
                            cluster_given_part(cluster, i).first);
    add(changes, cluster_given_parts(cluster) ? lines : twice_links(changes->arena, cluster, lines, "", 0));
}

/* The nodes of the cluster from `first` on, on a network that takes no time. */
static const char *free_nodes(struct arena *arena, const struct cluster *cluster, int first, int nodes)
{
    const struct gpu_spec *spec = cluster_gpu_spec(cluster, cluster_node_gpu(cluster, first, 0));
    const char *gpu = spec ? node_flow(arena, field_dump(arena, &gpu_spec_table, spec)) : NULL;

    return arena_printf(arena, "platform: ideal, nodes: %d, gpus_per_node: %d%s%s", nodes,
                        cluster_node_gpus(cluster, first), gpu ? ", gpu: " : "", gpu ? gpu : "");
}

static const char *free_cluster(struct arena *arena, const struct cluster *cluster)
{
    const char *parts = "";

    if (!cluster_given_parts(cluster))
        return free_nodes(arena, cluster, 0, cluster->nodes);
    for (int i = 0; i < cluster_given_parts(cluster); i++) {
        struct given_part part = cluster_given_part(cluster, i);

        char slower[48];

        parts = arena_printf(arena, "%s%s{name: %s, slower: %s, %s}", parts, i ? ", " : "", part.name,
                             unit_format(UNIT_NUMBER, part.slower, slower, sizeof slower),
                             free_nodes(arena, cluster, part.first, part.nodes));
    }
    return arena_printf(arena, "parts: [%s]", parts);
}

/* Offloading needs the host; the ideal cluster has none. */
void changes_of_network(struct changes *changes, const struct workload *workload)
{
    const struct scenario *scenario = workload->scenario;

    if (!scenario_moves_activations(scenario) && !scenario_offloads(scenario, OFFLOAD_WEIGHTS) &&
        !scenario_offloads(scenario, OFFLOAD_OPTIMIZER))
        add(changes, arena_printf(changes->arena, "cluster={%s}", free_cluster(changes->arena, &scenario->cluster)));
}

/* Adds the values of the question that go with the rest of the scenario ("PATH=V1,V2", values.h), and that the framework's
 * release has, unless it cannot run the scenario as it is. `with`: a further line for a value, or ""; NULL: none has any. */
static void add_values(struct changes *changes, const struct workload *workload, const char *question,
                       const char *(*with)(struct arena *arena, const char *value))
{
    const struct scenario *scenario = workload->scenario;
    struct software_lack lack;
    struct arena arena = {.cache = scenario->arena.cache};
    bool foreign = scenario_in_framework(changes->arena, scenario, &lack) == SOFTWARE_LACKS;
    struct asked_values values;
    struct error ignored = {0};

    if (!values_ask(&arena, scenario->node, question, scenario->name, &values, &ignored))
        for (size_t i = 0; i < values.count; i++) {
            const struct asked_value *asked = &values.items[i];

            if (!asked->why && (foreign || !asked->foreign))
                add(changes, arena_printf(changes->arena, "%s=%s%s", values.path, asked->value,
                                          with ? with(changes->arena, asked->value) : ""));
        }
    error_pass_system(&ignored, changes->err);
    error_release(&ignored);
    arena_release(&arena);
}

/* The usual number of chunks, where a schedule goes with several. */
static const char *with_chunks(struct arena *arena, const char *name)
{
    for (size_t i = 0; schedule_at(i); i++)
        if (!strcmp(schedule_at(i)->name, name) && schedule_at(i)->usual_chunks)
            return arena_printf(arena, "\nstrategy.chunks=%d", schedule_at(i)->usual_chunks);
    return "";
}

void changes_of_schedule(struct changes *changes, const struct workload *workload)
{
    const char *question = "strategy.schedule=", *comma = "";

    if (workload->scenario->parallelism.schedule.csv)
        return;                              /* an order of one's own */
    for (size_t i = 0; schedule_at(i); i++)
        if (schedule_at(i)->alternative) {
            question = arena_printf(changes->arena, "%s%s%s", question, comma, schedule_at(i)->name);
            comma = ",";
        }
    add_values(changes, workload, question, with_chunks);
}

void changes_of_recomputation(struct changes *changes, const struct workload *workload)
{
    add_values(changes, workload, "memory.recompute=none,selective", NULL);
}

/* Each block goes to the stage that would be the shortest with it, counting the layers that stages have besides
 * blocks. */
void changes_of_split(struct changes *changes, const struct workload *workload)
{
    enum { STAGES_MAX = 256 };
    int nstages = plan_virtual_stages(&workload->plan), blocks = 0, given[STAGES_MAX] = {0};
    double others[STAGES_MAX], block = INFINITY;
    const char *split = "";

    for (int s = 0; s < nstages; s++)
        if (nstages > STAGES_MAX || workload->stages[s].layers == 0)
            return;
    if (cluster_kinds(&workload->scenario->cluster) > 1) {
        add(changes, "strategy.split=auto");         /* a block takes another time on each kind */
        return;
    }
    for (int s = 0; s < nstages; s++) {
        const struct work_times *work = ordinary_times(workload)[s].work;
        int layers = workload->stages[s].layers;

        others[s] = work[FORWARD].seconds + work[BACKWARD].seconds;
        block = fmin(block, others[s] / layers);     /* of the stage with the least time outside its blocks */
        blocks += layers;
    }
    for (int s = 0; s < nstages; s++)
        others[s] = fmax(0, others[s] - workload->stages[s].layers * block);
    for (int b = 0; b < blocks; b++) {
        int least = 0;

        for (int s = 1; s < nstages; s++)
            if (others[s] + given[s] * block < (others[least] + given[least] * block) * (1 - 1e-9))
                least = s;
        given[least]++;
    }
    for (int s = 0; s < nstages; s++)
        split = arena_printf(changes->arena, "%s%s%d", split, s ? ", " : "", given[s]);
    add(changes, arena_printf(changes->arena, "strategy.split=[%s]", split));
}

void changes_of_gpu(struct changes *changes, const struct workload *workload)
{
    char text[48];

    unit_format(UNIT_NUMBER, 2 * workload->scenario->costs.speed, text, sizeof text);
    add(changes, arena_printf(changes->arena, "costs.speed=%s", text));
}

void changes_of_launches(struct changes *changes, const struct workload *workload)
{
    (void)workload;
    add(changes, "costs.host_launch=0 s");
}

void changes_of_stragglers(struct changes *changes, const struct workload *workload)
{
    if (workload->scenario->simulation.stragglers.count)
        add(changes, "simulation.stragglers=[]");
}
