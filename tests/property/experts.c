/* experts: parameters of published models; bytes, FLOPs and memory of context and expert parallelism by hand counts. */
#include "simulated.h"
#include "trials.h"

enum {
    H = 64, HEADS = 8, KV_HEADS = 4, HEAD = 8, FFN = 96, EXPERT_FFN = 32, SEQUENCE = 64, VOCABULARY = 1000, EXPERTS = 8,
    TOP = 2, LAYERS = 4, DENSE = 1, PLANS = 60,
};

struct degrees {
    int tensor, context, expert, pipeline, data, micro, micro_batches, zero, shared;
    bool sequence_parallel;
    double capacity;
    const char *recompute, *attention, *collectives, *fold, *engine, *dispatcher;
    double skew;
    bool whole;                  /* the GPUs of a tensor group hold different experts, each whole */
};

#define PICK(seed, ...) \
    ((const char *const[]){__VA_ARGS__}[random_below(seed, (int)COUNT(((const char *const[]){__VA_ARGS__})))])

static struct degrees draw(uint64_t *seed)
{
    struct degrees d = {
        .tensor = 1 << random_below(seed, 2), .context = 1 << random_below(seed, 3),
        .pipeline = 1 << random_below(seed, 2), .data = 1 << random_below(seed, 3), .micro = 1 + random_below(seed, 2),
        .micro_batches = 1 + random_below(seed, 3), .zero = random_below(seed, 4), .shared = random_below(seed, 3),
        .sequence_parallel = random_below(seed, 2), .capacity = random_below(seed, 2) ? 1.3 : 0,
        .recompute = PICK(seed, "none", "selective", "full"), .attention = PICK(seed, "ring", "all-gather"),
        .collectives = PICK(seed, "messages", "measured"), .fold = PICK(seed, "auto", "off"),
        .engine = PICK(seed, "ideal", "ideal", "simgrid"),
    };

    d.whole = d.tensor > 1 && d.sequence_parallel && random_below(seed, 2);
    do
        d.expert = 1 << random_below(seed, 4);
    while (d.context * d.data * (d.whole ? d.tensor : 1) % d.expert || (d.whole && d.expert % d.tensor));
    return d;
}

/* GPUs of a tensor group that divide each expert, and replicas with the same experts. */
static int sharers(const struct degrees *d)
{
    return d->whole ? 1 : d->tensor;
}

static int holders(const struct degrees *d)
{
    return d->context * d->data * (d->whole ? d->tensor : 1) / d->expert;
}

static void run(struct simulated *simulated, const struct degrees *d)
{
    run_text(simulated,
             "model: {transformer: {layers: %d, hidden: %d, heads: %d, kv_heads: %d, ffn: %d, sequence: %d,\n"
             "        vocabulary: %d, positions: 0, norm: rmsnorm, mlp: swiglu, qkv_bias: false, bias: false,\n"
             "        tied: false, dropout: 0, flash_attention: true, experts: %d, experts_per_token: %d,\n"
             "        expert_ffn: %d, expert_skew: %g, shared_experts: %d, dense_layers: %d}}\n"
             "cluster: {platform: dgx-a100, nodes: 16}\n"
             "batch: {micro: %d, micro_batches: %d}\n"
             "strategy: {tensor: %d, context: %d, expert: %d, pipeline: %d, data: %d, zero: %d, capacity_factor: %g,\n"
             "           sequence_parallel: %s, context_attention: %s%s%s%s}\n"
             "memory: {recompute: %s}\n"
             "simulation: {collectives: %s, fold: %s, engine: %s}\n",
             LAYERS, H, HEADS, KV_HEADS, FFN, SEQUENCE, VOCABULARY, EXPERTS, TOP, EXPERT_FFN, d->skew, d->shared, DENSE,
             d->micro, d->micro_batches, d->tensor, d->context, d->expert, d->pipeline, d->data, d->zero, d->capacity,
             d->sequence_parallel ? "true" : "false", d->attention, d->dispatcher ? ", dispatcher: " : "",
             d->dispatcher ? d->dispatcher : "", d->whole ? ", expert_tensor: 1" : "", d->recompute, d->collectives, d->fold, d->engine);
}

static int blocks_with_experts(const struct degrees *d, int stage)
{
    int from = stage * LAYERS / d->pipeline, to = (stage + 1) * LAYERS / d->pipeline;

    return to - (from > DENSE ? from : DENSE);
}

static int blocks(const struct degrees *d)
{
    return LAYERS / d->pipeline;
}

