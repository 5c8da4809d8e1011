/* schedule: what a pipeline schedule writes, all that its file in strategies/ sees. A paper draws a schedule as a grid: a
 * row a rank, work from left to right. A strategy writes such rows; it never writes times or dependencies. */
#ifndef DTSIM_SCHEDULE_H
#define DTSIM_SCHEDULE_H

#include "field.h"

enum work_kind { FORWARD, BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT, RECOMPUTE, WORK_KIND_COUNT };

/* One cell of the grid: work on one micro-batch in one of the rank's model chunks. Both count from 0. */
struct work {
    enum work_kind kind;
    int chunk, mb;
};
struct row { struct work *items; size_t count, capacity; };      /* zero-initialise; free(items) */

/* Append one cell. */
void forward(struct row *row, int chunk, int mb);
void backward(struct row *row, int chunk, int mb);
void backward_input(struct row *row, int chunk, int mb);
void backward_weight(struct row *row, int chunk, int mb);
void recompute(struct row *row, int chunk, int mb);

/* The degrees that a schedule sees. */
struct plan {
    int stages;              /* pipeline ranks of a replica */
    int chunks;              /* model chunks (virtual stages) per rank */
    int micro_batches;       /* per replica and iteration */
    bool recompute;          /* full recomputation: a forward keeps its input alone */
    const void *options;     /* of the schedule: the struct of its options table */
};

/* Where a recomputation may begin (rows fix its place in the order). */
enum recompute_rule {
    RECOMPUTE_WITH_GRADIENT, /* once the gradient that its backward needs has arrived (fused, as in Megatron) */
    RECOMPUTE_EARLY,         /* as soon as the rank comes to it (GPipe, torchgpipe) */
};

struct strategy {
    const char *name;        /* as under strategy.schedule */
    const char *title;
    const char *paper;
    const char *brief;       /* one line */
    const char *figure;      /* the paper's grid in ASCII, for help; the tests compare it with what the code does */
    const char *formula;     /* its closed forms, as text */
    const struct table *options;     /* its own keys under `strategy:`, or NULL */
    enum recompute_rule recompute;
    bool chunked;            /* more than one chunk a rank makes sense */
    /* What the schedule cannot do, as errors at `loc`; or NULL. */
    int (*check)(const struct plan *plan, struct loc loc, struct error *err);
    /* The row of one rank. */
    void (*row)(struct row *row, const struct plan *plan, int rank);
    /* Seconds of the whole iteration on a free network, every stage taking f, b and r seconds a micro-batch. */
    double (*ideal_makespan)(const struct plan *plan, double f, double b, double r);
    /* Most micro-batches (of one chunk) whose forward is done and backward is not, on that rank. */
    int (*ideal_in_flight)(const struct plan *plan, int rank);
};

/* All of strategies/list.h, in its order. */
const struct strategy *strategy_at(size_t index);        /* NULL past the last */
const char *strategy_name(size_t index);                 /* a choice_name */

/* The model's chunks in model order are the global stages. Rank r's chunk c is global stage c * stages + r. */
int plan_global_stage(const struct plan *plan, int rank, int chunk);
int plan_rank(const struct plan *plan, int global_stage);
int plan_global_stages(const struct plan *plan);

/* The cell in PyTorch's notation, "2F5": global stage, kind (F B I W R), micro-batch from 0. */
char *work_format(const struct plan *plan, int rank, struct work work, char *buffer, size_t size);
char work_letter(enum work_kind kind);

#endif
