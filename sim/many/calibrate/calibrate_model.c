/* The parameters of each kind of kernel, the values at which their search starts, and the times that they predict. */
#include "calibrate/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/fit.h"
#include "kernels/kernel_time.h"

enum { FITTED_MAX = 4000 };              /* of more samples only evenly spaced ones are fitted: that is enough */
enum { MATMUL_PARAMETERS = 8 };          /* before the factors of layouts */
enum { ATTENTION_PARAMETERS = 4 };       /* before the parameters of its blocks */

struct context {
    const struct sample_group *group;
    int sms;
    size_t stride;
    bool layouts[LAYOUT_COUNT];          /* layouts that have a factor: all that were sampled except the commonest */
    bool unaligned;                      /* unaligned products have a factor: they and aligned ones were sampled */
    bool around;                         /* some samples include the kernels around their products */
    bool whole_waves;                    /* attention of few shapes: one parameter of its blocks, not three */
    bool lasting;                        /* some took long enough to reach the power limit */
    bool cached;                         /* products are enough to tell what their runs find in the cache */
    bool odd;                            /* products with odd rows have a factor: they and other unaligned ones were */
};

/* A fit is less accurate than four digits. */
static double rounded(double value)
{
    char text[32];

    snprintf(text, sizeof text, "%.4g", value);
    return strtod(text, NULL);
}

static double fitted_seconds(enum sample_kind kind, const union fitted *fitted, int sms, const struct sample *sample)
{
    struct product product = sample_product(sample);
    struct heads heads = sample_heads(sample);

    if (kind == SAMPLE_MATMUL)
        return matmul_seconds(&fitted->matmul, sms, &product);
    if (kind == SAMPLE_ATTENTION)
        return attention_seconds(&fitted->attention, sms, (enum attention_direction)sample->which, &heads);
    return memory_seconds(&fitted->memory, sample->bytes);
}

double group_seconds(const struct sample_group *group, int sms, const struct sample *sample)
{
    return fitted_seconds(group->kind, &group->fitted, sms, sample);
}

static union fitted fitted_of(const struct context *context, const double *values)
{
    union fitted fitted = {0};

    if (context->group->kind == SAMPLE_MATMUL) {
        fitted.matmul = (struct matmul_fit){
            .rate = values[0], .intensity = values[1], .fill = values[2], .quantization = values[3],
            .bandwidth = values[4], .overlap = 1 + values[5], .overhead = values[6],
            .drain = values[7], .layout = {1, 1, 1},
            .unaligned = 1, .speed = 1,
        };
        values += MATMUL_PARAMETERS;
        for (int layout = 0; layout < LAYOUT_COUNT; layout++)
            if (context->layouts[layout])
                fitted.matmul.layout[layout] = *values++;
        if (context->unaligned)
            fitted.matmul.unaligned = *values++;
        if (context->odd)
            fitted.matmul.odd = *values++;
        if (context->lasting)
            fitted.matmul.repeated.lasting = *values++;
        if (context->cached) {
            fitted.matmul.repeated.cache = *values++;
            fitted.matmul.repeated.cache_speed = 1 + *values++;
        }
        if (context->around)
            fitted.matmul.quantize = *values;
    } else if (context->group->kind == SAMPLE_ATTENTION) {
        fitted.attention = (struct attention_fit){
            .rate = values[0], .score = values[1], .bandwidth = values[2], .overhead = values[3],
            .overlap = 1, .speed = 1,
        };
        if (context->whole_waves) {
            fitted.attention.quantization = values[ATTENTION_PARAMETERS];
        } else {
            fitted.attention.fill = values[ATTENTION_PARAMETERS];
            fitted.attention.tail = values[ATTENTION_PARAMETERS + 1];
            fitted.attention.overlap = 1 + values[ATTENTION_PARAMETERS + 2];
            fitted.attention.repeated.lasting = context->lasting ? values[ATTENTION_PARAMETERS + 3] : 0;
        }
    } else {
        fitted.memory = (struct memory_fit){.bandwidth = values[0], .overhead = values[1]};
    }
    return fitted;
}

