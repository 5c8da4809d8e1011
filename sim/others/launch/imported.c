/* imported: what the importers of all frameworks do alike: they put values into a scenario, and say what became of each
 * argument. */
#include "launch/imported.h"

#include "base/base.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdlib.h>

#include "config/conf.h"
#include "config/field.h"
#include "launch/launch.h"
#include "scenario/scenario.h"

void imported_put(struct imported *m, const char *path, const char *format, ...)
{
    char text[4096];
    va_list arguments;
    struct node *value;

    va_start(arguments, format);
    BUG_IF(vsnprintf(text, sizeof text, format, arguments) < 0);
    va_end(arguments);
    if (!conf_parse(m->arena, path, text, strlen(text), &value, m->err))
        conf_put(m->arena, m->root, path, value, (struct loc){.file = path}, m->err);
    m->put = arena_printf(m->arena, "%s %s", m->put ? m->put : "", path);
}

void imported_remark(struct imported *m, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    m->comment = arena_printf(m->arena, "%s# %s\n", m->comment, text);
}

void imported_length(struct imported *m, const char *hint)
{
    const struct node *sequence = node_at(m->root, "model.transformer.sequence");

    if (!sequence || !sequence->text)
        return;
    launch_warn(m->launch, m->arena, m->launch->loc, "the tokens of a sample are not said; %s is taken, the most that the model "
                "takes; give --set %s=N", sequence->text, hint);
    imported_remark(m, "sequence: not said; the most that the model takes");
}

static int by_place(const void *a, const void *b)
{
    const struct launch_warning *first = a, *second = b;
    int line = (first->loc.line > second->loc.line) - (first->loc.line < second->loc.line);
    int column = (first->loc.column > second->loc.column) - (first->loc.column < second->loc.column);

    return line ? line : column ? column : strcmp(first->text, second->text);
}

static void print_warnings(const struct launch *launch, FILE *notes)
{
    array_sort(launch->warnings.items, launch->warnings.count, sizeof *launch->warnings.items, by_place);
    for (size_t i = 0; i < launch->warnings.count; i++) {
        const struct launch_warning *warning = &launch->warnings.items[i];

        text_write(TEXT_LINE, warning->loc.file, notes);
        if (warning->loc.line)
            fprintf(notes, ":%d:%d", warning->loc.line, warning->loc.column);
        fputs(": warning: ", notes);
        text_write(TEXT_LINE, warning->text, notes);
        fputc('\n', notes);
    }
}

/* The arguments of a class, by name. */
static const char *list_class(const struct imported *m, enum argument_class class, bool given, size_t *count)
{
    const char *list = "";

    *count = 0;
    for (size_t i = 0; i < m->dialect->count; i++) {
        const struct argument_row *row = &m->dialect->rows[i];

        if (row->class != class || (m->given[i] != NULL) != given ||
            (!given && (!row->fallback || !imported_has_needs(m, row))))
            continue;
        ++*count;
        list = arena_printf(m->arena, "%s%s%s%s%s", list, *list ? ", " : "",
                            m->dialect->like ? imported_shown(m, row->name) : row->name, given ? "" : " ",
                            given ? "" : row->fallback);
    }
    return list;
}

static void print_list(struct arena *arena, size_t count, const char *title, const char *names, FILE *notes)
{
    const char *text = arena_printf(arena, "%zu %s%s%s", count, title, count ? ": " : "", names);

    text_wrap(text, 0, 2, text_width(notes, 100), notes);
}

static void print_classes(const struct imported *m, FILE *notes)
{
    size_t idle, defaults;
    const char *idles = list_class(m, ARGUMENT_IDLE, true, &idle);
    const char *left_out = list_class(m, ARGUMENT_MAPPED, false, &defaults);

    fprintf(notes, "%zu %s are in the scenario, with software %s\n", m->counts[ARGUMENT_MAPPED],
            *m->dialect->dashes ? "arguments" : "keys", m->software);
    print_list(m->arena, defaults, arena_printf(m->arena, "are left out and have %s's defaults", m->dialect->framework),
               left_out, notes);
    print_list(m->arena, idle, "have no effect on the time of an iteration", idles, notes);
    fprintf(notes, "%zu have an effect that is not simulated\n", m->counts[ARGUMENT_LACKS]);
}

static int refuse_warnings(const struct launch *launch, struct error *err)
{
    for (size_t i = 0; i < launch->warnings.count; i++)
        error_add(err, EXIT_INPUT, launch->warnings.items[i].loc, "%s", launch->warnings.items[i].text);
    return launch->warnings.count ? -1 : 0;
}

int imported_begin(struct imported *m, const char *dialect)
{
    static const char *const parts[] = {"model", "cluster", "batch", "strategy", "memory", "software"};

    m->comment = "";
    m->root = node_mapping(m->arena);
    for (size_t i = 0; i < COUNT(parts); i++)
        node_put(m->arena, m->root, parts[i], node_mapping(m->arena));
    m->dialect = dialect_load(m->arena, dialect, m->err);
    return m->dialect ? 0 : -1;
}

int imported_end(struct imported *m, int rc, FILE *notes)
{
    if (!m->dialect)
        return -1;
    if (m->options->strict)
        rc |= refuse_warnings(m->launch, m->err);
    else
        print_warnings(m->launch, notes);
    if (!rc)
        print_classes(m, notes);
    return rc;
}

int imported_print(struct node *root, const char *file, const char *kind, const char *comment, FILE *out, struct error *err)
{
    struct scenario scenario = {0};
    struct arena arena = {0};
    char *text = NULL;
    size_t length;
    FILE *print = open_memstream(&text, &length);
    int rc;

    BUG_IF(!print);
    fputs("# From ", print);
    text_write(TEXT_LINE, file, print);
    fprintf(print, ", by dtsim import %s.\n%s", kind, comment);
    node_print(root, print);
    fclose(print);
    rc = scenario_read(&arena, root, NULL, 0, "run", &scenario, err);
    if (!rc)
        fwrite(text, 1, length, out);
    scenario_release(&scenario);
    arena_release(&arena);
    free(text);
    return rc;
}
