/* rule: a row is broken where its condition holds, at its place and with its words; an open key leaves it undecided. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cache.h"
#include "expression/rule.h"

struct shape {
    const struct node *node;
    int width, depth, kind;
    bool dense;
    struct list kinds;
};
static const char *const kinds[] = {"round", "square", NULL};
static const struct field shape_fields[] = {
    {KEY(shape, width), .kind = FIELD_INT, .min = 1, .max = 100, .fallback = "1", .brief = ""},
    {KEY(shape, depth), .kind = FIELD_INT, .min = 1, .max = 100, .brief = ""},
    {KEY(shape, kind), .kind = FIELD_CHOICE, .choices = kinds, .fallback = "round", .brief = ""},
    {KEY(shape, dense), .kind = FIELD_BOOL, .fallback = "false", .brief = ""},
    {KEY(shape, kinds), .kind = FIELD_CHOICES, .choices = kinds, .fallback = "[round]", .brief = ""},
};
static const struct table shape_table = {TABLE("shape", "a shape", shape, shape_fields), .delegated = "dense"};

static struct value area(const void *subject)
{
    const struct shape *shape = subject;

    return value_number(shape->width * shape->depth);
}
static const struct fact facts[] = {{"area", area}, {NULL, NULL}};

static const char *odd(struct arena *arena, const void *subject)
{
    const struct shape *shape = subject;

    return shape->width % 2 ? arena_printf(arena, "%d is odd", shape->width) : NULL;
}

static const struct rule list[] = {
    {"shape.depth shape.width", RULE_DEGREES, "area > 50", "${shape.width} x ${shape.depth} = ${area}; expected {50}", NULL},
    {"shape.kind", RULE_VALUES, "shape.kind == 'square' && shape.width != shape.depth", "${shape.kind} has equal sides", NULL},
    {"shape.kind @ shape.width", RULE_INPUT, "said.shape.width && contains(shape.kinds, 'square')", "does not go", NULL},
    {"shape.dense", RULE_IDLE, "shape.dense && shape.width == 1", "there is nothing in it", NULL},
    {"shape.width", RULE_VALUES, "shape.width > 10", NULL, odd},
};
static const struct rules rules = RULES("shapes", list);

static struct node *tree(struct arena *arena, const char *text)
{
    struct error err = {0};
    struct node *root;

    assert_int_equal(conf_parse(arena, "f", text, strlen(text), &root, &err), 0);
    return root;
}

/* What the rules say of the text, a line each with its column. */
static char *said(const char *text, bool settled, const char *supplied)
{
    struct arena arena = {0};
    struct error err = {0};
    struct node *root = tree(&arena, text);
    struct shape shape;
    char *all = NULL;
    size_t size;
    FILE *out = text_open(&all, &size);

    assert_int_equal(field_parse(&arena, &shape_table, root, &shape, &err), 0);
    if (supplied)
        assert_int_equal(field_supply(&arena, &shape_table, &shape, tree(&arena, supplied),
                                      (struct supplying){"software", true}, &err), 0);
    struct key_part part = {"shape", &shape_table, &shape, NULL};
    struct key_parts parts = {&part, 1, facts, &shape, root, settled};

    int rc = rules_ask(&arena, &rules, &parts, &err);

    assert_int_equal(rc, err.count ? -1 : 0);
    for (int i = 0; i < err.count; i++)
        fprintf(out, "%d:%d %s\n", err.messages[i].loc.column, (int)err.messages[i].kind, err.messages[i].text);
    fprintf(out, "%s", shape.dense ? "dense" : "");
    text_close(out, &all);
    error_release(&err);
    arena_release(&arena);
    return all;
}

static void is_said(const char *text, bool settled, const char *supplied, const char *expected)
{
    char *all = said(text, settled, supplied);

    assert_string_equal(all, expected);
    free(all);
}

static void test_places_and_words(void **state)
{
    char words[100];

    (void)state;
    is_said("{width: 2, depth: 3}", true, NULL, "");
    snprintf(words, sizeof words, "19:%d shape: depth: 8 x 8 = 64; expected {50}\n", ERROR_DEGREES);
    is_said("{width: 8, depth: 8}", true, NULL, words);
    snprintf(words, sizeof words, "8:%d shape: kind: square has equal sides\n", ERROR_VALUES);
    is_said("{kind: square, depth: 8}", true, NULL, words);
    snprintf(words, sizeof words, "9:%d shape: kind: does not go\n", ERROR_PLAIN);
    is_said("{width: 2, kinds: [round, square], depth: 2}", true, NULL, words);
    snprintf(words, sizeof words, "9:%d shape: width: 11 is odd\n", ERROR_VALUES);
    is_said("{width: 11, depth: 1}", true, NULL, words);
    is_said("{width: 12, depth: 1}", true, NULL, "");
}

/* A key that nobody said and that has no default is open until all is settled. */
static void test_undecided(void **state)
{
    char words[100];

    (void)state;
    is_said("{kind: square}", false, NULL, "");
    snprintf(words, sizeof words, "8:%d shape: kind: square has equal sides\n", ERROR_VALUES);
    is_said("{kind: square}", true, NULL, words);
}

/* A software file's value is taken back, a person's is refused, under `software`. */
static void test_supplied(void **state)
{
    char words[100];

    (void)state;
    is_said("{depth: 1}", true, "{dense: true}", "");
    is_said("{depth: 1, width: 2}", true, "{dense: true}", "dense");
    snprintf(words, sizeof words, "19:%d software: dense: has no effect here: there is nothing in it; or leave it out\ndense",
             ERROR_VALUES);
    is_said("{depth: 1, dense: true}", true, NULL, words);
}

/* The conditions are parsed once for all who share a cache. */
static void test_parsed_once(void **state)
{
    struct cache cache;
    struct shape shape = {.width = 1, .depth = 1};
    struct key_part part = {"shape", &shape_table, &shape, NULL};
    struct key_parts parts = {&part, 1, facts, &shape, NULL, true};

    (void)state;
    cache_init(&cache, CACHE_BYTES);
    struct arena one = {.cache = &cache}, other = {.cache = &cache};
    const struct condition *parsed = rules_conditions(&one, &rules, &parts);

    assert_ptr_equal(parsed, rules_conditions(&other, &rules, &parts));
    arena_release(&one);
    arena_release(&other);
    cache_release(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places_and_words),
        cmocka_unit_test(test_undecided),
        cmocka_unit_test(test_supplied),
        cmocka_unit_test(test_parsed_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
