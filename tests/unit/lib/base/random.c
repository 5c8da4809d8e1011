/* random: what random numbers promise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/random.h"

/* Every number is hit once; another seed gives another order. */
static void test_permuted(void **state)
{
    static const uint64_t counts[] = {1, 2, 3, 4, 5, 64, 65, 1000};

    (void)state;
    for (size_t c = 0; c < COUNT(counts); c++) {
        bool *hit = xcalloc(counts[c], sizeof *hit);

        for (uint64_t i = 0; i < counts[c]; i++) {
            uint64_t to = random_permuted(5, i, counts[c]);

            assert_true(to < counts[c] && !hit[to]);
            hit[to] = true;
        }
        free(hit);
    }
    assert_int_not_equal(random_permuted(1, 0, 1000), random_permuted(2, 0, 1000));
    assert_true(random_permuted(1, 77, 1ull << 62) < 1ull << 62);
}

/* The mean of many shares is near a half, and all lie in [0, 1). */
static void test_share(void **state)
{
    double sum = 0;

    (void)state;
    for (uint64_t i = 0; i < 10000; i++) {
        double share = random_share(9, i);

        assert_true(share >= 0 && share < 1);
        sum += share;
    }
    assert_true(sum > 4900 && sum < 5100);
    assert_true(random_share(9, 3) == random_share(9, 3) && random_share(9, 3) != random_share(8, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permuted),
        cmocka_unit_test(test_share),
    };

    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
