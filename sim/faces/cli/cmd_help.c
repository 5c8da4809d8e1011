#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "cli/help.h"
#include "cli/said.h"
#include "collective/collective.h"
#include "config/field.h"
#include "config/named.h"
#include "expression/expression.h"
#include "expression/rule.h"
#include "files/data.h"
#include "hardware/communication.h"
#include "hardware/gpu.h"
#include "kernels/profile.h"
#include "scenario/scenario.h"
#include "scenario/train_section.h"
#include "schedule/schedule.h"
#include "software/software.h"
#include "sweep/axis.h"
#include "sweep/sweep.h"
#include "validate/paper.h"
#include "validate/published.h"

static void help_schedule(const struct schedule *schedule)
{
    printf("%s (schedule: %s)\n%s\n\n%s\n%s\nsource: %s\n", schedule->title, schedule->name, schedule->brief,
           schedule->figure, schedule->formula, schedule->paper);
    if (schedule->max_chunks > schedule->min_chunks)
        printf("\nchunks: %d to %d; left out: %d, in a pipeline of several ranks %d\n", schedule->min_chunks,
               schedule->max_chunks, schedule->min_chunks,
               schedule->usual_chunks ? schedule->usual_chunks : schedule->min_chunks);
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
    puts("\n  dtsim help COMMAND, SCHEDULE, COLLECTIVE, OPERATION, or the name of a platform, GPU or model\n"
         "  dtsim help bubble           a word of the output: mfu, cost, anchor, rank, ...\n"
         "  dtsim help scenario         every key of a scenario; dtsim help zero: one key\n"
         "  dtsim help software         what a framework decides, and so a scenario need not say\n"
         "  dtsim help gpu              what other files hold; also communication, software-file, profile, table,\n"
         "                              paper, sweep-file, training, failures-file\n"
         "  dtsim help result           what a run writes\n\n"
         "All commands take --color=auto, always or never, before them or after (messages on a terminal; NO_COLOR is\n"
         "heeded). With --json "
         "errors are JSON too: {errors: [{file, line, column, message, rule}], exit_code}. Exit codes:");
    for (size_t i = 0; exit_text_at(i); i++)
        printf("  %-4d %s\n", (int)exit_text_at(i)->code, exit_text_at(i)->text);
}

/* What files may hold. */
static const struct { const char *name; const struct table *table; } table_topics[] = {
    {"scenario", &scenario_table}, {"gpu", &gpu_table},         {"communication", &communication_table},
    {"profile", &profile_table},   {"table", &published_table}, {"paper", &paper_table},
    {"sweep-file", &sweep_table},  {"software", &software_table}, {"software-file", &software_file_table},
    {"training", &training_table}, {"failures-file", &failures_file_table},
};

/* What VALUES and EXPRESSION of a sweep, and conditions of a plan, may be. */
static void help_expression(void)
{
    puts("VALUES: a list, or one of");
    axis_help(stdout);
    puts("\nEXPRESSION: numbers with or without a unit, texts in quotes, true, false, and paths of the scenario; + - * / %,\n"
         "== != < <= > >=; not, and, or; functions:");
    expression_help(stdout);
}

struct topics { const char **items; size_t count, capacity; };

static void add_files(struct arena *arena, const char *folder, struct topics *topics, struct error *err)
{
    const char **names = data_names(arena, folder, err);

    for (size_t i = 0; names && names[i]; i++)
        *GROW(topics) = names[i];
}

