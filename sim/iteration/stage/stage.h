/* stage: which layers each virtual stage holds, the memory and exchanges of one micro-batch there, and the times that
 * one class of GPUs takes for it. */
#ifndef DTSIM_STAGE_H
#define DTSIM_STAGE_H

#include "scenario/scenario.h"

/* Which kernels hide an exchange within a work. */
enum hidden_by {
    HIDDEN_BY_NOTHING,
    HIDDEN_BY_GRADIENTS,         /* of a column-parallel product, in its backward: its input's gradient is summed during the
                                    product for weights, its input gathered during the product for inputs */
    HIDDEN_BY_PIECES,            /* of a column-parallel product, in its forward: its input is gathered during its pieces; the
                                    results of the row-parallel product behind it are scattered during that one's pieces */
    HIDDEN_BY_STEPS,             /* of attention, block by block of keys and values */
    HIDDEN_BY_WORK,              /* all kernels of the work */
    HIDDEN_BY_OTHERS             /* kernels of shared experts, or of another work (strategy.overlap_dispatch) */
};
/* An exchange within a work, on top of its kernels. */
struct exchange {
    enum sending what;           /* SENT_SUM: of results, or of an input's gradients; under sequence parallelism a
                                    reduce-scatter and an all-gather. SENT_INPUT: an all-gather alone */
    bool returns;                /* of keys and values: with their gradients, for a backward */
    enum hidden_by by;
    enum column_product column;  /* by gradients or pieces */
    int hiding;                  /* by gradients, pieces or steps: by which kernels (stage_times.hidings) */
    double bytes;                /* size in B; of keys and values the size of what this GPU has */
    double more;                 /* of rows, B that a dispatch brings to the GPU, its own included; of heads, B of keys and
                                    values; by gradients, B of the input that is gathered for the product for weights */
};
/* The most of them, and of kinds of layers with kernels that hide exchanges: blocks, prediction and output. */
enum { EXCHANGES_MAX = 192, HIDINGS_MAX = PATTERN_KINDS + 2 };
/* All that a model's layers exchange, in the order in which they first do; everything that counts exchanges has their order. */
struct exchange_list {
    struct exchange items[EXCHANGES_MAX];
    int count;
    const struct operator *hiding[HIDINGS_MAX];      /* of the layers whose kernels hide exchanges */
    int nhidings;
};
/* The first of every list: the tensor group's gather of hidden states, of which each GPU has a share. */
enum { EXCHANGE_GATHER };
/* The process group of each thing that is sent, and the peers of its members. */
extern const enum group_kind sending_groups[SENT_COUNT];
extern const enum peers sending_peers[SENT_COUNT];

/* How many exchanges and FLOP one kind of work on one stage has, for one micro-batch, on each GPU of the tensor group.
 * They do not depend on the GPU. */
struct work_counts {
    int exchanges[EXCHANGES_MAX];    /* the number of each of stage.exchanges */
    double flop;             /* FLOP of matrix products and fused attention, as kernel_whole_flop counts them */
};
void work_counts_add(struct work_counts *sum, const struct work_counts *more);
/* How long GPUs of one class take for such a work. */
struct work_times {
    double seconds;          /* s of kernels alone, and of waits for their launches */
    double starved;          /* s of these in which the GPU waits for the host's launches */
    /* s of kernels of blocks that send tokens to other GPUs: GEMMs of shared experts; all kernels up to the router, and all
     * others */
    struct dispatching_times { double shared, before, others; } dispatching;
    double extrapolated;     /* s of kernels outside the range of the samples that the costs were fitted to */
    struct cost_bases bases; /* s of kernels, by the basis of their times */
};
void work_times_add(struct work_times *sum, const struct work_times *more);
/* Adds the bases of a cost; the caller adds its seconds. */
void work_times_note(struct work_times *times, const struct cost *cost);
/* The counts and the times of one work. */
struct work_cost {
    struct work_counts counts;
    struct work_times times;
};
void work_cost_add(struct work_cost *sum, const struct work_cost *more);

