/* The exchanges of ZeRO 3: the weights and gradients of a layer at once, or tensor by tensor while its kernels run. All
 * replicas do the same at the same time, so an exchange is a measured duration on the rank's stream.
 *
 * Reads a place, and a layer or the steps through the tensors of a stage (tensor_walk).
 * Adds gathers and scatters, and lets kernels wait for them. */
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

/* The parameters of one class in a layer: how many they are, and B of each. */
struct layer_part {
    const struct slice *layer;
    enum parameter_class class;
    double parameters, each;
};

/* Exchanges a part of a layer, all at once or, with `flatten: false`, one piece after another. Returns the last end. */
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
    /* all parameters, or those that are in no piece: frozen ones, at once */
    piece = part->parameters - (flatten ? 0 : layer->trained.of[part->class]);
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

/* After a scatter of the gradients of a class, which ended at `done` (empty: there were none). `bytes`: of all
 * gradients, if they are the last ones of the iteration, else 0. Each share of the last ones is summed over the
 * replicas that hold it. Returns the last sum. */
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

/* The state of lowering a work tensor by tensor. A gather begins when the kernels of the step before have ended,
 * because it may need their memory. A step's gathers go before the scatter of its gradients, on one stream. */
struct by_tensors {
    struct lowering *lowering;
    const struct place *here;
    struct tensor_walk walk;
    struct event *gathered;          /* [piece]: its last gather */
    struct contention *contention;   /* the rank's `overlapped` */
    uint32_t *latest;                /* the rank's */
};

/* Lowers the gathers of step k: of its piece, and of later pieces ahead of their steps. The step's kernels wait for the
 * gather of its piece, and overlap with the others; they wait for all where collectives do not overlap with kernels. */
static void gather_tensors(struct by_tensors *state, size_t k)
{
    struct lowering *lowering = state->lowering;
    const struct scenario *scenario = lowering->scenario;
    struct event before = event_of(*state->latest);
    struct contention contention = *state->contention;
    size_t next;

    while (tensor_walk_gathers(&state->walk, k, &next)) {
        const struct tensor_step *step = &state->walk.steps.items[next];

        state->gathered[step->piece] =
            exchange_alone(lowering, state->here, scenario->groups.sums[step->class], (struct emission){
                scenario->recipe.weights.collective, WHAT_WEIGHTS,
                step->parameters * scenario_parameter_bytes(scenario).weights,
            }, before);
        if (next == k || next == state->walk.held || zero_in_turn(lowering))
            *state->contention = contention;
        if (next == state->walk.held || zero_in_turn(lowering))
            wait_for(&lowering->waits, state->gathered[step->piece]);
    }
    wait_for(&lowering->waits, state->gathered[state->walk.steps.items[k].piece]);
}

/* Scatters the gradients of a step, and at the end of the iteration sums each share over the replicas that hold it. */
static void scatter_tensor(struct by_tensors *state, const struct tensor_step *step)
{
    struct lowering *lowering = state->lowering;
    bool last = state->here->marks & ENTRY_COMPLETES;
    double bytes = step->trained * scenario_parameter_bytes(lowering->scenario).sent;
    struct emission exchange = {lowering->scenario->recipe.gradients.collective, WHAT_SYNC, bytes};
    struct event done = exchange_alone(lowering, state->here, lowering->scenario->groups.sums[step->class], exchange,
                                       event_of(*state->latest));

    done = scattered(lowering, state->here, step->class, last ? bytes : 0, done);
    if (zero_in_turn(lowering)) {
        wait_for(&lowering->waits, done);
        *state->contention = (struct contention){0};
    }
}

/* Computes a step's part of its layer's kernels. The exchanges within the layer go with the layer's last step. */
static void compute_tensor(struct by_tensors *state, const struct tensor_step *step, struct new_op op)
{
    struct work_cost all = slice_cost(state->here, step->slice, step->kind);
    struct work_cost part = step->ends ? all : (struct work_cost){0};

    part.times.seconds = all.times.seconds * step->share;
    part.times.bases = all.times.bases;
    lower_compute(state->lowering, state->here, step->kind, &part, &op);
    *state->contention = (struct contention){0};
}

uint32_t tensors_work(struct lowering *lowering, const struct place *here, bool fused, struct new_op op)
{
    enum work_kind kind = here->work.kind;
    struct by_tensors state = {
        .lowering = lowering, .here = here, .contention = &lowering->ranks[here->prank].overlapped,
        .latest = &lowering->ranks[here->prank].latest,
    };
    double frees = op.frees;

    op.frees = 0;
    if (fused) {                     /* the span begins as a backward */
        lower_compute(lowering, here, kind, &(struct work_cost){0}, &op);
        op = (struct new_op){.continues = true};
    }
    tensor_walk_init(&state.walk, lowering->scenario, here->held, kind, fused);
    state.gathered = xcalloc(state.walk.steps.count + 1, sizeof *state.gathered);
    for (size_t k = 0; k < state.walk.steps.count; k++) {
        const struct tensor_step *step = &state.walk.steps.items[k];

        if (kind != BACKWARD_WEIGHT)
            gather_tensors(&state, k);
        op.frees = k + 1 == state.walk.steps.count ? frees : 0;
        compute_tensor(&state, step, op);
        op = (struct new_op){.continues = true};
        if ((kind == BACKWARD || kind == BACKWARD_WEIGHT) && step->kind == kind)
            scatter_tensor(&state, step);
        tensor_walk_leave(&state.walk, k);
    }
    tensor_walk_release(&state.walk);
    free(state.gathered);
    return *state.latest;
}
