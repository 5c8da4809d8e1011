/* Declarations that the files of lower share. */
#ifndef DTSIM_LOWER_INTERNAL_H
#define DTSIM_LOWER_INTERNAL_H

#include "engine/event.h"
#include "lower/lower.h"
#include "schedule/resolve.h"

/* What a work waits for from a neighbouring stage and sends there: activations from the stage before to the one after,
 * or gradients the other way. */
enum arrival { ACTIVATIONS, GRADIENTS, ARRIVAL_COUNT, NO_ARRIVAL = ARRIVAL_COUNT };
/* What a work leaves on its stage for later works of the same micro-batch. */
enum result { FORWARDED, RECOMPUTED, BACKWARDED, RESULT_COUNT, NO_RESULT = RESULT_COUNT };
/* Bytes that a work takes or frees: what the forward keeps for the backward, and what a recomputation adds to it. */
enum { MEMORY_NONE, MEMORY_KEPT = 1, MEMORY_WORKING = 2, MEMORY_ALL = MEMORY_KEPT | MEMORY_WORKING };

/* Which work waits for which, and what it does with memory. */
struct work_rule {
    enum arrival waits;              /* a recomputation: as its schedule says (work_arrival) */
    enum result after;               /* RECOMPUTED: FORWARDED if the row does not recompute the micro-batch */
    enum result leaves;
    enum arrival sends;
    int slice;                       /* of a micro-batch's slices the one before (-1) or behind it (1) that has to leave its
                                      * result first; 0: none */
    int takes, frees;
    bool backward;                   /* it holds the workspace of a backward */
};
extern const struct work_rule work_rules[WORK_KIND_COUNT];

/* The operations lowered for one micro-batch on one virtual stage; NO_OP: none yet. */
struct micro_batch_state {
    struct event arrived[ARRIVAL_COUNT];
    uint32_t done[RESULT_COUNT];
    uint32_t due;                    /* the piece of the next stage's backward after which a recomputation may begin */
    struct event *moved;             /* a copy of the stage's plan: to the host, later back; NULL: none yet */
    bool recomputes;                 /* the row recomputes it */
    bool split;                      /* its backward for weights comes later */
    bool copied;                     /* its gradient has been copied to the GPU (one_communicator) */
};

/* An all-gather of weights that runs beside forwards, and its contention with their kernels. */
struct coming { struct event gathered; struct contention overlapped; };

/* A work that was lowered as one operation, and what others like it have in common with it. */
struct usual_work {
    uint32_t id;
    int gathers;                     /* boundary_gathers */
    bool there, recomputes, split;   /* there: there is such a work; of its micro-batch */
};

/* A chunk of a rank, in one replica. */
struct chunk_state {
    struct usual_work usual[WORK_KIND_COUNT];        /* the last of the kind */
    const struct exchange_cost *exchanges;           /* costs_of */
    double exchanged[EXCHANGE_COUNT], gathered;      /* B that each GPU has sent in these so far */
    struct { uint32_t *items; size_t count, capacity; } ready;   /* ids: a completion and bucket, one after another */
    uint32_t complete;               /* the operation that last completed them */
    uint32_t updated;                /* the last update */
    struct event synced;             /* the last sum of its gradients */
    struct event tied;               /* the last sum of tied gradients */
    struct event *layers;            /* with offload: optimizer, a slice: its gradients were last complete */
    struct { struct event *items; size_t count, capacity; } sums;    /* with offload: optimizer: all buckets' sums */
    struct event published;          /* the last all-gather of updated weights */
    struct coming *coming;           /* a bucket: its weights, for which the first forward waits; NULL: none come */
    bool whole;                      /* ZeRO 3: its weights are gathered, and stay so for its next work */
    struct waits awaited;            /* its next entry waits for these, in addition to its inputs (lower_replicate.c) */
    struct boundary *boundaries[2];  /* to the stage before, and to the next one: lower_send.c */
    struct reshard *reshards[2];     /* the same, where the rank there has other degrees */
};

