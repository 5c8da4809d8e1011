/* The file of errors: what is read of it, in which order, and what is written. */
#include "evidence_rows.h"

#include "evidence/first.h"

/* Rows are sorted by the absolute values of their errors; rows with equal ones keep the order of the file. Ratios are sorted
 * in the same way. */
static void in_order(void **state)
{
    struct evidence evidence = evidence_of(
        "table\tr1\tg\t1\tmegatron-core\tmegatron-core\th100-80gb\tbf16\t1f1b\tm\t0" SIZES "\t300\t-1\n"
        "table\tr2\tg\t2\tmegatron-core\tmegatron-core\th100-80gb\tbf16\t1f1b\tm\t0" SIZES "\t-100\t\n"
        "table\tr3\tg\t3\tmegatron-core\tmegatron-core\th100-80gb\tbf16\t1f1b\tm\t0" SIZES "\t100\t1000000000\n"
        "table\tr4\tg\t4\tmegatron-core\tmegatron-core\th100-80gb\tbf16\t1f1b\tm\t0" SIZES "\t-100\t-0\n");
    static const char *const rows[] = {"r4", "r1", "r2", "r3", "r4", "r1", "r3"};
    static const double errors[] = {0, -0.001, -0.1, 0.1, -0.1, 0.3};

    (void)state;
    assert_int_equal(evidence.runs.rows.count, COUNT(rows));
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(evidence.runs.rows.items[i].name.row, rows[i]);
    for (size_t i = 0; i < COUNT(errors); i++)
        assert_true(evidence.runs.rows.items[i].error == errors[i]);
    assert_int_equal(evidence.runs.ratios.count, 9);
    for (size_t i = 1; i < evidence.runs.ratios.count; i++)
        assert_true(evidence.runs.ratios.items[i - 1].error <= evidence.runs.ratios.items[i].error);
    assert_true(evidence.runs.ratios.items[0].error == 0);
    assert_float_equal(evidence.runs.ratios.items[7].error, 1e6, 1);
}

/* The first error of a row whose table names another software since counts for the first one. */
static void first_software(void **state)
{
    struct evidence evidence = evidence_of_whole("a" KIND SIZES "\t50\t300\tnemo\tnemo-family\tmegatron\t\t\t\n");
    const struct evidence_without without = {.software = "nemo"};
    struct likeness nemo = mine;

    (void)state;
    snprintf(nemo.software, sizeof nemo.software, "nemo");
    assert_true(evidence_expect(&evidence, &mine, NULL).error == 0.05);
    assert_true(isnan(evidence_expect(&evidence, &nemo, &without).error));
    nemo.gpus = 8192;
    assert_true(evidence_expect(&evidence, &nemo, NULL).error == 0.3);
}

/* The slowest and the fastest NIC are of the rows that have NICs. */
static void nics(void **state)
{
    struct evidence evidence = evidence_of("a" KIND "\t\t8\t1\t1\t0\t0\t0\t10\t\na" KIND "\t\t8\t1\t1\t0\t0\t400000\t10\t\n"
                                           "a" KIND "\t\t8\t1\t1\t0\t0\t1000\t10\t\n");

    (void)state;
    assert_true(evidence.slowest_nic == 125e6 && evidence.fastest_nic == 50e9);
    evidence = evidence_of("a" KIND "\t\t8\t1\t1\t0\t0\t0\t10\t\n");
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
    evidence_print(out, &(struct evidence_name){"table", "row", "group", 1}, &mine, &(struct evidence_errors){-0.1234, NAN},
                   &(struct first_error){"table", "row", 500, mine.software, mine.family});
    assert_int_equal(fclose(out), 0);
    evidence = evidence_of_whole(arena_printf(&arena, "%s\n", text));
    assert_int_equal(evidence.runs.rows.count, 2);
    assert_string_equal(evidence.runs.rows.items[0].name.table, "table");
    assert_string_equal(evidence.runs.rows.items[0].name.row, "row");
    assert_string_equal(evidence.kinds.items[0].software, mine.software);
    assert_true(evidence.runs.rows.items[0].error == -0.123 && evidence.runs.rows.items[0].sizes[EVIDENCE_GPUS] == 6);
    assert_true(evidence.runs.rows.items[1].error == 0.5 && evidence.runs.rows.items[1].first);
    assert_true(evidence.runs.rows.items[0].exposed == 0.1 && evidence.runs.rows.items[0].measured == 0.5);
    assert_true(evidence.slowest_nic == mine.nic && evidence.fastest_nic == mine.nic);
    free(text);
}

static void mistakes(void **state)
{
    static const struct { const char *text, *expected; } bad[] = {
        {"", "the file is empty"},
        {"table\tsoftware\n", "no column 'row'"},
        {HEADING "a" KIND "\t\t0\t0\t0\t0\t0\t0\t0\t\t\t\t\t\t\t\n", "is not between"},
        {HEADING "a" KIND "\t\t8\t0\t0\tx\t0\t0\t0\t\t\t\t\t\t\t\n", "'x' is not a whole number"},
        {HEADING "a" KIND "\t\t8\t0\t0\t0\t0\t0\t0\tx\t\t\t\t\t\t\n", "'x' is not a whole number"},
        {HEADING "a" KIND "\t\t8\t0\t0\t0\t0\t0\n", "18 cells where the header has 26"},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order), cmocka_unit_test(first_software), cmocka_unit_test(nics), cmocka_unit_test(printed), cmocka_unit_test(mistakes),
    };

    return cmocka_run_group_tests_name("evidence_file", tests, NULL, release);
}
