#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/flows_internal.h"
#include "random_topology.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FLOWS = 60, CLUSTERS = 200, LINKS = 4 * 64 + MOST_LINKS_BETWEEN };

static uint64_t seed;

static int draw(int below)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (int)(seed >> 33) % below;
}

/* Flows, and the rates that they have, by their ends. */
struct given {
    const struct cluster *cluster;
    bool there[FLOWS];
    int src[FLOWS], dst[FLOWS];
    double rate[FLOWS];
};

static int link_id(struct link link)
{
    return 64 * (int)link.kind + link.index;
}

static struct link link_at(int id)
{
    return id < 4 * 64 ? (struct link){(enum link_kind)(id / 64), id % 64} : (struct link){LINK_BETWEEN, id - 4 * 64};
}

static struct route route_of(const struct given *given, int flow)
{
    return cluster_route(given->cluster, given->src[flow], given->dst[flow]);
}

/* The definition: no link carries more than it can, and every flow crosses a full link of which no flow is faster. */
static void assert_max_min(const struct given *given)
{
    double carried[LINKS] = {0}, fastest[LINKS] = {0};

    for (int f = 0; f < FLOWS; f++) {
        struct route route = given->there[f] ? route_of(given, f) : (struct route){0};

        for (int l = 0; l < route.count; l++) {
            carried[link_id(route.links[l])] += given->rate[f];
            fastest[link_id(route.links[l])] = fmax(fastest[link_id(route.links[l])], given->rate[f]);
        }
    }
    for (int l = 0; l < LINKS; l++)
        if (carried[l] > 0)
            assert_true(carried[l] <= cluster_link_bandwidth(given->cluster, link_at(l)) * (1 + 1e-12));
    for (int f = 0; f < FLOWS; f++) {
        struct route route = given->there[f] ? route_of(given, f) : (struct route){0};
        bool held = !given->there[f];

        for (int l = 0; l < route.count; l++) {
            int id = link_id(route.links[l]);

            held |= carried[id] >= cluster_link_bandwidth(given->cluster, route.links[l]) * (1 - 1e-12) &&
                    given->rate[f] >= fastest[id] * (1 - 1e-12);
        }
        assert_true(held);
    }
}

/* The costs of the program's transfers are not kept, so its bandwidth is looked up anew. */
static void start(struct flows *flows, const struct cluster *cluster, uint32_t flow, uint32_t traits, int src, int dst,
                  double units, double now)
{
    flows_start(flows, flow, flows_route(flows, traits, cluster_route(cluster, src, dst).bandwidth), units, now, 0);
}

static uint32_t add_transfer(struct program *program, uint32_t lane, int src, int dst)
{
    uint32_t id = program_add(program, (struct new_op){.kind = OP_TRANSFER, .lane = lane, .amount = 1,
                                         .transfer = {.src = (uint32_t)src, .dst = (uint32_t)dst}}, NULL, 0);

    return program->ops.items[id].traits;
}

static struct sharing sharing_of_program(struct program *program, const struct cluster *cluster)
{
    struct transfer_cost *costs = transfer_costs(program, cluster);
    struct sharing sharing = sharing_of(program, cluster, costs);

    free(costs);
    program_release(program);
    return sharing;
}

/* Flows of up to so many routes each, and the links that they share. */
enum { WAYS = 3 };
struct ways { int count, src[FLOWS][WAYS], dst[FLOWS][WAYS]; uint32_t traits[FLOWS][WAYS]; };

static struct sharing draw_ways(const struct cluster *cluster, int flows, struct ways *ways)
{
    struct program program = {.ranks = 1};
    int gpus = cluster_gpus(cluster);

    for (int f = 0; f < flows; f++) {
        program_lane(&program, 0, LANE_COLLECTIVE, f);
        for (int way = 0; way < ways->count; way++) {
            ways->src[f][way] = draw(gpus);
            ways->dst[f][way] = (ways->src[f][way] + 1 + draw(gpus - 1)) % gpus;
            ways->traits[f][way] = add_transfer(&program, (uint32_t)f, ways->src[f][way], ways->dst[f][way]);
        }
    }
    return sharing_of_program(&program, cluster);
}

