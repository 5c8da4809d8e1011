/* operator: the words in which strategies/blocks/ writes a layer as a list of operators, on one GPU of the tensor-parallel
 * group, for one micro-batch. An operator has its kernels, workspace and exchanges (model.h). Weights and kept tensors, which
 * have orders of their own, are lists of the layer. A total of a layer is one loop over a list. */
#ifndef DTSIM_OPERATOR_H
#define DTSIM_OPERATOR_H

#include "model/model.h"

/* The part of a transformer that one GPU of the tensor-parallel group holds (Megatron's split: Shoeybi et al. 2019,
 * section 3; sequence parallelism: Korthikanti et al. 2022, section 4.2.2). Sizes are doubles, so that their products
 * do not overflow. */
struct cut {
    const struct transformer *shape;
    enum dtype dtype;
    enum recompute recompute;
    unsigned recomputed;     /* what recompute: modules runs again: a bit for each enum recompute_module */
    const struct lora *lora;
    enum activation_formula formula;
    struct saved_form form;
    enum cross_entropy cross_entropy;
    bool measured;           /* the training loop computes metrics from the logits */
    double tensor;           /* GPUs of the group */
    double value;            /* bytes of one value */
    bool fp8;                /* products of weights in blocks are in `narrow` */
    enum dtype narrow;       /* a format of 8 or 4 bits */
    bool fp8_kept;           /* their weights are already in it when the forward begins */
    double saved;            /* bytes per value of the input that such a product keeps for the backward */
    double batch;            /* samples of the micro-batch */
    double hidden;           /* width of the hidden states */
    double sequence;         /* keys that queries see: of a slice of a sample's tokens, up to its end */
    double queries;          /* tokens of a sample on this GPU: the sequence, a share under context parallelism, or a slice */
    double slices, before;   /* of a sample's tokens, at least 1; those before this one, whose keys and values are there */
    double ulysses;          /* GPUs that exchange heads for tokens; attention then has that many times the queries and
                                a share of the heads; else 1 */
    double blocks;           /* blocks of keys and values that attention computes one after another; else 1 */
    bool blocks_apart;       /* kernels of their own merge them in fp32 */
    bool gathers_keys;       /* their keys and values are gathered, not passed around a ring */
    double tokens;           /* batch x queries: rows of the products */
    double key_tokens;       /* rows of keys and values: tokens, or in cross attention the encoder's */
    double own_tokens;       /* rows of norms, dropouts and residuals: tokens, or 1/t of them if sequence_parallel */
    double input_tokens;     /* rows that products split by columns keep of their input: own_tokens if the rows are
                                gathered again for the backward (Megatron-LM), tokens with plain autograd */
    double heads;            /* on this GPU */
    double query, key, values;   /* widths of Q, K and V that attention sees on this GPU */
    double projected;        /* columns of the product that computes them on this GPU */
    bool gathers_qkv;        /* the tensor group gathers these columns; K and V are then of one head */
    double attended;         /* width of the attention's output on this GPU */
    double query_size, value_size;   /* of one head */
    double ffn;              /* width of the MLP on this GPU */
    double vocabulary;       /* rows of the embedding on this GPU */
    double columns;          /* columns that the output layer computes on this GPU, including columns of padding. Padding
                                costs only time here; to count its memory too, give the padded vocabulary */
    double scores;           /* attention scores on this GPU: batch x heads x queries x sequence */
    bool windowed;           /* the block's queries see the keys of the window alone */
    bool predicts;           /* the block is of multi-token prediction */
    const struct cut *source;        /* of a decoder: the encoder whose output its blocks read; else NULL */
    bool begins, closes;     /* the block is a decoder's first, with its embedding, or an encoder's last, with its norm */
    enum mixer mixer;        /* what stands in the place of attention */
    bool has_mlp;            /* the block has an MLP or experts */
    bool has_experts;        /* the block has experts instead of the MLP */
    double context;          /* GPUs that divide a sample */
    double gate;             /* columns of attention's gate on this GPU */
    double routed;           /* width of the rows that experts get */
    double experts;          /* on this GPU */
    double expert_ffn, shared_ffn;   /* widths of one expert, and of all shared experts together, on this GPU */
    double sent;             /* rows that this GPU sends to experts */
    double received;         /* rows that its experts compute */
    double travelling;       /* rows that it sends over links, as many to each GPU of the group, in the same time */
    double arriving;         /* rows that reach it: `received`, or fewer if a token comes once for several experts */
    struct skew skew;        /* of the rows among the experts */
    double busiest;          /* rows of the GPU that has most of them / mean; `received`, `travelling`, `arriving` are that GPU's */
    bool dispatches;         /* several GPUs divide the experts */
    bool gathers_tokens;     /* these gather the tokens of all, instead of sending them */
    bool dispatches_once;    /* tokens are copied for their experts where these are, not before they are sent */
    bool sends_own_rows;     /* a GPU of a tensor group sends the rows of its own tokens, not of all tokens */
    bool gathers_rows;       /* then it receives only a share of its experts' rows; the tensor group gathers the shares */
};

