/* Files of platforms/dialects: each name once, each argument that another one needs has a row, and names of logs find their
 * rows. */
#include "launch/dialect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "files/data.h"

static const struct dialect *load(struct arena *arena, const char *name)
{
    struct error err = {0};
    const struct dialect *dialect = dialect_load(arena, name, &err);

    if (!dialect)
        fail_msg("%s: %s", name, err.count ? err.messages[0].text : "no message");
    return dialect;
}

static void check_row(const struct dialect *dialect, const struct argument_row *row, const char *file)
{
    for (const struct argument_row *other = dialect->rows; other < row; other++)
        if (!strcmp(other->name, row->name))
            fail_msg("%s: %s has two rows", file, row->name);
    if (row->class != ARGUMENT_MAPPED && (row->path || row->needs))
        fail_msg("%s: %s is in no scenario, and has a key or needs another argument", file, row->name);
    if (row->kind == KIND_FLAG && row->path && !row->words)
        fail_msg("%s: %s has a key and no value for it", file, row->name);
    for (const char *at = row->needs; at && *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        char name[64];

        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " ="), at);
        if (!dialect_row(dialect, name, false))
            fail_msg("%s: %s needs %s, which has no row", file, row->name, name);
    }
    if (row->logged)
        assert_ptr_equal(dialect_row(dialect, row->logged + (row->logged[0] == '!'), true), row);
}

static void test_rows(void **state)
{
    struct arena arena = {0};
    struct error err = {0};
    const char **names = data_names(&arena, "platforms/dialects", &err);
    size_t count = 0;

    (void)state;
    assert_non_null(names);
    for (; names[count]; count++) {
        const struct dialect *dialect = load(&arena, names[count]);

        for (size_t i = 0; i < dialect->own; i++)
            check_row(dialect, &dialect->rows[i], names[count]);
        for (size_t i = 0; i < dialect->keys.count; i++)
            if (!dialect_row(dialect, dialect->keys.items[i].from, true))
                fail_msg("%s: %s is no argument", names[count], dialect->keys.items[i].to);
    }
    assert_true(count >= 5);
    arena_release(&arena);
}

/* The names of Megatron-LM d98e8a64, where the list of them is at hand. */
static void test_all_names(void **state)
{
    FILE *file = fopen(DTSIM_SOURCE_DIR "/../shared/plan/megatron_all_names.txt", "r");
    struct arena arena = {0};
    const struct dialect *megatron = load(&arena, "megatron");
    char line[256];
    int count = 0;

    (void)state;
    if (!file) {
        print_message("skipped: the list of all names is not here\n");
        arena_release(&arena);
        return;
    }
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (!dialect_row(megatron, line + 2, false))
            fail_msg("%s has no row", line);
        count++;
    }
    fclose(file);
    assert_true(count > 800);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_all_names)};

    return cmocka_run_group_tests_name("dialect", tests, NULL, NULL);
}
