#include "run/facts.h"

#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "hardware/cluster.h"
#include "model/model.h"

static void find_model(const struct model *model, struct facts *facts)
{
    const struct transformer *shape = model->transformer;

    if (shape) {
        facts->transformer = true;
        facts->layers = shape->layers + (shape->encoder ? shape->encoder->layers : 0);
        facts->heads = transformer_divides(shape);
        facts->kv_heads = shape->pattern ? facts->heads : shape->kv_heads ? shape->kv_heads : facts->heads;
        facts->experts = shape->experts ? shape->experts : 1;
        facts->shared_experts = shape->shared_experts;
        facts->sequence = shape->sequence;
    } else if (model->layers.count) {
        facts->layers = (int)model->layers.count;
    }
}

static void find_cluster(struct cluster *cluster, struct facts *facts)
{
    facts->nodes = cluster->nodes;
    if (!cluster->nodes)
        cluster_size(cluster, 1);
    facts->per_node = cluster_gpus(cluster) / cluster->nodes;
    for (int kind = cluster_kinds(cluster); kind-- > 0;) {
        int gpu = cluster_kind_gpu(cluster, kind);
        const char *name = cluster_gpu_name(cluster, gpu);

        /* what stands on the board's power tells no two GPUs apart */
        if (!name || !cluster_sheet(cluster, gpu)->power || !cluster_sheet(cluster, gpu)->power->node)
            facts->powerless = name ? name : "";
    }
    for (int i = 0; i < cluster_given_parts(cluster); i++) {
        int own = cluster_node_gpus(cluster, cluster_given_part(cluster, i).first);

        facts->per_node = i == 0 || own < facts->per_node ? own : facts->per_node;
        facts->in_parts = cluster_gpus(cluster);
    }
}

int facts_find(struct arena *arena, const struct node *root, const char *who, struct facts *facts, struct error *err)
{
    const struct node *model_node = node_get(root, "model"), *cluster_node = node_get(root, "cluster");
    const struct node *batch = node_at(root, "batch.global");
    struct model model;
    struct cluster cluster;

    *facts = (struct facts){.root = root, .layers = 1, .heads = 1, .kv_heads = 1, .experts = 1};
    if (!model_node || !cluster_node)
        return error_add(err, EXIT_INPUT, root->loc, "%s: expected a scenario with 'model' and 'cluster'", who);
    if (model_load(arena, model_node, &model, err) || cluster_load(arena, cluster_node, &cluster, err))
        return -1;
    find_model(&model, facts);
    find_cluster(&cluster, facts);
    facts->batch = batch && batch->text ? atoi(batch->text) : 0;
    return 0;
}
