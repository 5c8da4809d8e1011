/* Planned recomputation and offloading: closed forms and bounds of one stage; what an update by the host waits for. */
#include "simulated.h"

static void *printed(char **text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    assert_true(vasprintf(text, format, arguments) >= 0);
    va_end(arguments);
    return *text;
}

/* One stage of L layers alike: f and b seconds, 1 M parameters each (2 MB of weights and of gradients). */
static double one_stage(int layers, double f, double b, double bandwidth, const char *memory, const char *batch)
{
    struct simulated simulated;
    char *list = xcalloc((size_t)layers * 200 + 1, 1);
    double seconds;

    for (int l = 0; l < layers; l++)
        sprintf(list + strlen(list),
                "%s{forward: %g s, backward: %g s, activation: 10 MB, boundary: 4 MB, parameters: 1 M}",
                l ? ", " : "", f, b);
    run_text(&simulated,
             "model: {layers: [%s]}\n"
             "cluster: {platform: ideal, host: {bandwidth: %.17g B/s, latency: 0 s, update: 1 M}}\n"
             "batch: {%s}\nstrategy: {data: 1}\nmemory: {%s}\n", list, bandwidth, batch, memory);
    seconds = simulated.run.metrics.iteration_time;
    simulated_release(&simulated);
    free(list);
    return seconds;
}

/* Weights that come layer by layer, double-buffered: the slower of copies and kernels rules. */
static void test_weights(void **state)
{
    (void)state;
    for (int layers = 1; layers <= 7; layers++)
        for (int i = 0; i < 2; i++) {
            double f = 1, b = 2, copy = i ? 5 : 0.25, seconds;
            double compute = layers * (f + b), store = layers * copy;

            seconds = one_stage(layers, f, b, 2e6 / copy, "offload: weights", "micro_batches: 1");
            expect_near("weights", seconds, (i ? (2 * layers - 1) * copy + f + b : copy + compute) + store, "layers");
        }
}

/* Under ZeRO 3 a GPU fetches its share of each layer before every use, and stores it once; gradients' and weights'
 * shares are all that an update by the host moves. */
