/* profile: what the profiles that come with dtsim say, which costs a scenario gets, and what counts as extrapolated. */
#include "simulated.h"

#include "files/data.h"

static const char block[] =
    "model: {transformer: {layers: 4, hidden: 4096, heads: 32, sequence: 2048, vocabulary: 32000}}\n"
    "batch: {global: 8}\nsimulation: {engine: ideal}\n";

static double product(const struct profile *profile, enum dtype dtype, double m, double n, double k)
{
    struct kernel kernel = {.kind = KERNEL_MATMUL, .dtype = dtype, .layout = LAYOUT_NT, .batch = 1, .m = m, .n = n,
                            .k = k, .flop = 2 * m * n * k};

    return profile_kernel(profile, &kernel, ATTENTION_NEWEST).seconds;
}

/* Every profile is named after a GPU; large products run below its peak and above 0.4 of it (Blackwell under Transformer
 * Engine: 0.46), and nothing that was measured of one falls out of the range of another. Operands may come out of the
 * cache, whose bandwidth no record of products exceeds (L40S: 96 MB of it, and 1.5 times its memory's bandwidth). */
static void sane(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error none = {0};
    const char **names = data_names(&arena, "calibration/data", &none);

    assert_non_null(names[0]);
    for (size_t i = 0; names[i]; i++) {
        struct error err = {0};
        struct profile profile;
        struct gpu gpu;

        if (profile_load(&arena, names[i], (struct loc){0}, &profile, &err) ||
            gpu_load(&arena, names[i], (struct loc){0}, &gpu, &err)) {
            error_print(&err, stderr);
            fail_msg("%s", names[i]);
        }
        double large = 2 * pow(32768, 3) / product(&profile, DTYPE_FP16, 32768, 32768, 32768);
        assert_true(large < gpu.peak.fp16 && large > 0.4 * gpu.peak.fp16);
        const struct matmul_record *matmul = profile.matmul.items;
        for (size_t r = 0; r < profile.matmul.count; r++) {
            assert_true(matmul[r].fit.bandwidth < 2 * gpu.memory_bandwidth);
            assert_true(isnan(matmul[r].error.mean) || matmul[r].error.mean < 0.11);
        }
        const struct memory_record *memory = profile.memory.items;
        for (size_t r = 0; r < profile.memory.count; r++)
            assert_true(memory[r].fit.bandwidth < 1.1 * gpu.memory_bandwidth);
    }
    arena_release(&arena);
}

static void load(struct arena *arena, const char *name, struct profile *profile, struct gpu *gpu)
{
    struct error err = {0};

    assert_int_equal(profile_load(arena, name, (struct loc){0}, profile, &err), 0);
    assert_int_equal(gpu_load(arena, name, (struct loc){0}, gpu, &err), 0);
}

/* No kernel is faster than the GPU's data sheet, measured or not. */
static void under_no_bound(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct profile profile;
    struct gpu gpu;
    struct cost_model model = {.source = COST_CALIBRATED, .gpu = &gpu, .profile = &profile};

    load(&arena, "a100-80gb", &profile, &gpu);
    for (double m = 1; m < 1e5; m *= 8)
        for (double k = 1; k < 1e5; k *= 8) {
            struct kernel kernel = {.kind = KERNEL_MATMUL, .dtype = DTYPE_FP16, .batch = 1, .m = m, .n = 1000, .k = k,
                                    .flop = 2000 * m * k, .bytes = 2 * (m * k + 1000 * k + 1000 * m), .launches = 3};
            double seconds = cost_kernel(&model, &kernel).seconds / 3;

            assert_true(seconds >= kernel.flop / gpu.peak.fp16 && seconds >= kernel.bytes / gpu.memory_bandwidth);
            assert_true(seconds >= gpu.launch_overhead);
        }
    arena_release(&arena);
}

