#include "kernels/profile.h"

#include "base/base.h"
#include "config/field.h"
#include "config/named.h"
#include "files/data.h"
#include "hardware/gpu.h"

#define RANGE(record, member, help) \
    {KEY(record, member), .kind = FIELD_RECORD, .table = &range_table, .required = true, .brief = help}

static const struct field fit_error_fields[] = {
    {KEY(fit_error, samples), .kind = FIELD_INT, .fallback = "0",
     .brief = "number of samples to which the record is fitted"},
    {KEY(fit_error, held_out), .kind = FIELD_INT, .fallback = "0",
     .brief = "number of samples that the fit did not use"},
    {KEY(fit_error, mean), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .brief = "mean error on the samples held out"},
    {KEY(fit_error, median), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER,
     .brief = "median error on the samples held out"},
    {KEY(fit_error, max), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER,
     .brief = "largest error on the samples held out"},
};
static const struct table error_table = {
    TABLE("error", "|predicted / measured - 1| on samples held out", fit_error, fit_error_fields),
};

static const struct field covered_range_fields[] = {
    {KEY(covered_range, from), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .required = true, .brief = "smallest size"},
    {KEY(covered_range, to), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .required = true, .brief = "largest size"},
};
static const struct table range_table = {
    TABLE("range", "sizes of the samples, both ends included", covered_range, covered_range_fields),
};

#define DTYPES(record) \
    {KEY(record, dtypes), .kind = FIELD_CHOICES, .choices = dtype_names, .required = true, \
     .brief = "number formats for which the record holds"}
#define RATE(record) \
    {.key = "rate", .kind = FIELD_QUANTITY, .unit = UNIT_FLOP_RATE, .positive = true, .required = true, \
     AT(record, fit.rate), .brief = "rate of all SMs together if nothing else is the bottleneck"}
#define QUANTIZATION(record) \
    {.key = "quantization", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .max = 1, .required = true, \
     AT(record, fit.quantization), \
     .brief = "1: a partial wave of tiles takes the time of a whole one; 0: only its part"}
#define BANDWIDTH(record) \
    {.key = "bandwidth", .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true, .required = true, \
     AT(record, fit.bandwidth), .brief = "bandwidth of the bytes that a kernel must read and write"}
#define OVERHEAD(record) \
    {.key = "overhead", .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .required = true, AT(record, fit.overhead), \
     .brief = "time of a kernel in addition to its work: start, ramp and tail"}
#define ERROR(record) \
    {KEY(record, error), .kind = FIELD_RECORD, .table = &error_table, .brief = "how well the record fits"}
#define SPEED(record) \
    {.key = "speed", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .positive = true, .max = 2, .fallback = "1", \
     AT(record, fit.speed), \
     .brief = "speed of the SMs in a job divided by their speed in the samples, if the samples ran too briefly to " \
              "reach the power limit, accumulated in another format or come from another board; 'error' is without it"}
#define LASTING(record) \
    {.key = "lasting", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .max = 1, .fallback = "0", \
     AT(record, repeated.lasting), \
     .brief = "share of their speed that samples of tens of milliseconds keep, which reach the power limit; 0: all. " \
              "Not for jobs, which have 'speed'"}
#define LAYOUT(name, layout_) \
    {.key = name, .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .positive = true, .fallback = "1", \
     AT(matmul_record, fit.layout[layout_]), .brief = "factor on the time of tiles for that layout of the operands"}
