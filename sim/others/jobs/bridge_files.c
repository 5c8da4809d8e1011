/* bridge_files: the files of Megatron Bridge, and the files of NeMo 2, which have the same keys in other sections. */
#include "jobs/bridge_internal.h"

#include <strings.h>

#include "base/base.h"
#include "config/conf.h"
#include "launch/imported.h"
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

/* The adapters that a file gives to weights, which are frozen; NULL: none. */
static const struct node *adapters_of(const struct node *root)
{
    static const char *const paths[] = {"peft", "model_transform", "model.model_transform"};
    const struct node *found = NULL;

    for (size_t i = 0; i < COUNT(paths) && !found; i++)
        found = node_at(root, paths[i]);
    return found && !node_is_null(found) ? found : NULL;
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
    if (adapters_of(nemo))
        move(arena, root, "peft", (struct node *)adapters_of(nemo), adapters_of(nemo)->loc);
    move_parts(arena, node_at(nemo, "trainer.plugins"), "MixedPrecision", "mixed_precision", root);
    move_parts(arena, node_at(nemo, "trainer.callbacks"), "CommOverlap", "comm_overlap", root);
    return root;
}

/* Whether a list of the dialect's tables has the name. */
static bool listed(const struct imported *m, const char *list, const char *name)
{
    const struct node *names = node_get(m->dialect->tables, list);

    for (size_t i = 0; i < names->count; i++)
        if (!strcmp(names->items[i]->text, name))
            return true;
    return *name == '_';
}

/* Callbacks or plugins of other classes: what they do is not known here. */
static void warn_parts(struct imported *m, const struct node *parts, const char *what)
{
    const struct node *classes = node_get(node_get(m->dialect->tables, "nemo_classes"), what);
    size_t items = !parts ? 0 : parts->kind == NODE_SEQUENCE ? parts->count : 1;

    for (size_t i = 0; i < items; i++) {
        const struct node *part = parts->kind == NODE_SEQUENCE ? parts->items[i] : parts;
        const char *class = part->kind == NODE_MAPPING ? class_of(part) : NULL;
        bool known = node_is_null(part);

        for (size_t k = 0; class && k < classes->count; k++)
            known |= strstr(class, classes->items[k]->text) != NULL;
        if (!known)
            launch_warn(m->launch, m->arena, part->loc, "trainer.%s: %s is not read; what it does to an iteration is not "
                        "simulated", what, class ? class : "an item without _target_");
    }
}

/* Refuses a file that is no recipe of NeMo 2, and warns of what is not read. */
static int check_nemo(struct imported *m, const struct node *nemo)
{
    const struct node *trainer = node_get(nemo, "trainer"), *steps = node_at(nemo, "trainer.accumulate_grad_batches");

    for (size_t i = 0; i < nemo->count; i++)
        if (!listed(m, "nemo_keys", nemo->keys[i]))
            return error_add(m->err, EXIT_INPUT, nemo->key_locs[i], "'%.60s' is no key of a recipe of NeMo 2; expected model, data, "
                             "trainer, optim, peft, log or resume, as --to-yaml writes them; files of NeMo AutoModel (recipe, "
                             "step_scheduler, distributed) are not read", nemo->keys[i]);
    if (!node_get(nemo, "model") && !trainer)
        return error_add(m->err, EXIT_INPUT, nemo->loc, "says neither model nor trainer; expected a recipe of NeMo 2, as --to-yaml "
                         "writes it");
    for (size_t i = 0; trainer && trainer->kind == NODE_MAPPING && i < trainer->count; i++)
        if (!listed(m, "nemo_trainer", trainer->keys[i]) &&
            !node_is_null(trainer->items[i]) && trainer->items[i] != steps)
            launch_warn(m->launch, m->arena, trainer->key_locs[i], "trainer.%.60s is not read; whether it changes an iteration is "
                        "not known here", trainer->keys[i]);
    if (steps && steps->text && strcmp(steps->text, "1"))
        launch_warn(m->launch, m->arena, steps->loc, "trainer.accumulate_grad_batches: %.20s is not simulated; the global batch "
                    "says how many micro-batches there are", steps->text);
    warn_parts(m, node_at(nemo, "trainer.plugins"), "plugins");
    warn_parts(m, node_at(nemo, "trainer.callbacks"), "callbacks");
    return 0;
}