/* Omits the cache where it changes no sample by a thousandth. */
static void drop_cache(const struct context *context, union fitted *fitted)
{
    const struct sample_list *samples = &context->group->fit;
    union fitted without = *fitted;

    without.matmul.repeated.cache = without.matmul.repeated.cache_speed = 0;
    if (!context->cached)
        return;
    for (size_t i = 0; i < samples->count; i++) {
        double with = fitted_seconds(SAMPLE_MATMUL, fitted, context->sms, samples->items[i]);

        if (fabs(with / fitted_seconds(SAMPLE_MATMUL, &without, context->sms, samples->items[i]) - 1) > 1e-3)
            return;
    }
    *fitted = without;
}

static const struct sample *sample_at(const struct context *context, size_t i)
{
    return context->group->fit.items[i * context->stride];
}

static double measured(const void *context, size_t i)
{
    return sample_at(context, i)->seconds;
}

static double predicted(const void *data, const double *values, size_t i)
{
    const struct context *context = data;
    union fitted fitted = fitted_of(context, values);

    return fitted_seconds(context->group->kind, &fitted, context->sms, sample_at(context, i));
}

/* The highest rate (amount / s) of the samples. */
static double highest(const struct sample_group *group, double (*amount)(const struct sample *))
{
    double most = 0;

    for (size_t i = 0; i < group->fit.count; i++)
        most = fmax(most, amount(group->fit.items[i]) / group->fit.items[i]->seconds);
    return most;
}

static double quickest(const struct sample_group *group)
{
    double least = INFINITY;

    for (size_t i = 0; i < group->fit.count; i++)
        least = fmin(least, group->fit.items[i]->seconds);
    return least;
}

/* Sets the values at which the search starts, from the highest rates and the shortest time of the samples. Returns the
 * number of parameters. */
static size_t start(const struct context *context, struct fit_parameter *parameters)
{
    const struct sample_group *group = context->group;
    double rate = highest(group, sample_flop), bandwidth = highest(group, sample_bytes), half = 0.5 * quickest(group);
    double beyond = context->around && group->which != BATCHES_GROUPED ? 4 : 1.25; /* quantising hides much */
    double most = beyond * bandwidth, least = 2 * half;
    const struct fit_parameter matmul[MATMUL_PARAMETERS] = {
        {rate, beyond * rate}, {20, 0}, {1e-6, 0}, {0.5, 1}, {bandwidth, most}, {2, 20}, {half, least}, {0.5, 1},
    };
    const struct fit_parameter attention[ATTENTION_PARAMETERS] = {
        {rate, 2 * rate}, {1e-11, 0}, {bandwidth, 8 * bandwidth},
        {fmin(half, 3e-6), fmin(least, 2e-5)},     /* launches; costs that grow with the tokens belong to traffic */
    };
    const struct fit_parameter blocks[] = {{5e-7, 0}, {0.5, 4}, {1, 20}}, waves = {0.5, 1};
    const struct fit_parameter memory[] = {{bandwidth, most}, {half, least}}, lasting = {0.85, 1};
    size_t count = COUNT(memory);

    if (group->kind == SAMPLE_ATTENTION) {
        memcpy(parameters, attention, sizeof attention);
        memcpy(parameters + COUNT(attention), context->whole_waves ? &waves : blocks,
               context->whole_waves ? sizeof waves : sizeof blocks);
        count = COUNT(attention) + (context->whole_waves ? 1 : COUNT(blocks));
        if (context->lasting && !context->whole_waves)
            parameters[count++] = lasting;
        return count;
    }
    if (group->kind == SAMPLE_MEMORY) {
        memcpy(parameters, memory, sizeof memory);
        return count;
    }
    memcpy(parameters, matmul, sizeof matmul);
    count = MATMUL_PARAMETERS;
    for (int layout = 0; layout < LAYOUT_COUNT; layout++)
        if (context->layouts[layout])
            parameters[count++] = (struct fit_parameter){1, 10};
    for (int factors = context->unaligned + context->odd; factors > 0; factors--)
        parameters[count++] = (struct fit_parameter){1, 100};
    if (context->lasting)
        parameters[count++] = lasting;
    if (context->cached) {
        parameters[count++] = (struct fit_parameter){50e6, 0};       /* L2 caches have 6 MB (V100) to 126 MB (B200) */
        parameters[count++] = (struct fit_parameter){2, 20};
    }
    if (context->around)
        parameters[count++] = (struct fit_parameter){0.5 * bandwidth, 0};
    return count;
}

