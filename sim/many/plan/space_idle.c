/* Values that change nothing: of an axis that is not asked for by name, one of those that come to the same is tried. */
#include "base/base.h"
#include "config/conf.h"
#include "plan/space_internal.h"

/* A value in an expression: the axis, what the scenario says, else `left_out`. NULL: neither tells. */
static const char *value_of(const struct builder *builder, const char *path, const char *left_out)
{
    const struct node *said = node_at(builder->root, path);

    if (has_axis(builder, path))
        return path;
    if (axes_change(builder, path))
        return NULL;
    return !said || node_is_null(said) ? left_out : said->kind == NODE_SCALAR ? said->text : NULL;
}

/* An axis that is ours, and a condition under which it changes something. */
static void add_idle(struct builder *builder, const char *path, const char *why, const char *idle, const char *condition)
{
    if (has_axis(builder, path) && condition && axes_are_ours(builder->axes.items, builder->axes.count, path))
        add_rule(builder, why, "%s || %s", idle, condition);
}

/* The GPUs of all pipeline stages but one, as an expression; NULL: axes of the cluster change them. */
static const char *gpus_of_stage(const struct builder *builder, const char *pipeline)
{
    const struct facts *facts = builder->facts;
    const char *nodes = has_axis(builder, "cluster.nodes") ? "cluster.nodes" : arena_printf(builder->arena, "%d", facts->nodes);
    bool known = builder->same_nodes && !facts->in_parts && (has_axis(builder, "cluster.nodes") ||
                                                            (facts->nodes && builder->same_count));

    return known && pipeline ? arena_printf(builder->arena, "(%s * %d / %s)", nodes, facts->per_node, pipeline) : NULL;
}

void add_idle_rules(struct builder *builder)
{
    struct arena *arena = builder->arena;
    const char *tensor = value_of(builder, "strategy.tensor", "1"), *expert = value_of(builder, "strategy.expert", "1");
    const char *zero = value_of(builder, "strategy.zero", "0"), *pipeline = value_of(builder, "strategy.pipeline", "1");
    const char *gpus = gpus_of_stage(builder, pipeline), *divided = value_of(builder, "strategy.expert_tensor", tensor);
    const char *sums = value_of(builder, "strategy.data_parallel", NULL), *beside = "";

    if (sums && has_axis(builder, sums))
        beside = " && strategy.data_parallel == 'ddp'";
    else if (sums)
        beside = arena_printf(arena, " && '%s' == 'ddp'", sums);
    add_idle(builder, "strategy.sequence_parallel", "without a tensor group it has no activations to divide",
             "!strategy.sequence_parallel", tensor ? arena_printf(arena, "%s > 1", tensor) : NULL);
    if (builder->facts->experts > 1)
        add_idle(builder, "strategy.sequence_parallel", "a tensor group divides the activations of layers with experts",
                 "strategy.sequence_parallel", tensor ? arena_printf(arena, "%s == 1", tensor) : NULL);
    add_idle(builder, "strategy.expert_tensor", "all of a tensor group divide an expert, or each has whole ones",
             "strategy.expert_tensor == 1", tensor ? arena_printf(arena, "strategy.expert_tensor == %s", tensor) : NULL);
    add_idle(builder, "strategy.expert_tensor", "whole experts are divided over all GPUs of a tensor group",
             "strategy.expert_tensor > 1", tensor && expert ? arena_printf(arena, "divides(%s, %s)", tensor, expert) : NULL);
    if (has_axis(builder, "strategy.schedule"))
        add_idle(builder, "strategy.chunks", "one chunk a rank is no interleaving",
                 "strategy.schedule != 'interleaved'", pipeline ? "strategy.chunks > 1" : NULL);
    add_idle(builder, "strategy.dispatcher", "without expert parallelism no tokens travel",
             "strategy.dispatcher == 'alltoall'", expert ? arena_printf(arena, "%s > 1", expert) : NULL);
    add_idle(builder, "strategy.overlap_dispatch", "without expert parallelism no tokens travel",
             "strategy.overlap_dispatch == 'none'", expert ? arena_printf(arena, "%s > 1", expert) : NULL);
    add_idle(builder, "software.overlap_gathers", "weights are gathered under ZeRO 1 and 2, beside forwards where sums are "
             "beside the backward", "!software.overlap_gathers", zero ? arena_printf(arena, "%s > 0 && %s < 3%s", zero, zero,
             beside) : NULL);
    if (has_axis(builder, "strategy.expert") && gpus && expert && divided && tensor && !node_at(builder->root, "strategy.data") &&
        !has_axis(builder, "strategy.data") && axes_are_ours(builder->axes.items, builder->axes.count, expert))
        add_rule(builder, "experts are divided over GPUs of a pipeline stage", "divides(%s * %s, %s)", expert, divided, gpus);
}
