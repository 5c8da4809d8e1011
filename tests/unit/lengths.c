/* What is small enough to be read: functions of few parameters and few lines, files of few lines. */
#include "sources.h"

/* A function that takes many things takes parts of a few: so few functions of sim/ have MANY parameters or more.
 * One of them is of the HTTP library's kind. */
enum { MANY = 8, MOST_WITH_MANY = 5 };
static struct many { int count; char names[2048]; } with_many;

/* Skips a comment or a string, if one begins here. */
static const char *skip_aside(const char *at)
{
    char quote = *at;

    if (!strncmp(at, "/*", 2)) {
        const char *end = strstr(at + 2, "*/");

        return end ? end + 2 : at + strlen(at);
    }
    if (quote != '"' && quote != '\'')
        return at;
    for (at++; *at && *at != quote; at++)
        at += *at == '\\' && at[1];
    return *at ? at + 1 : at;
}

/* Counts the parameters of the list that begins after `at`; a parameter that is a function counts as one. Sets *end to
 * the text behind the list. */
static int count_parameters(const char *at, const char **end)
{
    int depth = 1, count = 1;

    while (*at && depth) {
        const char *next = skip_aside(at);

        depth += next == at ? (*at == '(') - (*at == ')') : 0;
        count += next == at && depth == 1 && *at == ',';
        at = next == at ? at + 1 : next;
    }
    *end = at;
    return count;
}

/* Definitions stand at depth 0: a name, its parameters, a brace. */
static void count_definitions(const char *path, const char *text)
{
    const char *name = NULL;
    int depth = 0;

    for (const char *at = text; *at;) {
        const char *next = skip_aside(at), *end;

        if (next == at && *at == '#' && (at == text || at[-1] == '\n')) {
            while (*at && (*at != '\n' || at[-1] == '\\'))
                at++;
            continue;
        }
        if (next == at && depth == 0 && *at == '(') {
            int count = count_parameters(at + 1, &end);

            while (*end == ' ' || *end == '\n')
                end++;
            if (name && *end == '{' && count >= MANY) {
                size_t used = strlen(with_many.names);

                with_many.count++;
                snprintf(with_many.names + used, sizeof with_many.names - used, "\n%s: %.*s has %d", path,
                         (int)strcspn(name, "("), name, count);
            }
            at = end;
            continue;
        }
        if (next == at && is_word(*at) && (at == text || !is_word(at[-1])))
            name = at;
        depth += next == at ? (*at == '{') - (*at == '}') : 0;
        at = next == at ? at + 1 : next;
    }
}

static void test_parameters(void **state)
{
    char folder[64];
    const char *end;

    (void)state;
    assert_int_equal(count_parameters("int a, void (*f)(int, int), const char *c /* , ) */) {", &end), 3);
    assert_string_equal(end, " {");
    for (size_t f = 0; f < COUNT(rooms); f++) {
        snprintf(folder, sizeof folder, "sim/%s", rooms[f]);
        each_of(folder, count_definitions);
    }
    if (with_many.count > MOST_WITH_MANY)
        fail_msg("%d functions have %d parameters or more; expected at most %d: pass what belongs together as a "
                 "value%s", with_many.count, MANY, MOST_WITH_MANY, with_many.names);
    count_definitions("text", "int few(int a)\n{\n    many(a, a, a, a, a, a, a, a);\n}\n"
                              "int many(int a, int b, int c, int d, int e, int f, int g, int h)\n{\n}\n");
    assert_non_null(strstr(with_many.names, "text: many has 8"));
    assert_null(strstr(with_many.names, "few"));
}

/* Lines of a file besides its includes, and of a function with its braces, are at most the limits above. */
enum { MOST_LINES = 400, MOST_OF_A_FUNCTION = 60 };

/* Functions begin and end with braces in the first column. */
static void check_lines(const char *path, const char *text)
{
    int lines = 0, includes = 0, begun = 0;

    for (const char *line = text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        if (!end)
            fail_msg("%s does not end with a line's end", path);
        lines++;
        includes += !strncmp(line, "#include ", 9);
        begun = *line == '{' ? lines : begun;
        if (*line == '}' && begun && lines - begun + 1 > MOST_OF_A_FUNCTION)
            fail_msg("%s:%d: a function of %d lines; expected at most %d", path, begun, lines - begun + 1, MOST_OF_A_FUNCTION);
        begun = *line == '}' ? 0 : begun;
    }
    if (lines - includes > MOST_LINES)
        fail_msg("%s has %d lines besides its includes; expected at most %d", path, lines - includes, MOST_LINES);
}

static void test_lines(void **state)
{
    static const char *const tests[] = {
        "tests/unit", "tests/strategies", "tests/property", "tests/papers", "tests/support", "tests/fuzz", "tests/bench", "tests/torture",
    };
    char folder[300];

    (void)state;
    each_source(check_lines);
    for (size_t i = 0; i < COUNT(tests); i++)
        assert_true(each_of(tests[i], check_lines) > 0);
    for (size_t f = 0; f < COUNT(rooms); f++) {
        snprintf(folder, sizeof folder, DTSIM_SOURCE_DIR "/tests/unit/%s", rooms[f]);
        if (access(folder, F_OK) == 0)
            each_of(folder + strlen(DTSIM_SOURCE_DIR "/"), check_lines);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters), cmocka_unit_test(test_lines),
    };

    return cmocka_run_group_tests_name("lengths", tests, NULL, NULL);
}
