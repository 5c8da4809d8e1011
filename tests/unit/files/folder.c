/* folder: files appear together or not at all; a second writer is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "files/folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <signal.h>
#include <unistd.h>

static char dir[] = "/tmp/dtsim-test-XXXXXX";

static void put(const void *context, FILE *out)
{
    fputs(context, out);
}

static const char *path_of(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void expect(const char *name, const char *text)
{
    char read[64] = "";
    FILE *file = fopen(path_of(name), "r");

    if (!text) {
        assert_null(file);
        return;
    }
    assert_non_null(file);
    read[fread(read, 1, sizeof read - 1, file)] = 0;
    fclose(file);
    assert_string_equal(read, text);
}

static void test_files_come_together(void **state)
{
    struct error err = {0};
    struct folder folder;
    char digest[DIGEST_HEX], expected[DIGEST_HEX];
    struct digest abc;

    (void)state;
    digest_init(&abc);
    digest_add(&abc, "abc", 3);
    digest_end(&abc, expected);
    assert_int_equal(folder_open(&folder, dir, &err), 0);
    assert_int_equal(folder_write(&folder, "table", put, "abc", digest, &err), 0);
    assert_string_equal(digest, expected);
    assert_int_equal(folder_write(&folder, "last", put, "1", NULL, &err), 0);
    expect("table", NULL);
    assert_int_equal(folder_commit(&folder, &err), 0);
    folder_release(&folder);
    expect("table", "abc");
    expect("last", "1");

    assert_int_equal(folder_open(&folder, dir, &err), 0);        /* one that is given up leaves all as it was */
    assert_int_equal(folder_write(&folder, "table", put, "def", NULL, &err), 0);
    folder_release(&folder);
    expect("table", "abc");
    expect(".table.new", NULL);
}

static void test_one_writer(void **state)
{
    struct error err = {0};
    struct folder first, second;

    (void)state;
    assert_int_equal(folder_open(&first, dir, &err), 0);
    assert_int_equal(folder_open(&second, dir, &err), -1);
    assert_non_null(strstr(err.messages[0].text, "another run writes this folder"));
    folder_release(&second);
    folder_release(&first);
    assert_int_equal(folder_open(&first, dir, &err), 0);
    folder_release(&first);
    error_release(&err);
}

/* A disk that takes no more: a limit on the size of files. */
static void test_full_disk(void **state)
{
    struct rlimit before, small = {2, 2};
    struct error err = {0};
    struct folder folder;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    assert_int_equal(folder_open(&folder, dir, &err), 0);
    setrlimit(RLIMIT_FSIZE, &small);
    assert_int_equal(folder_write(&folder, "table", put, "much more", NULL, &err), -1);
    setrlimit(RLIMIT_FSIZE, &before);
    folder_release(&folder);
    assert_int_equal(error_exit_code(&err), EXIT_UNEXPECTED);
    expect("table", "abc");
    expect(".table.new", NULL);
    error_release(&err);
}

static void test_one_file(void **state)
{
    struct error err = {0};

    (void)state;
    assert_int_equal(file_replace(path_of("one"), put, "a", &err), 0);
    assert_int_equal(file_replace(path_of("one"), put, "b", &err), 0);
    expect("one", "b");
    expect(".one.new", NULL);
    assert_int_equal(file_replace(path_of("none/one"), put, "a", &err), -1);
    error_release(&err);
    assert_int_equal(unlink(path_of("one")), 0);
}

static int make(void **state)
{
    (void)state;
    return !mkdtemp(dir);
}

static int clear(void **state)
{
    (void)state;
    return unlink(path_of("table")) || unlink(path_of("last")) || rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_come_together), cmocka_unit_test(test_one_writer), cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_one_file),
    };

    return cmocka_run_group_tests_name("folder", tests, make, clear);
}
