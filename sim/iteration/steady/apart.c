#include "steady/apart.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "engine/program.h"
#include "hardware/cluster.h"
#include "scenario/scenario.h"
#include "steady/rounding.h"
#include "steady/steady.h"
#include "workload/workload.h"

/* A replica of a kind, alone. */
struct alone {
    int replica;
    struct program program;          /* its operations up to those in which others have a part; the whole program's traits */
    struct timeline timeline;
    struct lane_ops by;
    size_t before;                   /* operations that start before `to` */
    double to, repeated;             /* s: the end of the last period that is seen; how much longer it is */
};

struct apart {
    int replicas, ranks, kinds;      /* ranks of a replica */
    int *kind;                       /* of a replica */
    struct alone *alone;             /* of a kind */
    int *owner;                      /* of a GPU: its replica */
    int *own_lane;                   /* of a lane: which one it is of its replica's, in the order of ids */
};

/* Whether the ranks of two replicas compute equally fast. */
static bool of_a_kind(const struct workload *workload, int replica, int other)
{
    bool same = true;

    for (int p = 0; p < workload->plan.stages && same; p++)
        same = workload_class(workload, replica, p) == workload_class(workload, other, p);
    return same;
}

static void find_kinds(struct apart *apart, const struct workload *workload)
{
    for (int r = 0; r < apart->replicas; r++) {
        int kind = 0;

        while (kind < apart->kinds && !of_a_kind(workload, r, apart->alone[kind].replica))
            kind++;
        if (kind == apart->kinds)
            apart->alone[apart->kinds++].replica = r;
        apart->kind[r] = kind;
    }
}

static void find_owners(struct apart *apart, const struct scenario *scenario)
{
    apart->owner = xcalloc((size_t)cluster_gpus(&scenario->cluster), sizeof *apart->owner);
    for (int r = 0; r < apart->replicas; r++)
        for (int p = 0; p < apart->ranks; p++)
            for (int t = 0; t < scenario_most_tensor(scenario); t++)
                apart->owner[scenario_gpu(scenario, t, r, p)] = r;
}

static void number_lanes(struct apart *apart, const struct program *program)
{
    int *lanes = xcalloc((size_t)apart->replicas, sizeof *lanes);

    apart->own_lane = xcalloc(program->lanes.count + 1, sizeof *apart->own_lane);
    for (size_t i = 0; i < program->lanes.count; i++)
        apart->own_lane[i] = lanes[program->lanes.items[i].rank / apart->ranks]++;
    free(lanes);
}

static int replica_of(const struct apart *apart, const struct program *program, const struct op *op)
{
    return program->lanes.items[op->lane].rank / apart->ranks;
}

/* Whether it waits for other replicas' operations, or moves bytes to another replica. */
static bool meets_others(const struct apart *apart, const struct program *program, const struct op *op)
{
    struct dep_list deps = program_deps(program, op);
    int replica = replica_of(apart, program, op);
    bool meets = op->kind == OP_TRANSFER && apart->owner[op_traits(program, op)->transfer.dst] != replica;

    for (size_t d = 0; d < deps.count && !meets; d++)
        meets = replica_of(apart, program, &program->ops.items[deps.items[d]]) != replica;
    return meets;
}

/* The replica's operations but for those that meet others and all that come after these. False: works are among those. */
static bool take_alone(const struct apart *apart, const struct program *whole, struct alone *alone)
{
    struct program *program = &alone->program;
    uint32_t *own = xcalloc(whole->ops.count + 1, sizeof *own);          /* an operation: its id there + 1; 0: it is not */
    bool *closed = xcalloc(whole->lanes.count + 1, sizeof *closed), works = true;

    program->ranks = apart->ranks;
    program->stages = whole->stages;
    program->flows = whole->flows;
    program->progress = whole->progress;
    program->traits = whole->traits;
    for (size_t i = 0; i < whole->lanes.count; i++)
        if (whole->lanes.items[i].rank / apart->ranks == alone->replica) {
            *GROW(&program->lanes) = whole->lanes.items[i];
            program->lanes.items[program->lanes.count - 1].rank %= apart->ranks;
        }
    for (size_t i = 0; i < whole->ops.count && works; i++) {
        const struct op *op = &whole->ops.items[i];
        struct dep_list deps = program_deps(whole, op);
        bool left = closed[op->lane];

        if (replica_of(apart, whole, op) != alone->replica)
            continue;
        left = left || meets_others(apart, whole, op);
        for (size_t d = 0; d < deps.count && !left; d++)
            left = !own[deps.items[d]];
        closed[op->lane] = left;
        works = !left || op->mb < 0 || whole->lanes.items[op->lane].kind != LANE_COMPUTE;
        if (left)
            continue;
        *GROW(&program->ops) = *op;
        own[i] = (uint32_t)program->ops.count;
        program->ops.items[program->ops.count - 1].lane = (uint32_t)apart->own_lane[op->lane];
        program->ops.items[program->ops.count - 1].first_dep = (uint32_t)program->deps.count;
        for (size_t d = 0; d < deps.count; d++)
            *GROW(&program->deps) = own[deps.items[d]] - 1;
    }
    free(closed);
    free(own);
    return works;
}

