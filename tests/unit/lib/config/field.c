/* field: every message in full and at its place, defaults, what was given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <limits.h>
#include <math.h>
#include <time.h>

#include "field_sample.h"
#include "text.h"

static int sample_parse(struct arena *arena, const char *text, struct sample *sample, struct error *err)
{
    struct node *root;

    if (conf_parse(arena, "s.yaml", text, strlen(text), &root, err))
        return -1;
    return field_parse(arena, &sample_table, root, sample, err);
}

/* Compares all the messages that reading the text gives. */
static void refuses(const char *text, const char *messages)
{
    struct arena arena = {0};
    struct error err = {0};
    struct sample sample;
    char *seen;

    assert_int_equal(sample_parse(&arena, text, &sample, &err), -1);
    assert_int_equal(error_exit_code(&err), EXIT_INPUT);
    seen = messages_of(&err);
    assert_string_equal(seen, messages);
    free(seen);
    error_release(&err);
    arena_release(&arena);
}

static void reads(struct arena *arena, const char *text, struct sample *sample)
{
    struct error err = {0};

    if (sample_parse(arena, text, sample, &err))
        fail_msg("%s:%d: %s", err.messages[0].loc.file, err.messages[0].loc.line, err.messages[0].text);
    assert_int_equal(err.count, 0);
}

static void test_values(void **state)
{
    static const char text[] =
        "name: 12\n"
        "strategy: {schedule: gpipe, tensor: 8, flush: false, placement: [data, tensor], split: [3, 0, 4],\n"
        "           backward: split}\n"
        "link: {bandwidth: 400 Gb/s, latency: 3 us, share: 1e-3}\n"
        "layers: [{forward: 1 ms, parameters: 38 k}, {forward: 2 ms, name: \"8\"}]\n"
        "preset: gpt\n";
    struct arena arena = {0};
    struct sample s;
    const struct sample_layer *layers;

    (void)state;
    reads(&arena, text, &s);
    assert_string_equal(s.name, "12");
    assert_int_equal(s.strategy.schedule, 1);
    assert_int_equal(s.strategy.tensor, 8);
    assert_false(s.strategy.flush);
    assert_int_equal(s.strategy.placement.count, 2);
    assert_int_equal(((const int *)s.strategy.placement.items)[0], 1);
    assert_int_equal(((const int *)s.strategy.placement.items)[1], 0);
    assert_int_equal(s.strategy.split.count, 3);
    assert_int_equal(((const int *)s.strategy.split.items)[2], 4);
    assert_int_equal(((const struct sample_gpipe *)s.strategy.options)->backward, 1);
    assert_true(s.link->bandwidth == 50e9);
    assert_true(s.link->latency == 3e-6);
    assert_true(s.link->share == 1e-3);
    assert_int_equal(s.layers.count, 2);
    layers = s.layers.items;
    assert_true(layers[0].forward == 1e-3 && layers[0].parameters == 38000 && !layers[0].name);
    assert_true(layers[1].forward == 2e-3 && isnan(layers[1].parameters));
    assert_string_equal(layers[1].name, "8");
    assert_string_equal(s.preset, "gpt");
    assert_null(s.file);
    arena_release(&arena);
}

static void test_defaults(void **state)
{
    struct arena arena = {0};
    struct error err = {0};
    struct sample s;

    (void)state;
    reads(&arena, "preset: x\nstrategy: {schedule: 1f1b}", &s);
    assert_int_equal(s.strategy.tensor, 1);
    assert_int_equal(s.strategy.data, 0);
    assert_true(s.strategy.flush);
    assert_int_equal(s.strategy.placement.count, 1);
    assert_null(s.strategy.placement.node);
    assert_null(s.strategy.options);
    assert_null(s.link);
    assert_int_equal(s.layers.count, 0);
    assert_true(isnan(s.limit));
    assert_true(s.memory.fraction == 0.9);
    /* no node: every default, and nothing is missing */
    assert_int_equal(field_parse(&arena, &sample_table, NULL, &s, &err), 0);
    assert_int_equal(s.strategy.tensor, 1);
    assert_int_equal(err.count, 0);
    arena_release(&arena);
}

