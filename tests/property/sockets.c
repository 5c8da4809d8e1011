/* What NCCL makes of sockets on long and slow links: chunks of a ring, copies that take turns, choices that know
 * nothing of the links, sums a tensor at a time; against recurrences and closed forms by hand. */
#include "simulated.h"

static const char *const engines[] = {"ideal", "simgrid"};

/* A profile's latencies are shorter than the links' here. */
static const char cluster_format[] =
    "cluster:\n"
    "  gpus_per_node: 1\n"
    "  network: {bandwidth: 1.25 GB/s, rate: %.17g B/s, latency: %.17g s}\n"
    "  communication: nccl-socket\n";
enum { CHUNK = 4 << 20, SLICE = 2 << 20 };
static const double share_of_wire = 0.98, launch = 8.4e-6;

/* So many steps of a ring, a `share` each: rounds of a chunk, each on the wire or waiting. */
static double ring_seconds(int steps, double share, double rate, double latency)
{
    double rounds = fmax(1, share / CHUNK), chunk = share / rounds / (share_of_wire * rate);
    double step = rounds * fmax(chunk, latency + chunk * SLICE / CHUNK);
    double wire = fmax(share / (share_of_wire * rate), step - latency);

    return launch + latency - (step - wire) + steps * step;
}

/* ZeRO 2 with large shares (Simple): gradients scattered after the backward, weights gathered after the update. */
static void test_chunks(void **state)
{
    static const double rates[] = {1.25e8, 1.25e9}, latencies[] = {1e-4, 1e-3, 1e-2, 5e-2};
    bool waits = false, streams = false;

    (void)state;
    for (int n = 2; n <= 12; n += 5)
        for (size_t i = 0; i < COUNT(rates) * COUNT(latencies) * COUNT(engines); i++) {
            double rate = rates[i % 2], latency = latencies[i / 2 % 4], share = 36e6, once;
            struct simulated simulated;
            char cluster[512];

            snprintf(cluster, sizeof cluster, cluster_format, rate, latency);
            run_text(&simulated, "model: {layers: [{forward: 1 s, backward: 2 s, parameters: %.17g}]}\n%s"
                     "batch: {micro_batches: 1}\nstrategy: {data: %d, zero: 2, data_parallel: synchronous}\n"
                     "memory: {precision: fp32}\nsimulation: {engine: %s}\n", n * share / 4, cluster, n,
                     engines[i / 8]);
            once = ring_seconds(n - 1, share, rate, latency);
            expect_near("iteration", simulated.run.metrics.iteration_time, 3 + 2 * once, simulated.text);
            /* never faster than the wire, nor than the way */
            assert_true(once >= (n - 1) * fmax(share / rate, latency));
            waits |= once > 1.5 * (n - 1) * share / rate;
            streams |= once < 1.03 * (n - 1) * share / rate;
            simulated_release(&simulated);
        }
    assert_true(waits && streams);
}

/* Latency as much as the wire: two NICs carry what one of twice the bandwidth does, each half of a round. */
static void test_two_nics(void **state)
{
    double seconds[2];

    (void)state;
    for (int nics = 1; nics <= 2; nics++) {
        struct simulated simulated;

        run_text(&simulated, "model: {layers: [{forward: 1 s, backward: 2 s, parameters: 1e8}]}\ncluster:\n"
                 "  nodes: 4\n  gpus_per_node: 2\n  inside: {bandwidth: 100 GB/s, latency: 1 us}\n"
                 "  network: {bandwidth: %.17g B/s, latency: 20 ms, nics: %d}\n  communication: nccl-socket\n"
                 "batch: {micro_batches: 1}\nstrategy: {data: 8, all_reduce: ring, data_parallel: synchronous}\n"
                 "memory: {precision: fp32}\nsimulation: {engine: ideal}\n", 2.5e9 / nics, nics);
        seconds[nics - 1] = simulated.run.metrics.iteration_time - 3;
        assert_true(seconds[nics - 1] > 2 * 4e8 / 2.5e9);
        simulated_release(&simulated);
    }
    expect_near("two NICs", seconds[1], seconds[0], "sockets");
}

enum { STAGES = 4, MICRO_BATCHES = 7 };

/* One phase of GPipe: stage after stage in the order of the phase, each with a lane for its kernels, one for what its
 * sockets copy and one for the wire. */
struct flow { double compute[STAGES], copies[STAGES], wire[STAGES], arrived[STAGES][MICRO_BATCHES]; };

static void phase(struct flow *flow, double seconds, double copy, double wire, double latency)
{
    for (int mb = 0; mb < MICRO_BATCHES; mb++)
        for (int s = 0; s < STAGES; s++) {
            double ready = flow->compute[s];

            if (s > 0) {
                flow->copies[s] = fmax(flow->copies[s], flow->arrived[s][mb]) + copy;
                ready = fmax(ready, flow->copies[s]);
            }
            flow->compute[s] = ready + seconds;
            if (s == STAGES - 1)
                continue;
            flow->copies[s] = fmax(flow->copies[s], flow->compute[s]) + copy;
            flow->wire[s] = fmax(flow->wire[s], flow->copies[s]) + wire;
            flow->arrived[s + 1][mb] = flow->wire[s] + latency;
        }
}

/* The stages of backwards are numbered from the other end than the stages of forwards. */
static double gpipe_seconds(double forward, double backward, double copy, double wire, double latency)
{
    struct flow there = {0}, back = {0};
    double end = 0;

    phase(&there, forward, copy, wire, latency);
    for (int s = 0; s < STAGES; s++) {
        back.compute[s] = there.compute[STAGES - 1 - s];
        back.copies[s] = there.copies[STAGES - 1 - s];
    }
    phase(&back, backward, copy, wire, latency);
    for (int s = 0; s < STAGES; s++)
        end = fmax(end, back.compute[s]);
    return end;
}

