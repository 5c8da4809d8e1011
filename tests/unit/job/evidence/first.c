/* The file of first errors: what is read of it, what is refused, and what is written. */
#include "evidence_rows.h"

#include "evidence/first.h"

#define COLUMNS "table\trow\tfirst_error_permille\tfirst_software\tfirst_family\n"
#define OTHER "b\t\t\t\t\n"
#define SOFTWARE "\tnemo\tmegatron-core\n"

static int read_firsts(const char *text, struct first_errors *firsts, struct error *err)
{
    char path[] = "/tmp/dtsim-test-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    int rc;

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    rc = first_errors_read(&arena, path, firsts, err);
    unlink(path);
    return rc;
}

/* A row that a known table lacks is unknown, as is each row of a table whose first errors are. */
static void known(void **state)
{
    struct first_errors firsts;
    struct error err = {0};
    const struct first_error *first;

    (void)state;
    assert_int_equal(read_firsts(COLUMNS "a\tr\t-300" SOFTWARE "a\ts\t0" SOFTWARE OTHER, &firsts, &err), 0);
    first = first_error_find(&firsts, "a", "r");
    assert_int_equal(first->permille, -300);
    assert_string_equal(first->software, "nemo");
    assert_string_equal(first->family, "megatron-core");
    assert_int_equal(first_error_find(&firsts, "a", "s")->permille, 0);
    assert_null(first_error_find(&firsts, "a", "t"));
    assert_null(first_error_find(&firsts, "b", "r"));
    assert_null(first_error_find(&firsts, "b", ""));
    assert_true(first_errors_have(&firsts, "a") && first_errors_have(&firsts, "b") && !first_errors_have(&firsts, "c"));
}

static void mistakes(void **state)
{
    static const struct { const char *text, *expected; } bad[] = {
        {COLUMNS "\tr\t1" SOFTWARE, "the name of a table"},
        {COLUMNS "a\tr\t" SOFTWARE, "a row, its error"},
        {COLUMNS "a\t\t1" SOFTWARE, "a row, its error"},
        {COLUMNS "a\tr\t1\t\tmegatron-core\n", "a row, its error"},
        {COLUMNS "a\tr\t1.5" SOFTWARE, "'1.5' is not a whole number"},
        {COLUMNS "a\tr\t-1001" SOFTWARE, "is not between"},
        {COLUMNS "a\tr\t1" SOFTWARE "a\tr\t1" SOFTWARE, "is there twice"},
        {COLUMNS "a\tr\t1" SOFTWARE OTHER "a\ts\t1" SOFTWARE, "behind those of other tables"},
        {COLUMNS OTHER "b\tr\t1" SOFTWARE, "one row alone"},
        {COLUMNS OTHER OTHER, "one row alone"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct first_errors firsts;
        struct error err = {0};

        assert_int_equal(read_firsts(bad[i].text, &firsts, &err), -1);
        if (!strstr(err.messages[0].text, bad[i].expected))
            fail_msg("expected '%s' in: %s", bad[i].expected, err.messages[0].text);
        error_release(&err);
    }
}

/* What is printed reads back. */
static void printed(void **state)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct first_errors firsts;
    struct error err = {0};

    (void)state;
    first_error_print(out, "a", "r", -0.1236, "nemo", "megatron-core");
    first_error_print(out, "b", NULL, NAN, NULL, NULL);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(read_firsts(arena_printf(&arena, COLUMNS "%s", text), &firsts, &err), 0);
    assert_int_equal(firsts.count, 2);
    assert_int_equal(first_error_find(&firsts, "a", "r")->permille, -124);
    assert_true(first_errors_have(&firsts, "b"));
    free(text);
}

/* errors.tsv names the first software only where the table names another one since: the first error is of that one. */
static void joined(void **state)
{
    static const char *const names[] = {"megatron-core", "nemo"};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        evidence_print(out, &(struct evidence_name){"a", "r", "g", 1}, &mine, &(struct evidence_errors){0.1, NAN},
                       &(struct first_error){"a", "r", 300, names[i], "family"});
        assert_int_equal(fclose(out), 0);
        assert_non_null(strstr(text, i ? "\t100\t300\tnemo\tfamily\t" : "\t100\t300\t\t\t"));
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known), cmocka_unit_test(mistakes), cmocka_unit_test(printed),
                                       cmocka_unit_test(joined)};

    return cmocka_run_group_tests_name("first", tests, NULL, release);
}
