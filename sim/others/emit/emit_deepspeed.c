/* emit_deepspeed: DeepSpeed's JSON. The model and the number of GPUs are the training program's and the launcher's. */
#include "emit/emit_rows.h"

#include "jobs/jobs.h"
#include "launch/dialect.h"
#include "scenario/scenario.h"

#define ZERO "zero_optimization."

static void say_batch(struct emit *e)
{
    const struct batch *batch = &e->scenario->batch;

    emit_say(e, "train_batch_size", "%d", batch->global);
    emit_say(e, "train_micro_batch_size_per_gpu", "%d", batch->micro);
    emit_say(e, "gradient_accumulation_steps", "%d", batch->micro_batches);
}

static void say_optimizer(struct emit *e)
{
    const struct argument_row *row = dialect_row(e->dialect, "optimizer.type", false);
    const char *theirs = dialect_word(e->arena, row, emit_text(e, "memory.optimizer"), true);

    if (dialect_knows(row, theirs))
        emit_say_text(e, row->name, theirs);
}

/* Sizes, which scenarios may write with units. */
static void say_sizes(struct emit *e)
{
    const struct parallelism *strategy = &e->scenario->parallelism;

    if (emit_number(e, "strategy.zero") == 3) {
        emit_say(e, ZERO "stage3_prefetch_bucket_size", "%.0f", strategy->prefetch);
        emit_say(e, ZERO "stage3_max_live_parameters", "%.0f", strategy->live_parameters);
        emit_say(e, ZERO "stage3_max_reuse_distance", "%.0f", strategy->reuse_distance);
    } else if (emit_differs(e, "software.bucket") || emit_differs(e, "software.first_bucket")) {
        emit_say(e, ZERO "reduce_bucket_size", "%.0f", strategy->bucket / (emit_is(e, "memory.precision", "fp32") ? 4 : 2));
    }
}

static void write_config(struct emit *e)
{
    static const char *const parts[] = {"plain", "zero", "buckets", "offload", "degrees", "recompute", "gradients"};

    e->said = NULL;
    say_batch(e);
    emit_say_rows(e, "switches");
    emit_say_rows(e, "formats");
    say_optimizer(e);
    for (size_t i = 0; i < COUNT(parts); i++)
        emit_say_rows(e, parts[i]);
    say_sizes(e);
    emit_print(e);
}

int emit_deepspeed(const struct scenario *scenario, FILE *out, FILE *notes, struct error *err)
{
    static const struct framework framework = {"DeepSpeed", "deepspeed", write_config, deepspeed_scenario, true, false, NULL};

    return emit_checked(&framework, scenario, out, notes, err);
}
