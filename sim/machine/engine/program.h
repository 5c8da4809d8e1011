/* program: a scenario's work as operations in lanes. A lane is a CUDA stream of one rank: its operations run in the
 * order in which they were added, unless the lane has choices. An operation also waits for its dependencies. These are
 * earlier operations, so the order of ids is a topological order of all operations. */
#ifndef DTSIM_PROGRAM_H
#define DTSIM_PROGRAM_H

#include "base/base.h"

enum op_kind {
    OP_COMPUTE,      /* takes `amount` seconds on its lane */
    OP_TRANSFER,     /* moves `amount` bytes from GPU src to dst; keeps the sender's lane until the last byte arrived
                      * (or left: buffered) */
};

/* The purpose of an operation, in charts, spans and metrics. */
enum op_what {
    WHAT_FORWARD, WHAT_BACKWARD, WHAT_BACKWARD_INPUT, WHAT_BACKWARD_WEIGHT, WHAT_RECOMPUTE,
    WHAT_PACK,           /* kernels that pack or unpack tensors for an exchange */
    WHAT_UPDATE,         /* the last kind that computes */
    WHAT_ACTIVATION,     /* a boundary's activations to the next stage */
    WHAT_GRADIENT,       /* a boundary's gradients to the previous stage */
    WHAT_SYNC,           /* a sum of gradients over replicas */
    WHAT_WEIGHTS,        /* an exchange of weights over replicas */
    WHAT_OFFLOAD,        /* a copy to host memory */
    WHAT_PREFETCH,       /* a copy from host memory */
    WHAT_HOST_UPDATE,    /* an update by the host */
    WHAT_COUNT
};
extern const char *const op_what_names[];        /* "forward", "backward", ... */

/* The contents of a message. A tensor-parallel group sends activations in a forward and their gradients in a
 * backward. */
enum payload {
    PAYLOAD_ACTIVATIONS, PAYLOAD_WEIGHTS, PAYLOAD_ACTIVATION_GRADIENTS, PAYLOAD_WEIGHT_GRADIENTS, PAYLOAD_COUNT
};
extern const char *const payload_names[];        /* "activations", ...; NULL-terminated */
enum payload op_payload(enum op_what what);

/* The peers of a work's exchanges. */
enum peers {
    PEERS_TENSOR, PEERS_CONTEXT, PEERS_EXPERT,
    PEERS_DATA,              /* time that kernels lose to overlapped collectives over replicas */
    PEERS_COUNT
};

/* The members of OP_COMPUTE. */
struct op_compute {
    double communication;    /* seconds of `amount` that are communication (tensor-parallel, measured) */
    double with[PEERS_COUNT];    /* of a work: `communication` by peers */
    double sent;             /* bytes that each GPU of the rank sends in these seconds */
    double vector;           /* bytes of the vectors of its collectives, as collective.h counts them */
    double activations;      /* B of `sent` that are activations although the operation's payload is another */
};

/* The members of OP_TRANSFER. */
struct op_transfer {
    uint32_t src, dst;       /* GPUs */
    double delay;            /* s of latency in addition to the route's; may be negative */
    double overhead;         /* B of its flow in addition to each byte of `amount`: how much slower it goes than the links;
                                may be negative */
    double most;             /* B/s that it takes of its links at most; 0: any share */
    double stands;           /* B that cross the links in addition to each byte of `amount`, where messages stand for
                                what switches do; may be negative */
    double protocol;         /* B that the protocol adds to each byte that crosses the links */
    bool buffered;           /* the lane is free when the bytes have left, not when they arrived */
};

/* What many operations have in common. A program holds each of these once. */
struct traits {
    double takes, frees;     /* bytes of the rank's memory: taken when it starts, freed when it ends */
    double workspace;        /* bytes in addition to these that it holds while it runs */
    union {
        struct op_compute compute;
        struct op_transfer transfer;
    };
};

/* An operation of a program: what differs from one to the next, and what engines read most. */
struct op {
    double amount;           /* COMPUTE: seconds; TRANSFER: bytes (a share of a vector may be a fraction) */
    uint32_t lane;
    int32_t mb, stage;       /* micro-batch and virtual stage; -1: none */
    uint32_t first_dep;      /* of program->deps; program_deps */
    uint32_t traits;         /* of program->traits; op_traits */
    uint8_t kind;            /* enum op_kind: the valid member of the traits' union */
    uint8_t what;            /* enum op_what */
    bool continues : 1;      /* a further piece of the work of the operation before it in its lane */
    bool overlapped : 1;     /* COMPUTE: runs together with the next work of its lane */
    bool advances : 1;       /* a choice of its lane may run it before its turn (then it is the work's only piece) */
    uint8_t exchange;        /* which one it is part of, as lower.h numbers them; 0: none */
};
_Static_assert(sizeof(struct op) == 32, "programs have millions of operations");