static void add_all(struct arena *arena, struct topics *topics, struct error *err)
{
    for (size_t i = 0; command_at(i); i++)
        *GROW(topics) = command_at(i)->name;
    for (size_t i = 0; i < COUNT(table_topics); i++)
        *GROW(topics) = table_topics[i].name;
    *GROW(topics) = "result";
    *GROW(topics) = "expression";
    for (const char **word = help_words(arena, err); word && *word; word++)
        *GROW(topics) = *word;
    for (size_t i = 0; schedule_at(i); i++)
        *GROW(topics) = schedule_at(i)->name;
    for (size_t i = 0; collective_at(i); i++)
        *GROW(topics) = collective_at(i)->name;
    for (size_t i = 0; collective_op_names[i]; i++)
        *GROW(topics) = collective_op_names[i];
    for (size_t i = 0; list_at(i); i++) {
        *GROW(topics) = list_at(i);
        if (list_folder(i))
            add_files(arena, list_folder(i), topics, err);
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **help_topics(struct arena *arena, struct error *err)
{
    struct topics topics = {0};
    const char **names;
    size_t count = 0;

    add_all(arena, &topics, err);
    array_sort(topics.items, topics.count, sizeof *topics.items, compare_names);
    names = ARENA_ARRAY(arena, const char *, topics.count + 1);
    for (size_t i = 0; i < topics.count; i++)
        if (!count || strcmp(names[count - 1], topics.items[i]))
            names[count++] = topics.items[i];
    free(topics.items);
    return err->system ? NULL : names;
}

static const char *topic_candidate(size_t i, const void *names)
{
    return ((const char *const *)names)[i];
}

static void print_lines(char *text)
{
    for (char *line = text, *end; *line; line = end) {
        end = strchrnul(line, '\n');
        bool ends = *end;

        *end = '\0';
        text_write(TEXT_LINE, line, stdout);
        fputs(ends ? "\n" : "", stdout);
        end += ends;
    }
}

/* Files of data that have the name, as they stand: with their sources, as their authors wrote them. */
static bool help_files(const char *name, struct error *err)
{
    struct arena arena = {0};
    int shown = 0;

    for (size_t i = 0; list_at(i) && !err->count; i++) {
        const struct data_kind kind = {list_folder(i), "name", NULL};
        const char *path = NULL, *meant = name;
        size_t length;
        char *text;

        if (!kind.folder || (!data_is_path(name) && data_file(&arena, kind.folder, name, &path, err)))
            continue;
        if (!path && (meant = data_meant(&arena, &kind, name, (struct loc){.file = "help"}, err)))
            data_file(&arena, kind.folder, meant, &path, err);
        if (!path)
            continue;
        text = file_read(path, "file", CONF_MAX_BYTES, (struct loc){.file = path}, &length, err);
        if (!text)
            continue;
        printf("%s%s: ", shown++ ? "\n" : "", list_at(i));
        text_write(TEXT_LINE, path, stdout);
        putchar('\n');
        print_lines(text);
        free(text);
    }
    arena_release(&arena);
    return shown > 0;
}

/* Schedules and collectives may share a name, and one is also the name of an operation: all of them are shown. */
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

static bool help_commands(const char *topic)
{
    for (size_t i = 0; command_at(i); i++)
        if (!strcmp(topic, command_at(i)->name)) {
            command_help(command_at(i), stdout);
            return true;
        }
    return false;
}

static bool help_tables(const char *topic)
{
    if (!strcmp(topic, "result")) {
        said_help(stdout);
        return true;
    }
    if (!strcmp(topic, "expression")) {
        help_expression();
        return true;
    }
    if (!strcmp(topic, "scenario")) {
        field_summary(&scenario_table, stdout);
        puts("\nA part in full: dtsim help model, cluster, strategy, ...; one key: dtsim help zero. What a framework\n"
             "decides stands under software: dtsim help software. Schedules have options of their own, under strategy:\n"
             "dtsim help interleaved.");
        return true;
    }
    for (size_t i = 0; i < COUNT(table_topics); i++)
        if (!strcmp(topic, table_topics[i].name)) {
            field_help(table_topics[i].table, 0, stdout);
            field_help_hosted(table_topics[i].table, stdout);
            if (table_topics[i].table == &sweep_table) {
                puts("");
                help_expression();
            }
            return true;
        }
    return false;
}

/* Whether the path is the topic, or its last key is. */
static bool is_of(const char *path, size_t length, const char *topic)
{
    size_t own = strlen(topic);

    return length >= own && !memcmp(path + length - own, topic, own) && (length == own || path[length - own - 1] == '.');
}

/* Whether the rule stands at the key, or reads it. */
static bool concerns(const struct rule *rule, const struct condition *condition, const char *topic)
{
    bool found = false;

    for (const char *at = rule->at; *at; at += strspn(at, " @")) {
        found |= is_of(at, strcspn(at, " "), topic);
        at += strcspn(at, " ");
    }
    for (int i = 0; i < condition->count; i++)
        found |= is_of(condition->names[i].path, strlen(condition->names[i].path), topic);
    return found && rule->text && rule->kind != RULE_SAME;
}

/* The rules about a key. */
static void help_rules(const char *topic)
{
    struct arena arena = {0};
    const struct rules *rules;
    int count = 0;

    for (size_t t = 0; (rules = scenario_rules(t)); t++) {
        const struct condition *conditions = scenario_conditions(&arena, rules);

        for (size_t i = 0; i < rules->count; i++)
            if (concerns(&rules->items[i], &conditions[i], topic)) {
                fputs(count++ ? "  " : "\nWhat is refused, and what must hold:\n  ", stdout);
                text_wrap(rule_words(&arena, &rules->items[i]), 2, 6, text_width(stdout, 100), stdout);
            }
    }
    arena_release(&arena);
}

static bool help_keys(const char *topic)
{
    if (!field_help_at(&scenario_table, topic, stdout) && !field_help_everywhere(&scenario_table, topic, stdout))
        return false;
    help_rules(topic);
    return true;
}

/* A word may be a key too. */
static bool help_words_and_keys(const char *topic, struct error *err)
{
    bool word = help_word(topic, stdout, err);

    return (!err->count && help_keys(topic)) || word;
}

static int help_topic(const struct command *command, const char *topic)
{
    static bool (*const helps[])(const char *) = {help_commands, help_names, help_tables};
    struct arena arena = {0};
    struct error err = {0};
    const char **topics;
    const char *meant;
    int code;

    for (size_t i = 0; i < COUNT(helps); i++)
        if (helps[i](topic))
            return EXIT_OK;
    if (help_words_and_keys(topic, &err))
        return EXIT_OK;
    if (list_named(topic, &err) || help_files(topic, &err))
        return report(&err);
    topics = err.count ? NULL : help_topics(&arena, &err);
    meant = topics ? nearest(topic, topic_candidate, topics) : NULL;
    if (err.count)
        code = report(&err);
    else if (meant)
        code = usage_error(command, "unknown topic '%s'; did you mean '%s'?", topic, meant);
    else
        code = usage_error(command, "unknown topic '%s'; expected a command, a kind of file (scenario, gpu, "
                           "communication, software-file, profile, table, paper, sweep-file, training, failures-file), a key of the scenario "
                           "such as cluster.network, a schedule, a collective or its operation, a word such as bubble, or the name of a platform, "
                           "a GPU or a model", topic);
    arena_release(&arena);
    return code;
}

enum { OPT_MAN };

static int help_main(const struct arguments *arguments)
{
    if (arguments->values[OPT_MAN] && arguments->npositional)
        return usage_error(arguments->command, "--man: the page is of the whole program");
    if (arguments->values[OPT_MAN]) {
        man_page_print(stdout);
        return EXIT_OK;
    }
    if (arguments->npositional)
        return help_topic(arguments->command, arguments->positional[0]);
    help_overview();
    return EXIT_OK;
}

static const struct option options[] = {
    [OPT_MAN] = {"--man", .help = "the manual page, for man -l"},
    {"FILE", .help = "scenario; gpu: a data sheet (platforms/gpus/), communication: what a library makes of links "
        "(platforms/communication/), profile: a GPU's kernels (calibration/data/), table: measured collectives (dtsim "
        "collective --table), paper: measured runs (validate), software-file: what a framework does (platforms/software/); "
        "software: the keys that such a file may set; training: what is under 'train' (dtsim train); failures-file: "
        "published failures of a system (platforms/failures/)"},
    {"KEY", .help = "of a scenario: memory, strategy.zero, zero"},
    {"result", .help = "the keys of what commands print with --json, of result.json, and the columns of tables"},
    {"NAME", .help = "of a platform, GPU, model, profile, communication library or software: its file"},
    {"LIST",
        .help = "as 'dtsim list' names it: strategies, collectives, gpus, profiles, platforms, networks, models, software, failures"},
};

const struct command cmd_help = {
    .name = "help",
    .arguments = "[COMMAND|FILE|KEY|result|SCHEDULE|COLLECTIVE|OPERATION|LIST|NAME]",
    .least = 0, .most = 1,
    .brief = "Explains a command, what files hold, a key, a schedule, a collective or all of an operation.",
    .examples = "  dtsim help run\n  dtsim help scenario\n  dtsim help cluster.network\n  dtsim help gpipe\n"
                "  dtsim help all_gather\n",
    .topics = help_topics,
    .options = options, .noptions = COUNT(options),
    .main = help_main,
};
