/* unlike: a scenario that no published run resembles has no expected error, and says all that makes it so, and which run
 * is nearest. A profile that no published run stands on is only further from all: tests/property/published_errors.c leaves
 * out each. */
#include "files/data.h"
#include "evidence/evidence.h"
#include "report/caveats.h"
#include "run/certainty.h"
#include "simulated.h"

static const char *const plain = "model: {preset: gpt2-355m}\nbatch: {micro_batches: 4}\nsoftware: megatron-core\n";

/* Whether notes hold the sentence, and the expected error is null; NULL: no such sentence, and there is one. */
static void expect(const char *sentence, const char *more)
{
    const char *begin = "no published run is like this: ", *found = NULL;
    struct simulated simulated;
    const char *nearest = NULL;
    json_t *result, *note;
    size_t i, length;

    run_text(&simulated, "%s%s", strncmp(more, "model", 5) ? plain : "", more);
    result = result_json(&simulated.run);
    json_array_foreach(json_object_get(result, "notes"), i, note)
        if (!strncmp(json_string_value(note), begin, strlen(begin)))
            found = json_string_value(note) + strlen(begin);
    nearest = found ? strstr(found, "; the nearest is ") : NULL;
    length = nearest ? (size_t)(nearest - found) : found ? strlen(found) : 0;
    if (!sentence != !found || (sentence && (strlen(sentence) != length || strncmp(sentence, found, length))))
        fail_msg("'%s' instead of '%s' in\n%s", found ? found : "", sentence ? sentence : "", more);
    assert_true(json_is_null(json_object_get(result, "expected_error_share")) == (sentence != NULL));
    assert_true(json_is_null(json_object_get(result, "expected_longer_share")) == (sentence != NULL));
    json_decref(result);
    simulated_release(&simulated);
}

#define ONE "cluster: {platform: dgx-h100, nodes: 1}\nstrategy: {data: 8}\n"
#define TWO "strategy: {data: 16}\ncluster: {platform: dgx-h100, nodes: 2"

static void test_each(void **state)
{
    (void)state;
    expect(NULL, ONE);
    expect(NULL, TWO "}\n");
    expect("its kernel times are given", "model: {stages: {forward: 1 s, backward: 2 s}}\nbatch: {micro_batches: 4}\n"
           "cluster: {platform: dgx-h100, nodes: 1}\nstrategy: {data: 8}\n");
    expect(NULL, "cluster: {platform: l40s-pcie, nodes: 1}\nstrategy: {data: 8}\n");
    expect("costs.speed is 2", ONE "costs: {speed: 2}\n");
    expect("its network takes no time", "cluster: {platform: ideal, gpu: h100-80gb}\nstrategy: {data: 8}\n");
    expect("some of its GPUs are slower (stragglers)", ONE "simulation: {stragglers: [{gpu: 3, slower: 1.5}]}\n");
    expect("some of its NICs are slower (slow_links)",
           TWO "}\nsimulation: {slow_links: [{node: 1, nic: 0, share: 0.5}]}\n");
    expect("its kernels vary at random (jitter)", ONE "simulation: {jitter: 0.1}\n");
}

/* A GPU whose kernels nobody measured has the error that data sheets had on published runs, which is larger, and a note. */
static void test_sheets(void **state)
{
    static const struct { const char *note, *more; } cases[] = {
        {"its kernel times come from the data sheet of NVIDIA H100-SXM5-80GB, not from measured kernels",
         ONE "costs: {gpu: roofline}\n"},
        {"its kernel times come from the data sheet of AMD Instinct MI300X, not from measured kernels",
         "cluster: {platform: dgx-h100, nodes: 1, gpu: mi300x}\nstrategy: {data: 8}\n"},
        {"its kernel times come from the data sheet of NVIDIA H20-SXM5-96GB, not from measured kernels",
         "cluster: {platform: hgx-h20, nodes: 1}\nstrategy: {data: 8}\n"},
        {"kernels of NVIDIA H100-SXM5-80GB with memory_bandwidth: 3.3 TB/s were not measured: those of h100-80gb are scaled by "
         "the data sheets",
         "strategy: {data: 8}\ncluster: {platform: dgx-h100, nodes: 1, gpu: {name: h100-80gb, memory_bandwidth: 3.3 TB/s}}\n"},
    };
    struct simulated profiled;

    (void)state;
    run_text(&profiled, "%s%s", plain, ONE);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;
        json_t *result, *note;
        bool found = false;
        size_t k;

        expect(NULL, cases[i].more);
        run_text(&simulated, "%s%s", plain, cases[i].more);
        result = result_json(&simulated.run);
        json_array_foreach(json_object_get(result, "notes"), k, note)
            found |= !strcmp(json_string_value(note), cases[i].note);
        assert_true(found);
        /* hardly surer than with this GPU's own kernels: sheets were near on ten published kinds of GPU (lambda-bert-squad) */
        assert_true(simulated.run.metrics.expected_error > 0.9 * profiled.run.metrics.expected_error);
        json_decref(result);
        simulated_release(&simulated);
    }
    simulated_release(&profiled);
}

