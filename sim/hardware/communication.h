/* communication: what a communication library (NCCL) makes of links, from a file of platforms/communication/, each
 * number with its source. The library runs an algorithm with one of its protocols; each pairing has a pace: what a
 * collective costs before its first byte, what a message waits for (at least the link's own latency), and which share
 * of a link its payload gets. The terms are those of NCCL's own tuning model (NVIDIA/nccl, src/graph/tuning.cc). */
#ifndef DTSIM_COMMUNICATION_H
#define DTSIM_COMMUNICATION_H

#include "config/field.h"

/* LL: every 8 bytes carry 4 of payload and a flag, LL128: 128 carry 120, Simple: whole slices, with a fence each. */
enum protocol { PROTOCOL_LL, PROTOCOL_LL128, PROTOCOL_SIMPLE, PROTOCOL_COUNT, PROTOCOL_NONE = -1 };
extern const char *const protocol_names[];       /* NULL-terminated */

/* A piece of a pipeline through switches: what a channel moves at once for each GPU of a node. */
struct chunk {
    const struct node *node;
    double bytes;
    double rounds;                   /* of all channels and GPUs that the vector must hold for this piece */
};

struct pace {
    const struct node *node;
    double launch;                   /* s, a collective, whatever its size */
    double inside;                   /* s, a message from one GPU to another of its node; through switches that reduce
                                        and copy, the way there and back */
    double spanning;                 /* s, likewise at least, where the group spans nodes */
    double network;                  /* s, a message to another node, over all channels */
    double network_single;           /* s, likewise over one: the host serves them in turn; NaN: no difference */
    int channels;                    /* that a large collective runs over; a smaller one over fewer, */
    double channel_from;             /* each for so many B of the vector; NaN: over all */
    double inside_share;             /* of the data sheet's bandwidth inside a node that payload gets */
    double network_share;            /* of the data sheet's bandwidth of a NIC */
    double inside_most;              /* B/s of a GPU, all its channels together; NaN: no bound */
    double network_most;             /* B/s likewise, where the group spans nodes; NaN: no bound */
    double nic_most;                 /* B/s likewise, for each NIC that is used: of a channel; NaN: no bound */
    double plateau;                  /* factor on the latencies of large all-reduces in one node, */
    double spanning_plateau;         /* and on those that span nodes */
    double plateau_from;             /* how large: B of the vector; NaN: none is */
    double round;                    /* B that a rank of a ring sends to another node, all its channels together, before
                                        it waits for as much; NaN: as if all went at once */
    double slice;                    /* B of them that are passed on as they come; NaN: all */
    double copy;                     /* B/s at which it copies between GPU and network buffers; NaN: it does not */
    struct list chunks;              /* struct chunk, the largest first; none: the pipeline fills at once */
    struct list spanning_chunks;     /* likewise, where the group spans nodes */
};

/* Which NICs carry a group's collectives where several are equally near to a GPU. NICS_OWN: every GPU's own. NICS_SAME:
 * what enters a node by a NIC leaves it by the same, so from below another PCIe switch it goes through the host's
 * memory, unless two of the group's GPUs share the switch. NICS_FIRST: and every GPU takes the first NIC of its switch,
 * though GPUs of other groups do so too. NCCL: _FIRST before 2.9.6 (ncclTopoSearchRecNet of src/graph/search.cc tries
 * the NICs in order, and any way through the host before it crosses NICs), _SAME to 2.11 (ncclTopoSelectNets begins
 * with the GPU's number), _OWN since (PXN of 2.12 reaches a NIC through the GPU next to it). */
#define NIC_CHOICES(X) X(NICS_OWN, "own") X(NICS_SAME, "same") X(NICS_FIRST, "first")
enum nic_choice { NIC_CHOICES(ENUM_VALUE) };

struct communication {
    const struct node *node;
    const char *title;
    struct library_paces {
        const struct node *node;
        const struct pace *ll, *ll128, *simple;
    } ring, tree, nvls;              /* nvls: in switches that reduce and copy; nothing in it: they do not */
    const struct pace *send;         /* between two GPUs */
    int channels_inside;             /* of a large collective in one node: blocks of threads, one a multiprocessor */
    int channels_spanning;           /* and of one that spans nodes; 0: none that kernels would notice */
    double launch;                   /* s, beside every pace's (struct communication_spec) */
    int nics;                        /* enum nic_choice (struct communication_spec) */
};
extern const struct table communication_table;

/* What a cluster says of it. */
struct communication_spec {
    const struct node *node;
    const char *profile;             /* platforms/communication/NAME.yaml, or a path; "none": none */
    double launch;                   /* s, a collective, beside the profile's */
    int nics;                        /* enum nic_choice */
};
extern const struct table communication_spec_table;

/* Reads the profile that the spec names; NULL for "none". -1 after an error. */
int communication_load(struct arena *arena, const struct communication_spec *spec,
                       const struct communication **communication, struct error *err);
const struct pace *paces_with(const struct library_paces *paces, enum protocol protocol);   /* NULL: none */

#endif
