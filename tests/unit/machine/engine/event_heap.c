#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/event_heap.h"

enum { IDS = 200, STEPS = 20000 };

/* Against a list that is searched from end to end: times set, changed to earlier and later ones, taken out, and taken
 * when they come. Many are the same. */
static void test_order(void **state)
{
    struct event_heap heap;
    double times[IDS];
    uint32_t taken[IDS];
    uint64_t seed = 1;
    size_t count = 0;

    (void)state;
    event_heap_init(&heap, IDS);
    for (int i = 0; i < IDS; i++)
        times[i] = -1;
    for (int step = 0; step < STEPS; step++) {
        uint32_t id;

        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        id = (uint32_t)(seed >> 40) % IDS;
        if (seed >> 63 || !count) {
            bool taken_out = (seed >> 60 & 7) == 0;

            count -= times[id] >= 0;
            count += !taken_out;
            times[id] = taken_out ? -1 : (double)(seed >> 50 & (step % 3 ? 63 : 1));
            if (taken_out)
                event_heap_unset(&heap, id);
            else
                event_heap_set(&heap, id, times[id]);
        } else {
            double least = heap.entries[0].time;

            for (int i = 0; i < IDS; i++)
                assert_true(times[i] < 0 || times[i] >= least);
            for (size_t i = event_heap_pop(&heap, taken); i-- > 0; count--) {
                assert_true(times[taken[i]] == least);
                times[taken[i]] = -1;
            }
        }
        assert_true(heap.count <= count && !heap.count == !count);
    }
    event_heap_release(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order)};

    return cmocka_run_group_tests_name("event_heap", tests, NULL, NULL);
}
