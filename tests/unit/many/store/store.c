/* store: rows are found after a restart, also where a file is cut, and none is written twice; a file that is no store
 * stays as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "store_rows.h"
#include "text.h"

static void test_rows(void **state)
{
    struct place place = place_make();
    struct store store;
    enum outcome status;
    char id[ID_DIGITS + 1];

    (void)state;
    opened(&store, &place, 300);
    for (int i = 0; i < 300; i++)
        assert_int_equal(add(&store, i, outcome_names[i % OUTCOME_COUNT]), 0);
    closed(&store);
    opened(&store, &place, 300);
    for (int i = 0; i < 300; i++) {
        assert_true(store_find(&store, id_of(i, id), &status));
        assert_int_equal(status, i % OUTCOME_COUNT);
    }
    assert_false(store_find(&store, id_of(300, id), &status));
    closed(&store);
    assert_int_equal(tally_of(place.file).rows, 300);
    place_remove(&place);
}

/* A new header replaces the old one, and a later row of an id the earlier one; nothing else changes. */
static void test_anew(void **state)
{
    struct place place = place_make();
    struct store store;
    struct tally tally;
    enum outcome status;
    char id[ID_DIGITS + 1];

    (void)state;
    opened(&store, &place, 3);
    for (int i = 0; i < 3; i++)
        add(&store, i, "crash");
    closed(&store);
    opened(&store, &place, 4);
    add(&store, 1, "ok");
    add(&store, 3, "ok");
    store_release(&store);                               /* as if the writer had been killed */
    assert_int_equal(tally_of(place.file).rows, 5);
    opened(&store, &place, 4);
    assert_true(store_find(&store, id_of(1, id), &status) && status == OUTCOME_OK);
    assert_true(store_find(&store, id_of(0, id), &status) && status == OUTCOME_CRASH);
    tally = tally_of(place.file);
    assert_true(tally.rows == 4 && tally.points == 4 && tally.sum == 6);
    add(&store, 0, "ok");
    closed(&store);                                      /* which mends it too */
    assert_int_equal(tally_of(place.file).rows, 4);
    place_remove(&place);
}

/* A link is refused, and where it leads nothing is written or made. */
static void test_link(void **state)
{
    (void)state;
    for (int there = 0; there < 2; there++) {
        struct place place = place_make();
        struct store store = {0};
        struct error err = {0};
        struct stat status;
        json_t *header = json_object();
        char *target = xprintf("%s-target", place.file);
        FILE *out = there ? fopen(target, "w") : NULL;

        if (out) {
            fputs("mine\n", out);
            fclose(out);
        }
        assert_int_equal(symlink(target, place.file), 0);
        assert_int_equal(store_open(&store, place.folder, 1, 1, header, &err), -1);
        assert_non_null(strstr(err.messages[0].text, "this is a link"));
        assert_int_equal(stat(target, &status), there - 1);      /* -1: there is none */
        assert_true(!there || status.st_size == 5);
        unlink(target);
        unlink(place.file);
        store_release(&store);
        error_release(&err);
        json_decref(header);
        free(target);
        place_remove(&place);
    }
}

static char *content(const char *path, size_t *size)
{
    struct error err = {0};
    char *text = file_read(path, "store", 64 << 20, (struct loc){0}, size, &err);

    assert_non_null(text);
    return text;
}

/* A file that is cut at any byte keeps its whole lines, and the missing rows are added anew. */
static void test_cut(void **state)
{
    struct place place = place_make();
    struct store store;
    size_t size, again;
    char *whole, *mended;

    (void)state;
    opened(&store, &place, 4);
    for (int i = 0; i < 4; i++)
        add(&store, i, "ok");
    closed(&store);
    whole = content(place.file, &size);
    for (size_t length = 0; length <= size; length++) {
        int lines = 0, left = 0;

        for (size_t i = 0; i < length; i++)
            lines += whole[i] == '\n';
        assert_int_equal(truncate(place.file, (off_t)length), 0);
        assert_int_equal(tally_of(place.file).rows, lines ? lines - 1 : 0);
        opened(&store, &place, 4);
        for (int i = 0; i < 4; i++) {
            enum outcome status;
            char id[ID_DIGITS + 1];

            if (store_find(&store, id_of(i, id), &status))
                left++;
            else
                add(&store, i, "ok");
        }
        closed(&store);
        assert_int_equal(left, lines ? lines - 1 : 0);
        mended = content(place.file, &again);
        assert_int_equal(again, size);
        assert_memory_equal(mended, whole, size);
        free(mended);
    }
    free(whole);
    place_remove(&place);
}

/* The shards of a folder know each other's rows, and write their own file. */
static void test_shards(void **state)
{
    struct place place = place_make();
    struct error err = {0};
    struct arena arena = {0};
    struct store first, second;
    json_t *header = header_of(2);
    enum outcome status;
    char id[ID_DIGITS + 1];

    (void)state;
    assert_int_equal(store_open(&first, place.folder, 1, 2, header, &err), 0);
    add(&first, 1, "ok");
    assert_int_equal(store_open(&second, place.folder, 2, 2, header, &err), 0);
    assert_true(store_find(&second, id_of(1, id), &status));
    add(&second, 2, "error");
    closed(&first);
    closed(&second);
    const char **files = store_files(&arena, place.folder, &err);
    assert_int_equal(tally_of(files[0]).sum, 1);
    assert_int_equal(tally_of(files[1]).sum, 2);
    assert_null(files[2]);
    arena_release(&arena);
    json_decref(header);
    place_remove(&place);
}

/* What is no store is left alone. */
static void test_foreign(void **state)
{
    static const struct { const char *text, *message; } files[] = {
        {"my notes\n", ":1:1: error: the file holds no rows of a sweep; expected a header with 'dtsim_sweep'\n"},
        {"{\"dtsim_sweep\": 1}\n{\"id\": \"x\"}\n", ":2:1: error: this line is no row (an object with 'id' and "
         "'status'); if it is damaged, remove it, and its point runs again\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(files); i++) {
        struct place place = place_make();
        struct error err = {0};
        struct store store;
        json_t *header = header_of(1);
        FILE *out = fopen(place.file, "w");
        size_t size;
        char *seen;

        fputs(files[i].text, out);
        fclose(out);
        assert_int_equal(store_open(&store, place.folder, 1, 1, header, &err), -1);
        seen = messages_of(&err);
        assert_string_equal(seen + strlen(place.file), files[i].message);
        free(seen);
        store_release(&store);
        seen = content(place.file, &size);
        assert_string_equal(seen, files[i].text);
        free(seen);
        error_release(&err);
        json_decref(header);
        place_remove(&place);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),   cmocka_unit_test(test_anew),    cmocka_unit_test(test_cut),
        cmocka_unit_test(test_shards), cmocka_unit_test(test_foreign), cmocka_unit_test(test_link),
    };

    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
