#include "kernels/kernel_time.h"

#include <math.h>

const char *const product_form_names[] = ENUM_NAMES(PRODUCT_FORMS);
const char *const attention_direction_names[] = ENUM_NAMES(ATTENTION_DIRECTIONS);

/* The number of waves of one tile per SM. With quantization 1 a partial wave counts as a whole one; with 0 it counts as
 * its part, because its SMs then gain from idle ones. The result is at least 1. */
static double waves(double tiles, int sms, double quantization)
{
    double w = tiles / sms;

    return w <= 1 ? 1 : w + quantization * (ceil(w) - w);
}

/* Bandwidth of the second-level cache / bandwidth of device memory. V100: 2155 GB/s (Jia et al. 2018, Dissecting the
 * NVIDIA Volta GPU Architecture via Microbenchmarking, section 3.4) / 900 GB/s. A100: at most 5120 bytes per clock, 7.2
 * TB/s (NVIDIA A100 Tensor Core GPU Architecture, 2020) / 1.6 to 2 TB/s. */
static const double cache_speed = 3;

/* The sides of a tile, and over how many tiles k is split. */
struct tile {
    double a, b, split;
};

static double tile_seconds(const struct matmul_fit *fit, int sms, const struct product *product, struct tile tile)
{
    static const double best = 256. * 128 / (256 + 128);
    double intensity = tile.a * tile.b / (tile.a + tile.b);
    double rate = fit->rate / sms * (1 + fit->intensity / best) / (1 + fit->intensity / intensity);
    double step = 64 / product->value, depth = step * ceil(product->k / tile.split / step);

    return (fit->fill + 2 * tile.a * tile.b * depth / rate) / fit->speed;
}

static double tiles_seconds(const struct matmul_fit *fit, int sms, const struct product *product, struct tile tile)
{
    double split = tile.split;
    double tiles = product->batch * ceil(product->m / tile.a) * ceil(product->n / tile.b) * split;
    /* the partial sums are written in fp32, and a second kernel reads them */
    double bytes = 8 * product->batch * product->m * product->n * split;
    double sums = split > 1 ? fit->overhead + bytes / (cache_speed * fit->bandwidth) : 0;

    return waves(tiles, sms, fit->quantization) * tile_seconds(fit, sms, product, tile) + sums;
}

/* Tiles of experts whose rows differ, `product` being one of them with the mean rows. They follow each other as tiles
 * of one depth do, but none ends before the deepest. */
static double uneven_seconds(const struct matmul_fit *fit, int sms, const struct product *product, struct tile tile)
{
    struct skew_shares shares = skew_shares(&product->skew, product->batch);
    bool deep = product->layout == LAYOUT_TN;
    double tiles = 0, seconds = 0, longest = 0;

    for (double i = 0; i < product->batch; i++) {
        struct product each = *product;
        double *rows = deep ? &each.k : &each.m, count, one;

        *rows *= skew_share(&shares, i) * product->batch;
        count = ceil(each.m / tile.a) * ceil(each.n / tile.b);
        one = tile_seconds(fit, sms, &each, tile);
        tiles += count;
        seconds += count * one;
        longest = fmax(longest, one);
    }
    return fmax(longest, waves(tiles, sms, fit->quantization) * seconds / tiles);
}

bool product_is_grouped(enum product_form form)
{
    return form == FORM_GROUPED || form == FORM_EXPERTS;
}

/* Whether the rows of all three matrices are multiples of that many bytes. */
static bool rows_of(const struct product *product, double bytes)
{
    double contiguous = product->layout == LAYOUT_TN ? product->m : product->k;

    return fmod(round(contiguous) * product->value, bytes) == 0 && fmod(round(product->n) * product->value, bytes) == 0;
}

bool product_aligned(const struct product *product)
{
    return rows_of(product, 16);
}

bool product_odd(const struct product *product)
{
    return product->value == 2 && !rows_of(product, 4);
}

static double alignment(const struct matmul_fit *fit, const struct product *product)
{
    if (product_aligned(product))
        return 1;
    return product_odd(product) && fit->odd > 0 ? fit->odd : fit->unaligned;
}

/* (a^p + b^p)^(1/p), computed from the ratio of a and b because powers of microseconds underflow. */
static double overlapped(double a, double b, double p)
{
    double more = fmax(a, b), less = fmin(a, b);

    if (p == 1)
        return a + b;
    return more > 0 ? more * pow(1 + pow(less / more, p), 1 / p) : 0;
}

/* The result of a product in fp8 is bf16. */
static double result_bytes(const struct product *product)
{
    return fmax(product->value, 2);
}

