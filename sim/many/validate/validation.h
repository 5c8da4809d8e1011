/* validation: simulates the rows of a paper and compares the predictions with the measured values. */
#ifndef DTSIM_VALIDATION_H
#define DTSIM_VALIDATION_H

#include "evidence/first.h"
#include "files/digest.h"
#include "report/result.h"
#include "run/certainty.h"
#include "validate/paper.h"

/* The result of a row. */
struct outcome {
    bool selected;
    bool simulated;                  /* the metrics are valid, even if the row does not fit in memory */
    bool limited;                    /* its memory is held against a limit */
    bool fits;                       /* in the GPUs' memory; true if that is not `limited` */
    bool fits_twice;                 /* with twice the micro-batch; only if paper.largest is set */
    struct metrics metrics;          /* without `ranks` */
    struct likeness likeness;        /* of a row that others can be alike to (`measurable`) */
    bool measurable;
    double unsure;                   /* certainty_unsure; of a `measurable` row */
    double sheet;                    /* how many times as long it takes on kernels of the data sheet; NaN: not asked, or it takes these */
    char asked[DIGEST_HEX];          /* a digest of the resolved scenario without its name */
    char asked_but_batches[DIGEST_HEX];      /* and without its samples and its micro-batches: */
    int micro_batches;               /* of a replica */
    bool unread;                     /* the row is not simulated, for the system did not let a file be read */
    int nmessages;
    struct { enum exit_code code; int line, column; char file[256], text[400]; } messages[4];
};

/* The errors of a column. The error of a time is predicted / measured - 1. The error of a rate is the error of the time
 * that it stands for, so positive always means that the prediction is too slow. The error of a share is the
 * difference. */
struct summary {
    size_t count;
    double mean, bias;               /* mean of the absolute errors, mean of the errors */
    double max;                      /* the error of largest absolute value, with its sign */
    size_t worst;                    /* the row of this error */
    double rank;                     /* Spearman's correlation within groups of three rows or more, mean over groups */
    size_t groups;                   /* number of these groups */
};

struct validation {
    struct paper *paper;
    struct validation *plain;        /* the same rows asked plainly (plain.h); NULL of a validation that is that, or of configured rows alone */
    bool is_plain;
    struct outcome *outcomes;        /* one per row, shared with the processes that simulate them */
    struct summary *summaries;       /* by column; only of measured columns */
    size_t first;                    /* the first measured column, to which bars and ratios refer */
    struct summary relative;         /* of the ratios of rows to the rows that they are relative to */
    size_t memory[2][2];             /* number of rows that are `limited` or ran out, by [ran out of memory][predicted to run out of memory] */
    size_t largest[2];               /* rows whose micro-batch is the largest: all, and those predicted correctly */
    bool partial;                    /* only some rows were selected: there are no bars, which are for a whole table */
    size_t failed;                   /* rows that were selected but could not be simulated */
};

struct validation_options {
    const char *rows;                /* ids, separated by commas; NULL: all */
    const char *const *sets;         /* changes to every row */
    size_t nsets;
    size_t jobs;                     /* number of rows that are simulated at the same time */
    const struct first_errors *firsts;   /* rows with a first error are also predicted from data sheets; NULL: none is */
    bool configured;                 /* rows are not asked plainly too: `plain` is NULL */
};

/* Simulates the rows as they are configured and asked plainly, each in a process of its own. Rows that fail are
 * counted, and their messages are added once, but for those asked plainly. -1 if there is no memory to share, or if
 * `rows` names an unknown row. Call validation_release in any case. */
int validation_init(struct validation *validation, struct paper *paper, const struct validation_options *options,
                    struct error *err);
void validation_release(struct validation *validation);

/* Simulates a row (outcome.c). */
void outcome_find(struct outcome *outcome, const struct paper *paper, size_t row, bool plain,
                  const struct validation_options *options);
/* The row could not be simulated, for these errors. */
void outcome_fail(struct outcome *outcome, const struct error *err);
/* What is predicted for a row in a measured column: a metric, or the ratio of two rows'; NaN: not simulated. */
double validation_predicted(const struct validation *validation, size_t row, size_t column);
/* The error of a row in a measured column; NaN if either number is missing. */
double validation_error(const struct validation *validation, size_t row, size_t column);
/* The error of the ratio of a row to the row that it is relative to. */
double validation_relative_error(const struct validation *validation, size_t row);

/* A bar of the paper, and whether the predictions meet it. */
struct bar_result {
    const char *name;
    double value, limit;             /* in %; rank: a correlation; memory: a number of rows */
    bool least, passed;              /* least: the limit is a lower bound */
};
enum { BARS = 6 };
/* The bars that the paper has, for all its rows. Returns their number. */
size_t validation_bars(const struct validation *validation, struct bar_result results[BARS]);

/* Prints one line per row, unless `brief`, and then the summary. */
void validation_print(const struct validation *validation, bool brief, FILE *out);
/* Prints a line of a table over several papers, or with NULL its heading. */
void validation_print_line(const struct validation *validation, FILE *out);
/* Prints Markdown for a document in the folder of the papers: a line for each measured column, or with NULL the heading
 * of the table. */
void validation_print_markdown(const struct validation *validation, FILE *out);
/* Prints for how many rows the largest micro-batch is predicted correctly; nothing if there are no such rows. */
void validation_print_largest(const size_t largest[2], FILE *out);

/* The error of the time behind the first number that a row has of it, as the validation asks it; NaN: there is none. */
double validation_time_error(const struct validation *validation, size_t row);
/* Straight lines through the times of rows that differ in the number of micro-batches alone, least squares (slopes.c): s of each
 * micro-batch, and s of a step besides them. */
struct line { double each, constant; };
struct slope { size_t first, last, rows; struct line measured, predicted; };
/* Of the rows that are so and of which `first` is the first; false: it is not, or no two have different numbers. */
bool validation_slope(const struct validation *validation, size_t first, struct slope *slope);
/* Prints a line for each such set of rows. */
void validation_print_slopes(const struct validation *validation, FILE *out);
/* How sure predictions are (sure.c). The same of the row asked plainly; NaN also where it says nothing about others. */
double validation_evidence(const struct validation *validation, size_t row);
/* Prints the rows of scenarios/paper/errors.tsv that the table makes, or with NULL the heading. -1: a first error is of no
 * row that was printed, of those that were selected. */
int validation_print_errors(const struct validation *validation, const struct first_errors *firsts, FILE *out,
                            struct error *err);
/* Prints the rows that a new table adds to scenarios/paper/first.tsv: today's errors, or one row that says that it has none.
 * Nothing where rows failed. */
void validation_print_first_errors(const struct validation *validation, FILE *out);
/* The same of scenarios/paper/memory.tsv. */
void validation_print_memory_errors(const struct validation *validation, FILE *out);
/* What choosing by predictions costs, over all sets of two rows or more that do the same work (regret.c): measured time of the row that is predicted to be the fastest, over the least measured time, less 1; the
 * same of the best of the first three. Only where the first measured column is a time or a rate. */
struct regret {
    size_t choices;
    double sum[2], worst[2];         /* of the first row; of the best of the first three */
    size_t row;                      /* that was chosen in the worst case */
};
void validation_regret(const struct validation *validation, struct regret *regret);
/* Prints them as a line, or nothing where there is no choice. */
void validation_print_regret(const struct validation *validation, FILE *out);
/* Prints what is below all tables: the errors by software and by costs, and of each table how many rows are within the
 * error that the evidence of all other tables expects of them. */
void validation_print_sure(const struct validation *validations, size_t count, const struct evidence *evidence,
                           FILE *out);

#endif