/* The rate is the commonest layout's; the other layouts have factors. */
static void find_layouts(struct context *context)
{
    size_t counts[LAYOUT_COUNT] = {0}, most = 0;

    for (size_t i = 0; context->group->kind == SAMPLE_MATMUL && i < context->group->fit.count; i++)
        counts[context->group->fit.items[i]->layout]++;
    for (size_t layout = 1; layout < LAYOUT_COUNT; layout++)
        most = counts[layout] > counts[most] ? layout : most;
    for (size_t layout = 0; layout < LAYOUT_COUNT; layout++)
        context->layouts[layout] = counts[layout] && layout != most;
}

static void find_unaligned(struct context *context)
{
    const struct sample_group *group = context->group;
    size_t count = 0, odd = 0;

    for (size_t i = 0; group->kind == SAMPLE_MATMUL && i < group->fit.count; i++) {
        struct product product = sample_product(group->fit.items[i]);

        count += !product_aligned(&product);
        odd += product_odd(&product);
    }
    context->unaligned = count > 0 && count < group->fit.count;
    context->odd = context->unaligned && odd > 0 && odd < count;
}

/* Enough samples that last much longer than the power controller takes to act (kernel_time.h), and enough products to
 * tell the cache from everything else. */
static void find_repeated(struct context *context)
{
    const struct sample_group *group = context->group;
    const double long_enough = 5e-3;
    const size_t enough = 20, many = 640;
    bool grouped = group->kind == SAMPLE_MATMUL && group->which == BATCHES_GROUPED;
    size_t count = 0;

    for (size_t i = 0; group->kind != SAMPLE_MEMORY && i < group->fit.count; i++)
        count += group->fit.items[i]->seconds > long_enough;
    context->lasting = count >= enough && !grouped;
    context->cached = group->kind == SAMPLE_MATMUL && group->fit.count >= many;
}

static void find_around(struct context *context)
{
    const struct sample_list *fit = &context->group->fit;

    for (size_t i = 0; context->group->kind == SAMPLE_MATMUL && i < fit->count; i++)
        context->around |= fit->items[i]->which == FORM_QUANTIZED || fit->items[i]->which == FORM_EXPERTS;
}

static bool same_shape(const struct sample *a, const struct sample *b)
{
    return a->which == b->which && a->batch == b->batch && a->m == b->m && a->n == b->n && a->k == b->k &&
           a->bytes == b->bytes;
}

/* The number of different shapes, counted up to `enough`: a shape that is measured twice does not determine another
 * parameter. */
static size_t count_shapes(const struct sample_group *group, size_t enough)
{
    const struct sample *shapes[2 * FIT_MAX];
    size_t count = 0;

    for (size_t i = 0; i < group->fit.count && count < enough; i++) {
        size_t seen = 0;

        while (seen < count && !same_shape(shapes[seen], group->fit.items[i]))
            seen++;
        shapes[seen] = group->fit.items[i];
        count += seen == count;
    }
    return count;
}

int group_fit(struct sample_group *group, int sms)
{
    struct fit_parameter parameters[FIT_MAX];
    double values[FIT_MAX];
    struct context context = {.group = group, .sms = sms, .stride = 1 + group->fit.count / FITTED_MAX};
    struct fit_problem problem = {
        .parameters = parameters, .measured = measured, .predicted = predicted, .context = &context,
        .count = (group->fit.count + context.stride - 1) / context.stride,
    };

    if (!group->fit.count)
        return -1;
    find_layouts(&context);
    find_unaligned(&context);
    find_around(&context);
    find_repeated(&context);
    problem.nparameters = start(&context, parameters);
    if (group->kind == SAMPLE_ATTENTION && count_shapes(group, 2 * problem.nparameters) < 2 * problem.nparameters) {
        context.whole_waves = true;
        problem.nparameters = start(&context, parameters);
    }
    if (count_shapes(group, 2 * problem.nparameters) < 2 * problem.nparameters)
        return -1;
    fit_robust(&problem, values);
    for (size_t p = 0; p < problem.nparameters; p++)
        values[p] = rounded(values[p]);
    group->fitted = fitted_of(&context, values);
    if (group->kind == SAMPLE_MATMUL) {
        struct matmul_fit *fit = &group->fitted.matmul;

        fit->overlap = fmin(rounded(fit->overlap), 100);
        fit->repeated.cache_speed = rounded(fit->repeated.cache_speed);
        drop_cache(&context, &group->fitted);
    }
    if (group->kind == SAMPLE_ATTENTION)
        group->fitted.attention.overlap = rounded(group->fitted.attention.overlap);
    return 0;
}