/* A rank's lanes to its host. */
struct rank_host {
    uint32_t to, from, cpu;          /* lanes */
    /* copies of activations to the host, in order; sum: their bytes so far */
    struct outs { struct sent { struct event event; double sum; } *items; size_t count, capacity; } outs;
    const struct slice *loaded;      /* the last layer whose weights were copied from the host */
    struct event fetched;            /* and this copy */
    struct event before;             /* the operation before the last one on the compute lane */
};

/* A program rank. */
struct rank_state {
    const struct gpu_class *class;   /* its GPUs', with their stages and times */
    uint32_t compute_lane;
    uint32_t latest;                 /* the last operation on its compute lane */
    uint32_t met;                    /* the barrier before its next works, or NO_OP */
    struct contention overlapped;    /* collectives over replicas that overlap with its kernels; */
    struct contention coming;        /* of these, all-gathers that no forward has waited for yet */
    struct event sent[2];            /* the last boundary that it sent to lower ranks, and to higher ones */
    struct rank_host host;           /* if stages are computed layer by layer */
};

/* What holds for all of a lowering. */
struct rules {
    bool whole;                      /* LOWER_ITERATION */
    bool update_last, gather_last;   /* an update ends each row, and then a gather of updated weights */
    bool replicates;                 /* PyTorch's DataParallel: lower_replicate.c */
    bool zero;                       /* ZeRO 3: layers are gathered (lower_layers.c) */
    enum recompute_rule recompute;   /* the schedule's */
    int opportunistic;               /* micro-batches in flight up to which forwards overtake recomputations; 0: none */
    int steps;                       /* local steps: the number of batches in the rows */
    int micro_batches;               /* of each direction, over all batches and local steps */
    int barrier_group;               /* consecutive replicas that wait for each other before every entry; */
    int gather_group;                /* that do so before an entry that exchanges layers */
};

/* Lanes of all ranks but for those that compute and copy to hosts. */
struct transfer_lanes {
    uint32_t *next, *previous;       /* a program rank and flow: boundaries */
    uint32_t *copy;                  /* a program rank; NULL: copies by sockets do not delay others */
    uint32_t *collective;            /* a stream, program rank, flow and channel */
    int streams;                     /* streams of collectives: 2 if GROUP_SAME_SHARE has its own, else 1 */
    int channels;                    /* the most channels of a collective over replicas */
};

/* Exchanges over replicas. */
struct sums {
    struct event *summed;            /* a virtual stage: the kernels that its last sum waited for, on all members */
    struct event *untied;            /* a sum of tied gradients (tied_sums): the kernels that it last waited for */
    struct party **parties;          /* a virtual stage and kind of group: party_of */
    struct party **tied;             /* a sum of tied gradients: party_tied */
    uint32_t *flow_ids;              /* scratch, a flow of a party */
};

/* The position of a row's entry: its replica, rank and stage. */
struct place {
    int replica, rank, stage, direction;
    int prank;               /* the program rank */
    bool last;               /* it is the last virtual stage */
    const struct stage *held;            /* the stage, */
    const struct stage_times *times;     /* and its times on the GPUs that are there */
    struct micro_batch_state *state;
    struct chunk_state *chunk_state;
    double hidden;           /* share of its all-to-alls that other works' kernels hide */
    struct work work;        /* the entry */
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
    struct rules rules;
    bool **completes;                /* a pipeline rank and entry of its row: it completes its chunk's gradients */
    struct rank_state *ranks;        /* a program rank */
    struct chunk_state *chunk_states;    /* a program rank and chunk */
    struct place *first_places;      /* the same: the place of micro-batch 0 */
    struct micro_batch_state *states;    /* lowering_state */
    struct transfer_lanes lanes;
    struct sums sums;
    struct waits waits;              /* of the entry's next operation; empty between entries */
    struct places { struct place *items; size_t count, capacity; } places;   /* scratch: entries that overlap */
};

