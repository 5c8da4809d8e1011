#include "validate/plain.h"

#include <string.h>

#include "model/model.h"
#include "scenario/scenario.h"

/* A copy of the mapping with the keys among `words`, or with `but` without them. What is no mapping stays. */
static struct node *chosen(struct arena *arena, const struct node *mapping, const char *words, bool but)
{
    struct node *copy = node_mapping(arena);

    if (mapping->kind != NODE_MAPPING)
        return (struct node *)(uintptr_t)mapping;
    copy->loc = mapping->loc;
    for (size_t i = 0; i < mapping->count; i++)
        if (word_in(words, mapping->keys[i]) != but)
            node_put(arena, copy, mapping->keys[i], mapping->items[i]);
    return copy;
}

/* Replaces a part of the mapping, where it has it. */
static void replace(struct arena *arena, struct node *mapping, const char *key, const char *words, bool but)
{
    const struct node *part = node_get(mapping, key);

    if (part)
        node_put(arena, mapping, key, chosen(arena, part, words, but));
}

struct node *plain_scenario(struct arena *arena, const struct node *root)
{
    struct node *plain = chosen(arena, root, "name model cluster batch strategy memory software", false);
    struct node *memory, *model;

    replace(arena, plain, "strategy",
            "schedule tensor pipeline stage_replicas data context expert chunks zero shard sequence_parallel", false);
    replace(arena, plain, "memory", "precision optimizer recompute offload lora", false);
    replace(arena, plain, "software", "like", false);
    replace(arena, plain, "model", "", true);
    memory = node_get(plain, "memory");
    model = node_get(plain, "model");
    if (memory)
        replace(arena, memory, "recompute", recompute_table.lent, true);
    if (model) {
        replace(arena, model, "transformer", transformer_table.lent, true);
        replace(arena, model, "with", transformer_table.lent, true);
    }
    return plain;
}
