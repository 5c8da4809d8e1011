/* Mamba-2 (Dao and Gu 2024, section 7; Megatron Core, ssm/mamba_mixer.py):
 *
 *     in ─┬─ z ──────────────────────────────────┐
 *         ├─ x, B, C ── convolution ── SiLU ── scan ── norm x gate ── out
 *         └─ dt ──────────────────────────────────┘
 *
 * One product computes all inputs. Tokens are computed in chunks: inside a chunk as attention is, by C B' and its product with
 * x; between chunks by a state a head. The tensor group divides heads and groups of B and C; a context group exchanges heads for
 * tokens, z, x, B, C and dt one by one before the convolution, and the result after the scan. */
#include "model/operator.h"

static bool stands(const struct cut *cut)
{
    return cut->mixer == MIXER_MAMBA;
}

/* The kernels of mamba_ssm's mamba_chunk_scan_combined (ssd_combined.py); its backward computes the convolution and the states
 * of chunks again. FLOP of the recurrence: 7 d N a token (Megatron-LM, training.py: mamba_layer_flops). */
static void chunks(struct operators *ops, double heads, double wide, double d, double gn)
{
    const struct mamba *shape = ops->cut->shape->mamba;
    double T = ops->cut->tokens, v = ops->cut->value, Q = shape->chunk, N = shape->state, states = T / Q * d * N;
    double scores = T * Q * gn / N;
    const struct scan_kernel kernels[] = {
        {"mixer-convolution", 0, 2 * T * wide * v, true},
        {"mixer-decay", 0, T * heads * (v + 4 + 4), false},
        {"chunk-states", 2 * T * d * N, T * (d + gn) * v + 4 * states, true},
        {"chunk-pass", 0, (4 + 4) * states, true},
        {"chunk-scores", 2 * T * Q * gn, 2 * T * gn * v + 4 * scores, false},
        {"chunk-scan", 2 * T * d * (Q + N), 2 * T * d * v + T * gn * v + 4 * (scores + states), false},
    };

    scan(ops, "mamba", T * (7 * d * N + 2 * shape->conv * wide), kernels, sizeof kernels / sizeof *kernels);
    ops->list.items[ops->current].peak = (struct workspace){4 * (states + scores), 8 * (states + scores)};
}

static void mamba(struct operators *ops, struct tensor in)
{
    const struct cut *cut = ops->cut;
    const struct mamba *shape = cut->shape->mamba;
    double heads = shape->heads / cut->tensor, d = heads * shape->head_size, gn = shape->groups / cut->tensor * shape->state;
    double wide = d + 2 * gn, all = d + wide + heads;
    const double sent[] = {d, d, mixer_copies(cut, shape->groups) * gn, mixer_copies(cut, shape->groups) * gn, heads, d};

    mixer_product(ops, in, all, true);
    vector(ops, PLACE_BLOCK, wide * shape->conv);
    vector(ops, PLACE_BLOCK, wide);
    vector(ops, PLACE_BLOCK, 3 * heads);
    mixer_exchanges(ops, sent, sizeof sent / sizeof *sent, NULL);
    chunks(ops, heads, wide, d, gn);
    keep_mixed(ops, "mixer input", all);
    keep_mixed(ops, "scan", d);
    mixer_projection(ops, gated_norm(ops, d, d));
}

const struct part_kind part_mamba = {PART_ATTENTION, stands, mamba};
