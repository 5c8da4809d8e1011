/* The entries of rows and what is known of each, against a look at all pairs of them. */
#include "random_plan.h"

#include "lower/script_rows.h"

enum { PLANS = 150 };

static bool is_work(struct work work)
{
    return work.kind != UPDATE && work.kind != GATHER;
}

static bool ends_gradients(struct work work)
{
    return work.kind == BACKWARD || work.kind == BACKWARD_WEIGHT;
}

/* Whether the row has a work of the kind for the same micro-batch in the same chunk. */
static bool has_other(const struct rows *rows, int rank, struct work work, enum work_kind kind)
{
    for (size_t i = 0; i < row_entries(rows, rank); i++) {
        struct work other = row_entry(rows, rank, i);

        if (other.kind == kind && other.chunk == work.chunk && other.mb == work.mb)
            return true;
    }
    return false;
}

/* Whether no work behind this one (unless gradients are scattered in every micro-batch), before the next update, ends gradients of the same chunk. */
static bool completes(const struct rows *rows, int rank, size_t entry)
{
    struct work work = row_entry(rows, rank, entry), other;

    if (!ends_gradients(work) || rows->scenario->recipe.gradients.every)
        return ends_gradients(work);
    for (size_t i = entry + 1; i < row_entries(rows, rank) && (other = row_entry(rows, rank, i)).kind != UPDATE; i++)
        if (ends_gradients(other) && other.chunk == work.chunk)
            return false;
    return true;
}

static void check_row(const struct rows *rows, int rank, int *marked, const char *text)
{
    bool first[64] = {false};            /* a chunk: a forward or backward was there */

    for (size_t i = 0; i < row_entries(rows, rank); i++) {
        struct work work = row_entry(rows, rank, i);
        int marks = rows->marks[rank][i], expected = 0;

        if (is_work(work)) {
            expected |= completes(rows, rank, i) ? ENTRY_COMPLETES : 0;
            expected |= has_other(rows, rank, work, RECOMPUTE) ? ENTRY_RECOMPUTED : 0;
            expected |= has_other(rows, rank, work, BACKWARD_WEIGHT) ? ENTRY_SPLIT : 0;
            expected |= rows->zero ? ENTRY_LAYERS : 0;
            first[work.chunk] = true;
        }
        if (marks != expected)
            fail_msg("entry %zu of rank %d has the marks %d, not %d:\n%s", i, rank, marks, expected, text);
        *marked |= marks;
    }
    for (int chunk = 0; chunk < plan_chunks(rows->plan, rank); chunk++)
        assert_true(first[chunk]);
}

/* Every local step has all works of the row, on other micro-batches, and an update. */
static void check_steps(const struct rows *rows, int rank)
{
    const struct row *row = &rows->workload->rows[rank];
    size_t works = 0, updates = 0, own = 0;

    for (size_t i = 0; i < row->count; i++)
        own += is_work(row->items[i]);
    for (size_t i = 0; i < row_entries(rows, rank); i++) {
        struct work work = row_entry(rows, rank, i);

        works += is_work(work);
        updates += work.kind == UPDATE;
        assert_true(!is_work(work) || (work.mb >= 0 && work.mb < rows->micro_batches));
    }
    assert_int_equal(works, own * (size_t)rows->steps);
    assert_int_equal(updates, (row->count - own + rows->update_last) * (size_t)rows->steps);
}

static void entries_are_marked(void **state)
{
    static const char *const more[] = {"", "", ", zero: 3", ", local_steps: 2"};
    uint64_t seed = 4100;
    int marked = 0, seen = 0;

    (void)state;
    for (int i = 0; i < PLANS; i++) {
        struct random_plan plan = random_plan(&seed);
        struct arena arena = {0};
        struct scenario scenario;
        struct workload workload = {0};
        struct error err = {0};
        char *schedule, *text;

        any_schedule(&plan, &seed);
        plan.data_parallel = "ddp";
        plan.transformer = true;
        assert_true(asprintf(&schedule, "%s%s", plan.schedule, more[i % (int)COUNT(more)]) > 0);
        plan.schedule = schedule;
        text = plan_yaml(&plan);
        if (!load_text(text, &scenario, &err) && !workload_init(&workload, &scenario, &err)) {
            struct rows rows;

            rows_find(&rows, &workload, true, &arena);
            for (int rank = 0; rank < rows.plan->stages; rank++) {
                check_row(&rows, rank, &marked, text);
                check_steps(&rows, rank);
            }
            seen++;
        }
        workload_release(&workload);
        scenario_release(&scenario);
        error_release(&err);
        arena_release(&arena);
        free(text);
        free(schedule);
    }
    assert_true(seen > PLANS / 3);
    assert_int_equal(marked, ENTRY_COMPLETES | ENTRY_RECOMPUTED | ENTRY_SPLIT | ENTRY_LAYERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(entries_are_marked)};

    return cmocka_run_group_tests_name("rows_marks", tests, NULL, NULL);
}
