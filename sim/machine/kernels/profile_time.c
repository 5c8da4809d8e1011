/* The time of a kernel by the record that stands for it. */
#include <math.h>
#include <string.h>

#include "base/cache.h"
#include "config/field.h"
#include "hardware/gpu.h"
#include "kernels/profile.h"

static bool inside(const struct covered_range *range, double value)
{
    return value >= range->from && value <= range->to;
}

static const struct kernel_seconds unknown = {NAN, BASIS_DATA_SHEET};

/* How far a batch's number of products is outside the range of a record, as a factor; 1: it is inside. */
static double batch_distance(const struct matmul_record *record, double batch)
{
    return fmax(1, fmax(record->batch.from / batch, batch / record->batch.to));
}

/* The record of grouped products in a number format. */
static const struct matmul_record *find_grouped(const struct profile *profile, enum dtype dtype)
{
    const struct matmul_record *records = profile->grouped.items;

    for (size_t i = 0; i < profile->grouped.count; i++)
        if (list_has(&records[i].dtypes, (int)dtype))
            return &records[i];
    return NULL;
}

/* The record of products for a number format; of several the one with the nearest range of batches. Single products and
 * the batched products of attention heads may have a record each, because libraries have different kernels for them. */
static const struct matmul_record *find_matmul(const struct profile *profile, enum dtype dtype, double batch)
{
    const struct matmul_record *records = profile->matmul.items, *best = NULL;

    for (size_t i = 0; i < profile->matmul.count; i++)
        if (list_has(&records[i].dtypes, (int)dtype) &&
            (!best || batch_distance(&records[i], batch) < batch_distance(best, batch)))
            best = &records[i];
    return best;
}

/* The multiprocessors of the GPU that the scenario has. */
static int multiprocessors(const struct profile *profile)
{
    return profile->changed ? (int)fmax(1, rint(profile->sms * profile->changed->multiprocessors)) : profile->sms;
}

/* A record's fit, on the GPU that the scenario has. */
static struct matmul_fit matmul_fit_of(const struct profile *profile, const struct matmul_record *record,
                                       enum dtype dtype)
{
    struct matmul_fit fit = record->fit;

    if (profile->changed) {
        fit.rate *= profile->changed->peak[dtype];
        fit.sustained *= profile->changed->peak[dtype];
        fit.bandwidth *= profile->changed->memory_bandwidth;
        fit.quantize *= profile->changed->memory_bandwidth;
    }
    return fit;
}

static double memory_bandwidth_ratio(const struct profile *profile)
{
    return profile->changed ? profile->changed->memory_bandwidth : 1;
}

/* All that the time of a product follows from. Numbers alone, so that it can be compared byte by byte. */
struct product_key {
    struct matmul_fit fit;
    double sms, batch, m, n, k, layout, value, form, exponent, gpus, measured_range;
};

double matmul_remembered(struct cache *cache, const struct matmul_fit *fit, int sms, const struct product *product)
{
    const struct product_key key = {*fit,       sms,             product->batch, product->m,   product->n,
                                    product->k, product->layout, product->value, product->form,
                                    product->skew.exponent, product->skew.gpus, product->skew.measured_range};
    const double *known = cache ? cache_find(cache, CACHE_PRODUCT, &key, sizeof key) : NULL;
    double seconds;

    if (known)
        return *known;
    seconds = matmul_seconds(fit, sms, product);
    if (cache)
        cache_copy(cache, CACHE_PRODUCT, &key, sizeof key, &seconds, sizeof seconds);
    return seconds;
}

static bool covers(const struct matmul_record *record, const struct product *product)
{
    return inside(&record->batch, product->batch) && inside(&record->m, product->m) && inside(&record->n, product->n) &&
           inside(&record->k, product->k);
}

struct kernel_seconds profile_product(const struct profile *profile, enum dtype dtype, const struct product *product)
{
    bool grouped = product_is_grouped(product->form), foreign = false;
    const struct matmul_record *own = grouped ? find_grouped(profile, dtype) : NULL,
                               *record = own ? own : find_matmul(profile, dtype, grouped ? 1 : product->batch);
    struct matmul_fit fit;

    /* tensor cores apply scales of 32 values at the rate of fp8 (NVIDIA, PTX ISA, tcgen05.mma: kind mxf8f6f4 and f8f6f4) */
    if (grouped && !own && dtype == DTYPE_MXFP8 && (own = find_grouped(profile, DTYPE_FP8)))
        record = own, foreign = true;
    if (!record && (dtype == DTYPE_MXFP8 || dtype == DTYPE_FP8_BLOCK)) {     /* one rate for all of 8 bits */
        record = find_matmul(profile, DTYPE_FP8, grouped ? 1 : product->batch);
        foreign = true;
    }
    if (!record || (product->form == FORM_QUANTIZED && record->fit.quantize == 0))
        return unknown;
    fit = matmul_fit_of(profile, record, dtype);
    return (struct kernel_seconds){
        .seconds = matmul_remembered(profile->cache, &fit, multiprocessors(profile), product),
        .basis = grouped && !own                                              ? BASIS_KERNELS :
                 foreign || !list_has(&record->layouts, (int)product->layout) ? BASIS_LAYOUT :
                 covers(record, product)                                      ? BASIS_MEASURED :
                                                                                BASIS_SIZES,
    };
}

