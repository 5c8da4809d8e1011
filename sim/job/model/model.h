/* model: a network as a list of layers, with parameters, kernels and bytes of activations and boundaries. All numbers
 * are of ONE GPU of the tensor-parallel group and ONE micro-batch, unless a comment says "whole". */
#ifndef DTSIM_MODEL_H
#define DTSIM_MODEL_H

#include "kernels/cost.h"
#include "kernels/newton_schulz.h"
#include "model/transformer.h"

/* A layer whose times or FLOPs are given. With times, every number is per micro-batch. With `flops`, every number is
 * per sample, and bytes are at 4 bytes per value: they are scaled to the number format of the scenario. */
struct given_layer {
    const struct node *node;
    const char *name, *csv;                  /* csv: a table of layers; NULL after model_load */
    double parameters;                       /* elements */
    double forward, backward, recompute;     /* s; NaN: not given; defaults: backward 2 forward, recompute forward */
    double backward_input, backward_weight;  /* s; default: half of backward, or the rest if the other is given */
    double flops;                            /* FLOP of one forward of one sample (whole); NaN: times are given */
    double efficiency, efficiency_backward;  /* with flops: rate of its products / rate of the GPU's large products */
    double operands;                         /* with flops: B of a product's inputs and outputs, without weights */
    double traffic, traffic_backward;        /* with flops: B that kernels other than products read and write */
    double activation, boundary;             /* B kept for the backward; B of the output */
    int per;                                 /* enum given_per, of stages */
};
/* What the numbers of a given stage are of. */
#define GIVEN_PERS(X) X(GIVEN_PER_CHUNK, "chunk") X(GIVEN_PER_RANK, "rank")
enum given_per { GIVEN_PERS(ENUM_VALUE) };
extern const struct table given_layer_table;
/* A pipeline stage (or chunk) whose times are given, per micro-batch: the same struct without name and flops. */
extern const struct table given_stage_table;

struct model {
    const struct node *node;
    const char *preset;                      /* scenarios/models/NAME.yaml */
    struct transformer *transformer;
    const char *hf_config;                   /* path, relative to the scenario's file; of one that stands there a name */
    const struct node *config;               /* of hf_config, where it stands in the scenario itself */
    struct transformer *with;                /* keys that replace the same keys of preset or hf_config; NULL after model_load */
    struct list layers;                      /* of struct given_layer */
    struct list stages;                      /* of struct given_layer; one item: all stages are alike; all items are of
                                              * one kind (per) */
    int sequence;                            /* replaces the transformer's, and equals it after model_load; 0: none */
    double published_parameters;             /* of presets: the number that the source publishes; 0: none */
    const char *title;
    const char *note;                        /* what of hf_config is not modelled or not said; NULL: nothing */
    const char *dtype;                       /* number format of its published weights, "bfloat16"; NULL: nobody says one */
    bool longest;                            /* nobody says a sequence: hf_config's longest is taken */
};
extern const struct table model_table;

/* Reads the `model:` mapping. Follows preset and hf_config until exactly one of transformer, layers and stages is set,
 * and sets preset and hf_config to NULL, so that field_dump prints the whole model. */
int model_load(struct arena *arena, const struct node *value, struct model *model, struct error *err);
/* Whether stages are given per rank: each chunk of a rank takes an equal part of it. */
bool model_is_per_rank(const struct model *model);
bool model_is_timed(const struct model *model);          /* all times are given: no GPU is needed */
bool model_has_samples(const struct model *model);       /* transformer or flops: batch.global is meaningful */
double model_parameters(const struct model *model);      /* whole; NaN for one item of `stages`, as it has no count */
/* The parameters that one token uses (whole): all except the parameters of experts to which it is not sent. */
double model_active_parameters(const struct model *model);

#define RECOMPUTES(X) \
    X(RECOMPUTE_NONE, "none") X(RECOMPUTE_SELECTIVE, "selective") X(RECOMPUTE_OPERATORS, "operators") \
    X(RECOMPUTE_MODULES, "modules") X(RECOMPUTE_FULL, "full") X(RECOMPUTE_OPTIMAL, "optimal")
