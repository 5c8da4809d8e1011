/* field: dumps that read back, help and schema. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "field_sample.h"
#include "text.h"

static int sample_parse(struct arena *arena, const char *text, struct sample *sample, struct error *err)
{
    struct node *root;

    if (conf_parse(arena, "s.yaml", text, strlen(text), &root, err))
        return -1;
    return field_parse(arena, &sample_table, root, sample, err);
}

static void reads(struct arena *arena, const char *text, struct sample *sample)
{
    struct error err = {0};

    if (sample_parse(arena, text, sample, &err))
        fail_msg("%s:%d: %s", err.messages[0].loc.file, err.messages[0].loc.line, err.messages[0].text);
    assert_int_equal(err.count, 0);
}

static void test_dump(void **state)
{
    static const char *const cases[][2] = {
        {"preset: x\nstrategy: 1f1b\n",
         "preset: x\nstrategy:\n  schedule: 1f1b\n  tensor: 1\n  pipeline: 1\n  flush: true\n"
         "  placement: [tensor]\n"
         "memory: {fraction: 0.9}\n"},
        {"file: 'null'\nname: '8'\nlimit: 0\nlink: {bandwidth: 24 GiB/s, share: 1e-3}\n"
         "strategy: {schedule: gpipe, placement: [data], split: [0, 7], data: 7}\nmemory: {states: 0 B}\n",
         "name: \"8\"\nfile: \"null\"\n"
         "strategy:\n  schedule: gpipe\n  tensor: 1\n  data: 7\n  pipeline: 1\n  flush: true\n"
         "  placement: [data]\n  split: [0, 7]\n"
         "  backward: fused\n"
         "link: {bandwidth: 24 GiB/s, latency: 1 us, share: 0.001}\n"
         "memory: {fraction: 0.9, states: 0 B}\nlimit: 0 B\n"},
        {"preset: x\nstrategy: {schedule: none}\nlayers: {forward: 1.5 ms, name: a}\n",
         "preset: x\nstrategy:\n  schedule: none\n  tensor: 1\n  pipeline: 1\n  flush: true\n"
         "  placement: [tensor]\n"
         "layers:\n  - {name: a, forward: 1.5 ms}\nmemory: {fraction: 0.9}\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct arena arena = {0};
        struct sample s;
        char *first, *second;

        reads(&arena, cases[i][0], &s);
        first = printed(field_dump(&arena, &sample_table, &s), node_print);
        assert_string_equal(first, cases[i][1]);
        reads(&arena, first, &s);
        second = printed(field_dump(&arena, &sample_table, &s), node_print);
        assert_string_equal(second, first);
        free(first);
        free(second);
        arena_release(&arena);
    }
}

static void test_what_the_program_settles_is_dumped(void **state)
{
    struct arena arena = {0};
    struct sample s;
    char *text;

    (void)state;
    reads(&arena, "preset: x\nstrategy: 1f1b\n", &s);
    s.strategy.data = 24;
    s.limit = 80 * 0x1p30;
    s.name = "settled";
    text = printed(field_dump(&arena, &sample_table, &s), node_print);
    assert_string_equal(text, "name: settled\npreset: x\n"
                              "strategy:\n  schedule: 1f1b\n  tensor: 1\n  data: 24\n  pipeline: 1\n  flush: true\n  "
                              "placement: [tensor]\n"
                              "memory: {fraction: 0.9}\nlimit: 80 GiB\n");
    free(text);
    arena_release(&arena);
}

/* Random scenarios: what is dumped reads back to the same dump and the same doubles. */
static void test_dumps_read_back(void **state)
{
    uint64_t seed = 5;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        struct arena arena = {0};
        struct sample s, back;
        char *text = NULL, *first, *second;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        fprintf(out, "%s: %s\n", next(&seed) % 2 ? "preset" : "file", next(&seed) % 2 ? "'~'" : "1e3");
        fprintf(out, "strategy: {schedule: %s, tensor: %d%s%s}\n", next(&seed) % 2 ? "gpipe" : "none",
                (int)(next(&seed) % 1000) + 1, next(&seed) % 2 ? ", data: 1" : "",
                next(&seed) % 2 ? ", placement: [data, data]" : "");
        if (next(&seed) % 2)
            fprintf(out, "link: {bandwidth: %.17g B/s, latency: %.3g us, share: %.17g}\n",
                    (double)next(&seed) * 0x1p-20, (double)(next(&seed) % 100000) / 7,
                        (double)(next(&seed) % 1000 + 1) / 1000);
        fprintf(out, "layers:\n");
        for (uint64_t n = next(&seed) % 3 + 1; n > 0; n--)
            fprintf(out, "- {forward: %.15g h, parameters: %.4g M, name: %s}\n", (double)(next(&seed) % 999) / 13,
                    (double)(next(&seed) % 99999) / 1000, next(&seed) % 2 ? "0x1" : "\"a\\nb\"");
        fclose(out);
        reads(&arena, text, &s);
        first = printed(field_dump(&arena, &sample_table, &s), node_print);
        reads(&arena, first, &back);
        second = printed(field_dump(&arena, &sample_table, &back), node_print);
        assert_string_equal(second, first);
        assert_int_equal(s.link != NULL, back.link != NULL);
        if (s.link)
            assert_memory_equal(&s.link->bandwidth, &back.link->bandwidth, 2 * sizeof(double));
        assert_memory_equal(&((struct sample_layer *)s.layers.items)->forward,
                            &((struct sample_layer *)back.layers.items)->forward, sizeof(double));
        free(text);
        free(first);
        free(second);
        arena_release(&arena);
    }
}

