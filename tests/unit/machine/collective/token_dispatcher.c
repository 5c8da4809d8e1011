/* token_dispatcher: what kernels of a dispatcher take, by the published bandwidths that its comment names. */
#include "collective/token_dispatcher.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void floors(void **state)
{
    const double bytes = 1e9;

    (void)state;
    for (int spans = 0; spans < 2; spans++) {
        assert_true(dispatcher_floor(DISPATCHER_ALLTOALL, bytes, spans) == 0);   /* the links alone limit NCCL */
        assert_true(dispatcher_floor(DISPATCHER_ALLGATHER, bytes, spans) == 0);
        assert_int_equal(dispatcher_multiprocessors(DISPATCHER_ALLTOALL, spans), 0);
    }
    /* 24 multiprocessors of a B200 reach 494 and 420 GB/s, so 20 of them about 380 */
    assert_true(fabs(dispatcher_floor(DISPATCHER_DEEPEP, bytes, false) - bytes / (20 * (494e9 + 420e9) / 2 / 24)) < 5e-5);
    /* HybridEP does with fewer multiprocessors between nodes, and is faster in an NVLink domain */
    assert_true(dispatcher_floor(DISPATCHER_HYBRIDEP, bytes, false) < dispatcher_floor(DISPATCHER_DEEPEP, bytes, false));
    assert_true(dispatcher_multiprocessors(DISPATCHER_HYBRIDEP, true) < dispatcher_multiprocessors(DISPATCHER_DEEPEP, true));
}

static void sends_once(void **state)
{
    (void)state;
    assert_false(dispatcher_sends_once(DISPATCHER_ALLTOALL));
    assert_false(dispatcher_sends_once(DISPATCHER_ALLGATHER));
    assert_true(dispatcher_sends_once(DISPATCHER_DEEPEP));
    assert_true(dispatcher_sends_once(DISPATCHER_HYBRIDEP));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(floors), cmocka_unit_test(sends_once)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
