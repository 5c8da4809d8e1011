/* Lightning attention (MiniMax-01 2025, section 2.2; Qin et al. 2024):
 *
 *     in ─┬─ q, k, v ── SiLU ── blocks ── norm x gate ── out
 *         └─ gate ─────────────────────────────┘
 *
 * No softmax, a decay a head: inside a block of tokens as attention is, between blocks by a state of head_size squared a head.
 * The tensor group divides heads; a context group exchanges heads for tokens, or gathers states (LASP). */
#include "model/operator.h"

static bool stands(const struct cut *cut)
{
    return cut->mixer == MIXER_LIGHTNING;
}

static void lightning(struct operators *ops, struct tensor in)
{
    const struct cut *cut = ops->cut;
    const struct lightning *shape = cut->shape->linear;
    double T = cut->tokens, b = cut->value, d = shape->head_size, B = shape->block, w = shape->heads / cut->tensor * d;
    double states = T / B * w * d;
    const struct scan_kernel kernels[] = {
        {"mixer-silu", 0, 2 * T * 3 * w * b, false},
        {"chunk-states", 2 * T * w * d, 2 * T * w * b + 4 * states, true},
        {"chunk-pass", 0, (4 + 4) * states, true},
        {"chunk-output", 4 * T * B * w / 2 + 2 * T * w * d, 4 * T * w * b + 4 * states, false},
    };
    const double sent[] = {3 * w, w, w};
    const struct passed_on passed = {4 * cut->batch * w * d, 0, 2 * T * w * d, 2 * T * w * b};

    mixer_product(ops, in, 4 * w, true);
    mixer_exchanges(ops, sent, sizeof sent / sizeof *sent, &passed);
    scan(ops, "lightning", 4 * T * w * d, kernels, sizeof kernels / sizeof *kernels);
    ops->list.items[ops->current].peak = (struct workspace){4 * states, 8 * states};
    keep_mixed(ops, "q, k, v", 2 * 3 * w);
    keep_mixed(ops, "gate and result", 2 * w);
    mixer_projection(ops, gated_norm(ops, w, w));
}

const struct part_kind part_lightning = {PART_ATTENTION, stands, lightning};
