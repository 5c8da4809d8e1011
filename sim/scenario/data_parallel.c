#include "scenario/scenario_internal.h"

#include <math.h>

bool scenario_hybrid(const struct scenario *scenario)
{
    return scenario->parallelism.zero && scenario->parallelism.shard < scenario_replicas(scenario);
}

int shard_resolve(struct scenario *scenario, struct error *err)
{
    struct parallelism *spec = &scenario->parallelism;
    struct loc loc = STRATEGY_LOC(scenario, "shard");
    int replicas = scenario_replicas(scenario);

    if (spec->shard && !spec->zero)
        return error_clash(err, loc,
                           "strategy: shard: %d, but 'zero: 0' divides nothing; expected zero 1 to 3", spec->shard);
    if (!spec->shard)
        spec->shard = spec->zero ? replicas : 0;
    if (spec->zero && spec->shard == 1 && replicas > 1)
        return error_clash(err, loc,
                           "strategy: shard: 1 replica shares nothing; expected 2 to %d, or 'zero: 0'", replicas);
    if (spec->zero && replicas % spec->shard)
        return error_add(err, EXIT_INFEASIBLE, loc, "strategy: shard: %d does not divide the %d replicas%s%s",
                         spec->shard, replicas, spec->context > 1 ? " (data x context)" : "",
                         node_get(spec->node, "data") ? "" : " (what remains of the cluster)");
    if (spec->zero && spec->shard < replicas && spec->expert > 1)
        return error_clash(err, loc,
                           "strategy: shard: %d of %d replicas do not go with experts divided over %d, which share "
                           "their states in groups of their own; expected all replicas, or expert 1", spec->shard,
                           replicas, spec->expert);
    return 0;
}

/* ZeRO, a parameter server and DataParallel hand out weights after the one update of an iteration. If a replica holds
 * two copies of the model, ZeRO 1 alone divides among both. */
static int check_sharing(const struct scenario *scenario, struct error *err)
{
    const struct schedule *schedule = scenario_schedule(scenario);
    int form = scenario->parallelism.data_parallel;
    bool rooted = form == DATA_PARALLEL_SERVER || form == DATA_PARALLEL_REPLICATED;
    const char *key = rooted ? "data_parallel" : "zero";

    if (rooted && scenario->parallelism.zero)
        return error_clash(err, STRATEGY_LOC(scenario, "zero"),
                           "strategy: zero: %d does not go with %s, which holds all states; expected 0",
                           scenario->parallelism.zero,
                           form == DATA_PARALLEL_SERVER ? "a parameter server" : "DataParallel's first GPU");
    if ((!rooted && !scenario->parallelism.zero) ||
        (!schedule->asynchronous && (plan_directions(&scenario->plan) == 1 || scenario->parallelism.zero == 1)))
        return 0;
    return error_clash(err, STRATEGY_LOC(scenario, key), "strategy: %s does not go with %s, which %s",
                       form == DATA_PARALLEL_SERVER       ? "data_parallel: parameter-server"
                       : form == DATA_PARALLEL_REPLICATED ? "data_parallel: dataparallel"
                       : schedule->asynchronous           ? "zero: sharing states"
                                                          : "zero: sharing gradients or weights",
                       schedule->name,
                       schedule->asynchronous ? "updates without a flush"
                       : rooted               ? "holds two copies of the model"
                                              : "holds two copies of the model; expected zero 0 or 1");
}

/* What is not scattered can stay whole under ZeRO 1 alone, and among all replicas. */
static int check_scatter(const struct scenario *scenario, struct error *err)
{
    const struct parallelism *spec = &scenario->parallelism;

    if (spec->reduce_scatter || (spec->zero == 1 && !scenario_hybrid(scenario)))
        return 0;
    return error_clash(err, STRATEGY_LOC(scenario, "reduce_scatter"),
                       "software: reduce_scatter: false, but %s; expected 'zero: 1' among all replicas, or true",
                       spec->zero == 0   ? "without ZeRO gradients are not scattered anyway"
                       : spec->zero == 1 ? "replicas that share states in groups scatter within them"
                                         : "replicas keep the gradients of their share alone");
}

/* PyTorch's DataParallel: one process, the GPUs of one machine, the whole model on each. */
static int check_replicated(const struct scenario *scenario, struct error *err)
{
    const struct parallelism *spec = &scenario->parallelism;
    const struct { const char *key; int degree; } degrees[] = {
        {"pipeline", spec->pipeline}, {"tensor", spec->tensor}, {"chunks", spec->chunks},
        {"context", spec->context},   {"expert", spec->expert},
    };
    int rc = 0;

    if (spec->data_parallel != DATA_PARALLEL_REPLICATED)
        return 0;
    for (size_t i = 0; i < COUNT(degrees); i++)
        if (degrees[i].degree > 1)
            rc = error_clash(err, STRATEGY_LOC(scenario, degrees[i].key),
                             "strategy: %s: %d, but DataParallel copies the whole model to every GPU; expected 1, or "
                             "'data_parallel: ddp'", degrees[i].key, degrees[i].degree);
    if (!rc && !scenario->cluster.ideal && spec->data > cluster_node_gpus(&scenario->cluster, 0))
        rc = error_infeasible(
            err, ERROR_GPUS, STRATEGY_LOC(scenario, "data"),
            "strategy: data: %d GPUs on several nodes, but DataParallel is one process on one node of %d; "
            "expected at most these, or 'data_parallel: ddp'",
            spec->data, cluster_node_gpus(&scenario->cluster, 0));
    return rc;
}

