/* kernel_time: a model of the time that kernels take on a GPU, with a few parameters that are fitted to
 * measurements. */
#ifndef DTSIM_KERNEL_TIME_H
#define DTSIM_KERNEL_TIME_H

#include "kernels/cost.h"

/* Matrix products. A product is cut into tiles; each of the GPU's multiprocessors (SMs) computes one tile after
 * another. A tile of a x b over depth k takes
 *     fill + 2 a b k / (rate / SMs * (1 + intensity / I) / (1 + intensity / i)),    i = a b / (a + b).
 * i is the tile's arithmetic intensity (FLOPs per value loaded on chip), I the intensity of the largest tile (256 x
 * 128). Only this tile reaches the rate; smaller tiles are bound by their loads. k is rounded up to steps of 64
 * bytes of a row, the depth that a tile holds on chip at a time (CUTLASS's threadblock shapes are 32 deep for half
 * precision, 16 for single precision).
 *
 * Tiles run in waves of one tile per SM. w waves take ceil(w) tile times if `quantization` is 1, and w if it is 0
 * (the power and the bandwidth of idle SMs serve the others), but at least one. If there are few tiles, k is split
 * over several of them; their partial sums go through the cache, and a second kernel (with another overhead) adds
 * them up. The model takes the fastest combination of tile and split, as the library chooses among its own.
 *
 * Traffic takes bytes / bandwidth and overlaps with the tiles: total = overhead + (tiles^p + traffic^p)^(1/p), p =
 * overlap. Operands are loaded before the products that need them. A result can be written only when its tile is
 * done, and a large tile leaves its SM no room for another one: `drain` is the share of the results' traffic that is
 * added instead of overlapped. It makes attention scores, 2 m n bytes for 2 m n k FLOPs, slow if heads are small.
 *
 * `layout` multiplies the time of the tiles, by the layout of the operands. `unaligned` multiplies it if rows of the
 * operands or of the result are not multiples of 16 bytes, the widest load: narrower loads need more instructions,
 * and the kernels for them are older (cuBLAS calls them align1 to align4). `odd` replaces `unaligned` if rows are
 * odd numbers of half-precision values: no copy that bypasses the registers is so narrow, so cuBLAS takes kernels
 * made for Turing, even on Hopper.
 *
 * `speed` is the speed of tiles in a job / their speed in the samples, if the two are known to differ. Samples of a
 * fraction of a second run at the chip's boost clock. A training iteration runs at the chip's power limit: the
 * busier the tiles of a product are, the more power they draw and the lower the clock. Or samples accumulate in
 * another format than frameworks do, or come from a board with another power limit. Memory has its own clock, so the
 * bandwidth of traffic does not change.
 *
 * The power limit bounds the rate, so it slows down only the products that come near it: small ones, whose SMs wait for
 * loads and for the last wave, draw less. Where that is known, `sustained` is the bound: tiles take at least FLOPs /
 * `sustained` in a job, and `speed` is 1.
 *
 * Samples are a few runs of one kernel, one after another (struct repeated_runs). Of runs of microseconds all are done
 * before the power controller acts; of runs of tens of milliseconds most are not. A sample that takes t at the burst's
 * clock takes
 *     t (1 + (1 / lasting - 1) t / (t + 3 ms)).
 * And a run may find in the second-level cache what the run before has left there, its activations and its results
 * (weights are rotated by those who measure; a layer's experts are not). Where all runs touch D bytes in turn, the share
 *     2 - D / cache, between 0 and 1,
 * of them is found and goes at `cache_speed` times the bandwidth. D is what a run reads and writes; where it quantises A
 * first, the product finds as much of A as is left after the bytes of that kernel. Jobs have neither: they compute all
 * the time, `speed` is theirs, and other kernels run between.
 *
 * Tile and wave quantization, alignment: NVIDIA, Matrix Multiplication Background User's Guide (2020). */
struct repeated_runs {                   /* of samples; all 0 in jobs */
    double lasting;                      /* 0 .. 1: the share of their speed that long ones keep; 0: all */
    double cache;                        /* B that are found again; 0: none */
    double cache_speed;                  /* bandwidth of what is found / bandwidth */
};
struct matmul_fit {
    double rate;                         /* FLOP/s of all SMs on deep products of the largest tiles */
    double intensity;                    /* FLOPs per value */
    double fill;                         /* s per tile, to fill its pipeline and write its results */
    double quantization;                 /* 0 .. 1 */
    double bandwidth;                    /* B/s of operands and results */
    double overlap;                      /* p >= 1 */
    double drain;                        /* 0 .. 1, share of the results' traffic that is not overlapped */
    double overhead;                     /* s per kernel */
    double layout[LAYOUT_COUNT];         /* factors on the tiles' time */
    double unaligned;                    /* factor on the tiles' time */
    double odd;                          /* factor on the tiles' time; 0: as unaligned */
    double quantize;                     /* B/s of the kernels around a product, which quantise A or bring rows to
                                          * experts and back; 0: not known */
    double speed;                        /* factor on the tiles' speed; 1: jobs are as fast as the samples */
    double sustained;                    /* FLOP/s that a job's tiles do not exceed; 0: no such bound, as in samples */
    struct repeated_runs repeated;
};
/* Kernels that are timed as one. QUANTIZED: the kernels that quantise A, and the product. GROUPED: each of `batch`
 * experts multiplies its rows by its own weights, in one kernel. EXPERTS: a layer of gated experts, forward. The names
 * are the samples'. */
