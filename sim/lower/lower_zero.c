/* What ZeRO 3 exchanges: the weights and gradients of a layer at once, or tensor by tensor beside its kernels. All
 * replicas do the same at the same time, so these are measured durations on the rank's own stream.
 *
 * Reads a place, and a layer or the steps through the tensors of a stage (tensor_walk).
 * Adds gathers and scatters, and what kernels wait for. */
#include "lower/party.h"
#include "stage/stage_memory.h"

#include <stdlib.h>

#include "base/base.h"
#include "scenario/scenario.h"
#include "stage/stage.h"

/* The later of the ends of two exchanges on a stream, each of which may be empty. */
static struct event later_of(struct event before, struct event after)
{
    return after.count ? after : before;
}

/* A number of parameters of one class of a layer; `each`: B a parameter. */
struct layer_part {
    const struct slice *layer;
    enum parameter_class class;
    double parameters, each;
};

/* Exchanges a part of a layer, all at once or, with `flatten: false`, a piece after the other. */
static struct event exchange_layer(struct lowering *lowering, const struct place *here, const struct layer_part *part,
                                   struct emission exchange, struct event after)
{
    const struct slice *layer = part->layer;
    enum group_kind kind = lowering->scenario->groups.sums[part->class];
    bool flatten = lowering->scenario->parallelism.flatten;
    struct event last = {0};
    double piece;

    for (size_t next = 0; !flatten && next < layer->ntensors;) {
        next = slice_piece(layer, part->class, next, &piece);
        exchange.bytes = piece * part->each;
        last = later_of(last, exchange_alone(lowering, here, kind, exchange, after));
    }
    piece = part->parameters - (flatten ? 0 : layer->trained.of[part->class]);       /* frozen ones are no pieces */
    exchange.bytes = piece * part->each;
    return later_of(last, exchange_alone(lowering, here, kind, exchange, after));
}

struct event gather_layer(struct lowering *lowering, const struct place *here, const struct slice *layer, struct event after)
{
    const struct scenario *scenario = lowering->scenario;
    double each = scenario_parameter_bytes(scenario).weights;
    struct event last = {0};

    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++) {
        struct layer_part part = {layer, class, slice_weights(layer).of[class], each};
        struct emission exchange = {scenario->recipe.weights.collective, WHAT_WEIGHTS, 0};

        last = later_of(last, exchange_layer(lowering, here, &part, exchange, after));
    }
    return last;
}

/* Gradients of a class have been scattered, at `done` unless there were none. If they are the iteration's last ones, of so
 * many bytes, each share is then summed over the replicas that hold it. Returns the last sum. */
static struct event scattered(struct lowering *lowering, const struct place *here, enum parameter_class class, double bytes,
                              struct event done)
{
    const struct collective *across = lowering->scenario->recipe.gradients.across;
    double divided = scenario_recipe(lowering->scenario, here->rank)->divided[HELD_STATES][class];

    if (across && bytes > 0 && done.count)
        done = exchange_alone(lowering, here, GROUP_SAME_SHARE, (struct emission){across, WHAT_SYNC, bytes / divided}, done);
    if (done.count)
        here->chunk_state->synced = done;
    return done;
}

struct event scatter_layer(struct lowering *lowering, const struct place *here, const struct slice *layer, struct event after)
{
    double each = scenario_parameter_bytes(lowering->scenario).sent;
    bool last = here->marks & ENTRY_COMPLETES;
    struct event end = after;

    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++) {
        struct layer_part part = {layer, class, layer->trained.of[class], each};
        struct emission exchange = {lowering->scenario->recipe.gradients.collective, WHAT_SYNC, 0};
        struct event done = exchange_layer(lowering, here, &part, exchange, after);

        end = later_of(end, scattered(lowering, here, class, last ? part.parameters * each : 0, done));
    }
    return end;
}

/* ZeRO 3 tensor by tensor (struct tensor_walk). A gather begins when the kernels of the step before have ended, because
 * it may need their memory. The gathers of a step go before the scatter of its gradients. All on one stream. */
