/* random: numbers that look random and depend on a seed and their index alone, the same on every machine. */
#ifndef DTSIM_RANDOM_H
#define DTSIM_RANDOM_H

#include <stdint.h>

/* 64 bits. splitmix64: Steele, Lea and Flood 2014, "Fast Splittable Pseudorandom Number Generators", section 5. */
uint64_t random_bits(uint64_t seed, uint64_t index);
/* From 0 to below 1, in steps of 2^-53. */
double random_share(uint64_t seed, uint64_t index);
/* A permutation of the numbers below `count` (1 to 2^63): where `index` goes to. A Feistel network over the next power
 * of four, walked on until it gives a number below (Black and Rogaway 2002, "Ciphers with Arbitrary Finite
 * Domains"). */
uint64_t random_permuted(uint64_t seed, uint64_t index, uint64_t count);

#endif
