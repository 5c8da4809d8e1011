/* The table of arguments: each name once, each needed argument has a row, and names of logs find their rows. */
#include "megatron/megatron_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void test_rows(void **state)
{
    const struct argument_row *row;

    (void)state;
    for (size_t i = 0; (row = megatron_row_at(i)); i++) {
        for (size_t k = 0; k < i; k++)
            if (!strcmp(megatron_row_at(k)->name, row->name))
                fail_msg("--%s has two rows", row->name);
        if (row->class != ARGUMENT_MAPPED && (row->path || row->needs))
            fail_msg("--%s is in no scenario, and has a key or needs another argument", row->name);
        if (row->kind == KIND_FLAG && row->path && !row->words)
            fail_msg("--%s has a key and no value for it", row->name);
        for (const char *at = row->needs; at && *at; at += strcspn(at, " "), at += strspn(at, " ")) {
            char name[64];

            snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " "), at);
            if (!megatron_row(name, false))
                fail_msg("--%s needs --%s, which has no row", row->name, name);
        }
        if (row->logged)
            assert_ptr_equal(megatron_row(row->logged + (row->logged[0] == '!'), true), row);
    }
}

/* The names of Megatron-LM d98e8a64, where the list of them is at hand. */
static void test_all_names(void **state)
{
    FILE *file = fopen(DTSIM_SOURCE_DIR "/../shared/plan/megatron_all_names.txt", "r");
    char line[256];
    int count = 0;

    (void)state;
    if (!file) {
        print_message("skipped: the list of all names is not here\n");
        return;
    }
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (!megatron_row(line + 2, false))
            fail_msg("%s has no row", line);
        count++;
    }
    fclose(file);
    assert_true(count > 800);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_all_names)};

    return cmocka_run_group_tests_name("megatron_table", tests, NULL, NULL);
}
