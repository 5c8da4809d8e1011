/* stage: which layers sit on which virtual stage, and what one micro-batch costs there. */
#ifndef DTSIM_STAGE_H
#define DTSIM_STAGE_H

#include "scenario/scenario.h"

/* What GPUs exchange within a work, on top of its kernels. */
enum exchange {
    EXCHANGE_TENSOR,             /* all-reduces of the tensor group; under sequence parallelism reduce-scatters with
                                    all-gathers */
    EXCHANGE_OVERLAPPED,         /* one of them for each column: those that sum the gradient of its input beside that of
                                    its weights, and under sequence parallelism gather its input beside the former */
    EXCHANGE_PIECES = EXCHANGE_OVERLAPPED + COLUMN_COUNT, /* one of them for each column, of the forward: what is
                                    gathered for it and what the product behind it scatters, beside pieces of both */
    EXCHANGE_ROWS = EXCHANGE_PIECES + COLUMN_COUNT,      /* EXCHANGE_TENSOR of the rows that were dispatched */
    EXCHANGE_DISPATCH,           /* all-to-alls of tokens */
    EXCHANGE_ATTENTION,          /* keys and values of the context group, for the forward of one layer's attention */
    EXCHANGE_ATTENTION_BACKWARD, /* the same for its backward, and their gradients */
    EXCHANGE_COUNT
};

/* Who exchanges each of them. */
extern const enum group_kind exchange_groups[EXCHANGE_COUNT];
extern const enum peers exchange_peers[EXCHANGE_COUNT];

/* What one kind of work costs on one stage, for one micro-batch, on each GPU of the tensor group. */
struct stage_work {
    double seconds;          /* kernels alone */
    int exchanges[EXCHANGE_COUNT];   /* how many of each */
    int hidden_gathers;      /* all-gathers that overlap with kernels: bytes; seconds in EXCHANGE_OVERLAPPED */
    double flop;             /* of matrix products and fused attention */
    double extrapolated;     /* s of kernels unlike those that the costs were fitted to */
    struct cost_bases bases; /* s of kernels, by what their times stand on */
};
/* Notes what a cost stands on; the seconds are added apart. */
void stage_work_note(struct stage_work *work, const struct cost *cost);
struct stage_work stage_work_sum(struct stage_work a, struct stage_work b);
/* One layer: where gradient buckets may become ready within a backward, and what ZeRO 3 gathers before it is computed.
 */
struct slice {
    struct stage_work work[WORK_KIND_COUNT];
    const double *tensors;   /* trained parameters of each tensor, in the model's order */
    const double *rows;      /* of each that is a matrix, else 0; NULL: nothing is known of them */
    size_t ntensors, ncommon;    /* the first ncommon are PARAMETERS_COMMON */
    double parameters;       /* their sum */
    struct by_class trained; /* the same by class */
    double frozen;           /* parameters that are not trained */
    double input, activation;    /* B of its input, and of all that its backward needs */
    struct workspace workspace;
    bool block;              /* it is one of the model's blocks */
    bool recompute;          /* it may be computed again, or under recompute: full is */
    /* The same under selective recomputation, where a plan chooses between layers: what its backward needs, and what
     * that computes again of the core of attention, 0 s where there is none. */
    struct { double activation; struct workspace workspace; struct stage_work core; } selective;
};
/* What a replica gets and gives under PyTorch's DataParallel, where one GPU computes the loss of all; a micro-batch. */
struct outside {
    double input;            /* B of tokens; 0 where the model does not tell */
    double output;           /* B of the model's output */
    double activation;       /* B that the loss keeps of one replica's share */
    double forward, backward;            /* s of the loss, of one replica's share */
    double all_forward, all_backward;    /* s of the loss of all replicas */
};
/* s of a product, and of one of the pieces that it is cut into. */
struct pieces { double whole, piece; };
enum { SCATTER_PIECES = 4 };     /* of products whose results are summed: Transformer Engine's num_splits */
struct chain_layer;
struct stage_plan;
struct stage {
    struct stage_work work[WORK_KIND_COUNT];
    struct slice *slices;    /* in the order of the backward: the last layer first */
    size_t nslices;
    int layers;              /* of the model's blocks; 0 where stages are given */
    double bytes[EXCHANGE_COUNT];    /* of each exchange; of the context group, this GPU's own keys and values */
    double attention[2];     /* s of one layer's attention on a GPU, forward and backward, beside which keys and values
                                travel */
    struct {
        double input, weight;    /* s of the two products of backwards, where layers differ the least */
        struct pieces gathering, scattering, returning;      /* of the forward, of the product behind it, and of the
                                gradient of that one's input; where these are cut */
    } columns[COLUMN_COUNT];
    double parameters;       /* trained elements on each GPU (ZeRO divides what is stored of them, not these) */
    struct by_class trained; /* the same by class */
    double frozen;           /* and elements that are not trained (LoRA) */
    double tied;             /* of them, a copy of weights that stand on the first stage, on another rank */
    int versions;            /* of the weights, held at once: more than one under asynchronous schedules */
    double update;           /* s of the optimizer's update */
    struct stage_work updating;  /* what `update` stands on; no seconds */
    double averaging;        /* s to take over averaged weights, with local steps */
    double activation;       /* B kept from a forward to its backward */
    double checkpoint;       /* B kept instead when the backward recomputes */
    double working;          /* B that a recomputation takes on top, until its backward ends */
    double working_split;    /* the same where the backward for the weights comes later: all that it will need */
    /* B that a work holds at its peak on top of what stands above: of a stage that keeps all; of one that recomputes
     * layer by layer with its backward, or all ahead of it. */
    struct stage_workspace { double forward, backward; } plain, recompute, ahead;
    double boundary;         /* B sent to the next stage by each GPU of the tensor group */
    struct outside outside;  /* of the whole model: meant for a stage that is all of it */
    double compression;      /* B that gradient compression keeps from one iteration to the next */
    const struct chain_layer *chain; /* its layers to plan, and the plan, where it is computed layer by layer */
    const struct stage_plan *plan;   /* (stage_plan.h); or NULL */
    struct stage_work recomputed;    /* what the plan computes again in a backward */
    /* What ZeRO 3 holds whole at once: all outside of blocks, and the largest two neighbouring blocks, or of weights
     * where recomputation is planned any two. */
    struct whole_units { double outside, blocks; } gathered, scattered;    /* B of weights, elements of gradients */
};

/* The class of a layer's tensor. */
static inline enum parameter_class slice_class(const struct slice *slice, size_t tensor)
{
    return tensor < slice->ncommon ? PARAMETERS_COMMON : PARAMETERS_APART;
}
/* All parameters of a layer, those that are trained by class. */
static inline struct by_class slice_weights(const struct slice *slice)
{
    struct by_class weights = slice->trained;

    weights.of[PARAMETERS_COMMON] += slice->frozen;
    return weights;
}
/* What a GPU trains of a layer of the model, by class. */
struct by_class layer_trained(const struct scenario *scenario, const struct layer *layer);

/* One struct for each virtual stage (pipeline * chunks), in model order, in the arena. Errors: more stages
 * than layers, a split that is not of this model, tensor degrees that do not divide (EXIT_INFEASIBLE). */
int stages_cost(struct arena *arena, const struct scenario *scenario, struct stage **stages, struct error *err);

#endif
