/* Layers that differ: each layer's kernels hide its own exchanges. Over random patterns of windows and of experts a layer
 * that does more makes no run faster, and a mixed model lies between the pure ones. */
#include "auto/bound.h"
#include "simulated.h"
#include "trials.h"
#include "work_seconds.h"

#include <inttypes.h>

enum { BLOCKS = 8 };

/* What a random case has besides its patterns; `keys` are of its strategy. */
struct drawn { int tensor, context, pipeline; double bandwidth; char keys[160]; const char *window, *recompute; };

static struct drawn draw(uint64_t *seed)
{
    static const char *const attentions[] = {"ring", "ring", "ring", "all-gather", "hybrid, ulysses: 2"};
    static const char *const windows[] = {"window: 256", "window: 1024, chunked: true", "window: 2048"};
    static const char *const recompute[] = {"none", "full", "selective"};
    struct drawn drawn = {.tensor = 1 << random_below(seed, 2), .context = 4 << random_below(seed, 2),
                          .pipeline = 1 << random_below(seed, 2), .bandwidth = 1e9 * (1 + random_below(seed, 60))};
    const char *attention = attentions[random_below(seed, (int)COUNT(attentions))];
    bool products = drawn.tensor > 1 && random_below(seed, 2), blocks = !strcmp(attention, "all-gather");

    drawn.window = windows[random_below(seed, (int)COUNT(windows))];
    drawn.recompute = recompute[random_below(seed, (int)COUNT(recompute))];
    snprintf(drawn.keys, sizeof drawn.keys, "context_attention: %s%s%s%s", attention, blocks ? ", context_blocks: true" : "",
             drawn.tensor > 1 ? ", sequence_parallel: true, overlap_tensor: true" : "",
             products ? ", overlap_products: true" : "");
    return drawn;
}

/* A list of the blocks in a set, for YAML. */
static void print_blocks(unsigned set, FILE *out)
{
    const char *before = "";

    for (int b = 0; b < BLOCKS; b++)
        if (set >> b & 1) {
            fprintf(out, "%s%d", before, b);
            before = ", ";
        }
}

/* Simulates the case with these blocks full, all others windowed, and these blocks with experts, all others dense. */
static void run_pattern(struct simulated *simulated, const struct drawn *drawn, unsigned full, unsigned experts,
                        const char *engine)
{
    char *blocks;
    size_t size;
    FILE *out = open_memstream(&blocks, &size);

    if (full != (1U << BLOCKS) - 1) {
        fprintf(out, ", %s, full_blocks: [", drawn->window);
        print_blocks(full, out);
        fputs("]", out);
    }
    if (experts) {
        fputs(", experts: 8, experts_per_token: 2, expert_ffn: 1024, shared_experts: 1, expert_blocks: [", out);
        print_blocks(experts, out);
        fputs("]", out);
    }
    fclose(out);
    run_text(simulated,
             "model: {transformer: {layers: %d, hidden: 1024, heads: 16, ffn: 4096, mlp: swiglu, sequence: 16384,\n"
             "        vocabulary: 32000, positions: 0, dropout: 0, tied: false, flash_attention: true%s}}\n"
             "cluster: {nodes: 1, gpus_per_node: %d, gpu: a100-80gb, inside: {bandwidth: %.17g B/s, latency: 2 us}}\n"
             "strategy: {tensor: %d, context: %d, pipeline: %d, expert: %d, %s}\nmemory: {enforce: false, recompute: %s}\n"
             "costs: {host_launch: 0}\nsimulation: {engine: %s}\nbatch: {micro_batches: 2}\n",
             BLOCKS, blocks, drawn->tensor * drawn->context * drawn->pipeline, drawn->bandwidth, drawn->tensor,
             drawn->context, drawn->pipeline, experts ? 4 : 1, drawn->keys, drawn->recompute, engine);
    free(blocks);
}

static double seconds_of(const struct drawn *drawn, unsigned full, unsigned experts, const char *engine)
{
    struct simulated simulated;
    double seconds;

    run_pattern(&simulated, drawn, full, experts, engine);
    seconds = simulated.run.metrics.iteration_time;
    simulated_release(&simulated);
    return seconds;
}

/* Fails where `less` is the longer of two times. */
static void expect_order(double less, double more, const char *what, uint64_t number)
{
    if (less > more * (1 + 1e-9))
        fail_msg("case %" PRIu64 ": %s: %.12g s, then %.12g s", number, what, less, more);
}

