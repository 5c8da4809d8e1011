#include "kernels/profile.h"

#include <math.h>
#include <string.h>

#include "base/data.h"

#define RANGE(record, member, help) \
    {KEY(record, member), .kind = FIELD_RECORD, .table = &range_table, .required = true, .brief = help}

static const struct field fit_error_fields[] = {
    {KEY(fit_error, samples), .kind = FIELD_INT, .fallback = "0", .brief = "that it was fitted to"},
    {KEY(fit_error, held_out), .kind = FIELD_INT, .fallback = "0", .brief = "that the fit did not see"},
    {KEY(fit_error, mean), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .brief = "error on these"},
    {KEY(fit_error, median), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .brief = "error on these"},
    {KEY(fit_error, max), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .brief = "error on these"},
};
static const struct table error_table = {
    TABLE("error", "|predicted / measured - 1| on samples held out", fit_error, fit_error_fields),
};

static const struct field covered_range_fields[] = {
    {KEY(covered_range, from), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .required = true, .brief = "smallest"},
    {KEY(covered_range, to), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .required = true, .brief = "largest"},
};
static const struct table range_table = {
    TABLE("range", "sizes of the samples, both inclusive", covered_range, covered_range_fields),
};

#define DTYPES(record) \
    {KEY(record, dtypes), .kind = FIELD_CHOICES, .choices = dtype_names, .required = true, \
     .brief = "number formats that it holds for"}
#define RATE(record) \
    {.key = "rate", .kind = FIELD_QUANTITY, .unit = UNIT_FLOP_RATE, .positive = true, .required = true, \
     AT(record, fit.rate), .brief = "of all SMs, where nothing else binds"}
#define QUANTIZATION(record) \
    {.key = "quantization", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .max = 1, .required = true, \
     AT(record, fit.quantization), .brief = "1: a wave of tiles is whole; 0: a part of one takes its part"}
#define BANDWIDTH(record) \
    {.key = "bandwidth", .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true, .required = true, \
     AT(record, fit.bandwidth), .brief = "of what it reads and writes at least"}
#define OVERHEAD(record) \
    {.key = "overhead", .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .required = true, AT(record, fit.overhead), \
     .brief = "a kernel, beside its work: start, ramp and tail"}
#define ERROR(record) \
    {KEY(record, error), .kind = FIELD_RECORD, .table = &error_table, .brief = "how well it fits"}
#define SPEED(record) \
    {.key = "speed", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .positive = true, .max = 2, .fallback = "1", \
     AT(record, fit.speed), \
     .brief = "of what the SMs do in a job over the samples, where these ran too shortly for the power limit to act, " \
              "accumulated in another format or were another board's; 'error' is that of the fit, without it"}
#define LAYOUT(name, layout_) \
    {.key = name, .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .positive = true, .fallback = "1", \
     AT(matmul_record, fit.layout[layout_]), .brief = "factor of the tiles' time for that layout"}
