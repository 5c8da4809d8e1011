/* Which blocks have what attention, and which have experts: as the file's lists say, else as the class derives them. */
#include "huggingface/hf_family.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/field.h"

static enum block_attention listed(const struct hf_reading *reading, const struct node *types, int block)
{
    static const struct { const char *name; enum block_attention attention; } known[] = {
        {"full_attention", BLOCK_FULL}, {"attention", BLOCK_FULL}, {"global", BLOCK_FULL},
        {"deepseek_sparse_attention", BLOCK_FULL},           /* hf_note says what its indexer would do */
        {"sliding_attention", BLOCK_SLIDING}, {"local", BLOCK_SLIDING}, {"chunked_attention", BLOCK_CHUNKED},
        {"linear_attention", BLOCK_LINEAR}, {"mamba", BLOCK_LINEAR},
    };
    const struct node *item = types->items[block];

    for (size_t i = 0; item->kind == NODE_SCALAR && i < COUNT(known); i++)
        if (!strcmp(item->text, known[i].name) && (reading->linear || known[i].attention != BLOCK_LINEAR))
            return known[i].attention;
    error_add(reading->err, EXIT_INPUT, item->loc, "hf_config: layer_types: '%s' is not modelled; expected "
              "full_attention, sliding_attention or chunked_attention", item->kind == NODE_SCALAR ? item->text : "");
    return BLOCK_FULL;
}

enum block_attention hf_attention(const struct hf_reading *reading, const struct node *types, int block)
{
    if (types)
        return listed(reading, types, block);
    if (reading->full && hf_holds(reading, reading->full, block))
        return BLOCK_FULL;
    return reading->linear ? BLOCK_LINEAR : hf_said(reading, "chunked") ? BLOCK_CHUNKED : BLOCK_SLIDING;
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
        enum block_attention attention = hf_attention(reading, types, i);

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
        (!types && !reading->full && !node_get(reading->defaults, key)))
        return;
    node_put(reading->arena, reading->shape, "window", node_get(reading->config, key));
    if (count[BLOCK_CHUNKED] > 0)
        hf_put(reading, "chunked", "true");
    if (count[BLOCK_FULL] > 0 && period(full, reading->layers))
        hf_put_number(reading, "full_every", period(full, reading->layers));
    else if (count[BLOCK_FULL] > 0)
        put_blocks(reading, "full_blocks", full, types ? types->loc : reading->file->loc);
}

bool hf_sparse(const struct hf_reading *reading, const struct node *types, int block)
{
    const struct node *item = types ? types->items[block] : NULL;

    return item ? item->kind == NODE_SCALAR && !strcmp(item->text, "sparse")
                : !reading->experts || hf_holds(reading, reading->experts, block);
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
