/* emit_bridge: the YAML of Megatron Bridge, whose keys are Megatron-LM's arguments in sections: the arguments are
 * written, and each becomes its key. */
#include "emit/emit_megatron.h"

#include "jobs/jobs.h"

#include <stdlib.h>

#include "base/base.h"
#include "config/field.h"
#include "launch/launch.h"

static const char *const sections[] = {"model", "train", "optimizer", "ddp", "mixed_precision", "dataset", "checkpoint"};

/* The keys, in the order in which they are found. */
struct keys {
    struct arena *arena;
    struct { struct key { const char *name, *value; } *items; size_t count, capacity; } list;
};

static void put(struct keys *keys, const char *name, const char *value)
{
    *GROW(&keys->list) = (struct key){name, value};
}

static const char *list_of(struct arena *arena, const struct launch_argument *argument)
{
    const char *text = "";

    for (size_t i = 0; i < argument->count; i++)
        text = arena_printf(arena, "%s%s%s", text, i ? ", " : "", argument->values[i].text);
    return arena_printf(arena, "[%s]", text);
}

/* ([0]*3+[1]*58) with each of its items. */
static const char *layers_of(struct arena *arena, long dense, long rest)
{
    const char *text = "";

    for (long i = 0; i < dense + rest; i++)
        text = arena_printf(arena, "%s%s%d", text, i ? ", " : "", i >= dense);
    return arena_printf(arena, "[%s]", text);
}

/* The value of a key as YAML. */
static const char *value_of(struct arena *arena, const struct launch_argument *argument, bool inverse)
{
    const char *text = argument->count ? argument->values[0].text : NULL;
    long dense, rest;

    if (!text)
        return inverse ? "false" : "true";
    if (sscanf(text, "([0]*%ld+[1]*%ld)", &dense, &rest) == 2)
        return layers_of(arena, dense, rest);
    if (!strcmp(argument->name, "recompute-modules") || !strcmp(argument->name, "window-size"))
        return list_of(arena, argument);
    return strcmp(argument->name, "pipeline-model-parallel-layout") ? text : arena_printf(arena, "\"%s\"", text);
}

/* Keys that stand with another one. */
static const struct { const char *argument, *key, *value; } others[] = {
    {"swiglu", "model.gated_linear_unit", "true"},
    {"swiglu", "model.activation_func", "silu"},
    {"vocab-size", "model.should_pad_vocab", "true"},
    {"use-megatron-fsdp", "checkpoint.ckpt_format", "fsdp_dtensor"},
    {"optimizer-cpu-offload", "optimizer.optimizer_offload_fraction", "1.0"},
    {"grad-reduce-in-bf16", "mixed_precision.grad_reduce_in_fp32", "false"},
    {"accumulate-allreduce-grads-in-fp32", "mixed_precision.grad_reduce_in_fp32", "true"},
};
/* Switches that Megatron-LM has on, and the classes of Megatron Bridge off; NULL: whatever else is given. */
static const struct { const char *unless, *key, *value; } opposite[] = {
    {"no-rope-fusion", "model.apply_rope_fusion", "true"},
    {NULL, "model.bias_dropout_fusion", "true"},
    {NULL, "model.persist_layer_norm", "true"},
    {"no-check-for-nan-in-loss-and-grad", "ddp.check_for_nan_in_grad", "true"},
};

static bool has(const struct launch *launch, const char *name)
{
    for (size_t i = 0; i < launch->arguments.count; i++)
        if (!strcmp(launch->arguments.items[i].name, name))
            return true;
    return false;
}

static void put_argument(struct keys *keys, const struct dialect *dialect, const struct launch_argument *argument)
{
    static const char other[] = "swiglu group-query-attention grad-reduce-in-bf16 accumulate-allreduce-grads-in-fp32 "
                                "ckpt-format no-bias-gelu-fusion";
    bool inverse;
    const char *key = dialect_key(keys->arena, dialect, argument->name, &inverse), *value;

    if (!strcmp(argument->name, "vocab-size"))
        key = "model.vocab_size";
    value = value_of(keys->arena, argument, inverse);
    if (!word_in(other, argument->name))
        put(keys, key, value);
    if (!strcmp(argument->name, "seq-length"))
        put(keys, "dataset.seq_length", value);
    for (size_t i = 0; i < COUNT(others); i++)
        if (!strcmp(others[i].argument, argument->name))
            put(keys, others[i].key, others[i].value);
}

