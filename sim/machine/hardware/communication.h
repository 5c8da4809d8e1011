/* communication: how a communication library (NCCL) uses the links, from a file of platforms/communication/, which
 * gives the source of each number. The library runs an algorithm with one of its protocols. Each such pair has a
 * protocol cost: the time before a collective's first byte, the latency of a message (at least the link's own), and the
 * share of a link's bandwidth that payload gets. The terms come from NCCL's own tuning model (NVIDIA/nccl,
 * src/graph/tuning.cc). */
#ifndef DTSIM_COMMUNICATION_H
#define DTSIM_COMMUNICATION_H

#include "config/field.h"

/* LL: every 8 bytes carry 4 bytes of payload and a flag. LL128: every 128 bytes carry 120. Simple: whole slices, with a
 * memory fence after each. */
enum protocol { PROTOCOL_LL, PROTOCOL_LL128, PROTOCOL_SIMPLE, PROTOCOL_COUNT, PROTOCOL_NONE = -1 };
extern const char *const protocol_names[];       /* NULL-terminated */
/* B that a protocol adds to each byte of payload on the links: LL 1, LL128 8 / 120, Simple 0. */
double protocol_bytes(enum protocol protocol);

/* A size of the pieces in a pipeline through switches: the bytes that a channel moves at once for each GPU of a
 * node. */
struct chunk {
    const struct node *node;
    double bytes;
    double rounds;                   /* pieces for every channel and GPU that the vector must have for this size */
};

struct protocol_cost {
    const struct node *node;
    double launch;                   /* s to start a collective, whatever its size */
    double inside;                   /* s, latency of a message between two GPUs of a node; through switches that reduce
                                        and copy, of the way there and back */
    double spanning;                 /* s, minimum of the latency inside a node if the group spans nodes */
    double step;                     /* s that a rank of a ring is busy with a message of a gather or reduce-scatter in
                                        addition to its bytes, if the group spans nodes; not in the library's own
                                        tuning; NaN: none */
    double all_reduce_step;          /* the same of an all-reduce */
    double step_bytes;               /* B of a message, its channels together, from which the step is whole; a smaller
                                        message takes its part of it */
    double network;                  /* s, latency of a message to another node if all channels are used */
    double network_single;           /* s, the same if one channel is used; with more, the host serves one after
                                        another; NaN: as network */
    int channels;                    /* number of channels of a large collective */
    double channel_from;             /* a smaller one has one channel per `channel_from` B of its vector; NaN: all */
    double inside_share;             /* payload bandwidth inside a node / bandwidth on the data sheet */
    double network_share;            /* payload bandwidth of a NIC / bandwidth on the data sheet */
    double ends;                     /* messages whose time the ends of a ring in a node add, because a rank does not
                                        send and receive at once there; also of all-to-alls in a node */
    double inside_most;              /* B/s, bound of a GPU's channels together, group in one node; NaN: no bound */
    double network_most;             /* B/s, bound of a GPU's channels together, group spans nodes; NaN: no bound */
    double nic_most;                 /* B/s, bound of each channel if the group spans nodes; NaN: no bound */
    double plateau;                  /* factor on the latencies of large all-reduces in one node */
    double spanning_plateau;         /* factor on the latencies of large all-reduces whose group spans nodes */
    double plateau_from;             /* B of the vector from which an all-reduce is large; NaN: none is */
    double round;                    /* B that a rank of a ring sends to another node, all its channels together, before
                                        it waits until it has received as many; NaN: it sends all at once */
    double slice;                    /* B of a round that are passed on as soon as they arrive; NaN: the whole round */
    double copy;                     /* B/s of the copies between GPU and network buffers; NaN: there are none */
    struct list chunks;              /* struct chunk, group in one node, the largest first; empty: no filling time */
    struct list spanning_chunks;     /* struct chunk, group spans nodes */
    const struct all_to_all_cost *all_to_all;        /* of an all-to-all in one node; not a key */
    int protocol;                    /* enum protocol; not a key */
};

/* An all-to-all in one node with one protocol. All its messages begin at once, so it pays a launch once, and the link's
 * own latency for each message.
 *
 * NCCL deals a rank's 32 channels out over its n peers, itself included: each gets the largest power of two that is at
 * most 32 / n. While a rank has little to send, the channels of its own share, which it only copies, are idle for most
 * of the time, so that the own share costs nearly as much as another's. A peer gets twice as many channels whenever
 * each of its channels has more than 16 MiB, up to all 32. Channels that carry the messages of all peers are never
 * idle; that is so from 16 channels x 16 MiB for each peer (NVIDIA/nccl, src/enqueue.cc, addP2pToPlan). */