struct tensors_walk {
    struct lowering *lowering;
    const struct place *here;
    struct tensor_walk steps;
    struct event *gathered;          /* a piece: its last gather */
    struct contention *contention;
    uint32_t *latest;
};

/* Lowers the gathers of step k. The step's kernels wait for its own gather and overlap with the others. */
static void gather_tensors(struct tensors_walk *walk, size_t k)
{
    struct lowering *lowering = walk->lowering;
    const struct scenario *scenario = lowering->scenario;
    struct event before = event_of(*walk->latest);
    struct contention contention = *walk->contention;
    size_t next;

    while (tensor_walk_gathers(&walk->steps, k, &next)) {
        const struct tensor_step *step = &walk->steps.steps.items[next];

        walk->gathered[step->piece] =
            exchange_alone(lowering, walk->here, scenario->groups.sums[step->class], (struct emission){
                scenario->recipe.weights.collective, WHAT_WEIGHTS,
                step->parameters * scenario_parameter_bytes(scenario).weights,
            }, before);
        if (next == k || next == walk->steps.held || zero_in_turn(lowering))
            *walk->contention = contention;
        if (next == walk->steps.held || zero_in_turn(lowering))
            wait_for(&lowering->waits, walk->gathered[step->piece]);
    }
    wait_for(&lowering->waits, walk->gathered[walk->steps.steps.items[k].piece]);
}

/* Scatters the gradients of a step, and at the end of the iteration sums each share over the replicas that hold it. */
static void scatter_tensor(struct tensors_walk *walk, const struct tensor_step *step)
{
    struct lowering *lowering = walk->lowering;
    bool last = walk->here->marks & ENTRY_COMPLETES;
    double bytes = step->trained * scenario_parameter_bytes(lowering->scenario).sent;
    struct event done = exchange_alone(lowering, walk->here, lowering->scenario->groups.sums[step->class], (struct emission){
        lowering->scenario->recipe.gradients.collective, WHAT_SYNC, bytes,
    }, event_of(*walk->latest));

    done = scattered(lowering, walk->here, step->class, last ? bytes : 0, done);
    if (zero_in_turn(lowering)) {
        wait_for(&lowering->waits, done);
        *walk->contention = (struct contention){0};
    }
}

/* Its part of the layer's kernels; the exchanges within the layer go with its last step. */
static void compute_tensor(struct tensors_walk *walk, const struct tensor_step *step, struct new_op op)
{
    struct work_cost all = slice_cost(walk->here, step->slice, step->kind);
    struct work_cost part = step->ends ? all : (struct work_cost){0};

    part.times.seconds = all.times.seconds * step->share;
    lower_compute(walk->lowering, walk->here, step->kind, &part, &op);
    *walk->contention = (struct contention){0};
}

uint32_t tensors_work(struct lowering *lowering, const struct place *here, bool fused, struct new_op op)
{
    enum work_kind kind = here->work.kind;
    struct tensors_walk walk = {
        .lowering = lowering, .here = here, .contention = &lowering->ranks[here->prank].overlapped,
        .latest = &lowering->ranks[here->prank].latest,
    };
    double frees = op.frees;

    op.frees = 0;
    if (fused) {                     /* the span begins as a backward */
        lower_compute(lowering, here, kind, &(struct work_cost){0}, &op);
        op = (struct new_op){.continues = true};
    }
    tensor_walk_init(&walk.steps, lowering->scenario, here->held, kind, fused);
    walk.gathered = xcalloc(walk.steps.steps.count + 1, sizeof *walk.gathered);
    for (size_t k = 0; k < walk.steps.steps.count; k++) {
        const struct tensor_step *step = &walk.steps.steps.items[k];

        if (kind != BACKWARD_WEIGHT)
            gather_tensors(&walk, k);
        op.frees = k + 1 == walk.steps.steps.count ? frees : 0;
        compute_tensor(&walk, step, op);
        op = (struct new_op){.continues = true};
        if ((kind == BACKWARD || kind == BACKWARD_WEIGHT) && step->kind == kind)
            scatter_tensor(&walk, step);
        tensor_walk_leave(&walk.steps, k);
    }
    tensor_walk_release(&walk.steps);
    free(walk.gathered);
    return *walk.latest;
}
