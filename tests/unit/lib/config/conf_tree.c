/* conf: --set, and printing that reads back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/random.h"
#include "base/text.h"
#include "config/conf_text.h"
#include "text.h"

/* Sets on a small tree, which is compared, or else the messages. */
static void set_check(const char *assignment, const char *tree, const char *messages, enum exit_code code)
{
    static const char text[] = "a: &x {b: 1}\nc: *x\nl: [*x, 2]\nn:\n";
    struct arena arena = {0};
    struct error err = {0};
    struct node *root;
    char *seen;
    int result;

    assert_int_equal(conf_parse(&arena, "f", text, sizeof text - 1, &root, &err), 0);
    result = conf_set(&arena, root, assignment, &err);
    seen = messages_of(&err);
    assert_string_equal(seen, messages);
    free(seen);
    assert_int_equal(result, *messages ? -1 : 0);
    assert_int_equal(error_exit_code(&err), code);
    seen = printed(root, dump);
    assert_string_equal(seen, tree);
    free(seen);
    error_release(&err);
    arena_release(&arena);
}

#define UNCHANGED "{a: {b: 1}, c: {b: 1}, l: [{b: 1}, 2], n: }"

static void test_set(void **state)
{
    (void)state;
    set_check("a.b=2", "{a: {b: 2}, c: {b: 1}, l: [{b: 1}, 2], n: }", "", EXIT_OK);
    set_check("l.0.b=[3, x]", "{a: {b: 1}, c: {b: 1}, l: [{b: [3, x]}, 2], n: }", "", EXIT_OK);
    set_check("l.1='q'", "{a: {b: 1}, c: {b: 1}, l: [{b: 1}, \"q\"], n: }", "", EXIT_OK);
    set_check("n.p.q=a=b", "{a: {b: 1}, c: {b: 1}, l: [{b: 1}, 2], n: {p: {q: a=b}}}", "", EXIT_OK);
    set_check("m.p= 1 ", "{a: {b: 1}, c: {b: 1}, l: [{b: 1}, 2], n: , m: {p: 1}}", "", EXIT_OK);
    set_check("a=", "{a: , c: {b: 1}, l: [{b: 1}, 2], n: }", "", EXIT_OK);
    set_check("a.b", UNCHANGED, "--set a.b: error: expected PATH=VALUE such as strategy.tensor=8\n", EXIT_USAGE);
    set_check("=3", UNCHANGED, "--set =3: error: expected PATH=VALUE such as strategy.tensor=8\n", EXIT_USAGE);
    set_check("a..b=3", UNCHANGED, "--set a..b=3: error: the path has an empty part; expected PATH=VALUE such as "
                                   "strategy.tensor=8\n", EXIT_USAGE);
    set_check("a.b.c=3", UNCHANGED, "--set a.b.c=3: error: 'a.b' is '1', not a mapping; it has no 'c'\n", EXIT_INPUT);
    set_check("l.2=3", UNCHANGED, "--set l.2=3: error: 'l' is a list of 2, numbered from 0; it has no "
                                  "'2'\n", EXIT_INPUT);
    set_check("l.x=3", UNCHANGED, "--set l.x=3: error: 'l' is a list of 2, numbered from 0; it has no "
                                  "'x'\n", EXIT_INPUT);
    set_check("a={b: 1, b: 2}", UNCHANGED, "--set a={b: 1, b: 2}: error: duplicate key 'b'\n", EXIT_INPUT);
    set_check("a\xFF=1", UNCHANGED, "--set a\\xFF=1: error: the byte 0xFF is not UTF-8\n", EXIT_INPUT);
    set_check("a=[", UNCHANGED, "--set a=[: error: expected a value, found the end\n", EXIT_INPUT);
    set_check("a=!!str 3", UNCHANGED, "--set a=!!str 3: error: tags such as '!!str' are not supported\n", EXIT_INPUT);
}

