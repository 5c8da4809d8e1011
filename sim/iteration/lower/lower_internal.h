/* Declarations that the files of lower share. */
#ifndef DTSIM_LOWER_INTERNAL_H
#define DTSIM_LOWER_INTERNAL_H

#include "engine/event.h"
#include "lower/lower.h"
#include "lower/script.h"

/* The operations lowered for one micro-batch on one virtual stage; NO_OP: none yet. */
struct micro_batch_state {
    struct event arrived[ARRIVAL_COUNT];     /* the tensors from a neighbouring stage are there */
    uint32_t done[RESULT_COUNT];             /* the work that left the result */
    uint32_t due;                    /* the piece of the next stage's backward after which a recomputation may begin */
    struct event *moved;             /* a copy of the stage's plan: its way to the host, later its way back */
    bool copied;                     /* its gradient has been copied to the GPU (one_communicator) */
};

/* An all-gather of weights that overlaps with forwards, and its contention with their kernels. */
struct coming { struct event gathered; struct contention overlapped; };

/* A work that was lowered as one operation. An equal work with the same values here repeats it (program_repeat). */
struct usual_work {
    uint32_t id;
    double gathers;                  /* boundary_gathers */
    int marks;                       /* of its entry: ENTRY_RECOMPUTED, ENTRY_SPLIT */
    bool known;                      /* false: no work was lowered so */
};

/* A chunk of a rank, in one replica. */
struct chunk_state {
    struct usual_work usual[WORK_KIND_COUNT];        /* the last of the kind */
    const struct exchange_cost *exchanges;           /* costs_of */
    double exchanged[EXCHANGES_MAX];     /* B that each GPU has sent so far in the exchanges within works, and in
                                            EXCHANGE_GATHER before works */
    /* the operations after which buckets are ready: all buckets, each time that a work completes the gradients */
    struct { uint32_t *items; size_t count, capacity; } ready;
    uint32_t complete;               /* the operation that last completed the chunk's gradients */
    uint32_t updated;                /* the last update */
    struct event synced;             /* the last sum of its gradients */
    struct event tied;               /* the last sum of tied gradients */
    struct event *layers;            /* with offload: optimizer; a slice: when its gradients were last complete */
    struct { struct event *items; size_t count, capacity; } sums;    /* with offload: optimizer: of buckets, so far */
    struct event published;          /* the last all-gather of updated weights */
    struct coming *coming;           /* a bucket: its weights, for which the first forward waits; NULL: none come */
    bool weights_stay;               /* ZeRO 3: its gathered weights stay for its next work, which gathers none */
    struct waits awaited;            /* its next entry waits for these, in addition to its inputs (lower_replicate.c) */
    struct boundary *boundaries[2];  /* to the stage before, and to the next one: lower_send.c */
    struct reshard *reshards[2];     /* the same, where the rank there has other degrees */
};

/* A rank's lanes to its host. */
struct rank_host {
    uint32_t to, from, cpu;          /* lanes */
    /* copies of activations to the host, in order; sum: B of these copies up to and including this one */
    struct copies_out { struct copy_out { struct event event; double sum; } *items; size_t count, capacity; } out;
    const struct slice *loaded;      /* the last layer whose weights were copied from the host */
    struct event fetched;            /* the end of this copy */
    struct event before;             /* the operation before the last one on the compute lane */
};

/* A program rank. */
struct rank_state {
    const struct gpu_class *class;   /* its GPUs', with their stages and times */
    uint32_t compute_lane;
    uint32_t latest;                 /* the last operation on its compute lane */
    uint32_t met;                    /* the barrier before its next works, or NO_OP */
    struct contention overlapped;    /* collectives over replicas that overlap with its kernels */
    struct contention coming;        /* among these the all-gathers that no forward has waited for yet */
    struct event sent[2];            /* the last boundary that it sent to lower ranks, and to higher ones */
    struct rank_host host;           /* if stages are computed layer by layer */
};

