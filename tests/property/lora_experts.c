/* LoRA on experts and on latent attention: what is trained, frozen, held, computed and exchanged, by closed forms over random
 * models; and two counts that PEFT prints. */
#include "random_plan.h"
#include "simulated.h"
#include "trials.h"

enum { DATA = 4, EXPERTS = 8 };
struct draws {
    int hidden, kv, ffn, chosen, shared, rank, layers, expert, zero, way;
    bool swiglu, fused, latent, targets[LORA_TARGET_COUNT];
};

static struct draws random_draws(uint64_t *seed)
{
    struct draws d = {
        .hidden = PICK_INT(seed, 256, 512), .kv = PICK_INT(seed, 1, 2, 4), .ffn = 64 * PICK_INT(seed, 1, 2, 3),
        .chosen = PICK_INT(seed, 1, 2, 3), .shared = random_below(seed, 2), .rank = PICK_INT(seed, 4, 8, 16),
        .layers = PICK_INT(seed, 1, 2, 3), .expert = PICK_INT(seed, 1, 2, 4), .zero = PICK_INT(seed, 0, 3),
        .swiglu = random_below(seed, 2), .fused = random_below(seed, 2), .way = random_below(seed, 3),
        .latent = random_below(seed, 3) == 0,
    };

    for (int i = 0; i < LORA_TARGET_COUNT; i++)
        d.targets[i] = random_below(seed, 2);
    d.targets[LORA_PROJECTION] |= !d.targets[LORA_QKV];
    return d;
}

static void run_of(struct simulated *simulated, const struct draws *d, const char *lora)
{
    const char *attention = d->latent ? "kv_rank: 64, q_rank: 32, rope_head_size: 16, value_head_size: 32, head_size: 32" :
                            d->fused  ? "fused_qkv: true" :
                                        "fused_qkv: false";

    run_text(simulated,
             "model: {transformer: {layers: %d, hidden: %d, heads: 4, kv_heads: %d, ffn: 512, sequence: 128, vocabulary: 512, "
             "positions: 0, norm: rmsnorm, mlp: %s, bias: false, qkv_bias: false, tied: false, dropout: 0, experts: %d, "
             "experts_per_token: %d, expert_ffn: %d, shared_experts: %d, %s%s, flash_attention: true}}\n"
             "cluster: {nodes: 1, gpus_per_node: %d, gpu: h100-80gb, inside: {bandwidth: 100 GB/s, latency: 1 us}}\n"
             "batch: {global: %d, micro: 1}\nsimulation: {engine: ideal}\nsoftware: {like: none, expert_adapters: %s}\n"
             "strategy: {data: %d, expert: %d, zero: %d}\nmemory: {enforce: false, precision: mixed-bf16, master: fp32%s}\n",
             d->layers, d->hidden, d->latent ? 4 : d->kv, d->swiglu ? "swiglu" : "gelu", EXPERTS, d->chosen, d->ffn, d->shared,
             attention, !d->swiglu ? "" : d->fused ? ", fused_gate: true" : ", fused_gate: false", DATA, DATA,
             (const char *const[]){"each", "shared", "merged"}[d->way], DATA, d->expert, d->zero, lora);
}

/* in + out of the products with adapters in a block outside of experts, each with its own adapter; and of one expert. */
static double common_widths(const struct draws *d)
{
    double h = d->hidden, head = h / 4, key = d->kv * head, pairs = d->swiglu ? 2 : 1, sum = 0;

    if (d->targets[LORA_QKV] && d->latent)
        sum += (h + 32) + (32 + 4 * 48) + (h + 64 + 16) + (64 + 4 * (32 + 32));
    else if (d->targets[LORA_QKV])
        sum += d->fused ? h + h + 2 * key : 3 * h + h + 2 * key;
    if (d->targets[LORA_PROJECTION])
        sum += (d->latent ? 4 * 32 : h) + h;
    if (d->targets[LORA_MLP_UP])
        sum += d->shared * ((d->fused ? 1 : pairs) * h + pairs * d->ffn);
    if (d->targets[LORA_MLP_DOWN])
        sum += d->shared * (d->ffn + h);
    return sum;
}

static double expert_widths(const struct draws *d)
{
    double h = d->hidden, pairs = d->swiglu ? 2 : 1, sum = 0;

    if (d->targets[LORA_MLP_UP])
        sum += (d->fused ? 1 : pairs) * h + pairs * d->ffn;
    if (d->targets[LORA_MLP_DOWN])
        sum += d->ffn + h;
    return sum;
}

/* Of the products of one expert that have adapters. */
static double expert_weights(const struct draws *d)
{
    return (d->targets[LORA_MLP_UP] * (d->swiglu ? 2. : 1) + d->targets[LORA_MLP_DOWN]) * d->hidden * d->ffn;
}

