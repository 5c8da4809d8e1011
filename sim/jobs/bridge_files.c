/* bridge_files: the files of Megatron Bridge, and the files of NeMo 2, which have the same keys in other sections. */
#include "jobs/bridge_internal.h"
#include "jobs/bridge_table.h"

#include "base/base.h"
#include "config/conf.h"
#include "imported/imported.h"
#include "launch/launch.h"

/* Sections of NeMo 2 (NVIDIA/NeMo at 8cfedd72, September 2025: nemo/lightning/pytorch/strategies/megatron_strategy.py,
 * nemo/collections/llm/recipes) and where Megatron Bridge has their keys; the longest path comes first. */
static const struct { const char *path, *section; } nemo_sections[] = {
    {"trainer.strategy.ddp", "ddp"}, {"trainer.strategy", "model"}, {"model.config", "model"},
    {"optim.config", "optimizer"},
};

static const char *class_of(const struct node *model)
{
    const struct node *target = node_get(model, "_target_");
    const char *dot = target && target->text ? strrchr(target->text, '.') : NULL;

    return dot ? dot + 1 : NULL;
}

static struct node *section_of(struct arena *arena, struct node *root, const char *name)
{
    struct node *section = node_get(root, name);

    if (!section) {
        section = node_mapping(arena);
        node_put(arena, root, name, section);
    }
    return section;
}

static void move(struct arena *arena, struct node *section, const char *key, struct node *value, struct loc loc)
{
    node_put(arena, section, key, value);
    section->key_locs[section->count - 1] = loc;
}

/* Moves the keys of a mapping, but for mappings that have a section of their own. */
static void move_all(struct arena *arena, const struct node *from, struct node *section)
{
    for (size_t i = 0; from && from->kind == NODE_MAPPING && i < from->count; i++)
        if (strcmp(from->keys[i], "ddp") && from->keys[i][0] != '_' && !node_get(section, from->keys[i]))
            move(arena, section, from->keys[i], from->items[i], from->key_locs[i]);
}

/* The sections of callbacks and plugins, each a mapping or a list of mappings that their class tells apart. */
static void move_parts(struct arena *arena, const struct node *parts, const char *class, const char *name,
                       struct node *root)
{
    size_t count = !parts ? 0 : parts->kind == NODE_SEQUENCE ? parts->count : 1;

    for (size_t i = 0; i < count; i++) {
        const struct node *part = parts->kind == NODE_SEQUENCE ? parts->items[i] : parts;
        const char *own = part->kind == NODE_MAPPING ? class_of(part) : NULL;

        if (own && strstr(own, class))
            move_all(arena, part, section_of(arena, root, name));
    }
}

/* NeMo 2's tree as Megatron Bridge's. */
static struct node *from_nemo(struct arena *arena, const struct node *nemo)
{
    static const char *const batch[] = {"micro_batch_size", "global_batch_size", "rampup_batch_size"};
    struct node *root = node_mapping(arena), *data = node_get(nemo, "data");

    root->loc = nemo->loc;
    for (size_t i = 0; i < COUNT(nemo_sections); i++)
        move_all(arena, node_at(nemo, nemo_sections[i].path), section_of(arena, root, nemo_sections[i].section));
    for (size_t i = 0; data && data->kind == NODE_MAPPING && i < data->count; i++) {
        bool size = false;

        for (size_t k = 0; k < COUNT(batch); k++)
            size |= !strcmp(data->keys[i], batch[k]);
        if (data->keys[i][0] != '_')
            move(arena, section_of(arena, root, size ? "train" : "dataset"), data->keys[i], data->items[i],
                 data->key_locs[i]);
    }
    move_parts(arena, node_at(nemo, "trainer.plugins"), "MixedPrecision", "mixed_precision", root);
    move_parts(arena, node_at(nemo, "trainer.callbacks"), "CommOverlap", "comm_overlap", root);
    return root;
}

/* trainer.num_nodes and trainer.devices are the launcher's. */
static void add_launcher(struct arena *arena, const struct node *nemo, struct launch *launch)
{
    static const struct { const char *path, *name; } numbers[] = {
        {"trainer.num_nodes", "nnodes"}, {"trainer.devices", "nproc-per-node"},
    };

    for (size_t i = 0; i < COUNT(numbers); i++) {
        const struct node *node = node_at(nemo, numbers[i].path);
        struct launch_argument *argument;

        if (!node || !node->text)
            continue;
        argument = GROW(&launch->launcher);
        *argument = (struct launch_argument){numbers[i].name, node->loc, ARENA_ARRAY(arena, struct shell_word, 1), 1};
        argument->values[0] = (struct shell_word){node->text, node->loc};
    }
}

static struct node *read(struct arena *arena, const struct job_text *job, bool nemo, const char **comment, FILE *notes,
                         struct error *err)
{
    struct launch launch = {.file = job->file};
    struct imported m = {.arena = arena, .launch = &launch, .options = job->options, .table = &bridge_keys, .err = err};
    struct node *root;
    const char *class = NULL;
    bool printed = false;
    int rc = conf_parse(arena, job->file, job->text, job->length, &root, err);

    if (!rc && root->kind == NODE_MAPPING) {
        const struct node *model = node_at(root, nemo ? "model.config" : "model");

        class = model && model->kind == NODE_MAPPING ? class_of(model) : NULL;
        printed = !nemo && node_get(root, "_target_");
        if (nemo)
            add_launcher(arena, root, &launch);
        root = bridge_plain(arena, nemo ? from_nemo(arena, root) : root);
    }
    if (!rc) {
        imported_begin(&m);
        rc = job_arguments(arena, root, &launch, err) ? -1 :
             bridge_build(&m, class, nemo ? "nemo" : "megatron-bridge", printed);
        rc = imported_end(&m, rc, notes);
    }
    *comment = m.comment;
    launch_release(&launch);
    return rc ? NULL : m.root;
}

struct node *bridge_scenario(struct arena *arena, const struct job_text *job, const char **comment, FILE *notes,
                             struct error *err)
{
    return read(arena, job, false, comment, notes, err);
}

static struct node *nemo_scenario(struct arena *arena, const struct job_text *job, const char **comment, FILE *notes,
                                  struct error *err)
{
    return read(arena, job, true, comment, notes, err);
}

int bridge_import(struct arena *arena, const char *path, const struct import_options *options, FILE *out, FILE *notes,
                  struct error *err)
{
    return job_import(arena, path, &(struct job_kind){"bridge", bridge_scenario}, options, out, notes, err);
}

int nemo_import(struct arena *arena, const char *path, const struct import_options *options, FILE *out, FILE *notes,
                struct error *err)
{
    return job_import(arena, path, &(struct job_kind){"nemo", nemo_scenario}, options, out, notes, err);
}