static double product_flop(const struct product *product)
{
    return 2 * product->batch * product->m * product->n * product->k;
}

/* The fastest tiles, k split over up to `most` of them. */
static double fastest(const struct matmul_fit *fit, int sms, const struct product *product, double most)
{
    static const double sides[][2] = {{256, 128}, {128, 256}, {128, 128}, {256, 64}, {64, 256}, {128, 64}, {64, 128},
                                      {64, 64}, {32, 256}, {256, 32}, {32, 128}, {128, 32}, {32, 64}, {64, 32}};
    double best = INFINITY;

    for (size_t i = 0; i < COUNT(sides); i++)
        for (double split = 1; split <= most && (split == 1 || product->k >= 128 * split); split *= 2)
            best = fmin(best, (product->skew.exponent > 0 ? uneven_seconds : tiles_seconds)(
                                  fit, sms, product, (struct tile){sides[i][0], sides[i][1], split}));
    best *= fit->layout[product->layout] * alignment(fit, product);
    return fit->sustained > 0 ? fmax(best, product_flop(product) / fit->sustained) : best;
}

/* The time of memory traffic as a share of its time without a cache, where repeated runs touch that many bytes in
 * turn. */
static double cached_share(const struct repeated_runs *repeated, double bytes)
{
    double found = repeated->cache > 0 ? fmin(1, fmax(0, 2 - bytes / repeated->cache)) : 0;

    return 1 - found * (1 - 1 / fmax(1, repeated->cache_speed));
}

/* Such shares, of the traffic of A, of the weights and of the results. */
struct shares {
    double a, weights, results;
};

/* The time with the products' tiles and with k split over up to `most` of them. */
static double seconds_of(const struct matmul_fit *fit, int sms, const struct product *product, double most,
                         struct shares shares)
{
    double m = product->m, n = product->n, k = product->k;
    double results = shares.results * product->batch * result_bytes(product) * m * n / fit->bandwidth;
    double operands = product->batch * product->value * (shares.a * m * k + shares.weights * k * n) / fit->bandwidth;
    double traffic = operands + (1 - fit->drain) * results;

    return fit->overhead + fit->drain * results + overlapped(fastest(fit, sms, product, most), traffic, fit->overlap);
}

/* What a run of a product reads and writes, without quantising. */
static double run_bytes(const struct product *product)
{
    return product->batch * (product->value * (product->m * product->k + product->k * product->n) +
                             result_bytes(product) * product->m * product->n);
}

static double single_seconds(const struct matmul_fit *fit, int sms, const struct product *product)
{
    double found = cached_share(&fit->repeated, run_bytes(product));

    return seconds_of(fit, sms, product, 64, (struct shares){found, 1, found});
}

/* A kernel reads A in bf16 and writes it once, then comes the product. */
static double quantized_seconds(const struct matmul_fit *fit, int sms, const struct product *product)
{
    double values = product->batch * product->m * product->k, wide = 2;
    double read = cached_share(&fit->repeated, run_bytes(product) + wide * values);
    double a = cached_share(&fit->repeated, (wide + product->value) * values);
    double bytes = values * (wide * read + product->value * a);

    return (fit->quantize > 0 ? fit->overhead + bytes / fit->quantize : 0) +
           seconds_of(fit, sms, product, 64, (struct shares){a, 1, read});
}

/* As products of `batch` experts that have rows, m (tn: k) rows each. */
static struct product each_expert(const struct product *product)
{
    struct product each = *product;
    double *rows = product->layout == LAYOUT_TN ? &each.k : &each.m;

    each.batch = fmin(product->batch, *rows);
    *rows /= each.batch;
    return each;
}

static double grouped_seconds(const struct matmul_fit *fit, int sms, const struct product *product, double share)
{
    struct product each = each_expert(product);

    return seconds_of(fit, sms, &each, 1, (struct shares){share, share, share});
}

static double experts_seconds(const struct matmul_fit *fit, int sms, const struct product *layer)
{
    const double kernels = 4; /* routing, permutation, activation function, sum */
    double around = fit->quantize > 0 ? fit->quantize : fit->bandwidth;
    struct product up = *layer, down = *layer;
    double wide = 2, value = layer->value,
           bytes = layer->k * (wide + value) + layer->n * (2 * wide + value) + 2 * wide * layer->k;
    double weights = 3 * fmin(layer->batch, layer->m) * value * layer->n * layer->k;
    double found = cached_share(&fit->repeated, weights + layer->m * bytes);

    up.n = 2 * layer->n;
    down.n = layer->k;
    down.k = layer->n;
    return grouped_seconds(fit, sms, &up, found) + grouped_seconds(fit, sms, &down, found) + kernels * fit->overhead +
           found * layer->m * bytes / around;
}

