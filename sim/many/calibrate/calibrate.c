#include "calibrate/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "kernels/cost.h"
#include "kernels/kernel_time.h"

enum { HELD_OUT = 5 };                   /* one of this number of shapes is held out */

const char *sample_group_name(const struct sample_group *group)
{
    static const char *const matmul[] = {"matmul", "matmul, single", "matmul, batched", "matmul-grouped"};

    if (group->kind == SAMPLE_MATMUL)
        return matmul[group->which];
    return group->kind == SAMPLE_ATTENTION ? attention_direction_names[group->which] : memory_class_names[group->which];
}

/* Depends only on the shape: if the same shapes are measured again or in another order, the same ones are held out. */
static bool is_held_out(const struct sample *sample)
{
    const double sizes[] = {sample->batch, sample->m, sample->n, sample->k, sample->bytes};
    uint64_t hash = 14695981039346656037u;           /* FNV-1a, then mixed */

    for (size_t i = 0; i < COUNT(sizes); i++)
        hash = (hash ^ (uint64_t)sizes[i]) * 1099511628211u;
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
    return (hash ^ hash >> 33) % HELD_OUT == 0;
}

static struct sample_group *find_group(struct sample_groups *groups, enum sample_kind kind, int which, enum dtype dtype)
{
    for (size_t i = 0; i < groups->count; i++)
        if (groups->items[i].kind == kind && groups->items[i].which == which &&
            (kind == SAMPLE_MEMORY || groups->items[i].dtype == dtype))
            return &groups->items[i];
    *GROW(groups) = (struct sample_group){.kind = kind, .which = which, .dtype = dtype};
    return &groups->items[groups->count - 1];
}

static void put_sample(struct sample_group *group, const struct sample *sample)
{
    if (is_held_out(sample))
        *GROW(&group->held_out) = sample;
    else
        *GROW(&group->fit) = sample;
}

/* Fits the group. If it is too small without the samples held out, it is fitted to all of them, and its error is not
 * known. */
static bool fit_group(struct sample_group *group, int sms)
{
    if (group_fit(group, sms) == 0)
        return true;
    while (group->held_out.count)
        *GROW(&group->fit) = group->held_out.items[--group->held_out.count];
    return group_fit(group, sms) == 0;
}

/* Element-wise classes: their samples together give the record of CLASS_OTHER, for classes without samples. */
static bool is_element_wise(enum memory_class class)
{
    return class == CLASS_DROPOUT_RESIDUAL_FORWARD || class == CLASS_DROPOUT_RESIDUAL_BACKWARD ||
           class == CLASS_GELU_FORWARD || class == CLASS_GELU_BACKWARD || class == CLASS_COPY;
}

static int which_group(const struct sample *sample)
{
    if (sample->kind != SAMPLE_MATMUL)
        return sample->which;
    return product_is_grouped((enum product_form)sample->which) ? BATCHES_GROUPED : BATCHES_ANY;
}

/* The formats in which experts with even rows were sampled. */
static void find_even(const struct samples *samples, bool even[DTYPE_COUNT])
{
    for (size_t i = 0; i < samples->count; i++) {
        const struct sample *sample = &samples->items[i];

        if (sample->kind == SAMPLE_MATMUL && which_group(sample) == BATCHES_GROUPED && !sample_is_derived(sample))
            even[sample_format(sample)] = true;
    }
}