static void test_given_and_places(void **state)
{
    struct arena arena = {0};
    struct sample s;

    (void)state;
    reads(&arena, "preset: x\nstrategy: 1f1b\nlayers:\n  forward: 1 s\n", &s);
    assert_true(field_given(&sample_table, &s, "preset"));
    assert_false(field_given(&sample_table, &s, "name"));
    assert_true(field_given(&sample_strategy_table, &s.strategy, "schedule"));
    assert_false(field_given(&sample_strategy_table, &s.strategy, "tensor"));
    assert_false(field_given(&sample_memory_table, &s.memory, "fraction"));
    assert_int_equal(field_loc(&sample_strategy_table, &s.strategy, "schedule").line, 2);
    assert_int_equal(field_loc(&sample_strategy_table, &s.strategy, "schedule").column, 11);
    assert_int_equal(field_loc(&sample_strategy_table, &s.strategy, "tensor").column, 11);
    assert_int_equal(s.layers.count, 1);
    assert_int_equal(field_loc(&sample_layer_table, s.layers.items, "forward").line, 4);
    assert_int_equal(field_loc(&sample_layer_table, s.layers.items, "name").column, 3);
    arena_release(&arena);
}

/* However many keys are unknown, the first ones are named and the others are counted: it takes hardly longer than to read the
 * file. */
static void test_many_keys_are_refused(void **state)
{
    enum { KEYS = 60000 };
    struct arena arena = {0};
    struct error err = {0};
    struct sample sample;
    struct node *root;
    char *text;
    size_t size;
    FILE *out = text_open(&text, &size);
    clock_t begun, read;

    (void)state;
    fputs("preset: x\nstrategy:\n  schedule: 1f1b\n", out);
    for (int i = 0; i < KEYS; i++)
        fprintf(out, "  k%d: 1\n", i);
    text_close(out, &text);
    begun = clock();
    assert_int_equal(conf_parse(&arena, "s.yaml", text, size, &root, &err), 0);
    read = clock();
    assert_int_equal(field_parse(&arena, &sample_table, root, &sample, &err), -1);
    assert_true(clock() - read < 2 * (read - begun));
    assert_int_equal(err.count, ERROR_MAX);
    assert_int_equal(err.dropped, KEYS - ERROR_MAX);
    for (int i = 0; i < ERROR_MAX; i++)
        assert_int_equal(err.messages[i].loc.line, 4 + i);
    free(text);
    error_release(&err);
    arena_release(&arena);
}

static void test_keys_are_refused(void **state)
{
    (void)state;
    refuses("preset: x\nstrategy:\n  pipline: 2\n",
            "s.yaml:3:3: error: strategy: missing key 'schedule'\n"
            "s.yaml:3:3: error: strategy: unknown key 'pipline'; did you mean 'pipeline'?\n");
    refuses("preset: x\nstrategy: {schedule: 1f1b, whatever: 2}\n",
            "s.yaml:2:28: error: strategy: unknown key 'whatever'; expected one of schedule, tensor, data, pipeline, "
            "flush, "
            "placement, split\n");
    refuses("preset: x\nstrategy: {schedule: gpipe, Tensor-Size: 3}\n",
            "s.yaml:2:29: error: strategy: unknown key 'Tensor-Size'; did you mean 'tensor'?\n");
    refuses("preset: x\nstrategy: {schedule: gpipe, backwards: split}\n",
            "s.yaml:2:29: error: strategy: unknown key 'backwards'; did you mean 'backward'?\n");
    refuses("preset: x\nstrategy: {schedule: 1f1b, backward: split}\n",
            "s.yaml:2:28: error: strategy: unknown key 'backward'; expected one of schedule, tensor, data, pipeline, "
            "flush, "
            "placement, split\n");
    /* the options of a schedule that is not known are neither known nor unknown */
    refuses("preset: x\nstrategy: {schedule: gpip, backward: split, tenso: 3}\n",
            "s.yaml:2:22: error: strategy: schedule: unknown value 'gpip'; did you mean 'gpipe'?\n"
            "s.yaml:2:45: error: strategy: unknown key 'tenso'; did you mean 'tensor'?\n");
    refuses("preset: x\nstrategy: {schedule: gpipe, backward: half}\n",
            "s.yaml:2:39: error: strategy: backward: unknown value 'half'; expected one of fused, split\n");
    refuses("name: x\nfile: a\npreset: b\nstrategy: 1f1b\n",
            "s.yaml:3:1: error: sample: 'file' and 'preset' exclude each other\n");
    refuses("name: x\nstrategy: 1f1b\n", "s.yaml:1:1: error: sample: expected exactly one of preset, file\n");
    refuses("file: x\n", "s.yaml:1:1: error: sample: missing key 'strategy'\n");
}

