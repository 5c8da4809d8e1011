#include <math.h>
#include <stdlib.h>

#include "planners/piper_internal.h"

#define FITS 1e-9                /* B that may be too many, as in the released program */

/* B that cross the border of the stage at one of its layers, there and back. */
static double edge_bytes(const struct piper *question, const struct set *stage, size_t node, bool group)
{
    double bytes = 0;

    for (size_t e = 0; e < question->nedges; e++) {
        const struct piper_edge *edge = &question->edges[e];
        size_t from = (size_t)edge->from, to = (size_t)edge->to;

        if (to == node && !set_has(stage, from))
            bytes += 2 * (edge->bytes + (group ? edge->to_group : 0));
        if (from == node && !set_has(stage, to))
            bytes += 2 * (edge->bytes + (group ? edge->from_group : 0));
    }
    return bytes;
}

void stage_items(const struct piper *question, const struct set *stage, size_t tensor, int data,
                 struct stage_items *items)
{
    items->count = 0;
    for (size_t node = 0; node < question->nnodes; node++) {
        struct stage_item *item = &items->items[items->count];
        double bytes;

        if (!set_has(stage, node))
            continue;
        bytes = edge_bytes(question, stage, node, question->tensors[tensor] > 1);
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
struct swap { double price; size_t item; int option; };

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
    if (count)
        qsort(swaps, count, sizeof *swaps, by_price);
    for (size_t s = 0; s < count && excess >= FITS; s++) {
        const struct stage_item *item = &items->items[swaps[s].item];
        int other = swaps[s].option;

        sum += item->seconds[other] - item->seconds[1 - other];
        excess -= memory_of(item, 1 - other, flying) - memory_of(item, other, flying);
        *recomputed += (size_t)other - (size_t)(1 - other);
    }
    return sum;
}

/* A choice for the first layers: none that is faster holds less. */
struct kept { double memory, seconds; size_t recomputed; };

static int by_memory(const void *left, const void *right)
{
    const struct kept *a = left, *b = right;

    if (a->memory < b->memory || a->memory > b->memory)
        return a->memory < b->memory ? -1 : 1;
    return (a->seconds > b->seconds) - (a->seconds < b->seconds);
}

static double exact(const struct piper *question, const struct stage_items *items, int flying, size_t *recomputed)
{
    struct kept *kept = xcalloc(1, sizeof *kept);
    size_t count = 1;
    double best = INFINITY;

    for (size_t i = 0; i < items->count; i++) {
        struct kept *more = xcalloc(2 * count + 1, sizeof *more);
        size_t n = 0, left = 0;

        for (size_t k = 0; k < count; k++)
            for (int o = 0; o < PIPER_OPTIONS; o++) {
                double memory = kept[k].memory + memory_of(&items->items[i], o, flying);

                if (memory <= question->memory)
                    more[n++] = (struct kept){memory, kept[k].seconds + items->items[i].seconds[o],
                                              kept[k].recomputed + (size_t)o};
            }
        if (n)
            qsort(more, n, sizeof *more, by_memory);
        for (size_t k = 0; k < n; k++)
            if (!left || more[k].seconds < more[left - 1].seconds)
                more[left++] = more[k];
        free(kept);
        kept = more;
        count = left;
    }
    if (count) {
        best = kept[count - 1].seconds;
        *recomputed = kept[count - 1].recomputed;
    }
    free(kept);
    return best;
}

double stage_knapsack(const struct piper *question, const struct stage_items *items, int flying, size_t *recomputed)
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
    if (fast > question->memory && question->exact)
        return exact(question, items, flying, recomputed);
    return released(items, fastest, flying, fast > question->memory ? fast - question->memory : 0, recomputed);
}
