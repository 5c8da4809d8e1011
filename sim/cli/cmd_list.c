#include <string.h>

#include "cli/cmd.h"
#include "files/data.h"
#include "report/result_keys.h"
#include "validate/paper.h"
#include "sweep/sweep.h"
#include "validate/published.h"

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

/* A file's own title stands beside its name; one that cannot be read is listed by name alone. */
static void list_files(const char *folder, FILE *out)
{
    struct arena arena = {0};
    const char **names = data_names(&arena, folder);

    for (size_t i = 0; names && names[i]; i++) {
        struct error err = {0};
        struct node *root = NULL, *title = NULL;
        const char *path = data_file(&arena, folder, names[i]);

        if (path && !conf_load(&arena, path, &root, &err))
            title = node_get(root, "title") ? node_get(root, "title") : node_get(root, "source");
        fprintf(out, "%-18s %s\n", names[i], title && title->text ? title->text : "");
        error_release(&err);
    }
    arena_release(&arena);
}

static void list_gpus(FILE *out)
{
    list_files("platforms/gpus", out);
}

static void list_profiles(FILE *out)
{
    list_files("calibration/data", out);
}

static void list_platforms(FILE *out)
{
    fprintf(out, "%-18s %s\n", "ideal", "as many GPUs as needed on a free network");
    list_files("platforms", out);
}

static void list_communication(FILE *out)
{
    list_files("platforms/communication", out);
}

static void list_models(FILE *out)
{
    list_files("scenarios/models", out);
}

static const struct { const char *name; void (*list)(FILE *); } lists[] = {
    {"strategies", list_strategies}, {"collectives", list_collectives}, {"gpus", list_gpus},
    {"profiles", list_profiles}, {"platforms", list_platforms}, {"communication", list_communication},
    {"models", list_models},
};

static const char *list_candidate(size_t i, const void *context)
{
    (void)context;
    return i < COUNT(lists) ? lists[i].name : NULL;
}

static bool list_named(const char *name)
{
    for (size_t i = 0; i < COUNT(lists); i++)
        if (!strcmp(name, lists[i].name)) {
            lists[i].list(stdout);
            return true;
        }
    return false;
}

static int list_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    int code = arguments_parse(command, argc, argv, NULL, 0, 0, 1, &arguments);
    const char *wanted = arguments.positional[0];

    if (code != ARGS_DONE)
        return code;
    for (size_t i = 0; i < COUNT(lists) && !wanted; i++) {
        printf("%s%s\n", i ? "\n" : "", lists[i].name);
        lists[i].list(stdout);
    }
    if (wanted && !list_named(wanted)) {
        const char *meant = nearest(wanted, list_candidate, NULL);

        return usage_error(command, "unknown list '%s'%s%s%s", wanted, meant ? "; did you mean '" : "",
                           meant ? meant : "",
                           meant ? "'?" : "; expected strategies, collectives, gpus, profiles, platforms, "
                           "communication or models");
    }
    return EXIT_OK;
}

const struct command cmd_list = {
    .name = "list",
    .usage = "[strategies | collectives | gpus | profiles | platforms | communication | models]",
    .brief = "Lists what scenarios can name.",
    .examples = "  dtsim list strategies\n  dtsim list\n",
    .main = list_main,
};

static void help_schedule(const struct schedule *schedule)
{
    printf("%s (schedule: %s)\n%s\n\n%s\n%s\nsource: %s\n", schedule->title, schedule->name, schedule->brief,
           schedule->figure, schedule->formula, schedule->paper);
    if (schedule->options) {
        puts("\noptions, under strategy:");
        field_help(schedule->options, 1, stdout);
    }
}

static void help_collective(const struct collective *collective)
{
    printf("%s (%s: %s)\n\n%s%s%s\nsource: %s\n", collective->title, collective_op_names[collective->op],
           collective->name, collective->figure, *collective->figure ? "\n" : "", collective->formula,
           collective->paper);
}

static void help_overview(void)
{
    puts("dtsim simulates one training iteration of a neural network on a GPU cluster.\n\n"
         "  dtsim run scenarios/tour/03-gpipe.yaml        simulate a scenario\n"
         "  dtsim show scenario.yaml --figure             draw its schedule\n"
         "  dtsim collective dgx-a100 --ranks 16 --bytes '1 GB'\n");
    for (size_t i = 0; command_at(i); i++)
        printf("  %-12s %s\n", command_at(i)->name, command_at(i)->brief);
    puts("\ndtsim help COMMAND, dtsim help scenario (every key), dtsim help strategy.zero (a key), dtsim help "
         "SCHEDULE,\nCOLLECTIVE or OPERATION (figures); what other files hold: dtsim help gpu, communication, profile, "
         "table, paper\ndtsim help result: what a run writes\n"
         "All commands take --color=auto, always or never (messages on a terminal; NO_COLOR is heeded).");
}

