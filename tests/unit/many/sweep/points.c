/* points: which scenarios a sweep consists of; the words of mistakes are in golden/sweep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "sweep/points.h"
#include "text.h"

static const char base_text[] =
    "model: {stages: {forward: 1 s, backward: 2 s}}\n"
    "cluster: {nodes: 8, gpus_per_node: 8, inside: {bandwidth: 300 GB/s, latency: 1 us},"
    " network: {bandwidth: 25 GB/s, latency: 5 us}}\n"
    "batch: {global: 64}\n"
    "strategy: {schedule: 1f1b}\n";

struct case_of {
    struct arena arena;
    struct error err;
    struct points points;
    struct selection selection;
};

/* The points of what stands under `sweep`; -1 where it is refused. */
static int load(struct case_of *it, const char *text, size_t most)
{
    struct node *base, *node;

    *it = (struct case_of){0};
    assert_int_equal(conf_parse(&it->arena, "base", base_text, strlen(base_text), &base, &it->err), 0);
    assert_int_equal(conf_parse(&it->arena, "f", text, strlen(text), &node, &it->err), 0);
    if (points_read(&it->arena, node, text, base, "base", &it->points, &it->err))
        return -1;
    return points_select(&it->points, most, &it->selection, &it->err);
}

static void unload(struct case_of *it)
{
    selection_release(&it->selection);
    points_release(&it->points);
    error_release(&it->err);
    arena_release(&it->arena);
}

static void opened(struct case_of *it, const char *text)
{
    if (load(it, text, 100000))
        fail_msg("%s: %s", text, it->err.messages[0].text);
}

/* The settings of all points, "1 2|1 4|": a word a setting. */
static char *settings(struct case_of *it)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    for (size_t i = 0; i < it->selection.count; i++) {
        struct point point;

        assert_int_equal(point_make(&it->points, it->selection.items[i], &it->arena, &point, &it->err), 0);
        for (size_t k = 0; k < point.count; k++) {
            fputs(k ? " " : "", out);
            dump(point.items[k].node, out);
            if (point.items[k].put)
                assert_ptr_equal(node_at(point.root, point.items[k].name), point.items[k].node);
        }
        fputc('|', out);
    }
    fclose(out);
    return text;
}

static void gives(const char *text, const char *expected)
{
    struct case_of it;
    char *seen;

    opened(&it, text);
    seen = settings(&it);
    assert_string_equal(seen, expected);
    free(seen);
    unload(&it);
}

static void refuses(const char *text, const char *message)
{
    struct case_of it;
    char *seen;

    assert_int_equal(load(&it, text, 20), -1);
    seen = messages_of(&it.err);
    assert_string_equal(seen, message);
    free(seen);
    unload(&it);
}

static void test_order(void **state)
{
    (void)state;
    gives("{}", "|");                                    /* the base alone */
    gives("grid: {strategy.tensor: [1, 2], strategy.pipeline: [1, 4, 8]}", "1 1|1 4|1 8|2 1|2 4|2 8|");
    gives("{zip: {strategy.tensor: [1, 2], strategy.pipeline: [4, 8]}, grid: {batch.micro: [1, 2]}}",
          "1 1 4|1 2 8|2 1 4|2 2 8|");
    gives("zip: [{strategy.tensor: [1, 2]}, {strategy.pipeline: [4, 8]}]", "1 4|1 8|2 4|2 8|");
    gives("grid: {strategy.tensor: 4}", "4|");
    gives("include: [{strategy.tensor: 8, strategy.pipeline: 2}]", "8 2|");
    gives("{grid: {strategy.tensor: [1, 2]}, include: [{strategy.pipeline: 3}, {strategy.tensor: 8}]}", "1|2|3|8|");
    gives("grid: {memory.recompute: [none, {mode: full, share: 0.5}], strategy.placement: [[data, tensor, pipeline]]}",
          "none [data, tensor, pipeline]|{mode: full, share: 0.5} [data, tensor, pipeline]|");
}

