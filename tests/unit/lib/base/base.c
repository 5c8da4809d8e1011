/* base: arena, growable arrays, errors in order, the nearest word. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "text.h"

#define ASSERT_PRINTED(err, expected) \
    do { \
        char *text_ = messages_of(err); \
        assert_string_equal(text_, expected); \
        free(text_); \
    } while (0)

static void test_errors_come_in_the_order_of_places(void **state)
{
    struct error err = {0};

    (void)state;
    assert_int_equal(error_add(&err, EXIT_INPUT, (struct loc){"b.yaml", 1, 1}, "sixth"), -1);
    error_add(&err, EXIT_INPUT, (struct loc){"a.yaml", 12, 3}, "fourth");
    error_add(&err, EXIT_INPUT, (struct loc){"a.yaml", 12, 11}, "fifth %d", 5);
    error_add(&err, EXIT_INPUT, (struct loc){"a.yaml", 2, 40}, "third");
    error_add(&err, EXIT_INPUT, (struct loc){"a.yaml", 0, 0}, "second");
    error_add(&err, EXIT_INPUT, (struct loc){NULL, 0, 0}, "first");
    error_add(&err, EXIT_INPUT, (struct loc){"b.yaml", 1, 1}, "seventh");
    ASSERT_PRINTED(&err, "error: first\n"
                         "a.yaml: error: second\n"
                         "a.yaml:2:40: error: third\n"
                         "a.yaml:12:3: error: fourth\n"
                         "a.yaml:12:11: error: fifth 5\n"
                         "b.yaml:1:1: error: sixth\n"
                         "b.yaml:1:1: error: seventh\n");
    error_release(&err);
    assert_int_equal(err.count, 0);
}

static void test_the_same_error_is_held_once(void **state)
{
    struct error err = {0};
    char name[] = "a.yaml";

    (void)state;
    error_add(&err, EXIT_INPUT, (struct loc){name, 1, 1}, "x");
    error_add(&err, EXIT_INPUT, (struct loc){"a.yaml", 1, 1}, "x");
    assert_int_equal(err.count, 1);
    error_add(&err, EXIT_INPUT, (struct loc){"a.yaml", 1, 2}, "x");
    error_add(&err, EXIT_INPUT, (struct loc){"b.yaml", 1, 1}, "x");
    assert_int_equal(err.count, 3);
    strcpy(name, "gone..");     /* the error holds a copy of the file's name */
    ASSERT_PRINTED(&err, "a.yaml:1:1: error: x\na.yaml:1:2: error: x\nb.yaml:1:1: error: x\n");
    error_release(&err);
}

static void test_errors_that_do_not_fit_are_counted(void **state)
{
    struct error err = {0};
    char *text;

    (void)state;
    for (int i = 0; i < ERROR_MAX + 1; i++)
        error_add(&err, EXIT_INPUT, (struct loc){"a", i + 1, 1}, "x");
    assert_int_equal(err.count, ERROR_MAX);
    text = messages_of(&err);
    assert_non_null(strstr(text, "a:20:1: error: x\nerror: 1 more error is not shown\n"));
    free(text);
    error_add(&err, EXIT_INPUT, (struct loc){"a", 99, 1}, "x");
    text = messages_of(&err);
    assert_non_null(strstr(text, "a:20:1: error: x\nerror: 2 more errors are not shown\n"));
    free(text);
    error_release(&err);
}

static void test_a_message_is_one_line(void **state)
{
    struct error err = {0};

    (void)state;
    error_add(&err, EXIT_USAGE, (struct loc){0}, "%s", "a\nb\tc\x1b[2J\x7f \xC2\xB5");
    ASSERT_PRINTED(&err, "error: a\\nb\\tc\\x1B[2J\\x7F \xC2\xB5\n");
    error_release(&err);
}

static void test_exit_codes(void **state)
{
    struct error err = {0};

    (void)state;
    assert_int_equal(error_exit_code(&err), 0);
    error_add(&err, EXIT_INFEASIBLE, (struct loc){0}, "a");
    error_add(&err, EXIT_USAGE, (struct loc){0}, "b");
    assert_int_equal(error_exit_code(&err), 5);
    error_add(&err, EXIT_INPUT, (struct loc){0}, "c");
    assert_int_equal(error_exit_code(&err), 4);
    error_release(&err);
}

static void test_what_is_infeasible_has_a_kind(void **state)
{
    struct error err = {0};

    (void)state;
    error_add(&err, EXIT_INFEASIBLE, (struct loc){"a.yaml", 1, 1}, "memory: %d", 1);
    assert_int_equal(error_infeasible(&err, ERROR_MEMORY, (struct loc){"a.yaml", 2, 1}, "memory: %d", 2), -1);
    assert_int_equal(err.messages[0].kind, ERROR_DEGREES);
    assert_int_equal(err.messages[1].kind, ERROR_MEMORY);
    assert_int_equal(err.messages[1].code, EXIT_INFEASIBLE);
    ASSERT_PRINTED(&err, "a.yaml:1:1: error: memory: 1\na.yaml:2:1: error: memory: 2\n");
    error_release(&err);
}

