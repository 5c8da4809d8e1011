/* Full recomputation of some blocks: which ones, and closed forms of time, FLOPs and memory between none and all. */
#include "simulated.h"

enum { BLOCKS = 8 };             /* of the model; in pipelines of 2 and 2 chunks 2 a chunk */
static const char little[] =
    "model: {transformer: {layers: 8, hidden: 64, heads: 8, sequence: 32, vocabulary: 1000, dropout: 0.1}}\n"
    "cluster: {nodes: 1, gpus_per_node: 8, gpu: a100-80gb, inside: {bandwidth: 100 GB/s, latency: 1 us}, "
    "host: {bandwidth: 10 GB/s, latency: 10 us}}\n"
    "batch: {micro: 2, micro_batches: 4}\nsimulation: {engine: ideal}\n";

static const char *const strategies[] = {
    "pipeline: 1, data: 1", "pipeline: 1, data: 4, zero: 3", "pipeline: 2, data: 2", "pipeline: 2, data: 2, zero: 3",
    "pipeline: 2, data: 1, schedule: gpipe", "pipeline: 2, data: 2, schedule: gpipe, recompute_last: true, zero: 3",
    "pipeline: 2, data: 2, schedule: varuna", "pipeline: 2, data: 1, schedule: interleaved, chunks: 2",
    "pipeline: 2, data: 2, schedule: looped-bfs, chunks: 2", "pipeline: 2, data: 1, schedule: zb-h1",
    "pipeline: 2, data: 1, schedule: zb-v", "pipeline: 2, data: 1, schedule: chimera",
    "pipeline: 2, data: 1, tensor: 2, sequence_parallel: true", "pipeline: 2, data: 2, schedule: pipedream-2bw",
};

/* Which blocks of a single stage are recomputed, a letter each. */
static void assert_pattern(const char *recompute, const char *expected)
{
    struct simulated simulated;
    const struct stage *stages;
    const struct stage_times *times;
    size_t n = strlen(expected);

    simulated_load(&simulated, "model: {transformer: {layers: %zu, hidden: 64, heads: 8, sequence: 32, "
                   "vocabulary: 1000}}\ncluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro_batches: 1}\n"
                   "strategy: {data: 1}\nmemory: {recompute: {mode: full, %s}}\n", n, recompute);
    stages = simulated_workload(&simulated)->stages;
    times = ordinary_times(&simulated.workload);
    for (size_t l = 0, block = 0; l < stages->nslices; l++) {
        const struct slice *slice = &stages->slices[stages->nslices - 1 - l];

        if (slice->block ? slice->recompute != (expected[block++] == 'R') : slice->recompute)
            fail_msg("%s: layer %zu, expected %s", recompute, l, expected);
        assert_true((slice_times(stages, times, slice)->work[RECOMPUTE]->seconds > 0) == slice->recompute);
    }
    simulated_release(&simulated);
}

/* Shares as fms-fsdp's tests have them (tests/test_selective_ac.py); the first blocks as Megatron-LM's method block. */
static void test_patterns(void **state)
{
    (void)state;
    assert_pattern("share: 0", "---------------");
    assert_pattern("share: 0.01", "---------------");
    assert_pattern("share: 0.2", "--R----R----R--");
    assert_pattern("share: 0.3333", "-R--R--R--R--R-");
    assert_pattern("share: 0.5", "R-R-R-R-R-R-R-R");
    assert_pattern("share: 0.6", "R-R-RR-R-RR-R-R");
    assert_pattern("share: 0.6667", "R-RR-RR-RR-RR-R");
    assert_pattern("share: 1", "RRRRRRRRRRRRRRR");
    assert_pattern("blocks: 0", "-----");
    assert_pattern("blocks: 2", "RR---");
    assert_pattern("blocks: 5", "RRRRR");
    assert_pattern("blocks: 100", "RRRRR");
}

static void run_with(struct simulated *simulated, size_t strategy, const char *recompute)
{
    run_text(simulated, "%sstrategy: {%s}\nmemory: {recompute: %s}\n", little, strategies[strategy], recompute);
}

