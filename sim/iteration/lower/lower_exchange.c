/* The emitter of exchanges: a collective over all members of a stage becomes operations, message by message or as a
 * measured duration, and an event for their ends.
 *
 * Reads members and the events after which each of them begins.
 * Adds operations on lanes of collectives, and the events of their ends. */
#include "lower/party.h"

#include "base/base.h"
#include "collective/collective.h"
#include "collective/measure.h"
#include "engine/event.h"
#include "engine/program.h"
#include "exchange/exchange.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

static size_t stream_lane(const struct lowering *lowering, int stream, int program_rank, int flow, int lane)
{
    size_t at = (size_t)stream * (size_t)lowering->program->ranks + (size_t)program_rank;

    return (at * (size_t)lowering->program->flows + (size_t)flow) * (size_t)lowering->lanes.each + (size_t)lane;
}

/* FSDP's sums over the replicas that hold the same share have a second stream. */
uint32_t collective_lane(const struct lowering *lowering, enum group_kind kind, int program_rank, int flow, int lane)
{
    return lowering->lanes.collective[stream_lane(lowering, kind == GROUP_SAME_SHARE, program_rank, flow, lane)];
}

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
    lowering->lanes.each = 1;
    for (int stage = 0; stage < plan_virtual_stages(lowering->plan); stage++)
        for (size_t k = 0; k < COUNT(kinds); k++) {
            const struct members *members =
                groups->of[kinds[k]].exchanges ? members_of(&lowering->exchanges, kinds[k], stage) : NULL;

            if (members && members->lanes > lowering->lanes.each)
                lowering->lanes.each = members->lanes;
        }
    count = (size_t)lowering->program->ranks * (size_t)flows * (size_t)lowering->lanes.each;
    lowering->lanes.collective = ARENA_ARRAY(&lowering->arena, uint32_t, count * (size_t)lowering->lanes.streams);
    for (int stream = 0; stream < lowering->lanes.streams; stream++)
        for (int rank = 0; rank < lowering->program->ranks; rank++)
            for (int i = 0; i < flows * lowering->lanes.each; i++)
                lowering->lanes.collective[stream_lane(lowering, stream, rank, 0, i)] = program_lane(
                    lowering->program, rank, LANE_COLLECTIVE, stream * flows * lowering->lanes.each + i);
}

static struct party *party_make(struct lowering *lowering, struct members *members)
{
    struct arena *arena = &lowering->arena;
    struct party *party = ARENA_ARRAY(arena, struct party, 1);

    *party = (struct party){
        .members = members, .after = ARENA_ARRAY(arena, struct event, members->all),
        .done = ARENA_ARRAY(arena, struct event, members->all),
        .lanes = ARENA_ARRAY(arena, uint32_t, members->all * members->lanes),
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

/* A lane of a member's exchange: its stream's. Each sum of tied gradients makes new lanes. */
static uint32_t member_lane(struct lowering *lowering, const struct party *party, int i, int flow, int lane)
{
    const struct members *members = party->members;
    int streams = lowering->lanes.each * lowering->lanes.streams;

    if (members->kind != GROUP_EMBEDDING)
        return collective_lane(lowering, members->kind, members->ranks[i], flow, lane);
    return program_lane(lowering->program, members->ranks[i], LANE_COLLECTIVE,
                        lowering->program->flows * streams +
                            (members->flows * party->exchanged + flow) * members->lanes + lane);
}

/* Among the operations that a member's exchange waits for, the one that a flow of it waits for. The flow of a sum of
 * tied gradients is a piece: it waits for the flow of the GPU that holds this piece. */
static uint32_t flow_after(const struct lowering *lowering, const struct party *party, int i, int flow)
{
    const struct members *members = party->members;
    int flows = rank_flows(&lowering->exchanges, members->ranks[i] % lowering->plan->stages);

    return event_flow(&party->after[i], flows == members->flows ? flow : flow * flows / members->flows);
}

/* One flow of each group's collective, on every channel. */
static void exchange_flow(struct lowering *lowering, struct party *party, const struct emission *exchange,
                          struct new_op like, int flow)
{
    struct members *members = party->members;
    int lanes = members->lanes;

    for (int i = 0; i < members->all * lanes; i++)
        party->lanes[i] = member_lane(lowering, party, i / lanes, flow, i % lanes);
    /* a collective with several channels or ports is one kernel of NCCL: an operation of no duration in the first lane
     * lets all begin together, after the collective before */
    for (int i = 0; i < members->all; i++) {
        party->ready[i] = flow_after(lowering, party, i, flow);
        like.lane = party->lanes[i * lanes];
        if (lanes > 1)
            party->ready[i] = program_add(lowering->program, like, &party->ready[i], 1);
    }
    for (int first = 0; first < members->all; first += members->size) {
        struct member_ops ops = {party->lanes + first * lanes, lanes, party->ready + first,
                                 party->ends + flow * members->all + first};
        struct collective_choice choice = collective_lower(&(struct collective_call){
            exchange->collective, members_group(&lowering->exchanges, members, flow, first), exchange->bytes,
            members->channels,
        }, NULL, &ops, like, lowering->program, &lowering->measure->dags);

        if (exchange->collective->op == COLLECTIVE_ALL_REDUCE && members->kind != GROUP_EMBEDDING)
            exchanges_use(&lowering->exchanges, choice.used, choice.protocol);
    }
}

/* Message by message, all flows of all members. */
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
        begin = lower_after_all(lowering, like, &all);
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

struct event exchange_alone(struct lowering *lowering, const struct place *here, enum group_kind kind,
                            struct emission exchange, struct event after)
{
    struct measured measured;

    if (exchange.bytes == 0)
        return event_of(NO_OP);
    measured = exchange_overlapped(&lowering->exchanges, kind, here->stage, here->replica, exchange.collective, exchange.bytes,
                                   &lowering->ranks[here->prank].overlapped);
    measure_carry(lowering->measure, measured.index, measured.first, (int)kind,
                  measured.bytes_sent *
                      stands_for(&lowering->exchanges, 1, scenario_groups(lowering->scenario, here->rank)->of[kind].size));
    return event_of(lower_after(lowering, (struct new_op){
        .kind = OP_COMPUTE, .what = (uint8_t)exchange.what, .lane = collective_lane(lowering, kind, here->prank, 0, 0),
        .exchange = exchange_number(kind, exchange.collective->op), .mb = -1, .stage = here->stage, .amount = measured.seconds,
        .compute = {.communication = measured.seconds, .sent = measured.bytes_sent, .vector = exchange.bytes},
    }, after));
}