static void test_arena_pieces_are_zero_aligned_and_apart(void **state)
{
    struct arena arena = {0};
    unsigned char *pieces[300];

    (void)state;
    for (size_t i = 0; i < COUNT(pieces); i++) {
        size_t size = i * i * 7 % 90001;

        pieces[i] = arena_alloc(&arena, size);
        assert_int_equal((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
        for (size_t j = 0; j < size; j++)
            assert_int_equal(pieces[i][j], 0);
        memset(pieces[i], (int)(i % 255 + 1), size);
    }
    for (size_t i = 0; i < COUNT(pieces); i++)
        for (size_t j = 0; j < i * i * 7 % 90001; j++)
            assert_int_equal(pieces[i][j], i % 255 + 1);
    arena_release(&arena);
    assert_null(arena.last);
}

static void test_arena_text(void **state)
{
    struct arena arena = {0};

    (void)state;
    assert_string_equal(arena_strdup(&arena, "abc"), "abc");
    assert_string_equal(arena_strndup(&arena, "abcdef", 3), "abc");
    assert_string_equal(arena_printf(&arena, "%s-%d", "x", 7), "x-7");
    arena_release(&arena);
}

static void test_grow(void **state)
{
    struct { int *items; size_t count, capacity; } list = {0};

    (void)state;
    for (int i = 0; i < 1000; i++)
        *GROW(&list) = i;
    assert_int_equal(list.count, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(list.items[i], i);
    free(list.items);
}

static void test_clip(void **state)
{
    char buffer[10];

    (void)state;
    assert_string_equal(text_clip("123456789", buffer, sizeof buffer), "123456789");
    assert_string_equal(text_clip("1234567890", buffer, sizeof buffer), "123456...");
    /* never half a character */
    assert_string_equal(text_clip("12345\xC2\xB5" "7890", buffer, sizeof buffer), "12345...");
}

static const char *word(size_t i, const void *context)
{
    return ((const char *const *)context)[i];
}

static void test_nearest(void **state)
{
    static const char *const keys[] = {
        "schedule", "tensor", "pipeline", "data", "micro_batches", "zero", "h", "b1", NULL,
    };
    static const char *const ties[] = {"cat", "bat", NULL};
    char long_word[200];

    (void)state;
    assert_string_equal(nearest("pipline", word, keys), "pipeline");           /* a letter missing */
    assert_string_equal(nearest("pipelinee", word, keys), "pipeline");         /* one too many */
    assert_string_equal(nearest("tenosr", word, keys), "tensor");              /* two swapped: one edit */
    assert_string_equal(nearest("zreo", word, keys), "zero");                  /* a swap within the limit of 1 */
    assert_string_equal(nearest("dato", word, keys), "data");
    assert_null(nearest("dota1", word, ties));
    assert_null(nearest("doto", word, keys));                                  /* two edits in four letters */
    assert_string_equal(nearest("shedul", word, keys), "schedule");            /* two in six */
    assert_null(nearest("shedl", word, keys));                                 /* three in five */
    assert_string_equal(nearest("MICRO-BATCHES", word, keys), "micro_batches");
    assert_string_equal(nearest("microbatchs", word, keys), "micro_batches");
    assert_null(nearest("x", word, keys));                                     /* every letter wrong */
    assert_string_equal(nearest("b2", word, keys), "b1");
    assert_string_equal(nearest("batches", word, keys), "micro_batches");      /* a part of it */
    assert_null(nearest("micr", word, keys));                                  /* a part of a part */
    assert_null(nearest("", word, keys));
    assert_string_equal(nearest("rat", word, ties), "cat");                    /* the first of equals */
    memset(long_word, 'a', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = '\0';
    assert_null(nearest(long_word, word, keys));
}

/* Memory holds anything before it is written to; text that was read ends all the same. */
static void test_a_text_that_was_read_ends(void **state)
{
    static const size_t sizes[] = {0, 1, 100, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, 1 << 17};
    static char written[1 << 17];
    struct error err = {0};

    (void)state;
    memset(written, 'x', sizeof written);
    mallopt(M_PERTURB, 0x55);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        char path[] = "/tmp/dtsim-base-XXXXXX", *text;
        int file = mkstemp(path);
        size_t length;

        assert_true(file >= 0 && write(file, written, sizes[i]) == (ssize_t)sizes[i] && !close(file));
        text = file_read(path, "text", 1 << 20, (struct loc){0}, &length, &err);
        unlink(path);
        assert_non_null(text);
        assert_true(length == sizes[i] && strlen(text) == sizes[i]);
        free(text);
    }
    mallopt(M_PERTURB, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_come_in_the_order_of_places),
        cmocka_unit_test(test_the_same_error_is_held_once),
        cmocka_unit_test(test_errors_that_do_not_fit_are_counted),
        cmocka_unit_test(test_a_message_is_one_line),
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_what_is_infeasible_has_a_kind),
        cmocka_unit_test(test_arena_pieces_are_zero_aligned_and_apart),
        cmocka_unit_test(test_arena_text),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_clip),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_a_text_that_was_read_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