/* If only the FLOPs of a product are known, it is taken for a single product of three equal sides, whose rows may or
 * may not be aligned, and always counts as extrapolated. */
static struct kernel_seconds shapeless(const struct profile *profile, const struct kernel *kernel)
{
    double side = cbrt(kernel->flop / 2);
    struct product product = {1, side, side, side, kernel->layout, dtype_bytes(kernel->dtype), FORM_MATMUL, {.exponent = 0}};
    const struct matmul_record *record = find_matmul(profile, kernel->dtype, 1);
    struct matmul_fit fit;

    if (!record)
        return unknown;
    fit = matmul_fit_of(profile, record, kernel->dtype);
    fit.unaligned = fit.odd = 1;
    return (struct kernel_seconds){
        fmax(matmul_remembered(profile->cache, &fit, multiprocessors(profile), &product),
             fit.overhead + kernel->bytes / fit.bandwidth), BASIS_SIZES};
}

static struct kernel_seconds matmul(const struct profile *profile, const struct kernel *kernel)
{
    struct product product = {kernel->batch,
                              kernel->m,
                              kernel->n,
                              kernel->k,
                              kernel->layout,
                              dtype_bytes(kernel->dtype),
                              kernel->kind == KERNEL_GROUPED ? FORM_GROUPED : FORM_MATMUL,
                              kernel->skew};

    return kernel->m > 0 ? profile_product(profile, kernel->dtype, &product) : shapeless(profile, kernel);
}

/* Fused attention without a record is timed as its matrix products: forward scores and values, backward the scores and
 * four gradients. n is the number of keys that are visited. All heads count as one product: batched products are slow
 * because they write the scores, and a fused kernel does not write them. */
static struct kernel_seconds attention_products(const struct profile *profile, const struct kernel *kernel)
{
    struct kernel product = *kernel;

    product.kind = KERNEL_MATMUL;
    product.layout = LAYOUT_NT;
    product.k = kernel->k * (kernel->phase == PHASE_FORWARD ? 2 : 5);
    product.n = kernel->flop / (2 * kernel->batch * kernel->m * product.k);
    product.m *= kernel->batch;
    product.batch = 1;
    return (struct kernel_seconds){matmul(profile, &product).seconds, BASIS_KERNELS};
}

static bool same_phase(int a, int b)
{
    return attention_is_backward((enum attention_direction)a) == attention_is_backward((enum attention_direction)b);
}

/* How far a record's generation is from the one asked for: the newest up to it is the nearest, any newer one is farther
 * than all of these. */
static int generation_distance(const struct attention_record *record, enum attention_generation generation)
{
    int asked = generation == ATTENTION_NEWEST ? ATTENTION_CUDNN : (int)generation;

    return record->generation <= asked ? asked - record->generation : record->generation;
}

/* Whether record `a` stands for such heads better than `b`: of the nearer generation, then sampled at heads of that
 * size, then with the same mask, causal or not, then sampled at fewer sizes. If any generation will do, the size of the
 * heads comes first. */
static bool attention_better(const struct attention_record *a, const struct attention_record *b, double head,
                             int direction, enum attention_generation generation)
{
    const int nearer = generation_distance(b, generation) - generation_distance(a, generation),
              sampled = inside(&a->head, head) - inside(&b->head, head), any = generation == ATTENTION_NEWEST;
    const int by[] = {
        any ? sampled : nearer,
        any ? nearer : sampled,
        (a->direction == direction) - (b->direction == direction),
    };

    for (size_t i = 0; i < COUNT(by); i++)
        if (by[i])
            return by[i] > 0;
    return a->head.to - a->head.from < b->head.to - b->head.from;
}

static const struct attention_record *attention_find(const struct profile *profile, int direction, enum dtype dtype,
                                                     double head, enum attention_generation generation)
{
    const struct attention_record *records = profile->attention.items, *best = NULL;

    for (size_t i = 0; i < profile->attention.count; i++)
        if (same_phase(records[i].direction, direction) && list_has(&records[i].dtypes, (int)dtype) &&
            (!best || attention_better(&records[i], best, head, direction, generation)))
            best = &records[i];
    return best;
}

static bool newer(const struct attention_record *record, enum attention_generation generation)
{
    return generation != ATTENTION_NEWEST && record->generation > (int)generation;
}

