#include "cli/mcp_tools.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "config/conf_node.h"
#include "files/json.h"
#include "report/result.h"
#include "scenario/scenario.h"
#include "serve/request.h"

static const struct command *const tools[] = {
    &cmd_run, &cmd_explain, &cmd_plan, &cmd_check, &cmd_compare, &cmd_collective, &cmd_train, &cmd_import, &cmd_emit, &cmd_list,
    &cmd_help,
};
/* Options that agents do without: programs' forms of output, which a call has anyway; what only scripts need, none of which is
 * run; programs that draw. */
static const char unknown[] = "--json --csv --markdown --keys --plot --man --trust --read --env --launch";

static const struct command *tool_named(const char *name)
{
    for (size_t i = 0; i < COUNT(tools); i++)
        if (!strcmp(tools[i]->name, name))
            return tools[i];
    return NULL;
}

static bool has_option(const struct command *command, const char *name)
{
    for (size_t k = 0; k < command->noptions; k++)
        if (!strcmp(command->options[k].name, name))
            return true;
    return false;
}

/* The argument's name of an option: "subject_to"; NULL: agents do without, or it is a word of the usage. */
static const char *argument_of(struct arena *arena, const struct option *option)
{
    char *name;

    if (option->name[0] != '-' || word_in(unknown, option->name))
        return NULL;
    if (option->name[1] != '-')
        return option->kind == OPTION_JOBS ? "jobs" : "output";
    name = arena_printf(arena, "%s", option->name + 2);
    for (char *at = name; *at; at++)
        *at = *at == '-' ? '_' : *at;
    return name;
}

/* The next argument that stands before the options, "SCENARIO|DIR..." as "scenario": NULL after the last one. Those in brackets
 * belong to scripts, or may be left out. */
struct operand { const char *name; bool many, maybe, inlined; };
static const char *operand_next(struct arena *arena, const char *usage, struct operand *operand)
{
    size_t length = strcspn(usage, " "), word;
    char *name;

    if (!length || !strncmp(usage, "[ARGUMENTS", 10))
        return NULL;
    *operand = (struct operand){.maybe = *usage == '['};
    usage += operand->maybe;
    word = strcspn(usage, "| .]");
    name = arena_strndup(arena, usage, word);
    for (char *at = name; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    operand->name = operand->maybe ? "topic" : !strcmp(name, "dir") ? "scenario" : name;
    operand->inlined = !strcmp(operand->name, "scenario");
    operand->many = memmem(usage, length, "...", 3);
    usage += length - operand->maybe;
    return usage + (*usage == ' ');
}

/* {"type": "array", "items": SCHEMA} where there may be several. */
static json_t *one_or_many(json_t *schema, bool many)
{
    return many ? json_pack("{s:s, s:o}", "type", "array", "items", schema) : schema;
}

static json_t *typed(const char *type)
{
    return json_pack("{s:s}", "type", type);
}

static json_t *option_schema(const struct option *option)
{
    bool whole = option->kind == OPTION_COUNT || option->kind == OPTION_JOBS;
    json_t *schema = typed(!option->value ? "boolean" : option->kind == OPTION_SET ? "object" : whole ? "integer" : "string");

    if (whole) {
        json_put(schema, "minimum", json_integer((json_int_t)option->least));
        json_put(schema, "maximum", json_integer((json_int_t)option->most));
    }
    if (option->kind == OPTION_CHOICE) {
        json_put(schema, "enum", json_array());
        for (size_t i = 0; words_at(&option->words, i); i++)
            json_append(json_object_get(schema, "enum"), json_string(words_at(&option->words, i)));
    }
    return one_or_many(schema, option->many && option->kind != OPTION_SET);
}

/* A scenario as an object: its keys, one level deep. */
static json_t *scenario_schema(struct arena *arena)
{
    json_t *schema = node_json(field_schema(arena, &scenario_table)), *key;
    const char *name;

    json_object_del(schema, "$schema");
    json_object_foreach(json_object_get(schema, "properties"), name, key) {
        json_t *brief = json_object_get(key, "description");

        json_object_set_new(json_object_get(schema, "properties"), name,
                            brief ? json_pack("{s:O}", "description", brief) : json_object());
    }
    json_put(schema, "description", json_string("the scenario itself; the tool help tells what a key holds"));
    return schema;
}

static json_t *operand_schema(struct arena *arena, const struct command *command, const struct operand *operand)
{
    json_t *schema = typed("string"), *any;
    const char *help = "";

    for (size_t k = 0; k < command->noptions; k++)       /* all words of the usage: kinds of files, frameworks */
        if (command->options[k].name[0] != '-' && strcmp(operand->name, "file"))
            help = arena_printf(arena, "%s%s%s: %s", help, *help ? "\n" : "", command->options[k].name,
                                option_help(arena, &command->options[k]));
    if (operand->inlined && command != &cmd_emit) {
        any = json_array();
        json_append(any, json_pack("{s:s, s:s}", "type", "string", "description", "a file of the working folder"));
        json_append(any, scenario_schema(arena));
        json_decref(schema);
        schema = json_pack("{s:o}", "anyOf", any);
    }
    schema = one_or_many(schema, operand->many);
    if (*help)
        json_put(schema, "description", json_words(help));
    return schema;
}

static json_t *tool_schema(struct arena *arena, const struct command *command)
{
    json_t *properties = json_object(), *required = json_array();
    const char *usage = command->arguments;
    struct operand operand;

    while ((usage = operand_next(arena, usage, &operand))) {
        json_put(properties, operand.name, operand_schema(arena, command, &operand));
        if (!operand.maybe)
            json_append(required, json_string(operand.name));
    }
    for (size_t k = 0; k < command->noptions; k++) {
        const char *name = argument_of(arena, &command->options[k]);

        if (!name)
            continue;
        json_put(properties, name, option_schema(&command->options[k]));
        json_put(json_object_get(properties, name), "description", json_words(option_help(arena, &command->options[k])));
    }
    if (!has_option(command, "--budget"))
        json_put(properties, "budget", json_pack("{s:s, s:s}", "type", "string", "description", "ends the call after this time: '30 s'"));
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required", required,
                     "additionalProperties", false);
}

