/*
 *     hidden ─[─ norm]─[─ transform]─[─ product to the embedding's width]── logits ── loss
 *     learned tokens of images ─[─ norm]── classifiers ── loss
 *
 * Each GPU of the tensor group computes the logits of a share of the vocabulary. BERT's transform is a product, GELU and
 * norm, which are not split. A module of multi-token prediction computes the same with the same weights, and has its own
 * norm. */
#include "model/operator.h"

static void transform(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    double own = cut->own_tokens * cut->hidden, values = own * cut->value;

    outer_product(ops, "transform", PRODUCT_TRANSFORM, cut->own_tokens, cut->hidden, cut->hidden);
    if (cut->shape->transform_bias)
        vector(ops, PLACE_FIRST, cut->hidden);   /* Megatron-LM's BertLMHead: PyTorch's linear layer */
    operator_begin(ops, "gelu", 0);
    memory_kernel(ops, "gelu", PHASE_FORWARD, CLASS_GELU_FORWARD, 2 * values);
    memory_kernel(ops, "gelu", PHASE_BACKWARD_INPUT, CLASS_GELU_BACKWARD, 3 * values);
    outer_norm(ops, "transform-norm", PLACE_FIRST);
    vector(ops, PLACE_FIRST, cut->vocabulary);   /* the output layer's bias */
    keep_outer(ops, "transform inputs", 3 * own, cut->value);
}

/* The columns of padding in the vocabulary take time, but they do not count as FLOPs that training needs. A tied weight has
 * no elements of its own. */
static void logits(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    const struct transformer *shape = cut->shape;
    double own = shape->tied ? 0 : cut->vocabulary;
    struct operator *op = operator_begin(ops, "logits", 0);

    op->product = cut->lora ? PRODUCT_NONE : PRODUCT_LOGITS;
    op->gathers = !cut->lora && cut->tensor > 1;
    plain_product(ops, PRODUCT_LOGITS, cut->tokens, cut->columns, shape->embedding_size);
    for (size_t i = op->first; i < ops->kernels.count; i++)
        ops->kernels.items[i].flop *= shape->vocabulary / (cut->tensor * cut->columns);
    if (cut->tensor > 1)
        sends(ops, SENT_INPUT, 0, 1, cut->tokens * cut->hidden * cut->value);
    parameter(ops, (struct weights){.place = PLACE_FIRST, .elements = own * shape->embedding_size, .rows = own,
                                    .linear = {LINEAR_OUTPUT, cut->vocabulary, shape->embedding_size}});
    if (!cut->lora)
        keep_outer(ops, "logits input", cut->input_tokens * shape->embedding_size, cut->value);
}

/* Classifiers of learned tokens, which every GPU of the tensor group computes whole. */
static void classifiers(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    struct cut own = *cut;

    own.tokens = cut->batch * cut->shape->vision->classifiers, own.vocabulary = cut->shape->classes;
    for (int i = 0; i < cut->shape->vision->classifiers; i++) {
        outer_product(ops, "classifier", PRODUCT_LOGITS, cut->batch, own.vocabulary, cut->hidden);
        vector(ops, PLACE_FIRST, own.vocabulary);
    }
    keep_outer(ops, "classifier input", own.tokens * cut->hidden, cut->value);
    ops->cut = &own;
    loss(ops);
    ops->cut = cut;
}

/* Korthikanti et al. 2022, section 4.3: 2 s b h bytes for the norm's input, 2 s b h for the output layer's input, 4 s b v/t
 * for the logits in fp32. BERT's transform keeps three more inputs. */
static void head(struct operators *ops, struct tensor in)
{
    const struct cut *cut = ops->cut;
    const struct transformer *shape = cut->shape;
    bool masked = shape->head == HEAD_MASKED_LANGUAGE_MODEL;
    double own = cut->own_tokens * cut->hidden;

    (void)in;
    if (shape->final_norm && !cut->predicts) {
        outer_norm(ops, "final-norm", PLACE_FIRST);
        keep_outer(ops, "norm input", own, cut->value);
    }
    if (shape->head == HEAD_NONE)
        return;
    ops->base = own * cut->value;       /* the gradient of the input */
    if (shape->head == HEAD_CLASSIFIER) {
        classifiers(ops);
        return;
    }
    if (masked)
        transform(ops);
    if (shape->embedding_size != shape->hidden) {
        outer_product(ops, "transform", PRODUCT_TRANSFORM, cut->own_tokens, shape->embedding_size, cut->hidden);
        keep_outer(ops, "transform input", own, cut->value);
    }
    logits(ops);
    if (masked || shape->head_bias)
        bias(ops, "logits-bias", cut->tokens, cut->vocabulary, false);
    if (!masked && shape->head_bias)
        vector(ops, PLACE_FIRST, cut->vocabulary);
    loss(ops);
}

const struct part_kind part_head = {PART_HEAD, NULL, head};
