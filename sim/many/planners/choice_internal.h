/* What the planners' questions share: how a plan becomes a choice. */
#ifndef DTSIM_CHOICE_INTERNAL_H
#define DTSIM_CHOICE_INTERNAL_H

#include "planners/choice.h"

/* Samples of the scenario's batch. */
int choice_samples(const struct profiled *profiled);
/* The question's layers on the k-th tensor degree; in the arena. */
struct planner_layer *choice_layers(struct planner_choices *choices, const struct profiled *profiled, size_t k);
/* Adds a choice with the plan's stages in words. */
struct planner_choice *choice_add(struct planner_choices *choices, const char *method, const char *form,
                                  const char *meaning, const struct planned *planned);
/* "PATH=VALUE" of the choice. */
void choice_set(struct planner_choices *choices, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* How many blocks each stage holds: strategy.split. */
void choice_split(struct planner_choices *choices, const struct profiled *profiled, const struct planned *planned);
/* A planner whose plans run under a schedule that flushes. `divides`: a stage's replicas divide the profile's
 * micro-batches, as they can; else each takes some of them. */
struct flushed {
    const char *method, *form, *meaning;
    bool divides;
};
/* Whether the plan runs: all stages have the same degrees. */
bool choice_runs(const struct profiled *profiled, const struct planned *planned, bool divides);
/* The choice of the plan. Where it does not run, `other`, the best plan that does, is a further choice. */
void choice_flushed(struct planner_choices *choices, const struct profiled *profiled, const struct flushed *flushed,
                    const struct planned *planned, const struct planned *other);

int choose_pipedream(struct planner_choices *choices, const struct profiled *profiled, struct error *err);
int choose_two_bw(struct planner_choices *choices, const struct profiled *profiled, struct error *err);
int choose_varuna(struct planner_choices *choices, const struct profiled *profiled, struct error *err);
int choose_dapple(struct planner_choices *choices, const struct profiled *profiled, struct error *err);
int choose_piper(struct planner_choices *choices, const struct profiled *profiled, struct error *err);
int choose_alpa(struct planner_choices *choices, const struct profiled *profiled, struct error *err);
int choose_mcmc(struct planner_choices *choices, const struct profiled *profiled, struct error *err);
int choose_dtsim(struct planner_choices *choices, const struct profiled *profiled, struct error *err);

#endif