static void test_kinds_are_refused(void **state)
{
    (void)state;
    refuses("- a\n", "s.yaml:1:1: error: sample: expected a mapping such as '{name: ...}', found a list\n");
    refuses("text\n", "s.yaml:1:1: error: sample: expected a mapping such as '{name: ...}', found 'text'\n");
    refuses("---\n", "s.yaml:2:1: error: sample: expected a mapping such as '{name: ...}', found nothing\n");
    refuses("preset: x\nstrategy: [a]\n",
            "s.yaml:2:11: error: strategy: expected a name or a mapping such as '{schedule: ...}', found a list\n");
    refuses("preset: x\nstrategy:\n",
            "s.yaml:2:10: error: strategy: expected a name or a mapping such as '{schedule: ...}', found nothing\n");
    refuses("preset: x\nstrategy: 1f1b\nlink: 3\n",
            "s.yaml:3:7: error: link: expected a mapping such as '{bandwidth: ...}', found '3'\n");
    refuses("preset: [x]\nstrategy: 1f1b\nname: {}\nlayers: 3\n",
            "s.yaml:1:9: error: sample: preset: expected text, found a list\n"
            "s.yaml:3:7: error: sample: name: expected text, found a mapping\n"
            "s.yaml:4:9: error: sample: layers: expected a mapping or a list, found '3'\n");
    refuses("preset: null\nstrategy: 1f1b\nlayers: [3, {forward: 1}]\n",
            "s.yaml:1:9: error: sample: preset: expected text, found nothing\n"
            "s.yaml:3:10: error: layer: expected a mapping such as '{name: ...}', found '3'\n"
            "s.yaml:3:23: error: layer: forward: '1' has no unit; expected a time such as '1.5 us' or '2 h'\n");
    refuses("preset: x\nstrategy: {schedule: [], placement: data}\n",
            "s.yaml:2:22: error: strategy: schedule: expected one of 1f1b, gpipe, none, found a list\n"
            "s.yaml:2:37: error: strategy: placement: expected a list, found 'data'\n");
    refuses("preset: x\nstrategy: {schedule: 1f1b, placement: [], split: []}\nlayers: []\n",
            "s.yaml:2:39: error: strategy: placement: found an empty list; expected at least one of tensor, data; left "
            "out, it is [tensor]\n"
            "s.yaml:2:50: error: strategy: split: found an empty list; expected at least one, or the key left out\n"
            "s.yaml:3:9: error: sample: layers: found an empty list; expected at least one\n");
    refuses("preset: x\nstrategy: {schedule: , placement: [dato, {}]}\n",
            "s.yaml:2:22: error: strategy: schedule: expected one of 1f1b, gpipe, none, found nothing\n"
            "s.yaml:2:36: error: strategy: placement: unknown value 'dato'; did you mean 'data'?\n"
            "s.yaml:2:42: error: strategy: placement: expected one of tensor, data, found a mapping\n");
    refuses("preset: x\nstrategy: {schedule: 1f1b, split: [1, 100, x, -1, [2]]}\n",
            "s.yaml:2:39: error: strategy: split: 100 is out of range; expected 0 to 99\n"
            "s.yaml:2:44: error: strategy: split: expected an integer, found 'x'\n"
            "s.yaml:2:47: error: strategy: split: -1 is out of range; expected 0 to 99\n"
            "s.yaml:2:51: error: strategy: split: expected an integer, found a list\n");
    refuses("preset: x\nstrategy: {schedule: 1f1b, split: 4}\n",
            "s.yaml:2:35: error: strategy: split: expected a list, found '4'\n");
}

