#include "engine/replay_simgrid.h"
#include "base/progress.h"
#include "engine/replay.h"
#include "engine/sharing.h"
#include "process/child.h"
#include "process/module.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char WHAT[] = "the simgrid engine";

static const struct simgrid_module *simgrid_open(struct error *err)
{
    return module_open("simgrid", MODULE_OWN_FIRST, WHAT, err);
}

void replay_prepare(enum engine engine)
{
    struct error told_later = {0};

    if (engine == ENGINE_SIMGRID)
        simgrid_open(&told_later);
    error_release(&told_later);
}

struct replaying {
    const struct simgrid_module *module;
    const struct cluster *cluster;
    struct dispatcher dispatcher;
    struct simgrid_so_far *so_far;       /* shared with the child */
};

static void replay_in_child(void *context)
{
    struct replaying *replaying = context;

    replaying->module->replay(replaying->cluster, &replaying->dispatcher, replaying->so_far);
}

static bool stop(void *context)
{
    const struct replaying *replaying = context;
    const struct program *program = replaying->dispatcher.program;

    return progress_step(program->progress, "replaying", replaying->so_far->done, program->ops.count,
                         replaying->so_far->clock);
}

/* Replays in a child; of the transfers that may share links SimGrid gets those that have met (NULL: all). */
static int replay_flows(const struct program *program, const struct cluster *cluster, const struct transfer_cost *costs,
                        const bool *met, struct timeline *timeline, struct error *err)
{
    size_t count = program->ops.count, bytes = count * sizeof *timeline->start;
    struct replaying replaying = {.cluster = cluster, .dispatcher.met = met, .module = simgrid_open(err)};
    double *times;
    int result;

    if (!replaying.module)
        return -1;
    times = child_share(2 * bytes + sizeof *replaying.so_far);
    if (!times)
        return error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "no memory to share with the simulation");
    replaying.so_far = (struct simgrid_so_far *)(times + 2 * count);
    dispatcher_init(&replaying.dispatcher, program, costs, times, times + count);
    result = child_run_until(replay_in_child, stop, &replaying, WHAT, err);
    dispatcher_release(&replaying.dispatcher);
    if (result == 0) {
        memcpy(timeline->start, times, bytes);
        memcpy(timeline->end, times + count, bytes);
        timeline->makespan = 0;
        for (size_t i = 0; i < count; i++)
            timeline->makespan = fmax(timeline->makespan, timeline->end[i]);
    }
    child_unshare(times, 2 * bytes + sizeof *replaying.so_far);
    return result;
}

/* The two engines may differ by this share of the time. */
static const double SAME = 1e-9;

/* A transfer that met nobody takes what it takes alone, so SimGrid gets the others. Who meets whom is read off the times
 * of the fast engine; these are not believed: SimGrid's own must be the same, or it gets all that may meet. */
int replay_simgrid(const struct program *program, const struct cluster *cluster, struct timeline *timeline,
                   struct error *err)
{
    struct transfer_cost *costs = transfer_costs(program, cluster);
    struct sharing sharing = sharing_of(program, cluster, costs);
    struct timeline fast;
    bool *met = xcalloc(program->ops.count + 1, sizeof *met);
    int result = 0;

    replay_fast(program, cluster, timeline);
    if (sharing.any && !progress_over(program->progress) && sharing_meets(&sharing, timeline, costs, met)) {
        timeline_init(&fast, program);
        memcpy(fast.start, timeline->start, program->ops.count * sizeof *fast.start);
        memcpy(fast.end, timeline->end, program->ops.count * sizeof *fast.end);
        fast.makespan = timeline->makespan;
        result = replay_flows(program, cluster, costs, met, timeline, err);
        if (!result && timeline_difference(&fast, timeline) > SAME)
            result = replay_flows(program, cluster, costs, NULL, timeline, err);
        timeline_release(&fast);
        for (size_t i = 0; i < program->ops.count; i++)
            timeline->met += met[i];
    }
    free(met);
    sharing_release(&sharing);
    free(costs);
    return result;
}

struct looking_up {
    const struct simgrid_module *module;
    const struct cluster *cluster;
    struct simgrid_route *route;         /* shared with the child */
};

static void look_up_in_child(void *context)
{
    const struct looking_up *looking_up = context;

    looking_up->module->look_up(looking_up->cluster, looking_up->route);
}

int simgrid_route(const struct cluster *cluster, int src, int dst, struct simgrid_route *route, struct error *err)
{
    struct looking_up looking_up = {.module = simgrid_open(err), .cluster = cluster};
    int result;

    if (!looking_up.module)
        return -1;
    looking_up.route = child_share(sizeof *looking_up.route);
    if (!looking_up.route)
        return error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "no memory to share with the simulation");
    *looking_up.route = (struct simgrid_route){.src = src, .dst = dst};
    result = child_run(look_up_in_child, &looking_up, WHAT, err);
    *route = *looking_up.route;
    child_unshare(looking_up.route, sizeof *looking_up.route);
    return result;
}
