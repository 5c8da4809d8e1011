/* stage_memory: bytes that a stage keeps, recomputes and uses as workspace, added up layer by layer; for stage.c. And
 * what it holds all the time; for memory.c. */
#ifndef DTSIM_STAGE_MEMORY_H
#define DTSIM_STAGE_MEMORY_H

#include "stage/stage.h"

/* While layers are added in the order of the forward: the most bytes held so far, with the kept ones.
 * Zero-initialise. */
struct stage_peaks {
    struct stage_workspace plain, recompute;
    double ahead;            /* B of the largest workspace of a backward */
    double waiting;          /* B of gradients of the keys and values of earlier slices, for these slices' backwards */
    double kept;             /* B under recomputation: checkpoints and one segment's activations */
    double segment;          /* B of the segment's activations so far */
    int blocks;              /* blocks so far */
    int run;                 /* recomputed blocks since the last block that keeps all activations */
};
/* The layer must be the stage's newest slice. */
void stage_peaks_add(struct stage_peaks *peaks, struct stage *stage, const struct scenario *scenario,
                     const struct layer *layer);
/* After the last layer: sets the stage's working memory and workspaces. */
void stage_peaks_settle(const struct stage_peaks *peaks, struct stage *stage, const struct scenario *scenario);
/* Sets `gathered` and `scattered`: the layers that ZeRO 3 holds whole at once. */
void stage_whole_layers(struct stage *stage, const struct scenario *scenario);

/* stage.states. */
struct by_class stage_states(struct stage *stage, const struct scenario *scenario);
/* B of the older versions of its weights, which replicas hold whole (asynchronous schedules). */
double stage_stashed(const struct stage *stage, const struct scenario *scenario);

/* Elements of the weights of which a GPU holds copies in 8 or 4 bits: all the time; and of one block at a time, the
 * largest. Copies that each forward makes are the backward's too, but if the block's forward runs again right before its
 * backward, it makes them again. */
struct narrow_copies { double lasting, passing; };
struct narrow_copies stage_narrow_copies(const struct stage *stage, const struct scenario *scenario);

/* B of the dummy weight gradients that a rank's process keeps, one of each shape (memory: dummy_gradients). A product
 * that adds the gradient of its weight to the sum itself hands PyTorch a tensor that nobody reads, so that the hooks of
 * gradients run. It has the weight's shape and format. Transformer Engine keeps it for all weights of that shape (since
 * 2.3; pytorch/module/base.py: get_dummy_wgrad, called by linear.py and layernorm_linear.py; since 2.10 by
 * grouped_linear.py for each expert), and so does Megatron Core for its output layer (since 0.14; tensor_parallel/
 * layers.py). */
double rank_dummy_gradients(const struct scenario *scenario, const struct stage *stages, int rank);

/* ZeRO 3 that gathers tensor by tensor (DeepSpeed, runtime/zero/partitioned_param_coordinator.py): a work of a stage as
 * steps, each of which computes with one piece of a layer (slice_piece), in the order in which they run. A piece is
 * gathered for its step, unless it is whole already. Then the next pieces that are not are gathered ahead: `prefetch`
 * parameters, at least one piece, but none while `live` parameters or more are whole. After its step a piece is given
 * back, unless a later use of it was passed while gathering ahead, or comes within `reuse` parameters of other
 * pieces. An embedding that is also the output layer's is whole from the first step to the last: it is an external
 * parameter of the whole model (register_external_parameter; fetch_sub_module counts the model among its users). */
struct tensor_step {
    const struct slice *slice;
    enum work_kind kind;             /* FORWARD, RECOMPUTE, or a backward */
    enum parameter_class class;
    size_t piece;                    /* number of the piece in the stage */
    double parameters, trained;      /* of the piece */
    double share;                    /* of the layer's work of this kind */
    bool ends;                       /* the layer's last step of this kind */
};
struct tensor_walk {
    struct { struct tensor_step *items; size_t count, capacity; } steps;
    bool *whole;                     /* of a piece */
    size_t held;                     /* the step of a tied embedding; steps.count: there is none */
    size_t ahead;                    /* the first step whose piece was not looked at ahead */
    double live;                     /* parameters of whole pieces */
    double ahead_of;                 /* parameters gathered ahead at this step */
    const struct parallelism *spec;
};
/* `fused`: a layer that is recomputed is so right before its backward. */
void tensor_walk_init(struct tensor_walk *walk, const struct scenario *scenario, const struct stage *stage,
                      enum work_kind kind, bool fused);
void tensor_walk_release(struct tensor_walk *walk);
/* The next step whose piece is gathered while step k begins, first k itself; before the first step the held one. False:
 * there is none left. */
bool tensor_walk_gathers(struct tensor_walk *walk, size_t k, size_t *step);
/* Step k is computed. */
void tensor_walk_leave(struct tensor_walk *walk, size_t k);

#endif