static void expect_costs(const char *more, enum cost_source source, const char *profile)
{
    struct simulated simulated;

    simulated_load(&simulated, "%s%s", block, more);
    assert_int_equal(simulated.scenario.kernels[0].model.source, source);
    if (profile)
        assert_string_equal(simulated.scenario.kernels[0].profile, profile);
    else
        assert_null(simulated.scenario.kernels[0].profile);
    simulated_release(&simulated);
}

static void the_default(void **state)
{
    (void)state;
    expect_costs("cluster: {platform: dgx-a100, nodes: 1}\n", COST_CALIBRATED, "a100-80gb");
    expect_costs("cluster: {platform: dgx-a100, nodes: 1}\ncosts: {gpu: roofline}\n", COST_ROOFLINE, NULL);
    expect_costs("cluster: {platform: dgx-a100, nodes: 1}\ncosts: {profile: a40}\n", COST_CALIBRATED, "a40");
    expect_costs("cluster: {platform: dgx-a100, nodes: 1, gpu: " DTSIM_SOURCE_DIR "/platforms/gpus/a100-80gb.yaml}\n",
                 COST_ROOFLINE, NULL);
}

/* Longer sequences than any sample: more of the compute is extrapolated, and never more than there is. */
static void extrapolated_seconds(void **state)
{
    (void)state;
    double share[2];

    for (int i = 0; i < 2; i++) {
        struct simulated simulated;

        run_text(&simulated, "%scluster: {platform: dgx-a100, nodes: 1}\nstrategy: {data: 1}\n"
                 "batch: {global: 4, micro: %d}\n",
                 "model: {transformer: {layers: 4, hidden: 4096, heads: 32, sequence: 2048, vocabulary: 32000, "
                 "flash_attention: true}}\nsimulation: {engine: ideal}\nmemory: {enforce: false}\n", i ? 4 : 1);
        const struct metrics *m = &simulated.run.metrics;
        double compute = m->iteration_time - m->seconds[ACCOUNT_BUBBLE] - m->exposed_communication;
        assert_true(m->extrapolated > 0 && m->extrapolated < compute);
        share[i] = m->extrapolated / compute;
        simulated_release(&simulated);
        run_text(&simulated, "%scluster: {platform: dgx-a100, nodes: 1}\ncosts: {gpu: roofline}\n", block);
        assert_true(simulated.run.metrics.extrapolated == 0);
        simulated_release(&simulated);
    }
    assert_true(share[0] > 0.3 && share[1] > 0.3);
}

/* Iteration times of a model (and what else the scenario says) on one GPU, with 0, 5 and 50 us for each launch. */
static void with_launches(const char *model, double seconds[3])
{
    static const char *const launches[] = {"0", "5 us", "50 us"};

    for (int i = 0; i < 3; i++) {
        struct simulated simulated;

        run_text(&simulated, "model: {transformer: %s\ncluster: {platform: dgx-a100, nodes: 1}\nstrategy: {data: 1}\n"
                 "batch: {global: 1}\ncosts: {host_launch: %s}\n", model, launches[i]);
        seconds[i] = simulated.run.metrics.iteration_time;
        simulated_release(&simulated);
    }
}

/* A model of small layers is as slow as its host launches kernels; one of large layers does not wait for it. */
static void the_host(void **state)
{
    double seconds[3];

    (void)state;
    with_launches("{layers: 8, hidden: 128, heads: 2, sequence: 64, vocabulary: 256}}", seconds);
    assert_true(seconds[1] > seconds[0] && seconds[2] > 9 * seconds[1]);
    with_launches("{layers: 2, hidden: 12288, heads: 96, sequence: 2048, vocabulary: 51200}}\n"
                  "memory: {enforce: false}", seconds);
    assert_true(seconds[1] == seconds[0] && seconds[2] < 1.01 * seconds[0]);
}

