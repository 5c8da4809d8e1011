#include "base/digest.h"

#include <stdio.h>
#include <string.h>

/* FIPS 180-4, section 4.2.2: of the cube roots of the first 64 primes. */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
    0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
    0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2,
};

static uint32_t rotated(uint32_t x, int right)
{
    return x >> right | x << (32 - right);
}

/* Section 6.2.2. */
static void block_add(uint32_t state[8], const unsigned char *block)
{
    uint32_t schedule[64], s[8];

    for (int t = 0; t < 16; t++)
        schedule[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
                      (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (int t = 16; t < 64; t++) {
        uint32_t near = schedule[t - 2], far = schedule[t - 15];

        schedule[t] = (rotated(near, 17) ^ rotated(near, 19) ^ near >> 10) + schedule[t - 7] +
                      (rotated(far, 7) ^ rotated(far, 18) ^ far >> 3) + schedule[t - 16];
    }
    memcpy(s, state, sizeof s);
    for (int t = 0; t < 64; t++) {
        uint32_t one = s[7] + (rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25)) +
                       ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[t] + schedule[t];
        uint32_t two = (rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22)) +
                       ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

void digest_init(struct digest *digest)
{
    *digest = (struct digest){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                                        0x1f83d9ab, 0x5be0cd19}};
}

void digest_add(struct digest *digest, const void *data, size_t size)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < size; i++) {
        digest->block[digest->length++ % 64] = bytes[i];
        if (digest->length % 64 == 0)
            block_add(digest->state, digest->block);
    }
}

char *digest_end(struct digest *digest, char hex[DIGEST_HEX])
{
    uint64_t bits = digest->length * 8;

    digest_add(digest, "\x80", 1);
    while (digest->length % 64 != 56)
        digest_add(digest, "", 1);
    for (int shift = 56; shift >= 0; shift -= 8) {
        unsigned char byte = (unsigned char)(bits >> shift);

        digest_add(digest, &byte, 1);
    }
    for (int i = 0; i < 8; i++)
        sprintf(hex + 8 * i, "%08x", digest->state[i]);
    return hex;
}
