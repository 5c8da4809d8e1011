/* How far off predictions are expected to be, from made-up tables. */
#include "evidence_rows.h"

static struct expectation expectation_of(const char *rows, const char *without)
{
    const struct evidence_without left_out = {.table = without};
    struct evidence evidence = evidence_of(rows);

    return evidence_expect(&evidence, &mine, &left_out);
}

static double expect(const char *rows, const char *without)
{
    return expectation_of(rows, without).error;
}

/* Rows alike that all have one error: this one, whatever its sign. Without any, none. */
static void all_equal(void **state)
{
    (void)state;
    assert_true(expect("a" KIND SIZES "\t-70\t\nb" KIND SIZES "\t70\t\n", NULL) == 0.07);
    assert_true(isnan(expect("", NULL)));
    assert_true(isnan(expect("a" KIND SIZES "\t-70\t\n", "a")));
    assert_true(isnan(evidence_expect(NULL, &mine, NULL).error));
}

/* Ten rows alike, from 1 to 10 %: six of them are within 6 %, which is more than half of the largest. With a
 * largest error of 30 %, half of that. */
static void quantiles(void **state)
{
    char *rows = arena_strdup(&arena, ""), *wide;

    (void)state;
    for (int i = 1; i <= 10; i++)
        rows = arena_printf(&arena, "%sa" KIND SIZES "\t%s%d\t\n", rows, i % 2 ? "-" : "", 10 * i);
    assert_true(expect(rows, NULL) == 0.06);
    wide = arena_printf(&arena, "%sa" KIND SIZES "\t300\t\n", rows);
    assert_true(expect(wide, NULL) == 0.15);
}

/* Of rows alike, three of four were longer than predicted; a table whose rows were not counts as much as these. */
static void longer(void **state)
{
    const char *rows = "a" KIND SIZES "\t-70\t\na" KIND SIZES "\t-1\t\na" KIND SIZES "\t-200\t\na" KIND SIZES
                       "\t100\t\nb" KIND SIZES "\t0\t\n";

    (void)state;
    assert_true(expectation_of(rows, "b").longer == 0.75);
    assert_true(expectation_of(rows, "a").longer == 0);
    assert_true(expectation_of(rows, NULL).longer == 0.375);
    assert_true(isnan(evidence_expect(NULL, &mine, NULL).longer));
}

/* What differs from the work in one respect, each by a little more than is alike. */
static const char *const others[] = {
    "\tr\tg\t1\tnemo\tnemo\th100-80gb\tbf16\t1f1b\tm\t0" SIZES,
    "\tr\tg\t1\tnemo\tmegatron-core\th100-80gb\tbf16\t1f1b\tm\t0" SIZES,
    "\tr\tg\t1\tmegatron-core\tmegatron-core\ta100-80gb\tbf16\t1f1b\tm\t0" SIZES,
    "\tr\tg\t1\tmegatron-core\tmegatron-core\th100-80gb\tfp8\t1f1b\tm\t0" SIZES,
    "\tr\tg\t1\tmegatron-core\tmegatron-core\th100-80gb\tbf16\tinterleaved\tm\t0" SIZES,
    "\tr\tg\t1\tmegatron-core\tmegatron-core\th100-80gb\tbf16\t1f1b\tm\t8" SIZES,
    KIND "\t\t257\t4096\t4096\t10\t50\t400000", KIND "\t\t64\t1023\t4096\t10\t50\t400000",
    KIND "\t\t64\t4096\t16385\t10\t50\t400000", KIND "\t\t64\t4096\t4096\t10\t50\t99999",
};

/* Work alike is expected from today's errors; other work from the first ones, and where these are unknown from none. */
static void first_errors(void **state)
{
    struct expectation expectation = expectation_of("a" KIND SIZES "\t50\t300\n", NULL);

    (void)state;
    assert_true(expectation.error == 0.05 && expectation.alike == 1);
    for (size_t i = 0; i < COUNT(others); i++) {
        expectation = expectation_of(arena_printf(&arena, "a%s\t50\t300\n", others[i]), NULL);
        if (!(expectation.error == 0.3 && expectation.alike == 0))
            fail_msg("%s: %g", others[i], expectation.error);
        assert_true(isnan(expect(arena_printf(&arena, "a%s\t50\t\n", others[i]), NULL)));
    }
}

