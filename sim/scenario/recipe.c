#include "scenario/recipe.h"

#include <math.h>

#include "scenario/scenario.h"

const char *const server_names[] = {"star", "ring", "tree", NULL};

/* The tables of recipe.h. */
struct form { enum sum_unit unit; bool flush, rooted; enum weights_moment when; };
static const struct form forms[] = {
    [DATA_PARALLEL_DDP] = {SUM_BUCKETS, .when = WEIGHTS_STAY},
    [DATA_PARALLEL_SYNCHRONOUS] = {SUM_STAGES, .flush = true, .when = WEIGHTS_STAY},
    [DATA_PARALLEL_SERVER] = {SUM_STAGES, .rooted = true, .when = WEIGHTS_UPDATED},
    [DATA_PARALLEL_REPLICATED] = {SUM_BUFFERS, .rooted = true, .when = WEIGHTS_FORWARD},
};
static const struct sharing { bool every, layers, divides[HELD_COUNT]; enum weights_moment when; } sharings[] = {
    [1] = {.divides = {[HELD_STATES] = true}, .when = WEIGHTS_UPDATED},
    [2] = {.every = true, .divides = {[HELD_GRADIENTS] = true, [HELD_STATES] = true}, .when = WEIGHTS_UPDATED},
    [3] = {.layers = true,
           .divides = {[HELD_WEIGHTS] = true, [HELD_GRADIENTS] = true, [HELD_STATES] = true}, .when = WEIGHTS_LAYER},
};

/* PyTorch's pipeline stages add up whole gradients (torch/distributed/pipelining/stage.py, backward_maybe_with_nosync:
 * set_requires_gradient_sync(False)), and their backwards give no weights back (set_reshard_after_backward(False)). A
 * rank that has computed all scatters the gradients (schedules.py: perform_reduce_grad at the end of a step). */
static void sum_once(struct recipe *recipe)
{
    recipe->gradients.once = recipe->gradients.flush = true;
    recipe->gradients.every = false;
    recipe->gradients.unit = SUM_STAGES;
    recipe->gradients.first_bucket = recipe->gradients.bucket = INFINITY;
    recipe->weights.stay_backward = recipe->weights.when == WEIGHTS_LAYER;
    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++)
        recipe->divided[HELD_GRADIENTS][class] = 1;
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
    if (sharing->divides[HELD_GRADIENTS] && spec->sums_once)
        sum_once(recipe);
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
        .weights.when = form->when, .rooted = form->rooted,
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

double recipe_share(const struct recipe *recipe, enum held held, struct by_class amount)
{
    double share = 0;

    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++)
        share += amount.of[class] / recipe->divided[held][class];
    return share;
}

double recipe_exchanged(const struct scenario *scenario, struct by_class amount)
{
    const struct process_groups *groups = &scenario->groups;
    double exchanged = 0;

    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++)
        exchanged += groups->of[groups->holds[class]].size > 1 ? amount.of[class] : 0;
    return exchanged;
}
