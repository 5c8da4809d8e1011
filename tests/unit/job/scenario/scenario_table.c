/* The help of a scenario's keys: where one value of a choice has a text, each has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "scenario/scenario.h"

static size_t length(const char *const *names)
{
    size_t count = 0;

    while (names[count])
        count++;
    return count;
}

/* How many choices of the table, and of the tables below it, have texts; fails where their number is another. */
static int checked(const struct table *table)
{
    int count = 0;

    for (size_t i = 0; table && i < table->count; i++) {
        const struct field *field = &table->fields[i];

        if (field->choice_briefs) {
            if (!field->choices || length(field->choices) != length(field->choice_briefs))
                fail_msg("%s: %s: a text for each value is needed", table->name, field->key);
            count++;
        }
        count += checked(field->table);
    }
    return count;
}

static void test_a_text_for_each_value(void **state)
{
    int count = checked(&scenario_table);

    (void)state;
    for (size_t i = 0; schedule_at(i); i++)
        count += checked(schedule_at(i)->options);
    assert_true(count > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_text_for_each_value),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
