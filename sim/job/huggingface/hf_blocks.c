/* Which blocks have what attention, and which have experts: as the file's lists say, else as the class derives them. */
#include "huggingface/hf_family.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/field.h"

bool hf_has_number(const struct node *list, int number)
{
    for (size_t i = 0; list && list->kind == NODE_SEQUENCE && i < list->count; i++)
        if (list->items[i]->kind == NODE_SCALAR && atoi(list->items[i]->text) == number)
            return true;
    return false;
}

/* The i-th item of a list with one for each block; NULL: there is no such list, or it is too short. */
static const struct node *of_block(const struct hf_reading *reading, const char *key, int block)
{
    const struct node *list = node_get(reading->config, key);

    return list && list->kind == NODE_SEQUENCE && (size_t)block < list->count ? list->items[block] : NULL;
}

enum block_attention hf_none(const struct hf_reading *reading, int block)
{
    (void)reading, (void)block;
    return BLOCK_FULL;
}

const char *hf_pattern(const struct hf_reading *reading)
{
    const struct node *value = node_get(reading->config, "sliding_window_pattern");
    const char *text = value && value->kind == NODE_SCALAR ? value->text : "";

    return *text && strspn(text, "LG") == strlen(text) ? text : NULL;
}

/* Of each group of blocks, the last one sees all keys (gemma2, gemma3, cohere2, olmo3, gpt_oss, exaone4). */
enum block_attention hf_every(const struct hf_reading *reading, int block)
{
    const char *pattern = hf_pattern(reading);

    if (pattern)
        return pattern[block % (int)strlen(pattern)] == 'G' ? BLOCK_FULL : BLOCK_SLIDING;

    int every = hf_number(reading, "_sliding_window_pattern", hf_number(reading, "sliding_window_pattern", 1));

    return every > 0 && (block + 1) % every == 0 ? BLOCK_FULL : BLOCK_SLIDING;
}

enum block_attention hf_if_used(const struct hf_reading *reading, int block)
{
    (void)block;
    return hf_true(reading, "use_sliding_window") ? BLOCK_SLIDING : BLOCK_FULL;
}

/* Blocks from max_window_layers on have the window (dots1; qwen2, qwen3 if use_sliding_window says so too). */
enum block_attention hf_from_window(const struct hf_reading *reading, int block)
{
    return block >= hf_number(reading, "max_window_layers", 0) ? BLOCK_SLIDING : BLOCK_FULL;
}

enum block_attention hf_later(const struct hf_reading *reading, int block)
{
    return hf_from_window(reading, block) == BLOCK_SLIDING ? hf_if_used(reading, block) : BLOCK_FULL;
}

/* Every second block before max_window_layers (qwen2_moe). */
enum block_attention hf_even(const struct hf_reading *reading, int block)
{
    bool even = block % 2 == 0 && block < hf_number(reading, "max_window_layers", 0);

    return even ? hf_if_used(reading, block) : BLOCK_FULL;
}

/* Whether the block turns queries and keys to their positions (no_rope_layers: 1 says that it does). */
static bool turns(const struct hf_reading *reading, int block)
{
    const struct node *item = of_block(reading, "no_rope_layers", block);
    int interval = hf_number(reading, "no_rope_layer_interval", 4);

    return item && item->kind == NODE_SCALAR ? atoi(item->text) != 0 : interval < 1 || (block + 1) % interval != 0;
}

enum block_attention hf_unturned(const struct hf_reading *reading, int block)
{
    return turns(reading, block) ? BLOCK_FULL : hf_if_used(reading, block);
}

enum block_attention hf_turned_chunks(const struct hf_reading *reading, int block)
{
    return turns(reading, block) ? BLOCK_CHUNKED : BLOCK_FULL;
}

/* gpt_neo's attention_types: pairs of a list of names and how often it comes. */
enum block_attention hf_named(const struct hf_reading *reading, int block)
{
    const struct node *types = node_get(reading->config, "attention_types");

