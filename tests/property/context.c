/* context: what attention over a divided sample exposes, by closed forms, and how it divides samples and heads. */
#include "context_run.h"
#include "overlapped.h"
#include "work_seconds.h"

static double positive(double x)
{
    return x > 0 ? x : 0;
}

/* Every step passes a block of keys and values on while the attention to the last one is computed: what a pass takes
 * longer is exposed, from all of it (slow links) to nothing (fast ones). Gathering them first exposes all. */
static void exposed(void **state)
{
    int hidden = 0, shown = 0;

    (void)state;
    for (int context = 2; context <= 8; context *= 2)
        for (double bandwidth = 1e8; bandwidth < 1e13; bandwidth *= 10)
            for (int gathers = 0; gathers < 2; gathers++) {
                struct place p = {context, 1, 1, 8, 1, bandwidth, 2e-6};
                struct simulated simulated;
                double block = 2.0 * H * SEQUENCE / context * 2, n = context, forward, backward;

                run_context(&simulated, &p, gathers ? "all-gather" : "ring", "ideal", "", 1);
                double one = p.latency + block / bandwidth, both = p.latency + 2 * block / bandwidth;
                const double *attention = ordinary_times(&simulated.workload)[0].hidings[0].attention;
                double step[2] = {attention[0] / n, attention[1] / n};
                assert_true(gathers ? step[0] == 0 && step[1] == 0 : step[0] > 0 && step[1] > 0);
                forward = gathers ? (n - 1) * one : (n - 1) * positive(one - step[0]);
                backward = gathers ? 2 * (n - 1) * one
                                   : 2 * positive(one - step[1]) + (n - 2) * positive(both - step[1]);
                hidden += forward == 0;
                shown += forward > 0;
                expect_near("forward", communication(&simulated, WHAT_FORWARD), LAYERS * forward, simulated.text);
                expect_near("backward", communication(&simulated, WHAT_BACKWARD), LAYERS * backward, simulated.text);
                simulated_release(&simulated);
            }
    assert_true(hidden >= 2 && shown > 2);
}

/* Heads for tokens, of queries, keys, values and results, and of their gradients: a pairwise all-to-all each among u
 * GPUs. A hybrid group passes the keys and values of its share of the heads around a ring besides. Here one of four heads
 * of keys and values stands for two of queries. */
static void exchanges_heads(void **state)
{
    static const struct { int context, ulysses; } shapes[] = {{2, 2}, {4, 4}, {4, 2}, {8, 4}, {8, 2}, {4, 1}};

    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (double bandwidth = 1e8; bandwidth < 1e13; bandwidth *= 100) {
            int n = shapes[i].context / shapes[i].ulysses;
            double u = shapes[i].ulysses, own = 2.0 * SEQUENCE / shapes[i].context, peers = u - 1;
            double query = own * H, key = query / 2, one = 2e-6 + 2 * key / bandwidth, both = 2e-6 + 4 * key / bandwidth;
            double heads = 4 * peers * 2e-6 + 2 * peers / u * (query + key) / bandwidth, step[2];
            struct simulated simulated;
            char more[64];

            snprintf(more, sizeof more, "context_attention: hybrid, ulysses: %d", shapes[i].ulysses);
            run_text(&simulated,
                     "model: {transformer: {layers: %d, hidden: %d, heads: %d, kv_heads: 4, sequence: %d,\n"
                     "        vocabulary: 1000, positions: 0, flash_attention: true}}\n"
                     "cluster: {nodes: 1, gpus_per_node: 8, gpu: a100-80gb,\n"
                     "          inside: {bandwidth: %.17g B/s, latency: 2 us}}\n"
                     "strategy: {context: %d, data: 1, %s}\ncosts: {host_launch: 0}\n"
                     "simulation: {engine: ideal}\nbatch: {micro_batches: 1}\n", LAYERS, H, HEADS, SEQUENCE, bandwidth,
                     shapes[i].context, n == 1 ? "context_attention: all-to-all" : more);
            for (int phase = 0; phase < 2; phase++)
                step[phase] = ordinary_times(&simulated.workload)[0].hidings[0].attention[phase] / n;
            expect_near("forward", communication(&simulated, WHAT_FORWARD),
                        LAYERS * (heads + (n - 1) * positive(one - step[0])), simulated.text);
            expect_near("backward", communication(&simulated, WHAT_BACKWARD),
                        LAYERS * (heads + (n == 1 ? 0 : 2 * positive(one - step[1]) + (n - 2) * positive(both - step[1]))),
                        simulated.text);
            expect_near("sent", simulated.run.metrics.ranks[0].sent[PAYLOAD_ACTIVATIONS] +
                                simulated.run.metrics.ranks[0].sent[PAYLOAD_ACTIVATION_GRADIENTS],
                        LAYERS * (4 * peers / u * (query + key) + 3 * (n - 1) * 2 * key), simulated.text);
            simulated_release(&simulated);
        }
}