static json_t *list_tools(void)
{
    struct arena arena = {0};
    json_t *list = json_array();

    for (size_t i = 0; i < COUNT(tools); i++)
        json_append(list, json_pack("{s:s, s:s, s:o}", "name", tools[i]->name, "description", tools[i]->brief,
                                    "inputSchema", tool_schema(&arena, tools[i])));
    arena_release(&arena);
    return list;
}

/* The words of a command line that is being made, and what stands in for its standard input. */
struct line {
    struct arena *arena;
    const char **items;
    size_t count, capacity;
    const json_t *input;
};

static void add(struct line *line, const char *word)
{
    *GROW(line) = word;
}

/* A value as a word; NULL: it is none. */
static const char *word_of(struct line *line, const json_t *value)
{
    if (json_is_integer(value))
        return arena_printf(line->arena, "%lld", (long long)json_integer_value(value));
    return json_string_value(value);
}

static int refuse(const char *name, const char *expected, struct error *err)
{
    return error_add(err, EXIT_INPUT, (struct loc){.file = "arguments"}, "%s: expected %s", name, expected);
}

/* One value of a path as behind --set: "strategy.tensor=8". NULL: an error. */
static const char *set_word(struct arena *arena, const char *path, struct node *value, struct error *err)
{
    struct node *one = node_mapping(arena);
    const char *const *sets;
    size_t count;

    node_put(arena, one, path, value);
    return request_sets(arena, one, &sets, &count, err) ? NULL : sets[0];
}

/* {"strategy.tensor": 8} as --set strategy.tensor=8; where a path may have several values, [4, 8] as 4,8, and a text as it is. */
static int add_sets(struct line *line, const json_t *value, bool several, struct error *err)
{
    char *text = json_text(value);
    struct node *root;
    int rc = request_tree(line->arena, "arguments", text, strlen(text), 1, &root, err);

    free(text);
    for (size_t i = 0; !rc && i < root->count; i++) {
        struct node *item = root->items[i];
        bool list = several && item->kind == NODE_SEQUENCE && item->count;
        const char *word = NULL;

        for (size_t k = 0; k < (list ? item->count : 1); k++) {
            const char *next = set_word(line->arena, root->keys[i], list ? item->items[k] : item, err);

            if (!next)
                return -1;
            word = word ? arena_printf(line->arena, "%s,%s", word, strchr(next, '=') + 1) : next;
        }
        if (several && item->kind == NODE_SCALAR)
            word = arena_printf(line->arena, "%s=%s", root->keys[i], item->text);
        add(line, "--set");
        add(line, word);
    }
    return rc;
}

static int add_option(struct line *line, const struct option *option, const char *name, const json_t *value, struct error *err)
{
    if (option->kind == OPTION_SET && json_is_object(value))
        return add_sets(line, value, strstr(option->value, "V1"), err);
    if (!option->value) {
        if (json_is_true(value))
            add(line, option->name);
        return json_is_boolean(value) ? 0 : refuse(name, "true or false", err);
    }
    for (size_t i = 0; i < (json_is_array(value) && option->many ? json_array_size(value) : 1); i++) {
        const char *word = word_of(line, json_is_array(value) && option->many ? json_array_get(value, i) : value);

        if (!word)
            return refuse(name, option->kind == OPTION_SET ? "an object: {\"strategy.tensor\": 8}" : "a text or a whole number", err);
        add(line, option->name);
        add(line, word);
    }
    return 0;
}

static int add_operand(struct line *line, const struct operand *operand, const json_t *value, struct error *err)
{
    if (!value && operand->maybe)
        return 0;
    if (operand->inlined && json_is_object(value)) {
        line->input = value;
        return add(line, "-"), 0;
    }
    if (operand->many && json_is_array(value) && json_array_size(value)) {
        struct operand one = {.name = operand->name, .inlined = operand->inlined && !line->input};

        for (size_t i = 0; i < json_array_size(value); i++)
            if (add_operand(line, &one, json_array_get(value, i), err))
                return -1;
        return 0;
    }
    if (!json_is_string(value))
        return refuse(operand->name, operand->inlined ? "a file's path, or a scenario as an object" : "a text", err);
    return add(line, json_string_value(value)), 0;
}