struct cut cut_of(const struct transformer *shape, const struct shard *shard);
/* The same cut as its attention sees it, where GPUs exchange heads for tokens: all tokens of theirs, a share of heads. */
struct cut attention_cut(const struct cut *cut);
/* Whether GPUs of a tensor group share heads of keys and values, as the software can and as they come out even. */
bool may_gather_qkv(const struct transformer *shape, int tensor);
/* Values of queries, keys and values on this GPU, a token of the queries. */
double head_widths(const struct cut *cut);
/* Whether grouped keys and values are copied for every head that reads them before attention (Llama's repeat_kv). */
bool repeats_groups(const struct cut *cut);
/* Whether scale, mask and softmax are one kernel, on half-precision scores. */
bool softmax_fuses(const struct cut *cut);
/* Whether PyTorch's operators, one by one, bring rows to experts and back (software.routed_rows). */
bool rows_by_operators(const struct cut *cut);
/* B of a value of the residual, and of a norm's input. */
double residual_value(const struct cut *cut);
/* Whether casts between these and products are kernels of their own. */
bool casts_apart(const struct cut *cut);
/* Whether linear layers keep random projections of their inputs. */
bool projects(const struct cut *cut);
/* The rows of the projection of an input with that number of rows. */
double projected_rows(const struct cut *cut, double rows);

/* ---- what an operator carries ---- */

/* A weight or another parameter tensor. `place` is its part of the framework's order of registration, in which buckets,
 * pieces of ZeRO and matrices of Muon follow; within a part that order is the operators'. */
enum place { PLACE_FIRST, PLACE_BLOCK, PLACE_MLP, PLACE_EXPERTS, PLACE_ADAPTERS, PLACE_EXPERT_ADAPTERS, PLACE_COUNT };
struct weights {
    enum place place;
    double elements;
    double rows;             /* of a matrix: the width of its output; of other tensors 0 */
    struct linear linear;    /* if it is the weight of a linear layer, else 0 x 0 */
    struct matrix matrix;    /* if it is a matrix, or several of experts; else 0 x 0 */
};

/* A tensor that a layer keeps from its forward to its backward, or several alike. The kind says in which forms (struct
 * saved_form) it can be kept. */
