#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/flows_internal.h"
#include "random_topology.h"

#include <math.h>
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

static void start(struct flows *flows, uint32_t flow, int src, int dst, double units, double now, bool planned)
{
    struct flow_route route = flows_route(flows, src, dst);

    if (planned)
        flows_narrow(flows, &route);
    flows_start(flows, flow, &route, units, now, 0);
}

/* Where a flow goes. */
static void draw_route(struct given *given, int f)
{
    int gpus = cluster_gpus(given->cluster);

    given->src[f] = draw(gpus);
    given->dst[f] = (given->src[f] + 1 + draw(gpus - 1)) % gpus;
}

/* Always the same way: few flows, so that some share no link. */
static void plan(struct given *given, struct flows *flows)
{
    for (int f = 0; f < FLOWS / 10; f++) {
        struct flow_route route;

        draw_route(given, f);
        route = flows_route(flows, given->src[f], given->dst[f]);
        flows_plan(flows, &route);
    }
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
        bool planned = i % 2;

        seed = i;
        cluster.nodes = 2 + draw(6);
        cluster.kinds[0].gpus = 1 + draw(4);
        cluster.kinds[0].nics.count = 1 + draw(cluster.kinds[0].gpus);
        random_topology(&cluster, draw(RANDOM_TOPOLOGIES));
        event_heap_init(&ends, FLOWS);
        flows_init(&flows, &cluster, FLOWS, 1, 1e-9, &ends);
        if (planned)
            plan(&given, &flows);
        for (int step = 0; step < 20; step++) {
            for (int k = draw(12); k >= 0; k--) {
                int f = draw(planned ? FLOWS / 10 : FLOWS);

                if (given.there[f]) {
                    flows_stop(&flows, (uint32_t)f);
                } else {
                    if (!planned)
                        draw_route(&given, f);
                    start(&flows, (uint32_t)f, given.src[f], given.dst[f], 1e9, 0, planned);
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
    }
}

/* 10 units on a port of 1 a second: alone for 4 s, half of the port for 6 s, then alone. */
static void test_progress(void **state)
{
    static const struct cluster cluster = {.nodes = 1, .kinds[0].gpus = 3,
                                           .kinds[0].inside = {.bandwidth = 1, .efficiency = 1}};
    struct event_heap ends;
    struct flows flows;
    uint32_t ids[2];

    (void)state;
    event_heap_init(&ends, 2);
    flows_init(&flows, &cluster, 2, 1, 0, &ends);
    start(&flows, 0, 0, 1, 10, 0, false);
    flows_share(&flows, 0);
    assert_true(ends.entries[0].time == 10);
    start(&flows, 1, 0, 2, 3, 4, false);
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
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_max_min), cmocka_unit_test(test_progress)};

    return cmocka_run_group_tests_name("flows", tests, NULL, NULL);
}
