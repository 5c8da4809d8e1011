/* conf: trees and places of what is read, each refusal with its words and place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "text.h"

/* Reads text of that length and compares the tree, or else the messages. */
static void check_n(const char *text, size_t length, const char *tree, const char *messages)
{
    struct arena arena = {0};
    struct error err = {0};
    struct node *root;
    int result = conf_parse(&arena, "f", text, length, &root, &err);
    char *seen = messages_of(&err);

    assert_string_equal(seen, messages);
    assert_int_equal(result, *messages ? -1 : 0);
    free(seen);
    if (result) {
        assert_null(root);
        assert_int_equal(error_exit_code(&err), EXIT_INPUT);
    } else {
        seen = printed(root, dump);
        assert_string_equal(seen, tree);
        free(seen);
    }
    error_release(&err);
    arena_release(&arena);
}

static void reads(const char *text, const char *tree)
{
    check_n(text, strlen(text), tree, "");
}

static void refuses(const char *text, const char *messages)
{
    check_n(text, strlen(text), NULL, messages);
}

static void test_trees(void **state)
{
    (void)state;
    reads("a: 1\nb: [x, 'y', \"z\"]\n", "{a: 1, b: [x, \"y\", \"z\"]}");
    reads("---\n- a\n- {b: c}\n...\n", "[a, {b: c}]");
    reads("just text", "just text");
    reads("a:\nb: ~\n", "{a: , b: ~}");
    reads("# nothing but this\na: b # and that\n", "{a: b}");
    reads("\xEF\xBB\xBF" "a: b\n", "{a: b}");
    reads("a: b\r\nc: d\r\n", "{a: b, c: d}");
    reads("a: |\n  x\n  y\n", "{a: \"x\ny\n\"}");
    reads("%YAML 1.1\n---\na: b\n", "{a: b}");
    reads("'<<': 1\n", "{<<: 1}");
}

static void test_json(void **state)
{
    (void)state;
    reads("{\n\t\"a\": 1,\n\t\"b\":[1,\t2.5e3, true, null],\n\t\"c\": {\"d\":\"e\"}\n}\n",
          "{a: 1, b: [1, 2.5e3, true, null], c: {d: \"e\"}}");
    reads("{\"a\":\"\\u00e9\\/\\n\"}", "{a: \"\xC3\xA9/\n\"}");
}

static void test_aliases_and_merges(void **state)
{
    (void)state;
    reads("a: &x {b: 1}\nc: *x\nd: [*x, *x]\n", "{a: {b: 1}, c: {b: 1}, d: [{b: 1}, {b: 1}]}");
    reads("a: &x 1\nb: &x 2\nc: *x\n", "{a: 1, b: 2, c: 2}");
    reads("a: &x {b: 1, c: 2}\nd:\n  c: 3\n  <<: *x\n  e: 4\n", "{a: {b: 1, c: 2}, d: {c: 3, e: 4, b: 1}}");
    reads("d: {<<: [{a: 1, b: 1}, {b: 2, c: 2}], c: 3}\n", "{d: {c: 3, a: 1, b: 1}}");
    reads("a: &x {b: 1}\nc: &y {<<: *x, d: 2}\ne: {<<: *y}\n", "{a: {b: 1}, c: {d: 2, b: 1}, e: {d: 2, b: 1}}");
    reads("a: {<<: {}}\n", "{a: {}}");
    refuses("a: {<<: 3}\n", "f:1:9: error: '<<' merges mappings; expected a mapping or a list of mappings, found "
                            "text\n");
    refuses("a: {<<: [{}, []]}\n", "f:1:14: error: '<<' merges mappings; expected a mapping, found a list\n");
    refuses("a:\n  <<: {b: 1}\n  <<: {c: 1}\n", "f:3:3: error: duplicate key '<<'; first given at line 2\n");
    refuses("a: *x\n", "f:1:4: error: unknown alias '*x'; no '&x' stands before it\n");
    refuses("a: &x {b: [*x]}\n", "f:1:12: error: the alias '*x' stands inside the value of '&x'\n");
    refuses("a: &x b\n*x : c\n", "f:2:1: error: a key must be text, found the alias '*x'\n");
}

