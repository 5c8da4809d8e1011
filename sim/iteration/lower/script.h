/* script: the steps of the rows of all replicas, with the labels that each step waits for and gives. A script knows
 * which step waits for which; it does not know the operations that a step becomes.
 *
 * Two passes write it: works.c writes the steps of works, updates.c the steps at the end of iterations. resolve.h puts
 * the steps into an order. */
#ifndef DTSIM_SCRIPT_H
#define DTSIM_SCRIPT_H

#include "exchange/exchange.h"
#include "lower/resolve.h"
#include "lower/script_rows.h"

/* Each kind says which numbers tell its labels apart; the other members of struct label are then 0. */
enum label_kind {
    LABEL_ACTIVATION = ACTIVATIONS,  /* a stage's input has arrived: replica, direction, stage, micro-batch */
    LABEL_GRADIENT = GRADIENTS,      /* the gradients of its output have: the same */
    LABEL_COMPLETE,                  /* a stage's gradients are complete on all ranks that hold it: stage, sum */
    LABEL_TIED_COPY,                 /* the gradients of one copy of tied weights are: tied sum (in `replica`), copy 0
                                      * or 1 (in `stage`), update */
    LABEL_TIED_COPIES,               /* the gradients of both copies are: tied sum (in `replica`), update */
    LABEL_UPDATED,                   /* a stage's weights are updated on all ranks that hold it: stage */
    LABEL_GROUP_ARRIVED,             /* the replicas of a barrier have come to an entry: the first of them, rank (in
                                      * `stage`), entry */
    LABEL_ALL_ARRIVED,               /* all replicas have come to an entry: entry */
    LABEL_KIND_COUNT
};
/* Something that steps wait for. `number`: the last number that its kind lists. */
struct label { enum label_kind kind; int replica, direction, stage, number; };
/* All labels of a kind. Their numbers in the script begin at `first`; the other members are how many values each member
 * of struct label has. */
struct label_block { uint32_t first, replicas, directions, stages, numbers; };
struct labels { struct label_block blocks[LABEL_KIND_COUNT]; uint32_t count; };

/* The steps that rows consist of, with the meaning of struct script_step's `at` and `number` in each. */
enum step_kind {
    STEP_WORKS,              /* works, from entry `at` on; works that overlap are one step */
    STEP_ARRIVE,             /* the row has come to entry `at`; it becomes no operation, and gives labels alone */
    STEP_MEET,               /* `number` replicas wait for each other before entry `at` (a barrier) */
    STEP_REPLICATE,          /* the exchanges of PyTorch's DataParallel before entry `at` */
    STEP_SUM,                /* sum `number` of the gradients of stage `at` */
    STEP_JOIN,               /* in a figure: ranks that share stage `at` wait for each other */
    STEP_TIE,                /* tied sum `number`: a sum of the gradients of tied weights (tied_sums) */
    STEP_UPDATE,             /* the update of the rank, at entry `at` */
    STEP_GATHER,             /* an exchange of the updated weights of stage `at` */
    STEP_RENEW,              /* the rank has all updated weights, at entry `at`: its update ends */
    STEP_COUNT
};

/* Writes the steps of all rows; with `works_alone` the steps of works only, as the pass "works" prints them. Call
 * script_release when done. Returns the meaning of the labels, in the arena. */
const struct labels *script_write(const struct rows *rows, const struct exchanges *exchanges, bool works_alone,
                                  struct arena *arena, struct script *script);
/* The order of all steps, which the caller frees; NULL: the budget is spent. Every script has an order: rows of
 * schedules and of files were checked for deadlocks. One without an order is a bug of this program, and ends it
 * (BUG). */
const struct script_step **script_order(const struct rows *rows, const struct script *script, const struct labels *labels,
                                        size_t *count);
/* For people: a line a step, of `count` steps in an order, or NULL: row by row. */
void script_print(const struct rows *rows, const struct script *script, const struct labels *labels,
                  const struct script_step *const *order, size_t count, FILE *out);

#endif
