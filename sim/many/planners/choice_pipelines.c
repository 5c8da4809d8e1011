/* The questions of the planners whose stages are not tensor parallel: PipeDream, PipeDream-2BW, Varuna and DAPPLE.
 * Where the scenario says a tensor degree, a device of theirs is a tensor group. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "model/model.h"
#include "planners/choice_internal.h"
#include "planners/dapple.h"
#include "planners/pipedream.h"
#include "planners/two_bw.h"
#include "planners/varuna.h"

/* Tensor groups of the cluster, and of a node. */
static int groups_of(const struct profiled *profiled)
{
    return profiled->gpus / profiled->tensors[0];
}

static int node_groups(const struct profiled *profiled)
{
    int groups = profiled->per_node / profiled->tensors[0];

    return groups < 1 ? 1 : groups < groups_of(profiled) ? groups : groups_of(profiled);
}

static void set_pipedream(struct planner_choices *choices, const struct profiled *profiled,
                          const struct planned *planned)
{
    char *replicas = arena_strdup(&choices->arena, "");
    int ranks = 0, turns = 1, minibatches = choice_samples(profiled) / profiled->micro;

    for (size_t s = 0; s < planned->count; s++) {
        turns = lcm(turns, planned->stages[s].data, 1 << 20);
        replicas = arena_printf(&choices->arena, "%s%s%d", replicas, s ? ", " : "", planned->stages[s].data);
        ranks += planned->stages[s].data;
    }
    choice_set(choices, "strategy.tensor=%d", profiled->tensors[0]);
    if (planned->count == 1) { /* data parallelism: every minibatch of all replicas ends in an update */
        choice_set(choices, "strategy.schedule=1f1b");
        choice_set(choices, "strategy.data=%d", ranks);
        choice_set(choices, "batch.global=%d", ranks * profiled->micro);
        return;
    }
    choice_set(choices, "strategy.schedule=pipedream");
    choice_set(choices, "strategy.zero=0");
    choice_set(choices, "strategy.pipeline=%d", ranks);
    choice_set(choices, "strategy.data=1");
    choice_set(choices, "strategy.stage_replicas=[%s]", replicas);
    if (turns && minibatches % turns) /* all replicas of a stage take as many turns */
        choice_set(choices, "batch.global=%d", (minibatches / turns + 1) * turns * profiled->micro);
    choice_split(choices, profiled, planned);
}

int choose_pipedream(struct planner_choices *choices, const struct profiled *profiled, struct error *err)
{
    struct pipedream_level levels[2] = {{node_groups(profiled), profiled->inside}};
    int nodes = groups_of(profiled) / node_groups(profiled);

    (void)err;
    levels[1] = (struct pipedream_level){nodes, profiled->between};
    for (int paper = 0; paper < 2; paper++) {
        struct planned planned;

        pipedream_plan(&(struct pipedream){choice_layers(choices, profiled, 0), profiled->count, levels,
                                           nodes > 1 ? 2u : 1u, paper, false},
                       &planned);
        for (size_t s = 0; s < planned.count; s++)
            planned.stages[s].tensor = profiled->tensors[0];
        choice_add(choices, "pipedream", paper ? "paper" : "released", "of the slowest stage, a minibatch", &planned);
        if (planned.count)
            set_pipedream(choices, profiled, &planned);
    }
    return 0;
}

/* A block's share of the model: 2BW takes all blocks to be alike. */
static struct two_bw two_bw_of(const struct profiled *profiled, bool recompute)
{
    struct two_bw question = {
        .blocks = (int)profiled->blocks, .workers = groups_of(profiled), .held = 1, .memory = profiled->memory};
    double blocks = (double)profiled->blocks;

    for (size_t i = 0; i < profiled->count; i++) {
        const struct profiled_layer *layer = &profiled->layers[0][i];

        question.seconds += (layer->forward * (recompute ? 2 : 1) + layer->backward) / blocks;
        question.weights += layer->weights / blocks;
        question.activations += (recompute ? layer->input : layer->activation) / blocks;
        question.output = fmax(question.output, profiled_output(profiled, 0, i));
    }
    return question;
}

