/* lower: rows and messages become a program. This folder alone says which work waits for which: a forward for the
 * activations of the stage before, a backward for the gradients of the stage after, an update for the gradients of all
 * replicas.
 *
 * Three passes: script.c writes the steps of all rows, with the labels that they wait for and give; schedule/resolve.h
 * finds their order; then each step writes its operations, in one of the lower_*.c. By then all that it waits for is
 * written. */
#ifndef DTSIM_LOWER_H
#define DTSIM_LOWER_H

#include "workload/workload.h"

enum lower_what {
    LOWER_ITERATION,         /* the whole iteration: compute, boundary transfers, gradient all-reduce, update */
    LOWER_COMPUTE,           /* one replica's rows and boundary transfers, for figures and grids */
};

/* The exchange that an operation is part of: of a kind of process group, a collective's operation, or
 * COLLECTIVE_OP_COUNT: transfers from one rank to another. */
static inline uint8_t exchange_number(enum group_kind kind, enum collective_op op)
{
    return (uint8_t)(1 + (int)kind * (COLLECTIVE_OP_COUNT + 1) + (int)op);
}
static inline enum group_kind exchange_group(uint8_t exchange)
{
    return (enum group_kind)((exchange - 1) / (COLLECTIVE_OP_COUNT + 1));
}
static inline enum collective_op exchange_op(uint8_t exchange)
{
    return (enum collective_op)((exchange - 1) % (COLLECTIVE_OP_COUNT + 1));
}

struct lowered {
    struct program program;  /* rank = replica * pipeline + pipeline rank */
    struct alike alike;      /* who stands for whom in it */
    uint32_t protocols;      /* bit i: an all-reduce ran with protocol i of the communication profile */
    uint64_t all_reduces;    /* bit i: collective_of(COLLECTIVE_ALL_REDUCE, i) was used */
};

/* The purpose of the operations that a work becomes. */
enum op_what work_what(enum work_kind kind);
/* Builds the program. `measure` serves the tensor-parallel (and measured) collectives. Release in either case. */
int lower(const struct workload *workload, enum lower_what what, struct measure *measure, struct lowered *lowered,
          struct error *err);
void lowered_release(struct lowered *lowered);

/* The passes before operations are written: the steps of all rows with their labels, and their order. */
enum lower_pass { PASS_SCRIPT, PASS_ORDER };
extern const char *const lower_pass_names[];     /* "script", "order"; NULL-terminated */
/* Prints the steps that a pass of an iteration's lowering has made, a line each. Fails as lower() does. */
int lower_print(const struct workload *workload, enum lower_pass after, struct measure *measure, FILE *out,
                struct error *err);

#endif