static const struct field matmul_record_fields[] = {
    DTYPES(matmul_record),
    RATE(matmul_record),
    {.key = "intensity",
     AT(matmul_record, fit.intensity),
     .kind = FIELD_QUANTITY,
     .unit = UNIT_NUMBER,
     .required = true,
     .brief = "how much slower small tiles are, in FLOPs per value loaded; 0: all tiles reach the same rate"},
    {.key = "fill",
     AT(matmul_record, fit.fill),
     .kind = FIELD_QUANTITY,
     .unit = UNIT_TIME,
     .required = true,
     .brief = "time of a tile in addition to its GEMMs, to fill its pipeline and write its results"},
    QUANTIZATION(matmul_record),
    BANDWIDTH(matmul_record),
    {.key = "overlap",
     AT(matmul_record, fit.overlap),
     .kind = FIELD_QUANTITY,
     .unit = UNIT_NUMBER,
     .min = 1,
     .max = 100,
     .required = true,
     .brief = "p of (tiles^p + traffic^p)^(1/p); 1: tiles and traffic do not overlap"},
    {.key = "drain",
     AT(matmul_record, fit.drain),
     .kind = FIELD_QUANTITY,
     .unit = UNIT_NUMBER,
     .max = 1,
     .fallback = "0",
     .brief = "share of the results' traffic that is not overlapped, as a tile is written when its GEMMs are done"},
    OVERHEAD(matmul_record),
    LAYOUT("nn", LAYOUT_NN),
    LAYOUT("nt", LAYOUT_NT),
    LAYOUT("tn", LAYOUT_TN),
    {.key = "unaligned",
     AT(matmul_record, fit.unaligned),
     .kind = FIELD_QUANTITY,
     .unit = UNIT_NUMBER,
     .positive = true,
     .fallback = "1",
     .brief = "factor on the time of tiles if rows are not multiples of 16 bytes"},
    {.key = "odd",
     AT(matmul_record, fit.odd),
     .kind = FIELD_QUANTITY,
     .unit = UNIT_NUMBER,
     .fallback = "0",
     .brief = "factor on the time of tiles if rows are odd numbers of half-precision values; 0: as unaligned"},
    {.key = "quantize",
     AT(matmul_record, fit.quantize),
     .kind = FIELD_QUANTITY,
     .unit = UNIT_BANDWIDTH,
     .fallback = "0",
     .brief = "of samples that include kernels around their GEMMs, which quantise activations or bring rows to "
              "experts and back: bandwidth of these kernels; 0: samples did not"},
    SPEED(matmul_record),
    {.key = "sustained", AT(matmul_record, fit.sustained), .kind = FIELD_QUANTITY, .unit = UNIT_FLOP_RATE,
     .fallback = "0 FLOP/s",
     .brief = "bound of the rate in a job, by the power limit; slower GEMMs run as the samples did. 0: none, then "
              "'speed' says how much slower jobs are"},
    LASTING(matmul_record),
    {.key = "cache", AT(matmul_record, repeated.cache), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .fallback = "0 B",
     .brief = "bytes that repeated runs of a sample find in the cache; 0: none. Not for jobs"},
    {.key = "cache_speed", AT(matmul_record, repeated.cache_speed), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER,
     .fallback = "0", .brief = "bandwidth of the bytes that are found there divided by 'bandwidth'"},
    {KEY(matmul_record, layouts), .kind = FIELD_CHOICES, .choices = layout_names, .required = true,
     .may_be_empty = true, .brief = "layouts of the samples; other GEMMs count as extrapolated"},
    RANGE(matmul_record, batch, "numbers of GEMMs in a batch"),
    RANGE(matmul_record, m, "rows"),
    RANGE(matmul_record, n, "columns"),
    RANGE(matmul_record, k, "depths"),
    ERROR(matmul_record),
};
static const struct table matmul_table = {
    TABLE("matmul", "GEMMs of some number formats", matmul_record, matmul_record_fields),
};
static const struct table grouped_table = {
    TABLE("grouped", "GEMMs of many experts in one kernel", matmul_record, matmul_record_fields),
};

