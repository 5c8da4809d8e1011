/* Counts of rows against small rows that are written here, and what is remembered of them. */
#include "workload/row_counts.h"

#include "base/cache.h"
#include "simulated.h"

static const int *kinds_of(const struct row_counts *counts, bool behind, int chunk)
{
    return (behind ? counts->behind : counts->before) + chunk * WORK_KIND_COUNT;
}

/* A rank with two chunks, whose last backward is not its last work, and one without work. */
static void test_counts(void **state)
{
    const struct plan plan = {.stages = 2, .chunks = 2, .micro_batches = 2, .batches = 1};
    struct row rows[2] = {{0}};
    struct arena arena = {0};
    const struct row_counts *counts;

    (void)state;
    forward(&rows[0], 0, 0);
    forward(&rows[0], 0, 1);
    forward(&rows[0], 1, 0);
    backward_input(&rows[0], 1, 0);
    overlapped(&rows[0], 1, 1, 0, 0);            /* an overlapped pair: never are three in flight */
    backward_input(&rows[0], 1, 1);
    backward_weight(&rows[0], 1, 1);
    counts = rows_count(&arena, rows, &plan);
    assert_int_equal(counts[0].count, 8);
    assert_int_equal(counts[0].first, 0);
    assert_int_equal(counts[0].last, 1);
    assert_int_equal(counts[0].flying, 3);
    assert_int_equal(kinds_of(&counts[0], false, 0)[FORWARD], 2);
    assert_int_equal(kinds_of(&counts[0], false, 0)[BACKWARD], 1);
    assert_int_equal(kinds_of(&counts[0], false, 1)[FORWARD], 2);
    assert_int_equal(kinds_of(&counts[0], false, 1)[BACKWARD_INPUT], 2);
    assert_int_equal(kinds_of(&counts[0], false, 1)[BACKWARD_WEIGHT], 0);
    assert_int_equal(kinds_of(&counts[0], true, 1)[BACKWARD_WEIGHT], 1);
    assert_int_equal(counts[1].count, 0);
    free(rows[0].items);
    arena_release(&arena);
}

/* Remembered under all that rows depend on, and nothing else. */
static void test_remembered(void **state)
{
    struct cache cache;
    struct plan plan = {.stages = 4, .chunks = 1, .micro_batches = 8, .batches = 1};
    const struct row_counts *first, *again;

    (void)state;
    cache_init(&cache, CACHE_BYTES);
    for (size_t i = 0; schedule_at(i); i++) {
        struct arena arena = {.cache = &cache};

        if (strcmp(schedule_at(i)->name, "1f1b") && strcmp(schedule_at(i)->name, "zb-h1"))
            continue;
        if (schedule_at(i)->timed) {
            assert_null(schedule_counts(&arena, schedule_at(i), &plan));
            continue;
        }
        first = schedule_counts(&arena, schedule_at(i), &plan);
        plan.times.forward = 1;
        again = schedule_counts(&arena, schedule_at(i), &plan);
        assert_ptr_equal(first, again);
        assert_int_equal(first[0].flying, 4);
        assert_int_equal(first[3].flying, 1);
        plan.micro_batches = 2;
        assert_int_equal(schedule_counts(&arena, schedule_at(i), &plan)[0].flying, 2);
        plan.micro_batches = 8;
        arena_release(&arena);
    }
    assert_int_equal(cache.found[CACHE_COUNTS], 1);
    cache_release(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts), cmocka_unit_test(test_remembered)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
