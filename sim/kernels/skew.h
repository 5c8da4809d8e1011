/* skew: how unevenly tokens choose experts.
 *
 * The experts' shares of the rows follow a power law: they are as x / sum of all x, where x has the density
 * x^-exponent between 1 and `range`. So NVIDIA's aiconfigurator (ai-dynamo/aiconfigurator, Apache-2.0,
 * collector/helper.py, sample_power_law and power_law_logits_v3) draws the routing of the layers of experts that it
 * measures, with exponents of 1.01 and 1.2 and a range of 0.8 of the tokens; it times the GPU that got the most
 * rows. Of its layers (512 tokens and more, at most 8 GPUs; no record but A100's was fitted to them) the times are
 * 10 to 18 % off in bf16, 16 in fp8, 8 to 10 in fp8-block and 16 to 20 in nvfp4, where even experts would be 22 to 36 %
 * off. */
#ifndef DTSIM_SKEW_H
#define DTSIM_SKEW_H

struct skew {
    double exponent;     /* 0: all experts get the same */
    double range;        /* more than 1 */
};

/* The share of the i-th of n experts (their sum is 1): the quantiles of the power law at (i + 1/2) / n. */
struct skew_shares { struct skew skew; double n, sum; };
struct skew_shares skew_shares(const struct skew *skew, double n);
double skew_share(const struct skew_shares *shares, double i);

/* The rows of the GPU that gets the most over those that it would get evenly, where `gpus` have n experts each, in the
 * mean over 32 draws, which are the same in every run. Without skew 1. */
double skew_busiest(const struct skew *skew, int gpus, int n);

#endif
