/*
 *     rows of tokens, or patches of an image [+ position's row] [+ token type's row] [── norm] [── dropout] ── out
 *
 * Where scores get biases by the distance of query and key, each stack of blocks looks them up once. */
#include "model/operator.h"

static void dropout(struct operators *ops, double elements)
{
    const struct cut *cut = ops->cut;

    operator_begin(ops, "dropout", 0);
    memory_kernel(ops, "dropout", PHASE_FORWARD, CLASS_DROPOUT_RESIDUAL_FORWARD, elements * (2 * cut->value + 1));
    memory_kernel(ops, "dropout", PHASE_BACKWARD_WEIGHT, CLASS_DROPOUT_RESIDUAL_BACKWARD, elements * (2 * cut->value + 1));
}

/* Korthikanti et al. 2022, section 4.3: the mask of the dropout is kept. A norm keeps its input. */
static void embedding(struct operators *ops, struct tensor in)
{
    const struct cut *cut = ops->cut;
    const struct transformer *shape = cut->shape;
    double own = cut->own_tokens;

    write_part(ops, PART_INPUT, in);
    if (shape->positions > 0) {
        lookup(ops, "positions", cut->queries, cut->hidden, true);
        matrix(ops, PLACE_FIRST, shape->positions, cut->hidden);
    }
    if (shape->relative_positions > 0) {
        lookup_biases(ops);
        matrix(ops, PLACE_FIRST, shape->relative_positions, cut->heads);
    }
    if (shape->token_types > 0) {
        lookup(ops, "token-types", shape->token_types, cut->hidden, true);
        matrix(ops, PLACE_FIRST, shape->token_types, cut->hidden);
    }
    if (shape->embedding_norm) {
        outer_norm(ops, "embedding-norm", PLACE_FIRST);
        keep_outer(ops, "norm input", own * cut->hidden, cut->value);
    }
    if (shape->dropout > 0) {
        dropout(ops, own * cut->hidden);
        keep_outer(ops, "dropout mask", own * cut->hidden, 1);
    }
    ops->base = own * cut->hidden * cut->value;     /* the gradient of the result */
}

const struct part_kind part_embedding = {PART_EMBEDDING, NULL, embedding};
