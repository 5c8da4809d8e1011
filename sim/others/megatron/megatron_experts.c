/* megatron_experts: layers with experts, and how tokens get to them. */
#include "megatron/megatron_internal.h"

#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "launch/imported.h"

#define SHAPE "model.transformer."
enum { MOST_LAYERS = 100000, NESTED = 8 };

/* A number behind blanks; -1: there is none. */
static long long digits(const char **at)
{
    char *end;
    long long value;

    *at += strspn(*at, " ");
    value = strtoll(*at, &end, 10);
    if (end == *at || value < 0 || value > MOST_LAYERS)
        return -1;
    *at = end + strspn(end, " ");
    return value;
}

/* The items that an expression has so far. */
struct items { char *flags; long long count; };

static bool read_sum(const char **at, struct items *items, int depth);

/* The numbers of "[0, 1]". */
static bool read_brackets(const char **at, struct items *items)
{
    do {
        long long value;

        ++*at;
        value = digits(at);
        if ((value != 0 && value != 1) || items->count >= MOST_LAYERS)
            return false;
        items->flags[items->count++] = (char)value;
    } while (**at == ',');
    return **at == ']';
}

/* "[0, 1]" or "(...)", and "*3" behind it. */
static bool read_term(const char **at, struct items *items, int depth)
{
    long long first = items->count, times = 1, length;

    *at += strspn(*at, " ");
    if (**at == '(') {
        ++*at;
        if (!depth || !read_sum(at, items, depth - 1) || **at != ')')
            return false;
    } else if (**at != '[' || !read_brackets(at, items)) {
        return false;
    }
    ++*at;
    *at += strspn(*at, " ");
    if (**at == '*') {
        ++*at;
        times = digits(at);
    }
    length = items->count - first;
    if (times < 0 || (length && times > (MOST_LAYERS - first) / length))
        return false;
    items->count = first + length * times;
    for (long long i = first + length; i < items->count; i++)
        items->flags[i] = items->flags[i - length];
    return true;
}

static bool read_sum(const char **at, struct items *items, int depth)
{
    bool good = read_term(at, items, depth);

    while (good && **at == '+') {
        ++*at;
        good = read_term(at, items, depth);
    }
    return good;
}

const char *megatron_flags(struct imported *m, const char *name, long long layers, bool inverse)
{
    const char *text = imported_word(m, name), *at = text;
    struct items items = {arena_alloc(m->arena, MOST_LAYERS), 0};
    long long every = text[strspn(text, "0123456789")] ? 0 : digits(&at);

    if (every > 0 && layers <= MOST_LAYERS) {
        for (long long i = 0; i < layers; i++)
            items.flags[i] = inverse ? (i + 1) % every != 0 : i % every == 0;
        return items.flags;
    }
    if (read_sum(&at, &items, NESTED) && !*at && items.count == layers)
        return items.flags;
    imported_refuse(m, name, "expected N, or a list with 0 or 1 for each of the %lld layers, such as [0]*K+[1]*(layers - K), found "
                    "'%.80s'", layers, text);
    return NULL;
}

/* --moe-layer-freq: N, or a list with a 1 for each layer that has experts. */
static void put_layers(struct imported *m)
{
    const char *text = imported_word(m, "moe-layer-freq"), *has;
    long long layers = imported_number(m, "num-layers"), every = strtoll(text, NULL, 10), dense = 0, i;

    if (node_at(m->root, SHAPE "pattern"))
        return;
    if (text[strspn(text, "0123456789")] == '\0' && every > 0) {
        if (every > 1)
            imported_put(m, SHAPE "moe_every", "%lld", every);
        return;
    }
    has = megatron_flags(m, "moe-layer-freq", layers, false);
    while (has && dense < layers && !has[dense])
        dense++;
    for (i = dense; has && i < layers && has[i]; i++)
        continue;
    if (has && i == layers)
        imported_put(m, SHAPE "dense_layers", "%lld", dense);
    else if (has)
        imported_refuse(m, "moe-layer-freq", "expected N, or [0]*K+[1]*(layers - K) with one item for each of the %lld "
                        "layers, found '%.80s'; other patterns are not simulated", layers, text);
}

void megatron_experts(struct imported *m)
{
    bool deepspeed = imported_given(m, "deepspeed") || imported_given(m, "moe-expert-parallel-size");

    if (imported_number(m, "num-experts") <= deepspeed)      /* of one expert Megatron-DeepSpeed makes a dense block */
        return;
    imported_rows(m, "experts");
    put_layers(m);
    imported_rows(m, "routing");
}
