/* PyTorch's DataParallel: what it sends, how long it takes, what GPU 0 holds. */
#include "simulated.h"

static const char *const engine_of[] = {"ideal", "simgrid"}, *const modes[] = {"messages", "measured"};

/* NCCL's ring in pieces of 128 KiB, 32 of them at most, or 16 a hop that they take to fill the ring. */
static double pieces_of(int n, double bytes)
{
    return fmin(fmax(32, 16 * (n - 2)), fmax(1, floor(bytes / 131072)));
}

static double ring(int n, double bytes, double latency, double bandwidth)
{
    double pieces = pieces_of(n, bytes);

    return (n - 2 + pieces) * (latency + bytes / pieces / bandwidth);
}

/* Every micro-batch: the weights, all forwards, the outputs one after another, their gradients, all backwards, the sum
 * of the gradients. As messages, GPU 1 has its weights, has passed them on and puts out while the last GPUs still get
 * theirs: n - 3 hops earlier. */
static void test_seconds(void **state)
{
    const double latency = 3e-6, bandwidth = 50e9, output = 3e6, bytes = 2 * 9000001.0;

    (void)state;
    for (int n = 2; n <= 8; n++)
        for (int k = 0; k < 8; k++) {
            int m = 1 + 2 * (k / 4);
            struct simulated simulated;
            const struct metrics *metrics = &simulated.run.metrics;
            double each = 2 * ring(n, bytes, latency, bandwidth) + 2 * (n - 1) * (latency + output / bandwidth) + 3e-3;

            if (k / 2 % 2 == 0 && n > 3)
                each -= (n - 3) * (latency + bytes / pieces_of(n, bytes) / bandwidth);

            run_text(&simulated, "model: {stages: {forward: 1 ms, backward: 2 ms, parameters: 9000001, "
                     "boundary: 3 MB}}\n"
                     "cluster: {nodes: 1, gpus_per_node: %d, inside: {bandwidth: 50 GB/s, latency: 3 us}}\n"
                     "batch: {micro_batches: %d}\nstrategy: {data: %d, data_parallel: dataparallel}\n"
                     "simulation: {engine: %s, collectives: %s}\n", n, m, n, engine_of[k % 2], modes[k / 2 % 2]);
            expect_near("iteration", metrics->iteration_time, m * each, simulated.text);
            expect_near("weights", metrics->sent[PAYLOAD_WEIGHTS], m * bytes * (n - 1) / n, simulated.text);
            expect_near("gradients", metrics->sent[PAYLOAD_WEIGHT_GRADIENTS], m * bytes * (n - 1) / n, simulated.text);
            expect_near("outputs", metrics->sent[PAYLOAD_ACTIVATIONS], m * output * (n - 1) / n, simulated.text);
            expect_near("their gradients", metrics->sent[PAYLOAD_ACTIVATION_GRADIENTS], m * output * (n - 1) / n,
                        simulated.text);
            for (int r = 0; r < n; r++)
                expect_near("sum", metrics->ranks[r].seconds[ACCOUNT_BUBBLE] +
                            metrics->ranks[r].exposed_communication + m * 3e-3,
                            metrics->iteration_time, simulated.text);
            simulated_release(&simulated);
        }
}

static void simulate_gpt(struct simulated *simulated, const char *form, const char *schedule, int micro_batches)
{
    run_text(simulated, "model: {preset: gpt2-124m}\ncluster: {platform: dgx-a100, nodes: 1}\n"
             "batch: {micro: 2, micro_batches: %d}\nsimulation: {engine: ideal}\n"
             "strategy: {schedule: %s, data: 8, data_parallel: %s}\n", micro_batches, schedule, form);
}

