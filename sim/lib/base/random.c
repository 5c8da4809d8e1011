#include "base/random.h"

uint64_t random_bits(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15u;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

double random_share(uint64_t seed, uint64_t index)
{
    return (double)(random_bits(seed, index) >> 11) * 0x1p-53;
}

uint64_t random_permuted(uint64_t seed, uint64_t index, uint64_t count)
{
    unsigned half = 1;

    while (half < 32 && 1ull << (2 * half) < count)
        half++;
    do {
        uint64_t mask = (1ull << half) - 1, left = index >> half, right = index & mask;

        for (uint64_t round = 0; round < 4; round++) {
            uint64_t next = left ^ (random_bits(random_bits(seed, round), right) & mask);

            left = right;
            right = next;
        }
        index = left << half | right;
    } while (index >= count);
    return index;
}
