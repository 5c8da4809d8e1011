/* Cases of several GPUs of this machine: copies between two of them, and NCCL's collectives in one process, as
 * nccl-tests runs them with one thread. The measured GPU is the first of the ranks; its stream is timed. */
#include <stdlib.h>

#include "base/base.h"
#include "device.h"
#include "device_kernels.h"

#ifdef DTSIM_NCCL
#include <nccl.h>
#endif

enum { RANKS_MAX = 16 };

struct peers {
    int ranks;                   /* that are prepared */
    int gpus[RANKS_MAX];         /* the measured one first */
    cudaStream_t streams[RANKS_MAX];
    char *buffers[RANKS_MAX];    /* operand and result; of the measured GPU the job's own */
    size_t size;                 /* bytes of each buffer's half */
#ifdef DTSIM_NCCL
    bool joined[RANKS_MAX + 1];  /* by how many ranks: their communicator is there, for it takes long to make */
    ncclComm_t communicators[RANKS_MAX + 1][RANKS_MAX];
#endif
};

bool peers_are_built(void)
{
#ifdef DTSIM_NCCL
    return true;
#else
    return false;
#endif
}

const char *peers_built(void)
{
#ifdef DTSIM_NCCL
    return "NCCL " TEXT(NCCL_MAJOR) "." TEXT(NCCL_MINOR) "." TEXT(NCCL_PATCH);
#else
    return "no NCCL (collectives are left out)";
#endif
}

/* Makes the measured GPU current, also after an error on another one. */
static int back(struct job *job, int rc)
{
    return job_check(job, cudaSetDevice(job->device->index), "the measured GPU") ? -1 : rc;
}

static int prepare_rank(struct job *job, struct peers *peers, int rank, int gpu)
{
    peers->gpus[rank] = gpu;
    if (rank == 0) {
        peers->streams[0] = job->device->stream;
        return 0;
    }
    if (job_check(job, cudaSetDevice(gpu), "another GPU") ||
        job_check(job, cudaStreamCreateWithFlags(&peers->streams[rank], cudaStreamNonBlocking), "its stream"))
        return -1;
    return job_check(job, cudaMalloc((void **)&peers->buffers[rank], 2 * peers->size), "its memory");
}

/* The largest size that list_peers has. */
#define MOST_BYTES ((size_t)1 << 30)

static int get_state(struct job *job)
{
    struct peers *peers = job->device->peers;
    int wanted = (int)job->one->m, count = 0;

    if (!peers) {
        job->device->peers = peers = xcalloc(1, sizeof *peers);
        peers->size = MOST_BYTES;
    }
    if (job_check(job, cudaGetDeviceCount(&count), "counting GPUs"))
        return -1;
    if (wanted > count || wanted > RANKS_MAX || (size_t)job->one->bytes > peers->size) {
        snprintf(job->why, sizeof job->why, "%d GPUs or %lld bytes are too many here", wanted,
                 (long long)job->one->bytes);
        return -1;
    }
    while (peers->ranks < wanted) {
        int gpu = (job->device->index + peers->ranks) % count;

        if (prepare_rank(job, peers, peers->ranks, gpu))
            return back(job, -1);
        peers->ranks++;
    }
    return back(job, 0);
}

/* Holds the timed stream last, so that its hold ends last: the streams that it waits for are then free, or nearly. */
static int hold(struct job *job, uint64_t nanoseconds)
{
    const struct peers *peers = job->device->peers;

    for (int rank = 0; rank < (int)job->one->m; rank++) {
        int other = (rank + 1) % (int)job->one->m;

        if (job_check(job, cudaSetDevice(peers->gpus[other]), "another GPU") ||
            job_check(job, kernel_hold(nanoseconds, peers->streams[other]), "holding a stream"))
            return back(job, -1);
    }
    return back(job, 0);
}

static int call_copy(struct job *job, int set)
{
    const struct peers *peers = job->device->peers;

    return job_check(job, cudaMemcpyPeerAsync(peers->buffers[1], peers->gpus[1], job_operand(job, set, 0),
                                              peers->gpus[0], (size_t)job->one->bytes, job->device->stream),
                     "a copy between GPUs");
}

