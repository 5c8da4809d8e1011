/* megatron_experts: layers with experts, and how tokens get to them. */
#include "megatron/megatron_internal.h"

#include <stdlib.h>

#include "base/base.h"
#include "launch/imported.h"

#define SHAPE "model.transformer."
enum { MOST_LAYERS = 100000 };

/* A number behind blanks; -1: there is none. */
static long digits(const char **at)
{
    char *end;
    long value;

    *at += strspn(*at, " ");
    value = strtol(*at, &end, 10);
    if (end == *at || value < 0 || value > MOST_LAYERS)
        return -1;
    *at = end + strspn(end, " ");
    return value;
}

/* One list of a Python expression: "[0]*3" or "[0, 1]". Adds its items. */
static bool read_list(const char **at, char *layers, long *count)
{
    long first = *count, times = 1, items;

    if (**at != '[')
        return false;
    do {
        long value;

        ++*at;
        value = digits(at);
        if ((value != 0 && value != 1) || *count >= MOST_LAYERS)
            return false;
        layers[(*count)++] = (char)value;
    } while (**at == ',');
    if (*(*at)++ != ']')
        return false;
    *at += strspn(*at, " ");
    if (**at == '*') {
        ++*at;
        times = digits(at);
    }
    items = *count - first;
    if (times < 0 || items * times > MOST_LAYERS - first)
        return false;
    *count = first + items * times;
    for (long i = first + items; i < *count; i++)
        layers[i] = layers[i - items];
    return true;
}

/* --moe-layer-freq: N, or a list with a 1 for each layer that has experts. */
static void put_layers(struct imported *m)
{
    const char *text = imported_word(m, "moe-layer-freq");
    long layers = imported_number(m, "num-layers"), count = 0, dense = 0, every = digits(&(const char *){text});
    char *has = arena_alloc(m->arena, MOST_LAYERS);
    bool good = true;

    if (strspn(text, "0123456789") == strlen(text) && every > 0) {
        if (every > 1)
            imported_put(m, SHAPE "moe_every", "%ld", every);
        return;
    }
    for (const char *at = text + (*text == '(');; at++) {
        good = read_list(&at, has, &count);
        if (!good || *at != '+')
            break;
    }
    while (dense < count && !has[dense])
        dense++;
    for (long i = dense; i < count; i++)
        good &= has[i] == 1;
    if (good && count == layers)
        imported_put(m, SHAPE "dense_layers", "%ld", dense);
    else
        imported_refuse(m, "moe-layer-freq", "expected N, or [0]*K+[1]*(layers - K) with one item for each of the %ld "
                        "layers, found '%.80s'; other patterns are not simulated", layers, text);
}

static void check_shared(struct imported *m)
{
    long size = imported_number(m, "moe-shared-expert-intermediate-size");
    long ffn = imported_number(m, imported_given(m, "moe-ffn-hidden-size") ? "moe-ffn-hidden-size" : "ffn-hidden-size");

    if (size && (!ffn || size % ffn))
        imported_refuse(m, "moe-shared-expert-intermediate-size", "%ld is no multiple of an expert's width, %ld; shared "
                        "experts of other widths are not simulated", size, ffn);
}

/* core/transformer/moe/token_dispatcher.py. */
static void check_dispatcher(struct imported *m)
{
    const char *type = imported_word(m, "moe-token-dispatcher-type");
    const char *backend = imported_word(m, "moe-flex-dispatcher-backend");
    bool flex = !strcmp(type, "flex") || imported_given(m, "moe-enable-deepep");

    if (imported_number(m, "expert-model-parallel-size") <= 1)
        return;
    if (flex && strcmp(backend, "deepep") && strcmp(backend, "hybridep"))
        imported_refuse(m, "moe-flex-dispatcher-backend", "%s is not simulated; expected deepep or hybridep", backend);
    else if (!flex && strcmp(type, "alltoall") && strcmp(type, "allgather"))
        imported_refuse(m, "moe-token-dispatcher-type", "%s is not simulated with %s above 1; expected alltoall, "
                        "allgather or flex", type, imported_shown(m, "expert-model-parallel-size"));
}

/* core/transformer/moe/experts.py: SequentialMLP, where GroupedMLP is not asked for. */
static void warn_sequential(struct imported *m)
{
    if (!imported_given(m, "moe-grouped-gemm") &&
        imported_number(m, "num-experts") > imported_number(m, "expert-model-parallel-size"))
        imported_warn(m, "num-experts", "without %s the experts of a GPU compute one after another (SequentialMLP), which is "
                      "slower and is not simulated: the GEMMs of all experts are simulated together",
                      imported_shown(m, "moe-grouped-gemm"));
}

void megatron_experts(struct imported *m)
{
    if (!imported_number(m, "num-experts"))
        return;
    imported_rows(m, "experts");
    put_layers(m);
    if (imported_given(m, "moe-expert-capacity-factor") && !imported_given(m, "moe-pad-expert-input-to-capacity"))
        imported_warn(m, "moe-expert-capacity-factor", "tokens are routed evenly, and none is dropped");
    warn_sequential(m);
    check_shared(m);
    check_dispatcher(m);
    imported_rows(m, "routing");
}
