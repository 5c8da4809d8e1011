/* The time of a call on its stream.
 *
 * A waiting kernel holds the stream while the host enqueues the start event, the calls and the stop event. So the time
 * between the events does not include the host's. If the hold ends too early, the measurement is discarded and repeated
 * with a longer hold. Calls too short for the resolution of events (about half a microsecond) are timed several at a
 * time. */
#include <math.h>
#include <time.h>

#include "base/base.h"
#include "device.h"
#include "device_kernels.h"

enum { CALLS_MAX = 64, WARM_UP = 3, SAMPLES_MIN = 5, SAMPLES_MAX = 200, HOLD_TRIES = 6 };
#define BATCH_SECONDS 200e-6     /* of calls between two events, if it takes more than one */
#define HOLD_SECONDS 20e-6       /* at least */

struct timing {
    struct job *job;
    int calls;                   /* between two events */
    int turn;                    /* calls so far: which set comes next */
    double hold;                 /* s */
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int hold(struct job *job, double seconds)
{
    uint64_t nanoseconds = (uint64_t)(seconds * 1e9);

    if (job->host_bound)
        return 0;
    if (job->hold)
        return job->hold(job, nanoseconds);
    return job_check(job, kernel_hold(nanoseconds, job->device->stream), "holding the stream");
}

static int call(struct timing *timing)
{
    struct job *job = timing->job;

    return job->call(job, timing->turn++ % job->sets);
}

/* Waits for both streams, so that overlapped calls have ended before the next start. */
static int finish(struct job *job)
{
    return job_check(job, cudaStreamSynchronize(job->device->stream), "running") ||
           (job->overlapped &&
            job_check(job, cudaStreamSynchronize(job->device->overlapping), "running beside")) ? -1 : 0;
}

/* One measurement: seconds of a call; `late`: the hold ended before all calls were enqueued. */
static int measure_once(struct timing *timing, double *seconds, bool *late)
{
    struct job *job = timing->job;
    struct device *device = job->device;
    float milliseconds = 0;

    if (hold(job, timing->hold) || job_check(job, cudaEventRecord(device->start, device->stream), "an event"))
        return -1;
    if (job->overlapped && job_check(job, cudaStreamWaitEvent(device->overlapping, device->start, 0), "an event"))
        return -1;
    for (int i = 0; i < timing->calls; i++)
        if (call(timing))
            return -1;
    if (job_check(job, cudaEventRecord(device->stop, device->stream), "an event"))
        return -1;
    *late = !job->host_bound && cudaEventQuery(device->start) == cudaSuccess;
    (void)cudaGetLastError();            /* "not ready" is expected; clears it, so that later launches do not find it */
    if (finish(job) ||
        job_check(job, cudaEventElapsedTime(&milliseconds, device->start, device->stop), "the time between two events"))
        return -1;
    *seconds = 1e-3 * (double)milliseconds / timing->calls;
    return 0;
}

/* Repeats measure_once with longer holds until the hold lasts. Error: it never does, so the time would be the
 * host's. */
static int measure_held(struct timing *timing, double *seconds)
{
    bool late = true;

    for (int i = 0; late && i < HOLD_TRIES; i++) {
        if (measure_once(timing, seconds, &late))
            return -1;
        if (late)
            timing->hold *= 2;
    }
    if (!late)
        return 0;
    snprintf(timing->job->why, sizeof timing->job->why, "the host cannot enqueue its calls while the stream is held");
    return -1;
}

/* Warms up, and chooses how many calls to time at once and how long to hold the stream for them. */
static int prepare(struct timing *timing)
{
    struct job *job = timing->job;
    double begin, host, one;

    timing->calls = 1;
    for (int i = 0; i < WARM_UP; i++)
        if (call(timing))
            return -1;
    if (finish(job))
        return -1;
    begin = now();
    if (call(timing))
        return -1;
    host = now() - begin;
    if (finish(job))
        return -1;
    timing->hold = HOLD_SECONDS + 2 * host;
    if (measure_held(timing, &one))
        return -1;
    if (job->host_bound)
        return 0;
    timing->calls = (int)fmin(CALLS_MAX, fmax(1, ceil(BATCH_SECONDS / fmax(one, 1e-6))));
    if (job->overlapped && timing->calls < 4)
        timing->calls = 4;               /* so that the side that ends first does not leave the other alone for long */
    timing->hold += 2 * host * timing->calls;
    return 0;
}

/* ---- without a pause ---- */

enum { MARKS = 3 };                      /* events: two chunks are enqueued while a third runs */
#define CHUNK_SECONDS 0.05
#define SETTLE_SECONDS 2.0               /* until the chip has found the clock at which it keeps its power limit */
#define SUSTAIN_SECONDS 2.0              /* of measuring after that */

/* Enqueues a chunk and the event after it. */
static int enqueue_chunk(struct timing *timing, cudaEvent_t mark)
{
    for (int i = 0; i < timing->calls; i++)
        if (call(timing))
            return -1;
    return job_check(timing->job, cudaEventRecord(mark, timing->job->device->stream), "an event");
}

/* The stream is never empty: the next chunk is enqueued before the host waits for a chunk. */
static int run_chunks(struct timing *timing, cudaEvent_t marks[MARKS], struct series *times)
{
    struct job *job = timing->job;
    double begin = now();
    float milliseconds = 0;

    if (job_check(job, cudaEventRecord(marks[0], job->device->stream), "an event"))
        return -1;
    for (int i = 0; now() - begin < SETTLE_SECONDS + SUSTAIN_SECONDS || times->count < SAMPLES_MIN; i++) {
        if (enqueue_chunk(timing, marks[(i + 1) % MARKS]))
            return -1;
        if (i == 0)
            continue;
        if (job_check(job, cudaEventSynchronize(marks[i % MARKS]), "running") ||
            job_check(job, cudaEventElapsedTime(&milliseconds, marks[(i - 1) % MARKS], marks[i % MARKS]),
                      "the time between two events"))
            return -1;
        if (now() - begin > SETTLE_SECONDS)
            *GROW(times) = 1e-3 * (double)milliseconds / timing->calls;
    }
    return finish(job);
}

static int sustain(struct timing *timing, struct series *times)
{
    cudaEvent_t marks[MARKS] = {NULL};
    double one;
    int rc = measure_held(timing, &one);

    timing->calls = (int)fmin(1000, fmax(1, ceil(CHUNK_SECONDS / fmax(one, 1e-6))));
    for (int i = 0; i < MARKS && !rc; i++)
        rc = job_check(timing->job, cudaEventCreate(&marks[i]), "an event");
    rc = rc ? rc : run_chunks(timing, marks, times);
    for (int i = 0; i < MARKS; i++)
        if (marks[i])
            cudaEventDestroy(marks[i]);
    return rc;
}

int job_measure(struct job *job, double seconds, struct series *times)
{
    struct timing timing = {.job = job};
    double begin, one;
    int count = 0;

    if (prepare(&timing))
        return -1;
    if (job->one->kernel == BENCH_MATMUL_SUSTAINED)
        return sustain(&timing, times);
    begin = now();
    while (count < SAMPLES_MIN || (count < SAMPLES_MAX && now() - begin < seconds)) {
        if (measure_held(&timing, &one))
            return -1;
        *GROW(times) = one;
        count++;
    }
    return 0;
}
