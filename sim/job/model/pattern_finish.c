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
        error_add(err, EXIT_INPUT, loc_of(shape, "pattern"), "transformer: pattern: behind the '/' at letter %d stand the halves of a "
                  "block of multi-token prediction: one of * + M G K L, one of - E, or both", place);
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
    static const char *const keys[] = {"mamba", "delta", "linear"}, *const attention[] = {"kv_rank", "window", "qk_norm"};
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
    if (shape->attention_gate && (shape->kv_rank || !attends))
        error_clash(err, loc_of(shape, "attention_gate"), "transformer: attention_gate: goes with attention that is not latent");
    if (!shape->pattern)
        return;
    for (size_t i = 0; i < COUNT(attention); i++)
        if (!attends && field_given(&transformer_table, shape, attention[i]))
            error_clash(err, loc_of(shape, attention[i]), "transformer: %s: no block of 'pattern' has attention; leave it out",
                        attention[i]);
    if (attends && !field_given(&transformer_table, shape, "heads"))
        error_add(err, EXIT_INPUT, loc_of(shape, "pattern"), "transformer: pattern: its attention needs the key 'heads'");
    if (strchr(shape->pattern, 'E') && !shape->experts)
        error_add(err, EXIT_INPUT, loc_of(shape, "pattern"), "transformer: pattern: 'E' stands for experts, and there are none; "
                  "expected the keys 'experts' and 'experts_per_token'");
}

/* What does not go with a pattern of `layers` layers. */
static void check_beside(const struct transformer *shape, int layers, struct error *err)
{
    const struct delta none = {0}, *delta = shape->delta ? shape->delta : &none;
    bool dense = field_given(&transformer_table, shape, "dense_layers");
    bool every = field_given(&transformer_table, shape, "moe_every");
    bool listed = field_given(&transformer_table, shape, "expert_blocks");
#define SAYS_HALVES(key) "transformer: " key ": does not go with 'pattern', which says the halves of every block; leave it out"
    const struct clash clashes[] = {
        {shape->experts && !strchr(shape->pattern, 'E'), loc_of(shape, "experts"),
         "transformer: experts: no block has them; expected 'E' in 'pattern'", {0}},
        {shape->kv_rank && transformer_mixes(shape, MIXER_ATTENTION), loc_of(shape, "pattern"),
         "transformer: pattern: '*' is attention that is not latent, beside kv_rank; expected '+'", {0}},
        {transformer_mixes(shape, MIXER_KIMI) && delta->key_heads != delta->value_heads, loc_of(shape, "delta"),
         "transformer: delta: Kimi delta attention has as many heads of keys as of values; found %d and %d",
         {delta->key_heads, delta->value_heads}},
        {dense, loc_of(shape, "dense_layers"), SAYS_HALVES("dense_layers"), {0}},
        {every, loc_of(shape, "moe_every"), SAYS_HALVES("moe_every"), {0}},
        {listed, loc_of(shape, "expert_blocks"), SAYS_HALVES("expert_blocks"), {0}},
        {shape->parallel, loc_of(shape, "parallel"), SAYS_HALVES("parallel"), {0}},
        {strchr(shape->pattern, '/') && !shape->mtp, loc_of(shape, "pattern"),
         "transformer: pattern: '/' begins a block of multi-token prediction, and there is none; expected the key 'mtp'", {0}},
        {shape->layers % layers, loc_of(shape, "layers"),
         "transformer: layers: %d is no multiple of the %d layers of 'pattern'; a letter alone is a layer, and so is what "
         "parentheses hold", {shape->layers, layers}},
    };
#undef SAYS_HALVES

    clashes_add(err, clashes, COUNT(clashes));
}

void pattern_finish(struct transformer *shape, struct error *err)
{
    int before = err->count + err->dropped, n;

    if (shape->pattern)
        check_letters(shape, err);
    if (err->count + err->dropped > before)
        return;
    check_mappings(shape, err);
    if (!shape->pattern)
        return;
    n = pattern_layers(shape);
    if (!field_given(&transformer_table, shape, "layers"))
        shape->layers = n;
    check_beside(shape, n, err);
}
