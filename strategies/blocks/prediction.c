/* Multi-token prediction (DeepSeek-AI 2024, DeepSeek-V3, section 2.2; Megatron Core, multi_token_prediction.py of
 * core_v0.14.0):
 *
 *     next token ── embedding ── norm ──┐
 *                                       ├─ side by side ── product ── block ── norm ── out
 *     hidden ────────────────── norm ───┘
 *
 * The embedding and the output layer are the model's own. The tensor group divides the product by its columns and gathers
 * its results. Under sequence parallelism it also gathers the product's inputs, which are twice as wide, and divides the
 * results again. The backward does the reverse, and gathers the inputs once more. A gather of results is half an all-reduce
 * of them; a whole one is counted, which is too much. torch.cat's backward is views. */
#include "model/operator.h"

static void prediction(struct operators *ops, struct tensor in)
{
    const struct cut *cut = ops->cut;
    double own = cut->own_tokens * cut->hidden, bytes = cut->tokens * cut->hidden * cut->value;
    bool shares = cut->own_tokens < cut->tokens;

    (void)in;
    ops->half = HALF_ATTENTION;
    lookup(ops, "embedding", cut->tokens, cut->shape->embedding_size, false);
    outer_norm(ops, "embedding-norm", PLACE_FIRST);
    outer_norm(ops, "hidden-norm", PLACE_FIRST);
    operator_begin(ops, "concatenate", 0);
    memory_kernel(ops, "concatenate", PHASE_FORWARD, CLASS_COPY, 4 * own * cut->value);
    product(ops, &(struct weight_product){.id = PRODUCT_PREDICTION, .in = {cut->tokens, 2 * cut->hidden, -1, 0},
                                   .out = cut->hidden / cut->tensor, .split = SPLIT_COLUMNS, .place = PLACE_BLOCK,
                                   .target = LORA_TARGET_COUNT});
    if (cut->tensor > 1) {
        ops->list.items[ops->current].gathers = cut->lora ? 0 : 2;
        sends(ops, SENT_SUM, shares ? 2 : 1, 0, bytes);
        sends(ops, SENT_INPUT, 0, 2, bytes);
    }
    block(ops);
    ops->half = HALF_NEITHER;
    outer_norm(ops, "prediction-norm", PLACE_FIRST);
    keep_outer(ops, "norm inputs", 3 * own, cut->value);
    if (!cut->lora)
        keep_outer(ops, "product input", 2 * cut->input_tokens * cut->hidden, cut->fp8 ? cut->saved : cut->value);
}

const struct part_kind part_prediction = {PART_PREDICTION, NULL, prediction};
