/* What the files of lower share: lower.c and those named below. */
#ifndef DTSIM_LOWER_INTERNAL_H
#define DTSIM_LOWER_INTERNAL_H

#include "stage/compression.h"
#include "hardware/contention.h"
#include "engine/event.h"
#include "lower/lower.h"

/* The gradients of a virtual stage that are all-reduced together, in the order in which they become ready. */
struct bucket {
    struct compressed sum;   /* the exchanges that sum them */
    double values;           /* how many there are */
    size_t slice;            /* of the stage's backward that completes it */
    struct contention overlapped;    /* its sum, for kernels that run beside it; nothing where none do */
    enum parameter_class class;      /* of its gradients */
};
struct buckets { struct bucket *items; size_t count, capacity; };

/* What an exchange within a work costs: seconds beside those of kernels, bytes that each GPU sends, and which share of
 * the multiprocessors it would keep from kernels beside it. The bytes go as those of the measured collective `index` of
 * the group whose first GPU is `first` (measure_carry). */
struct exchange_cost {
    double seconds, bytes_sent, share;
    int index, first;
};

/* What has been lowered of one micro-batch on one virtual stage; NO_OP: nothing yet. */
struct micro_batch_state {
    struct event activation, gradient;       /* the arrival of what its forward and its backward wait for */
    uint32_t forwarded, recomputed, backwarded;
    uint32_t due;                    /* the piece of the next stage's backward after which a recomputation may begin */
    bool recomputes;                 /* the row recomputes it */
    struct event *moved;             /* a layer: the copy of its activations to the host; NULL: none has gone */
    bool split;                      /* its backward for the weights comes later */
    bool copied;                     /* its gradient has been copied to the GPU (one_communicator) */
};

/* A chunk of a rank, in one replica. */
struct chunk_state {
    struct exchange_cost exchanges[EXCHANGE_COUNT];
    struct exchange_cost gather;     /* all-gather of as many bytes as an EXCHANGE_TENSOR */
    double exchanged[EXCHANGE_COUNT], gathered;      /* B that each GPU has sent in these so far */
    struct { uint32_t *items; size_t count, capacity; } ready;   /* ids: a completion and bucket, one after another */
    int completed;                   /* how often its gradients have been complete */
    uint32_t complete;               /* the id after which they last were */
    uint32_t updated;                /* the last update */
    struct event synced;             /* the last sum of its gradients, and of tied ones */
    struct event tied;
    struct event *layers;            /* a slice: its gradients were last complete; offload: optimizer */
    struct { struct event *items; size_t count, capacity; } sums;    /* and the sums of all buckets so far */
    struct event published;          /* the last all-gather of updated weights */
    struct waits awaited;            /* by its next entry, beside its own inputs (lower_replicate.c) */
};

/* A rank's lanes to its host. */
struct rank_host {
    uint32_t to, from, cpu;          /* lanes */
    struct event out[2];             /* the last two copies of activations to the host */
    const struct slice *loaded;      /* the layer whose weights came last, by `fetched` */
    struct event fetched;
    struct event before;             /* the operation before the last one on the compute lane */
};

/* Where replicas begin a work together: the entry of their rows, and the operation that ends when all are there. */
struct barrier { size_t entry; uint32_t id; };

struct lowering {
    const struct workload *workload;
    const struct scenario *scenario; /* the workload's, */
    const struct plan *plan;         /* with its plan */
    const struct stage *stages;      /* and its virtual stages */
    struct measure *measure;
    struct lowered *out;
    struct program *program;
    struct error *err;
    struct arena arena;              /* everything below */
    struct row *rows;                /* a pipeline rank: the workload's, with local steps, updates and gathers */
    bool **completes;                /* a pipeline rank and entry of its row: it completes its chunk's gradients */
    struct buckets *buckets;         /* a virtual stage; empty without data parallelism */
    int *syncs, *gathers;            /* a virtual stage: of all its gradients, and of its weights, so far */
    struct event *summed;            /* a virtual stage: what its chunks had computed when the last sum could begin */
    int *ties;                       /* a replica: sums of tied gradients so far */
    struct members **members;        /* a virtual stage and kind of group: members_of */
    struct members **tied;           /* a replica: members_tied */
    struct event *untied;            /* a replica: the same of the last of them, on the first and the last stage */
    struct micro_batch_state *states; /* lowering_state */
    struct chunk_state *chunk_states; /* a program rank and chunk */
    size_t *cursor;                  /* a program rank: the next entry of its row */
    size_t prepared;                 /* entries of the rows whose exchanges have been lowered (lower_replicate.c) */
    int *updates;                    /* a program rank: so far */
    uint32_t *compute_lane;          /* a program rank */
    struct contention *overlapped;   /* a program rank: collectives over replicas that run beside its kernels */
    uint32_t *latest;                /* a program rank: its last operation on that lane */
    uint32_t *next_lane, *previous_lane;     /* a program rank and flow */
    uint32_t *copy_lane;             /* a program rank; NULL: what sockets copy holds nothing up */
    struct rank_host *hosts;         /* a program rank; NULL: nothing is computed layer by layer */
    struct event *sent;              /* [2 program ranks + up]: the boundaries that a rank sent last */
    int channels;                    /* of gradient all-reduces */
    int lockstep;                    /* replicas, one after another, that exchange within their works */
    int barrier_group;               /* and that have to be kept in step: who is late holds up all */
    struct barrier *barriers;        /* a program rank, of the first of these replicas: the last one */
    int streams;                     /* of collectives: 2 where those with the same share have one of their own */
    uint32_t *collective_lane;       /* a stream, program rank, flow and channel */
    uint32_t *flow_ids;              /* scratch, a flow */
    struct waits waits;              /* of the next operation of the entry that is lowered; empty between entries */
    int steps;                       /* local, one after another: the rows hold so many batches */
    bool whole;                      /* the iteration, not the compute alone */
    int opportunistic;               /* in flight up to which forwards go before recomputations; 0: none do */
    bool failed;
};

