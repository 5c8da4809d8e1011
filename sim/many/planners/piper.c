#include "planners/piper.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"

#define FITS 1e-9 /* B that may be too many, as in the released program */

/* The layers of a stage with the cost and the memory of each of their options on one data and tensor degree. */
struct stage_items {
    size_t count;
    struct stage_item {
        double seconds[PIPER_OPTIONS], held[PIPER_OPTIONS], fixed[PIPER_OPTIONS];
    } items[PIPER_NODES];
};

/* B that cross the border of the stage at one of its layers, there and back. */
static double edge_bytes(const struct piper *question, size_t begin, size_t end, size_t node, bool group)
{
    double bytes = 0;

    for (size_t e = 0; e < question->nedges; e++) {
        const struct piper_edge *edge = &question->edges[e];
        size_t from = (size_t)edge->from, to = (size_t)edge->to;

        if (to == node && (from < begin || from >= end))
            bytes += 2 * (edge->bytes + (group ? edge->to_group : 0));
        if (from == node && (to < begin || to >= end))
            bytes += 2 * (edge->bytes + (group ? edge->from_group : 0));
    }
    return bytes;
}

/* Of the layers from `begin` to `end` - 1. */
static void stage_items(const struct piper *question, size_t begin, size_t end, size_t tensor, int data,
                        struct stage_items *items)
{
    items->count = 0;
    for (size_t node = begin; node < end; node++) {
        struct stage_item *item = &items->items[items->count];
        double bytes = edge_bytes(question, begin, end, node, question->tensors[tensor] > 1);

        for (int o = 0; o < PIPER_OPTIONS; o++) {
            const struct piper_option *option = &question->nodes[node].options[tensor][o];
            double exchanged = 4 * (data - 1) * option->weights / data / question->micro_batches;

            item->seconds[o] = (bytes / data + exchanged) / question->bandwidth + option->seconds / data;
            item->held[o] = option->held;
            item->fixed[o] = option->fixed;
        }
        items->count++;
    }
}

static double memory_of(const struct stage_item *item, int option, int flying)
{
    return isinf(item->seconds[option]) ? INFINITY : item->held[option] * flying + item->fixed[option];
}

/* A layer that may change its option: s for each B that this gives. */
struct swap {
    double price;
    size_t item;
    int option;
};

