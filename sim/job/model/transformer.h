/* transformer: declarations for transformer*.c and model.c; all other files include model.h. */
#ifndef DTSIM_TRANSFORMER_H
#define DTSIM_TRANSFORMER_H

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
    double sequence, hidden; /* keys that queries see: of a slice of a sample's tokens, up to its end */
    double queries;          /* tokens of a sample on this GPU: the sequence, a share under context parallelism, or a slice */
    double slices, before;   /* of a sample's tokens, at least 1; those before this one, whose keys and values are there */
    double ulysses;          /* GPUs that exchange heads for tokens; attention then has that many times the queries and
                                a share of the heads; else 1 */
    double blocks;           /* blocks of keys and values that attention computes one after another; else 1 */
    bool blocks_apart;       /* kernels of their own merge them in fp32 */
    bool gathers_keys;       /* their keys and values are gathered, not passed around a ring */
    double tokens;           /* batch x queries: rows of the products */
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
    bool has_experts;        /* the block has experts instead of the MLP */
    double experts;          /* on this GPU */
    double expert_ffn, shared_ffn;   /* widths of one expert, and of all shared experts together, on this GPU */
    double sent;             /* rows that this GPU sends to experts */
    double received;         /* rows that its experts compute */
    double travelling;       /* rows that it sends over links, as many to each GPU of the group, in the same time */
    double arriving;         /* rows that reach it: `received`, or fewer if a token comes once for several experts */
    struct skew skew;        /* of the rows among the experts */
    double busiest;          /* rows of the GPU that has most of them / mean; `received`, `arriving` are that GPU's */
    bool dispatches_once;    /* tokens are copied for their experts where these are, not before they are sent */
    bool sends_own_rows;     /* a GPU of a tensor group sends the rows of its own tokens, not of all tokens */
    bool gathers_rows;       /* then it receives only a share of its experts' rows; the tensor group gathers the shares */
};

struct cut cut_of(const struct transformer *shape, const struct shard *shard);
/* The same cut as its attention sees it, where GPUs exchange heads for tokens: all tokens of theirs, a share of heads. */
struct cut attention_cut(const struct cut *cut);
/* Whether GPUs of a tensor group share heads of keys and values, as the software can and as they come out even. */
bool may_gather_qkv(const struct transformer *shape, int tensor);
/* Whether grouped keys and values are copied for every head that reads them before attention (Llama's repeat_kv). */
bool repeats_groups(const struct cut *cut);
/* Whether scale, mask and softmax are one kernel, on half-precision scores. */
bool softmax_fuses(const struct cut *cut);
/* Whether PyTorch's operators, one by one, bring rows to experts and back (software.routed_rows). */
bool rows_by_operators(const struct cut *cut);
/* Whether linear layers keep random projections of their inputs. */
bool projects(const struct cut *cut);
/* The rows of the projection of an input with that number of rows. */
double projected_rows(const struct cut *cut, double rows);

/* Parameter tensors of one layer; the last nexperts belong to experts. */
struct tensors {
    struct tensor {
        double elements;
        double rows;         /* of a matrix: the width of its output; of other tensors 0 */
        bool frozen;
        struct linear linear;    /* if it is the weight of a linear layer, else 0 x 0 */
        struct matrix matrix;    /* if it is a matrix, or several of experts; else 0 x 0 */
    } items[48];
    size_t count, nexperts;
    double packed;           /* elements that frozen matrices in fewer bits do not count */
};
struct tensors embedding_tensors(const struct cut *cut);
struct tensors block_tensors(const struct cut *cut);
struct tensors output_tensors(const struct cut *cut);
/* A block of multi-token prediction with what comes before and after its block. */
struct tensors prediction_tensors(const struct cut *cut);
/* LoRA (Hu et al. 2021, section 4.1): freezes the layer's tensors and, in a block, adds two low-rank matrices for every
 * target. Without LoRA does nothing. */
void tensors_adapt(struct tensors *list, const struct cut *cut, bool block);
double tensors_sum(const struct tensors *list, bool frozen);

struct kernels {
    struct kernel *items;
    size_t count, capacity;
};

/* Append the kernels of a layer to the list, each phase's in the order in which they run. */
void embedding_kernels(struct kernels *list, const struct cut *cut);
void block_kernels(struct kernels *list, const struct cut *cut);
void output_kernels(struct kernels *list, const struct cut *cut);
void prediction_kernels(struct kernels *list, const struct cut *cut);
void head_kernels(struct kernels *list, const struct cut *cut);          /* output_kernels without the final norm */
/* Parts of block_kernels: the products for queries, keys and values; what turns and repeats queries and keys, and
 * attention. */
void attention_inputs(struct kernels *list, const struct cut *cut);
void attention_kernels(struct kernels *list, const struct cut *cut);
void router_kernels(struct kernels *list, const struct cut *cut);        /* parts of block_kernels where it has experts */
void expert_kernels(struct kernels *list, const struct cut *cut);
/* Append one kernel: a product, whose name, FLOPs and, unless given, bytes follow from its product and sizes; or a
 * kernel bound by memory. */
void product_kernel(struct kernels *list, const struct cut *cut, struct kernel kernel);
void memory_kernel(struct kernels *list, const struct cut *cut, const char *name, enum phase phase,
                   enum memory_class class, double bytes);
/* Appends `operations` kernels of plain PyTorch, of about the same size; `bytes` are of all of them together. */
void plain_kernels(struct kernels *list, const struct cut *cut, const char *name, enum phase phase,
                   enum memory_class class, int operations, double bytes);