static void assert_same(const struct simulated *a, const struct simulated *b)
{
    const struct metrics *one = &a->run.metrics, *other = &b->run.metrics;

    assert_int_equal(one->nranks, other->nranks);
    expect_near("time", one->iteration_time, other->iteration_time, a->text);
    expect_near("flop", one->hardware_flop, other->hardware_flop, a->text);
    expect_near("traffic", one->communication_bytes_per_gpu, other->communication_bytes_per_gpu, a->text);
    for (int r = 0; r < one->nranks; r++) {
        expect_near("memory", one->ranks[r].peak_memory, other->ranks[r].peak_memory, a->text);
        expect_near("activations", one->ranks[r].peak_activation, other->ranks[r].peak_activation, a->text);
        expect_near("again", one->ranks[r].seconds[ACCOUNT_RECOMPUTE], other->ranks[r].seconds[ACCOUNT_RECOMPUTE],
                    a->text);
    }
}

/* Of no blocks it is none, of all it is full: in every schedule; but in Varuna's, whose none is full, too. */
static void test_ends(void **state)
{
    static const char *const ends[][3] = {
        {"none", "{mode: full, blocks: 0}", "{mode: full, share: 0}"},
        {"full", "{mode: full, blocks: 8}", "{mode: full, share: 1}"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++)
        for (size_t end = strstr(strategies[i], "varuna") ? 1 : 0; end < COUNT(ends); end++)
            for (size_t k = 1; k < COUNT(ends[end]); k++) {
                struct simulated plain, some;

                run_with(&plain, i, ends[end][0]);
                run_with(&some, i, ends[end][k]);
                assert_same(&some, &plain);
                simulated_release(&plain);
                simulated_release(&some);
            }
}

/* A chunk's seconds and FLOPs of recomputation are proportional to its recomputed blocks: half of them cost half. */
static void test_linear(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++) {
        struct simulated none, full, some;

        run_with(&none, i, "{mode: full, blocks: 0}");
        run_with(&full, i, "full");
        const struct stage *whole = full.workload.stages;
        const double least = none.run.metrics.hardware_flop, extra = full.run.metrics.hardware_flop - least;
        int stages = plan_virtual_stages(&full.scenario.plan), blocks = BLOCKS / stages;

        assert_true(extra > 0);
        for (int n = 0; n <= blocks + 1; n++) {
            double part = n > blocks ? 0.5 : (double)n / blocks;
            char text[64];

            snprintf(text, sizeof text, n > blocks ? "{mode: full, share: 0.5}" : "{mode: full, blocks: %d}", n);
            run_with(&some, i, text);
            expect_near("flop", some.run.metrics.hardware_flop, least + part * extra, some.text);
            for (int s = 0; s < stages; s++) {
                double kept = whole[s].activation + part * (whole[s].checkpoint - whole[s].activation);

                expect_near("seconds", ordinary_times(&some.workload)[s].work[RECOMPUTE].seconds,
                            part * ordinary_times(&full.workload)[s].work[RECOMPUTE].seconds, some.text);
                if (scenario_schedule(&full.scenario)->recompute == RECOMPUTE_WITH_GRADIENT)
                    expect_near("kept", some.workload.stages[s].checkpoint, kept, some.text);
            }
            if (i == 0)
                expect_near("time", some.run.metrics.iteration_time, none.run.metrics.iteration_time +
                            part * (full.run.metrics.iteration_time - none.run.metrics.iteration_time), some.text);
            simulated_release(&some);
        }
        simulated_release(&none);
        simulated_release(&full);
    }
}

/* The most that a single stage holds, found by a walk through one micro-batch layer by layer. The forward of a
 * recomputed layer leaves its input; the forward of another layer leaves everything. A backward restores the other
 * activations of its layer, and frees them all at its end. */
static double walked(const struct stage *stage)
{
    double alive = 0, most = 0;

    for (size_t l = stage->nslices; l-- > 0;) {
        const struct slice *slice = &stage->slices[l];

        alive += slice->recompute ? slice->input : slice->activation;
        most = fmax(most, alive + slice->workspace.forward);
    }
    for (size_t l = 0; l < stage->nslices; l++) {
        const struct slice *slice = &stage->slices[l];

        most = fmax(most, alive + slice->workspace.backward +
                              (slice->recompute ? slice->activation - slice->input : 0));
        alive -= slice->recompute ? slice->input : slice->activation;
    }
    return most;
}

/* When a whole stage has been recomputed, it holds as much as without recomputation. So it is ahead of its backwards
 * (gpipe), and before its backwards for weights (zb-h1). In plain PyTorch an RMSNorm's copy of its input comes on
 * top. */
