#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/help.h"
#include "cli/said.h"
#include "collective/collective.h"
#include "config/conf.h"
#include "files/data.h"
#include "files/json.h"
#include "schedule/schedule.h"
#include "view/say.h"
#include "view/view.h"

enum { OPT_JSON };

struct listed { const char *operation, *name, *title; };

#define LISTED(ROW) \
    ROW(operation, it->operation ? json_string(it->operation) : NULL, "of a collective") \
    ROW(name, json_words(it->name), "by which it is asked for") \
    ROW(title, json_words(it->title), "what it is")
VIEW_SHARED(listed_view, struct listed, it, LISTED)

/* A row of a list; `operation` NULL: it has none. */
static void add(json_t *rows, const char *operation, const char *name, const char *title)
{
    json_append(rows, view_json(&listed_view, &(struct listed){operation, name, title}));
}

static void list_strategies(json_t *rows)
{
    for (size_t i = 0; schedule_at(i); i++)
        add(rows, NULL, schedule_at(i)->name, schedule_at(i)->brief);
}

static void list_collectives(json_t *rows)
{
    const struct collective *collective;

    for (enum collective_op op = 0; op < COLLECTIVE_OP_COUNT; op++)
        for (size_t i = 0; (collective = collective_of(op, i)); i++)
            add(rows, collective_op_names[op], collective->name, collective->title);
}

static void list_ideal(json_t *rows)
{
    add(rows, NULL, "ideal", "as many GPUs as needed on a free network");
}

/* Prints a file's own title after its name; a damaged file is listed by name alone. */
static int list_file(struct arena *arena, const char *folder, const char *name, json_t *rows, struct error *err)
{
    const char *path, *title = "";
    int rc = data_file(arena, folder, name, &path, err);

    if (!rc && path)
        rc = conf_title(arena, path, &title, err);
    if (!rc)
        add(rows, NULL, name, title);
    return rc;
}

static void list_files(const char *folder, json_t *rows, struct error *err)
{
    struct arena arena = {0};
    const char **names = data_names(&arena, folder, err);

    for (size_t i = 0; names && names[i]; i++)
        if (list_file(&arena, folder, names[i], rows, err))
            break;
    arena_release(&arena);
}

/* Lists of what stands in the program, and of what stands in a folder of files; how wide people see the names. */
static const struct { const char *name; void (*list)(json_t *); const char *folder; int width; } lists[] = {
    {"strategies", list_strategies, NULL, 18},
    {"collectives", list_collectives, NULL, 18},
    {"gpus", NULL, "platforms/gpus", 20},
    {"profiles", NULL, "calibration/data", 20},
    {"platforms", list_ideal, "platforms", 20},
    {"networks", NULL, "platforms/networks", 20},
    {"communication", NULL, "platforms/communication", 20},
    {"models", NULL, "scenarios/models", 20},
    {"software", NULL, "platforms/software", 20},
    {"failures", NULL, "platforms/failures", 20},
};

static json_t *list_rows(size_t index, struct error *err)
{
    json_t *rows = json_array();

    if (lists[index].list)
        lists[index].list(rows);
    if (lists[index].folder)
        list_files(lists[index].folder, rows, err);
    return rows;
}

static void list_print(size_t index, struct error *err)
{
    json_t *rows = list_rows(index, err);

    say_each(rows, lists[index].width == 18 ? "[{operation@-14} ]{name@-18} {title}\n" : "{name@-20} {title}\n", stdout);
    json_decref(rows);
}

const char *list_at(size_t index)
{
    return index < COUNT(lists) ? lists[index].name : NULL;
}

const char *list_folder(size_t index)
{
    return lists[index].folder;
}

bool list_named(const char *name, struct error *err)
{
    for (size_t i = 0; i < COUNT(lists); i++)
        if (!strcmp(name, lists[i].name)) {
            list_print(i, err);
            return true;
        }
    return false;
}

static int list_main(const struct arguments *arguments)
{
    struct error err = {0};
    const char *wanted = arguments->positional[0];
    json_t *json = json_object();
    bool printed = false;

    for (size_t i = 0; i < COUNT(lists); i++) {
        if (wanted && strcmp(wanted, lists[i].name))
            continue;
        if (arguments->values[OPT_JSON]) {
            json_put(json, lists[i].name, list_rows(i, &err));
            continue;
        }
        if (!wanted)
            printf("%s%s\n", i ? "\n" : "", lists[i].name);
        list_print(i, &err);
    }
    if (arguments->values[OPT_JSON] && !err.count) {
        json_print(json, stdout);
        printed = true;
    }
    json_decref(json);
    return report_as(&err, arguments->values[OPT_JSON] && !printed);
}

static const struct option options[] = {
    [OPT_JSON] = {"--json", .help = "{LIST: [{name, title}]}, of collectives with their operation"},
};

const struct command cmd_list = {
    .name = "list",
    .arguments = "[LIST]",
    .least = 0, .most = 1,
    .brief = "Lists what scenarios can name.",
    .examples = "  dtsim list strategies\n  dtsim list\n",
    .first = {"list", NULL, list_at},
    .options = options, .noptions = COUNT(options),
    .main = list_main,
};
