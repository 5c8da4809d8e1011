#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "process/child.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void count_up(void *context)
{
    ++*(int *)context;
}

static void leave_early(void *context)
{
    count_up(context);
    child_done();
}

static void say_and_abort(void *context)
{
    (void)context;
    fprintf(stderr, "first\nlast words\n");
    signal(SIGABRT, SIG_DFL);
    abort();
}

static void call_exit(void *context)
{
    exit(*(int *)context);
}

static void test_success(void **state)
{
    int *shared = child_share(sizeof *shared);
    struct error err = {0};

    (void)state;
    assert_non_null(shared);
    assert_int_equal(child_run(count_up, shared, "it", &err), 0);
    assert_int_equal(child_run(leave_early, shared, "it", &err), 0);
    assert_int_equal(*shared, 2);
    assert_int_equal(err.count, 0);
    child_unshare(shared, sizeof *shared);
}

/* Waits for ever, unless it is told not to wait. */
static void wait_for_ever(void *context)
{
    int *shared = context;

    for (*shared = 1; *shared < 3;)
        usleep(1000);
}

/* The second time: it has been called while the child ran. */
static bool stop_soon(void *context)
{
    int *shared = context;

    return *shared == 2 || (*shared == 1 && (*shared = 2) != 2);
}

static bool never(void *context)
{
    *(int *)context = 3;
    return false;
}

static void test_until(void **state)
{
    int *shared = child_share(sizeof *shared);
    struct error err = {0};

    (void)state;
    assert_int_equal(child_run_until(wait_for_ever, stop_soon, shared, "it", &err), -1);
    assert_int_equal(err.count, 0);
    assert_int_equal(child_run_until(wait_for_ever, never, shared, "it", &err), 0);
    assert_int_equal(child_run_until(count_up, stop_soon, shared, "it", &err), 0);
    assert_int_equal(*shared, 4);
    assert_int_equal(child_run_until(say_and_abort, never, shared, "it", &err), -1);
    assert_int_equal(err.count, 1);
    error_release(&err);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);       /* no child is left */
    child_unshare(shared, sizeof *shared);
}

static void expect_failure(void (*body)(void *), void *context, const char *message)
{
    struct error err = {0};

    assert_int_equal(child_run(body, context, "it", &err), -1);
    assert_int_equal(err.count, 1);
    assert_int_equal(err.messages[0].code, EXIT_UNEXPECTED);
    assert_string_equal(err.messages[0].text, message);
    error_release(&err);
}

static void test_failures(void **state)
{
    int three = 3, zero = 0;

    (void)state;
    expect_failure(say_and_abort, NULL, "it died of signal 6 (Aborted): first last words");
    expect_failure(call_exit, &three, "it failed with exit status 3: without a word");
    /* Nobody but child_run says that the work is done. */
    expect_failure(call_exit, &zero, "it failed with exit status 1: without a word");
}

enum { EACH = 7 };
struct each { int *shared, failed, heard; };

/* Its square into its place; number 3 dies. */
static void square(void *context, size_t index)
{
    struct each *each = context;

    each->shared[index] = (int)(index * index);
    if (index == 3)
        say_and_abort(NULL);
}

static void hear(void *context, size_t index, const struct error *err)
{
    struct each *each = context;

    each->heard |= 1 << index;
    each->failed += err->count > 0;
    if (err->count > 0) {
        assert_int_equal(index, 3);
        assert_string_equal(err->messages[0].text, "it died of signal 6 (Aborted): first last words");
    }
}

static void test_each(void **state)
{
    (void)state;
    for (size_t jobs = 1; jobs <= 9; jobs += 2) {
        struct each each = {.shared = child_share(EACH * sizeof(int))};

        child_each(square, hear, &each, EACH, jobs, "it");
        for (int i = 0; i < EACH; i++)
            assert_int_equal(each.shared[i], i * i);
        assert_int_equal(each.heard, (1 << EACH) - 1);
        assert_int_equal(each.failed, 1);
        child_unshare(each.shared, EACH * sizeof(int));
    }
}

static void test_buffers_are_written_once(void **state)
{
    FILE *file = tmpfile();
    struct error err = {0};
    int zero = 0;
    char text[64];

    (void)state;
    fputs("once", file);
    child_run(call_exit, &zero, "it", &err);
    child_run(count_up, &zero, "it", &err);
    rewind(file);
    assert_int_equal(fread(text, 1, sizeof text, file), 4);
    fclose(file);
    error_release(&err);
}

static int open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static void test_leaves_nothing_behind(void **state)
{
    int before = open_files(), zero = 0;
    struct error err = {0};

    (void)state;
    for (int i = 0; i < 20; i++)
        child_run(i % 2 ? count_up : call_exit, &zero, "it", &err);
    assert_int_equal(open_files(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    error_release(&err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_success),
        cmocka_unit_test(test_until),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_each),
        cmocka_unit_test(test_buffers_are_written_once),
        cmocka_unit_test(test_leaves_nothing_behind),
    };

    return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}