/* One block after another loses its window, in a random order. */
static void more_is_never_faster(void **state)
{
    int rose = 0;

    (void)state;
    EACH_TRIAL(number, 160) {
        uint64_t seed = number * UINT64_C(0x9e3779b97f4a7c15);
        struct drawn drawn = draw(&seed);
        unsigned full = 0, experts = random_below(&seed, 3) ? 0 : (unsigned)random_below(&seed, 1 << BLOCKS);
        const char *engine = number % 2 ? "ideal" : "fast";
        double before = seconds_of(&drawn, 0, experts, engine);

        for (int i = 0; i < BLOCKS; i += 1 + random_below(&seed, 3)) {
            double seconds;

            full |= 1U << random_below(&seed, BLOCKS);
            seconds = seconds_of(&drawn, full, experts, engine);
            expect_order(before, seconds, "one more block without a window", number);
            rose += seconds > before * (1 + 1e-6);
            before = seconds;
        }
        expect_order(before, seconds_of(&drawn, (1U << BLOCKS) - 1, experts, engine), "no windows", number);
    }
    assert_true(rose > 0);
}

/* What works of a kind communicate is the sum over their layers: of k full blocks among others it lies on the line between
 * the pure models. */
static void mixed_is_between(void **state)
{
    static const enum op_what kinds[] = {WHAT_FORWARD, WHAT_BACKWARD};
    const unsigned all = (1U << BLOCKS) - 1;
    int apart = 0;

    (void)state;
    EACH_TRIAL(number, 120) {
        uint64_t seed = number * UINT64_C(0x9e3779b97f4a7c15);
        struct drawn drawn = draw(&seed);
        unsigned mixed = (unsigned)random_below(&seed, 1 << BLOCKS);
        const unsigned patterns[3] = {0, all, mixed};
        double share = 1.0 * __builtin_popcount(mixed) / BLOCKS, sums[3][COUNT(kinds)];

        drawn.pipeline = 1;
        for (int p = 0; p < 3; p++) {
            struct simulated simulated;

            run_pattern(&simulated, &drawn, patterns[p], 0, "ideal");
            for (size_t k = 0; k < COUNT(kinds); k++)
                sums[p][k] = communication(&simulated, kinds[k]);
            simulated_release(&simulated);
        }
        for (size_t k = 0; k < COUNT(kinds); k++) {
            expect_near("communication of a mixed model", sums[2][k], (1 - share) * sums[0][k] + share * sums[1][k],
                        drawn.keys);
            apart += fabs(sums[0][k] - sums[1][k]) > 1e-3 * sums[0][k];
        }
    }
    assert_true(apart > 0);
}

/* Dense blocks among blocks with experts: a run takes no less than the faster of the pure models, and no more than the
 * slower. One stage, where no bubble depends on the order of blocks. */
static void experts_between(void **state)
{
    (void)state;
    EACH_TRIAL(number, 120) {
        uint64_t seed = number * UINT64_C(0x9e3779b97f4a7c15);
        struct drawn drawn = draw(&seed);
        unsigned full = (unsigned)random_below(&seed, 1 << BLOCKS), experts = 1 + (unsigned)random_below(&seed, 254);
        double dense, mixed, sparse;

        drawn.pipeline = 1;
        dense = seconds_of(&drawn, full, 0, "ideal");
        mixed = seconds_of(&drawn, full, experts, "ideal");
        sparse = seconds_of(&drawn, full, (1U << BLOCKS) - 1, "ideal");
        expect_order(fmin(dense, sparse), mixed, "blocks with experts among dense ones", number);
        expect_order(mixed, fmax(dense, sparse), "and the slower of the pure models", number);
    }
}

/* Engines agree, and a plan's bound is one. */
static void engines_and_bound(void **state)
{
    (void)state;
    EACH_TRIAL(number, 60) {
        uint64_t seed = number * UINT64_C(0x9e3779b97f4a7c15);
        struct drawn drawn = draw(&seed);
        unsigned full = (unsigned)random_below(&seed, 1 << BLOCKS), experts = (unsigned)random_below(&seed, 1 << BLOCKS);
        double fast = seconds_of(&drawn, full, experts, "fast"), simgrid = seconds_of(&drawn, full, experts, "simgrid");
        struct simulated simulated;
        struct measure measure;
        double bound;

        if (fabs(fast - simgrid) > 1e-6 * fast)
            fail_msg("case %" PRIu64 ": fast %.12g s, simgrid %.12g s", number, fast, simgrid);
        run_pattern(&simulated, &drawn, full, experts, "fast");
        measure_init(&measure, ENGINE_FAST, &simulated.scenario.cluster);
        bound = workload_bound(&simulated.workload, NULL, &measure);
        measure_release(&measure);
        simulated_release(&simulated);
        assert_true(bound > 0);
        expect_order(bound, fast, "the bound, and the iteration", number);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_is_never_faster), cmocka_unit_test(mixed_is_between), cmocka_unit_test(experts_between),
        cmocka_unit_test(engines_and_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
