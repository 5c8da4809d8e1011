/* Exchanges over replicas, before any operation is written.
 *
 * Reads stages, the recipe, compression, process groups.
 * Adds the buckets of gradients that are summed together, how much these sums slow down the backward that they overlap
 * with, and whether all members of all exchanges end them together. */
#include "lower/exchange_internal.h"

/* The number of ranks that hold the same parameters of a class of the stage. */
static int count_holders(const struct lowering *lowering, int stage, enum parameter_class class)
{
    const struct process_groups *groups = &lowering->scenario->groups;

    return groups->of[groups->holds[class]].size * plan_holders(lowering->plan, stage);
}

/* B of so many of a layer's weights, as replicas gather them after an update. */
static double slice_gathered(const struct scenario *scenario, const struct slice *slice, double parameters)
{
    struct parameter_bytes each = scenario_parameter_bytes(scenario);

    return parameters * (slice->block ? each.gathered : each.weights);
}

/* A bucket to which tensors are added: the sizes of its gradients, and B of their weights. */
struct open_bucket { struct bucket_sizes sizes; double weights; };

/* Adds a bucket of these sizes, unless it is empty; its gradients are ready after `slice`. Sets the sizes to 0. */
static void close_bucket(struct lowering *lowering, int stage, enum parameter_class class, struct open_bucket *open,
                         size_t slice)
{
    unsigned kinds = layout_kinds(&lowering->scenario->layout, plan_rank(lowering->plan, 0, stage, 0, NULL));

    if (open->sizes.values > 0)
        *GROW(&lowering->sums.buckets[stage]) = (struct bucket){
            .sum = compress_bucket(lowering->scenario, kinds, &open->sizes, count_holders(lowering, stage, class)),
            .values = open->sizes.values, .weights = open->weights, .slice = slice, .class = class,
        };
    *open = (struct open_bucket){0};
}

/* PyTorch DDP (Li et al. 2020, section 3.2.3 and 4.2) goes through the tensors in the order in which their gradients
 * become ready, and closes a bucket when it has reached its limit: 1 MiB the first, 25 MiB the others. Each class of
 * gradients has its own sums, and so its own buckets (Megatron-LM). A class that one rank alone holds has none. */
static void stage_buckets(struct lowering *lowering, int index)
{
    const struct scenario *scenario = lowering->scenario;
    const struct stage *stage = &lowering->workload->stages[index];
    const struct recipe *recipe = &scenario->recipe;
    double each = scenario_parameter_bytes(scenario).sent;
    struct open_bucket open[PARAMETER_CLASS_COUNT] = {0};

    for (size_t i = 0; i < stage->nslices; i++) {
        const struct slice *slice = &stage->slices[i];

        for (size_t k = slice->ntensors; k-- > 0;) {
            enum parameter_class class = slice_class(slice, k);
            struct bucket_sizes *sizes = &open[class].sizes;

            if (count_holders(lowering, index, class) == 1)
                continue;
            bucket_sizes_add(sizes, scenario, slice->tensors[k], slice->rows ? slice->rows[k] : 0);
            open[class].weights += slice_gathered(scenario, slice, slice->tensors[k]);
            if (recipe->gradients.unit == SUM_TENSORS ||
                sizes->values * each >= (lowering->sums.buckets[index].count ? recipe->gradients.bucket
                                                                       : recipe->gradients.first_bucket))
                close_bucket(lowering, index, class, &open[class], i);
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

    for (size_t i = 0; i < COUNT(sums); i++)
        if (sums[i].bytes > 0 && contention_possible(&scenario->cluster))
            exchange_overlapped(lowering, scenario->groups.sums[bucket->class], stage, 0, sums[i], &bucket->overlapped);
}

void buckets_build(struct lowering *lowering)
{
    enum sum_unit unit = lowering->scenario->recipe.gradients.unit;

    for (int s = 0; s < plan_virtual_stages(lowering->plan); s++)
        if (unit == SUM_BUCKETS || unit == SUM_TENSORS || unit == SUM_STAGES)
            stage_buckets(lowering, s);
}

void buckets_contend(struct lowering *lowering)
{
    bool overlap = lowering->scenario->recipe.gradients.unit == SUM_BUCKETS;

    for (int s = 0; s < plan_virtual_stages(lowering->plan) && overlap; s++)
        for (size_t b = 0; b < lowering->sums.buckets[s].count; b++)
            bucket_contention(lowering, s, &lowering->sums.buckets[s].items[b]);
}

/* Clears `together` if members of one of the stage's groups do not end the exchange together. */
static void end_together(struct lowering *lowering, enum group_kind kind, int stage, struct emission exchange,
                         bool *together)
{
    struct members *members = members_of(lowering, kind, stage);

    for (int first = 0; first < members->all && members->size > 1 && exchange.bytes > 0; first += members->size)
        *together &= members_measure(lowering, members, first, &exchange).alike;
}

/* The same of all exchanges of a bucket, and of its weights where these are gathered bucket by bucket. */
static void bucket_together(struct lowering *lowering, int stage, const struct bucket *bucket, bool *together)
{
    const struct scenario *scenario = lowering->scenario;
    const struct recipe *recipe = &scenario->recipe;
    enum group_kind kind = scenario->groups.sums[bucket->class], kinds[] = {kind, GROUP_DATA, GROUP_DATA};
    double share = bucket->sum.legs[0].bytes / recipe->divided[HELD_STATES][bucket->class];

    for (int i = 0; i < LEGS_MAX; i++) {
        const struct leg *leg = &bucket->sum.legs[i];

        end_together(lowering, kinds[i], stage, (struct emission){scenario_all_reduce(scenario), WHAT_SYNC, leg->plain},
                     together);
        end_together(lowering, kinds[i], stage, (struct emission){leg->collective, WHAT_SYNC, leg->bytes}, together);
    }
    if (recipe->gradients.across)
        end_together(lowering, GROUP_SAME_SHARE, stage, (struct emission){recipe->gradients.across, WHAT_SYNC, share},
                     together);
    if (recipe->weights.when == WEIGHTS_NEXT)
        end_together(lowering, kind, stage,
                     (struct emission){recipe->weights.collective, WHAT_WEIGHTS, bucket->weights}, together);
}

double stage_weights(const struct lowering *lowering, int stage, enum parameter_class class)
{
    const struct stage *costs = &lowering->workload->stages[stage];
    double bytes = 0;

    for (size_t i = 0; i < costs->nslices; i++)
        bytes += slice_gathered(lowering->scenario, &costs->slices[i], costs->slices[i].trained.of[class]);
    return bytes;
}

bool exchanges_together(struct lowering *lowering)
{
    const struct scenario *scenario = lowering->scenario;
    const struct collective *gather = scenario->recipe.weights.collective;
    bool together = true;

    for (int stage = 0; stage < plan_virtual_stages(lowering->plan); stage++) {
        for (size_t b = 0; b < lowering->sums.buckets[stage].count; b++)
            bucket_together(lowering, stage, &lowering->sums.buckets[stage].items[b], &together);
        for (int class = 0; class < PARAMETER_CLASS_COUNT && scenario->recipe.weights.when == WEIGHTS_UPDATED &&
             is_shared(lowering, stage); class++)
            end_together(lowering, scenario->groups.sums[class], stage, (struct emission){
                gather, WHAT_WEIGHTS, stage_weights(lowering, stage, (enum parameter_class)class),
            }, &together);
    }
    return together;
}
