/* emit_torchtitan: the TOML of a torchtitan job, as v0.2.0 and later read it (torchtitan/config/job_config.py). */
#include "emit/emit_internal.h"

#include "jobs/jobs.h"

#include <math.h>
#include <stdlib.h>

#include "config/conf.h"
#include "scenario/scenario.h"

/* Models of torchtitan that scenarios/models has. */
static const struct { const char *preset, *name, *flavor; } models[] = {
    {"llama3-8b", "llama3", "8B"}, {"llama3-70b", "llama3", "70B"}, {"llama3-405b", "llama3", "405B"},
    {"deepseek-v3", "deepseek_v3", "671B"},
};
static const struct { const char *ours, *theirs; } schedules[] = {
    {"1f1b", "1F1B"}, {"gpipe", "GPipe"}, {"interleaved", "Interleaved1F1B"}, {"looped-bfs", "LoopedBFS"},
    {"interleaved-zb", "InterleavedZeroBubble"}, {"zb-v", "ZBVZeroBubble"}, {"dualpipe-v", "DualPipeV"},
};

static void write_model(struct emit *e)
{
    const struct node *preset = node_at(e->scenario->node, "model.preset");
    bool fp8 = emit_is(e, "memory.precision", "mixed-fp8"), mx = emit_is(e, "memory.precision", "mixed-mxfp8");
    size_t i = 0;

    while (i < COUNT(models) && (!preset || !preset->text || strcmp(preset->text, models[i].preset)))
        i++;
    fputs("[model]\n", e->out);
    if (i < COUNT(models))
        fprintf(e->out, "name = \"%s\"\nflavor = \"%s\"\n", models[i].name, models[i].flavor);
    else
        fputs("# name and flavor: your model, as torchtitan knows it\n", e->out);
    if (fp8 || mx)
        fprintf(e->out, "converters = [\"quantize.linear.%s\"]\n", fp8 ? "float8" : "mx");
}

static void write_training(struct emit *e)
{
    const struct batch *batch = &e->scenario->batch;
    bool pipeline = emit_number(e, "strategy.pipeline") > 1;
    int flush = batch->flush ? batch->flush : batch->micro_batches;

    fprintf(e->out, "\n[training]\nlocal_batch_size = %ld\n", pipeline ? (long)batch->micro * flush : batch->micro);
    fprintf(e->out, "global_batch_size = %d\nseq_len = %s\n", batch->global,
            emit_text(e, "model.transformer.sequence"));
    if (emit_is(e, "software.clip_gradients", "false"))
        fputs("max_norm = 0\n", e->out);
    if (emit_is(e, "memory.precision", "fp32"))
        fputs("mixed_precision_param = \"float32\"\n", e->out);
    if (emit_is(e, "software.master", "none") && emit_is(e, "memory.optimizer", "adam-half"))
        fputs("dtype = \"bfloat16\"\n", e->out);
    if (emit_is(e, "software.gradients", "half"))
        fputs("mixed_precision_reduce = \"bfloat16\"\n", e->out);
    if (strstr(emit_text(e, "memory.offload"), "weights"))
        fputs("enable_cpu_offload = true\n", e->out);
    if (emit_is(e, "software.fused_optimizer", "false"))
        fputs("\n[optimizer]\nimplementation = \"foreach\"\n", e->out);
    if (emit_is(e, "software.fused_kernels", "true"))
        fputs("\n[compile]\nenable = true\n", e->out);
}

/* Whether the stages have as many blocks as torchtitan gives them where the first and the last have that many less
 * (torchtitan/distributed/pipeline_parallel.py, generate_llm_fqn_per_model_part). */
static bool is_split(const struct node *split, long layers, long first, long last)
{
    long stages = (long)split->count, all = layers + first + last;
    bool same = true;

    for (long i = 0; i < stages; i++)
        same &= strtol(split->items[i]->text, NULL, 10) == all / stages + (i < all % stages) - (i == 0 ? first : 0) -
                                                           (i == stages - 1 ? last : 0);
    return same;
}

/* The first and the last stage may have less blocks than the others; v0.2 takes no other numbers. Left out: as even as
 * possible. */
static void write_less(struct emit *e)
{
    const struct node *split = node_at(e->tree, "strategy.split");
    long layers = emit_number(e, "model.transformer.layers"), less[2] = {0, 0};
    long most = split && split->count ? layers / (long)split->count + 1 : 0;

    for (long first = most; split && first >= 0; first--)
        for (long last = most; last >= 0; last--)
            if (is_split(split, layers, first, last))
                less[0] = first, less[1] = last;
    fprintf(e->out, "pipeline_parallel_first_stage_less_layers = %ld\npipeline_parallel_last_stage_less_layers = %ld\n",
            less[0], less[1]);
}

