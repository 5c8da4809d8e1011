/* pattern: parameters of published hybrid models, to the last digit where they are known so (safetensors' counts, config.json of
 * each model), and how a pattern is read and refused. */
#include "model_files.h"

#include "model/pattern.h"

#define COMMON "norm: rmsnorm, bias: false, qkv_bias: false, positions: 0, dropout: 0, sequence: 4096, "
#define MAMBA(heads, size, groups) \
    "mamba: {heads: " #heads ", head_size: " #size ", state: 128, groups: " #groups "}, "
#define ME6 "MEMEMEMEMEME"
#define GRANITE(mlp) "(M" mlp ")(M" mlp ")(M" mlp ")(M" mlp ")(M" mlp ")(M" mlp ")(M" mlp ")(M" mlp ")(M" mlp ")(*" mlp ")"

static const struct published {
    const char *name;
    double parameters, within;   /* within: a share; 0: to the last digit */
    const char *shape;
} published[] = {
    {"Nemotron-H 8B", 8100852736, 0,
     "hidden: 4096, pattern: M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-, heads: 32, kv_heads: 8, head_size: 128, "
     MAMBA(128, 64, 8) "mlp: squared-relu, ffn: 21504, vocabulary: 131072, tied: false"},
    {"Nemotron Nano 9B v2", 8888227328, 0,
     "hidden: 4480, pattern: M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-, heads: 40, kv_heads: 8, head_size: 128, "
     MAMBA(128, 80, 8) "mlp: squared-relu, ffn: 15680, vocabulary: 131072, tied: false"},
    {"Nemotron 3 Nano", 31577940288, 0,
     "hidden: 2688, pattern: MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME, heads: 32, kv_heads: 2, head_size: 128, "
     MAMBA(64, 64, 8) "mlp: squared-relu, experts: 128, router_bias: true, experts_per_token: 6, expert_ffn: 1856, shared_experts: 2, "
     "shared_ffn: 3712, vocabulary: 131072, tied: false"},
    {"Nemotron 3 Super", 120668707840, 0,
     "hidden: 4096, pattern: " ME6 ME6 ME6 ME6 ME6 ME6 "M*M*M*M*E*E*E*E*, heads: 32, kv_heads: 2, head_size: 128, "
     MAMBA(128, 64, 8) "mlp: squared-relu, experts: 512, router_bias: true, experts_per_token: 22, expert_ffn: 2688, expert_latent: 1024, "
     "shared_experts: 1, shared_ffn: 5376, vocabulary: 131072, tied: false"},
    {"Qwen3-Next 80B", 79674391296, 0,
     "layers: 48, hidden: 2048, pattern: (GE)(GE)(GE)(*E), heads: 16, kv_heads: 2, head_size: 256, attention_gate: true, "
     "delta: {key_heads: 16, key_size: 128, value_heads: 32, value_size: 128}, qk_norm: head, mlp: swiglu, experts: 512, "
     "experts_per_token: 10, expert_ffn: 512, shared_experts: 1, shared_gate: true, vocabulary: 151936, tied: false"},
    {"Kimi Linear 48B", 49122681728, 0,
     "layers: 27, hidden: 2304, pattern: (K-)(KE)(KE)(+E)(KE)(KE)(KE)(+E)(KE)(KE)(KE)(+E)(KE)(KE)(KE)(+E)(KE)(KE)(KE)(+E)(KE)"
     "(KE)(KE)(+E)(KE)(KE)(+E), delta: {key_heads: 32, key_size: 128, value_heads: 32, value_size: 128}, heads: 32, "
     "head_size: 128, kv_rank: 512, rope_head_size: 64, value_head_size: 128, mlp: swiglu, ffn: 9216, experts: 256, router_bias: true, "
     "experts_per_token: 8, expert_ffn: 1024, shared_experts: 1, vocabulary: 163840, tied: false"},
    {"MiniMax-Text-01", 456089655296, 0,
     "layers: 80, hidden: 6144, pattern: (LE)(LE)(LE)(LE)(LE)(LE)(LE)(*E), linear: {heads: 64, head_size: 128}, heads: 64, "
     "kv_heads: 8, head_size: 128, mlp: swiglu, experts: 32, experts_per_token: 2, expert_ffn: 9216, vocabulary: 200064, "
     "tied: false"},
    {"Granite 4.0 H Small", 32207337984, 0,
     "layers: 40, hidden: 4096, pattern: " GRANITE("E") ", heads: 32, kv_heads: 8, head_size: 128, " MAMBA(128, 64, 1)
     "mlp: swiglu, experts: 72, experts_per_token: 10, expert_ffn: 768, shared_experts: 1, shared_ffn: 1536, vocabulary: 100352"},
    {"Granite 4.0 H Tiny", 6939037248, 0,
     "layers: 40, hidden: 1536, pattern: " GRANITE("E") ", heads: 12, kv_heads: 4, head_size: 128, " MAMBA(48, 64, 1)
     "mlp: swiglu, experts: 64, experts_per_token: 6, expert_ffn: 512, shared_experts: 1, shared_ffn: 1024, vocabulary: 100352"},
    {"Granite 4.0 H Micro", 3191396096, 0,
     "layers: 40, hidden: 2048, pattern: " GRANITE("-") ", heads: 32, kv_heads: 8, head_size: 64, " MAMBA(64, 64, 1)
     "mlp: swiglu, ffn: 8192, vocabulary: 100352"},
};

