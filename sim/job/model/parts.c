/* The kinds of parts of a layer, and how the two halves make a block. */
#include "model/operator.h"

#include <stddef.h>

#include "base/base.h"

#define PART_KIND(name) extern const struct part_kind part_##name;
#include "strategies/blocks/list.h"
#undef PART_KIND
static const struct part_kind *const kinds[] = {
#define PART_KIND(name) &part_##name,
#include "strategies/blocks/list.h"
#undef PART_KIND
};

void write_part(struct operators *ops, enum part part, struct tensor in)
{
    size_t i = 0;

    while (i < COUNT(kinds) && (kinds[i]->part != part || (kinds[i]->stands && !kinds[i]->stands(ops->cut))))
        i++;
    BUG_IF(i == COUNT(kinds));
    kinds[i]->write(ops, in);
}

/* Where attention and MLP are parallel, each of their last products is summed over the tensor group, as if one followed
 * the other (Transformers, base_model_tp_plan of cohere: o_proj and down_proj are both "rowwise"). */
void block(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    struct tensor in = {0};

    if (cut->begins)
        write_part(ops, PART_EMBEDDING, in);
    ops->base = cut->own_tokens * cut->hidden * cut->value; /* the gradient along the residual; of the encoder's output */
    if (cut->source)
        ops->base += cut->source->own_tokens * cut->hidden * cut->value;
    ops->half = HALF_ATTENTION;
    if (cut->mixer != MIXER_NONE) {
        in = norm(ops, "attention-norm", KEPT_ATTENTION_INPUT);
        write_part(ops, PART_ATTENTION, in);
        if (cut->shape->post_norms)
            post_norm(ops, "attention-post-norm");
        residual(ops, "attention-residual");
        packs(ops, false);
        packs(ops, true);
    }
    if (cut->source) {
        write_part(ops, PART_CROSS, norm(ops, "cross-norm", KEPT_CROSS_INPUT));
        residual(ops, "cross-residual");
    }
    if (cut->has_mlp) {
        if (!cut->shape->parallel)
            in = norm(ops, "mlp-norm", KEPT_MLP_INPUT);
        ops->within = 1u << (cut->has_experts ? MODULE_EXPERTS : MODULE_MLP);
        ops->half = HALF_MLP;
        write_part(ops, PART_MLP, in);
        ops->within = 0;
        if (cut->shape->post_norms)
            post_norm(ops, "mlp-post-norm");
        packs(ops, false);
        residual(ops, "mlp-residual");
    }
    ops->block_end = ops->list.count;
    if (cut->closes && cut->shape->final_norm) {
        ops->half = HALF_NEITHER;
        outer_norm(ops, "encoder-norm", PLACE_FIRST);
        keep_outer(ops, "norm input", cut->own_tokens * cut->hidden, cut->value);
    }
}
