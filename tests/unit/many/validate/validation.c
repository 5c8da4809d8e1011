/* Errors, ratios, ranks, memory and bars, on a table whose predictions are closed forms: GPipe on a free network takes
 * (M + P - 1) (F + B). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "validate/validation.h"
#include "view/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char base[] = "base:\n"
                           "  model: {stages: {forward: 1 s, backward: 2 s, activation: 1 GB}}\n"
                           "  cluster: ideal\n"
                           "  batch: {micro_batches: 4}\n"
                           "  strategy: {schedule: gpipe}\n"
                           "  memory: {limit: 6 GB}\n";

/* Loads the paper of this text from a new file; returns the result of paper_load. */
static int load(struct paper *paper, const char *text, struct error *err)
{
    char path[] = "/tmp/dtsim-paper-XXXXXX";
    int file = mkstemp(path), rc;

    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    if (!strstr(text, "base:"))
        assert_int_equal(write(file, base, strlen(base)), (ssize_t)strlen(base));
    close(file);
    rc = paper_load(path, paper, err);
    unlink(path);
    return rc;
}

static void run(struct paper *paper, struct validation *validation, const char *text, const char *rows)
{
    struct validation_options options = {.rows = rows, .jobs = 2};
    struct error err = {0};

    if (load(paper, text, &err) || validation_init(validation, paper, &options, &err) || err.count)
        error_print(&err, stderr);
    assert_int_equal(err.count, 0);
}

static void release(struct paper *paper, struct validation *validation)
{
    validation_release(validation);
    paper_release(paper);
}

/* Predicted: 12, 15, 21 and 39 s; 1/3 samples... a stage's activations: 4 GB, of the last row 10 GB. */
static const char table[] =
    "source: a closed form\n"
    "bars: {mean: 30, max: 49, bias: 5, rank: 1, memory: 0}\n"
    "columns: [id, group, strategy.pipeline, batch.micro_batches, expect, measured.iteration_time_s,\n"
    "          measured.samples_per_s, measured.utilization, relative_to]\n"
    "rows:\n"
    "  - [a, g, 1,  4, fits, 10, 0.5,   1,   ~]\n"
    "  - [b, g, 2,  4, ~,    15, ~,   0.7,   a]\n"
    "  - [c, g, 4,  4, oom,  42, ~,     ~,   a]\n"
    "  - [d, h, 4, 10, oom,   ~, ~,     ~,   ~]\n";

