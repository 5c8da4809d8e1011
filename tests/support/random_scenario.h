/* random_scenario: scenarios that mix everything, drawn at random from a seed: real models and clusters, any schedule,
 * ZeRO, context and expert degrees, recomputation, offloading, adapters, frameworks. */
#ifndef DTSIM_TEST_RANDOM_SCENARIO_H
#define DTSIM_TEST_RANDOM_SCENARIO_H

#include "random_plan.h"

/* Now and then the option, else nothing. */
static inline const char *sometimes(uint64_t *seed, int one_in, const char *option)
{
    return random_below(seed, one_in) ? "" : option;
}

/* As YAML, with `longer` times as many micro-batches as the shortest; the caller frees it. */
static inline char *random_scenario(int longer, uint64_t *seed)
{
    const char *model = PICK(seed, "llama3-8b", "gpt2-355m", "llama2-7b", "megatron-7.5b", "mixtral-8x7b");
    const char *cluster = PICK(seed, "dgx-1-v100", "dgx-a100", "dgx-h100", "gb200-nvl72", "hgx-a100-4", "pcie-25gbe");
    bool copied = random_below(seed, 12) == 0;       /* DataParallel, which goes with few others */
    int pipeline = copied ? 1 : PICK_INT(seed, 1, 2, 4), tensor = copied ? 1 : PICK_INT(seed, 1, 1, 2, 4);
    int data = PICK_INT(seed, 1, 2, 3, 4, 8), context = copied || random_below(seed, 6) ? 1 : 2;
    int expert = copied || data % 2 || random_below(seed, 3) ? 1 : 2;
    bool whole = tensor > 1 && expert > 1 && random_below(seed, 2);     /* experts that no tensor group divides */
    int micro_batches = pipeline * PICK_INT(seed, 1, 2, 4) * longer, count = 0;
    char *text = NULL, slices[24] = "";

    while (schedule_at((size_t)count))
        count++;
    const struct schedule *schedule = schedule_at((size_t)random_below(seed, count));

    if (schedule->slices && pipeline > 1)            /* from the seed as it is: nothing else changes */
        snprintf(slices, sizeof slices, ", slices: %d", 1 << (*seed >> 40) % 4);
    assert_true(asprintf(&text,
        "model: {preset: %s, with: {layers: 16}%s}\n"
        "cluster: {platform: %s, nodes: %d%s}\nbatch: {micro_batches: %d, micro: %d}\n"
        "strategy: {schedule: %s%s, pipeline: %d, tensor: %d, data: %d, context: %d, expert: %d%s%s%s%s%s}\n"
        "memory: {enforce: false, precision: %s, recompute: %s%s%s}\n"
        "software: %s\nsimulation: {engine: fast%s}\n",
        model, strncmp(model, "llama3", 6) ? "" : ", sequence: 2048", cluster, tensor * context * pipeline * data,
        sometimes(seed, 6, ", network: {topology: {leaf_nodes: 1, oversubscription: 4}}"), micro_batches,
        PICK_INT(seed, 1, 2), pipeline > 1 ? schedule->name : "1f1b", slices, pipeline, tensor, data, context,
        expert * (whole ? tensor : 1),
        copied ? "" : PICK(seed, "", "", ", zero: 1", ", zero: 2", ", zero: 3"),
        whole ? ", sequence_parallel: true, expert_tensor: 1" : sometimes(seed, 3, ", sequence_parallel: true"),
        copied ? ", data_parallel: dataparallel"
               : sometimes(seed, 6, PICK(seed, ", data_parallel: synchronous", ", data_parallel: parameter-server")),
        sometimes(seed, 8, PICK(seed, ", compression: top-k", ", compression: powersgd", ", local_steps: 2")),
        sometimes(seed, 3, PICK(seed, ", placement: [data, tensor, pipeline]",
                                ", placement: [pipeline, data, tensor]")),
        PICK(seed, "mixed-fp16", "mixed-bf16", "mixed-bf16", "fp32", "mixed-fp8"),
        PICK(seed, "none", "none", "selective", "operators", "modules", "full", "optimal"),
        sometimes(seed, 6, PICK(seed, ", offload: activations", ", offload: weights", ", offload: optimizer",
                                 ", offload: tensors")),
        sometimes(seed, 8, ", lora: {rank: 16}"),
        PICK(seed, "none", "megatron-core", "pytorch-fsdp", "deepspeed", "torchtitan", "jax-maxtext", "megatron-bridge",
             "nemo"),
        sometimes(seed, 8, ", jitter: 0.05")) >= 0);
    return text;
}

#endif
