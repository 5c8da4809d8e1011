/* model: a network as a list of layers: parameters, kernels, activation and boundary bytes. Everything is what ONE GPU
 * of the tensor-parallel group holds and does for ONE micro-batch, unless it says "whole". */
#ifndef DTSIM_MODEL_H
#define DTSIM_MODEL_H

#include "kernels/cost.h"

/* A transformer's shape; presets and Hugging Face configurations become this. */
struct transformer {
    const struct node *node;
    int layers, hidden, heads;
    int kv_heads;                /* grouped-query attention; default: heads */
    int head_size;               /* default: hidden / heads */
    int ffn;                     /* default: 4 hidden */
    int sequence;                /* tokens a sample */
    int vocabulary;
    int positions;               /* learned position embeddings; 0: none (rotary) */
    int token_types;             /* BERT's segment embeddings; 0: none */
    int norm;                    /* enum norm: layernorm (weight and bias) | rmsnorm (weight) */
    int mlp;                     /* enum mlp: gelu (two products) | swiglu (three) */
    bool qkv_bias, bias;         /* of the attention inputs' products; of the other products */
    bool tied;                   /* the output layer shares the embedding's weights */
    bool final_norm;
    bool embedding_norm;         /* BERT */
    bool causal;                 /* decoder: fused kernels skip scores above the diagonal, products compute them; model
                                    FLOPs count them, as the papers do */
    int head;                    /* enum head: language model | masked language model with BERT's transform | none */
    double dropout;              /* after the embedding, the projection and the MLP; 0: no masks are stored */
    double attention_dropout;    /* of the attention probabilities; default: dropout */
    bool fused_qkv;              /* one product and one tensor for queries, keys and values */
    bool fused_kernels;          /* false: plain PyTorch, a kernel an operation */
    bool softmax_in_fours;       /* a fused softmax takes four rows of scores at once, or is not */
    bool fused_norm;             /* of an RMSNorm alone, which others fuse too; default: fused_kernels */
    bool fused_bias;             /* products add their biases; default: in plain PyTorch */
    bool flash_attention;        /* attention without storing the scores */
    /* Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2, section 2.1): head_size is then the part of a query
     * or key without position, rope_head_size the rotated part, which all heads share in the keys. */
    int kv_rank;                 /* width of the compressed keys and values; 0: none, the attention is not latent */
    int q_rank;                  /* of the compressed queries; 0: these are not compressed */
    int rope_head_size, value_head_size;     /* default: 0; head_size */
    /* Blocks with experts in the MLP's place (Shazeer et al. 2017; Fedus et al. 2021): a router sends each token to
     * experts_per_token of them, and every token also goes through the shared ones. */
    int experts;                 /* in a block; 0: none */
    int experts_per_token;
    int expert_ffn;              /* width inside one expert; default: ffn */
    int shared_experts;
    int dense_layers;            /* the first blocks, without experts */
    int moe_every;               /* of the others, block i has experts where this divides i (from 0); default: 1 */
};
bool transformer_has_experts(const struct transformer *shape, int block);
/* Rows of the embedding: all of the vocabulary, as it was written; where so many GPUs cannot share it evenly, what
 * Megatron-LM pads any vocabulary to, a multiple of 128 a GPU (--make-vocab-size-divisible-by). */
double transformer_vocabulary(const struct transformer *shape, int tensor);
double transformer_padded_vocabulary(const struct transformer *shape, int tensor);
/* Columns of the output layer's product: those, with Megatron-LM's kernels (megatron/training/tokenizer,
 * vocab_size_with_padding); with plain PyTorch's the rows of the embedding. */
double transformer_output_columns(const struct transformer *shape, int tensor);
#define NORMS(X) X(NORM_LAYERNORM, "layernorm") X(NORM_RMSNORM, "rmsnorm")
enum norm { NORMS(ENUM_VALUE) };
#define MLPS(X) X(MLP_GELU, "gelu") X(MLP_SWIGLU, "swiglu")
enum mlp { MLPS(ENUM_VALUE) };
#define HEADS(X) \
    X(HEAD_LANGUAGE_MODEL, "language-model") X(HEAD_MASKED_LANGUAGE_MODEL, "masked-language-model") \
    X(HEAD_NONE, "none")
enum head { HEADS(ENUM_VALUE) };
extern const struct table transformer_table;
extern const struct table transformer_change_table;      /* any of its keys */
extern const char *const norm_names[], *const mlp_names[], *const head_names[];

/* A layer whose times or FLOPs are given. With times, every number is per micro-batch; with `flops`, per sample and,
 * for bytes, at 4 bytes a value: they scale with the dtype of the run. */
