/* The emitter of exchanges: a collective over all members of a stage becomes operations, message by message or as a
 * measured duration, and an event for their ends. And what ZeRO 3 exchanges, by layer or by tensor.
 *
 * Reads members and the events after which each of them begins, or a place and a layer.
 * Adds operations on lanes of collectives, and the events of their ends. */
#include "lower/exchange_internal.h"
#include "stage/stage_memory.h"

#include <stdlib.h>

#include "base/base.h"
#include "collective/collective.h"
#include "collective/measure.h"
#include "engine/event.h"
#include "engine/program.h"
#include "exchange/exchange.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

static size_t stream_lane(const struct lowering *lowering, int stream, int program_rank, int flow, int channel)
{
    size_t at = (size_t)stream * (size_t)lowering->program->ranks + (size_t)program_rank;

    return (at * (size_t)lowering->program->flows + (size_t)flow) * (size_t)lowering->lanes.channels + (size_t)channel;
}

/* FSDP's sums over the replicas that hold the same share have a stream of their own. */
uint32_t collective_lane(const struct lowering *lowering, enum group_kind kind, int program_rank, int flow,
                         int channel)
{
    return lowering->lanes.collective[stream_lane(lowering, kind == GROUP_SAME_SHARE, program_rank, flow, channel)];
}

/* A lane for each stream, rank, flow and channel. */
void make_collective_lanes(struct lowering *lowering)
{
    const struct process_groups *groups = &lowering->scenario->groups;
    const enum group_kind kinds[] = {
        groups->holds[PARAMETERS_COMMON], groups->sums[PARAMETERS_COMMON], groups->sums[PARAMETERS_APART],
        GROUP_SAME_SHARE,
    };
    int flows = lowering->program->flows;
    size_t count;

    lowering->lanes.streams = groups->of[GROUP_SAME_SHARE].exchanges ? 2 : 1;
    lowering->lanes.channels = 1;
    for (size_t i = 0; i < (size_t)plan_virtual_stages(lowering->plan) * COUNT(kinds); i++)
        if (groups->of[kinds[i % COUNT(kinds)]].exchanges) {
            int channels = members_of(&lowering->exchanges, kinds[i % COUNT(kinds)], (int)(i / COUNT(kinds)))->channels;

            lowering->lanes.channels = channels > lowering->lanes.channels ? channels : lowering->lanes.channels;
        }
    count = (size_t)lowering->program->ranks * (size_t)flows * (size_t)lowering->lanes.channels;
    lowering->lanes.collective = ARENA_ARRAY(&lowering->arena, uint32_t, count * (size_t)lowering->lanes.streams);
    for (int stream = 0; stream < lowering->lanes.streams; stream++)
        for (int rank = 0; rank < lowering->program->ranks; rank++)
            for (int i = 0; i < flows * lowering->lanes.channels; i++)
                lowering->lanes.collective[stream_lane(lowering, stream, rank, 0, i)] = program_lane(
                    lowering->program, rank, LANE_COLLECTIVE, stream * flows * lowering->lanes.channels + i);
}

static struct party *party_make(struct lowering *lowering, struct members *members)
{
    struct arena *arena = &lowering->arena;
    struct party *party = ARENA_ARRAY(arena, struct party, 1);

    *party = (struct party){
        .members = members, .after = ARENA_ARRAY(arena, struct event, members->all),
        .done = ARENA_ARRAY(arena, struct event, members->all),
        .lanes = ARENA_ARRAY(arena, uint32_t, members->all * members->channels),
        .ready = ARENA_ARRAY(arena, uint32_t, members->all),
        .ends = ARENA_ARRAY(arena, uint32_t, members->all * members->flows),
    };
    return party;
}

struct party *party_of(struct lowering *lowering, enum group_kind kind, int stage)
{
    struct party **known = &lowering->sums.parties[stage * GROUP_KIND_COUNT + (int)kind];

    return *known ? *known : (*known = party_make(lowering, members_of(&lowering->exchanges, kind, stage)));
}

