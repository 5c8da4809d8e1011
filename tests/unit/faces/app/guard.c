/* Who is let in, by heads alone; tests/app.py asks a server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "app/guard.h"

#include <stdio.h>
#include <string.h>

static struct guard guard;
static char cookie[128];

static struct http_head get(const char *path)
{
    return (struct http_head){.method = "GET", .path = path, .host = "127.0.0.1:8000", .cookie = cookie};
}

static struct http_head post(const char *path)
{
    return (struct http_head){.method = "POST", .path = path, .host = "127.0.0.1:8000", .cookie = cookie,
                              .origin = "http://127.0.0.1:8000", .site = "same-origin", .type = "application/json",
                              .length = "2"};
}

static int setup(void **state)
{
    struct error err = {0};
    char name[GUARD_NAME];

    (void)state;
    assert_int_equal(guard_init(&guard, 8000, &err), 0);
    guard_name(&guard, name);
    snprintf(cookie, sizeof cookie, "a=b; %s=%s; c=d", name, guard.cookie);
    return 0;
}

static void secrets(void **state)
{
    struct guard other;
    struct error err = {0};

    (void)state;
    assert_int_equal(guard_init(&other, 8000, &err), 0);
    assert_int_equal(strlen(guard.token), 64);
    assert_int_equal(strlen(guard.cookie), 64);
    assert_string_not_equal(guard.token, guard.cookie);
    assert_string_not_equal(guard.token, other.token);
    assert_string_not_equal(guard.cookie, other.cookie);
}

static void token_opens_once(void **state)
{
    struct http_head head = get("/");
    char token[GUARD_SECRET];

    (void)state;
    head.cookie = NULL;
    assert_int_equal(guard_check(&guard, &head, 0).status, 403);
    memcpy(token, guard.token, sizeof token);
    head.token = token;
    token[63] = token[63] == '0' ? '1' : '0';
    assert_int_equal(guard_check(&guard, &head, 0).verdict, GUARD_REFUSED);
    memcpy(token, guard.token, sizeof token);
    token[32] = '\0';                /* its beginning is not enough */
    assert_int_equal(guard_check(&guard, &head, 0).verdict, GUARD_REFUSED);
    memcpy(token, guard.token, sizeof token);
    head.path = "/compute/1";
    assert_int_equal(guard_check(&guard, &head, 0).status, 404);
    head.path = "/";
    assert_int_equal(guard_check(&guard, &head, 0).verdict, GUARD_ENTER);
    assert_int_equal(guard_check(&guard, &head, 0).status, 403);
    head.token = "";                 /* as the one that was used now is */
    assert_int_equal(guard_check(&guard, &head, 0).status, 403);
}

static void token_in_another_page(void **state)
{
    struct http_head head = get("/");
    char token[GUARD_SECRET];

    (void)state;
    memcpy(token, guard.token, sizeof token);
    head.token = token;
    head.site = "cross-site";
    assert_int_equal(guard_check(&guard, &head, 0).verdict, GUARD_ENTER_BY_PAGE);
    head.token = NULL;
    assert_int_equal(guard_check(&guard, &head, 0).status, 403);
}

static void page_and_questions(void **state)
{
    struct http_head head = get("/");
    struct guarded found;

    (void)state;
    assert_int_equal(guard_check(&guard, &head, 0).verdict, GUARD_PAGE);
    head.site = "none";
    assert_int_equal(guard_check(&guard, &head, 0).verdict, GUARD_PAGE);
    head = post("/compute/a-1");
    found = guard_check(&guard, &head, 0);
    assert_int_equal(found.verdict, GUARD_COMPUTE);
    assert_string_equal(found.id, "a-1");
    head.type = "application/json; charset=utf-8";
    assert_int_equal(guard_check(&guard, &head, 0).verdict, GUARD_COMPUTE);
    head.site = NULL;                /* a browser that does not say it */
    assert_int_equal(guard_check(&guard, &head, 0).verdict, GUARD_COMPUTE);
    head = post("/cancel/1");
    assert_int_equal(guard_check(&guard, &head, 0).verdict, GUARD_CANCEL);
    cookie[5] = '\0';
    assert_int_equal(guard_check(&guard, &head, 0).status, 403);
}

static void lengths(void **state)
{
    static const struct { const char *length; int status; } cases[] = {
        {"0", 0}, {"1048576", 0}, {"1048577", 413}, {"18446744073709551617", 413}, {NULL, 411}, {"", 411}, {"-1", 411},
        {"0x10", 411}, {"1 ", 411},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct http_head head = post("/compute/1");

        head.length = cases[i].length;
        assert_int_equal(guard_check(&guard, &head, 0).status, cases[i].status);
    }
}

static void is_idle_after_half_an_hour(void **state)
{
    struct http_head head = get("/");

    (void)state;
    guard.asked = 100;
    assert_false(guard_idle(&guard, 100 + GUARD_IDLE));
    assert_true(guard_idle(&guard, 101 + GUARD_IDLE));
    guard_check(&guard, &head, 5000);
    assert_false(guard_idle(&guard, 5000 + 1800));
    head.cookie = NULL;              /* who is refused keeps nothing awake */
    guard_check(&guard, &head, 6000);
    assert_true(guard_idle(&guard, 5000 + 1801));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(secrets, setup), cmocka_unit_test_setup(token_opens_once, setup),
        cmocka_unit_test_setup(token_in_another_page, setup), cmocka_unit_test_setup(page_and_questions, setup),
        cmocka_unit_test_setup(lengths, setup), cmocka_unit_test_setup(is_idle_after_half_an_hour, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
