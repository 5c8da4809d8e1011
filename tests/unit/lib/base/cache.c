/* cache: what was put under a key is found under it, until the limit; nothing that was given out goes away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/cache.h"

static int put(struct cache *cache, enum cache_kind kind, const char *key, int number)
{
    struct arena arena = {0};
    int *value = ARENA_ARRAY(&arena, int, 1);

    *value = number;
    if (cache_put(cache, kind, key, strlen(key), value, &arena)) {
        assert_null(arena.last);
        return 0;
    }
    assert_non_null(arena.last);
    arena_release(&arena);
    return -1;
}

static int found(struct cache *cache, enum cache_kind kind, const char *key)
{
    const int *value = cache_find(cache, kind, key, strlen(key));

    return value ? *value : -1;
}

static void test_found(void **state)
{
    struct cache cache;
    const int *old;
    char key[16];

    (void)state;
    cache_init(&cache, CACHE_BYTES);
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "%d", i);
        assert_int_equal(found(&cache, CACHE_TREE, key), -1);
        assert_int_equal(put(&cache, CACHE_TREE, key, i), 0);
        assert_int_equal(found(&cache, CACHE_RECORD, key), -1);
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "%d", i);
        assert_int_equal(found(&cache, CACHE_TREE, key), i);
    }
    assert_int_equal(cache.found[CACHE_TREE], 1000);
    assert_int_equal(cache.missed[CACHE_TREE], 1000);
    old = cache_find(&cache, CACHE_TREE, "7", 1);
    assert_int_equal(put(&cache, CACHE_TREE, "7", -7), 0);       /* in the place of the older one, */
    assert_int_equal(found(&cache, CACHE_TREE, "7"), -7);
    assert_int_equal(*old, 7);                                   /* which somebody may still use */
    cache_release(&cache);
}

static void test_limit(void **state)
{
    struct cache cache;
    char key[16];
    int taken = 0;

    (void)state;
    cache_init(&cache, 1 << 20);
    for (int i = 0; i < 100000; i++) {
        snprintf(key, sizeof key, "%d", i);
        taken += !put(&cache, CACHE_TREE, key, i);
        assert_true(cache.bytes <= cache.limit);
    }
    assert_true(taken > 0 && taken < 100000);
    for (int i = 0; i < taken; i++) {
        snprintf(key, sizeof key, "%d", i);
        assert_int_equal(found(&cache, CACHE_TREE, key), i);
    }
    cache_renew(&cache);
    assert_int_equal(cache.bytes, 0);
    assert_int_equal(put(&cache, CACHE_TREE, "1", 5), 0);
    cache_renew(&cache);                 /* nothing was refused */
    assert_int_equal(found(&cache, CACHE_TREE, "1"), 5);
    cache_release(&cache);
    assert_int_equal(cache.bytes, 0);
}

/* Many small values, each copied; kinds do not meet. */
static void test_copied(void **state)
{
    struct cache cache;

    (void)state;
    cache_init(&cache, CACHE_BYTES);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < 100000; i++) {
            const double key[3] = {i / 7, i % 7, 0.1}, *known = cache_find(&cache, CACHE_PRODUCT, key, sizeof key);
            double value = i / 3.0;

            assert_int_equal(known != NULL, pass);
            assert_true(!known || *known == value);
            if (!known)
                cache_copy(&cache, CACHE_PRODUCT, key, sizeof key, &value, sizeof value);
            value = 0;
        }
    assert_int_equal(cache.count, 100000);
    assert_true(cache.bytes < 16 << 20);
    cache_release(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_found), cmocka_unit_test(test_limit),
                                       cmocka_unit_test(test_copied)};

    return cmocka_run_group_tests_name("cache", tests, NULL, NULL);
}
