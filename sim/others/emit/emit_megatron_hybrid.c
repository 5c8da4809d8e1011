/* emit_megatron_hybrid: a pattern of layers as Megatron-LM takes it. pretrain_mamba.py has a letter a half-block, and pretrain_gpt.py
 * layers of a mixer and an MLP or experts each, of which some have linear attention. */
#include "emit/emit_megatron.h"
#include "emit/emit_rows.h"

#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "model/transformer.h"
#include "schedule/schedule.h"
#include "megatron/megatron.h"

#define SHAPE "model.transformer."

/* What stands for the halves of a layer, without parentheses. */
static const char *letters_of(struct arena *arena, struct halves halves)
{
    char mixer[2] = "";

    for (size_t i = 0; mixer_letters[i].letter; i++)
        if (mixer_letters[i].mixer == halves.mixer)
            mixer[0] = mixer_letters[i].letter;
    return arena_printf(arena, "%s%s", mixer, halves.experts ? "E" : halves.mlp ? "-" : "");
}

static const char *layer(const struct emit *e, int i)
{
    return letters_of(e->arena, transformer_halves(e->scenario->model.transformer, i));
}

/* Whether all layers have one letter, or two of which the first is a mixer that a GPT has. */
static bool all_have(const struct emit *e, size_t letters, const char *mixers)
{
    const struct transformer *shape = e->scenario->model.transformer;

    for (int i = 0; i < shape->layers; i++)
        if (strlen(layer(e, i)) != letters || !strchr(mixers, *layer(e, i)))
            return false;
    return true;
}

/* What a depth of multi-token prediction has, behind '/': by default what the last layer has. */
static const char *ahead_of(const struct emit *e)
{
    const struct transformer *shape = e->scenario->model.transformer;
    const char *slash = strchr(shape->pattern, '/');

    return !shape->mtp ? "" : slash ? slash : arena_printf(e->arena, "/%s", layer(e, shape->layers - 1));
}

enum mixes emit_megatron_mixes(const struct emit *e)
{
    const struct transformer *shape = e->scenario->model.transformer;

    if (!shape->pattern)
        return MIXES_NONE;
    if (all_have(e, 1, "M*+G-E"))
        return MIXES_LETTERS;
    return all_have(e, 2, "G*+") && transformer_mixes(shape, MIXER_DELTA) ? MIXES_LINEAR : MIXES_NONE;
}

const char *emit_megatron_letters(const struct emit *e)
{
    const struct transformer *shape = e->scenario->model.transformer;
    const struct node *split = emit_has(e, "hybrid-layer-pattern") ? node_at(e->tree, "strategy.split") : NULL;
    const char *text = "";
    int i = 0;

    for (size_t stage = 0; stage < (split && split->count ? split->count : 1); stage++) {
        int end = split && split->count ? i + (int)strtoll(split->items[stage]->text, NULL, 10) : shape->layers;

        text = stage ? arena_printf(e->arena, "%s|", text) : text;
        for (; i < end && i < shape->layers; i++)
            text = arena_printf(e->arena, "%s%s", text, layer(e, i));
    }
    for (int depth = 0; depth < shape->mtp; depth++)
        text = arena_printf(e->arena, "%s%s", text, ahead_of(e));
    return text;
}

/* A 0 or 1 for each layer: whether its letters have that one. */
static const char *flags(const struct emit *e, char letter)
{
    const struct transformer *shape = e->scenario->model.transformer;
    char *text = arena_alloc(e->arena, (size_t)shape->layers + 1);

    for (int i = 0; i < shape->layers; i++)
        text[i] = strchr(layer(e, i), letter) ? '1' : '0';
    return text;
}

const char *emit_megatron_linear(const struct emit *e)
{
    return flags(e, 'G');
}

const char *emit_megatron_experts(const struct emit *e)
{
    return flags(e, 'E');
}

static void put(struct emit *e, struct node *tree, const char *path, const char *value, struct error *err)
{
    conf_put(e->arena, tree, path, node_scalar(e->arena, value, true), e->scenario->node->loc, err);
}

/* The pattern as its import writes it: the fewest letters that repeat. */
static void put_pattern(struct emit *e, struct node *tree, enum mixes mixes, struct error *err)
{
    const struct transformer *shape = e->scenario->model.transformer;
    const char **units = ARENA_ARRAY(e->arena, const char *, (size_t)shape->layers);

    for (int i = 0; i < shape->layers; i++)
        units[i] = mixes == MIXES_LETTERS ? layer(e, i) : arena_printf(e->arena, "(%s)", layer(e, i));
    put(e, tree, SHAPE "pattern", arena_printf(e->arena, "%s%s", megatron_pattern(e->arena, units, shape->layers),
                                               mixes == MIXES_LETTERS ? ahead_of(e) : ""), err);
}

