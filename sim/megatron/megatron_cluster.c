/* megatron_cluster: how many GPUs, and what is left of them for data parallelism. */
#include "megatron/megatron_internal.h"

#include "files/data.h"

#include <stdlib.h>

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
static long launcher_number(const struct megatron *m, const char *name)
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

/* GPUs that the file says: of a log, or of its launcher; 0: it does not say so. */
static long world_of(const struct megatron *m)
{
    long nodes = launcher_number(m, "nnodes"), per_node = launcher_number(m, "nproc-per-node");

    for (size_t i = 0; m->launch->log && i < m->launch->arguments.count; i++)
        if (!strcmp(m->launch->arguments.items[i].name, "world-size") && m->launch->arguments.items[i].count)
            return whole(m->launch->arguments.items[i].values[0].text);
    return nodes && per_node ? nodes * per_node : 0;
}

/* GPUs of a node of the platform; 0: an error. */
static long node_gpus(struct megatron *m, const char *name)
{
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

/* The least degree of data parallelism: expert groups are made of its replicas. */
static long least_data(struct megatron *m)
{
    long expert = megatron_number(m, "expert-model-parallel-size"), context = megatron_number(m, "context-parallel-size");
    long tensor = megatron_number(m, "tensor-model-parallel-size"), own = megatron_number(m, "expert-tensor-parallel-size");
    long within = context * (own == 1 ? tensor : 1);

    return expert > 1 ? expert / gcd((int)expert, (int)within) : 1;
}

static bool degrees_are_sane(struct megatron *m)
{
    static const char *const names[] = {"tensor-model-parallel-size", "pipeline-model-parallel-size",
                                        "context-parallel-size", "expert-model-parallel-size"};

    for (size_t i = 0; i < COUNT(names); i++)
        if (megatron_number(m, names[i]) < 1 || megatron_number(m, names[i]) > 65536)
            return megatron_refuse(m, names[i], "expected a degree of 1 to 65536, found %ld", megatron_number(m, names[i])),
                   false;
    return true;
}

/* Replicas that fill the nodes as far as the batch and the experts let them. */
static long fitting_data(long room, long least, long replicas)
{
    long data = room / least * least;

    while (data > least && replicas && replicas % data)
        data -= least;
    return data > least ? data : least;
}

long megatron_cluster(struct megatron *m)
{
    const char *name = m->options->cluster ? m->options->cluster : "dgx-h100";
    long per_node = node_gpus(m, name), world = world_of(m), global = megatron_number(m, "global-batch-size");
    long micro = megatron_number(m, "micro-batch-size"), model, data, nodes, least;

    if (!per_node || !degrees_are_sane(m))
        return 0;
    model = megatron_number(m, "tensor-model-parallel-size") * megatron_number(m, "context-parallel-size");
    model *= megatron_number(m, "pipeline-model-parallel-size");
    least = least_data(m);
    if (model > MOST || (world && world % model))
        return error_add(m->err, EXIT_INFEASIBLE, m->launch->loc, "tensor x pipeline x context degrees are %ld GPUs, which "
                         "do not divide the %ld GPUs of the launch", model, world), 0;
    if (world) {
        data = world / model;
        nodes = (world + per_node - 1) / per_node;
    } else {
        nodes = (model * least + per_node - 1) / per_node;
        data = fitting_data(nodes * per_node / model, least, global % micro ? 0 : global / micro);
        launch_warn(m->launch, m->arena, m->launch->loc, "the number of GPUs is not said; the fewest nodes of %s that hold "
                    "the degrees are taken: nodes %ld, GPUs %ld, replicas %ld; give --set nnodes=N --set nproc_per_node=%ld for "
                    "more", name, nodes, model * data, data, per_node);
        megatron_remark(m, "cluster: the number of GPUs is not said; the fewest nodes that hold the degrees");
    }
    if (!m->options->cluster) {
        launch_warn(m->launch, m->arena, m->launch->loc, "the GPUs are not said; %s is taken; give --cluster NAME (dtsim "
                    "list platforms)", name);
        megatron_remark(m, "cluster: the GPUs are not said; %s", name);
    }
    megatron_put(m, "cluster.platform", "%s", name);
    megatron_put(m, "cluster.nodes", "%ld", nodes);
    megatron_put(m, "strategy.data", "%ld", data);
    if (!global)
        megatron_put(m, "batch.global", "%ld", micro * data);       /* training_config.py: micro x data */
    return data;
}