static const struct field attention_record_fields[] = {
    {.key = "kernel", AT(attention_record, direction), .kind = FIELD_CHOICE, .choices = attention_direction_names,
     .required = true, .brief = "the kind of kernel"},
    {KEY(attention_record, generation), .kind = FIELD_CHOICE, .choices = attention_generation_names,
     .fallback = "flash-2", .brief = "generation of the kernels"},
    DTYPES(attention_record),
    RATE(attention_record),
    {.key = "score", AT(attention_record, fit.score), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .required = true,
     .brief = "time of one SM for each score outside its GEMMs"},
    {.key = "overlap", AT(attention_record, fit.overlap), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1,
     .max = 100, .fallback = "1",
     .brief = "o of (GEMMs^o + score^o)^(1/o), the time of a score; 1: they do not overlap"},
    {.key = "fill", AT(attention_record, fit.fill), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .fallback = "0 s",
     .brief = "time of a block of 128 queries (backward: keys) in addition to its scores"},
    {.key = "tail", AT(attention_record, fit.tail), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .fallback = "0",
     .brief = "share of the longest block's time that is added to the mean of the SMs' work; 0: blocks run in waves"},
    {.key = "quantization", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .max = 1, .fallback = "0",
     AT(attention_record, fit.quantization),
     .brief = "without tail; 1: a partial wave of blocks takes the time of a whole one; 0: only its part"},
    BANDWIDTH(attention_record),
    OVERHEAD(attention_record),
    SPEED(attention_record),
    LASTING(attention_record),
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
     .brief = "the class of kernels; other: element-wise kernels, and all classes without a record"},
    {KEY(memory_record, dtypes), .kind = FIELD_CHOICES, .choices = dtype_names,
     .brief = "number formats for which the record holds; left out: all"},
    BANDWIDTH(memory_record),
    OVERHEAD(memory_record),
    RANGE(memory_record, bytes, "bytes read and written"),
    ERROR(memory_record),
};
static const struct table memory_table = {
    TABLE("memory", "kernels bound by memory", memory_record, memory_record_fields),
};

static const struct field profile_fields[] = {
    {KEY(profile, gpu), .kind = FIELD_STRING, .required = true, .brief = "the GPU that was measured"},
    {KEY(profile, source), .kind = FIELD_STRING, .required = true, .brief = "who measured what, and when"},
    {KEY(profile, sms), .kind = FIELD_INT, .min = 1, .max = 100000, .required = true,
     .brief = "number of its streaming multiprocessors"},
    {KEY(profile, matmul), .kind = FIELD_LIST, .table = &matmul_table, .single = true, .brief = "GEMMs"},
    {KEY(profile, grouped), .kind = FIELD_LIST, .table = &grouped_table, .single = true,
     .brief = "GEMMs of many experts in one kernel; left out: their tiles take as long as single GEMMs'"},
    {KEY(profile, attention), .kind = FIELD_LIST, .table = &attention_table, .single = true,
     .brief = "fused attention; left out: it takes as long as its GEMMs"},
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

/* Checks of a profile that its tables cannot express. */
static int check_records(const struct profile *profile, struct error *err)
{
    const struct list *products[] = {&profile->matmul, &profile->grouped};
    const struct attention_record *attention = profile->attention.items;
    const struct memory_record *memory = profile->memory.items;
    int rc = 0;

    if (!profile->matmul.count && !profile->grouped.count && !profile->attention.count && !profile->memory.count)
        return error_add(err, EXIT_INPUT, profile->node->loc, "profile: no kernels; expected matmul, attention or "
                         "memory, as 'dtsim calibrate fit' writes them");
    for (size_t p = 0; p < COUNT(products); p++)
        for (size_t i = 0; i < products[p]->count; i++) {
            const struct matmul_record *record = (const struct matmul_record *)products[p]->items + i;

            if (check_ranges((const struct covered_range *[4]){&record->batch, &record->m, &record->n, &record->k},
                             err))
                rc = -1;
        }
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
    static const struct data_kind kind = {"calibration/data", "profile", NULL};
    const char *path = data_resolve(arena, &kind, name, loc, err);

    if (!path || field_load(arena, &profile_table, path, profile, err) || check_records(profile, err))
        return -1;
    profile->name = data_stem(arena, path);
    profile->cache = arena->cache;
    return 0;
}
