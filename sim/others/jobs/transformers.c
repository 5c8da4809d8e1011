/* transformers: the scenario of Transformers' TrainingArguments in YAML or JSON. DeepSpeed's file, which they may name, gets
 * their values in the place of "auto" (integrations/deepspeed.py, trainer_config_process). */
#include "jobs/jobs_internal.h"
#include "jobs/transformers_internal.h"

#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "launch/dialect.h"
#include "launch/imported.h"
#include "launch/launch.h"

/* Puts a value where DeepSpeed's file says "auto", or nothing of the batch; where it says another one, Transformers ends with
 * an error. */
static void fill(struct imported *m, struct node *tree, const char *path, const char *value)
{
    const struct node *node = node_at(tree, path);

    if (!node && word_in("train_micro_batch_size_per_gpu gradient_accumulation_steps", path))
        conf_put(m->arena, tree, path, node_scalar(m->arena, value, false), tree->loc, m->err);
    if (!node || node->kind != NODE_SCALAR || node_is_null(node))
        return;
    if (!strcmp(node->text, "auto"))
        conf_put(m->arena, tree, path, node_scalar(m->arena, value, false), node->loc, m->err);
    else if (strtod(node->text, NULL) != strtod(value, NULL) || (!strcmp(node->text, "true")) != (!strcmp(value, "true")))
        error_add(m->err, EXIT_INPUT, node->loc, "%s: '%s' is not what the TrainingArguments say, %s; Transformers refuses that",
                  path, node->text, value);
}

/* DeepSpeed's keys: a mapping, or a file beside this one. NULL: an error. */
static struct node *deepspeed_tree(struct imported *m, struct node *value)
{
    const char *slash = strrchr(m->launch->file, '/'), *path;
    struct node *tree = NULL;

    if (value->kind == NODE_MAPPING)
        return value;
    path = !value->text || *value->text == '/' || !slash ? value->text :
           arena_printf(m->arena, "%.*s%s", (int)(slash - m->launch->file + 1), m->launch->file, value->text);
    return path && !conf_load(m->arena, path, &tree, m->err) ? tree : NULL;
}

/* The tokens of a sample; 0: nobody says them. */
static long long length_of(const struct imported *m)
{
    return imported_number(m, imported_given(m, "max_length") ? "max_length" : "max_seq_length");
}

/* Low-rank adapters of PEFT, by the names that Transformers' models have for linear layers; those of one group go together. */
static void put_targets(struct imported *m)
{
    static const struct { const char *ours, *layers; int count; } groups[] = {
        {"qkv", "q_proj k_proj v_proj", 3}, {"qkv", "qkv_proj", 1}, {"projection", "o_proj", 1}, {"mlp-up", "gate_proj up_proj", 2},
        {"mlp-up", "gate_up_proj", 1}, {"mlp-down", "down_proj", 1},
    };
    const struct launch_argument *said = imported_given(m, "lora_target_modules");
    const char *list = "";
    size_t known = 0;

    for (size_t g = 0; said && g < COUNT(groups); g++) {
        int named = 0;

        for (size_t i = 0; i < said->count; i++)
            named += word_in(groups[g].layers, said->values[i].text);
        known += (size_t)named;
        if (named && named != groups[g].count)
            imported_refuse(m, "lora_target_modules", "adapters of some of %s are not simulated; expected all of them", groups[g].layers);
        if (named)
            list = arena_printf(m->arena, "%s%s%s", list, *list ? ", " : "", groups[g].ours);
    }
    if (!said || known != said->count)
        imported_refuse(m, "lora_target_modules", "expected all-linear, or a list of q_proj, k_proj, v_proj, o_proj, gate_proj, "
                        "up_proj and down_proj");
    imported_put(m, "memory.lora.targets", "[%s]", list);
}

/* What is computed again, and what is trained. */
static void put_work(struct imported *m)
{
    imported_rows(m, "recompute");
    imported_rows(m, "adapters");
    if (node_at(m->root, "memory.lora") && !node_at(m->root, "memory.lora.targets"))
        put_targets(m);
    imported_rows(m, "quantized");
}

