/* skew: how unevenly tokens choose experts.
 *
 * The i-th busiest expert's share of the rows is proportional to i^-exponent (Zipf's law). Which experts share a GPU is
 * drawn at random.
 *
 * Layers that were measured follow another law, whose exponents are others: an expert's rows are drawn from the density
 * x^-exponent between 1 and `measured_range`. So NVIDIA's aiconfigurator (ai-dynamo/aiconfigurator, Apache-2.0,
 * collector/helper.py, sample_power_law and power_law_logits_v3) draws the routing of the layers of experts that it
 * measures, with exponents of 1.01 and 1.2 and a range of 0.8 of the tokens; it times the GPU that got the most
 * rows. Of its layers (512 tokens and more, at most 8 GPUs; no record but A100's was fitted to them) the times are
 * 10 to 18 % off in bf16, 16 in fp8, 8 to 10 in fp8-block and 16 to 20 in nvfp4, where even experts would be 22 to 36 %
 * off. Samples alone have that range (calibrate/samples.h); no scenario does. */
#ifndef DTSIM_SKEW_H
#define DTSIM_SKEW_H

struct skew {
    double exponent;             /* 0: all experts get the same */
    double gpus;                 /* that divide the experts: one has the 1st, the (1 + gpus)-th, ... busiest; 0: as 1 */
    double measured_range;       /* more than 1: of the density of a measured layer; 0: shares are i^-exponent */
};

/* The share of the i-th of n experts of one GPU, i from 0 on; their sum is 1. Of ranks the busiest is the first one; of a
 * density they are its quantiles at (i + 1/2) / n, and the busiest is the last. */
struct skew_shares { struct skew skew; double n, sum; };
struct skew_shares skew_shares(const struct skew *skew, double n);
double skew_share(const struct skew_shares *shares, double i);

/* The rows of the GPU that gets the most over those that it would get evenly, where `gpus` have n experts each and the
 * i-th busiest of all gets i^-exponent, in the mean over 32 deals of the experts, which are the same in every run.
 * Without skew 1. */
double skew_busiest(double exponent, int gpus, int n);

#endif
