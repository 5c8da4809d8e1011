/* scenario: one YAML file, checked, with every default resolved. */
#ifndef DTSIM_SCENARIO_H
#define DTSIM_SCENARIO_H

#include "hardware/cluster.h"
#include "collective/collective.h"
#include "model/model.h"
#include "schedule/order.h"
#include "kernels/profile.h"
#include "engine/replay.h"
#include "scenario/process_group.h"

enum precision { PRECISION_FP32, PRECISION_TF32, PRECISION_MIXED_FP16, PRECISION_MIXED_BF16,
                 PRECISION_MIXED_FP8 };
enum optimizer {
    OPTIMIZER_ADAM, OPTIMIZER_ADAM_8BIT, OPTIMIZER_MOMENTUM, OPTIMIZER_SGD, OPTIMIZER_ADAFACTOR,
    OPTIMIZER_ADAFACTOR_MOMENTUM, OPTIMIZER_LAMB, OPTIMIZER_ADAM_HALF
};
enum master { MASTER_FP32, MASTER_REMAINDERS, MASTER_HALF, MASTER_NONE };
enum fp8_weights { FP8_WEIGHTS_CAST, FP8_WEIGHTS_KEPT, FP8_WEIGHTS_PRIMARY };
enum gradients { GRADIENTS_HALF, GRADIENTS_FP32, GRADIENTS_CONVERTED, GRADIENTS_WIDENED };
enum logits { LOGITS_FREED, LOGITS_HELD };
enum data_parallel { DATA_PARALLEL_DDP, DATA_PARALLEL_SYNCHRONOUS, DATA_PARALLEL_SERVER, DATA_PARALLEL_REPLICATED };
extern const char *const server_names[];         /* NULL-terminated: of reduces and broadcasts alike */
enum compression { COMPRESSION_NONE, COMPRESSION_POWERSGD, COMPRESSION_TOP_K, COMPRESSION_QUANTIZED };
enum dimension { DIMENSION_TENSOR, DIMENSION_DATA, DIMENSION_PIPELINE, DIMENSION_CONTEXT, DIMENSION_COUNT };
enum context_attention { CONTEXT_RING, CONTEXT_ALL_GATHER };
enum collectives_mode { COLLECTIVES_AUTO, COLLECTIVES_MESSAGES, COLLECTIVES_MEASURED };
enum offload { OFFLOAD_NONE, OFFLOAD_ACTIVATIONS, OFFLOAD_WEIGHTS, OFFLOAD_OPTIMIZER };
enum fold { FOLD_AUTO, FOLD_OFF };
extern const char *const dimension_names[];
extern const char *const recompute_names[];

