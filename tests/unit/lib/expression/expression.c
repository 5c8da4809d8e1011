/* expression: what expressions mean, and where their mistakes are found; the words of mistakes are in golden/sweep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "expression/expression.h"
#include "text.h"

static const struct { const char *name; struct value value; } known[] = {
    {"strategy.tensor", {.kind = VALUE_NUMBER, .number = 8}},
    {"strategy.pipeline", {.kind = VALUE_NUMBER, .number = 3}},
    {"strategy.schedule", {.kind = VALUE_TEXT, .text = "1f1b"}},
    {"strategy.sequence_parallel", {.kind = VALUE_BOOLEAN, .boolean = true}},
    {"memory.recompute", {.kind = VALUE_MAPPING}},
    {"nothing", {.kind = VALUE_NONE}},
    {"cluster.bandwidth", {.kind = VALUE_NUMBER, .number = 25e9}},
};

static int find(void *context, const char *name, const char **why)
{
    (void)context;
    (void)why;
    for (size_t i = 0; i < COUNT(known); i++)
        if (!strcmp(known[i].name, name))
            return (int)i;
    return -1;
}

static const char *name_at(size_t i, const void *context)
{
    (void)context;
    return i < COUNT(known) ? known[i].name : NULL;
}

static const struct names names = {find, name_at, NULL};

static int value_of(void *context, int name, struct value *value, struct error *err)
{
    int *asked = context;

    (void)err;
    if (asked)
        ++*asked;
    *value = known[name].value;
    return 0;
}

/* The value of the text, whose names are asked for *asked times. */
static struct value evaluated(struct arena *arena, const char *text, int *asked)
{
    struct expression_text source = {"e", text, {"f", 1, 1}, NULL};
    struct expression *expression = NULL;
    struct error err = {0};
    struct value value = {0};

    if (expression_parse(arena, &source, &names, &expression, &err) ||
        expression_evaluate(expression, value_of, asked, &value, &err))
        fail_msg("%s: %s", text, err.messages[0].text);
    return value;
}

static void is_number(const char *text, double number)
{
    struct arena arena = {0};
    struct value value = evaluated(&arena, text, NULL);

    if (value.kind != VALUE_NUMBER || value.number != number)
        fail_msg("%s is %.17g, not %.17g", text, value.number, number);
    arena_release(&arena);
}

static void is_boolean(const char *text, bool boolean)
{
    struct arena arena = {0};
    struct value value = evaluated(&arena, text, NULL);

    if (value.kind != VALUE_BOOLEAN || value.boolean != boolean)
        fail_msg("%s is not %s", text, boolean ? "true" : "false");
    arena_release(&arena);
}

static void test_arithmetic(void **state)
{
    (void)state;
    is_number("1 + 2 * 3", 7);
    is_number("(1 + 2) * 3", 9);
    is_number("10 - 4 - 3", 3);
    is_number("64 / 4 / 2", 8);
    is_number("-2 * -3", 6);
    is_number("- - 2", 2);
    is_number("17 % 5", 2);
    is_number("-17 % 5", -2);
    is_number("1.5e3 + .5", 1500.5);
    is_number("strategy.tensor*strategy.pipeline", 24);
    is_number("min(3, 1, 2) + max(3, 1, 2)", 4);
    is_number("floor(-1.5) + ceil(-1.5) + round(2.5) + abs(-4)", -2 - 1 + 3 + 4);
    is_number("log2(1024) + sqrt(81) + pow(2, 10)", 10 + 9 + 1024);
    is_number("min((((7))))", 7);
}

static void test_units(void **state)
{
    (void)state;
    is_number("80 GiB", 80.0 * (1 << 30));
    is_number("80GB", 80e9);
    is_number("1.5 us", 1.5e-6);
    is_number("25 GB/s", 25e9);
    is_number("400 Gb/s/8", 50e9 / 8);
    is_number("10 k", 1e4);
    is_number("2 min", 120);
    is_number("312 TFLOP/s", 312e12);
    is_boolean("cluster.bandwidth == 25 GB/s", true);
    is_boolean("cluster.bandwidth>=200 Gb/s", true);
    is_number("8 GB/strategy.tensor", 1e9);          /* no bandwidth: behind "/s" the word goes on */
}

