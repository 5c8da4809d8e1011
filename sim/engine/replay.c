#include "engine/replay.h"

static int ideal(const struct program *program, const struct cluster *cluster, struct timeline *timeline,
                 struct error *err)
{
    (void)err;
    replay_ideal(program, cluster, timeline);
    return 0;
}

const char *const engine_names[] = ENUM_NAMES(ENGINES);

static int (*const engines[])(const struct program *, const struct cluster *, struct timeline *, struct error *) = {
    [ENGINE_SIMGRID] = replay_simgrid,
    [ENGINE_IDEAL] = ideal,
};
_Static_assert(COUNT(engines) + 1 == COUNT(engine_names), "a name for every engine");

int replay(enum engine engine, const struct program *program, const struct cluster *cluster,
           struct timeline *timeline, struct error *err)
{
    BUG_IF((size_t)engine >= COUNT(engines));
    return engines[engine](program, cluster, timeline, err);
}