struct scenario {
    const struct node *node;
    struct arena arena;                  /* owns everything below */
    const char *name;
    struct model model;
    struct cluster cluster;
    struct batch {
        const struct node *node;
        int global;                      /* samples an iteration, over all replicas */
        int micro;                       /* samples a micro-batch */
        int micro_batches;               /* per replica */
        int count;                       /* batches in a row, of asynchronous schedules that have batches */
    } batch;
    struct strategy_spec {
        const struct node *node;
        struct schedule_spec {
            const struct node *node;
            int name;                    /* index of strategy_at; or */
            const char *csv;             /* a file of an order, beside the scenario */
            int recomputation;           /* enum recompute_rule, of an order */
            const struct order *order;   /* of the file */
        } schedule;
        const struct table *options_table;
        void *options;                   /* of the schedule */
        int tensor, context, expert, pipeline, data;     /* degrees */
        int context_attention;           /* enum context_attention */
        double capacity_factor;          /* of experts; 0: they compute what they get */
        int chunks;
        bool sequence_parallel, scatter_gather;
        bool partitioned_outputs;        /* a stage keeps its share of a boundary, and gathers it again */
        bool overlap_p2p;                /* boundaries are sent beside the sender's next work */
        bool one_communicator;           /* a stage's sends and receives take turns */
        bool duplex_p2p;                 /* two stages send to each other at once */
        bool overlap_tensor;             /* gradients of inputs are summed beside those of weights */
        bool overlap_products;           /* what else is gathered or summed travels beside pieces of products */
        int zero;
        int shard;                       /* replicas that ZeRO divides among; data unless given; 0 without ZeRO */
        bool reduce_scatter;             /* under ZeRO a replica gets the sums of its share alone */
        int data_parallel;               /* enum data_parallel */
        struct compression_spec {
            const struct node *node;
            int method;                  /* enum compression */
            int rank;                    /* of powersgd */
            double share;                /* of the values, of top-k */
            int bits;                    /* a value, of quantized */
            bool error_feedback;
        } compression;
        int local_steps;                 /* iterations between two exchanges */
        double first_bucket, bucket;     /* B, of DDP */
        bool flatten;                    /* synchronous: one sum for all tensors */
        int server;                      /* how a server gathers and sends: index of server_names */
        int all_reduce;                  /* index of collective_of, of the all-reduces */
        int channels;                    /* rings at once; 0: collective_channels */
        struct list placement;           /* of int, enum dimension: fastest-varying first */
        struct list split;               /* of int: layers of every global stage; empty: evenly */
    } strategy;
    struct memory_spec {
        const struct node *node;
        int precision, optimizer;
        int master;                      /* enum master */
        int fp8_weights;                 /* enum fp8_weights */
        int gradients;                   /* enum gradients */
        struct recompute_spec {
            const struct node *node;
            int mode;                    /* enum recompute */
            int every;                   /* blocks a checkpoint, under full; 0: one */
            int blocks;                  /* recomputed under full, the first of each chunk; where given */
            double share;                /* or this share of them; NaN: all */
            bool early_stop;             /* a block's ends when its backward has what it needs */
        } recompute;
        struct list offload;             /* of int, enum offload: what waits in host memory */
        struct lora *lora;               /* NULL: every weight is trained */
        int activations;                 /* enum activation_formula */
        int cross_entropy;               /* enum cross_entropy */
        int logits;                      /* enum logits */
        bool clip_gradients, fused_accumulation, fused_gradients, flat_gradients, bucket_copies;
        double context;                  /* B; NaN: memory_states says */
        double fragmentation;            /* share of what the allocator holds */
        double limit;                    /* B; NaN: the GPU's memory */
        bool enforce;
    } memory;
    struct costs_spec {
        const struct node *node;
        int gpu;                         /* enum cost_source; never AUTO after scenario_load */
        const char *profile;             /* a name of calibration/data/ or an absolute path; NULL: none */
        int attention;                   /* enum attention_generation */
        double host_launch;              /* s that the host takes for each kernel (calibration/data/README.md) */
        bool launch_blocking;            /* it waits for each kernel before the next */
        double host_send;                /* s of a boundary that stages wait for (calibration/data/README.md) */
        int unaligned_batches;           /* enum unaligned_batches */
        const struct profile *loaded;    /* of that name, where `gpu` is calibrated */
    } costs;
    struct simulation_spec {
        const struct node *node;
        int engine, collectives, fold;
        double jitter;                   /* standard deviation of a work's time, as a share of it */
        int seed;
    } simulation;
    struct plan plan;                    /* what the schedule sees */
    struct process_groups groups;
};
extern const struct table scenario_table, costs_table;

/* Reads and checks the file, changed by `sets` ("PATH=VALUE", nsets of them). Degrees that do not divide, more stages
 * than layers and the like are EXIT_INFEASIBLE. Release in either case. */
int scenario_load(const char *path, const char *const *sets, size_t nsets, struct scenario *scenario,
                  struct error *err);
/* The same from a tree in the arena, which the scenario takes over in either case; without a name of its own it is
 * called `name`. */
int scenario_read(struct arena *arena, struct node *root, const char *const *sets, size_t nsets, const char *name,
                  struct scenario *scenario, struct error *err);
/* "What if": the scenario as it was written, changed by `sets` and read anew. It shares the tree of the first one,
 * which must outlive it. Release in either case. */
int scenario_vary(const struct scenario *scenario, const char *const *sets, size_t nsets, struct scenario *varied,
                  struct error *err);
void scenario_release(struct scenario *scenario);

/* A rule of what goes together. All of some are asked, so that a person sees every mistake at once; -1 where one of
 * them was broken. */
typedef int scenario_rule(const struct scenario *scenario, struct error *err);
int scenario_check(const struct scenario *scenario, scenario_rule *const *rules, size_t count, struct error *err);

