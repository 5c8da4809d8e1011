#include "run/automatic_axis.h"

#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "schedule/schedule.h"

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

/* Above the heads of keys and values some releases gather them, and others refuse the degree when it is loaded. */
static struct numbers tensor_values(const struct facts *facts)
{
    struct numbers all = divisors(facts->per_node, facts->heads), kept = {.count = 0};

    for (int i = 0; i < all.count; i++)
        if (facts->heads % all.items[i] == 0 &&
            (facts->kv_heads % all.items[i] == 0 || all.items[i] % facts->kv_heads == 0))
            add_number(&kept, all.items[i]);
    return kept;
}

/* Nodes have a power of two of GPUs, and some models 61 or 126 layers: where no degree of such a pipeline divides them,
 * stages are uneven, of which one is longer by a fourth at most. */
static struct numbers pipeline_values(const struct facts *facts)
{
    enum { LEAST_LAYERS = 4 };
    struct numbers found = {.count = 0};

    for (int degree = 1; degree <= facts->layers && degree <= 128; degree++)
        if (facts->layers % degree == 0 || (!(degree & (degree - 1)) && facts->layers / degree >= LEAST_LAYERS))
            add_number(&found, degree);
    return found;
}

static struct numbers powers_of_two(int most)
{
    struct numbers found = {.count = 0};

    for (int value = 1; value <= most; value *= 2)
        add_number(&found, value);
    return found;
}

static struct numbers micro_powers(const struct facts *facts, int most)
{
    struct numbers powers = powers_of_two(most), kept = {.count = 0};

    for (int i = 0; i < powers.count; i++)
        if (!facts->batch || facts->batch % powers.items[i] == 0)
            add_number(&kept, powers.items[i]);
    return kept;
}

static struct numbers micro_values(const struct facts *facts)
{
    return micro_powers(facts, 16);
}

static struct numbers all_micro_values(const struct facts *facts)
{
    return micro_powers(facts, 1 << 14);
}

/* Divisors of the layers, and the numbers that schedules have where nobody says one: stages may be uneven. */
static struct numbers chunk_values(const struct facts *facts)
{
    enum { MOST_CHUNKS = 8 };
    struct numbers found = {.count = 0};

    for (int chunks = 1; chunks <= MOST_CHUNKS; chunks++) {
        bool usual = chunks == 1 || facts->layers % chunks == 0;

        for (size_t s = 0; schedule_at(s); s++)
            usual |= schedule_at(s)->min_chunks == chunks || schedule_at(s)->usual_chunks == chunks;
        if (usual)
            add_number(&found, chunks);
    }
    return found;
}

static int most_context(const struct facts *facts)
{
    enum { LEAST_TOKENS = 2048, MOST_GPUS = 64 };
    int most = facts->sequence / LEAST_TOKENS;

    return most < 1 || !facts->transformer ? 1 : most > MOST_GPUS ? MOST_GPUS : most;
}

static struct numbers context_values(const struct facts *facts)
{
    return powers_of_two(most_context(facts));
}

static struct numbers asked_context_values(const struct facts *facts)
{
    int most = most_context(facts);

    return powers_of_two(!facts->transformer || most > 8 ? most : 8);
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

/* 1, or all of a tensor group, whatever its degree. */
static struct numbers expert_tensor_values(const struct facts *facts)
{
    struct numbers one = {{1}, 1};

    return facts->experts > 1 ? tensor_values(facts) : one;
}

static const struct automatic automatics[] = {
    {"strategy.tensor", tensor_values, .usual = true,
     .why = "divides the GPUs of a node and the attention heads; divides the key-value heads, or is a multiple of them"},
    {"strategy.pipeline", pipeline_values, .usual = true, .why = "divides the layers, or is a power of two and leaves a stage 4 layers"},
    {"strategy.context", context_values, .why = "powers of two that leave a GPU 2048 tokens of a sample",
     .asked = asked_context_values, .asked_why = "powers of two up to 8, or that leave a GPU 2048 tokens of a sample"},
    {"strategy.expert", expert_values, .experts = true, .why = "divides the experts"},
    {"strategy.expert_tensor", expert_tensor_values, .experts = true, .why = "whole experts, or divided by all of a tensor group"},
    {"strategy.zero", zero_values, .framework = true, .why = "optimizer states whole, or divided over the replicas"},
    {"strategy.sequence_parallel", .words = "false true", .why = "activations between GEMMs whole, or divided"},
    {"strategy.schedule", .words = "1f1b interleaved", .usual = true, .framework = true,
     .why = "the usual schedules; list others by name"},
    {"strategy.chunks", chunk_values, .why = "model chunks of a rank: what schedules have if nobody says it, and divisors of the layers up to 8"},
    {"batch.micro", micro_values, .usual = true, .why = "powers of two up to 16 that divide the batch",
     .asked = all_micro_values, .asked_why = "powers of two that divide the batch"},
    {"memory.recompute", .words = "none selective full", .usual = true, .framework = true,
     .why = "all, or only the core of attention, or nothing"},
    {"memory.offload", .words = "none tensors", .why = "nothing, or the tensors that do not fit"},
    {"strategy.data_parallel", .words = "ddp synchronous", .why = "sums of gradients beside the backward, or behind it"},
    {"software.overlap_gathers", .words = "false true", .why = "gathers of weights in the update, or beside the next forwards"},
    {"strategy.dispatcher", .words = "alltoall deepep", .experts = true, .framework = true, .why = "how tokens go to their experts"},
    {"strategy.overlap_dispatch", .words = "none micro-batches", .experts = true, .framework = true,
     .why = "what tokens travel beside"},
};

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

struct node *automatic_values(struct arena *arena, const struct automatic *automatic, const struct facts *facts,
                              bool asked)
{
    struct node *list = node_sequence(arena);
    struct numbers numbers = {.count = 0};
    char *rest = automatic->words ? arena_strdup(arena, automatic->words) : NULL;

    if (automatic->values)
        numbers = asked && automatic->asked ? automatic->asked(facts) : automatic->values(facts);
    for (int i = 0; i < numbers.count; i++)
        node_append(arena, list, node_scalar(arena, arena_printf(arena, "%d", numbers.items[i]), false));
    for (char *word; (word = strsep(&rest, " "));)
        node_append(arena, list, node_scalar(arena, word, false));
    list->loc = facts->root->loc;
    return list;
}
