/* library_cost: how the algorithms of a communication library spend what its profile says: the rounds of a ring, the slots
 * of a tree, all messages of an all-to-all at once. For collective_choice.c. */
#ifndef DTSIM_LIBRARY_COST_H
#define DTSIM_LIBRARY_COST_H

#include "collective/collective.h"
#include "hardware/cluster.h"

/* Latency and bandwidth of messages, by the library's protocol cost; without one, by the links. */
struct rates {
    double launch;                   /* s */
    struct hop inside, network;      /* of one GPU's port, of one NIC; all channels together */
    double network_most;             /* B/s of all channels */
    double stands;                   /* as struct op_transfer's, inside a node */
};

/* A rank of a ring through nodes handles its messages one after another: it waits for the data and for a free buffer,
 * copies, and tells its neighbour. So each message takes cost.step and the time of its bytes, a small one a part of the
 * step; if the network takes longer, only the network's time counts. Returns the bandwidth in B/s at which messages
 * then go; `each`: B of one message, on all channels together. */
double rate_in_steps(const struct protocol_cost *cost, enum collective_op op, double bandwidth, double each);
/* A ring in rounds: a rank sends a chunk of its share, and the next chunk when one has arrived. It passes a chunk on
 * while it arrives, slice by slice (NCCL, src/collectives/device/primitives.h). So a step takes as long as the chunk on
 * the wire, or as its first slice with the latency, whichever is more. Idle time because of latency counts as bytes on
 * the wire. The first message waits for the whole latency. `share`: B that a rank
 * passes on at a time. */
void rates_in_rounds(const struct protocol_cost *cost, double share, int channels, struct rates *rates);
/* Messages that cross a member's port at once: one of each channel, but in a ring for the channels that leave the node
 * from this member, where there are as many as members. */
double port_flows(const struct collective_call *call);
/* B/s of a member's port that a ring's message takes at most; 0: any share. A channel of NCCL is a multiprocessor, which
 * copies at a rate of its own; NCCL has as many channels of this rate as the links carry (src/graph/search.cc). So none
 * is faster while others wait. */
double ring_most(const struct collective_call *call);
/* A tree has a share of its bandwidth, or what slots allow, if that is less. NCCL's authors found the share by
 * experiment, for each power of two from 64 B to 256 MiB (src/graph/tuning.cc, treeCorrectionFactor with 23 shares; the
 * newest has a 24th); between two of them it lies between theirs. NCCL also chooses by it, in steps, and by the latency
 * that a plugin of the network tells. Here auto does neither, for the one without the other would choose rings too early
 * on such a network.
 *
 * With the protocol Simple a rank passes a chunk on when all of it is there, and a connection to another node has eight
 * slots of one chunk: a slot is free again when the receiver says so, a latency after it has the chunk. NCCL begins with
 * chunks of 512 KiB and halves them while the tree is not well filled (src/enqueue.cc, calcCollChunking; a channel of
 * NCCL has one of the two trees). Sizes between are taken here, so that more bytes never take less. */
void rates_in_slots(const struct collective_call *call, struct task task, int protocol, struct rates *rates);

/* The cost of an all-to-all with a protocol, an enum protocol; false: it does not use that protocol. Where the profile
 * does not tell LL from Simple, Simple stands for both. `nodes`: the group spans several. */
bool all_to_all_cost(const struct communication *communication, int protocol, bool nodes, struct protocol_cost *cost);

/* Messages whose time an all-to-all of n ranks in one node takes beyond the n - 1 to other ranks: the rank's own share,
 * and the copy of the last pieces out of the buffers. `bytes`: B that a rank holds for all. */
double all_to_all_ends(const struct all_to_all_cost *cost, int n, double bytes);

#endif
