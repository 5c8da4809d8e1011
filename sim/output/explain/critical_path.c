#include "explain/critical_path.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "engine/event.h"
#include "hardware/cluster.h"
#include "run/account.h"

/* The kind of what lanes other than compute lanes do. */
static enum account_kind kind_of_lane(enum lane_kind kind)
{
    static const enum account_kind kinds[LANE_KIND_COUNT] = {
        [LANE_SEND_NEXT] = ACCOUNT_EXPOSED_PIPELINE, [LANE_SEND_PREVIOUS] = ACCOUNT_EXPOSED_PIPELINE,
        [LANE_COLLECTIVE] = ACCOUNT_EXPOSED_DATA, [LANE_TO_HOST] = ACCOUNT_EXPOSED_OFFLOAD,
        [LANE_FROM_HOST] = ACCOUNT_EXPOSED_OFFLOAD, [LANE_HOST] = ACCOUNT_EXPOSED_OFFLOAD,
        [LANE_COPY] = ACCOUNT_EXPOSED_PIPELINE,
    };

    return kinds[kind];
}

void op_shares(const struct program *program, const struct op *op, double shares[ACCOUNT_KIND_COUNT])
{
    enum lane_kind lane = program->lanes.items[op->lane].kind;

    memset(shares, 0, ACCOUNT_KIND_COUNT * sizeof *shares);
    if (lane != LANE_COMPUTE) {
        shares[kind_of_lane(lane)] = 1;
        return;
    }
    const struct op_compute *compute = &op_traits(program, op)->compute;

    shares[account_of((enum op_what)op->what)] = op->amount > 0 ? 1 - compute->communication / op->amount : 1;
    for (int with = 0; with < PEERS_COUNT && op->amount > 0; with++)
        shares[account_of_peers((enum peers)with)] += compute->with[with] / op->amount;
}

/* The timeline with what a walk along it needs. */
struct walk {
    const struct timeline *timeline;
    const struct cluster *cluster;
    uint32_t *before;        /* the operation before each in its lane, in the order in which they ran; NO_OP */
};

/* When the lane of an operation was free for the next: engines let it go on when all bytes of a buffered transfer have
 * left. */
static double lane_left(const struct walk *walk, uint32_t id)
{
    const struct op *op = &walk->timeline->program->ops.items[id];
    const struct op_transfer *transfer = &op_traits(walk->timeline->program, op)->transfer;

    if (op->kind != OP_TRANSFER || !transfer->buffered)
        return walk->timeline->end[id];
    struct route route = cluster_route(walk->cluster, (int)transfer->src, (int)transfer->dst);

    return walk->timeline->end[id] - (route.latency + transfer->delay);
}

/* The operation that this one waited for last, NO_OP: for none, and when it let it go on. */
static uint32_t binding(const struct walk *walk, uint32_t id, double *at)
{
    const struct timeline *timeline = walk->timeline;
    struct dep_list deps = program_deps(timeline->program, &timeline->program->ops.items[id]);
    uint32_t last = walk->before[id];

    *at = last == NO_OP ? 0 : lane_left(walk, last);
    for (size_t d = 0; d < deps.count; d++) {
        uint32_t dep = deps.items[d];

        if (last == NO_OP || timeline->end[dep] > *at) {
            last = dep;
            *at = timeline->end[dep];
        }
    }
    return last;
}

static uint32_t *find_before(const struct timeline *timeline)
{
    const struct program *program = timeline->program;
    uint32_t *before = xcalloc(program->ops.count + 1, sizeof *before), *order = timeline_order(timeline);
    uint32_t *last = xcalloc(program->lanes.count + 1, sizeof *last);

    memset(last, 0xff, program->lanes.count * sizeof *last);     /* NO_OP */
    for (size_t k = 0; k < program->ops.count; k++) {
        uint32_t id = order_at(order, k), lane = program->ops.items[id].lane;

        before[id] = last[lane];
        last[lane] = id;
    }
    free(last);
    free(order);
    return before;
}

/* Goes from the end to the beginning and leaves out pieces of no time. */
static void walk_back(const struct walk *walk, struct path_pieces *pieces)
{
    const struct timeline *timeline = walk->timeline;
    size_t count = timeline->program->ops.count;
    uint32_t id = NO_OP;
    double to = timeline->makespan;

    for (uint32_t i = 0; i < count && id == NO_OP; i++)
        if (timeline->end[i] == to)
            id = i;
    while (id != NO_OP) {
        double from;
        uint32_t last = binding(walk, id, &from);

        from = last == NO_OP ? 0 : from;
        if (from < to)
            *GROW(pieces) = (struct path_piece){id, from, to};
        to = from;
        id = last;
    }
    for (size_t i = 0; i < pieces->count / 2; i++) {
        struct path_piece other = pieces->items[i];

        pieces->items[i] = pieces->items[pieces->count - 1 - i];
        pieces->items[pieces->count - 1 - i] = other;
    }
}

void critical_path_init(struct critical_path *path, const struct run *run)
{
    const struct program *program = &run->lowered.program;
    struct walk walk = {&run->timeline, &run->workload->scenario->cluster, find_before(&run->timeline)};

    *path = (struct critical_path){.nranks = run->workload->plan.stages};
    path->ranks = xcalloc((size_t)path->nranks, sizeof *path->ranks);
    walk_back(&walk, &path->pieces);
    free(walk.before);
    for (size_t i = 0; i < path->pieces.count; i++) {
        const struct path_piece *piece = &path->pieces.items[i];
        const struct op *op = &program->ops.items[piece->op];
        double seconds = window_part(&run->metrics.window, piece->from, piece->to), shares[ACCOUNT_KIND_COUNT];

        op_shares(program, op, shares);
        for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++) {
            path->seconds[kind] += seconds * shares[kind];
            path->ranks[program->lanes.items[op->lane].rank % path->nranks][kind] += seconds * shares[kind];
        }
    }
}

void critical_path_release(struct critical_path *path)
{
    free(path->pieces.items);
    free(path->ranks);
    memset(path, 0, sizeof *path);
}