/* Lanes of all ranks, except the compute lanes and the lanes of copies to hosts. */
struct transfer_lanes {
    uint32_t *send[2];               /* a program rank and flow: boundaries to lower ranks, and to higher ones */
    uint32_t *copy;                  /* a program rank; NULL: copies by sockets do not delay others */
    uint32_t *collective;            /* a stream, program rank, flow and lane of a collective */
    int streams;                     /* streams of collectives: 2 if GROUP_SAME_SHARE has its own, else 1 */
    int each;                        /* the most lanes that a collective over replicas needs */
};

/* Parameters whose gradients go to the host together and are updated there together: a bucket's, or those of a layer that
 * are in no bucket. */
struct portion { double parameters; size_t index; /* of the bucket or slice */ bool bucket; };
struct portions { struct portion *items; size_t count; };

/* Exchanges over replicas. */
struct sums {
    struct event *computed;          /* a virtual stage: the kernels that its last sum waited for, on all members */
    struct event *tied_computed;     /* a sum of tied gradients (tied_sums): the kernels that it last waited for */
    struct party **parties;          /* a virtual stage and kind of group: party_of */
    struct party **tied;             /* a sum of tied gradients: party_tied */
    uint32_t *flow_ids;              /* scratch, a flow of a party */
};

/* The position of a row's entry: its replica, rank and stage. */
struct place {
    int replica, rank, stage, direction;
    int prank;               /* the program rank */
    const struct stage *held;            /* the stage, for a slice of tokens with its bytes and FLOP of that slice */
    const struct stage_times *times;     /* its times on the rank's GPUs */
    struct micro_batch_state *state;
    struct chunk_state *chunk_state;
    double hidden;           /* share of its all-to-alls that other works' kernels hide */
    struct work work;        /* the entry */
    int marks;               /* the entry's marks (rows.h) */
};

struct lowering {
    const struct workload *workload; /* its stages: of parameters and all else that does not depend on a GPU's samples */
    const struct scenario *scenario; /* the workload's, */
    const struct plan *plan;         /* and its plan */
    struct measure *measure;
    struct lowered *out;
    struct program *program;         /* out's */
    struct error *err;
    struct arena arena;              /* holds everything below */
    struct exchanges exchanges;      /* what is exchanged, and what it costs */
    struct rows rows;                /* what is computed */
    struct rank_state *ranks;        /* a program rank */
    struct chunk_state *chunk_states;    /* a program rank and chunk */
    struct place *first_places;      /* the same: the place of micro-batch 0 */
    struct micro_batch_state *states;    /* micro_batch_state_of */
    struct transfer_lanes lanes;
    struct sums sums;
    struct portions *hosted;         /* a virtual stage: what its host updates (hosts_find); NULL: hosts have nothing */
    struct waits waits;              /* of the entry's next operation; empty between entries */
    struct places { struct place *items; size_t count, capacity; } places;   /* scratch: entries that overlap */
};

/* The cost of a work at a place: of the whole stage, and of one of its layers. */
static inline struct work_cost stage_cost(const struct place *here, enum work_kind kind)
{
    return (struct work_cost){here->held->work[kind], here->times->work[kind]};
}
static inline struct work_cost slice_cost(const struct place *here, const struct slice *slice, enum work_kind kind)
{
    return (struct work_cost){*slice->work[kind], *slice_times(here->held, here->times, slice)->work[kind]};
}

/* lower_compute.c */
/* Adds the operation of an entry, or of a piece of it, to the compute lane. It waits for all of `lowering->waits`,
 * which is empty afterwards. The caller sets in `op` its memory, its exchanges before the kernels and whether it
 * continues; all else is set here. `kind`: the entry's, or RECOMPUTE in a backward that recomputes. */
uint32_t lower_compute(struct lowering *lowering, const struct place *here, enum work_kind kind,
                       const struct work_cost *cost, struct new_op *op);