/* Where an entry of a row stands. */
struct place {
    int replica, rank, stage, direction;
    struct micro_batch_state *state;
    struct chunk_state *chunk_state;
    double hidden;           /* share of its all-to-alls that costs nothing beside other works' kernels */
};

/* lower_work.c */
/* The operation of one entry, or of one piece of it, on the compute lane, after all of `lowering->waits`, which is
 * empty then. */
uint32_t lower_compute(struct lowering *lowering, struct place here, struct work work, struct stage_work cost,
                       struct op op);
/* Kernels that prepare what is exchanged, or take it apart, on a rank's compute lane. */
uint32_t lower_pack(struct lowering *lowering, int program_rank, int stage, double seconds, struct event after);
/* An operation after one event. */
uint32_t lower_after(struct lowering *lowering, struct op op, struct event after);
struct micro_batch_state *lowering_state(const struct lowering *lowering, int replica, int direction, int stage,
                                         int mb);
struct place lowering_place(const struct lowering *lowering, int replica, int rank, struct work work);
/* Lowers the next entry of a rank's row, with those that it overlaps with, if all they wait for has been lowered. */
bool lower_entry(struct lowering *lowering, int replica, int rank);

/* lower_send.c */
/* The boundary to another stage: nothing when they share a rank, else a transfer for each flow of the tensor group. */
struct event lower_send(struct lowering *lowering, struct place from, int to, int mb, uint32_t after);
/* What arrived for an entry from another rank is copied to its GPU before the entry, or before its recomputation where
 * that waits for it too: the entry waits for that. */
void lower_arrival(struct lowering *lowering, struct place here, struct work work);

/* lower_members.c */
/* A collective of so many bytes; what it is for. */
struct emission { const struct collective *collective; enum op_what what; double bytes; };
/* A group and those that share links with it: their GPUs, group by group and flow by flow. */
struct siblings { int groups, *gpus; };
/* All that hold a virtual stage: a rank in every replica, or those that share it, in both directions. They stand in
 * groups of equal size, those of a group next to each other: a process group of replicas with all their
 * chunk_states. */
struct members {
    enum group_kind kind;
    int stage, all, here;    /* members in the cluster, and in the program (fewer where one replica stands for all) */
    int size, channels;      /* members of each group; rings of its collectives at once */
    int *gpus;               /* [tensor index * all + member] */
    int *ranks;              /* a member: its program rank, */
    struct chunk_state **chunk_states; /* and its chunk there */
    int *first;              /* a replica: the first member of its group */
    struct event *after;     /* a member of the program: its next exchange begins after that; */
    struct event *done;      /* its last exchange has ended; nothing where it had none */
    int exchanged;           /* exchanges so far, message by message */
    struct siblings *siblings;       /* a group */
    uint32_t *lanes, *ready, *ends;  /* scratch: [member * channels + channel], a member, [flow * all + member] */
};
/* Found out once for each kind of group and stage. */
struct members *members_of(struct lowering *lowering, enum group_kind kind, int stage);
/* The two that hold the copies of tied weights in a replica. */
struct members *members_tied(struct lowering *lowering, int replica);
/* What an exchange takes the group whose first member that is, while those that share links with it do the same. */
int members_measure(struct lowering *lowering, struct members *members, int first, const struct emission *exchange,
                    struct measured *measured);

/* lower_exchange.c */
/* All groups of the members at once, each member after its `after`, until its `done`. Nothing where a group is one, or
 * there are no bytes. */
int exchange_all(struct lowering *lowering, struct members *members, struct emission exchange);
/* A replica for itself, as others do alike: measured, on its stream, beside its kernels. */
struct event exchange_alone(struct lowering *lowering, struct place here, enum group_kind kind,
                            struct emission exchange, struct event after);
