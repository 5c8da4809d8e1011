/* `dtsim help scenario` has a line for each key of the tables that parse a scenario, in their order, and no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/field.h"
#include "scenario/scenario.h"

/* A key's line begins behind so many spaces, and what is said of it in this column. A line goes on behind more. */
enum { OUTER = 0, INNER = 2, WIDTH = 21 };

static size_t indent_of(const char *line)
{
    return strspn(line, " ");
}

/* The text of a key from `line` on, its lines as one, which the caller frees; *next: the line behind them. */
static char *joined(const char *line, size_t indent, const char **next)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    for (bool first = true; first || (*line && *line != '\n' && indent_of(line) > INNER); first = false) {
        const char *end = line + strcspn(line, "\n"), *from = line + (first ? indent + WIDTH : indent_of(line));

        /* A key that is wider than its column is followed by one space. */
        while (first && from > line && from[-1] != ' ')
            from++;
        fprintf(out, "%s%.*s", first ? "" : " ", (int)(end - from), from);
        line = *end ? end + 1 : end;
    }
    fclose(out);
    *next = line;
    return text;
}

/* Holds the line at hand against the field: its key, and its brief as far as a summary says it. Returns the next line. */
static const char *check_line(const char *line, const struct field *field, size_t indent)
{
    const char *brief = field->brief ? field->brief : "", *next;
    size_t length = strlen(field->key), said = 0;
    char *text;

    while (*line == '\n')
        line++;
    if (indent_of(line) != indent || strncmp(line + indent, field->key, length) || line[indent + length] != ' ')
        fail_msg("expected the key '%s' behind %zu spaces, found: %.60s", field->key, indent, line);
    text = joined(line, indent, &next);
    while (brief[said] && strncmp(brief + said, "; ", 2) && strncmp(brief + said, ": ", 2) && strncmp(brief + said, " (", 2))
        said++;
    if (strncmp(text, brief, said))
        fail_msg("expected of '%s': %.*s; found: %s", field->key, (int)said, brief, text);
    if (text[said] && strncmp(text + said, " (", 2))
        fail_msg("expected of '%s' no more than its brief, and what it accepts; found: %s", field->key, text);
    free(text);
    return next;
}

static void each_key(void **state)
{
    char *help = NULL;
    const char *line;
    size_t size, keys = 0;
    FILE *out = open_memstream(&help, &size);

    (void)state;
    field_summary(&scenario_table, out);
    fclose(out);
    line = help;
    for (size_t i = 0; i < scenario_table.count; i++) {
        const struct field *field = &scenario_table.fields[i];

        line = check_line(line, field, OUTER);
        for (size_t k = 0; field->table && k < field->table->count; k++, keys++)
            if (!word_in(field->table->delegated, field->table->fields[k].key))
                line = check_line(line, &field->table->fields[k], INNER);
    }
    assert_string_equal(line, "");
    assert_true(keys > 80);
    free(help);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_key)};

    return cmocka_run_group_tests_name("help_keys", tests, NULL, NULL);
}
