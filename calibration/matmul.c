/* Jobs of one product, or of a batch, through cuBLASLt with the first algorithm of its heuristic, as in frameworks. */
#include <stdlib.h>

#include "base/base.h"
#include "product.h"

static int call(struct job *job, int set)
{
    const struct device *device = job->device;

    if (job->one->kernel == BENCH_MATMUL_QUANTIZED && product_quantise(job, job->state, set, NARROW_SOURCE))
        return -1;
    return product_call(job, job->state, set, 0, device->stream, device->workspace);
}

static void release(struct job *job)
{
    product_close(job->state);
    free(job->state);
}

int matmul_open(struct job *job)
{
    struct product *product = xcalloc(1, sizeof *product);
    bool narrow = bench_is_narrow(job->one->dtype);

    product->shape = *job->one;
    product->with = narrow ? (struct product_operands){NARROW_A, NARROW_B, NARROW_C, NARROW_ALPHA, 1}
                           : (struct product_operands){PLAIN_A, PLAIN_B, PLAIN_C, -1, 1};
    job->state = product;
    job->call = call;
    job->close = release;
    if (product_open(job, product))
        return -1;
    for (int set = 0; narrow && set < job->sets; set++)
        if (product_alpha(job, product, set))
            return -1;
    return 0;
}
