/* published: tables of collectives that somebody measured, against what the simulation says of them. A file of
 * scenarios/paper/collectives/ holds a cluster and a row a measurement. */
#ifndef DTSIM_PUBLISHED_H
#define DTSIM_PUBLISHED_H

#include "collective/measure.h"

/* One process that launches on all GPUs of a node (nccl-tests -g): it is busy with every channel of each, and
 * collectives that are shorter than that wait for it. */
struct published_host {
    const struct node *node;
    double gpu;                      /* s, a GPU */
    double channel;                  /* s, a channel of a GPU */
    int channels;                    /* that a large collective runs over */
    double channel_from;             /* B of the vector: less has fewer channels */
};

struct published_row {
    const struct node *node;
    int op;                          /* enum collective_op */
    const char *algorithm;           /* NULL: the table's */
    int ranks;                       /* node by node, per_node of each */
    int per_node;                    /* of each node's GPUs so many; 0: all */
    double bytes;                    /* as collective.h counts them */
    double time;                     /* s, measured; NaN: busbw is given */
    double busbw;                    /* B/s, measured; NaN: time is given */
    const struct collective *collective;     /* found by published_load */
};

struct published {
    const struct node *node;
    const char *title, *source;
    const char *algorithm;           /* of rows that name none; NULL: auto for all_reduce, else the operation's ring */
    struct cluster cluster;
    const struct published_host *host;       /* NULL: nothing waits for it */
    struct list rows;                /* of struct published_row */
};
extern const struct table published_table;

/* Reads and checks a table. -1 after errors, each at its place. */
int published_load(struct arena *arena, const char *path, struct published *published, struct error *err);
/* Measured seconds of a row. */
double published_seconds(const struct published_row *row);
/* Simulated: like measure_collective, for the row's GPUs; at least what the host takes. */
int published_simulate(const struct published *published, const struct published_row *row, struct measure *measure,
                       struct measured *measured, struct error *err);

#endif
