/* Declarations that the files of script share. */
#ifndef DTSIM_SCRIPT_INTERNAL_H
#define DTSIM_SCRIPT_INTERNAL_H

#include "lower/script.h"

/* Who writes the steps of a row. */
struct writer {
    const struct rows *rows;
    const struct exchanges *exchanges;
    const struct labels *labels;
    struct script *script;
    int barrier_group;               /* how many consecutive replicas wait for each other before every entry; 1: none
                                      * do */
    int gather_group;                /* how many do before an entry that gathers layers */
    int replica, rank;               /* of the row that is being written; the next two count in this row */
    int updates;                     /* updates written so far */
    int *completed;                  /* a chunk: how often its gradients were completed so far */
};

/* writer.c */
void add_step(struct writer *writer, enum step_kind kind, size_t at, int number);
/* A shared step that needs a label. */
void add_shared(struct writer *writer, enum step_kind kind, size_t at, int number, struct label label);
void add_need(struct writer *writer, struct label label);
void add_give(struct writer *writer, struct label label);
/* Whether the ranks that hold a stage sum its gradients; in a figure, whether they wait for each other as for a sum. */
bool is_summed(const struct writer *writer, int stage);

/* works.c: adds one step for the works that begin and end together, from an entry on. Returns their number of
 * entries. */
size_t add_works(struct writer *writer, size_t entry);
/* DataParallel's exchanges before an entry. */
void add_replication(struct writer *writer, size_t entry);

/* updates.c: the steps of an update, and of the gather at the end of a row. */
void add_update(struct writer *writer, size_t entry);
void add_gather(struct writer *writer, size_t entry);

/* script_text.c */
extern const char *const step_names[];
/* A label in words: "activations of micro-batch 3 for stage 5". */
void label_print(const struct labels *labels, uint32_t number, FILE *out);

#endif
