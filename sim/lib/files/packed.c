/* Files that are compressed as they are written. This file alone knows zlib. */
#include "files/packed.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/base.h"

enum { WINDOW = 15, GZIP = 16, CHUNK = 1 << 16 };

struct packed { z_stream stream; FILE *out; unsigned char bytes[CHUNK]; };

static int deflate_all(struct packed *packed, int flush)
{
    do {
        packed->stream.next_out = packed->bytes;
        packed->stream.avail_out = CHUNK;
        deflate(&packed->stream, flush);
        if (fwrite(packed->bytes, 1, CHUNK - packed->stream.avail_out, packed->out) < CHUNK - packed->stream.avail_out)
            return -1;
    } while (packed->stream.avail_out == 0);
    return 0;
}

/* All of the bytes: a stream takes fewer for an error. */
static ssize_t write_some(void *context, const char *bytes, size_t count)
{
    struct packed *packed = context;

    for (size_t done = 0, part; done < count; done += part) {
        part = count - done < CHUNK ? count - done : CHUNK;
        packed->stream.next_in = (unsigned char *)(uintptr_t)(bytes + done);
        packed->stream.avail_in = (unsigned)part;
        if (deflate_all(packed, Z_NO_FLUSH))
            return 0;
    }
    return (ssize_t)count;
}

static int end_file(void *context)
{
    struct packed *packed = context;
    int rc;

    packed->stream.avail_in = 0;
    rc = deflate_all(packed, Z_FINISH);
    deflateEnd(&packed->stream);
    free(packed);
    return rc;
}

FILE *packed_open(FILE *out, enum packed_form form, int level)
{
    struct packed *packed = xcalloc(1, sizeof *packed);
    FILE *file = fopencookie(packed, "w", (cookie_io_functions_t){.write = write_some, .close = end_file});
    int window = form == PACKED_GZIP ? WINDOW + GZIP : WINDOW;

    packed->out = out;
    if (!file || deflateInit2(&packed->stream, level, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        memory_ran_out();
    return file;
}
