/* digest: names things by their content: XXH3 with 128 bits (xxHash), which finds what was changed by accident. It
 * does not protect against somebody who looks for two contents with one name. `xxh128sum FILE` prints the digest of
 * a file. */
#ifndef DTSIM_DIGEST_H
#define DTSIM_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>
#include <string.h>

#include "base/base.h"

struct digest { void *state; };  /* of the library; digest_end() releases it */
enum { DIGEST_HEX = 33 };        /* hexadecimal digits and the zero byte behind them */

void digest_init(struct digest *digest);
void digest_add(struct digest *digest, const void *data, size_t size);
/* All bytes of an open file. -1: it cannot be read (errno). */
int digest_add_file(struct digest *digest, int fd);
/* Ends the digest: nothing may be added afterwards. Returns hex. */
char *digest_end(struct digest *digest, char hex[DIGEST_HEX]);

/* The digest of the sources that this program was built from, taken when it was built: hexadecimal digits. */
extern const char sources_digest[];
/* Whether a file that bears the digest of its program's sources, or NULL, is of a program built from other ones. */
static inline bool is_other_build(const char *digest)
{
    return !digest || strcmp(digest, sources_digest) != 0;
}

/* A kind of folder. */
struct digests_kind {
    const char *command, *noun;      /* which command's -o writes it; what it describes */
    const char *const *tables;       /* NAME of each NAME.tsv; ends in NULL */
    int (*check)(const json_t *result, struct loc loc, struct error *err);      /* of result.json, or NULL */
};
/* 16 hexadecimal digits of the digest of the whole content. */
json_t *digests_id(const json_t *result);
/* Refuses a folder whose tables do not match the digests in result.json. Returns 1 where they match but another build
 * of the program wrote them, which may have left out values that this build writes. */
int digests_check(const char *dir, const struct digests_kind *kind, struct error *err);

#endif
