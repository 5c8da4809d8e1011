/* Every schedule of a short chain, searched for the fastest: a state is which backwards are done, what is stored, and
 * which input is at hand. */
#ifndef DTSIM_TEST_CHAIN_SEARCH_H
#define DTSIM_TEST_CHAIN_SEARCH_H

#include <math.h>

#include "recompute/chain.h"

enum { SHORT = 4, STATES = (SHORT + 1) * (1 << SHORT) * (1 << SHORT) * (SHORT + 1) };
struct search {
    const struct chain_layer *layers;
    int n;
    double memory;
    double part[SHORT];      /* B of a layer that its backward recomputes: `saved` is without it */
    double least[STATES];
    bool settled[STATES];
};

static inline int state_of(int todo, int inputs, int rests, int at_hand)
{
    return ((todo * (1 << SHORT) + inputs) * (1 << SHORT) + rests) * (SHORT + 1) + at_hand;
}

static inline double stored_in(const struct search *search, int inputs, int rests)
{
    double stored = 0;

    for (int l = 0; l < search->n; l++)
        stored += (inputs >> l & 1 ? search->layers[l].input : 0) +
                  (rests >> l & 1 ? search->layers[l].saved - search->layers[l].input : 0);
    return stored;
}

static inline void reach(struct search *search, int todo, int inputs, int rests, int at_hand, double time)
{
    int index = state_of(todo, inputs, rests, at_hand);

    if (stored_in(search, inputs, rests) <= search->memory && time < search->least[index])
        search->least[index] = time;
}

static inline void spread(struct search *search, int index)
{
    int at_hand = index % (SHORT + 1), rests = index / (SHORT + 1) % (1 << SHORT);
    int inputs = index / (SHORT + 1) / (1 << SHORT) % (1 << SHORT);
    int todo = index / (SHORT + 1) / (1 << SHORT) / (1 << SHORT);
    double time = search->least[index];
    int last = todo - 1;

    for (int l = 0; l < search->n; l++) {
        const struct chain_layer *layer = &search->layers[l];

        if (l >= todo || !(inputs >> l & 1 || at_hand == l))
            continue;
        for (int choice = 0; choice < 4; choice++) {
            int store = choice & 1 && l + 1 < search->n ? inputs | 1 << (l + 1) : inputs;

            if (choice & 2 && !(inputs >> l & 1))
                continue;
            reach(search, todo, store, choice & 2 ? rests | 1 << l : rests, l + 1, time + layer->forward);
        }
    }
    if (todo > 0 && inputs >> last & 1 && rests >> last & 1 &&
        stored_in(search, inputs, rests) + search->part[last] <= search->memory)
        reach(search, last, inputs & ~(last ? 1 << last : 0), rests & ~(1 << last), 0,
              time + search->layers[last].backward);
}

/* The least time where the layers of the set `selective` keep less. */
static inline double exhaustive_with(const struct chain_layer *given, size_t n, double memory, unsigned selective)
{
    static struct search search;
    struct chain_layer layers[SHORT];
    double best = INFINITY;

    search = (struct search){.layers = layers, .n = (int)n, .memory = memory};
    for (size_t l = 0; l < n; l++) {
        layers[l] = given[l];
        if (!(selective >> l & 1))
            continue;
        if (given[l].recompute == 0)
            return INFINITY;
        layers[l].saved = given[l].selective;
        layers[l].backward += given[l].recompute;
        search.part[l] = given[l].saved - given[l].selective;
    }
    for (int i = 0; i < STATES; i++)
        search.least[i] = INFINITY;
    reach(&search, (int)n, 1, 0, 0, 0);
    for (;;) {
        int next = -1;

        for (int i = 0; i < STATES; i++)
            if (!search.settled[i] && isfinite(search.least[i]) && (next < 0 || search.least[i] < search.least[next]))
                next = i;
        if (next < 0)
            break;
        search.settled[next] = true;
        if (next / (SHORT + 1) / (1 << SHORT) / (1 << SHORT) == 0)
            best = fmin(best, search.least[next]);
        spread(&search, next);
    }
    return best;
}

static inline double exhaustive(const struct chain_layer *layers, size_t n, double memory)
{
    double best = INFINITY;

    for (unsigned selective = 0; selective < 1u << n; selective++)
        best = fmin(best, exhaustive_with(layers, n, memory, selective));
    return best;
}

#endif
