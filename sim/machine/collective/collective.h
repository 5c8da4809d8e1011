/* collective: the messages of a collective algorithm. This is all that a file in strategies/collectives/ sees. An
 * algorithm writes messages between n abstract ranks; it never writes time. */
#ifndef DTSIM_COLLECTIVE_H
#define DTSIM_COLLECTIVE_H

#include "collective/placed_group.h"
#include "engine/program.h"

/* The operations. The vector has `bytes` bytes (as nccl-tests counts them). It is cut into equal chunks, and the chunks
 * into n equal shares: share r is chunks [r chunks / n, (r + 1) chunks / n). Rank 0 is the root.
 *
 *                  contributions                results                          bytes
 *   all_reduce     every rank to every chunk    every rank: all of every chunk   a rank's input
 *   reduce_scatter every rank to every chunk    rank r: all of share r           n times a rank's result
 *   all_gather     rank r to share r            every rank: every share          n times a rank's input
 *   broadcast      the root to every chunk      every rank: every chunk          the root's input
 *   reduce         every rank to every chunk    the root: all of every chunk     a rank's input
 *   all_to_all     every rank to every chunk    rank r: share r of every rank    a rank's input
 *
 * "All of a chunk" is the sum of all contributions, each counted once. An all_to_all sums nothing: contributions stay
 * side by side, a message moves only contributions of its source, and REDUCE means that it joins the others. Chunks
 * that are no part of a rank's result may hold anything at the end. */
enum collective_op {
    COLLECTIVE_ALL_REDUCE, COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALL_GATHER, COLLECTIVE_BROADCAST, COLLECTIVE_REDUCE,
    COLLECTIVE_ALL_TO_ALL, COLLECTIVE_OP_COUNT
};
extern const char *const collective_op_names[];      /* NULL-terminated: "all_reduce", ... */
/* busbw / algbw (nccl-tests, doc/PERFORMANCE.md): the share of `bytes` that the busiest links must carry. */
double collective_bus_factor(enum collective_op op, int n);

enum combine { COPY, REDUCE };       /* the receiver keeps the chunks that arrive, or adds them to its own */

/* In `step`, src sends nchunks chunks to dst, from `chunk` on; after the last chunk of the vector comes chunk 0. A
 * message waits for the messages that last brought any of these chunks, in earlier steps, to its source or to its
 * destination. A rank sends one message after another on each port of each channel, in the order in which they are
 * written. Its first message of a phase on a port waits for the messages that last came to it on each port. Within
 * a step everything happens at the same time: messages of one step do not see each other, and several may bring the
 * same chunk to the same rank. So arrivals that must not overlap, such as those at the root of a gather, have steps of
 * their own. */
struct message {
    int step, src, dst, chunk, nchunks;
    uint8_t combine;                 /* enum combine */
    uint8_t port;
    uint16_t phase;
};
struct messages {
    struct message *items;
    size_t count, capacity;
    int port, phase;                 /* of the messages that are written next; at first 0 */
};

/* Write one message. Its step is its predecessor's step, or a later one. */
void copy(struct messages *messages, int step, int src, int dst, int chunk, int nchunks);
void reduce(struct messages *messages, int step, int src, int dst, int chunk, int nchunks);
/* The messages that are written next leave through that port and arrive at it (0 to 255). */
void through_port(struct messages *messages, int port);
/* The messages that are written next are of a new phase. */
void next_phase(struct messages *messages);

/* The group that an algorithm runs on. */
struct task {
    int n;                           /* ranks */
    int per_node;                    /* divides n: ranks [i per_node, (i + 1) per_node) are neighbours in one node; 1
                                        if nodes hold different numbers of ranks */
    double bytes;                    /* the vector of one channel */
    int folded;                      /* the ranks of two nodes, if these stand for all (struct folded): only these are
                                        written, in all steps, each node in the other nodes' place; in a torus, the
                                        ranks of TORUS_FEW nodes of each longer dimension; 0: all n ranks */
    bool buffered;                   /* the library's buffers hold several messages: a rank's next message need not
                                        wait for the arrival of its last one */
    struct torus torus;              /* whose nodes are the ranks, in their order; no dims: the ranks are on none */
};