enum kept_kind {
    KEPT_AS_IT_IS,           /* masks, and what has a value a row */
    KEPT_VALUES,             /* what a backward reads that is none of the others */
    KEPT_INPUT,              /* the input of linear layers, which the gradients of their weights need */
    KEPT_FUNCTION,           /* the input of an activation function, or all that its operations keep of it */
};
/* The order in which a block's kept tensors are listed. */
enum kept_order {
    KEPT_NORMS, KEPT_WIDE_NORMS, KEPT_POST_NORMS, KEPT_QK_NORMS, KEPT_ATTENTION_INPUT, KEPT_CROSS_INPUT, KEPT_MLP_INPUT,
    KEPT_SHARED_RESULT, KEPT_MASKS, KEPT_QKV, KEPT_PROJECTION_INPUT, KEPT_LATENT, KEPT_ROUTED, KEPT_MLP,
    KEPT_SHARED, KEPT_ADAPTERS, KEPT_CORE
};
struct kept_value {
    const char *name;
    enum kept_order order;
    enum kept_kind kind;
    enum half half;          /* the half whose kernels pack it, where it is quantized */
    unsigned modules;        /* where any of these runs again, it is not kept */
    unsigned reduced_by;     /* where any of these runs again, it is kept as `reduced` */
    struct kept_as {
        double width, bytes; /* of rows x width values, B each as they are */
        int tensors;         /* their number; INPUT: the number of linear layers that read it */
    } as, reduced;
    double rows;
    bool joined;             /* a further one of that order counts as more tensors (AS_IT_IS: more rows) of the first */
    bool loss;
};

/* The list of a layer's operators while it is written. */
struct operators {
    const struct cut *cut;
    enum half half;          /* of the operators that are written now */
    unsigned within;         /* modules that contain all of them */
    struct { struct operator *items; size_t count, capacity; } list;
    size_t current;          /* the operator that kernels and exchanges go to */
    struct { struct kernel *items; size_t count, capacity; } kernels;
    struct { struct weights *items; size_t count, capacity; } weights;
    struct { struct kept_value *items; size_t count, capacity; } values;
    size_t block_end;        /* the number of operators when the block was complete; 0: it is no block */
    double input;            /* B of the block's input that are part of what is kept */
    double unpacked;         /* B of the largest weight that a product converts; held in both directions */
    double base;             /* B that the backward holds beside the largest of all peaks */
};
void operators_begin(struct operators *ops, const struct cut *cut);
void operators_release(struct operators *ops);

/* ---- the vocabulary of kernels ---- */

/* Begins an operator that belongs to these modules (bits), and to `within`. Kernels and exchanges are then its. */
struct operator *operator_begin(struct operators *ops, const char *name, unsigned modules);
/* Append one kernel: as it is; of a product, whose name, FLOPs and bytes follow from its product and sizes; or one bound by
 * memory. */
void add_kernel(struct operators *ops, struct kernel kernel);
void product_kernel(struct operators *ops, struct kernel kernel);
void memory_kernel(struct operators *ops, const char *name, enum phase phase, enum memory_class class, double bytes);
/* Appends `operations` kernels of plain PyTorch, of about the same size; `bytes` are of all of them together. */
void plain_kernels(struct operators *ops, const char *name, enum phase phase, enum memory_class class, int operations,
                   double bytes);
/* Appends kernels of plain PyTorch, each of about the same size, whose tensors are broadcast, converted or not
 * contiguous: PyTorch's element-wise kernels then have no vector loads and compute an address for each value of each
 * operand (ATen/native/cuda/CUDALoops.cuh). `values` are computed and `bytes` read and written by all together. */
void unvectorized_kernels(struct operators *ops, const char *name, enum phase phase, enum memory_class class,
                          int operations, double values, double bytes);
/* Whether a norm is one of plain PyTorch, which keeps a copy of its input in fp32. */
bool norm_copies(const struct cut *cut);
/* The kernels of a norm of rows x width values. */
void norm_kernels(struct operators *ops, const char *name, double rows, double width);
/* An operator that adds a bias of that width, unless the next kernel adds it (`fuses`), and sums its gradient. */
void bias(struct operators *ops, const char *name, double rows, double width, bool fuses);
/* Says how often the current operator exchanges in a forward and in PHASE_BACKWARD_INPUT. A second call for the same kind
 * replaces the first. */