/* Low-rank adapters (Megatron Bridge, peft/lora.py; NeMo, collections/llm/peft/lora.py). */
static void put_adapters(struct imported *m, const struct node *adapters)
{
    static const struct { const char *theirs, *ours; } modules[] = {
        {"linear_qkv", "qkv"}, {"linear_proj", "projection"}, {"linear_fc1", "mlp-up"}, {"linear_fc2", "mlp-down"},
        {"linear_q_down_proj", "qkv"}, {"linear_q_up_proj", "qkv"}, {"linear_kv_down_proj", "qkv"}, {"linear_kv_up_proj", "qkv"},
    };
    const struct launch_argument *said = imported_given(m, "peft.target_modules");
    const char *class = adapters->kind == NODE_MAPPING ? class_of(adapters) : adapters->text, *list = "";
    const struct node *target = node_get(adapters, "_target_"), *shared = node_get(adapters, "share_expert_adapters");
    long long rank = imported_given(m, "peft.dim") ? imported_number(m, "peft.dim") : 32;         /* peft/lora.py */

    class = class ? class : target ? target->text : "LoRA";
    if (!class || strcasecmp(class, "LoRA") || rank < 1 || rank > 65536) {
        error_add(m->err, EXIT_INPUT, adapters->loc, "peft: %.60s of rank %lld is not simulated; expected LoRA of rank 1 to 65536",
                  class ? class : "a list", rank);
        return;
    }
    for (size_t i = 0; said && i < said->count; i++) {
        size_t k = 0;

        while (k < COUNT(modules) && strcmp(modules[k].theirs, said->values[i].text))
            k++;
        if (k == COUNT(modules)) {
            error_add(m->err, EXIT_INPUT, said->values[i].loc, "peft.target_modules: '%.60s' is not simulated; expected linear_qkv, "
                      "linear_proj, linear_fc1 or linear_fc2", said->values[i].text);
            return;
        }
        if (!strstr(list, modules[k].ours))
            list = arena_printf(m->arena, "%s%s%s", list, *list ? ", " : "", modules[k].ours);
    }
    if (shared && shared->text && !strcasecmp(shared->text, "false"))
        imported_put(m, "software.expert_adapters", "each");
    imported_put(m, "memory.lora", "{rank: %lld, targets: [%s]}", rank, said ? list : "qkv, projection, mlp-up, mlp-down");
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
        *argument = (struct launch_argument){numbers[i].name, node->loc, ARENA_ARRAY(arena, struct launch_word, 1), 1};
        argument->values[0] = (struct launch_word){node->text, node->loc};
    }
}

static struct node *read(struct arena *arena, const struct job_text *job, bool nemo, const char **comment, FILE *notes,
                         struct error *err)
{
    struct launch launch = {.file = job->file};
    struct imported m = {.arena = arena, .launch = &launch, .options = job->options, .err = err};
    const struct node *adapters = NULL;
    struct node *root;
    const char *class = NULL;
    bool printed = false;
    int rc = conf_parse(arena, job->file, job->text, job->length, &root, err);

    launch.loc = (struct loc){.file = job->file};
    if (!rc)
        rc = imported_begin(&m, "bridge");
    if (!rc && nemo && root->kind == NODE_MAPPING)
        rc = check_nemo(&m, root);
    if (!rc && root->kind == NODE_MAPPING) {
        adapters = adapters_of(root);
        const struct node *model = node_at(root, nemo ? "model.config" : "model");

        class = model && model->kind == NODE_MAPPING ? class_of(model) : NULL;
        printed = !nemo && node_get(root, "_target_");
        if (nemo)
            add_launcher(arena, root, &launch);
        root = bridge_plain(arena, nemo ? from_nemo(arena, root) : root);
    }
    if (!rc) {
        rc = job_arguments(arena, root, &launch, err) ? -1 :
             bridge_build(&m, class, nemo ? "nemo" : "megatron-bridge", printed);
        if (!rc && adapters)
            put_adapters(&m, adapters);
        rc |= err->count ? -1 : 0;
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

struct node *nemo_scenario(struct arena *arena, const struct job_text *job, const char **comment, FILE *notes,
                           struct error *err)
{
    return read(arena, job, true, comment, notes, err);
}