/* The share of the kernels' time that attention has. */
static double fused_share(const struct metrics *metrics)
{
    double all = 0, attention = 0;

    for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++)
        for (int basis = 0; basis < BASIS_COUNT; basis++) {
            all += metrics->bases.seconds[kind][basis];
            attention += kind == KERNEL_ATTENTION ? metrics->bases.seconds[kind][basis] : 0;
        }
    return attention / all;
}

/* How much larger its expected error is than what published runs show. */
static double added(const struct simulated *simulated)
{
    struct likeness likeness = likeness_of(&simulated->scenario, &simulated->run.metrics);

    return simulated->run.metrics.expected_error - evidence_expect(simulated->scenario.evidence, &likeness, NULL).error;
}

/* Fused attention on every GPU of the platforms: a note with the key, no error of the peak, and an error of the time that is
 * larger by twice attention's share exactly where NVIDIA's chip is too old for the kernels that are called; the error alone
 * where memory-efficient attention is called, which no profile has. Where nobody names kernels, the release's file takes those
 * back that the GPU cannot run. */
static void test_attention(void **state)
{
    static const char *const older[] = {"p40", "v100-16gb", "v100-32gb", "v100-sxm3-32gb"},
                      *const turing[] = {"t4", "rtx-2080", "titan-rtx"};
    struct arena arena = {0};
    struct error err = {0};
    const char **gpus = data_names(&arena, "platforms/gpus", &err);
    int lacking = 0;

    (void)state;
    assert_non_null(gpus);
    for (size_t g = 0; gpus[g]; g++)
        for (int called = 0; called < 7; called++) {
            const char *const keys[] = {"", "attention: flash-1, ", "flash_attention: false, ", "attention: eager, ",
                                        "attention: memory-efficient, ", "attention: sdpa, ",
                                        "attention: flash-2, flash_attention: false, "};
            struct simulated simulated;
            bool lacks = false, found = false, efficient = called == 4, unsure;
            json_t *result, *note;
            size_t k;

            for (size_t i = 0; i < COUNT(older); i++)
                efficient |= called == 5 && !strcmp(gpus[g], older[i]), lacks |= called == 1 && !strcmp(gpus[g], older[i]);
            for (size_t i = 0; i < COUNT(turing); i++)
                efficient |= called == 5 && !strcmp(gpus[g], turing[i]);
            lacking += lacks;
            unsure = lacks || efficient;
            run_text(&simulated, "model: {preset: gpt2-355m}\nbatch: {micro_batches: 4}\nsoftware: {%slike: megatron-core}\n"
                     "cluster: {platform: dgx-h100, nodes: 1, gpu: %s}\nstrategy: {data: 8}\nmemory: {enforce: false}\n",
                     keys[called], gpus[g]);
            result = result_json(&simulated.run);
            json_array_foreach(json_object_get(result, "notes"), k, note)
                found |= strstr(json_string_value(note), "software.flash_attention: false") != NULL;
            if (found != lacks || fabs(added(&simulated) - (unsure ? 2 * fused_share(&simulated.run.metrics) : 0)) > 1e-12 ||
                lacks != isnan(simulated.run.metrics.peaks[0].within))
                fail_msg("%s on %s: note %d, expected %d", keys[called], gpus[g], found, lacks);
            json_decref(result);
            simulated_release(&simulated);
        }
    assert_int_equal(lacking, COUNT(older));
    arena_release(&arena);
}

/* Of 1 Gb/s to 800 Gb/s (scenarios/paper/errors.tsv). Inside a node NICs carry nothing. A link that no published run has, or
 * whose rates are estimates, adds 0.35 of the share of exposed communication to the error, and nothing else does: with the
 * same links nobody calls them estimates, and the error is the smaller one. */
