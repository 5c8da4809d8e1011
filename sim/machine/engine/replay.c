#include "base/progress.h"
#include "engine/replay.h"

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
