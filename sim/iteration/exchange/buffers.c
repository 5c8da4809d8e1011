#include "exchange/buffers.h"

#include "base/base.h"
#include "stage/stage.h"

static const double BUFFER = 10485760;

/* Ends a buffer of `bytes`, if it has any, and begins the next one. */
static void buffers_close(struct buffers *buffers, double *bytes, int *tensors)
{
    if (*bytes > 0)
        *GROW(buffers) = *bytes;
    buffers->packed += *tensors > 1 ? *bytes : 0;
    *bytes = 0;
    *tensors = 0;
}

struct buffers buffers_of(const struct stage *stage, double each, bool broadcast)
{
    struct buffers buffers = {0};
    double bytes = 0;
    int tensors = 0;

    for (size_t i = stage->nslices; i-- > 0;)
        for (size_t k = 0; k < stage->slices[i].ntensors; k++) {
            double tensor = stage->slices[i].tensors[k] * each;

            if (!broadcast && bytes + tensor > BUFFER)
                buffers_close(&buffers, &bytes, &tensors);
            bytes += tensor;
            tensors++;
            if (broadcast && bytes + tensor >= BUFFER)
                buffers_close(&buffers, &bytes, &tensors);
        }
    buffers_close(&buffers, &bytes, &tensors);
    return buffers;
}