static void test_network(void **state)
{
    static const struct { const char *note, *cluster; } cases[] = {
        {"its NICs have 62.5 MB/s, and those of published runs at least 125 MB/s", TWO ", network: {bandwidth: 500 Mb/s}}\n"},
        {"its NICs have 62.5 MB/s, and those of published runs at least 125 MB/s", TWO ", network: {rate: 500 Mb/s}}\n"},
        {"its NICs have 200 GB/s, and those of published runs at most 100 GB/s", TWO ", network: {bandwidth: 1600 Gb/s}}\n"},
        {"rates of its links are estimates (network : guessed)", TWO ", network: {estimate: guessed}}\n"},
        {"rates of its links are estimates (network : guessed)", TWO ", network: {estimate: guessed, bandwidth: 10 Gb/s}}\n"},
        {NULL, TWO ", network: {bandwidth: 10 Gb/s}}\n"},
        {NULL, TWO ", network: {bandwidth: 1 Gb/s}}\n"},
        {NULL, TWO ", network: {bandwidth: 800 Gb/s}}\n"},
        {NULL, "cluster: {platform: dgx-h100, nodes: 1, network: {bandwidth: 1600 Gb/s}}\nstrategy: {data: 8}\n"},
    };
    double errors[COUNT(cases)];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;
        const struct metrics *m = &simulated.run.metrics;
        bool found = false;
        json_t *result, *note;
        size_t k;

        expect(NULL, cases[i].cluster);
        run_text(&simulated, "%s%s", plain, cases[i].cluster);
        result = result_json(&simulated.run);
        json_array_foreach(json_object_get(result, "notes"), k, note)
            found |= cases[i].note && !strcmp(json_string_value(note), cases[i].note);
        assert_true(found == (cases[i].note != NULL));
        errors[i] = m->expected_error;
        assert_true(fabs(added(&simulated) - (found ? 0.35 * m->exposed_communication / m->iteration_time : 0)) < 1e-12);
        json_decref(result);
        simulated_release(&simulated);
    }
    assert_true(errors[4] > errors[5]);
}

#define MIXED \
    "model: {transformer: {hidden: 1024, pattern: %s, heads: 8, %s, ffn: 4096, sequence: 2048, vocabulary: 32000}}\n" \
    "batch: {micro_batches: 4}\nsoftware: megatron-core\nmemory: {enforce: false}\n" ONE

/* s of kernels that nobody has measured. The expected error is larger by their share, and a note says so, exactly where there
 * are any. */
static double unmeasured_of(const char *pattern, const char *widths)
{
    struct simulated simulated;
    const struct cost_bases *bases = &simulated.run.metrics.bases;
    double unmeasured;
    bool found = false;
    json_t *result, *note;
    size_t k;

    run_text(&simulated, MIXED, pattern, widths);
    unmeasured = bases->unmeasured;
    result = result_json(&simulated.run);
    json_array_foreach(json_object_get(result, "notes"), k, note)
        found |= strstr(json_string_value(note), "that nobody has measured") != NULL;
    assert_true(unmeasured >= 0 && unmeasured < cost_bases_total(bases));
    assert_true(found == (unmeasured > 0));
    expect_near("added", added(&simulated), unmeasured / cost_bases_total(bases), simulated.text);
    json_decref(result);
    simulated_release(&simulated);
    return unmeasured;
}

/* Of each mixer: twice as many have twice the time, and attention and MLPs beside them add none. */
static void test_mixers(void **state)
{
    static const struct { const char *one, *two, *beside, *widths; } cases[] = {
        {"(M-)*", "(M-)*(M-)", "(M-)*-**", "mamba: {heads: 32, head_size: 64, state: 64, groups: 4}"},
        {"(G-)*", "(G-)*(G-)", "(G-)*-**", "delta: {key_heads: 4, key_size: 64, value_heads: 8, value_size: 128}"},
        {"(K-)*", "(K-)*(K-)", "(K-)*-**", "delta: {key_heads: 8, key_size: 128, value_heads: 8, value_size: 128}"},
        {"(L-)*", "(L-)*(L-)", "(L-)*-**", "linear: {heads: 8, head_size: 128}"},
    };

    (void)state;
    assert_true(unmeasured_of("(*-)", "kv_heads: 8") == 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        double one = unmeasured_of(cases[i].one, cases[i].widths);

        assert_true(one > 0);
        expect_near("twice as many", unmeasured_of(cases[i].two, cases[i].widths), 2 * one, cases[i].two);
        expect_near("beside others", unmeasured_of(cases[i].beside, cases[i].widths), one, cases[i].beside);
    }
}

static void test_several(void **state)
{
    (void)state;
    expect("costs.speed is 0.5; some of its GPUs are slower (stragglers); some of its NICs are slower (slow_links); its kernels vary at random (jitter)",
           TWO ", network: {bandwidth: 1600 Gb/s}}\ncosts: {gpu: roofline, speed: 0.5}\n"
           "simulation: {stragglers: [{gpu: 3, slower: 1.5}], slow_links: [{node: 1, nic: 0, share: 0.5}],\n"
           "             jitter: 0.1}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each), cmocka_unit_test(test_sheets), cmocka_unit_test(test_attention),
        cmocka_unit_test(test_network), cmocka_unit_test(test_mixers), cmocka_unit_test(test_several),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