/* The cost of one message, for closed forms on clusters. */
struct hop { double latency, bandwidth; };           /* s, B/s for one channel */
static inline double hop_seconds(struct hop hop, double bytes)
{
    return hop.latency + bytes / hop.bandwidth;
}
struct fabric {
    struct hop inside;               /* from one member to another of its node */
    struct hop between;              /* to another node, while one member of a node sends to other nodes */
    struct hop crowded;              /* to another node, while all members of a node send to other nodes */
    bool buffered;                   /* a rank's next message need not wait for the arrival of its last one */
    bool tuned;                      /* as the library's own tuning reckons: latencies and bytes add up */
    int channels;                    /* channels that share a port of a member, each with its part of the bandwidth */
};

/* Factors on a message's latency and on the bytes that the port, or the NIC, carries; and `fill`, the B that it carries
 * before the message's first. `through`: B that a rank's port carries for each B that the rank sends to other nodes,
 * where the network is to hide the work of the ports, but goes no faster than they do; 0: it need not wait for them.
 * `crosses`: B that a port really carries for each B of a message inside a node, hidden or not. */
struct stand_in {
    struct { double latency, bytes, fill; } inside, between;
    double through;
    double crosses;
};

/* Which protocol costs of the communication library (communication.h) a collective has, on a cluster with a profile. */
enum library_cost { LIBRARY_RING, LIBRARY_TREE, LIBRARY_NVLS, LIBRARY_SEND };

struct collective {
    enum collective_op op;
    const char *name;                /* "ring": unique within its operation */
    const char *title;               /* "Ring all-reduce (reduce-scatter, then all-gather)" */
    const char *paper;               /* where it and its formula are from */
    const char *figure;              /* its messages in ASCII, for help */
    const char *formula;             /* its closed form, as text */
    bool every_nic;                  /* all members of a node send to other nodes: one channel is enough */
    bool crowds;                     /* and their messages meet in the NICs (for cost) */
    enum library_cost library_cost;
    bool ring;                       /* a rank sends the share of the vector that it last got, to the next rank alone
                                        (protocol_cost.round) */
    enum nodes_alike {
        NODES_DIFFER,
        NODES_ALIKE,                 /* all nodes do the same at the same time, so task.folded may be set; */
        NODES_ALIKE_OF_TWO,          /* the same, but only if the number of ranks is a power of two; */
        NODES_IN_RING,               /* the same, and they send to the next node alone; */
        NODES_IN_TORUS,              /* the same, and they send to their neighbours of a torus alone */
    } nodes;
    bool torus;                      /* along the dimensions of a torus: runs on such groups alone */
    bool chain;                      /* goes once along a ring, from the root or to it */
    bool library;                    /* NCCL has it: auto chooses among these if the cluster has a profile */
    bool usual;                      /* the default of its operation; one of each operation */
    /* The two halves of an all-reduce, if ZeRO can exchange them separately. Both NULL: it has none. */
    const struct collective *reduce_scatter, *all_gather;
    double error;                    /* of ideal if n is no power of two, as a share of the time; 0: it is exact */
    int (*chunks)(const struct task *task);      /* the number of equal chunks of the vector */
    int (*ports)(const struct task *task);       /* the messages that a rank sends at once on a channel; NULL: 1 */
    double (*messages)(const struct task *task);     /* their number; not required: <= 2 n chunks, or 2 n log2 n */
    void (*write_messages)(struct messages *messages, const struct task *task); /* NULL: the cheapest of the others runs */
    /* Seconds on a full-duplex network without contention, every pair `latency` s and `bandwidth` B/s apart. */
    double (*ideal)(const struct task *task, double latency, double bandwidth);
    /* An estimate for clusters, in s; NULL: ideal, with the slowest hop for every message. */
    double (*cost)(const struct task *task, const struct fabric *fabric);
    /* For collectives that the switches of nodes reduce and copy: the work that a message stands for. Such a collective
     * runs only where the profile has such a switch, and not on a mesh (collective_runs_on). `piece`: B of the vector
     * that are on their way at once. NULL: no switch reduces. */
    struct stand_in (*in_switch)(const struct task *task, double piece);
};