    for (size_t i = 0; types && types->kind == NODE_SEQUENCE && i < types->count; i++) {
        const struct node *pair = types->items[i];
        const struct node *names = pair->kind == NODE_SEQUENCE && pair->count == 2 ? pair->items[0] : NULL;
        int times = names && pair->items[1]->kind == NODE_SCALAR ? atoi(pair->items[1]->text) : 0;

        if (!names || names->kind != NODE_SEQUENCE || times < 1 || times > 100000 || names->count > 100000)
            continue;
        if (block < times * (int)names->count) {
            const struct node *name = names->items[block % (int)names->count];

            return name->kind == NODE_SCALAR && !strcmp(name->text, "local") ? BLOCK_SLIDING : BLOCK_FULL;
        }
        block -= times * (int)names->count;
    }
    return BLOCK_FULL;
}

enum block_attention hf_listed(const struct hf_reading *reading, const struct node *types, int block)
{
    static const struct { const char *name; enum block_attention attention; } known[] = {
        {"full_attention", BLOCK_FULL}, {"attention", BLOCK_FULL}, {"global", BLOCK_FULL},
        {"deepseek_sparse_attention", BLOCK_FULL},           /* hf_note says what its indexer would do */
        {"sliding_attention", BLOCK_SLIDING}, {"local", BLOCK_SLIDING}, {"chunked_attention", BLOCK_CHUNKED},
        {"linear_attention", BLOCK_LINEAR}, {"mamba", BLOCK_LINEAR},
    };
    const struct node *item = types->items[block];

    for (size_t i = 0; item->kind == NODE_SCALAR && i < COUNT(known); i++)
        if (!strcmp(item->text, known[i].name) && (reading->family->linear || known[i].attention != BLOCK_LINEAR))
            return known[i].attention;
    error_add(reading->err, EXIT_INPUT, item->loc, "hf_config: layer_types: '%s' is not modelled; expected "
              "full_attention, sliding_attention or chunked_attention", item->kind == NODE_SCALAR ? item->text : "");
    return BLOCK_FULL;
}

const struct node *hf_block_list(const struct hf_reading *reading, const char *key)
{
    const struct node *types = node_get(reading->config, key);

    if (!types || types->kind != NODE_SEQUENCE || types->count == 0)
        return NULL;
    if (types->count >= (size_t)reading->layers)
        return types;
    error_add(reading->err, EXIT_INPUT, types->loc, "hf_config: %s has %zu items; expected one for each of the %d "
              "layers", key, types->count, reading->layers);
    return NULL;
}

/* Sets `to` to the list of the blocks that are marked. */
static void put_blocks(struct hf_reading *reading, const char *to, const bool *marked, struct loc loc)
{
    struct arena *arena = reading->arena;
    struct node *list = node_sequence(arena);

    list->loc = loc;
    for (int i = 0; i < reading->layers; i++)
        if (marked[i])
            node_append(arena, list, node_scalar(arena, arena_printf(arena, "%d", i), false));
    node_put(arena, reading->shape, to, list);
}

/* The n of full_every with which the marked blocks are those; 0: there is none. */
static int period(const bool *marked, int layers)
{
    int first = 0;

    while (first < layers && !marked[first])
        first++;
    for (int i = 0; i < layers; i++)
        if (marked[i] != ((i + 1) % (first + 1) == 0))
            return 0;
    return first + 1;
}

void hf_windows(struct hf_reading *reading)
{
    const struct node *types = hf_block_list(reading, "layer_types");
    bool *full = ARENA_ARRAY(reading->arena, bool, reading->layers + 1);
    int count[BLOCK_ATTENTIONS] = {0}, window, before = reading->err->count;
    const char *key;

    for (int i = 0; i < reading->layers; i++) {
        enum block_attention attention = types                      ? hf_listed(reading, types, i)
                                         : reading->family->attention ? reading->family->attention(reading, i)
                                                                      : BLOCK_SLIDING;

        full[i] = attention == BLOCK_FULL;
        count[attention]++;
        if (reading->err->count > before)
            return;
    }
    key = count[BLOCK_CHUNKED] > 0                    ? "attention_chunk_size" :
          node_get(reading->config, "window_size")     ? "window_size" :
          node_get(reading->config, "local_attention") ? "local_attention" :
                                                         "sliding_window";
    window = hf_number(reading, key, 0);
    if (types && count[BLOCK_SLIDING] > 0 && count[BLOCK_CHUNKED] > 0)
        error_add(reading->err, EXIT_INPUT, types->loc, "hf_config: layer_types has both windows and chunks, which is "
                  "not modelled");
    else if (types && count[BLOCK_FULL] < reading->layers && window < 1)
        error_add(reading->err, EXIT_INPUT, types->loc, "hf_config: layer_types names windows; expected "
                  "'%s' too", key);
    if (window < 1 || count[BLOCK_FULL] == reading->layers ||
        (!types && !reading->family->attention && !node_get(reading->defaults, key)))
        return;
    node_put(reading->arena, reading->shape, "window", node_get(reading->config, key));
    if (count[BLOCK_CHUNKED] > 0)
        hf_put(reading, "chunked", "true");
    if (count[BLOCK_FULL] > 0 && period(full, reading->layers))
        hf_put_number(reading, "full_every", period(full, reading->layers));
    else if (count[BLOCK_FULL] > 0)
        put_blocks(reading, "full_blocks", full, types ? types->loc : reading->file->loc);
}

