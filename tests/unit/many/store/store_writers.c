/* store_writers: rows survive a writer that is killed, a second one, and a disk that is full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store_rows.h"
#include "text.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill), cmocka_unit_test(test_two_writers), cmocka_unit_test(test_full_disk),
    };

    return cmocka_run_group_tests_name("store_writers", tests, NULL, NULL);
}
