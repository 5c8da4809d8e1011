/* megatron_hybrid: models whose layers mix tokens in several ways. Two programs of Megatron-LM make them: pretrain_mamba.py from
 * a letter a half-block (core/models/hybrid/hybrid_layer_allocation.py, and validate_args of training/arguments.py, of
 * core_v0.19.0), and pretrain_gpt.py with --experimental-attention-variant (core/models/gpt/
 * experimental_attention_variant_module_specs.py, get_linear_attention_pattern). */
#include "megatron/megatron_internal.h"

#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "launch/dialect.h"
#include "launch/launch.h"

#define SHAPE "model.transformer."
enum { LONGEST_PATTERN = 4000 };

/* The argument that has the letters; NULL: neither is given. */
static const char *letters_argument(const struct imported *m)
{
    static const char *const names[] = {"hybrid-layer-pattern", "hybrid-override-pattern"};

    for (size_t i = 0; i < COUNT(names); i++)
        if (imported_given(m, names[i]))
            return names[i];
    return NULL;
}

/* Letters before the blocks of multi-token prediction, with '|' at the ends of stages; NULL: there are none. */
static const char *letters_of(const struct imported *m)
{
    const char *name = letters_argument(m), *text = name ? imported_word(m, name) : NULL;

    return text ? arena_strndup(m->arena, text, strcspn(text, "/")) : NULL;
}

long long megatron_layers(const struct imported *m)
{
    const char *letters = letters_of(m);
    long long count = 0;

    for (const char *c = letters; c && *c; c++)
        count += *c != '|';
    return letters ? count : imported_number(m, "num-layers");
}

long long megatron_stages(const struct imported *m, long long *layers)
{
    const char *letters = letters_of(m);
    long long count = 0;

    if (!letters || !strchr(letters, '|'))
        return 0;
    for (const char *at = letters;; at++) {
        size_t length = strcspn(at, "|");

        if (layers)
            layers[count] = (long long)length;
        count++;
        at += length;
        if (!*at)
            return count;
    }
}

/* Whether units repeat after that many. */
static bool repeats(const char *const *units, long long count, long long period)
{
    for (long long i = period; i < count; i++)
        if (strcmp(units[i], units[i - period]))
            return false;
    return count % period == 0;
}

const char *megatron_pattern(struct arena *arena, const char *const *units, long long count)
{
    long long period = 1;
    size_t length = 0, at = 0;
    char *text;

    while (period < count && (count % period || !repeats(units, count, period)))
        period++;
    for (long long i = 0; i < period && i < count; i++)
        length += strlen(units[i]);
    text = arena_alloc(arena, length + 1);
    for (long long i = 0; i < period && i < count; at += strlen(units[i++]))
        memcpy(text + at, units[i], strlen(units[i]));
    return text;
}

/* A letter as a text of its own. */
static const char *unit(struct arena *arena, char letter)
{
    return arena_printf(arena, "%c", letter);
}

static bool check_letters(struct imported *m, const char *name, const char *letters)
{
    for (const char *c = letters; *c; c++)
        if (*c == 'D')
            return imported_refuse(m, name, "'D' is sparse attention, which is not simulated"), false;
        else if (!strchr("MG*+-E|", *c))
            return imported_refuse(m, name, "unknown letter '%c'; expected M (Mamba-2), G (gated delta net), * (attention), + "
                                   "(latent attention), - (MLP), E (experts), | and /", *c), false;
    if (!letters[strspn(letters, "|")] || strlen(letters) > LONGEST_PATTERN)
        return imported_refuse(m, name, "expected 1 to %d letters", LONGEST_PATTERN), false;
    return true;
}

/* What one depth of multi-token prediction has: behind the first '/', where all depths are alike; or an argument of its own.
 * *depths: how many there are. NULL: none, or an error. */
static const char *predicting(struct imported *m, const char *name, long long *depths)
{
    const char *at = strchr(imported_word(m, name), '/'), *legacy = imported_word(m, "mtp-hybrid-override-pattern"), *part = NULL;

    *depths = imported_number(m, "mtp-num-layers");
    if (!at || !at[strspn(at, "/")])
        return *depths > 0 ? legacy : NULL;
    for (*depths = 0; *at; at += strcspn(at, "/")) {
        const char *next;

        at++;
        next = arena_strndup(m->arena, at, strcspn(at, "/"));
        if (part && strcmp(part, next))
            return imported_refuse(m, name, "depths of multi-token prediction differ, '%.40s' and '%.40s'", part, next), NULL;
        part = next;
        ++*depths;
    }
    return part;
}

/* A depth is simulated where it is one block: a mixer, an MLP or experts, or one after the other. */
static bool is_block(const char *part)
{
    size_t mixers = strspn(part, "MG*+"), rest = strspn(part + mixers, "-E");

    return *part && mixers <= 1 && rest <= 1 && !part[mixers + rest];
}

static void put_predicting(struct imported *m, const char *name, const char *pattern)
{
    long long depths;
    int before = m->err->count;
    const char *part = predicting(m, name, &depths);

    if (m->err->count > before)
        return;
    if (part && !is_block(part))
        imported_refuse(m, name, "a depth of multi-token prediction has '%.40s'; what is simulated is at most one of M G * +, then "
                        "at most one of - E", part);
    else if (!part && depths > 0)
        imported_refuse(m, "mtp-num-layers", "what a depth of multi-token prediction has stands behind '/' in %s, which has none",
                        imported_shown(m, name));
    else
        imported_put(m, SHAPE "pattern", "\"%s%s%s\"", pattern, part ? "/" : "", part ? part : "");
    if (part)
        imported_put(m, SHAPE "mtp", "%lld", depths);
}

