/* megatron_strategy: degrees, schedule, ZeRO. */
#include "megatron/megatron_internal.h"

#include "launch/imported.h"

/* The model chunks of a rank. */
static long long chunks_of(struct imported *m)
{
    long long layers = megatron_layers(m), pipeline = imported_number(m, "pipeline-model-parallel-size"), stages = megatron_stages(m, NULL);
    long long per = imported_number(m, "num-layers-per-virtual-pipeline-stage");
    long long chunks = imported_number(m, "num-virtual-stages-per-pipeline-rank");

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
        imported_refuse(m, "num-layers-per-virtual-pipeline-stage", "%lld layers are no multiple of %lld ranks x %lld layers",
                        layers, pipeline, per);
    return per > 0 && pipeline * per <= layers ? layers / (pipeline * per) : 1;
}

/* 1F1B is what a scenario has that says no schedule: left out, as the launch leaves it out, a plan searches others too. */
static void put_schedule(struct imported *m)
{
    long long chunks = chunks_of(m);

    if (chunks > 1) {
        imported_put(m, "strategy.schedule", "interleaved");
        imported_put(m, "strategy.chunks", "%lld", chunks);
    }
    imported_rows(m, "group");
    megatron_split(m, chunks);
}

void megatron_strategy(struct imported *m)
{
    imported_rows(m, "begin");
    put_schedule(m);
    imported_rows(m, "context");
    imported_rows(m, "zero");
}
