#include "auto/auto_internal.h"

#include "base/cache.h"
#include "config/field.h"
#include "hardware/cluster.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

struct cache_key auto_key(const struct scenario *scenario)
{
    struct cache_key key = {0};

    field_key(&scenario_table, scenario, &key);
    cluster_key(&scenario->cluster, &key);
    cache_key_add(&key, (bool[]){scenario->layout.gpus, scenario->batch.samples, scenario->parallelism.layers}, 3 * sizeof(bool));
    if (scenario->layout.gpus)
        cache_key_add(&key, scenario->layout.gpus, (size_t)scenario->layout.seats * sizeof *scenario->layout.gpus);
    if (scenario->batch.samples)
        cache_key_add(&key, scenario->batch.samples, (size_t)scenario->parallelism.data * sizeof *scenario->batch.samples);
    if (scenario->parallelism.layers)
        cache_key_add(&key, scenario->parallelism.layers,
                      (size_t)plan_virtual_stages(&scenario->plan) * sizeof *scenario->parallelism.layers);
    return key;
}
