#include "planners/piper.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"

enum { SETS_MOST = 4096 };
#define FITS 1e-9 /* B that may be too many, as in the released program */

/* A set of layers. */
struct set {
    uint64_t words[PIPER_NODES / 64];
};

static inline bool set_has(const struct set *set, size_t node)
{
    return set->words[node / 64] >> node % 64 & 1;
}

/* The layers of a stage with the cost and the memory of each of their options on one data and tensor degree. */
struct stage_items {
    size_t count;
    struct stage_item {
        double seconds[PIPER_OPTIONS], held[PIPER_OPTIONS], fixed[PIPER_OPTIONS];
    } items[PIPER_NODES];
};

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

static void stage_items(const struct piper *question, const struct set *stage, size_t tensor, int data,
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

/* A choice for the first layers: none that is faster holds less. */
struct kept {
    double memory, seconds;
    size_t recomputed;
};

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
        array_sort(more, n, sizeof *more, by_memory);
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
    if (fast > question->memory && question->exact)
        return exact(question, items, flying, recomputed);
    return released(items, fastest, flying, fast > question->memory ? fast - question->memory : 0, recomputed);
}

/* How the layers of a set are best divided: the first stage, and what is left for the others. */
struct cut {
    int rest, tensor, data, devices, sum;
};

struct dynamic {
    const struct piper *question;
    int devices, sum; /* the most of each: k and s */
    struct {
        struct set *items;
        size_t count, capacity;
    } sets;        /* smaller ones first */
    double *least; /* dp, [(set * (devices + 1) + k) * (sum + 1) + s] */
    struct cut *cuts;
    double *times; /* TPS of one pair of sets and degrees, by micro-batches in flight */
};

static size_t place(const struct dynamic *dynamic, size_t set, int k, int s)
{
    return (set * (size_t)(dynamic->devices + 1) + (size_t)k) * (size_t)(dynamic->sum + 1) + (size_t)s;
}

/* Whether all successors of the layer are in the set. */
static bool may_join(const struct piper *question, const struct set *set, size_t node)
{
    for (size_t e = 0; e < question->nedges; e++)
        if (question->edges[e].from == (int)node && !set_has(set, (size_t)question->edges[e].to))
            return false;
    return true;
}

static void add_set(struct dynamic *dynamic, const struct set *set)
{
    for (size_t i = dynamic->sets.count; i-- > 0;)
        if (memcmp(&dynamic->sets.items[i], set, sizeof *set) == 0)
            return;
    *GROW(&dynamic->sets) = *set;
}

/* From the empty set, each found set and one more layer: so they stand in the order of their sizes. */
static int find_sets(struct dynamic *dynamic)
{
    size_t nodes = dynamic->question->nnodes, last = 0;

    add_set(dynamic, &(struct set){{0}});
    for (size_t i = 0; i < dynamic->sets.count; i++)
        for (size_t node = 0; node < nodes; node++) {
            struct set set = dynamic->sets.items[i];

            if (set_has(&set, node) || !may_join(dynamic->question, &set, node))
                continue;
            set.words[node / 64] |= (uint64_t)1 << node % 64;
            add_set(dynamic, &set);
            if (dynamic->sets.count > SETS_MOST)
                return -1;
        }
    for (size_t node = 0; node < nodes; node++)
        last += set_has(&dynamic->sets.items[dynamic->sets.count - 1], node);
    return last == nodes ? 0 : -1;
}

/* The layers of one set that are not in the other; false: the other is no part of it. */
static bool difference(const struct set *set, const struct set *rest, struct set *stage)
{
    for (size_t w = 0; w < COUNT(set->words); w++) {
        if (rest->words[w] & ~set->words[w])
            return false;
        stage->words[w] = set->words[w] & ~rest->words[w];
    }
    return true;
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
    struct set stage;
    size_t recomputed;

    if (difference(&dynamic->sets.items[set], &dynamic->sets.items[rest], &stage))
        for (size_t t = 0; t < question->ntensors; t++)
            for (int d = 1; d * question->tensors[t] <= dynamic->devices && d <= dynamic->sum; d++) {
                bool fits = true;

                if (question->micro_batches % d || (question->data && question->data != d) ||
                    (question->tensor && question->tensor != question->tensors[t]))
                    continue;
                stage_items(question, &stage, t, d, items);
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
    size_t set = dynamic->sets.count - 1, begin = 0;
    double most = planned->objective * (1 + ROUNDING);
    int k = 0, s = 0;

    while (dynamic->least[place(dynamic, set, k, dynamic->sum)] > most)
        k++;
    while (dynamic->least[place(dynamic, set, k, s)] > most)
        s++;
    while (set) {
        const struct cut *cut = &dynamic->cuts[place(dynamic, set, k, s)];
        struct planned_stage *stage = &planned->stages[planned->count++];
        struct set layers;

        BUG_IF(planned->count == PLANNED_MOST);
        difference(&dynamic->sets.items[set], &dynamic->sets.items[cut->rest], &layers);
        stage_items(question, &layers, (size_t)cut->tensor, cut->data, items);
        *stage = (struct planned_stage){begin, begin + items->count, cut->data, question->tensors[cut->tensor], 0};
        stage_knapsack(question, items, (cut->sum + cut->data - 1) / cut->data, &stage->recomputed);
        begin = stage->end;
        set = (size_t)cut->rest;
        k = cut->devices - cut->data * stage->tensor;
        s = cut->sum - cut->data;
    }
    free(items);
}

int piper_plan(const struct piper *question, struct planned *planned)
{
    struct dynamic dynamic = {.question = question, .devices = question->devices};
    size_t sets, size;
    int rc;

    dynamic.sum = question->micro_batches < question->devices ? question->micro_batches : question->devices;
    rc = question->nnodes > PIPER_NODES ? -1 : find_sets(&dynamic);
    sets = rc ? 1 : dynamic.sets.count;
    size = place(&dynamic, sets, 0, 0);
    dynamic.least = xcalloc(size, sizeof *dynamic.least);
    dynamic.cuts = xcalloc(size, sizeof *dynamic.cuts);
    dynamic.times = xcalloc((size_t)dynamic.sum + 2, sizeof *dynamic.times);
    for (size_t i = place(&dynamic, 1, 0, 0); i < size; i++)
        dynamic.least[i] = INFINITY;
    for (size_t set = 1; set < sets; set++) {
        for (size_t rest = 0; rest < set; rest++)
            take_pair(&dynamic, set, rest);
        take_less(&dynamic, set);
    }
    *planned = (struct planned){.objective = INFINITY};
    if (!rc) {
        planned->objective = dynamic.least[place(&dynamic, sets - 1, dynamic.devices, dynamic.sum)];
        if (isfinite(planned->objective))
            trace(&dynamic, planned);
    }
    free(dynamic.sets.items);
    free(dynamic.least);
    free(dynamic.cuts);
    free(dynamic.times);
    return rc;
}
