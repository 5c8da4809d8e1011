/* search: what `plan:` in a scenario asks of 'dtsim plan'. Other commands check its keys and ignore it. */
#ifndef DTSIM_SEARCH_H
#define DTSIM_SEARCH_H

#include "config/field.h"

struct search_spec {
    const struct node *node;         /* NULL: the scenario has none */
    const struct node *axes;         /* {PATH: auto or values}; NULL: none */
    struct search_value { const struct node *node; } gpus, objective, subject_to;    /* NULL: left out */
    int method;                      /* enum search_method */
    int top, verify;                 /* -1: left out */
    double time_limit;               /* s; NaN: left out */
};
#define SEARCH_METHODS(X) X(SEARCH_BOUND, "bound") X(SEARCH_EXHAUSTIVE, "exhaustive")
enum search_method { SEARCH_METHODS(ENUM_VALUE) };
extern const struct table search_table;

/* Reads the mapping into a struct search_spec: its keys, and the axes, whose keys are dotted paths. */
int search_load(struct arena *arena, const struct node *value, void *object, struct error *err);

#endif