static void test_refusals(void **state)
{
    (void)state;
    refuses("", "f: error: the file is empty; expected lines such as 'key: value'\n");
    refuses("# only this\n", "f: error: the file is empty; expected lines such as 'key: value'\n");
    refuses("a: 1\n---\nb: 2\n", "f:2:1: error: a second document begins here; expected only one\n");
    refuses("micro: 1\nb: 2\nmicro: 3\nx: {b: 1, b: 2}\n",
            "f:3:1: error: duplicate key 'micro'; first given at line 1\n"
            "f:4:11: error: duplicate key 'b'; first given at line 4\n");
    refuses("a: !!str 3\nb: !x [1]\nc: !!map {}\n! d: e\n",
            "f:1:4: error: tags such as '!!str' are not supported\n"
            "f:2:4: error: tags such as '!x' are not supported\n"
            "f:3:4: error: tags such as '!!map' are not supported\n"
            "f:4:1: error: tags such as '!' are not supported\n");
    refuses("%TAG ! tag:x,2000:\n---\na: b\n", "f:1:1: error: tags are not supported, nor the directive '%TAG'\n");
    refuses("{[1]: 2}", "f:1:2: error: a key must be text, found a list\n");
    refuses("? {a: b}\n: c\n", "f:1:3: error: a key must be text, found a mapping\n");
    refuses("a: \"x\\0y\"\n", "f:1:4: error: the character U+0000 is not allowed\n");
}

static void test_characters(void **state)
{
    static const char little[] = "\xFF\xFE" "a\0:\0", big[] = "\0a\0:";

    (void)state;
    check_n(little, sizeof little - 1, NULL, "f:1:1: error: the file is UTF-16; expected UTF-8\n");
    check_n(big, sizeof big - 1, NULL, "f:1:1: error: the file is UTF-16; expected UTF-8\n");
    check_n("abc\0d", 5, NULL, "f:1:4: error: the control character U+0000 is not allowed\n");
    refuses("a: b\nc: \xC3\xA9\xE9 d\n", "f:2:5: error: the byte 0xE9 is not UTF-8\n");
    refuses("a: \xC0\xAF\n", "f:1:4: error: the byte 0xC0 is not UTF-8\n");
    refuses("a: \xED\xA0\x80\n", "f:1:4: error: the byte 0xED is not UTF-8\n");
    refuses("a: \xF4\x90\x80\x80\n", "f:1:4: error: the byte 0xF4 is not UTF-8\n");
    refuses("a: \xE2\x82", "f:1:4: error: the byte 0xE2 is not UTF-8\n");
    refuses("a: \x1b[2J\n", "f:1:4: error: the control character U+001B is not allowed\n");
}

static void test_syntax_errors_are_said_in_our_words(void **state)
{
    (void)state;
    refuses("a: 1\nb:\n\tc: 3\n", "f:3:1: error: a tab cannot indent; use spaces\n");
    refuses("a: [1\nb: 2\n", "f:2:2: error: expected ',' or ']' (in the value that begins at line 1)\n");
    refuses("a: {b: 1\n", "f:2:1: error: expected ',' or '}' (in the value that begins at line 1)\n");
    refuses("a: \"b\nc: d\n", "f:3:1: error: the file ends inside quotes (in the value that begins at line 1)\n");
    refuses("a: b: c\n",
            "f:1:5: error: a ':' is not allowed here; is the indentation right? Text that holds ': ' goes in quotes\n");
    refuses("a:\n   b: 1\n  c: 2\n", "f:3:3: error: expected a key with the indentation of its neighbours (in the value "
                                     "that begins at line 1)\n");
    refuses("a: @b\n", "f:1:4: error: '@' cannot begin a value; put the text in quotes\n");
    refuses("a\nb: c\n",
            "f:2:2: error: a ':' is not allowed here; is the indentation right? Text that holds ': ' goes in quotes\n");
    refuses("a: \"\\q\"\n",
            "f:1:5: error: unknown escape behind '\\' in double quotes; single quotes keep '\\' as it is\n");
    refuses("[1] 2\n", "f:1:5: error: expected the end of the file; is the indentation right?\n");
}

