/* What kernels' times stand on: every second of kernels is listed once, and what is not measured is extrapolated. */
#include "explain/ledger.h"
#include "simulated.h"

static double sum_of(const struct cost_bases *bases, enum cost_basis first)
{
    double sum = 0;

    for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++)
        for (int basis = (int)first; basis < BASIS_COUNT; basis++)
            sum += bases->seconds[kind][basis];
    return sum;
}

/* With launches recorded all compute is kernels. */
static void test_sums(void **state)
{
    static const char *const scenarios[] = {
        "model: {preset: gpt2-124m}\ncluster: {platform: ideal, gpu: a100-80gb}\nbatch: {global: 8, micro: 1}\n"
        "strategy: {schedule: 1f1b, pipeline: 4, data: 1}\nmemory: {precision: mixed-bf16}\n",
        "model: {preset: gpt2-124m}\ncluster: {platform: ideal, gpu: h100-80gb}\nbatch: {global: 8, micro: 2}\n"
        "strategy: {schedule: 1f1b, tensor: 2, data: 2}\nmemory: {recompute: full, precision: mixed-fp8}\n",
        "model: {preset: llama3-8b}\ncluster: {platform: ideal, gpu: h100-80gb}\nbatch: {global: 8, micro: 1}\n"
        "strategy: {schedule: 1f1b, tensor: 8, data: 1, zero: 1}\nmemory: {recompute: selective}\n"
        "software: {like: none, flash_attention: true}\n",
        "model: {preset: mixtral-8x7b}\ncluster: {platform: ideal, gpu: a100-80gb}\nbatch: {global: 16, micro: 1}\n"
        "strategy: {schedule: 1f1b, pipeline: 8, expert: 2, data: 2}\nmemory: {enforce: false}\n"
        "software: {like: none, flash_attention: true}\n",
        "model: {transformer: {hidden: 1024, pattern: M*E(GE)K-L, heads: 8, mamba: {heads: 32, head_size: 64, state: 64, groups: 4}, "
        "delta: {key_heads: 8, key_size: 64, value_heads: 8, value_size: 64}, linear: {heads: 8, head_size: 128}, experts: 8, "
        "experts_per_token: 2, sequence: 2048, vocabulary: 32000}}\ncluster: {platform: ideal, gpu: h100-80gb}\n"
        "batch: {global: 8, micro: 1}\nstrategy: {schedule: 1f1b, expert: 2, data: 2}\nmemory: {recompute: full, enforce: false}\n"
        "software: {like: none, flash_attention: true}\n",
        "model: {preset: vgg16}\ncluster: {platform: ideal, gpu: v100-16gb}\nbatch: {global: 64, micro: 8}\n"
        "strategy: {schedule: pipedream, pipeline: 2, data: 1}\nmemory: {precision: fp32}\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(scenarios); i++) {
        struct simulated calibrated, roofline;

        run_text(&calibrated, "%scosts: {host_launch: 0 s}\n", scenarios[i]);
        const struct metrics *metrics = &calibrated.run.metrics;
        double compute = 0;

        for (int kind = 0; kind < ACCOUNT_EXPOSED_TENSOR; kind++)
            compute += metrics->seconds[kind];
        if (!scenario_schedule(&calibrated.scenario)->asynchronous)      /* its steady state is not all of its rows */
            expect_near("kernels", sum_of(&metrics->bases, BASIS_MEASURED), compute, calibrated.text);
        expect_near("extrapolated", sum_of(&metrics->bases, BASIS_SIZES), metrics->extrapolated, calibrated.text);
        run_text(&roofline, "%scosts: {host_launch: 0 s, gpu: roofline}\n", scenarios[i]);
        assert_true(roofline.run.metrics.extrapolated == 0);
        expect_near("data sheet", sum_of(&roofline.run.metrics.bases, BASIS_DATA_SHEET),
                    sum_of(&roofline.run.metrics.bases, BASIS_MEASURED), roofline.text);
        simulated_release(&calibrated);
        simulated_release(&roofline);
    }
}

