/* published: tables of measured collectives, for comparison with the simulation. A file of scenarios/paper/collectives/
 * has a cluster and one row per measurement. */
#ifndef DTSIM_PUBLISHED_H
#define DTSIM_PUBLISHED_H

#include "collective/measure.h"

/* One process launches on all GPUs of a node (nccl-tests -g). It needs time for every channel of every GPU, and shorter
 * collectives take this time. */
struct published_host {
    const struct node *node;
    double gpu;                      /* s per GPU */
    double channel;                  /* s per channel of a GPU */
    int channels;                    /* number of channels of a large collective */
    double channel_from;             /* a smaller one has one channel per this number of B of its vector */
};

struct published_row {
    const struct node *node;
    int op;                          /* enum collective_op */
    const char *algorithm;           /* NULL: the table's */
    int ranks;                       /* ranks fill one node after another, per_node GPUs of each */
    int per_node;                    /* number of GPUs used in each node; 0: all */
    double bytes;                    /* counted as in collective.h */
    double time;                     /* s, measured; NaN: busbw is given */
    double busbw;                    /* B/s, measured; NaN: time is given */
    const struct collective *collective;     /* set by published_load */
};

struct published {
    const struct node *node;
    const char *title, *source;
    const char *algorithm;           /* of rows without one; NULL: auto for all_reduce, else the operation's ring */
    struct cluster cluster;
    const struct published_host *host;       /* NULL: the host takes no time */
    struct list rows;                /* of struct published_row */
};
extern const struct table published_table;

/* Reads and checks a table. -1 after errors, each at its place. */
int published_load(struct arena *arena, const char *path, struct published *published, struct error *err);
int published_read(struct arena *arena, const struct node *root, struct published *published, struct error *err);
/* The measured time of a row, in s. */
double published_seconds(const struct published_row *row);
/* Simulates a row: as measure_collective, for the row's GPUs; the time is at least the host's. */
int published_simulate(const struct published *published, const struct published_row *row, struct measure *measure,
                       struct measured *measured, struct error *err);

#endif