/* PyTorch's context parallelism: keys and values come by a gather, or a pass at each step; gradients in fp32 are passed
 * on after every one of the n steps. Each hides behind a step's attention, but for the last gradients; traced by
 * torch.compile none does. Each block adds kernels, whose traffic is linear in the number of blocks. */
static void block_by_block(void **state)
{
    int hidden = 0;

    (void)state;
    for (int n = 2; n <= 8; n *= 2)
        for (double bandwidth = 1e8; bandwidth < 1e13; bandwidth *= 100)
            for (int k = 0; k < 4; k++) {
                bool gathers = k & 1, waits = k & 2;
                double keys = 2.0 * H * SEQUENCE / n * 2, one = 2e-6 + keys / bandwidth, next = 2e-6 + 2 * keys / bandwidth;
                double pass = gathers ? (n - 1) * one : one, step[2], forward, backward;
                struct simulated simulated;

                run_text(&simulated,
                         "model: {transformer: {layers: %d, hidden: %d, heads: %d, sequence: %d, vocabulary: 1000,\n"
                         "        positions: 0, flash_attention: true}}\n"
                         "cluster: {nodes: 1, gpus_per_node: 8, gpu: a100-80gb,\n"
                         "          inside: {bandwidth: %.17g B/s, latency: 2 us}}\n"
                         "strategy: {context: %d, data: 1, context_attention: %s, context_blocks: true,\n"
                         "           overlap_context: %s}\ncosts: {host_launch: 0}\n"
                         "simulation: {engine: ideal}\nbatch: {micro_batches: 1}\n", LAYERS, H, HEADS, SEQUENCE,
                         bandwidth, n, gathers ? "all-gather" : "ring", waits ? "false" : "true");
                for (int phase = 0; phase < 2; phase++)
                    step[phase] = waits ? 0 : ordinary_times(&simulated.workload)[0].hidings[0].attention[phase] / n;
                forward = (gathers ? 1 : n - 1) * positive(pass - step[0]);
                backward = positive(pass - step[1]) + next;
                backward += gathers ? (n - 1) * positive(next - step[1])
                                    : (n - 2) * positive(pass + next - step[1]) + positive(next - step[1]);
                hidden += forward == 0;
                expect_near("forward", communication(&simulated, WHAT_FORWARD), LAYERS * forward, simulated.text);
                expect_near("backward", communication(&simulated, WHAT_BACKWARD), LAYERS * backward, simulated.text);
                expect_near("keys and values", simulated.run.metrics.ranks[0].sent[PAYLOAD_ACTIVATIONS],
                            LAYERS * 2 * (n - 1) * keys, simulated.text);
                expect_near("gradients", simulated.run.metrics.ranks[0].sent[PAYLOAD_ACTIVATION_GRADIENTS],
                            LAYERS * n * 2 * keys, simulated.text);
                simulated_release(&simulated);
            }
    assert_true(hidden > 0);
}

/* The traffic of the kernels that merge blocks, by name: bytes a value of PyTorch's operations. */
static double traffic(const struct layer *block, const char *name, enum phase phase)
{
    double bytes = 0;

    for (size_t i = 0; i < block->nkernels; i++)
        if (!strcmp(block->kernels[i].name, name) && block->kernels[i].phase == phase)
            bytes += block->kernels[i].bytes * fmax(1, block->kernels[i].launches);
    return bytes;
}

static void merged_traffic(void **state)
{
    (void)state;
    for (int fused = 0; fused < 2; fused++)
        for (int n = 2; n <= 16; n *= 2) {
            struct shard shard = {.micro = 1, .tensor = 1, .dtype = DTYPE_BF16, .context = n, .blocks_apart = true};
            double values = (double)H * SEQUENCE / n;
            const struct layer *layers;
            struct simulated simulated;
            struct error err = {0};
            size_t count;

            simulated_load(&simulated, "model: {transformer: {layers: 1, hidden: %d, heads: %d, sequence: %d,\n"
                           "        vocabulary: 1000, positions: 0, flash_attention: true, fused_kernels: %s}}\n"
                           "cluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro_batches: 1}\nstrategy: {data: 1}\n",
                           H, HEADS, SEQUENCE, fused ? "true" : "false");
            assert_int_equal(model_layers(&simulated.scenario.arena, &simulated.scenario.model, &shard,
                                          (struct loc){0}, &layers, &count, &err), 0);
            expect_near("merge", traffic(&layers[1], "context-merge", PHASE_FORWARD),
                        values * (6 + 6 + (n - 1) * (fused ? 10 : 38)), simulated.text);
            expect_near("sums", traffic(&layers[1], "context-sums", PHASE_BACKWARD_INPUT),
                        values * (3 * (4 + 6 + n * 10) + (fused ? 0 : 2 * 8 * n)), simulated.text);
            expect_near("pack", traffic(&layers[1], "context-pack", PHASE_FORWARD),
                        values * 2 * 4 * (fused ? 1 : n - 1), simulated.text);
            simulated_release(&simulated);
        }
}

