/* Gated delta net (Yang et al. 2024; Qwen3-Next) and Kimi delta attention (Kimi Linear 2025):
 *
 *     in ─┬─ q, k, v ── convolution ── SiLU ── norms of q and k ──┐
 *         ├─ decay, beta ────────────────────────────────────── rule ── norm x gate ── out
 *         └─ gate ────────────────────────────────────────────────────────┘
 *
 * The rule goes through chunks of tokens, each with a triangular system, and through a state a head. Kimi's decay is of each
 * channel; its decay and its gate come through a narrow product each. The tensor group divides heads; a context group exchanges
 * heads for tokens, or gathers states. */
#include "model/operator.h"

struct widths { double heads, q, v, key, value; bool kimi; };

static struct widths widths_of(const struct cut *cut)
{
    const struct delta *shape = cut->shape->delta;
    double heads = shape->value_heads / cut->tensor;

    return (struct widths){heads, shape->key_heads / cut->tensor * shape->key_size, heads * shape->value_size, shape->key_size,
                           shape->value_size, cut->mixer == MIXER_KIMI};
}

static bool stands(const struct cut *cut)
{
    return cut->mixer == MIXER_DELTA || cut->mixer == MIXER_KIMI;
}

/* The kernels of flash-linear-attention (ops/gated_delta_rule/chunk.py, ops/kda); the backward computes W, U and states again.
 * FLOP of the recurrence: 8 a value and column of the state (Megatron-LM, training.py). */
static void rule(struct operators *ops, const struct widths *w)
{
    const struct delta *shape = ops->cut->shape->delta;
    double T = ops->cut->tokens, b = ops->cut->value, C = shape->chunk, heads = w->heads, wide = 2 * w->q + w->v;
    double keys = T * heads * w->key * b, values = T * heads * w->value * b, square = (w->kimi ? 2 : 1) * T * C * heads * b;
    double states = T / C * heads * w->key * w->value * b, decay = 4 * T * heads * (w->kimi ? w->key : 1);
    const struct scan_kernel kernels[] = {
        {"mixer-convolution", 0, 2 * T * wide * b, false},
        {"mixer-norms", 0, 2 * T * 2 * w->q * b + 2 * keys, false},
        {"mixer-decay", 0, 2 * decay, false},
        {"chunk-keys", 2 * T * heads * C * w->key, keys + decay + square, false},
        {"chunk-solve", T * heads * C * C, 2 * square, false},
        {"chunk-wu", 2 * T * heads * C * (w->key + w->value), 2 * (keys + values) + square, true},
        {"chunk-states", 4 * T * heads * w->key * w->value, 2 * keys + 2 * values + states, true},
        {"chunk-output", 2 * T * heads * (w->key * w->value + C * (w->key + w->value)), 2 * keys + 2 * values + states, false},
    };

    scan(ops, w->kimi ? "kimi" : "delta", T * (8 * heads * w->value * w->value + 2 * shape->conv * wide), kernels,
         sizeof kernels / sizeof *kernels);
    ops->list.items[ops->current].peak = (struct workspace){keys + 2 * values + states, 2 * (keys + 2 * values + states)};
}

/* States of all heads, and the matrix by which a GPU's tokens multiply them, in fp32. */
static struct passed_on passed_on_of(const struct cut *cut, const struct widths *w)
{
    double keys = cut->tokens * w->heads * w->key, chunks = cut->tokens / cut->shape->delta->chunk;

    return (struct passed_on){
        .state = 4 * cut->batch * w->heads * w->key * (w->value + w->key),
        .tail = cut->batch * (cut->shape->delta->conv - 1) * (2 * w->q + w->v) * cut->value,
        .flop = 4 * keys * (w->value + w->key) + 2 * chunks * w->heads * w->key * w->key * w->key,
        .bytes = (2 * keys + cut->tokens * w->heads * w->value) * cut->value,
    };
}

static void delta(struct operators *ops, struct tensor in)
{
    const struct cut *cut = ops->cut;
    struct widths w = widths_of(cut);
    double wide = 2 * w.q + w.v, all = wide + (w.kimi ? w.heads : w.v + 2 * w.heads), small = cut->shape->delta->value_size;
    const struct passed_on passed = passed_on_of(cut, &w);
    const double sent[] = {w.q, w.q, w.v, w.v, w.heads, w.kimi ? w.q : w.heads, w.v};

    mixer_product(ops, in, all, true);
    for (int i = 0; w.kimi && i < 2; i++)        /* of the decay, and of the gate */
        mixer_product(ops, mixer_product(ops, in, small, false), i ? w.v : w.q, false);
    vector(ops, PLACE_BLOCK, wide * cut->shape->delta->conv);
    vector(ops, PLACE_BLOCK, w.heads);
    vector(ops, PLACE_BLOCK, w.kimi ? w.q : w.heads);
    mixer_exchanges(ops, sent, sizeof sent / sizeof *sent, &passed);
    rule(ops, &w);
    keep_mixed(ops, "q, k, v", 2 * wide);
    keep_mixed(ops, "repeated q, k", w.kimi ? 0 : 2 * w.heads * w.key);
    keep_mixed(ops, "gate and result", 2 * w.v);
    keep_mixed(ops, "chunks", (w.kimi ? 2 : 1) * cut->shape->delta->chunk * w.heads);
    keep_mixed(ops, "decay and beta", (w.heads + (w.kimi ? w.q : w.heads)) * 4 / cut->value);
    mixer_projection(ops, gated_norm(ops, w.v, small));
}

const struct part_kind part_delta = {PART_ATTENTION, stands, delta};
