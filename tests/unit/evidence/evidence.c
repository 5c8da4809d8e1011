/* How far off predictions are expected to be, from made-up tables. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "evidence/evidence.h"

#define HEADING "table\tsoftware\tcosts\tformat\tgpus\texposed_percent\tmeasured_percent\tnic_mbits\terror_permille\n"

static struct arena arena;

static int read_text(const char *text, struct evidence *evidence, struct error *err)
{
    char path[] = "/tmp/dtsim-test-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    int rc;

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    rc = evidence_read(&arena, path, evidence, err);
    unlink(path);
    return rc;
}

static struct evidence evidence_of(const char *rows)
{
    struct evidence evidence;
    struct error err = {0};

    assert_int_equal(read_text(arena_printf(&arena, HEADING "%s", rows), &evidence, &err), 0);
    return evidence;
}

static const struct likeness mine = {"megatron-core", "h100-80gb", "bf16", 64, 0.1, 0.5, 50e9};

static double expect(const char *rows, const char *without)
{
    struct evidence evidence = evidence_of(rows);

    return evidence_expect(&evidence, &mine, without).error;
}

/* Rows that all have one error: this one, whatever its sign and however alike they are. */
static void all_equal(void **state)
{
    (void)state;
    assert_true(expect("a\tmegatron-core\th100-80gb\tbf16\t64\t10\t50\t400000\t-70\n"
                       "b\tnone\tgiven\tgiven\t2\t90\t0\t0\t70\n", NULL) == 0.07);
    assert_true(isnan(expect("", NULL)));
    assert_true(isnan(evidence_expect(NULL, &mine, NULL).error));
}

/* Ten rows alike, from 1 to 10 %: seven of them are within 7 %, which is more than half of the largest. With a
 * largest error of 30 %, half of that. */
static void quantiles(void **state)
{
    char *rows = arena_strdup(&arena, ""), *wide;

    (void)state;
    for (int i = 1; i <= 10; i++)
        rows = arena_printf(&arena, "%sa\tx\ty\tbf16\t8\t0\t0\t0\t%s%d\n", rows, i % 2 ? "-" : "", 10 * i);
    assert_true(expect(rows, NULL) == 0.07);
    wide = arena_printf(&arena, "%sa\tx\ty\tbf16\t8\t0\t0\t0\t300\n", rows);
    assert_true(expect(wide, NULL) == 0.15);
}

/* Of rows alike, three of four were longer than predicted; a table whose rows were not counts as much as these. */
static void longer(void **state)
{
    const char *rows = "a\tx\ty\tbf16\t8\t0\t0\t0\t-70\na\tx\ty\tbf16\t8\t0\t0\t0\t-1\n"
                       "a\tx\ty\tbf16\t8\t0\t0\t0\t-200\na\tx\ty\tbf16\t8\t0\t0\t0\t100\n"
                       "b\tx\ty\tbf16\t8\t0\t0\t0\t0\n";
    struct evidence evidence = evidence_of(rows);

    (void)state;
    assert_true(evidence_expect(&evidence, &mine, "b").longer == 0.75);
    assert_true(evidence_expect(&evidence, &mine, "a").longer == 0);
    assert_true(evidence_expect(&evidence, &mine, NULL).longer == 0.375);
    assert_true(isnan(evidence_expect(NULL, &mine, NULL).longer));
}

/* A table counts as much as another, whatever their rows; one that is left out does not. A table that is less like the
 * work in one respect alone weighs at most half of one that is like it in all. */
static void alike(void **state)
{
    static const char *const less[] = {
        "nemo\th100-80gb\tbf16\t64\t10\t50", "megatron-core\ta100-80gb\tbf16\t64\t10\t50",
        "megatron-core\th100-80gb\tfp8\t64\t10\t50", "megatron-core\th100-80gb\tbf16\t4096\t10\t50",
        "megatron-core\th100-80gb\tbf16\t64\t70\t50", "megatron-core\th100-80gb\tbf16\t64\t10\t0",
    };
    const char *same = "megatron-core\th100-80gb\tbf16\t64\t10\t50";

    (void)state;
    for (size_t i = 0; i < COUNT(less); i++) {
        const char *others = arena_printf(&arena, "a\t%s\t0\t100\nb\t%s\t0\t100\n", same, same);
        const char *rows = arena_printf(&arena, "%sc\t%s\t0\t120\nc\t%s\t0\t120\nc\t%s\t0\t120\n", others, less[i], less[i],
                                        less[i]);

        assert_true(expect(rows, "c") == 0.10);
        assert_true(expect(rows, NULL) == 0.10);
        assert_true(expect(arena_printf(&arena, "%sc\t%s\t0\t120\n", others, same), NULL) == 0.12);
    }
}

/* The slowest and the fastest NIC are those of rows that have any. */
static void nics(void **state)
{
    struct evidence evidence = evidence_of("a\tx\ty\tbf16\t8\t0\t0\t0\t10\n"
                                           "a\tx\ty\tbf16\t8\t0\t0\t400000\t10\n"
                                           "a\tx\ty\tbf16\t8\t0\t0\t1000\t10\n");

    (void)state;
    assert_true(evidence.slowest_nic == 125e6 && evidence.fastest_nic == 50e9);
    evidence = evidence_of("a\tx\ty\tbf16\t8\t0\t0\t0\t10\n");
    assert_true(evidence.slowest_nic == 0 && evidence.fastest_nic == 0);
}

/* What is printed reads back. */
static void printed(void **state)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct evidence evidence;

    (void)state;
    evidence_print(out, "table", &mine, -0.1234);
    assert_int_equal(fclose(out), 0);
    evidence = evidence_of(arena_printf(&arena, "%s\n", text));
    assert_int_equal(evidence.rows.count, 1);
    assert_string_equal(evidence.rows.items[0].table, "table");
    assert_string_equal(evidence.kinds.items[0].software, mine.software);
    assert_true(evidence.rows.items[0].error == -0.123 && evidence.rows.items[0].doublings == 6);
    assert_true(evidence.rows.items[0].exposed == 0.1 && evidence.rows.items[0].measured == 0.5);
    assert_true(evidence.slowest_nic == mine.nic && evidence.fastest_nic == mine.nic);
    free(text);
}

static void mistakes(void **state)
{
    static const struct { const char *text, *expected; } bad[] = {
        {"", "the file is empty"},
        {"table\tsoftware\n", "no column 'costs'"},
        {HEADING "a\tb\tc\td\t0\t0\t0\t0\t0\n", "is not between"},
        {HEADING "a\tb\tc\td\t8\tx\t0\t0\t0\n", "'x' is not a whole number"},
        {HEADING "a\tb\tc\td\t8\t0\t0\t0\n", "8 cells where the header has 9"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct evidence evidence;
        struct error err = {0};

        assert_int_equal(read_text(bad[i].text, &evidence, &err), -1);
        if (!strstr(err.messages[0].text, bad[i].expected))
            fail_msg("expected '%s' in: %s", bad[i].expected, err.messages[0].text);
        error_release(&err);
    }
}

static int release(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_equal), cmocka_unit_test(quantiles),
        cmocka_unit_test(longer), cmocka_unit_test(alike), cmocka_unit_test(printed),
        cmocka_unit_test(nics), cmocka_unit_test(mistakes),
    };

    return cmocka_run_group_tests_name("evidence", tests, NULL, release);
}
