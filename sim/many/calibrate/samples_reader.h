/* samples_reader: a file of samples while it is read, between samples.c (lines) and samples_row.c (cells). */
#ifndef DTSIM_SAMPLES_READER_H
#define DTSIM_SAMPLES_READER_H

#include "calibrate/samples.h"

enum { CELLS_MAX = 32 };

enum sample_column {
    COLUMN_KERNEL,
    COLUMN_DTYPE,
    COLUMN_BATCH,
    COLUMN_M,
    COLUMN_N,
    COLUMN_K,
    COLUMN_LAYOUT,
    COLUMN_BYTES,
    COLUMN_MEDIAN,
    COLUMN_WINDOW, /* this one and those after it may be missing */
    COLUMN_SKEW,
    COLUMN_RANGE,
    COLUMN_COUNT
};

struct sample_cells {
    struct loc loc;
    char *texts[CELLS_MAX];
    int columns[CELLS_MAX];
    int count;
};

/* A file that is being read. */
struct samples_reader {
    struct samples *samples;
    struct error *err;
    const char *gpu; /* this file's GPU */
    int sms, attention;
    int at[COLUMN_COUNT]; /* the column's index in a line; -1: missing */
    int ncolumns;         /* 0: the line of column names has not been read yet */
};
extern const char *const sample_column_names[COLUMN_COUNT];

/* The index of a name in a NULL-terminated list; -1: none. */
int samples_name(const char *const *names, const char *name);
/* Appends the sample of a line. */
int samples_row(struct samples_reader *reader, const struct sample_cells *cells);

#endif
