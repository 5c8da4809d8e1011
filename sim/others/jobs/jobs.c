/* jobs: what the readers of all job files do alike. */
#include "jobs/jobs_internal.h"

#include "huggingface/hf_config.h"

#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "launch/imported.h"
#include "launch/launch.h"
#include "megatron/megatron.h"

/* Refuses a file that another reader reads, or none, as far as its name tells. */
static int refuse_other(const char *file, const char *kind, struct error *err)
{
    static const struct { const char *end, *kind; } others[] = {
        {".sh", "megatron"}, {".toml", "torchtitan"}, {".json", "deepspeed"}, {".py", NULL},
    };
    const char *end = strrchr(file, '.');

    for (size_t i = 0; end && i < COUNT(others); i++)
        if (!strcmp(end, others[i].end) && !(i == 2 && !strcmp(kind, "transformers")) && (!others[i].kind || strcmp(others[i].kind, kind)))
            return others[i].kind ?
                   error_add(err, EXIT_INPUT, (struct loc){.file = file}, "is no file that 'dtsim import %s' reads; expected "
                             "'dtsim import %s'", kind, others[i].kind) :
                   error_add(err, EXIT_INPUT, (struct loc){.file = file}, "is a program in Python, which is not run; expected "
                             "the file that it is given or writes (TOML, YAML, JSON). Configurations of torchtitan of 2026 are "
                             "functions in Python: give the TOML of a release until 2025, or its keys as TOML");
    return 0;
}

int job_import(struct arena *arena, const char *path, const struct job_kind *kind, const struct import_options *options,
               FILE *out, FILE *notes, struct error *err)
{
    bool standard = !strcmp(path, "-");
    const char *file = standard ? "standard input" : path, *comment = "";
    size_t length;

    if (!kind->any && refuse_other(file, kind->name, err))
        return -1;

    char *text = file_read_stream(standard ? "/dev/stdin" : path, "job's file", CONF_MAX_BYTES,
                                  (struct loc){.file = file}, &length, err);
    struct node *root;

    if (!text)
        return -1;
    root = kind->read(arena, &(struct job_text){file, text, length, options, NULL, kind->name}, &comment, notes, err);
    int rc = root ? imported_print(root, file, kind->name, comment, out, err) : -1;

    free(text);
    return rc;
}

struct node *megatron_command(struct arena *arena, const struct job_text *job, const char **comment, FILE *notes,
                              struct error *err)
{
    struct launch launch = {0};
    struct node *root = NULL;

    if (!launch_parse(arena, job->file, job->text, job->length, &launch, err))
        root = megatron_scenario(arena, &launch, job->options, comment, notes, err);
    launch_release(&launch);
    return root;
}

static void add_leaf(struct arena *arena, const char *name, const struct node *value, struct loc loc,
                     struct launch *launch)
{
    struct launch_argument *argument = GROW(&launch->arguments);
    size_t count = value->kind == NODE_SEQUENCE ? value->count : 1;

    *argument = (struct launch_argument){
        .name = name, .loc = loc, .values = ARENA_ARRAY(arena, struct launch_word, count + 1)};
    for (size_t i = 0; i < count; i++) {
        const struct node *item = value->kind == NODE_SEQUENCE ? value->items[i] : value;

        argument->values[argument->count++] = (struct launch_word){item->text ? item->text : node_flow(arena, item),
                                                                  item->loc};
    }
}

static void add_mapping(struct arena *arena, const char *prefix, const struct node *mapping, struct launch *launch)
{
    for (size_t i = 0; i < mapping->count; i++) {
        const struct node *value = mapping->items[i];
        const char *name = arena_printf(arena, "%s%s%s", prefix, *prefix ? "." : "", mapping->keys[i]);

        if (value->kind == NODE_MAPPING)
            add_mapping(arena, name, value, launch);
        else if (!node_is_null(value))
            add_leaf(arena, name, value, mapping->key_locs[i], launch);
    }
}

int job_arguments(struct arena *arena, const struct node *root, struct launch *launch, struct error *err)
{
    launch->log = launch->keys = true;
    launch->loc = (struct loc){.file = launch->file};
    if (root->kind != NODE_MAPPING)
        return error_add(err, EXIT_INPUT, root->loc, "expected keys and their values, found %s",
                         root->kind == NODE_SEQUENCE ? "a list" : "one value");
    add_mapping(arena, "", root, launch);
    return 0;
}

const char *job_sequence(const struct imported *m)
{
    const char *sequence = NULL;

    for (size_t i = 0; i < m->options->nsets; i++)
        if (!strcmp(m->options->sets[i].name, "sequence"))
            sequence = m->options->sets[i].value;
    return sequence;
}

int job_model(struct imported *m, struct node *model)
{
    struct hf_config config;
    const char *sequence = job_sequence(m);

    if (!m->options->hf_config) {
        if (model)
            node_put(m->arena, m->root, "model", model);
        return model != NULL;
    }
    if (hf_config_read(m->arena, m->options->hf_config, NULL, &config, m->err))
        return -1;
    node_put(m->arena, node_get(m->root, "model"), "transformer", config.shape);
    if (sequence)
        imported_put(m, "model.transformer.sequence", "%s", sequence);
    if (config.note)
        launch_warn(m->launch, m->arena, (struct loc){.file = m->options->hf_config}, "%s", config.note);
    return 1;
}

bool job_true(const struct imported *m, const char *name)
{
    const char *word = imported_word(m, name);

    return imported_given(m, name) && !imported_given(m, name)->count ? true : word && !strcmp(word, "true");
}
