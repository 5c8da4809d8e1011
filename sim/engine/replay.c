#include "base/progress.h"
#include "engine/replay.h"

#include <math.h>

#include "hardware/cluster.h"

static int ideal(const struct program *program, const struct cluster *cluster, struct timeline *timeline,
                 struct error *err)
{
    (void)err;
    replay_ideal(program, cluster, timeline);
    return 0;
}

static int fast(const struct program *program, const struct cluster *cluster, struct timeline *timeline,
                struct error *err)
{
    (void)err;
    replay_fast(program, cluster, timeline);
    return 0;
}

const char *const engine_names[] = ENUM_NAMES(ENGINES);

static int (*const engines[])(const struct program *, const struct cluster *, struct timeline *, struct error *) = {
    [ENGINE_SIMGRID] = replay_simgrid,
    [ENGINE_FAST] = fast,
    [ENGINE_IDEAL] = ideal,
};
_Static_assert(COUNT(engines) + 1 == COUNT(engine_names), "a name for every engine");

/* Where the cluster refuses some routes, an error for the first transfer that takes one. */
static int check_routes(const struct program *program, const struct cluster *cluster, struct error *err)
{
    for (size_t i = 0; i < program->ops.count && cluster_refuses(cluster); i++) {
        const struct op *op = &program->ops.items[i];
        const struct op_transfer *transfer = &op_traits(program, op)->transfer;

        if (op->kind == OP_TRANSFER && cluster_check_route(cluster, (int)transfer->src, (int)transfer->dst, err))
            return -1;
    }
    return 0;
}

int replay(enum engine engine, const struct program *program, const struct cluster *cluster,
           struct timeline *timeline, struct error *err)
{
    BUG_IF((size_t)engine >= COUNT(engines));
    if (check_routes(program, cluster, err))
        return -1;
    int rc = engines[engine](program, cluster, timeline, err);

    /* However few the operations, and whenever the engine looked: a budget that is spent is noticed. */
    if (!rc)
        progress_step(program->progress, "replaying", program->ops.count, program->ops.count, timeline->makespan);
    return progress_check(program->progress, err) ? -1 : rc;
}

bool moves_bytes(const struct program *program, const struct cluster *cluster)
{
    for (size_t i = 0; i < program->ops.count && !cluster->ideal; i++)
        if (program->ops.items[i].kind == OP_TRANSFER && program->ops.items[i].amount > 0)
            return true;
    return false;
}

struct transfer_cost *transfer_costs(const struct program *program, const struct cluster *cluster)
{
    struct transfer_cost *costs = xcalloc(program->traits.count + 1, sizeof *costs);

    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];

        if (op->kind != OP_TRANSFER || costs[op->traits].bandwidth > 0)
            continue;
        const struct op_transfer *transfer = &op_traits(program, op)->transfer;
        struct route route = cluster_route(cluster, (int)transfer->src, (int)transfer->dst);

        costs[op->traits] = (struct transfer_cost){route.latency + transfer->delay, route.bandwidth};
    }
    return costs;
}

struct resolution resolution_of(const struct program *program, const struct transfer_cost *costs)
{
    double bytes = 1, serial = 0;

    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];

        if (op->kind == OP_COMPUTE) {
            serial += op->amount;
            continue;
        }
        const struct transfer_cost *cost = &costs[op->traits];
        double wire = wire_bytes(op->amount, &op_traits(program, op)->transfer);

        bytes = wire > bytes ? wire : bytes;
        serial += cost->latency + (op->amount > 0 ? wire / cost->bandwidth : 0);
    }
    return (struct resolution){.unit = ldexp(1, (int)fmin(40, 62 - ceil(log2(bytes)))), .seconds = ldexp(serial, -50)};
}

double resolution_units(const struct resolution *resolution, double wire)
{
    return fmax(1, rint(wire * resolution->unit));
}
