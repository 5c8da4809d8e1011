/* explained: a scenario, or the scenario of a run's folder, simulated and explained, for commands. */
#ifndef DTSIM_EXPLAINED_H
#define DTSIM_EXPLAINED_H

#include "base/progress.h"
#include "report/explanation.h"

/* What the explanation of a folder must agree with. Zero: nothing. */
struct explain_expected {
    double seconds;
    struct loc loc;              /* in result.json */
    bool other_build;            /* another build of the program wrote it */
    bool agrees;                 /* the iteration takes as long in this program */
};

struct explain_request {
    const char *path;            /* a scenario, or the folder of a run */
    const char *const *sets;
    size_t nsets;
    int engine;                  /* -1: the scenario's */
    struct budget budget;
    FILE *written;               /* gets the values of the folder's result, where this build does not know its scenario;
                                  * or NULL */
    /* Gets what was found. */
    void (*take)(const struct explanation *explanation, const struct explain_expected *expected, void *context);
    void *context;
};
/* Refuses a folder of this build whose run now takes another time; of another build says so on stderr. After `take` there
 * may be an error too: the budget ended before all was found. */
void explain(const struct explain_request *request, struct error *err);

#endif
