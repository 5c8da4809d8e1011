/* idle: why a rank does not compute: which rank or communication it waits for, and how long. Made from the account of
 * seconds (run/account.h), so that a rank's waits add up to its bubble and exposed communication. */
#ifndef DTSIM_IDLE_H
#define DTSIM_IDLE_H

#include "run/run.h"

/* Each with its name and a text for people; %d is a rank's number. */
#define IDLE_CAUSES(X) \
    X(IDLE_ACTIVATION, "activation", "activations of rank %d") \
    X(IDLE_GRADIENT, "gradient", "gradients of rank %d") \
    X(IDLE_SENT, "sent", "its own sends to arrive")                    /* without overlap_p2p */ \
    X(IDLE_TURN, "turn", "the backward of rank %d, to recompute")      /* just in time before its own backward */ \
    X(IDLE_SUM, "sum", "the all-reduce (under ZeRO: reduce-scatter) of gradients") \
    X(IDLE_TIED, "tied", "the all-reduce of tied embeddings' gradients") \
    X(IDLE_WEIGHTS, "weights", "weights to be gathered")               /* or handed out */ \
    X(IDLE_REPLICAS, "replicas", "other replicas")     /* that begin a work together, or whose share is handed on */ \
    X(IDLE_HOST, "host", "the host")                   /* a copy to or from host memory, or an update there */ \
    X(IDLE_TENSOR, "tensor", "exchanges of the tensor group") \
    X(IDLE_CONTEXT, "context", "exchanges of the context group") \
    X(IDLE_EXPERT, "expert", "exchanges of the expert group") \
    X(IDLE_OVERLAPPED, "overlapped", "kernels that overlapped collectives slow down") \
    X(IDLE_END, "end", "the end of the iteration: it is done before others")
#define IDLE_VALUE(value, name, text) value,
enum idle_cause { IDLE_CAUSES(IDLE_VALUE) IDLE_CAUSE_COUNT };
extern const char *const idle_cause_names[], *const idle_cause_texts[];

/* A reason of a pipeline rank. Means over replicas, within metrics.window, an update. */
struct idle_wait {
    int rank, on;            /* on: the pipeline rank that it waits for, -1: no one alone */
    enum idle_cause cause;
    double bubble;           /* s in which the rank that it waits for computes: breakdown_s.bubble */
    double exposed;          /* s of communication or offload that nothing hides */
};
struct idle {
    struct idle_wait *items;         /* by rank, the longest first */
    size_t count, capacity;
};

/* idle_release when done. */
void idle_init(struct idle *idle, const struct run *run);
void idle_release(struct idle *idle);

#endif
