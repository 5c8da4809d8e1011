/* ranks: a pool over the processes that mpirun started, on one machine or many (Open MPI). The first one hands out the
 * pieces; each of the others does one at a time, in a process of its own as pool.h has them, so that a crash or a piece
 * that takes too long costs that piece there too. When one of mpirun's processes dies mpirun ends all of them. */
#ifndef DTSIM_RANKS_H
#define DTSIM_RANKS_H

#include "process/pool.h"

/* Whether mpirun started this process as one of several. */
bool ranks_there(void);
/* The symbol of the module dtsim-mpi.so. Messages arrive whole; those from one process to another in their order. */
struct ranks_module {
    void (*begin)(int *rank, int *count);
    void (*send)(int to, const void *bytes, size_t length);
    /* The next message, which the caller frees, once it has come; it is waited for without load on the processor. */
    void *(*receive)(int *from, size_t *length);
    void (*end)(void);
};

#endif
