/* emit_bridge: the YAML of Megatron Bridge, whose keys are Megatron-LM's arguments in sections: the arguments are
 * said, and each becomes its key. */
#include "emit/emit_megatron.h"

#include "emit/emit_rows.h"

#include "jobs/jobs.h"

#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "launch/dialect.h"

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

/* ([0]*3+[1]*58) with each of its items. */
static const char *layers_of(struct arena *arena, long long dense, long long rest)
{
    const char *text = "";

    for (long long i = 0; i < dense + rest; i++)
        text = arena_printf(arena, "%s%s%d", text, i ? ", " : "", i >= dense);
    return arena_printf(arena, "[%s]", text);
}

/* The value of a key as YAML. */
static const char *value_of(struct arena *arena, const struct argument_row *row, const char *text, bool inverse)
{
    const char *list = "";
    long long dense, rest;

    if (!strcmp(text, "true"))
        return inverse ? "false" : "true";
    if (sscanf(text, "([0]*%lld+[1]*%lld)", &dense, &rest) == 2)
        return layers_of(arena, dense, rest);
    if (row->kind != KIND_LIST || !strchr(row->words ? "," : text, ','))
        return strcmp(row->name, "pipeline-model-parallel-layout") ? text : arena_printf(arena, "\"%s\"", text);
    for (const char *at = text; *at; at += strcspn(at, ","), at += *at == ',')
        list = arena_printf(arena, "%s%s%s", list, *list ? ", " : "",
                            dialect_word(arena, row, arena_strndup(arena, at, strcspn(at, ",")), true));
    return arena_printf(arena, "[%s]", list);
}

/* Switches that Megatron-LM has on, and the classes of Megatron Bridge off; NULL: whatever else is given. */
static const struct { const char *unless, *key, *value; } opposite[] = {
    {"no-rope-fusion", "model.apply_rope_fusion", "true"},
    {NULL, "model.bias_dropout_fusion", "true"},
    {NULL, "model.persist_layer_norm", "true"},
    {"no-check-for-nan-in-loss-and-grad", "ddp.check_for_nan_in_grad", "true"},
};

static void put_argument(struct keys *keys, const struct dialect *dialect, const char *name, const char *text)
{
    static const char other[] = "swiglu group-query-attention grad-reduce-in-bf16 accumulate-allreduce-grads-in-fp32 "
                                "ckpt-format no-bias-gelu-fusion";
    const struct node *beside = node_get(node_get(dialect->tables, "beside"), name);
    bool inverse;
    const char *key = dialect_key(keys->arena, dialect, name, &inverse);
    const char *value = value_of(keys->arena, dialect_row(dialect->like, name, false), text, inverse);

    if (!word_in(other, name))
        put(keys, strcmp(name, "vocab-size") ? key : "model.vocab_size", value);
    if (!strcmp(name, "seq-length"))
        put(keys, "dataset.seq_length", value);
    for (size_t i = 0; beside && i < beside->count; i++)
        put(keys, beside->keys[i], beside->items[i]->text);
}

/* What a scenario says and Megatron-LM's arguments do not: virtual stages, which it reads off its layout, and the loss of
 * Transformer Engine, which Megatron-LM's checks refuse. */
static void put_beside(struct keys *keys, const struct emit *e)
{
    bool te = emit_is(e, "software.cross_entropy", "fused");

    if (emit_number(e, "strategy.chunks") > 1 && emit_said(e, "pipeline-model-parallel-layout"))
        put(keys, "model.virtual_pipeline_model_parallel_size", emit_text(e, "strategy.chunks"));
    if (te || !emit_said(e, "cross-entropy-loss-fusion"))
        put(keys, "model.cross_entropy_loss_fusion", te ? "true" : "false");
    if (te)
        put(keys, "model.cross_entropy_fusion_impl", "te");
}

static void put_all(struct keys *keys, const struct emit *e)
{
    bool virtual = emit_said(e, "num-virtual-stages-per-pipeline-rank") || emit_number(e, "strategy.chunks") > 1;
    bool fused = emit_said(e, "swiglu") || !(emit_said(e, "squared-relu") || emit_said(e, "disable-bias-linear"));
    bool half = emit_said(e, "fp16"), wide = emit_said(e, "accumulate-allreduce-grads-in-fp32");

    for (size_t i = 0; i < e->said->count; i++)
        if (emit_prints(e, i) && (strcmp(e->said->keys[i], "max-position-embeddings") || !emit_said(e, "position-embedding-type")))
            put_argument(keys, e->dialect, e->said->keys[i], e->said->items[i]->text);
    put_beside(keys, e);
    put(keys, "model.bias_activation_fusion", fused ? "true" : "false");    /* as core_transformer_config_from_args has it */
    for (size_t i = 0; i < COUNT(opposite); i++)
        if (!opposite[i].unless || !emit_said(e, opposite[i].unless))
            put(keys, opposite[i].key, opposite[i].value);
    if (virtual && !emit_said(e, "no-overlap-p2p-communication"))
        put(keys, "model.overlap_p2p_comm", "true");
    if (virtual)
        put(keys, "model.batch_p2p_comm", emit_said(e, "no-overlap-p2p-communication") ? "true" : "false");
    if (emit_said(e, "fp8-format") && !emit_said(e, "fp8-recipe"))
        put(keys, "mixed_precision.fp8_recipe", "delayed");
    if (!half && !emit_said(e, "bf16"))
        put(keys, "mixed_precision.bf16", "false");
    if (!emit_said(e, "grad-reduce-in-bf16") && !wide)
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

    emit_megatron_say(e);
    put_all(&keys, e);
    write_sections(&keys, e->out);
    free(keys.list.items);
}

int emit_bridge(const struct scenario *scenario, FILE *out, FILE *notes, struct error *err)
{
    static const struct framework framework = {"Megatron Bridge", "bridge", write_keys, bridge_scenario, false, true,
                                               emit_megatron_fit};

    return emit_checked(&framework, scenario, out, notes, err);
}
