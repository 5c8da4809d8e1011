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
    assert_true(fputs("table\trow\tmeasured_as\terror_permille\n", file) >= 0 && fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    *evidence = (struct evidence){0};
    rc = evidence_read_peaks(&arena, path, evidence, err);
    unlink(path);
    return rc;
}

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
    struct evidence evidence = evidence_of("a\t1\tdriver\t-100\na\t2\tdriver\t100\na\t3\tdriver\t100\nb\t1\tdriver\t300\n");
    const struct evidence_without a = {.table = "a"}, b = {.table = "b"};

    (void)state;
    assert_true(evidence_expect_peak(&evidence, PEAK_DRIVER, NULL).within == 0.3);
    assert_true(evidence_expect_peak(&evidence, PEAK_DRIVER, &b).within == 0.1);
    assert_true(evidence_expect_peak(&evidence, PEAK_DRIVER, &a).most == 0.3);
    assert_true(isnan(evidence_expect_peak(NULL, PEAK_DRIVER, NULL).within));
}

/* Peaks of another kind count a third. */
static void kinds(void **state)
{
    struct evidence evidence = evidence_of("a\t1\tallocated\t10\nb\t1\treserved\t200\n");

    (void)state;
    assert_true(evidence_expect_peak(&evidence, PEAK_ALLOCATED, NULL).within == 0.01);
    assert_true(evidence_expect_peak(&evidence, PEAK_ALLOCATED, NULL).most == 0.2);
    assert_true(evidence_expect_peak(&evidence, PEAK_RESERVED, NULL).within == 0.2);
}

/* A half where it needs all; the more the more room there is; 0.2 and 0.8 at the error that 6 of 10 are within. */
static void fits(void **state)
{
    struct evidence evidence = evidence_of("a\t1\tallocated\t-100\nb\t1\treserved\t100\nc\t1\tdriver\t900\n");
    double last = 0;

    (void)state;
    assert_true(fabs(evidence_fits(&evidence, 80, 80) - 0.5) < 1e-12);
    assert_true(fabs(evidence_fits(&evidence, 80, 88) - 0.8) < 1e-12);
    assert_true(fabs(evidence_fits(&evidence, 88, 80) - 0.2) < 1e-12);
    for (double room = 10; room < 1000; room *= 1.3) {
        assert_true(evidence_fits(&evidence, 100, room) > last && evidence_fits(&evidence, 100, room) <= 1);
        last = evidence_fits(&evidence, 100, room);
    }
    assert_true(isnan(evidence_fits(&evidence, 80, INFINITY)));
    assert_true(isnan(evidence_fits(NULL, 80, 90)));
}

static void printed(void **state)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct evidence evidence;

    (void)state;
    evidence_print_peak(out, "t", "r", PEAK_RESERVED, -0.1234);
    assert_int_equal(fclose(out), 0);
    evidence = evidence_of(arena_printf(&arena, "%s\n", text));
    assert_int_equal(evidence.peaks.count, 1);
    assert_true(evidence.peaks.items[0].kind == PEAK_RESERVED && evidence.peaks.items[0].error == -0.123);
    free(text);
}

static void mistakes(void **state)
{
    struct evidence evidence;
    struct error err = {0};

    (void)state;
    assert_int_equal(read_text("a\t1\tfelt\t10\n", &evidence, &err), -1);
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
        cmocka_unit_test(weights), cmocka_unit_test(kinds), cmocka_unit_test(fits), cmocka_unit_test(printed),
        cmocka_unit_test(mistakes),
    };

    return cmocka_run_group_tests_name("peak", tests, NULL, release);
}
