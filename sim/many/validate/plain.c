#include "validate/plain.h"

#include <string.h>

#include "config/conf.h"
#include "config/field.h"
#include "model/model.h"
#include "scenario/scenario.h"

/* A copy of the mapping with the keys among `words`. What is no mapping stays. */
static struct node *chosen(struct arena *arena, const struct node *mapping, const char *words)
{
    struct node *copy = node_mapping(arena);

    if (mapping->kind != NODE_MAPPING)
        return (struct node *)(uintptr_t)mapping;
    copy->loc = mapping->loc;
    for (size_t i = 0; i < mapping->count; i++)
        if (word_in(words, mapping->keys[i]))
            node_put(arena, copy, mapping->keys[i], mapping->items[i]);
    return copy;
}

/* Replaces a part of the mapping, where it has it. */
static void replace(struct arena *arena, struct node *mapping, const char *key, const char *words)
{
    const struct node *part = node_get(mapping, key);

    if (part)
        node_put(arena, mapping, key, chosen(arena, part, words));
}

struct node *plain_scenario(struct arena *arena, const struct node *root)
{
    struct node *plain = chosen(arena, root, "name model cluster batch strategy memory software data");

    replace(arena, plain, "strategy",
            "schedule tensor pipeline stage_replicas data context expert expert_tensor dispatcher overlap_dispatch chunks "
            "zero shard sequence_parallel");
    replace(arena, plain, "memory", "precision optimizer recompute offload lora");
    replace(arena, plain, "software", "like");
    return plain;
}