/* The gather of a layer's weights; nothing where there are none to gather. */
struct event gather_layer(struct lowering *lowering, struct place here, const struct slice *layer, struct event after);
/* A layer's gradients are scattered; with the iteration's last ones each share of their sum is summed on over those
 * that hold it. Returns the last sum, or `after` where there are none. */
struct event scatter_layer(struct lowering *lowering, struct place here, const struct slice *layer, bool last,
                           struct event after);
/* What it takes the group of a replica; it is added to what runs beside kernels. Nothing where the group is one. */
int exchange_overlapped(struct lowering *lowering, enum group_kind kind, int stage, int replica,
                        struct emission exchange, struct measured *measured, struct contention *beside);
/* Remembers, for the result, that this all-reduce was used. */
void lowering_use(struct lowering *lowering, const struct collective *used, int protocol);
void make_collective_lanes(struct lowering *lowering);
uint32_t collective_lane(const struct lowering *lowering, enum group_kind kind, int program_rank, int flow,
                         int channel);

/* lower_buckets.c */
void buckets_build(struct lowering *lowering);
/* A rank's gradients of the bucket are ready after that operation. */
void bucket_ready(struct lowering *lowering, struct place here, const struct bucket *bucket, uint32_t id);

/* lower_sync.c */
/* The sums of gradients that the so-many-th update of a rank waits for, if it is the first to need them; false while
 * some of these gradients have not been lowered. */
bool sync_gradients(struct lowering *lowering, int replica, int rank, int updates);
/* Whether a pipeline rank holds one of the two copies of tied weights. */
bool tied_rank(const struct lowering *lowering, int rank);

/* lower_update.c */
/* The update of a rank, with the sums it needs; false while these cannot be lowered. */
bool lower_update(struct lowering *lowering, int replica, int rank);
/* Where the compute alone is lowered: ranks that share a stage wait at an update until all of them have done their
 * backwards, as there is a sum to be made. */
bool lower_barrier(struct lowering *lowering, int rank);
/* Where weights come after the update of all replicas: these exchanges. */
bool lower_gather(struct lowering *lowering, int replica, int rank);

/* lower_layers.c: an entry computed layer by layer: of a stage with a plan, or under ZeRO 3. */
bool zero_applies(const struct lowering *lowering);
bool zero_in_turn(const struct lowering *lowering);       /* no collective beside computation */
void make_host_lanes(struct lowering *lowering);
uint32_t layers_work(struct lowering *lowering, struct place here, struct work work, bool completes, struct op op);
/* A copy to or from the host; `op` says whose it is and what memory it takes or frees. */
struct event host_copy(struct lowering *lowering, bool to_host, double bytes, int prank, struct op op,
                       struct event after);

/* lower_replicate.c: DataParallel. Lowers what is exchanged before the next entry of the rows; false while some replica
 * has not come to it. */
bool replicates(const struct lowering *lowering);
bool replicate_before(struct lowering *lowering, int replica);
/* What an entry costs without the loss, which GPU 0 computes for all; and the memory of what was handed to it. */
struct stage_work replicated_work(const struct lowering *lowering, struct work work);
void replicated_memory(const struct lowering *lowering, struct place here, struct work work, struct op *op);

/* lower_group.c: what each rank exchanges within its works, measured. */
int exchange_costs(struct lowering *lowering);
/* Adds to a work's operation the communication that comes with its kernels. */
void exchange_within(struct lowering *lowering, struct place here, const struct stage_work *cost, struct op *op);
/* Counts, for links, the bytes of all these exchanges, when all works have been lowered. */
void exchanges_carry(struct lowering *lowering);
/* How many members of a group of n one rank stands for, which has `own` of them: all where replicas are folded. */
static inline int stood_for(const struct lowering *lowering, int own, int n)
{
    return lowering->out->folded ? n : own;
}

/* lower_tensor.c: how many flows stand for a tensor group; whether all replicas are alike, so that one stands for
 * all; whether sums over replicas, on links that they share, meet nothing but one another, so that measured they take
 * what their messages would. */
int tensor_flows(const struct scenario *scenario);
bool private_links(const struct cluster *cluster);
bool sums_alone(const struct scenario *scenario);
bool replicas_alike(const struct scenario *scenario);

/* What stages hand to an entry: the activations, or their gradient. */
static inline struct event *arrival_of(struct micro_batch_state *state, enum work_kind kind)
{
    return kind == FORWARD ? &state->activation : &state->gradient;
}

static inline struct chunk_state *chunk_state_of(const struct lowering *lowering, int program_rank, int chunk)
{
    return &lowering->chunk_states[program_rank * lowering->plan->chunks + chunk];
}

static inline int program_rank(const struct lowering *lowering, int replica, int rank)
{
    return replica * lowering->plan->stages + rank;
}

#endif
