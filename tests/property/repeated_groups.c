/* Keys and values that are repeated for all heads before attention (torchtitan issue 1283): a context group then
 * exchanges the copies. */
#include "simulated.h"

enum { LAYERS = 2, HIDDEN = 512, HEADS = 8, SEQUENCE = 4096, CONTEXT = 4 };

/* In each of the n - 1 steps of a layer's forward and of its backward, a GPU sends one block of keys and values, 2 B
 * each. In the backward it also sends as many gradients. */
static void test_exchanged(void **state)
{
    static const char *const attentions[] = {"ring", "all-gather"};
    static const struct { const char *model, *software; int heads; } cases[] = {
        {"kv_heads: 2", "repeated_groups: true", HEADS},
        {"kv_heads: 2", "repeated_groups: false", 2},
        {"kv_heads: 2", "like: torchtitan, context_blocks: false", HEADS},
        {"kv_heads: 2", "like: megatron-core", 2},
        {"kv_heads: 8", "repeated_groups: true", HEADS},
        {"kv_heads: 1", "repeated_groups: true", HEADS},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t a = 0; a < COUNT(attentions); a++) {
            double block = 2.0 * SEQUENCE / CONTEXT * HIDDEN / HEADS * cases[i].heads * 2;
            struct simulated simulated;

            run_text(&simulated,
                     "model: {transformer: {layers: %d, hidden: %d, heads: %d, sequence: %d, vocabulary: 1000, %s}}\n"
                     "cluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro_batches: 1}\n"
                     "strategy: {context: %d, data: 1, context_attention: %s}\nsoftware: {%s}\n"
                     "simulation: {engine: ideal, collectives: measured}\n", LAYERS, HIDDEN, HEADS, SEQUENCE,
                     cases[i].model, CONTEXT, attentions[a], cases[i].software);
            expect_near("keys and values", simulated.run.metrics.sent[PAYLOAD_ACTIVATIONS],
                        LAYERS * 2 * (CONTEXT - 1) * block, simulated.text);
            expect_near("their gradients", simulated.run.metrics.sent[PAYLOAD_ACTIVATION_GRADIENTS],
                        LAYERS * (CONTEXT - 1) * block, simulated.text);
            simulated_release(&simulated);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exchanged)};

    return cmocka_run_group_tests_name("repeated_groups", tests, NULL, NULL);
}