/* One layer of a stage. Gradient buckets become ready after a layer's backward; ZeRO 3 gathers weights by layer. Equal
 * layers share their counts and times. */
struct slice {
    const struct work_counts *work[WORK_KIND_COUNT];
    const struct layer *layer;   /* NULL where stages are given */
    const double *tensors;   /* trained parameters of each tensor, in the model's order */
    const double *rows;      /* rows of each matrix, 0 for other tensors; NULL: the shapes are unknown */
    size_t ntensors, ncommon;    /* the first ncommon are PARAMETERS_COMMON */
    const struct linear *linears;    /* trained weights of its linear layers */
    size_t nlinears;
    double parameters;       /* the sum of `tensors` */
    struct by_class trained; /* `parameters` by class */
    double frozen, frozen_apart; /* parameters that are not trained; the part of them that is PARAMETERS_APART */
    double input, activation;    /* B of its input, and of all tensors that its backward needs */
    struct workspace workspace;
    bool block;              /* it is one of the model's blocks */
    bool recompute;          /* it may be recomputed; under recompute: full it is */
    /* Where a plan chooses selective recomputation by layer: B that the backward needs, and the part of the core of
     * attention that it recomputes. */
    struct { double activation; struct workspace workspace; const struct work_counts *core; } selective;
};
/* Input, output and loss of a replica under PyTorch's DataParallel, where one GPU computes the loss of all replicas;
 * for one micro-batch. */
struct model_io {
    double input;            /* B of tokens; 0 if the model has none */
    double output;           /* B of the model's output */
    double activation;       /* B that the loss keeps for one replica's share */
};
struct stage_plan;
/* The contents and exchanges of a virtual stage, on whichever GPUs it is: no seconds (struct stage_times). */
struct stage {
    struct work_counts work[WORK_KIND_COUNT];
    struct slice *slices;    /* in the order of the backward: the last layer first */
    size_t nslices;
    int layers;              /* of the model's blocks; 0 where stages are given */
    const struct exchange_list *exchanges;   /* what work[].exchanges counts */
    double parameters;       /* trained elements on each GPU, before ZeRO divides them */
    struct by_class trained; /* `parameters` by class */
    double frozen, packed;   /* elements that are not trained (LoRA), and how many more they are (struct layer) */
    double frozen_apart;     /* the part of `frozen` that is PARAMETERS_APART */
    double tied;             /* elements that copy the first stage's embedding on another rank */
    int versions;            /* versions of the weights held at once: more than one under asynchronous schedules */
    double activation;       /* B kept from a forward to its backward */
    double checkpoint;       /* B kept instead when the backward recomputes */
    double working;          /* B that a recomputation takes on top, until its backward ends */
    double working_split;    /* the same if the backward for weights comes later and needs all layers' activations */
    /* B that a work holds at its peak on top of the bytes above: if the stage keeps all activations, if it recomputes
     * each layer with its backward, and if it recomputes all layers ahead of its backward. */
    struct stage_workspace { double forward, backward; } plain, recompute, ahead;
    double boundary;         /* B sent to the next stage by each GPU of the tensor group */
    struct model_io io;      /* of the whole model; for a stage that holds the whole model */
    struct by_class states;  /* B of the optimizer's states of all trained tensors, master weights included, before ZeRO
                                divides them */
    double whole_matrices;   /* B of states that the owner of most whole matrices has beyond an equal share of them */
    double compression;      /* B that gradient compression keeps from one iteration to the next */
    const struct stage_plan *plan;   /* if the stage is computed layer by layer: its plan (stage_plan.h), else NULL */
    double recomputed;       /* FLOP that the plan recomputes in a backward */
    /* Layers that ZeRO 3 holds whole at once: all layers outside of blocks, or all whose weights stay after a work;
     * and the largest two neighbouring blocks.
     * For weights under planned recomputation these may be any two blocks. */
    struct whole_units { double root, blocks; } gathered, scattered;       /* B of weights, elements of gradients */
};