struct given_layer {
    const struct node *node;
    const char *name;
    double parameters;                       /* elements */
    double forward, backward, recompute;     /* s; NaN: not given. defaults: backward 2 forward, recompute forward */
    double backward_input, backward_weight;  /* s; default: half of backward each, or what the other leaves of it */
    double flops;                            /* FLOP of one forward of one sample (whole); NaN: times are given */
    double efficiency, efficiency_backward;  /* with flops: its products' rate over that of the GPU's large ones */
    double operands;                         /* with flops: B of a product's inputs and outputs but weights */
    double traffic, traffic_backward;        /* with flops: B that kernels other than products read and write */
    double activation, boundary;             /* B kept for the backward; B of the output */
};
extern const struct table given_layer_table;
/* One pipeline stage (and chunk) whose times are given, per micro-batch: the same struct without name and flops. */
extern const struct table given_stage_table;

struct model {
    const struct node *node;
    const char *preset;                      /* scenarios/models/NAME.yaml */
    struct transformer *transformer;
    const char *hf_config;                   /* path, beside the scenario */
    struct transformer *with;                /* what of preset or hf_config is otherwise; NULL after model_load */
    struct list layers;                      /* of struct given_layer */
    struct list stages;                      /* of struct given_layer; one: every stage alike */
    int sequence;                            /* overrides the transformer's, and is it after model_load; 0: none */
    double published_parameters;             /* presets: what the source prints; 0: nothing to compare */
    const char *title;
};
extern const struct table model_table;

/* Reads the `model:` mapping: follows preset and hf_config until exactly one of transformer, layers, stages is left,
 * and sets preset and hf_config to NULL: what field_dump prints is the whole model. */
int model_load(struct arena *arena, const struct node *value, struct model *model, struct error *err);
bool model_is_timed(const struct model *model);          /* every time is given: needs no GPU */
bool model_has_samples(const struct model *model);       /* transformer or flops: batch.global makes sense */
double model_parameters(const struct model *model);      /* whole; NaN for stages alike without a stage count */
/* Of them, those that one token meets: all but the experts that it is not sent to. */
double model_active_parameters(const struct model *model);

#define RECOMPUTES(X) \
    X(RECOMPUTE_NONE, "none") X(RECOMPUTE_SELECTIVE, "selective") X(RECOMPUTE_FULL, "full") \
    X(RECOMPUTE_OPTIMAL, "optimal")
enum recompute { RECOMPUTES(ENUM_VALUE) };

/* Which formula says what a block keeps for its backward:
 * korthikanti: Korthikanti et al. 2022, section 4, part by part: whatever a backward reads;
 * rajbhandari: Rajbhandari et al. 2020 (ZeRO), section 3.2, footnote: 12 x hidden values a token and block, nothing
 *     else. It leaves out attention scores, norms and masks. */
#define ACTIVATION_FORMULAS(X) X(ACTIVATIONS_KORTHIKANTI, "korthikanti") X(ACTIVATIONS_RAJBHANDARI, "rajbhandari")
enum activation_formula { ACTIVATION_FORMULAS(ENUM_VALUE) };
/* fp32: logits are converted and the softmax kept in fp32 (Megatron-LM; Korthikanti et al. 2022, section 4.3);
 * plain: PyTorch's cross_entropy on logits as they are, which keeps their log-probabilities in the same format;
 * fused: one kernel reads half-precision logits and keeps nothing else (flash-attn's, Transformer Engine's);
 * compiled: as fp32, by torch.compile in fewer passes (Megatron-LM, fusions/fused_cross_entropy.py). */
#define CROSS_ENTROPIES(X) \
    X(CROSS_ENTROPY_FP32, "fp32") X(CROSS_ENTROPY_PLAIN, "plain") X(CROSS_ENTROPY_FUSED, "fused") \
    X(CROSS_ENTROPY_COMPILED, "compiled")
enum cross_entropy { CROSS_ENTROPIES(ENUM_VALUE) };

/* Low-rank adaptation (Hu et al. 2021): the model's weights are frozen; beside each targeted product X W stands
 * X A B, with A of in x rank and B of rank x out. Kept in the model's format; no dropout. */
enum lora_target { LORA_QKV, LORA_PROJECTION, LORA_MLP_UP, LORA_MLP_DOWN, LORA_TARGET_COUNT };
struct lora {
    const struct node *node;
    int rank;
    struct list targets;         /* of int, enum lora_target */
};
extern const struct table lora_table;

/* How the model is cut and computed. */
struct shard {
    int micro;                   /* samples a micro-batch */
    int tensor;                  /* GPUs of the tensor-parallel group */
    bool sequence_parallel;
    bool gathers_apart;          /* what it gathers is a tensor that products read, not pieces beside products */
    enum dtype dtype;            /* of products and activations */
    bool fp8;                    /* but the products of weights in blocks */
    bool fp8_kept;               /* whose weights are cast with the update, not with every forward */
    enum recompute recompute;
    int context;                 /* GPUs that divide each sample's tokens; 0 as 1 */
    bool ring;                   /* they pass keys and values around, instead of gathering them */
    int expert;                  /* GPUs that divide the experts; 0 as 1 */
    double capacity;             /* rows that experts have room for, over those they get when balanced; 0: no limit,
                                    so that they compute what they get */
    const struct lora *lora;     /* NULL: every weight is trained */
    enum activation_formula formula;
    enum cross_entropy cross_entropy;
    bool measured;               /* the training loop computes metrics from the logits */
};

