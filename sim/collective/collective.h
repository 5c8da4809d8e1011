/* collective: the messages of a collective algorithm. This is all that a file in strategies/collectives/ sees. An
 * algorithm writes messages between n abstract ranks; it never writes time. */
#ifndef DTSIM_COLLECTIVE_H
#define DTSIM_COLLECTIVE_H

#include "engine/program.h"

/* What the operation brings about. The vector is `bytes` long (as nccl-tests counts them) and cut into equal chunks,
 * the chunks into n equal shares: share r is chunks [r chunks / n, (r + 1) chunks / n). Rank 0 is the root.
 *
 *                  who contributes what         who ends with what               bytes
 *   all_reduce     every rank to every chunk    every rank: all of every chunk   what each rank holds
 *   reduce_scatter every rank to every chunk    rank r: all of share r           n times what a rank ends with
 *   all_gather     rank r to share r            every rank: every share          n times what a rank begins with
 *   broadcast      the root to every chunk      every rank: every chunk          what the root holds
 *   reduce         every rank to every chunk    the root: all of every chunk     what each rank holds
 *   all_to_all     every rank to every chunk    rank r: share r of every rank    what each rank holds in all
 *
 * "All of a chunk" is the sum of the contributions, each of them once. In an all_to_all nothing is summed:
 * contributions stay side by side, so that a message moves only what its source began with, and REDUCE says that it
 * joins the others. Chunks that a rank does not end with may hold anything at the end. */
enum collective_op {
    COLLECTIVE_ALL_REDUCE, COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALL_GATHER, COLLECTIVE_BROADCAST, COLLECTIVE_REDUCE,
    COLLECTIVE_ALL_TO_ALL, COLLECTIVE_OP_COUNT
};
extern const char *const collective_op_names[];      /* NULL-terminated: "all_reduce", ... */
/* busbw / algbw (nccl-tests, doc/PERFORMANCE.md): the share of `bytes` that the busiest links must carry. */
double collective_bus_factor(enum collective_op op, int n);

enum combine { COPY, REDUCE };       /* what the receiver does with what arrives: keep it, or add it to its own */

/* In `step`, src sends the chunks [chunk, chunk + nchunks) to dst. A message waits for the messages that last brought
 * any of these chunks, in earlier steps, to its source or to its destination. A rank sends one message after another on
 * each channel, in the order in which they are written. Within a step everything happens at the same time: messages of
 * one step do not see each other, and several may bring the same chunk to the same rank. So arrivals that must not
 * overlap, such as those at the root of a gather, have steps of their own. */
struct message {
    int step, src, dst, chunk, nchunks;
    enum combine combine;
};
struct messages { struct message *items; size_t count, capacity; };

/* Write one message. Its step is that of the message before it, or a later one. */
void copy(struct messages *messages, int step, int src, int dst, int chunk, int nchunks);
void reduce(struct messages *messages, int step, int src, int dst, int chunk, int nchunks);

/* All that an algorithm knows of the group that it runs on. */
struct task {
    int n;                           /* ranks */
    int per_node;                    /* divides n: ranks [i per_node, (i + 1) per_node) are neighbours in one node; 1
                                        where the nodes do not hold equally many */
    double bytes;                    /* the vector (of one channel) */
    int folded;                      /* of a ring: rank r + folded does what rank r does, so only the first `folded`
                                        ranks are written, for all n steps, as if they were the ring; 0: all n are */
};

/* What one message costs, for closed forms on clusters. */
struct hop { double latency, bandwidth; };           /* s, B/s for one channel */
static inline double hop_seconds(struct hop hop, double bytes)
{
    return hop.latency + bytes / hop.bandwidth;
}
struct fabric {
    struct hop inside;               /* from one member to another of its node */
    struct hop between;              /* to another node, while one member of a node sends to other nodes */
    struct hop crowded;              /* while all members of a node do */
    bool buffered;                   /* a rank's next message need not wait for the arrival of the one before */
};

/* `rounds` times round a ring, in messages of a rank's share: the slowest link sets the pace, and while messages wait
 * for arrivals, so does the longest way; else a message pays each link's own (NCCL, src/graph/tuning.cc). */