static void test_set_leaves_a_copy_of_the_root_alone(void **state)
{
    static const char text[] = "a: {b: {c: 1}}\n";
    struct arena arena = {0};
    struct error err = {0};
    struct node *root, copy;
    char *seen;

    (void)state;
    assert_int_equal(conf_parse(&arena, "f", text, sizeof text - 1, &root, &err), 0);
    copy = *root;
    assert_int_equal(conf_set(&arena, &copy, "a.b.c=2", &err), 0);
    assert_int_equal(conf_set(&arena, &copy, "a.b.d=3", &err), 0);
    seen = printed(root, dump);
    assert_string_equal(seen, "{a: {b: {c: 1}}}");
    free(seen);
    seen = printed(&copy, dump);
    assert_string_equal(seen, "{a: {b: {c: 2, d: 3}}}");
    free(seen);
    assert_string_equal(node_at(&copy, "a.b.d")->loc.file, "--set a.b.d=3");
    assert_int_equal(node_at(&copy, "a.b.d")->loc.line, 0);
    arena_release(&arena);
}

static void test_set_is_bounded_in_depth(void **state)
{
    struct arena arena = {0};
    struct error err = {0};
    struct node *root = node_mapping(&arena);
    char *deep = repeated("a", ".a", 62, "=[]"), *deeper = repeated("a", ".a", 63, "=[]");

    (void)state;
    assert_int_equal(conf_set(&arena, root, deep, &err), 0);
    assert_int_equal(conf_set(&arena, root, deeper, &err), -1);
    assert_string_equal(err.messages[0].text, "nested more than 64 deep");
    free(deep);
    free(deeper);
    error_release(&err);
    arena_release(&arena);
}

/* The text reads, and what `print` makes of its tree is as expected. */
static void expect_printed(const char *text, void (*print)(const struct node *, FILE *), const char *expected)
{
    struct arena arena = {0};
    struct error err = {0};
    struct node *root;
    char *seen;

    assert_int_equal(conf_parse(&arena, "f", text, strlen(text), &root, &err), 0);
    seen = printed(root, print);
    assert_string_equal(seen, expected);
    free(seen);
    arena_release(&arena);
}

static void test_print(void **state)
{
    static const char text[] =
        "name: gpt\n"
        "empty: {}\n"
        "none: null\n"
        "list: [1, \"2\", \"true\"]\n"
        "layers:\n"
        "  - {name: conv1, forward: 1.2 ms}\n"
        "  - name: conv2\n"
        "    parts: [a]\n"
        "  - - []\n"
        "    - [x]\n"
        "deep:\n"
        "  down:\n"
        "    \"a: b\": \"#c\"\n"
        "    long: [aaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbb, ccccccccccccccccccccccccccc, d]\n"
        "    longer:\n"
        "      - aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
        "      - bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n"
        "      - \"line\\n\\ttab \\\\ \\\" \\u0007\"\n";

    (void)state;
    expect_printed(text, node_print, text);
}

static void test_print_json(void **state)
{
    static const char text[] = "{a: 1, b: '1', c: [true, no, ~, -0.5e3, 01, .5, 80 GiB], d: {}, e: [{f: "
                               "\"q\\\"\\x01\xC2\xB5\"}]}";

    (void)state;
    expect_printed(text, node_print_json,
                   "{\n  \"a\": 1,\n  \"b\": \"1\",\n"
                   "  \"c\": [true, \"no\", null, -0.5e3, \"01\", \".5\", \"80 GiB\"],\n"
                   "  \"d\": {},\n  \"e\": [\n    {\"f\": \"q\\\"\\u0001\xC2\xB5\"}\n  ]\n}\n");
}

static const char *const pieces[] = {
    "a", "B", "7", "-", ".", " ", ":", "#", ",", "[", "]", "{", "}", "'", "\"", "\\", "\n", "\t", "?", "&",
        "*", "!", "|",
    ">", "%", "@", "`", "~", "null", "true", "<<", "0x1", "\xC2\xB5", "\xC2\x85", "\xE2\x80\xA8",
        "\xEF\xBB\xBF", "\x01",
    "\x7F", "\xF0\x9F\x98\x80", "=", "---", "...", "\r", "1e3", "_", "\xE2\x80\xAE", "\xE2\x81\xA6", "\xE2\x80\x8F",
};

static const char *random_text(struct arena *arena, uint64_t *seed)
{
    char *text = arena_strdup(arena, "");
    size_t count = next(seed) % 5;

    for (size_t i = 0; i < count; i++)
        text = arena_printf(arena, "%s%s", text, pieces[next(seed) % COUNT(pieces)]);
    return text;
}