/* A factor of four in any size is alike; so are both formats of 16 bits, any model of that kind, and any NIC where one has none. */
static void still_alike(void **state)
{
    static const char *const rows[] = {
        KIND "\t\t256\t4096\t4096\t10\t50\t400000", KIND "\t\t16\t16384\t1024\t90\t0\t100000",
        KIND "\t\t64\t4096\t4096\t10\t50\t0",
        ("\tr\tg\t1\tmegatron-core\tmegatron-core\th100-80gb\tfp16\t1f1b\tanother\t0" SIZES),
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_true(fabs(expect(arena_printf(&arena, "a%s\t50\t300\n", rows[i]), NULL) -
                         (i == 1 ? 0.05 * evidence_unsure(0.1) / evidence_unsure(0.9) : 0.05)) < 1e-12);
}

/* A table counts as much as another, whatever their rows; one that is left out does not. A table that is less like the
 * work in one respect alone weighs at most half of one that is like it in all. */
static void weights(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(others); i++) {
        const char *same = "a" KIND SIZES "\t100\t\n", *other = others[i];
        const char *rows = arena_printf(&arena, "%sc%s\t0\t120\nc%s\t0\t120\nc%s\t0\t120\n", same, other, other, other);

        assert_true(expect(rows, "c") == 0.10);
        assert_true(expect(rows, NULL) == 0.10);
        assert_true(expect(arena_printf(&arena, "%sc" KIND SIZES "\t120\t\n", same), NULL) == 0.12);
    }
}

/* "a" with these fields: row, group, number of the plain scenario, software, model, errors. */
static const char *ratio_row(const char *table, const char *group, int plain, const char *software, const char *model,
                             const char *errors)
{
    return arena_printf(&arena, "%s\tr\t%s\t%d\t%s\t%s\th100-80gb\tbf16\t1f1b\t%s\t0" SIZES "\t%s\n", table, group, plain,
                        software, software, model, errors);
}

#define MINE "megatron-core"

/* Ratios are of two rows of one table, group, software and model that are asked differently; each table weighs as much
 * as another, and the order of rows does not matter. */
static void ratios(void **state)
{
    const char *a = ratio_row("a", "g", 1, MINE, "m", "100\t"), *b = ratio_row("a", "g", 2, MINE, "m", "0\t");
    const char *other[] = {
        ratio_row("a", "h", 2, MINE, "m", "0\t"), ratio_row("a", "g", 1, MINE, "m", "0\t"),
        ratio_row("a", "g", 2, MINE, "n", "0\t"), ratio_row("a", "g", 2, "nemo", "m", "0\t"),
        ratio_row("b", "g", 2, MINE, "m", "0\t"),
    };
    const struct evidence_without without = {.table = "a"};
    struct evidence evidence = evidence_of(arena_printf(&arena, "%s%s", a, b));
    struct evidence turned = evidence_of(arena_printf(&arena, "%s%s", b, a));

    (void)state;
    assert_true(fabs(evidence_expect_ratio(&evidence, &mine, NULL).within - 0.1) < 1e-12);
    assert_true(evidence_expect_ratio(&turned, &mine, NULL).most == evidence_expect_ratio(&evidence, &mine, NULL).most);
    assert_true(isnan(evidence_expect_ratio(&evidence, &mine, &without).within));
    assert_true(isnan(evidence_expect_ratio(NULL, &mine, NULL).most));
    for (size_t i = 0; i < COUNT(other); i++) {
        evidence = evidence_of(arena_printf(&arena, "%s%s", a, other[i]));
        assert_true(isnan(evidence_expect_ratio(&evidence, &mine, NULL).within));
    }
    evidence = evidence_of(arena_printf(&arena, "%s%s%s%s%s%s%s", a, b, ratio_row("a", "g", 3, MINE, "m", "100\t"),
                                        ratio_row("c", "g", 1, MINE, "m", "0\t"), ratio_row("c", "g", 2, MINE, "m", "300\t"),
                                        ratio_row("d", "g", 1, MINE, "m", "0\t"), ratio_row("d", "g", 2, MINE, "m", "50\t")));
    assert_true(fabs(evidence_expect_ratio(&evidence, &mine, NULL).within - 0.1) < 1e-12);
    assert_true(fabs(evidence_expect_ratio(&evidence, &mine, NULL).most - 0.3) < 1e-12);
}