enum recompute { RECOMPUTES(ENUM_VALUE) };
/* What recompute: modules can run again: norms; the functions between the products of MLPs and experts; in latent
 * attention the latent norms, the products that widen latent vectors and the rotation; the core of attention; and with
 * all that they exchange the MLP of a block without experts, all of a block that stands in its place where there are
 * experts, and of that the shared experts alone. */
#define RECOMPUTE_PARTS(X) \
    X(MODULE_NORMS, "norms") X(MODULE_ACTIVATION, "activation") X(MODULE_LATENT, "latent") X(MODULE_CORE, "core") \
    X(MODULE_MLP, "mlp") X(MODULE_EXPERTS, "experts") X(MODULE_SHARED, "shared-experts")
enum recompute_module { RECOMPUTE_PARTS(ENUM_VALUE) MODULE_COUNT };
#define MODULES_CHEAP (1u << MODULE_NORMS | 1u << MODULE_ACTIVATION | 1u << MODULE_LATENT)   /* where none are named */

/* The formula for the activations that a block keeps for its backward:
 * korthikanti: Korthikanti et al. 2022, section 4, part by part: every tensor that a backward reads;
 * rajbhandari: Rajbhandari et al. 2020 (ZeRO), section 3.2, footnote: 12 x hidden values per token and block, nothing
 *     else. It leaves out attention scores, norms and masks. */
#define ACTIVATION_FORMULAS(X) X(ACTIVATIONS_KORTHIKANTI, "korthikanti") X(ACTIVATIONS_RAJBHANDARI, "rajbhandari")
enum activation_formula { ACTIVATION_FORMULAS(ENUM_VALUE) };
/* How the loss is computed:
 * fp32: logits are converted to fp32 and the softmax is kept in fp32 (Megatron-LM; Korthikanti et al. 2022, section
 *     4.3);
 * plain: PyTorch's cross_entropy on the logits in their own format; keeps their log-probabilities in this format;
 * converted: PyTorch's cross_entropy on the logits in fp32, as logits.float() makes them; keeps their log-probabilities;
 * fused: one kernel reads half-precision logits; keeps nothing else (flash-attn's, Transformer Engine's);
 * compiled: as fp32, by torch.compile in fewer kernels (Megatron-LM, fusions/fused_cross_entropy.py);
 * chunked: with the output layer's products, of a chunk of the tokens at a time; keeps nothing of the logits (Liger
 *     Kernel). */
#define CROSS_ENTROPIES(X) \
    X(CROSS_ENTROPY_FP32, "fp32") X(CROSS_ENTROPY_PLAIN, "plain") X(CROSS_ENTROPY_FUSED, "fused") \
    X(CROSS_ENTROPY_COMPILED, "compiled") X(CROSS_ENTROPY_CONVERTED, "converted") X(CROSS_ENTROPY_CHUNKED, "chunked")
enum cross_entropy { CROSS_ENTROPIES(ENUM_VALUE) };

/* Low-rank adaptation (Hu et al. 2021): the model's weights are frozen. An adapter X A B is added to each targeted
 * product X W, with A of in x rank and B of rank x out. It has the model's number format and no dropout. */
enum lora_target { LORA_QKV, LORA_PROJECTION, LORA_MLP_UP, LORA_MLP_DOWN, LORA_TARGET_COUNT };
#define LORA_WEIGHTS(X) X(LORA_WEIGHTS_FULL, "full") X(LORA_WEIGHTS_NF4, "nf4") X(LORA_WEIGHTS_INT4, "int4")
enum lora_weights { LORA_WEIGHTS(ENUM_VALUE) };
struct lora {
    const struct node *node;
    int rank;
    struct list targets;         /* of int, enum lora_target */
    int weights;                 /* enum lora_weights: how blocks keep their frozen matrices; nf4: QLoRA (Dettmers et al.
                                    2023, section 3), four bits a value and scales that are quantized too; int4: GPTQ */
};
extern const struct table lora_table;