/* A host that waits for each kernel: what both take adds up, whatever the layers' size. */
static void the_waiting_host(void **state)
{
    static const int hidden[] = {128, 4096};

    (void)state;
    for (size_t i = 0; i < COUNT(hidden); i++) {
        double seconds[2][3];

        for (int k = 0; k < 6; k++) {
            struct simulated simulated;

            run_text(&simulated,
                     "model: {transformer: {layers: 4, hidden: %d, heads: 2, sequence: 64, vocabulary: 256}}\n"
                     "cluster: {platform: dgx-a100, nodes: 1}\nstrategy: {data: 1}\nbatch: {global: 2, micro: 1}\n"
                     "costs: {host_launch: %d us, launch_blocking: %s}\n", hidden[i], 50 * (k / 2),
                     k % 2 ? "true" : "false");
            seconds[k % 2][k / 2] = simulated.run.metrics.iteration_time;
            simulated_release(&simulated);
        }
        assert_true(seconds[1][0] == seconds[0][0]);       /* a host that takes no time */
        assert_true(seconds[1][1] > seconds[0][1]);
        expect_near("second half", seconds[1][2] - seconds[1][1], seconds[1][1] - seconds[1][0], "launch_blocking");
        if (hidden[i] == 128)                              /* without waiting: the host alone, from some time on */
            expect_near("host", seconds[1][2] - seconds[1][1], seconds[0][2] - seconds[0][1], "launch_blocking");
    }
}

/* Weights in fp8 that are kept are cast once an iteration: all micro-batches but one save what a cast takes. */
static void kept_weights(void **state)
{
    double saved[3];

    (void)state;
    for (int m = 1; m <= 3; m++) {
        double seconds[2];

        for (int kept = 0; kept < 2; kept++) {
            struct simulated simulated;

            run_text(&simulated,
                     "model: {transformer: {layers: 4, hidden: 8192, heads: 64, sequence: 4096, vocabulary: 256}}\n"
                     "cluster: {platform: dgx-h100, nodes: 1}\nstrategy: {data: 1}\n"
                     "batch: {micro_batches: %d, micro: 1}\n"
                     "memory: {precision: mixed-fp8, fp8_weights: %s, enforce: false}\ncosts: {host_launch: 0}\n", m,
                     kept ? "kept" : "cast");
            seconds[kept] = simulated.run.metrics.iteration_time;
            simulated_release(&simulated);
        }
        saved[m - 1] = seconds[0] - seconds[1];
    }
    /* 4 x 12 x 8192 x 8192 weights, two bytes read and two written of each, at some 3 TB/s */
    assert_true(saved[2] - saved[1] > 3e-3 && saved[2] - saved[1] < 6e-3);
    assert_true(fabs((saved[2] - saved[1]) / (saved[1] - saved[0]) - 1) < 1e-6);
    assert_true(fabs(saved[0]) < 0.02 * (saved[2] - saved[1]));
}

/* A product of which only FLOPs are known has no rows that could be aligned or not. */
static void products_without_a_shape(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    struct profile profile;

    assert_int_equal(profile_load(&arena, "a100-80gb", (struct loc){0}, &profile, &err), 0);
    for (double flop = 1e9; flop < 1e13; flop *= 1.3) {
        const struct kernel kernel = {.kind = KERNEL_MATMUL, .dtype = DTYPE_FP16, .batch = 1, .flop = flop};
        struct matmul_record *record = profile.matmul.items;
        double unaligned = record->fit.unaligned, seconds = profile_kernel(&profile, &kernel, ATTENTION_NEWEST).seconds;

        assert_true(unaligned > 1);
        record->fit.unaligned = 1;
        assert_true(seconds == profile_kernel(&profile, &kernel, ATTENTION_NEWEST).seconds);
        record->fit.unaligned = unaligned;
    }
    arena_release(&arena);
}

/* A Winograd convolution, counted in full, is twice as fast as the direct one: what it multiplies is half as much, and
 * the data sheet's rate is of that. */
