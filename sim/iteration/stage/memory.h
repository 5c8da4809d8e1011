/* memory: the bytes that a GPU of a rank holds, by kind. A rank is one pipeline stage of one replica. All GPUs of its
 * tensor group hold the same number of bytes. Memory held during the whole iteration follows from the scenario; the
 * program's operations take and free the rest. */
#ifndef DTSIM_MEMORY_H
#define DTSIM_MEMORY_H

#include "engine/program.h"
#include "stage/stage.h"

enum memory_kind {
    MEMORY_PARAMETERS,       /* weights in the compute format, trained and frozen, and their older versions */
    MEMORY_GATHERED,         /* under ZeRO 3: weights of the layers that are gathered, or stay so after a work */
    MEMORY_GRADIENTS,        /* gradients, and the state of their compression */
    MEMORY_OPTIMIZER,        /* optimizer states and fp32 master weights */
    MEMORY_ACTIVATIONS,      /* activations kept from a forward to its backward, and recomputed ones */
    MEMORY_WORKSPACE,        /* temporary tensors of the operation that runs at the peak */
    MEMORY_BUFFERS,          /* buffers of communication, and a flat buffer of all gradients */
    MEMORY_DUMMIES,          /* dummy weight gradients, one of each shape (stage_memory.h: rank_dummy_gradients) */
    MEMORY_CONTEXT,          /* driver, CUDA and NCCL; outside the framework's allocator */
    MEMORY_FRAGMENTATION,    /* bytes that the allocator holds and cannot use */
    MEMORY_KIND_COUNT
};
extern const char *const memory_kind_names[];

/* What people read for a kind in tables. */
const char *memory_kind_title(enum memory_kind kind);
struct memory { double bytes[MEMORY_KIND_COUNT]; };

/* The memory that a rank of the program holds during the whole iteration. Activations, workspace and fragmentation are
 * 0 here.
 * - ZeRO (Rajbhandari et al. 2020, section 5): stage 1 divides the optimizer states among the replicas, stage 2 also
 *   the gradients, stage 3 also the parameters. Under stage 3 every chunk's layers outside of blocks (FSDP's outermost
 *   unit) and two neighbouring blocks are gathered at a time; without reshard_after_forward, and with sums_once in a
 *   pipeline, all layers of all chunks are. With sums_once gradients are whole.
 * - Narrow formats: two more copies of the blocks' weights, as they are and transposed, with their scales (fp8: a byte
 *   each; under mxfp8 and nvfp4 the two differ, as scales run along the depth of a product). ZeRO does not divide them
 *   (Transformer Engine keeps them in its modules). Primary fp8 weights are these two copies alone (its
 *   fp8_model_init: a Float8Tensor keeps its transpose too).
 * - Optimizer states, in bytes a parameter:
 *     master weights  4 where precision is mixed; remainders 2 (Apex, distributed_fused_adam.py:
 *                     store_param_remainders)
 *     Adam            8; in half precision 4
 *     Adam in 8 bits  2, and an fp32 scale for each 2048 values of both moments; 8 in tensors of fewer than 4096
 *                     elements (Dettmers et al. 2022, section 2.1; bitsandbytes' min_8bit_size)
 *     momentum        4
 *     Muon            4 for matrices of blocks, 8 for other tensors; without master weights 2 and 4. From ZeRO 1 on whole
 *                     matrices have owners, and the owner that has most of them counts
 *     Adafactor       4 for each row and column of a matrix, 4 for each element of a vector (Shazeer, Stern 2018,
 *                     algorithm 4); a stage whose tensors are not known counts as one square matrix
 * - Buffers (all stay for the whole iteration, because the allocator seldom places pieces of that size where
 *   activations were):
 *     fused_gradients        4 bytes a parameter of the rank's share (Rajbhandari et al. 2020, section 3.2: 6 GB for
 *                            1.5 billion; Megatron-LM's main gradients: 20 and 4 + 16/d bytes a parameter in all)
 *     bucket_copies          a copy of the gradients
 *     flat_gradients         a copy of the rank's share of the gradients; under ZeRO 1 also a bucket
 *     ZeRO 2                 a bucket of gradients, or a chunk's gradients if they are scattered after its backward
 *     ZeRO 3                 gradients of the gathered layers, until they are scattered
 *     a parameter server     one replica's gradients
 *     a pipeline             the tensors that arrive from both neighbours, unless the model's times are given
 * - Context: the scenario's value, or 0 if the model's times are given. Else 1 GiB (driver 0.7, CUDA 0.3), and NCCL's
 *   buffers for each kind of group (process_group.h; not for embedding groups): 544 MiB between two GPUs, 688 MiB among
 *   more (measured on A100: NVIDIA/nccl#964). */