static void test_shares(void **state)
{
    enum { LAYERS = 5, DATA = 4, BATCHES = 3 };
    static const char layer[] = "{forward: 1 ms, backward: 2 ms, activation: 10 MB, boundary: 4 MB, parameters: 1 M}";
    static const struct { const char *what; double times; } cases[] = {
        {"weights", 2 * BATCHES + 1}, {"optimizer", 2}, {"[weights, optimizer]", 2 * BATCHES + 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;

        run_text(&simulated,
                 "model: {layers: [%s, %s, %s, %s, %s]}\n"
                 "cluster: {nodes: 1, gpus_per_node: %d, inside: {bandwidth: 10 GB/s, latency: 1 us}, "
                 "host: {bandwidth: 10 GB/s, latency: 1 us, update: 1 B}}\n"
                 "batch: {micro_batches: %d}\nstrategy: {data: %d, zero: 3}\nmemory: {offload: %s}\n"
                 "simulation: {engine: ideal}\n", layer, layer, layer, layer, layer, DATA, BATCHES, DATA,
                 cases[i].what);
        expect_near("bytes", simulated.run.metrics.offload_bytes_per_gpu, cases[i].times * LAYERS * 2e6 / DATA,
                    simulated.text);
        simulated_release(&simulated);
    }
}

/* Gradients to the host at g, updates there at c = 1 s a layer, weights back at g: three streams. Clipping needs the
 * last gradient before the first update. Recomputing changes when gradients are ready, and nothing else. */
static void test_optimizer(void **state)
{
    (void)state;
    for (int layers = 1; layers <= 7; layers++)
        for (int full = 0; full < 2; full++) {
            const char *apart = full ? "offload: optimizer, recompute: full" : "offload: optimizer";
            const char *plain = full ? "offload: [optimizer], recompute: full, clip_gradients: false"
                                     : "offload: [optimizer], clip_gradients: false";
            double slow = one_stage(layers, 0.5, 0.5, 2e6 / 0.25, plain, "micro_batches: 1");
            double fast = one_stage(layers, 2, 4, 2e6 / 0.25, plain, "micro_batches: 3");
            double clips = one_stage(layers, 2, 4, 2e6 / 0.25, apart, "micro_batches: 3");
            double again = full * 2.0;

            expect_near("CPU-bound", slow, layers * 0.5 + (1 + full) * 0.5 + 0.25 + layers * 1.0 + 0.25, "one stage");
            expect_near("GPU-bound", fast, 3 * layers * (6.0 + again) + 0.25 + 1 + 0.25, "one stage");
            expect_near("clipped", clips, 3 * layers * (6.0 + again) + 0.25 + layers * 1.0 + 0.25, "one stage");
        }
}

/* Checkpoints in host memory: nothing is lost on a fast link, and bytes / bandwidth is all that counts on a slow one.
 * The first layer's input is the data. */
static void test_checkpoints(void **state)
{
    (void)state;
    for (int layers = 2; layers <= 7; layers++) {
        double fast = one_stage(layers, 1, 2, 1e17, "recompute: full, offload: activations", "micro_batches: 3");
        double plain = one_stage(layers, 1, 2, 1e17, "recompute: full", "micro_batches: 3");
        double copy = 1e6, slow = one_stage(layers, 1, 2, 4e6 / copy, "recompute: full, offload: activations",
                                            "micro_batches: 1");

        expect_near("free copies", fast, plain, "one stage");
        assert_true(fabs(slow / (2 * (layers - 1) * copy) - 1) < 1e-4);
    }
}

/* Activations alone, with copies no slower than forwards: nothing is recomputed, and works hardly wait. */
static void test_hidden(void **state)
{
    (void)state;
    for (int layers = 6; layers <= 12; layers++) {
        char *memory;
        double seconds;

        printed(&memory, "offload: activations, limit: %.17g B", layers * 16e6 + 45e6 + 3e6 * layers);
        seconds = one_stage(layers, 1, 2, 1e7, memory, "micro_batches: 3");
        assert_true(seconds >= 9.0 * layers && seconds <= 9.0 * layers + 3.1);
        free(memory);
    }
}

/* Never slower than full recomputation, never faster than to keep everything; free copies cost nothing. */
static void test_bounds(void **state)
{
    static const double limits[] = {0.2, 0.3, 0.4, 0.5, 0.7, 1, 2};

    (void)state;
    for (int layers = 2; layers <= 9; layers++)
        for (size_t i = 0; i < COUNT(limits); i++) {
            double states = layers * 16e6, room = states + 30e6 + 4e6 * layers + limits[i] * layers * 10e6;
            char *optimal, *both;

            printed(&optimal, "recompute: optimal, limit: %.17g B", room);
            printed(&both, "recompute: optimal, offload: activations, limit: %.17g B", room);
            double planned = one_stage(layers, 1, 2, 1e17, optimal, "micro_batches: 2");
            double combined = one_stage(layers, 1, 2, 1e17, both, "micro_batches: 2");

            assert_true(planned <= 2 * 4 * layers * (1 + 1e-9) && planned >= 2 * 3 * layers * (1 - 1e-9));
            assert_true(combined <= planned * (1 + 1e-9) && combined >= 2 * 3 * layers * (1 - 1e-9));
            free(optimal);
            free(both);
        }
}

/* When the last exchange of a rank's gradients ends, and when its first gradients leave for the host. */
static void sums_and_copies(const struct timeline *timeline, int rank, double *summed, double *copied)
{
    const struct program *program = timeline->program;

    *summed = 0;
    *copied = INFINITY;
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];

        if (program->lanes.items[op->lane].rank != rank)
            continue;
        if (op->what == WHAT_SYNC)
            *summed = fmax(*summed, timeline->end[i]);
        if (op->what == WHAT_OFFLOAD)
            *copied = fmin(*copied, timeline->start[i]);
    }
}

/* A tensor group whose GPUs stand on links unlike one another has a flow each. All gradients are in one bucket, so the
 * host's update begins after the end of every flow's sum, also of tied gradients. */
