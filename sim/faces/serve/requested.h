/* requested: simulations that other programs ask for, each with a text, while a pool of workers runs: lines of `dtsim
 * serve`, questions of `dtsim app`. */
#ifndef DTSIM_REQUESTED_H
#define DTSIM_REQUESTED_H

#include "base/progress.h"
#include "files/json.h"
#include "process/pool.h"
#include "run/run.h"
#include "scenario/scenario.h"
#include "workload/workload.h"

enum { REQUESTED_GRACE = 1 };    /* s after its time within which a request ends itself; then its process is killed */

/* What belongs to an answer, from the request to the run, in a worker. `own` outlives what scenarios share. */
struct requested {
    struct arena arena, own;
    struct scenario scenario;
    struct workload workload;
    struct run run;
    struct progress progress;
    struct error err;
    json_t *answer;
};
struct requested requested_begin(struct cache *cache);
/* Simulates its scenario as `dtsim run` does, on an engine (enum engine; -1: its own), with advice where memory is short, or
 * without. 0: the run may be shown. */
int requested_simulate(struct requested *requested, int engine, bool advice);
/* Puts the errors, or the exit code, behind what the answer has. */
void requested_errors(struct requested *requested);
/* Releases all. The cache keeps what the next request will need again. */
void requested_release(struct requested *requested, struct cache *cache);

/* The error of a request whose worker gave no reply. `stopped`: what stopped it, if that was its time. */
void requested_lost(bool cancelled, enum pool_loss why, const char *stopped, const struct error *how, struct error *err);
/* Runs the pool until no more requests may come. -1: an error; else an exit code. */
int requested_run(struct pool pool, struct error *err);

#endif