static const char *lora_of(struct arena *arena, const struct draws *d)
{
    static const char *const names[] = {"qkv", "projection", "mlp-up", "mlp-down"};
    const char *list = "";

    for (int i = 0; i < LORA_TARGET_COUNT; i++)
        if (d->targets[i])
            list = arena_printf(arena, "%s%s%s", list, *list ? ", " : "", names[i]);
    return arena_printf(arena, ", lora: {rank: %d, targets: [%s]}", d->rank, list);
}

/* One GPU's trained elements; of these the sums of gradients; weights that it holds under ZeRO 0 and 3, where the experts' are
 * divided among the replicas of the same experts alone; and FLOP: two passes of frozen products, three of adapters, each
 * expert's over the rows that reach it. Merged adapters have the same model FLOP, and compute the gradient of all weights and three
 * products of their matrices instead of those of rows. */
static void test_random(void **state)
{
    uint64_t seed = seed_from(20261129);

    (void)state;
    for (int i = 0; i < trials(160); i++) {
        struct arena arena = {0};
        struct draws d = random_draws(&seed);
        struct simulated frozen, full, other;
        double own = EXPERTS / (double)d.expert, copies = d.way == 1 ? 1 : own, apart, common, all_apart, all_common, flop, core;
        double rows = 128. * d.chosen, heads = d.latent ? 4. * (48 + 32) : 2. * d.hidden;
        const struct stage *stage, *whole;
        bool divided;

        run_of(&full, &d, "");
        run_of(&frozen, &d, lora_of(&arena, &d));
        stage = &frozen.workload.stages[0], whole = &full.workload.stages[0];
        divided = d.expert > 1 && d.way != 1;
        apart = divided ? d.layers * d.rank * copies * expert_widths(&d) : 0;
        common = d.layers * d.rank * (common_widths(&d) + (divided ? 0 : copies * expert_widths(&d)));
        expect_near("trained of experts", stage->trained.of[PARAMETERS_APART], apart, frozen.text);
        expect_near("trained", stage->parameters, apart + common, frozen.text);
        expect_near("frozen", stage->frozen, whole->parameters, frozen.text);
        expect_near("frozen of experts", stage->frozen_apart, whole->trained.of[PARAMETERS_APART], frozen.text);
        all_apart = apart + whole->trained.of[PARAMETERS_APART], all_common = common + whole->trained.of[PARAMETERS_COMMON];
        if (d.zero == 3)
            expect_near("weights", frozen.run.metrics.ranks[0].memory.bytes[MEMORY_PARAMETERS],
                        2 * (all_common / DATA + all_apart / (DATA / d.expert)), frozen.text);
        else
            expect_near("weights", frozen.run.metrics.ranks[0].memory.bytes[MEMORY_PARAMETERS], 2 * (all_common + all_apart),
                        frozen.text);
        core = 2 * heads * 128. * 128 * d.layers;
        flop = (full.run.metrics.model_flop / DATA - 3 * core) * 2 / 3 + 3 * core +
               6. * d.layers * d.rank * (128 * common_widths(&d) + rows * expert_widths(&d));
        expect_near("flop", frozen.run.metrics.model_flop / DATA, flop, frozen.text);
        if (d.way == 2) {
            d.way = 0;
            run_of(&other, &d, lora_of(&arena, &d));
            expect_near("merged", (frozen.run.metrics.hardware_flop - other.run.metrics.hardware_flop) / DATA,
                        d.layers * (2 * rows + 6 * own * d.rank) * expert_weights(&d) - 6. * d.layers * d.rank * rows * expert_widths(&d),
                        frozen.text);
            simulated_release(&other);
        }
        simulated_release(&full);
        simulated_release(&frozen);
        arena_release(&arena);
    }
}

/* peft.print_trainable_parameters: of Llama 2 7B with rank 16 on all seven linear layers of a block 39,976,960 (PEFT's and
 * Transformers' documentation); of Mixtral 8x7B with rank 8 on attention, experts' w1, w2, w3 and lm_head 120,350,720, of which
 * the last has 8 x (4096 + 32000), which is no target here. */
static void test_printed(void **state)
{
    static const struct { const char *model; int rank; double trained; } cases[] = {
        {"llama2-7b", 16, 39976960}, {"mixtral-8x7b", 8, 120350720 - 8 * (4096 + 32000)},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;

        run_text(&simulated, "model: {preset: %s, sequence: 512}\ncluster: {platform: dgx-h100, nodes: 1}\nsoftware: transformers\n"
                 "batch: {global: 1, micro: 1}\nstrategy: {data: 1}\nmemory: {enforce: false, precision: mixed-bf16, lora: "
                 "{rank: %d, targets: [qkv, projection, mlp-up, mlp-down]}}\n", cases[i].model, cases[i].rank);
        expect_near("trained", simulated.workload.stages[0].parameters, cases[i].trained, simulated.text);
        simulated_release(&simulated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_printed)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