/* Ten rows of a table, whose errors are 1 to 10 %, and whose first ones are ten times that. */
static const char *dispatched_rows(const char *table, const char *dispatch)
{
    const char *rows = "";

    for (int i = 1; i <= 10; i++)
        rows = arena_printf(&arena, "%s%s\tr%d\tg\t1\tmegatron-core\tmegatron-core\th100-80gb\tbf16\t1f1b\tm\t8\t%s\t64\t4096\t4096"
                            "\t10\t50\t400000\t%d\t%d\n", rows, table, i, dispatch, 10 * i, 100 * i);
    return rows;
}

/* An error of a run with little exposed communication lets expect a larger one of a run with much. */
static void unsure(void **state)
{
    struct likeness exposed = mine;
    struct evidence evidence = evidence_of("a" KIND SIZES "\t60\t\n");

    (void)state;
    assert_true(evidence_unsure(0) == 1 && evidence_unsure(1) > 2);
    exposed.exposed = 0.6;
    assert_true(fabs(evidence_expect(&evidence, &exposed, NULL).error - 0.06 * evidence_unsure(0.6) / evidence_unsure(0.1)) <
                1e-12);
}

/* Three tables of other families, one of which is 40 % off and the rest 10 %: the runtimes on which they are. */
static double expect_of_runtimes(const char *far_off, const char *rest)
{
    static const char row[] = "%s%s\tr\tg\t1\tnew\tnew\th100-80gb\tbf16\t1f1b\tm\t0" SIZES "\t%d\t%d\t\t\t%s\t\t\t\n";
    const char *rows = arena_printf(&arena, row, "", "a", 400, 400, far_off);
    struct evidence evidence;

    rows = arena_printf(&arena, row, rows, "b", 100, 100, rest);
    rows = arena_printf(&arena, row, rows, "c", 100, 100, rest);
    evidence = evidence_of_whole(rows);
    return evidence_expect(&evidence, &mine, NULL).error;
}

/* Other frameworks on one runtime tell more than those on another. */
static void runtimes(void **state)
{
    (void)state;
    assert_true(expect_of_runtimes("megatron", "xla") == 0.4);
    assert_true(expect_of_runtimes("xla", "megatron") == 0.2);            /* half of the largest */
}

/* With a data sheet, the errors that data sheets would have had at first count; they are no smaller than the errors of
 * measured kernels. */
static void sheets(void **state)
{
    static const char row[] = "a\tr\tg\t1\tnemo\tnemo\th100-80gb\tbf16\t1f1b\tm\t0" SIZES "\t100\t%d\t\t\tmegatron\t%d\t\t\n";
    struct evidence worse = evidence_of_whole(arena_printf(&arena, row, 320, -450));
    struct evidence better = evidence_of_whole(arena_printf(&arena, row, 320, 10));
    struct likeness sheet = mine;

    (void)state;
    snprintf(sheet.costs, sizeof sheet.costs, "roofline");
    assert_float_equal(evidence_expect(&worse, &mine, NULL).error, 0.32, 1e-12);
    assert_float_equal(evidence_expect(&worse, &sheet, NULL).error, 0.34, 1e-12);        /* 1 - 1.32 x 0.55 / 1.1 */
    assert_true(evidence_expect(&worse, &sheet, NULL).longer == 1);
    assert_float_equal(evidence_expect(&better, &sheet, NULL).error, 0.32, 1e-12);
    snprintf(sheet.software, sizeof sheet.software, "nemo");
    snprintf(sheet.family, sizeof sheet.family, "nemo");
    assert_float_equal(evidence_expect(&worse, &sheet, NULL).error, 0.34, 1e-12);        /* the same with its own
                                                                                          * software */
    assert_true(evidence_expect(&worse, &sheet, NULL).alike == 0);
}

/* A run that dispatches tokens in another way is not alike: its first error counts. It weighs as much as one
 * that is alike. */
