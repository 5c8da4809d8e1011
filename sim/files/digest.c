#include "files/digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/base.h"

void digest_init(struct digest *digest)
{
    digest->state = XXH3_createState();
    if (!digest->state)
        memory_ran_out();
    XXH3_128bits_reset(digest->state);
}

void digest_add(struct digest *digest, const void *data, size_t size)
{
    XXH3_128bits_update(digest->state, data, size);
}

int digest_add_file(struct digest *digest, int fd)
{
    static const size_t step = 1 << 16;
    char *bytes = xrealloc(NULL, step, 1);
    ssize_t count;

    for (off_t at = 0; (count = pread(fd, bytes, step, at)) > 0; at += count)
        digest_add(digest, bytes, (size_t)count);
    free(bytes);
    return count < 0 ? -1 : 0;
}

char *digest_end(struct digest *digest, char hex[DIGEST_HEX])
{
    XXH128_hash_t sum = XXH3_128bits_digest(digest->state);

    XXH3_freeState(digest->state);
    digest->state = NULL;
    snprintf(hex, DIGEST_HEX, "%016llx%016llx", (unsigned long long)sum.high64, (unsigned long long)sum.low64);
    return hex;
}
