/* kernel_time: a model of how long kernels run on a GPU, by a few parameters that are fitted to measurements. */
#ifndef DTSIM_KERNEL_TIME_H
#define DTSIM_KERNEL_TIME_H

#include "kernels/cost.h"

/* Matrix products. A product is cut into tiles; each of the GPU's multiprocessors (SMs) computes a tile after the
 * other. A tile of a x b over depth k takes
 *     fill + 2 a b k / (rate / SMs * (1 + intensity / I) / (1 + intensity / i)),    i = a b / (a + b),
 * where i is the tile's arithmetic intensity (FLOPs per value loaded on chip), I that of the largest tile (256 x 128),
 * which alone reaches the rate: smaller ones are bound by their loads. k goes in steps of 64 bytes of a row, the depth
 * that a tile has on chip at a time (CUTLASS's threadblock shapes are 32 deep for halves, 16 for single precision).
 * Tiles come in waves of one an SM; w waves take ceil(w) tile times where `quantization` is 1, and w where it is 0 (an
 * idle SM's power and bandwidth serve the others), but at least one. Where there are few tiles, k is split over several
 * of them; their sums go through the cache, and a second kernel (another overhead) adds them up. The library takes the
 * fastest of its tiles and splits.
 * Traffic takes bytes / bandwidth, and overlaps with the tiles: total = overhead + (tiles^p + traffic^p)^(1/p), p =
 * overlap. Operands are loaded ahead of the products that need them; a result can be written only when its tile is
 * done, and a large tile leaves its SM no room for another one: `drain` is the share of the results' traffic that is
 * added instead of overlapped. It is what makes scores, 2 m n bytes for 2 m n k FLOPs, slow where heads are small.
 * `layout` multiplies the time of the tiles by the operands' layout, `unaligned` where rows of the operands or
 * of the result are no multiples of 16 bytes, the widest load: narrower ones take more instructions, and the kernels
 * for them are older (cuBLAS names them align1 to align4). `odd` stands in its place where rows are odd numbers of
 * halves: no copy past the registers is as narrow, so cuBLAS takes kernels made for Turing, on Hopper as well.
 * `speed` is what a job's tiles do of the samples' speed where the two are known to differ. Samples of a fraction of a
 * second run at the clock to which the chip boosts; a training iteration runs at its power limit, where a product draws
 * the more the busier its tiles are, and at the clock that is left. Or samples accumulate in another format than
 * frameworks do, or are of a board with another limit. Memory has a clock of its own, so traffic keeps its bandwidth.
 * Tile and wave quantization, alignment: NVIDIA, Matrix Multiplication Background User's Guide (2020). */
struct matmul_fit {
    double rate;                         /* FLOP/s of all SMs on deep products of the largest tiles */
    double intensity;                    /* FLOPs per value */
    double fill;                         /* s a tile: filling its pipeline, writing its results */
    double quantization;                 /* 0 .. 1 */
    double bandwidth;                    /* B/s of operands and results */
    double overlap;                      /* p >= 1 */
    double drain;                        /* 0 .. 1: the results' traffic that nothing hides */
    double overhead;                     /* s a kernel */
    double layout[LAYOUT_COUNT];         /* factors */
    double unaligned;                    /* a factor */
    double odd;                          /* a factor; 0: unaligned */
    double speed;                        /* a factor; 1: jobs are as fast as the samples */
};
struct product { double batch, m, n, k; enum matmul_layout layout; double value; };    /* value: bytes of an element */
/* Whether the rows of all three matrices, as the layout has them in memory, are multiples of 16 bytes. */
bool product_aligned(const struct product *product);
/* Whether some row is an odd number of halves. */
bool product_odd(const struct product *product);
double matmul_seconds(const struct matmul_fit *fit, int sms, const struct product *product);

/* Fused attention (Dao 2023, FlashAttention-2, section 3): blocks of 128 queries (backward: of keys) of one head are
 * dealt to the SMs; each score costs 4 k FLOPs (backward: 10 k) on the tensor cores and `score` seconds of one SM
 * outside them (exponentials, rescaling). Waves as above. Traffic takes bytes / bandwidth on top: a block begins and
 * ends with it, and the backward has kernels before and after that do nothing else. Causal attention visits the blocks
 * up to the diagonal, (n + 128) / 2 of n keys; its record is fitted alone. `speed` is of what the SMs do, as above. */
#define ATTENTION_DIRECTIONS(X) \
    X(ATTENTION_FORWARD, "attention-forward") X(ATTENTION_BACKWARD, "attention-backward") \
    X(ATTENTION_FORWARD_CAUSAL, "attention-forward-causal") \
    X(ATTENTION_BACKWARD_CAUSAL, "attention-backward-causal")
enum attention_direction { ATTENTION_DIRECTIONS(ENUM_VALUE) };
extern const char *const attention_direction_names[];
enum attention_direction attention_direction(bool backward, bool causal);
bool attention_is_backward(enum attention_direction direction);
/* The share of the scores that a kernel computes. */
double attention_share(double keys, bool causal);
struct attention_fit {
    double rate;                         /* FLOP/s of all SMs */
    double score;                        /* s of one SM a score */
    double quantization;
    double bandwidth;                    /* B/s */
    double overhead;                     /* s a kernel */
    double speed;                        /* a factor, as of products */
};
struct heads { double batch, m, n, k, value; };
double attention_seconds(const struct attention_fit *fit, int sms, enum attention_direction direction,
                         const struct heads *heads);
/* Bytes that it reads and writes: Q, K, V, O and their gradients once; backward also dQ's sums in fp32, twice (Dao
 * 2023, section 3.2: blocks of keys add to them), and either way a sum for each query. */
double attention_bytes(enum attention_direction direction, const struct heads *heads);

/* Kernels bound by memory: overhead + bytes / bandwidth. */
struct memory_fit {
    double overhead;                     /* s a kernel */
    double bandwidth;                    /* B/s that such kernels achieve */
};
double memory_seconds(const struct memory_fit *fit, double bytes);

#endif
