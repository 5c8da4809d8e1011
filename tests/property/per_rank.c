/* Stages given per rank are the same scenario as their parts given per chunk, wherever a schedule places chunks, and on
 * both engines. */
#include "simulated.h"

struct placed { const char *schedule, *per_rank, *per_chunk; };

/* Forwards of rank r take r + 1 seconds, in as many chunks as the schedule has. */
static const struct placed all[] = {
    {"interleaved, chunks: 3",
     "[{forward: 3 s, per: rank, parameters: 3 M, activation: 3 GB, boundary: 1 MB}, "
     "{forward: 6 s, per: rank, parameters: 6 M, activation: 6 GB, boundary: 1 MB}]",
     "[{forward: 1 s, parameters: 1 M, activation: 1 GB, boundary: 1 MB}, "
     "{forward: 2 s, parameters: 2 M, activation: 2 GB, boundary: 1 MB}, "
     "{forward: 1 s, parameters: 1 M, activation: 1 GB, boundary: 1 MB}, "
     "{forward: 2 s, parameters: 2 M, activation: 2 GB, boundary: 1 MB}, "
     "{forward: 1 s, parameters: 1 M, activation: 1 GB, boundary: 1 MB}, "
     "{forward: 2 s, parameters: 2 M, activation: 2 GB, boundary: 1 MB}]"},
    {"zb-v", "[{forward: 2 s, per: rank, boundary: 1 MB}, {forward: 4 s, per: rank, boundary: 2 MB}]",
     "[{forward: 1 s, boundary: 1 MB}, {forward: 2 s, boundary: 2 MB}, {forward: 2 s, boundary: 2 MB}, "
     "{forward: 1 s, boundary: 1 MB}]"},
    {"chimera", "[{forward: 1 s, per: rank, boundary: 1 MB}, {forward: 2 s, per: rank, boundary: 1 MB}]",
     "[{forward: 1 s, boundary: 1 MB}, {forward: 2 s, boundary: 1 MB}]"},
    {"1f1b", "{forward: 1 s, per: rank, parameters: 1 M}", "{forward: 1 s, parameters: 1 M}"},
};

static void run_stages(struct simulated *simulated, const char *schedule, const char *stages, const char *engine)
{
    run_text(simulated, "model: {stages: %s}\ncluster: {nodes: 2, network: {bandwidth: 1 GB/s, latency: 1 ms}}\n"
             "batch: {micro_batches: 4}\nstrategy: {pipeline: 2, schedule: %s}\nsimulation: {engine: %s}\n", stages,
             schedule, engine);
}

static void parts_are_equal(void **state)
{
    static const char *const engines[] = {"ideal", "simgrid"};

    (void)state;
    for (size_t i = 0; i < COUNT(all); i++)
        for (size_t e = 0; e < COUNT(engines); e++) {
            struct simulated rank, chunk;

            run_stages(&rank, all[i].schedule, all[i].per_rank, engines[e]);
            run_stages(&chunk, all[i].schedule, all[i].per_chunk, engines[e]);
            for (size_t k = 0; metric_at(k); k++) {
                double a = metric_value(&rank.run.metrics, metric_at(k));
                double b = metric_value(&chunk.run.metrics, metric_at(k));

                if (a != b && !(isnan(a) && isnan(b)))
                    fail_msg("%s on %s: %s is %.17g per rank, %.17g per chunk", all[i].schedule, engines[e],
                             metric_at(k)->name, a, b);
            }
            assert_true(rank.run.metrics.iteration_time > 4);
            simulated_release(&rank);
            simulated_release(&chunk);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_are_equal)};

    return cmocka_run_group_tests_name("per_rank", tests, NULL, NULL);
}