/* Blocks of attention, first ones with an MLP and then ones with experts, are a GPT without a pattern. */
static bool put_plain(struct emit *e, struct node *tree, struct error *err)
{
    const char *has = emit_megatron_experts(e);
    size_t dense = strspn(has, "0");
    struct node *shape = node_at(tree, "model.transformer");

    if (!all_have(e, 2, "*+") || has[dense + strspn(has + dense, "1")])
        return false;
    if (has[dense])
        put(e, tree, SHAPE "dense_layers", arena_printf(e->arena, "%zu", dense), err);
    shape = node_at(tree, "model.transformer");
    emit_forget(e, shape, "pattern");
    return true;
}

/* The stages that '|' ends, which are the same number of layers where nobody says otherwise. */
static void put_stages(struct emit *e, struct node *tree, struct error *err)
{
    int stages = plan_virtual_stages(&e->scenario->plan), layers = e->scenario->model.transformer->layers;
    struct node *split = node_sequence(e->arena);

    if (stages < 2 || node_at(tree, "strategy.split") || layers % stages || !emit_has(e, "hybrid-layer-pattern"))
        return;
    for (int i = 0; i < stages; i++)
        node_append(e->arena, split, node_scalar(e->arena, arena_printf(e->arena, "%d", layers / stages), false));
    conf_put(e->arena, tree, "strategy.split", split, e->scenario->node->loc, err);
}

/* Letters of later releases: core/ssm/mamba_hybrid_layer_allocation.py and core/models/hybrid/hybrid_layer_allocation.py. */
static void check_letters(struct emit *e, struct error *err)
{
    static const struct { char letter; int since; } letters[] = {{'E', 16}, {'G', 17}, {'/', 17}, {'+', 19}};
    const char *text = emit_megatron_letters(e);

    for (size_t i = 0; i < COUNT(letters); i++)
        if (e->release.last && letters[i].since > e->release.last && strchr(text, letters[i].letter))
            error_add(err, EXIT_INFEASIBLE, node_loc(node_at(e->scenario->node, "model.transformer"), "pattern"), "software %s is "
                      "core_v0.%d, whose patterns lack '%c'; releases since core_v0.%d have it", e->scenario->software.like,
                      e->release.last, letters[i].letter, letters[i].since);
}

/* What a reader of an older release, which is one of the software's, should know: arguments alone do not say it. */
static void remark(struct emit *e)
{
    const struct transformer *shape = e->scenario->model.transformer;

    if (transformer_mixes(shape, MIXER_LATENT) && emit_megatron_mixes(e) == MIXES_LETTERS && e->release.first < 19)
        e->remark = "note: '+' in a pattern is of core_v0.19; older releases of Megatron-LM do not take this command";
    else if (transformer_mixes(shape, MIXER_DELTA) && e->scenario->parallelism.context > 1 && e->release.first < 18)
        e->remark = "note: gated delta nets are divided over context ranks since core_v0.18; older releases of Megatron-LM refuse that";
}

void emit_megatron_fit_hybrid(struct emit *e, struct node *tree, struct error *err)
{
    const struct transformer *shape = e->scenario->model.transformer;
    enum mixes mixes = emit_megatron_mixes(e);
    struct loc place = node_loc(node_at(e->scenario->node, "model.transformer"), "pattern");

    if (!shape->pattern)
        return;
    if (mixes != MIXES_LETTERS && shape->mtp && strchr(shape->pattern, '/'))
        error_add(err, EXIT_INFEASIBLE, place, "model.transformer.pattern cannot be told to Megatron Core: where layers are "
                  "parentheses, a depth of multi-token prediction has what the last layer has; expected no '/'");
    else if (mixes != MIXES_NONE)
        put_pattern(e, tree, mixes, err);
    else if (!put_plain(e, tree, err))
        error_add(err, EXIT_INFEASIBLE, place, "model.transformer.pattern cannot be told to Megatron Core: expected single letters of "
                  "M * + G - E, or parentheses of G, * or +, and - or E");
    remark(e);
    if (mixes == MIXES_LETTERS) {
        put_stages(e, tree, err);
        check_letters(e, err);
    }
}