/* The budget, where the command has that option and no other one that was given excludes it: else the server alone holds to it. */
static int add_budget(struct line *line, const struct command *command, const json_t *arguments, struct budget budget,
                      struct error *err)
{
    const json_t *limits = json_object_get(arguments, "budget");
    bool goes = has_option(command, "--budget");

    for (size_t i = 0; limits && i < (json_is_array(limits) ? json_array_size(limits) : 1); i++) {
        const char *limit = json_string_value(json_is_array(limits) ? json_array_get(limits, i) : limits);

        if (!limit || budget_parse(limit, &budget))
            return refuse("budget", "a time such as '30 s', or memory such as '4 GiB', or a list of both", err);
    }
    for (size_t k = 0; k < command->noptions; k++) {
        const char *argument = argument_of(line->arena, &command->options[k]);
        const json_t *value = argument ? json_object_get(arguments, argument) : NULL;

        goes &= !value || json_is_false(value) || !word_in(command->options[k].without, "--budget");
    }
    if (goes) {
        add(line, "--budget");
        add(line, arena_printf(line->arena, "%.17g s", budget.seconds));
    }
    if (goes && budget.bytes > 0) {
        add(line, "--budget");
        add(line, arena_printf(line->arena, "%.0f B", budget.bytes));
    }
    return 0;
}

/* The command line of a call. */
static int make_line(struct line *line, const struct command *command, const json_t *arguments, struct budget budget,
                     struct error *err)
{
    size_t taken = json_object_get(arguments, "budget") != NULL;
    const char *usage = command->arguments, *name;
    struct operand operand;

    add(line, command->name);
    if (has_option(command, "--json"))
        add(line, "--json");
    for (size_t k = 0; k < command->noptions; k++) {
        const char *argument = argument_of(line->arena, &command->options[k]);
        const json_t *value = argument && strcmp(argument, "budget") != 0 ? json_object_get(arguments, argument) : NULL;

        taken += value != NULL;
        if (value && add_option(line, &command->options[k], argument, value, err))
            return -1;
    }
    if (add_budget(line, command, arguments, budget, err))
        return -1;
    add(line, "--");
    while ((usage = operand_next(line->arena, usage, &operand))) {
        taken += json_object_get(arguments, operand.name) != NULL;
        if (add_operand(line, &operand, json_object_get(arguments, operand.name), err))
            return -1;
    }
    if (taken == json_object_size(arguments))
        return 0;
    json_t *schema = tool_schema(line->arena, command), *value;

    json_object_foreach((json_t *)arguments, name, value)
        if (!json_object_get(json_object_get(schema, "properties"), name))
            refuse(name, "one of the tool's arguments, which tools/list names", err);
    json_decref(schema);
    return -1;
}

/* Standard input brings what stands in the call. */
static int put_input(const json_t *input)
{
    int file = memfd_create("input", MFD_CLOEXEC);
    char *text = json_text(input);
    int rc = file < 0 || write(file, text, strlen(text)) < (ssize_t)strlen(text) || lseek(file, 0, SEEK_SET) < 0 ||
             dup2(file, STDIN_FILENO) < 0;

    free(text);
    return rc ? -1 : 0;
}

static int call_tool(const char *name, const json_t *arguments, struct budget budget)
{
    struct arena arena = {0};
    struct line line = {.arena = &arena};
    struct command command = *tool_named(name);
    struct error err = {0};

    command.held = budget.seconds;
    if (make_line(&line, &command, arguments, budget, &err))
        return report_as(&err, true);
    if (line.input && put_input(line.input))
        return EXIT_UNEXPECTED;
    return command_run(&command, (int)line.count, (char **)line.items);
}

int mcp_main(size_t jobs, struct budget budget, struct error *err)
{
    static const char instructions[] =
        "dtsim simulates one training iteration of a neural network on a GPU cluster: its time, its memory, and where the time "
        "goes. 'check' says what a scenario means, 'run' simulates it, 'explain' says where the time went, 'plan' searches "
        "for a better layout, 'compare' holds scenarios side by side, 'collective' times one collective, 'train' a whole "
        "training; 'import' reads the arguments, the configuration or the log of a job, 'emit' writes what to launch; 'list' "
        "has the names of platforms, models and schedules, 'help' every word and key. Files are those of the working "
        "folder, by relative paths; scripts are not run. Errors name file:line:column and what was expected. exit_code: 2 "
        "wrong arguments, 3 some of several failed, 4 a wrong file, 5 not possible (out of memory, degrees that do not "
        "divide), 7 the budget is spent.";
    struct mcp mcp = {.jobs = jobs, .budget = budget, .instructions = instructions, .tools = list_tools, .call = call_tool};

    return mcp_serve(&mcp, err);
}
