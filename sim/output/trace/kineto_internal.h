/* kineto: what the files of the Kineto format share. */
#ifndef DTSIM_KINETO_INTERNAL_H
#define DTSIM_KINETO_INTERNAL_H

#include "trace/bytes.h"
#include "trace/trace_internal.h"

/* Threads of a rank's process: the host's step, the streams of compute and of communication within works, then the other
 * lanes in the order of their first span, then streams of what the rank receives. The host's thread that launches the
 * kernels of a stream is TID_LAUNCHES more. */
enum { TID_HOST = 1, TID_COMPUTE = 7, TID_WITHIN = 8, TID_FIRST = 9, TID_LAUNCHES = 100000 };

struct kineto {
    const struct trace *trace;
    struct bytes bytes;
    /* By tid, from TID_COMPUTE on: us at which the stream's last kernel ended, and the host's launch of it. */
    struct { struct kineto_stream { int64_t free_at, launched; } *items; size_t count, capacity; } streams;
    struct trace_received received;
    char **groups;           /* a group: its arguments */
    int64_t correlation;
    int rank, shift;         /* the rank, less the one that stands for it */
    bool any;                /* an event was written */
    char pid[48];
};

/* A time of the run, in ns, as whole us. */
static inline int64_t kineto_us(int64_t ns)
{
    return (ns + 500) / 1000;
}
static inline void kineto_put(struct bytes *bytes, const char *text)
{
    bytes_put(bytes, text, strlen(text));
}
static inline void kineto_number(struct bytes *bytes, const char *key, int64_t value)
{
    kineto_put(bytes, key);
    bytes_integer(bytes, value);
}
/* kineto_kernels.c. The text as it stands between quotation marks: names of kinds need no escapes, names from files may. */
void kineto_text(struct bytes *bytes, const char *text);
/* An event up to its time in us; `head` has its phase and its category. */
void kineto_begin(struct kineto *kineto, const char *head, int64_t tid, int64_t us);
/* The kernels of a rank, their launches, and its step. */
void kineto_kernels(struct kineto *kineto, struct recorded_rows rows);

#endif
