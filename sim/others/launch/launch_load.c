/* launch_load: which kind of text a file is. */
#include "launch/launch_internal.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "launch/bash.h"

/* Whether the text begins, behind comments, with an argument: then it is a list. */
static bool is_list(const char *text, size_t length)
{
    size_t i = text_mark(text, length);

    while (i < length && (isspace((unsigned char)text[i]) || text[i] == '#'))
        if (text[i++] == '#')
            while (i < length && text[i] != '\n')
                i++;
    return i + 2 < length && text[i] == '-' && text[i + 1] == '-' && isalpha((unsigned char)text[i + 2]);
}

/* Files that no shell reads. */
static bool is_other(const char *file)
{
    static const char *const ends[] = {".yaml", ".yml", ".json", ".toml", ".py"};
    size_t length = strlen(file);

    for (size_t i = 0; i < COUNT(ends); i++)
        if (length > strlen(ends[i]) && !strcmp(file + length - strlen(ends[i]), ends[i]))
            return true;
    return false;
}

static bool is_yaml(const char *file)
{
    const char *end = strrchr(file, '.');

    return end && (!strcmp(end, ".yaml") || !strcmp(end, ".yml"));
}

/* The arguments in a mapping of YAML ("--num-layers: 24"): true is an argument without a value, false is none. */
static void take_mapping(struct arena *arena, const struct node *mapping, struct launch *launch)
{
    for (size_t i = 0; i < mapping->count; i++) {
        const struct node *value = mapping->items[i];
        size_t count = value->kind == NODE_SEQUENCE ? value->count : 1;
        bool plain = value->kind == NODE_SCALAR && !value->quoted;
        struct launch_argument *argument;

        if (plain && !strcmp(value->text, "false"))
            continue;
        argument = GROW(&launch->arguments);
        *argument = (struct launch_argument){mapping->keys[i] + 2, mapping->key_locs[i],
                                             ARENA_ARRAY(arena, struct launch_word, count + 1), 0};
        for (size_t k = 0; k < count && !node_is_null(value) && !(plain && !strcmp(value->text, "true")); k++) {
            const struct node *item = value->kind == NODE_SEQUENCE ? value->items[k] : value;

            argument->values[argument->count++] = (struct launch_word){item->text ? item->text : node_flow(arena, item),
                                                                      item->loc};
        }
    }
}

/* Arguments in YAML: MODEL_ARGS of the tests of Megatron-LM (tests/functional_tests/test_cases), or keys with "--". 1: the file
 * has none. */
static int read_yaml(struct arena *arena, const char *text, size_t length, struct launch *launch, struct error *err)
{
    const struct node *mapping;
    struct node *root;

    if (conf_parse(arena, launch->file, text, length, &root, err))
        return -1;
    mapping = root->kind == NODE_MAPPING && node_get(root, "MODEL_ARGS") ? node_get(root, "MODEL_ARGS") : root;
    if (mapping->kind != NODE_MAPPING || !mapping->count)
        return 1;
    for (size_t i = 0; i < mapping->count; i++)
        if (strncmp(mapping->keys[i], "--", 2) && mapping == root)
            return 1;
        else if (strncmp(mapping->keys[i], "--", 2))
            return error_add(err, EXIT_INPUT, mapping->key_locs[i], "expected an argument (--num-layers), found '%s'",
                             mapping->keys[i]);
    launch->loc = mapping->loc;
    take_mapping(arena, mapping, launch);
    return 0;
}

int launch_load(struct arena *arena, const char *path, const struct import_options *options, struct launch *launch,
                struct error *err)
{
    bool standard = !strcmp(path, "-");
    const char *file = standard ? "standard input" : path;
    size_t length;
    char *text = file_read_stream(standard ? "/dev/stdin" : path, "launch script", LAUNCH_MAX_BYTES,
                                  (struct loc){.file = file}, &length, err);
    int rc, other = 1;

    launch->file = file;
    if (!text)
        return -1;
    if (is_yaml(file) && (other = read_yaml(arena, text, length, launch, err)) <= 0)
        rc = other;
    else if (launch_log_is(text, length) || is_list(text, length))
        rc = launch_parse(arena, file, text, length, launch, err);
    else if (is_other(file))
        rc = error_add(err, EXIT_INPUT, (struct loc){.file = file}, "is no script of bash, no list of arguments (also in YAML, "
                       "--num-layers: 24) and no log; other YAML, JSON and TOML are read by the kinds deepspeed, torchtitan, bridge and nemo (dtsim help import)");
    else if (options->held)
        rc = error_add(err, EXIT_INPUT, (struct loc){.file = file}, "is a script, and none is run here; expected a list of the arguments "
                       "(--num-layers 24 ...), or a log that has them");
    else if (length > BASH_MAX_BYTES)
        rc = error_add(err, EXIT_INPUT, (struct loc){.file = file}, "holds more than 1 MiB; expected a launch script");
    else if (!(rc = launch_check_text(file, text, length, err)))
        rc = launch_script(arena, file, text, length, options, launch, err) ? -1 : 0;
    if (!rc && !launch->arguments.count && !launch->log)
        rc = launch_refuse_empty(launch, err);
    free(text);
    return rc;
}
