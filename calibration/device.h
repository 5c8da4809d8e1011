/* device: the GPU that is measured, and how one case is made ready, called and timed on it. */
#ifndef DTSIM_DEVICE_H
#define DTSIM_DEVICE_H

#include <cuda_runtime_api.h>

#include "base/base.h"
#include "case.h"
#include "statistics.h"

/* A number that a library's header defines, as text. */
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

struct device {
    int index, sms, major, minor;
    char name[256];
    size_t cache;                /* bytes of the second-level cache */
    size_t space;                /* bytes at `arena`, for operands */
    char *arena;
    void *workspace;             /* of cuBLASLt and cuDNN */
    size_t workspace_size;
    cudaStream_t stream, overlapping; /* of kernels; of work that overlaps with them */
    cudaEvent_t start, stop;
    uint64_t seed;
    struct blas *blas;           /* these four belong to their files; NULL until needed */
    struct experts *experts;
    struct flash *flash;
    struct peers *peers;
};

/* One case made ready: its operands lie on the device, `sets` times, so that calls that take them in turn find nothing
 * in the cache. Zero-initialise; job_close when done. */
struct job {
    struct device *device;
    const struct bench_case *one;
    int sets, noperands;
    struct operand operands[OPERANDS_MAX];
    size_t offsets[OPERANDS_MAX], set_bytes;
    /* Enqueues one call on device->stream. Required. */
    int (*call)(struct job *job, int set);
    /* Keeps the streams busy for a time, so that work enqueued meanwhile runs without gaps. Not required: a kernel on
     * device->stream does. */
    int (*hold)(struct job *job, uint64_t nanoseconds);
    /* Not required. */
    void (*close)(struct job *job);
    bool host_bound;             /* the host takes part in a call: nothing can be enqueued ahead */
    bool overlapped;             /* a call enqueues on device->overlapping too */
    void *state;                 /* of the file that opened the job */
    char why[256];               /* the error */
};

/* The GPU, or -1 with a line in `why`. `memory`: the most bytes that operands may take. */
int device_open(struct device *device, int index, double memory, uint64_t seed, char *why, size_t size);
void device_close(struct device *device);
/* The clock of the multiprocessors while products run, in Hz; 0 if it is unknown. */
double device_clock(struct device *device);

/* -1 with job->why: this case cannot be run here. A job that is open for a minute hangs: SIGALRM comes. */
int job_open(struct job *job, struct device *device, const struct bench_case *one);
void job_close(struct job *job);
void *job_operand(const struct job *job, int set, int operand);
/* Quantises normal numbers, or the bf16 values `from`, to the matrices whose scales are operand `first`. */
cudaError_t job_quantise(struct job *job, int set, int first, const void *from, uint64_t seed);
/* Each kind of job, tried by job_open; they fill call, hold, close and state. */
int matmul_open(struct job *job);
int experts_open(struct job *job);
int flash_open(struct job *job);
int kernels_open(struct job *job);
int transfer_open(struct job *job);
int peers_open(struct job *job);
/* Releases the state that a file keeps of a device between jobs; NULL is fine. */
void product_free(struct blas *blas);
void experts_free(struct experts *experts);
void flash_free(struct flash *flash);
void peers_free(struct peers *peers);
/* For messages, the help and the header: "cuBLASLt 13.0.2" and so on, or "no cuDNN (...)". */
const char *product_built(void);
const char *flash_built(void);
const char *peers_built(void);
bool product_knows(enum bench_dtype dtype);      /* the library multiplies a format whose values have scales */
bool experts_are_built(void);                    /* grouped products in bf16 */
bool flash_is_built(void);
bool peers_are_built(void);

/* Calls the job repeatedly for about `seconds` seconds (but at least a few times) and appends the seconds of each call
 * on the stream; short calls are timed several at a time. A sustained job first runs for seconds without a pause,
 * whatever `seconds` is. 0, or -1 with job->why. */
int job_measure(struct job *job, double seconds, struct series *times);

/* -1 and job->why unless the runtime succeeded. */
int job_check(struct job *job, cudaError_t error, const char *what);

/* Compares what kernels compute with reference_run on small shapes, a line each on `out`; how many differ. */
int check_all(struct device *device, const struct bench_limits *limits, FILE *out);

#endif