static void test_generators(void **state)
{
    (void)state;
    gives("grid: {strategy.tensor: {range: [1, 4]}}", "1|2|3|4|");
    gives("grid: {strategy.tensor: {range: [1, 8, 3]}}", "1|4|7|");
    gives("grid: {x: {range: [0.1, 0.5, 0.1]}}", "0.1|0.2|0.3|0.4|0.5|");
    gives("grid: {strategy.tensor: {pow2: [2, 16]}}", "2|4|8|16|");
    gives("grid: {software.bucket: {pow2: [1 MiB, 4 MiB]}}", "1 MiB|2 MiB|4 MiB|");
    gives("grid: {x: {linear: [0, 1, 5]}}", "0|0.25|0.5|0.75|1|");
    gives("grid: {x: {log: [1, 1000, 4]}}", "1|10|100|1000|");
    gives("grid: {cluster.network.bandwidth: {log: [1 GB/s, 100 GB/s, 3]}}", "1 GB/s|10 GB/s|100 GB/s|");
    gives("grid: {cluster.network.latency: {range: [1 us, 2 us, 0.5 us]}}", "1 us|1.5 us|2 us|");
}

static void test_derived(void **state)
{
    (void)state;
    gives("{grid: {strategy.tensor: [2, 8]}, let: {strategy.data: cluster.nodes * 8 / strategy.tensor}}", "2 32|8 8|");
    gives("{grid: {half: [1, 2]}, let: {gpus: cluster.nodes * cluster.gpus_per_node, strategy.data: gpus / half}}",
          "1 64 64|2 64 32|");
    gives("{grid: {strategy.tensor: [1, 2]}, let: {strategy.sequence_parallel: strategy.tensor > 1,"
          " name: '\"run\"'}}", "1 false run|2 true run|");
    gives("{grid: {share: [1, 4]}, let: {cluster.network.bandwidth: 100 GB/s / share}}", "1 100 GB/s|4 25 GB/s|");
    /* What is included may say itself what follows otherwise. */
    gives("{grid: {strategy.tensor: [2]}, let: {strategy.pipeline: 8 / strategy.tensor},"
          " include: [{strategy.tensor: 4}, {strategy.tensor: 4, strategy.pipeline: 1}]}", "2 4|4 2|4 1|");
}

static void test_constraints(void **state)
{
    (void)state;
    gives("{grid: {strategy.tensor: [1, 2, 4], strategy.pipeline: [1, 2, 4]},"
          " where: strategy.tensor * strategy.pipeline == 4}", "1 4|2 2|4 1|");
    gives("{grid: {strategy.tensor: [1, 2, 3, 4]}, where: ['strategy.tensor > 1', 'strategy.tensor < 4']}", "2|3|");
    gives("{grid: {strategy.tensor: [1, 2, 3, 4]}, exclude: 'strategy.tensor % 2 == 0'}", "1|3|");
    gives("{grid: {strategy.tensor: [1, 2], strategy.schedule: [gpipe, 1f1b]},"
          " exclude: [{strategy.tensor: 2, strategy.schedule: gpipe}]}", "1 gpipe|1 1f1b|2 1f1b|");
    gives("{grid: {strategy.tensor: [1, 2, 4]}, exclude: [{strategy.tensor: [1, 4]}]}", "2|");
    gives("{grid: {memory.recompute: [none, {mode: full}]}, exclude: [{memory.recompute: {mode: full}}]}", "none|");
    gives("{grid: {strategy.tensor: [1, 2]}, include: [{strategy.tensor: 8}], where: strategy.tensor == 1}", "1|8|");
    /* A default, and what follows from the whole scenario: 64 GPUs over 8 x pipeline. */
    gives("{grid: {strategy.pipeline: [1, 2, 4]}, where: strategy.zero == 0 && strategy.data >= 32}", "1|2|");
    /* A point whose scenario is refused stays: its row will say why. */
    gives("{grid: {strategy.pipeline: [1, 3]}, where: strategy.data < 32}", "3|");
}

