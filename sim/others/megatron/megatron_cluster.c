/* megatron_cluster: how many GPUs, and what is left of them for data parallelism. */
#include "megatron/megatron_internal.h"

#include "base/base.h"
#include "launch/imported.h"

/* The least degree of data parallelism: expert groups are made of its replicas. */
static long long least_data(struct imported *m)
{
    long long expert = imported_number(m, "expert-model-parallel-size"), context = imported_number(m, "context-parallel-size");
    long long tensor = imported_number(m, "tensor-model-parallel-size"), own = imported_number(m, "expert-tensor-parallel-size");
    long long within = context * (own == 1 ? tensor : 1);

    return expert > 1 ? expert / gcd((int)expert, (int)within) : 1;
}

static bool degrees_are_sane(struct imported *m)
{
    static const char *const names[] = {"tensor-model-parallel-size", "pipeline-model-parallel-size",
                                        "context-parallel-size", "expert-model-parallel-size"};

    for (size_t i = 0; i < COUNT(names); i++)
        if (imported_number(m, names[i]) < 1 || imported_number(m, names[i]) > 65536)
            return imported_refuse(m, names[i], "expected a degree of 1 to 65536, found %lld", imported_number(m, names[i])),
                   false;
    return true;
}

long long megatron_cluster(struct imported *m)
{
    long long global = imported_number(m, "global-batch-size"), micro = imported_number(m, "micro-batch-size"), model, data;

    if (!degrees_are_sane(m))
        return 0;
    model = imported_number(m, "tensor-model-parallel-size") * imported_number(m, "context-parallel-size");
    model *= imported_number(m, "pipeline-model-parallel-size");
    data = imported_cluster(m, model, least_data(m), global % micro ? 0 : global / micro, imported_world(m));
    if (data && !global)
        imported_put(m, "batch.global", "%lld", micro * data);       /* training_config.py: micro x data */
    return data;
}