static void test_whole_stage(void **state)
{
    static const char *const shapes[] = {"", "norm: rmsnorm, positions: 0", "flash_attention: true",
                                         "norm: rmsnorm, fused_kernels: false"};
    static const char *const schedules[] = {"gpipe", "zb-h1"};

    (void)state;
    for (size_t i = 0; i < COUNT(shapes) * COUNT(schedules); i++) {
        struct simulated none, full;
        const struct stage *all;
        double copies = i / 2 == 3 ? 2 * 32 * 64 * (i % 2 ? 2 : 1) * 2 : 0;  /* of one block, or of two */

        for (int again = 0; again < 2; again++)
            run_text(again ? &full : &none, "model: {transformer: {layers: 4, hidden: 64, heads: 8, sequence: 32, "
                     "vocabulary: 100, %s}}\ncluster: {platform: dgx-a100}\nbatch: {micro: 2, micro_batches: 4}\n"
                     "strategy: {pipeline: 2, data: 1, schedule: %s}\nmemory: {recompute: %s}\n", shapes[i / 2],
                     schedules[i % 2], again ? "full" : "none");
        all = full.workload.stages;
        expect_near("activations", all->checkpoint + all->working_split, none.workload.stages->activation + copies,
                    full.text);
        simulated_release(&none);
        simulated_release(&full);
    }
}