/* On one GPU: parameters of experts, and all others. */
static double expert_parameters(const struct degrees *d, int stage)
{
    return blocks_with_experts(d, stage) * (double)EXPERTS / d->expert * 3 * H * EXPERT_FFN / sharers(d);
}

static double other_parameters(const struct degrees *d, int stage)
{
    double attention = 2 * H + (double)H * (2 * HEADS + 2 * KV_HEADS) * HEAD / d->tensor;
    double vocabulary = ceil((double)VOCABULARY / d->tensor) * H;
    int with = blocks_with_experts(d, stage), without = blocks(d) - with;

    return blocks(d) * attention + without * 3.0 * H * FFN / d->tensor +
           with * (H * EXPERTS + 3.0 * H * d->shared * EXPERT_FFN / d->tensor) + (stage == 0 ? vocabulary : 0) +
           (stage == d->pipeline - 1 ? H + vocabulary : 0);
}

/* Rows that a GPU sends to experts: two for each of its tokens (top-2), or the capacity of all experts. */
static double rows_sent(const struct degrees *d)
{
    double tokens = (double)d->micro * SEQUENCE / d->context / (d->sequence_parallel ? d->tensor : 1);

    return d->capacity > 0 ? EXPERTS * ceil(tokens * TOP / EXPERTS * d->capacity) : tokens * TOP;
}

static double share(int n)
{
    return (n - 1.0) / n;
}

/* What a GPU of the stage sends to others of its tensor, context and expert groups. */
static double within_works(const struct degrees *d, int stage)
{
    double value = 2, tokens = (double)d->micro * SEQUENCE / d->context, mb = d->micro_batches, bytes;
    double keys_values = tokens * 2 * KV_HEADS * HEAD / d->tensor * value, all = tokens * H * value;
    bool full = !strcmp(d->recompute, "full"), selective = !strcmp(d->recompute, "selective");
    bool first = stage == 0, last = stage == d->pipeline - 1, gathers = d->sequence_parallel && d->tensor > 1;
    double experts = blocks_with_experts(d, stage), halves = 2 * share(d->tensor) * all;
    double block_reduces = gathers && !d->shared ? 2 * (blocks(d) - experts) + experts : 2 * blocks(d);

    /* ring or all-gather: keys and values in the forward; the same and their gradients in the backward */
    bytes = blocks(d) * mb * (d->context - 1) * keys_values * (3 + full + selective);
    bytes += experts * mb * share(d->expert) * rows_sent(d) * H * value * (4 + 2 * full);
    bytes += mb * halves * (block_reduces * (2 + full) + first + last);
    if (d->pipeline > 1)     /* boundaries, in shares, that receivers gather or go on with */
        bytes += mb * (gathers ? all / d->tensor : all);
    if (!gathers)
        return bytes;
    bytes += mb * share(d->tensor) * all * (block_reduces + last);     /* gathered for the weights' gradients */
    if (d->whole)
        return bytes;
    return bytes + experts * mb * 2 * share(d->tensor) * rows_sent(d) * d->tensor * H * value * (2 + full);
}

/* Gradients and weights, by the ZeRO stage, over all replicas, and experts over those that hold the same. */
static double between_replicas(const struct degrees *d, int stage)
{
    double factor = d->zero == 0 ? 2 : d->zero == 1 ? 2 : d->zero == 2 ? 1 + d->micro_batches : 3 * d->micro_batches;
    int replicas = d->context * d->data;

    return 2 * factor * (share(replicas) * other_parameters(d, stage) +
                         share(holders(d)) * expert_parameters(d, stage));
}

static void expect_states(const struct simulated *simulated, const struct degrees *d, int stage)
{
    struct memory states = memory_states(&simulated->scenario, simulated->workload.stages, stage);
    double other = other_parameters(d, stage), experts = expert_parameters(d, stage);
    int replicas = d->context * d->data;
    double kept = other / replicas + experts / holders(d);

    expect_near("parameters", simulated->workload.stages[stage].parameters, other + experts, simulated->text);
    expect_near("optimizer", states.bytes[MEMORY_OPTIMIZER], 12 * (d->zero ? kept : other + experts), simulated->text);
    expect_near("gradients", states.bytes[MEMORY_GRADIENTS], 2 * (d->zero >= 2 ? kept : other + experts),
                simulated->text);
    expect_near("weights", states.bytes[MEMORY_PARAMETERS], 2 * (d->zero == 3 ? kept : other + experts),
                simulated->text);
}

