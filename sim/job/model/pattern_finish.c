/* Checks a hybrid's pattern and the mappings that go with it. */
#include "model/pattern.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "config/field.h"
#include "model/transformer.h"

static struct loc loc_of(const struct transformer *shape, const char *key)
{
    return field_loc(&transformer_table, shape, key);
}

/* " * + M", or with names " * (attention), + (latent attention), M (Mamba-2),", of all mixers. */
struct letters { char text[256]; };
static struct letters letters(bool named)
{
    struct letters letters = {""};

    for (const struct mixer_letter *mixer = mixer_letters; mixer->letter; mixer++) {
        size_t used = strlen(letters.text);

        snprintf(letters.text + used, sizeof letters.text - used, named ? " %c (%s)," : " %c", mixer->letter, mixer->what);
    }
    return letters;
}

static void check_letters(const struct transformer *shape, struct error *err)
{
    const char *at = pattern_wrong(shape->pattern);
    const struct letters plain = letters(false), named = letters(true);
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
                  "block of multi-token prediction: one of%s, one of - E, or both", place, plain.text);
    else if (at && *at == '(')
        error_add(err, EXIT_INPUT, loc_of(shape, "pattern"), "transformer: pattern: the parenthesis at letter %d holds one "
                  "layer: at most one of%s, then at most one of - E, and ')', such as '(GE)'", place, plain.text);
    else if (at)
        error_add(err, EXIT_INPUT, loc_of(shape, "pattern"), "transformer: pattern: unknown letter '%c' at %d; expected"
                  "%s - (MLP), E (experts), and parentheses around what counts as one layer", *at, place, named.text);
}

/* A mixer's mapping goes with its letter, and the reverse. */
static void check_mappings(const struct transformer *shape, struct error *err)
{
    bool attends = transformer_mixes(shape, MIXER_ATTENTION) || transformer_mixes(shape, MIXER_LATENT);
    bool none = shape->pattern && !attends, deltas = transformer_mixes(shape, MIXER_DELTA) || transformer_mixes(shape, MIXER_KIMI);
#define GIVEN(key) field_given(&transformer_table, shape, key)
#define NO_BLOCK(key) loc_of(shape, key), "transformer: " key ": no block has this mixer; expected its letter in 'pattern'", {0}
#define NO_ATTENTION(key) loc_of(shape, key), "transformer: " key ": no block of 'pattern' has attention; leave it out", {0}
    const struct clash clashes[] = {
        {shape->mamba && !transformer_mixes(shape, MIXER_MAMBA), NO_BLOCK("mamba")},
        {shape->delta && !deltas, NO_BLOCK("delta")},
        {shape->linear && !transformer_mixes(shape, MIXER_LIGHTNING), NO_BLOCK("linear")},
        {shape->attention_gate && (shape->kv_rank || !attends), loc_of(shape, "attention_gate"),
         "transformer: attention_gate: goes with attention that is not latent", {0}},
        {none && GIVEN("kv_rank"), NO_ATTENTION("kv_rank")},
        {none && GIVEN("window"), NO_ATTENTION("window")},
        {none && GIVEN("qk_norm"), NO_ATTENTION("qk_norm")},
    };
#undef GIVEN
#undef NO_BLOCK
#undef NO_ATTENTION

    for (size_t i = 0; mixer_letters[i].letter && shape->pattern; i++)
        if (mixer_letters[i].key && transformer_mixes(shape, mixer_letters[i].mixer) &&
            !field_given(&transformer_table, shape, mixer_letters[i].key))
            error_add(err, EXIT_INPUT, loc_of(shape, "pattern"), "transformer: pattern: '%c' is %s, whose widths are missing; "
                      "expected '%s'", mixer_letters[i].letter, mixer_letters[i].what, mixer_letters[i].key);
    clashes_add(err, clashes, COUNT(clashes));
    if (!shape->pattern)
        return;
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
    if (shape->pattern || shape->mamba || shape->delta || shape->linear || shape->attention_gate)
        check_mappings(shape, err);
    if (!shape->pattern)
        return;
    n = pattern_layers(shape);
    if (!field_given(&transformer_table, shape, "layers"))
        shape->layers = n;
    check_beside(shape, n, err);
}
