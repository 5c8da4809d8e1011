/* facts: sizes of a scenario's model, cluster and batch, read without any degree: the values that a key may have follow
 * from them. */
#ifndef DTSIM_FACTS_H
#define DTSIM_FACTS_H

#include "scenario/scenario.h"

struct facts {
    const struct node *root;
    int layers, heads, kv_heads, experts;    /* 1 where the model has none */
    int shared_experts;                  /* 0: none */
    int sequence;                        /* tokens a sample; 0: the model has none */
    int per_node, nodes;                 /* GPUs of a node, the fewest; 0 nodes: the cluster does not say how many */
    int in_parts;                        /* the GPUs of a cluster that says `parts`; else 0 */
    int batch;                           /* samples an iteration; 0: not said */
    bool transformer;
    const char *powerless;               /* the first GPU of the cluster whose file has no power, "" where the cluster names
                                            none; NULL: all have */
};

/* Errors: of the model and of the cluster. Messages that one of them is missing begin with `who`, a command. */
int facts_find(struct arena *arena, const struct node *root, const char *who, struct facts *facts, struct error *err);

#endif