/* A sample that is packed of documents: attention has the FLOPs of the documents as samples, however the tokens are
 * divided; all other kernels have the FLOPs of one sample. A combination that cannot be is refused by its key's
 * name. */
static void documents(void **state)
{
    static const char *const attentions[] = {"ring", "all-gather", "all-to-all"};
    static const struct { const char *why, *set; } refused[] = {
        {"1 to the 4096 tokens", "batch.documents=4097"}, {"1 to the 4096 tokens", "batch.documents=0.5"},
        {"not fused", "software.flash_attention=false"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(attentions); i++)
        for (int length = 512; length <= SEQUENCE; length *= 2) {
            struct simulated runs[2];
            double pieces = (double)SEQUENCE / length;
            double core = LAYERS * 3 * 4.0 * SEQUENCE * SEQUENCE * H;       /* of the model, no mask counted */

            for (int k = 0; k < 2; k++)
                run_text(&runs[k],
                         "model: {transformer: {layers: %d, hidden: %d, heads: %d, sequence: %d, vocabulary: 1000,\n"
                         "        positions: 0, flash_attention: true}}\ncluster: {platform: dgx-a100, nodes: 1}\n"
                         "strategy: {context: 4, data: 1, context_attention: %s}\n"
                         "simulation: {engine: ideal}\nbatch: {micro_batches: 1, documents: %d}\n", LAYERS, H, HEADS,
                         SEQUENCE, attentions[i], k ? length : 0);
            expect_near("model FLOPs", runs[1].run.metrics.model_flop,
                        runs[0].run.metrics.model_flop - core * (1 - 1 / pieces), runs[1].text);
            expect_near("attention", runs[0].workload.stages[0].work[FORWARD].flop -
                                     runs[1].workload.stages[0].work[FORWARD].flop,
                        core / 3 / 4 * (1 - 1 / pieces), runs[1].text);
            assert_true(runs[1].run.metrics.iteration_time <= runs[0].run.metrics.iteration_time);
            expect_near("activations", runs[1].workload.stages[0].activation, runs[0].workload.stages[0].activation,
                        runs[1].text);
            for (size_t r = 0; r < COUNT(refused) && length == 512; r++) {
                struct scenario varied;
                struct error err = {0};

                assert_int_equal(scenario_vary(&runs[1].scenario, &refused[r].set, 1, &varied, &err), -1);
                assert_non_null(strstr(err.messages[0].text, refused[r].why));
                scenario_release(&varied);
                error_release(&err);
            }
            simulated_release(&runs[0]);
            simulated_release(&runs[1]);
        }
}

/* Attention of all tokens and a share of the heads: FLOPs and scores are the same as in a ring. A degree that does not
 * divide the heads, or the heads of keys and values, is refused by name. */
static void divides_heads(void **state)
{
    static const struct { const char *why, *sets[4]; } refused[] = {
        {"2 heads of keys and values", {"strategy.context=4", "strategy.context_attention=all-to-all"}},
        {"1 heads of keys and values",
         {"strategy.context=2", "strategy.tensor=2", "strategy.context_attention=all-to-all"}},
        {"cannot share 12 attention heads", {"strategy.context=8", "strategy.context_attention=hybrid"}},
        {"does not divide the 4 GPUs",
         {"strategy.context=4", "strategy.context_attention=hybrid", "strategy.ulysses=3"}},
        {"goes with 'context_attention: hybrid' alone", {"strategy.context=4", "strategy.ulysses=2"}},
    };
    struct place p = {4, 1, 1, 8, 1, 3e11, 2e-6};
    struct simulated base, runs[2];

    (void)state;
    simulated_load(&base, "model: {transformer: {layers: 2, hidden: 768, heads: 12, kv_heads: 2, sequence: 4080,\n"
                   "        vocabulary: 1000, positions: 0, flash_attention: true}}\n"
                   "cluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro_batches: 1}\nstrategy: {data: 1}\n");
    for (size_t i = 0; i < COUNT(refused); i++) {
        size_t nsets = refused[i].sets[2] ? 3 : 2;
        struct scenario varied;
        struct error err = {0};

        assert_int_equal(scenario_vary(&base.scenario, refused[i].sets, nsets, &varied, &err), -1);
        assert_non_null(strstr(err.messages[0].text, refused[i].why));
        scenario_release(&varied);
        error_release(&err);
    }
    simulated_release(&base);
    for (int k = 0; k < 2; k++)
        run_context(&runs[k], &p, k ? "all-to-all" : "ring", "ideal", "", 1);
    for (int kind = FORWARD; kind <= RECOMPUTE; kind++)
        expect_near("FLOPs", runs[1].workload.stages[0].work[kind].flop, runs[0].workload.stages[0].work[kind].flop,
                    runs[1].text);
    expect_near("activations", runs[1].workload.stages[0].activation, runs[0].workload.stages[0].activation,
                runs[1].text);
    simulated_release(&runs[0]);
    simulated_release(&runs[1]);
}

/* A mixer of one layer in a context group of n: heads for tokens, one all-to-all a tensor, of T / n tokens in bf16; or an
 * all-gather of states in fp32, and the tokens before a convolution to the next GPU alone. Once in each direction. */
static void mixers(void **state)
{
    static const struct {
        const char *shape;
        bool states;                 /* where the software has states */
        double sent[7];              /* values of a token, of each tensor */
        double carried, tail;        /* B of a sample */
    } cases[] = {
        {"pattern: M, mamba: {heads: 8, head_size: 32, state: 16, groups: 8}", false, {256, 256, 128, 128, 8, 256}, 0, 0},
        {"pattern: G, delta: {key_heads: 8, key_size: 16, value_heads: 16, value_size: 32, conv: 3}", true,
         {128, 128, 512, 512, 16, 16, 512}, 4.0 * 16 * 16 * (32 + 16), 2 * (2 * 128 + 512) * 2.0},
        {"pattern: K, delta: {key_heads: 8, key_size: 32, value_heads: 8, value_size: 32}", true,
         {256, 256, 256, 256, 8, 256, 256}, 4.0 * 8 * 32 * 64, 3 * (3 * 256) * 2.0},
        {"pattern: L, linear: {heads: 8, head_size: 32}", true, {768, 256, 256}, 4.0 * 8 * 32 * 32, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int n = 2; n <= 8; n *= 2)
            for (int states = 0; states < 2; states++)
                for (int micro = 1; micro <= 2; micro++) {
                    double bandwidth = 3e9, latency = 2e-6, seconds = 0, sent = 0, peers = n - 1;
                    struct simulated simulated;

                    run_text(&simulated,
                             "model: {transformer: {hidden: 256, sequence: 2048, vocabulary: 1000, positions: 0, %s}}\n"
                             "cluster: {nodes: 1, gpus_per_node: 8, gpu: a100-80gb,\n"
                             "          inside: {bandwidth: 3 GB/s, latency: 2 us}}\nsoftware: {like: none, mixer_context: %s}\n"
                             "strategy: {context: %d, data: 1}\ncosts: {host_launch: 0}\nsimulation: {engine: ideal}\n"
                             "batch: {micro_batches: 1, micro: %d}\nmemory: {enforce: false, precision: mixed-bf16}\n",
                             cases[i].shape, states ? "states" : "heads", n, micro);
                    if (states && cases[i].states) {
                        sent = micro * (peers * cases[i].carried + cases[i].tail);
                        seconds = peers * latency + sent / bandwidth + (cases[i].tail > 0 ? latency : 0);
                    }
                    for (int k = 0; k < 7 && !(states && cases[i].states); k++) {
                        double bytes = micro * 2048.0 / n * cases[i].sent[k] * 2 * peers / n;

                        sent += bytes;
                        seconds += bytes > 0 ? peers * latency + bytes / bandwidth : 0;
                    }
                    expect_near("forward", communication(&simulated, WHAT_FORWARD), seconds, simulated.text);
                    expect_near("backward", communication(&simulated, WHAT_BACKWARD), seconds, simulated.text);
                    expect_near("sent", simulated.run.metrics.ranks[0].sent[PAYLOAD_ACTIVATIONS] +
                                        simulated.run.metrics.ranks[0].sent[PAYLOAD_ACTIVATION_GRADIENTS], 2 * sent,
                                simulated.text);
                    simulated_release(&simulated);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exposed), cmocka_unit_test(exchanges_heads), cmocka_unit_test(block_by_block),
        cmocka_unit_test(merged_traffic), cmocka_unit_test(documents), cmocka_unit_test(divides_heads),
        cmocka_unit_test(mixers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
