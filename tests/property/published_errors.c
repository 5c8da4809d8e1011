/* Whether stated errors hold: each published table is left out, and its rows are held against what the others expect. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "evidence/evidence.h"

/* The shares of a table's rows that are within the expected error, and within twice as much. */
static void within(const struct evidence *evidence, const char *table, double shares[2])
{
    double rows = 0;

    shares[0] = shares[1] = 0;
    for (size_t i = 0; i < evidence->rows.count; i++) {
        const struct evidence_row *row = &evidence->rows.items[i];
        struct likeness likeness = evidence->kinds.items[row->kind];
        double expected;

        if (strcmp(row->table, table))
            continue;
        likeness.gpus = exp2(row->doublings);
        likeness.exposed = row->exposed;
        likeness.measured = row->measured;
        expected = evidence_expect(evidence, &likeness, table).error;
        rows++;
        shares[0] += fabs(row->error) <= expected;
        shares[1] += fabs(row->error) <= 2 * expected;
    }
    shares[0] /= rows;
    shares[1] /= rows;
}

static bool seen(const struct evidence *evidence, size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (!strcmp(evidence->rows.items[i].table, evidence->rows.items[row].table))
            return true;
    return false;
}

/* Of the mean table 60 % of the rows are within the error that other tables expect, and 90 % within twice as much. */
static void left_out(void **state)
{
    struct arena arena = {0};
    struct evidence evidence;
    struct error err = {0};
    double sums[2] = {0}, tables = 0, held = 0;

    (void)state;
    assert_int_equal(evidence_read(&arena, DTSIM_SOURCE_DIR "/scenarios/paper/errors.tsv", &evidence, &err), 0);
    for (size_t i = 0; i < evidence.rows.count; i++) {
        double shares[2];

        if (seen(&evidence, i))
            continue;
        within(&evidence, evidence.rows.items[i].table, shares);
        tables++;
        held += shares[0] >= 0.6 && shares[1] >= 0.9;
        sums[0] += shares[0];
        sums[1] += shares[1];
        if (shares[0] < 0.6 || shares[1] < 0.9)
            print_message("%s: %.0f %% of its rows are within, %.0f %% within twice\n", evidence.rows.items[i].table,
                          100 * shares[0], 100 * shares[1]);
    }
    print_message("mean of %.0f tables: %.1f %% within, %.1f %% within twice; %.0f hold by themselves\n", tables,
                  100 * sums[0] / tables, 100 * sums[1] / tables, held);
    assert_true(tables >= 40);
    assert_true(sums[0] >= 0.6 * tables);
    assert_true(sums[1] >= 0.9 * tables);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(left_out)};

    return cmocka_run_group_tests_name("published_errors", tests, NULL, NULL);
}
