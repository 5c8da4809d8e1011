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
        {1e-7, "1e-07"}, {41267713885.46032, "41267713885.46032"}, {5e-324, "5e-324"}, {INFINITY, "inf"},
        {-1.7976931348623157e308, "-1.7976931348623157e+308"},
    };
    char text[DECIMAL_SIZE];

    (void)state;
    for (size_t i = 0; i < COUNT(known); i++)
        assert_string_equal(decimal_text(known[i].value, text), known[i].text);
}

/* One digit less is another number. */
static void test_shortest(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 100000; i++) {
        double value = ldexp(0.5 + random_share(1, i), (int)(random_share(2, i) * 2000) - 1000), back;
        char text[DECIMAL_SIZE], digits[DECIMAL_SIZE], placed[2 * DECIMAL_SIZE], less[2 * DECIMAL_SIZE];
        int point;

        if (i % 2)
            value = round(1000 * random_share(3, i)) / 1000 + 1;       /* few digits */
        assert_true(strtod(decimal_text(value, text), NULL) == value);
        decimal_digits(value, digits, &point);
        snprintf(placed, sizeof placed, "0.%se%d", digits, point);
        back = strtod(placed, NULL);
        assert_true(back == value && digits[0] != '0' && digits[strlen(digits) - 1] != '0');
        snprintf(less, sizeof less, "%.*e", (int)strlen(digits) - 2, value);
        assert_true(strlen(digits) == 1 || strtod(less, NULL) != value);
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