void sends(struct operators *ops, enum sending what, int forward, int backward, double bytes);
/* Keeps a tensor; returns its index, or of the one that it joined. */
int keep(struct operators *ops, struct kept_value value);
/* A tensor that a layer outside of blocks keeps, as it is. */
void keep_outer(struct operators *ops, const char *name, double values, double bytes);
/* A parameter tensor; one that is no matrix; a matrix that is not the weight of a linear layer. */
void parameter(struct operators *ops, struct weights weights);
void vector(struct operators *ops, enum place place, double elements);
void matrix(struct operators *ops, enum place place, double rows, double columns);
void norm_weights(struct operators *ops, enum place place, double width);
/* Begins an operator whose kernels quantize what the half keeps, and unpack it for the backward; `core`: of the core of
 * attention alone. */
void packs(struct operators *ops, bool core);

/* ---- the words of blocks ---- */

/* Whether the product's weights or an adapter of it are trained, so that the product's input must be kept. */
bool lora_trains(const struct cut *cut, enum lora_target target);
/* Whether blocks keep their frozen matrices in four bits. */
bool weights_packed(const struct cut *cut);
/* B of the random matrix of a linear layer, which the forward makes and the backward makes again. */
double random_matrix(const struct cut *cut);
/* Whether a recomputation with early_stop leaves out the end of a block, from its last product on: the backward needs the
 * input of that product and no later result, unless a dropout mask follows. Autograd saves the factors of a product before
 * it runs it, of a frozen one its weights alone; modules in fp8 (Transformer Engine), and linear layers that keep
 * projections, save after it. A norm after the product needs its result. What operators recompute is compiled where
 * kernels are fused, and torch.compile leaves out what nobody needs. */
bool ends_early(const struct cut *cut);

/* What one operator gives to the next. */
struct tensor {
    double rows, width;      /* that a product reads */
    int kept;                /* the index of the value that is kept where its weights are trained; -1: none */
    unsigned modules;        /* in which it is made */
};

/* How a product of weights is divided over the tensor group (Shoeybi et al. 2019, section 3). */
enum split { SPLIT_NONE, SPLIT_COLUMNS, SPLIT_ROWS };
struct weight_product {
    enum product_id id;
    struct tensor in;
    double out;              /* columns of its result on this GPU */
    enum split split;
    enum place place;
    bool plain;              /* it stays in the format of activations, and its input is kept as it is: it is in no block,
                                or no linear layer of the software's */
    enum lora_target target; /* by which LoRA adapts it; COUNT: by none */
    int times;               /* equal GEMMs that compute it; 0: one */
    int matrices;            /* matrices that its one tensor counts as, for Muon; 0: one */
    const double *parts;     /* MATRIX_PARTS rows of it; NULL: it has one part */
    double experts;          /* this many share the rows, and have weights of their own; 0: no experts */
    bool bias;               /* it has one, which bias() adds */
    bool whole_input;        /* the tensor group sums its input's gradient, and gathers its input where it is in shares */
    bool sums;               /* the group sums its result */
    bool pieces;             /* its result can be summed piece by piece */
    unsigned modules;        /* that contain the product */
    int readers;             /* copies of its input that are kept where each linear layer keeps its own; 0: as matrices */
};
/* Y = X W^T and its gradients, with casts, the adapter, weights and what is kept. */
struct tensor product(struct operators *ops, const struct weight_product *product);
/* The product after attention, with its bias; `pieces` as in struct weight_product. */
void project(struct operators *ops, struct tensor in, bool pieces);
/* A product outside of the halves of blocks, whose matrix is whole on every GPU; of the model's input, which needs no gradient,
 * with a bias or without. */
void outer_product(struct operators *ops, const char *name, enum product_id id, double rows, double out, double in);
void input_product(struct operators *ops, const char *name, enum product_id id, double rows, double out, double in, bool biased);
/* Appends the GEMMs alone, in the format of activations. */
void plain_product(struct operators *ops, enum product_id id, double rows, double out, double in);
/* Where casts are kernels of their own: of hidden states that so many linear layers read. */
void input_casts(struct operators *ops, int layers);
/* A norm of the hidden states before a half of a block, its input and output kept; outside of the halves; of queries and
 * keys. */
