/* store: rows survive whatever happens to their writer, and none stands twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/store.h"
#include "store_place.h"
#include "text.h"

static void place_remove(const struct place *place)
{
    struct arena arena = {0};
    const char **files = store_files(&arena, place->folder);

    for (size_t i = 0; files[i]; i++)
        unlink(files[i]);
    arena_release(&arena);
    assert_int_equal(rmdir(place->folder), 0);           /* nothing else is left there */
}

static json_t *header_of(int points)
{
    return json_pack("{s:i, s:i}", "dtsim_sweep", 1, "points", points);
}

/* The id of row i. */
static const char *id_of(int i, char id[ID_DIGITS + 1])
{
    snprintf(id, ID_DIGITS + 1, "%08x%024x", (unsigned)i * 2654435761u, (unsigned)i);
    return id;
}

static json_t *row_of(int i, const char *status)
{
    char id[ID_DIGITS + 1];

    return json_pack("{s:s, s:{s:i}, s:s, s:f}", "id", id_of(i, id), "point", "a", i, "status", status, "x", i / 3.0);
}

static int add(struct store *store, int i, const char *status)
{
    struct error err = {0};
    json_t *row = row_of(i, status);
    char *text = json_dumps(row, JSON_COMPACT | JSON_REAL_PRECISION(17));
    int rc = store_add(store, store_id(row), outcome_of(row), text, &err);

    free(text);
    json_decref(row);
    error_release(&err);
    return rc;
}

static void opened(struct store *store, const struct place *place, int points)
{
    struct error err = {0};
    json_t *header = header_of(points);

    if (store_open(store, place->folder, 1, 1, header, &err))
        fail_msg("%s", err.messages[0].text);
    json_decref(header);
}

static void closed(struct store *store)
{
    struct error err = {0};

    assert_int_equal(store_close(store, &err), 0);
}

/* What a file holds. */
struct tally { int rows, points, sum; };

static int tally_header(void *context, const json_t *header, struct error *err)
{
    (void)err;
    ((struct tally *)context)->points = (int)json_integer_value(json_object_get(header, "points"));
    return 0;
}

static int tally_row(void *context, const json_t *row, const char *line, size_t length, struct error *err)
{
    struct tally *tally = context;
    int i = (int)json_integer_value(json_object_get(json_object_get(row, "point"), "a"));

    (void)err;
    assert_true(line[0] == '{' && line[length - 1] == '}');
    assert_true(json_real_value(json_object_get(row, "x")) == i / 3.0);
    tally->rows++;
    tally->sum += i;
    return 0;
}

static struct tally tally_of(const char *file)
{
    struct tally tally = {0};
    const struct store_reader reader = {tally_header, tally_row, &tally};
    struct error err = {0};

    if (store_read(file, &reader, &err))
        fail_msg("%s", err.messages[0].text);
    return tally;
}

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

static char *content(const char *path, size_t *size)
{
    struct error err = {0};
    char *text = file_read(path, "store", 64 << 20, (struct loc){0}, size, &err);

    assert_non_null(text);
    return text;
}

/* Cut at any byte, a file has its whole lines left, and takes the missing rows again. */
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

/* Writes rows until it is killed, and says how many are written for sure. */
static void write_on(const struct place *place, volatile int *written)
{
    struct store store;
    enum outcome status;
    char id[ID_DIGITS + 1];

    opened(&store, place, 1);
    for (int i = 0;; i++) {
        if (!store_find(&store, id_of(i, id), &status) && add(&store, i, "ok"))
            _exit(1);
        *written = i + 1 > *written ? i + 1 : *written;
    }
}

/* Killed at random moments, also while it opens, a writer loses no row and doubles none. */
static void test_kill(void **state)
{
    struct place place = place_make();
    volatile int *written = mmap(NULL, sizeof *written, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t seed = 11;

    (void)state;
    for (int round = 0; round < 30; round++) {
        struct tally tally;
        int status;
        pid_t pid = fork();

        if (!pid) {
            write_on(&place, written);
            _exit(0);
        }
        usleep((useconds_t)(next(&seed) % 20000));
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        assert_true(WIFSIGNALED(status));
        if (access(place.file, F_OK))
            continue;
        tally = tally_of(place.file);
        assert_true(tally.rows == *written || tally.rows == *written + 1);
        assert_int_equal(tally.sum, tally.rows * (tally.rows - 1) / 2);
    }
    assert_true(*written > 0);
    munmap((void *)written, sizeof *written);
    place_remove(&place);
}

/* What a child does with a store that it opens: its exit code. */
static int in_child(int (*body)(const struct place *place), const struct place *place)
{
    int status;
    pid_t pid = fork();

    if (!pid)
        _exit(body(place));
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int second_writer(const struct place *place)
{
    struct store store;
    struct error err = {0};
    json_t *header = header_of(1);

    return store_open(&store, place->folder, 1, 1, header, &err) &&
           strstr(err.messages[0].text, "another sweep") ? 7 : 0;
}

static void test_two_writers(void **state)
{
    struct place place = place_make();
    struct store store;

    (void)state;
    opened(&store, &place, 1);
    assert_int_equal(in_child(second_writer, &place), 7);
    closed(&store);
    assert_int_equal(in_child(second_writer, &place), 0);
    place_remove(&place);
}

/* A file may not grow beyond 1 KiB, as on a full disk: rows that do not fit are refused, those that fit are whole. */
static int full_disk(const struct place *place)
{
    const struct rlimit limit = {1024, 1024};
    struct store store;
    int written = 0, refused = 0;

    opened(&store, place, 1);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 30; i++)
        if (add(&store, i, "ok"))
            refused++;
        else
            written++;
    return refused > 0 && written > 0 && refused + written == 30 ? written : 0;
}

static void test_full_disk(void **state)
{
    struct place place = place_make();
    struct store store;
    int written = in_child(full_disk, &place);

    (void)state;
    assert_true(written > 0);
    assert_int_equal(tally_of(place.file).rows, written);
    opened(&store, &place, 1);
    assert_int_equal(add(&store, 99, "ok"), 0);
    closed(&store);
    assert_int_equal(tally_of(place.file).rows, written + 1);
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
    assert_int_equal(tally_of(store_files(&arena, place.folder)[0]).sum, 1);
    assert_int_equal(tally_of(store_files(&arena, place.folder)[1]).sum, 2);
    assert_null(store_files(&arena, place.folder)[2]);
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
        cmocka_unit_test(test_rows),        cmocka_unit_test(test_anew),   cmocka_unit_test(test_cut),
        cmocka_unit_test(test_kill),        cmocka_unit_test(test_two_writers), cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_shards),      cmocka_unit_test(test_foreign),
    };

    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
