/* Errors of peaks of memory, from made-up tables. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "evidence/evidence.h"

static struct arena arena;

static int read_text(const char *text, struct evidence *evidence, struct error *err)
{
    char path[] = "/tmp/dtsim-test-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    int rc;

    assert_non_null(file);
    assert_true(fputs("table\trow\tmeasured_as\terror_permille\truntime\tadapters\toptimizer\texperts\n", file) >= 0 && fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    *evidence = (struct evidence){0};
    rc = evidence_read_peaks(&arena, path, evidence, err);
    unlink(path);
    return rc;
}

#define ROW(text) text "\tpytorch\t\tadam\t0\n"        /* of this work: */
static const struct likeness mine = {.runtime = "pytorch", .states = "adam"};

static struct evidence evidence_of(const char *rows)
{
    struct evidence evidence;
    struct error err = {0};

    assert_int_equal(read_text(rows, &evidence, &err), 0);
    return evidence;
}

/* Each table weighs as much as another, whatever its rows and their order; one that is left out does not. */
static void weights(void **state)
{
    struct evidence evidence = evidence_of(ROW("a\t1\tdriver\t-100") ROW("a\t2\tdriver\t100") ROW("a\t3\tdriver\t100") ROW("b\t1\tdriver\t300"));
    const struct evidence_without a = {.table = "a"}, b = {.table = "b"};

    (void)state;
    assert_true(evidence_expect_peak(&evidence, PEAK_DRIVER, &mine, NULL).within == 0.3);
    assert_true(evidence_expect_peak(&evidence, PEAK_DRIVER, &mine, &b).within == 0.1);
    assert_true(evidence_expect_peak(&evidence, PEAK_DRIVER, &mine, &a).most == 0.3);
    assert_true(isnan(evidence_expect_peak(NULL, PEAK_DRIVER, &mine, NULL).within));
}

/* Peaks of another kind count a third. */
static void kinds(void **state)
{
    struct evidence evidence = evidence_of(ROW("a\t1\tallocated\t10") ROW("b\t1\treserved\t200"));

    (void)state;
    assert_true(evidence_expect_peak(&evidence, PEAK_ALLOCATED, &mine, NULL).within == 0.1);    /* half of the upper one */
    assert_true(evidence_expect_peak(&evidence, PEAK_ALLOCATED, &mine, NULL).most == 0.2);
    assert_true(evidence_expect_peak(&evidence, PEAK_RESERVED, &mine, NULL).within == 0.2);
}

/* Work weighs less the more it differs, in runtime, adapters, optimizer and experts; where none is alike, both errors are the
 * ones that are further out. */
static void likenesses(void **state)
{
    static const char *const others[] = {"megatron\t\tadam\t0\n", "pytorch\tlora\tadam\t0\n",
                                         "pytorch\t\tadam-half\t0\n", "pytorch\t\tadam\t8\n"};

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (int near = 0; near < 2; near++) {
            struct evidence evidence = evidence_of(arena_printf(&arena, "a\t1\tallocated\t10\t%sb\t1\tallocated\t300\t%s",
                                                                near ? "pytorch\t\tadam\t0\n" : others[i], others[i]));
            struct peak_expectation found = evidence_expect_peak(&evidence, PEAK_ALLOCATED, &mine, NULL);

            assert_true(found.alike == near && found.within == (near ? 0.15 : 0.3));
            assert_true(found.most == (near ? 0.3 : 0.6));
        }
}

/* A half where it needs all; the more the more room there is; 0.2 and 0.8 at the error that 6 of 10 are within. */
static void fits(void **state)
{
    struct evidence evidence = evidence_of(ROW("a\t1\tallocated\t-100") ROW("b\t1\treserved\t100") ROW("c\t1\tdriver\t900"));
    double last = 0;

    (void)state;
    assert_true(fabs(evidence_fits(&evidence, &mine, 80, 80) - 0.5) < 1e-12);
    assert_true(fabs(evidence_fits(&evidence, &mine, 80, 88) - 0.8) < 1e-12);
    assert_true(fabs(evidence_fits(&evidence, &mine, 88, 80) - 0.2) < 1e-12);
    for (double room = 10; room < 1000; room *= 1.3) {
        assert_true(evidence_fits(&evidence, &mine, 100, room) > last && evidence_fits(&evidence, &mine, 100, room) <= 1);
        last = evidence_fits(&evidence, &mine, 100, room);
    }
    assert_true(isnan(evidence_fits(&evidence, &mine, 80, INFINITY)));
    assert_true(isnan(evidence_fits(NULL, &mine, 80, 90)));
}

static void printed(void **state)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct evidence evidence;
    struct likeness own = {.runtime = "xla", .adapters = "nf4", .states = "muon", .experts = 8};

    (void)state;
    evidence_print_peak(out, "t", "r", PEAK_RESERVED, -0.1234, &own);
    assert_int_equal(fclose(out), 0);
    evidence = evidence_of(arena_printf(&arena, "%s\n", text));
    assert_int_equal(evidence.peaks.count, 1);
    assert_true(evidence.peaks.items[0].kind == PEAK_RESERVED && evidence.peaks.items[0].error == -0.123);
    assert_memory_equal(evidence.peaks.items[0].likeness, &own, sizeof own);
    free(text);
}

static void mistakes(void **state)
{
    struct evidence evidence;
    struct error err = {0};

    (void)state;
    assert_int_equal(read_text(ROW("a\t1\tfelt\t10"), &evidence, &err), -1);
    assert_string_equal(err.messages[0].text, "measured_as: expected allocated, reserved or driver, found 'felt'");
    assert_int_equal(err.messages[0].loc.line, 2);
    error_release(&err);
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
        cmocka_unit_test(weights), cmocka_unit_test(kinds), cmocka_unit_test(likenesses), cmocka_unit_test(fits), cmocka_unit_test(printed),
        cmocka_unit_test(mistakes),
    };

    return cmocka_run_group_tests_name("peak", tests, NULL, release);
}
