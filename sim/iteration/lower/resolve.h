/* resolve: in which order the steps of many rows are lowered.
 *
 * Each row is a list of steps, which go one after another. A step waits for labels and gives labels. A label is a number
 * that stands for something which others wait for, like "the activations of micro-batch 3 for stage 5". It may be
 * named before anybody has given it, as a jump in an assembler's text may name a line further down. A label that several
 * steps give is there when the last of them has given it.
 *
 * A shared step stands in several rows. The first row that comes to it when its labels are there does it for all of them;
 * the others go on as soon as it is done.
 *
 * The order: ranks take turns, from the first to the last and again from the first. On its turn a rank goes through its
 * replicas: each goes on until it waits, and they repeat this until all of them wait. So the order of one replica's
 * steps does not depend on the number of replicas. The search does not poll rows that wait: a step that gives a label
 * puts the rows that wait for it into a heap, at their next turn. */
#ifndef DTSIM_RESOLVE_H
#define DTSIM_RESOLVE_H

#include "base/progress.h"

#define NO_LABEL UINT32_MAX

struct script_step {
    uint32_t row;
    uint8_t kind;                    /* kind, at and number mean something to the caller alone */
    bool shared;                     /* shared steps of several rows that need the same label first are one step */
    uint32_t at, number;
    struct labels_at { uint32_t first, count; } needs, gives;        /* in the lists of the script */
};

/* Zero-initialise; script_release when done. Rows come rank by rank, and of a rank replica by replica. */
struct script {
    uint32_t replicas, labels;       /* rows of each rank; all labels are below this number */
    struct step_list { struct script_step *items; size_t count, capacity; } steps;      /* of all rows, row by row */
    struct label_list { uint32_t *items; size_t count, capacity; } needs, gives;     /* of all steps, in their order */
    struct label_list rows;          /* a row: its first step */
    struct progress *progress;       /* whose budget ends the search for an order; or NULL */
};
void script_row(struct script *script);                 /* begins the next row */
/* Adds a step to the last row; then what it waits for, and what it gives. A shared step needs a label, and gives none. */
void script_add(struct script *script, struct script_step step);
void script_need(struct script *script, uint32_t label);
void script_give(struct script *script, uint32_t label);
void script_release(struct script *script);

/* Why there is no order: this step waits for a label that nobody gives, or that those who give it wait for too. */
struct unresolved { const struct script_step *step; uint32_t label; bool nobody; };

/* The steps as they are done, shared ones once. Sets *count, and *why if that is not all of them. The caller frees the
 * array. NULL: the budget is spent; *count is 0. */
const struct script_step **script_resolve(const struct script *script, size_t *count, struct unresolved *why);

#endif
