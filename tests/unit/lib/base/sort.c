/* array_sort, array_sort_by: in order, and equal items as they were, by sizes of items and counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/random.h"

/* The first byte is the key; the item's number stands in the bytes behind it. */
enum { MOST = 40 };

static int by_key(const void *a, const void *b)
{
    return *(const unsigned char *)a - *(const unsigned char *)b;
}

static int by_given(const void *a, const void *b, void *context)
{
    const int *order = context;

    return order[*(const unsigned char *)a] - order[*(const unsigned char *)b];
}

static uint16_t number_of(const unsigned char *item)
{
    uint16_t number;

    memcpy(&number, item + 1, sizeof number);
    return number;
}

static void check(uint64_t seed, size_t count, size_t size, int keys, const int *order)
{
    unsigned char *items = xcalloc(count, size);

    for (size_t i = 0; i < count; i++) {
        memset(items + i * size, (int)i, size);
        items[i * size] = (unsigned char)((double)keys * random_share(seed, i));
        memcpy(items + i * size + 1, &(uint16_t){(uint16_t)i}, sizeof(uint16_t));
    }
    if (order)
        array_sort_by(items, count, size, by_given, (void *)(uintptr_t)order);
    else
        array_sort(items, count, size, by_key);
    for (size_t i = 1; i < count; i++) {
        const unsigned char *before = items + (i - 1) * size, *item = items + i * size;
        int difference = order ? order[*item] - order[*before] : *item - *before;

        assert_true(difference > 0 || (difference == 0 && number_of(before) < number_of(item)));
    }
    for (size_t i = 0; i < count; i++) {               /* whole items moved */
        const unsigned char *item = items + i * size;

        assert_int_equal(*item, (unsigned char)((double)keys * random_share(seed, number_of(item))));
        for (size_t byte = 3; byte < size; byte++)
            assert_int_equal(item[byte], (unsigned char)number_of(item));
    }
    free(items);
}

static void test_random(void **state)
{
    int order[256];

    (void)state;
    for (int i = 0; i < 256; i++)
        order[i] = (int)(1000 * random_share(7, (uint64_t)i)) / 3;
    array_sort(NULL, 0, 8, by_key);
    for (uint64_t seed = 0; seed < 400; seed++) {
        size_t size = 3 + (size_t)(MOST * random_share(8, seed)), count = seed < 200 ? (size_t)seed : (size_t)(3000 * random_share(9, seed));

        check(seed, count, seed % 3 == 0 ? 4 : seed % 3 == 1 ? 8 : size, seed % 2 ? 256 : 5, seed % 5 ? order : NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests_name("sort", tests, NULL, NULL);
}
