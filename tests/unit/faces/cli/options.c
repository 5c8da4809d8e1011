/* Rows of options: usage, help, manual page and completion have every one; what they say of values and of what goes
 * together holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/help.h"

#include <stdlib.h>
#include <string.h>

static bool is_option(const struct option *option)
{
    return option->name[0] == '-';
}

/* A value that the option takes. */
static const char *value_of(const struct option *option)
{
    static char number[24];

    snprintf(number, sizeof number, "%zu", option->least);
    switch (option->kind) {
    case OPTION_COUNT:
    case OPTION_JOBS: return number;
    case OPTION_TIME: return "2 s";
    case OPTION_CHOICE: return words_at(&option->words, 0);
    case OPTION_BUDGET: return "1 GiB";
    case OPTION_SET: return "a=b";
    case OPTION_TEXT: break;
    }
    return option->value ? "text" : NULL;
}

/* A command line in the making. */
struct line { char *words[64]; int count; };

static void add(struct line *line, const char *word, size_t length)
{
    line->words[line->count++] = strndup(word, length);
}

static void add_option(struct line *line, const struct option *option)
{
    const char *value = value_of(option);

    add(line, option->name, strlen(option->name));
    if (value)
        add(line, value, strlen(value));
}

static const struct option *find(const struct command *command, const char *word, size_t length)
{
    for (size_t k = 0; k < command->noptions; k++)
        if (strlen(command->options[k].name) == length && !strncmp(command->options[k].name, word, length))
            return &command->options[k];
    return NULL;
}

static bool has_word(const char *list, const char *word)
{
    char *padded = NULL, *sought = NULL;
    bool found;

    if (!list || asprintf(&padded, " %s ", list) < 0 || asprintf(&sought, " %s ", word) < 0)
        return false;
    found = strstr(padded, sought);
    free(padded);
    free(sought);
    return found;
}

/* As few arguments as there may be, what the option goes with, what is needed, and the option. */
static struct line line_with(const struct command *command, const struct option *option)
{
    const char *with = option->with ? option->with : "", *first = words_at(&command->first, 0);
    size_t length = strcspn(with, " ");
    struct line line = {0};

    add(&line, command->name, strlen(command->name));
    for (int i = 0; i < command->least; i++)
        if (i == 0 && length && *with != '-')
            add(&line, with, length);
        else
            add(&line, i == 0 && first ? first : "x", i == 0 && first ? strlen(first) : 1);
    if (*with == '-')
        add_option(&line, find(command, with, length));
    for (size_t k = 0; k < command->noptions; k++)
        if (command->options[k].needed && &command->options[k] != option && *with != '-' &&
            !has_word(option->without, command->options[k].name))
            add_option(&line, &command->options[k]);
    add_option(&line, option);
    return line;
}

static int parse(const struct command *command, struct line *line, struct arguments *arguments)
{
    int code = arguments_parse(command, line->count, line->words, arguments);

    if (code != ARGS_DONE) {
        for (int i = 0; i < line->count; i++)
            fprintf(stderr, "%s ", line->words[i]);
        fputs("\n", stderr);
    }
    return code;
}

static void line_release(struct line *line)
{
    for (int i = 0; i < line->count; i++)
        free(line->words[i]);
}

static void test_each_is_parsed(void **state)
{
    size_t count = 0;

    (void)state;
    for (size_t i = 0; command_at(i); i++)
        for (size_t k = 0; k < command_at(i)->noptions; k++) {
            const struct option *option = &command_at(i)->options[k];
            struct arguments arguments;
            struct line line;

            if (!is_option(option))
                continue;
            line = line_with(command_at(i), option);
            assert_int_equal(parse(command_at(i), &line, &arguments), ARGS_DONE);
            assert_string_equal(arguments.values[k], option->value ? value_of(option) : "");
            if (option->kind == OPTION_COUNT)
                assert_true(arguments.numbers[k] == (double)option->least);
            if (option->value) {                                     /* and not without its value */
                line.count--;
                assert_int_equal(parse(command_at(i), &line, &arguments), EXIT_USAGE);
                line.count++;
            }
            line_release(&line);
            count++;
        }
    assert_true(count > 100);
}

