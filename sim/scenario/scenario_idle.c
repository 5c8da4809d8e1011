/* Options that say nothing beside others: refused, since whoever gives one believes that it changes something. Accepted
 * are defaults, which resolved scenarios repeat, and what only a degree of 1, ZeRO's stage or the format of products
 * makes idle: sweeps over these keep their base. */
#include "scenario/scenario_internal.h"

#include <math.h>


struct idle {
    const struct node *in;       /* the mapping that has the key */
    const char *section, *key;
    bool said, means;            /* the option is not its default; it changes something */
    const char *why;             /* where it does not */
};

static int refuse(const struct idle *options, size_t count, struct error *err)
{
    int rc = 0;

    for (size_t i = 0; i < count; i++)
        if (options[i].said && !options[i].means)
            rc = error_add(err, EXIT_INPUT, node_loc(options[i].in, options[i].key),
                           "%s: %s: has no effect here: %s; or leave it out", options[i].section, options[i].key,
                           options[i].why);
    return rc;
}

static int check_schedule(const struct scenario *scenario, struct error *err)
{
    const struct parallelism *spec = &scenario->parallelism;
    const struct idle options[] = {
        {spec->node, "strategy", "server", spec->server != 0, spec->data_parallel == DATA_PARALLEL_SERVER,
         "there is no server; expected 'data_parallel: parameter-server' beside it"},
        {spec->node, "strategy", "flatten", !spec->flatten, spec->data_parallel == DATA_PARALLEL_SYNCHRONOUS,
         "DDP has buckets, and others sum all at once; expected 'data_parallel: synchronous' beside it"},
        {spec->node, "strategy", "partitioned_outputs", spec->partitioned_outputs,
         spec->scatter_gather && !spec->sequence_parallel,
         spec->sequence_parallel ? "under sequence_parallel nobody needs a whole boundary; expected that to be false"
                                 : "without scatter_gather boundaries are sent whole; expected that to be true"},
        {spec->node, "strategy", "overlap_products", spec->overlap_products, spec->sequence_parallel,
         "only sequence_parallel gathers and scatters rows; expected that to be true"},
    };

    return refuse(options, COUNT(options), err);
}

static int check_memory(const struct scenario *scenario, struct error *err)
{
    const struct memory_spec *memory = &scenario->memory;
    const struct transformer *shape = scenario->model.transformer;
    bool mixed = memory->precision.format >= PRECISION_MIXED_FP16, head = shape && shape->head != HEAD_NONE;
    const char *no_head = shape ? "the model has no head, and so no logits; expected a transformer with one"
                                : "this model says nothing of its logits; expected a transformer";
    const struct idle options[] = {
        {memory->node, "memory", "gradients", memory->precision.gradients != GRADIENTS_HALF, mixed,
         "without mixed precision all gradients are fp32; expected 'precision: mixed-bf16' or the like beside it"},
        {memory->node, "memory", "master", memory->precision.master != MASTER_FP32, mixed,
         "without mixed precision weights are fp32 themselves; expected 'precision: mixed-bf16' or the like beside it"},
        {memory->node, "memory", "recompute", memory->recompute.mode == RECOMPUTE_SELECTIVE, shape,
         "selective recomputes the core of attention, which this model does not tell of; expected a transformer, or "
         "'recompute: full'"},
        {memory->node, "memory", "activations", memory->activations != ACTIVATIONS_KORTHIKANTI, shape,
         "this model says itself what it keeps; expected a transformer"},
        {memory->node, "memory", "cross_entropy", memory->cross_entropy != CROSS_ENTROPY_FP32, head, no_head},
        {memory->node, "memory", "logits", memory->logits != LOGITS_FREED, head, no_head},
        {memory->node, "memory", "fused_accumulation", memory->precision.fused_accumulation,
         !model_is_timed(&scenario->model),
         "this model's times are given whole; expected a transformer, or layers by their FLOPs"},
        {memory->node, "memory", "bucket_copies", memory->bucket_copies,
         scenario->parallelism.data_parallel == DATA_PARALLEL_DDP,
         "buckets are DDP's; expected 'data_parallel: ddp' beside it"},
    };

    return refuse(options, COUNT(options), err);
}

static int check_costs(const struct scenario *scenario, struct error *err)
{
    const struct costs_spec *costs = &scenario->costs;
    const char *why = "this model's times are given, not computed; expected a transformer, or layers by their FLOPs";
    const struct idle options[] = {
        {costs->node, "costs", "profile", costs->profile, false, why},
        {costs->node, "costs", "attention", costs->attention != ATTENTION_NEWEST, false, why},
        {costs->node, "costs", "launch_blocking", costs->launch_blocking, false, why},
        {costs->node, "costs", "unaligned_batches", costs->unaligned_batches != UNALIGNED_TENSOR_CORES, false, why},
    };

    return model_is_timed(&scenario->model) ? refuse(options, COUNT(options), err) : 0;
}

int scenario_check_idle(const struct scenario *scenario, struct error *err)
{
    static scenario_rule *const rules[] = {check_schedule, check_memory, check_costs};

    return scenario_check(scenario, rules, COUNT(rules), err);
}