struct party *party_tied(struct lowering *lowering, int number)
{
    struct party **known = &lowering->sums.tied[number];

    return *known ? *known : (*known = party_make(lowering, members_tied(&lowering->exchanges, number)));
}

/* The lane of a member's exchange: its stream's; each sum of tied gradients has lanes of its own. */
static uint32_t member_lane(struct lowering *lowering, const struct party *party, int i, int flow, int channel)
{
    const struct members *members = party->members;
    int streams = lowering->lanes.channels * lowering->lanes.streams;

    if (members->kind != GROUP_EMBEDDING)
        return collective_lane(lowering, members->kind, members->ranks[i], flow, channel);
    return program_lane(lowering->program, members->ranks[i], LANE_COLLECTIVE,
                        lowering->program->flows * streams + members->flows * party->exchanged + flow);
}

/* Of what a member's exchange waits for, the operation of a flow: in a sum of tied gradients of the GPU with that piece. */
static uint32_t flow_after(const struct lowering *lowering, const struct party *party, int i, int flow)
{
    const struct members *members = party->members;
    int own = rank_flows(&lowering->exchanges, members->ranks[i] % lowering->plan->stages);

    return event_flow(&party->after[i], own == members->flows ? flow : flow * own / members->flows);
}

/* One flow of each group's collective, on every channel. */
static void exchange_flow(struct lowering *lowering, struct party *party, const struct emission *exchange,
                          struct new_op like, int flow)
{
    struct members *members = party->members;
    int channels = members->channels;

    for (int i = 0; i < members->all * channels; i++)
        party->lanes[i] = member_lane(lowering, party, i / channels, flow, i % channels);
    /* one collective after another, as on NCCL's stream: each begins after the last operation of the first channel */
    for (int i = 0; i < members->all; i++) {
        party->ready[i] = flow_after(lowering, party, i, flow);
        like.lane = party->lanes[i * channels];
        if (channels > 1)
            party->ready[i] = program_add(lowering->program, like, &party->ready[i], 1);
    }
    for (int first = 0; first < members->all; first += members->size) {
        struct member_ops ops = {party->lanes + first * channels, party->ready + first,
                                 party->ends + flow * members->all + first};
        struct collective_choice choice = collective_lower(&(struct collective_call){
            exchange->collective, members_group(&lowering->exchanges, members, flow, first), exchange->bytes, channels,
        }, NULL, &ops, like, lowering->program, &lowering->measure->dags);

        if (exchange->collective->op == COLLECTIVE_ALL_REDUCE && members->kind != GROUP_EMBEDDING)
            exchanges_use(&lowering->exchanges, choice.used, choice.protocol);
    }
}

static void exchange_messages(struct lowering *lowering, struct party *party, const struct emission *exchange,
                              struct new_op like)
{
    int flows = party->members->flows, all = party->members->all;

    for (int t = 0; t < flows; t++)
        exchange_flow(lowering, party, exchange, like, t);
    for (int i = 0; i < all; i++) {
        for (int t = 0; t < flows; t++)
            lowering->sums.flow_ids[t] = party->ends[t * all + i];
        party->done[i] = event_all(&lowering->arena, lowering->sums.flow_ids, (size_t)flows);
    }
    party->exchanged++;
}

/* All members of a group begin when the last one is ready, and take the measured time. */
static void exchange_measured(struct lowering *lowering, struct party *party, const struct emission *exchange,
                              struct new_op like)
{
    struct members *members = party->members;

    for (int first = 0; first < members->here; first += members->size) {
        int end = first + members->size < members->here ? first + members->size : members->here;
        struct measured measured =
            members_measure(&lowering->exchanges, members, first, exchange->collective, exchange->bytes);
        struct waits all = {0};
        uint32_t begin;

        BUG_IF(lowering->exchanges.alike.exact && !measured.alike && !lowering->measure->failed);
        for (int i = first; i < end; i++)
            wait_for(&all, party->after[i]);
        like.lane = member_lane(lowering, party, first, 0, 0);
        like.amount = like.compute.communication = like.compute.sent = like.compute.vector = 0;
        begin = program_add(lowering->program, like, all.items, all.count);
        free(all.items);
        like.amount = like.compute.communication = measured.seconds;
        like.compute.sent = measured.bytes_sent;
        like.compute.vector = exchange->bytes;
        measure_carry(lowering->measure, measured.index, measured.first, (int)members->kind,
                      measured.bytes_sent * stands_for(&lowering->exchanges, end - first, members->size));
        for (int i = first; i < end; i++) {
            like.lane = member_lane(lowering, party, i, 0, 0);
            party->done[i] = event_of(program_add(lowering->program, like, &begin, 1));
        }
    }
}

