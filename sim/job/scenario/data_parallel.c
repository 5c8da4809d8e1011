#include "scenario/scenario_internal.h"

#include <math.h>
#include "base/base.h"
#include "collective/collective.h"
#include "config/conf.h"
#include "hardware/cluster.h"
#include "model/model.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

/* The first table of recipe.h. `root`: what has all states, in messages; NULL: each replica its own. */
static const struct form {
    enum sum_unit unit;
    bool flush;
    enum weights_moment when;
    const char *said, *root, *updates;
} forms[] = {
    [DATA_PARALLEL_DDP] = {SUM_BUCKETS, .when = WEIGHTS_STAY},
    [DATA_PARALLEL_SYNCHRONOUS] = {SUM_STAGES, .flush = true, .when = WEIGHTS_STAY},
    [DATA_PARALLEL_SERVER] = {SUM_STAGES, .when = WEIGHTS_UPDATED, .said = "data_parallel: parameter-server",
                              .root = "a parameter server", .updates = "only the server updates"},
    [DATA_PARALLEL_REPLICATED] = {SUM_BUFFERS, .when = WEIGHTS_FORWARD, .said = "data_parallel: dataparallel",
                                  .root = "DataParallel's first GPU", .updates = "only GPU 0 updates"},
};

bool scenario_rooted(const struct scenario *scenario)
{
    return forms[scenario->parallelism.data_parallel].root != NULL;
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

int *scenario_share(struct arena *arena, const struct scenario *scenario, const double *weights)
{
    int data = scenario->parallelism.data, micro = scenario->batch.micro, left = micro * data, *samples;
    double sum = 0, *rest = ARENA_ARRAY(arena, double, data);
    bool equal = true;

    samples = ARENA_ARRAY(arena, int, data);
    for (int d = 0; d < data; d++)
        sum += weights[d];
    for (int d = 0; d < data; d++) {
        double exact = (double)micro * data * (weights[d] / sum), whole = floor(exact + ROUNDING * exact);

        samples[d] = (int)whole;
        rest[d] = exact - whole;
        left -= samples[d];
    }
    for (; left > 0; left--) {
        int most = 0;

        for (int d = 1; d < data; d++)
            most = rest[d] > rest[most] + ROUNDING ? d : most;
        samples[most]++;
        rest[most] = -1;
    }
    for (int d = 0; d < data; d++)
        equal &= samples[d] == micro;
    return equal ? NULL : samples;
}

/* What does not go with replicas of unequal micro-batches; NULL: all does. */
static const char *shares_fault(const struct scenario *scenario)
{
    const struct parallelism *spec = &scenario->parallelism;

    return model_is_timed(&scenario->model)        ? "the model's times are given for all micro-batches alike" :
           spec->expert > 1                        ? "replicas that divide experts exchange equal numbers of tokens" :
           spec->data_parallel == DATA_PARALLEL_REPLICATED ? "data_parallel: dataparallel scatters equal numbers of samples" :
           scenario_by_layers(scenario)            ? "layers are recomputed or offloaded by one plan for all replicas" : NULL;
}

int shares_resolve(struct scenario *scenario, struct error *err)
{
    const struct list *shares = &scenario->batch.shares;
    const char *fault = shares_fault(scenario);
    int data = scenario->parallelism.data, rc = 0;
    double *weights, sum = 0;

    if (!shares->node)
        return 0;
    if (fault)
        return error_clash(err, shares->node->loc, "batch: shares: %s; expected no shares", fault);
    if (list_is_auto(shares))
        return 0;
    if (shares->count != (size_t)data)
        return error_infeasible(err, ERROR_BATCH, shares->node->loc, "batch: shares: %zu number%s for %d replicas; expected "
                                "one for each", shares->count, shares->count == 1 ? "" : "s", data);
    weights = ARENA_ARRAY(&scenario->arena, double, data);
    for (int d = 0; d < data; d++)
        sum += weights[d] = ((const int *)shares->items)[d];
    if (sum == 0)
        return error_infeasible(err, ERROR_BATCH, shares->node->loc, "batch: shares: all are 0; expected numbers above 0");
    scenario->batch.samples = scenario_share(&scenario->arena, scenario, weights);
    for (int d = 0; d < data && scenario->batch.samples && !rc; d++)
        if (scenario->batch.samples[d] == 0)
            rc = error_infeasible(err, ERROR_BATCH, shares->node->loc, "batch: shares: replica %d gets none of the micro %d x "
                                  "data %d samples; expected a larger share or a larger micro", d, scenario->batch.micro,
                                  data);
    return rc;
}

/* ZeRO, a parameter server and DataParallel hand out weights after the only update of an iteration. If a replica holds
 * two copies of the model, only ZeRO 1 divides among both. */
static int check_sharing(const struct scenario *scenario, struct error *err)
{
    const struct schedule *schedule = scenario_schedule(scenario);
    const struct form *form = &forms[scenario->parallelism.data_parallel];
    bool rooted = form->root;
    const char *key = rooted ? "data_parallel" : "zero";

    if (rooted && scenario->parallelism.zero)
        return error_clash(err, STRATEGY_LOC(scenario, "zero"),
                           "strategy: zero: %d does not go with %s, which holds all states; expected 0",
                           scenario->parallelism.zero, form->root);
    if ((!rooted && !scenario->parallelism.zero) ||
        (!schedule->asynchronous && (plan_directions(&scenario->plan) == 1 || scenario->parallelism.zero == 1)))
        return 0;
    return error_clash(err, STRATEGY_LOC(scenario, key), "strategy: %s does not go with %s, which %s",
                       rooted                   ? form->said :
                       schedule->asynchronous   ? "zero: sharing states"
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

/* DataParallel sends the model, and whole micro-batches, to its replicas at every forward. */
static int check_copies(const struct scenario *scenario, struct error *err)
{
    const struct schedule *schedule = scenario_schedule(scenario);
    const struct memory_spec *memory = &scenario->memory;
    int slices = schedule->slices ? schedule->slices(scenario->parallelism.options) : 1, rc = 0;
    const char *key = memory->recompute.mode == RECOMPUTE_OPTIMAL ? "recompute" : "offload";

    if (scenario->parallelism.data_parallel != DATA_PARALLEL_REPLICATED)
        return 0;
    if (scenario_by_layers(scenario))
        rc = error_clash(err, node_loc(memory->node, key), "memory: %s: does not go with data_parallel: dataparallel, whose "
                         "replicas are copied anew for every forward",
                         memory->recompute.mode == RECOMPUTE_OPTIMAL ? "recompute: optimal" : key);
    if (memory->lora)
        rc = error_clash(err, node_loc(memory->node, "lora"), "memory: lora: does not go with data_parallel: dataparallel, "
                         "whose replicas are copies of trained weights; try ddp");
    if (slices > 1)
        rc = error_clash(err, STRATEGY_LOC(scenario, "slices"), "strategy: slices: %d does not go with the rest: "
                         "'data_parallel: dataparallel' sends whole micro-batches from GPU 0", slices);
    return rc;
}

/* Local SGD (Lin et al. 2020, "Don't use large mini-batches, use local SGD"): whole replicas that go their own way. */
static int check_local_steps(const struct scenario *scenario, struct error *err)
{
    const struct schedule *schedule = scenario_schedule(scenario);
    const struct parallelism *spec = &scenario->parallelism;
    const char *why = spec->zero                ? "ZeRO's replicas have no whole states to step with"
                      : scenario_rooted(scenario) ? forms[spec->data_parallel].updates
                      : spec->context > 1       ? "a context group's GPUs work on the same samples"
                      : spec->expert > 1        ? "a replica has no whole model to step with"
                      : schedule->asynchronous  ? "the schedule updates without a flush"
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
    const struct transformer *shape = scenario->model.transformer;
    bool powersgd = spec->method == COMPRESSION_POWERSGD;
    const char *why = parallelism->zero ? "ZeRO scatters gradients as they are; expected 'none', or zero 0"
                      : parallelism->local_steps > 1
                          ? "local steps exchange no gradients; expected 'none', or local_steps 1"
                      : scenario_rooted(scenario)
                          ? "gradients are summed on one GPU; expected 'none', or 'data_parallel: ddp'"
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
    static scenario_rule *const rules[] = {check_sharing, check_scatter, check_replicated, check_copies, check_local_steps,
                                          check_opportunism};
    int rc = compression_resolve(scenario, err);

    return scenario_check(scenario, rules, COUNT(rules), err) ? -1 : rc;
}

/* The second table of recipe.h. */
static const struct sharing { bool every, layers, divides[HELD_COUNT]; enum weights_moment when; } sharings[] = {
    [1] = {.divides = {[HELD_STATES] = true}, .when = WEIGHTS_UPDATED},
    [2] = {.every = true, .divides = {[HELD_GRADIENTS] = true, [HELD_STATES] = true}, .when = WEIGHTS_UPDATED},
    [3] = {.layers = true,
           .divides = {[HELD_WEIGHTS] = true, [HELD_GRADIENTS] = true, [HELD_STATES] = true}, .when = WEIGHTS_LAYER},
};

/* Micro-batches add up whole gradients (FSDP's no_sync, FSDP2's set_requires_gradient_sync(False)), which the last
 * backward scatters, layer by layer under ZeRO 3; weights are given back as without it (_runtime_utils.py,
 * _should_free_in_backward, of FULL_SHARD; FSDP2 while reshard_after_backward is left alone).
 *
 * The backwards of PyTorch's pipeline stages (torch/distributed/pipelining/stage.py, backward_maybe_with_nosync) give no
 * weights back either (set_reshard_after_backward(False)), and a rank that has computed all scatters the gradients
 * (schedules.py: perform_reduce_grad at the end of a step). */
static void sum_once(struct recipe *recipe, bool pipelined)
{
    recipe->gradients.once = true;
    recipe->gradients.every = false;
    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++)
        recipe->divided[HELD_GRADIENTS][class] = 1;
    if (!pipelined)
        return;
    recipe->gradients.flush = true;
    recipe->gradients.unit = SUM_STAGES;
    recipe->gradients.first_bucket = recipe->gradients.bucket = INFINITY;
    recipe->weights.stay_backward = recipe->weights.when == WEIGHTS_LAYER;
}

/* Where micro-batches enter at both ends, two ranks of a replica hold a stage, and both take a share. */
static void share(struct recipe *recipe, const struct scenario *scenario)
{
    const struct parallelism *spec = &scenario->parallelism;
    const struct sharing *sharing = &sharings[spec->zero];

    bool hosted = scenario_offloads(scenario, OFFLOAD_OPTIMIZER) || scenario_offloads(scenario, OFFLOAD_WEIGHTS);

    recipe->weights.when = sharing->when;
    recipe->weights.stay_forward = sharing->layers && !spec->reshard_after_forward;
    if (sharing->when == WEIGHTS_UPDATED && spec->overlap_gathers && !hosted)
        recipe->weights.when = WEIGHTS_NEXT;
    recipe->gradients.every = sharing->every;
    recipe->gradients.flush &= !sharing->every;
    if (sharing->layers) {
        recipe->gradients.unit = SUM_LAYERS;
        recipe->in_turn = spec->data_parallel == DATA_PARALLEL_SYNCHRONOUS;
    }
    for (enum held held = 0; held < HELD_COUNT; held++)
        for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT && sharing->divides[held]; class++)
            recipe->divided[held][class] =
                scenario->groups.of[scenario->groups.sums[class]].size * plan_directions(&scenario->plan);
    if (sharing->divides[HELD_GRADIENTS] && spec->sums_once && (spec->pipeline > 1 || scenario->plan.micro_batches > 1))
        sum_once(recipe, spec->pipeline > 1);
}

/* ZeRO's halves of the all-reduce; what is not scattered stays whole (reduce_scatter: false). */
static void choose_collectives(struct recipe *recipe, const struct scenario *scenario)
{
    const struct parallelism *spec = &scenario->parallelism;
    const struct collective *all_reduce = scenario_all_reduce(scenario);
    const char *server = spec->data_parallel == DATA_PARALLEL_SERVER ? server_names[spec->server] : "ring";

    recipe->gradients.collective = recipe->rooted ? collective_find(COLLECTIVE_REDUCE, server) :
                                   spec->zero && spec->reduce_scatter ?
                                       collective_half(all_reduce, COLLECTIVE_REDUCE_SCATTER) : all_reduce;
    recipe->weights.collective = recipe->rooted ? collective_find(COLLECTIVE_BROADCAST, server) :
                                 spec->local_steps > 1 ? all_reduce :
                                     collective_half(all_reduce, COLLECTIVE_ALL_GATHER);
    if (scenario->groups.of[GROUP_SAME_SHARE].exchanges)
        recipe->gradients.across = all_reduce;
}

void recipe_make(struct scenario *scenario)
{
    const struct parallelism *spec = &scenario->parallelism;
    const struct form *form = &forms[spec->data_parallel];
    bool buckets = form->unit == SUM_BUCKETS;
    struct recipe recipe = {
        .gradients = {
            .unit = spec->data_parallel == DATA_PARALLEL_SYNCHRONOUS && !spec->flatten ? SUM_TENSORS : form->unit,
            .flush = form->flush, .first_bucket = buckets ? spec->first_bucket : INFINITY,
            .bucket = buckets ? spec->bucket : INFINITY,
        },
        .weights.when = form->when, .rooted = form->root != NULL,
    };

    for (enum held held = 0; held < HELD_COUNT; held++)
        for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++)
            recipe.divided[held][class] = 1;
    if (spec->zero)
        share(&recipe, scenario);
    if (spec->local_steps > 1) {
        recipe.gradients.unit = SUM_NOTHING;
        recipe.weights.when = WEIGHTS_UPDATED;
    }
    choose_collectives(&recipe, scenario);
    scenario->recipe = recipe;
}