static void more_efficient_than_counted(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct profile profile;
    struct gpu gpu;
    struct cost_model model = {.source = COST_CALIBRATED, .gpu = &gpu, .profile = &profile};
    struct kernel kernel = {.kind = KERNEL_MATMUL, .dtype = DTYPE_FP32, .batch = 1, .flop = 1e12, .launches = 1};
    double once;

    load(&arena, "v100-16gb", &profile, &gpu);
    once = cost_kernel(&model, &kernel).seconds;
    kernel.efficiency = 2;
    assert_true(fabs(cost_kernel(&model, &kernel).seconds / once - 0.5) < 0.01);
    arena_release(&arena);
}

/* A fused attention that was not measured takes as long as its products would, and counts as extrapolated. */
static void attention_without_a_record(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    struct profile profile;
    struct kernel kernel = {.kind = KERNEL_ATTENTION, .dtype = DTYPE_FP16, .batch = 64, .m = 2048, .n = 2048, .k = 128,
                            .flop = 4 * 64. * 2048 * 2048 * 128};

    assert_int_equal(profile_load(&arena, "a40", (struct loc){0}, &profile, &err), 0);
    struct kernel_seconds forward = profile_kernel(&profile, &kernel, ATTENTION_NEWEST);
    assert_true(forward.basis != BASIS_MEASURED && forward.seconds > kernel.flop / 312e12);
    kernel.phase = PHASE_BACKWARD_INPUT;
    kernel.flop *= 2.5;
    assert_true(profile_kernel(&profile, &kernel, ATTENTION_NEWEST).seconds > 1.5 * forward.seconds);
    arena_release(&arena);
}

/* A generation, or the next older; of one mask, or for lack of it the other, which is then extrapolated. */
static void generations(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    struct profile profile;
    double n = 4096, flop = 4 * 64 * n * n * 128, last = INFINITY;
    struct kernel kernel = {.kind = KERNEL_ATTENTION, .dtype = DTYPE_BF16, .batch = 64, .m = n, .n = n, .k = 128,
                            .causal = true, .flop = flop / 2};

    assert_int_equal(profile_load(&arena, "h100-80gb", (struct loc){0}, &profile, &err), 0);
    for (int generation = ATTENTION_FLASH_1; generation <= ATTENTION_CUDNN; generation++) {
        struct kernel_seconds one = profile_kernel(&profile, &kernel, (enum attention_generation)generation);

        assert_true(one.seconds < last && one.seconds > kernel.flop / 989e12);
        assert_true((one.basis != BASIS_MEASURED) == (generation == ATTENTION_FLASH_1));
        last = one.seconds;
    }
    assert_true(profile_kernel(&profile, &kernel, ATTENTION_NEWEST).seconds == last);
    kernel.phase = PHASE_BACKWARD_INPUT;
    kernel.flop *= 2.5;
    struct kernel_seconds causal = profile_kernel(&profile, &kernel, ATTENTION_FLASH_2);
    kernel.causal = false;
    struct kernel_seconds whole = profile_kernel(&profile, &kernel, ATTENTION_FLASH_2);
    assert_true(causal.basis == BASIS_LAYOUT && whole.basis == BASIS_MEASURED);
    assert_true(causal.seconds > whole.seconds / 2 && causal.seconds < 0.6 * whole.seconds);
    assert_int_equal(profile_load(&arena, "a100-80gb", (struct loc){0}, &profile, &err), 0);
    assert_true(profile_kernel(&profile, &kernel, ATTENTION_FLASH_3).seconds ==
                profile_kernel(&profile, &kernel, ATTENTION_FLASH_2).seconds);
    arena_release(&arena);
}

/* Heads of a size at which only other generations were sampled take their record. Latent attention, with a mean size of
 * keys and values of 160, has another record. A generation without a record, and without an older one, takes the oldest
 * newer one, and is noted as other kernels. */