void exchange_all(struct lowering *lowering, struct party *party, struct emission exchange)
{
    const struct members *members = party->members;
    struct new_op like = {
        .kind = OP_COMPUTE, .what = (uint8_t)exchange.what, .mb = -1, .stage = members->stage,
        .exchange = exchange_number(members->kind, exchange.collective->op),
    };

    for (int i = 0; i < members->here; i++)
        party->done[i] = event_of(NO_OP);
    if (members->size == 1 || exchange.bytes == 0)
        return;
    if (lowering->exchanges.alike.measured && members->kind != GROUP_EMBEDDING)     /* messages of two GPUs are few */
        exchange_measured(lowering, party, &exchange, like);
    else
        exchange_messages(lowering, party, &exchange, like);
}

struct event exchange_alone(struct lowering *lowering, struct place here, enum group_kind kind,
                            struct emission exchange, struct event after)
{
    int prank = here.prank;
    struct measured measured;

    if (exchange.bytes == 0)
        return event_of(NO_OP);
    measured = exchange_overlapped(&lowering->exchanges, kind, here.stage, here.replica, exchange.collective, exchange.bytes,
                                   &lowering->ranks[prank].overlapped);
    measure_carry(lowering->measure, measured.index, measured.first, (int)kind,
                  measured.bytes_sent *
                      stands_for(&lowering->exchanges, 1, scenario_groups(lowering->scenario, here.rank)->of[kind].size));
    return event_of(lower_after(lowering, (struct new_op){
        .kind = OP_COMPUTE, .what = (uint8_t)exchange.what, .lane = collective_lane(lowering, kind, prank, 0, 0),
        .exchange = exchange_number(kind, exchange.collective->op), .mb = -1, .stage = here.stage, .amount = measured.seconds,
        .compute = {.communication = measured.seconds, .sent = measured.bytes_sent, .vector = exchange.bytes},
    }, after));
}

/* So many parameters of a class of a layer; `each`: B a parameter. */
struct layer_part {
    const struct slice *layer;
    enum parameter_class class;
    double parameters, each;
};

/* Exchanges a part of a layer, all at once or, with `flatten: false`, a piece after the other. */
static struct event exchange_layer(struct lowering *lowering, struct place here, const struct layer_part *part,
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
        struct event done = exchange_alone(lowering, here, kind, exchange, after);

        last = done.count ? done : last;
    }
    piece = part->parameters - (flatten ? 0 : layer->trained.of[part->class]);       /* frozen ones are no pieces */
    exchange.bytes = piece * part->each;
    struct event done = exchange_alone(lowering, here, kind, exchange, after);

    return done.count ? done : last;
}

struct event gather_layer(struct lowering *lowering, struct place here, const struct slice *layer, struct event after)
{
    const struct scenario *scenario = lowering->scenario;
    double each = scenario_parameter_bytes(scenario).weights;
    struct event last = {0};

    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++) {
        struct layer_part part = {layer, class, slice_weights(layer).of[class], each};
        struct emission exchange = {scenario->recipe.weights.collective, WHAT_WEIGHTS, 0};
        struct event done = exchange_layer(lowering, here, &part, exchange, after);

        last = done.count ? done : last;
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
        done = exchange_alone(lowering, *here, GROUP_SAME_SHARE, (struct emission){across, WHAT_SYNC, bytes / divided}, done);
    if (done.count)
        here->chunk_state->synced = done;
    return done;
}