/* Flows come and go at random; after each few of them the rates are max-min fair. All happens at time 0, so that a
 * flow's end tells its rate. */
static void test_max_min(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= CLUSTERS; i++) {
        struct cluster cluster = {.kinds[0].inside = {.bandwidth = 3e9, .efficiency = 1},
                                  .kinds[0].nics = {.bandwidth = 1e9, .efficiency = 1}};
        struct given given = {.cluster = &cluster};
        struct event_heap ends;
        struct flows flows;
        int count = i % 2 ? FLOWS / 10 : FLOWS;      /* few: some share no link */
        struct ways ways = {.count = i % 2 ? 1 : WAYS};
        struct sharing sharing;

        seed = i;
        cluster.nodes = 2 + draw(6);
        cluster.kinds[0].gpus = 1 + draw(4);
        cluster.kinds[0].nics.count = 1 + draw(cluster.kinds[0].gpus);
        random_topology(&cluster, draw(RANDOM_TOPOLOGIES));
        sharing = draw_ways(&cluster, count, &ways);
        if (!sharing.any)
            continue;
        event_heap_init(&ends, FLOWS);
        flows_init(&flows, &sharing, &cluster, FLOWS, 1, 1e-9, &ends);
        for (int step = 0; step < 20; step++) {
            for (int k = draw(12); k >= 0; k--) {
                int f = draw(count), way = draw(ways.count);

                if (given.there[f]) {
                    flows_stop(&flows, (uint32_t)f);
                } else {
                    given.src[f] = ways.src[f][way];
                    given.dst[f] = ways.dst[f][way];
                    start(&flows, &cluster, (uint32_t)f, ways.traits[f][way], given.src[f], given.dst[f], 1e9, 0);
                }
                given.there[f] = !given.there[f];
            }
            flows_share(&flows, 0);
            for (int f = 0; f < FLOWS; f++)
                if (given.there[f])
                    given.rate[f] = 1e9 / flow_of(&flows, (uint32_t)f)->end;
            assert_max_min(&given);
        }
        flows_release(&flows);
        event_heap_release(&ends);
        sharing_release(&sharing);
    }
}

/* 10 units on a port of 1 a second: alone for 4 s, half of the port for 6 s, then alone. */
static void test_progress(void **state)
{
    static const struct cluster cluster = {.nodes = 1, .kinds[0].gpus = 3,
                                           .kinds[0].inside = {.bandwidth = 1, .efficiency = 1}};
    struct program program = {.ranks = 1};
    struct event_heap ends;
    struct flows flows;
    struct sharing sharing;
    uint32_t ids[2], traits[2];

    (void)state;
    for (int lane = 0; lane < 2; lane++)
        traits[lane] = add_transfer(&program, program_lane(&program, 0, LANE_COLLECTIVE, lane), 0, 1 + lane);
    sharing = sharing_of_program(&program, &cluster);
    assert_true(sharing.any);
    event_heap_init(&ends, 2);
    flows_init(&flows, &sharing, &cluster, 2, 1, 0, &ends);
    start(&flows, &cluster, 0, traits[0], 0, 1, 10, 0);
    flows_share(&flows, 0);
    assert_true(ends.entries[0].time == 10);
    start(&flows, &cluster, 1, traits[1], 0, 2, 3, 4);
    flows_share(&flows, 4);
    assert_int_equal(event_heap_pop(&ends, ids), 1);
    assert_int_equal(ids[0], 1);
    assert_true(flow_of(&flows, 0)->end == 16);
    assert_int_equal(ends.count, 0);         /* it will be another one when flow 1 has ended */
    flows_stop(&flows, 1);
    flows_share(&flows, 10);
    assert_true(ends.entries[0].time == 13);
    flows_release(&flows);
    event_heap_release(&ends);
    sharing_release(&sharing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_max_min), cmocka_unit_test(test_progress)};

    return cmocka_run_group_tests_name("flows", tests, NULL, NULL);
}