/* Every point of random grids is there once, and their number is the product of the lengths. */
static void test_product(void **state)
{
    uint64_t seed = 3;

    (void)state;
    for (int round = 0; round < 50; round++) {
        int a = 1 + (int)(next(&seed) % 6), b = 1 + (int)(next(&seed) % 6), c = 1 + (int)(next(&seed) % 6);
        struct case_of it;
        bool seen[216] = {false};
        char text[200];

        snprintf(text, sizeof text, "{grid: {x: {range: [1, %d]}, y: {range: [1, %d]}}, zip: {z: {range: [1, %d]}, "
                 "w: {range: [1, %d]}}}", a, b, c, c);
        opened(&it, text);
        assert_int_equal(it.selection.count, a * b * c);
        assert_int_equal(points_combinations(&it.points), a * b * c);
        for (size_t i = 0; i < it.selection.count; i++) {
            struct point point;
            int at[4];

            assert_int_equal(point_make(&it.points, it.selection.items[i], &it.arena, &point, &it.err), 0);
            for (size_t k = 0; k < 4; k++)
                at[k] = atoi(point.items[k].node->text) - 1;
            assert_int_equal(at[2], at[3]);
            assert_false(seen[(at[0] * 6 + at[1]) * 6 + at[2]]);
            seen[(at[0] * 6 + at[1]) * 6 + at[2]] = true;
        }
        unload(&it);
    }
}

/* A grid of 10^12 costs nothing; a sample of it depends on the seed alone, and holds no point twice. */
static void test_sample(void **state)
{
    static const char text[] = "{grid: {a: {range: [1, 10000]}, b: {range: [1, 10000]}, c: {range: [1, 10000]}},"
                               " where: '(a + b + c) %% 2 == 0', sample: {n: 500, seed: %d}}";
    struct case_of first, again, other;
    char one[300], two[300];

    (void)state;
    snprintf(one, sizeof one, text, 1);
    snprintf(two, sizeof two, text, 2);
    opened(&first, one);
    opened(&again, one);
    opened(&other, two);
    assert_int_equal(points_combinations(&first.points), 1000000000000);
    assert_int_equal(first.selection.count, 500);
    assert_int_equal(first.selection.looked, 500 + first.selection.dropped[0]);
    assert_memory_equal(first.selection.items, again.selection.items, 500 * sizeof(uint64_t));
    assert_memory_not_equal(first.selection.items, other.selection.items, 500 * sizeof(uint64_t));
    for (size_t i = 1; i < 500; i++)
        assert_true(first.selection.items[i - 1] < first.selection.items[i]);
    unload(&first);
    unload(&again);
    unload(&other);
}

/* Where fewer remain than are asked for, all of them are taken, once each. */
static void test_sample_of_few(void **state)
{
    (void)state;
    gives("{grid: {a: {range: [1, 100]}}, where: a % 10 == 0, sample: 50}", "10|20|30|40|50|60|70|80|90|100|");
    gives("{grid: {a: [7]}, sample: 3}", "7|");
}

static void test_random(void **state)
{
    struct case_of it;
    struct point point;
    double last = 0;

    (void)state;
    opened(&it, "grid: {x: {random: {from: 1 GB/s, to: 100 GB/s, count: 300, scale: log}},"
                " y: {random: {from: 3, to: 5, count: 300, whole: true, seed: 4}}}");
    for (size_t i = 0; i < 300; i++) {
        struct value x = path_value("cluster.network.bandwidth", it.points.axes.items[0].nodes[i]);
        double y = it.points.axes.items[1].values[i].number;

        assert_true(x.number >= 1e9 && x.number <= 100e9 && x.number != last);
        assert_true(y == 3 || y == 4 || y == 5);
        last = x.number;
    }
    assert_int_equal(point_make(&it.points, 0, &it.arena, &point, &it.err), 0);
    unload(&it);
}

/* A typing error does not expand to 10^9 points. */
static void test_limits(void **state)
{
    (void)state;
    refuses("grid: {strategy.tensor: {range: [1, 21]}}",
            "f:1:1: error: more than 20 points remain; expected fewer (where, sample), or a higher --max\n");
    refuses("grid: {a: {range: [1, 1000000]}, b: {range: [1, 1000]}}",
            "f:1:1: error: 1000000 (a) x 1000 (b) are more than 10000000 combinations; expected fewer, or a sample of "
            "them (sample: {n: 1000})\n");
}