struct apart *apart_of(const struct program *program, const struct shorter *shorter)
{
    const struct workload *workload = &shorter->workload;
    struct apart *apart;
    bool may;

    if (!workload->alike.private_links || program->choices.count || workload->scenario->views)
        return NULL;
    apart = xcalloc(1, sizeof *apart);
    apart->ranks = workload->plan.stages;
    apart->replicas = program->ranks / apart->ranks;
    apart->kind = xcalloc((size_t)apart->replicas, sizeof *apart->kind);
    apart->alone = xcalloc((size_t)apart->replicas, sizeof *apart->alone);
    find_kinds(apart, workload);
    may = apart->kinds > 1;
    if (may) {
        find_owners(apart, workload->scenario);
        number_lanes(apart, program);
    }
    for (int kind = 0; kind < apart->kinds && may; kind++)
        may = take_alone(apart, program, &apart->alone[kind]);
    if (may)
        return apart;
    apart_release(apart);
    return NULL;
}

void apart_release(struct apart *apart)
{
    for (int kind = 0; apart && kind < apart->kinds; kind++) {
        apart->alone[kind].program.traits = (struct traits_list){0};
        program_release(&apart->alone[kind].program);
        timeline_release(&apart->alone[kind].timeline);
        lane_ops_release(&apart->alone[kind].by);
    }
    if (!apart)
        return;
    free(apart->kind);
    free(apart->alone);
    free(apart->owner);
    free(apart->own_lane);
    free(apart);
}

/* Finds the period of a kind. Returns as steady_replay. */
static int replay_alone(enum engine engine, struct alone *alone, struct shorter *shorter, struct repeat *repeat,
                        struct error *err)
{
    timeline_init(&alone->timeline, &alone->program);
    if (replay(engine, &alone->program, &shorter->workload.scenario->cluster, &alone->timeline, err))
        return -1;
    if (!steady_find(&alone->timeline, shorter, repeat))
        return UNSTEADY;
    alone->by = lane_ops_of(&alone->program);
    alone->to = repeat->to;
    alone->repeated = repeat->times * (repeat->to - repeat->from);
    for (size_t i = 0; i < alone->program.ops.count; i++)
        alone->before += alone->timeline.start[i] < alone->to;
    return 0;
}

/* Operations that wait for nothing: what they took. */
struct roots { struct root { uint32_t id; double amount; } *items; size_t count, capacity; };

/* Makes every operation of late replicas that waits for nothing longer by how late its replica is. False: one of them does not
 * compute. */
static bool delay(const struct apart *apart, struct program *program, const struct timeline *timeline, struct roots *roots)
{
    bool *begun = xcalloc(program->lanes.count + 1, sizeof *begun), computes = true;

    for (uint32_t i = 0; i < program->ops.count && computes; i++) {
        struct op *op = &program->ops.items[i];
        double late = timeline->repeats[replica_of(apart, program, op)].begins;

        if (late > 0 && !begun[op->lane] && !program_deps(program, op).count) {
            computes = op->kind == OP_COMPUTE && !op->overlapped;
            *GROW(roots) = (struct root){i, op->amount};
            op->amount += computes ? late : 0;
        }
        begun[op->lane] = true;
    }
    free(begun);
    return computes;
}