static void test_places(void **state)
{
    static const char text[] = "model:\n  preset: gpt\nb: {micro:  1, \xC2\xB5: [x,  y]}\n'q':\n- z\n";
    static const struct {
        const char *path;
        int line, column;
    } values[] = {
        {"model", 2, 3}, {"model.preset", 2, 11}, {"b", 3, 4}, {"b.micro", 3, 13}, {"b.\xC2\xB5", 3, 19},
        {"b.\xC2\xB5.1", 3, 24}, {"q", 5, 1}, {"q.0", 5, 3},
    };
    struct arena arena = {0};
    struct error err = {0};
    struct node *root, *b;

    (void)state;
    assert_int_equal(conf_parse(&arena, "f.yaml", text, sizeof text - 1, &root, &err), 0);
    for (size_t i = 0; i < COUNT(values); i++) {
        struct node *node = node_at(root, values[i].path);

        assert_non_null(node);
        assert_string_equal(node->loc.file, "f.yaml");
        assert_int_equal(node->loc.line, values[i].line);
        assert_int_equal(node->loc.column, values[i].column);
    }
    b = node_get(root, "b");
    assert_int_equal(root->key_locs[2].line, 4);
    assert_int_equal(root->key_locs[2].column, 1);
    assert_int_equal(b->key_locs[1].line, 3);
    assert_int_equal(b->key_locs[1].column, 16);
    assert_int_equal(node_loc(b, "micro").column, 13);
    assert_int_equal(node_loc(b, "left out").column, 4);
    assert_null(node_loc(NULL, "x").file);
    assert_null(node_at(root, "model.preset.x"));
    assert_null(node_at(root, "q.1"));
    assert_null(node_at(root, "q.x"));
    assert_null(node_at(root, "q."));
    assert_null(node_get(NULL, "x"));
    arena_release(&arena);
}

static void refuses_soon(char *text, const char *messages)
{
    clock_t start = clock();

    refuses(text, messages);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 5);
    free(text);
}

