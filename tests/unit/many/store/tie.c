/* Which rows cannot be told apart, and the ranks that follow. */
#include "store/tie.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The number of a row whose metrics are this JSON. */
static struct tie_number read_number(const char *metrics, const char *key, double number)
{
    json_t *row = json_pack("{s:s, s:s, s:n, s:o}", "software", "nemo", "model", "m", "gpu", "metrics",
                            json_loads(metrics, 0, NULL));
    struct tie_number read = tie_number_of(row, key, number);

    json_decref(row);
    return read;
}

/* Errors are of times, and of all that is work over time; of nothing else. */
static void test_numbers(void **state)
{
    static const char noisy[] = "{\"iteration_time_s\": 2.0, \"iteration_time_s_p10\": 1.9, "
                                "\"iteration_time_s_p90\": 2.3, \"expected_error_share\": 0.03, "
                                "\"expected_ratio_error_share\": 0.02, \"expected_ratio_error_share_p90\": 0.07}";
    static const char plain[] = "{\"iteration_time_s\": 2.0, \"iteration_time_s_p10\": null, "
                                "\"iteration_time_s_p90\": null, \"stated_error_share\": 0.04, \"expected_error_share\": null}";
    struct tie_number number;

    (void)state;
    number = read_number(noisy, "iteration_time_s", 2);
    assert_true(fabs(number.noise - 0.2) < 1e-12 && number.error == 0.03);
    assert_true(number.ratio == 0.02 && number.ratio_most == 0.07);
    number = read_number(noisy, "samples_per_s", 50);
    assert_true(number.number == 50 && fabs(number.noise - 0.2) < 1e-12 && number.error == 0.03);
    number = read_number(noisy, "peak_memory_bytes", 50);
    assert_true(number.noise == 0 && number.error == 0);
    number = read_number(noisy, "breakdown_s.bubble", 50);
    assert_true(number.noise == 0 && number.error == 0);
    number = read_number(plain, "iteration_time_s", 2);
    assert_true(number.noise == 0 && number.error == 0 && number.ratio == 0);    /* the profile's error says nothing */
}

static uint64_t work_of_row(const char *text)
{
    json_t *row = json_loads(text, 0, NULL);
    struct tie_number number = tie_number_of(row, "samples_per_s", 1);

    json_decref(row);
    return number.work;
}

/* Rows are of one work if they have one software, model and GPU, whatever else they say. */
static void test_work(void **state)
{
    static const char *const others[] = {
        "{\"software\": \"b\", \"model\": \"m\", \"gpu\": \"g\"}", "{\"software\": \"a\", \"model\": \"n\", \"gpu\": \"g\"}",
        "{\"software\": \"a\", \"model\": \"m\", \"gpu\": null}", "{\"software\": \"am\", \"model\": \"\", \"gpu\": \"g\"}", "{}",
    };
    uint64_t work = work_of_row("{\"software\": \"a\", \"model\": \"m\", \"gpu\": \"g\"}");

    (void)state;
    assert_true(work == work_of_row("{\"setup\": \"x\", \"gpu\": \"g\", \"model\": \"m\", \"software\": \"a\"}"));
    for (size_t i = 0; i < COUNT(others); i++)
        assert_true(work != work_of_row(others[i]));
}

/* Of one work the error of the ratio counts, and of others both errors of times together. */
static void test_ratio(void **state)
{
    const struct tie_number a = {100, 0, 0.08, 0.05, 0.2, 1}, b = {104, 0, 0.06, 0.03, 0.1, 1};
    struct tie_number other = {109, 0, 0.06, 0.03, 0.1, 2}, far = {111, 0, 0.06, 0.05, 0.1, 2};

    (void)state;
    assert_true(tie_holds(a, a) && tie_holds(a, b) && tie_holds(b, a));
    assert_false(tie_holds(a, (struct tie_number){106, 0, 0.08, 0.05, 0.2, 1}));
    assert_true(tie_holds(a, other) && tie_holds(other, a));             /* hypot(8, 6) = 10 % */
    assert_false(tie_holds(a, far) || tie_holds(far, a));
    other.work = 1;
    assert_false(tie_holds(a, other));
}

static void test_margin(void **state)
{
    const struct tie_number noisy = {.number = 10, .noise = 0.1, .error = 0}, wrong = {.number = 10.9, .noise = 0, .error = 0.02}, exact = {.number = 11.1, .noise = 0, .error = 0};

    (void)state;
    assert_true(tie_holds(noisy, wrong) && tie_holds(wrong, noisy));     /* 0.9 apart, of 1 */
    assert_false(tie_holds(noisy, exact) || tie_holds(exact, noisy));    /* 1.1 */
    assert_true(tie_holds(wrong, exact));                                /* 0.2, of 0.218 */
    assert_true(tie_holds(exact, exact));
    assert_false(tie_holds(exact, (struct tie_number){.number = 11.1 + 1e-9, .noise = 0, .error = 0}));
}

static void assert_ranks(const struct tie_number *numbers, size_t count, bool largest_first, const char *expected)
{
    struct tie_rank ranks[16];
    char all[256] = "", text[32];

    assert_true(count <= 16);
    tie_ranks(numbers, count, largest_first, ranks);
    for (size_t i = 0; i < count; i++)
        sprintf(all + strlen(all), "%s%s", i ? " " : "", tie_text(ranks[i], text, sizeof text));
    assert_string_equal(all, expected);
}

/* A band is what ties with its first: those that merely tie with one another in a chain do not belong to it. The order
 * of rows does not matter. */
static void test_ranks(void **state)
{
    const struct tie_number close[] = {{.number = 100, .noise = 0, .error = 0.05}, {.number = 104, .noise = 0, .error = 0.05}, {.number = 108, .noise = 0, .error = 0.05}, {.number = 130, .noise = 0, .error = 0.05}};
    const struct tie_number mixed[] = {{.number = 130, .noise = 0, .error = 0.05}, {.number = NAN, .noise = 0, .error = 0}, {.number = 104, .noise = 0, .error = 0.05}, {.number = 100, .noise = 0, .error = 0.05}, {.number = 108, .noise = 0, .error = 0.05}};
    const struct tie_number exact[] = {{.number = 3, .noise = 0, .error = 0}, {.number = 1, .noise = 0, .error = 0}, {.number = 3, .noise = 0, .error = 0}, {.number = 2, .noise = 0, .error = 0}};

    (void)state;
    assert_ranks(close, 4, false, "1= 1= 3 4");
    assert_ranks(close, 4, true, "4 2= 2= 1");
    assert_ranks(mixed, 5, false, "4 - 1= 1= 3");
    assert_ranks(exact, 4, false, "3= 1 3= 2");
    assert_ranks(exact, 4, true, "1= 4 1= 3");
    assert_ranks(exact, 0, true, "");
    assert_ranks(&mixed[1], 1, true, "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_margin), cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_work), cmocka_unit_test(test_ratio),
    };

    return cmocka_run_group_tests_name("tie", tests, NULL, NULL);
}
