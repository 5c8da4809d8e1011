/* What the two files of the reader of nccl-tests share: import_nccl.c reads a log's comments and writes the table,
 * nccl_rows.c reads rows. */
#ifndef DTSIM_NCCL_INTERNAL_H
#define DTSIM_NCCL_INTERNAL_H

#include "import/import_nccl.h"
#include "import/remarks.h"
#include "import/nccl_log.h"
#include "import/nccl_run.h"

enum { SOURCE_SIZE = 256 };

/* A GPU as its driver calls it after "NVIDIA " or "Tesla ", and the platform that has it. `whole`: the name must be
 * equal, because longer ones ("H200 NVL") are in other machines; else the name need only begin so. `rack`: the
 * platform's node is a rack of many hosts. */
struct nccl_device { const char *name, *platform; bool whole, rack; };

/* Columns of a table, by their number from 0; -1: it has none. The first of that name: out of place. */
struct columns { int redop, time, algbw, busbw, wrong, count; bool cpu_time; };

/* The table that a run prints. */
struct nccl_table {
    struct columns columns;
    bool open;                       /* rows may follow */
    enum {
        UNDECIDED, READ, LEFT_OUT,
        REFUSED,                     /* its ranks are not known: an error at the run's end */
        SAID                         /* an error was added at its first row */
    } state;                         /* what happens to its rows; decided at the first one */
    const char *why;                 /* it is left out; NULL: it is not */
    const char *doubt;               /* what a reader should know of its rows, or NULL */
    int op, ranks, per_node;         /* of its rows; ranks 0: unknown; per_node 0: ranks fill whole nodes */
    bool by_user;                    /* the user says the operation or the number of ranks */
    struct loc first;                /* its first row */
    char algbw[16], busbw[16];       /* of its largest row */
    double largest;                  /* B */
};

/* The lines of one process, which carry one mark. */
struct stream {
    char source[SOURCE_SIZE];
    struct nccl_run run;
    struct nccl_table table;
};

struct reader {
    struct arena *arena;
    const char *file;
    const struct nccl_hints *hints;
    struct error *err;
    int line;
    char *text;                      /* the line */
    struct { struct stream *items; size_t count, capacity; } streams;
    struct remarks left;             /* rows that are left out */
    struct remarks doubts;           /* rows that were read, and what a reader should know of them */
    const char *device;              /* of all ranks */
    const struct nccl_device *known; /* NULL: no platform has it */
    const char *mentioned;           /* the last program that a line names which is no comment; NULL: none yet */
    int most_nodes;                  /* maximum over the runs in the file */
    int title_op, title_ranks;       /* of all rows; ranks 0: they differ */
    struct node *rows;
};

/* The place of a character of the line. */
struct loc nccl_loc(const struct reader *reader, const char *at);
/* "expected ..., found '...'" at a character of the line; -1. */
int nccl_refuse(struct reader *reader, const char *at, const char *expected);
void nccl_put(struct reader *reader, struct node *mapping, const char *key, const char *value, const char *unit);
void nccl_put_number(struct reader *reader, struct node *mapping, const char *key, int value);

/* Reads the header of a table: "size  count  type  redop  root  time  algbw  busbw  #wrong ...". Older versions have an
 * error instead of #wrong, and no columns that an operation does not need. With -C 1 the time is called cputime. */
void nccl_header(struct columns *columns, char *words);
/* Reads a row of results and adds it to the table, or counts it among what is left out. -1 after an error; without one
 * where the run's ranks are unknown (REFUSED). */
int nccl_row(struct reader *reader, struct stream *stream, char *row);

/* nccl_json.c: the file of -J as lines of a log; the caller frees them. What is wrong is added to `err`. */
char *nccl_json_text(const char *file, const char *text, size_t length, size_t *size, struct error *err);

#endif