static void write_pipeline(struct emit *e)
{
    const char *schedule = emit_text(e, "strategy.schedule");
    long pipeline = emit_number(e, "strategy.pipeline"), chunks = emit_number(e, "strategy.chunks");
    long layers = emit_number(e, "model.transformer.layers");

    if (pipeline <= 1)
        return;
    fprintf(e->out, "pipeline_parallel_degree = %ld\n", pipeline);
    for (size_t i = 0; i < COUNT(schedules); i++)
        if (!strcmp(schedule, schedules[i].ours))
            fprintf(e->out, "pipeline_parallel_schedule = \"%s\"\n", schedules[i].theirs);
    fprintf(e->out, "pipeline_parallel_microbatch_size = %d\n", e->scenario->batch.micro);
    if (chunks > 2 && layers % (pipeline * chunks) == 0)
        fprintf(e->out, "pipeline_parallel_layers_per_stage = %ld\n", layers / (pipeline * chunks));
    write_less(e);
}

static void write_parallelism(struct emit *e)
{
    long context = emit_number(e, "strategy.context"), replicas = scenario_replicas(e->scenario);
    long shard = emit_number(e, "strategy.zero") == 3 ? emit_number(e, "strategy.shard") : 1;

    if (shard < 1 || shard > replicas)
        shard = emit_number(e, "strategy.zero") == 3 ? replicas : 1;
    fprintf(e->out, "\n[parallelism]\ndata_parallel_replicate_degree = %ld\n",
            shard > 1 ? replicas / shard : replicas / context);
    fprintf(e->out, "data_parallel_shard_degree = %ld\n", shard > 1 ? shard / context : 1);
    if (emit_differs(e, "software.reshard_after_forward"))
        fprintf(e->out, "fsdp_reshard_after_forward = \"%s\"\n",
                emit_is(e, "software.reshard_after_forward", "true") ? "always" : "never");
    if (emit_number(e, "strategy.tensor") > 1)
        fprintf(e->out, "tensor_parallel_degree = %ld\n", emit_number(e, "strategy.tensor"));
    if (emit_is(e, "software.overlap_products", "true"))
        fputs("enable_async_tensor_parallel = true\n", e->out);
    if (context > 1)
        fprintf(e->out, "context_parallel_degree = %ld\ncontext_parallel_rotate_method = \"%s\"\n", context,
                emit_is(e, "strategy.context_attention", "all-gather") ? "allgather" : "alltoall");
    if (emit_number(e, "strategy.expert") > 1)
        fprintf(e->out, "expert_parallel_degree = %ld\n", emit_number(e, "strategy.expert"));
    if (emit_number(e, "strategy.expert") > 1 && emit_is(e, "strategy.expert_tensor", "1"))
        fputs("expert_tensor_parallel_degree = 1\n", e->out);
    write_pipeline(e);
}

static void write_recompute(struct emit *e)
{
    const char *mode = emit_text(e, "memory.recompute.mode");
    double share = strtod(emit_text(e, "memory.recompute.share"), NULL);

    if (!*mode)
        mode = emit_text(e, "memory.recompute");
    fputs("\n[activation_checkpoint]\n", e->out);
    if (!strcmp(mode, "operators"))
        fputs("mode = \"selective\"\nselective_ac_option = \"op\"\n", e->out);
    else if (!strcmp(mode, "full") && share > 0 && share < 1)
        fprintf(e->out, "mode = \"selective\"\nselective_ac_option = \"%.0f\"\n", round(1 / share));
    else
        fprintf(e->out, "mode = \"%s\"\n", !strcmp(mode, "full") ? "full" : "none");
}

static void write_job(struct emit *e)
{
    write_model(e);
    write_training(e);
    write_parallelism(e);
    write_recompute(e);
}

/* Stages of as many blocks each are what it has where nobody says a split. */
static int forget_even_split(struct emit *e, struct node *tree, struct error *err)
{
    struct node *strategy = node_at(tree, "strategy"), *split = node_at(tree, "strategy.split");
    size_t left = 0;

    (void)err;
    if (!split || split->kind != NODE_SEQUENCE || !is_split(split, emit_number(e, "model.transformer.layers"), 0, 0) ||
        emit_number(e, "model.transformer.layers") % (long)split->count != 0)
        return 0;
    for (size_t i = 0; i < strategy->count; i++)
        if (strategy->items[i] != split) {
            strategy->keys[left] = strategy->keys[i];
            strategy->items[left++] = strategy->items[i];
        }
    strategy->count = left;
    return 0;
}

int emit_torchtitan(const struct scenario *scenario, FILE *out, FILE *notes, struct error *err)
{
    static const struct framework framework = {"torchtitan", "torchtitan", write_job, torchtitan_scenario, true, false,
                                               forget_even_split};

    /* which reads no TOML */
    if (scenario->software.like && !strcmp(scenario->software.like, "torchtitan-2026"))
        return emit_own("torchtitan-2026", scenario, out, notes, err);
    return emit_checked(&framework, scenario, out, notes, err);
}
