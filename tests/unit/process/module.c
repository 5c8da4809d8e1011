#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/replay.h"
#include "process/module.h"

#include <string.h>

/* Loaded once: the second time it is the same. */
static void test_found(void **state)
{
    struct error err = {0};
    const void *first;

    (void)state;
    replay_prepare(ENGINE_SIMGRID);
    first = module_open("simgrid", "it", &err);
    assert_non_null(first);
    assert_ptr_equal(module_open("simgrid", "it", &err), first);
    assert_int_equal(err.count, 0);
}

/* The message names who needs it and every place that was looked at. */
static void test_missing(void **state)
{
    struct error err = {0};

    (void)state;
    assert_null(module_open("nothing", "the test", &err));
    assert_int_equal(err.count, 1);
    assert_int_equal(error_exit_code(&err), EXIT_NO_TOOL);
    assert_non_null(strstr(err.messages[0].text, "the test needs a module that is not installed"));
    assert_non_null(strstr(err.messages[0].text, "/tests/dtsim-nothing.so"));
    assert_non_null(strstr(err.messages[0].text, "/dtsim/dtsim-nothing.so"));
    error_release(&err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_found), cmocka_unit_test(test_missing)};

    return cmocka_run_group_tests_name("module", tests, NULL, NULL);
}