/* Appends kernels of plain PyTorch, each of about the same size, whose tensors are broadcast, converted or not
 * contiguous: PyTorch's element-wise kernels then have no vector loads and compute an address for each value of each
 * operand (ATen/native/cuda/CUDALoops.cuh). `values` are computed and `bytes` read and written by all together. */
void unvectorized_kernels(struct kernels *list, const struct cut *cut, const char *name, enum phase phase,
                          enum memory_class class, int operations, double values, double bytes);
/* Marks kernels of a block's forward, from the list's `first` on, that belong to any of these modules (bits) and run
 * again under recompute: modules. */
void mark_recomputed(struct kernels *list, const struct cut *cut, unsigned modules, size_t first);

/* Append the kernels of Y = X W^T, with X of rows x in, and of its gradients; of a bias, unless the next kernel adds it
 * (`fuses`); of a norm of the hidden states. */
void weight_product(struct kernels *list, const struct cut *cut, enum product_id product, double rows, double out,
                    double in);
/* The kernels of a product in a block, in a narrow format with its casts. `experts`: 0, or how many share the rows and
 * have weights of their own; one grouped product computes all of them. */
void block_product(struct kernels *list, const struct cut *cut, enum product_id product, double experts, double rows,
                   double out, double in);
void activation_function(struct kernels *list, const struct cut *cut, double elements);
void bias_kernels(struct kernels *list, const struct cut *cut, const char *name, double rows, double width, bool fuses);
void norm_kernels(struct kernels *list, const struct cut *cut, const char *name);

/* Widths, on this GPU, of a product that LoRA may adapt. */
struct adapted { double in, out; };
/* Whether LoRA adapts the product. *adapted receives its widths in any case. */
bool lora_adapts(const struct cut *cut, enum lora_target target, struct adapted *adapted);
/* Append the two products of an adapter, if LoRA has one there, and the kernel that adds their result; and a product of
 * the block with its adapter. Return the place in the list where the last of these products begins. */
size_t adapter_kernels(struct kernels *list, const struct cut *cut, enum lora_target target);
size_t adapted_product(struct kernels *list, const struct cut *cut, enum lora_target target, enum product_id product);
/* Whether blocks keep their frozen matrices in four bits; bytes of the largest of them on this GPU once it is converted
 * for its product, else 0. */
bool weights_packed(const struct cut *cut);
double unpacked_weight(const struct cut *cut);
/* Whether the product's weights or an adapter of it are trained, so that the product's input must be kept. */
bool lora_trains(const struct cut *cut, enum lora_target target);

/* A tensor, or several alike, that a block keeps from its forward to its backward. Its kind says in which forms (struct
 * saved_form) it can be kept. */
enum saved_kind {
    SAVED_AS_IT_IS,          /* masks, and what has a value a row */
    SAVED_VALUES,            /* what a backward reads that is none of the others */
    SAVED_INPUT,             /* the input of linear layers, which the gradients of their weights need */
    SAVED_FUNCTION,          /* the input of an activation function, or all that its operations keep of it */
};
/* What computes it; the core of attention runs again under selective recomputation. */
enum saved_part { SAVED_ATTENTION, SAVED_CORE, SAVED_MLP };
struct saved {
    const char *name;
    enum saved_kind kind;
    enum saved_part part;
    double rows, width;      /* of a tensor: rows x width values */
    double bytes;            /* of a value, as it is */
    int tensors;             /* the number of kept tensors; INPUT: the number of linear layers that share the input */
};
struct saved_list {
    struct saved items[32];
    size_t count;
};
/* Append the kernels that quantize what a part keeps, and those that the backward needs it back from. */
void quantization_kernels(struct kernels *list, const struct cut *cut, enum saved_part part);

/* Bytes of one micro-batch on this GPU: activations are kept from the forward to the backward, workspaces are held only
 * while a layer is computed. */
double embedding_activation(const struct cut *cut);
double block_activation(const struct cut *cut);
/* The tensors that add up to block_activation, the core of attention's last; they live in the arena. */
const struct saved_tensor *block_tensors_saved(struct arena *arena, const struct cut *cut, size_t *count);
double block_input(const struct cut *cut);               /* the part of block_activation that is the block's input */
double core_activation(const struct cut *cut);           /* of the core of attention, whether it runs again or not */
/* Under recompute: operators. Marks the forward's kernels of a block whose results are kept: fused attention, and of
 * the products of weights the first, the third, and so on. Then the bytes of these results and of the sums that a tensor
 * group scatters; `needed`: of those that the backward needs. */
void kept_mark(struct kernels *list, const struct cut *cut);
double kept_results(const struct kernels *list, const struct cut *cut, bool needed);
double output_activation(const struct cut *cut);
double prediction_activation(const struct cut *cut);     /* of multi-token prediction, beyond its block */
double loss_activation(const struct cut *cut);           /* the part of output_activation that belongs to the loss */
struct workspace embedding_workspace(const struct cut *cut);
struct workspace block_workspace(const struct cut *cut);
struct workspace output_workspace(const struct cut *cut);

/* Fills the defaults that depend on other keys, and checks that the values fit together. */
int transformer_finish(struct transformer *shape, struct error *err);
double transformer_parameters(const struct transformer *shape);
double transformer_active_parameters(const struct transformer *shape);
int transformer_layers(struct arena *arena, const struct transformer *shape, const struct shard *shard,
                       struct loc tensor_loc, const struct layer **layers, size_t *count, struct error *err);

#endif
