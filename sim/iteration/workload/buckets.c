#include "workload/buckets.h"

#include "base/base.h"
#include "layout/layout.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/compression.h"

/* The number of ranks that hold the same parameters of a class of the stage. */
static int count_holders(const struct workload *workload, int stage, enum parameter_class class)
{
    const struct process_groups *groups =
        scenario_groups(workload->scenario, plan_rank(&workload->plan, 0, stage, 0, NULL));

    return groups->of[groups->holds[class]].size * plan_holders(&workload->plan, stage);
}

/* B of a part of a layer's weights, as replicas gather them after an update. */
static double slice_gathered(const struct parameter_bytes *each, const struct slice *slice, double parameters)
{
    return parameters * (slice->block ? each->gathered : each->weights);
}

/* A bucket to which tensors are added: the sizes of its gradients, and B of their weights. */
struct open_bucket { struct bucket_sizes sizes; double weights; };

/* Adds a bucket of these sizes, unless it is empty; its gradients are ready after `slice`. Sets the sizes to 0. */
static void close_bucket(const struct workload *workload, int stage, enum parameter_class class, struct open_bucket *open,
                         size_t slice, struct buckets *buckets)
{
    unsigned kinds = layout_kinds(&workload->scenario->layout, plan_rank(&workload->plan, 0, stage, 0, NULL));

    if (open->sizes.values > 0)
        *GROW(buckets) = (struct bucket){
            .sum = compress_bucket(workload->scenario, kinds, &open->sizes, count_holders(workload, stage, class)),
            .values = open->sizes.values, .weights = open->weights, .slice = slice, .class = class,
        };
    *open = (struct open_bucket){0};
}

/* PyTorch DDP (Li et al. 2020, section 3.2.3 and 4.2) goes through the tensors in the order in which their gradients
 * become ready, and closes a bucket when it has reached its limit: 1 MiB the first, 25 MiB the others. Each class of
 * gradients has its own sums, and so its own buckets (Megatron-LM). A class that one rank alone holds has none. */
struct buckets buckets_of(const struct workload *workload, int index)
{
    const struct scenario *scenario = workload->scenario;
    const struct stage *stage = &workload->stages[index];
    const struct recipe *recipe = &scenario->recipe;
    struct parameter_bytes each = scenario_parameter_bytes(scenario);
    struct open_bucket open[PARAMETER_CLASS_COUNT] = {0};
    struct buckets buckets = {0};

    for (size_t i = 0; i < stage->nslices; i++) {
        const struct slice *slice = &stage->slices[i];

        for (size_t k = slice->ntensors; k-- > 0;) {
            enum parameter_class class = slice_class(slice, k);
            struct bucket_sizes *sizes = &open[class].sizes;

            if (count_holders(workload, index, class) == 1)
                continue;
            bucket_sizes_add(sizes, scenario, slice->tensors[k], slice->rows ? slice->rows[k] : 0);
            open[class].weights += slice_gathered(&each, slice, slice->tensors[k]);
            if (recipe->gradients.unit == SUM_TENSORS ||
                sizes->values * each.sent >= (buckets.count ? recipe->gradients.bucket : recipe->gradients.first_bucket))
                close_bucket(workload, index, class, &open[class], i, &buckets);
        }
    }
    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++)
        close_bucket(workload, index, class, &open[class], stage->nslices - 1, &buckets);
    return buckets;
}

double buckets_weights(const struct workload *workload, int stage, enum parameter_class class)
{
    const struct stage *costs = &workload->stages[stage];
    struct parameter_bytes each = scenario_parameter_bytes(workload->scenario);
    double bytes = 0;

    for (size_t i = 0; i < costs->nslices; i++)
        bytes += slice_gathered(&each, &costs->slices[i], costs->slices[i].trained.of[class]);
    return bytes;
}