/* Tokens as 64-bit integers to the others, logits and their gradients to and from GPU 0; many tensors fill buffers. */
static void test_traffic(void **state)
{
    const double tokens = 2 * 1024, logits = tokens * 50257 * 2, psi = 2 * 124439808.0;
    struct simulated simulated, ddp;
    const struct metrics *metrics = &simulated.run.metrics;

    (void)state;
    simulate_gpt(&simulated, "dataparallel", "1f1b", 3);
    simulate_gpt(&ddp, "ddp", "1f1b", 3);
    expect_near("weights", metrics->sent[PAYLOAD_WEIGHTS], 3 * psi * 7 / 8, simulated.text);
    expect_near("gradients", metrics->sent[PAYLOAD_WEIGHT_GRADIENTS], 3 * psi * 7 / 8, simulated.text);
    expect_near("activations", metrics->sent[PAYLOAD_ACTIVATIONS], 3 * (logits + 8 * tokens) * 7 / 8, simulated.text);
    expect_near("gradients", metrics->sent[PAYLOAD_ACTIVATION_GRADIENTS], 3 * logits * 7 / 8, simulated.text);
    assert_true(metrics->iteration_time > 1.1 * ddp.run.metrics.iteration_time);
    /* the loss moves to GPU 0: as many kernels' bytes, fewer launches */
    assert_true(metrics->seconds[ACCOUNT_FORWARD] + metrics->seconds[ACCOUNT_BACKWARD] <
                ddp.run.metrics.seconds[ACCOUNT_FORWARD] + ddp.run.metrics.seconds[ACCOUNT_BACKWARD]);
    assert_true(metrics->seconds[ACCOUNT_FORWARD] + metrics->seconds[ACCOUNT_BACKWARD] >
                0.999 * (ddp.run.metrics.seconds[ACCOUNT_FORWARD] + ddp.run.metrics.seconds[ACCOUNT_BACKWARD]));
    expect_near("flop", metrics->hardware_flop, ddp.run.metrics.hardware_flop, simulated.text);
    simulated_release(&simulated);
    simulated_release(&ddp);
}

/* GPU 0 holds the states, the activations of its pass and the outputs of all. The others hold the activations of a
 * pass, weights and gradients. All memory that is taken is freed. */
static void test_memory(void **state)
{
    static const char *const schedules[] = {"1f1b", "gpipe", "zb-h1"};
    const double psi = 124439808.0, logits = 2.0 * 1024 * 50257;

    (void)state;
    for (size_t k = 0; k < COUNT(schedules); k++) {
        int held = k == 0 ? 1 : 2;       /* micro-batches */
        struct simulated simulated;
        const struct program *program = &simulated.run.lowered.program;
        double own, balance[8] = {0};

        simulate_gpt(&simulated, "dataparallel", schedules[k], 2);
        own = simulated.workload.stages[0].activation - 4 * logits + 2 * logits;
        if (k < 2) {
            expect_near("others", simulated.run.metrics.ranks[7].peak_activation, held * (own + 2 * psi) + 2 * psi,
                        simulated.text);
            assert_true(simulated.run.metrics.ranks[0].peak_memory >= 16 * psi + held * own + 8 * (2 + 2 + 4) * logits);
        }
        for (size_t i = 0; i < program->ops.count; i++)
            balance[program->lanes.items[program->ops.items[i].lane].rank] +=
                op_traits(program, &program->ops.items[i])->takes - op_traits(program, &program->ops.items[i])->frees;
        for (int r = 0; r < 8; r++)
            assert_true(fabs(balance[r]) < 1);
        assert_int_equal(simulated.run.metrics.peak_rank, 0);
        simulated_release(&simulated);
    }
}

/* Alone it is a plain training loop. */
static void test_one(void **state)
{
    struct simulated one, plain;

    (void)state;
    for (int k = 0; k < 2; k++)
        run_text(k ? &plain : &one, "model: {preset: gpt2-124m}\ncluster: {platform: dgx-a100, nodes: 1}\n"
                 "batch: {global: 4}\nstrategy: {data: 1, data_parallel: %s}\n", k ? "ddp" : "dataparallel");
    assert_true(one.run.metrics.iteration_time == plain.run.metrics.iteration_time);
    assert_true(one.run.metrics.peak_memory == plain.run.metrics.peak_memory);
    simulated_release(&one);
    simulated_release(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_traffic),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_one),
    };

    return cmocka_run_group_tests_name("replicated", tests, NULL, NULL);
}
