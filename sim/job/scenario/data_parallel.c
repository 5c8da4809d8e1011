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
    const char *root, *updates;
} forms[] = {
    [DATA_PARALLEL_DDP] = {SUM_BUCKETS, .when = WEIGHTS_STAY},
    [DATA_PARALLEL_SYNCHRONOUS] = {SUM_STAGES, .flush = true, .when = WEIGHTS_STAY},
    [DATA_PARALLEL_SERVER] = {SUM_STAGES, .when = WEIGHTS_UPDATED,
                              .root = "a parameter server", .updates = "only the server updates"},
    [DATA_PARALLEL_REPLICATED] = {SUM_BUFFERS, .when = WEIGHTS_FORWARD,
                                  .root = "DataParallel's first GPU", .updates = "only GPU 0 updates"},
};

bool scenario_rooted(const struct scenario *scenario)
{
    return forms[scenario->parallelism.data_parallel].root != NULL;
}

const char *scenario_root(const struct scenario *scenario)
{
    return scenario_rooted(scenario) ? forms[scenario->parallelism.data_parallel].root : "";
}

const char *scenario_root_updates(const struct scenario *scenario)
{
    return scenario_rooted(scenario) ? forms[scenario->parallelism.data_parallel].updates : "";
}

void shard_resolve(struct parallelism *spec)
{
    if (!spec->shard)
        spec->shard = spec->zero ? spec->data * spec->context : 0;
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

int shares_resolve(struct scenario *scenario, struct error *err)
{
    const struct list *shares = &scenario->batch.shares;
    int data = scenario->parallelism.data, rc = 0;
    double *weights, sum = 0;

    if (!shares->node || list_is_auto(shares))
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

void compression_resolve(struct compression_spec *spec)
{
    if (spec->method != COMPRESSION_NONE && !node_get(spec->node, "error_feedback"))
        spec->error_feedback = true;
    if (spec->method == COMPRESSION_POWERSGD && !spec->rank)
        spec->rank = 1;
    if (spec->method == COMPRESSION_TOP_K && isnan(spec->share))
        spec->share = 0.01;
    if (spec->method == COMPRESSION_QUANTIZED && !spec->bits)
        spec->bits = 8;
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
