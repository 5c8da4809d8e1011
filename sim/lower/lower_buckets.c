/* Buckets of gradients: which tensors are summed together, and how their sums slow down the overlapped backward. */
#include "lower/lower_internal.h"

/* The number of ranks that hold the same parameters of a class of the stage. */
static int count_holders(const struct lowering *lowering, int stage, enum parameter_class class)
{
    const struct process_groups *groups = &lowering->scenario->groups;

    return groups->of[groups->holds[class]].size * plan_holders(lowering->plan, stage);
}

/* Adds a bucket of these sizes, unless it is empty; its gradients are ready after `slice`. Sets the sizes to 0. */
static void close_bucket(struct lowering *lowering, int stage, enum parameter_class class, struct bucket_sizes *sizes,
                         size_t slice)
{
    if (sizes->values > 0)
        *GROW(&lowering->buckets[stage]) = (struct bucket){
            .sum = compress(lowering->scenario, sizes, count_holders(lowering, stage, class)),
            .values = sizes->values, .slice = slice, .class = class,
        };
    *sizes = (struct bucket_sizes){0};
}

/* PyTorch DDP (Li et al. 2020, section 3.2.3 and 4.2) goes through the tensors in the order in which their gradients
 * become ready, and closes a bucket when it has reached its limit: 1 MiB the first, 25 MiB the others. Each class of
 * gradients has its own sums, and so its own buckets (Megatron-LM). A class that one rank alone holds has none. */
static void stage_buckets(struct lowering *lowering, int index)
{
    const struct scenario *scenario = lowering->scenario;
    const struct stage *stage = &lowering->stages[index];
    const struct recipe *recipe = &scenario->recipe;
    double each = scenario_parameter_bytes(scenario).sent;
    struct bucket_sizes open[PARAMETER_CLASS_COUNT] = {0};

    for (size_t i = 0; i < stage->nslices; i++) {
        const struct slice *slice = &stage->slices[i];

        for (size_t k = slice->ntensors; k-- > 0;) {
            enum parameter_class class = slice_class(slice, k);
            struct bucket_sizes *sizes = &open[class];

            if (count_holders(lowering, index, class) == 1)
                continue;
            bucket_sizes_add(sizes, scenario, slice->tensors[k], slice->rows ? slice->rows[k] : 0);
            if (recipe->gradients.unit == SUM_TENSORS ||
                sizes->values * each >= (lowering->buckets[index].count ? recipe->gradients.bucket
                                                                       : recipe->gradients.first_bucket))
                close_bucket(lowering, index, class, sizes, i);
        }
    }
    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++)
        close_bucket(lowering, index, class, &open[class], stage->nslices - 1);
}

/* DDP's sums overlap with the rest of the backward: measures them for the first replica's group. Without buckets the
 * backward has ended. */
static void bucket_contention(struct lowering *lowering, int stage, struct bucket *bucket)
{
    const struct scenario *scenario = lowering->scenario;
    const struct leg *leg = &bucket->sum.legs[0];
    const struct emission sums[] = {
        {leg->collective, WHAT_SYNC, leg->bytes}, {scenario_all_reduce(scenario), WHAT_SYNC, leg->plain},
    };
    struct measured measured;

    for (size_t i = 0; i < COUNT(sums); i++)
        if (sums[i].bytes > 0 && contention_possible(&scenario->cluster) &&
            exchange_overlapped(lowering, scenario->groups.sums[bucket->class], stage, 0, sums[i], &measured,
                                &bucket->overlapped))
            lowering->failed = true;
}

void bucket_ready(struct lowering *lowering, struct place here, const struct bucket *bucket, uint32_t id)
{
    struct contention *contention = &lowering->overlapped[here.prank];

    *GROW(&here.chunk_state->ready) = id;
    contention->collective += bucket->overlapped.collective;
    contention->kept += bucket->overlapped.kept;
}

void buckets_build(struct lowering *lowering)
{
    enum sum_unit unit = lowering->scenario->recipe.gradients.unit;
    bool buckets = unit == SUM_BUCKETS || unit == SUM_TENSORS || unit == SUM_STAGES;
    bool any = !buckets && scenario_replicas(lowering->scenario) > 1;

    for (int s = 0; s < plan_virtual_stages(lowering->plan) && buckets; s++) {
        stage_buckets(lowering, s);
        any |= lowering->buckets[s].count > 0;
        for (size_t b = 0; unit == SUM_BUCKETS && b < lowering->buckets[s].count; b++)
            bucket_contention(lowering, s, &lowering->buckets[s].items[b]);
    }
    if (any)
        make_collective_lanes(lowering);
}
