/* nccl_run: one run of a program of nccl-tests: which operation it measured, on how many ranks, in how many nodes. */
#ifndef DTSIM_NCCL_RUN_H
#define DTSIM_NCCL_RUN_H

#include "collective/collective.h"

enum { NCCL_MOST_RANKS = 65536 };

struct nccl_run {
    char *program;                   /* as the run names it; NULL: it does not */
    int op;                          /* enum collective_op of the program; -1: not named, or none that is known */
    int line;                        /* where the run begins */
    bool header;                     /* the header of its table was read; ranks and the name stand before it */
    bool elided;                     /* "..." stands in its list of ranks */
    int repeated;                    /* a rank that is listed twice; -1: none */
    int group, groups;               /* the group of rank 0 (NCCL_TESTS_SPLIT); 2: ranks have different groups */
    int listed, highest;             /* ranks in the list; -1: there is no list */
    struct { bool *items; size_t count, capacity; } ranks;       /* by number: whether it is listed */
    struct { struct nccl_host { char *name; int ranks; } *items; size_t count, capacity; } hosts;
    uint32_t *places;                /* of hosts by their names: a hash table of index + 1, 0: free */
    size_t places_size;              /* a power of two, or 0 */
    int aggregated;                  /* collectives that were launched as one (-m); their time is a share of it */
};

void nccl_run_begin(struct nccl_run *run, int line);
void nccl_run_release(struct nccl_run *run);

/* The program's name in a text ("./build/all_reduce_perf -b 8": all_reduce_perf): *length; NULL: none is there. */
const char *nccl_program_in(const char *text, size_t *length);
/* The operation (enum collective_op) of a program's name; -1: it is not known. */
int nccl_program_op(const char *name);
void nccl_run_name(struct nccl_run *run, const char *program, size_t length);

/* Reads "Rank  3 Group  0 Pid 1234 on host-1 device  3 [0x4e] NVIDIA A100-SXM4-80GB". *device: the GPU's name, cut off
 * from the spaces behind it, or NULL. -1: the number is NCCL_MOST_RANKS or more. */
int nccl_run_rank(struct nccl_run *run, char *words, char **device);

/* The ranks that a list lacks, as "1, 3 to 5"; "" where it has all up to its highest. */
void nccl_run_missing(const struct nccl_run *run, char *text, size_t size);
/* Ranks of a node, where ranks fill one node after another; 0: there are less than two hosts. -1: hosts have different
 * numbers of ranks, so that no number says it. */
int nccl_run_per_node(const struct nccl_run *run);

/* The number of ranks that busbw / algbw of an operation has, both as nccl-tests printed them; 0: several numbers are
 * possible after rounding, or none. */
int nccl_ranks_of(enum collective_op op, const char *algbw, const char *busbw);
/* Whether an operation's bus factor of n ranks agrees with the two, but for rounding. */
bool nccl_ranks_agree(enum collective_op op, int n, const char *algbw, const char *busbw);

#endif
