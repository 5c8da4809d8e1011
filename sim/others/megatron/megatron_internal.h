/* megatron_internal: what the parts of megatron share. */
#ifndef DTSIM_MEGATRON_INTERNAL_H
#define DTSIM_MEGATRON_INTERNAL_H

#include "launch/imported.h"
#include "megatron/megatron.h"

/* Each writes its part of the scenario. Errors stay in m->err. */
/* Refuses a program that trains what this is not, or nothing, as far as its name tells: -1. */
int megatron_program(const struct imported *m);
void megatron_model(struct imported *m);
void megatron_experts(struct imported *m);
void megatron_strategy(struct imported *m, long data);
void megatron_split(struct imported *m, long chunks);
void megatron_memory(struct imported *m);
void megatron_software(struct imported *m, long data);
/* Whether Muon updates matrices. */
bool megatron_muon(const struct imported *m);
/* Whether GPUs own whole matrices: dist_muon, which core 0.19's logs call muon with a switch (arguments.py:1670). */
bool megatron_owners(const struct imported *m);
/* The cluster, the degree of data parallelism (which it returns) and the batch. 0: an error. */
long megatron_cluster(struct imported *m);

#endif
