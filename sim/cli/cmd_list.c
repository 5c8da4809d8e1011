#include <stdlib.h>
#include <string.h>

#include "cli/help.h"
#include "base/text.h"
#include "files/data.h"

static void list_strategies(FILE *out)
{
    for (size_t i = 0; schedule_at(i); i++)
        fprintf(out, "%-18s %s\n", schedule_at(i)->name, schedule_at(i)->brief);
}

static void list_collectives(FILE *out)
{
    const struct collective *collective;

    for (enum collective_op op = 0; op < COLLECTIVE_OP_COUNT; op++)
        for (size_t i = 0; (collective = collective_of(op, i)); i++)
            fprintf(out, "%-14s %-18s %s\n", collective_op_names[op], collective->name, collective->title);
}

static void list_ideal(FILE *out)
{
    fprintf(out, "%-20s %s\n", "ideal", "as many GPUs as needed on a free network");
}

static void list_line(const char *name, const char *title, FILE *out)
{
    char *shown = text_made(TEXT_LINE, name);

    fprintf(out, "%-20s ", shown);
    text_write(TEXT_LINE, title, out);
    fputc('\n', out);
    free(shown);
}

/* A file's own title stands beside its name; one that is damaged is listed by name alone. */
static int list_file(struct arena *arena, const char *folder, const char *name, FILE *out, struct error *err)
{
    struct error found = {0};
    struct node *root = NULL, *title = NULL;
    const char *path;
    int rc = data_file(arena, folder, name, &path, err);

    if (path && !conf_load(arena, path, &root, &found))
        title = node_get(root, "title") ? node_get(root, "title") : node_get(root, "source");
    if (!rc && !(rc = error_pass_system(&found, err)))
        list_line(name, title && title->text ? title->text : "", out);
    error_release(&found);
    return rc;
}

static void list_files(const char *folder, FILE *out, struct error *err)
{
    struct arena arena = {0};
    const char **names = data_names(&arena, folder, err);

    for (size_t i = 0; names && names[i]; i++)
        if (list_file(&arena, folder, names[i], out, err))
            break;
    arena_release(&arena);
}

/* Lists of what stands in the program, and of what stands in a folder of files. */
static const struct { const char *name; void (*list)(FILE *); const char *folder; } lists[] = {
    {"strategies", list_strategies, NULL},
    {"collectives", list_collectives, NULL},
    {"gpus", NULL, "platforms/gpus"},
    {"profiles", NULL, "calibration/data"},
    {"platforms", list_ideal, "platforms"},
    {"communication", NULL, "platforms/communication"},
    {"models", NULL, "scenarios/models"},
    {"software", NULL, "platforms/software"},
};

static void list_print(size_t index, FILE *out, struct error *err)
{
    if (lists[index].list)
        lists[index].list(out);
    if (lists[index].folder)
        list_files(lists[index].folder, out, err);
}

const char *list_at(size_t index)
{
    return index < COUNT(lists) ? lists[index].name : NULL;
}

const char *list_folder(size_t index)
{
    return lists[index].folder;
}

static const char *list_candidate(size_t i, const void *context)
{
    (void)context;
    return list_at(i);
}

bool list_named(const char *name, struct error *err)
{
    for (size_t i = 0; i < COUNT(lists); i++)
        if (!strcmp(name, lists[i].name)) {
            list_print(i, stdout, err);
            return true;
        }
    return false;
}

static int list_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct error err = {0};
    int code = arguments_parse(command, argc, argv, 0, 1, &arguments);
    const char *wanted = arguments.positional[0];

    if (code != ARGS_DONE)
        return code;
    for (size_t i = 0; i < COUNT(lists) && !wanted; i++) {
        printf("%s%s\n", i ? "\n" : "", lists[i].name);
        list_print(i, stdout, &err);
    }
    if (wanted && !list_named(wanted, &err)) {
        const char *meant = nearest(wanted, list_candidate, NULL);

        return usage_error(command, "unknown list '%s'%s%s%s", wanted, meant ? "; did you mean '" : "",
                           meant ? meant : "",
                           meant ? "'?" : "; expected strategies, collectives, gpus, profiles, platforms, "
                           "communication, models or software");
    }
    return report(&err);
}

static const char **words(struct arena *arena, struct error *err)
{
    const char **names = ARENA_ARRAY(arena, const char *, COUNT(lists) + 1);

    (void)err;
    for (size_t i = 0; i < COUNT(lists); i++)
        names[i] = lists[i].name;
    return names;
}

const struct command cmd_list = {
    .name = "list",
    .usage = "[strategies | collectives | gpus | profiles | platforms | communication | models | software]",
    .brief = "Lists what scenarios can name.",
    .examples = "  dtsim list strategies\n  dtsim list\n",
    .words = words,
    .main = list_main,
};