static void test_conditions(void **state)
{
    (void)state;
    is_boolean("1 < 2 && 2 < 3", true);
    is_boolean("1 < 2 == 2 < 3", true);
    is_boolean("true || false && false", true);
    is_boolean("(true || false) && false", false);
    is_boolean("!true || true", true);
    is_boolean("not true or true", true);
    is_boolean("not 1 == 2 and true", true);
    is_boolean("!strategy.sequence_parallel", false);
    is_boolean("strategy.schedule == \"1f1b\"", true);
    is_boolean("strategy.schedule != '1f1b'", false);
    is_boolean("contains(strategy.schedule, 'f1')", true);
    is_boolean("divides(strategy.tensor, 64)", true);
    is_boolean("divides(strategy.pipeline, 64)", false);
    is_boolean("divides(3, 0)", true);
    is_boolean("1 >= 1 and 1 <= 1 and not (1 > 1 or 1 < 1)", true);
    is_boolean("0.1 + 0.2 == 0.3", false);           /* doubles, as everywhere else */
}

/* The right side is not evaluated where the left one settles the matter. */
static void test_short_circuit(void **state)
{
    struct arena arena = {0};
    int asked = 0;

    (void)state;
    is_boolean("false && 1 / 0 == 1", false);
    is_boolean("true || 1 / 0 == 1", true);
    is_boolean("false && 1 / 0 == 1 || true", true);
    evaluated(&arena, "strategy.tensor == 1 && strategy.pipeline == 3 && nothing == 1", &asked);
    assert_int_equal(asked, 1);
    arena_release(&arena);
}

/* What follows from a value that is not there is not there either, unless the other side settles it. */
static void test_none(void **state)
{
    static const char *const none[] = {"nothing", "nothing + 1", "-nothing", "!nothing", "nothing == nothing",
                                       "min(1, nothing)", "nothing < 1 && true", "false || nothing > 1"};
    struct arena arena = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(none); i++)
        assert_int_equal(evaluated(&arena, none[i], NULL).kind, VALUE_NONE);
    is_boolean("nothing > 1 && false", false);
    is_boolean("nothing > 1 || true", true);
    arena_release(&arena);
}

/* Random sums and products of small numbers: what a second, recursive evaluator makes of the same text. */
enum { RANDOM_MOST = 1 << 10 };
static double random_text(uint64_t *seed, int depth, char *text, size_t size)
{
    static const char operators[] = "+-*";
    char left[RANDOM_MOST], right[RANDOM_MOST];
    double x, y;
    int which;

    if (!depth || next(seed) % 4 == 0) {
        x = (double)(next(seed) % 100);
        snprintf(text, size, "%.0f", x);
        return x;
    }
    x = random_text(seed, depth - 1, left, sizeof left);
    y = random_text(seed, depth - 1, right, sizeof right);
    which = (int)(next(seed) % 3);
    BUG_IF(snprintf(text, size, "(%s%s%c%s%s)", left, next(seed) % 2 ? " " : "", operators[which],
                    next(seed) % 2 ? "\n" : "", right) >= (int)size);
    return which == 0 ? x + y : which == 1 ? x - y : x * y;
}

static void test_random(void **state)
{
    uint64_t seed = 7;
    char text[RANDOM_MOST];

    (void)state;
    for (int i = 0; i < 2000; i++) {
        double value = random_text(&seed, 5, text, sizeof text);

        is_number(text, value);
    }
}

