/* dtsim-mpi.so: messages between the processes of mpirun. MPI ends the program itself where one of its functions
 * fails. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

#include "base/base.h"
#include "process/ranks.h"

enum { TAG = 1 };

static void begin(int *rank, int *count)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, count);
}

static void send_message(int to, const void *bytes, size_t length)
{
    MPI_Send(bytes, (int)length, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
}

/* MPI itself would wait in a loop, at the cost of whoever simulates: it is asked again after 20 us, and then ever less
 * often, up to 1 ms. */
static void await(MPI_Status *status)
{
    struct timespec pause = {.tv_nsec = 20000};
    int there = 0;

    for (;;) {
        MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &there, status);
        if (there)
            return;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 1000000)
            pause.tv_nsec += pause.tv_nsec / 4;
    }
}

static void *receive_message(int *from, size_t *length)
{
    MPI_Status status;
    char *bytes;
    int count;

    await(&status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    bytes = xcalloc((size_t)count + 1, 1);
    MPI_Recv(bytes, count, MPI_BYTE, status.MPI_SOURCE, TAG, MPI_COMM_WORLD, &status);
    *from = status.MPI_SOURCE;
    *length = (size_t)count;
    return bytes;
}

static void end(void)
{
    MPI_Finalize();
}

extern const struct ranks_module module_mpi;
const struct ranks_module module_mpi = {begin, send_message, receive_message, end};