static struct node *random_tree(struct arena *arena, uint64_t *seed, int depth)
{
    struct node *node;
    uint64_t kind = next(seed) % 4;

    if (depth == 0 || kind < 2)
        return node_scalar(arena, random_text(arena, seed), true);
    node = kind == 2 ? node_sequence(arena) : node_mapping(arena);
    for (uint64_t i = next(seed) % 4; i > 0; i--) {
        if (kind == 2)
            node_append(arena, node, random_tree(arena, seed, depth - 1));
        else
            node_put(arena, node, random_text(arena, seed), random_tree(arena, seed, depth - 1));
    }
    return node;
}

/* Whatever text a tree holds, it is printed so that the same tree is read back: as YAML, and as JSON read as YAML. */
static void test_printed_trees_read_back(void **state)
{
    uint64_t seed = 3;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct arena arena = {0};
        struct error err = {0};
        struct node *tree = random_tree(&arena, &seed, 4), *back;
        void (*print)(const struct node *, FILE *) = i % 2 && tree->kind != NODE_SCALAR ? node_print_json : node_print;
        char *text, *before, *after;

        if (print == node_print_json) {
            /* JSON as such may hold raw what YAML must escape */
            text = printed(tree, print);
            if (strstr(text, "\x7F") || strstr(text, "\xEF\xBB\xBF") || strstr(text, "\xC2\x85") ||
                strstr(text, "\xE2\x80\xA8"))
                print = node_print;
            free(text);
        }
        text = printed(tree, print);
        for (const char *at = text, *end = text + strlen(text); at < end;) {
            int32_t c = utf8_next(&at, end);

            if (c != '\n' && text_harmful((uint32_t)c))
                fail_msg("U+%04X is printed as it is:\n%s", (unsigned)c, text);
        }
        if (conf_parse(&arena, "f", text, strlen(text), &back, &err))
            fail_msg("refused: %s\n%s", err.messages[0].text, text);
        before = printed(tree, dump);
        after = printed(back, dump);
        assert_string_equal(after, before);
        free(before);
        free(after);
        free(text);
        arena_release(&arena);
    }
}

/* A tree with aliases, nested lists, and a mapping of many keys. */
static struct node *wide_tree(struct arena *arena, int keys)
{
    char *text = arena_printf(arena, "{a: &x {b: {c: 1}}, d: *x, l: [*x, [2, 3]], n: ");
    struct error err = {0};
    struct node *root;

    for (int i = 0; i < keys; i++)
        text = arena_printf(arena, "%s, k%d: %d", text, i, i);
    text = arena_printf(arena, "%s}", text);
    assert_int_equal(conf_parse(arena, "f", text, strlen(text), &root, &err), 0);
    return root;
}

/* Many changes at once are what they are one by one, and the tree that was copied stays as it was. */
static void test_many_changes_are_single_changes(void **state)
{
    static const char *const parts[] = {"a", "b", "c", "d", "l.0", "l.1", "l.1.0", "n", "k", "k"};
    uint64_t drawn = 0;

    (void)state;
    for (int trial = 0; trial < 300; trial++) {
        struct arena arena = {0};
        int keys = trial % 3 * 70, failed = 0;
        struct node *before = wide_tree(&arena, keys), single = *before, many = *before;

        conf_change(&arena, &many);
        for (int i = 0; i < 100 && !failed; i++) {
            char *set = "";
            struct error err[2] = {0};

            for (int k = (int)(random_bits(5, drawn++) % 3); k >= 0; k--) {
                int part = (int)(random_bits(5, drawn++) % COUNT(parts));

                set = arena_printf(&arena, "%s%s%s", set, *set ? "." : "", parts[part]);
                if (parts[part][0] == 'k')
                    set = arena_printf(&arena, "%s%d", set, (int)(random_bits(5, drawn++) % 200));
            }
            set = arena_printf(&arena, "%s=%s", set, random_bits(5, drawn++) % 5 ? "7" : "{b: {c: 2, k1: [1, 2]}}");
            failed = conf_set(&arena, &single, set, &err[0]);
            assert_int_equal(conf_set(&arena, &many, set, &err[1]), failed);
            if (failed)
                assert_string_equal(err[0].messages[0].text, err[1].messages[0].text);
            else
                assert_true(node_equal(&single, &many));
            error_release(&err[0]);
            error_release(&err[1]);
        }
        conf_changed(&many);
        assert_true(node_equal(before, wide_tree(&arena, keys)));
        arena_release(&arena);
    }
}