struct all_to_all_cost {
    const struct node *node;
    double launch;                   /* s, whatever its size */
    double inside_share;             /* payload bandwidth / bandwidth on the data sheet */
    double ends;                     /* messages whose time a rank's own share takes */
    double large_ends;               /* the same of large messages; NaN: as ends */
    double large_from;               /* B for each peer from which messages are large; NaN: none is */
    double pieces;                   /* B for all peers that arrive in buffers before the receiver copies them to their
                                        place; NaN: they need no copy */
    double piece_copy;               /* time in which the last of these pieces are copied / in which they arrive */
};

/* Which NICs carry a group's collectives if several are equally near to a GPU.
 * NICS_OWN: every GPU uses its own.
 * NICS_SAME: data leaves a node through the NIC by which it came. If that NIC belongs to another PCIe switch than the
 *     GPU, the data goes through host memory, unless two of the group's GPUs share the switch.
 * NICS_FIRST: as NICS_SAME, and every GPU uses the first NIC of its switch, even if GPUs of other groups use it too.
 * NCCL: NICS_FIRST before 2.9.6 (ncclTopoSearchRecNet of src/graph/search.cc tries the NICs in order, and any path
 * through the host before it crosses NICs), NICS_SAME to 2.11 (ncclTopoSelectNets begins with the GPU's number),
 * NICS_OWN since (PXN of 2.12 reaches a NIC through the GPU next to it). */
#define NIC_CHOICES(X) X(NICS_OWN, "own") X(NICS_SAME, "same") X(NICS_FIRST, "first")
enum nic_choice { NIC_CHOICES(ENUM_VALUE) };

struct communication {
    const struct node *node;
    const char *title;
    const char *estimate;            /* which numbers rest on few public measurements; NULL: none */
    struct algorithm_costs {
        const struct node *node;
        const struct protocol_cost *ll, *ll128, *simple;
    } ring, tree, nvls;              /* nvls: in switches that reduce and copy; empty: switches cannot */
    /* Where few ranks, all of one node, reduce in the switch: the library does not choose it for fewer ranks, nor for
     * fewer bytes, and they get another share of the bandwidth. */
    const struct nvls_few {
        const struct node *node;
        int most, least;             /* the most ranks in such a group; the fewest that the library lets the switch
                                        reduce */
        double bytes;                /* B of the smallest vector; NaN: of any size */
        double inside_share;         /* instead of the protocol cost's; NaN: the same */
    } *nvls_few;                     /* NULL: the library's own estimate decides */
    const struct protocol_cost *send;         /* between two GPUs */
    struct all_to_all_costs {
        const struct node *node;
        const struct all_to_all_cost *ll, *simple;
    } all_to_all;                    /* in one node; empty: as send */
    int channels_inside;             /* multiprocessors that a large collective in one node occupies, one per channel */
    int channels_spanning;           /* the same if the group spans nodes; 0: kernels are not slowed down */
    double launch;                   /* s, in addition to every protocol cost's launch (struct communication_spec) */
    int nics;                        /* enum nic_choice (struct communication_spec) */
};
extern const struct table communication_table;

/* The value of a cluster's `communication:`. */
struct communication_spec {
    const struct node *node;
    const char *profile;             /* platforms/communication/NAME.yaml, or a path; "none": no profile */
    double launch;                   /* s of every collective, in addition to the profile's */
    int nics;                        /* enum nic_choice */
    int protocol;                    /* enum protocol: the only one that may be used; PROTOCOL_COUNT: any */
};
extern const struct table communication_spec_table;

/* Reads the profile that the spec names; *communication is NULL for "none". -1 after an error. */
int communication_load(struct arena *arena, const struct communication_spec *spec,
                       const struct communication **communication, struct error *err);
/* The least and the most latency in s of a message inside a node, or between nodes, of all algorithms and protocols. */
struct latencies { double least, most; };
struct latencies communication_latencies(const struct communication *communication, bool between);
/* The algorithm's cost with that protocol, or NULL. */
const struct protocol_cost *algorithm_cost_with(const struct algorithm_costs *costs, enum protocol protocol);

#endif