struct memory memory_states(const struct scenario *scenario, const struct stage *stages, int program_rank);
/* For every rank of a timeline's program: memory at its peak, and the most bytes of activations that it ever keeps. The
 * caller frees the array.
 * Fragmentation is a share of all memory but the context. Its default is 0 if the model's times are given, else 0.055:
 * the largest share with which all published runs that worked still fit (139 of LLM Foundry, 92 of BigScience's BLOOM;
 * the runs that ran out of memory ask for 0.02 or more). Guo et al. 2024 (GMLake) remove 0.15 on average and up to 0.33
 * from runs with recomputation, offloading and LoRA. Rajbhandari et al. 2020, section 3.2, saw over 0.3. */
struct memory_peak {
    struct memory memory;
    double activations;
    double now, most;        /* B: activations now; the most of them with one operation's workspace */
};
struct memory_peak *memory_peaks(const struct scenario *scenario, const struct stage *stages,
                                 const struct timeline *timeline);
/* The same of ranks whose operations are told one by one: before the first of them, and after the last. */
struct memory_peak *memory_peaks_begin(const struct scenario *scenario, const struct stage *stages, int ranks);
void memory_peaks_end(const struct scenario *scenario, struct memory_peak *peaks, int ranks);
/* An operation of the rank begins; when it ends, the caller takes from `now` what it frees. */
static inline void memory_peak_take(struct memory_peak *peak, double takes, double workspace)
{
    peak->now += takes;
    peak->activations = peak->now > peak->activations ? peak->now : peak->activations;
    if (peak->now + workspace <= peak->most)
        return;
    peak->most = peak->now + workspace;
    peak->memory.bytes[MEMORY_ACTIVATIONS] = peak->now;
    peak->memory.bytes[MEMORY_WORKSPACE] = workspace;
}
double memory_fragmentation(const struct scenario *scenario);    /* the share that is lost to fragmentation */
/* B of weights, gradients and optimizer states that one GPU of a pipeline rank offloads to host memory. From ZeRO 1 on
 * the replica's share of gradients and states counts. */
double memory_offloaded_states(const struct scenario *scenario, const struct stage *stages, int rank);

/* The starts and ends of operations that take or free memory, by rank, sorted by time, then timeline_order: an
 * operation takes memory after the operations that it waits for have freed theirs. */
struct memory_event {
    double at;
    uint32_t order;
    uint32_t traits : 31;    /* of the operation: what it takes or frees */
    uint32_t ends : 1;
};
struct memory_events {
    struct memory_event *items;
    size_t *first;           /* rank r has the events from first[r] to first[r + 1] */
};
struct memory_events memory_events(const struct timeline *timeline);
void memory_events_release(struct memory_events *events);
double memory_total(const struct memory *memory);

/* B that a GPU may hold; INFINITY if the limit is unknown or not enforced. */
double memory_limit(const struct scenario *scenario);
/* The same of the GPUs of one pipeline rank. */
double memory_limit_of(const struct scenario *scenario, int rank);

#endif
