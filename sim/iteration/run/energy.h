/* energy: the power of GPUs and their nodes, by the GPUs' activity. The numbers stand in the GPU's file (power), which
 * includes the GPU's share of its node, or in the scenario's train.energy, which holds for a single iteration too. */
#ifndef DTSIM_ENERGY_H
#define DTSIM_ENERGY_H

#include "scenario/scenario.h"

/* Shares of the time of the average GPU; it waits in the rest. */
struct occupation { double compute, communication; };
/* W of a number of GPUs and of the nodes that hold them: the power of each GPU by its activity, weighted by time, and
 * the power of each node without its GPUs. Not the facility's. NaN: no file gives it. */
double energy_power(const struct scenario *scenario, int gpus, int nodes, struct occupation occupation);
/* The same of the GPUs that the scenario runs on and their nodes, by what each program rank's GPUs do: of
 * all replicas, or of the first one, which then stands for all. */
double energy_ranks_power(const struct scenario *scenario, const struct occupation *ranks, int count);
/* The same of the cluster's GPUs and nodes that the scenario does not run on. */
double energy_idle_power(const struct scenario *scenario);
/* The facility's power over its computers', where the scenario gives none: what BLOOM's computer center has (IDRIS; Luccioni et al.
 * 2022, arXiv 2211.02001). LLaMA's authors reckon with 1.1 (Touvron et al. 2023, arXiv 2302.13971); the mean of the industry is 1.56
 * (Uptime Institute, Global Data Center Survey 2024). */
#define ENERGY_PUE 1.2
#define ENERGY_PUE_MOST 1.56
/* The facility's power over its computers' power: the scenario's, or ENERGY_PUE. */
double energy_pue(const struct scenario *scenario);
/* The nodes on which the scenario runs. */
int energy_nodes(const struct scenario *scenario);

/* The share that the energy of a time may be off where GPUs do so, at most: by the nodes (gpu_power_error), by waits that may take
 * less than computation, by idle GPUs, and by the facility where the scenario says no PUE. NaN: the scenario says all of it. Not the
 * time's own error. */
double energy_error(const struct scenario *scenario, struct occupation occupation);

#endif