/* The form in which blocks keep what their backwards read; all 0: as it is. Gradients are then approximate.
 * few_bit: bits a value of the index of a piece of an activation function's derivative, which is kept instead of the input
 *     (Novikov et al. 2023, "Few-bit Backward", arXiv 2202.00441, figure 2).
 * randomized_linear: of a linear layer's input X the projection S'X, which has this share of its rows, at least one. S
 *     is a random matrix that a seed gives again, and the gradient of the weights is (S'dY)'(S'X) (Bershatsky et al.
 *     2022, "Memory-Efficient Backpropagation through Large Linear Layers", arXiv 2201.13195, algorithm 1). Each linear
 *     layer keeps its own projection. NaN: as 0.
 * activations_bits: the bits of each floating-point value that is kept; each group of values also has a least value
 *     and a scale (ActNN, Chen et al. 2021; GACT, Liu et al. 2022). Each linear layer keeps its own copy. Masks of
 *     dropout and what has a value a row stay as they are. */
struct saved_form {
    int few_bit;
    double randomized_linear;
    int activations_bits;
};

/* How the model is divided and computed. */
struct shard {
    int micro;                   /* samples per micro-batch */
    int slices, slice;           /* the number of slices of each sample's tokens, and the slice that is computed (from
                                    0); 0 slices means 1 */
    int tensor;                  /* GPUs of the tensor-parallel group */
    bool sequence_parallel;
    bool gathers_apart;          /* the tensor group gathers a product's whole input before the product; false: in
                                    pieces, while the product is computed */
    enum dtype dtype;            /* of products and activations */
    bool fp8;                    /* products of weights in blocks are in `narrow` */
    enum dtype narrow;           /* a format of 8 or 4 bits */
    bool fp8_kept;               /* their weights are cast with the update, not in every forward */
    enum recompute recompute;
    unsigned recomputed;         /* under recompute: modules: a bit for each enum recompute_module; else 0 */
    int context;                 /* GPUs that divide each sample's tokens; 0 means 1 */
    int ulysses;                 /* GPUs of these that exchange heads for tokens around attention; 0 means 1 */
    bool blocks_apart;           /* they attend block by block, and kernels of their own merge the blocks in fp32 */
    bool ring;                   /* these GPUs pass keys and values around a ring, instead of gathering them */
    int expert_tensor;           /* GPUs of the tensor group that divide each expert: `tensor`, or 1; 0 means `tensor` */
    int dispatch_group;          /* GPUs that divide the experts; 0 means 1 */
    int dispatch_nodes;          /* nodes on which these GPUs are; 0 means 1 */
    bool dispatch_once;          /* a token goes to a GPU, and to a node, once; false: once for each of its experts */
    bool dispatch_gathers;       /* or the group gathers all its tokens, and sums the results */
    double capacity;             /* rows of an expert, padding included / rows under balanced routing; 0: no padding */
    const struct lora *lora;     /* NULL: every weight is trained */
    enum activation_formula formula;
    struct saved_form saved;
    enum cross_entropy cross_entropy;
    bool measured;               /* the training loop computes metrics from the logits */
};

/* Whether blocks, computed so, can keep what they save in the form that the mapping `memory` asks for: errors
 * (EXIT_INFEASIBLE) at its keys. `shape`: NULL for other models. */
int saved_form_check(const struct transformer *shape, const struct shard *shard, const struct node *memory,
                     struct error *err);

/* Bytes that a layer holds while it is computed, in addition to what it keeps for the backward. */
struct workspace { double forward, backward; };

/* Products split by columns: every GPU of the tensor group needs their whole input. */
enum column_product { COLUMN_ATTENTION, COLUMN_MLP, COLUMN_OUTPUT, COLUMN_COUNT };

/* A tensor that a block keeps from its forward to its backward, in the form in which it keeps it. */
struct saved_tensor {
    const char *name;
    double bytes;
    bool core;                   /* of the core of attention, which selective recomputation computes again */
};

