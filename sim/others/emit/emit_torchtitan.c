/* emit_torchtitan: the TOML of a torchtitan job, as v0.2.0 and later read it (torchtitan/config/job_config.py). */
#include "emit/emit_rows.h"

#include "jobs/jobs.h"

#include <stdlib.h>

#include "config/conf.h"
#include "launch/dialect.h"
#include "scenario/scenario.h"

#define PARALLEL "parallelism."

static void say_batch(struct emit *e)
{
    const struct batch *batch = &e->scenario->batch;
    bool pipeline = emit_number(e, "strategy.pipeline") > 1;
    int flush = batch->flush ? batch->flush : batch->micro_batches;

    emit_say(e, "training.local_batch_size", "%lld", pipeline ? (long long)batch->micro * flush : batch->micro);
    emit_say(e, "training.global_batch_size", "%d", batch->global);
}

/* Whether the stages have as many blocks as torchtitan gives them where the first and the last have that many less. */
static bool is_split(const struct node *split, long long layers, long long first, long long last)
{
    bool same = true;

    for (size_t i = 0; i < split->count; i++)
        same &= strtoll(split->items[i]->text, NULL, 10) == torchtitan_blocks(layers, first, last, (long long)split->count, (long long)i);
    return same;
}

/* The first and the last stage may have less blocks than the others; v0.2 takes no other numbers. Left out: as even as
 * possible. */
static void say_less(struct emit *e)
{
    const struct node *split = node_at(e->tree, "strategy.split");
    long long layers = emit_number(e, "model.transformer.layers"), less[2] = {0, 0};
    long long most = split && split->count ? layers / (long long)split->count + 1 : 0;

    for (long long first = most; split && first >= 0; first--)
        for (long long last = most; last >= 0; last--)
            if (is_split(split, layers, first, last))
                less[0] = first, less[1] = last;
    emit_say(e, PARALLEL "pipeline_parallel_first_stage_less_layers", "%lld", less[0]);
    emit_say(e, PARALLEL "pipeline_parallel_last_stage_less_layers", "%lld", less[1]);
}

static void say_pipeline(struct emit *e)
{
    const struct argument_row *row = dialect_row(e->dialect, PARALLEL "pipeline_parallel_schedule", false);
    const char *theirs = dialect_word(e->arena, row, emit_text(e, "strategy.schedule"), true);
    long long pipeline = emit_number(e, "strategy.pipeline"), chunks = emit_number(e, "strategy.chunks");
    long long layers = emit_number(e, "model.transformer.layers");

    if (pipeline <= 1)
        return;
    emit_say(e, PARALLEL "pipeline_parallel_degree", "%lld", pipeline);
    if (dialect_knows(row, theirs))
        emit_say_text(e, row->name, theirs);
    emit_say(e, PARALLEL "pipeline_parallel_microbatch_size", "%d", e->scenario->batch.micro);
    if (chunks > 2 && layers % (pipeline * chunks) == 0)
        emit_say(e, PARALLEL "pipeline_parallel_layers_per_stage", "%lld", layers / (pipeline * chunks));
    say_less(e);
}

static void say_data(struct emit *e)
{
    long long context = emit_number(e, "strategy.context"), replicas = scenario_replicas(e->scenario);
    long long shard = emit_number(e, "strategy.zero") == 3 ? emit_number(e, "strategy.shard") : 1;

    if (shard < 1 || shard > replicas)
        shard = emit_number(e, "strategy.zero") == 3 ? replicas : 1;
    emit_say(e, PARALLEL "data_parallel_replicate_degree", "%lld", shard > 1 ? replicas / shard : replicas / context);
    emit_say(e, PARALLEL "data_parallel_shard_degree", "%lld", shard > 1 ? shard / context : 1);
}

static void write_job(struct emit *e)
{
    e->said = NULL;
    emit_say_rows(e, "model");
    say_batch(e);
    emit_say_rows(e, "training");
    say_data(e);
    emit_say_rows(e, "parallelism");
    say_pipeline(e);
    emit_say_rows(e, "memory");
    emit_say_rows(e, "software");
    emit_say_rows(e, "plain");
    if (!emit_said(e, "model.name"))
        fputs("# model.name and model.flavor: your model, as torchtitan knows it\n", e->out);
    emit_print(e);
}

/* Stages of as many blocks each are what it has where nobody says a split. */
static int forget_even_split(struct emit *e, struct node *tree, struct error *err)
{
    const struct node *split = node_at(tree, "strategy.split");

    (void)err;
    if (!split || split->kind != NODE_SEQUENCE || !is_split(split, emit_number(e, "model.transformer.layers"), 0, 0) ||
        emit_number(e, "model.transformer.layers") % (long long)split->count != 0)
        return 0;
    emit_forget(e, node_at(tree, "strategy"), "split");
    return 0;
}

int emit_torchtitan_2026(const struct scenario *scenario, FILE *out, FILE *notes, struct error *err)
{
    return emit_own("torchtitan-2026", scenario, out, notes, err);
}

int emit_torchtitan(const struct scenario *scenario, FILE *out, FILE *notes, struct error *err)
{
    static const struct framework framework = {"torchtitan", "torchtitan", write_job, torchtitan_scenario, true, false,
                                               forget_even_split};

    /* which reads no TOML */
    if (scenario->software.like && !strcmp(scenario->software.like, "torchtitan-2026"))
        return emit_torchtitan_2026(scenario, out, notes, err);
    return emit_checked(&framework, scenario, out, notes, err);
}
