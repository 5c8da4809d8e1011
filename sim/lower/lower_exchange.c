/* The emitter of exchanges: a collective over all members of a stage becomes operations, message by message or as a
 * measured duration, and an event for their ends. Exchanges within a work become a part of its operation. */
#include "lower/exchange_internal.h"

#include <stdlib.h>

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
            int channels = members_of(lowering, kinds[i % COUNT(kinds)], (int)(i / COUNT(kinds)))->channels;

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

/* The lane of a member's exchange: its stream's; each sum of tied gradients has lanes of its own. */
static uint32_t member_lane(struct lowering *lowering, const struct members *members, int i, int flow, int channel)
{
    int streams = lowering->lanes.channels * lowering->lanes.streams;

    if (members->kind != GROUP_EMBEDDING)
        return collective_lane(lowering, members->kind, members->ranks[i], flow, channel);
    return program_lane(lowering->program, members->ranks[i], LANE_COLLECTIVE,
                        lowering->program->flows * streams + members->flows * members->exchanged + flow);
}

/* Of what a member's exchange waits for, the operation of a flow: in a sum of tied gradients of the GPU with that piece. */
static uint32_t flow_after(const struct lowering *lowering, const struct members *members, int i, int flow)
{
    int own = rank_flows(lowering, members->ranks[i] % lowering->plan->stages);

    return event_flow(&members->after[i], own == members->flows ? flow : flow * own / members->flows);
}

/* One flow of each group's collective, on every channel. */
static void exchange_flow(struct lowering *lowering, struct members *members, const struct emission *exchange,
                          struct new_op like, int flow)
{
    int channels = members->channels;

    for (int i = 0; i < members->all * channels; i++)
        members->lanes[i] = member_lane(lowering, members, i / channels, flow, i % channels);
    /* one collective after another, as on NCCL's stream: each begins after the last operation of the first channel */
    for (int i = 0; i < members->all; i++) {
        members->ready[i] = flow_after(lowering, members, i, flow);
        like.lane = members->lanes[i * channels];
        if (channels > 1)
            members->ready[i] = program_add(lowering->program, like, &members->ready[i], 1);
    }
    for (int first = 0; first < members->all; first += members->size) {
        struct member_ops ops = {members->lanes + first * channels, members->ready + first,
                                 members->ends + flow * members->all + first};
        struct collective_choice choice = collective_lower(&(struct collective_call){
            exchange->collective, members_group(lowering, members, flow, first), exchange->bytes, channels,
        }, NULL, &ops, like, lowering->program, &lowering->measure->dags);

        if (exchange->collective->op == COLLECTIVE_ALL_REDUCE && members->kind != GROUP_EMBEDDING)
            lowering_use(lowering, choice.used, choice.protocol);
    }
}

static void exchange_messages(struct lowering *lowering, struct members *members, const struct emission *exchange,
                              struct new_op like)
{
    int flows = members->flows;

    for (int t = 0; t < flows; t++)
        exchange_flow(lowering, members, exchange, like, t);
    for (int i = 0; i < members->all; i++) {
        for (int t = 0; t < flows; t++)
            lowering->sums.flow_ids[t] = members->ends[t * members->all + i];
        members->done[i] = event_all(&lowering->arena, lowering->sums.flow_ids, (size_t)flows);
    }
    members->exchanged++;
}

/* All members of a group begin when the last one is ready, and take the measured time. */
static void exchange_measured(struct lowering *lowering, struct members *members, const struct emission *exchange,
                              struct new_op like)
{
    for (int first = 0; first < members->here; first += members->size) {
        int end = first + members->size < members->here ? first + members->size : members->here;
        struct measured measured = members_measure(lowering, members, first, exchange);
        struct waits all = {0};
        uint32_t begin;

        BUG_IF(lowering->out->alike.exact && !measured.alike && !lowering->measure->failed);
        for (int i = first; i < end; i++)
            wait_for(&all, members->after[i]);
        like.lane = member_lane(lowering, members, first, 0, 0);
        like.amount = like.compute.communication = like.compute.sent = like.compute.vector = 0;
        begin = program_add(lowering->program, like, all.items, all.count);
        free(all.items);
        like.amount = like.compute.communication = measured.seconds;
        like.compute.sent = measured.bytes_sent;
        like.compute.vector = exchange->bytes;
        measure_carry(lowering->measure, measured.index, measured.first, (int)members->kind,
                      measured.bytes_sent * stood_for(lowering, end - first, members->size));
        for (int i = first; i < end; i++) {
            like.lane = member_lane(lowering, members, i, 0, 0);
            members->done[i] = event_of(program_add(lowering->program, like, &begin, 1));
        }
    }
}

void exchange_all(struct lowering *lowering, struct members *members, struct emission exchange)
{
    struct new_op like = {
        .kind = OP_COMPUTE, .what = (uint8_t)exchange.what, .mb = -1, .stage = members->stage,
        .exchange = exchange_number(members->kind, exchange.collective->op),
    };

    for (int i = 0; i < members->here; i++)
        members->done[i] = event_of(NO_OP);
    if (members->size == 1 || exchange.bytes == 0)
        return;
    if (lowering->out->alike.measured && members->kind != GROUP_EMBEDDING)     /* messages of two GPUs are few */
        exchange_measured(lowering, members, &exchange, like);
    else
        exchange_messages(lowering, members, &exchange, like);
}

struct measured exchange_overlapped(struct lowering *lowering, enum group_kind kind, int stage, int replica,
                                    struct emission exchange, struct contention *contention)
{
    struct members *members = members_of(lowering, kind, stage);
    struct measured measured = {0};
    int first = members->first[replica];

    if (members->size > 1)
        measured = members_measure(lowering, members, first, &exchange);
    contention_add(contention, measured.seconds,
                   contention_share(&lowering->scenario->cluster, members->gpus + first, members->size));
    return measured;
}

struct event exchange_alone(struct lowering *lowering, struct place here, enum group_kind kind,
                            struct emission exchange, struct event after)
{
    int prank = here.prank;
    struct measured measured;

    if (exchange.bytes == 0)
        return event_of(NO_OP);
    measured = exchange_overlapped(lowering, kind, here.stage, here.replica, exchange, &lowering->ranks[prank].overlapped);
    measure_carry(lowering->measure, measured.index, measured.first, (int)kind,
                  measured.bytes_sent *
                      stood_for(lowering, 1, scenario_groups(lowering->scenario, here.rank)->of[kind].size));
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

struct event scatter_layer(struct lowering *lowering, struct place here, const struct slice *layer, bool last,
                           struct event after)
{
    const struct scenario *scenario = lowering->scenario;
    const struct recipe *recipe = &scenario->recipe;
    double each = scenario_parameter_bytes(scenario).sent;
    struct event end = after;

    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++) {
        struct layer_part part = {layer, class, layer->trained.of[class], each};
        struct emission exchange = {recipe->gradients.collective, WHAT_SYNC, 0};
        struct event done = exchange_layer(lowering, here, &part, exchange, after);

        if (recipe->gradients.across && last && done.count)
            done = exchange_alone(lowering, here, GROUP_SAME_SHARE, (struct emission){
                recipe->gradients.across, WHAT_SYNC, part.parameters * each /
                    scenario_recipe(scenario, here.rank)->divided[HELD_STATES][class],
            }, done);
        if (done.count)
            here.chunk_state->synced = end = done;
    }
    return end;
}