const struct strategy *scenario_strategy(const struct scenario *scenario);
/* Whether weights are exchanged after the update: handed out where replicas do not update everything themselves (ZeRO 1
 * and 2, and the parameter server, which is replica 0), or averaged after several local steps. */
bool scenario_hands_out_weights(const struct scenario *scenario);
const struct collective *scenario_hand_out(const struct scenario *scenario);
/* What sums the gradients of replicas: the server's reduce, the all-reduce, or from ZeRO 1 on the all-reduce's
 * reduce-scatter (collective_half). */
const struct collective *scenario_sync(const struct scenario *scenario);
/* Whether ZeRO divides among fewer than all replicas, so that those with the same share sum their gradients on top. */
bool scenario_hybrid(const struct scenario *scenario);
const struct collective *scenario_all_reduce(const struct scenario *scenario);
int scenario_gpus(const struct scenario *scenario);                  /* tensor * context * pipeline * data */
/* All that hold the same weights outside of experts: data * context. The GPUs of a context group work on shares of the
 * same samples and otherwise do what replicas do: so they are replicas to all that follows, the i-th of replica d being
 * number d * context + i. The replicas of an expert group, too, are numbered one after another. */
int scenario_replicas(const struct scenario *scenario);
/* Which GPU is tensor index t of pipeline rank p of a replica. */
int scenario_gpu(const struct scenario *scenario, int t, int replica, int p);
/* "tensor 2 x context 4 x pipeline 2 x data 3", a context degree of 1 left out, and data where it is 0; returns
 * buffer. */
char *scenario_degrees(const struct scenario *scenario, char *buffer, size_t size);

/* Bytes per parameter of weights, gradients and fp32 master weights (Rajbhandari et al. 2020, ZeRO, section 3.1: 2, 2
 * and 4 for mixed precision), of gradients as they are sent, and of those that are held beside those that are summed;
 * what is read and written to make a layer's gradients ready to be scattered under ZeRO 3, to add a micro-batch's
 * gradient to the batch's, and by one update with all that comes before it. */
struct parameter_bytes { double weights, gradients, sent, beside, master, flattening, accumulation, update_traffic; };
struct parameter_bytes scenario_parameter_bytes(const struct scenario *scenario);
/* What an optimizer keeps for each parameter. */
struct optimizer_states {
    double full;             /* B in fp32: 4 for each moment */
    int quantized;           /* of them, moments that large tensors keep in 8 bits */
    bool factored;           /* and a second moment as a sum over rows and one over columns */
    double norms;            /* B that an update passes over beside gradient, weights and moments */
};
struct optimizer_states scenario_optimizer(const struct scenario *scenario);
enum dtype scenario_dtype(const struct scenario *scenario);
/* B that a GPU may hold: the limit, or its memory; INFINITY where neither is known. */
double scenario_room(const struct scenario *scenario);
bool scenario_offloads(const struct scenario *scenario, enum offload what);
/* Whether schedules have recomputations: works of their own, before backwards. */
bool scenario_has_recomputations(const struct scenario *scenario);
/* Whether full recomputation is said to be of some blocks alone. */
bool scenario_recomputes_some(const struct scenario *scenario);
/* Whether it is of this block, the first of its chunk being 0; other modes of recomputation choose among all. */
bool scenario_recomputes(const struct scenario *scenario, int block);
/* Whether stages are computed layer by layer, each with memory and transfers of its own: stage_plan.h. */
bool scenario_by_layers(const struct scenario *scenario);
/* Whether what their activations do is planned for what a GPU may hold. */
bool scenario_plans_memory(const struct scenario *scenario);
/* What of `memory:` does not go together, or with the rest. */
int scenario_check_memory(const struct scenario *scenario, struct error *err);
/* What is said and changes nothing here. */
int scenario_check_idle(const struct scenario *scenario, struct error *err);
/* Settles which costs are used and reads their profile. */
int scenario_resolve_costs(struct scenario *scenario, struct error *err);
/* What a kernel takes; nothing where the model's times are given. */
struct cost scenario_cost(const struct scenario *scenario, const struct kernel *kernel);
/* The same of one that no layer lists: over gradients, states and boundaries. */
struct cost scenario_traffic(const struct scenario *scenario, const char *name, enum memory_class class, double bytes);

#endif
