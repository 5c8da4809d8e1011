/* emit_internal: what the writers for all frameworks share. */
#ifndef DTSIM_EMIT_INTERNAL_H
#define DTSIM_EMIT_INTERNAL_H

#include "emit/emit.h"
#include "jobs/jobs.h"

struct emit {
    struct arena *arena;
    const struct scenario *scenario;
    const struct node *tree;         /* the scenario with every default */
    const struct node *base;         /* what the first draft says, with every default; NULL: this is the first draft */
    const struct dialect *dialect;   /* of the framework */
    bool own;                        /* the scenario names software that is one of the framework's releases, */
    struct releases release;         /* core_v0.N; 0: not known, and what the newest one takes is written */
    struct node *said;               /* arguments that the draft has from rows, and their values */
    const char *remark;              /* what a reader should know of what is written; NULL: nothing */
    FILE *out;                       /* of the draft */
};
/* How a framework is written and read back. */
struct framework {
    const char *title;               /* "Megatron-LM" */
    const char *dialect;             /* its file of platforms/dialects/ */
    void (*write)(struct emit *e);
    job_reader *read;                /* of a draft */
    bool beside;                     /* it does not say the model, which is the scenario's */
    bool even;                       /* its stages have as many layers each, unless it is told how many */
    /* Puts into the tree what a launch must say and the scenario leaves open, and refuses what the framework's own
     * checks do. NULL: there is nothing. 0 or -1. */
    int (*fit)(struct emit *e, struct node *tree, struct error *err);
};
int emit_checked(const struct framework *framework, const struct scenario *scenario, FILE *out, FILE *notes,
                 struct error *err);

/* The value at a path of the scenario, as text; "": it has none. */
const char *emit_text(const struct emit *e, const char *path);
long long emit_number(const struct emit *e, const char *path);
bool emit_is(const struct emit *e, const char *path, const char *value);
/* Whether the first draft says something else there. false: this is the first draft. */
bool emit_differs(const struct emit *e, const char *path);
/* Whether the release has an argument of Megatron-LM's. */
bool emit_has(const struct emit *e, const char *argument);
/* GPUs that share a replica's bytes of gradients: bytes of one gradient as it is sent. */
int emit_gradient_bytes(const struct emit *e);

#endif