/* The number of entries that are lowered of a rank's row: those of every local step, updates between these and at the
 * end, and the gather at the end. */
static inline size_t row_entries(const struct lowering *lowering, int rank)
{
    size_t steps = (size_t)lowering->rules.steps;

    return steps * (lowering->workload->rows[rank].count + 1) - !lowering->rules.update_last + lowering->rules.gather_last;
}

/* One of them. A local step has micro-batches of its own. */
static inline struct work row_entry(const struct lowering *lowering, int rank, size_t entry)
{
    const struct row *row = &lowering->workload->rows[rank];
    size_t step = entry / (row->count + 1), at = entry % (row->count + 1);
    struct work work;

    if (entry < row->count)
        return row->items[entry];
    if (step == (size_t)lowering->rules.steps ||
        (at == row->count && step + 1 == (size_t)lowering->rules.steps && !lowering->rules.update_last))
        return (struct work){.kind = GATHER};
    if (at == row->count)
        return (struct work){.kind = UPDATE};
    work = row->items[at];
    work.mb += (int)step * plan_micro_batches(lowering->plan);
    return work;
}

/* What a work costs at a place: of the whole stage, and of one of its layers. */
static inline struct work_cost stage_cost(const struct place *here, enum work_kind kind)
{
    return (struct work_cost){here->held->work[kind], here->times->work[kind]};
}
static inline struct work_cost slice_cost(const struct place *here, const struct slice *slice, enum work_kind kind)
{
    return (struct work_cost){slice->work[kind], slice_times(here->held, here->times, slice)->work[kind]};
}

/* lower_compute.c */
/* Adds the operation of an entry, or of a piece of it, to the compute lane, after all of `lowering->waits`; empties
 * these. `op` has its memory, its exchanges before the kernels and whether it continues; all else is set here. */
uint32_t lower_compute(struct lowering *lowering, const struct place *here, struct work work,
                       const struct work_cost *cost, struct new_op *op);
/* Adds an operation after one event. */
uint32_t lower_after(struct lowering *lowering, struct new_op op, struct event after);
struct micro_batch_state *lowering_state(const struct lowering *lowering, int replica, int direction, int stage,
                                         int mb);
/* What the work waits for from a neighbouring stage. */
static inline enum arrival work_arrival(const struct lowering *lowering, const struct place *here, enum work_kind kind)
{
    enum arrival arrival = work_rules[kind].waits;
    bool early = kind == RECOMPUTE && lowering->rules.recompute == RECOMPUTE_EARLY;

    return early || (arrival == ACTIVATIONS ? here->stage == 0 : here->last) ? NO_ARRIVAL : arrival;
}
/* Whether it sends its result to a neighbouring stage, and to which. */
static inline bool work_sends(const struct place *here, enum work_kind kind, int *to)
{
    enum arrival sends = work_rules[kind].sends;

    *to = here->stage + (sends == ACTIVATIONS ? 1 : -1);
    return sends != NO_ARRIVAL && !(sends == ACTIVATIONS ? here->last : here->stage == 0);
}
/* Counts the bytes of the exchanges within a work, and of the gathers before it. */
void exchanges_count(const struct lowering *lowering, const struct place *here, const struct work_counts *counts);

/* lower_work.c */
/* Lowers an entry of a rank's row, and the entries overlapped with it. */
void lower_works(struct lowering *lowering, int replica, int rank, size_t entry);
/* `n` consecutive replicas begin an entry when the last of them has ended the entry before, because they would wait for
 * it in the work's first exchange. */
void lower_meeting(struct lowering *lowering, int first, int n, int rank, size_t entry);

/* lower_send.c */
/* Sends a boundary to the next stage, or else to the one before: a transfer for each flow of the tensor group; none if
 * both stages share a rank. What the stage there waits for has the end as its `arrived`. */
