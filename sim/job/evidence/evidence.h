/* evidence: how far predictions were off on published measurements, and so how far off one of similar work is expected
 * to be. scenarios/paper/errors.tsv has a row for each published time, of the scenario asked plainly; `dtsim validate
 * --errors` makes it, and joins the first errors to it (first.h). */
#ifndef DTSIM_EVIDENCE_H
#define DTSIM_EVIDENCE_H

#include "base/base.h"

struct first_error;
struct made;

/* Where two predictions are alike in these, their errors are likely to be. */
struct likeness {
    char software[32];               /* the name of the software file; "none" */
    char family[32];                 /* the file that the software's begins with; releases of one family have it in common */
    char runtime[16];                /* what runs the step below the framework: megatron, pytorch, deepspeed, xla, ... */
    char costs[32];                  /* the name of the profile of kernel times; "roofline": the times come from a data sheet,
                                      * or the nodes are of several kinds; "given": the scenario gives them */
    char format[16];                 /* of the matrix products; of given times "given" */
    char adapters[8];                /* "": all weights are trained; "lora": adapters are; "nf4": adapters of frozen weights in
                                      * four bits (QLoRA) */
    char optimizer[8];               /* "muon", or "": one that goes element by element */
    char states[24];                 /* the optimizer by its name, for memory alone; errors.tsv does not have it */
    char schedule[32];
    char model[64];                  /* its title, or its layers and its width; of given times "given" */
    char dispatch[16];               /* how tokens come to their experts; "": there are none */
    double experts;                  /* of a block; 0: none */
    double gpus;
    double sequence;                 /* tokens of a sample; 0: the model has no tokens */
    double tokens;                   /* of a micro-batch, on a GPU of its context group; 0: the model has no tokens */
    double exposed;                  /* share of the iteration in which GPUs wait for communication */
    double measured;                 /* share of the kernels' time that stands on kernels measured in such sizes */
    double nic;                      /* B/s of a NIC; 0: nothing goes through NICs */
    char gpu[48];                    /* its name, for anchors; or "". errors.tsv does not have it */
};

/* A published time: its table, its name there, the group of rows whose order was asked for, or "", and the number of its
 * plain scenario in the table, from 1 on: rows of one number are asked the same. */
struct evidence_name { const char *table, *row, *group; int plain; };

enum { EVIDENCE_GPUS, EVIDENCE_SEQUENCE, EVIDENCE_TOKENS, EVIDENCE_NIC, EVIDENCE_SIZES };

/* An error of a published time, and what makes others like it. */
struct evidence_row {
    struct evidence_name name;
    bool first;                      /* its error before anybody worked on its table; else today's */
    double error;                    /* predicted / measured - 1 */
    size_t kind, today;              /* indices: of its kind when the error was made, and of today's */
    const char *model;
    double sizes[EVIDENCE_SIZES];    /* log2; of 0: 0 */
    double exposed, measured;
    double weight;                   /* 1 over the rows of its table: each table counts as much as any other */
};
/* The error of the ratio of two published times p and m (predicted, measured) of one table, group, software, profile and
 * model, whose plain scenarios differ: (p1 / p2) / (m1 / m2) or its inverse, whichever is more, less 1. */
struct evidence_ratio {
    const char *table;
    double error;
    double weight;                   /* 1 over the ratios of its table */
    unsigned kind;                   /* of the first of the two */
    bool first;                      /* of their first errors; else of today's */
};
/* The error of a published peak of memory, by how it was measured. scenarios/paper/memory.tsv has a row for each, of the
 * scenario asked plainly; `dtsim validate --memory-errors` makes it. */
#define PEAK_KINDS(X) \
    X(PEAK_ALLOCATED, "allocated")   /* PyTorch's max_memory_allocated */ \
    X(PEAK_RESERVED, "reserved")     /* max_memory_reserved */ \
    X(PEAK_DRIVER, "driver")         /* all that the GPU's driver counts (nvidia-smi) */
enum peak_kind { PEAK_KINDS(ENUM_VALUE) PEAK_KIND_COUNT };
extern const char *const peak_kind_names[];
struct evidence_peak {
    const char *table;
    enum peak_kind kind;
    const struct likeness *likeness; /* its runtime, adapters, optimizer and experts */
    double error;                    /* predicted / measured - 1 */
    double weight;                   /* 1 over the rows of its table and kind */
};
/* Rows by the size of the error over evidence_unsure, least first; and the ratios of their times by the error. */
struct evidence_runs {
    struct { struct evidence_row *items; size_t count, capacity; } rows;
    struct { struct evidence_ratio *items; size_t count, capacity; } ratios;
};
struct evidence {
    struct evidence_runs runs;           /* as they are predicted */
    struct evidence_runs sheets;         /* as times of kernels from data sheets alone would first have predicted them: what
                                          * tells of a GPU whose kernels nobody measured */
    struct { struct likeness *items; size_t count, capacity; } kinds;        /* names, and experts */
    struct { struct evidence_peak *items; size_t count, capacity; } peaks;   /* by the size of the error, least first */
    double slowest_nic, fastest_nic;     /* B/s, of rows with NICs; 0: there are none */
};