static void traffic_and_memory(void **state)
{
    (void)state;
    EACH_CASE(i, PLANS) {
        uint64_t seed = i * 0x9E3779B97F4A7C15u;
        struct degrees d = draw(&seed);
        struct simulated simulated;
        double bytes = 0;

        run(&simulated, &d);
        for (int stage = 0; stage < d.pipeline; stage++) {
            bytes += within_works(&d, stage) + between_replicas(&d, stage);
            expect_states(&simulated, &d, stage);
        }
        expect_near("traffic", simulated.run.metrics.communication_bytes_per_gpu, bytes / d.pipeline, simulated.text);
        simulated_release(&simulated);
    }
}

/* Without padding, and without a product that several GPUs repeat, all GPUs together compute what the mathematics of
 * the active experts needs, however it is divided. */
static void flops(void **state)
{
    double inputs = 2.0 * SEQUENCE * H * (2 * HEADS + 2 * KV_HEADS) * HEAD;
    double attention = inputs + 4.0 * SEQUENCE * SEQUENCE * HEADS * HEAD;
    double expert = 2.0 * SEQUENCE * (H * EXPERTS + TOP * 3 * H * EXPERT_FFN);
    double forward = LAYERS * attention + DENSE * 2.0 * SEQUENCE * 3 * H * FFN + (LAYERS - DENSE) * expert +
                     2.0 * SEQUENCE * H * VOCABULARY;

    (void)state;
    EACH_CASE(i, PLANS) {
        uint64_t seed = i * 0xD1B54A32D192ED03u;
        struct degrees d = draw(&seed);
        struct simulated simulated;
        double again = LAYERS * 2.0 * SEQUENCE * SEQUENCE * HEADS * HEAD;    /* FlashAttention's scores, once more */

        d.tensor = d.whole ? d.tensor : 1;
        d.shared = 0;
        d.recompute = "none";
        run(&simulated, &d);
        expect_near("model FLOPs", simulated.run.metrics.model_flop,
                    3 * forward * simulated.scenario.batch.global, simulated.text);
        if (d.capacity > 0)
            assert_true(simulated.run.metrics.hardware_flop >
                        (3 * forward + again) * simulated.scenario.batch.global * 1.001);
        else
            expect_near("hardware FLOPs", simulated.run.metrics.hardware_flop,
                        (3 * forward + again) * simulated.scenario.batch.global, simulated.text);
        simulated_release(&simulated);
    }
}

/* Padded to capacity, a GPU does capacity_factor times what balanced experts get: exactly so where it divides. */
static void capacity(void **state)
{
    struct degrees d = {1, 1, 2, 1, 2, 1, 1, 0, 0, false, 1.25, "none", "ring", "messages", "off", "ideal", NULL, 0, false};
    struct simulated padded, balanced;
    double experts = (LAYERS - DENSE) * 3 * 2.0 * SEQUENCE * TOP * 3 * H * EXPERT_FFN;

    (void)state;
    run(&padded, &d);
    d.capacity = 0;
    run(&balanced, &d);
    expect_near("padding", padded.run.metrics.hardware_flop - balanced.run.metrics.hardware_flop, 2 * 0.25 * experts,
                padded.text);
    simulated_release(&padded);
    simulated_release(&balanced);
}