/* An operation for program_append: the members of struct op, then the members of its traits. */
struct new_op {
    uint8_t kind, what;
    bool continues, advances;
    uint8_t exchange;
    uint32_t lane;
    int32_t mb, stage;
    double amount;
    double takes, frees;     /* from here on as struct traits */
    double workspace;
    union {
        struct op_compute compute;
        struct op_transfer transfer;
    };
};
_Static_assert(offsetof(struct new_op, compute) - offsetof(struct new_op, takes) == offsetof(struct traits, compute) &&
               sizeof(struct new_op) - offsetof(struct new_op, takes) == sizeof(struct traits), "the same members");

/* B of the flow that stands for a transfer of that many bytes: the links' rates over it give the transfer's time. */
static inline double flow_bytes(double amount, const struct op_transfer *transfer)
{
    return amount * (1 + transfer->overhead);
}
/* B that its source really sends, and that cross each link of its route, whatever time they take. */
static inline double payload_bytes(double amount, const struct op_transfer *transfer)
{
    return amount * (1 + transfer->stands);
}
/* The same with what the protocol adds. */
static inline double wire_bytes(double amount, const struct op_transfer *transfer)
{
    return payload_bytes(amount, transfer) * (1 + transfer->protocol);
}

enum lane_kind {
    LANE_COMPUTE, LANE_SEND_NEXT, LANE_SEND_PREVIOUS, LANE_COLLECTIVE, LANE_TO_HOST, LANE_FROM_HOST, LANE_HOST,
    LANE_COPY,               /* copies between the GPU and the buffers of sockets */
    LANE_KIND_COUNT
};
extern const char *const lane_kind_names[];
struct lane {
    int rank;
    enum lane_kind kind;
    int index;               /* among the rank's lanes of this kind: flow of the tensor group, channel */
};

/* A decision of a lane at run time. When it is the turn of operation `op`, and not all of the `count` operations from
 * `first` have ended, the lane instead runs its next operation that `advances`, unless none is left or `most` of them
 * have run; then it decides once more. `op` itself does not wait for these `count` operations. An operation that
 * `advances` must not wait for operations after the choice in its own lane, or the program would deadlock. */
struct choice { uint32_t op, first, count, most; };

/* Zero-initialise; program_release when done. Ids are indices. */
struct program {
    int ranks;
    int stages;              /* more than the stage of any operation */
    int flows;               /* GPUs of each rank whose transfers are operations (all others do the same) */
    struct ops { struct op *items; size_t count, capacity; } ops;
    struct deps { uint32_t *items; size_t count, capacity; } deps;       /* of all operations, in the order of ids */
    struct traits_list { struct traits *items; size_t count, capacity; } traits;     /* no two are the same */
    struct traits_slots {            /* to find traits by hash; index: theirs + 1, 0 of a free slot */
        struct traits_slot { uint32_t index, hash; } *items;
        size_t count;
        uint32_t recent[32];         /* by lane and purpose: the traits that the last such operation had, + 1 */
    } slots;
    struct lanes { struct lane *items; size_t count, capacity; } lanes;
    struct choices { struct choice *items; size_t count, capacity; } choices;    /* by `op`, ascending */
    struct progress *progress;       /* how far a replay is, or NULL */
    bool endless;                    /* an amount that was appended is not finite: the program is not to be replayed */
};

static inline const struct traits *op_traits(const struct program *program, const struct op *op)
{
    return &program->traits.items[op->traits];
}

/* The operations that an operation of the program waits for, in addition to its predecessor in its lane. */
struct dep_list { const uint32_t *items; size_t count; };
static inline struct dep_list program_deps(const struct program *program, const struct op *op)
{
    bool last = op + 1 == program->ops.items + program->ops.count;

    return (struct dep_list){program->deps.items + op->first_dep,
                             (last ? program->deps.count : op[1].first_dep) - op->first_dep};
}

