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
#define SEARCH_METHODS(X) X(SEARCH_BOUND, "bound") X(SEARCH_EXHAUSTIVE, "exhaustive") X(SEARCH_PIPEDREAM, "pipedream") \
    X(SEARCH_2BW, "2bw") X(SEARCH_PIPER, "piper") X(SEARCH_MCMC, "mcmc") X(SEARCH_ALPA, "alpa") \
    X(SEARCH_DAPPLE, "dapple") X(SEARCH_VARUNA, "varuna") X(SEARCH_DTSIM, "dtsim") X(SEARCH_PLANNERS, "all")
enum search_method { SEARCH_METHODS(ENUM_VALUE) };
extern const char *const search_method_names[];
/* Whether it is a paper's planner, or all of them: they make one choice each, and look at no axes. */
bool search_is_planner(int method);
extern const struct table search_table;

/* Reads the mapping into a struct search_spec: its keys, and the axes, whose keys are dotted paths. */
int search_load(struct arena *arena, const struct node *value, void *object, struct error *err);

#endif
