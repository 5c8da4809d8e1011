/* json: what is written is what jansson writes, but for shorter numbers, and reads back equal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "files/json.h"

static const char sample[] = "{\"a\": [1, -2.5, 0.1, 3.0, 1e300, true, false, null, [], {}], \"b \\\" \\n\": "
                             "\"\\u00e9\\u0001\\\\ x\", \"c\": {\"d\": {\"e\": [[1], [{}]]}}, \"f\": \"\"}";

static char *printed(const json_t *json)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    json_print(json, out);
    fclose(out);
    return text;
}

static void test_same(void **state)
{
    json_t *json = json_loads(sample, 0, NULL), *without = json_loads(sample, 0, NULL), *back;
    char *text = json_text(json), *shown;

    (void)state;
    assert_non_null(json);
    back = json_loads(text, 0, NULL);
    assert_true(json_equal(back, json));
    json_decref(back);
    free(text);
    json_array_clear(json_object_get(without, "a"));
    text = json_dumps(without, JSON_INDENT(2));
    shown = printed(without);
    assert_int_equal(strlen(shown), strlen(text) + 1);
    assert_memory_equal(shown, text, strlen(text));
    free(text);
    free(shown);
    text = json_dumps(without, JSON_COMPACT);
    shown = json_text(without);
    assert_string_equal(shown, text);
    free(text);
    free(shown);
    json_decref(json);
    json_decref(without);
}

static void test_numbers(void **state)
{
    json_t *json = json_pack("[f, f, f, i, f]", 0.1, 3.0, 1e-7, 3, 1e22);
    char *text = json_text(json);

    (void)state;
    assert_string_equal(text, "[0.1,3.0,1e-07,3,1e+22]");
    free(text);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_numbers),
    };

    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
