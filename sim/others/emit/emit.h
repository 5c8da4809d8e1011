/* emit: what to launch so that a framework runs a scenario: arguments, or the file of a job. What is written is
 * imported again, and the scenario that comes out is compared with the one that went in: each key that the framework
 * cannot be told is an error (EXIT_INFEASIBLE) that names it. */
#ifndef DTSIM_EMIT_H
#define DTSIM_EMIT_H

#include "scenario/scenario.h"

/* Writes to `out`; nothing after an error. `notes` gets what a reader should know: switches of the scenario's software
 * that the framework does not have, where the scenario runs another one. 0 or -1. */
typedef int emitter(const struct scenario *scenario, FILE *out, FILE *notes, struct error *err);
emitter emit_megatron, emit_torchtitan, emit_deepspeed, emit_bridge, emit_torchtitan_2026;

/* Of a framework that has a dialect, and no code: a file of platforms/dialects/, or a path. */
int emit_own(const char *dialect, const struct scenario *scenario, FILE *out, FILE *notes, struct error *err);

/* The frameworks by number; NULL past the last. */
struct emitted { const char *name; emitter *emit; };
const struct emitted *emitted_at(size_t index);
const char *emitted_name(size_t index);

#endif
