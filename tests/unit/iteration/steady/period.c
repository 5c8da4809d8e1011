/* period: rows without some of their micro-batches are the rows that the schedule writes for fewer micro-batches. */
#include "schedule_list.h"
#include "steady/period.h"

enum { RANKS = 4, MICRO_BATCHES = 480 };

static void same_rows(const struct row *found, const struct row *wanted, const char *text)
{
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(found[rank].count, wanted[rank].count);
        for (size_t i = 0; i < wanted[rank].count; i++) {
            struct work a = found[rank].items[i], b = wanted[rank].items[i];

            if (a.kind != b.kind || a.chunk != b.chunk || a.mb != b.mb || a.with_next != b.with_next)
                fail_msg("%s: work %zu of rank %d is %c%d in chunk %d, expected %c%d in chunk %d", text, i, rank,
                         work_letter(a.kind), a.mb, a.chunk, work_letter(b.kind), b.mb, b.chunk);
        }
    }
}

/* `spare`: how many micro-batches of each direction can be taken out at least. */
static void take_out(const char *schedule, int spare)
{
    struct simulated whole;
    struct period period;
    const struct plan *plan;
    int taken;

    load_stages(&whole, schedule, RANKS, MICRO_BATCHES, false);
    plan = &simulated_workload(&whole)->plan;
    if (!period_find(whole.workload.rows, plan, &period) || period.spare < spare)
        fail_msg("%s: %d micro-batches are spare, expected %d", schedule, period.spare, spare);
    for (taken = period.micro_batches; taken <= period.spare; taken += 9 * period.micro_batches) {
        struct plan left = period_plan(plan, taken);
        struct row *found = period_take(&period, whole.workload.rows, plan, taken);
        struct simulated shorter;

        assert_non_null(found);
        load_stages(&shorter, schedule, RANKS, left.micro_batches, false);
        same_rows(found, simulated_workload(&shorter)->rows, schedule);
        simulated_release(&shorter);
        rows_release(found, RANKS);
    }
    assert_true(taken > 9 * period.micro_batches);
    period_release(&period);
    simulated_release(&whole);
}

static void test_schedules(void **state)
{
    (void)state;
    take_out("schedule: 1f1b", MICRO_BATCHES - RANKS);
    take_out("schedule: interleaved, chunks: 2", MICRO_BATCHES - 4 * RANKS);
    take_out("schedule: zb-h1", MICRO_BATCHES - 3 * RANKS);
    take_out("schedule: dualpipe", MICRO_BATCHES / 2 - 3 * RANKS);
    take_out("schedule: dualpipe-v", MICRO_BATCHES - 4 * RANKS);
    take_out("schedule: chimera", MICRO_BATCHES / 2 - 2 * RANKS);
}

/* All forwards come before all backwards: none of these repeats itself with the other's micro-batches. */
static void test_flush(void **state)
{
    struct simulated gpipe;
    struct period period;
    struct row *found = NULL;

    (void)state;
    load_stages(&gpipe, "schedule: gpipe", RANKS, MICRO_BATCHES, false);
    if (period_find(simulated_workload(&gpipe)->rows, &gpipe.workload.plan, &period))
        found = period_take(&period, gpipe.workload.rows, &gpipe.workload.plan, period.micro_batches);
    assert_null(found);
    period_release(&period);
    simulated_release(&gpipe);
}

/* Short rows are simulated as they are. */
static void test_few(void **state)
{
    struct simulated few;
    struct period period;

    (void)state;
    load_stages(&few, "schedule: 1f1b", RANKS, 2 * RANKS, false);
    assert_false(period_find(simulated_workload(&few)->rows, &few.workload.plan, &period));
    period_release(&period);
    simulated_release(&few);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedules), cmocka_unit_test(test_flush), cmocka_unit_test(test_few),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