/* Without direct access a copy goes through the host; the sample's machine says which of the two it is. */
static int open_copy(struct job *job)
{
    const struct peers *peers = job->device->peers;
    int possible = 0;
    cudaError_t error;

    if (job_check(job, cudaDeviceCanAccessPeer(&possible, peers->gpus[0], peers->gpus[1]), "asking for direct access"))
        return -1;
    if (possible) {
        error = cudaDeviceEnablePeerAccess(peers->gpus[1], 0);
        if (error == cudaErrorPeerAccessAlreadyEnabled)
            (void)cudaGetLastError();
        else if (job_check(job, error, "direct access"))
            return -1;
    }
    job->call = call_copy;
    return 0;
}

#ifdef DTSIM_NCCL

static int nccl_check(struct job *job, ncclResult_t result, const char *what)
{
    if (result == ncclSuccess)
        return 0;
    snprintf(job->why, sizeof job->why, "NCCL: %s: %s", what, ncclGetErrorString(result));
    return -1;
}

static void leave(struct peers *peers)
{
    for (int ranks = 0; ranks <= RANKS_MAX; ranks++)
        for (int rank = 0; peers->joined[ranks] && rank < ranks; rank++)
            ncclCommDestroy(peers->communicators[ranks][rank]);
}

static int join(struct job *job)
{
    struct peers *peers = job->device->peers;
    int ranks = (int)job->one->m;

    if (peers->joined[ranks])
        return 0;
    if (nccl_check(job, ncclCommInitAll(peers->communicators[ranks], ranks, peers->gpus), "a communicator"))
        return back(job, -1);
    peers->joined[ranks] = true;
    return back(job, 0);
}

/* As in nccl-tests, bytes are those of the larger side: the whole gathered or scattered vector. */
static int call_collective(struct job *job, int set)
{
    struct peers *peers = job->device->peers;
    int ranks = (int)job->one->m;
    size_t count = (size_t)job->one->bytes / sizeof(float), part = count / (size_t)ranks;

    if (nccl_check(job, ncclGroupStart(), "a group"))
        return -1;
    for (int rank = 0; rank < ranks; rank++) {
        char *from = rank ? peers->buffers[rank] : job_operand(job, set, 0);
        char *to = rank ? peers->buffers[rank] + peers->size : (char *)job_operand(job, set, 1);
        ncclComm_t with = peers->communicators[ranks][rank];
        cudaStream_t stream = peers->streams[rank];
        ncclResult_t result;

        if (job->one->kernel == BENCH_ALL_REDUCE)
            result = ncclAllReduce(from, to, count, ncclFloat, ncclSum, with, stream);
        else if (job->one->kernel == BENCH_ALL_GATHER)
            result = ncclAllGather(from, to, part, ncclFloat, with, stream);
        else
            result = ncclReduceScatter(from, to, part, ncclFloat, ncclSum, with, stream);
        if (nccl_check(job, result, bench_kernel_names[job->one->kernel])) {
            ncclGroupEnd();
            return -1;
        }
    }
    return nccl_check(job, ncclGroupEnd(), "a group");
}

#endif

int peers_open(struct job *job)
{
    if (get_state(job))
        return -1;
    job->hold = hold;
    if (job->one->kernel == BENCH_PEER_COPY)
        return open_copy(job);
#ifdef DTSIM_NCCL
    job->call = call_collective;
    return join(job);
#else
    snprintf(job->why, sizeof job->why, "built without NCCL");
    return -1;
#endif
}

void peers_free(struct peers *peers)
{
    if (!peers)
        return;
#ifdef DTSIM_NCCL
    leave(peers);
#endif
    for (int rank = 1; rank < peers->ranks; rank++) {
        cudaFree(peers->buffers[rank]);
        cudaStreamDestroy(peers->streams[rank]);
    }
    free(peers);
}
