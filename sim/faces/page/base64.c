/* Base64 (RFC 4648, section 4), as it is written. */
#include "page/page_internal.h"

#include <stdlib.h>

#include "base/base.h"

enum { GROUPS = 4096 };              /* of 3 bytes, encoded at once */
struct base64 { FILE *out; unsigned char rest[3 * GROUPS]; size_t count; };

/* Writes the bytes in `rest`; the last group may be short. */
static int encode(struct base64 *base64)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[4 * GROUPS], *to = text;
    size_t length;

    for (size_t i = 0; i < base64->count; i += 3) {
        size_t left = base64->count - i;
        uint32_t bits = (uint32_t)base64->rest[i] << 16 | (left > 1 ? (uint32_t)base64->rest[i + 1] << 8 : 0) |
                        (left > 2 ? base64->rest[i + 2] : 0);

        *to++ = digits[bits >> 18];
        *to++ = digits[bits >> 12 & 63];
        *to++ = left > 1 ? digits[bits >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[bits & 63] : '=';
    }
    base64->count = 0;
    length = (size_t)(to - text);
    return fwrite(text, 1, length, base64->out) == length ? 0 : -1;
}

static ssize_t write_some(void *context, const char *bytes, size_t count)
{
    struct base64 *base64 = context;

    for (size_t i = 0; i < count; i++) {
        base64->rest[base64->count++] = (unsigned char)bytes[i];
        if (base64->count == sizeof base64->rest && encode(base64))
            return 0;
    }
    return (ssize_t)count;
}

static int end_file(void *context)
{
    struct base64 *base64 = context;
    int rc = encode(base64);

    free(base64);
    return rc;
}

FILE *base64_open(FILE *out)
{
    struct base64 *base64 = xcalloc(1, sizeof *base64);
    FILE *file = fopencookie(base64, "w", (cookie_io_functions_t){.write = write_some, .close = end_file});

    if (!file)
        memory_ran_out();
    base64->out = out;
    return file;
}
