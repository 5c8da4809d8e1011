/* The front end of Whisper's encoder (Radford et al. 2022, section 2.2):
 *
 *     spectrogram ── convolution ── GELU ── convolution ── GELU ── out
 *
 * Both convolutions have windows of three; the second one takes every second place, so that a sample has twice as many columns as
 * the encoder has tokens. Each is counted as a product of its windows, on every GPU of the tensor group. */
#include "model/operator.h"

static bool stands(const struct cut *cut)
{
    return cut->shape->encoder && cut->shape->encoder->mels && !cut->source;
}

static void gelu(struct operators *ops, double values)
{
    double bytes = values * ops->cut->value;

    operator_begin(ops, "gelu", 0);
    memory_kernel(ops, "gelu", PHASE_FORWARD, CLASS_GELU_FORWARD, 2 * bytes);
    memory_kernel(ops, "gelu", PHASE_BACKWARD_INPUT, CLASS_GELU_BACKWARD, 3 * bytes);
    keep_outer(ops, "function input", values, ops->cut->value);
}

static void sounds(struct operators *ops, struct tensor in)
{
    const struct cut *cut = ops->cut;
    double rows = cut->tokens, mels = cut->shape->encoder->mels;

    (void)in;
    keep_outer(ops, "spectrogram", 2 * rows * mels, cut->value);
    input_product(ops, "convolution", PRODUCT_INPUT, 2 * rows, cut->hidden, 3 * mels, true);
    gelu(ops, 2 * rows * cut->hidden);
    keep_outer(ops, "convolution input", 2 * rows * cut->hidden, cut->value);
    outer_product(ops, "convolution", PRODUCT_INPUT, rows, cut->hidden, 3 * cut->hidden);
    vector(ops, PLACE_FIRST, cut->hidden);
    bias(ops, "input-bias", rows, cut->hidden, true);
    gelu(ops, rows * cut->hidden);
}

const struct part_kind part_sounds = {PART_INPUT, stands, sounds};
