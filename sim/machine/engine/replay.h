/* replay: the engines. They turn a program into a timeline and know nothing of schedules. */
#ifndef DTSIM_REPLAY_H
#define DTSIM_REPLAY_H

#include "engine/dispatcher.h"

#define ENGINES(X) X(ENGINE_SIMGRID, "simgrid") X(ENGINE_FAST, "fast") X(ENGINE_IDEAL, "ideal")
enum engine { ENGINES(ENUM_VALUE) };
extern const char *const engine_names[];         /* NULL-terminated */

/* Fills the timeline, which is initialised for the program. Without contention the engines agree to 1e-9 s an
 * operation. With contention simgrid and fast agree, and ideal's times are never later. Errors: an engine's own, and
 * EXIT_STOPPED of the program's progress. */
int replay(enum engine engine, const struct program *program, const struct cluster *cluster,
           struct timeline *timeline, struct error *err);

/* Without contention: every transfer takes latency + bytes / bandwidth of its route. One pass finds the longest path; a
 * program with choices is replayed event by event. The oracle. */
void replay_ideal(const struct program *program, const struct cluster *cluster, struct timeline *timeline);
/* The same with the costs of transfers on the cluster (transfer_costs). */
void replay_costs(const struct program *program, const struct transfer_cost *costs, struct timeline *timeline);

/* SimGrid's flow-level network model on the cluster's links, for the transfers that meet others; the rest take what they
 * take alone (engine/sharing.h). SimGrid's engine is a singleton, one simulation a process:
 * the simulation runs in a forked child that writes the times into shared memory, so this can be called any number of
 * times. Errors: the child fails (EXIT_UNEXPECTED, with its last words); the module with SimGrid is missing
 * (EXIT_NO_TOOL). */
int replay_simgrid(const struct program *program, const struct cluster *cluster, struct timeline *timeline,
                   struct error *err);
/* The same flows on the same links as in simgrid, in this process: the same arithmetic in the same order, so that the
 * times are equal. */
void replay_fast(const struct program *program, const struct cluster *cluster, struct timeline *timeline);

/* What simgrid and fast have in common. SimGrid takes whole bytes, a program has fractions: flows have units of 2^-40
 * bytes, or larger ones if the largest transfer would not fit into 64 bits. Powers of two change no digit.
 *
 * The clock must not stand still at an event that is less than a rounding error away, nor jump over an event and forget
 * it. So events are the same that are apart by less than a few units in the last place of the latest possible time: the
 * sum of all durations without contention. While any flow runs, some link is full, and in a second its flows together
 * make at least the progress of one second without contention. */
struct resolution {
    double unit;                     /* units in a byte */
    double seconds;                  /* events that are less apart are one */
};
struct resolution resolution_of(const struct program *program, const struct transfer_cost *costs);
/* The units of a transfer that puts that many bytes on the links; at least 1. */
double resolution_units(const struct resolution *resolution, double flow);

/* Loads what the engine needs, in a process that is about to fork many that will replay: then none of them has to load
 * it. Nothing is wrong if it cannot be loaded; whoever replays is told. */
void replay_prepare(enum engine engine);

#endif
