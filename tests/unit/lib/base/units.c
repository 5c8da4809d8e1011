/* units: which texts are read, which are refused and with which message, and that every written text reads back bit for
 * bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/random.h"
#include "base/units.h"
#include "text.h"

#define UNITS ((enum unit)(UNIT_SAMPLE_RATE + 1))

static double parsed(enum unit unit, const char *text)
{
    double value = NAN;
    char why[256] = "";

    if (unit_parse(unit, text, &value, why, sizeof why))
        fail_msg("'%s' is refused: %s", text, why);
    return value;
}

static void test_parse(void **state)
{
    static const struct {
        enum unit unit;
        const char *text;
        double value;
    } cases[] = {
        {UNIT_NUMBER, "0.85", 0.85}, {UNIT_NUMBER, "2", 2}, {UNIT_NUMBER, "1e-3", 1e-3}, {UNIT_NUMBER, "-1.5E+2", -150},
        {UNIT_NUMBER, ".5", 0.5}, {UNIT_NUMBER, "3.", 3}, {UNIT_NUMBER, "+7", 7}, {UNIT_NUMBER, "-0", 0},
        {UNIT_COUNT, "124.4 M", 124.4e6}, {UNIT_COUNT, "38 k", 38e3}, {UNIT_COUNT, "38K", 38e3},
        {UNIT_COUNT, "1.5 B", 1.5e9}, {UNIT_COUNT, "2G", 2e9}, {UNIT_COUNT, "1 T", 1e12}, {UNIT_COUNT, "1536", 1536},
        {UNIT_TIME, "1.5 us", 1.5e-6}, {UNIT_TIME, "1.5 \u00b5s", 1.5e-6}, {UNIT_TIME, "1.5\u03bcs", 1.5e-6},
        {UNIT_TIME, "3 ns", 3e-9}, {UNIT_TIME, "3ms", 3e-3}, {UNIT_TIME, "2 s", 2}, {UNIT_TIME, "5 min", 300},
        {UNIT_TIME, "2 h", 7200}, {UNIT_TIME, "0.5 d", 43200}, {UNIT_TIME, "1e3 ms", 1}, {UNIT_TIME, "0", 0},
        {UNIT_BYTES, "80 GiB", 85899345920}, {UNIT_BYTES, "25 MB", 25e6}, {UNIT_BYTES, "25MB", 25e6},
        {UNIT_BYTES, "1 kB", 1000}, {UNIT_BYTES, "1 KB", 1000}, {UNIT_BYTES, "1 KiB", 1024}, {UNIT_BYTES, "3 B", 3},
        {UNIT_BYTES, "1 TB", 1e12}, {UNIT_BYTES, "1 PB", 1e15}, {UNIT_BYTES, "1 MiB", 1048576},
        {UNIT_BYTES, "1 TiB", 1099511627776}, {UNIT_BYTES, "1 PiB", 1125899906842624}, {UNIT_BYTES, "0", 0},
        {UNIT_BYTES, "0 B", 0}, {UNIT_BYTES, "0.0", 0},
        {UNIT_BANDWIDTH, "300 GB/s", 300e9}, {UNIT_BANDWIDTH, "400 Gb/s", 50e9}, {UNIT_BANDWIDTH, "400 Gbit/s", 50e9},
        {UNIT_BANDWIDTH, "400Gbps", 50e9}, {UNIT_BANDWIDTH, "24 GiB/s", 25769803776}, {UNIT_BANDWIDTH, "8 b/s", 1},
        {UNIT_FLOP, "3.9 GFLOP", 3.9e9}, {UNIT_FLOP, "2 EFLOP", 2e18}, {UNIT_FLOP, "1 FLOP", 1},
        {UNIT_FLOP, "1 PFLOP", 1e15},
        {UNIT_FLOP_RATE, "312 TFLOP/s", 312e12}, {UNIT_FLOP_RATE, "312 TFLOPS", 312e12},
        {UNIT_FLOP_RATE, "1 EFLOP/s", 1e18},
        {UNIT_POWER, "400 W", 400}, {UNIT_POWER, "1.2 kW", 1200}, {UNIT_POWER, "3 MW", 3e6}, {UNIT_POWER, "5 mW", 5e-3},
        {UNIT_PRICE, "2.50 $/h", 2.5}, {UNIT_PRICE, "3 USD/h", 3}, {UNIT_PRICE, "0", 0},
        {UNIT_SAMPLE_RATE, "500 samples/s", 500}, {UNIT_SAMPLE_RATE, "10 k samples/s", 1e4},
        {UNIT_SAMPLE_RATE, "10k samples/s", 1e4}, {UNIT_SAMPLE_RATE, "1.5 M samples/s", 1.5e6},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        double value = parsed(cases[i].unit, cases[i].text);

        if (value != cases[i].value || signbit(value) != signbit(cases[i].value))
            fail_msg("'%s' is read as %.17g, not %.17g", cases[i].text, value, cases[i].value);
    }
}

static void test_refuse(void **state)
{
    static const struct {
        enum unit unit;
        const char *text, *why;
    } cases[] = {
        {UNIT_BANDWIDTH, "300", "'300' has no unit; expected a bandwidth such as '300 GB/s' or '400 Gb/s'"},
        {UNIT_BYTES, "80", "'80' has no unit; expected bytes such as '80 GiB' or '25 MB'"},
        {UNIT_BYTES, "80 Gb", "'80 Gb' is in bits (b means bits, B means bytes); expected bytes such as '80 GiB' or "
                              "'25 MB'"},
        {UNIT_BYTES, "1 Mbit", "'1 Mbit' is in bits (b means bits, B means bytes); expected bytes such as '80 GiB' or "
                               "'25 MB'"},
        {UNIT_BYTES, "3 GB/s", "'3 GB/s' has the unit 'GB/s'; expected bytes such as '80 GiB' or '25 MB'"},
        {UNIT_BYTES, "3 gb", "'3 gb' has the unit 'gb'; expected bytes such as '80 GiB' or '25 MB'"},
        {UNIT_BYTES, "1_000 B", "'1_000 B' is not a number; expected bytes such as '80 GiB' or '25 MB'"},
        {UNIT_BYTES, "1 2 B", "'1 2 B' is not a number; expected bytes such as '80 GiB' or '25 MB'"},
        {UNIT_TIME, "3 sec", "'3 sec' has the unit 'sec'; expected a time such as '1.5 us' or '2 h'"},
        {UNIT_TIME, "", "'' is not a number; expected a time such as '1.5 us' or '2 h'"},
        {UNIT_TIME, ".nan", "'.nan' is not a number; expected a time such as '1.5 us' or '2 h'"},
        {UNIT_TIME, "inf", "'inf' is not a number; expected a time such as '1.5 us' or '2 h'"},
        {UNIT_TIME, "s", "'s' is not a number; expected a time such as '1.5 us' or '2 h'"},
        {UNIT_TIME, "1.5.2 s", "'1.5.2 s' is not a number; expected a time such as '1.5 us' or '2 h'"},
        {UNIT_NUMBER, "0x10", "'0x10' is not a number; expected a number such as '0.85'"},
        {UNIT_NUMBER, "1_000", "'1_000' is not a number; expected a number such as '0.85'"},
        {UNIT_NUMBER, ".", "'.' is not a number; expected a number such as '0.85'"},
        {UNIT_NUMBER, "-", "'-' is not a number; expected a number such as '0.85'"},
        {UNIT_NUMBER, " 1", "' 1' is not a number; expected a number such as '0.85'"},
        {UNIT_NUMBER, "1 ", "'1 ' is not a number; expected a number such as '0.85'"},
        {UNIT_NUMBER, "3 us", "'3 us' has 'us' behind the number; expected a number such as '0.85'"},
        {UNIT_NUMBER, "1e999", "'1e999' is too large"},
        {UNIT_NUMBER, "1e99999999999999999999", "'1e99999999999999999999' is too large"},
        {UNIT_NUMBER, "1e-999", "'1e-999' is too small"},
        {UNIT_COUNT, "3 x", "'3 x' has the unit 'x'; expected a count such as '1536' or '124.4 M'"},
        {UNIT_FLOP, "3 TFLOP/s", "'3 TFLOP/s' has the unit 'TFLOP/s'; expected floating-point operations such as "
                                 "'3.9 GFLOP'"},
        {UNIT_FLOP_RATE, "3 TFLOP", "'3 TFLOP' has the unit 'TFLOP'; expected a rate such as '312 TFLOP/s'"},
        {UNIT_POWER, "3 kJ", "'3 kJ' has the unit 'kJ'; expected a power such as '400 W' or '1.2 kW'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char why[256] = "";
        double value = 42;

        if (unit_parse(cases[i].unit, cases[i].text, &value, why, sizeof why) == 0)
            fail_msg("'%s' is not refused", cases[i].text);
        assert_string_equal(why, cases[i].why);
        assert_true(value == 42);
    }
}

static void test_why_is_cut_to_its_size(void **state)
{
    char why[12], text[5000];
    double value;

    (void)state;
    memset(text, '7', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(unit_parse(UNIT_BYTES, text, &value, why, sizeof why), -1);
    assert_true(strlen(why) < sizeof why);
}

static void test_format(void **state)
{
    static const struct {
        enum unit unit;
        double value;
        const char *text, *brief;
    } cases[] = {
        {UNIT_BYTES, 85899345920, "80 GiB", "80 GiB"}, {UNIT_BYTES, 25e6, "25 MB", "23.84 MiB"},
        {UNIT_BYTES, 1, "1 B", "1 B"}, {UNIT_BYTES, 0, "0 B", "0 B"}, {UNIT_BYTES, 1000, "1 kB", "1000 B"},
        {UNIT_BYTES, 12345, "12345 B", "12.06 KiB"},
        {UNIT_BANDWIDTH, 300e9, "300 GB/s", "300 GB/s"}, {UNIT_BANDWIDTH, 50e9, "50 GB/s", "50 GB/s"},
        {UNIT_TIME, 1.5e-6, "1.5 us", "1.5 us"}, {UNIT_TIME, 1.2345678e-3, "1.2345678 ms", "1.235 ms"},
        {UNIT_TIME, 7200, "2 h", "2 h"}, {UNIT_TIME, 90, "90 s", "90 s"}, {UNIT_TIME, 0.5, "500 ms", "500 ms"},
        {UNIT_TIME, 0, "0 s", "0 s"}, {UNIT_TIME, 0.99999, "999.99 ms", "1 s"},
        {UNIT_TIME, 1e-12, "0.001 ns", "0.001 ns"},
        {UNIT_TIME, 259200, "3 d", "3 d"},
        {UNIT_COUNT, 124.4e6, "124.4 M", "124.4 M"}, {UNIT_COUNT, 1.5e9, "1.5 B", "1.5 B"},
        {UNIT_COUNT, 1536, "1536", "1536"}, {UNIT_COUNT, 0, "0", "0"},
        {UNIT_NUMBER, 0.1, "0.1", "0.1"}, {UNIT_NUMBER, 1e-9, "1e-9", "1e-09"}, {UNIT_NUMBER, -2.5, "-2.5", "-2.5"},
        {UNIT_NUMBER, 1e300, "1e300", "1e+300"}, {UNIT_NUMBER, 1.25e22, "1.25e22", "1.25e+22"},
        {UNIT_FLOP_RATE, 312e12, "312 TFLOP/s", "312 TFLOP/s"}, {UNIT_FLOP, 2e18, "2 EFLOP", "2 EFLOP"},
        {UNIT_POWER, 1200, "1.2 kW", "1.2 kW"}, {UNIT_TIME, INFINITY, "inf", "inf s"},
    };
    char text[48], brief[48];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_string_equal(unit_format(cases[i].unit, cases[i].value, text, sizeof text), cases[i].text);
        assert_string_equal(unit_format_short(cases[i].unit, cases[i].value, brief, sizeof brief), cases[i].brief);
    }
}

static double uniform(uint64_t *seed)
{
    return (double)(next(seed) >> 11) * 0x1p-53;
}

static void round_trip(enum unit unit, double value)
{
    char text[48];
    double back;

    unit_format(unit, value, text, sizeof text);
    back = parsed(unit, text);
    if (memcmp(&back, &value, sizeof back) != 0)
        fail_msg("%.17g is written as '%s' and read as %.17g", value, text, back);
}

/* Doubles of every size with all their digits, short decimals, and multiples of the binary prefixes. */
static void test_every_double_reads_back(void **state)
{
    uint64_t seed = 1;

    (void)state;
    for (enum unit unit = 0; unit < UNITS; unit++)
        for (int i = 0; i < 100000; i++) {
            double value = pow(10, 36 * uniform(&seed) - 18);

            if (i % 4 == 1)
                value = (double)(next(&seed) % 100000) * pow(10, (double)(next(&seed) % 30) - 18);
            if (i % 4 == 2)
                value = ldexp((double)(next(&seed) % 10000), (int)(next(&seed) % 50));
            if (i % 4 == 3)
                value = (double)(next(&seed) % 1000) * (i % 8 == 3 ? 3600 : 86400);
            round_trip(unit, value);
            if (value != 0)
                round_trip(unit, -value);
        }
}