enum { KEYS = 300 };

/* The values of a mapping's keys "k0" to "k299", -1: it has no such key; read from its arrays. */
static void values_of(const struct node *mapping, int values[KEYS])
{
    for (int k = 0; k < KEYS; k++)
        values[k] = -1;
    for (size_t i = 0; i < mapping->count; i++) {
        int key = atoi(mapping->keys[i] + 1);

        assert_int_equal(values[key], -1);
        values[key] = atoi(mapping->items[i]->text);
    }
}

static void check_values(const struct node *mapping, const int expected[KEYS])
{
    int values[KEYS];
    char key[8];

    values_of(mapping, values);
    for (int k = 0; k < KEYS; k++) {
        const struct node *value;

        snprintf(key, sizeof key, "k%d", k);
        value = node_get(mapping, key);
        assert_int_equal(values[k], expected[k]);
        assert_int_equal(value ? atoi(value->text) : -1, expected[k]);
    }
}

static struct node *random_mapping(struct arena *arena, uint64_t *drawn, int expected[KEYS])
{
    struct node *mapping = node_mapping(arena);

    for (int k = 0; k < KEYS; k++)
        expected[k] = -1;
    for (int i = (int)(random_bits(7, (*drawn)++) % 400); i > 0; i--) {
        int key = (int)(random_bits(7, (*drawn)++) % KEYS);

        expected[key] = i;
        node_put(arena, mapping, arena_printf(arena, "k%d", key), node_scalar(arena, arena_printf(arena, "%d", i), false));
    }
    return mapping;
}

/* Mappings of any size have each key once, and find it: as they grow, merged, copied and changed, and read with `<<`. */
static void test_large_mappings(void **state)
{
    uint64_t drawn = 0;

    (void)state;
    for (int trial = 0; trial < 100; trial++) {
        struct arena arena = {0};
        struct error err = {0};
        int a[KEYS], b[KEYS], both[KEYS];
        struct node *one = random_mapping(&arena, &drawn, a), *two = random_mapping(&arena, &drawn, b), copy = *two, *read;
        const char *text = "x: &x {";

        check_values(one, a);
        assert_int_equal(conf_set(&arena, &copy, "k299=1000", &err), 0);
        check_values(two, b);
        node_put(&arena, two, "k298", node_scalar(&arena, "2000", false));
        b[298] = 2000;
        check_values(two, b);
        for (int k = 0; k < KEYS; k++)
            both[k] = b[k] >= 0 ? b[k] : a[k];
        check_values(node_merge(&arena, one, two), both);
        b[298] = node_get(&copy, "k298") ? atoi(node_get(&copy, "k298")->text) : -1;
        b[299] = 1000;
        check_values(&copy, b);
        for (int k = 0; k < KEYS; k++) {
            text = a[k] < 0 ? text : arena_printf(&arena, "%sk%d: %d, ", text, k, a[k]);
            both[k] = b[k] >= 0 ? b[k] : a[k];
        }
        text = arena_printf(&arena, "%s}\ny: {<<: *x, ", text);
        for (int k = 0; k < KEYS; k++)
            text = b[k] < 0 ? text : arena_printf(&arena, "%sk%d: %d, ", text, k, b[k]);
        assert_int_equal(conf_parse(&arena, "f", arena_printf(&arena, "%s}\n", text), strlen(text) + 2, &read, &err), 0);
        check_values(node_get(read, "y"), both);
        text = arena_printf(&arena, "%sk299: 1}\n", text);
        assert_int_equal(conf_parse(&arena, "f", text, strlen(text), &read, &err), -1);
        assert_string_equal(err.messages[0].text, "duplicate key 'k299'; first given at line 2");
        error_release(&err);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_set_leaves_a_copy_of_the_root_alone),
        cmocka_unit_test(test_many_changes_are_single_changes),
        cmocka_unit_test(test_large_mappings),
        cmocka_unit_test(test_set_is_bounded_in_depth),
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_print_json),
        cmocka_unit_test(test_printed_trees_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