static void counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(published); i++) {
        struct model model = load_good(arena_printf(&arena, "{transformer: {" COMMON "%s}}", published[i].shape));
        double found = model_parameters(&model), wanted = published[i].parameters;

        print_message("%s: %.0f, published %.0f\n", published[i].name, found, wanted);
        assert_true(fabs(found - wanted) <= published[i].within * wanted);
    }
}

/* A module of multi-token prediction is one block. */
static void depths(void **state)
{
    static const struct { const char *part; bool good; } parts[] = {
        {"*-", true}, {"M", true}, {"(*E)", true}, {"E", true}, {"MM", false}, {"M*-", false}, {"(*E)E", false}, {"--", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(parts); i++) {
        struct model model = {0};
        const char *text = arena_printf(&arena, "{transformer: {" COMMON "hidden: 1024, heads: 16, vocabulary: 32000, mtp: 2, pattern: "
                                        "\"M*E/%s\", " MAMBA(16, 64, 4) "experts: 8, experts_per_token: 2}}", parts[i].part);

        assert_int_equal(load(text, &model) == 0, parts[i].good);
        assert_true(parts[i].good || strstr(error.messages[0].text, "multi-token prediction"));
        forget(NULL);
    }
}

/* What a person reads, and the parameters that a token meets: all but those of experts that it does not choose. */
static void kinds(void **state)
{
    static const struct { const char *shape, *kind; double idle; } cases[] = {
        {"layers: 2, hidden: 64, heads: 4", "a transformer", 0},
        {"hidden: 64, heads: 4, pattern: (*-)*-", "a transformer", 0},
        {"hidden: 64, heads: 4, pattern: M*E, mamba: {heads: 4, head_size: 32, state: 8, groups: 2}, experts: 8, "
         "experts_per_token: 3, router_bias: true, ffn: 32", "a hybrid of attention, Mamba-2", 5 * 2 * 64 * 32},
        {"hidden: 64, pattern: (LE)(G-)(KE), delta: {key_heads: 2, key_size: 8, value_heads: 2, value_size: 8}, "
         "linear: {heads: 2, head_size: 8}, experts: 8, experts_per_token: 2, mlp: swiglu, ffn: 32, expert_latent: 16",
         "a hybrid of a gated delta net, Kimi delta attention, lightning attention", 2 * 6 * 3 * 16 * 32},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct model model = load_good(arena_printf(&arena, "{transformer: {" COMMON "vocabulary: 100, %s}}", cases[i].shape));

        assert_string_equal(transformer_kind(&arena, model.transformer), cases[i].kind);
        assert_true(model_parameters(&model) - model_active_parameters(&model) == cases[i].idle);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {TEST(counts), TEST(depths), TEST(kinds)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
