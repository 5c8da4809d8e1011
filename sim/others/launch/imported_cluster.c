/* imported_cluster: the cluster on which a launch runs, as far as somebody says it. */
#include "launch/imported.h"

#include "hardware/cluster.h"

#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "launch/launch.h"

enum { MOST = 1 << 20 };

/* A number of GPUs or nodes; 0: it is none. */
static long long whole(const char *text)
{
    char *end;
    long long value = strtoll(text, &end, 10);

    return end != text && !*end && value > 0 && value <= MOST ? value : 0;
}

/* A number that --set says, by either spelling, or the launch; 0: neither, or nobody knows it here. "gpu": all of a
 * node. */
static long long launcher_number(struct imported *m, const char *name)
{
    const struct launch_arguments *arguments = &m->launch->launcher;
    const char *text = NULL;

    for (size_t i = 0; i < arguments->count; i++)
        if (launch_same_name(arguments->items[i].name, name) && arguments->items[i].count)
            text = arguments->items[i].values[0].text;
    for (size_t i = 0; i < m->options->nsets; i++)
        if (launch_same_name(m->options->sets[i].name, name))
            text = m->options->sets[i].value;
    return !text ? 0 : !strcmp(text, "gpu") ? imported_node_gpus(m->arena, m->options->cluster, m->err) : whole(text);
}

long long imported_world(struct imported *m)
{
    long long nodes = launcher_number(m, "nnodes"), per_node = launcher_number(m, "nproc-per-node");

    for (size_t i = 0; m->launch->log && i < m->launch->arguments.count; i++)
        if (!strcmp(m->launch->arguments.items[i].name, "world-size") && m->launch->arguments.items[i].count)
            return whole(m->launch->arguments.items[i].values[0].text);
    return nodes && per_node ? nodes * per_node : launcher_number(m, "world-size");
}

long long imported_node_gpus(struct arena *arena, const char *platform, struct error *err)
{
    const char *name = platform ? platform : "dgx-h100";
    struct node *value = node_mapping(arena), *scalar = node_scalar(arena, name, true);
    struct cluster cluster = {0};

    value->loc = scalar->loc = (struct loc){.file = "--cluster"};
    node_put(arena, value, "platform", scalar);
    node_put(arena, value, "nodes", node_scalar(arena, "1", false));
    if (!strcmp(name, "ideal"))
        return error_add(err, EXIT_INPUT, value->loc, "'ideal' has no GPUs; expected a platform that has: dtsim list platforms"),
               0;
    if (cluster_load(arena, value, &cluster, err))
        return 0;
    return cluster_node_gpus(&cluster, 0);
}

/* Replicas that fill the nodes as far as the batch and the experts let them. */
static long long fitting_data(long long room, long long least, long long replicas)
{
    long long data = room / least * least;

    while (data > least && replicas && replicas % data)
        data -= least;
    return data > least ? data : least;
}

/* The nodes of `world` GPUs. Where the launch uses fewer GPUs of each of several nodes than the platform has, so many
 * are a node's: what is inside a node goes over NVLink. */
static long long nodes_of(struct imported *m, long long world, long long *per_node)
{
    const char *name = m->options->cluster ? m->options->cluster : "dgx-h100";
    long long said = launcher_number(m, "nproc-per-node"), nodes = launcher_number(m, "nnodes");

    if (said && nodes > 1 && said * nodes == world && said < *per_node) {
        imported_remark(m, "cluster: %lld nodes with %lld GPUs each, as the launch has them; %s has %lld a node", nodes, said, name,
                        *per_node);
        *per_node = said;
    } else if (said > *per_node) {
        launch_warn(m->launch, m->arena, m->launch->loc, "the launch has %lld GPUs a node, and %s has %lld; %lld nodes are taken",
                    said, name, *per_node, (world + *per_node - 1) / *per_node);
    }
    return (world + *per_node - 1) / *per_node;
}

long long imported_cluster(struct imported *m, long long model, long long least, long long replicas, long long world)
{
    const char *name = m->options->cluster ? m->options->cluster : "dgx-h100";
    long long per_node = imported_node_gpus(m->arena, m->options->cluster, m->err), all = per_node, data, nodes;

    if (!per_node)
        return 0;
    if (model > MOST || (world && world % model))
        return error_add(m->err, EXIT_INFEASIBLE, m->launch->loc,
                         "tensor x pipeline x context degrees are %lld GPUs, which "
                         "do not divide the %lld GPUs of the launch; for more nodes give --set nnodes=N",
                         model, world),
               0;
    if (world) {
        data = world / model;
        nodes = nodes_of(m, world, &per_node);
    } else {
        nodes = (model * least + per_node - 1) / per_node;
        data = fitting_data(nodes * per_node / model, least, replicas);
        launch_warn(m->launch, m->arena, m->launch->loc,
                    "the number of GPUs is not said; the fewest nodes of %s that hold "
                    "the degrees are taken: nodes %lld, GPUs %lld, replicas %lld; give --set nnodes=N --set "
                    "nproc_per_node=%lld for "
                    "more",
                    name, nodes, model * data, data, per_node);
        imported_remark(m, "cluster: the number of GPUs is not said; the fewest nodes that hold the degrees");
    }
    if (!m->options->cluster) {
        launch_warn(m->launch, m->arena, m->launch->loc,
                    "the GPUs are not said; %s is taken; give --cluster NAME (dtsim "
                    "list platforms)",
                    name);
        imported_remark(m, "cluster: the GPUs are not said; %s", name);
    }
    imported_put(m, "cluster.platform", "%s", name);
    imported_put(m, "cluster.nodes", "%lld", nodes);
    if (per_node != all)
        imported_put(m, "cluster.gpus_per_node", "%lld", per_node);
    imported_put(m, "strategy.data", "%lld", data);
    return data;
}