/* What files may hold. */
static const struct { const char *name; const struct table *table; } table_topics[] = {
    {"scenario", &scenario_table}, {"gpu", &gpu_table},         {"communication", &communication_table},
    {"profile", &profile_table},   {"table", &published_table}, {"paper", &paper_table},
    {"sweep-file", &sweep_table},
};

static const char *topic_candidate(size_t i, const void *context)
{
    size_t n = 0;

    (void)context;
    for (size_t k = 0; command_at(k); k++)
        if (n++ == i)
            return command_at(k)->name;
    for (size_t k = 0; schedule_at(k); k++)
        if (n++ == i)
            return schedule_at(k)->name;
    for (size_t k = 0; collective_at(k); k++)
        if (n++ == i)
            return collective_at(k)->name;
    for (size_t k = 0; collective_op_names[k]; k++)
        if (n++ == i)
            return collective_op_names[k];
    return i < n || i - n >= COUNT(table_topics) ? NULL : table_topics[i - n].name;
}

/* Schedules and collectives may share a name, and one is also that of an operation: all of them are shown. */
static bool help_names(const char *topic)
{
    int shown = 0;

    for (size_t i = 0; schedule_at(i); i++)
        if (!strcmp(topic, schedule_at(i)->name) && ++shown)
            help_schedule(schedule_at(i));
    for (size_t i = 0; collective_at(i); i++)
        if (!strcmp(topic, collective_at(i)->name)) {
            printf("%s", shown++ ? "\n" : "");
            help_collective(collective_at(i));
        }
    for (enum collective_op op = 0; op < COLLECTIVE_OP_COUNT; op++)
        for (size_t i = 0; !strcmp(topic, collective_op_names[op]) && collective_of(op, i); i++) {
            printf("%s", shown++ ? "\n" : "");
            help_collective(collective_of(op, i));
        }
    return shown > 0;
}

static int help_topic(const struct command *command, const char *topic)
{
    const char *meant;

    for (size_t i = 0; command_at(i); i++)
        if (!strcmp(topic, command_at(i)->name)) {
            command_help(command_at(i), stdout);
            return EXIT_OK;
        }
    if (help_names(topic))
        return EXIT_OK;
    if (!strcmp(topic, "result")) {
        result_keys_print(stdout);
        return EXIT_OK;
    }
    for (size_t i = 0; i < COUNT(table_topics); i++)
        if (!strcmp(topic, table_topics[i].name)) {
            field_help(table_topics[i].table, 0, stdout);
            return EXIT_OK;
        }
    if (field_help_at(&scenario_table, topic, stdout) || field_help_everywhere(&scenario_table, topic, stdout) ||
        list_named(topic))
        return EXIT_OK;
    meant = nearest(topic, topic_candidate, NULL);
    if (meant)
        return usage_error(command, "unknown topic '%s'; did you mean '%s'?", topic, meant);
    return usage_error(command, "unknown topic '%s'; expected a command, a kind of file (scenario, gpu, communication, "
                       "profile, table, paper), a key of the scenario such as cluster.network, a schedule, a "
                       "collective or its operation", topic);
}

static int help_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    int code = arguments_parse(command, argc, argv, NULL, 0, 0, 1, &arguments);

    if (code != ARGS_DONE)
        return code;
    if (arguments.npositional)
        return help_topic(command, arguments.positional[0]);
    help_overview();
    return EXIT_OK;
}

const struct command cmd_help = {
    .name = "help",
    .usage = "[COMMAND | FILE | KEY | result | SCHEDULE | COLLECTIVE | OPERATION | LIST]",
    .brief = "Explains a command, what files hold, a key, a schedule, a collective or all of an operation.",
    .examples = "  dtsim help run\n  dtsim help scenario\n  dtsim help cluster.network\n  dtsim help gpipe\n"
                "  dtsim help all_gather\n",
    .options =
        "  FILE                scenario; gpu: a data sheet (platforms/gpus/), communication: what a library makes of\n"
        "                      links (platforms/communication/), profile: a GPU's kernels (calibration/data/), table:\n"
        "                      measured collectives (dtsim collective --table), paper: measured runs (dtsim validate)\n"
        "  KEY                 of a scenario: memory, strategy.zero, zero\n"
        "  result              the keys of result.json and the columns of the tables beside it\n"
        "  LIST                as 'dtsim list' names it: strategies, collectives, gpus, profiles, platforms, models\n",
    .main = help_main,
};

static int schema_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct arena arena = {0};
    int code = arguments_parse(command, argc, argv, NULL, 0, 0, 0, &arguments);

    if (code != ARGS_DONE)
        return code;
    json_t *json = node_json(field_schema(&arena, &scenario_table));
    json_print(json, stdout);
    json_decref(json);
    arena_release(&arena);
    return EXIT_OK;
}

const struct command cmd_schema = {
    .name = "schema",
    .usage = "",
    .brief = "Prints the JSON schema of scenarios, for editors.",
    .examples = "  dtsim schema > dtsim.schema.json\n"
                "  (first line of a scenario)  # yaml-language-server: $schema=dtsim.schema.json\n",
    .main = schema_main,
};