/* ATTENTION: of a block, all before its MLP, or before tokens are ordered for its experts. */
enum half { HALF_NEITHER, HALF_ATTENTION, HALF_MLP };
/* What must be there on a GPU, so that others send it. */
enum sending {
    SENT_SUM,                    /* the tensor group's sum of results */
    SENT_INPUT,                  /* the whole input of a product split by columns; backward: the sum of its gradients */
    SENT_QKV,                    /* queries, keys and values of all heads that the tensor group computes; or their gradients */
    SENT_ROWS,                   /* rows of tokens at their experts, and their results back */
    SENT_MIXED,                  /* all tokens of a share of a mixer's heads, in the context group */
    SENT_STATES,                 /* a mixer's states of all GPUs of the context group */
    SENT_TAIL,                   /* the last tokens before a mixer's convolution, for the next GPU of the context group */
    SENT_ROW_SUMS,               /* rows of the experts in the whole tensor group, and the sums of their results */
    SENT_KEYS,                   /* keys and values of the context group */
    SENT_HEADS,                  /* all tokens of a share of heads */
    SENT_MATRIX,                 /* of no layer: what an update of a matrix needs of it (newton_schulz.h) */
    SENT_COUNT
};
struct sends { int forward, backward; double bytes; };   /* how often, and B of each */
/* An operation of a layer, for one micro-batch on one GPU. */
struct operator {
    const char *name;
    enum half half;
    unsigned modules;            /* bits: each enum recompute_module that contains it */
    bool loss;                   /* it computes the loss, not the model's output */
    bool ends;                   /* the backward needs neither its forward's result nor later results of the layer */
    bool packs;                  /* it quantizes what is kept of other operators */
    bool again;                  /* recompute: operators or modules runs its forward again in the backward */
    size_t first, nkernels;      /* its kernels, of the layer's */
    struct workspace peak;       /* B that this operator alone needs while it runs; a layer's workspace has the largest of these */
    double selective;            /* B more in its backward where selective recomputation computes it again */
    double recurrence;           /* FLOP of its forward that model FLOPs count in the place of its kernels'; 0: they count these */
    struct sends sends[SENT_COUNT];
    enum product_id product;     /* of SENT_SUM and SENT_INPUT: whose result or input; NONE: several products', or LoRA */
    double delivered;            /* B of rows that SENT_ROWS brings to the GPU, its own included */
    int gathers;                 /* under sequence parallelism: inputs that the backward gathers for gradients of weights */
    bool pieces;                 /* its sum can be made piece by piece of the product */
};