/* Adds an operation that waits for one event; or for all waits of a list, which it releases. */
uint32_t lower_after(struct lowering *lowering, struct new_op op, struct event after);
uint32_t lower_after_all(struct lowering *lowering, struct new_op op, struct waits *all);
/* Adds the bytes of the exchanges within a work, and of its hidden gathers, to the chunk's. */
void count_exchanges(const struct lowering *lowering, const struct place *here, const struct work_counts *counts);
/* Sets `hidden` of all `lowering->places`. */
void hide_dispatches(struct lowering *lowering);
/* Adds the exchanges within the work to its operation, and sets the operation's seconds. */
void set_duration(const struct lowering *lowering, const struct place *here, const struct work_cost *cost,
                  struct new_op *op);

/* lower_work.c */
/* Lowers an entry of a rank's row, and the entries overlapped with it. */
void lower_works(struct lowering *lowering, int replica, int rank, size_t entry);
/* For people: how long the first work of each kind takes in each chunk. */
void durations_print(struct lowering *lowering, FILE *out);
/* `n` consecutive replicas begin an entry when the last of them has ended the entry before, because they would wait for
 * it in the work's first exchange. */
void lower_meeting(struct lowering *lowering, int first, int n, int rank, size_t entry);

/* lower_send.c */
/* Makes a rank's lanes of boundaries. */
void make_send_lanes(struct lowering *lowering, int prank);
/* Sends a boundary to the next stage, or to the previous one: a transfer for each flow of the tensor group, and none if
 * both stages share a rank. Sets the end as `arrived` of the state that the receiving stage waits for. */
void lower_send(struct lowering *lowering, const struct place *from, bool next, uint32_t after);
/* The number of all-gathers before an entry's kernels: one of a boundary that came in shares from another rank, and
 * before a backward one of the stage's output, if the stage kept a share of it. */
double boundary_gathers(const struct lowering *lowering, const struct place *here);
/* An operation that begins with that number of gathers. */
struct new_op op_with_gathers(const struct place *here, double gathers);
/* Copies a boundary that arrived from another rank to the entry's GPU, before the entry, or before its recomputation if
 * this waits for the boundary too. The entry waits for the copy. */
void lower_arrival(struct lowering *lowering, const struct place *here);

/* lower_sync.c */
/* Lowers a chunk's last backward in pieces: cut where gradient buckets become ready, so that their sums overlap with
 * the rest, and with `in_time` also where the stage before begins to recompute. Returns the last piece. */
uint32_t sliced_backward(struct lowering *lowering, const struct place *here, bool in_time, struct new_op op);
/* Lowers a backward in two pieces, cut where the stage before begins to recompute just in time. Returns the second. */
uint32_t timed_backward(struct lowering *lowering, const struct place *here, struct new_op op);
/* Adds kernels that pack or unpack an exchange's tensors to a rank's compute lane, after `after`. Returns them. */
uint32_t lower_pack(struct lowering *lowering, int program_rank, int stage, double seconds, struct event after);
/* Notes that a rank's gradients of the bucket are ready after operation `id`. */
void bucket_ready(struct lowering *lowering, const struct place *here, const struct bucket *bucket, uint32_t id);
/* Lowers one of the sums of a stage's gradients over the replicas, numbered from 0. */
void lower_sum(struct lowering *lowering, int stage, int number);
/* Lowers one of the tied_sums, of the gradients of both copies of tied weights, where these are on different ranks. */
void lower_tie(struct lowering *lowering, int number);

/* lower_update.c */
/* Lowers a rank's update. */
void lower_update(struct lowering *lowering, int replica, int rank);
/* Under LOWER_COMPUTE, at an update: ranks that share a stage wait for each other's backwards, as for a sum. */
void lower_join(struct lowering *lowering, int stage);
/* Lowers the exchange of a stage's updated weights (WEIGHTS_UPDATED). */
void lower_gather(struct lowering *lowering, int stage);
/* Ends a rank's update when it has all its weights. */
void lower_renewal(struct lowering *lowering, int replica, int rank);
/* Lowers the gathers of weights that overlap with the first forwards (WEIGHTS_NEXT), before any entry. */
void gather_ahead(struct lowering *lowering);
/* Lowers a chunk's first forward in pieces, each of which waits for the gather of its weights. Returns the last one. */
uint32_t first_forward(struct lowering *lowering, const struct place *here, struct new_op op);
/* Lets the next operation wait for all of a chunk's weights. */
void wait_for_weights(struct lowering *lowering, const struct place *here);