static void test_depth(void **state)
{
    char *text = repeated("", "[", 64, "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
    char *opened = repeated("a: &x ", "[", 40, "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\nb: ");
    struct arena arena = {0};
    struct error err = {0};
    struct node *root, *node;
    char *through;
    int depth = 1;

    (void)state;
    reads(text, text);
    free(text);
    refuses_soon(repeated("", "[", 65, ""), "f:1:65: error: nested more than 64 deep\n");
    refuses_soon(repeated("", "[", 20000, ""), "f:1:65: error: nested more than 64 deep\n");
    refuses_soon(repeated("", "[\n", 20000, ""), "f:65:1: error: nested more than 64 deep\n");
    refuses_soon(repeated("", "{a: ", 20000, ""), "f:1:257: error: nested more than 64 deep\n");
    refuses_soon(repeated("", "- ", 20000, ""), "f:1:129: error: nested more than 64 deep\n");
    through = repeated(opened, "[", 23, "*x]]]]]]]]]]]]]]]]]]]]]]]");
    assert_int_equal(conf_parse(&arena, "f", through, strlen(through), &root, &err), 0);
    for (node = node_get(root, "b"); node->count > 0; node = node->items[0])
        depth++;
    assert_int_equal(depth, 63);    /* and the mapping */
    free(through);
    arena_release(&arena);
    refuses_soon(repeated(opened, "[", 24, "*x]]]]]]]]]]]]]]]]]]]]]]]]"),
                 "f:2:28: error: nested more than 64 deep through the alias '*x'\n");
    free(opened);
}

static void test_alias_bombs(void **state)
{
    (void)state;
    refuses("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
            "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f "
            "[*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"
            "g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: &h [*g,*g,*g,*g,*g,*g,*g,*g,*g]\ni: &i "
            "[*h,*h,*h,*h,*h,*h,*h,*h,*h]\n",
            "f:7:8: error: more than 1000000 values, with the values of aliases counted every time\n");
    /* the list and 999,999 items fit */
    refuses_soon(repeated("[", "1,", 1000000, "]"),
                 "f:1:2000000: error: more than 1000000 values, with the values of aliases counted every time\n");
}

static void test_many_keys_and_anchors_are_no_trouble(void **state)
{
    struct arena arena = {0};
    struct error err = {0};
    struct node *root;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    clock_t start = clock();

    (void)state;
    for (int i = 0; i < 100000; i++)
        fprintf(out, "k%d: &a%d 1\n", i, i);
    for (int i = 0; i < 100000; i++)
        fprintf(out, "l%d: *a%d\n", i, i);
    fprintf(out, "k77777: 2\n");
    fclose(out);
    assert_int_equal(conf_parse(&arena, "f", text, size, &root, &err), -1);
    assert_int_equal(err.count, 1);
    assert_string_equal(err.messages[0].text, "duplicate key 'k77777'; first given at line 77778");
    assert_int_equal(err.messages[0].loc.line, 200001);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 20);
    free(text);
    error_release(&err);
    arena_release(&arena);
}

static void test_limits_of_size(void **state)
{
    struct arena arena = {0};
    struct error err = {0};
    struct node *root;
    char *text = repeated("", "#23456\n", CONF_MAX_BYTES / 7 + 1, "");
    char *key = repeated("", "k", 201, ": 1\n");

    (void)state;
    refuses(text, "f: error: the file is larger than 8 MiB\n");
    refuses(key, "f:1:1: error: a key of 201 bytes; at most 200 are allowed\n");
    assert_int_equal(conf_parse(&arena, "f", key + 1, strlen(key) - 1, &root, &err), 0);
    free(text);
    free(key);
    arena_release(&arena);
}

static void load_refuses(const char *path, const char *message)
{
    struct arena arena = {0};
    struct error err = {0};
    struct node *root;

    assert_int_equal(conf_load(&arena, path, &root, &err), -1);
    assert_null(root);
    assert_int_equal(err.count, 1);
    assert_string_equal(err.messages[0].text, message);
    assert_string_equal(err.messages[0].loc.file, path);
    assert_int_equal(err.messages[0].loc.line, 0);
    error_release(&err);
    arena_release(&arena);
}

static void test_load(void **state)
{
    char path[] = "/tmp/dtsim-conf-XXXXXX";
    struct arena arena = {0};
    struct error err = {0};
    struct node *root;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    load_refuses(path, "the file is empty; expected lines such as 'key: value'");
    assert_int_equal(write(fd, "a: b\n", 5), 5);
    assert_int_equal(conf_load(&arena, path, &root, &err), 0);
    assert_string_equal(node_get(root, "a")->text, "b");
    assert_string_equal(node_get(root, "a")->loc.file, path);
    assert_int_equal(ftruncate(fd, CONF_MAX_BYTES + 1), 0);
    load_refuses(path, "the file is larger than 8 MiB");
    close(fd);
    unlink(path);
    load_refuses("/nowhere/x.yaml", "cannot open: No such file or directory");
    load_refuses("/tmp", "this is a directory; expected a file");
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trees),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_aliases_and_merges),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_characters),
        cmocka_unit_test(test_syntax_errors_are_said_in_our_words),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_alias_bombs),
        cmocka_unit_test(test_many_keys_and_anchors_are_no_trouble),
        cmocka_unit_test(test_limits_of_size),
        cmocka_unit_test(test_load),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