enum layer_role {
    LAYER_FIRST,                 /* before the blocks, on the first stage: embeddings */
    LAYER_BLOCK,                 /* blocks are divided over the stages; an encoder's come before its decoder's */
    LAYER_PREDICTION,            /* a block of multi-token prediction, after the others, on the last stage */
    LAYER_LAST,                  /* after the blocks, on the last stage: final norm, output layer, loss */
};
/* The weight of a linear layer on one GPU, of one expert; its product adds its gradient to the weight's gradient. */
enum linear_place { LINEAR_BLOCK, LINEAR_OUTPUT, LINEAR_EXPERT };
struct linear { enum linear_place place; double out, in; };      /* the shape: widths of output and input */
struct layer {
    const char *name;
    enum layer_role role;
    double parameters;           /* trained elements on this GPU; tied ones are not counted again */
    double divided_parameters;   /* the part of `parameters` that belongs to experts: each GPU of the expert group holds
                                  * other experts */
    double frozen;               /* elements on this GPU that are not trained (LoRA); those in fewer bits count by their
                                  * bytes, and `packed` is how many fewer these are */
    double divided_frozen;       /* the part of `frozen` that belongs to experts */
    double packed;
    bool embeds;                 /* it has the embedding of tokens */
    double tied;                 /* elements shared with the layer that embeds (in LAYER_LAST of a tied model): if the two are on
                                  * different pipeline stages, each has a copy, and their gradients are all-reduced */
    const double *tensors;       /* elements on this GPU of each trained tensor, in model order (sum: parameters) */
    const double *rows;          /* rows of each tensor that is a matrix, 0 for others; NULL: nothing is known */
    const struct matrix *matrices;       /* what each tensor is to an optimizer of matrices; NULL: nothing is known */
    size_t ntensors, ndivided;   /* the last ndivided of the tensors belong to experts */
    const struct linear *linears;    /* its trained weights of linear layers, each shape of its experts once */
    size_t nlinears;
    const struct operator *operators;
    size_t noperators;
    const struct kernel *kernels;    /* of all operators in turn, of every phase but UPDATE; none if times are given */
    size_t nkernels;
    double given[PHASE_COUNT];   /* s per phase, if times are given (backward as input and weight) */
    double given_backward;       /* s of the backward in one piece: need not be input + weight */
    double given_recompute;      /* s */
    bool timed;                  /* times are given: `given` is valid */
    double activation;           /* B kept from forward to backward under shard.recompute none, selective, operators, modules;
                                  * under full: B held while its own backward runs (as under none) */
    const struct saved_tensor *saved;    /* of a block: the tensors of `activation`, the core's last; NULL: unknown */
    size_t nsaved;
    double checkpoint;           /* B kept instead under full recomputation (its input); FIRST and LAST are never
                                  * recomputed: the same as activation */
    double source;               /* B of the encoder's output that it reads: one tensor for all layers of a stage; in none of these */
    double within;               /* B of `checkpoint` that are part of `activation` */
    struct workspace workspace;
    /* For a block of a transformer: activation and workspace under selective recomputation, whose backward recomputes
     * the attention core; for other layers 0. */
    double selective_activation;
    struct workspace selective_workspace;
    double output;               /* LAYER_LAST: B of the model's output, from which the loss is computed */
    double loss_activation;      /* B of `activation` that belong to the loss */
    double boundary;             /* B that are sent to the next stage (whole: not divided by tensor): its output, with the encoder's
                                  * where later blocks read that too. Their gradients come back */
    double all_reduce_bytes;     /* B of the hidden states, which the tensor group sums */
};

/* What a layer exchanges of a kind, in all its operators; or in those whose forward runs again in the backward (`again`):
 * under sequence parallelism each SENT_SUM is a reduce-scatter and an all-gather of the same bytes. */
struct sends layer_sends(const struct layer *layer, enum sending what, bool again);
/* B of its keys and values that others need; whether it sends rows to experts on other GPUs. */
double layer_keys(const struct layer *layer);
bool layer_dispatches(const struct layer *layer);
/* The product split by columns whose input's gradient the tensor group sums in the backward, and which may overlap with its
 * weight gradient; and the following product split by rows whose result the forward sums in pieces. NULL: none. */
const struct operator *layer_column(const struct layer *layer, enum column_product column);
const struct operator *layer_behind(const struct layer *layer, enum column_product column);

/* The layers in order. The array and all data it points to live in the arena. A tensor degree that does not
 * divide the heads, the columns of the MLP or, with sequence parallelism, a sample's tokens is EXIT_INFEASIBLE at
 * `tensor_loc`. Not for models given as `stages`. */
int model_layers(struct arena *arena, const struct model *model, const struct shard *shard, struct loc tensor_loc,
                 const struct layer **layers, size_t *count, struct error *err);

/* Whether it is a transformer's block, of multi-token prediction or not: what is recomputed, and what plans choose from. */
bool layer_is_block(const struct layer *layer);

/* Whether a recomputation leaves the layer's end out: kernels whose results the backward does not need. */
bool layer_has_tail(const struct layer *layer);

/* Model FLOPs of one sample (whole): the matrix products of forward and backward that training needs (Narayanan et al.
 * 2021, appendix: 72 s l h^2 (1 + s/6h + V/12lh) for a GPT), without recomputation and, with LoRA, without gradients of
 * frozen weights. A query has as many keys as its document, its window or its chunk at most; a causal mask takes none
 * off (Chowdhery et al. 2022, PaLM, appendix B). Software does not matter. NaN if times are given. `lora` and `forward` may be NULL; *forward receives the forward's part. */
double model_flop(const struct model *model, const struct lora *lora, double *forward);

#endif