/* Declared so that an all-reduce can name its halves. */
#define COLLECTIVE(name) extern const struct collective collective_##name;
#include "strategies/collectives/list.h"
#undef COLLECTIVE
/* All of strategies/collectives/list.h, in its order. */
const struct collective *collective_at(size_t index);                                /* NULL past the last */
const struct collective *collective_of(enum collective_op op, size_t index);         /* the collectives of one
                                                                                        operation */
const struct collective *collective_find(enum collective_op op, const char *name);   /* NULL: unknown */
/* The default of an operation: with `library` auto, the library's choice, if the operation has it; else the usual
 * one. */
const struct collective *collective_usual(enum collective_op op, bool library);
/* The all-reduce's half: its reduce-scatter or its all-gather, by `op`; the usual one if it has none. */
const struct collective *collective_half(const struct collective *all_reduce, enum collective_op op);
const char *all_reduce_name(size_t index);           /* a choice_name: of collective_of(COLLECTIVE_ALL_REDUCE, index) */

/* A collective call: what is to run, where, and how much of it. The group outlives the call. */
struct collective_call {
    const struct collective *collective;
    const struct placed_group *group;
    double bytes;                    /* of the vector, as enum collective_op counts them */
    int channels;                    /* the most that may be used */
};
/* What an algorithm sees of the call, if it runs on all its channels. */
struct task collective_task(const struct collective_call *call);

/* The algorithm, channels and protocol that run. */
struct collective_choice {
    const struct collective *used;   /* the collective itself; for auto the cheapest */
    int channels;                    /* the channels that are used */
    int protocol;                    /* enum protocol; PROTOCOL_NONE: the cluster has no profile */
    double seconds;                  /* estimated by the algorithm's own formula; NaN if there was no choice */
};
/* For auto (a collective without `write_messages`) the cheapest algorithm and protocol by formula; of NCCL's algorithms alone if
 * the cluster has a profile. For any other collective the cheapest protocol. */
struct collective_choice collective_choose(const struct collective_call *call);
/* The call with the algorithm and the channels that were chosen for it. */
struct collective_call collective_chosen(struct collective_call call, const struct collective *used, int channels);
/* False for a reduction in the switch on a cluster whose profile has none, and for a torus's collective on any other
 * cluster. */
bool collective_runs_on(const struct collective *collective, const struct cluster *cluster);
/* Whether it runs on this group of a cluster that it runs on; an error if it does not. */
bool collective_runs_in(const struct collective *collective, const struct placed_group *group);
int collective_check_group(const struct collective *collective, const struct placed_group *group, struct error *err);
/* What clusters need for it, or its groups: "switches that reduce: ..."; for messages. */
const char *collective_needs(const struct collective *collective);
/* The most lanes that a member needs for the call: one for each port of each channel. */
int collective_lanes(const struct collective_call *call);

/* Of a collective through many nodes, the members and channels that are lowered and stand for all. This is exact if all
 * nodes are alike, with the same number of members in the same places.
 *
 * Nodes: in some collectives every node does the same as every other (collective.nodes), so all nodes begin and end
 * everything together. Two nodes that do this for the same number of steps, each in the place of all others, do the
 * same at the same times, because links are shared in only one way (max-min), and this way is as symmetric as the
 * flows.
 *
 * Torus: its translations take nodes to nodes, and links to links. A collective that goes along its dimensions does the
 * same on all nodes, so that a torus of three nodes in each dimension stands for any longer one, for as many steps.
 *
 * Channels: a channel is the one before it, some GPUs further on in every node. If these GPUs have NICs of their own,
 * all channels do the same at the same time, whatever the collective does, and the first few channels on the first few
 * GPUs of each node load every link of nodes as all channels on all GPUs do. The way behind the NICs follows from the
 * nodes (but for rails, and SimGrid's files), so each link of the topology carries as many flows of every channel, and
 * the few have the same part of it. A single channel may be all on one GPU of each node. It sends to itself then, through
 * the links of its port. */
