/* megatron_strategy: degrees, schedule, ZeRO. */
#include "megatron/megatron_internal.h"

#include <stdlib.h>

#include "config/field.h"
#include "launch/imported.h"

/* The model chunks of a rank. */
static long chunks_of(struct imported *m)
{
    long layers = megatron_layers(m), pipeline = imported_number(m, "pipeline-model-parallel-size"), stages = megatron_stages(m, NULL);
    long per = imported_number(m, "num-layers-per-virtual-pipeline-stage");
    long chunks = imported_number(m, "num-virtual-stages-per-pipeline-rank");

    if (stages)
        return stages / (pipeline > 0 ? pipeline : 1);    /* megatron_split checks that */
    if (pipeline <= 1) {
        if ((per || chunks > 1) && !m->launch->log)
            imported_warn(m, per ? "num-layers-per-virtual-pipeline-stage" : "num-virtual-stages-per-pipeline-rank",
                          "has no effect without a pipeline");
        return 1;
    }
    if (!per)
        return chunks > 1 ? chunks : 1;
    if (per < 1 || per > layers || layers % (pipeline * per))
        imported_refuse(m, "num-layers-per-virtual-pipeline-stage", "%ld layers are no multiple of %ld ranks x %ld layers",
                        layers, pipeline, per);
    return per > 0 && pipeline * per <= layers ? layers / (pipeline * per) : 1;
}

static void put_schedule(struct imported *m)
{
    long chunks = chunks_of(m), group = imported_number(m, "microbatch-group-size-per-virtual-pipeline-stage");

    if (imported_number(m, "pipeline-model-parallel-size") > 1)
        imported_put(m, "strategy.schedule", chunks > 1 ? "interleaved" : "1f1b");
    if (chunks > 1)
        imported_put(m, "strategy.chunks", "%ld", chunks);
    if (chunks > 1 && group)
        imported_put(m, "strategy.micro_batch_group", "%ld", group);
    megatron_split(m, chunks);
}

static void check_context(struct imported *m)
{
    static const char levels[] = "hierarchical-context-parallel-sizes";
    const char *type = imported_word(m, "cp-comm-type");

    if (imported_number(m, "context-parallel-size") <= 1)
        return;
    if (!word_in("p2p allgather all_gather a2a a2a+p2p", type))
        imported_refuse(m, "cp-comm-type", "%s is not simulated; expected p2p, allgather, a2a or a2a+p2p", type);
    else if (!strcmp(type, "a2a+p2p") && imported_number(m, levels) < 1)
        imported_refuse(m, levels, "a2a+p2p needs it: the GPUs that exchange heads, then the rings among these");
}

static void put_zero(struct imported *m, long data)
{
    static const char *const shards[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
    const char *said = imported_word(m, "data-parallel-sharding-strategy");
    long zero = imported_given(m, "use-distributed-optimizer") || megatron_owners(m) ? 1 : 0;
    long instances = imported_number(m, "num-distributed-optimizer-instances");
    bool config = imported_given(m, "deepspeed-config") || imported_given(m, "deepspeed");

    if (imported_given(m, "use-torch-fsdp2"))
        zero = 3;
    if (imported_given(m, "use-megatron-fsdp"))
        imported_warn(m, "use-megatron-fsdp", "its buckets and buffers are simulated as those of the distributed optimizer");
    if (imported_given(m, "use-megatron-fsdp"))
        for (long i = 0; i < (long)COUNT(shards); i++)
            zero = strcmp(said, shards[i]) ? zero : i;
    if (imported_given(m, "zero-stage"))
        zero = imported_number(m, "zero-stage");
    else if (config)
        imported_warn(m, imported_given(m, "deepspeed-config") ? "deepspeed-config" : "deepspeed", "DeepSpeed's file is not "
                      "read; ZeRO stage 0 is taken, and the formats of the arguments; give --set zero-stage=N");
    if (zero)
        imported_put(m, "strategy.zero", "%ld", zero);
    if (instances > 1 && data % instances)
        imported_refuse(m, "num-distributed-optimizer-instances", "%ld replicas do not divide into %ld parts", data, instances);
    else if (instances > 1 && zero)
        imported_put(m, "strategy.shard", "%ld", data / instances);
}

static void put_expert_tensor(struct imported *m)
{
    long own = imported_number(m, "expert-tensor-parallel-size"), tensor = imported_number(m, "tensor-model-parallel-size");

    if (!own || !imported_number(m, "num-experts"))
        return;
    if (own == 1 || own == tensor)
        imported_put(m, "strategy.expert_tensor", "%ld", own);
    else
        imported_refuse(m, "expert-tensor-parallel-size", "expected 1 or the tensor degree, %ld, found %ld", tensor, own);
}

void megatron_strategy(struct imported *m, long data)
{
    if (imported_given(m, "sequence-parallel"))
        imported_put(m, "strategy.sequence_parallel", "true");
    put_schedule(m);
    check_context(m);
    imported_rows(m, "context");
    put_zero(m, data);
    put_expert_tensor(m);
}
