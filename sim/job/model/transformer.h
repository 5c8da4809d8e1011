/* transformer: the shape of a transformer, and how software computes it. */
#ifndef DTSIM_TRANSFORMER_H
#define DTSIM_TRANSFORMER_H

#include "config/field.h"
#include "model/pattern.h"

/* How software computes a transformer: what it fuses into one kernel, and what plain PyTorch does instead. */
struct ways {
    bool fused_qkv;              /* one product and one tensor for queries, keys and values */
    bool fused_gate;             /* one product computes a gated MLP's two inputs; default: fused_qkv */
    bool fused_gelu;             /* GELU is one kernel; false: one for each of its operations */
    bool fused_kernels;          /* false: plain PyTorch, one kernel per operation */
    int rotary;                  /* enum rotary; default: by fused_kernels fused or complex */
    bool repeated_groups;        /* grouped keys and values are copied for each head; default: !fused_kernels */
    bool multiplied_mask;        /* a causal mask takes two kernels, where it is not part of the softmax */
    bool scores_in_place;        /* one kernel multiplies heads where they lie and scales; the mask is written into it */
    bool softmax_in_fours;       /* the softmax is fused only if a fused kernel can take four rows at a time */
    bool fused_norm;             /* RMSNorm is one kernel; default: fused_kernels */
    bool widened_norms;          /* norms compute on a copy of their input in fp32 */
    bool fused_experts;          /* one kernel computes the products of all experts of a GPU */
    int router;                  /* enum router: how each token's experts are chosen */
    int routed_rows;             /* enum routed_rows: how rows go into the order of the experts, and back */
    int expert_adapters;         /* enum expert_adapters: what LoRA gives the experts of a block */
    bool gathered_qkv;           /* tensor degrees above kv_heads gather what a product of QKV gives */
    bool fused_clamp;            /* SwiGLU's kernel clamps, and products of experts add their biases */
    bool fused_bias;             /* products add their biases; default: the opposite of fused_kernels */
    int mixer_context;           /* enum mixer_context: what a context group exchanges for mixers */
    bool flash_attention;        /* fused attention that does not store the scores */
    int attention_format;        /* enum attention_format: of its products */
    bool autocast;               /* weights are fp32, and so what is not a product: PyTorch's autocast */
};

/* What an image is cut into: squares of `patch` pixels a side, which a product brings to `hidden`; learned tokens stand before
 * them, of which each of the first `classifiers` has one of its own. */
struct vision { const struct node *node; int image, patch, channels, tokens, classifiers; bool bias; };
extern const struct table vision_table;

/* The encoder of a model with two sides: its blocks are like the decoder's without cross attention, and not causal. With `mels` its
 * sample is a spectrogram of so many rows, and two convolutions are its first layer; else it is a text. */
struct encoder { const struct node *node; int layers, sequence, mels; };
extern const struct table encoder_table;

