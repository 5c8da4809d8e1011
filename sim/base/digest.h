/* digest: SHA-256 (FIPS 180-4), which names things by their content. */
#ifndef DTSIM_DIGEST_H
#define DTSIM_DIGEST_H

#include <stddef.h>
#include <stdint.h>

struct digest {
    uint32_t state[8];
    uint64_t length;             /* bytes so far */
    unsigned char block[64];     /* the last ones, of which a block is not yet full */
};
enum { DIGEST_HEX = 65 };        /* hexadecimal digits and the zero byte behind them */

void digest_init(struct digest *digest);
void digest_add(struct digest *digest, const void *data, size_t size);
/* Ends it: nothing may be added afterwards. Returns hex. */
char *digest_end(struct digest *digest, char hex[DIGEST_HEX]);

/* Of the sources that this program was built from, taken when it was built. */
extern const char sources_digest[DIGEST_HEX];

#endif
