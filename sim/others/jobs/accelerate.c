/* accelerate: the configuration file of `accelerate launch` (huggingface/accelerate, src/accelerate/commands/config and
 * utils/launch.py): how many processes there are, and what TrainingArguments leave to it. */
#include "jobs/transformers_internal.h"

#include <stdlib.h>
#include <strings.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "launch/launch.h"

struct accelerate { struct arena *arena; struct node *file, *root; struct error *err; };

static const char *word(const struct accelerate *a, const char *path)
{
    const struct node *node = node_at(a->file, path);

    return node && node->kind == NODE_SCALAR && !node_is_null(node) ? node->text : NULL;
}

/* Puts a value of TrainingArguments that they do not say. */
static void put(const struct accelerate *a, const char *path, const char *value)
{
    if (value && !node_at(a->root, path))
        conf_put(a->arena, a->root, path, node_scalar(a->arena, value, false), a->file->loc, a->err);
}

static void read_sharding(const struct accelerate *a)
{
    static const struct { const char *number, *name, *fsdp; } strategies[] = {
        {"1", "FULL_SHARD", "full_shard"}, {"2", "SHARD_GRAD_OP", "shard_grad_op"}, {"3", "NO_SHARD", "no_shard"},
        {"4", "HYBRID_SHARD", "hybrid_shard"},
    };
    const char *said = word(a, "fsdp_config.fsdp_sharding_strategy"), *offload = word(a, "fsdp_config.fsdp_offload_params");
    const char *fsdp = said ? said : "full_shard", *version = word(a, "fsdp_config.fsdp_version");

    for (size_t i = 0; said && i < COUNT(strategies); i++)
        if (!strcmp(said, strategies[i].number) || !strcasecmp(said, strategies[i].name))
            fsdp = strategies[i].fsdp;
    put(a, "fsdp", arena_printf(a->arena, "%s%s", fsdp, offload && !strcmp(offload, "true") ? " offload" : ""));
    put(a, "fsdp_config.min_num_params", word(a, "fsdp_config.fsdp_min_num_params"));
    put(a, "fsdp_config.activation_checkpointing", word(a, "fsdp_config.fsdp_activation_checkpointing"));
    if (version && !strcmp(version, "2"))
        put(a, "fsdp_config.reshard_after_forward", word(a, "fsdp_config.fsdp_reshard_after_forward"));
}

/* A DeepSpeed file that it names, or the keys that it has instead (utils/dataclasses.py, DeepSpeedPlugin). */
static void read_deepspeed(const struct accelerate *a)
{
    static const struct { const char *theirs, *key; } keys[] = {
        {"zero_stage", "zero_optimization.stage"}, {"gradient_clipping", "gradient_clipping"},
        {"offload_optimizer_device", "zero_optimization.offload_optimizer.device"},
        {"offload_param_device", "zero_optimization.offload_param.device"},
    };
    const char *file = word(a, "deepspeed_config.deepspeed_config_file"), *slash = strrchr(a->file->loc.file, '/');

    if (node_get(a->root, "deepspeed"))
        return;
    if (file) {
        put(a, "deepspeed", *file == '/' || !slash ? file :
            arena_printf(a->arena, "%.*s%s", (int)(slash - a->file->loc.file + 1), a->file->loc.file, file));
        return;
    }
    for (size_t i = 0; i < COUNT(keys); i++)
        put(a, arena_printf(a->arena, "deepspeed.%s", keys[i].key),
            word(a, arena_printf(a->arena, "deepspeed_config.%s", keys[i].theirs)));
    put(a, "deepspeed.bf16.enabled", "auto");
    put(a, "deepspeed.fp16.enabled", "auto");
}

static void add(const struct accelerate *a, struct launch *launch, const char *name, long long value)
{
    struct launch_argument *argument = GROW(&launch->launcher);

    *argument = (struct launch_argument){name, a->file->loc, ARENA_ARRAY(a->arena, struct launch_word, 1), 1};
    argument->values[0] = (struct launch_word){arena_printf(a->arena, "%lld", value), a->file->loc};
}

int accelerate_read(struct arena *arena, const char *path, struct node *root, struct launch *launch, struct error *err)
{
    struct accelerate a = {.arena = arena, .root = root, .err = err};
    const char *kind, *form, *processes, *machines;
    long long all, nodes;

    if (conf_load(arena, path, &a.file, err))
        return -1;
    kind = a.file->kind == NODE_MAPPING ? word(&a, "distributed_type") : NULL;
    if (!kind || !word_in("NO MULTI_GPU FSDP DEEPSPEED", kind))
        return error_add(err, EXIT_INPUT, a.file->loc, "expected the file of 'accelerate config' with a distributed_type that is "
                         "NO, MULTI_GPU, FSDP or DEEPSPEED, found %s", kind ? kind : "none");
    form = word(&a, "mixed_precision");
    if (form && !word_in("no bf16 fp16", form))
        return error_add(err, EXIT_INPUT, node_at(a.file, "mixed_precision")->loc, "mixed_precision: %s is not simulated here; "
                         "expected no, bf16 or fp16", form);
    if (form && strcmp(form, "no") && !node_get(root, "bf16") && !node_get(root, "fp16"))
        put(&a, form, "true");
    if (!strcmp(kind, "FSDP"))
        read_sharding(&a);
    else if (!strcmp(kind, "DEEPSPEED"))
        read_deepspeed(&a);
    processes = word(&a, "num_processes");
    machines = word(&a, "num_machines");
    all = processes ? strtoll(processes, NULL, 10) : 0;
    nodes = machines ? strtoll(machines, NULL, 10) : 1;
    if (all > 0 && nodes > 0 && all % nodes)
        return error_add(err, EXIT_INPUT, a.file->loc, "num_processes %lld is no multiple of num_machines %lld", all, nodes);
    if (all > 0 && nodes > 0) {
        add(&a, launch, "nnodes", nodes);
        add(&a, launch, "nproc-per-node", all / nodes);
    }
    return err->count ? -1 : 0;
}