static void test_memory(void **state)
{
    static const char *const kinds[] = {
        "full", "{mode: full, share: 0.25}", "{mode: full, share: 0.5}", "{mode: full, blocks: 1}",
        "{mode: full, blocks: 5}", "{mode: full, blocks: 7}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++)
        for (int large = 0; large < 2; large++) {    /* a vocabulary whose layer takes less than the blocks, or more */
            struct simulated simulated;
            const double *peak;

            run_text(&simulated, "model: {transformer: {layers: 8, hidden: 64, heads: 8, sequence: 32, "
                     "vocabulary: %d}}\ncluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro: 2, micro_batches: 2}\n"
                     "strategy: {data: 1}\nmemory: {recompute: %s}\n",
                     large ? 10000 : 100, kinds[i]);
            peak = simulated.run.metrics.ranks[0].memory.bytes;
            expect_near("activations", peak[MEMORY_ACTIVATIONS] + peak[MEMORY_WORKSPACE],
                        walked(simulated.workload.stages), simulated.text);
            simulated_release(&simulated);
        }
}

/* ZeRO 3 gathers a layer once for its recomputation and backward. Where a whole stage is recomputed ahead of its
 * backward (GPipe), it gathers the recomputed layers once more, and no others. */
static void test_gathered(void **state)
{
    (void)state;
    for (int n = 0; n <= BLOCKS; n++)
        for (int ahead = 0; ahead < 2; ahead++) {
            struct simulated none, some;
            double again = 0;

            run_text(&none, "%sstrategy: {data: 4, zero: 3, schedule: %s}\n", little, ahead ? "gpipe" : "1f1b");
            run_text(&some, "%sstrategy: {data: 4, zero: 3, schedule: %s}\n"
                     "memory: {recompute: {mode: full, blocks: %d}}\n", little, ahead ? "gpipe" : "1f1b", n);
            for (size_t l = 0; l < some.workload.stages->nslices; l++)
                again += some.workload.stages->slices[l].recompute ? some.workload.stages->slices[l].parameters : 0;
            expect_near("traffic", some.run.metrics.communication_bytes_per_gpu,
                        none.run.metrics.communication_bytes_per_gpu + (ahead ? 3 * 2 * again * 3 / 4 : 0), some.text);
            simulated_release(&none);
            simulated_release(&some);
        }
}

/* The inputs of recomputed layers are offloaded, and nothing else leaves the GPU. */
static void test_offloaded(void **state)
{
    const double sbh = 2 * 32 * 64;

    (void)state;
    for (int n = 0; n <= BLOCKS; n++) {
        struct simulated plain, some;

        run_text(&plain, "%sstrategy: {data: 1}\nmemory: {recompute: {mode: full, blocks: %d}}\n", little, n);
        run_text(&some, "%sstrategy: {data: 1}\nmemory: {recompute: {mode: full, blocks: %d}, offload: activations}\n",
                 little, n);
        expect_near("moved", some.run.metrics.offload_bytes_per_gpu, 4 * 2 * n * 2 * sbh, some.text);
        expect_near("again", some.run.metrics.seconds[ACCOUNT_RECOMPUTE], plain.run.metrics.seconds[ACCOUNT_RECOMPUTE],
                    some.text);
        expect_near("flop", some.run.metrics.hardware_flop, plain.run.metrics.hardware_flop, some.text);
        simulated_release(&plain);
        simulated_release(&some);
    }
}

/* A block under recompute: operators. */
struct operators {
    const char *shape, *strategy, *precision;
    double again;                    /* recomputed multiplications for each token, on all GPUs together */
    double kept, heads;              /* values of 2 bytes for each token on a GPU, and values of 4 bytes */
    int exchanges;                   /* recomputed all-reduces of the tensor group */
};

/* recompute: operators keeps the results of fused attention and of the first, third, ... product of a block, and its
 * input; it recomputes the other products, without the last one where no mask follows it. Products of a block: Q K V,
 * projection, up, down with a fused QKV; else Q, K, V, projection, gate, up, down. Sums that a tensor group scatters
 * are kept, and the products before them are not recomputed. Compiled, the last product's result and its sum are not
 * kept, since the backward does not need them. */
static void check_operators(struct operators expected)
{
    const double tokens = 2 * 32, all_reduce = 2 * 64 * tokens;      /* bytes that one of two GPUs sends */
    struct simulated none, operators;
    const struct slice *block;

    for (int k = 0; k < 2; k++)
        run_text(k ? &operators : &none,
                 "model: {transformer: {layers: 8, hidden: 64, heads: 8, sequence: 32, vocabulary: 1000, "
                 "flash_attention: true, %s}}\ncluster: {platform: dgx-a100, gpu: h100-80gb}\n"
                 "batch: {micro: 2, micro_batches: 4}\nstrategy: {data: 1, %s}\n"
                 "memory: {precision: %s, recompute: %s}\nsimulation: {engine: ideal}\n",
                 expected.shape, expected.strategy, expected.precision, k ? "operators" : "none");
    block = &simulated_workload(&operators)->stages->slices[1];
    expect_near("flop", operators.run.metrics.hardware_flop - none.run.metrics.hardware_flop,
                4 * BLOCKS * 2 * tokens * expected.again, operators.text);
    expect_near("model flop", operators.run.metrics.model_flop, none.run.metrics.model_flop, operators.text);
    expect_near("kept", block->activation, tokens * (2 * expected.kept + 4 * expected.heads), operators.text);
    expect_near("sent", operators.run.metrics.communication_bytes_per_gpu,
                none.run.metrics.communication_bytes_per_gpu + 4 * BLOCKS * expected.exchanges * all_reduce,
                operators.text);
    assert_true(operators.run.metrics.iteration_time > none.run.metrics.iteration_time);
    simulated_release(&none);
    simulated_release(&operators);
}

static void test_operators(void **state)
{
    static const char gpt[] = "ffn: 256, fused_qkv: true, dropout: 0";
    static const char drops[] = "ffn: 256, fused_qkv: true, dropout: 0.1";
    static const char llama[] = "kv_heads: 2, ffn: 96, mlp: swiglu, fused_qkv: false, dropout: 0";
    static const char whole[] = "tensor: 2, sequence_parallel: false", shared[] = "tensor: 2, sequence_parallel: true";
    static const char eager[] = "kv_heads: 2, ffn: 96, mlp: swiglu, fused_qkv: false, dropout: 0, fused_norm: true, "
                                "fused_kernels: false, rotary: fused, repeated_groups: false, positions: 0";
    const double h = 64, kv = 16, ffn = 96, again = h * kv + h * ffn, columns = h + kv + h + ffn;

    (void)state;
    check_operators((struct operators){gpt, "", "mixed-bf16", h * h, h + 3 * h + h + 4 * h, 8, 0});
    check_operators((struct operators){drops, "", "mixed-bf16", h * h + 4 * h * h, h + 3 * h + h + 4 * h, 8, 0});
    for (int narrow = 0; narrow < 2; narrow++) {
        const char *precision = narrow ? "mixed-fp8" : "mixed-bf16";
        check_operators((struct operators){llama, "", precision, again + h * h, h + columns, 8, 0});
        check_operators((struct operators){llama, shared, precision, again, h / 2 + columns / 2 + h / 2, 4, 1});
        check_operators((struct operators){eager, "", precision, again + h * h, h + columns + h, 8, 0});
    }
    check_operators((struct operators){llama, whole, "mixed-bf16", again + h * h, h + columns / 2, 4, 1});
    check_operators((struct operators){eager, shared, "mixed-bf16", again, h / 2 + columns / 2 + h + h, 4, 1});
    check_operators((struct operators){drops, whole, "mixed-bf16", 5 * h * h, h + 3 * h / 2 + h / 2 + 4 * h / 2, 4, 2});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns), cmocka_unit_test(test_ends), cmocka_unit_test(test_linear),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_whole_stage), cmocka_unit_test(test_gathered),
        cmocka_unit_test(test_offloaded), cmocka_unit_test(test_operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
