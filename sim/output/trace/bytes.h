/* bytes: text and numbers put together in memory and written many at once. */
#ifndef DTSIM_BYTES_H
#define DTSIM_BYTES_H

#include <string.h>

#include "base/base.h"
#include "base/decimal.h"

enum { BYTES_SIZE = 1 << 16, BYTES_MOST = 1 << 12 };

/* Set `out` and leave the rest 0. After the last: bytes_flush. Errors stay in `out`. */
struct bytes { FILE *out; size_t length; char data[BYTES_SIZE]; };

static inline void bytes_flush(struct bytes *bytes)
{
    fwrite(bytes->data, 1, bytes->length, bytes->out);
    bytes->length = 0;
}
/* Room for BYTES_MOST bytes. */
static inline void bytes_room(struct bytes *bytes)
{
    if (bytes->length > BYTES_SIZE - BYTES_MOST)
        bytes_flush(bytes);
}
/* At most BYTES_MOST bytes. */
static inline void bytes_put(struct bytes *bytes, const char *text, size_t length)
{
    bytes_room(bytes);
    memcpy(bytes->data + bytes->length, text, length);
    bytes->length += length;
}
#define BYTES_TEXT(bytes, literal) bytes_put(bytes, literal, sizeof literal - 1)
static inline void bytes_integer(struct bytes *bytes, long long value)
{
    bytes_room(bytes);
    bytes->length = (size_t)(decimal_integer(value, bytes->data + bytes->length) - bytes->data);
}

#endif
