/* What `memory:` means: bytes of each parameter, and what does not go together. */
#include "scenario.h"

#include <math.h>

struct optimizer_states scenario_optimizer(const struct scenario *scenario)
{
    static const struct optimizer_states states[] = {
        [OPTIMIZER_ADAM] = {.full = 8},       [OPTIMIZER_ADAM_8BIT] = {.full = 8, .quantized = 2},
        [OPTIMIZER_MOMENTUM] = {.full = 4},   [OPTIMIZER_SGD] = {0},
        [OPTIMIZER_ADAFACTOR] = {.factored = true}, [OPTIMIZER_ADAFACTOR_MOMENTUM] = {.full = 4, .factored = true},
    };
    return states[scenario->memory.optimizer];
}

/* An update reads the gradient, reads and writes master weights and states, and writes half-precision weights; a
 * factored second moment takes a first look at the gradient for its rows and columns. */
struct parameter_bytes scenario_parameter_bytes(const struct scenario *scenario)
{
    bool mixed = scenario->memory.precision >= PRECISION_MIXED_FP16;
    struct optimizer_states optimizer = scenario_optimizer(scenario);
    double states = optimizer.full - 3 * optimizer.quantized, weights = mixed ? 2 : 4, master = mixed ? 4 : 0;
    double gradients = scenario->memory.gradients == GRADIENTS_FP32 ? 4 : weights;

    return (struct parameter_bytes){
        .weights = weights, .gradients = gradients, .master = master,
        .update_traffic = gradients * (optimizer.factored ? 2 : 1) + 2 * (mixed ? master : weights) + 2 * states +
                          (mixed ? weights : 0),
    };
}

enum dtype scenario_dtype(const struct scenario *scenario)
{
    static const enum dtype dtypes[] = {
        [PRECISION_FP32] = DTYPE_FP32, [PRECISION_TF32] = DTYPE_TF32,
        [PRECISION_MIXED_FP16] = DTYPE_FP16, [PRECISION_MIXED_BF16] = DTYPE_BF16,
    };
    return dtypes[scenario->memory.precision];
}

/* A checkpoint every few blocks goes with a recomputation block by block, right before its backward. */
static int check_every(const struct scenario *scenario, struct error *err)
{
    const struct recompute_spec *recompute = &scenario->memory.recompute;
    struct loc loc = node_loc(recompute->node, "every");

    if (recompute->mode != RECOMPUTE_FULL)
        return error_add(err, EXIT_INPUT, loc, "memory: recompute: every: %d goes with 'mode: full' alone, found '%s'",
                         recompute->every, recompute_names[recompute->mode]);
    if (scenario->model.stages.count)
        return error_add(err, EXIT_INPUT, loc, "memory: recompute: every: %d needs a model of layers; stages keep "
                         "their input alone", recompute->every);
    if (scenario_strategy(scenario)->recompute != RECOMPUTE_WITH_GRADIENT)
        return error_add(err, EXIT_INPUT, loc, "memory: recompute: every: %d does not go with %s, which recomputes a "
                         "whole stage ahead of its backward", recompute->every, scenario_strategy(scenario)->name);
    return 0;
}

int scenario_check_memory(const struct scenario *scenario, struct error *err)
{
    const struct memory_spec *memory = &scenario->memory;
    const struct transformer *shape = scenario->model.transformer;
    const char *unlike = !shape ? NULL : shape->experts ? "experts" : shape->kv_rank ? "latent attention" : NULL;
    int rc = 0;

    if (memory->recompute.every > 0)
        rc = check_every(scenario, err);
    if (memory->lora && !scenario->model.transformer)
        rc = error_add(err, EXIT_INPUT, node_loc(memory->node, "lora"),
                       "memory: lora: needs a transformer; this model says nothing of its products");
    if (memory->lora && unlike)
        rc = error_add(err, EXIT_INPUT, node_loc(memory->node, "lora"),
                       "memory: lora: does not say which products of %s have adapters; expected a dense model", unlike);
    if (memory->activations == ACTIVATIONS_RAJBHANDARI && unlike)
        rc = error_add(err, EXIT_INPUT, node_loc(memory->node, "activations"),
                       "memory: activations: rajbhandari counts a GPT's blocks and says nothing of %s; expected "
                       "korthikanti", unlike);
    if (scenario_optimizer(scenario).factored && shape && shape->experts)
        rc = error_add(err, EXIT_INPUT, node_loc(memory->node, "optimizer"),
                       "memory: optimizer: adafactor does not know how experts' matrices are stacked; try adam");
    if (memory->lora && scenario->strategy.data_parallel == DATA_PARALLEL_REPLICATED)
        rc = error_add(err, EXIT_INPUT, node_loc(memory->node, "lora"),
                       "memory: lora: does not go with data_parallel: dataparallel, whose replicas are copies of "
                       "trained weights; try ddp");
    return rc;
}
