/* The help of a scenario's keys: where one value of a choice has a text, each has; and each rule is said in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "expression/rule.h"
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

/* Also where a function decides: no condition is shown in the place of words. */
static void test_rules_are_said(void **state)
{
    const struct rules *rules;
    struct arena arena = {0};
    int functions = 0;

    (void)state;
    for (size_t t = 0; (rules = scenario_rules(t)); t++)
        for (size_t i = 0; i < rules->count; i++) {
            const struct rule *rule = &rules->items[i];
            const char *words = rule->kind == RULE_YIELDS ? NULL : rule_words(&arena, rule);

            if (words && (!*words || (strstr(words, rule->when) && rule->fault)))
                fail_msg("%s, %s: no words", rules->name, rule->at);
            functions += rule->fault != NULL;
        }
    arena_release(&arena);
    assert_true(functions > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_text_for_each_value),
        cmocka_unit_test(test_rules_are_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
