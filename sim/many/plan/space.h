/* space: the configurations that a plan looks at, as the points of a sweep. What the scenario says is held. An axis is a
 * path with the values that a person lists, or `auto`: then they follow from the model, the cluster and the schedules by
 * rules. Rules that several axes must keep together drop points; each is said in words, with how many it drops. */
#ifndef DTSIM_SPACE_H
#define DTSIM_SPACE_H

#include "plan/goal.h"
#include "scenario/search.h"
#include "sweep/sweep.h"

/* What a person asks. */
struct plan_question {
    const char *path;                /* of the scenario */
    const char *const *sets;         /* "PATH=auto" or "PATH=V1,V2"; nsets of them */
    size_t nsets;
    const char *gpus;                /* "64,128": numbers of GPUs; NULL: the cluster's */
    const char *objective;           /* "iteration_time_s,gpus"; NULL: the fastest */
    const char *limits;              /* "iteration_time_s=12 s,cost=0.5"; NULL: none */
};

struct space_axis { const char *path, *values, *why; bool several; };    /* for people; why NULL: a person listed the values */

struct space {
    struct sweep sweep;              /* its points are the combinations; release by space_release */
    struct space_rule {
        const char *why;             /* "tensor x pipeline x context must divide the GPUs" */
        const char *expression;
        const struct rule *row;              /* of the rules of scenarios; NULL: another one */
        const struct asked_rule *asked;      /* of points before they are loaded (space_rules.c); NULL: the expression is */
        bool of_release;             /* the software's release cannot run it, which this simulator may */
        bool of_states;              /* its points do not fit (space_states.h) */
    } *rules;                        /* one for each of the sweep's constraints, in their order */
    size_t nrules;
    struct space_axis *axes;
    size_t naxes;
    const char *software;            /* that is assumed for all points, as nobody names one; NULL: none is */
    bool software_by_zero;           /* instead: the software of each ZeRO stage */
    struct search_spec asked;        /* by the scenario's own `plan`; options go before it */
    struct space_held {              /* the keys with an `auto` that no axis has */
        const char *path;
        const struct node *values;   /* that `auto` would search */
        struct { const char **items; size_t count, capacity; } found;    /* what points have, each once (bounds.h) */
    } *held;
    size_t nheld;
    struct goal goal;
    struct asked_states *states;     /* space_states.c; NULL: it is not asked */
    struct selection selection;      /* the points that no rule drops */
};

enum { SPACE_MOST = 1000000 };        /* points that remain */

/* Reads the scenario, makes the axes and selects the points. Errors: the errors of the scenario's model and cluster, an
 * axis that has no `auto`, numbers of GPUs that are no whole nodes, more than SPACE_MOST points. Where the scenario
 * names a planner (search_is_planner of `asked.method`), its tree is read alone. Release in either case. */
int space_load(const struct plan_question *question, struct space *space, struct error *err);
void space_release(struct space *space);

/* Whether the text, a condition, has the path of an axis whose values follow from rules. */
bool axes_are_ours(const struct space_axis *axes, size_t count, const char *text);

/* Whether `auto` of the key would search other values than points have. */
bool space_holds(const struct space_held *held);

/* Whether an axis is hardware that is compared, as a person buys one of its values: of `cluster`, but for numbers of nodes. */
bool plan_is_hardware(const char *path);

/* Whether reading a point may be a search of its own: the scenario or an axis leaves a key open (auto.h). */
bool space_is_open(const struct space *space);

/* Whether the micro-batch alone is searched: then the largest that fits is asked for, and all are replayed. */
bool space_asks_largest(const struct space *space);

#endif