/* What a scenario says and Megatron-LM's arguments do not: virtual stages, which it reads off its layout, and the loss of
 * Transformer Engine, which Megatron-LM's checks refuse. */
static void put_beside(struct keys *keys, const struct launch *launch, const struct emit *e)
{
    bool te = emit_is(e, "software.cross_entropy", "fused");

    if (emit_number(e, "strategy.chunks") > 1 && has(launch, "pipeline-model-parallel-layout"))
        put(keys, "model.virtual_pipeline_model_parallel_size", emit_text(e, "strategy.chunks"));
    if (te || !has(launch, "cross-entropy-loss-fusion"))
        put(keys, "model.cross_entropy_loss_fusion", te ? "true" : "false");
    if (te)
        put(keys, "model.cross_entropy_fusion_impl", "te");
}

static void put_all(struct keys *keys, const struct launch *launch, const struct emit *e)
{
    bool virtual = has(launch, "num-virtual-stages-per-pipeline-rank") || emit_number(e, "strategy.chunks") > 1;
    bool fused = has(launch, "swiglu") || !(has(launch, "squared-relu") || has(launch, "disable-bias-linear"));
    bool half = has(launch, "fp16"), wide = has(launch, "accumulate-allreduce-grads-in-fp32");

    for (size_t i = 0; i < launch->arguments.count; i++)
        if (strcmp(launch->arguments.items[i].name, "max-position-embeddings") || !has(launch, "position-embedding-type"))
            put_argument(keys, e->dialect, &launch->arguments.items[i]);
    put_beside(keys, launch, e);
    put(keys, "model.bias_activation_fusion", fused ? "true" : "false");    /* as core_transformer_config_from_args has it */
    for (size_t i = 0; i < COUNT(opposite); i++)
        if (!opposite[i].unless || !has(launch, opposite[i].unless))
            put(keys, opposite[i].key, opposite[i].value);
    if (virtual && !has(launch, "no-overlap-p2p-communication"))
        put(keys, "model.overlap_p2p_comm", "true");
    if (virtual)
        put(keys, "model.batch_p2p_comm", has(launch, "no-overlap-p2p-communication") ? "true" : "false");
    if (has(launch, "fp8-format") && !has(launch, "fp8-recipe"))
        put(keys, "mixed_precision.fp8_recipe", "delayed");
    if (!half && !has(launch, "bf16"))
        put(keys, "mixed_precision.bf16", "false");
    if (!has(launch, "grad-reduce-in-bf16") && !wide)
        put(keys, "mixed_precision.grad_reduce_in_fp32", half ? "false" : "true");
}

static void write_sections(const struct keys *keys, FILE *out)
{
    for (size_t s = 0; s < COUNT(sections); s++) {
        size_t length = strlen(sections[s]);
        bool begun = false;

        for (size_t i = 0; i < keys->list.count; i++) {
            const struct key *key = &keys->list.items[i];

            if (strncmp(key->name, sections[s], length) || key->name[length] != '.')
                continue;
            fprintf(out, "%s%s  %s: %s\n", begun ? "" : sections[s], begun ? "" : ":\n", key->name + length + 1, key->value);
            begun = true;
        }
    }
}

static void write_keys(struct emit *e)
{
    struct keys keys = {.arena = e->arena};
    struct launch launch = {0};
    struct error err = {0};
    FILE *out = e->out;
    char *text = NULL;
    size_t length;

    e->out = open_memstream(&text, &length);
    BUG_IF(!e->out);
    emit_megatron_write(e);
    fclose(e->out);
    e->out = out;
    BUG_IF(launch_parse(e->arena, "the arguments", text, length, &launch, &err));
    put_all(&keys, &launch, e);
    write_sections(&keys, out);
    free(keys.list.items);
    launch_release(&launch);
    free(text);
}

static struct node *read_keys(struct emit *e, const char *text, size_t length, const struct import_options *options,
                              FILE *notes, struct error *err)
{
    const char *comment;
    const struct job_text job = {"the configuration", text, length, options, NULL};

    return bridge_scenario(e->arena, &job, &comment, notes, err);
}

int emit_bridge(const struct scenario *scenario, FILE *out, FILE *notes, struct error *err)
{
    static const struct framework framework = {"Megatron Bridge", "bridge", write_keys, read_keys, true,
                                               emit_megatron_fit};

    return emit_checked(&framework, scenario, out, notes, err);
}
