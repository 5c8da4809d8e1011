/* megatron_internal: what the parts of megatron share. */
#ifndef DTSIM_MEGATRON_INTERNAL_H
#define DTSIM_MEGATRON_INTERNAL_H

#include "launch/imported.h"
#include "megatron/megatron.h"

/* Each writes its part of the scenario. Errors stay in m->err. */
/* Refuses a program that trains what this is not, or nothing, as far as its name tells: -1. */
int megatron_program(const struct imported *m);
void megatron_model(struct imported *m);
/* The pattern of a hybrid model, and the widths of its mixers. program: its name says that it trains hybrids. */
void megatron_hybrid(struct imported *m, bool program);
/* Whether the program trains an encoder beside a decoder; their blocks and tokens; how many blocks each stage has. */
bool megatron_has_sides(const struct imported *m);
void megatron_sides(struct imported *m);
void megatron_split_sides(struct imported *m, long long pipeline, long long chunks);
void megatron_experts(struct imported *m);
void megatron_strategy(struct imported *m);
void megatron_split(struct imported *m, long long chunks);
void megatron_memory(struct imported *m);
void megatron_software(struct imported *m, long long data);
/* The layers of the model. */
long long megatron_layers(const struct imported *m);
/* The pipeline stages that a hybrid's pattern ends with '|', and the layers of each, unless NULL; 0: it says none. */
long long megatron_stages(const struct imported *m, long long *layers);
/* A 0 or 1 for each layer, of an argument that says N or a list as a Python expression. N: 1 for layers 0, N, 2N and so on;
 * inverse: 0 for layers N - 1, 2N - 1 and so on. NULL: an error. */
const char *megatron_flags(struct imported *m, const char *name, long long layers, bool inverse);
/* The cluster, the degree of data parallelism (which it returns) and the batch. 0: an error. */
long long megatron_cluster(struct imported *m);

#endif