/* What dtsim has for an optimizer; NULL: nothing, which is an error. */
static const char *optimizer_of(struct imported *m)
{
    const struct argument_row *row = dialect_row(m->dialect, "optim", false);
    const char *name = imported_word(m, row->name), *ours = dialect_word(m->arena, row, name, false);

    if (dialect_knows(row, dialect_word(m->arena, row, ours, true)))
        return ours;
    imported_refuse(m, "optim", "%.60s is not simulated; expected one of %s", name, dialect_words(m->arena, row));
    return NULL;
}

static bool is_precision(const struct imported *m, const char *precision)
{
    const struct node *node = node_at(m->root, "memory.precision");

    return node && !strcmp(node->text, precision);
}

static struct node *through_deepspeed(struct imported *m, struct node *keys, struct job_text job,
                                      const char **comment, FILE *notes)
{
    struct import_options options = *m->options;
    const struct launch_arguments *launcher = &m->launch->launcher;
    struct launch_set *sets = ARENA_ARRAY(m->arena, struct launch_set, options.nsets + launcher->count + 1);
    struct node *tree = deepspeed_tree(m, keys), *made;
    const char *optimizer = optimizer_of(m);
    long long micro = imported_number(m, "per_device_train_batch_size"), steps = imported_number(m, "gradient_accumulation_steps");
    long long world = imported_world(m);

    imported_rows(m, "memory");
    if (!tree || !optimizer)
        return NULL;
    if (!node_at(tree, "optimizer.type") && strcmp(optimizer, "adam"))
        imported_refuse(m, "optim", "with DeepSpeed AdamW alone is simulated where its file says no optimizer");
    options.nsets = 0;
    if (length_of(m) > 0)
        sets[options.nsets++] = (struct launch_set){"sequence", arena_printf(m->arena, "%lld", length_of(m))};
    for (size_t i = 0; i < launcher->count; i++)
        sets[options.nsets++] = (struct launch_set){launcher->items[i].name, launcher->items[i].values[0].text};
    for (size_t i = 0; i < m->options->nsets; i++)           /* of one name the last one holds */
        sets[options.nsets++] = m->options->sets[i];
    options.sets = sets;
    job.options = &options;
    fill(m, tree, "train_micro_batch_size_per_gpu", arena_printf(m->arena, "%lld", micro));
    fill(m, tree, "gradient_accumulation_steps", arena_printf(m->arena, "%lld", steps));
    if (world || !node_at(tree, "train_batch_size") || strcmp(node_at(tree, "train_batch_size")->text, "auto"))
        fill(m, tree, "train_batch_size", arena_printf(m->arena, "%lld", micro * steps * world));
    else                                                     /* it follows from the other two */
        fill(m, tree, "train_batch_size", "null");
    fill(m, tree, "gradient_clipping", imported_word(m, "max_grad_norm"));
    fill(m, tree, "bf16.enabled", is_precision(m, "mixed-bf16") ? "true" : "false");
    fill(m, tree, "fp16.enabled", is_precision(m, "mixed-fp16") ? "true" : "false");
    if (m->err->count)
        return NULL;
    made = deepspeed_of(m->arena, tree, &job, comment, notes, m->err);
    if (made) {
        m->root = made;
        put_work(m);
    }
    return m->err->count ? NULL : made;
}