static void test_all_flows(void **state)
{
    static const struct { const char *tied, *collectives; int pipeline; } cases[] = {
        {"false", "messages", 1}, {"false", "measured", 1}, {"true", "messages", 2}, {"true", "measured", 2},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;

        run_text(&simulated,
                 "model: {transformer: {layers: 4, hidden: 1024, heads: 8, sequence: 512, vocabulary: 8192, "
                 "tied: %s}}\n"
                 "cluster: {nodes: %d, gpus_per_node: 4, gpu: a100-80gb, inside: {bandwidth: 100 GB/s, latency: 2 us}, "
                 "network: {bandwidth: 1 GB/s, latency: 5 us, nics: 4}, "
                 "host: {bandwidth: 15.75 GB/s, latency: 10 us, memory: 1 TB, update: 4 B}}\n"
                 "batch: {micro: 1, micro_batches: 1}\n"
                 "strategy: {tensor: 4, pipeline: %d, data: 3, placement: [data, tensor, pipeline], "
                 "first_bucket: 1 GB, bucket: 1 GB}\n"
                 "memory: {offload: optimizer, enforce: false}\n"
                 "simulation: {engine: ideal, collectives: %s, fold: off}\n", cases[i].tied, 3 * cases[i].pipeline,
                 cases[i].pipeline, cases[i].collectives);
        assert_int_equal(simulated.run.lowered.program.flows, 4);
        for (int rank = 0; rank < simulated.run.lowered.program.ranks; rank++) {
            double summed, copied;

            sums_and_copies(&simulated.run.timeline, rank, &summed, &copied);
            assert_true(summed > 0 && isfinite(copied));
            if (copied < summed)
                fail_msg("rank %d copies from %g s on, but sums until %g s in\n%s", rank, copied, summed,
                         simulated.text);
        }
        simulated_release(&simulated);
    }
}

/* GPUs that divide the tokens of a sample each send their own share of what is kept: an endless link to the host costs nothing,
 * the peak stays under the limit, and a slow link takes at least as long as the bytes. */
static void test_context(void **state)
{
    static const char *const attentions[] = {"ring", "all-gather", "all-to-all"};

    (void)state;
    for (int context = 2; context <= 4; context *= 2)
        for (size_t i = 0; i < 2 * COUNT(attentions); i++) {
            double seconds[3];

            for (int k = 0; k < 3; k++) {        /* all is kept; an endless link; a slow one */
                struct simulated simulated;
                const double bandwidth = k == 1 ? 1e18 : 1e8;

                run_text(&simulated,
                         "model: {transformer: {layers: 12, hidden: 512, heads: 8, sequence: %d, vocabulary: 512, dropout: 0, "
                         "flash_attention: true}}\n"
                         "cluster: {nodes: 1, gpus_per_node: %d, gpu: h100-80gb, inside: {bandwidth: 100 GB/s, latency: 1 us}, "
                         "host: {bandwidth: %g B/s, latency: 0 s, update: 1 G}}\n"
                         "batch: {global: 2, micro: 1}\nstrategy: {data: 1, context: %d, context_attention: %s}\n"
                         "memory: {precision: mixed-bf16, offload: %s, recompute: %s, fragmentation: 0, context: 0 B%s}\n"
                         "simulation: {engine: ideal}\n", 4096 * context, context, bandwidth, context, attentions[i / 2],
                         k ? "activations" : "none", i % 2 ? "full" : "none", k ? i % 2 ? ", limit: 1100 MB" : ", limit: 1400 MB" : "");
                seconds[k] = simulated.run.metrics.iteration_time;
                if (k)
                    assert_true(simulated.run.metrics.offload_bytes_per_gpu > 0);
                if (k == 1)
                    expect_near("iteration", seconds[1], seconds[0], simulated.text);
                else if (k == 2)
                    assert_true(seconds[2] >= simulated.run.metrics.offload_bytes_per_gpu / 2 / bandwidth && seconds[2] > seconds[0]);
                simulated_release(&simulated);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights),     cmocka_unit_test(test_shares), cmocka_unit_test(test_optimizer),
        cmocka_unit_test(test_checkpoints), cmocka_unit_test(test_bounds), cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_all_flows), cmocka_unit_test(test_context),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