static void test_mistakes(void **state)
{
    (void)state;
    refuses("grid: {strategy.tensr: [1]}",
            "f:1:8: error: sweep: grid: scenarios have no 'strategy.tensr'; did you mean 'strategy.tensor'?\n");
    refuses("grid: {strategy.tensor: [1, two]}", "f:1:29: error: strategy: tensor: expected an integer, found 'two'\n");
    refuses("zip: {strategy.tensor: [1, 2], strategy.pipeline: [1]}",
            "f:1:51: error: sweep: zip: strategy.pipeline: 1 values, 'strategy.tensor' has 2; expected as many\n");
    refuses("{grid: {a: [1, 0]}, let: {b: 1 / a}, where: b > 0}",
            "f:1:32: error: sweep: let: b: '/' divides by 0 (at a = 0)\n");
    refuses("{grid: {strategy.tensor: [1]}, let: {x: strategy.data}}",
            "f:1:41: error: sweep: let: x: 'strategy.data' is not written in the base, and 'let' is worked out before "
            "defaults are; expected a value in the base, in the grid, or in a 'let' above\n");
    refuses("{grid: {memory.recompute: [none], memory.recompute.mode: [full]}}",
            "f:1:35: error: sweep: grid: 'memory.recompute.mode' and 'memory.recompute' cannot both be set, as one is "
            "a part of the other\n");
    refuses("{grid: {strategy.tensor: [1, 2]}, exclude: [{strategy.tensor: null}]}",
            "f:1:63: error: sweep: exclude: strategy.tensor: expected a value or a list of values, found nothing\n");
    refuses("{grid: {strategy.tensor: [1, 2]}, exclude: [{strategy.tensor: [1, []]}]}",
            "f:1:67: error: sweep: exclude: strategy.tensor: expected a value or a list of values, found nothing\n");
    refuses("{grid: {strategy.tensor: [1, 2]}, exclude: [{strategy.tensor: [1, two]}]}",
            "f:1:67: error: strategy: tensor: expected an integer, found 'two'\n");
    refuses("{grid: {strategy.tensor: [1, 2]}, sample: {n: 1, seed: -1}}",
            "f:1:56: error: sweep: sample: seed: -1 is out of range; expected 0 or more\n");
}

/* Keys that scenarios do not have, and values that their fields refuse, before any point is made; a base need not be whole. */
static void test_bases(void **state)
{
    static const struct { const char *text, *message; } bases[] = {
        {"{strategy: {tensor: 2}, name: a}", ""},
        {"{strategy: {tensr: 2}}", "f:1:13: error: base: scenarios have no 'strategy.tensr'; did you mean 'strategy.tensor'?\n"},
        {"{strategy: {tensor: two}}", "f:1:21: error: strategy: tensor: expected an integer, found 'two'\n"},
        {"{strategy: {tensor: null}}", "f:1:21: error: strategy.tensor: expected a value, found nothing\n"},
        {"{zzzz: 1}", "f:1:2: error: base: scenarios have no 'zzzz'; expected a key of 'dtsim help scenario'\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bases); i++) {
        struct arena arena = {0};
        struct error err = {0};
        struct node *base;
        char *seen;

        assert_int_equal(conf_parse(&arena, "f", bases[i].text, strlen(bases[i].text), &base, &err), 0);
        assert_int_equal(paths_check(base, &err), *bases[i].message ? -1 : 0);
        seen = messages_of(&err);
        assert_string_equal(seen, bases[i].message);
        free(seen);
        error_release(&err);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),   cmocka_unit_test(test_generators), cmocka_unit_test(test_derived),
        cmocka_unit_test(test_constraints), cmocka_unit_test(test_product), cmocka_unit_test(test_sample),
        cmocka_unit_test(test_sample_of_few), cmocka_unit_test(test_random), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_mistakes), cmocka_unit_test(test_bases),
    };

    return cmocka_run_group_tests_name("points", tests, NULL, NULL);
}