static void test_extreme_doubles_read_back(void **state)
{
    (void)state;
    for (enum unit unit = 0; unit < UNITS; unit++) {
        round_trip(unit, 1.7976931348623157e308);
        round_trip(unit, 2.2250738585072014e-308);
        round_trip(unit, 5e-324);
        round_trip(unit, 9007199254740993.0);
    }
}

/* The schema's pattern and the parser must agree, on text made of what numbers and units are made of. */
static void test_the_pattern_accepts_what_is_parsed(void **state)
{
    static const char *const parts[] = {
        "0", "1", "25", ".", "-", "+", "e", "e-3", "E+2", " ", "k", "K", "M", "G", "T", "P", "E", "i", "B", "b", "/s",
        "bit", "ps", "s", "m", "u", "n", "\u00b5", "min", "h", "d", "FLOP", "S", "W", "_", "x",
    };
    uint64_t seed = 2;

    (void)state;
    for (enum unit unit = 0; unit < UNITS; unit++) {
        regex_t regex;
        int accepted = 0;

        assert_int_equal(regcomp(&regex, unit_pattern(unit), REG_EXTENDED | REG_NOSUB), 0);
        for (int i = 0; i < 60000; i++) {
            char text[128] = "", why[256];
            double value;
            int count = (int)(next(&seed) % 6) + 1;
            bool parses, matches;

            for (int j = 0; j < count; j++)
                strcat(text, parts[next(&seed) % (j < 2 ? 10 : COUNT(parts))]);
            parses = unit_parse(unit, text, &value, why, sizeof why) == 0 || strstr(why, "' is too ");
            matches = regexec(&regex, text, 0, NULL, 0) == 0;
            accepted += parses;
            if (parses != matches)
                fail_msg("unit %u: '%s' %s, but the pattern %s it", unit, text, parses ? "is read" : why,
                         matches ? "accepts" : "refuses");
        }
        assert_true(accepted > 100);    /* or the comparison would say nothing */
        regfree(&regex);
    }
}