/* The place and the words of the mistake in what stands behind "x:" in a file. */
static void refuses(const char *file, const char *message)
{
    struct arena arena = {0};
    struct error err = {0};
    struct node *root;
    struct expression *expression;
    struct value value;
    char *seen;

    assert_int_equal(conf_parse(&arena, "f", file, strlen(file), &root, &err), 0);
    struct expression_text source = {"e", node_get(root, "x")->text, node_get(root, "x")->loc, file};

    assert_true(expression_parse(&arena, &source, &names, &expression, &err) ||
                expression_holds(expression, value_of, NULL, &value, &err));
    seen = messages_of(&err);
    assert_string_equal(seen, message);
    free(seen);
    error_release(&err);
    arena_release(&arena);
}

static void test_places(void **state)
{
    (void)state;
    refuses("x: 1 + bad\n", "f:1:8: error: e: unknown name 'bad'; text goes in quotes\n");
    refuses("{x: 1 + bad}\n", "f:1:9: error: e: unknown name 'bad'; text goes in quotes\n");
    refuses("x: '1 + bad'\n", "f:1:9: error: e: unknown name 'bad'; text goes in quotes\n");
    refuses("x: \"1 + bad\"\n", "f:1:9: error: e: unknown name 'bad'; text goes in quotes\n");
    refuses("x: '''1f1b'' == bad'\n", "f:1:17: error: e: unknown name 'bad'; text goes in quotes\n");
    refuses("x: \"\\\"1f1b\\\" == bad\"\n", "f:1:17: error: e: unknown name 'bad'; text goes in quotes\n");
    refuses("x: \"1 ==\\n  bad\"\n", "f:1:13: error: e: unknown name 'bad'; text goes in quotes\n");
    refuses("x: 1 ==\n    bad\n", "f:2:5: error: e: unknown name 'bad'; text goes in quotes\n");
    refuses("x: >\n  1 ==\n\n  bad\n", "f:4:3: error: e: unknown name 'bad'; text goes in quotes\n");
    refuses("x: |-  # why\n  1 ==\n  2 && bad\n", "f:3:8: error: e: unknown name 'bad'; text goes in quotes\n");
    refuses("x: '1 ==\n    bad'\n", "f:2:5: error: e: unknown name 'bad'; text goes in quotes\n");
    refuses("x: \"1 == \\\n    bad\"\n", "f:2:5: error: e: unknown name 'bad'; text goes in quotes\n");
    refuses("\xEF\xBB\xBF" "x: 1 + bad\n", "f:1:8: error: e: unknown name 'bad'; text goes in quotes\n");
    refuses("\u00e4: {y: \u00fc}\nx: '\"\u00e4\u00f6\" == bad'\n",
            "f:2:13: error: e: unknown name 'bad'; text goes in quotes\n");
    refuses("a: &it 1 + bad\nx: *it\n", "f:1:12: error: e: unknown name 'bad'; text goes in quotes\n");
    refuses("x: 1 ==  \n", "f:1:8: error: e: expected a value, found the end\n");
    refuses("x: '(1 == 2'\n", "f:1:12: error: e: expected ')' or an operator, found the end\n");
}

/* Long and deep input is refused, or costs no more than its length. */
static void test_limits(void **state)
{
    char *deep = repeated("", "(", EXPRESSION_DEPTH, ""), *signs = repeated("1 -", "-", 3000, "1");
    char *sum = repeated("0", "+1", 2000, ""), *many = repeated("min(1", ",1", 300, ")");
    char *texts[] = {deep, signs, many};
    struct arena arena = {0};
    struct error err = {0};
    struct expression *expression;

    (void)state;
    is_number(sum, 2000);
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct expression_text source = {"e", texts[i], {"f", 1, 1}, NULL};

        assert_int_equal(expression_parse(&arena, &source, &names, &expression, &err), -1);
        free(texts[i]);
    }
    assert_int_equal(err.count, 3);
    assert_string_equal(err.messages[0].text, "e: nested more than 50 deep");
    assert_string_equal(err.messages[2].text, "e: more than 256 values wait for their operators");
    free(sum);
    error_release(&err);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic),  cmocka_unit_test(test_units),  cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_short_circuit), cmocka_unit_test(test_none), cmocka_unit_test(test_random),
        cmocka_unit_test(test_places),      cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests_name("expression", tests, NULL, NULL);
}