/* Gives these operations what they took, from when their replicas begin. */
static void begin_late(const struct apart *apart, struct program *program, struct timeline *timeline, struct roots *roots)
{
    for (size_t i = 0; i < roots->count; i++) {
        struct op *op = &program->ops.items[roots->items[i].id];

        op->amount = roots->items[i].amount;
        timeline->start[roots->items[i].id] = timeline->repeats[replica_of(apart, program, op)].begins;
    }
    free(roots->items);
}

/* Whether an operation of the program of all replicas is the same as one of the replica alone. */
static bool is_twin(const struct program *program, const struct op *op, const struct program *alone, const struct op *twin)
{
    const struct lane *a = &program->lanes.items[op->lane], *b = &alone->lanes.items[twin->lane];

    return op->kind == twin->kind && op->what == twin->what && op->stage == twin->stage && op->mb == twin->mb &&
           a->kind == b->kind && a->index == b->index && a->rank % alone->ranks == b->rank;
}

/* Whether each replica did until the end of what is repeated what the one of its kind did alone, and met nobody. */
static bool as_alone(const struct apart *apart, const struct timeline *timeline)
{
    const struct program *program = timeline->program;
    size_t *done = xcalloc(program->lanes.count + 1, sizeof *done), left = 0;
    double most = ROUNDING * timeline->makespan;
    bool same = true;

    for (int r = 0; r < apart->replicas; r++)
        left += apart->alone[apart->kind[r]].before;
    for (size_t i = 0; i < program->ops.count && same; i++) {
        const struct op *op = &program->ops.items[i];
        int replica = replica_of(apart, program, op);
        const struct alone *alone = &apart->alone[apart->kind[replica]];
        const struct repeat *repeat = &timeline->repeats[replica];
        size_t own = (size_t)apart->own_lane[op->lane], at = alone->by.first[own] + done[op->lane]++;
        uint32_t id = at < alone->by.first[own + 1] ? alone->by.ids[at] : 0;

        if (at < alone->by.first[own + 1] && alone->timeline.start[id] < alone->to) {
            double start = alone->timeline.start[id] + repeat->begins, end = alone->timeline.end[id] + repeat->begins;

            same = is_twin(program, op, &alone->program, &alone->program.ops.items[id]) &&
                   !meets_others(apart, program, op) && fabs(timeline->start[i] - start) <= most &&
                   (end >= repeat->to || fabs(timeline->end[i] - end) <= most);
            left--;
        } else {
            same = timeline->start[i] >= repeat->to &&
                   (op->kind != OP_TRANSFER ||
                    timeline->start[i] >= timeline->repeats[apart->owner[op_traits(program, op)->transfer.dst]].to);
        }
    }
    free(done);
    return same && !left;
}

int apart_replay(struct apart *apart, enum engine engine, struct program *program, struct timeline *timeline,
                 struct shorter *shorter, struct error *err)
{
    const struct cluster *cluster = &shorter->workload.scenario->cluster;
    struct repeat *of_kind = xcalloc((size_t)apart->kinds, sizeof *of_kind);
    struct roots roots = {0};
    double least = INFINITY;
    int rc = 0;

    for (int kind = 0; kind < apart->kinds && !rc; kind++) {
        rc = replay_alone(engine, &apart->alone[kind], shorter, &of_kind[kind], err);
        least = fmin(least, apart->alone[kind].repeated);
    }
    timeline->repeats = xcalloc((size_t)apart->replicas, sizeof *timeline->repeats);
    timeline->repeat_ranks = apart->ranks;
    for (int r = 0; r < apart->replicas; r++) {
        struct repeat *repeat = &timeline->repeats[r];

        *repeat = of_kind[apart->kind[r]];
        repeat->begins = apart->alone[apart->kind[r]].repeated - least;
        repeat->from += repeat->begins;
        repeat->to += repeat->begins;
    }
    free(of_kind);
    if (!rc && !delay(apart, program, timeline, &roots))
        rc = UNPREDICTABLE;
    if (!rc)
        rc = replay(engine, program, cluster, timeline, err);
    if (!rc && rounding_grows(timeline, cluster))
        rc = UNPREDICTABLE;
    begin_late(apart, program, timeline, &roots);
    return rc || as_alone(apart, timeline) ? rc : UNPREDICTABLE;
}