int choose_two_bw(struct planner_choices *choices, const struct profiled *profiled, struct error *err)
{
    size_t workers = (size_t)groups_of(profiled);
    double *depth = ARENA_ARRAY(&choices->arena, double, workers + 1);
    double *width = ARENA_ARRAY(&choices->arena, double, workers + 1);

    (void)err;
    for (size_t d = 1; d <= workers; d++) {
        depth[d] = profiled_bandwidth(profiled, profiled->gpus); /* replicas are the nearer neighbours */
        width[d] = profiled_bandwidth(profiled, (int)d * profiled->tensors[0]);
    }
    for (int paper = 0; paper < 2; paper++) {
        struct planned planned = {.objective = INFINITY}, other;

        for (int recompute = 0; recompute <= paper; recompute++) {
            struct two_bw question = two_bw_of(profiled, recompute);

            question.depth = depth;
            question.width = width;
            two_bw_plan(&question, &other);
            for (size_t s = 0; s < other.count; s++) {
                other.stages[s].tensor = profiled->tensors[0];
                other.stages[s].recomputed = recompute ? other.stages[s].end - other.stages[s].begin : 0;
            }
            if (other.objective < planned.objective)
                planned = other;
        }
        choice_add(choices, "2bw", paper ? "paper" : "released", "of the slowest stage, a micro-batch", &planned);
        if (!planned.count)
            continue;
        choice_set(choices, "strategy.schedule=pipedream-2bw");
        choice_set(choices, "strategy.zero=0");
        choice_set(choices, "strategy.tensor=%d", profiled->tensors[0]);
        choice_set(choices, "strategy.pipeline=%zu", planned.count);
        choice_set(choices, "strategy.data=%d", planned.stages[0].data);
        choice_set(choices, "memory.recompute=%s", planned.stages[0].recomputed ? "full" : "none");
    }
    return 0;
}

/* Varuna's question: the layers of equal stages, with the embedding on the first and the output layer on the last. */
static struct planned equal_stages(const struct profiled *profiled, int depth, int data)
{
    struct planned planned = {.count = (size_t)depth};
    size_t share = profiled->blocks / (size_t)depth, at = 0;

    for (size_t s = 0; s < planned.count; s++) {
        size_t begin = at;

        for (size_t blocks = 0; at < profiled->count && (blocks < share || s + 1 == planned.count); at++)
            blocks += profiled->layers[0][at].block;
        planned.stages[s] = (struct planned_stage){begin, at, data, profiled->tensors[0], at - begin};
    }
    return planned;
}

/* Sums over the layers of a stage. */
static struct profiled_layer stage_sum(const struct profiled *profiled, size_t k, const struct planned_stage *stage)
{
    struct profiled_layer sum = {0};

    for (size_t i = stage->begin; i < stage->end; i++) {
        const struct profiled_layer *layer = &profiled->layers[k][i];

        sum.forward += layer->forward;
        sum.backward += layer->backward;
        sum.weights += layer->weights;
        sum.states += layer->states;
        sum.activation += layer->activation;
        sum.input += layer->input;
    }
    return sum;
}

/* Samples by which Varuna counts micro-batches: where their times are given, there is one size. */
static double micro_unit(const struct profiled *profiled)
{
    return model_has_samples(&profiled->scenario->model) ? 1 : profiled->micro;
}

/* States, the inputs of all layers of the micro-batches in flight, and one micro-batch's activations. All grow with the
 * micro-batch, whose size the profile has. */
static bool varuna_fits(const void *context, const struct varuna_choice *choice)
{
    const struct profiled *profiled = context;
    double times = choice->micro * micro_unit(profiled) / profiled->micro;

    if (choice->micro > 1 && !model_has_samples(&profiled->scenario->model))
        return false;
    for (int s = 0; s < choice->depth; s++) {
        struct planned stages = equal_stages(profiled, choice->depth, choice->data);
        struct profiled_layer sum = stage_sum(profiled, 0, &stages.stages[s]);

        if (sum.states + times * (choice->depth * sum.input + sum.activation) > profiled->memory)
            return false;
    }
    return true;
}

