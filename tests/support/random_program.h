/* random_program: clusters and programs drawn at random, from a seed. */
#ifndef DTSIM_TEST_RANDOM_PROGRAM_H
#define DTSIM_TEST_RANDOM_PROGRAM_H

#include "random_topology.h"
#include "replayed.h"

#include <string.h>

enum { LANES = 12, OPS = 80 };

/* xorshift64*: the same numbers everywhere. */
static uint64_t seed;

static inline uint64_t draw(uint64_t below)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return (seed * UINT64_C(2685821657736338717) >> 16) % below;
}

static inline double uniform(void)
{
    return (double)draw(1 << 30) / (1 << 30);
}

/* Simultaneous events find most errors, so half of the amounts are one of three values; some are 0. */
static inline double amount(double scale)
{
    switch (draw(8)) {
    case 0:
        return 0;
    case 1: case 2: case 3:
        return scale * (double)(1 + draw(3));
    default:
        return scale * 8 * uniform();
    }
}

static inline struct cluster random_cluster(void)
{
    struct cluster cluster = {.nodes = 1 + (int)draw(6), .kinds[0].gpus = 1 + (int)draw(8)};

    cluster.nodes += cluster.nodes * cluster.kinds[0].gpus == 1;
    cluster.kinds[0].inside.bandwidth = 1e9 * (1 + uniform());
    cluster.kinds[0].inside.latency = draw(3) ? 1e-5 * uniform() : 0;
    cluster.kinds[0].nics.bandwidth = 1e8 * (1 + uniform());
    cluster.kinds[0].nics.latency = draw(3) ? 1e-4 * uniform() : 0;
    cluster.kinds[0].inside.efficiency = 1 - uniform() / 2;
    cluster.kinds[0].nics.efficiency = 1 - uniform() / 2;
    cluster.kinds[0].nics.count = 1 + (int)draw((uint64_t)cluster.kinds[0].gpus);
    random_topology(&cluster, (int)draw(RANDOM_TOPOLOGIES));
    return cluster;
}

/* apart: lane l sends from GPU 2l to 2l + 1 only, so that no two transfers share a link. */
static inline void random_program(struct program *program, const struct cluster *cluster, bool apart)
{
    uint32_t gpus = (uint32_t)cluster_gpus(cluster), lanes = apart ? gpus / 2 : LANES;

    memset(program, 0, sizeof *program);
    program->ranks = 1;
    for (uint32_t i = 0; i < lanes; i++)
        program_lane(program, 0, LANE_COMPUTE, (int)i);
    for (uint32_t i = 0; i < OPS; i++) {
        struct new_op op = {.kind = draw(3) ? OP_TRANSFER : OP_COMPUTE, .lane = (uint32_t)draw(lanes)};
        uint32_t deps[3];
        size_t ndeps = 0;

        for (uint64_t wanted = draw(4); i && ndeps < wanted; ndeps++)
            deps[ndeps] = i - 1 - (uint32_t)draw(i < 20 ? i : 20);
        op.amount = amount(op.kind == OP_COMPUTE ? 1e-3 : 1e6 / 7);
        if (op.kind == OP_TRANSFER && draw(2)) {
            op.transfer.buffered = draw(2);
            op.transfer.delay = draw(2) ? 1e-5 * uniform() : 0;
            op.transfer.overhead = draw(2) ? 2 * uniform() - 0.9 : 0;
            op.transfer.most = draw(2) ? 2e7 * (double)(1 + draw(40)) : 0;
        }
        if (op.kind == OP_TRANSFER && apart) {
            op.transfer.src = 2 * op.lane;
            op.transfer.dst = op.transfer.src + 1;
        } else if (op.kind == OP_TRANSFER) {
            op.transfer.src = (uint32_t)draw(gpus);
            op.transfer.dst = (op.transfer.src + 1 + (uint32_t)draw(gpus - 1)) % gpus;
        }
        program_add(program, op, deps, ndeps);
    }
}

#endif
