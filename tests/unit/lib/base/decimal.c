/* decimal: every double reads back equal, and no shorter text would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/decimal.h"
#include "base/random.h"

#include <math.h>

static void test_known(void **state)
{
    static const struct { double value; const char *text; } known[] = {
        {0, "0"}, {-0.0, "-0"}, {0.1, "0.1"}, {1e22, "1e+22"}, {1e15, "1000000000000000"},
        {123456789012345680.0, "1.2345678901234568e+17"},
        {1e5, "100000"}, {0.00012, "0.00012"}, {0.000012, "1.2e-05"},
        {1e-7, "1e-07"}, {41267713885.46032, "41267713885.46032"}, {5e-324, "5e-324"}, {INFINITY, "inf"}, {NAN, "nan"}, {-NAN, "-nan"},
        {9007199254740993.0, "9007199254740992"}, {0x1p-44, "5.684341886080802e-14"}, {0x1p-24, "5.960464477539063e-08"},
        {-1.7976931348623157e308, "-1.7976931348623157e+308"},
    };
    char text[DECIMAL_SIZE];

    (void)state;
    for (size_t i = 0; i < COUNT(known); i++)
        assert_string_equal(decimal_text(known[i].value, text), known[i].text);
}

/* One digit less is another number, rounded down or up, and no other text of as many digits is nearer. */
static void check(double value)
{
    char text[DECIMAL_SIZE], digits[DECIMAL_SIZE], placed[2 * DECIMAL_SIZE], nearest[2 * DECIMAL_SIZE];
    int point, binary, count;
    unsigned long long less;

    assert_true(strtod(decimal_text(value, text), NULL) == value);
    decimal_digits(value, digits, &point);
    count = (int)strlen(digits);
    snprintf(placed, sizeof placed, "0.%se%d", digits, point);
    assert_true(strtod(placed, NULL) == value && digits[0] != '0' && digits[count - 1] != '0');
    snprintf(nearest, sizeof nearest, "%.*e", count - 1, value);
    if (count > 1)
        memmove(nearest + 1, nearest + 2, strlen(nearest + 1));
    if (frexp(value, &binary) != 0.5)
        assert_int_equal(strncmp(nearest, digits, (size_t)count), 0);
    less = strtoull(digits, NULL, 10) / 10;
    for (int more = 0; more < 2 && count > 1; more++) {
        snprintf(placed, sizeof placed, "%llue%d", less + (unsigned)more, point - count + 1);
        assert_true(strtod(placed, NULL) != value);
    }
}

static void test_shortest(void **state)
{
    (void)state;
    for (int power = -1074; power < 1024; power++) {
        check(ldexp(1, power));              /* whose neighbours are not equally near */
        check(nextafter(ldexp(1, power), power > -1074 ? 0 : 1));
        check(nextafter(ldexp(1, power), INFINITY));
    }
    for (uint64_t i = 0; i < 100000; i++) {
        double share = random_share(1, i);

        check(ldexp(0.5 + share, (int)(random_share(2, i) * (i % 3 ? 2000 : 100)) - (i % 3 ? 1000 : 50)));
        check(round(1000 * share) / 1000 + 1);               /* few digits */
        check(floor(share * 1e17) + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_shortest),
    };

    return cmocka_run_group_tests_name("decimal", tests, NULL, NULL);
}