/* The message for strategy.KEY: VALUE, without the place. */
static void value_refused(const char *key, const char *value, const char *message)
{
    char text[256], expected[512];

    snprintf(text, sizeof text, "preset: x\nstrategy:\n  schedule: 1f1b\n  %s: %s\n", key, value);
    snprintf(expected, sizeof expected, "s.yaml:4:%d: error: strategy: %s: "
                                        "%s\n", (int)strlen(key) + (*value ? 5 : 4), key, message);
    refuses(text, expected);
}

static void test_integers_are_refused(void **state)
{
    (void)state;
    value_refused("tensor", "four", "expected an integer, found 'four'");
    value_refused("tensor", "0", "0 is out of range; expected 1 or more");
    value_refused("tensor", "-3", "-3 is out of range; expected 1 or more");
    value_refused("tensor", "99999999999", "99999999999 is out of range; expected 1 to 2147483647");
    value_refused("data", "99999999999", "99999999999 is out of range; expected 1 to 1000000");
    value_refused("data", "1000001", "1000001 is out of range; expected 1 to 1000000");
    value_refused("tensor", "0x10", "expected an integer in plain decimal digits, found '0x10'");
    value_refused("tensor", "0o17", "expected an integer in plain decimal digits, found '0o17'");
    value_refused("tensor", "010", "expected an integer in plain decimal digits, found '010'");
    value_refused("tensor", "1_000", "expected an integer in plain decimal digits, found '1_000'");
    value_refused("tensor", "1e3", "expected an integer in plain decimal digits, found '1e3'");
    value_refused("tensor", "3.0", "expected an integer in plain decimal digits, found '3.0'");
    value_refused("tensor", "\"8\"", "expected an integer, found '8' in quotes");
    value_refused("tensor", "", "expected an integer, found nothing");
    value_refused("tensor", "~", "expected an integer, found nothing");
    value_refused("tensor", "[1]", "expected an integer, found a list");
    value_refused("flush", "yes", "expected true or false, found 'yes'");
    value_refused("flush", "'true'", "expected true or false, found 'true' in quotes");
    value_refused("flush", "True", "expected true or false, found 'True'");
}

/* The message for link.KEY: VALUE. */
static void link_refused(const char *key, const char *value, const char *message)
{
    char text[256], expected[512];

    snprintf(text, sizeof text, "preset: x\nstrategy: 1f1b\nlink:\n  bandwidth: 1 B/s\n  %s: %s\n", key, value);
    snprintf(expected, sizeof expected, "s.yaml:5:%d: error: link: %s: "
                                        "%s\n", (int)strlen(key) + (*value ? 5 : 4), key, message);
    refuses(text, expected);
}

static void test_quantities_are_refused(void **state)
{
    (void)state;
    refuses("preset: x\nstrategy: 1f1b\nlink: {bandwidth: 300}\n",
            "s.yaml:3:19: error: link: bandwidth: '300' has no unit; expected a bandwidth such as '300 GB/s' or "
            "'400 Gb/s'\n");
    link_refused("latency", "-3 us", "-3 us is out of range; expected 0 s or more");
    link_refused("latency", "", "expected a time such as '1.5 us' or '2 h', found nothing");
    link_refused("latency", "\"3\"", "expected a time such as '1.5 us' or '2 h', found '3' in quotes");
    link_refused("latency", ".inf", "'.inf' is not a number; expected a time such as '1.5 us' or '2 h'");
    link_refused("latency", ".nan", "'.nan' is not a number; expected a time such as '1.5 us' or '2 h'");
    link_refused("share", "1.5", "1.5 is out of range; expected more than 0 and at most 1");
    link_refused("share", "0", "0 is out of range; expected more than 0 and at most 1");
    link_refused("share", "'1'", "expected a number such as '0.85', found '1' in quotes");
    link_refused("share", "nan", "'nan' is not a number; expected a number such as '0.85'");
    link_refused("buffer", "3 GiB", "3 GiB is out of range; expected 1 kB to 2 GB");
    link_refused("buffer", "80 Gb", "'80 Gb' is in bits (b means bits, B means bytes); expected bytes such as '80 "
                                    "GiB' or "
                                    "'25 MB'");
    link_refused("offset", "6", "6 is out of range; expected -5 to 5");
    refuses("preset: x\nstrategy: 1f1b\nlink: {bandwidth: 0}\n",
            "s.yaml:3:19: error: link: bandwidth: 0 is out of range; expected more than 0\n");
}