/* s of a product, and of one piece of it. */
struct pieces { double whole, piece; };
enum { SCATTER_PIECES = 4 };     /* pieces of a product whose results are summed: Transformer Engine's num_splits */
/* How long GPUs of one class take for one layer. */
struct slice_times {
    const struct work_times *work[WORK_KIND_COUNT];
    const struct work_times *core;   /* of slice.selective.core; NULL: none */
};
/* The kernels of a layer that hide its exchanges, on a GPU of one class. */
struct hiding {
    double attention[2];     /* s of its attention, forward and backward; the context group's exchange overlaps with it */
    struct stage_columns {
        double input, weight;    /* s of the backward's products for inputs and for weights */
        struct pieces gathering, scattering, returning;      /* if products are cut: the column-parallel one, the
                                row-parallel one after it, and the latter's backward for its input */
    } columns[COLUMN_COUNT]; /* by column-parallel product */
};
/* The times of a virtual stage's works on GPUs of one class. */
struct stage_times {
    struct work_times work[WORK_KIND_COUNT];
    struct slice_times *slices;      /* of the layers, as in stage.slices */
    struct hiding *hidings;  /* of exchange.hiding; all stages share them */
    struct work_times recomputed;    /* what the stage's plan recomputes in a backward; 0 without a plan */
    struct work_times update;        /* the optimizer's update */
    double averaging;        /* s to copy averaged weights, with local steps */
    struct loss_times {      /* s of the loss of one replica's share, and of all replicas, where `outside` is set */
        double forward, backward, all_forward, all_backward;
    } loss;
};
/* The times of one of the stage's layers. */
static inline const struct slice_times *slice_times(const struct stage *stage, const struct stage_times *times,
                                                    const struct slice *slice)
{
    return &times->slices[slice - stage->slices];
}

/* The class of a layer's tensor. */
static inline enum parameter_class slice_class(const struct slice *slice, size_t tensor)
{
    return tensor < slice->ncommon ? PARAMETERS_COMMON : PARAMETERS_APART;
}
/* The trained parameters that ZeRO 3 exchanges together where it does not flatten layers: the parameters of tensor
 * `from` and of the next ones of the class, up to the next large one. Sets the number of parameters, 0 if there are
 * none, and returns the tensor with which the next piece begins, slice->ntensors after the last. */
size_t slice_piece(const struct slice *slice, enum parameter_class class, size_t from, double *parameters);
/* All parameters of a layer by class; of a stage. */
static inline struct by_class slice_weights(const struct slice *slice)
{
    return (struct by_class){{[PARAMETERS_COMMON] = slice->trained.of[PARAMETERS_COMMON] + slice->frozen - slice->frozen_apart,
                              [PARAMETERS_APART] = slice->trained.of[PARAMETERS_APART] + slice->frozen_apart}};
}
static inline struct by_class stage_weights(const struct stage *stage)
{
    return (struct by_class){{[PARAMETERS_COMMON] = stage->trained.of[PARAMETERS_COMMON] + stage->frozen - stage->frozen_apart,
                              [PARAMETERS_APART] = stage->trained.of[PARAMETERS_APART] + stage->frozen_apart}};
}
/* Parameters of a layer that a GPU trains, by class. */
struct by_class layer_trained(const struct scenario *scenario, const struct layer *layer);

/* One struct for each virtual stage (pipeline * chunks), in model order, and its times on GPUs whose
 * kernels take so long; all of it lives in the arena. Errors: more stages than layers, a split that does not fit this
 * model, tensor degrees that do not divide (EXIT_INFEASIBLE). */
int stages_cost(struct arena *arena, const struct scenario *scenario, const struct kernel_costs *kernels,
                struct stage **stages, struct stage_times **times, struct error *err);

#endif