void lower_send(struct lowering *lowering, const struct place *from, bool next, int mb, uint32_t after);
/* The gathers before an entry's kernels: of a boundary that came in shares from another rank, and before a backward of
 * the stage's own output, if it kept a share only. */
int boundary_gathers(const struct lowering *lowering, const struct place *here, struct work work);
/* An operation that begins with so many of them. */
struct new_op received(const struct place *here, int gathers);
/* Copies a boundary that arrived from another rank to the entry's GPU, before the entry, or before its recomputation if
 * this waits for the boundary too. The entry waits for the copy. */
void lower_arrival(struct lowering *lowering, const struct place *here, struct work work);

/* lower_update.c */
/* Lowers a rank's update. */
void lower_update(struct lowering *lowering, int replica, int rank);
/* Under LOWER_COMPUTE: at an update, the ranks that share a stage wait for each other's backwards, as for a sum. */
void lower_join(struct lowering *lowering, int stage);
/* Lowers the exchange of a stage's updated weights (WEIGHTS_UPDATED). */
void lower_gather(struct lowering *lowering, int stage);
/* Ends a rank's update when it has all its weights. */
void lower_renewal(struct lowering *lowering, int replica, int rank);
/* Lowers the gathers of weights that run beside the first forwards (WEIGHTS_NEXT), before any entry. */
void gather_ahead(struct lowering *lowering);
/* A chunk's first forward. It is cut where it needs weights that come later than those before them. */
uint32_t first_forward(struct lowering *lowering, const struct place *here, struct work work, struct new_op op);
/* Lets the next operation wait for all of a chunk's weights. */
void wait_for_weights(struct lowering *lowering, const struct place *here);

/* lower_layers.c: entries computed layer by layer, because the stage has a plan or under ZeRO 3. */
/* Whether a work of the chunk exchanges layers under ZeRO 3; not once all its weights stay for the iteration. */
static inline bool zero_by_layers(const struct lowering *lowering, const struct chunk_state *chunk_state)
{
    const struct recipe *recipe = &lowering->scenario->recipe;
    bool stay = chunk_state->whole && recipe->weights.stay_forward && recipe->weights.stay_backward;

    return lowering->rules.zero && !stay;
}
/* Under ZeRO 3: collectives do not overlap with kernels. */
static inline bool zero_in_turn(const struct lowering *lowering)
{
    return lowering->rules.zero && lowering->scenario->recipe.in_turn;
}
void make_host_lanes(struct lowering *lowering);
uint32_t layers_work(struct lowering *lowering, struct place here, struct work work, bool completes, struct new_op op);
/* The first GPU of a rank and its node, whose host copies and updates for the rank. */
struct seat host_seat(const struct lowering *lowering, int prank);
/* Adds a copy to or from the host; `op` has its micro-batch and stage, and the memory that it takes or frees.
 * `latency`: it has the link's latency, as one that does not directly follow another one. */
struct event host_copy(struct lowering *lowering, bool to_host, double bytes, int prank, struct new_op op,
                       struct event after);
struct event host_copy_of(struct lowering *lowering, bool to_host, double bytes, bool latency, int prank,
                          struct new_op op, struct event after);
/* Notes a copy of activations to the host. The copy after whose end the later ones leave the room; empty: they do. */
void host_sends(struct lowering *lowering, struct rank_host *host, struct event event, double bytes);
struct room;
struct event host_drained(const struct rank_host *host, const struct room *room);

/* lower_replicate.c: PyTorch's DataParallel. */
/* Lowers the exchanges before an entry of the rows. */
void replicate_before(struct lowering *lowering, size_t entry);
/* The cost of an entry without the loss, which GPU 0 computes for all; the memory of its weights, output, gradients. */
struct work_cost replicated_work(struct place here, struct work work);
void replicated_memory(const struct lowering *lowering, struct place here, struct work work, struct new_op *op);

