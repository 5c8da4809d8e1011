#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/sharing.h"
#include "random_program.h"
#include "trials.h"

#include <math.h>
#include <stdlib.h>

enum { PROGRAMS = 400 };

/* B/s that a lane's transfers want of the link at most; route by route. */
static double wanted_by(const struct program *program, const struct cluster *cluster, uint32_t lane, struct link link)
{
    double most = 0;

    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        const struct op_transfer *moves = &op_traits(program, op)->transfer;
        double wanted = 0;

        if (op->kind != OP_TRANSFER || op->lane != lane || op->amount == 0)
            continue;
        struct route route = cluster_route(cluster, (int)moves->src, (int)moves->dst);
        for (int hop = 0; hop < route.count; hop++)
            if (route.links[hop].kind == link.kind && route.links[hop].index == link.index)
                wanted += moves->most > 0 ? fmin(moves->most, route.bandwidth) : route.bandwidth;
        most = fmax(most, wanted);
    }
    return most;
}

static bool is_shared(const struct program *program, const struct cluster *cluster, struct link link)
{
    double wanted = 0;

    for (uint32_t lane = 0; lane < program->lanes.count; lane++)
        wanted += wanted_by(program, cluster, lane, link);
    return wanted > cluster_link_bandwidth(cluster, link) * (1 + 1e-9);
}

/* A transfer may share links where lanes together want more of one than it has; else it takes what it takes alone, as the
 * engines say that solve all rates. Of those that may, the ones that took longer have met others. */
static void test_random(void **state)
{
    int may = 0, may_not = 0;

    (void)state;
    EACH_TRIAL(i, PROGRAMS) {
        struct program program = {0};
        struct cluster cluster;
        struct timeline timeline;
        struct sharing sharing;
        bool *met;

        seed = i * 0x9E3779B97F4A7C15u;
        cluster = random_cluster();
        random_program(&program, &cluster, false);
        struct transfer_cost *costs = transfer_costs(&program, &cluster);
        sharing = sharing_of(&program, &cluster, costs);
        replayed(ENGINE_FAST, &program, &cluster, &timeline);
        met = xcalloc(program.ops.count + 1, sizeof *met);
        if (sharing.any)
            assert_int_equal(sharing_meets(&sharing, &timeline, costs, met), sharing_meets(&sharing, &timeline, costs, NULL));
        for (size_t k = 0; k < program.ops.count; k++) {
            const struct op *op = &program.ops.items[k];
            const struct op_transfer *moves = &op_traits(&program, op)->transfer;
            bool any = false;

            if (op->kind != OP_TRANSFER || op->amount == 0)
                continue;
            struct route route = cluster_route(&cluster, (int)moves->src, (int)moves->dst);
            for (int hop = 0; hop < route.count; hop++)
                any |= is_shared(&program, &cluster, route.links[hop]);
            assert_int_equal(costs[op->traits].shares, any);
            any ? may++ : may_not++;
            double took = timeline.end[k] - timeline.start[k];
            if (took > op_seconds(&program, op, costs) + 1e-12)
                assert_true(any && met[k]);
        }
        free(met);
        free(costs);
        sharing_release(&sharing);
        timeline_release(&timeline);
        program_release(&program);
    }
    print_message("%d transfers may share links, %d may not\n", may, may_not);
    assert_true(may > trials(PROGRAMS) && may_not > trials(PROGRAMS) / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};

    return cmocka_run_group_tests_name("sharing", tests, NULL, NULL);
}
