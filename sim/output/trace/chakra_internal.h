/* Declarations that the files of the Chakra format share. */
#ifndef DTSIM_CHAKRA_INTERNAL_H
#define DTSIM_CHAKRA_INTERNAL_H

#include "trace/protobuf.h"
#include "trace/trace_internal.h"

/* A part of a span for which another span of its rank waits: up to a time. */
struct part { uint32_t span, node; int64_t until; };
/* What a rank does: its own span, or, from another rank, a message that it receives. */
struct item { const struct recorded_span *span; bool receives; };

/* The trace of a rank while it is written. */
struct chakra {
    const struct trace *trace;
    struct bytes bytes;
    struct protobuf_message node, inner;
    int rank;
    int *npu;                /* a rank of all replicas: its NPU, in the order of the machine; -1: it is not written */
    int *node_of, npus;      /* an NPU: its node, or -1; and how many there are */
    bool *whole;             /* a group: all its ranks are written */
    uint32_t next;           /* the next node's id, from 1 */
    struct { uint32_t *items; size_t count, capacity; } deps;    /* of the next node */
    int64_t *sums;           /* a lane, then communication within works, then receives: ns of its nodes so far */
    uint32_t *latest;        /* a lane: its last node; 0: none yet */
    uint32_t *nodes;         /* a span: its last node */
    uint32_t *receives;      /* a send: the node that receives it */
    struct { struct item *items; size_t count, capacity; } items;
    size_t shorter;          /* nodes shorter than 0.5 us */
};

/* A file of it. */
struct plan;
struct chakra_file { struct trace_file file; struct chakra *chakra; struct plan *plan; };

/* chakra_places.c: numbers the NPUs; npu and node_of are the caller's to free. */
void chakra_place(struct chakra *chakra);
/* Writes what is between NPUs, and tells how ASTRA-sim is started. */
int chakra_write_machine(struct chakra *chakra, FILE *log, struct error *err);

/* chakra_nodes.c: each writes a node that waits for `deps`, and gives its id. */
/* Seconds on a lane, of no communication that Chakra knows. */
uint32_t chakra_computes(struct chakra *chakra, const char *name, const char *suffix, int64_t start, int64_t end, size_t lane,
                         bool on_cpu);
uint32_t chakra_copies(struct chakra *chakra, const struct recorded_span *span, bool to_host);
/* Whether a span has a collective that several ranks exchange. */
bool chakra_exchanges(const struct chakra *chakra, const struct recorded_span *span);
uint32_t chakra_collective(struct chakra *chakra, const struct recorded_span *span, int64_t start, size_t lane);
/* A message of a rank, or its other end. */
uint32_t chakra_sends(struct chakra *chakra, const struct recorded_span *span, bool receives);

#endif
