/* emit_deepspeed: DeepSpeed's JSON. The model and the number of GPUs are the training program's and the launcher's. */
#include "emit/emit_internal.h"

#include "jobs/jobs.h"

#include <stdlib.h>

#include "config/conf.h"
#include "scenario/scenario.h"

static void write_offload(struct emit *e)
{
    const char *offload = emit_text(e, "memory.offload");

    if (strstr(offload, "optimizer"))
        fputs(",\n    \"offload_optimizer\": {\"device\": \"cpu\"}", e->out);
    if (strstr(offload, "weights"))
        fputs(",\n    \"offload_param\": {\"device\": \"cpu\"}", e->out);
}

static void write_zero(struct emit *e)
{
    const struct parallelism *strategy = &e->scenario->parallelism;
    long stage = emit_number(e, "strategy.zero"), shard = emit_number(e, "strategy.shard");
    int bytes = emit_is(e, "memory.precision", "fp32") ? 4 : 2;

    fprintf(e->out, "  \"zero_optimization\": {\n    \"stage\": %ld,\n    \"overlap_comm\": %s", stage,
            emit_is(e, "strategy.data_parallel", "ddp") ? "true" : "false");
    if (stage == 3) {
        fprintf(e->out, ",\n    \"stage3_prefetch_bucket_size\": %.0f", strategy->prefetch);
        fprintf(e->out, ",\n    \"stage3_max_live_parameters\": %.0f", strategy->live_parameters);
        fprintf(e->out, ",\n    \"stage3_max_reuse_distance\": %.0f", strategy->reuse_distance);
        if (shard && shard < scenario_replicas(e->scenario))
            fprintf(e->out, ",\n    \"mics_shard_size\": %ld", shard);
    } else if (emit_differs(e, "software.bucket") || emit_differs(e, "software.first_bucket")) {
        fprintf(e->out, ",\n    \"reduce_bucket_size\": %.0f", strategy->bucket / bytes);
    }
    if (stage && stage < 3 && emit_differs(e, "software.flat_gradients"))
        fprintf(e->out, ",\n    \"contiguous_gradients\": %s", emit_text(e, "software.flat_gradients"));
    if (stage == 1 && emit_differs(e, "software.reduce_scatter"))
        fprintf(e->out, ",\n    \"reduce_scatter\": %s", emit_text(e, "software.reduce_scatter"));
    write_offload(e);
    fputs("\n  }", e->out);
}

static void write_rest(struct emit *e)
{
    long pipeline = emit_number(e, "strategy.pipeline"), tensor = emit_number(e, "strategy.tensor");
    long every = emit_number(e, "memory.recompute.every");

    if (pipeline > 1)
        fprintf(e->out,
                ",\n  \"pipeline\": {\"stages\": %ld, \"partition\": \"%s\", \"activation_checkpoint_interval\": %ld}",
                pipeline, emit_is(e, "software.balance", "weights") ? "parameters" : "uniform", every);
    else if (every > 0)
        fprintf(e->out, ",\n  \"pipeline\": {\"activation_checkpoint_interval\": %ld}", every);
    if (tensor > 1)
        fprintf(e->out, ",\n  \"tensor_parallel\": {\"autotp_size\": %ld}", tensor);
    if (emit_is(e, "software.gradients", "converted"))
        fputs(",\n  \"data_types\": {\"grad_accum_dtype\": \"fp32\"}", e->out);
    else if (emit_is(e, "software.gradients", "widened"))
        fputs(",\n  \"communication_data_type\": \"fp32\"", e->out);
    if (strstr(emit_text(e, "memory.offload"), "activations") || emit_differs(e, "software.partitioned_outputs"))
        fprintf(e->out, ",\n  \"activation_checkpointing\": {\"partition_activations\": %s, \"cpu_checkpointing\": %s}",
                emit_text(e, "software.partitioned_outputs"),
                strstr(emit_text(e, "memory.offload"), "activations") ? "true" : "false");
}

static void write_config(struct emit *e)
{
    static const struct { const char *ours, *theirs; } optimizers[] = {
        {"adam", "AdamW"}, {"lamb", "Lamb"}, {"sgd", "SGD"}, {"momentum", "Lion"}, {"muon", "Muon"},
    };
    const struct batch *batch = &e->scenario->batch;

    fprintf(e->out, "{\n  \"train_batch_size\": %d,\n  \"train_micro_batch_size_per_gpu\": %d,\n", batch->global,
            batch->micro);
    fprintf(e->out, "  \"gradient_accumulation_steps\": %d,\n", batch->micro_batches);
    fprintf(e->out, "  \"gradient_clipping\": %s,\n", emit_is(e, "software.clip_gradients", "true") ? "1.0" : "0.0");
    if (emit_is(e, "memory.precision", "mixed-bf16") || emit_is(e, "memory.precision", "mixed-fp16"))
        fprintf(e->out, "  \"%s\": {\"enabled\": true},\n", emit_text(e, "memory.precision") + strlen("mixed-"));
    for (size_t i = 0; i < COUNT(optimizers); i++)
        if (emit_is(e, "memory.optimizer", optimizers[i].ours))
            fprintf(e->out, "  \"optimizer\": {\"type\": \"%s\"},\n", optimizers[i].theirs);
    write_zero(e);
    write_rest(e);
    fputs("\n}\n", e->out);
}

int emit_deepspeed(const struct scenario *scenario, FILE *out, FILE *notes, struct error *err)
{
    static const struct framework framework = {"DeepSpeed", "deepspeed", write_config, deepspeed_scenario, true, false, NULL};

    return emit_checked(&framework, scenario, out, notes, err);
}