static void test_help(void **state)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    field_help(&sample_strategy_table, 0, out);
    field_help(&sample_link_table, 1, out);
    fclose(out);
    assert_string_equal(text,
        "  schedule             order of the work (a name; required)\n"
        "  tensor               degree (integer, 1 or more; default 1)\n"
        "  data                 degree (integer, 1 to 1000000)\n"
        "  pipeline             degree (integer, 1 or more; default 1)\n"
        "  flush                wait at the end (true or false; default true)\n"
        "  placement            fastest first (a list of tensor, data; default [tensor])\n"
        "  split                shares (a list of integers, 0 to 99)\n"
        "    bandwidth          each way (a bandwidth such as '300 GB/s' or '400 Gb/s', more than 0;\n"
        "                       required)\n"
        "    latency            one way (a time such as '1.5 us' or '2 h'; default 1 us)\n"
        "    share              of the bandwidth (a number such as '0.85', more than 0 and at most 1)\n"
        "    buffer             of the port (bytes such as '80 GiB' or '25 MB', 1 kB to 2 GB)\n"
        "    offset             of the clock (a number such as '0.85', -5 to 5)\n");
    free(text);
}

static const struct field test_nested_fields[] = {
    {.key = "link", .kind = FIELD_RECORD, .table = &sample_link_table, .brief = "to the next"},
};
static const struct table test_nested_table = {.name = "nested", .fields = test_nested_fields, .count = 1};

static void test_help_of_a_key(void **state)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    assert_true(field_help_at(&sample_strategy_table, "flush", out));
    assert_true(field_help_at(&test_nested_table, "link.latency", out));
    assert_false(field_help_at(&sample_strategy_table, "flus", out));
    assert_false(field_help_at(&sample_strategy_table, "flush.x", out));
    assert_false(field_help_at(&test_nested_table, "link.", out));
    fclose(out);
    assert_string_equal(text, "  flush                wait at the end (true or false; default true)\n"
                              "  latency              one way (a time such as '1.5 us' or '2 h'; default 1 us)\n");
    free(text);
}

static const struct field test_choice_fields[] = {
    {.key = "server", AT(sample_gpipe, backward), .kind = FIELD_CHOICE, .brief = "how it sends",
     .choices = NAMES("star", "ring"), .choice_briefs = NAMES("to each", "from one to the next"), .fallback = "star"},
};
static const struct table test_choice_table = {.name = "choice", .fields = test_choice_fields, .count = 1};

/* A choice each value of which has a text: the help and the schema's description have a line for each. */
static void test_values_of_a_choice(void **state)
{
    struct arena arena = {0};
    char *text = NULL, *schema = printed(field_schema(&arena, &test_choice_table), node_print_json);
    size_t size;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    field_help(&test_choice_table, 0, out);
    fclose(out);
    assert_string_equal(text, "  server               how it sends (one of star, ring; default star)\n"
                              "                         star                to each\n"
                              "                         ring                from one to the next\n");
    assert_non_null(strstr(schema, "\"how it sends\\nstar: to each\\nring: from one to the next\""));
    free(text);
    free(schema);
    arena_release(&arena);
}

static void test_schema(void **state)
{
    static const char *const expected[] = {
        "{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n  \"type\": \"object\",\n  "
        "\"properties\": {\n",
        "\"required\": [\"strategy\"],\n  \"oneOf\": [\n    {\n      \"required\": [\"preset\"]\n    },\n    {\n"
        "      \"required\": [\"file\"]\n    }\n  ],\n  \"additionalProperties\": false,\n  \"title\": \"sample\",\n"
        "  \"description\": \"a sample\"\n}\n",
        "\"tensor\": {\"type\": \"integer\", \"minimum\": 1, \"description\": \"degree\", \"default\": 1}",
        "\"data\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000000, \"description\": \"degree\"}",
        "\"backward\": {\n",     /* of the extension */
        "\"flush\": {\"type\": \"boolean\", \"description\": \"wait at the end\", \"default\": true}",
        "\"enum\": [\"1f1b\", \"gpipe\", \"none\"]",
        "{\"type\": \"number\", \"exclusiveMinimum\": 0, \"maximum\": 1, \"description\": \"of the bandwidth\"}",
        "\"const\": 0",
        "\"default\": \"1 us\"",
    };
    struct arena arena = {0};
    char *text = printed(field_schema(&arena, &sample_table), node_print_json);

    (void)state;
    for (size_t i = 0; i < COUNT(expected); i++)
        if (!strstr(text, expected[i]))
            fail_msg("the schema lacks\n%s\nin\n%s", expected[i], text);
    free(text);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dump),
        cmocka_unit_test(test_what_the_program_settles_is_dumped),
        cmocka_unit_test(test_dumps_read_back),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_help_of_a_key),
        cmocka_unit_test(test_values_of_a_choice),
        cmocka_unit_test(test_schema),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