/* The widths of the mixers that the pattern has. */
static void put_widths(struct imported *m)
{
    const struct node *pattern = node_at(m->root, SHAPE "pattern");

    if (pattern && strchr(pattern->text, 'M'))
        imported_rows(m, "mamba");
    if (pattern && strchr(pattern->text, 'G'))
        imported_rows(m, "delta");
}

/* '+' is latent attention, whether --multi-latent-attention is given or not. */
static void mean_latent(struct imported *m, const char *name)
{
    const struct argument_row *row = dialect_row(m->dialect, "multi-latent-attention", false);

    if (!imported_given(m, row->name))
        m->given[row - m->dialect->rows] = imported_given(m, name);
}

static void put_letters(struct imported *m, const char *name)
{
    static const char *const others[] = {"num-layers-per-virtual-pipeline-stage", "num-virtual-stages-per-pipeline-rank",
                                         "pipeline-model-parallel-layout"};
    const char *letters = letters_of(m), **units;
    long long layers = megatron_layers(m), count = 0;

    if (!check_letters(m, name, letters))
        return;
    units = ARENA_ARRAY(m->arena, const char *, (size_t)layers);
    for (const char *c = letters; *c; c++)
        if (*c != '|')
            units[count++] = unit(m->arena, *c);
    if (imported_given(m, "num-layers") && imported_number(m, "num-layers") != layers)
        imported_warn(m, "num-layers", "has no effect: the %lld letters of %s are the layers", layers, imported_shown(m, name));
    for (size_t i = 0; i < COUNT(others) && !m->launch->log; i++)
        if (imported_given(m, others[i]))
            imported_refuse(m, others[i], "does not go with %s, whose '|' ends a stage", imported_shown(m, name));
    imported_put(m, SHAPE "layers", "%lld", layers);
    if (strchr(letters, '+'))
        mean_latent(m, name);
    put_predicting(m, name, megatron_pattern(m->arena, units, count));
    put_widths(m);
}

/* Blocks of a GPT, of which some have linear attention. */
static void put_linear(struct imported *m)
{
    static const char variant[] = "experimental-attention-variant", often[] = "linear-attention-freq";
    long long layers = megatron_layers(m);
    const char *linear, *experts = NULL, **units, *full = imported_given(m, "multi-latent-attention") ? "+" : "*";
    const char *pattern;

    if (strcmp(imported_word(m, variant), "gated_delta_net")) {
        imported_refuse(m, variant, "%.40s attention is not simulated; expected gated_delta_net", imported_word(m, variant));
        return;
    }
    if (!imported_given(m, often)) {
        imported_refuse(m, variant, "needs %s, which says the layers that have it", imported_shown(m, often));
        return;
    }
    linear = megatron_flags(m, often, layers, true);
    if (linear && imported_number(m, "num-experts"))
        experts = megatron_flags(m, "moe-layer-freq", layers, false);
    if (m->err->count)
        return;
    units = ARENA_ARRAY(m->arena, const char *, (size_t)layers);
    for (long long i = 0; i < layers; i++)
        units[i] = arena_printf(m->arena, "(%s%s)", linear[i] ? "G" : full, experts && experts[i] ? "E" : "-");
    pattern = megatron_pattern(m->arena, units, layers);
    if (strlen(pattern) > LONGEST_PATTERN) {
        imported_refuse(m, often, "the layers that have it repeat after more than %d layers", LONGEST_PATTERN / 4);
        return;
    }
    imported_put(m, SHAPE "pattern", "\"%s\"", pattern);
    put_widths(m);
}

void megatron_hybrid(struct imported *m, bool program)
{
    static const char *const ratios[] = {"hybrid-attention-ratio", "hybrid-mlp-ratio"};
    static const char *const signs[] = {"is-hybrid-model", "mtp-hybrid-override-pattern"};
    const char *name = letters_argument(m);

    for (size_t i = 0; i < COUNT(ratios) && !name; i++)
        if (imported_given(m, ratios[i]) && strtod(imported_word(m, ratios[i]), NULL) > 0)
            imported_refuse(m, ratios[i], "layers that a ratio places are not simulated; give --set hybrid-override-pattern=LETTERS");
    for (size_t i = 0; i < COUNT(signs) && !name; i++)
        if (imported_given(m, signs[i]))
            imported_refuse(m, signs[i], "the letters of its layers are missing; give --set hybrid-layer-pattern=LETTERS");
    if (!name && program)
        error_add(m->err, EXIT_INPUT, m->launch->loc, "%s trains a hybrid model, the letters of whose layers are missing; give --set "
                  "hybrid-layer-pattern=LETTERS (M: Mamba-2)", m->launch->program);
    if (!name && imported_given(m, "spec") && strstr(imported_given(m, "spec")->values[0].text, "_layer_specs"))
        imported_refuse(m, "spec", "%.100s makes the blocks, which is not simulated without --hybrid-layer-pattern",
                        imported_given(m, "spec")->values[0].text);
    if (name && imported_given(m, "experimental-attention-variant"))
        imported_refuse(m, "experimental-attention-variant", "%s says the layers", imported_shown(m, name));
    else if (!name && imported_given(m, "linear-attention-freq") && !imported_given(m, "experimental-attention-variant"))
        imported_refuse(m, "linear-attention-freq", "the kind of linear attention is missing; expected %s",
                        imported_shown(m, "experimental-attention-variant"));
    if (m->err->count)
        return;
    if (name)
        put_letters(m, name);
    else if (imported_given(m, "experimental-attention-variant"))
        put_linear(m);
}