/* The time of a sample that takes so long at the clock of a burst. */
static double throttled(const struct repeated_runs *repeated, double seconds)
{
    static const double control = 3e-3;

    return repeated->lasting > 0 ? seconds * (1 + (1 / repeated->lasting - 1) * seconds / (seconds + control)) :
                                   seconds;
}

double matmul_seconds(const struct matmul_fit *fit, int sms, const struct product *product)
{
    switch (product->form) {
    case FORM_GROUPED:
        return grouped_seconds(fit, sms, product, 1);
    case FORM_EXPERTS:
        return experts_seconds(fit, sms, product);
    case FORM_QUANTIZED:
        return throttled(&fit->repeated, quantized_seconds(fit, sms, product));
    default:
        return throttled(&fit->repeated, single_seconds(fit, sms, product));
    }
}

static bool is_causal(enum attention_direction direction)
{
    return direction == ATTENTION_FORWARD_CAUSAL || direction == ATTENTION_BACKWARD_CAUSAL;
}

bool attention_is_backward(enum attention_direction direction)
{
    return direction == ATTENTION_BACKWARD || direction == ATTENTION_BACKWARD_CAUSAL;
}

enum attention_direction attention_direction(bool backward, bool causal)
{
    if (causal)
        return backward ? ATTENTION_BACKWARD_CAUSAL : ATTENTION_FORWARD_CAUSAL;
    return backward ? ATTENTION_BACKWARD : ATTENTION_FORWARD;
}

enum { ATTENTION_BLOCK = 128 };

/* The keys that a block of queries computes with at most: a window's edge lies anywhere in a block of keys, in the mean
 * in its middle. On aiconfigurator's causal kernels with a window of 128 and at least 4,096 keys this is 8 to 16 % off,
 * mostly too fast (B200, GB200, H100, H200; their profiles' flash-3). */
static double attention_reach(double keys, double window)
{
    return window > 0 ? fmin(keys, window + 1.5 * ATTENTION_BLOCK) : keys;
}

/* Of n blocks the i-th computes with i blocks of keys, or with the c that its window reaches; without a mask each does. */
double attention_share(double keys, bool causal, double window)
{
    double n = keys / ATTENTION_BLOCK, c = attention_reach(keys, window) / ATTENTION_BLOCK;

    return causal ? fmin(1, (c * n - c * (c - 1) / 2) / (n * n)) : c / n;
}

double attention_bytes(enum attention_direction direction, const struct heads *heads)
{
    bool backward = attention_is_backward(direction);
    double sides = backward ? 4 : 2, sums = backward ? 8 * heads->m * heads->k : 0;

    return heads->batch * (sides * (heads->m + heads->n) * heads->k * heads->value + sums + 4 * heads->m);
}

/* FlashAttention, versions 2 and 3, is built for heads of 32, 64, 96, ... values and pads others (csrc/flash_attn:
 * run_mha_fwd_hdim96). It takes multiples of 8 only, so another number is the mean of two sizes. */
static double padded_head(double k)
{
    return fmod(k, 8) == 0 ? 32 * ceil(k / 32) : k;
}

double attention_seconds(const struct attention_fit *fit, int sms, enum attention_direction direction,
                         const struct heads *heads)
{
    bool backward = attention_is_backward(direction);
    double along = backward ? heads->m : heads->n, across = backward ? heads->n : heads->m;
    double blocks = heads->batch * ceil(across / ATTENTION_BLOCK);
    double products = (backward ? 10 : 4) * padded_head(heads->k) / (fit->rate / sms);
    double score = ATTENTION_BLOCK * overlapped(products, fit->score, fit->overlap);
    double mean = fit->fill + along * attention_share(heads->n, is_causal(direction), heads->window) * score;
    double longest = fit->fill + attention_reach(along, heads->window) * score;
    double compute = fit->tail > 0 ? blocks / sms * mean + fit->tail * longest :
                                     waves(blocks, sms, fit->quantization) * mean;
    double bytes = heads->bytes > 0 ? heads->bytes : attention_bytes(direction, heads);

    return throttled(&fit->repeated, fit->overhead + compute / fit->speed + bytes / fit->bandwidth);
}

double memory_seconds(const struct memory_fit *fit, double bytes)
{
    return fit->overhead + bytes / fit->bandwidth;
}
