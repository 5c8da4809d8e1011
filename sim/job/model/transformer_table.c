/* The keys of a transformer's shape. */
#include "model/operator_internal.h"

#include <stddef.h>

#include "base/base.h"
#include "config/field.h"

const char *const norm_names[] = ENUM_NAMES(NORMS);
const char *const mlp_names[] = ENUM_NAMES(MLPS);
static const char *const qk_norm_names[] = ENUM_NAMES(QK_NORMS);
const char *const head_names[] = ENUM_NAMES(HEADS);
const char *const rotary_names[] = ENUM_NAMES(ROTARIES);
const char *const routed_rows_names[] = ENUM_NAMES(ROUTED_ROWS);
const char *const router_names[] = ENUM_NAMES(ROUTERS);
static const char *const expert_adapters_names[] = ENUM_NAMES(EXPERT_ADAPTERS);
static const char *const mixer_context_names[] = ENUM_NAMES(MIXER_CONTEXTS);

enum { MAX_LAYERS = 100000, MAX_WIDTH = 1 << 24, MAX_SEQUENCE = 1 << 28 };

static bool has_pattern(const struct node *mapping)
{
    return node_get(mapping, "pattern");
}

static bool is_vision(const struct node *mapping)
{
    return node_get(mapping, "vision");
}

static const struct field vision_fields[] = {
    {KEY(vision, image), .also = "image_size", .kind = FIELD_INT, .required = true, .min = 1, .max = 65536,
     .brief = "pixels of an image, along each side"},
    {KEY(vision, patch), .also = "patch_size", .kind = FIELD_INT, .required = true, .min = 1, .max = 65536,
     .brief = "pixels of a patch, along each side"},
    {KEY(vision, channels), .also = "num_channels", .kind = FIELD_INT, .min = 1, .max = 4096, .fallback = "3",
     .brief = "values of a pixel"},
    {KEY(vision, tokens), .kind = FIELD_INT, .min = 0, .max = 4096, .fallback = "1",
     .brief = "learned tokens before the patches: the class token (ViT: 1; DeiT with distillation: 2)"},
    {KEY(vision, classifiers), .kind = FIELD_INT, .min = 1, .max = 4096,
     .brief = "with head: classifier: learned tokens that have one of their own; left out: as tokens"},
    {KEY(vision, bias), .kind = FIELD_BOOL, .fallback = "true", .brief = "the patches' GEMM has a bias (CLIP: false)"},
};
const struct table vision_table = {
    TABLE("vision", "what an image is cut into; its patches and the learned tokens are the sequence", vision, vision_fields)};

static const struct field encoder_fields[] = {
    {KEY(encoder, layers), .kind = FIELD_INT, .required = true, .min = 1, .max = MAX_LAYERS, .brief = "number of its blocks"},
    {KEY(encoder, sequence), .kind = FIELD_INT, .required = true, .min = 1, .max = MAX_SEQUENCE, .brief = "its tokens per sample"},
    {KEY(encoder, mels), .kind = FIELD_INT, .min = 0, .max = MAX_WIDTH, .fallback = "0",
     .brief = "rows of the spectrogram that it hears, twice as many columns as tokens, by two convolutions (Whisper: 80 or 128); 0: it "
              "reads a text"},
};
const struct table encoder_table = {
    TABLE("encoder", "the other side of an encoder-decoder; all other widths are the decoder's", encoder, encoder_fields)};

