#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/replay.h"
#include "process/module.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/digest.h"

/* Loaded once: the second time it is the same. */
static void test_found(void **state)
{
    struct error err = {0};
    const void *first;

    (void)state;
    replay_prepare(ENGINE_SIMGRID);
    first = module_open("simgrid", MODULE_OWN_FIRST, "it", &err);
    assert_non_null(first);
    assert_ptr_equal(module_open("simgrid", MODULE_OWN_FIRST, "it", &err), first);
    assert_int_equal(err.count, 0);
}

/* The message names who needs it and every place that was looked at. */
static void test_missing(void **state)
{
    struct error err = {0};

    (void)state;
    assert_null(module_open("nothing", MODULE_OWN_FIRST, "the test", &err));
    assert_int_equal(err.count, 1);
    assert_int_equal(error_exit_code(&err), EXIT_NO_TOOL);
    assert_non_null(strstr(err.messages[0].text, "the test needs a module that is not installed"));
    assert_non_null(strstr(err.messages[0].text, "/tests/dtsim-nothing.so"));
    assert_non_null(strstr(err.messages[0].text, "/dtsim/dtsim-nothing.so"));
    error_release(&err);
}

/* A module of other sources: the same file with another digest in it. */
static void test_other_build(void **state)
{
    char own[4096], path[4200], *text, *digest;
    ssize_t folder = readlink("/proc/self/exe", own, sizeof own - 1);
    struct error err = {0};
    size_t length;
    FILE *file;

    (void)state;
    while (folder > 0 && own[folder - 1] != '/')
        folder--;
    own[folder] = '\0';
    snprintf(path, sizeof path, "%sdtsim-simgrid.so", own);
    text = file_read(path, "module", 64 << 20, (struct loc){0}, &length, &err);
    assert_non_null(text);
    digest = memmem(text, length, sources_digest, strlen(sources_digest));
    assert_non_null(digest);
    digest[0] = digest[0] == '0' ? '1' : '0';
    snprintf(path, sizeof path, "%sdtsim-stale.so", own);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    assert_null(module_open("stale", MODULE_OWN_FIRST, "the test", &err));
    unlink(path);
    assert_int_equal(error_exit_code(&err), EXIT_NO_TOOL);
    assert_non_null(strstr(err.messages[0].text, "the test needs a module of the same build as this program: "));
    error_release(&err);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_other_build),
    };

    return cmocka_run_group_tests_name("module", tests, NULL, NULL);
}