static const struct field matmul_record_fields[] = {
    DTYPES(matmul_record),
    RATE(matmul_record),
    {.key = "intensity", AT(matmul_record, fit.intensity), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER,
     .required = true, .brief = "how much slower small tiles are: FLOPs per value loaded; 0: all alike"},
    {.key = "fill", AT(matmul_record, fit.fill), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .required = true,
     .brief = "a tile, beside its products: filling the pipeline, writing the results"},
    QUANTIZATION(matmul_record),
    BANDWIDTH(matmul_record),
    {.key = "overlap", AT(matmul_record, fit.overlap), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1,
     .max = 100, .required = true, .brief = "p of (tiles^p + traffic^p)^(1/p); 1: one after the other"},
    {.key = "drain", AT(matmul_record, fit.drain), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .max = 1,
     .fallback = "0",
     .brief = "share of the results' traffic that nothing hides: a tile is written when its products are done"},
    OVERHEAD(matmul_record),
    LAYOUT("nn", LAYOUT_NN), LAYOUT("nt", LAYOUT_NT), LAYOUT("tn", LAYOUT_TN),
    {.key = "unaligned", AT(matmul_record, fit.unaligned), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER,
     .positive = true, .fallback = "1", .brief = "factor of the tiles' time where rows are no multiples of 16 bytes"},
    {.key = "odd", AT(matmul_record, fit.odd), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .fallback = "0",
     .brief = "likewise where they are odd numbers of halves; 0: unaligned"},
    SPEED(matmul_record),
    {KEY(matmul_record, layouts), .kind = FIELD_CHOICES, .choices = layout_names, .required = true,
     .may_be_empty = true, .brief = "those that were sampled; []: none, all products count as extrapolated"},
    RANGE(matmul_record, batch, "products at once"),
    RANGE(matmul_record, m, "rows"),
    RANGE(matmul_record, n, "columns"),
    RANGE(matmul_record, k, "depths"),
    ERROR(matmul_record),
};
static const struct table matmul_table = {
    TABLE("matmul", "matrix products of some number formats", matmul_record, matmul_record_fields),
};

static const struct field attention_record_fields[] = {
    {.key = "kernel", AT(attention_record, direction), .kind = FIELD_CHOICE, .choices = attention_direction_names,
     .required = true, .brief = "which"},
    {KEY(attention_record, generation), .kind = FIELD_CHOICE, .choices = attention_generation_names,
     .fallback = "flash-2", .brief = "of such kernels"},
    DTYPES(attention_record),
    RATE(attention_record),
    {.key = "score", AT(attention_record, fit.score), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .required = true,
     .brief = "of one SM for each score, beside the products"},
    QUANTIZATION(attention_record),
    BANDWIDTH(attention_record),
    OVERHEAD(attention_record),
    SPEED(attention_record),
    RANGE(attention_record, rows, "samples x heads x queries"),
    RANGE(attention_record, keys, "keys"),
    RANGE(attention_record, head, "sizes of a head"),
    ERROR(attention_record),
};
static const struct table attention_table = {
    TABLE("attention", "fused attention", attention_record, attention_record_fields),
};

static const struct field memory_record_fields[] = {
    {.key = "kernel", AT(memory_record, class), .kind = FIELD_CHOICE, .choices = memory_class_names, .required = true,
     .brief = "which; other: element-wise, and all that have no record of their own"},
    {KEY(memory_record, dtypes), .kind = FIELD_CHOICES, .choices = dtype_names,
     .brief = "number formats that it holds for; left out: all"},
    BANDWIDTH(memory_record),
    OVERHEAD(memory_record),
    RANGE(memory_record, bytes, "bytes read and written"),
    ERROR(memory_record),
};
static const struct table memory_table = {
    TABLE("memory", "kernels bound by memory", memory_record, memory_record_fields),
};

static const struct field profile_fields[] = {
    {KEY(profile, gpu), .kind = FIELD_STRING, .required = true, .brief = "that was measured"},
    {KEY(profile, source), .kind = FIELD_STRING, .required = true, .brief = "who measured what, and when"},
    {KEY(profile, sms), .kind = FIELD_INT, .min = 1, .max = 100000, .required = true,
     .brief = "its streaming multiprocessors"},
    {KEY(profile, matmul), .kind = FIELD_LIST, .table = &matmul_table, .single = true, .brief = "matrix products"},
    {KEY(profile, attention), .kind = FIELD_LIST, .table = &attention_table, .single = true,
     .brief = "fused attention; left out: as long as its products"},
    {KEY(profile, memory), .kind = FIELD_LIST, .table = &memory_table, .single = true,
     .brief = "kernels bound by memory"},
};
const struct table profile_table = {TABLE("profile", "kernel times of one type of GPU", profile, profile_fields)};