#define WAY(member) .key = #member, AT(transformer, ways.member)
static const struct field transformer_fields[] = {
    {KEY(transformer, layers), .also = "num_layers num_hidden_layers n_layer",
     .kind = FIELD_INT, .brief = "number of blocks; left out: the layers of pattern", .required = true,
     .dispensable = has_pattern, .min = 1, .max = MAX_LAYERS},
    {KEY(transformer, hidden), .also = "hidden_size d_model n_embd",
     .kind = FIELD_INT, .brief = "width of the hidden states", .required = true, .min = 1,
     .max = MAX_WIDTH / 4},
    {KEY(transformer, heads), .also = "num_attention_heads n_head num_heads",
     .kind = FIELD_INT, .brief = "number of attention heads", .required = true, .dispensable = has_pattern, .min = 1,
     .max = MAX_WIDTH},
    {KEY(transformer, kv_heads), .also = "num_key_value_heads num_query_groups",
     .kind = FIELD_INT, .brief = "number of heads of keys and values; left out: as heads",
     .min = 1, .max = MAX_WIDTH},
    {KEY(transformer, head_size), .kind = FIELD_INT, .brief = "width of a head; left out: hidden / heads", .min = 1,
     .max = MAX_WIDTH},
    {KEY(transformer, ffn), .also = "intermediate_size ffn_hidden_size",
     .kind = FIELD_INT, .brief = "width inside the MLP; left out: 4 x hidden", .min = 1,
     .max = MAX_WIDTH},
    {KEY(transformer, sequence), .also = "seq seq_length sequence_length seqlen",
     .kind = FIELD_INT, .brief = "tokens per sample; with vision: as its patches", .required = true, .dispensable = is_vision, .min = 1,
     .max = MAX_SEQUENCE},
    {KEY(transformer, vocabulary), .also = "vocab vocab_size",
     .kind = FIELD_INT, .required = true, .dispensable = is_vision, .min = 0, .max = MAX_SEQUENCE,
     .brief = "number of tokens in the vocabulary; if the tensor degree does not divide it, and with fused_kernels in "
              "the output layer's GEMM, it is padded to a multiple of 128 x tensor, as in Megatron-LM"},
    {KEY(transformer, positions), .kind = FIELD_INT,
     .brief = "number of learned position embeddings; 0: rotary positions; left out: as sequence", .min = 0,
     .max = MAX_SEQUENCE},
    {KEY(transformer, token_types), .kind = FIELD_INT, .brief = "number of learned segment embeddings (BERT)",
     .fallback = "0", .min = 0, .max = MAX_WIDTH},
    {KEY(transformer, encoder), .kind = FIELD_OPTIONAL, .table = &encoder_table,
     .brief = "the blocks are a decoder's (T5, Whisper), which also attend to the output of these blocks; the encoder's come first, where "
              "layers are counted or divided; tokens/s are the decoder's"},
    {KEY(transformer, relative_positions), .kind = FIELD_INT, .min = 0, .max = MAX_WIDTH,
     .brief = "rows of a table of biases that scores get by the distance of query and key, one table a side (T5: 32); goes with positions: "
              "0 and attention that is not fused; left out or 0: none"},
    {KEY(transformer, vision), .kind = FIELD_OPTIONAL, .table = &vision_table,
     .brief = "a sample is an image (ViT, DeiT, CLIP): the patches into which it is cut take the place of sequence and vocabulary"},
    {KEY(transformer, embedding_size), .kind = FIELD_INT, .min = 1, .max = MAX_WIDTH / 4,
     .brief = "width of the embedding's rows, where a GEMM brings them to hidden and another one back before the "
              "output layer (OPT's word_embed_proj_dim); left out: hidden"},
    {KEY(transformer, norm), .kind = FIELD_CHOICE, .brief = "kind of normalisation", .fallback = "layernorm",
     .choices = norm_names},
    {KEY(transformer, norm_bias), .kind = FIELD_BOOL,
     .brief = "norms have a bias and a weight; left out: true for layernorm"},
    {KEY(transformer, post_norms), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "a block has a further norm after the attention and one after the MLP (Gemma 2 and 3, GLM 4)"},
    {KEY(transformer, qk_norm), .kind = FIELD_CHOICE, .fallback = "none", .choices = qk_norm_names,
     .choice_briefs = NAMES("they have none", "each head alone, with one weight for all heads (Qwen3, Gemma 3)",
                            "all heads of a token together (OLMo 2, MiniMax M2)"),
     .brief = "the norm of queries and keys"},
    {KEY(transformer, parallel), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "attention and MLP read the same norm's output, so that a block has one norm (GPT-J, Falcon, Phi, "
              "Cohere)"},
    {KEY(transformer, mlp), .kind = FIELD_CHOICE, .brief = "kind of MLP: gelu, squared-relu and xielu (Apertus) have two GEMMs, swiglu three",
     .fallback = "gelu", .choices = mlp_names},
    {KEY(transformer, swiglu_limit), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 0, .max = 1e6, .fallback = "0",
     .brief = "SwiGLU's inputs are clamped to this number (GPT OSS: 7); 0: they are not"},
    {KEY(transformer, qkv_bias), .kind = FIELD_BOOL, .brief = "queries, keys and values have biases",
     .fallback = "true"},
    {KEY(transformer, key_bias), .kind = FIELD_BOOL, .brief = "keys have a bias (Whisper: false); left out: as qkv_bias"},
    {KEY(transformer, bias), .kind = FIELD_BOOL, .brief = "the projection and the MLP have biases", .fallback = "true"},
    {KEY(transformer, projection_bias), .kind = FIELD_BOOL,
     .brief = "the projection after the attention has a bias; left out: as bias"},
    {KEY(transformer, head_bias), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "the output layer of a language model has a bias"},
    {KEY(transformer, transform_bias), .kind = FIELD_BOOL,
     .brief = "with head: masked-language-model: the transform's GEMM has a bias (ModernBERT: false); left out: true"},
    {KEY(transformer, alibi), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "scores get a bias that falls with the distance (ALiBi: BLOOM, MPT), and there are no rotary positions; "
              "goes with positions: 0"},
    {KEY(transformer, tied), .kind = FIELD_BOOL, .brief = "the output layer shares the embedding's weights",
     .fallback = "true"},
    {KEY(transformer, final_norm), .kind = FIELD_BOOL, .brief = "a norm after the last block", .fallback = "true"},
    {KEY(transformer, embedding_norm), .kind = FIELD_BOOL, .brief = "a norm after the embeddings (BERT)",
     .fallback = "false"},
    {KEY(transformer, causal), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "the model is a decoder (with vision it is none): fused attention and softmax skip the scores above the diagonal, GEMMs "
              "compute them; FLOPs include them"},
    {KEY(transformer, window), .kind = FIELD_INT, .min = 0, .max = MAX_SEQUENCE, .fallback = "0",
     .brief = "keys that a query sees at most, its own included (sliding windows), without 'causal' those before and behind it "
              "together; fused attention skips all others; 0: all, or with 'causal' all up to its own position"},
    {KEY(transformer, chunked), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "with window: a sample is cut into chunks of this many tokens, and a query sees no key before its own "
              "chunk (Llama 4)"},
    {KEY(transformer, full_every), .kind = FIELD_INT, .min = 0, .max = MAX_LAYERS, .fallback = "0",
     .brief = "with window: block i, counted from 0, has none if this number divides i + 1 (GPT OSS, Gemma 2: 2; Gemma "
              "3: 6); 0: all blocks have it"},
    {KEY(transformer, full_blocks), .kind = FIELD_INTS, .min = 0, .max = MAX_LAYERS, .may_be_empty = true,
     .brief = "with window, instead of full_every: the blocks, counted from 0, that have none"},
    {KEY(transformer, head), .kind = FIELD_CHOICE, .brief = "the output layer after the last block",
     .fallback = "language-model", .choices = head_names},
    {KEY(transformer, classes), .also = "num_labels num_classes", .kind = FIELD_INT, .min = 1, .max = MAX_WIDTH,
     .brief = "with head: classifier: the classes that each learned token's classifier tells apart"},
    {KEY(transformer, dropout), .kind = FIELD_QUANTITY, .brief = "dropout probability; 0: no masks are kept",
     .fallback = "0.1", .unit = UNIT_NUMBER, .min = 0, .max = 0.99},
    {KEY(transformer, attention_dropout), .kind = FIELD_QUANTITY,
     .brief = "dropout probability of the attention probabilities; left out: as dropout", .unit = UNIT_NUMBER,
     .min = 0, .max = 0.99},
    {WAY(flash_attention), .kind = FIELD_BOOL, .brief = "fused attention, which does not store the scores",
     .fallback = "false"},
    {WAY(attention_format), .kind = FIELD_CHOICE, .fallback = "half", .choices = CHOICES(ATTENTION_FORMATS),
     .choice_briefs = NAMES("16 bits", "8 bits, with casts before and behind (Transformer Engine's fp8_dpa, NeMo's FP8_DPA)"),
     .brief = "the format of fused attention's products, forward and backward; what is kept for the backward stays in 16 bits"},
    {WAY(autocast), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "in mixed precision PyTorch's autocast computes on weights in fp32: residuals, norms and softmax are in fp32, and casts "
              "around GEMMs are kernels of their own unless fused_kernels"},
    {WAY(fused_qkv), .kind = FIELD_BOOL,
     .brief = "one GEMM computes queries, keys and values; false: one GEMM for each", .fallback = "true"},
    {WAY(gathered_qkv), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "a tensor degree may be a multiple of kv_heads: each GPU computes its share of the columns of queries, keys "
              "and values, the group gathers all of them, and GPUs that share a head of keys and values each attend with "
              "it (Megatron Core since December 2025); needs fused_qkv; false: such degrees are refused"},
    {WAY(fused_gate), .kind = FIELD_BOOL,
     .brief = "one GEMM computes both inputs of SwiGLU; false: one GEMM for each; left out: as fused_qkv"},
    {WAY(fused_gelu), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "GELU is one kernel, of PyTorch's or of TorchScript's; false: its formula with tanh takes a kernel for "
              "each operation (a TorchScript function that is not fused)"},
    {WAY(fused_kernels), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "scale and mask are part of the softmax, dropout is part of the residual sum, and RMSNorm, SwiGLU and "
              "rotation are one kernel each, as in Megatron-LM; false: one kernel per operation, and copies of "
              "queries, keys and values, as in plain PyTorch"},
    {WAY(rotary), .kind = FIELD_CHOICE, .choices = rotary_names,
     .choice_briefs = NAMES("one kernel reads and writes them",
                            "as complex numbers in fp32, in three kernels (Meta's Llama)",
                            "in the format of activations, with halves swapped, in five kernels (Transformers)",
                            "by matrices of 2 x 2 in fp32, in four kernels (IBM's foundation-model-stack)"),
     .brief = "how queries and keys are turned to rotary positions; left out: fused, or complex if fused_kernels is "
              "false"},
    {WAY(repeated_groups), .kind = FIELD_BOOL,
     .brief = "with kv_heads: keys and values are copied for each head that reads them, before attention (Llama's "
              "repeat_kv), and a context group exchanges the copies; left out: true if fused_kernels is false"},
    {WAY(multiplied_mask), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "where the softmax is not fused: a causal mask is multiplied, and what it hides moved below zero, in two "
              "kernels (Megatron-LM of 2019); false: one kernel"},
    {WAY(scores_in_place), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "with fused_kernels: false: torch.baddbmm multiplies heads where they lie and scales scores, and the mask is "
              "written into its result, so that autograd copies the gradient of scores five times (Megatron-LM since "
              "2020); false: copies of heads, and a kernel that scales"},
    {WAY(softmax_in_fours), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "the softmax is fused only in half precision and if micro-batch x heads of a GPU is a multiple of 4, else "
              "it is PyTorch's in fp32, as in Megatron-LM without flash attention"},
    {WAY(fused_norm), .kind = FIELD_BOOL,
     .brief = "RMSNorm is one kernel, whatever fused_kernels is (Apex, Triton); left out: as fused_kernels"},
    {WAY(widened_norms), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "where a norm is one kernel: another one converts its input to fp32 before it, and its input's gradient "
              "back"},
    {WAY(fused_experts), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "one kernel computes the GEMMs of all experts of a GPU, and one casts their rows; false: each expert "
              "has kernels of its own, which the host launches one by one (Transformer Engine's GroupedLinear)"},
    {WAY(expert_adapters), .kind = FIELD_CHOICE, .fallback = "each", .choices = expert_adapters_names,
     .choice_briefs = NAMES("an adapter of its own, beside its GEMM (NeMo AutoModel)",
                            "one together (Megatron Bridge's share_expert_adapters)",
                            "an adapter of its own, which each forward multiplies out and adds to a copy of all weights; the backward "
                            "computes the gradient of that copy (PEFT's target_parameters, which Transformers 5 needs)"),
     .brief = "under memory.lora: what each expert has"},
    {WAY(router), .kind = FIELD_CHOICE, .fallback = "fused", .choices = router_names,
     .choice_briefs = NAMES("a kernel each way (Megatron Core's --moe-router-fusion)",
                            "PyTorch's operators, a kernel each, on indices of experts (Megatron Core of 2024)",
                            "the same on masks of tokens x experts (Megatron Core of 2025 without the fusion)"),
     .brief = "how each token's experts are chosen, with the loss that balances them and the counts of their tokens"},
    {WAY(routed_rows), .kind = FIELD_CHOICE, .fallback = "copies", .choices = routed_rows_names,
     .choice_briefs = NAMES("kernels that copy each row once each way, and weight it on its way",
                            "index_select and scatter_add, which compute an address for each value (Megatron Core "
                            "without --moe-permute-fusion)",
                            "PyTorch's operators, a kernel each: gather, padding, index, weights in fp32, scatter_add "
                            "(torchtitan of 2025)"),
     .brief = "how rows go into the order of their experts, and their results back; dispatchers that send a token once "
              "copy"},
    {WAY(mixer_context), .kind = FIELD_CHOICE, .choices = mixer_context_names,
     .choice_briefs = NAMES("each GPU gets all tokens of its share of the heads, and gives its results back (Megatron Core)",
                            "the GPUs gather the states of all, and pass on the last tokens for the convolution "
                            "(flash-linear-attention; Mamba-2 exchanges heads there too)"),
     .brief = "with a pattern: how the GPUs of a context-parallel group exchange what delta nets and lightning attention read; "
              "left out: heads"},
    {WAY(fused_clamp), .kind = FIELD_BOOL,
     .brief = "SwiGLU's kernel clamps its inputs, and the GEMMs of experts add their biases (Transformer Engine's "
              "op fuser); false: separate kernels do; left out: true if fused_kernels and fused_experts are"},
    {WAY(fused_bias), .kind = FIELD_BOOL,
     .brief = "GEMMs add their biases (PyTorch since 1.12, Transformer Engine, flash-attn); false: separate kernels "
              "do (PyTorch before 1.12, Megatron-LM's layers); left out: true if fused_kernels is false"},
    {KEY(transformer, kv_rank), .kind = FIELD_INT, .min = 1, .max = MAX_WIDTH,
     .brief = "latent attention (without biases of its inputs): width of the compressed keys and values; left out: "
              "attention is not latent"},
    {KEY(transformer, q_rank), .kind = FIELD_INT, .min = 1, .max = MAX_WIDTH,
     .brief = "width of the compressed queries of latent attention, or without kv_rank of attention whose queries alone are narrowed "
              "(Step-3); left out: queries are not compressed"},
    {KEY(transformer, rope_head_size), .kind = FIELD_INT, .min = 0, .max = MAX_WIDTH,
     .brief = "latent attention: width of the rotated part that queries and keys have in addition to head_size"},
    {KEY(transformer, value_head_size), .kind = FIELD_INT, .min = 1, .max = MAX_WIDTH,
     .brief = "latent attention: width of a head's values; left out: as head_size"},
    {KEY(transformer, experts), .kind = FIELD_INT, .min = 1, .max = MAX_LAYERS,
     .brief = "number of experts that replace the MLP, together with a router; left out: none"},
    {KEY(transformer, experts_per_token), .kind = FIELD_INT, .min = 1, .max = MAX_LAYERS,
     .brief = "number of experts to which the router sends each token"},
    {KEY(transformer, expert_ffn), .kind = FIELD_INT, .brief = "width inside one expert; left out: as ffn", .min = 1,
     .max = MAX_WIDTH},
    {KEY(transformer, expert_skew), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 0, .max = 4,
     .brief = "how unevenly tokens choose experts: the i-th busiest expert's share is proportional to i^-expert_skew; "
              "left out or 0: evenly. Of the GPUs that divide the experts the busiest sets the pace: where 64 divide 256 "
              "experts, with 0.3 it gets 1.73 times the mean"},
    {KEY(transformer, shared_experts), .kind = FIELD_INT,
     .brief = "number of further experts, through which every token goes", .min = 0, .max = MAX_LAYERS},
    {KEY(transformer, shared_ffn), .kind = FIELD_INT, .min = 1, .max = MAX_WIDTH,
     .brief = "width inside all shared experts together; left out: shared_experts x expert_ffn"},
    {KEY(transformer, shared_gate), .kind = FIELD_BOOL,
     .brief = "each token's result of the shared experts is multiplied by a gate (Qwen2 MoE); left out: false"},
    {KEY(transformer, dense_layers), .kind = FIELD_INT,
     .brief = "number of first blocks that have an MLP instead of experts", .min = 0, .max = MAX_LAYERS},
    {KEY(transformer, moe_every), .kind = FIELD_INT, .min = 1, .max = MAX_LAYERS,
     .brief = "block i, counted from 0, has experts if this number divides i; left out: 1"},
    {KEY(transformer, expert_blocks), .kind = FIELD_INTS, .min = 0, .max = MAX_LAYERS,
     .brief = "instead of dense_layers and moe_every: the blocks, counted from 0, that have experts"},
    {KEY(transformer, router_bias), .kind = FIELD_BOOL,
     .brief = "with experts: the router adds a bias to each expert's score, which balances their loads (DeepSeek-V3, Nemotron "
              "3); left out: false"},
    {KEY(transformer, expert_latent), .kind = FIELD_INT, .min = 1, .max = MAX_WIDTH,
     .brief = "with experts: a GEMM brings the hidden states to this width before they are sent to experts, and another one "
              "back (Nemotron 3 Super); left out: experts get the hidden states"},
    {KEY(transformer, pattern), .kind = FIELD_STRING,
     .brief = "a hybrid model: one letter a half of a block, repeated until layers: * attention, + latent attention, M Mamba-2, "
              "G gated delta net, K Kimi delta attention, L lightning attention, - MLP, E experts; parentheses hold one "
              "layer: '(GE)(GE)(GE)(*E)'; left out: each block has attention and an MLP or experts"},
    {KEY(transformer, mamba), .kind = FIELD_OPTIONAL, .table = &mamba_table, .brief = "widths of Mamba-2 (M)"},
    {KEY(transformer, delta), .kind = FIELD_OPTIONAL, .table = &delta_table, .brief = "widths of delta nets (G, K)"},
    {KEY(transformer, linear), .kind = FIELD_OPTIONAL, .table = &lightning_table, .brief = "widths of lightning attention (L)"},
    {KEY(transformer, attention_gate), .kind = FIELD_BOOL,
     .brief = "attention's results are multiplied by a gate, which more columns of the queries' GEMM compute (Qwen3-Next); left "
              "out: false"},
    {KEY(transformer, mtp), .also = "mtp_num_layers num_nextn_predict_layers", .kind = FIELD_INT, .min = 0, .max = 16,
     .fallback = "0",
     .brief = "modules of multi-token prediction (DeepSeek-V3: 1): each has a block like the last, a GEMM of 2 hidden x "
              "hidden before it and the output layer once more, all on the last stage, as in Megatron Core"},
    {KEY(transformer, mtp_repeats), .kind = FIELD_BOOL,
     .brief = "all modules of multi-token prediction compute with one set of weights (Nemotron 3 Super, Ultra; Megatron Core's "
              "--mtp-use-repeated-layer); left out: false"},
};

#define DELEGATED \
             "flash_attention attention_format autocast fused_qkv fused_gate fused_gelu fused_kernels rotary repeated_groups multiplied_mask " \
             "scores_in_place gathered_qkv softmax_in_fours fused_norm widened_norms fused_experts expert_adapters router routed_rows fused_clamp " \
             "fused_bias mixer_context"

const struct table transformer_table = {
    TABLE("transformer", "the shape of a transformer; the defaults are GPT's", transformer, transformer_fields),
    .delegated = DELEGATED,
};

const struct table transformer_change_table = {
    TABLE("with", "keys that replace values of the preset or of config.json", transformer, transformer_fields),
    .partial = true, .delegated = DELEGATED,
};
