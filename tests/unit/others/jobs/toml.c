/* TOML: its values and their places; and whatever bytes stand there, an answer or an error with its place. */
#include "jobs/jobs.h"
#include "jobs/toml.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const char sample[] =
    "title = \"a # b\"   # a comment\r\n"
    "n = 1_000\n"
    "x = -1.5e3\n"
    "on = true\n"
    "day = 2026-01-02T03:04:05Z\n"
    "words = [ 'lit\\n', \"\\u00e9\\t\", # two\n  \"z\", ]\n"
    "point = { x = 1, \"y z\" = {w = 2} }\n"
    "a.b.c = 3\n"
    "\n"
    "[table]\n"
    "text = \"\"\"\nfirst\nsecond \\\n   third\"\"\"\n"
    "raw = '''it's'''\n"
    "[table.below]\n"
    "k = []\n";

static struct node *parse(struct arena *arena, const char *text, struct error *err)
{
    struct node *root;

    return toml_parse(arena, "job.toml", text, strlen(text), &root, err) ? NULL : root;
}

static void expect(const struct node *root, const char *path, const char *text, int line, int column)
{
    const struct node *node = node_at(root, path);

    if (!node)
        fail_msg("%s is not there", path);
    assert_string_equal(node->text, text);
    assert_int_equal(node->loc.line, line);
    assert_int_equal(node->loc.column, column);
}

static void test_values(void **state)
{
    struct arena arena = {0};
    struct error err = {0};
    struct node *root = parse(&arena, sample, &err);

    (void)state;
    assert_non_null(root);
    expect(root, "title", "a # b", 1, 9);
    expect(root, "n", "1000", 2, 5);
    expect(root, "x", "-1.5e3", 3, 5);
    expect(root, "on", "true", 4, 6);
    expect(root, "day", "2026-01-02T03:04:05Z", 5, 7);
    expect(root, "words.0", "lit\\n", 6, 11);
    expect(root, "words.1", "\xc3\xa9\t", 6, 20);
    expect(root, "words.2", "z", 7, 3);
    expect(root, "point.x", "1", 8, 15);
    expect(root, "point.y z.w", "2", 8, 31);
    expect(root, "a.b.c", "3", 9, 9);
    expect(root, "table.text", "first\nsecond third", 12, 8);
    expect(root, "table.raw", "it's", 16, 7);
    assert_int_equal(node_at(root, "table.below.k")->count, 0);
    assert_false(node_get(root, "n")->quoted);
    assert_true(node_get(root, "title")->quoted);
    arena_release(&arena);
}

static void test_errors(void **state)
{
    static const struct { const char *text; int line, column; } cases[] = {
        {"a", 1, 2}, {"a = ", 1, 5}, {"a = 1 b", 1, 7}, {"a = 1\na = 2", 2, 1}, {"[a]\n[a]", 2, 2}, {"a = 1\n[a]", 2, 2},
        {"a = 1\na.b = 2", 2, 1}, {"a = \"x", 1, 5}, {"a = \"\\q\"", 1, 7}, {"a = [1 2]", 1, 8}, {"a = {b = 1,}", 1, 12},
        {"[a", 1, 3}, {"= 1", 1, 1}, {"a = 1x!", 1, 7}, {"[[a]]", 1, 1}, {"a = \"\\ud800\"", 1, 7},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct arena arena = {0};
        struct error err = {0};

        if (parse(&arena, cases[i].text, &err) || !err.count)
            fail_msg("%s is no error", cases[i].text);
        if (err.messages[0].loc.line != cases[i].line || err.messages[0].loc.column != cases[i].column)
            fail_msg("%s: %d:%d: %s", cases[i].text, err.messages[0].loc.line, err.messages[0].loc.column,
                     err.messages[0].text);
        error_release(&err);
        arena_release(&arena);
    }
}

/* Changed bytes, lost ends, doubled parts: of TOML, and as DeepSpeed's JSON. */
static void test_mutations(void **state)
{
    static const char json[] = "{\"train_batch_size\": 8, \"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 3,\n"
                               " \"offload_param\": {\"device\": \"cpu\"}, \"reduce_bucket_size\": 5e8}, \"pipeline\": {\"stages\": 2}}";
    static const char letters[] = "\"'[]{}=.#,\\\n\r ua1\xc3-";
    struct import_options options = {0};

    (void)state;
    for (uint64_t round = 0; round < 20000; round++) {
        const char *from = round % 2 ? json : sample, *comment;
        size_t length = strlen(from);
        char *text = strdup(from);
        struct arena arena = {0};
        struct error err = {0};
        struct node *root = NULL;
        char *notes_text = NULL;
        size_t size;
        FILE *notes = open_memstream(&notes_text, &size);

        for (uint64_t i = 0; i < 1 + random_bits(round, 0) % 4; i++)
            text[random_bits(round, 2 * i + 1) % length] = letters[random_bits(round, 2 * i + 2) % (sizeof letters - 1)];
        if (random_bits(round, 99) % 4 == 0)
            length = random_bits(round, 98) % length;
        if (round % 2)
            root = deepspeed_scenario(&arena, &(struct job_text){"ds.json", text, length, &options, node_mapping(&arena), NULL}, &comment, notes, &err);
        else
            toml_parse(&arena, "job.toml", text, length, &root, &err);
        assert_true((root == NULL) == (err.count > 0));
        for (int i = 0; i < err.count; i++)
            assert_non_null(err.messages[i].loc.file);
        fclose(notes);
        free(notes_text);
        free(text);
        error_release(&err);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_errors),
                                       cmocka_unit_test(test_mutations)};

    return cmocka_run_group_tests_name("toml", tests, NULL, NULL);
}