/* Local SGD (Lin et al. 2020, "Don't use large mini-batches, use local SGD"): whole replicas that go their own way. */
static int check_local_steps(const struct scenario *scenario, struct error *err)
{
    const struct schedule *schedule = scenario_schedule(scenario);
    const struct parallelism *spec = &scenario->parallelism;
    int form = spec->data_parallel;
    const char *why = spec->zero                         ? "ZeRO's replicas have no whole states to step with"
                      : form == DATA_PARALLEL_SERVER     ? "only the server updates"
                      : form == DATA_PARALLEL_REPLICATED ? "only GPU 0 updates"
                      : spec->context > 1                ? "a context group's GPUs work on the same samples"
                      : spec->expert > 1                 ? "a replica has no whole model to step with"
                      : schedule->asynchronous           ? "the schedule updates without a flush"
                      : plan_opportunistic(schedule, &scenario->plan)
                          ? "at run time forwards of the next step would go before the optimizer step"
                      : plan_directions(&scenario->plan) > 1
                          ? "a replica's two copies of the model all-reduce their gradients in every step"
                          : NULL;

    if (spec->local_steps == 1 || !why)
        return 0;
    return error_clash(err, STRATEGY_LOC(scenario, "local_steps"),
                       "strategy: local_steps: %d, but %s; expected 1", spec->local_steps, why);
}

/* Fills the defaults of the compression's method, refuses what does not go with it. */
static int compression_resolve(struct scenario *scenario, struct error *err)
{
    static const struct { const char *key; enum compression method; const char *name; } options[] = {
        {"rank", COMPRESSION_POWERSGD, "powersgd"}, {"share", COMPRESSION_TOP_K, "top-k"},
        {"bits", COMPRESSION_QUANTIZED, "quantized"},
    };
    struct parallelism *parallelism = &scenario->parallelism;
    struct compression_spec *spec = &parallelism->compression;
    bool rooted = parallelism->data_parallel == DATA_PARALLEL_SERVER ||
                  parallelism->data_parallel == DATA_PARALLEL_REPLICATED;
    const struct transformer *shape = scenario->model.transformer;
    bool powersgd = spec->method == COMPRESSION_POWERSGD;
    const char *why = parallelism->zero ? "ZeRO scatters gradients as they are; expected 'none', or zero 0"
                      : parallelism->local_steps > 1
                          ? "local steps exchange no gradients; expected 'none', or local_steps 1"
                      : rooted ? "gradients are summed on one GPU; expected 'none', or 'data_parallel: ddp'"
                      : parallelism->expert > 1
                          ? "gradients of divided experts are summed apart; expected 'none', or expert 1"
                      : powersgd && !shape
                          ? "powersgd needs the shapes of the weights, which only a transformer tells; expected top-k "
                            "or quantized"
                      : powersgd && shape->experts
                          ? "powersgd does not know how experts' matrices are stacked; expected top-k or quantized"
                                  : NULL;
    int rc = 0;

    for (size_t i = 0; i < COUNT(options); i++)
        if (node_get(spec->node, options[i].key) && (enum compression)spec->method != options[i].method)
            rc = error_clash(err, node_loc(spec->node, options[i].key),
                             "strategy: compression: %s is an option of %s", options[i].key, options[i].name);
    if (spec->method != COMPRESSION_NONE && why)
        rc = error_clash(err, STRATEGY_LOC(scenario, "compression"),
                         "strategy: compression: %s", why);
    if (spec->method != COMPRESSION_NONE && !node_get(spec->node, "error_feedback"))
        spec->error_feedback = true;
    if (spec->method == COMPRESSION_POWERSGD && !spec->rank)
        spec->rank = 1;
    if (spec->method == COMPRESSION_TOP_K && isnan(spec->share))
        spec->share = 0.01;
    if (spec->method == COMPRESSION_QUANTIZED && !spec->bits)
        spec->bits = 8;
    return rc;
}

/* ZeRO 3's stream of gathers is as fixed as the order that it was made for. */
static int check_opportunism(const struct scenario *scenario, struct error *err)
{
    const struct schedule *schedule = scenario_schedule(scenario);

    if (scenario->parallelism.zero < 3 || !plan_opportunistic(schedule, &scenario->plan))
        return 0;
    return error_clash(err, STRATEGY_LOC(scenario, "zero"),
                       "strategy: zero: 3 gathers layers in a fixed order, %s with runtime: opportunistic changes it; "
                       "expected at most 2, or runtime: static", schedule->name);
}

int data_parallel_check(struct scenario *scenario, struct error *err)
{
    static scenario_rule *const rules[] = {check_sharing, check_scatter, check_replicated, check_local_steps,
                                          check_opportunism};
    int rc = compression_resolve(scenario, err);

    return scenario_check(scenario, rules, COUNT(rules), err) ? -1 : rc;
}
