/* validation: the rows of a paper simulated, and how far the predictions are from what was measured. */
#ifndef DTSIM_VALIDATION_H
#define DTSIM_VALIDATION_H

#include "validate/paper.h"
#include "report/result.h"

/* What became of a row. */
struct outcome {
    bool selected;
    bool simulated;                  /* the metrics hold; also where the row does not fit in memory */
    bool fits;                       /* in the GPUs' memory */
    bool fits_twice;                 /* with twice the micro-batch; known where the paper says that it is the largest */
    struct metrics metrics;          /* without `ranks` */
    int nmessages;
    struct { enum exit_code code; int line, column; char file[256], text[400]; } messages[4];
};

/* Errors are predicted over measured less 1: of a time, and of a rate the same error of the time behind it, so that
 * positive is too slow; of a share, the difference. */
struct summary {
    size_t count;
    double mean, bias;               /* of the errors' sizes, and of the errors */
    double max;                      /* the error of the largest size, with its sign */
    size_t worst;                    /* its row */
    double rank;                     /* Spearman's correlation within groups of three rows and more, their mean */
    size_t groups;                   /* how many of these there are */
};

struct validation {
    struct paper *paper;
    struct outcome *outcomes;        /* a row each, shared with the processes that run them */
    struct summary *summaries;       /* by column; of those that are measured */
    size_t first;                    /* the first measured column: what bars and ratios are about */
    struct summary relative;         /* of the ratios of times to those of other rows */
    size_t memory[2][2];             /* rows, by [ran out of memory][predicted to] */
    size_t largest[2];               /* rows with the largest micro-batch: all, and those of which it is found to be */
    bool partial;                    /* not all rows were asked for: bars are of a whole table */
    size_t failed;                   /* rows that were selected but could not be simulated */
};

struct validation_options {
    const char *rows;                /* ids, separated by commas; NULL: all */
    const char *const *sets;         /* changes to every row */
    size_t nsets;
    size_t jobs;                     /* rows simulated at once */
};

/* Simulates the rows, each in a process of its own. Rows that fail are counted, and their messages added once. -1 where
 * there is no memory to share, or `rows` names one that is not there. Release in either case. */
int validation_init(struct validation *validation, struct paper *paper, const struct validation_options *options,
                    struct error *err);
void validation_release(struct validation *validation);

/* The error of a row in a measured column; NaN where either number is missing. */
double validation_error(const struct validation *validation, size_t row, size_t column);
/* Of the ratio of its time to that of the row it is relative to. */
double validation_relative_error(const struct validation *validation, size_t row);

/* A bar of the paper, and how far it is held. */
struct bar_result {
    const char *name;
    double value, limit;             /* in %, but the rank and rows (memory) */
    bool least, passed;
};
enum { BARS = 6 };
/* Those that the paper asks for, of all its rows; returns how many. */
size_t validation_bars(const struct validation *validation, struct bar_result results[BARS]);

/* As text: a line a row, unless `brief`, then the summary. */
void validation_print(const struct validation *validation, bool brief, FILE *out);
/* A heading (NULL), or a line, of a table over several papers. */
void validation_print_line(const struct validation *validation, FILE *out);
/* The same for a document beside the papers' files: the heading of a table (NULL), or a line for each measured column. */
void validation_print_markdown(const struct validation *validation, FILE *out);
/* How many of the rows have the largest micro-batch that is predicted to fit; nothing where there are none. */
void validation_print_largest(const size_t largest[2], FILE *out);
json_t *validation_json(const struct validation *validation);

#endif