/* Up to four ranges. */
static int check_ranges(const struct covered_range *const ranges[4], struct error *err)
{
    int rc = 0;

    for (int i = 0; i < 4 && ranges[i]; i++)
        if (ranges[i]->from > ranges[i]->to)
            rc = error_add(err, EXIT_INPUT, ranges[i]->node->loc,
                           "range: from %g to %g; expected the smaller size first", ranges[i]->from, ranges[i]->to);
    return rc;
}

/* What the tables cannot say of a profile. */
static int check_records(const struct profile *profile, struct error *err)
{
    const struct matmul_record *matmul = profile->matmul.items;
    const struct attention_record *attention = profile->attention.items;
    const struct memory_record *memory = profile->memory.items;
    int rc = 0;

    if (!profile->matmul.count && !profile->attention.count && !profile->memory.count)
        return error_add(err, EXIT_INPUT, profile->node->loc, "profile: no kernels; expected matmul, attention or "
                         "memory, as 'dtsim calibrate fit' writes them");
    for (size_t i = 0; i < profile->matmul.count; i++)
        if (check_ranges((const struct covered_range *[4]){&matmul[i].batch, &matmul[i].m, &matmul[i].n, &matmul[i].k},
                         err))
            rc = -1;
    for (size_t i = 0; i < profile->attention.count; i++)
        if (check_ranges((const struct covered_range *[4]){&attention[i].rows, &attention[i].keys, &attention[i].head},
                         err))
            rc = -1;
    for (size_t i = 0; i < profile->memory.count; i++)
        if (check_ranges((const struct covered_range *[4]){&memory[i].bytes}, err))
            rc = -1;
    return rc;
}

int profile_load(struct arena *arena, const char *name, struct loc loc, struct profile *profile, struct error *err)
{
    const char *path = data_resolve(arena, "calibration/data", "profile", name, loc, err);
    struct node *root;

    if (!path || conf_load(arena, path, &root, err) || field_parse(arena, &profile_table, root, profile, err) ||
        check_records(profile, err))
        return -1;
    profile->name = data_stem(arena, path);
    return 0;
}

static bool inside(const struct covered_range *range, double value)
{
    return value >= range->from && value <= range->to;
}

static const struct kernel_seconds unknown = {NAN, true};

/* How far, as a factor, a number of products at once is from those that a record covers. */
static double batch_distance(const struct matmul_record *record, double batch)
{
    return fmax(1, fmax(record->batch.from / batch, batch / record->batch.to));
}

/* The record for a format; of several, that of the nearest batch: single products and those of attention's heads, for
 * which libraries have other kernels, may have a record each. */
static const struct matmul_record *find_matmul(const struct profile *profile, enum dtype dtype, double batch)
{
    const struct matmul_record *records = profile->matmul.items, *best = NULL;

    for (size_t i = 0; i < profile->matmul.count; i++)
        if (list_has(&records[i].dtypes, (int)dtype) &&
            (!best || batch_distance(&records[i], batch) < batch_distance(best, batch)))
            best = &records[i];
    return best;
}

/* A product of which only FLOPs are known is taken for one of large even sides: its own are not covered by any. */
static struct kernel_seconds matmul(const struct profile *profile, const struct kernel *kernel)
{
    struct product product = {kernel->batch, kernel->m, kernel->n, kernel->k, kernel->layout,
                              dtype_bytes(kernel->dtype)};
    const struct matmul_record *record;
    struct matmul_fit fit;
    bool shaped = kernel->m > 0, covered;
    double seconds;

    if (!shaped) {
        product.m = product.n = product.k = cbrt(kernel->flop / 2);
        product.batch = 1;
    }
    record = find_matmul(profile, kernel->dtype, product.batch);
    if (!record)
        return unknown;
    covered = shaped && list_has(&record->layouts, (int)kernel->layout) && inside(&record->batch, product.batch) &&
              inside(&record->m, product.m) && inside(&record->n, product.n) && inside(&record->k, product.k);
    fit = record->fit;
    if (!shaped)
        fit.unaligned = fit.odd = 1;       /* the sides are nobody's, and so are their rows */
    seconds = matmul_seconds(&fit, profile->sms, &product);
    if (!shaped)
        seconds = fmax(seconds, record->fit.overhead + kernel->bytes / record->fit.bandwidth);
    return (struct kernel_seconds){seconds, !covered};
}

