/* A document read piece by piece is what jansson reads at once; one that is cut off is refused wherever it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "files/json_stream.h"

#include <stdlib.h>
#include <string.h>

static const char document[] =
    "{ \"a\": 1.5e3, \"b\\\"]\" :[ ],\n"
    " \"items\": [ {\"x\": [1, {\"y\": \"}]\\\\\\\"\"}], \"z\": null},\n\n"
    "   -7 ,true, \"a string, with ] and }\", [[], [[]]] ],\r\n"
    " \"skipped\": {\"deep\": [[{\"k\": \"\\\"\"}]]}, \"last\": false }\n";

/* Rebuilds the document from the stream; NULL after an error. */
static json_t *rebuild(const char *text, size_t length, struct error *err)
{
    FILE *file = fmemopen((void *)text, length, "r");
    struct json_stream stream = {.file = file, .name = "f.json", .expected = "a document", .err = err};
    json_t *root = json_object();
    const char *key;
    int status;

    assert_non_null(file);
    while ((status = json_stream_key(&stream, &key)) > 0) {
        json_t *list = json_array(), *value;
        char *name = strdup(key);

        if (!strcmp(name, "skipped")) {
            status = json_stream_skip(&stream);
        } else if (json_stream_array(&stream)) {
            while ((status = json_stream_item(&stream)) > 0 && (value = json_stream_value(&stream)))
                json_array_append_new(list, value);
            json_object_set(root, name, list);
        } else if ((value = json_stream_value(&stream))) {
            json_object_set_new(root, name, value);
        }
        free(name);
        json_decref(list);
        if (status < 0)
            break;
    }
    json_stream_release(&stream);
    fclose(file);
    if (status < 0)
        json_decref(root);
    return status < 0 ? NULL : root;
}

static void as_jansson(void **state)
{
    struct error err = {0};
    json_t *all = json_loads(document, 0, NULL), *found = rebuild(document, strlen(document), &err);

    (void)state;
    /* the stream gives keys as they are written; jansson unescapes them */
    json_object_set(all, "b\\\"]", json_object_get(all, "b\"]"));
    json_object_del(all, "b\"]");
    json_object_del(all, "skipped");
    assert_non_null(found);
    assert_int_equal(err.count, 0);
    assert_true(json_equal(all, found));
    json_decref(all);
    json_decref(found);
}

static void cut_off(void **state)
{
    (void)state;
    for (size_t length = 1; length < strlen(document) - 1; length++) {
        struct error err = {0};

        assert_null(rebuild(document, length, &err));
        assert_int_equal(err.count, 1);
        error_release(&err);
    }
}

static void places(void **state)
{
    static const struct { const char *text, *message; int line, column; } wrong[] = {
        {"\n [1]", "expected a document, found '['", 2, 2},
        {"{\"a\": 1\n  \"b\": 2}", "expected ',' and the next key, or '}', found '\"'", 2, 3},
        {"{\"a\": [1,\n2 3]}", "expected ',' and the next item, or ']', found '3'", 2, 3},
        {"{\"a\": [1,\n ]}", "expected a value, found ']'", 2, 2},
        {"{\"a\": 1,}", "expected a key in quotes, found '}'", 1, 9},
        {"{a: 1}", "expected a key in quotes, found 'a'", 1, 2},
        {"{\"a\" 1}", "expected ':' and a value, found '1'", 1, 6},
        {"{\"a\": 1} x", "expected the end of the file, found 'x'", 1, 10},
        {"{\"a\": [1, nul]}", "expected JSON: invalid token near 'nul'", 1, 11},
        {"\x1f\x8b", "expected a document, found compressed data; try zcat, and '-' as the file", 1, 1},
        {"{\"a\":\n \x01}", "expected JSON: invalid token near '\\x01'", 2, 2},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct error err = {0};

        assert_null(rebuild(wrong[i].text, strlen(wrong[i].text), &err));
        assert_int_equal(err.count, 1);
        assert_string_equal(err.messages[0].text, wrong[i].message);
        assert_int_equal(err.messages[0].loc.line, wrong[i].line);
        assert_int_equal(err.messages[0].loc.column, wrong[i].column);
        error_release(&err);
    }
}

/* More than a value may have: what is passed over may be of any size, what is kept is refused. */
static void large_values(void **state)
{
    size_t length = JSON_STREAM_MOST + 100;
    char *text = malloc(length);
    struct error err = {0};
    json_t *found;

    (void)state;
    memset(text, ' ', length);
    memcpy(text, "{\"skipped\": [\"", 14);
    memset(text + 14, 'x', length - 20);
    memcpy(text + length - 6, "\"]   }", 6);
    found = rebuild(text, length, &err);
    assert_non_null(found);
    json_decref(found);
    memcpy(text + 2, "keptnow", 7);
    assert_null(rebuild(text, length, &err));
    assert_string_equal(err.messages[0].text, "a value of more than 16 MiB");
    error_release(&err);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_jansson),
        cmocka_unit_test(cut_off),
        cmocka_unit_test(places),
        cmocka_unit_test(large_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
