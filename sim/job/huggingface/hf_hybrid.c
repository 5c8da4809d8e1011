/* Hybrid models: which mixer each layer has, as a pattern. */
#include "huggingface/hf_family.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/field.h"

/* Nemotron-H: each item is a half-block, of which the letter is a layer. NULL: a name is not known. */
static const char *half_letters(const struct hf_reading *reading, const struct node *list)
{
    static const struct { const char *name; char letter; } known[] = {
        {"mamba", 'M'}, {"linear_attention", 'M'}, {"attention", '*'}, {"full_attention", '*'}, {"mlp", '-'}, {"moe", 'E'},
    };
    char *letters = arena_alloc(reading->arena, list->count + 1);

    for (size_t i = 0; i < list->count; i++) {
        const char *name = list->items[i]->kind == NODE_SCALAR ? list->items[i]->text : "";

        for (size_t k = 0; k < COUNT(known); k++)
            letters[i] = strcmp(name, known[k].name) ? letters[i] : known[k].letter;
        if (!letters[i]) {
            error_add(reading->err, EXIT_INPUT, list->items[i]->loc, "hf_config: '%s' is no kind of layer; expected mamba, attention, "
                      "mlp or moe", name);
            return NULL;
        }
    }
    return letters;
}

/* The value of whichever of two keys there is, as letters: a text of them, or a list of names. */
static const char *halves_of(const struct hf_reading *reading, const char *text, const char *list)
{
    const struct node *letters = node_get(reading->config, text), *names = node_get(reading->config, list);

    if (letters && letters->kind == NODE_SCALAR)
        return letters->text;
    return names && names->kind == NODE_SEQUENCE && names->count > 0 ? half_letters(reading, names) : NULL;
}

/* The number of layers comes from the list (NemotronHConfig: num_hidden_layers is not heeded). Modules that predict further
 * tokens have halves of their own. */
static void put_halves(struct hf_reading *reading)
{
    const char *halves = halves_of(reading, "hybrid_override_pattern", "layers_block_type");
    const char *ahead = halves_of(reading, "mtp_hybrid_override_pattern", "mtp_layers_block_type");

    hf_put(reading, "pattern", !halves ? "ME*-" :
           hf_is_on(node_get(reading->with, "mtp")) ? arena_printf(reading->arena, "%s/%s", halves, ahead ? ahead : "*E") :
                                                      halves);
}

/* One layer each: its mixer, and an MLP or experts. The shortest pattern that repeats to them. */
static const char *letters_of(const struct hf_reading *reading)
{
    const struct node *types = hf_block_list(reading, "layer_types"), *sparse = hf_block_list(reading, "mlp_layer_types");
    bool experts = hf_is_on(node_get(reading->shape, "experts")) || node_get(reading->with, "experts");
    int n = reading->layers, period = 1, before = reading->err->count;
    char *all = arena_alloc(reading->arena, 4 * (size_t)n + 1);

    types = types ? types : hf_block_list(reading, "layers_block_type");
    for (int i = 0; i < n && reading->err->count == before; i++) {
        bool linear = hf_attention(reading, types, i) == BLOCK_LINEAR;
        char letter = linear ? reading->linear : hf_is_on(node_get(reading->shape, "kv_rank")) ? '+' : '*';

        snprintf(all + 4 * i, 5, "(%c%c)", letter, experts && hf_sparse(reading, sparse, i) ? 'E' : '-');
    }
    while (period < n && (n % period || strncmp(all, all + 4 * period, 4 * (size_t)(n - period))))
        period++;
    all[4 * period] = '\0';
    return all;
}

void hf_hybrid_pattern(struct hf_reading *reading)
{
    static const struct { const char *key, *letters; } mixers[] = {
        {"mamba", "M"}, {"delta", "GK"}, {"linear", "L"}, {"qk_norm", "*"}, {"attention_gate", "*"}, {"kv_rank", "+"}, {"q_rank", "+"},
        {"rope_head_size", "+"}, {"value_head_size", "+"},
    };
    struct node *kept = node_mapping(reading->arena), *pattern;
    const char *letters;

    if (hf_said(reading, "halves"))
        put_halves(reading);
    pattern = node_get(reading->shape, "pattern");
    letters = pattern ? pattern->text : reading->layers > 0 ? letters_of(reading) : "";

    if (!pattern && *letters)
        hf_put(reading, "pattern", letters);
    kept->loc = reading->shape->loc;
    for (size_t i = 0; i < reading->shape->count; i++) {
        bool used = true;

        for (size_t k = 0; k < COUNT(mixers); k++)
            used &= strcmp(mixers[k].key, reading->shape->keys[i]) || strpbrk(letters, mixers[k].letters);
        if (used)
            node_put(reading->arena, kept, reading->shape->keys[i], reading->shape->items[i]);
    }
    reading->shape = kept;
    if (hf_number(reading, "sliding_window", 0) > 0 && strpbrk(letters, "*+"))
        node_put(reading->arena, reading->shape, "window", node_get(reading->config, "sliding_window"));
}
