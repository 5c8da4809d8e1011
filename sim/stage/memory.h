/* memory: what a GPU of a rank holds, by kind. A rank is one pipeline stage of one replica; all GPUs of its tensor
 * group hold alike. What follows from the scenario is here; what lives from one operation to another is in the program.
 */
#ifndef DTSIM_MEMORY_H
#define DTSIM_MEMORY_H

#include "engine/program.h"
#include "stage/stage.h"

enum memory_kind {
    MEMORY_PARAMETERS,       /* weights in the format that computes, every version of them, frozen ones too */
    MEMORY_GATHERED,         /* under ZeRO 3 the layers whose weights are there whole */
    MEMORY_GRADIENTS,        /* and what their compression keeps */
    MEMORY_OPTIMIZER,        /* states, with fp32 master weights */
    MEMORY_ACTIVATIONS,      /* kept from a forward to its backward, and what a recomputation brings back */
    MEMORY_WORKSPACE,        /* on top of these while an operation runs, where all together are most */
    MEMORY_BUFFERS,          /* of communication, and one for all gradients */
    MEMORY_CONTEXT,          /* of driver, CUDA and NCCL; outside the framework's allocator */
    MEMORY_FRAGMENTATION,    /* what the allocator holds and cannot use */
    MEMORY_KIND_COUNT
};
extern const char *const memory_kind_names[];

struct memory { double bytes[MEMORY_KIND_COUNT]; };

/* What a rank of the program holds all the time: all kinds but activations, workspace and fragmentation, which are 0.
 * - Shares of ZeRO (Rajbhandari et al. 2020, section 5): stage 1 divides the optimizer states by the replicas that
 *   share them, 2 also the gradients, 3 also the parameters, of which all outside of blocks (FSDP's outermost
 *   unit, of every chunk) and two neighbouring blocks are gathered at a time.
 * - In fp8 the blocks' weights once more as they are and transposed, a byte each, which ZeRO does not divide
 *   (Transformer Engine keeps them in its modules); or these alone, where they are the primary ones (its
 *   fp8_model_init: Float8Tensor, which keeps its transpose too).
 * - Optimizer states, bytes a parameter: master weights 4 where precision is mixed, remainders 2 (Apex,
 *   distributed_fused_adam.py: store_param_remainders). Adam 8, in half precision 4. Adam in 8 bits 2, with an
 *   fp32 scale for each 2048 of both moments, but 8 in tensors of fewer than 4096 elements (Dettmers et al. 2022,
 *   section 2.1; bitsandbytes' min_8bit_size). Momentum 4. Adafactor 4 for each row and column of a matrix and for each
 *   element of a vector (Shazeer, Stern 2018, algorithm 4); a stage whose tensors are not known counts as one
 *   square matrix.
 * - Buffers: with fused_gradients 4 bytes a parameter, under ZeRO of a share (Rajbhandari et al. 2020, section 3.2: 6
 *   GB for 1.5 billion; Megatron-LM's main gradients: 20 and 4 + 16/d bytes a parameter in all); with bucket_copies the
 *   gradients once more, with flat_gradients those of a share; under ZeRO 2, and 1 with flat_gradients, a bucket of
 *   gradients (under ZeRO 2 all of a chunk, where they are scattered after its backward), and under ZeRO 3 those of the
 *   layers that are there whole, before they are scattered; on a parameter server one replica's gradients; in a
 *   pipeline what arrives from both neighbours, where the model's times are not given. All of them stay, also where
 *   they are needed for the update alone: the allocator seldom puts pieces of that size where activations stood.
 * - Context, where the model's times are not given, unless the scenario says how much: 1 GiB (the driver's 0.7, CUDA's
 *   0.3), and for each kind of group (process_group.h; none for embedding groups) 544 MiB for NCCL between two GPUs,
 *   688 MiB among more (measured on A100: NVIDIA/nccl#964). */
struct memory memory_states(const struct scenario *scenario, const struct stage *stages, int program_rank);
/* What every rank of a timeline's program holds when it holds most, and the most that it ever keeps for backwards.
 * The caller frees it.
 * Fragmentation is a share of all but the context. Where the scenario does not say, none if the model's times are
 * given, else 0.055: the most with which all published runs that worked still fit (139 of LLM Foundry, 92 of
 * BigScience's BLOOM; those that ran out of memory ask for 0.02 or more). Guo et al. 2024 (GMLake) remove 0.15 on
 * average and up to 0.33 from runs with recomputation, offloading and LoRA; Rajbhandari et al. 2020, section 3.2, saw
 * over 0.3. */
struct memory_peak { struct memory memory; double activations; };
struct memory_peak *memory_peaks(const struct scenario *scenario, const struct stage *stages,
                                 const struct timeline *timeline);
double memory_fragmentation(const struct scenario *scenario);    /* that share */
/* B of weights, gradients and optimizer states that one GPU of a pipeline rank has in host memory: all that is
 * offloaded, from ZeRO 1 on of the update the replica's share. */
double memory_offloaded_states(const struct scenario *scenario, const struct stage *stages, int rank);

/* Takings and freeings by rank, then time; at the same time in the order of timeline_order, so that what waits takes
 * after what it waited for has freed. The caller frees it. */
struct memory_event { double at; uint32_t op, order; bool ends; };
struct memory_event *memory_events(const struct timeline *timeline, size_t *count);
double memory_total(const struct memory *memory);

/* What a GPU may hold; INFINITY where nothing is known or nothing enforced. */
double memory_limit(const struct scenario *scenario);

#endif