static int by_price(const void *left, const void *right)
{
    const struct swap *a = left, *b = right;

    if (a->price < b->price || a->price > b->price)
        return a->price < b->price ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

/* From the fastest options, changed in the order of their price until `excess` B are gone. */
static double released(const struct stage_items *items, const int *fastest, int flying, double excess,
                       size_t *recomputed)
{
    struct swap swaps[PIPER_NODES];
    size_t count = 0;
    double sum = 0;

    for (size_t i = 0; i < items->count; i++) {
        const struct stage_item *item = &items->items[i];
        int other = 1 - fastest[i];
        double saved = memory_of(item, fastest[i], flying) - memory_of(item, other, flying);

        sum += item->seconds[fastest[i]];
        *recomputed += (size_t)fastest[i];
        if (saved > FITS)
            swaps[count++] = (struct swap){(item->seconds[other] - item->seconds[fastest[i]]) / saved, i, other};
    }
    array_sort(swaps, count, sizeof *swaps, by_price);
    for (size_t s = 0; s < count && excess >= FITS; s++) {
        const struct stage_item *item = &items->items[swaps[s].item];
        int other = swaps[s].option;

        sum += item->seconds[other] - item->seconds[1 - other];
        excess -= memory_of(item, 1 - other, flying) - memory_of(item, other, flying);
        *recomputed += (size_t)other - (size_t)(1 - other);
    }
    return sum;
}

/* TPS with that many micro-batches in flight; INFINITY: it does not fit. *recomputed: number of recomputed layers. */
static double stage_knapsack(const struct piper *question, const struct stage_items *items, int flying,
                             size_t *recomputed)
{
    int fastest[PIPER_NODES];
    double fast = 0, least = 0, seconds = 0;

    *recomputed = 0;
    for (size_t i = 0; i < items->count; i++) {
        const struct stage_item *item = &items->items[i];

        fastest[i] = item->seconds[1] < item->seconds[0];
        seconds += item->seconds[fastest[i]];
        fast += memory_of(item, fastest[i], flying);
        least += fmin(memory_of(item, 0, flying), memory_of(item, 1, flying));
    }
    if (isinf(seconds) || least > question->memory)
        return INFINITY;
    return released(items, fastest, flying, fast > question->memory ? fast - question->memory : 0, recomputed);
}

/* How the last layers are best divided: the first stage, and how many are left for the others. */
struct cut {
    int rest, tensor, data, devices, sum;
};

struct dynamic {
    const struct piper *question;
    int devices, sum; /* the most of each: k and s */
    double *least; /* dp, [(layers * (devices + 1) + k) * (sum + 1) + s] */
    struct cut *cuts;
    double *times; /* TPS of one stage and its degrees, by micro-batches in flight */
};

static size_t place(const struct dynamic *dynamic, size_t set, int k, int s)
{
    return (set * (size_t)(dynamic->devices + 1) + (size_t)k) * (size_t)(dynamic->sum + 1) + (size_t)s;
}

static void take_degrees(struct dynamic *dynamic, size_t set, size_t rest, size_t tensor, int data)
{
    int devices = data * dynamic->question->tensors[tensor];

    for (int k = devices; k <= dynamic->devices; k++)
        for (int s = data; s <= dynamic->sum; s++) {
            double seconds = fmax(dynamic->least[place(dynamic, rest, k - devices, s - data)],
                                  dynamic->times[(s + data - 1) / data]);

            if (seconds < dynamic->least[place(dynamic, set, k, s)]) {
                dynamic->least[place(dynamic, set, k, s)] = seconds;
                dynamic->cuts[place(dynamic, set, k, s)] = (struct cut){(int)rest, (int)tensor, data, k, s};
            }
        }
}

static void take_pair(struct dynamic *dynamic, size_t set, size_t rest)
{
    const struct piper *question = dynamic->question;
    struct stage_items *items = xmalloc(sizeof *items);
    size_t recomputed, nodes = question->nnodes;

    for (size_t t = 0; t < question->ntensors; t++)
        for (int d = 1; d * question->tensors[t] <= dynamic->devices && d <= dynamic->sum; d++) {
            bool fits = true;

            if (question->micro_batches % d || (question->data && question->data != d) ||
                (question->tensor && question->tensor != question->tensors[t]))
                continue;
            stage_items(question, nodes - set, nodes - rest, t, d, items);
            for (int flying = 1; flying <= (dynamic->sum + d - 1) / d; flying++) {
                dynamic->times[flying] = fits ? stage_knapsack(question, items, flying, &recomputed) : INFINITY;
                fits = isfinite(dynamic->times[flying]);
            }
            take_degrees(dynamic, set, rest, t, d);
        }
    free(items);
}

/* What fewer devices or a smaller sum do as well. */
static void take_less(struct dynamic *dynamic, size_t set)
{
    for (int k = 0; k <= dynamic->devices; k++)
        for (int s = 0; s <= dynamic->sum; s++)
            for (int less = 0; less < 2; less++) {
                size_t at = place(dynamic, set, k, s), from = place(dynamic, set, k - !less, s - less);

                if ((less ? s : k) == 0 || dynamic->least[from] >= dynamic->least[at])
                    continue;
                dynamic->least[at] = dynamic->least[from];
                dynamic->cuts[at] = dynamic->cuts[from];
            }
}

/* The fewest devices, and then the least sum, that do as well as all. */
static void trace(const struct dynamic *dynamic, struct planned *planned)
{
    const struct piper *question = dynamic->question;
    struct stage_items *items = xmalloc(sizeof *items);
    size_t nodes = question->nnodes, set = nodes;
    double most = planned->objective * (1 + ROUNDING);
    int k = 0, s = 0;

    while (dynamic->least[place(dynamic, set, k, dynamic->sum)] > most)
        k++;
    while (dynamic->least[place(dynamic, set, k, s)] > most)
        s++;
    while (set) {
        const struct cut *cut = &dynamic->cuts[place(dynamic, set, k, s)];
        struct planned_stage *stage = &planned->stages[planned->count++];

        BUG_IF(planned->count == PLANNED_MOST);
        *stage = (struct planned_stage){nodes - set, nodes - (size_t)cut->rest, cut->data, question->tensors[cut->tensor], 0};
        stage_items(question, stage->begin, stage->end, (size_t)cut->tensor, cut->data, items);
        stage_knapsack(question, items, (cut->sum + cut->data - 1) / cut->data, &stage->recomputed);
        set = (size_t)cut->rest;
        k = cut->devices - cut->data * stage->tensor;
        s = cut->sum - cut->data;
    }
    free(items);
}

void piper_plan(const struct piper *question, struct planned *planned)
{
    struct dynamic dynamic = {.question = question, .devices = question->devices};
    size_t nodes = question->nnodes, size;

    BUG_IF(nodes > PIPER_NODES);
    dynamic.sum = question->micro_batches < question->devices ? question->micro_batches : question->devices;
    size = place(&dynamic, nodes + 1, 0, 0);
    dynamic.least = xcalloc(size, sizeof *dynamic.least);
    dynamic.cuts = xcalloc(size, sizeof *dynamic.cuts);
    dynamic.times = xcalloc((size_t)dynamic.sum + 2, sizeof *dynamic.times);
    for (size_t i = place(&dynamic, 1, 0, 0); i < size; i++)
        dynamic.least[i] = INFINITY;
    for (size_t set = 1; set <= nodes; set++) {
        for (size_t rest = 0; rest < set; rest++)
            take_pair(&dynamic, set, rest);
        take_less(&dynamic, set);
    }
    *planned = (struct planned){.objective = dynamic.least[place(&dynamic, nodes, dynamic.devices, dynamic.sum)]};
    if (isfinite(planned->objective))
        trace(&dynamic, planned);
    free(dynamic.least);
    free(dynamic.cuts);
    free(dynamic.times);
}
