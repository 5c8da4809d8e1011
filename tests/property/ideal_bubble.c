/* On a free network, with stages that are alike, the bubble of a run is its schedule's closed form. */
#include "simulated.h"

static void expect_closed_form(const char *schedule, int chunks, int micro_batches, const char *recompute, bool known)
{
    struct simulated simulated;
    double closed;

    run_text(&simulated, "model: {stages: {forward: 1 s, backward: 2 s, backward_input: 1 s, backward_weight: 1 s, "
             "recompute: 1 s}}\ncluster: ideal\nbatch: {micro_batches: %d}\nstrategy: {schedule: %s, pipeline: 4, "
             "chunks: %d}\nmemory: {recompute: %s}\nsimulation: {engine: ideal}\n", micro_batches, schedule, chunks,
             recompute);
    closed = workload_ideal_bubble(&simulated.workload);
    if (known == isnan(closed) || (known && fabs(closed - simulated.run.metrics.bubble_fraction) > 1e-9))
        fail_msg("%s, %d micro-batches: closed form %g, simulated %g", schedule, micro_batches, closed,
                 simulated.run.metrics.bubble_fraction);
    simulated_release(&simulated);
}

static void closed_forms(void **state)
{
    (void)state;
    for (int m = 4; m <= 16; m *= 2) {
        expect_closed_form("gpipe", 1, m, "none", true);
        expect_closed_form("gpipe", 1, m, "full", true);
        expect_closed_form("1f1b", 1, m, "none", true);
        expect_closed_form("1f1b", 1, m, "full", true);
        expect_closed_form("interleaved", 2, m, "none", true);
        expect_closed_form("zb-h1", 1, m, "none", true);
    }
    expect_closed_form("pipedream", 1, 8, "none", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(closed_forms)};

    return cmocka_run_group_tests_name("ideal_bubble", tests, NULL, NULL);
}