void outer_norm(struct operators *ops, const char *name, enum place place);
void qk_norms(struct operators *ops);
struct tensor norm(struct operators *ops, const char *name, enum kept_order order);
/* The sum of the gradients of an input that two products of a gated MLP read. */
void gate_sum(struct operators *ops, double rows);
/* The function between an MLP's products, on rows x width values. */
struct tensor activation(struct operators *ops, double rows, double width, enum kept_order order);
/* The probabilities of a token's experts; its rows in their order, and back; the biases of their last products, each times
 * its token's probability; the gate of the shared experts. */
void router(struct operators *ops, struct tensor in);
struct tensor rows(struct operators *ops);
void weighted_biases(struct operators *ops, double experts, double rows);
void shared_gate(struct operators *ops);
/* Keeps the input, that wide, of the product after attention or another mixer; returns its index. */
int keep_projection_input(struct operators *ops, double width);
/* Attention's result times its gate, where it has one. */
struct tensor gated(struct operators *ops, struct tensor in);
/* B of a mixer's state, and of what a GPU's tokens do to any, that a context group gathers, and of the tokens before a convolution
 * that go to the next GPU; FLOP and B of the kernel that computes them. */
struct passed_on { double state, tail, flop, bytes; };
/* Of mixers: a product of their input; what a context group exchanges, tensors of these widths, heads for tokens, or states
 * where the software does so and the mixer can (else NULL); how often a
 * group's values are copied where more GPUs exchange them than there are groups; a tensor that is kept; the norm of `weights`
 * weights of their result, times a gate; the product behind it. */
struct tensor mixer_product(struct operators *ops, struct tensor in, double out, bool whole_input);
void mixer_exchanges(struct operators *ops, const double *widths, size_t count, const struct passed_on *passed);
double mixer_copies(const struct cut *cut, double groups);
void keep_mixed(struct operators *ops, const char *name, double width);
struct tensor gated_norm(struct operators *ops, double width, double weights);
void mixer_projection(struct operators *ops, struct tensor in);
/* A recurrence that is computed in chunks of tokens: kernels of the forward, of FLOP on tensor cores and bytes, of which some run
 * again in the backward, which has twice as much of each. Nobody has measured them: their time stands on the GPU's large
 * products, or on bytes. `recurrence`: the forward's FLOP of the mathematics, which model FLOPs count. */
struct scan_kernel { const char *name; double flop, bytes; bool again; };
void scan(struct operators *ops, const char *name, double recurrence, const struct scan_kernel *kernels, size_t count);
/* What stands between the products of queries, keys and values and the projection; of cross attention, which has no mask and no
 * positions. */
struct tensor core(struct operators *ops);
struct tensor cross_core(struct operators *ops);
/* The biases of queries, keys and values of these widths, where there are any. */
void qkv_bias(struct operators *ops, const char *name, double query, double key, double values);
void post_norm(struct operators *ops, const char *name);
void residual(struct operators *ops, const char *name);
/* A row of a table for each token; `further`: it is added to the hidden states. */
void lookup(struct operators *ops, const char *name, double rows, double columns, bool further);
/* The biases that all blocks of a stack add to their scores. */
void lookup_biases(struct operators *ops);
/* The cross-entropy over this GPU's share of the vocabulary. */
void loss(struct operators *ops);
/* Says that the current operator belongs to the end that ends_early leaves out. */
void ends_block(struct operators *ops);
/* A whole block: its halves, with their norms and residual sums. */
void block(struct operators *ops);

/* ---- the kinds of parts of a layer: a file of strategies/blocks/ each, and one line of its list.h ---- */

enum part { PART_INPUT, PART_EMBEDDING, PART_ATTENTION, PART_CROSS, PART_MLP, PART_PREDICTION, PART_HEAD };
struct part_kind {
    enum part part;
    bool (*stands)(const struct cut *cut);       /* whether it is this kind; NULL: always */
    void (*write)(struct operators *ops, struct tensor in);    /* `in`: of halves of a block, the norm's output */
};
/* Writes the first kind of the list that stands there. */
void write_part(struct operators *ops, enum part part, struct tensor in);

#endif