static void published(void **state)
{
    /* Mistral AI 2023: 46.7 B and 12.9 B. DeepSeek-AI 2024, README_WEIGHTS.md: 671 B and 36.7 B, the latter without the
     * embedding of 129280 x 7168, which is looked up. */
    static const struct { const char *preset; double all, active, lookup; } rows[] = {
        {"mixtral-8x7b", 46.7e9, 12.9e9, 0}, {"deepseek-v3", 671e9, 36.7e9, 129280.0 * 7168},
        {"llama3-405b", 405e9, 405e9, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct simulated simulated;
        struct model *model = &simulated.scenario.model;

        simulated_load(&simulated, "model: {preset: %s}\ncluster: {platform: dgx-h100, nodes: 1}\n"
                       "batch: {micro_batches: 1}\n", rows[i].preset);
        assert_true(fabs(model_parameters(model) / rows[i].all - 1) < 0.005);
        assert_true(fabs((model_active_parameters(model) - rows[i].lookup) / rows[i].active - 1) < 0.005);
        simulated_release(&simulated);
    }
}

/* A token that goes once to each GPU, or to each node, that has any of its experts (deepep), or whose group gathers it on
 * every GPU and sums the results (allgather: of each two dispatches a gather and a scatter, of all GPUs' tokens). Two of eight experts, drawn without
 * putting back, miss the two of a GPU (of four GPUs) with the probability 6/8 x 5/7, and the four of a node (of two)
 * with 4/8 x 3/7. Nothing else is sent more or less, and no expert computes other rows. */
static void sent_once(void **state)
{
    static const struct {
        struct degrees degrees;
        double reached;
    } cases[] = {
        {{.tensor = 1, .context = 1, .expert = 4, .pipeline = 1, .data = 4, .micro = 1, .micro_batches = 1,
          .recompute = "none", .attention = "ring", .collectives = "measured", .fold = "auto", .engine = "ideal"},
         4 * (1 - 6 / 8. * 5 / 7)},
        {{.tensor = 2, .context = 1, .expert = 8, .pipeline = 1, .data = 8, .micro = 1, .micro_batches = 1,
          .recompute = "none", .attention = "ring", .collectives = "measured", .fold = "auto", .engine = "ideal"},
         2 * (1 - 4 / 8. * 3 / 7)},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated copies, once, gathered;
        struct degrees d = cases[i].degrees;
        double all;

        run(&copies, &d);
        d.dispatcher = "deepep";
        run(&once, &d);
        d.dispatcher = "allgather";
        run(&gathered, &d);
        all = 4 * blocks_with_experts(&d, 0) * rows_sent(&d) * H * 2 * (d.expert - 1) / d.expert;
        expect_near("bytes of tokens",
                    copies.run.metrics.communication_bytes_per_gpu - once.run.metrics.communication_bytes_per_gpu,
                    (1 - cases[i].reached / TOP) * all, once.text);
        expect_near("FLOPs", once.run.metrics.hardware_flop, copies.run.metrics.hardware_flop, once.text);
        expect_near("memory", once.run.metrics.peak_memory, copies.run.metrics.peak_memory, once.text);
        expect_near("bytes of gathered tokens",
                    gathered.run.metrics.communication_bytes_per_gpu - copies.run.metrics.communication_bytes_per_gpu,
                    (1.0 * d.expert / TOP - 1) * all, gathered.text);
        expect_near("FLOPs of gathered tokens", gathered.run.metrics.hardware_flop, copies.run.metrics.hardware_flop,
                    gathered.text);
        simulated_release(&copies);
        simulated_release(&once);
        simulated_release(&gathered);
    }
}

/* Under a skew each GPU stands for the busiest of its group, which computes and gets more rows and keeps more of them;
 * FLOPs are the mean's. Where no GPUs divide the experts none is busier. */
static void skewed(void **state)
{
    struct degrees d = {1, 1, 4, 1, 4, 1, 1, 0, 0, false, 0, "none", "ring", "measured", "auto", "ideal", NULL, 0, false};

    (void)state;
    for (d.expert = 1; d.expert <= 4; d.expert *= 4) {
        struct simulated even, uneven;
        double all = 4 * blocks_with_experts(&d, 0) * rows_sent(&d) * H * 2 * (d.expert - 1) / d.expert, more;

        d.skew = 0;
        run(&even, &d);
        d.skew = 1.2;
        run(&uneven, &d);
        expect_near("FLOPs", uneven.run.metrics.hardware_flop, even.run.metrics.hardware_flop, uneven.text);
        assert_true(uneven.run.metrics.iteration_time >= even.run.metrics.iteration_time);
        assert_true((uneven.run.metrics.peak_memory > even.run.metrics.peak_memory) == (d.expert > 1));
        more = uneven.run.metrics.communication_bytes_per_gpu - even.run.metrics.communication_bytes_per_gpu;
        assert_true(d.expert == 1 ? more == 0 : more > 0.1 * all && more < (d.expert - 1) * all);
        simulated_release(&even);
        simulated_release(&uneven);
    }
}

/* One replica that stands for all, and all of them. */
static void folded(void **state)
{
    int folds = 0;

    (void)state;
    EACH_CASE(i, PLANS / 3) {
        uint64_t seed = i * 0xE7037ED1A0B428DBu;
        struct degrees d = draw(&seed);
        struct simulated one, all;

        d.collectives = "measured";
        d.fold = "auto";
        run(&one, &d);
        d.fold = "off";
        run(&all, &d);
        folds += one.run.lowered.alike.folded;
        expect_near("iteration", one.run.metrics.iteration_time, all.run.metrics.iteration_time, one.text);
        expect_near("exposed", one.run.metrics.exposed_communication, all.run.metrics.exposed_communication, one.text);
        simulated_release(&one);
        simulated_release(&all);
    }
    assert_true(folds > PLANS / 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traffic_and_memory), cmocka_unit_test(flops), cmocka_unit_test(capacity),
        cmocka_unit_test(published), cmocka_unit_test(folded), cmocka_unit_test(sent_once), cmocka_unit_test(skewed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