uint32_t program_lane(struct program *program, int rank, enum lane_kind kind, int index);    /* a new lane */
/* Appends the operation; the dependencies are copied, each an earlier operation. Returns its id. */
uint32_t program_append(struct program *program, const struct new_op *op, const uint32_t *deps, size_t ndeps);
static inline uint32_t program_add(struct program *program, struct new_op op, const uint32_t *deps, size_t ndeps)
{
    return program_append(program, &op, deps, ndeps);
}
/* The same of an operation like an earlier one, but for the micro-batch and what it waits for. */
uint32_t program_repeat(struct program *program, uint32_t like, int32_t mb, const uint32_t *deps, size_t ndeps);
/* The same of an operation like an earlier one, but for its amount and what it waits for. */
uint32_t program_resize(struct program *program, uint32_t like, double amount, const uint32_t *deps, size_t ndeps);
/* Gives a COMPUTE other amounts: all its seconds `factor` times as long. */
void program_scale(struct program *program, uint32_t id, double factor);
/* A choice before the operation added last. */
void program_choose(struct program *program, struct choice choice);
/* The operation's choice, or NULL. */
const struct choice *program_choice(const struct program *program, uint32_t id);
/* A copy that shares nothing with the program. */
struct program program_copy(const struct program *program);
void program_release(struct program *program);

/* A part of a replica's timeline that stands for more: everything from `from` to `to` happens `times` times more before
 * the rest follows. A replica whose repetitions take longer than another's begins later by the difference, at `begins`, so
 * that both meet as they would in the whole timeline. */
struct repeat { double begins, from, to; int times; };

/* When every operation of a program started and ended, in seconds from 0. */
struct timeline {
    const struct program *program;
    double *start, *end;     /* a value an operation */
    double makespan;         /* the latest end; 0 for an empty program */
    double *moved;           /* of a watched one: how much each end changes (timeline_watch); of any other NULL */
    bool unclear;            /* what shared a link at one time changes by unequal times: `moved` does not tell what follows */
    size_t met;              /* simgrid: the transfers that it computed, as they meet others; the rest take what they take alone */
    /* Of a program that was cut short (steady/steady.h); of any other NULL. */
    struct repeat *repeats;  /* one for each `repeat_ranks` ranks: of a replica, or of all replicas */
    int repeat_ranks;
};
/* The times have no values until a replay sets them. */
void timeline_init(struct timeline *timeline, const struct program *program);
/* The fast engine then notes how much each end changes where each COMPUTE takes longer by a small share of its seconds,
 * drawn at random with variance 1 (timeline_longer): a derivative. */
void timeline_watch(struct timeline *timeline);
double timeline_longer(uint32_t id);
/* What is repeated of a rank; no times: nothing. */
static inline struct repeat timeline_repeat(const struct timeline *timeline, int rank)
{
    return timeline->repeats ? timeline->repeats[rank / timeline->repeat_ranks] : (struct repeat){0};
}
/* s: what is repeated of a rank. */
static inline double timeline_repeated(const struct timeline *timeline, int rank)
{
    struct repeat repeat = timeline_repeat(timeline, rank);

    return repeat.times * (repeat.to - repeat.from);
}
/* s: from 0 to the latest end, with what is repeated. It is as long for all ranks. */
static inline double timeline_length(const struct timeline *timeline)
{
    return timeline->makespan + timeline_repeated(timeline, 0) - timeline_repeat(timeline, 0).begins;
}
/* How often the operation happens. */
static inline int timeline_times(const struct timeline *timeline, size_t id)
{
    const struct program *program = timeline->program;
    const struct repeat *repeat = timeline->repeats;

    if (!repeat)
        return 1;
    repeat += program->lanes.items[program->ops.items[id].lane].rank / timeline->repeat_ranks;
    return timeline->start[id] >= repeat->from && timeline->start[id] < repeat->to ? 1 + repeat->times : 1;
}
/* All ids, each lane's in the order in which they ran; NULL if that is the order of ids, which only choices change. The
 * caller frees the array. */
uint32_t *timeline_order(const struct timeline *timeline);
/* The k-th id of such an order. */
static inline uint32_t order_at(const uint32_t *order, size_t k)
{
    return order ? order[k] : (uint32_t)k;
}
/* The largest difference of a start or an end between two timelines of the same program, as a share of the end of the
 * first; 0 for an empty program. */
double timeline_difference(const struct timeline *timeline, const struct timeline *other);
void timeline_release(struct timeline *timeline);

#endif