static inline double ring_cost(const struct task *task, const struct fabric *fabric, int rounds)
{
    struct hop inside = fabric->inside, between = fabric->between;
    int steps = rounds * (task->n - 1), crossings = rounds * (task->n / task->per_node - 1);
    double slowest = inside.bandwidth < between.bandwidth ? inside.bandwidth : between.bandwidth;
    double longest = inside.latency > between.latency ? inside.latency : between.latency;

    if (fabric->buffered)
        return (steps - crossings) * inside.latency + crossings * between.latency +
               steps * (task->bytes / task->n / slowest);
    return steps * (longest + task->bytes / task->n / slowest);
}

/* Factors on what a message costs; and `fill`, B that the port, or the NIC, carries before the message's first. */
struct stand_in {
    struct { double latency, bytes, fill; } inside, between;     /* bytes: that the port, or the NIC, carries */
};

/* Whose pace of the communication library (communication.h) a collective keeps, where the cluster has a profile. */
enum pacer { PACER_RING, PACER_TREE, PACER_NVLS, PACER_SEND };

struct collective {
    enum collective_op op;
    const char *name;                /* "ring": unique within its operation */
    const char *title;               /* "Ring all-reduce (reduce-scatter, then all-gather)" */
    const char *paper;               /* where it and its formula are from */
    const char *figure;              /* its messages in ASCII, for help */
    const char *formula;             /* its closed form, as text */
    bool every_nic;                  /* members of a node all send to other nodes themselves: one channel is enough */
    bool crowds;                     /* so that messages between nodes meet in the NICs (for cost) */
    enum pacer pacer;
    bool ring;                       /* a rank sends what it last got, a share of the vector at a time, and all ranks do
                                        so alike: pace.round, task.folded */
    bool chain;                      /* goes once along a ring, from the root or to it */
    bool library;                    /* NCCL has it: auto chooses among these where the cluster has a profile */
    bool usual;                      /* runs where nobody says; one of each operation */
    /* Of an all-reduce, its two halves, for those who exchange them apart (ZeRO). Both NULL: it has none. */
    const struct collective *reduce_scatter, *all_gather;
    double error;                    /* of ideal where n is no power of two, as a share of the time; 0: it is exact */
    int (*chunks)(const struct task *task);      /* how many equal chunks the vector is cut into */
    double (*messages)(const struct task *task);     /* how many; not required: <= 2 n chunks, or 2 n log2 n */
    void (*draw)(struct messages *messages, const struct task *task); /* NULL: the cheapest of the others runs */
    /* Seconds on a full-duplex network without contention, every pair `latency` s and `bandwidth` B/s apart. */
    double (*ideal)(const struct task *task, double latency, double bandwidth);
    /* An estimate for clusters; NULL: ideal, as if every message took the slowest hop. */
    double (*cost)(const struct task *task, const struct fabric *fabric);
    /* What a message stands for where the switches of nodes reduce and copy. Not required: no switch does anything for
     * it. With it, a cluster whose profile has no such switch is refused (collective_runs_on). `piece`: the B of the
     * vector that are on their way at once. */
    struct stand_in (*in_switch)(const struct task *task, double piece);
};

/* So that an all-reduce can name its halves. */
#define COLLECTIVE(name) extern const struct collective collective_##name;
#include "strategies/collectives/list.h"
#undef COLLECTIVE
/* All of strategies/collectives/list.h, in its order. */
const struct collective *collective_at(size_t index);                                /* NULL past the last */
const struct collective *collective_of(enum collective_op op, size_t index);         /* likewise, of one operation */
const struct collective *collective_find(enum collective_op op, const char *name);   /* NULL: unknown */
/* What runs where nobody says: the library's choice (what draws nothing), where there is one to be asked for and the
 * operation has it; else the usual one. */
const struct collective *collective_usual(enum collective_op op, bool library);
/* The all-reduce's half of that operation (reduce-scatter or all-gather); the usual one where it has none. */
const struct collective *collective_half(const struct collective *all_reduce, enum collective_op op);
const char *all_reduce_name(size_t index);           /* a choice_name: of collective_of(COLLECTIVE_ALL_REDUCE, index) */

/* Which GPU sends for which member, and over how many rings (channels) at once. */
struct group {
    int n;                           /* members */
    const int *ranks;                /* lanes belong to these ranks of the program */
    const int *gpus;                 /* one a member */
    const struct folded_ring *folded; /* the members and channels that are lowered, for all; NULL: each for itself */
};

