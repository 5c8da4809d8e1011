/* certainty: how far off the numbers of an iteration may be. */
#ifndef DTSIM_CERTAINTY_H
#define DTSIM_CERTAINTY_H

#include "run/metrics.h"

/* What makes the errors of other predictions say something about this one. */
struct likeness likeness_of(const struct scenario *scenario, const struct metrics *metrics);
/* The model's title, or what a person would call it by; "given": it is given times. */
void certainty_name_model(const struct model *model, char *text, size_t size);
/* Whether somebody could measure the scenario: not on the network that takes no time. */
bool likeness_exists(const struct scenario *scenario);
/* Which published run is nearest, and what differs (evidence_nearest), in the arena; NULL: there is none. */
const char *certainty_nearest(struct arena *arena, const struct scenario *scenario, const struct metrics *metrics);
/* "no published run is like this: ..." with all that no published run has, and the nearest one, in the arena; NULL: some
 * may be like it. Of a run that is not simulated `metrics` is NULL; then it does not say which is nearest. */
const char *certainty_unlike(struct arena *arena, const struct scenario *scenario, const struct metrics *metrics);
/* "flash-2 attention needs compute capability 8 or more, and NVIDIA V100 has 7", of a GPU on which its fused attention does
 * not run, in the arena; NULL: it runs, or nothing is known against it. */
const char *certainty_attention(struct arena *arena, const struct scenario *scenario);
/* Why exposed communication adds to its error ("rates of its links are estimates (...)"), in the arena; NULL: published runs
 * had such links. */
const char *certainty_links(struct arena *arena, const struct scenario *scenario);
/* What its model is that no published run's is, or which share of its kernels' time stands on kernels that nobody has measured
 * ("9 % of its kernels' time is of ..."), in the arena; NULL: neither. */
const char *certainty_model(struct arena *arena, const struct scenario *scenario, const struct metrics *metrics);
/* What that adds to the error: a share of the time. */
double certainty_model_unsure(const struct scenario *scenario, const struct metrics *metrics);
/* Why its times are held against what data sheets predict of published runs ("its kernel times come from the data sheet of
 * ..."), in the arena; NULL: they stand on measured kernels. */
const char *certainty_sheets(struct arena *arena, const struct scenario *scenario, const struct metrics *metrics);
/* What is added to the error that published runs let expect: exposed communication where links are not known
 * (certainty_links), attention where its kernels do not run (certainty_attention) or no profile has them, and
 * its model (certainty_model). A share of the time. */
double certainty_unsure(const struct scenario *scenario, const struct metrics *metrics);
/* How far off a ratio to another configuration of its software, model and GPU may be: what published runs let expect, and
 * certainty_unsure; NaN where certainty_unlike says why. */
struct ratio_expectation certainty_ratio(const struct scenario *scenario, const struct metrics *metrics);
/* Sets all that metrics say about errors (metrics.h: from stated_error on), when all other numbers are there. */
void certainty_state(struct metrics *metrics, const struct scenario *scenario);
/* Widens the expected errors so that they cover the times of all replays, where replicas left their lockstep. */
void certainty_spread(struct metrics *metrics);
/* Sets peaks and fits, when the peaks are there; not where fused attention cannot run, as scores would be stored. */
void certainty_memory(struct metrics *metrics, const struct scenario *scenario);
/* The classes of an iteration's time, as simulated; they add up to 1. */
void certainty_shares(const struct metrics *metrics, double shares[ANCHOR_CLASSES]);
/* Corrects all times and rates of a simulated run by what anchors show (anchor.h), and states the error that is left. What
 * is measured in bytes, and the timeline, stay as they are. Returns why not, in the arena (anchors_refused); NULL: it did. */
const char *certainty_anchor(struct arena *arena, struct metrics *metrics, const struct scenario *scenario,
                             const struct anchors *anchors);

#endif