/* A column has the prefix of one of its values. */
static void test_like(void **state)
{
    char text[48];

    (void)state;
    assert_string_equal(unit_format_like(UNIT_TIME, 2e-3, 0.5, text, sizeof text), "500 ms");
    assert_string_equal(unit_format_like(UNIT_TIME, 2, 0.5e-3, text, sizeof text), "0.0005 s");
    assert_string_equal(unit_format_like(UNIT_TIME, 2e-3, 1234.5678, text, sizeof text), "1234568 ms");
    assert_string_equal(unit_format_like(UNIT_BYTES, 0x1p30, 0, text, sizeof text), "0 GiB");
    assert_string_equal(unit_format_like(UNIT_BYTES, 0, 0, text, sizeof text), "0 B");
}

/* What is read is the double nearest to the decimal number, as strtod has it, whatever the number of digits and the prefix. */
static void test_nearest_double(void **state)
{
    static const struct { const char *suffix; int exp10; enum unit unit; } units[] = {
        {"", 0, UNIT_NUMBER}, {" ns", -9, UNIT_TIME}, {" us", -6, UNIT_TIME}, {" ms", -3, UNIT_TIME}, {" s", 0, UNIT_TIME},
        {" GB/s", 9, UNIT_BANDWIDTH}, {"TFLOP/s", 12, UNIT_FLOP_RATE}, {" PB", 15, UNIT_BYTES}, {" EFLOP", 18, UNIT_FLOP},
    };
    uint64_t index = 0;

    (void)state;
    for (int trial = 0; trial < 40000; trial++) {
        size_t u = random_bits(1, index++) % COUNT(units);
        int digits = 1 + (int)(random_bits(1, index++) % 19), point = (int)(random_bits(1, index++) % (uint64_t)(digits + 1));
        int exponent = (int)(random_bits(1, index++) % 61) - 30;
        char number[64], text[96], same[96];
        size_t length = 0;

        if (random_bits(1, index++) % 4 == 0)
            number[length++] = '-';
        for (int d = 0; d < digits; d++) {
            if (d == point)
                number[length++] = '.';
            number[length++] = (char)('0' + random_bits(1, index++) % 10);
        }
        number[length] = '\0';
        snprintf(text, sizeof text, "%se%d%s", number, exponent, units[u].suffix);
        snprintf(same, sizeof same, "%se%d", number, exponent + units[u].exp10);
        assert_true(parsed(units[u].unit, text) == strtod(same, NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_refuse),
        cmocka_unit_test(test_why_is_cut_to_its_size),
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_every_double_reads_back),
        cmocka_unit_test(test_extreme_doubles_read_back),
        cmocka_unit_test(test_the_pattern_accepts_what_is_parsed), cmocka_unit_test(test_like),
        cmocka_unit_test(test_nearest_double),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