struct event scatter_layer(struct lowering *lowering, struct place here, const struct slice *layer, bool last,
                           struct event after)
{
    double each = scenario_parameter_bytes(lowering->scenario).sent;
    struct event end = after;

    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++) {
        struct layer_part part = {layer, class, layer->trained.of[class], each};
        struct emission exchange = {lowering->scenario->recipe.gradients.collective, WHAT_SYNC, 0};
        struct event done = exchange_layer(lowering, here, &part, exchange, after);

        done = scattered(lowering, &here, class, last ? part.parameters * each : 0, done);
        end = done.count ? done : end;
    }
    return end;
}

/* ZeRO 3 tensor by tensor (struct tensor_walk). A gather begins when the kernels of the step before have ended, because
 * it may need their memory. The gathers of a step go before the scatter of its gradients. All on one stream. */
struct tensors_walk {
    struct lowering *lowering;
    struct place here;
    struct work work;
    struct tensor_walk steps;
    struct event *gathered;          /* a piece: its last gather */
    struct contention *contention;
    uint32_t *latest;
};

/* Lowers the gathers of step k, the kernels of which wait for its own one and overlap with the others. */
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
static void scatter_tensor(struct tensors_walk *walk, const struct tensor_step *step, bool last)
{
    struct lowering *lowering = walk->lowering;
    double bytes = step->trained * scenario_parameter_bytes(lowering->scenario).sent;
    struct event done = exchange_alone(lowering, walk->here, lowering->scenario->groups.sums[step->class], (struct emission){
        lowering->scenario->recipe.gradients.collective, WHAT_SYNC, bytes,
    }, event_of(*walk->latest));

    done = scattered(lowering, &walk->here, step->class, last ? bytes : 0, done);
    if (zero_in_turn(lowering)) {
        wait_for(&lowering->waits, done);
        *walk->contention = (struct contention){0};
    }
}

/* Its part of the layer's kernels; the exchanges within the layer go with its last step. */
static void compute_tensor(struct tensors_walk *walk, const struct tensor_step *step, struct new_op op)
{
    struct work_cost all = slice_cost(&walk->here, step->slice, step->kind);
    struct work_cost part = step->ends ? all : (struct work_cost){0};
    struct work work = {.kind = step->kind, .chunk = walk->work.chunk, .mb = walk->work.mb};

    part.times.seconds = all.times.seconds * step->share;
    lower_compute(walk->lowering, &walk->here, work, &part, &op);
    *walk->contention = (struct contention){0};
}

uint32_t tensors_work(struct lowering *lowering, struct place here, struct work work, bool fused, bool completes,
                      struct new_op op)
{
    int prank = here.prank;
    struct tensors_walk walk = {
        .lowering = lowering, .here = here, .work = work, .contention = &lowering->ranks[prank].overlapped,
        .latest = &lowering->ranks[prank].latest,
    };
    bool scatters = work.kind == BACKWARD || work.kind == BACKWARD_WEIGHT;
    double frees = op.frees;

    op.frees = 0;
    if (fused)                       /* the span begins as a backward */
        lower_compute(lowering, &here, work, &(struct work_cost){0}, &op);
    if (fused)
        op = (struct new_op){.continues = true};
    tensor_walk_init(&walk.steps, lowering->scenario, here.held, work.kind, fused);
    walk.gathered = xcalloc(walk.steps.steps.count + 1, sizeof *walk.gathered);
    for (size_t k = 0; k < walk.steps.steps.count; k++) {
        const struct tensor_step *step = &walk.steps.steps.items[k];

        if (work.kind != BACKWARD_WEIGHT)
            gather_tensors(&walk, k);
        op.frees = k + 1 == walk.steps.steps.count ? frees : 0;
        compute_tensor(&walk, step, op);
        op = (struct new_op){.continues = true};
        if (scatters && step->kind == work.kind)
            scatter_tensor(&walk, step, completes);
        tensor_walk_leave(&walk.steps, k);
    }
    tensor_walk_release(&walk.steps);
    free(walk.gathered);
    return *walk.latest;
}
