/* folder: files appear together or not at all; a second writer is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "files/folder.h"

#include <dirent.h>
#include <fcntl.h>
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

/* How many files have temporary names, which are longer than all others here. */
static int temporaries(void)
{
    DIR *open = opendir(dir);
    int count = 0;

    assert_non_null(open);
    for (const struct dirent *entry; (entry = readdir(open));)
        count += strlen(entry->d_name) > 20;
    closedir(open);
    return count;
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
    assert_int_equal(temporaries(), 0);
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
    assert_int_equal(temporaries(), 0);
    error_release(&err);
}

static void test_one_file(void **state)
{
    struct error err = {0};

    (void)state;
    assert_int_equal(file_replace(path_of("one"), put, "a", &err), 0);
    assert_int_equal(file_replace(path_of("one"), put, "b", &err), 0);
    expect("one", "b");
    assert_int_equal(temporaries(), 0);
    assert_int_equal(file_replace(path_of("none/one"), put, "a", &err), -1);
    error_release(&err);
    assert_int_equal(unlink(path_of("one")), 0);
}

/* What runs that have died left is removed by the next one, but not what somebody writes. Links are not followed. */
static void test_left_behind(void **state)
{
    struct error err = {0};
    struct folder folder;
    char other[4400], left[4400];
    int fd = temporary_open(AT_FDCWD, path_of("table"), other, sizeof other);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(close(temporary_open(AT_FDCWD, path_of("table"), left, sizeof left)), 0);
    assert_string_not_equal(left, other);
    assert_int_equal(symlink("last", path_of(".table.new")), 0);
    assert_int_equal(temporaries(), 2);
    assert_int_equal(folder_open(&folder, dir, &err), 0);
    folder_release(&folder);
    assert_int_equal(access(left, F_OK), -1);
    assert_int_equal(access(other, F_OK), 0);
    close(fd);
    assert_int_equal(file_replace(path_of("table"), put, "abc", &err), 0);
    assert_int_equal(temporaries(), 0);
    assert_int_equal(unlink(path_of(".table.new")), 0);
    expect("last", "1");
}

static void write_in(const struct staging *staging, const char *name, const char *text)
{
    char path[4500];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", staging->path, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* A hidden folder of files: they are put in place one by one, or all removed. The next run removes the folder of a dead
 * run. */
static void test_staging(void **state)
{
    struct error err = {0};
    struct staging staging, other;
    int dead;

    (void)state;
    assert_int_equal(staging_open(&staging, dir, "one", &err), 0);
    write_in(&staging, "one.tsv", "a");
    write_in(&staging, "one.gp", "b");
    assert_false(staging_same(&staging, "one.tsv"));
    assert_int_equal(staging_lock(&staging, &err), 0);
    assert_int_equal(staging_put(&staging, "one.tsv", &err), 0);
    assert_int_equal(staging_put(&staging, "none", &err), 0);
    staging_release(&staging);
    expect("one.tsv", "a");
    expect("one.gp", NULL);
    assert_int_equal(temporaries(), 0);

    assert_int_equal(staging_open(&staging, dir, "one", &err), 0);
    write_in(&staging, "one.tsv", "a");
    assert_true(staging_same(&staging, "one.tsv"));
    assert_int_equal(staging_open(&other, dir, "one", &err), 0);         /* of somebody who lives: it stays */
    staging_release(&other);
    assert_int_equal(temporaries(), 1);
    assert_int_equal(staging_put(&staging, "one.gp", &err), 0);
    dead = staging.hidden;
    close(dead);                                                         /* as a killed process leaves it */
    assert_int_equal(staging_open(&other, dir, "one", &err), 0);
    assert_int_equal(temporaries(), 1);
    assert_int_equal(staging_put(&other, "one.tsv", &err), 0);           /* none was made: the older one goes */
    expect("one.tsv", NULL);
    staging_release(&other);
    close(staging.place);
    assert_int_equal(temporaries(), 0);
    assert_int_equal(staging_open(&staging, path_of("nowhere"), "one", &err), -1);
    error_release(&err);
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
        cmocka_unit_test(test_one_file), cmocka_unit_test(test_left_behind),
        cmocka_unit_test(test_staging),
    };

    return cmocka_run_group_tests_name("folder", tests, make, clear);
}
