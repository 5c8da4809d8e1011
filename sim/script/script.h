/* script: the steps that the rows of all replicas consist of, with the labels that each waits for and gives. It knows who
 * waits for whom, and nothing of the operations that a step becomes.
 *
 * Two passes write it: works.c the works, and updates.c what replicas do together at the end of iterations. resolve.h puts
 * the steps into an order. */
#ifndef DTSIM_SCRIPT_H
#define DTSIM_SCRIPT_H

#include "exchange/exchange.h"
#include "script/resolve.h"
#include "script/rows.h"

enum label_kind {
    LABEL_ACTIVATION = ACTIVATIONS,  /* for a stage's forward of a micro-batch */
    LABEL_GRADIENT = GRADIENTS,      /* for its backward */
    LABEL_COMPLETE,                  /* the gradients of a stage on all ranks that hold it, for a sum of them */
    LABEL_COPY,                      /* the gradients of one copy of tied weights (as `stage`) in a replica, */
    LABEL_COPIES,                    /* and of both copies */
    LABEL_UPDATED,                   /* a stage's weights on all ranks that hold it */
    LABEL_MET,                       /* replicas from this one on have come to an entry of a rank (as `stage`) */
    LABEL_ALL,                       /* all replicas have come to an entry */
    LABEL_KIND_COUNT
};
/* Something that steps wait for. `number`: a micro-batch, a sum, an update or an entry of a row, as its kind says. */
struct label { enum label_kind kind; int replica, direction, stage, number; };
/* The labels of a kind, numbered one after another from `first` on. */
struct label_block { uint32_t first, replicas, directions, stages, numbers; };
struct labels { struct label_block blocks[LABEL_KIND_COUNT]; uint32_t count; };

/* The steps that rows consist of. */
enum step_kind {
    STEP_WORKS,              /* works, from entry `at` on; works that overlap are one step */
    STEP_ARRIVE,             /* the row comes to entry `at`, for which others wait */
    STEP_MEET,               /* `number` replicas wait for each other before entry `at` */
    STEP_HAND_ROUND,         /* DataParallel's exchanges before entry `at` */
    STEP_SUM,                /* sum `number` of the gradients of stage `at` */
    STEP_JOIN,               /* in a figure: ranks that share stage `at` wait for each other */
    STEP_TIE,                /* a sum of tied gradients in replica `number` */
    STEP_UPDATE,             /* an update of the rank */
    STEP_GATHER,             /* an exchange of the updated weights of stage `at` */
    STEP_RENEW,              /* the end of the rank's update, with these weights */
    STEP_COUNT
};

/* Writes the steps of all rows, or of their works alone; script_release when done. Returns what their labels stand for, in the
 * arena. */
const struct labels *script_write(const struct rows *rows, const struct exchanges *exchanges, bool works_alone,
                                  struct arena *arena, struct script *script);
/* The order of all steps, which the caller frees; NULL: the budget is spent. That there is none would be a mistake of this
 * program: orders of files were checked. */
const struct step **script_order(const struct rows *rows, const struct script *script, const struct labels *labels,
                                 size_t *count);
/* For people: a line a step, of `count` steps in an order, or NULL: row by row. */
void script_print(const struct rows *rows, const struct script *script, const struct labels *labels,
                  const struct step *const *order, size_t count, FILE *out);

#endif
