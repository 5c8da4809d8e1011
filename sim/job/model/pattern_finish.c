/* Checks a hybrid's pattern and the mappings that go with it. */
#include "model/pattern.h"

#include <string.h>

#include "base/base.h"
#include "config/field.h"
#include "model/transformer.h"

static struct loc loc_of(const struct transformer *shape, const char *key)
{
    return field_loc(&transformer_table, shape, key);
}

static void check_letters(const struct transformer *shape, struct error *err)
{
    const char *at = pattern_wrong(shape->pattern);
    int place = at ? (int)(at - shape->pattern) + 1 : 0;

    if (!*shape->pattern)
        error_add(err, EXIT_INPUT, loc_of(shape, "pattern"), "transformer: pattern: is empty; expected letters, such as '(*-)'");
    else if (at && *at == '|')
        error_add(err, EXIT_INPUT, loc_of(shape, "pattern"), "transformer: pattern: '|' at letter %d ends a pipeline stage; "
                  "leave it out, and say how many layers each stage has as 'strategy: {split: [...]}'", place);
    else if (at && *at == 'D')
        error_add(err, EXIT_INPUT, loc_of(shape, "pattern"), "transformer: pattern: 'D' at letter %d is sparse attention, which "
                  "is not simulated; '+' is latent attention over all keys", place);
    else if (at && *at == ')')
        error_add(err, EXIT_INPUT, loc_of(shape, "pattern"), "transformer: pattern: no parenthesis is open for ')' at letter %d; "
                  "expected '(' before it, such as '(GE)', or none", place);
    else if (at && *at == '/')
        error_add(err, EXIT_INPUT, loc_of(shape, "pattern"), "transformer: pattern: '/' at letter %d begins the blocks of multi-token "
                  "prediction; expected it once, with layers on both sides, such as 'M*-/*-'", place);
    else if (at && *at == '(')
        error_add(err, EXIT_INPUT, loc_of(shape, "pattern"), "transformer: pattern: the parenthesis at letter %d holds one "
                  "layer: at most one of * + M G K L, then at most one of - E, and ')', such as '(GE)'", place);
    else if (at)
        error_add(err, EXIT_INPUT, loc_of(shape, "pattern"), "transformer: pattern: unknown letter '%c' at %d; expected "
                  "* (attention), + (latent attention), M (Mamba-2), G (gated delta net), K (Kimi delta attention), L (lightning "
                  "attention), - (MLP), E (experts), and parentheses around what counts as one layer", *at, place);
}

/* A mixer's mapping goes with its letter, and the reverse. */
static void check_mappings(const struct transformer *shape, struct error *err)
{
    static const char *const keys[] = {"mamba", "delta", "linear"};
    bool attends = transformer_mixes(shape, MIXER_ATTENTION) || transformer_mixes(shape, MIXER_LATENT);

    for (size_t i = 0; mixer_letters[i].letter && shape->pattern; i++)
        if (mixer_letters[i].key && transformer_mixes(shape, mixer_letters[i].mixer) &&
            !field_given(&transformer_table, shape, mixer_letters[i].key))
            error_add(err, EXIT_INPUT, loc_of(shape, "pattern"), "transformer: pattern: '%c' is %s, whose widths are missing; "
                      "expected '%s'", mixer_letters[i].letter, mixer_letters[i].what, mixer_letters[i].key);
    for (size_t i = 0; i < COUNT(keys); i++) {
        bool used = false;

        for (size_t k = 0; mixer_letters[k].letter; k++)
            used |= mixer_letters[k].key && !strcmp(mixer_letters[k].key, keys[i]) && transformer_mixes(shape, mixer_letters[k].mixer);
        if (!used && field_given(&transformer_table, shape, keys[i]))
            error_clash(err, loc_of(shape, keys[i]), "transformer: %s: no block has this mixer; expected its letter in 'pattern'",
                        keys[i]);
    }
    if (!shape->pattern)
        return;
    if (attends && !field_given(&transformer_table, shape, "heads"))
        error_add(err, EXIT_INPUT, loc_of(shape, "pattern"), "transformer: pattern: its attention needs the key 'heads'");
    if (strchr(shape->pattern, 'E') && !shape->experts)
        error_add(err, EXIT_INPUT, loc_of(shape, "pattern"), "transformer: pattern: 'E' stands for experts, and there are none; "
                  "expected the keys 'experts' and 'experts_per_token'");
    if (shape->experts && !strchr(shape->pattern, 'E'))
        error_clash(err, loc_of(shape, "experts"), "transformer: experts: no block has them; expected 'E' in 'pattern'");
    if (shape->kv_rank && transformer_mixes(shape, MIXER_ATTENTION))
        error_clash(err, loc_of(shape, "pattern"), "transformer: pattern: '*' is attention that is not latent, beside kv_rank; "
                    "expected '+'");
    if (transformer_mixes(shape, MIXER_KIMI) && shape->delta && shape->delta->key_heads != shape->delta->value_heads)
        error_clash(err, loc_of(shape, "delta"), "transformer: delta: Kimi delta attention has as many heads of keys as of "
                    "values; found %d and %d", shape->delta->key_heads, shape->delta->value_heads);
}

void pattern_finish(struct transformer *shape, struct error *err)
{
    static const char *const others[] = {"dense_layers", "moe_every", "expert_blocks", "parallel"};
    int before = err->count + err->dropped, n;

    if (shape->pattern)
        check_letters(shape, err);
    if (err->count + err->dropped > before)
        return;
    check_mappings(shape, err);
    if (!shape->pattern)
        return;
    for (size_t i = 0; i < COUNT(others); i++)
        if (field_given(&transformer_table, shape, others[i]) && (i < 3 || shape->parallel))
            error_clash(err, loc_of(shape, others[i]), "transformer: %s: does not go with 'pattern', which says the halves of every "
                        "block; leave it out", others[i]);
    n = pattern_layers(shape);
    if (!field_given(&transformer_table, shape, "layers"))
        shape->layers = n;
    if (shape->layers % n)
        error_clash(err, loc_of(shape, "layers"), "transformer: layers: %d is no multiple of the %d layers of 'pattern'; a letter "
                    "alone is a layer, and so is what parentheses hold", shape->layers, n);
}