/* The same micro-batch on the next stage (1) or the one before (-1). */
static inline struct micro_batch_state *on_neighbour(const struct lowering *lowering, const struct place *here,
                                                     int step)
{
    return here->state + step * (ptrdiff_t)lowering->rules.micro_batches;
}

static inline struct chunk_state *chunk_state_of(const struct lowering *lowering, int program_rank, int chunk)
{
    return &lowering->chunk_states[program_rank * lowering->plan->chunks + chunk];
}

static inline int program_rank(const struct lowering *lowering, int replica, int rank)
{
    return replica * lowering->plan->stages + rank;
}

/* The place of an entry. */
static inline struct place lowering_place(const struct lowering *lowering, int replica, int rank, struct work work)
{
    struct place place =
        lowering->first_places[program_rank(lowering, replica, rank) * lowering->plan->chunks + work.chunk];

    if (lowering->plan->slices > 1) {
        struct token_slice own = class_slice(lowering->plan, lowering->ranks[place.prank].class, work.mb);

        place.held = &own.stages[place.stage];
        place.times = &own.times[place.stage];
    }
    place.state += work.mb;
    place.work = work;
    return place;
}

/* script.c: labels, and the steps that wait for them. */
enum label_kind {
    LABEL_ACTIVATION = ACTIVATIONS,  /* for a stage's forward of a micro-batch */
    LABEL_GRADIENT = GRADIENTS,      /* for its backward */
    LABEL_COMPLETE,                  /* the gradients of a stage on all ranks that hold it, for a sum of them */
    LABEL_COPY,                      /* the gradients of one copy of tied weights (as `stage`) in a replica, */
    LABEL_COPIES,                    /* and of both copies */
    LABEL_UPDATED,                   /* a stage's weights on all ranks that hold it */
    LABEL_MET,                       /* replicas from this one on have come to an entry of a rank (as `stage`) */
    LABEL_ALL,                       /* all replicas have come to an entry */
    LABEL_KIND_COUNT
};
/* Something that steps wait for. `number`: a micro-batch, a sum, an update or an entry of a row, as its kind says. */
struct label { enum label_kind kind; int replica, direction, stage, number; };
/* The labels of a kind, numbered one after another from `first` on. */
struct label_block { uint32_t first, replicas, directions, stages, numbers; };
struct labels { struct label_block blocks[LABEL_KIND_COUNT]; uint32_t count; };

/* The steps that rows consist of. */
enum step_kind {
    STEP_WORKS,              /* works, from entry `at` on; works that overlap are one step */
    STEP_ARRIVE,             /* the row comes to entry `at`, for which others wait */
    STEP_MEET,               /* `number` replicas wait for each other before entry `at` */
    STEP_HAND_ROUND,         /* DataParallel's exchanges before entry `at` */
    STEP_SUM,                /* sum `number` of the gradients of stage `at` */
    STEP_JOIN,               /* in a figure: ranks that share stage `at` wait for each other */
    STEP_TIE,                /* a sum of tied gradients in replica `number` */
    STEP_UPDATE,             /* an update of the rank */
    STEP_GATHER,             /* an exchange of the updated weights of stage `at` */
    STEP_RENEW,              /* the end of the rank's update, with these weights */
    STEP_COUNT
};
extern const char *const step_names[];
/* Writes the steps of all rows; script_release when done. Returns what their labels stand for, in the arena. */
const struct labels *script_write(struct lowering *lowering, struct script *script);
/* lower_text.c, of what the passes have found. The entries of the rows of one replica: */
void rows_print(const struct lowering *lowering, FILE *out);
/* A label in words: "activations of micro-batch 3 for stage 5". */
void label_print(const struct labels *labels, uint32_t number, FILE *out);
/* A line a step: `count` steps in an order, or NULL: row by row. */
void script_print(const struct lowering *lowering, const struct script *script, const struct labels *labels,
                  const struct step *const *order, size_t count, FILE *out);

#endif
