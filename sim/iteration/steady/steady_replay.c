#include "steady/steady.h"

#include "base/base.h"
#include "engine/replay.h"
#include "scenario/scenario.h"
#include "steady/apart.h"
#include "steady/rounding.h"

/* All replicas together have one period. */
static int replay_together(enum engine engine, const struct program *program, struct timeline *timeline,
                           struct shorter *shorter, struct error *err)
{
    const struct cluster *cluster = &shorter->workload.scenario->cluster;

    if (replay(engine, program, cluster, timeline, err))
        return -1;
    timeline->repeats = xcalloc(1, sizeof *timeline->repeats);
    timeline->repeat_ranks = program->ranks;
    if (!steady_find(timeline, shorter, timeline->repeats))
        return UNSTEADY;
    return rounding_grows(timeline, cluster) ? UNPREDICTABLE : 0;
}

int steady_replay(enum engine engine, struct program *program, struct timeline *timeline, struct shorter *shorter,
                  struct error *err)
{
    struct apart *apart = apart_of(program, shorter);
    int rc;

    if (engine != ENGINE_SIMGRID)
        timeline_watch(timeline);
    rc = apart ? apart_replay(apart, engine, program, timeline, shorter, err)
                   : replay_together(engine, program, timeline, shorter, err);

    apart_release(apart);
    return rc;
}
