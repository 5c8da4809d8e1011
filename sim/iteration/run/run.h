/* run: a workload simulated. simulate() is the only way from a workload to a timeline and its numbers. */
#ifndef DTSIM_RUN_H
#define DTSIM_RUN_H

#include "auto/auto.h"
#include "run/links.h"
#include "run/metrics.h"
#include "run/what_if.h"

struct simulate_options {
    enum engine engine;
    enum lower_what what;            /* for compute alone there are no metrics, and no jitter */
    bool memory;                     /* only metrics of memory are wanted, which do not depend on times (memory_options_of):
                                      * nothing is lowered or replayed */
    bool numbers;                    /* only metrics are wanted: the run may be of a shorter pipeline (steady.h);
                                      * `lowered` and `timeline` then lack a part */
    bool links;                      /* what crosses links is counted: for those who write it down */
    bool causes;                     /* metrics.imbalance and .jitter are found: up to two more replays */
    unsigned what_ifs;               /* enum what_if, several together: the program without these */
    bool free_network;               /* sends take no time; the rows stay the rows of the real network */
    bool no_advice;                  /* simulate_advised() says only by how much memory is short */
};

/* One simulation, with all that its files are written from. The workload stays until it is released. */
struct run {
    const struct workload *workload;
    struct lowered lowered;
    struct timeline timeline;
    struct metrics metrics;          /* metrics.ranks is NULL where nothing was simulated */
    struct links links;              /* empty without that option */
    long long seed;                  /* seed of the random numbers; of several replays the seed of the median one */
};

/* A whole iteration on the scenario's own engine and network. */
struct simulate_options simulate_options_of(const struct scenario *scenario);
/* The same, for whoever reads its metrics only. */
struct simulate_options simulate_numbers_of(const struct scenario *scenario);
/* Simulates the workload, whatever memory it needs. With jitter and simulation.repeat the program is replayed with
 * `repeat` seeds, and the run is the one whose iteration takes the median time. A quantile q of n times is the least of
 * them that at least q n of them do not exceed (nearest rank), so that each is the time of some run. Release in either
 * case (a zeroed struct too). Errors: the errors of lower() and of the engine; EXIT_STOPPED where the budget of the
 * scenario's progress is spent: run->metrics.ranks is not NULL if only the causes are missing then. */
int simulate(const struct workload *workload, struct simulate_options options, struct run *run, struct error *err);
/* Replays the program of a run on another engine; sets `difference` to timeline_difference() of the two, and `met` to
 * the transfers that SimGrid computed, as they meet others. Collectives that the first engine measured keep their durations. Errors: the engine's. */
int run_verify(const struct run *run, enum engine engine, double *difference, size_t *met, struct error *err);
void run_release(struct run *run);

#endif