/* Each basis by a kernel that has it: samples of H100 are forwards (layout nt) of 512 to 32768 rows. */
static void test_each(void **state)
{
    static const struct { struct kernel kernel; enum cost_basis basis; } cases[] = {
        {{.kind = KERNEL_MATMUL, .dtype = DTYPE_BF16, .layout = LAYOUT_NT, .batch = 1, .m = 4096, .n = 4096, .k = 4096},
         BASIS_MEASURED},
        {{.kind = KERNEL_MATMUL, .dtype = DTYPE_BF16, .layout = LAYOUT_NT, .batch = 1, .m = 65536, .n = 4096, .k = 4096},
         BASIS_SIZES},
        {{.kind = KERNEL_MATMUL, .dtype = DTYPE_BF16, .flop = 1e12}, BASIS_SIZES},
        {{.kind = KERNEL_MATMUL, .dtype = DTYPE_BF16, .layout = LAYOUT_TN, .batch = 1, .m = 4096, .n = 4096, .k = 4096},
         BASIS_LAYOUT},
        {{.kind = KERNEL_MATMUL, .dtype = DTYPE_FP8, .layout = LAYOUT_NT, .batch = 1, .m = 4096, .n = 4096, .k = 4096},
         BASIS_MEASURED},
        {{.kind = KERNEL_MATMUL, .dtype = DTYPE_MXFP8, .layout = LAYOUT_NT, .batch = 1, .m = 4096, .n = 4096, .k = 4096},
         BASIS_LAYOUT},
        {{.kind = KERNEL_MEMORY, .dtype = DTYPE_BF16, .class = CLASS_GELU_BACKWARD, .bytes = 1e8}, BASIS_KERNELS},
        {{.kind = KERNEL_MATMUL, .dtype = DTYPE_FP32, .layout = LAYOUT_NT, .batch = 1, .m = 4096, .n = 4096, .k = 4096},
         BASIS_DATA_SHEET},
    };
    struct simulated simulated;

    (void)state;
    simulated_load(&simulated, "model: {preset: gpt2-124m}\ncluster: {platform: ideal, gpu: h100-80gb}\n"
                   "batch: {global: 8}\n");
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kernel kernel = cases[i].kernel;

        kernel.launches = 1;
        kernel.flop = kernel.m > 0 ? 2 * kernel.batch * kernel.m * kernel.n * kernel.k : kernel.flop;
        struct cost cost = costs_kernel(&simulated.scenario.kernels[0], &kernel);
        if (cost.basis != cases[i].basis || cost.kind != kernel.kind)
            fail_msg("case %zu stands on %s", i, cost_basis_names[cost.basis]);
        assert_true((cost.extrapolated > 0) == (cost.basis != BASIS_MEASURED));
    }
    simulated_release(&simulated);
}

/* Experts' products with scales of 32 values, which no sample has, take the time of the experts' products in fp8, not of single
 * products, on each chip that has them. */
static void test_scales(void **state)
{
    static const char *const gpus[] = {"b200-180gb", "gb200", "b300-288gb", "gb300"};

    (void)state;
    for (size_t i = 0; i < COUNT(gpus); i++) {
        struct simulated simulated;

        simulated_load(&simulated, "model: {preset: gpt2-124m}\ncluster: {platform: ideal, gpu: %s}\nbatch: {global: 8}\n", gpus[i]);
        for (double n = 512; n <= 8192; n *= 4) {
            struct kernel kernel = {.kind = KERNEL_GROUPED, .dtype = DTYPE_MXFP8, .layout = LAYOUT_NT, .batch = 16, .m = 8192, .n = n,
                                    .k = 2048, .launches = 1, .flop = 2 * 8192 * n * 2048};
            struct cost scaled = costs_kernel(&simulated.scenario.kernels[0], &kernel), plain, single;

            kernel.dtype = DTYPE_FP8;
            plain = costs_kernel(&simulated.scenario.kernels[0], &kernel);
            kernel.kind = KERNEL_MATMUL, kernel.m /= 16;
            single = costs_kernel(&simulated.scenario.kernels[0], &kernel);
            assert_int_equal(scaled.basis, BASIS_LAYOUT);
            assert_true(scaled.seconds == plain.seconds && scaled.seconds != single.seconds);
        }
        simulated_release(&simulated);
    }
}

/* The error that is stated of an iteration is the profile's on its kernels, of the time that they take. Nothing is
 * stated where times are given, of a data sheet, and where a profile held no samples out. */
static void test_stated_error(void **state)
{
    static const char *const silent[] = {
        "model: {preset: gpt2-124m}\ncluster: {platform: ideal, gpu: h100-80gb}\nbatch: {global: 8}\n"
        "costs: {gpu: roofline}\n",
        "model: {stages: {forward: 1 s, backward: 2 s}}\ncluster: {platform: ideal, gpu: h100-80gb}\n"
        "batch: {micro_batches: 4}\n",
    };
    struct simulated simulated;

    (void)state;
    for (size_t i = 0; i < COUNT(silent); i++) {
        run_text(&simulated, "%s", silent[i]);
        assert_true(isnan(simulated.run.metrics.stated_error));
        simulated_release(&simulated);
    }
    run_text(&simulated, "model: {preset: gpt2-124m}\ncluster: {platform: ideal, gpu: h100-80gb}\n"
             "batch: {global: 8}\n");
    const struct metrics *metrics = &simulated.run.metrics;
    const struct profile *profile = simulated.scenario.kernels[0].model.profile;
    double seconds = 0;

    assert_true(profile_error(profile, KERNEL_MATMUL) > 0.02 && profile_error(profile, KERNEL_MATMUL) < 0.2);
    for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++)
        for (int basis = 0; kind != KERNEL_GROUPED && basis < BASIS_DATA_SHEET; basis++)
            seconds += metrics->bases.seconds[kind][basis] * profile_error(profile, (enum kernel_kind)kind);
    expect_near("stated error", metrics->stated_error, seconds / metrics->iteration_time, simulated.text);
    struct profile copy = *profile;
    struct matmul_record *records = ARENA_ARRAY(&simulated.scenario.arena, struct matmul_record, 3);
    records[0].error = (struct fit_error){.samples = 10, .held_out = 2, .mean = 0.1};
    records[1].error = (struct fit_error){.samples = 10, .held_out = 0, .mean = NAN};
    records[2].error = (struct fit_error){.samples = 10, .held_out = 6, .mean = 0.02};
    copy.matmul = (struct list){.items = records, .count = 3};
    expect_near("mean", profile_error(&copy, KERNEL_MATMUL), (2 * 0.1 + 6 * 0.02) / 8, "three records");
    copy.matmul = (struct list){.items = records + 1, .count = 1};
    assert_true(isnan(profile_error(&copy, KERNEL_MATMUL)));
    simulated_release(&simulated);
}

