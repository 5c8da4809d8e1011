/* parallelism: how the model is divided and in which order it is computed: the mapping `strategy:`. */
#ifndef DTSIM_PARALLELISM_H
#define DTSIM_PARALLELISM_H

#include "collective/token_dispatcher.h"
#include "layout/stage_spec.h"
#include "schedule/order.h"

#define DATA_PARALLELS(X) \
    X(DATA_PARALLEL_DDP, "ddp") X(DATA_PARALLEL_SYNCHRONOUS, "synchronous") \
    X(DATA_PARALLEL_SERVER, "parameter-server") X(DATA_PARALLEL_REPLICATED, "dataparallel")
enum data_parallel { DATA_PARALLELS(ENUM_VALUE) };
#define BALANCES(X) \
    X(BALANCE_LAYERS, "layers") X(BALANCE_TIMES, "times") X(BALANCE_EXCHANGES, "exchanges") \
    X(BALANCE_WEIGHTS, "weights")
enum balance { BALANCES(ENUM_VALUE) };
extern const char *const server_names[];         /* NULL-terminated: of reduces and broadcasts alike */
#define COMPRESSIONS(X) \
    X(COMPRESSION_NONE, "none") X(COMPRESSION_POWERSGD, "powersgd") X(COMPRESSION_TOP_K, "top-k") \
    X(COMPRESSION_QUANTIZED, "quantized")
enum compression { COMPRESSIONS(ENUM_VALUE) };
extern const char *const dimension_names[];
#define CONTEXT_ATTENTIONS(X) \
    X(CONTEXT_RING, "ring") X(CONTEXT_ALL_GATHER, "all-gather") X(CONTEXT_ALL_TO_ALL, "all-to-all") \
    X(CONTEXT_HYBRID, "hybrid")
enum context_attention { CONTEXT_ATTENTIONS(ENUM_VALUE) };

/* Which order the work is done in. */
struct schedule_spec {
    const struct node *node;
    int name;                    /* index of schedule_at; or */
    const char *csv;             /* a file of an order, in the scenario's folder or relative to it */
    int recomputation;           /* enum recompute_rule, of an order */
    const struct order *order;   /* of the file */
};

/* What replicas send in the place of their gradients. */
struct compression_spec {
    const struct node *node;
    int method;                  /* enum compression */
    int rank;                    /* of powersgd */
    double share;                /* of the values, of top-k */
    int bits;                    /* a value, of quantized */
    bool error_feedback;
};

/* What a GPU sends of a token whose experts are on other GPUs: older names of the kinds of dispatchers. */
#define TOKEN_DISPATCHES(X) X(DISPATCH_COPIES, "copies") X(DISPATCH_ONCE, "once")
enum token_dispatch { TOKEN_DISPATCHES(ENUM_VALUE) };

/* Beside what tokens travel to experts and back. */
#define OVERLAP_DISPATCHES(X) \
    X(OVERLAP_DISPATCH_NONE, "none") X(OVERLAP_DISPATCH_SHARED, "shared-experts") \
    X(OVERLAP_DISPATCH_MICRO_BATCHES, "micro-batches")
enum overlap_dispatch { OVERLAP_DISPATCHES(ENUM_VALUE) };

/* The part of each rank whose stage names none. */
#define STAGES_ONS(X) X(STAGES_ON_PLACEMENT, "placement") X(STAGES_ON_AUTO, "auto")
enum stages_on { STAGES_ONS(ENUM_VALUE) };

struct parallelism {
    const struct node *node;
    struct schedule_spec schedule;
    const struct table *options_table;
    void *options;                   /* of the schedule */
    int tensor, context, expert, pipeline, data;     /* degrees */
    int expert_tensor;               /* GPUs that divide each expert; 0: the tensor group */
    int context_attention;           /* enum context_attention */
    int ulysses;                     /* hybrid: neighbours in a context group that exchange heads for tokens; else 0 */
    bool context_blocks;             /* gathered keys and values too are attended to block by block; kernels of their own
                                      * merge the blocks' results and gradients in fp32 */
    bool overlap_context;            /* exchanges of some blocks overlap with the attention of other blocks */
    double capacity_factor;          /* of experts; 0: they compute what they get */
    int dispatcher;                  /* enum token_dispatcher: settled */
    int dispatch;                    /* enum token_dispatch: how the dispatcher exchanges tokens */
    int overlap_dispatch;            /* enum overlap_dispatch */
    int chunks;
    bool sequence_parallel, scatter_gather;
    bool sm_margin;                  /* products leave multiprocessors to collectives beside them */
    bool sequence_first;             /* false: what a tensor group gathers or scatters is copied too */
    bool partitioned_outputs;        /* a stage keeps its share of a boundary, and gathers it again */
    bool overlap_p2p;                /* boundaries are sent while the sender does its next work */
    bool one_communicator;           /* a stage's sends and receives take turns */
    bool duplex_p2p;                 /* two stages send to each other at once */
    bool overlap_tensor;             /* gradients of inputs are summed while gradients of weights are computed */
    bool overlap_gathers;            /* under ZeRO 1 and 2 weights are gathered during the next iteration's forwards */
    bool overlap_products;           /* other gathers and sums overlap with pieces of products */
    int zero;
    int shard;                       /* replicas that ZeRO divides among; data unless given; 0 without ZeRO */
    bool divided_states;             /* without ZeRO too: a scenario that is loaded then has ZeRO 1 without reduce_scatter */
    bool reduce_scatter;             /* under ZeRO a replica gets the sums of its share alone */
    bool reshard_after_forward;      /* under ZeRO 3 a layer's weights are given back after its forward */
    bool small_units;                /* under ZeRO 3 units of weights are parts of the blocks that are recomputed */
    bool sums_once;                  /* under ZeRO 2 and 3, not of every micro-batch */
    int data_parallel;               /* enum data_parallel */
    struct compression_spec compression;
    int local_steps;                 /* iterations between two exchanges */
    double first_bucket, bucket;     /* B, of DDP */
    bool flatten;                    /* synchronous: one sum for all tensors */
    double live_parameters, reuse_distance, prefetch;    /* parameters; zero 3 without flatten: struct tensor_walk */
    int server;                      /* how a server gathers and sends: index of server_names */
    int all_reduce;                  /* index of collective_of, of the all-reduces */
    int channels;                    /* rings at once; 0: placed_group_channels */
    struct list placement;           /* of int, enum dimension: fastest-varying first */
    struct list stages;              /* of struct stage_spec, one a pipeline rank; empty: not said */
    struct rank_degrees *ranks;      /* a pipeline rank, where stages differ in their degrees; tensor and data are the largest
                                      * of all ranks then. NULL: all have those */
    int stages_on;                   /* enum stages_on */
    struct list split;               /* of int: layers of every virtual stage; empty: as `balance` says */
    const int *layers;               /* these, where they are found; NULL: as `split` says */
    int balance;                     /* enum balance */
};

/* Whether each forward goes together with a backward. */
static inline bool parallelism_pairs(const struct parallelism *spec)
{
    return spec->overlap_dispatch == OVERLAP_DISPATCH_MICRO_BATCHES;
}

#endif
