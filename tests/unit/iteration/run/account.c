/* account: the seconds of a step, each of one kind. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "run/account.h"

static double sum(const double *seconds)
{
    double all = 0;

    for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
        all += seconds[kind];
    return all;
}

/* A backward of 4 s, of which 1 s is communication: 0.75 s with its tensor group and 0.25 s with its context group. The lane
 * was free at 1 s, waited for a kernel until 3 s, for a boundary until 4 s, for the host until 4.5 s. */
static const struct op backward_op = {.amount = 4, .what = WHAT_BACKWARD};
static const struct op_compute compute = {.communication = 1, .with = {[PEERS_TENSOR] = 0.75, [PEERS_CONTEXT] = 0.25}};
static const struct account_step step = {
    .op = &backward_op, .compute = &compute, .from = 1, .since = 3, .ready = 4, .start = 4.5, .end = 8.5,
    .awaited = ACCOUNT_EXPOSED_PIPELINE,
};

static void kinds(void **state)
{
    const struct window all = {0, 100, 1, 1, false};
    double seconds[ACCOUNT_KIND_COUNT] = {0};

    (void)state;
    assert_true(account_add(&step, &all, seconds) == 2);       /* the wait for the boundary, and the exchanges */
    assert_true(seconds[ACCOUNT_BUBBLE] == 2 && seconds[ACCOUNT_EXPOSED_PIPELINE] == 1);
    assert_true(seconds[ACCOUNT_EXPOSED_OFFLOAD] == 0.5 && seconds[ACCOUNT_BACKWARD] == 3);
    assert_true(seconds[ACCOUNT_EXPOSED_TENSOR] == 0.75 && seconds[ACCOUNT_EXPOSED_CONTEXT] == 0.25);
    assert_true(sum(seconds) == step.end - step.from);
}

/* Whatever the window, the kinds add up to the part of the step in it, over its updates. */
static void windows(void **state)
{
    (void)state;
    for (double from = 0; from < 10; from += 0.37)
        for (double to = from; to < 10; to += 0.53) {
            const struct window window = {from, to, 3, 5, true};
            double seconds[ACCOUNT_KIND_COUNT] = {0};

            account_add(&step, &window, seconds);
            assert_true(fabs(sum(seconds) - window_part(&window, step.from, step.end)) < 1e-12);
            for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
                assert_true(seconds[kind] >= 0);
        }
}

/* The end of a rank that is done before the others is a bubble. */
static void end(void **state)
{
    const struct account_step last = {.from = 6, .since = 9, .ready = 9, .start = 9, .end = 9, .awaited = ACCOUNT_EXPOSED_PIPELINE};
    const struct window all = {0, 9, 1, 1, false};
    double seconds[ACCOUNT_KIND_COUNT] = {0};

    (void)state;
    assert_true(account_add(&last, &all, seconds) == 0);
    assert_true(seconds[ACCOUNT_BUBBLE] == 3 && sum(seconds) == 3);
}

/* Every operation of a compute lane is of some kind, and no two kinds have one name. */
static void names(void **state)
{
    (void)state;
    for (int what = WHAT_FORWARD; what < WHAT_PACK; what++)
        assert_true(account_of((enum op_what)what) < ACCOUNT_COMMUNICATION_FIRST);
    for (int a = 0; a < ACCOUNT_KIND_COUNT; a++)
        for (int b = 0; b < a; b++)
            assert_string_not_equal(account_names[a], account_names[b]);
    assert_null(account_names[ACCOUNT_KIND_COUNT]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds), cmocka_unit_test(windows), cmocka_unit_test(end), cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