static struct kernel_seconds attention(const struct profile *profile, const struct kernel *kernel,
                                       enum attention_generation generation)
{
    struct heads heads = {kernel->batch, kernel->m, kernel->n, kernel->k, dtype_bytes(kernel->dtype), kernel->bytes,
                          kernel->window};
    enum attention_direction direction = attention_direction(kernel->phase != PHASE_FORWARD, kernel->causal);
    const struct attention_record *record = attention_find(profile, (int)direction, kernel->dtype, heads.k, generation);

    struct attention_fit fit;

    if (!record && kernel->dtype == DTYPE_FP8) {     /* no better than 16 bits where nobody measured it */
        struct kernel half = *kernel;

        half.dtype = DTYPE_BF16;
        return attention(profile, &half, generation);
    }
    if (!record)
        return attention_products(profile, kernel);
    fit = record->fit;
    fit.rate *= profile->changed ? profile->changed->peak[kernel->dtype] : 1;
    fit.bandwidth *= memory_bandwidth_ratio(profile);
    return (struct kernel_seconds){
        .seconds = attention_seconds(&fit, multiprocessors(profile), direction, &heads),
        .basis = newer(record, generation)           ? BASIS_KERNELS :
                 record->direction != (int)direction ? BASIS_LAYOUT :
                 inside(&record->rows, heads.batch * heads.m) && inside(&record->keys, heads.n) &&
                         inside(&record->head, heads.k) ?
                                                       BASIS_MEASURED :
                                                       BASIS_SIZES,
    };
}

/* The rows of experts, by the layers of experts that were measured. */
static struct kernel_seconds expert_rows(const struct profile *profile, const struct kernel *kernel)
{
    const struct matmul_record *record = find_grouped(profile, kernel->dtype);
    double bandwidth = record ? record->fit.quantize * memory_bandwidth_ratio(profile) : 0;

    if (!record || bandwidth == 0)
        return unknown;
    return (struct kernel_seconds){record->fit.overhead + kernel->bytes / bandwidth, BASIS_MEASURED};
}

static double record_seconds(const struct profile *profile, const struct memory_record *record, double bytes)
{
    struct memory_fit fit = record->fit;

    fit.bandwidth *= memory_bandwidth_ratio(profile);
    return memory_seconds(&fit, bytes);
}

static struct kernel_seconds memory(const struct profile *profile, const struct kernel *kernel)
{
    struct kernel_seconds rows = kernel->class == CLASS_EXPERT_ROWS ? expert_rows(profile, kernel) : unknown;

    const struct memory_record *records = profile->memory.items, *other = NULL;

    for (size_t i = 0; i < profile->memory.count; i++) {
        if (records[i].dtypes.count > 0 && !list_has(&records[i].dtypes, (int)kernel->dtype))
            continue;
        if (records[i].class == (int)kernel->class)
            return (struct kernel_seconds){record_seconds(profile, &records[i], kernel->bytes),
                                           inside(&records[i].bytes, kernel->bytes) ? BASIS_MEASURED : BASIS_SIZES};
        if (records[i].class == CLASS_OTHER)
            other = &records[i];
    }
    if (!isnan(rows.seconds))
        return rows;
    return other ? (struct kernel_seconds){record_seconds(profile, other, kernel->bytes), BASIS_KERNELS} : unknown;
}

struct kernel_seconds profile_kernel(const struct profile *profile, const struct kernel *kernel,
                                     enum attention_generation generation)
{
    if (kernel->kind == KERNEL_ATTENTION)
        return attention(profile, kernel, generation);
    return kernel->kind == KERNEL_MEMORY ? memory(profile, kernel) : matmul(profile, kernel);
}

double profile_error(const struct profile *profile, enum kernel_kind kind)
{
    const struct list *lists[] = {
        [KERNEL_MATMUL] = &profile->matmul,
        [KERNEL_GROUPED] = &profile->grouped,
        [KERNEL_ATTENTION] = &profile->attention,
        [KERNEL_MEMORY] = &profile->memory,
    };
    static const struct {
        size_t size, error;
    } records[] = {
        [KERNEL_MATMUL] = {sizeof(struct matmul_record), offsetof(struct matmul_record, error)},
        [KERNEL_GROUPED] = {sizeof(struct matmul_record), offsetof(struct matmul_record, error)},
        [KERNEL_ATTENTION] = {sizeof(struct attention_record), offsetof(struct attention_record, error)},
        [KERNEL_MEMORY] = {sizeof(struct memory_record), offsetof(struct memory_record, error)},
    };
    double sum = 0, samples = 0;

    for (size_t i = 0; i < lists[kind]->count; i++) {
        struct fit_error error;

        memcpy(&error, (const char *)lists[kind]->items + i * records[kind].size + records[kind].error, sizeof error);
        if (error.held_out == 0 || isnan(error.mean))
            continue;
        sum += error.held_out * error.mean;
        samples += error.held_out;
    }
    return samples > 0 ? sum / samples : NAN;
}