static void sizes_of_heads(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    struct profile profile;
    double n = 4096;
    struct kernel kernel = {.kind = KERNEL_ATTENTION, .dtype = DTYPE_BF16, .batch = 64, .m = n, .n = n, .causal = true};

    assert_int_equal(profile_load(&arena, "h100-80gb", (struct loc){0}, &profile, &err), 0);
    for (kernel.k = 128; kernel.k <= 256; kernel.k += 128) {
        struct kernel_seconds newest = profile_kernel(&profile, &kernel, ATTENTION_NEWEST);
        struct kernel_seconds third = profile_kernel(&profile, &kernel, ATTENTION_FLASH_3);

        assert_true(newest.basis == BASIS_MEASURED && third.basis == BASIS_MEASURED);
        assert_true((newest.seconds == third.seconds) == (kernel.k == 256));
    }
    kernel.k = 160;
    struct kernel_seconds latent = profile_kernel(&profile, &kernel, ATTENTION_NEWEST);
    kernel.k = 168;
    struct kernel_seconds wider = profile_kernel(&profile, &kernel, ATTENTION_NEWEST);
    assert_true(latent.basis == BASIS_MEASURED && wider.basis == BASIS_MEASURED);
    assert_true(wider.seconds > latent.seconds);
    assert_int_equal(profile_load(&arena, "b200-180gb", (struct loc){0}, &profile, &err), 0);
    kernel.k = 128;
    kernel.phase = PHASE_BACKWARD_INPUT;
    struct kernel_seconds asked = profile_kernel(&profile, &kernel, ATTENTION_FLASH_2);
    assert_true(asked.seconds == profile_kernel(&profile, &kernel, ATTENTION_CUDNN).seconds);
    assert_true(asked.basis == BASIS_KERNELS);
    arena_release(&arena);
}

/* A record of kernels bound by memory may hold for some formats alone: V100's softmax is slower in half precision, and
 * a kernel without a record in a format counts as element-wise there. */
static void formats_of_memory(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    struct profile profile;
    const double bytes = 4e7;
    const struct { enum dtype dtype; enum memory_class class; double rate; bool extrapolated; } cases[] = {
        {DTYPE_FP16, CLASS_SOFTMAX_FORWARD, 673e9, false}, {DTYPE_FP32, CLASS_SOFTMAX_FORWARD, 784e9, false},
        {DTYPE_FP16, CLASS_GELU_FORWARD, 726e9, true},     {DTYPE_FP32, CLASS_ADAM, 797e9, true},
    };

    assert_int_equal(profile_load(&arena, "v100-16gb", (struct loc){0}, &profile, &err), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kernel kernel = {.kind = KERNEL_MEMORY, .dtype = cases[i].dtype, .class = cases[i].class,
                                .bytes = bytes};
        struct kernel_seconds one = profile_kernel(&profile, &kernel, ATTENTION_NEWEST);

        assert_true(fabs(one.seconds - (3e-6 + bytes / cases[i].rate)) < 1e-9);
        assert_true((one.basis != BASIS_MEASURED) == cases[i].extrapolated);
    }
    struct kernel brain = {.kind = KERNEL_MEMORY, .dtype = DTYPE_BF16, .class = CLASS_OTHER, .bytes = bytes};
    assert_true(isnan(profile_kernel(&profile, &brain, ATTENTION_NEWEST).seconds));
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sane), cmocka_unit_test(under_no_bound), cmocka_unit_test(the_default),
        cmocka_unit_test(extrapolated_seconds), cmocka_unit_test(the_host),
        cmocka_unit_test(the_waiting_host), cmocka_unit_test(kept_weights), cmocka_unit_test(products_without_a_shape),
        cmocka_unit_test(attention_without_a_record), cmocka_unit_test(more_efficient_than_counted),
        cmocka_unit_test(generations), cmocka_unit_test(sizes_of_heads),
        cmocka_unit_test(formats_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
