/* Rows that a child writes under a budget are those that are written without one; a budget that is spent ends the child,
 * whatever the schedule does. */
#include "workload/rows_within.h"

#include <time.h>
#include <unistd.h>

#include "simulated.h"

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* So many works that a child writes them. */
static const struct plan LARGE = {.stages = 64, .chunks = 2, .micro_batches = 8192, .batches = 1};

static void expect_equal(const struct row *rows, const struct row *expected, int ranks)
{
    for (int rank = 0; rank < ranks; rank++) {
        assert_int_equal(rows[rank].count, expected[rank].count);
        for (size_t i = 0; i < rows[rank].count; i++) {
            struct work a = rows[rank].items[i], b = expected[rank].items[i];

            if (a.kind != b.kind || a.chunk != b.chunk || a.mb != b.mb || a.with_next != b.with_next)
                fail_msg("rank %d, work %zu", rank, i);
        }
    }
}

/* Rows of many lengths, one of them empty. */
static void uneven(struct row *rows, const struct plan *plan)
{
    for (int rank = 0; rank < plan->stages; rank++)
        for (int mb = 0; mb < 3 * rank; mb++) {
            forward(&rows[rank], 1, mb);
            overlapped(&rows[rank], 0, mb, 1, mb + 1);
            backward_weight(&rows[rank], 0, mb);
        }
}

static void empty(struct row *rows, const struct plan *plan)
{
    (void)rows, (void)plan;
}

static void test_enough(void **state)
{
    void (*const writers[])(struct row *, const struct plan *) = {uneven, empty};

    (void)state;
    for (size_t i = 0; i < COUNT(writers); i++) {
        const struct schedule schedule = {.name = "test", .rows = writers[i]};
        struct row *expected = rows_of(&schedule, &LARGE), *rows;
        struct progress progress;
        struct error err = {0};

        progress_begin(&progress, "--budget", 1e6, 0);
        rows = rows_within(&schedule, &LARGE, &progress, &err);
        assert_non_null(rows);
        assert_int_equal(err.count, 0);
        expect_equal(rows, expected, LARGE.stages);
        rows_release(rows, LARGE.stages);
        rows_release(expected, LARGE.stages);
    }
}

/* A schedule that never ends its rows. */
static void endless(struct row *rows, const struct plan *plan)
{
    (void)rows, (void)plan;
    for (;;)
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
}

static void test_spent(void **state)
{
    const struct schedule slow = {.name = "slow", .rows = endless};
    struct progress progress;
    struct error err = {0};
    double began = now();

    (void)state;
    progress_begin(&progress, "--budget", 0.25, 0);
    assert_null(rows_within(&slow, &LARGE, &progress, &err));
    assert_int_equal(err.count, 1);
    assert_int_equal(error_exit_code(&err), EXIT_STOPPED);
    assert_string_equal(err.messages[0].text, "stopped by --budget 250 ms, writing rows");
    assert_true(now() - began >= 0.25);
    error_release(&err);
}

/* Memory that has no room for the operations of the forwards: the schedule is not asked for its rows. */
static void test_no_room(void **state)
{
    const struct schedule slow = {.name = "slow", .rows = endless};
    struct progress progress;
    struct error err = {0};

    (void)state;
    progress_begin(&progress, "--budget", 0, 1e6);
    assert_null(rows_within(&slow, &LARGE, &progress, &err));
    assert_int_equal(err.count, 1);
    assert_int_equal(error_exit_code(&err), EXIT_STOPPED);
    assert_non_null(strstr(err.messages[0].text, ", before lowering: needs about "));
    assert_non_null(strstr(err.messages[0].text, " for 1.049 M operations"));
    error_release(&err);
}

/* A schedule whose child dies. */
static void fatal(struct row *rows, const struct plan *plan)
{
    (void)rows, (void)plan;
    fputs("no more", stderr);
    _exit(3);
}

static void test_dies(void **state)
{
    const struct schedule broken = {.name = "broken", .rows = fatal};
    struct progress progress;
    struct error err = {0};

    (void)state;
    progress_begin(&progress, "--budget", 1e6, 0);
    assert_null(rows_within(&broken, &LARGE, &progress, &err));
    assert_int_equal(error_exit_code(&err), EXIT_UNEXPECTED);
    assert_string_equal(err.messages[0].text, "writing the rows of the schedule failed with exit status 3: no more");
    error_release(&err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_enough), cmocka_unit_test(test_spent), cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_dies),
    };

    return cmocka_run_group_tests_name("rows_within", tests, NULL, NULL);
}