static void close_to(double found, double expected)
{
    if (isnan(expected) ? !isnan(found) : !(fabs(found - expected) < 1e-9))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

static void test_errors(void **state)
{
    struct validation validation;
    struct paper paper;

    (void)state;
    run(&paper, &validation, table, NULL);
    close_to(validation_error(&validation, 0, 5), 0.2);
    close_to(validation_error(&validation, 1, 5), 0);
    close_to(validation_error(&validation, 2, 5), -0.5);
    close_to(validation_error(&validation, 3, 5), NAN);
    /* A rate's error is the error of the time from which it follows: 4 samples in 12 s, measured 2 s a sample. */
    close_to(validation_error(&validation, 0, 6), 0.5);
    close_to(validation_error(&validation, 1, 7), 0.1);
    close_to(validation_relative_error(&validation, 0), NAN);
    close_to(validation_relative_error(&validation, 1), 1 / 1.2 - 1);
    close_to(validation_relative_error(&validation, 2), 0.5 / 1.2 - 1);
    release(&paper, &validation);
}

/* Where a paper gives ratios only: GPipe with 4 micro-batches takes 12 s on one rank, 15 on two, 21 on four. */
static void test_ratio(void **state)
{
    static const char ratios[] =
        "source: a closed form\n"
        "columns: [id, strategy.pipeline, ratio.iteration_time_s, relative_to]\n"
        "rows:\n"
        "  - [a, 1, ~, ~]\n"
        "  - [b, 2, 1, a]\n"
        "  - [c, 4, 3.5, a]\n";
    static const char alone[] =
        "source: a closed form\n"
        "columns: [id, strategy.pipeline, ratio.iteration_time_s, relative_to]\n"
        "rows:\n"
        "  - [a, 1, 2, ~]\n";
    struct validation validation;
    struct paper paper;
    struct error err = {0};

    (void)state;
    run(&paper, &validation, ratios, NULL);
    close_to(validation_predicted(&validation, 1, 2), 15. / 12);
    close_to(validation_error(&validation, 0, 2), NAN);
    close_to(validation_error(&validation, 1, 2), 0.25);
    close_to(validation_error(&validation, 2, 2), 21. / 12 / 3.5 - 1);
    assert_int_equal(validation.summaries[2].count, 2);
    release(&paper, &validation);
    run(&paper, &validation, ratios, "b");       /* the row that it is relative to is not simulated */
    close_to(validation_error(&validation, 1, 2), NAN);
    release(&paper, &validation);
    assert_int_equal(load(&paper, alone, &err), -1);
    assert_string_equal(err.messages[0].text, "paper: ratio.iteration_time_s: 'a' has no other row under relative_to");
    assert_int_equal(err.messages[0].loc.line, 4);
    assert_int_equal(err.messages[0].loc.column, 12);
    error_release(&err);
    paper_release(&paper);
}

static void test_summary(void **state)
{
    struct validation validation;
    struct bar_result bars[BARS];
    struct paper paper;

    (void)state;
    run(&paper, &validation, table, NULL);
    const struct summary *summary = &validation.summaries[validation.first];
    assert_int_equal(validation.first, 5);
    assert_int_equal(summary->count, 3);
    close_to(summary->mean, 0.7 / 3);
    close_to(summary->bias, -0.3 / 3);
    close_to(summary->max, -0.5);
    assert_int_equal(summary->worst, 2);
    close_to(summary->rank, 1);
    assert_int_equal(summary->groups, 1);
    assert_int_equal(validation.memory[0][0], 2);
    assert_int_equal(validation.memory[0][1], 0);
    assert_int_equal(validation.memory[1][0], 1);
    assert_int_equal(validation.memory[1][1], 1);
    assert_int_equal(validation_bars(&validation, bars), BARS - 1);      /* all but `largest` */
    for (int i = 0; i < BARS - 1; i++)
        assert_int_equal(bars[i].passed, !strcmp(bars[i].name, "mean") || !strcmp(bars[i].name, "rank"));
    release(&paper, &validation);
}

/* A sample keeps 2 GB and 6 fit: two samples are the largest micro-batch. One is not, and four are too much; what ran
 * out of memory is no largest one. */
static void test_largest(void **state)
{
    static const char text[] =
        "source: a closed form\nlargest: true\nbars: {largest: 33}\n"
        "columns: [id, batch.micro, batch.global, expect, measured.iteration_time_s]\n"
        "rows:\n  - [a, 1, 4, ~, 1]\n  - [b, 2, 4, ~, 1]\n  - [c, 4, 8, ~, 1]\n  - [d, 2, 4, oom, ~]\n"
        "base:\n  model: {layers: [{flops: 1 GFLOP, activation: 2 GB}]}\n"
        "  cluster: {nodes: 1, gpus_per_node: 1, gpu: a100-80gb, inside: {bandwidth: 1 GB/s, latency: 1 us}}\n"
        "  batch: {micro: 1, global: 1}\n"
        "  memory: {precision: fp32, limit: 6 GB, context: 0 B}\n  software: {like: none, fragmentation: 0}\n";
    static const bool once[] = {true, true, false}, twice[] = {true, false, false};
    struct validation validation;
    struct bar_result bars[BARS];
    struct paper paper;

    (void)state;
    run(&paper, &validation, text, NULL);
    for (size_t i = 0; i < COUNT(once); i++) {
        assert_int_equal(validation.outcomes[i].fits, once[i]);
        assert_int_equal(validation.outcomes[i].fits_twice, twice[i]);
    }
    assert_int_equal(validation.largest[0], 3);
    assert_int_equal(validation.largest[1], 1);
    assert_int_equal(validation_bars(&validation, bars), 1);
    close_to(bars[0].value, 100.0 / 3);
    assert_true(bars[0].passed);
    release(&paper, &validation);
}

static void test_rank(void **state)
{
    static const char swapped[] = "source: an order\n"
                                  "columns: [id, group, strategy.pipeline, measured.iteration_time_s]\n"
                                  "rows: [[a, g, 1, 1], [b, g, 2, 3], [c, g, 3, 2], [d, g, 4, 4],\n"
                                  "       [e, h, 1, 3], [f, h, 2, 2], [g, h, 3, 1], [h, i, 1, 1], [i, i, 2, 2],\n"
                                  "       [j, j, 2, 1], [k, j, 2, 2], [l, j, 2, 3], [m, k, 1, 5], [n, k, 2, 5],\n"
                                  "       [o, k, 3, 5]]\n";
    struct validation validation;
    struct paper paper;

    (void)state;
    run(&paper, &validation, swapped, NULL);
    /* Spearman: 1 - 6 sum d^2 / (n (n^2 - 1)) = 1 - 12/60 in g, -1 in h, 0 in j, which is predicted alike; i and k are
     * no order. */
    close_to(validation.summaries[3].rank, (0.8 - 1 + 0) / 3);
    assert_int_equal(validation.summaries[3].groups, 3);
    release(&paper, &validation);
}

static void test_selection(void **state)
{
    struct bar_result bars[BARS];
    struct validation validation;
    struct paper paper;

    (void)state;
    run(&paper, &validation, table, "b,d");
    assert_int_equal(validation_bars(&validation, bars), 0);
    assert_false(validation.outcomes[0].selected);
    assert_true(validation.outcomes[1].simulated);
    assert_int_equal(validation.summaries[5].count, 1);
    assert_int_equal(validation.memory[1][1], 1);
    close_to(validation_relative_error(&validation, 1), NAN);
    release(&paper, &validation);
}

/* A row's seconds by kind add up to what is predicted; of M micro-batches and P stages the parts are closed forms. */
static void test_json(void **state)
{
    static const double expected[][3] = {{4, 8, 0}, {4, 8, 3}, {4, 8, 9}, {10, 20, 9}};
    struct validation validation;
    struct paper paper;

    (void)state;
    run(&paper, &validation, table, NULL);
    json_t *json = view_json(&validation_view, &validation), *rows = json_object_get(json, "rows");
    assert_int_equal(json_array_size(rows), COUNT(expected));
    for (size_t i = 0; i < COUNT(expected); i++) {
        json_t *row = json_array_get(rows, i), *breakdown = json_object_get(row, "breakdown_s"), *value;
        double sum = 0;
        const char *key;

        json_object_foreach(breakdown, key, value)
            sum += json_real_value(value);
        close_to(sum, json_real_value(json_object_get(json_object_get(row, "predicted"), "iteration_time_s")));
        close_to(json_real_value(json_object_get(breakdown, "forward")), expected[i][0]);
        close_to(json_real_value(json_object_get(breakdown, "backward")), expected[i][1]);
        close_to(json_real_value(json_object_get(breakdown, "bubble")), expected[i][2]);
    }
    json_decref(json);
    release(&paper, &validation);
}

/* GPipe takes (M + P - 1) 3 s; measured are lines of M, one of them as a rate. Rows that differ in anything else, that have no time
 * or that are alone are no part of a line. */
static void test_slopes(void **state)
{
    static const char lines[] = "source: lines\n"
                                "columns: [id, strategy.pipeline, batch.micro_batches, measured.iteration_time_s, measured.mfu]\n"
                                "rows: [[a, 2, 4, 13, ~], [b, 4, 4, 20, ~], [c, 2, 8, 21, ~], [d, 2, 16, ~, 0.5], [e, 2, 10, 25, ~],\n"
                                "       [f, 4, 8, 24, ~], [g, 1, 4, 9, ~], [h, 4, 8, 26, ~]]\n";
    static const struct { size_t first, last, rows; double each, constant; } expected[] = {{0, 4, 3, 2, 5}, {1, 7, 3, 1.25, 15}};
    size_t found = 0;
    struct validation validation;
    struct paper paper;

    (void)state;
    run(&paper, &validation, lines, NULL);
    for (size_t row = 0; row < paper.nrows; row++) {
        struct slope slope;

        if (!validation_slope(&validation, row, &slope))
            continue;
        assert_true(found < COUNT(expected) && slope.first == expected[found].first && slope.last == expected[found].last &&
                    slope.rows == expected[found].rows);
        close_to(slope.measured.each, expected[found].each);
        close_to(slope.measured.constant, expected[found].constant);
        close_to(slope.predicted.each, 3);
        close_to(slope.predicted.constant, found ? 9 : 3);
        found++;
    }
    assert_int_equal(found, COUNT(expected));
    release(&paper, &validation);
}

/* Bytes with a unit and without one are the same; other numbers have none. */
static void test_bytes(void **state)
{
    static const char sizes[] = "source: sizes\n"
                                "columns: [id, strategy.pipeline, measured.peak_memory_bytes]\n"
                                "rows: [[a, 1, 4 GB], [b, 1, 4000000000], [c, 1, 4e9], [d, 1, 2 GiB]]\n";
    static const char odd[] = "source: sizes\ncolumns: [id, measured.peak_memory_bytes]\nrows: [[a, 4 s]]\n";
    struct validation validation;
    struct paper paper;
    struct error err = {0};

    (void)state;
    run(&paper, &validation, sizes, NULL);
    for (size_t row = 0; row < 3; row++)
        close_to(paper.rows[row].measured[2], 4e9);
    close_to(paper.rows[3].measured[2], 2147483648.0);
    release(&paper, &validation);
    assert_int_equal(load(&paper, odd, &err), -1);
    error_release(&err);
    paper_release(&paper);
}

/* What does not run is counted; the others are there. */
static void test_failures(void **state)
{
    static const char failing[] = "source: one that fails\n"
                                  "columns: [id, strategy.schedule, measured.iteration_time_s]\n"
                                  "rows: [[a, gpipe, 12], [b, '1f2b', 12]]\n";
    struct validation_options options = {.jobs = 2};
    struct validation validation;
    struct error err = {0};
    struct paper paper;

    (void)state;
    assert_int_equal(load(&paper, failing, &err), 0);
    assert_int_equal(validation_init(&validation, &paper, &options, &err), 0);
    assert_int_equal(validation.failed, 1);
    assert_int_equal(err.count, 1);
    assert_int_equal(err.messages[0].loc.line, 3);
    close_to(validation_error(&validation, 0, 2), 0);
    json_t *json = view_json(&validation_view, &validation), *rows = json_object_get(json, "rows");
    json_t *errors = json_object_get(json_array_get(rows, 1), "errors");
    assert_null(json_object_get(json_array_get(rows, 0), "errors"));
    assert_int_equal(json_array_size(errors), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(errors, 0), "message")), err.messages[0].text);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(errors, 0), "line")), 3);
    json_decref(json);
    error_release(&err);
    release(&paper, &validation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),    cmocka_unit_test(test_summary),  cmocka_unit_test(test_rank),
        cmocka_unit_test(test_ratio),     cmocka_unit_test(test_bytes),     cmocka_unit_test(test_slopes),
        cmocka_unit_test(test_selection), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_json),      cmocka_unit_test(test_largest),
    };

    return cmocka_run_group_tests_name("validation", tests, NULL, NULL);
}
