/* Asked plainly, a scenario keeps its model's shape, cluster, batch, degrees, formats and the name of its software. */
#include "validate/plain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct node *parsed(struct arena *arena, const char *text)
{
    struct error err = {0};
    struct node *root;

    assert_int_equal(conf_parse(arena, "text", text, strlen(text), &root, &err), 0);
    return root;
}

static void check(const char *written, const char *plain)
{
    struct arena arena = {0};
    const struct node *found = plain_scenario(&arena, parsed(&arena, written));

    if (!node_equal(found, parsed(&arena, plain))) {
        node_print(found, stderr);
        fail_msg("'%s' asked plainly is another scenario", written);
    }
    arena_release(&arena);
}

static void test_keys(void **state)
{
    (void)state;
    check("{model: {transformer: {layers: 2, dropout: 0}}, cluster: {platform: a, nodes: 2}, "
          "software: {like: x, overlap_p2p: true}, batch: {global: 8}, simulation: {engine: ideal}, "
          "costs: {gpu: roofline}, strategy: {schedule: gpipe, tensor: 2, backward: ascending, zero: 1, shard: 4, "
          "sequence_parallel: true, data_parallel: ddp, split: [1, 1]}, "
          "memory: {precision: fp32, recompute: {mode: full, blocks: 1}, limit: 1 GB}}",
          "{model: {transformer: {layers: 2, dropout: 0}}, cluster: {platform: a, nodes: 2}, software: {like: x}, "
          "batch: {global: 8}, strategy: {schedule: gpipe, tensor: 2, zero: 1, shard: 4, sequence_parallel: true}, "
          "memory: {precision: fp32, recompute: {mode: full, blocks: 1}}}");
    check("{model: {preset: a, with: {layers: 3}}, cluster: b, software: x, batch: {global: 8}, "
          "memory: {recompute: full, offload: optimizer}}",
          "{model: {preset: a, with: {layers: 3}}, cluster: b, software: x, batch: {global: 8}, "
          "memory: {recompute: full, offload: optimizer}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_keys)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