/* Without a record, the products of all heads: forward scores and values, backward these and their gradients; of as
 * many keys as are visited, and as one product of all rows, since what makes batched ones slow, writing the scores, a
 * fused kernel does not do. */
static struct kernel_seconds attention_products(const struct profile *profile, const struct kernel *kernel)
{
    struct kernel product = *kernel;

    product.kind = KERNEL_MATMUL;
    product.layout = LAYOUT_NT;
    product.k = kernel->k * (kernel->phase == PHASE_FORWARD ? 2 : 5);
    product.n = kernel->flop / (2 * kernel->batch * kernel->m * product.k);
    product.m *= kernel->batch;
    product.batch = 1;
    return (struct kernel_seconds){matmul(profile, &product).seconds, true};
}

static bool same_phase(int a, int b)
{
    return attention_is_backward((enum attention_direction)a) == attention_is_backward((enum attention_direction)b);
}

/* The newest generation that is not newer than the one asked for; of two records of it the one with the same mask. */
static const struct attention_record *attention_find(const struct profile *profile, int direction, enum dtype dtype,
                                                     enum attention_generation generation)
{
    const struct attention_record *records = profile->attention.items, *best = NULL;

    for (size_t i = 0; i < profile->attention.count; i++) {
        const struct attention_record *record = &records[i];

        if (!same_phase(record->direction, direction) || !list_has(&record->dtypes, (int)dtype) ||
            (generation != ATTENTION_NEWEST && record->generation > (int)generation))
            continue;
        if (!best || record->generation > best->generation ||
            (record->generation == best->generation && record->direction == direction))
            best = record;
    }
    return best;
}

static struct kernel_seconds attention(const struct profile *profile, const struct kernel *kernel,
                                       enum attention_generation generation)
{
    struct heads heads = {kernel->batch, kernel->m, kernel->n, kernel->k, dtype_bytes(kernel->dtype)};
    enum attention_direction direction = attention_direction(kernel->phase != PHASE_FORWARD, kernel->causal);
    const struct attention_record *record = attention_find(profile, (int)direction, kernel->dtype, generation);

    if (!record)
        return attention_products(profile, kernel);
    return (struct kernel_seconds){
        .seconds = attention_seconds(&record->fit, profile->sms, direction, &heads),
        .extrapolated = record->direction != (int)direction || !inside(&record->rows, heads.batch * heads.m) ||
                        !inside(&record->keys, heads.n) || !inside(&record->head, heads.k),
    };
}

static struct kernel_seconds memory(const struct profile *profile, const struct kernel *kernel)
{
    const struct memory_record *records = profile->memory.items, *other = NULL;

    for (size_t i = 0; i < profile->memory.count; i++) {
        if (records[i].dtypes.count > 0 && !list_has(&records[i].dtypes, (int)kernel->dtype))
            continue;
        if (records[i].class == (int)kernel->class)
            return (struct kernel_seconds){memory_seconds(&records[i].fit, kernel->bytes),
                                           !inside(&records[i].bytes, kernel->bytes)};
        if (records[i].class == CLASS_OTHER)
            other = &records[i];
    }
    return other ? (struct kernel_seconds){memory_seconds(&other->fit, kernel->bytes), true} : unknown;
}

struct kernel_seconds profile_kernel(const struct profile *profile, const struct kernel *kernel,
                                     enum attention_generation generation)
{
    if (kernel->kind == KERNEL_ATTENTION)
        return attention(profile, kernel, generation);
    return kernel->kind == KERNEL_MATMUL ? matmul(profile, kernel) : memory(profile, kernel);
}
