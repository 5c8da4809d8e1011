/* imported_cluster: the cluster on which a launch runs, as far as somebody says it. */
#include "imported/imported.h"

#include "files/data.h"

#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "launch/launch.h"

enum { MOST = 1 << 20 };

static bool same_name(const char *said, const char *name)
{
    while (*said && (*said == *name || (*said == '_' && *name == '-'))) {
        said++;
        name++;
    }
    return !*said && !*name;
}

/* A number of GPUs or nodes; 0: it is none. */
static long whole(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);

    return end != text && !*end && value > 0 && value <= MOST ? value : 0;
}

/* A number that --set says, or that the launcher was told (torchrun, torch.distributed.launch), by either spelling; 0:
 * neither, or nobody knows it here. */
static long launcher_number(const struct imported *m, const char *name)
{
    const struct launch_arguments *arguments = &m->launch->launcher;

    for (size_t i = 0; i < m->options->nsets; i++)
        if (same_name(m->options->sets[i].name, name))
            return whole(m->options->sets[i].value);
    for (size_t i = 0; i < arguments->count; i++)
        if (same_name(arguments->items[i].name, name) && arguments->items[i].count)
            return whole(arguments->items[i].values[0].text);
    return 0;
}

long imported_world(const struct imported *m)
{
    long nodes = launcher_number(m, "nnodes"), per_node = launcher_number(m, "nproc-per-node");

    for (size_t i = 0; m->launch->log && i < m->launch->arguments.count; i++)
        if (!strcmp(m->launch->arguments.items[i].name, "world-size") && m->launch->arguments.items[i].count)
            return whole(m->launch->arguments.items[i].values[0].text);
    return nodes && per_node ? nodes * per_node : 0;
}

long imported_node_gpus(struct imported *m)
{
    const char *name = m->options->cluster ? m->options->cluster : "dgx-h100";
    static const struct data_kind kind = {"platforms", "platform", NULL};
    const char *path = data_resolve(m->arena, &kind, name, (struct loc){.file = "--cluster"}, m->err);
    struct node *root, *count;

    if (!path || conf_load(m->arena, path, &root, m->err))
        return 0;
    count = node_get(root, "gpus_per_node");
    if (!count || !count->text || strtol(count->text, NULL, 10) < 1) {
        error_add(m->err, EXIT_INPUT, (struct loc){.file = path}, "says no gpus_per_node; expected a platform");
        return 0;
    }
    return strtol(count->text, NULL, 10);
}

/* Replicas that fill the nodes as far as the batch and the experts let them. */
static long fitting_data(long room, long least, long replicas)
{
    long data = room / least * least;

    while (data > least && replicas && replicas % data)
        data -= least;
    return data > least ? data : least;
}

long imported_cluster(struct imported *m, long model, long least, long replicas, long world)
{
    const char *name = m->options->cluster ? m->options->cluster : "dgx-h100";
    long per_node = imported_node_gpus(m), data, nodes;

    if (!per_node)
        return 0;
    if (model > MOST || (world && world % model))
        return error_add(m->err, EXIT_INFEASIBLE, m->launch->loc,
                         "tensor x pipeline x context degrees are %ld GPUs, which "
                         "do not divide the %ld GPUs of the launch",
                         model, world),
               0;
    if (world) {
        data = world / model;
        nodes = (world + per_node - 1) / per_node;
    } else {
        nodes = (model * least + per_node - 1) / per_node;
        data = fitting_data(nodes * per_node / model, least, replicas);
        launch_warn(m->launch, m->arena, m->launch->loc,
                    "the number of GPUs is not said; the fewest nodes of %s that hold "
                    "the degrees are taken: nodes %ld, GPUs %ld, replicas %ld; give --set nnodes=N --set "
                    "nproc_per_node=%ld for "
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
    imported_put(m, "cluster.nodes", "%ld", nodes);
    imported_put(m, "strategy.data", "%ld", data);
    return data;
}