/* The columns of such a file, by name, and NULL. */
extern const char *const evidence_columns[];
/* Prints a row, without the end of a line: the shares are rounded to what evidence needs. `first`: NULL: unknown. */
struct evidence_errors {
    double today;
    double sheet;                    /* today's, with times of kernels from the data sheet; NaN: `today` is that */
};
void evidence_print(FILE *out, const struct evidence_name *name, const struct likeness *likeness,
                    const struct evidence_errors *errors, const struct first_error *first);
/* Reads a file of such rows into the arena. */
int evidence_read(struct arena *arena, const char *path, struct evidence *evidence, struct error *err);
/* The rows that came with the program, as they were made when it was built (files/made.h), or read; the arena's cache
 * remembers them. Without a file of them: none. */
int evidence_load(struct arena *arena, const struct evidence **evidence, struct error *err);
/* Makes what evidence_load finds. */
int evidence_make(struct made *made, struct error *err);

/* How unsure time is in which so large a share is exposed communication, over time without any. */
double evidence_unsure(double exposed);

/* The expected error of a prediction, each row weighted by how near its work is; NaN: there is no evidence. A
 * prediction from a data sheet has no run that is alike: it is compared with the errors of data sheets on all runs, and
 * is no surer than a prediction from kernels that were measured on another GPU. An error counts in units of
 * evidence_unsure.
 *
 * A published run is alike if it has the same software, profile, format, schedule, adapters and optimizer, if both have
 * experts, dispatched in the same way, or neither has, and if GPUs, the tokens of a sample, the tokens of a micro-batch
 * and the rate of a NIC differ by a factor of four at most. Such a row counts with today's error. Any other counts with
 * its first error, as nobody worked on runs like the one in question; where that is unknown it does not count. */
struct expectation {
    double error;                    /* the share of the time that it is off by, at most, in 6 of 10 cases, and in 9 of
                                      * 10 by at most twice as much: the larger of two quantiles of the sizes of all
                                      * errors, the upper one halved */
    double longer;                   /* the share of the published times that were longer than predicted */
    double alike;                    /* the share of the weight that runs alike have */
};
/* Rows that are left out: of a table, a software, a profile; each NULL: of none. */
struct evidence_without { const char *table, *software, *costs; };
bool evidence_left_out(const struct evidence *evidence, const struct evidence_row *row,
                       const struct evidence_without *without);
/* `without`: NULL leaves nothing out. */
struct expectation evidence_expect(const struct evidence *evidence, const struct likeness *likeness,
                                   const struct evidence_without *without);
/* How far off the ratio of two predictions is expected to be, of configurations of one software, profile and model: shares
 * of it that 6 and 9 of 10 ratios are within. Ratios of rows of the likeness's kind (software, profile, format, schedule,
 * with experts or without, dispatched in the same way) count with today's errors; others with their first ones, and the
 * less the more they differ. NaN: there is no evidence. */
struct ratio_expectation { double within, most; };
struct ratio_expectation evidence_expect_ratio(const struct evidence *evidence, const struct likeness *likeness,
                                               const struct evidence_without *without);
/* The same without exceptions, which the cache (or NULL) remembers: most scenarios of a sweep expect the same. */
struct ratio_expectation evidence_recall_ratio(struct cache *cache, const struct evidence *evidence,
                                               const struct likeness *likeness);
/* The columns of memory.tsv, by name, and NULL; and a row of it. */
extern const char *const evidence_peak_columns[];
void evidence_print_peak(FILE *out, const char *table, const char *row, enum peak_kind kind, double error,
                         const struct likeness *likeness);
/* Adds the rows of such a file. */
int evidence_read_peaks(struct arena *arena, const char *path, struct evidence *evidence, struct error *err);
/* How far off a peak is expected to be: shares of the measured one that 6 and 9 of 10 are within, from published peaks of that
 * kind, and from others by a third; each table weighs as much as another, and by a third where its work differs in
 * runtime, adapters, optimizer, or having experts. A peak is alike that differs in none of them. Where none is, 6 of 10 are expected to be within what 9 of 10 of the others are, and 9 of 10 within twice as
 * much. `without`: only its table counts. NaN: there are none. */
struct peak_expectation { double within, most; bool alike; };
struct peak_expectation evidence_expect_peak(const struct evidence *evidence, enum peak_kind kind,
                                             const struct likeness *likeness, const struct evidence_without *without);
/* The probability that what is predicted to need `need` B fits into `room` B: of a logistic distribution of the logarithm of
 * true over predicted need, whose median is 0, and which 6 of 10 published peaks are within of what processes hold themselves
 * (allocated and reserved; the driver also counts what a cache need not keep). NaN: there are none. */
double evidence_fits(const struct evidence *evidence, const struct likeness *likeness, double need, double room);
/* "the nearest is ROW of TABLE (software nemo, not mine, 8 GPUs, not 64)": the published time whose work is nearest, and
 * what makes it unlike, in the arena; NULL: there is none. */
const char *evidence_nearest(struct arena *arena, const struct evidence *evidence, const struct likeness *likeness);

#endif