#define PRODUCT_FORMS(X) \
    X(FORM_MATMUL, "matmul") \
    X(FORM_QUANTIZED, "matmul-quantized") X(FORM_GROUPED, "matmul-grouped") X(FORM_EXPERTS, "moe")
enum product_form { PRODUCT_FORMS(ENUM_VALUE) };
extern const char *const product_form_names[]; /* NULL-terminated */
struct product {
    double batch, m, n, k;
    enum matmul_layout layout;
    double value; /* bytes of an element */
    enum product_form form;
    struct skew skew; /* grouped: of the rows among the experts */
};
/* Whether `batch` is a number of experts that share the rows. */
bool product_is_grouped(enum product_form form);
/* Whether the rows of all three matrices, in memory order, are multiples of 16 bytes. */
bool product_aligned(const struct product *product);
/* Whether rows of any of the matrices are an odd number of half-precision values. */
bool product_odd(const struct product *product);
/* Grouped: in layouts nn and nt m is the number of rows of all experts together, in tn (the gradients of the weights,
 * which sum over rows) it is k. All experts have equally many rows, or shares of them under a skew; where there are
 * fewer rows than experts, each row goes to another expert. The tiles are as in single products, and their number is
 * the sum over experts: an expert of few rows leaves a part of its tiles empty. k is not split. Only experts with rows
 * load their weights.
 * Experts: grouped products of m rows of k values by 2 n columns and of m rows of n values by k columns; and routing,
 * the rows copied into the order of the experts, the activation function, the results weighted and summed, each bound
 * by memory, at `quantize` or, if that is not known, at `bandwidth`. */
double matmul_seconds(const struct matmul_fit *fit, int sms, const struct product *product);

/* Fused attention (Dao 2023, FlashAttention-2, section 3): each SM computes blocks of 128 queries (backward: of keys)
 * of one head. A score costs p = 4 k FLOPs (backward: 10 k; k rounded up to 32) on the tensor cores and `score` seconds
 * of one SM outside them (exponentials, rescaling), together (p^o + score^o)^(1/o), o = overlap: FlashAttention-2 does
 * one after the other, newer kernels overlap them (Shah et al. 2024, FlashAttention-3, section 3). A block takes `fill`
 * in addition, to load its queries and to write its results. `speed` is as above. Traffic takes bytes / bandwidth in
 * addition: a block begins and ends with traffic, and the backward has kernels before and after that do nothing else.
 * Causal attention visits the blocks up to the diagonal, (n + 128) / 2 of n keys on average.
 *
 * Blocks differ in length under a causal mask, and SMs take the next block when they are done with one. Such a list
 * schedule takes at most the mean of the SMs' work plus the longest block (Graham 1969, Bounds on Multiprocessing
 * Timing Anomalies, theorem 1). `tail` is the share of the longest block that is added; less than 1 if kernels begin
 * with the longest blocks, or divide the keys of a head over several SMs if they have few heads. Without `tail` all
 * blocks are of the mean length, in waves as above. */
#define ATTENTION_DIRECTIONS(X) \
    X(ATTENTION_FORWARD, "attention-forward") X(ATTENTION_BACKWARD, "attention-backward") \
    X(ATTENTION_FORWARD_CAUSAL, "attention-forward-causal") \
    X(ATTENTION_BACKWARD_CAUSAL, "attention-backward-causal")
enum attention_direction { ATTENTION_DIRECTIONS(ENUM_VALUE) };
extern const char *const attention_direction_names[];
enum attention_direction attention_direction(bool backward, bool causal);
bool attention_is_backward(enum attention_direction direction);
/* The share of the scores that a kernel computes, by its number of keys. With a `window` a query sees at most that
 * number of keys, its own included (0: all); a block of queries computes with all keys that one of them sees. */
double attention_share(double keys, bool causal, double window);
struct attention_fit {
    double rate;                         /* FLOP/s of all SMs */
    double score;                        /* s of one SM per score */
    double overlap;                      /* o >= 1 */
    double fill;                         /* s per block */
    double tail;                         /* >= 0; 0: waves */
    double quantization;                 /* without tail */
    double bandwidth;                    /* B/s */
    double overhead;                     /* s per kernel */
    double speed;                        /* factor, as for products */
    struct repeated_runs repeated;       /* only `lasting` */
};
/* `batch` = samples x heads, m queries and n keys each, heads of k values of `value` bytes; `bytes`: what the kernel
 * reads and writes, 0: attention_bytes. If keys and values differ in width, k is their mean (backward: 3 parts keys, 2
 * parts values), which has the same FLOPs. `window`: as in attention_share. */
struct heads { double batch, m, n, k, value, bytes, window; };
double attention_seconds(const struct attention_fit *fit, int sms, enum attention_direction direction,
                         const struct heads *heads);
/* Bytes that a kernel reads and writes if each head has its own keys and values: forward Q, K, V and O; backward these
 * and their gradients, and the sums of dQ in fp32 twice (Dao 2023, section 3.2: blocks of keys add to them); in both
 * directions one fp32 sum per query. */
double attention_bytes(enum attention_direction direction, const struct heads *heads);

/* Kernels bound by memory: overhead + bytes / bandwidth. */
struct memory_fit {
    double overhead;                     /* s per kernel */
    double bandwidth;                    /* B/s that such kernels achieve */
};
double memory_seconds(const struct memory_fit *fit, double bytes);

#endif
