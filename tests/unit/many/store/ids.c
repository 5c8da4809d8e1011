/* ids: every id is found with what was written to it, and a table takes the memory that its page promises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "store/ids.h"

enum { MANY = 100000 };

/* The id of a row: every other one differs from its neighbour in the last of the digits that are kept alone. */
static const char *id_of(int i, char id[ID_DIGITS + 1])
{
    uint64_t bits = random_permuted(1, (uint64_t)(i / 2), UINT64_C(1) << 63);

    snprintf(id, ID_DIGITS + 1, "%016llx%08x%08x", (unsigned long long)bits, i & 1, 7u);
    return id;
}

static void test_found(void **state)
{
    struct ids ids = {0};
    char id[ID_DIGITS + 1];

    (void)state;
    assert_null(ids_find(&ids, id_of(0, id)));
    for (int i = 0; i < MANY; i++) {
        struct id_entry *entry = ids_put(&ids, id_of(i, id));

        assert_int_equal(entry->number, 0);
        entry->number = (unsigned)i & ID_NUMBER_MOST;
        entry->status = (unsigned)(i % OUTCOME_COUNT) & 7;
    }
    assert_int_equal(ids.count, MANY);
    for (int i = 0; i < MANY; i++) {
        const struct id_entry *entry = ids_find(&ids, id_of(i, id));

        assert_non_null(entry);
        assert_int_equal(entry->number, i);
        assert_int_equal(entry->status, i % OUTCOME_COUNT);
        assert_ptr_equal(ids_put(&ids, id), entry);
    }
    assert_null(ids_find(&ids, id_of(MANY, id)));
    ids_release(&ids);
}

/* At most 32 bytes an id, once there are more than a few. */
static void test_small(void **state)
{
    struct ids ids = {0};
    char id[ID_DIGITS + 1];

    (void)state;
    assert_int_equal(sizeof *ids.items, 16);
    for (int i = 0; i < MANY; i++) {
        ids_put(&ids, id_of(i, id));
        if (i > 64)
            assert_true(ids.capacity * sizeof *ids.items <= 32 * ids.count);
    }
    ids_release(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_found), cmocka_unit_test(test_small)};

    return cmocka_run_group_tests_name("ids", tests, NULL, NULL);
}
