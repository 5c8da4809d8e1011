/* transformer: what transformer.c, its kernels and hf_config.c share; everyone else sees model.h. */
#ifndef DTSIM_TRANSFORMER_H
#define DTSIM_TRANSFORMER_H

#include "model/model.h"

/* The share of a transformer that one GPU of the tensor-parallel group holds (Megatron's split: Shoeybi et al. 2019,
 * section 3; sequence parallelism: Korthikanti et al. 2022, section 4.2.2). Doubles: products do not overflow. */
struct cut {
    const struct transformer *shape;
    enum dtype dtype;
    enum recompute recompute;
    const struct lora *lora;
    enum activation_formula formula;
    enum cross_entropy cross_entropy;
    bool measured;           /* the training loop computes metrics from the logits */
    double tensor;           /* GPUs of the group */
    double value;            /* bytes of one value */
    bool fp8, fp8_kept;      /* weights' products in blocks; weights that are in fp8 when the forward begins */
    double saved;            /* bytes of a value that such a product keeps of its input */
    double batch;            /* samples of the micro-batch */
    double sequence, hidden;
    double queries;          /* tokens of a sample on this GPU: a share of the sequence, under context parallelism */
    double blocks;           /* of keys and values that come one after another: ring attention; else 1 */
    double tokens;           /* batch x queries: rows of the products */
    double own_tokens;       /* rows of norms, dropouts and residuals: tokens, or 1/t of them if sequence_parallel */
    double input_tokens;     /* rows that are kept of the input of products split by columns: own_tokens, where they are
                                gathered again for the backward (Megatron-LM), or what plain autograd keeps: tokens */
    double heads;            /* on this GPU */
    double query, key, values;   /* widths of Q, K and V on this GPU */
    double attended;         /* width of the attention's output on this GPU */
    double query_size, value_size;   /* of one head */
    double ffn;              /* width of the MLP on this GPU */
    double vocabulary;       /* rows of the embedding on this GPU */
    double columns;          /* that the output layer computes on this GPU: dummy tokens too, in time alone (who wants
                                them in memory writes the padded vocabulary) */
    double scores;           /* attention scores on this GPU: batch x heads x queries x sequence */
    bool has_experts;        /* of a block: in the MLP's place */
    double experts;          /* on this GPU */
    double expert_ffn, shared_ffn;   /* widths of one expert, and of all shared ones, on this GPU */
    double sent;             /* rows that this GPU sends to experts */
    double received;         /* rows that its experts compute */
    bool gathers_rows;       /* of what its experts compute it gets a share, and the tensor group gathers the shares */
};

/* Parameter tensors of one layer; the last nexperts are those of experts. */
struct tensors {
    struct tensor {
        double elements;
        double rows;         /* of a matrix: the width of what it puts out; of others 0 */
        bool frozen;
    } items[32];
    size_t count, nexperts;
};
struct tensors embedding_tensors(const struct cut *cut);
struct tensors block_tensors(const struct cut *cut);
struct tensors output_tensors(const struct cut *cut);
/* LoRA: what the layer has is frozen, and every target of a block gets two thin matrices (Hu et al. 2021, section
 * 4.1). */
void tensors_adapt(struct tensors *list, const struct cut *cut, bool block);
double tensors_sum(const struct tensors *list, bool frozen);

struct kernels {
    struct kernel *items;
    size_t count, capacity;
};

/* The kernels of the part, in no order that matters, appended to the list. */
void embedding_kernels(struct kernels *list, const struct cut *cut);
void block_kernels(struct kernels *list, const struct cut *cut);
void output_kernels(struct kernels *list, const struct cut *cut);
void attention_kernels(struct kernels *list, const struct cut *cut);     /* part of block_kernels */
/* Whether scale, mask and softmax are one kernel, on half-precision scores. */
bool softmax_fuses(const struct cut *cut);
/* One kernel more: a product, whose name, FLOPs and, unless given, bytes follow from the rest; or one bound by
 * memory. */
void product_kernel(struct kernels *list, const struct cut *cut, struct kernel kernel);
void memory_kernel(struct kernels *list, const struct cut *cut, const char *name, enum phase phase,
                   enum memory_class class, double bytes);
/* Operations of plain PyTorch, each a kernel of about as many bytes as the next one; `bytes` are those of all. */
void plain_kernels(struct kernels *list, const struct cut *cut, const char *name, enum phase phase,
                   enum memory_class class, int operations, double bytes);

/* Y = X W^T, with X of rows x in, and its gradients; what adds its bias, unless the next kernel does (`fuses`); a norm
 * of the hidden states. */
void weight_product(struct kernels *list, const struct cut *cut, enum product_id product, double rows, double out,
                    double in);
void bias_kernels(struct kernels *list, const struct cut *cut, const char *name, double rows, double width, bool fuses);
void norm_kernels(struct kernels *list, const struct cut *cut, const char *name);

/* The products that LoRA may adapt: their width on this GPU. */
struct adapted { double in, out; };
/* Whether it does. */
bool lora_adapts(const struct cut *cut, enum lora_target target, struct adapted *adapted);
/* Whether the product's weights, or an adapter beside them, want a gradient, so that its input is kept. */
bool lora_trains(const struct cut *cut, enum lora_target target);

/* Bytes of one micro-batch on this GPU: kept from the forward to the backward, and for a moment on top. */
double embedding_activation(const struct cut *cut);
double block_activation(const struct cut *cut);
double block_input(const struct cut *cut);               /* what of it is the block's input */
double output_activation(const struct cut *cut);
double loss_activation(const struct cut *cut);           /* what of it belongs to the loss */
struct workspace embedding_workspace(const struct cut *cut);
struct workspace block_workspace(const struct cut *cut);
struct workspace output_workspace(const struct cut *cut);

/* Fills the defaults that depend on other keys and checks that the numbers fit together. */
int transformer_finish(struct transformer *shape, struct error *err);
double transformer_parameters(const struct transformer *shape);
double transformer_active_parameters(const struct transformer *shape);
int transformer_layers(struct arena *arena, const struct transformer *shape, const struct shard *shard,
                       struct loc tensor_loc, const struct layer **layers, size_t *count, struct error *err);

/* Reads a Hugging Face config.json as a transformer; its sequence is max_position_embeddings. */
int hf_config_load(struct arena *arena, const char *path, struct transformer **shape, struct error *err);

#endif