/* The slowest stage's works of all micro-batches, the fill and drain, each with a recomputed forward; transfers on the
 * way there and back; the largest all-reduce. */
static double varuna_seconds(const void *context, const struct varuna_choice *choice)
{
    const struct profiled *profiled = context;
    struct planned stages = equal_stages(profiled, choice->depth, choice->data);
    double slowest = 0, exchange = 0, times = choice->micro * micro_unit(profiled) / profiled->micro, transfer = 0;

    for (int s = 0; s < choice->depth; s++) {
        struct profiled_layer sum = stage_sum(profiled, 0, &stages.stages[s]);

        slowest = fmax(slowest, times * (2 * sum.forward + sum.backward));
        exchange = fmax(exchange, 2 * sum.weights * (choice->data - 1) / choice->data /
                                      profiled_bandwidth(profiled, choice->data * profiled->tensors[0]));
        if (s + 1 < choice->depth)
            transfer += 2 * times * profiled_output(profiled, 0, stages.stages[s].end - 1) /
                        profiled_bandwidth(profiled, profiled->gpus);
    }
    return (choice->micro_batches + choice->depth - 1) * slowest + transfer + exchange;
}

int choose_varuna(struct planner_choices *choices, const struct profiled *profiled, struct error *err)
{
    int unit = (int)micro_unit(profiled);
    const struct varuna question = {(int)profiled->blocks, groups_of(profiled), choice_samples(profiled) / unit,
                                    varuna_fits,           varuna_seconds,      profiled};
    struct varuna_choice found = varuna_plan(&question);
    struct planned planned = {.objective = INFINITY};

    (void)err;
    if (isfinite(found.seconds)) {
        planned = equal_stages(profiled, found.depth, found.data);
        planned.objective = found.seconds;
    }
    choice_add(choices, "varuna", "", "of an iteration", &planned);
    if (!planned.count)
        return 0;
    choice_set(choices, "strategy.schedule=varuna");
    choice_set(choices, "strategy.tensor=%d", profiled->tensors[0]);
    choice_set(choices, "strategy.pipeline=%d", found.depth);
    choice_set(choices, "strategy.data=%d", found.data);
    choice_set(choices, "batch.micro=%d", found.micro * unit);
    choice_set(choices, "batch.global=%d", found.data * found.micro * unit * found.micro_batches);
    choice_split(choices, profiled, &planned);
    return 0;
}

int choose_dapple(struct planner_choices *choices, const struct profiled *profiled, struct error *err)
{
    struct planner_layer *layers = choice_layers(choices, profiled, 0);
    int groups = groups_of(profiled), micro_batches = choice_samples(profiled) / profiled->micro;
    double *exchange = ARENA_ARRAY(&choices->arena, double, groups + 1), forward = 0, all = 0;

    (void)err;
    for (int r = 1; r <= groups; r++)
        exchange[r] = profiled_bandwidth(profiled, r * profiled->tensors[0]);
    for (size_t i = 0; i < profiled->count; i++) {
        forward += profiled->layers[0][i].forward;
        all += layers[i].seconds;
    }
    for (int paper = 0; paper < 2; paper++) {
        struct dapple question = {layers,
                                  profiled->count,
                                  groups,
                                  micro_batches,
                                  profiled_bandwidth(profiled, profiled->gpus),
                                  exchange,
                                  forward / all,
                                  paper,
                                  0};
        struct planned planned, best = {.objective = INFINITY};

        dapple_plan(&question, &planned);
        for (question.data = 1; !choice_runs(profiled, &planned, true) && question.data <= groups; question.data++) {
            struct planned equal;

            if (groups % question.data || !profiled_divides(profiled, question.data))
                continue;
            dapple_plan(&question, &equal);
            if (equal.objective < best.objective)
                best = equal;
        }
        choice_flushed(choices, profiled,
                       &(struct flushed){"dapple", paper ? "paper" : "released", "of an iteration", true}, &planned,
                       &best);
    }
    return 0;
}