/* `show --kernels` lists the same kernels of a work as the stage's times have, each with its basis. The seconds that
 * are left are waits for launches. */
static void expect_ledger(const struct workload *workload, int s, const char *text)
{
    static const enum work_kind kinds[] = {FORWARD, BACKWARD_INPUT, BACKWARD_WEIGHT, RECOMPUTE};
    const struct stage_times *times = &ordinary_times(workload)[s];
    struct ledger ledger;

    ledger_init(&ledger, workload, s);
    assert_true(ledger.count > 0);
    for (enum ledger_work work = LEDGER_FORWARD; work < LEDGER_WORK_COUNT; work++) {
        const struct work_times *of = work == LEDGER_UPDATE ? &times->update : &times->work[kinds[work]];
        struct cost_bases bases = {0};
        double sum = ledger.waits[work];

        if (work == LEDGER_RECOMPUTE && !workload->plan.recompute)
            continue;
        for (size_t i = 0; i < ledger.count; i++) {
            const struct ledger_row *row = &ledger.items[i];

            if (row->work != work)
                continue;
            assert_true(row->count > 0);
            sum += row->seconds;
            bases.seconds[row->kernel.kind][row->basis] += row->seconds;
        }
        expect_near("a work's kernels and waits", sum, of->seconds, text);
        for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++)
            for (int basis = 0; basis < BASIS_COUNT; basis++)
                expect_near(cost_basis_names[basis], bases.seconds[kind][basis], of->bases.seconds[kind][basis], text);
        if (workload->scenario->costs.host_launch == 0)
            assert_true(ledger.waits[work] == 0);
    }
    ledger_release(&ledger);
}

static void test_ledger(void **state)
{
    static const char *const scenarios[] = {
        "model: {preset: gpt2-124m}\nstrategy: {schedule: zb-h1, pipeline: 4, data: 1}\nmemory: {precision: mixed-bf16}\n",
        "model: {preset: gpt2-124m}\nstrategy: {schedule: 1f1b, tensor: 2, data: 2, zero: 3}\n"
        "memory: {recompute: full, precision: mixed-fp8}\n",
        "model: {preset: llama3-8b}\nstrategy: {schedule: interleaved, pipeline: 2, chunks: 2, tensor: 4, data: 1, zero: 1}\n"
        "memory: {recompute: selective}\nsoftware: {like: megatron-core}\n",
        "model: {preset: llama3-8b}\nstrategy: {schedule: 1f1b, pipeline: 2, tensor: 2, sequence_parallel: true, data: 2}\n"
        "memory: {recompute: operators, enforce: false}\nsoftware: {like: none, fused_kernels: false}\n",
        "model: {preset: mixtral-8x7b}\nstrategy: {schedule: 1f1b, pipeline: 8, expert: 2, data: 2}\n"
        "memory: {enforce: false}\nsoftware: {like: none, flash_attention: true}\n",
        "model: {preset: llama3-8b}\nstrategy: {schedule: 1f1b, pipeline: 4, tensor: 2, data: 1}\n"
        "software: {like: none, partitioned_outputs: true, early_stop: true}\nmemory: {recompute: full, enforce: false}\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(scenarios); i++)
        for (int launch = 0; launch < 2; launch++) {
            struct simulated simulated;

            simulated_load(&simulated, "%scluster: {platform: ideal, gpu: h100-80gb}\nbatch: {global: 16, micro: 1}\n"
                           "costs: {host_launch: %d us}\n", scenarios[i], 100 * launch);
            const struct workload *workload = simulated_workload(&simulated);
            for (int s = 0; s < plan_virtual_stages(&workload->plan); s++)
                expect_ledger(workload, s, simulated.text);
            simulated_release(&simulated);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums), cmocka_unit_test(test_each), cmocka_unit_test(test_scales), cmocka_unit_test(test_stated_error),
        cmocka_unit_test(test_ledger),
    };

    return cmocka_run_group_tests_name("cost_basis", tests, NULL, NULL);
}
