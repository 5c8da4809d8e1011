/* Vision transformers (Dosovitskiy et al. 2020, section 3.1; DeiT: Touvron et al. 2020; CLIP: Radford et al. 2021):
 *
 *     image ── patches ── product ──┬── out
 *                  learned tokens ──┘
 *
 * A convolution whose windows do not overlap is a product of the patches' values. Every GPU of the tensor group computes all of
 * it. Its backward has no gradient of the image. The image is kept for the gradient of the weights. */
#include "model/operator.h"

static bool stands(const struct cut *cut)
{
    return cut->shape->vision;
}

static void patches(struct operators *ops, struct tensor in)
{
    const struct cut *cut = ops->cut;
    const struct vision *vision = cut->shape->vision;
    double along = (double)vision->image / vision->patch, values = (double)vision->channels * vision->patch * vision->patch;
    double rows = cut->batch * along * along, bytes = cut->tokens * cut->hidden * cut->value;

    (void)in;
    input_product(ops, "patches", PRODUCT_INPUT, rows, cut->hidden, values, vision->bias);
    keep_outer(ops, "image", rows * values, cut->value);
    if (!vision->tokens)
        return;
    operator_begin(ops, "learned-tokens", 0);
    memory_kernel(ops, "concatenate", PHASE_FORWARD, CLASS_COPY, 2 * bytes);
    memory_kernel(ops, "concatenate", PHASE_BACKWARD_WEIGHT, CLASS_COPY, 2 * bytes);
    vector(ops, PLACE_FIRST, vision->tokens * cut->hidden);
}

const struct part_kind part_patches = {PART_INPUT, stands, patches};
