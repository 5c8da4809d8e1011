/*
 *     token ── row of the embedding [── product] ── out
 *
 * Each GPU of the tensor group has a share of the rows of the embedding; the group sums what they find. Token numbers are not
 * counted as memory; a product keeps its input. A decoder looks its tokens up in the encoder's embedding, if that has one. */
#include "model/operator.h"

static void tokens(struct operators *ops, struct tensor in)
{
    const struct cut *cut = ops->cut;
    const struct transformer *shape = cut->shape;
    double own = cut->own_tokens;

    (void)in;
    lookup(ops, "embedding", cut->tokens, shape->embedding_size, false);
    if (!(cut->source && shares_embedding(shape)))
        matrix(ops, PLACE_FIRST, cut->vocabulary, shape->embedding_size);
    if (cut->tensor > 1)
        sends(ops, SENT_SUM, 1, 0, cut->tokens * cut->hidden * cut->value);
    if (shape->embedding_size == shape->hidden)
        return;
    outer_product(ops, "transform", PRODUCT_TRANSFORM, own, cut->hidden, shape->embedding_size);
    keep_outer(ops, "transform input", own * shape->embedding_size, cut->value);
}

const struct part_kind part_tokens = {PART_INPUT, NULL, tokens};