static void put_sharding(struct imported *m, long long data)
{
    const struct launch_argument *list = imported_given(m, "fsdp");
    const char *all = list && !list->count ? " true " : " ";     /* switched on */

    for (size_t i = 0; list && i < list->count; i++)
        all = arena_printf(m->arena, "%s%s ", all, list->values[i].text);
    if (strstr(all, " full_shard ") || strstr(all, " hybrid_shard ") || !strcmp(all, " true "))
        imported_put(m, "strategy.zero", strcmp(imported_word(m, "fsdp_config.reshard_after_forward"), "false") ? "3" : "2");
    else if (strstr(all, " shard_grad_op "))
        imported_put(m, "strategy.zero", "2");
    else if (strstr(all, "hybrid") || (list && list->count && !strstr(all, " no_shard ") && strspn(all, " ") != strlen(all)))
        imported_refuse(m, "fsdp", "'%.60s' is not simulated; expected full_shard, hybrid_shard, shard_grad_op or no_shard, with "
                        "auto_wrap and offload", all + 1);
    if (strstr(all, " hybrid_shard "))
        imported_put(m, "strategy.shard", "%lld", imported_node_gpus(m->arena, m->options->cluster, m->err) < data ?
                     imported_node_gpus(m->arena, m->options->cluster, m->err) : data);
    if (strstr(all, " offload "))
        imported_put(m, "memory.offload", "[weights, optimizer]");
}

static void put_memory(struct imported *m)
{
    const char *ours = optimizer_of(m);

    imported_rows(m, "memory");
    if (!ours)
        return;
    imported_put(m, "memory.optimizer", "%s", ours);
    put_work(m);
    imported_put(m, "software.like", "%s", m->software);
    imported_rows(m, "switches");
}

static int build(struct imported *m, struct node *model)
{
    long long micro = imported_number(m, "per_device_train_batch_size"), steps = imported_number(m, "gradient_accumulation_steps");
    long long data;
    int found = job_model(m, model);

    if (!found)
        return error_add(m->err, EXIT_INPUT, m->launch->loc, "the file does not say the model; give --hf-config CONFIG, a Hugging "
                         "Face config.json");
    if (found < 0)
        return -1;
    if (!job_sequence(m) && length_of(m) > 0)
        imported_put(m, "model.transformer.sequence", "%lld", length_of(m));
    else if (!job_sequence(m))
        imported_length(m, "sequence");
    if (micro < 1 || steps < 1 || micro > 1 << 20 || steps > 1 << 20)
        return imported_refuse(m, micro < 1 || micro > 1 << 20 ? "per_device_train_batch_size" : "gradient_accumulation_steps",
                               "expected a number of 1 to %d", 1 << 20);
    data = imported_cluster(m, 1, 1, 0, imported_world(m));
    if (!data)
        return -1;
    imported_put(m, "batch.micro", "%lld", micro);
    imported_put(m, "batch.global", "%lld", micro * steps * data);
    put_sharding(m, data);
    put_memory(m);
    return m->err->count ? -1 : 0;
}

struct node *transformers_scenario(struct arena *arena, const struct job_text *job, const char **comment, FILE *notes,
                                   struct error *err)
{
    struct launch launch = {.file = job->file};
    struct imported m = {.arena = arena, .launch = &launch, .options = job->options, .err = err};
    struct node *root, *keys = NULL, *made = NULL;
    int rc = conf_parse(arena, job->file, job->text, job->length, &root, err);

    if (!rc) {
        rc = imported_begin(&m, job->dialect);
        if (!rc && root->kind == NODE_MAPPING && job->options->arguments && job->options->arguments[0])
            rc = accelerate_read(arena, job->options->arguments[0], root, &launch, err);
        keys = rc || root->kind != NODE_MAPPING ? NULL : node_get(root, "deepspeed");
        if (keys && keys->kind == NODE_MAPPING)              /* keys of its own */
            conf_put(arena, root, "deepspeed", node_scalar(arena, "inline", false), keys->loc, err);
        rc = rc || job_arguments(arena, root, &launch, err) || imported_sort(&m) ? -1 : 0;
        if (!rc) {
            imported_plain(&m);
            keys = imported_given(&m, "deepspeed") ? keys : NULL;
            m.software = keys ? "deepspeed" : m.dialect->software;
            rc = err->count ? -1 : !keys ? build(&m, job->model) :
                 (made = through_deepspeed(&m, keys, *job, comment, notes)) ? 0 : -1;
        }
        rc = imported_end(&m, rc, notes);
    }
    *comment = made ? *comment : m.comment;
    launch_release(&launch);
    return rc ? NULL : made ? made : m.root;
}