static void test_turns(void **state)
{
    const double bytes = 6e6, copy = bytes / 1.2e9;
    static const double rates[] = {1.25e8, 1.25e9}, latencies[] = {1e-4, 5e-2};

    (void)state;
    for (size_t i = 0; i < 16; i++) {
        double rate = rates[i % 2], latency = latencies[i / 2 % 2], wire = bytes / (share_of_wire * rate);
        bool turns = i / 4 % 2;
        double expected = gpipe_seconds(10e-3, 20e-3, turns ? copy : 0, wire, latency);
        struct simulated simulated;
        const struct metrics *metrics = &simulated.run.metrics;
        char cluster[512];

        snprintf(cluster, sizeof cluster, cluster_format, rate, latency);
        run_text(&simulated, "model: {stages: {forward: 10 ms, backward: 20 ms, boundary: 6 MB}}\n%s"
                 "batch: {micro_batches: %d}\nstrategy: {schedule: gpipe, backward: ascending, pipeline: %d, "
                 "one_communicator: %s}\nsimulation: {engine: %s}\n", cluster, MICRO_BATCHES, STAGES,
                 turns ? "true" : "false", engines[i / 8]);
        expect_near("iteration", metrics->iteration_time, expected, simulated.text);
        for (int r = 0; r < STAGES; r++) {
            expect_near("sum", metrics->ranks[r].seconds[ACCOUNT_BUBBLE] + metrics->ranks[r].exposed_communication +
                        MICRO_BATCHES * 30e-3, metrics->iteration_time, simulated.text);
            expect_near("sent", metrics->ranks[r].sent[PAYLOAD_ACTIVATIONS],
                        r < STAGES - 1 ? MICRO_BATCHES * bytes : 0, simulated.text);
        }
        simulated_release(&simulated);
    }
}

/* NCCL chooses by its model's latencies and the NIC's bandwidth, however long and slow the links are: small sums of 16
 * by trees (8 hops), large ones by rings (30 hops), as on a fast network. */
static void test_choices(void **state)
{
    static const struct { double bytes, hops; const char *used; } sums[] = {
        {1536, 8, "double-tree"}, {4e6, 30, "ring"},
    };
    static const double rates[] = {1.25e8, 1.25e9}, latencies[] = {1e-4, 5e-2};

    (void)state;
    for (size_t i = 0; i < 8; i++) {
        struct simulated simulated;
        char cluster[512];
        double sum, hops;

        snprintf(cluster, sizeof cluster, cluster_format, rates[i % 2], latencies[i / 2 % 2]);
        run_text(&simulated, "model: {layers: [{forward: 1 s, backward: 2 s, parameters: %.17g}]}\n%s"
                 "batch: {micro_batches: 1}\nstrategy: {data: 16, data_parallel: synchronous, all_reduce: auto}\n"
                 "memory: {precision: fp32}\nsimulation: {engine: ideal}\n", sums[i / 4].bytes / 4, cluster);
        sum = simulated.run.metrics.iteration_time - 3;
        for (size_t k = 0; all_reduce_name(k); k++)
            assert_int_equal(simulated.run.lowered.used.all_reduces >> k & 1, !strcmp(all_reduce_name(k), sums[i / 4].used));
        hops = sums[i / 4].hops * latencies[i / 2 % 2];
        assert_true(sum >= hops && (latencies[i / 2 % 2] < 1e-3 || sum < 1.3 * hops));
        simulated_release(&simulated);
    }
}

/* A loop over the parameters: as many sums as tensors, each with all its latencies; a server's ring: one way to it and
 * one back, whose pieces follow one another. */
static void test_sums(void **state)
{
    const double latency = 1e-2, rate = 1.25e8, bytes = 4e6, wire = bytes / (share_of_wire * rate);

    (void)state;
    for (int n = 2; n <= 8; n += 3)
        for (int layers = 1; layers <= 3; layers++)
            for (int form = 0; form < 3; form++) {
                static const char *const forms[] = {"synchronous, flatten: false", "synchronous",
                                                    "parameter-server, server: ring"};
                double all = layers * ring_seconds(2 * (n - 1), bytes / n, rate, latency), pieces;
                struct simulated simulated;
                char cluster[512], list[256] = "";
                double sum;

                for (int l = 0; l < layers; l++)
                    strcat(list, "{forward: 1 s, backward: 2 s, parameters: 1000000}, ");
                snprintf(cluster, sizeof cluster, cluster_format, rate, latency);
                run_text(&simulated, "model: {layers: [%s]}\n%sbatch: {micro_batches: 1}\n"
                         "strategy: {data: %d, data_parallel: %s}\nmemory: {precision: fp32}\n"
                         "simulation: {engine: ideal}\n", list, cluster, n, forms[form]);
                sum = simulated.run.metrics.iteration_time - 3 * layers;
                pieces = fmin(fmax(32, 16 * (n - 2)), floor(layers * bytes / 131072));
                if (form == 2)
                    all = 2 * (launch + (n - 1) * latency + (n - 2 + pieces) / pieces * layers * wire);
                if (form == 0)
                    expect_near("sums", sum, all, simulated.text);
                else if (form == 1)
                    assert_true(layers == 1 || sum < all);
                else if (form == 2)
                    expect_near("sum", sum, all, simulated.text);
                simulated_release(&simulated);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks), cmocka_unit_test(test_two_nics),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_sums),
    };

    return cmocka_run_group_tests_name("sockets", tests, NULL, NULL);
}