/* `excluded` may not be given with the option. */
static void expect_clash(const struct command *command, const struct option *option, const struct option *excluded)
{
    struct line line = line_with(command, option);
    struct arguments arguments;

    assert_non_null(excluded);
    add_option(&line, excluded);
    assert_int_equal(parse(command, &line, &arguments), EXIT_USAGE);
    line_release(&line);
}

static void test_what_goes_together(void **state)
{
    (void)state;
    for (size_t i = 0; command_at(i); i++)
        for (size_t k = 0; k < command_at(i)->noptions; k++) {
            const struct command *command = command_at(i);
            const struct option *option = &command->options[k];

            for (const char *word = option->without; word && *word; word += strspn(word, " ")) {
                expect_clash(command, option, find(command, word, strcspn(word, " ")));
                word += strcspn(word, " ");
            }
            for (const char *word = option->with; word && *word; word += strspn(word, " ")) {
                bool known = (*word == '-' && find(command, word, strcspn(word, " "))) ||
                             (command->other && !strncmp(word, "OTHER", strcspn(word, " ")));

                for (size_t w = 0; *word != '-' && words_at(&command->first, w); w++)
                    known |= !strncmp(words_at(&command->first, w), word, strcspn(word, " "));
                assert_true(known);
                word += strcspn(word, " ");
            }
            for (size_t j = 0; j < k && option->one_of; j++)
                if (command->options[j].one_of == option->one_of) {
                    assert_int_equal(command->options[k - 1].one_of, option->one_of);    /* the usage shows neighbours */
                    expect_clash(command, option, &command->options[j]);
                }
        }
}

static char *printed(void (*print)(const struct command *command, FILE *out), const struct command *command)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    print(command, out);
    fclose(out);
    return text;
}

static void print_usage(const struct command *command, FILE *out)
{
    command_usage(command, 0, 100, out);
}

static void print_man(const struct command *command, FILE *out)
{
    (void)command;
    man_page_print(out);
}

static void print_completions(const struct command *command, FILE *out)
{
    const char *typed[] = {command->name, "x", "-"};
    struct error err = {0};

    assert_int_equal(completion_print(typed, 3, out, &err), 0);
}

static void expect_in(const char *text, const char *before, const struct option *option, const char *behind)
{
    struct arena arena = {0};
    const char *head = *behind == '\n' && *before == '\n' ? option->name : option_head(&arena, option);
    const char *sought = arena_printf(&arena, "%s%s%s", before, head, behind);

    if (!strstr(text, sought))
        fail_msg("no '%s' in\n%s", sought, text);
    arena_release(&arena);
}

static void test_each_is_told(void **state)
{
    char *man = printed(print_man, NULL), *plain = man;

    (void)state;
    for (char *c = man; *c; c++)                 /* groff's \- */
        if (*c != '\\')
            *plain++ = *c;
    *plain = '\0';
    for (size_t i = 0; command_at(i); i++) {
        char *usage = printed(print_usage, command_at(i)), *help = printed(command_help, command_at(i));
        char *words = printed(print_completions, command_at(i)), *offered = NULL;

        assert_true(asprintf(&offered, "\n%s", words) > 0);
        for (size_t k = 0; k < command_at(i)->noptions; k++) {
            const struct option *option = &command_at(i)->options[k];

            assert_non_null(option->help);
            expect_in(help, "\n  ", option, "");
            expect_in(man, ".TP\n", option, "\n");
            if (!is_option(option))
                continue;
            expect_in(usage, "", option, "");
            expect_in(offered, "\n", option, "\n");
        }
        free(usage);
        free(help);
        free(words);
        free(offered);
    }
    free(man);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_is_parsed),
        cmocka_unit_test(test_what_goes_together),
        cmocka_unit_test(test_each_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
