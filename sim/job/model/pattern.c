#include "model/pattern.h"

#include <string.h>

#include "base/base.h"
#include "config/field.h"
#include "model/transformer.h"

enum { MOST = 1 << 24 };
#define SIZE(mapping, member, text) \
    {KEY(mapping, member), .kind = FIELD_INT, .required = true, .min = 1, .max = MOST, .brief = text}
static const struct field mamba_fields[] = {
    SIZE(mamba, heads, "number of heads"), SIZE(mamba, head_size, "width of a head"), SIZE(mamba, state, "values of a state's row"),
    SIZE(mamba, groups, "groups of heads that share B and C"),
    {KEY(mamba, conv), .kind = FIELD_INT, .min = 1, .max = 64, .fallback = "4", .brief = "tokens of the convolution"},
    {KEY(mamba, chunk), .kind = FIELD_INT, .min = 1, .max = MOST, .fallback = "128",
     .brief = "tokens that are computed together; model FLOPs do not depend on it"},
};
const struct table mamba_table = {TABLE("mamba", "the widths of Mamba-2, letter M of the pattern", mamba, mamba_fields)};
static const struct field delta_fields[] = {
    SIZE(delta, key_heads, "heads of queries and keys"), SIZE(delta, key_size, "width of one of them"),
    SIZE(delta, value_heads, "heads of values; K: as many as key_heads"), SIZE(delta, value_size, "width of one of them"),
    {KEY(delta, conv), .kind = FIELD_INT, .min = 1, .max = 64, .fallback = "4", .brief = "tokens of the convolution"},
    {KEY(delta, chunk), .kind = FIELD_INT, .min = 1, .max = MOST, .fallback = "64", .brief = "tokens that are computed together"},
};
const struct table delta_table = {
    TABLE("delta", "the widths of gated delta nets, letters G and K of the pattern", delta, delta_fields)};
static const struct field lightning_fields[] = {
    SIZE(lightning, heads, "number of heads"), SIZE(lightning, head_size, "width of a head"),
    {KEY(lightning, block), .kind = FIELD_INT, .min = 1, .max = MOST, .fallback = "256",
     .brief = "tokens that are computed together"},
};
const struct table lightning_table = {
    TABLE("linear", "the widths of lightning attention, letter L of the pattern", lightning, lightning_fields)};

/* Megatron Core's letters (models/hybrid/hybrid_layer_allocation.py), and two for mixers that it lacks. */
const struct mixer_letter mixer_letters[] = {
    {'*', MIXER_ATTENTION, NULL, "attention"}, {'+', MIXER_LATENT, "kv_rank", "latent attention"},
    {'M', MIXER_MAMBA, "mamba", "Mamba-2"}, {'G', MIXER_DELTA, "delta", "a gated delta net"},
    {'K', MIXER_KIMI, "delta", "Kimi delta attention"}, {'L', MIXER_LIGHTNING, "linear", "lightning attention"}, {0},
};

static enum mixer mixer_of(char letter)
{
    for (size_t i = 0; mixer_letters[i].letter; i++)
        if (mixer_letters[i].letter == letter)
            return mixer_letters[i].mixer;
    return MIXER_NONE;
}

/* Reads the layer that begins there; returns where the next one does. NULL: it is none. */
static const char *read_layer(const char *at, struct halves *halves)
{
    bool several = *at == '(';

    *halves = (struct halves){0};
    at += several;
    halves->mixer = mixer_of(*at);
    at += halves->mixer != MIXER_NONE;
    if (several || halves->mixer == MIXER_NONE) {
        halves->experts = *at == 'E';
        halves->mlp = halves->experts || *at == '-';
        at += halves->mlp;
    }
    if ((several && *at != ')') || (halves->mixer == MIXER_NONE && !halves->mlp))
        return NULL;
    return at + several;
}

int pattern_layers(const struct transformer *shape)
{
    struct halves halves;
    int n = 0;

    for (const char *at = shape->pattern; at && *at && *at != '/'; n++)
        at = read_layer(at, &halves);
    return n;
}

/* What stands behind the '/': a block of multi-token prediction as one layer, or as the letters of its mixer and its MLP. NULL: it is
 * none. */
static const char *read_predicting(const char *at, struct halves *halves)
{
    bool letter = *at != '(';
    struct halves more = {0};

    at = read_layer(at, halves);
    if (!at || !*at)
        return at;
    at = letter && !halves->mlp && *at != '(' ? read_layer(at, &more) : NULL;
    halves->mlp = more.mlp;
    halves->experts = more.experts;
    return more.mixer == MIXER_NONE ? at : NULL;
}