/* lower_layers.c: lowers an entry layer by layer: its stage has a plan, or ZeRO 3. Returns its kernels' last
 * operation. */
uint32_t layers_work(struct lowering *lowering, const struct place *here, struct new_op op);

/* lower_zero.c: the exchanges of ZeRO 3. */
/* Whether collectives do not overlap with kernels. */
static inline bool zero_in_turn(const struct lowering *lowering)
{
    return lowering->rows.zero && lowering->scenario->recipe.in_turn;
}
/* Gathers a layer's weights; empty if there are none to gather. */
struct event gather_layer(struct lowering *lowering, const struct place *here, const struct slice *layer, struct event after);
/* Reduce-scatters a layer's gradients. If these are the iteration's last ones, it then sums each share over the
 * replicas that hold it. Returns the last sum, or `after` if there is none. */
struct event scatter_layer(struct lowering *lowering, const struct place *here, const struct slice *layer, struct event after);
/* Lowers a work tensor by tensor; `fused`: layers are recomputed right before their backward. Returns its last
 * operation. */
uint32_t tensors_work(struct lowering *lowering, const struct place *here, bool fused, struct new_op op);

/* lower_host.c */
/* Makes lanes to hosts, and finds the portions of parameters that these update. */
void hosts_find(struct lowering *lowering);
/* For people: copies between GPUs and hosts, and updates of hosts, by stage. */
void hosts_print(const struct lowering *lowering, FILE *out);
/* Adds a copy to or from the host, and returns its end. The caller sets in `op` the micro-batch, the stage and the
 * memory that it takes or frees. `latency`: the copy pays the link's latency, because it does not directly follow
 * another one. */
struct event host_copy(struct lowering *lowering, bool to_host, double bytes, bool latency, int prank, struct new_op op,
                       struct event after);
/* Notes a copy of activations to the host, for host_drained. */
void host_note_copy(struct lowering *lowering, struct rank_host *host, struct event event, double bytes);
struct room;
/* The copy after whose end the copies to the host that are still under way hold no more than `room`; empty: they do
 * so. */
struct event host_drained(const struct rank_host *host, const struct room *room);
/* Lowers the host's update of a rank. Adds to `waits` the events after which the weights are updated. */
void host_update(struct lowering *lowering, int prank, struct waits *waits);
/* Copies a rank's updated weights to the host, with offload: weights. */
void host_store_weights(struct lowering *lowering, int prank, struct event after);

/* lower_replicate.c: PyTorch's DataParallel. */
/* Lowers the exchanges before an entry of the rows. */
void replicate_before(struct lowering *lowering, size_t entry);
/* Lowers an entry without the loss, which GPU 0 computes for all; it takes or frees a replica's weights and output,
 * too. */
uint32_t replicated_work(struct lowering *lowering, const struct place *here, struct new_op op);

static inline struct micro_batch_state *
micro_batch_state_of(const struct lowering *lowering, int replica, int direction, int stage, int mb)
{
    const struct plan *plan = lowering->plan;
    size_t at = (size_t)replica * (size_t)plan_directions(plan) + (size_t)direction;

    at = at * (size_t)plan_virtual_stages(plan) + (size_t)stage;
    return lowering->states + at * (size_t)lowering->rows.micro_batches + (size_t)mb;
}

/* The same micro-batch on the next stage (1) or the previous one (-1). */
static inline struct micro_batch_state *on_neighbour(const struct lowering *lowering, const struct place *here,
                                                     int step)
{
    return here->state + step * (ptrdiff_t)lowering->rows.micro_batches;
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
