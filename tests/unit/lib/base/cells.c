/* cells: lines are the same as printf's, whatever their number and whatever was written before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/cells.h"
#include "base/random.h"

#include <limits.h>
#include <math.h>

/* Few values, so that each comes several times; among them 0 with both signs and values that differ in one bit. */
static double number(uint64_t i)
{
    static const double special[] = {0, -0.0, INFINITY, -INFINITY, 1e300, 5e-324, 0.1, 0.1 + 1e-17};
    double share = random_share(7, i);

    return share < 0.3 ? special[(size_t)(share / 0.3 * COUNT(special))] : floor(2000 * random_share(8, i)) / 7;
}

static void test_as_printf(void **state)
{
    static const char *const words[] = {"", "x", "send-next.12", "backward"};
    static const long long integers[] = {0, -1, 7, 123456789012, LLONG_MAX, LLONG_MIN};
    char *text = NULL, *expected = NULL;
    size_t length, expected_length;
    FILE *out = open_memstream(&text, &length), *other = open_memstream(&expected, &expected_length);
    struct cells cells = {.out = out};

    (void)state;
    for (uint64_t i = 0; i < 50000; i++) {
        const char *word = words[(size_t)(random_share(1, i) * COUNT(words))];
        long long integer = integers[(size_t)(random_share(2, i) * COUNT(integers))];
        char digits[DECIMAL_SIZE];

        cells_text(&cells, word);
        fputs(word, other);
        for (int k = 0; k < (int)(random_share(3, i) * 20); k++) {
            cells_number(&cells, number(20 * i + (uint64_t)k));
            fprintf(other, "\t%s", decimal_text(number(20 * i + (uint64_t)k), digits));
        }
        cells_integer(&cells, integer);
        fprintf(other, "\t%lld\n", integer);
        cells_end_line(&cells);
    }
    cells_flush(&cells);
    fclose(out);
    fclose(other);
    assert_int_equal(length, expected_length);
    assert_memory_equal(text, expected, length);
    free(text);
    free(expected);
}

/* Lines that end where the memory for them does. */
static void test_long_lines(void **state)
{
    char word[1000], *text = NULL;
    size_t length, at = 0;
    FILE *out = open_memstream(&text, &length);
    struct cells cells = {.out = out};

    (void)state;
    memset(word, 'w', sizeof word);
    for (size_t i = 0; i < sizeof word; i++) {
        word[i] = '\0';
        cells_text(&cells, word);
        cells_end_line(&cells);
        word[i] = 'w';
    }
    cells_flush(&cells);
    fclose(out);
    for (size_t i = 0; i < sizeof word; i++) {
        assert_int_equal(strspn(text + at, "w"), i);
        at += i;
        assert_int_equal(text[at++], '\n');
    }
    assert_int_equal(at, length);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_printf),
        cmocka_unit_test(test_long_lines),
    };

    return cmocka_run_group_tests_name("cells", tests, NULL, NULL);
}
