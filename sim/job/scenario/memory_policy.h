/* memory_policy: what is computed again, what waits in host memory and what is limited: the mapping `memory:`, whose
 * number formats are in precision.h. */
#ifndef DTSIM_MEMORY_POLICY_H
#define DTSIM_MEMORY_POLICY_H

#include "hardware/precision.h"
#include "model/model.h"

#define LOGITS(X) X(LOGITS_FREED, "freed") X(LOGITS_HELD, "held")
enum logits { LOGITS(ENUM_VALUE) };
#define OFFLOADS(X) \
    X(OFFLOAD_NONE, "none") X(OFFLOAD_ACTIVATIONS, "activations") X(OFFLOAD_WEIGHTS, "weights") \
    X(OFFLOAD_OPTIMIZER, "optimizer") X(OFFLOAD_TENSORS, "tensors")
enum offload { OFFLOADS(ENUM_VALUE) };

/* The linear layers for whose weights dummy gradients are kept. Each value includes the ones before it, and the places
 * up to it (enum linear_place). */
#define DUMMY_GRADIENTS(X) \
    X(DUMMIES_NONE, "none") X(DUMMIES_BLOCKS, "blocks") X(DUMMIES_OUTPUT, "output") X(DUMMIES_EXPERTS, "experts")
enum dummy_gradients { DUMMY_GRADIENTS(ENUM_VALUE) };

/* What backwards compute again. */
struct recompute_spec {
    const struct node *node;
    int mode;                    /* enum recompute */
    struct list modules;         /* of int, enum recompute_module: what runs again under modules */
    int every;                   /* blocks a checkpoint, under full; 0: one */
    int blocks;                  /* recomputed under full, the first of each chunk; where given */
    double share;                /* or this share of them; NaN: all */
    bool early_stop;             /* a block's ends when its backward has what it needs */
};
extern const char *const recompute_names[];

struct memory_spec {
    const struct node *node;
    struct precision_spec precision;
    struct recompute_spec recompute;
    struct list offload;             /* of int, enum offload: what waits in host memory */
    struct lora *lora;               /* NULL: every weight is trained */
    int activations;                 /* enum activation_formula */
    struct saved_form saved;         /* how blocks keep what their backwards read */
    int cross_entropy;               /* enum cross_entropy */
    int logits;                      /* enum logits */
    bool fused_gradients, flat_gradients, bucket_copies;
    int dummy_gradients;             /* enum dummy_gradients */
    int gradient_accesses;           /* reads and writes of a gradient that kernels do around a sum over replicas */
    double context;                  /* B; NaN: memory_states says */
    double fragmentation;            /* share of the memory that the allocator holds */
    double limit;                    /* B; NaN: the GPU's memory */
    double planned;                  /* B for which layers are planned (auto/best_memory.c); 0: all that a GPU may hold */
    bool other_recompute, stays;     /* auto/best_memory.c found that faster: `recompute` is not `optimal`; activations that
                                        may go to the host do not */
    bool enforce;
};

/* Whether full recomputation is said to be of some blocks alone. */
bool recompute_is_partial(const struct recompute_spec *recompute);
/* What runs again under modules: a bit for each enum recompute_module; under other modes 0. */
unsigned recomputed_modules(const struct recompute_spec *recompute);
/* Whether it is of this block, the first of its chunk being 0; other modes of recomputation choose among all. */
bool recompute_covers(const struct recompute_spec *recompute, int block);

#endif