/* Bytes that a layer holds while it is computed, beside what it keeps. */
struct workspace { double forward, backward; };

/* Products split by columns, whose input every GPU of the tensor group needs whole. */
enum column_product { COLUMN_ATTENTION, COLUMN_MLP, COLUMN_OUTPUT, COLUMN_COUNT };

enum layer_role {
    LAYER_FIRST,                 /* before the blocks, with the first stage: embeddings */
    LAYER_BLOCK,                 /* what is divided over the stages */
    LAYER_LAST,                  /* after the blocks, with the last stage: final norm, output layer, loss */
};
struct layer {
    const char *name;
    enum layer_role role;
    double parameters;           /* elements on this GPU that are trained, tied ones not counted again */
    double expert_parameters;    /* of them, those of experts: other GPUs of the expert group hold others */
    double frozen;               /* and elements that are not trained (LoRA) */
    double tied;                 /* elements it shares with LAYER_FIRST (LAYER_LAST of a tied model): a copy of its own
                                  * where the two stand on different pipeline stages, its gradients then all-reduced */
    const double *tensors;       /* its trained tensors in the model's order, elements here (sum: parameters) */
    const double *rows;          /* of each tensor that is a matrix; 0: it is none, NULL: nothing is known of them */
    size_t ntensors, nexperts;   /* the last nexperts of the tensors are those of experts */
    const struct kernel *kernels;    /* every phase but UPDATE; none where times are given */
    size_t nkernels;
    double given[PHASE_COUNT];   /* s a phase; where times are given (backward as input and weight) */
    double given_backward;       /* s of the backward in one piece: need not be input + weight */
    double given_recompute;      /* s */
    bool timed;                  /* `given` holds */
    double activation;           /* B kept from forward to backward, under shard.recompute none or selective; under
                                  * full: what stands there while its own backward runs (as under none) */
    double checkpoint;           /* B kept instead under full recomputation (its input); of FIRST and LAST, which are
                                  * never recomputed, the same as activation */
    double within;               /* B of `checkpoint` that are part of `activation` */
    struct workspace workspace;
    /* Of a block of a transformer: the same under selective recomputation, whose backward computes the core of
     * attention again; of others 0. */
    double selective_activation;
    struct workspace selective_workspace;
    double output;               /* B of the model's output, of LAYER_LAST: what the loss is computed from */
    double loss_activation;      /* B of `activation` that belong to the loss */
    double boundary;             /* B of its output, handed to the next stage (whole: not divided by tensor) */
    int all_reduces[PHASE_COUNT];    /* tensor-parallel all-reduces in forward and in backward (input); under sequence
                                      * parallelism each is a reduce-scatter and an all-gather of the same bytes */
    /* Of the all-reduces in the backward, those that sum the gradient of a product's input: the product (of several
     * that share it, one); NONE: no such. They may run beside the product's gradient of its weights. */
    enum product_id columns[COLUMN_COUNT];
    enum product_id behind[COLUMN_COUNT];   /* the product by rows that follows, whose result the forward's all-reduce
                                          * sums; NONE: none, or several (experts, latent attention) */
    int input_gathers;           /* under sequence parallelism: of column-parallel products whose weights are trained */
    double all_reduce_bytes;     /* of each */
    /* Tokens sent to their experts, and back: all-to-alls of the expert group. Under sequence parallelism the tensor
     * group gathers and scatters what the experts get. */
    int dispatches[PHASE_COUNT], expert_all_reduces[PHASE_COUNT];
    double dispatch_bytes, expert_all_reduce_bytes;
    double key_value_bytes;      /* of this GPU's own keys and values, which the context group passes on; 0: none */
};

/* The layers in order. The array and all it points to live in the arena. Errors (a degree that does not divide heads,
 * ffn or vocabulary: EXIT_INFEASIBLE at the place `tensor_loc`). Not for `stages` models. */
int model_layers(struct arena *arena, const struct model *model, const struct shard *shard, struct loc tensor_loc,
                 const struct layer **layers, size_t *count, struct error *err);

/* Whole-model FLOPs that the mathematics of one sample's training step needs: forward and backward matrix products
 * (Narayanan et al. 2021, appendix: 72 s l h^2 (1 + s/6h + V/12lh) for a GPT), without recomputation; with LoRA without
 * the gradients of frozen weights. `lora` and `forward` may be NULL; forward receives the forward's part alone. */
double model_flop(const struct model *model, const struct lora *lora, double *forward);

#endif
