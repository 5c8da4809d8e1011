/* The words of blocks that mix tokens by a recurrence: their products, what a context group exchanges, chunked kernels, and the
 * norm and gate behind them. */
#include "model/operator.h"

#include <math.h>

#include "base/base.h"

struct tensor mixer_product(struct operators *ops, struct tensor in, double out, bool whole_input)
{
    return product(ops, &(struct weight_product){.id = PRODUCT_MIXER_IN, .in = in, .out = out,
                                                 .split = whole_input ? SPLIT_COLUMNS : SPLIT_NONE, .place = PLACE_BLOCK,
                                                 .target = LORA_TARGET_COUNT, .whole_input = whole_input});
}

void mixer_projection(struct operators *ops, struct tensor in)
{
    product(ops, &(struct weight_product){.id = PRODUCT_PROJECTION, .in = in, .out = ops->cut->hidden, .split = SPLIT_ROWS,
                                          .place = PLACE_BLOCK, .target = LORA_TARGET_COUNT, .sums = true, .pieces = true});
}

double mixer_copies(const struct cut *cut, double groups)
{
    return fmax(1, cut->context / (groups / cut->tensor));
}

static void scan_kernels(struct operators *ops, const struct scan_kernel *kernel, enum phase phase, int times)
{
    add_kernel(ops, (struct kernel){.name = kernel->name, .kind = kernel->flop > 0 ? KERNEL_MATMUL : KERNEL_MEMORY, .phase = phase,
                                    .class = CLASS_OTHER, .dtype = ops->cut->dtype, .batch = 1, .flop = kernel->flop,
                                    .bytes = kernel->bytes, .launches = times, .unmeasured = true});
}

/* The GPUs of a context group each compute their own tokens with all heads: a kernel more finds what a GPU's tokens do to any
 * state, all GPUs gather the results, and each GPU computes the state before its tokens (flash-linear-attention, ops/cp). */
static void mixer_states(struct operators *ops, const struct passed_on *passed)
{
    const struct scan_kernel kernel = {"mixer-states", passed->flop, passed->bytes, false};

    operator_begin(ops, "mixer-states", 0);
    sends(ops, SENT_STATES, 1, 1, passed->state);
    if (passed->tail > 0)
        sends(ops, SENT_TAIL, 1, 1, passed->tail);
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++)
        scan_kernels(ops, &kernel, (enum phase)phase, 1);
}

/* Each is put into the order in which GPUs exchange it, and after it into the order of tokens. */
void mixer_exchanges(struct operators *ops, const double *widths, size_t count, const struct passed_on *passed)
{
    const struct cut *cut = ops->cut;

    if (passed && cut->context > 1 && cut->shape->ways.mixer_context == MIXER_CONTEXT_STATES) {
        mixer_states(ops, passed);
        return;
    }
    for (size_t i = 0; i < count && cut->context > 1; i++) {
        double bytes = cut->tokens * widths[i] * cut->value;

        operator_begin(ops, "mixer-exchange", 0);
        sends(ops, SENT_MIXED, 1, 1, bytes);
        for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++)
            plain_kernels(ops, "mixer-exchange", (enum phase)phase, CLASS_COPY, 2, 4 * bytes);
    }
}

void scan(struct operators *ops, const char *name, double recurrence, const struct scan_kernel *kernels, size_t count)
{
    operator_begin(ops, name, 0)->recurrence = recurrence;
    for (size_t i = 0; i < count; i++)
        scan_kernels(ops, &kernels[i], PHASE_FORWARD, 1);
    for (size_t i = 0; i < count; i++)
        if (kernels[i].again)
            scan_kernels(ops, &kernels[i], PHASE_BACKWARD_INPUT, 1);
    for (size_t i = count; i-- > 0;)
        scan_kernels(ops, &kernels[i], PHASE_BACKWARD_INPUT, 2);
}

void keep_mixed(struct operators *ops, const char *name, double width)
{
    if (width > 0)
        keep(ops, (struct kept_value){.name = name, .order = KEPT_QKV, .kind = KEPT_VALUES, .rows = ops->cut->tokens,
                                      .as = {width, ops->cut->value, 1}});
}

/* Forward: reads the result and the gate. Backward: reads both and the gradient, and writes two gradients. */
struct tensor gated_norm(struct operators *ops, double width, double weights)
{
    const struct cut *cut = ops->cut;
    double bytes = cut->tokens * width * cut->value;

    operator_begin(ops, "gated-norm", 0);
    memory_kernel(ops, "gated-norm", PHASE_FORWARD, CLASS_RMSNORM_FORWARD, 3 * bytes);
    memory_kernel(ops, "gated-norm", PHASE_BACKWARD_INPUT, CLASS_RMSNORM_BACKWARD, 5 * bytes);
    vector(ops, PLACE_BLOCK, weights);
    return (struct tensor){cut->tokens, width, keep_projection_input(ops, width), 0};
}

struct tensor gated(struct operators *ops, struct tensor in)
{
    const struct cut *cut = ops->cut;
    double bytes = cut->tokens * cut->gate * cut->value;

    if (cut->gate == 0)
        return in;
    operator_begin(ops, "attention-gate", 0);
    memory_kernel(ops, "attention-gate", PHASE_FORWARD, CLASS_OTHER, 3 * bytes);
    memory_kernel(ops, "attention-gate", PHASE_BACKWARD_INPUT, CLASS_OTHER, 5 * bytes);
    keep_mixed(ops, "attention gate", cut->gate);
    in.kept = keep_projection_input(ops, cut->gate);
    return in;
}