/* The shape of a transformer. Presets and Hugging Face configurations are read into it. */
struct transformer {
    const struct node *node;
    struct ways ways;
    int layers, hidden, heads;
    int kv_heads;                /* grouped-query attention; default: heads */
    int head_size;               /* default: hidden / heads */
    int ffn;                     /* default: 4 hidden */
    int sequence;                /* tokens per sample */
    int vocabulary;
    int positions;               /* learned position embeddings; 0: none (rotary) */
    int token_types;             /* BERT's segment embeddings; 0: none */
    struct encoder *encoder;     /* whose output all blocks read too, by cross attention; NULL: the model has one side */
    int relative_positions;      /* rows of a table of biases by the distance of query and key, a value a head (T5); 0: none */
    struct vision *vision;       /* a sample is an image, not a text; NULL: it is a text */
    int embedding_size;          /* width of the embedding's rows; if it is not `hidden`, a product brings them to it, and
                                    another one back; default: hidden */
    int norm;                    /* enum norm: layernorm | rmsnorm */
    bool norm_bias;              /* norms have a weight and a bias; default: true for layernorm */
    bool post_norms;             /* a further norm after the attention and after the MLP */
    int qk_norm;                 /* enum qk_norm: of queries and keys, before they are turned to their positions */
    bool parallel;               /* the MLP reads what the attention reads: a block has one norm before both */
    int mlp;                     /* enum mlp: gelu, squared-relu, xielu (two products) | swiglu (three) */
    bool qkv_bias, bias;         /* biases of queries, keys and values; of the other products in a block */
    bool key_bias, keys_biased;  /* as the key says, and where it is left out as qkv_bias: keys have a bias */
    bool projection_bias;        /* of the attention's output; default: bias */
    bool head_bias;              /* of a language model's output layer */
    bool transform_bias;         /* of BERT's transform before it */
    bool alibi;                  /* attention has a bias that falls with the distance instead of rotary positions */
    bool tied;                   /* the output layer shares the embedding's weights */
    bool final_norm;
    bool embedding_norm;         /* BERT */
    int window;                  /* keys that a query sees at most, its own included; 0: all */
    bool chunked;                /* the window is one of equal chunks of a sample: a query sees its own */
    double documents;            /* tokens that attention sees of a packed sample (batch.documents); 0: all */
    int full_every;              /* block i (from 0) has no window if this divides i + 1; 0: all blocks have */
    struct list full_blocks;     /* of int: instead, the blocks that have none */
    bool causal;                 /* decoder: fused kernels skip scores above the diagonal, products compute them; model
                                    FLOPs include them, as in papers */
    int head;                    /* enum head: language model | masked language model with BERT's transform | none | classifier */
    int classes;                 /* of a classifier */
    double dropout;              /* after the embedding, the projection and the MLP; 0: no masks are stored */
    double attention_dropout;    /* of the attention probabilities; default: dropout */
    double expert_skew;          /* with experts: the i-th busiest gets a share as i^-skew; 0: all alike */
    double swiglu_limit;         /* the inputs of SwiGLU are clamped to it; 0: they are not */
    /* Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2, section 2.1). head_size is then the part of a query
     * or key without position, rope_head_size the rotated part; in the keys all heads share the rotated part. */
    int kv_rank;                 /* width of the compressed keys and values; 0: the attention is not latent */
    int q_rank;                  /* width of the compressed queries; 0: queries are not compressed */
    int rope_head_size, value_head_size;     /* default: 0; head_size */
    /* Blocks with experts instead of the MLP (Shazeer et al. 2017; Fedus et al. 2021): a router sends each token to
     * experts_per_token experts, and every token also goes through the shared experts. */
    int experts;                 /* in a block; 0: none */
    int experts_per_token;
    int expert_ffn;              /* width inside one expert; default: ffn */
    int shared_experts;
    int shared_ffn;              /* width of all shared experts together; default: shared_experts x expert_ffn */
    bool shared_gate;            /* their result is multiplied by a gate, which a product with one column computes */
    int dense_layers;            /* number of first blocks that have no experts */
    int moe_every;               /* of the other blocks, block i (from 0) has experts if this divides i; default: 1 */
    struct list expert_blocks;   /* of int: instead, the blocks that have experts */
    bool router_bias;            /* the router adds a bias to each expert's score, which balances their loads */
    int expert_latent;           /* width of the rows that experts get and give; 0: hidden */
    /* Hybrid models (pattern.h). */
    const char *pattern;         /* a letter a half-block; NULL: all blocks have attention and an MLP or experts */
    struct mamba *mamba;
    struct delta *delta;
    struct lightning *linear;
    bool attention_gate;         /* attention's results are multiplied by a gate, which further columns of Q compute */
    int mtp;                     /* modules of multi-token prediction, which predict one token further each */
    bool mtp_repeats;            /* they all compute with the weights of the first */
};
/* Fills the defaults that depend on other keys, and checks that the values fit together. */
int transformer_finish(struct transformer *shape, struct error *err);
/* B of a sample as the data loader gives it: tokens as 64-bit integers, or an image's or a spectrogram's values in fp32. */
double transformer_sample(const struct transformer *shape);
/* Whether a decoder's tokens have the rows of its encoder's embedding. */
bool shares_embedding(const struct transformer *shape);
/* The encoder as a shape of its own, in the arena. */
const struct transformer *transformer_encoder(struct arena *arena, const struct transformer *shape);
/* Rows of the embedding: the vocabulary as it was written or, if it does not divide by `tensor`, the padded one. */
double transformer_vocabulary(const struct transformer *shape, int tensor);
/* The vocabulary rounded up to a multiple of 128 x tensor, as Megatron-LM pads any vocabulary
 * (--make-vocab-size-divisible-by). */