static struct halves predicting(const struct transformer *shape)
{
    const char *slash = shape->pattern ? strchr(shape->pattern, '/') : NULL;
    struct halves halves;

    if (!slash)
        return transformer_halves(shape, shape->layers - 1);
    read_predicting(slash + 1, &halves);
    return halves;
}

struct halves transformer_halves(const struct transformer *shape, int block)
{
    struct halves halves = {shape->kv_rank > 0 ? MIXER_LATENT : MIXER_ATTENTION, .mlp = true};

    if (block >= shape->layers)
        return predicting(shape);
    if (shape->pattern) {
        const char *at = shape->pattern;

        for (int i = block % pattern_layers(shape); i >= 0; i--)
            at = read_layer(at, &halves);
    } else if (shape->expert_blocks.node) {
        halves.experts = list_has(&shape->expert_blocks, block);
    } else {
        halves.experts = shape->experts > 0 && block >= shape->dense_layers && block % shape->moe_every == 0;
    }
    if (shape->window > 0 && (halves.mixer == MIXER_ATTENTION || halves.mixer == MIXER_LATENT))
        halves.window = shape->full_blocks.node ? !list_has(&shape->full_blocks, block) :
                                                  !(shape->full_every && (block + 1) % shape->full_every == 0);
    return halves;
}

bool transformer_mixes(const struct transformer *shape, enum mixer mixer)
{
    if (!shape->pattern)
        return mixer == (shape->kv_rank > 0 ? MIXER_LATENT : MIXER_ATTENTION);
    for (size_t i = 0; mixer_letters[i].letter; i++)
        if (mixer_letters[i].mixer == mixer)
            return strchr(shape->pattern, mixer_letters[i].letter);
    return false;
}

const char *transformer_kind(struct arena *arena, const struct transformer *shape)
{
    const char *text = "a hybrid of";
    bool hybrid = false;

    for (size_t i = 0; mixer_letters[i].letter; i++)
        if (transformer_mixes(shape, mixer_letters[i].mixer)) {
            hybrid |= mixer_letters[i].mixer > MIXER_LATENT;
            text = arena_printf(arena, "%s %s,", text, mixer_letters[i].what);
        }
    return shape->vision ? "a vision transformer" : shape->encoder ? "an encoder-decoder" : !hybrid ? "a transformer" : arena_printf(arena, "%.*s", (int)strlen(text) - 1, text);
}

int mixer_widths(const struct transformer *shape, struct mixer_width widths[MIXER_WIDTHS])
{
    bool whole = shape->ways.mixer_context == MIXER_CONTEXT_STATES;
    int n = 0;

    if (transformer_mixes(shape, MIXER_MAMBA)) {
        widths[n++] = (struct mixer_width){.size = shape->mamba->heads, .what = "heads of Mamba-2"};
        widths[n++] = (struct mixer_width){.size = shape->mamba->groups, .what = "groups of Mamba-2", .whole = true};
    }
    if (transformer_mixes(shape, MIXER_DELTA) || transformer_mixes(shape, MIXER_KIMI)) {
        widths[n++] = (struct mixer_width){.size = shape->delta->key_heads, .what = "key heads of the delta net", .whole = whole};
        widths[n++] = (struct mixer_width){.size = shape->delta->value_heads, .what = "value heads of the delta net", .whole = whole};
    }
    if (transformer_mixes(shape, MIXER_LIGHTNING))
        widths[n++] = (struct mixer_width){.size = shape->linear->heads, .what = "heads of lightning attention", .whole = whole};
    return n;
}

int transformer_divides(const struct transformer *shape)
{
    struct mixer_width widths[MIXER_WIDTHS];
    bool attends = transformer_mixes(shape, MIXER_ATTENTION) || transformer_mixes(shape, MIXER_LATENT);
    int n = mixer_widths(shape, widths), common = !attends ? 0 : shape->pattern ? gcd(shape->heads, shape->kv_heads) : shape->heads;

    for (int i = 0; i < n; i++)
        common = gcd(common, widths[i].size);
    return common ? common : shape->ffn;
}

const char *pattern_wrong(const char *pattern)
{
    struct halves halves;

    for (const char *at = pattern, *next; *at; at = next) {
        bool predicts = *at == '/' && at > pattern;

        next = predicts ? read_predicting(at + 1, &halves) : read_layer(at, &halves);
        if (!next || (predicts && *next))
            return at;
    }
    return NULL;
}
