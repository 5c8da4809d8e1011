#include "stage/compression.h"

#include <math.h>

#include "collective/collective.h"
#include "hardware/precision.h"
#include "kernels/costs.h"
#include "scenario/scenario.h"

/* A matrix of n x m values is sent as factors of r (n + m) values if these are fewer than half of its values (PyTorch's
 * powerSGD_hook.py, min_compression_rate 2). Other tensors are sent uncompressed. */
void bucket_sizes_add(struct bucket_sizes *sizes, const struct scenario *scenario, double values, double rows)
{
    const struct compression_spec *spec = &scenario->parallelism.compression;
    double columns = rows > 0 ? values / rows : 0, factors = spec->rank * (rows + columns);

    sizes->values += values;
    if (spec->method != COMPRESSION_POWERSGD || rows == 0 || 2 * factors >= values)
        return;
    sizes->matrices += values;
    sizes->left += spec->rank * rows;
    sizes->right += spec->rank * columns;
    sizes->count++;
}

/* Seconds of `launches` kernels that read and write `bytes` of device memory, on the slowest kind of GPU. */
static double pass(const struct scenario *scenario, unsigned kinds, double bytes, double launches)
{
    enum dtype dtype = precision_dtype(&scenario->memory.precision);
    struct kernel kernel = {.name = "compression", .kind = KERNEL_MEMORY, .dtype = dtype};
    double seconds = 0;

    if (bytes == 0)
        return 0;
    kernel.launches = (int)fmin(launches, 1e9);
    kernel.bytes = bytes / kernel.launches;
    for (int kind = 0; kinds >> kind; kind++)
        if (kinds >> kind & 1)
            seconds = fmax(seconds, costs_kernel(&scenario->kernels[kind], &kernel).seconds);
    return seconds;
}

/* Vogels et al. 2019, algorithms 1 and 2. P = M Q is summed over the replicas and orthogonalised. Q = M^T P is summed
 * too. P Q^T replaces M. All other tensors are summed uncompressed. Gram-Schmidt takes seven kernels a column in
 * PyTorch (powerSGD_hook.py, _orthogonalize: norm, sum, quotient, product, sum, product, difference). The kernels of
 * column i read and write all later columns. */
static struct compressed powersgd(const struct scenario *scenario, unsigned kinds,
                                const struct bucket_sizes *sizes, double each)
{
    const struct compression_spec *spec = &scenario->parallelism.compression;
    const struct collective *all_reduce = scenario_all_reduce(scenario);
    double product = sizes->matrices + sizes->left + sizes->right, columns = sizes->count * (double)spec->rank;
    double feedback = spec->error_feedback ? 3 * sizes->matrices : 0;    /* M + E: two reads, one write */

    return (struct compressed){
        .legs = {
            {pass(scenario, kinds, each * (feedback + product), sizes->count * (feedback > 0 ? 2 : 1)), all_reduce,
             each * sizes->left, each * (sizes->values - sizes->matrices)},
            {pass(scenario, kinds, each * (3.0 + 1.5 * (spec->rank - 1)) * sizes->left, 7 * columns) +
                 pass(scenario, kinds, each * product, sizes->count), all_reduce, each * sizes->right, 0},
        },
        /* P Q^T, and E = M - P Q^T */
        .seconds = pass(scenario, kinds, each * (product + feedback), sizes->count * (feedback > 0 ? 2 : 1)),
    };
}

/* Each replica sends its largest values and their indices (Lin et al. 2018, Deep Gradient Compression, without its
 * momentum correction). Replicas choose different indices, so an all-gather replaces the sum. The selection counts as
 * four passes over the values, a radix select by bytes of fp32. The sum reads and writes a 32-byte sector for each
 * value. */
static struct compressed top_k(const struct scenario *scenario, unsigned kinds,
                                const struct bucket_sizes *sizes, double each, int n)
{
    const struct compression_spec *spec = &scenario->parallelism.compression;
    double kept = ceil(spec->share * sizes->values), bytes = kept * (each + 4);
    double feedback = spec->error_feedback ? 4 * sizes->values : 0;      /* g + E, then E without the values sent */

    return (struct compressed){
        .legs = {{pass(scenario, kinds, each * (feedback + 5 * sizes->values) + bytes, 8),
                  collective_usual(COLLECTIVE_ALL_GATHER, false), n * bytes, 0}},
        .seconds = pass(scenario, kinds, each * sizes->values + n * kept * (each + 4 + 64), n + 1),
    };
}

/* A value takes `bits` bits (QSGD: Alistarh et al. 2017; 1-bit: Seide et al. 2014). A collective cannot sum rounded
 * values. So each replica receives its share from all replicas, sums it, rounds the sum and sends it to all (1-bit
 * Adam: Tang et al. 2021, compressed_allreduce). Each part has a scale of four bytes. */
static struct compressed quantized(const struct scenario *scenario, unsigned kinds,
                                const struct bucket_sizes *sizes, double each,
                                   int n)
{
    const struct compression_spec *spec = &scenario->parallelism.compression;
    double bytes = sizes->values * spec->bits / 8 + 4.0 * n, feedback = spec->error_feedback ? 4 * sizes->values : 0;

    return (struct compressed){
        .legs = {
            {pass(scenario, kinds, each * (feedback + 2 * sizes->values) + bytes, 4),
             collective_usual(COLLECTIVE_ALL_TO_ALL, false), bytes, 0},
            {pass(scenario, kinds, bytes + each * (feedback + 2 * sizes->values) / n + bytes / n, 4),
             collective_usual(COLLECTIVE_ALL_GATHER, false), bytes, 0},
        },
        .seconds = pass(scenario, kinds, bytes + each * sizes->values, 1),
    };
}

struct compressed compress_bucket(const struct scenario *scenario, unsigned kinds, const struct bucket_sizes *sizes,
                                  int n)
{
    double each = scenario_parameter_bytes(scenario).sent;

    switch ((enum compression)scenario->parallelism.compression.method) {
    case COMPRESSION_POWERSGD:
        return powersgd(scenario, kinds, sizes, each);
    case COMPRESSION_TOP_K:
        return top_k(scenario, kinds, sizes, each, n);
    case COMPRESSION_QUANTIZED:
        return quantized(scenario, kinds, sizes, each, n);
    case COMPRESSION_NONE:
        break;
    }
    return (struct compressed){.legs = {{0, scenario->recipe.gradients.collective, sizes->values * each, 0}}};
}

double compression_memory(const struct scenario *scenario, const struct stage *stage, int n)
{
    const struct compression_spec *spec = &scenario->parallelism.compression;
    double each = scenario_parameter_bytes(scenario).sent, kept;
    struct bucket_sizes sizes = {0};

    if (spec->method == COMPRESSION_NONE || n == 1)
        return 0;
    for (size_t i = 0; i < stage->nslices; i++)
        for (size_t k = 0; k < stage->slices[i].ntensors; k++)
            bucket_sizes_add(&sizes, scenario, stage->slices[i].tensors[k],
                             stage->slices[i].rows ? stage->slices[i].rows[k] : 0);
    kept = spec->method == COMPRESSION_POWERSGD    ? sizes.matrices
           : spec->method == COMPRESSION_QUANTIZED ? sizes.values * (1 + 1.0 / n)     /* and the sums' errors */
                                                   : sizes.values;
    return each * ((spec->error_feedback ? kept : 0) + sizes.left + sizes.right);
}