struct cluster;
/* What runs in a collective's place. */
struct collective_choice {
    const struct collective *used;   /* the collective itself, or for one that draws nothing (auto) the cheapest */
    int channels;                    /* that are used, of those that may be */
    int protocol;                    /* enum protocol; PROTOCOL_NONE: the cluster has no profile */
    double seconds;                  /* estimated by the algorithm's own formula; NaN where there was no choice */
};
/* Of all that draw (of NCCL's own, where the cluster has a profile) and all their protocols the cheapest by formula;
 * a collective that draws keeps to itself, and only its protocol is chosen. `channels`: the most that may be used. */
struct collective_choice collective_choose(const struct collective *collective, const struct cluster *cluster,
                                const struct group *group, double bytes, int channels);
/* False for a reduction in the switch on a cluster whose profile has none. */
bool collective_runs_on(const struct collective *collective, const struct cluster *cluster);

/* A folded ring stands for a ring through many nodes, with two of them. It is exact where all nodes are alike, each
 * with as many members in the same places: what a node does is what the node before it does, so all members begin and
 * end everything together. Two nodes whose ring goes on for as many steps then do the same at the same times, because
 * one solution alone shares the links (max-min), and it is as symmetric as the flows. Channels are folded too: a
 * channel is the one before it, some GPUs further on in every node. Where these GPUs have NICs of their own, the first
 * few channels on the first few GPUs of each node load every link as all channels on all GPUs do. */
struct folded_ring {
    int n, channels;                 /* members and channels that are lowered: the first ones */
    int *gpus;                       /* of member m of group g: gpus[g * n + m]; one GPU may be several members */
};
/* False, and nothing to release, where the ring cannot be folded. `used` is the choice of collective_choose for all of
 * the groups (as measure.h has them), which runs on that many channels, undisturbed. The caller frees folded->gpus. */
bool collective_fold_ring(struct folded_ring *folded, const struct collective *used, const struct cluster *cluster,
                          const int *gpus, int ngroups, int n, int channels);

/* The collective that collective_choose chooses, as transfers: each channel used moves its share of `bytes` along its
 * own member order, in which the members of every node are rotated, so that channels enter and leave a node through
 * different NICs (as NCCL's rings). lanes: n * channels lanes, lanes[member * channels + channel]. No message from or
 * to member m begins before ready[m] (if ready is not NULL). Of `like` what, mb and stage are used. done receives, per
 * member, one id that ends when the member holds its result and all that it sent has left: a zero-second COMPUTE on its
 * first lane. The root is member 0; whose share is which differs from channel to channel, a matter of names. A folded
 * ring has lanes, ready[] and done[] for its own n members alone, and its gpus are the group's. */
void collective_lower(const struct collective *collective, const struct cluster *cluster, const struct group *group,
                      double bytes, int channels, const uint32_t *lanes, const uint32_t *ready, struct op like,
                      struct program *program, uint32_t *done);
/* Seconds, estimated by the algorithm's own formula on this cluster, with the cheapest protocol. */
double collective_cost(const struct collective *collective, const struct cluster *cluster, const struct group *group,
                       double bytes, int channels);
/* How the chosen collective's messages differ from bare ones: for collective_lower. */
struct tuning {
    double launch;                   /* s, before a member's first message */
    bool buffered;                   /* as struct op's: the library's buffers hold several messages */
    struct extra_pair { double delay, overhead; } inside, between;   /* as struct op's */
};
struct tuning collective_tuning(const struct collective_choice *choice, const struct cluster *cluster,
                                const struct group *group, double bytes);
/* As many messages as it may take at most, on one channel, for the task's ranks and nodes. */
double collective_messages(const struct collective *collective, const struct task *task);
/* As many rings as NICs that the members of a node use, where the group holds several GPUs in each of several nodes
 * (all nodes alike, the members of a node next to each other), else 1. */
int collective_channels(const struct cluster *cluster, const struct group *group);
/* order[rank of the collective] is a member of the group, on one channel of several. */
void collective_order(const struct cluster *cluster, const struct group *group, int channel, int channels,
                      const struct collective *collective, int *order);
/* What struct task calls per_node. */
int collective_per_node(const struct cluster *cluster, const struct group *group);

#endif
