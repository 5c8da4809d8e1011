/* digest and random: known answers, and what random numbers promise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/digest.h"
#include "base/random.h"

static void is(const char *text, size_t times, const char *expected)
{
    struct digest digest;
    char hex[DIGEST_HEX];

    digest_init(&digest);
    for (size_t i = 0; i < times; i++)
        digest_add(&digest, text, strlen(text));
    assert_string_equal(digest_end(&digest, hex), expected);
}

/* The examples of FIPS 180-2, appendix B, and the empty message. */
static void test_known(void **state)
{
    (void)state;
    is("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    is("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    is("aaaaaaaaaa", 100000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Every number is hit once; another seed gives another order. */
static void test_permuted(void **state)
{
    static const uint64_t counts[] = {1, 2, 3, 4, 5, 64, 65, 1000};

    (void)state;
    for (size_t c = 0; c < COUNT(counts); c++) {
        bool *hit = xcalloc(counts[c], sizeof *hit);

        for (uint64_t i = 0; i < counts[c]; i++) {
            uint64_t to = random_permuted(5, i, counts[c]);

            assert_true(to < counts[c] && !hit[to]);
            hit[to] = true;
        }
        free(hit);
    }
    assert_int_not_equal(random_permuted(1, 0, 1000), random_permuted(2, 0, 1000));
    assert_true(random_permuted(1, 77, 1ull << 62) < 1ull << 62);
}

/* The mean of many shares is near a half, and all lie in [0, 1). */
static void test_share(void **state)
{
    double sum = 0;

    (void)state;
    for (uint64_t i = 0; i < 10000; i++) {
        double share = random_share(9, i);

        assert_true(share >= 0 && share < 1);
        sum += share;
    }
    assert_true(sum > 4900 && sum < 5100);
    assert_true(random_share(9, 3) == random_share(9, 3) && random_share(9, 3) != random_share(8, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_permuted),
        cmocka_unit_test(test_share),
    };

    return cmocka_run_group_tests_name("digest", tests, NULL, NULL);
}
