/* digest: a known answer, and that every byte counts, however the content is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "files/digest.h"

static const char *of(const char *text, size_t times, char hex[DIGEST_HEX])
{
    struct digest digest;

    digest_init(&digest);
    for (size_t i = 0; i < times; i++)
        digest_add(&digest, text, strlen(text));
    return digest_end(&digest, hex);
}

/* The sanity checks of xxHash: XXH3 with 128 bits of nothing, without a seed. */
static void test_known(void **state)
{
    char hex[DIGEST_HEX];

    (void)state;
    assert_string_equal(of("", 1, hex), "99aa06d3014798d86001c324468d497f");
}

static void test_parts(void **state)
{
    char whole[DIGEST_HEX], other[DIGEST_HEX];
    FILE *file = tmpfile();
    struct digest digest;

    (void)state;
    of("aaaaaaaaaa", 100000, whole);
    assert_string_equal(of("aaaaa", 200000, other), whole);
    assert_string_not_equal(of("aaaaaaaaaa", 99999, other), whole);
    assert_string_not_equal(of("aaaaaaaaab", 100000, other), whole);
    assert_non_null(file);
    for (int i = 0; i < 100000; i++)
        fputs("aaaaaaaaaa", file);
    fflush(file);
    digest_init(&digest);
    assert_int_equal(digest_add_file(&digest, fileno(file)), 0);
    assert_string_equal(digest_end(&digest, other), whole);
    fclose(file);
    digest_init(&digest);
    assert_int_equal(digest_add_file(&digest, -1), -1);
    digest_end(&digest, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_parts),
    };

    return cmocka_run_group_tests_name("digest", tests, NULL, NULL);
}