/* Why all nodes are simulated, or all channels. */
enum unfolded {
    FOLDED,                          /* they are not, or there are no more than have to be */
    UNFOLDED_ROOT,                   /* one member begins or ends alone */
    UNFOLDED_ALGORITHM,              /* nodes do different things */
    UNFOLDED_PLACES,                 /* members have different places or shares of NICs on different nodes */
    UNFOLDED_UPLINKS,                /* the uplinks of a leaf are narrower than the NICs that send through them */
    UNFOLDED_SEVERAL,                /* several groups at once: channels are not looked at */
    UNFOLDED_NICS,                   /* channels share NICs */
    UNFOLDED_WITHIN,                 /* the group is within a node: channels are not looked at */
    UNFOLDED_COUNT
};
/* In a dimension of three nodes each one has two neighbours, as in any longer one. */
enum { TORUS_FEW = 3 };
/* This number is simulated, for all of them. */
struct extent { int simulated, all; enum unfolded why; };
struct folded {
    struct extent of_nodes, of_channels;     /* of the first group */
    int n, channels;                 /* members and channels that are lowered: the first ones */
    int *gpus;                       /* of member m of group g: gpus[g * n + m]; one GPU may be several members */
    struct torus torus;              /* whose nodes these are, instead of the cluster's; no dims: they are the cluster's */
    struct cluster *cluster;         /* on which they run */
};
/* False, with nothing to release, if the collective cannot be folded; `folded` then says why. `chosen`: the call with the choice of
 * collective_choose, which all groups (as in measure.h) run undisturbed. folded_release when done; `folded` stays where it is
 * until then. */
bool collective_fold(struct folded *folded, const struct collective_call *chosen, int ngroups);
void folded_release(struct folded *folded);

/* The DAGs of the collectives that were lowered last: groups, flows and stages have the same ones. Zero-initialise. */
struct dags { struct known_dag *items; size_t next; };
void dags_release(struct dags *dags);

/* The operations of the members among which a collective is lowered. */
struct member_ops {
    const uint32_t *lanes;           /* [member * stride + lane], collective_lanes of the call at least */
    int stride;
    const uint32_t *ready;           /* a member: no message from or to it begins before this operation; or NULL */
    uint32_t *done;                  /* a member: set to a zero-second COMPUTE on its first lane, which ends when it
                                        holds its result and all its messages have left */
};
/* Adds the collective that collective_choose chooses to the program, as transfers, and returns the choice. Each used
 * channel moves its part of the bytes along its own order of the members. The members of every node are rotated in it,
 * so that channels enter and leave a node through different NICs (as NCCL's rings).
 * folded: the members and channels that are lowered and stand for all; NULL: all are. `ops` has only the members that
 * are lowered. like: its what, mb, stage and exchange are used. The root is member 0. The share of a member differs from channel
 * to channel, which makes no difference. */
struct collective_choice collective_lower(const struct collective_call *call, const struct folded *folded,
                                          const struct member_ops *ops, struct new_op like, struct program *program,
                                          struct dags *dags);
/* Seconds, estimated by the algorithm's own formula on this cluster, with the cheapest protocol. */
double collective_cost(const struct collective_call *call);
/* How the chosen collective's messages differ from transfers without a library; for collective_lower. */
struct tuning {
    double launch;                   /* s, before a member's first message */
    struct op_transfer inside, between;      /* transfers in a node and to another, but for their ends; buffered: the
                                                library's buffers hold several messages */
};
/* `chosen`: the call with the choice's algorithm and channels; `protocol`: the choice's. */
struct tuning collective_tuning(const struct collective_call *chosen, int protocol);
/* The most messages that it may take on one channel, for the task's ranks and nodes. */
double collective_messages(const struct collective *collective, const struct task *task);
/* order[rank of the collective] is a member of the call's group, on one of the call's channels. */
void collective_order(const struct collective_call *call, int channel, int *order);

#endif
