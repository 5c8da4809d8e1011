/* collective_run: a collective lowered by itself and replayed without contention; clusters and groups to do so on. */
#ifndef DTSIM_COLLECTIVE_RUN_H
#define DTSIM_COLLECTIVE_RUN_H

#include "collective/collective.h"
#include "engine/replay.h"

#include <string.h>

enum { MAX_MEMBERS = 64, MAX_CHANNELS = 8 };

/* A lowered collective and its times on the ideal engine. */
struct run {
    struct task task;        /* what each channel is drawn for */
    struct program program;
    struct timeline timeline;
    uint32_t ready[MAX_MEMBERS], done[MAX_MEMBERS];
    uint32_t first;          /* the first transfer's operation */
};

static inline struct cluster make_cluster(int nodes, int gpus_per_node, int nics)
{
    return (struct cluster){
        .nodes = nodes, .kinds[0].gpus = gpus_per_node,
        .kinds[0].inside = {.bandwidth = 3e11, .latency = 1e-6, .efficiency = 1},
        .kinds[0].nics = {.bandwidth = 2.5e10, .count = nics, .latency = 5e-6, .efficiency = 1},
    };
}

/* Member m is rank m. `delays`: seconds until each member is ready, or NULL: no operation to wait for. */
static inline void run_init(struct run *run, const struct collective *collective, const struct cluster *cluster, int n,
                            const int *gpus, double bytes, int channels, const double *delays)
{
    uint32_t lanes[MAX_MEMBERS * MAX_CHANNELS];
    struct placed_group group = placed_group_of(cluster, gpus, n);
    struct collective_call call = {collective, &group, bytes, channels};
    int stride = collective_lanes(&call);
    struct member_ops ops = {lanes, stride, delays ? run->ready : NULL, run->done};
    struct new_op like = {.what = WHAT_SYNC, .mb = -1, .stage = 3, .takes = 5, .frees = 7};
    struct dags dags = {0};

    memset(run, 0, sizeof *run);
    run->task = collective_task(&call);
    run->program.ranks = n;
    for (int m = 0; m < n; m++)
        for (int c = 0; c < stride; c++)
            lanes[m * stride + c] = program_lane(&run->program, m, LANE_COLLECTIVE, c);
    for (int m = 0; delays && m < n; m++) {
        struct new_op op = {.kind = OP_COMPUTE, .amount = delays[m]};
        op.lane = program_lane(&run->program, m, LANE_COMPUTE, 0);
        run->ready[m] = program_add(&run->program, op, NULL, 0);
    }
    run->first = (uint32_t)run->program.ops.count;
    collective_lower(&call, NULL, &ops, like, &run->program, &dags);
    dags_release(&dags);
    timeline_init(&run->timeline, &run->program);
    replay_ideal(&run->program, cluster, &run->timeline);
}

static inline void run_release(struct run *run)
{
    timeline_release(&run->timeline);
    program_release(&run->program);
}

static inline const int *identity(void)
{
    static int gpus[MAX_MEMBERS];

    for (int m = 0; m < MAX_MEMBERS; m++)
        gpus[m] = m;
    return gpus;
}

static inline uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static inline int random_below(uint64_t *state, int limit)
{
    return (int)(random_next(state) % (uint64_t)limit);
}

#endif