static void dispatched(void **state)
{
    const char *same = dispatched_rows("table", "copies"), *other = dispatched_rows("other", "once");
    struct likeness likeness = mine;
    struct evidence evidence;

    (void)state;
    likeness.experts = 8;
    snprintf(likeness.dispatch, sizeof likeness.dispatch, "copies");
    evidence = evidence_of(same);
    assert_float_equal(evidence_expect(&evidence, &likeness, NULL).error, 0.06, 1e-12);
    evidence = evidence_of(other);
    assert_float_equal(evidence_expect(&evidence, &likeness, NULL).error, 0.6, 1e-12);
    evidence = evidence_of(arena_printf(&arena, "%s%s", same, other));
    assert_float_equal(evidence_expect(&evidence, &likeness, NULL).alike, 0.5, 1e-12);
}

/* A run that trains all weights, one that trains adapters, and one that trains adapters of frozen weights in nf4 are unlike
 * each other: the first error of each counts for the others. */
static void adapters(void **state)
{
    static const char *const trained[] = {"", "lora", "nf4"};
    static const char row[] = "a" KIND SIZES "\t50\t300\t\t\tmegatron\t\t%s\t\n";

    (void)state;
    for (size_t i = 0; i < COUNT(trained); i++)
        for (size_t k = 0; k < COUNT(trained); k++) {
            struct evidence evidence = evidence_of_whole(arena_printf(&arena, row, trained[i]));
            struct likeness likeness = mine;
            const char *nearest;

            snprintf(likeness.adapters, sizeof likeness.adapters, "%s", trained[k]);
            assert_true(evidence_expect(&evidence, &likeness, NULL).error == (i == k ? 0.05 : 0.3));
            nearest = evidence_nearest(&arena, &evidence, &likeness);
            assert_true((strstr(nearest, "it trains") != NULL) == (i != k));
        }
}

/* Runs by Muon and by an element-wise optimizer are unlike each other. */
static void optimizers(void **state)
{
    static const char *const names[] = {"", "muon"};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++)
        for (size_t k = 0; k < COUNT(names); k++) {
            struct evidence evidence = evidence_of_whole(
                arena_printf(&arena, "a" KIND SIZES "\t50\t300\t\t\tmegatron\t\t\t%s\n", names[i]));
            struct likeness likeness = mine;

            snprintf(likeness.optimizer, sizeof likeness.optimizer, "%s", names[k]);
            assert_true(evidence_expect(&evidence, &likeness, NULL).error == (i == k ? 0.05 : 0.3));
            assert_true((strstr(evidence_nearest(&arena, &evidence, &likeness), "the optimizer is") != NULL) == (i != k));
        }
}

/* Of another software ratios count with the first errors. */
static void first_ratios(void **state)
{
    struct evidence evidence = evidence_of(arena_printf(&arena, "%s%s", ratio_row("a", "g", 1, MINE, "m", "100\t400"),
                                                        ratio_row("a", "g", 2, MINE, "m", "0\t0")));
    struct likeness other = mine;

    (void)state;
    strcpy(other.software, "nemo");
    assert_true(fabs(evidence_expect_ratio(&evidence, &mine, NULL).within - 0.1) < 1e-12);
    assert_true(fabs(evidence_expect_ratio(&evidence, &other, NULL).within - 0.4) < 1e-12);
}

static void names_nearest(void **state)
{
    struct evidence evidence = evidence_of("a" KIND SIZES "\t50\t\n"), none = {0};
    struct likeness other = mine;

    (void)state;
    assert_string_equal(evidence_nearest(&arena, &evidence, &mine), "the nearest is r of a");
    snprintf(other.software, sizeof other.software, "nemo");
    other.experts = 8;
    other.gpus = 8;
    assert_string_equal(evidence_nearest(&arena, &evidence, &other),
                        "the nearest is r of a (software megatron-core, not nemo, a model without experts, not with experts, 64 GPUs, "
                        "not 8)");
    assert_null(evidence_nearest(&arena, &none, &mine));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_equal), cmocka_unit_test(quantiles), cmocka_unit_test(longer),
        cmocka_unit_test(first_errors), cmocka_unit_test(still_alike), cmocka_unit_test(weights),
        cmocka_unit_test(ratios), cmocka_unit_test(dispatched), cmocka_unit_test(unsure), cmocka_unit_test(runtimes),
        cmocka_unit_test(sheets), cmocka_unit_test(adapters), cmocka_unit_test(optimizers), cmocka_unit_test(first_ratios),
        cmocka_unit_test(names_nearest),
    };

    return cmocka_run_group_tests_name("evidence", tests, NULL, release);
}
