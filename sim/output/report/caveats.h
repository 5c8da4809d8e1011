/* caveats: what a reader of a result should know of its scenario before relying on its numbers. */
#ifndef DTSIM_CAVEATS_H
#define DTSIM_CAVEATS_H

#include "files/json.h"

#include "run/certainty.h"

struct caveats {
    const char *items[28];       /* a sentence each, without a full stop; in the arena */
    size_t count;
};

struct caveats caveats_of(struct arena *arena, const struct scenario *scenario);
/* That weights or gradients that ZeRO divides are whole during an iteration; NULL: they are not. */
const char *caveat_whole(struct arena *arena, const struct scenario *scenario);
/* Which of its values the framework's release does not have; NULL: none that is known. */
const char *caveat_framework(struct arena *arena, const struct scenario *scenario);
/* On which part stages_on: auto put each pipeline rank; which tensor groups are on nodes of several kinds. NULL: it did
 * not; none. */
const char *caveat_order(struct arena *arena, const struct scenario *scenario);
const char *caveat_planned(struct arena *arena, const struct scenario *scenario);
const char *caveat_two_sides(struct arena *arena, const struct scenario *scenario);
const char *caveat_mixed_groups(struct arena *arena, const struct scenario *scenario);
/* How many GPUs have no stage, of which part, and what counts them. NULL: none. */
const char *caveat_idle(struct arena *arena, const struct scenario *scenario);
/* "8 of old, all 8 of spare"; NULL: the cluster has no parts, or none of its GPUs is idle. */
const char *idle_text(struct arena *arena, const struct scenario *scenario);
/* Idle GPUs by part, for `idle_gpus`; the caller owns the reference. */
json_t *idle_json(const struct scenario *scenario);
/* Which GPUs have no rate in the format of the GEMMs, which then take as long as in fp32. NULL: all have one, or times are
 * given. */
const char *caveat_rates(struct arena *arena, const struct scenario *scenario);
/* That its software calls fused attention that its GPU cannot run, and the key that says otherwise. NULL: it can. */
const char *caveat_attention(struct arena *arena, const struct scenario *scenario);
/* What the time of frozen weights in four bits stands on. NULL: there are none. */
const char *caveat_packed(struct arena *arena, const struct scenario *scenario);
/* What batch.shares: auto gave each replica. NULL: it did not. */
const char *caveat_shares(struct arena *arena, const struct scenario *scenario);
/* Samples in the replicas' micro-batches: "4 samples", "3 + 5 samples", of more than eight replicas "3 to 5 samples". */
const char *samples_text(struct arena *arena, const struct scenario *scenario);
/* As a list for `notes`, with what makes the scenario unlike all published runs (`metrics`: as certainty_unlike takes
 * them); the caller owns the reference. */
json_t *caveats_json(const struct scenario *scenario, const struct metrics *metrics);
/* "note: ...", a line each; with what a run shows, or NULL. */
void caveats_print(const struct scenario *scenario, const struct metrics *metrics, FILE *out);
/* That the time is the median of several replays, and that of replicas in lockstep. NULL: it is not, or nothing was
 * simulated. */
const char *caveat_lockstep(struct arena *arena, const struct metrics *metrics);
/* That a GPU holds less than the run needs; NULL: it fits, or nothing was simulated. */
const char *caveat_short(struct arena *arena, const struct metrics *metrics);

#endif