/* From first_k_dense_replace on, those that moe_layer_freq divides (deepseek, glm4_moe). */
bool hf_after_dense(const struct hf_reading *reading, int block)
{
    int every = hf_number(reading, "moe_layer_freq", 1);

    return block >= hf_number(reading, "first_k_dense_replace", 0) && (every < 1 || block % every == 0);
}

/* Counted from 1, those that decoder_sparse_step divides, but none of mlp_only_layers (qwen). */
bool hf_sparse_step(const struct hf_reading *reading, int block)
{
    int step = hf_number(reading, "decoder_sparse_step", 1);

    return !hf_has_number(node_get(reading->config, "mlp_only_layers"), block) && step > 0 && (block + 1) % step == 0;
}

bool hf_interleaved(const struct hf_reading *reading, int block)
{
    const struct node *listed_blocks = node_get(reading->config, "moe_layers");
    int step = hf_number(reading, "interleave_moe_layer_step", 1);

    return listed_blocks ? hf_has_number(listed_blocks, block) : step > 0 && (block + 1) % step == 0;
}

/* Step-3's moe_layers_enum: a list, or a text of numbers with commas; the class's names all blocks but four and the last. */
bool hf_enumerated(const struct hf_reading *reading, int block)
{
    const struct node *blocks = node_get(reading->config, "moe_layers_enum");
    const char *text = blocks && blocks->kind == NODE_SCALAR ? blocks->text : "";
    bool found = false;

    if (!blocks)
        return block >= 4 && block < 60;
    while (*text) {
        char *end;
        long number = strtol(text, &end, 10);

        found |= end != text && number == block;
        text = *end ? end + 1 : end;
    }
    return found || hf_has_number(blocks, block);
}

bool hf_from_to(const struct hf_reading *reading, int block)
{
    int last = hf_number(reading, "moe_layer_end_index", -1), every = hf_number(reading, "moe_layer_interval", 1);

    return block >= hf_number(reading, "moe_layer_start_index", 0) && (last == -1 || block <= last) && every > 0 &&
           (block + 1) % every == 0;
}

bool hf_sparse(const struct hf_reading *reading, const struct node *types, int block)
{
    const struct node *item = types ? types->items[block] : NULL;

    return item ? item->kind == NODE_SCALAR && !strcmp(item->text, "sparse")
                : !reading->family->has_experts || reading->family->has_experts(reading, block);
}

void hf_expert_blocks(struct hf_reading *reading)
{
    const struct node *types = hf_block_list(reading, "mlp_layer_types");
    bool *sparse = ARENA_ARRAY(reading->arena, bool, reading->layers + 1), any = false, first = true;
    int dense = 0;

    for (int i = 0; i < reading->layers; i++) {
        sparse[i] = hf_sparse(reading, types, i);
        any |= sparse[i];
    }
    while (dense < reading->layers && !sparse[dense])
        dense++;
    for (int i = dense; i < reading->layers; i++)
        first &= sparse[i];
    if (!any && reading->layers > 0)             /* no block has any */
        hf_put_number(reading, "dense_layers", reading->layers);
    else if (first && dense > 0)
        hf_put_number(reading, "dense_layers", dense);
    else if (!first)
        put_blocks(reading, "expert_blocks", sparse, types ? types->loc : reading->file->loc);
}
