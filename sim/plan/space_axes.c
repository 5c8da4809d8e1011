/* The axes of a space that have an `auto`: which values they take. */
#include <string.h>

#include "plan/space_internal.h"

static void add_number(struct numbers *numbers, int value)
{
    if (numbers->count < NUMBERS)
        numbers->items[numbers->count++] = value;
}

/* Divisors of `whole` up to `most`, ascending. */
static struct numbers divisors(int whole, int most)
{
    struct numbers found = {.count = 0};

    for (int d = 1; d <= whole && d <= most; d++)
        if (whole % d == 0)
            add_number(&found, d);
    return found;
}

static struct numbers tensor_values(const struct facts *facts)
{
    struct numbers all = divisors(facts->per_node, facts->heads), kept = {.count = 0};

    for (int i = 0; i < all.count; i++)
        if (facts->heads % all.items[i] == 0 && facts->kv_heads % all.items[i] == 0)
            add_number(&kept, all.items[i]);
    return kept;
}

static struct numbers pipeline_values(const struct facts *facts)
{
    return divisors(facts->layers, 128);
}

static struct numbers powers_of_two(int most)
{
    struct numbers found = {.count = 0};

    for (int value = 1; value <= most; value *= 2)
        add_number(&found, value);
    return found;
}

static struct numbers micro_values(const struct facts *facts)
{
    struct numbers powers = powers_of_two(16), kept = {.count = 0};

    for (int i = 0; i < powers.count; i++)
        if (!facts->batch || facts->batch % powers.items[i] == 0)
            add_number(&kept, powers.items[i]);
    return kept;
}

static struct numbers chunk_values(const struct facts *facts)
{
    return divisors(facts->layers, 8);
}

static struct numbers context_values(const struct facts *facts)
{
    return powers_of_two(facts->transformer ? 8 : 1);
}

static struct numbers expert_values(const struct facts *facts)
{
    return divisors(facts->experts, 256);
}

static struct numbers zero_values(const struct facts *facts)
{
    struct numbers found = {{0, 1}, 2};

    (void)facts;
    return found;
}

static const struct automatic automatics[] = {
    {"strategy.tensor", tensor_values, NULL, "divides the GPUs of a node, the attention heads and the key-value heads",
     true},
    {"strategy.pipeline", pipeline_values, NULL, "divides the layers", true},
    {"strategy.schedule", NULL, "1f1b interleaved", "the schedules of Megatron Core; list others by name", true},
    {"strategy.chunks", chunk_values, NULL, "model chunks of a rank: divides the layers, at most 8",
     false},
    {"batch.micro", micro_values, NULL, "powers of two up to 16 that divide the batch", true},
    {"memory.recompute", NULL, "none selective full", "all, or only the core of attention, or nothing", true},
    {"strategy.zero", zero_values, NULL, "optimizer states whole, or divided over the replicas", false},
    {"strategy.context", context_values, NULL, "powers of two up to 8", false},
    {"strategy.expert", expert_values, NULL, "divides the experts", false},
    {"strategy.sequence_parallel", NULL, "false true", "activations between GEMMs whole, or divided", false},
};

const char *space_auto_at(size_t i)
{
    return i < COUNT(automatics) ? automatics[i].path : NULL;
}

const struct automatic *automatic_at(size_t i)
{
    return i < COUNT(automatics) ? &automatics[i] : NULL;
}

const struct automatic *automatic_of(const char *path)
{
    for (size_t i = 0; i < COUNT(automatics); i++)
        if (strcmp(automatics[i].path, path) == 0)
            return &automatics[i];
    return NULL;
}