static void test_quoted_quantities_are_read(void **state)
{
    struct arena arena = {0};
    struct sample s;

    (void)state;
    reads(&arena, "{\"preset\": \"x\", \"strategy\": \"gpipe\", \"link\": {\"bandwidth\": \"3 GB/s\"}}", &s);
    assert_true(s.link->bandwidth == 3e9);
    assert_int_equal(s.strategy.schedule, 1);
    arena_release(&arena);
}

/* A record with its own function that reads it. */
static int load_number(struct arena *arena, const struct node *value, void *object, struct error *err)
{
    struct sample_memory *memory = object;

    (void)arena;
    if (value->kind != NODE_SCALAR)
        return error_add(err, EXIT_INPUT, value->loc, "memory: no scalar");
    memory->fraction = strtod(value->text, NULL);
    memory->node = value;
    return 0;
}

static void test_a_record_may_have_its_own_reader(void **state)
{
    static const struct field fields[] = {
        {.key = "memory", .kind = FIELD_RECORD, .table = &sample_memory_table, .load = load_number},
    };
    static const struct table table = {.name = "t", .fields = fields, .count = 1, .size = sizeof(struct sample_memory),
                                       .node_offset = offsetof(struct sample_memory, node)};
    struct arena arena = {0};
    struct error err = {0};
    struct sample_memory memory;
    struct node *root;

    (void)state;
    /* the outer table shares the struct, whose node it sets last */
    assert_int_equal(conf_parse(&arena, "f", "memory: 0.25", 12, &root, &err), 0);
    assert_int_equal(field_parse(&arena, &table, root, &memory, &err), 0);
    assert_true(memory.fraction == 0.25);
    assert_int_equal(conf_parse(&arena, "f", "memory: []", 10, &root, &err), 0);
    assert_int_equal(field_parse(&arena, &table, root, &memory, &err), -1);
    assert_string_equal(err.messages[0].text, "memory: no scalar");
    assert_int_equal(conf_parse(&arena, "f", "memory:", 7, &root, &err), 0);
    assert_int_equal(field_parse(&arena, &table, root, &memory, &err), -1);
    assert_string_equal(err.messages[1].text, "memory: expected a mapping such as '{fraction: ...}', found nothing");
    error_release(&err);
    assert_int_equal(conf_parse(&arena, "f", "{}", 2, &root, &err), 0);
    assert_int_equal(field_parse(&arena, &table, root, &memory, &err), 0);
    assert_true(memory.fraction == 0);
    arena_release(&arena);
}

/* A shorthand on the way to a path becomes the mapping that it stands for; nothing else changes. */
static void test_a_shorthand_opens(void **state)
{
    static const char *const paths[] = {
        "strategy.tensor", "strategy.placement.0", "link.share", "name", "layers.0.name",
    };
    struct arena arena = {0};
    struct error err = {0};
    struct node *root, *closed;
    const char text[] = "preset: x\nstrategy: gpipe\nlayers: [{forward: 1 s}]\n";

    (void)state;
    for (size_t i = 0; i < COUNT(paths); i++) {
        assert_int_equal(conf_parse(&arena, "s.yaml", text, strlen(text), &root, &err), 0);
        assert_int_equal(conf_parse(&arena, "s.yaml", text, strlen(text), &closed, &err), 0);
        assert_int_equal(field_open(&arena, &sample_table, root, paths[i], &err), 0);
        assert_int_equal(node_equal(root, closed), i > 1);
        if (i <= 1)
            assert_string_equal(node_at(root, "strategy.schedule")->text, "gpipe");
    }
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_given_and_places),
        cmocka_unit_test(test_keys_are_refused),
        cmocka_unit_test(test_many_keys_are_refused),
        cmocka_unit_test(test_kinds_are_refused),
        cmocka_unit_test(test_integers_are_refused),
        cmocka_unit_test(test_quantities_are_refused),
        cmocka_unit_test(test_quoted_quantities_are_read),
        cmocka_unit_test(test_a_record_may_have_its_own_reader),
        cmocka_unit_test(test_a_shorthand_opens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