double transformer_padded_vocabulary(const struct transformer *shape, int tensor);
/* A sentence on why runs of such a model are predicted less well than others, in the arena; NULL: they are not. */
const char *transformer_caveat(struct arena *arena, const struct transformer *shape);
/* Columns of the output layer's product: the padded vocabulary with Megatron-LM's kernels (megatron/training/tokenizer,
 * vocab_size_with_padding), the rows of the embedding with plain PyTorch. */
double transformer_output_columns(const struct transformer *shape, int tensor);
#define NORMS(X) X(NORM_LAYERNORM, "layernorm") X(NORM_RMSNORM, "rmsnorm")
enum norm { NORMS(ENUM_VALUE) };
/* head: each head alone, with one weight for all heads; width: all heads of a token together. */
#define QK_NORMS(X) X(QK_NORM_NONE, "none") X(QK_NORM_HEAD, "head") X(QK_NORM_WIDTH, "width")
enum qk_norm { QK_NORMS(ENUM_VALUE) };
#define MLPS(X) X(MLP_GELU, "gelu") X(MLP_SWIGLU, "swiglu") X(MLP_SQUARED_RELU, "squared-relu") X(MLP_XIELU, "xielu")
enum mlp { MLPS(ENUM_VALUE) };
/* How queries and keys are turned to their positions; `rotation` in core.c says what each takes. */
#define ROTARIES(X) \
    X(ROTARY_FUSED, "fused") X(ROTARY_COMPLEX, "complex") X(ROTARY_HALVES, "halves") X(ROTARY_MATRICES, "matrices")
enum rotary { ROTARIES(ENUM_VALUE) };
#define ROUTED_ROWS(X) \
    X(ROUTED_ROWS_COPIES, "copies") X(ROUTED_ROWS_INDICES, "indices") X(ROUTED_ROWS_OPERATORS, "operators")
enum routed_rows { ROUTED_ROWS(ENUM_VALUE) };
#define EXPERT_ADAPTERS(X) \
    X(EXPERT_ADAPTERS_EACH, "each") X(EXPERT_ADAPTERS_SHARED, "shared") X(EXPERT_ADAPTERS_MERGED, "merged")
enum expert_adapters { EXPERT_ADAPTERS(ENUM_VALUE) };
#define ROUTERS(X) X(ROUTER_FUSED, "fused") X(ROUTER_INDICES, "indices") X(ROUTER_MASKS, "masks")
enum router { ROUTERS(ENUM_VALUE) };
#define ATTENTION_FORMATS(X) X(ATTENTION_FORMAT_HALF, "half") X(ATTENTION_FORMAT_FP8, "fp8")
enum attention_format { ATTENTION_FORMATS(ENUM_VALUE) };
#define MIXER_CONTEXTS(X) X(MIXER_CONTEXT_HEADS, "heads") X(MIXER_CONTEXT_STATES, "states")
enum mixer_context { MIXER_CONTEXTS(ENUM_VALUE) };
#define HEADS(X) \
    X(HEAD_LANGUAGE_MODEL, "language-model") X(HEAD_MASKED_LANGUAGE_MODEL, "masked-language-model") \
    X(HEAD_NONE, "none") X(HEAD_CLASSIFIER, "classifier")
enum head { HEADS(ENUM_VALUE) };
extern const struct table transformer_table;
extern const struct table transformer_change_table;      /* the same keys, all of them optional */
extern const char *const norm_names[], *const mlp_names[], *const head_names[], *const rotary_names[],
    *const routed_rows_names[], *const router_names[];

#endif
