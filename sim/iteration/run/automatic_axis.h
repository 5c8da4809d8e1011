/* automatic: the values that a key may have, where they follow from the model, the cluster and the batch by a rule:
 * `auto` for an axis of 'dtsim plan'. */
#ifndef DTSIM_AUTOMATIC_AXIS_H
#define DTSIM_AUTOMATIC_AXIS_H

#include "run/facts.h"

/* A key of numbers has a function, another one a list of words. */
enum { NUMBERS = 64 };           /* values of a key */
struct numbers { int items[NUMBERS]; int count; };
struct automatic {
    const char *path;
    struct numbers (*values)(const struct facts *facts);
    const char *words;
    const char *why;
    struct numbers (*asked)(const struct facts *facts);  /* where a person asks for this key by name; NULL: the same */
    const char *asked_why;
    bool usual;                  /* searched where nobody names an axis and the scenario does not say it */
    bool experts;                /* of models with experts */
    bool framework;              /* the values are those that the framework's release has, where they are known */
};
const struct automatic *automatic_at(size_t i);          /* NULL past the last */
const struct automatic *automatic_of(const char *path);  /* NULL: it has none */
/* The values as a sequence; `asked`: a person asks for the key by name. */
struct node *automatic_values(struct arena *arena, const struct automatic *automatic, const struct facts *facts,
                              bool asked);

#endif
