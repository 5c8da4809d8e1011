/* A profile's predictions of samples, without a fit. */
#include "calibrate/calibrate.h"

#include "base/base.h"
#include "kernels/cost.h"
#include "kernels/kernel_time.h"
#include "kernels/profile.h"

/* A copy of products' records, as the samples that they were fitted to have them. */
static struct list unthrottled_products(struct arena *arena, const struct list *list)
{
    struct matmul_record *records = ARENA_ARRAY(arena, struct matmul_record, list->count);

    for (size_t i = 0; i < list->count; i++) {
        records[i] = ((const struct matmul_record *)list->items)[i];
        records[i].fit.speed = 1;
        records[i].fit.sustained = 0;
        records[i].fit.repeated = records[i].repeated;
    }
    return (struct list){.items = records, .count = list->count};
}

static struct profile unthrottled(struct arena *arena, const struct profile *profile)
{
    struct attention_record *attention = ARENA_ARRAY(arena, struct attention_record, profile->attention.count);
    struct profile burst = *profile;

    burst.matmul = unthrottled_products(arena, &profile->matmul);
    burst.grouped = unthrottled_products(arena, &profile->grouped);
    for (size_t i = 0; i < profile->attention.count; i++) {
        attention[i] = ((const struct attention_record *)profile->attention.items)[i];
        attention[i].fit.speed = 1;
        attention[i].fit.repeated = attention[i].repeated;
    }
    burst.attention.items = attention;
    return burst;
}

static struct kernel_seconds attention(const struct profile *profile, const struct sample *sample, int generation)
{
    enum attention_direction direction = (enum attention_direction)sample->which;
    bool backward = attention_is_backward(direction), causal = direction == attention_direction(backward, true);
    const struct kernel kernel = {
        .kind = KERNEL_ATTENTION,
        .phase = backward ? PHASE_BACKWARD_INPUT : PHASE_FORWARD,
        .dtype = sample->dtype,
        .batch = sample->batch,
        .m = sample->m,
        .n = sample->n,
        .k = sample->k,
        .causal = causal,
        .window = sample->window,
        .flop = (backward ? 10 : 4) * sample->batch * sample->m * sample->n * sample->k *
                attention_share(sample->n, causal, sample->window),
        .bytes = sample_bytes(sample),
    };

    return profile_kernel(profile, &kernel, (enum attention_generation)generation);
}

static struct kernel_seconds memory(const struct profile *profile, const struct sample *sample)
{
    const struct kernel kernel = {.kind = KERNEL_MEMORY,
                                  .dtype = sample->dtype,
                                  .bytes = sample->bytes,
                                  .class = (enum memory_class)sample->which};

    return profile_kernel(profile, &kernel, ATTENTION_NEWEST);
}

struct compared_costs *calibrate_check(struct arena *arena, const struct profile *profile, const struct samples *samples,
                                       size_t *count)
{
    struct compared_costs *rows = ARENA_ARRAY(arena, struct compared_costs, samples->count);
    const struct profile burst = unthrottled(arena, profile);

    *count = 0;
    for (size_t i = 0; i < samples->count; i++) {
        const struct sample *sample = &samples->items[i];
        struct compared_costs *row = &rows[*count];
        struct product product = sample_product(sample);

        if (sample->kind == SAMPLE_UNUSED)
            continue;
        row->sample = sample;
        if (sample->kind == SAMPLE_ATTENTION)
            row->predicted = attention(&burst, sample, samples->attention);
        else if (sample->kind == SAMPLE_MEMORY)
            row->predicted = memory(&burst, sample);
        else
            row->predicted = profile_product(sample->kind == SAMPLE_SUSTAINED ? profile : &burst, sample->dtype,
                                             &product);
        ++*count;
    }
    return rows;
}

const char *sample_name(const struct sample *sample)
{
    switch (sample->kind) {
    case SAMPLE_MATMUL:
        return product_form_names[sample->which];
    case SAMPLE_SUSTAINED:
        return "matmul-sustained";
    case SAMPLE_ATTENTION:
        return attention_direction_names[sample->which];
    case SAMPLE_MEMORY:
        return memory_class_names[sample->which];
    default:
        return "unused";
    }
}