static void make_groups(struct calibration *calibration, const struct samples *samples)
{
    bool even[DTYPE_COUNT] = {false};

    find_even(samples, even);
    for (size_t i = 0; i < samples->count; i++) {
        const struct sample *sample = &samples->items[i];
        bool derived = sample_is_derived(sample) && (sample->window > 0 || even[sample_format(sample)]);

        if (sample->kind == SAMPLE_UNUSED || derived) {
            calibration->unused++;
            continue;
        }
        if (sample->kind == SAMPLE_SUSTAINED)
            continue;
        put_sample(find_group(&calibration->groups, sample->kind, which_group(sample), sample_format(sample)), sample);
        if (sample->kind == SAMPLE_MATMUL && which_group(sample) == BATCHES_ANY)
            put_sample(find_group(&calibration->groups, SAMPLE_MATMUL, sample->batch > 1 ? BATCHES_MANY : BATCHES_ONE,
                                  sample_format(sample)), sample);
        if (sample->kind == SAMPLE_MEMORY && is_element_wise((enum memory_class)sample->which))
            put_sample(find_group(&calibration->groups, SAMPLE_MEMORY, CLASS_OTHER, sample_format(sample)), sample);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double sorted_median(double *values, size_t count)
{
    array_sort(values, count, sizeof *values, compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void measure_error(struct sample_group *group, int sms)
{
    size_t n = group->held_out.count;
    double *errors = xcalloc(n + 1, sizeof *errors), sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += errors[i] = sample_error(group, sms, group->held_out.items[i]);
    group->error = (struct fit_error){.samples = (int)group->fit.count, .held_out = (int)n, .mean = NAN, .median = NAN,
                                      .max = NAN};
    if (n) {
        group->error.mean = round(1e4 * sum / (double)n) / 1e4;
        group->error.median = round(1e4 * sorted_median(errors, n)) / 1e4;
        group->error.max = round(1e4 * errors[n - 1]) / 1e4;
    }
    free(errors);
}

double calibration_error(const struct calibration *calibration, const struct sample_group *group, double from,
                         double to, int *count)
{
    double sum = 0;

    *count = 0;
    for (size_t i = 0; i < group->held_out.count; i++) {
        const struct sample *sample = group->held_out.items[i];

        if (sample->m <= from || sample->m > to)
            continue;
        sum += sample_error(group, calibration->sms, sample);
        ++*count;
    }
    return *count ? sum / *count : NAN;
}

/* ---- records ---- */

static void cover(struct covered_range *range, double value)
{
    range->from = range->to == 0 ? value : fmin(range->from, value);
    range->to = fmax(range->to, value);
}

static struct list int_list(struct arena *arena, const int *items, size_t count)
{
    struct list list = {.items = ARENA_ARRAY(arena, int, count), .count = count};

    memcpy(list.items, items, count * sizeof *items);
    return list;
}

static struct list dtypes_of(struct arena *arena, const struct sample_group *group)
{
    const int halves[] = {DTYPE_FP16, DTYPE_BF16}, own = (int)group->dtype;

    return group->dtype == DTYPE_FP16 ? int_list(arena, halves, COUNT(halves)) : int_list(arena, &own, 1);
}

static struct matmul_record matmul_record(struct arena *arena, const struct calibration *calibration,
                                          const struct sample_group *group)
{
    struct matmul_record record = {.fit = group->fitted.matmul, .error = group->error};
    bool sampled[LAYOUT_COUNT] = {false};
    int layouts[LAYOUT_COUNT];
    size_t count = 0;

    for (size_t i = 0; i < group->fit.count; i++) {
        const struct sample *sample = group->fit.items[i];

        cover(&record.batch, sample->batch);
        cover(&record.m, sample->m);
        cover(&record.n, sample->n);
        cover(&record.k, sample->k);
        sampled[sample->layout] = true;
    }
    for (int layout = 0; layout < LAYOUT_COUNT; layout++)
        if (sampled[layout])
            layouts[count++] = layout;
    record.layouts = int_list(arena, layouts, count);
    record.repeated = record.fit.repeated;
    record.fit.repeated = (struct repeated_runs){0};
    record.fit.speed = calibration->sustained[group->dtype].share;
    record.dtypes = dtypes_of(arena, group);
    return record;
}

/* Appends a record for each mask that was sampled. */
static void attention_records(struct arena *arena, const struct calibration *calibration,
                              const struct sample_group *group, struct list *records)
{
    bool backward = attention_is_backward((enum attention_direction)group->which);

    for (int causal = 0; causal <= 1; causal++) {
        struct attention_record record = {.generation = calibration->attention, .fit = group->fitted.attention,
                                          .error = group->error};
        size_t count = 0;

        record.direction = (int)attention_direction(backward, causal != 0);
        for (size_t i = 0; i < group->fit.count; i++) {
            const struct sample *sample = group->fit.items[i];

            if (sample->which != record.direction)
                continue;
            cover(&record.rows, sample->batch * sample->m);
            cover(&record.keys, sample->n);
            cover(&record.head, sample->k);
            count++;
        }
        record.repeated = record.fit.repeated;
        record.fit.repeated = (struct repeated_runs){0};
        record.fit.speed = calibration->sustained[group->dtype].share;
        record.dtypes = dtypes_of(arena, group);
        if (count)
            ((struct attention_record *)records->items)[records->count++] = record;
    }
}

static struct memory_record memory_record(const struct sample_group *group)
{
    struct memory_record record = {.class = group->which, .fit = group->fitted.memory, .error = group->error};

    for (size_t i = 0; i < group->fit.count; i++)
        cover(&record.bytes, group->fit.items[i]->bytes);
    return record;
}

static void make_records(struct arena *arena, struct calibration *calibration)
{
    struct profile *profile = &calibration->profile;
    size_t count = calibration->groups.count;
    struct matmul_record *matmul = ARENA_ARRAY(arena, struct matmul_record, count);
    struct matmul_record *grouped = ARENA_ARRAY(arena, struct matmul_record, count);
    struct attention_record *attention = ARENA_ARRAY(arena, struct attention_record, 2 * count);
    struct memory_record *memory = ARENA_ARRAY(arena, struct memory_record, count);

    profile->matmul.items = matmul;
    profile->grouped.items = grouped;
    profile->attention.items = attention;
    profile->memory.items = memory;
    for (size_t i = 0; i < count; i++) {
        const struct sample_group *group = &calibration->groups.items[i];

        if (group->left_out)
            continue;
        if (group->kind == SAMPLE_MATMUL && group->which == BATCHES_GROUPED)
            grouped[profile->grouped.count++] = matmul_record(arena, calibration, group);
        else if (group->kind == SAMPLE_MATMUL)
            matmul[profile->matmul.count++] = matmul_record(arena, calibration, group);
        else if (group->kind == SAMPLE_ATTENTION)
            attention_records(arena, calibration, group, &profile->attention);
        else
            memory[profile->memory.count++] = memory_record(group);
    }
}

static int compare_groups(const void *a, const void *b)
{
    const struct sample_group *x = a, *y = b;

    if (x->kind != y->kind)
        return (x->kind > y->kind) - (x->kind < y->kind);
    if (x->which != y->which)
        return (x->which > y->which) - (x->which < y->which);
    return (x->dtype > y->dtype) - (x->dtype < y->dtype);
}

int calibrate(struct arena *arena, const struct samples *samples, struct calibration *calibration, struct error *err)
{
    struct sample_groups *groups = &calibration->groups;
    size_t fitted = 0;

    *calibration = (struct calibration){.sms = samples->sms, .attention = samples->attention};
    make_groups(calibration, samples);
    array_sort(groups->items, groups->count, sizeof *groups->items, compare_groups);
    groups_merge(groups);
    for (size_t i = 0; i < groups->count; i++) {
        groups->items[i].left_out = !fit_group(&groups->items[i], samples->sms);
        if (groups->items[i].left_out)
            continue;
        measure_error(&groups->items[i], samples->sms);
        fitted++;
    }
    groups_choose(groups, samples->sms);
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        calibration->sustained[dtype] = calibrate_sustained(calibration, samples, (enum dtype)dtype);
    if (!fitted)
        return error_add(err, EXIT_INPUT, samples->gpu_loc, "too few samples of every kernel; expected some 20 shapes "
                         "of GEMMs or attention, or 5 sizes of a kernel bound by memory");
    calibration->profile = (struct profile){.gpu = samples->gpu, .sms = samples->sms};
    calibration->profile.source = samples_source(samples);
    make_records(arena, calibration);
    return 0;
}

void calibration_release(struct calibration *calibration)
{
    for (size_t i = 0; i < calibration->groups.count; i++) {
        free(calibration->groups.items[i].fit.items);
        free(calibration->groups.items[i].held_out.items);
    }
    free(calibration->groups.items);
    memset(calibration, 0, sizeof *calibration);
}
