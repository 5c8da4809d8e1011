/* training: how long a training takes, how sure that is, and what it costs: its steps, each kind simulated once, on a
 * clock (course.h) on which failures move it back (trial.h), in many trials. */
#ifndef DTSIM_TRAIN_TRAINING_H
#define DTSIM_TRAIN_TRAINING_H

#include "files/folder.h"
#include "files/json.h"
#include "train/trial.h"

struct training_options {
    size_t trials;
    uint64_t seed;
    size_t jobs;                     /* processes; the numbers are the same for any */
};

/* Of the trials that finished: the mean, and quantiles, each the least value that at least that share of them do not
 * exceed (nearest rank). All NaN: not known, or none finished. */
struct estimate { double mean, p10, p50, p90; };

/* The closed form of an interval between checkpoints. */
struct optimum { double interval, goodput; };

struct training {
    const struct scenario *scenario;
    struct training_options options;
    struct steps steps;
    struct course course;
    struct failures failures;
    struct spares_spec spared;       /* the scenario's, with the number of nodes that it has or `auto` finds */
    const struct spares_spec *spares;        /* that; NULL: there is always one */
    const struct stretch *main;      /* which takes most time: what is said of "the" step is its */
    struct checkpoint_cost cost;     /* of it */
    struct interval every;           /* between checkpoints; without failures `auto` is never */
    double mtbf, recovery;           /* s of the main stretch; INFINITY, 0: nothing fails */
    struct optimum young, daly, exact, chosen;       /* NaN where nothing fails, or not exponentially */
    double expected_wall;            /* s, closed form; NaN: there is none for such failures or spares */
    struct trial *trials;            /* options.trials of them; where nothing fails, one */
    struct estimate passed[TRIAL_PARTS + 1]; /* s of wall time after which that many parts of the clock are passed for
                                              * good */
    size_t ended[TRIAL_STUCK + 1];   /* how many trials finished, stopped, are stuck */
    struct estimate days, goodput, gpu_hours, price, energy;     /* d, share, h, $, J */
    double goodput_error;            /* standard error of goodput.mean */
    double losses[LOSS_COUNT];       /* s, mean */
    double failed, lost, memory_lost;        /* failures, nodes lost, times that copies in memory were: mean */
    double tokens, samples;          /* that are trained on; NaN tokens: the model has none */
    double mfu, mfu_all_in;          /* of the steps; of the wall time; NaN: not known */
};

/* Simulates the scenario's training. Errors: no section `train`, sections that lack what they need, steps that do not
 * run, a training that cannot progress (EXIT_INFEASIBLE). Release in either case. */
int training_init(struct training *training, const struct scenario *scenario, struct training_options options,
                  struct error *err);
/* The same; `run`: an iteration of the scenario, which is not simulated again, or NULL. */
int training_init_with(struct training *training, const struct scenario *scenario, const struct run *run,
                       struct training_options options, struct error *err);
void training_release(struct training *training);
/* How many of its losses it can have: those from LOSS_FEWER on where it goes on with fewer nodes alone. */
static inline int training_losses(const struct training *training)
{
    return training->course.shrunk ? LOSS_COUNT : LOSS_FEWER;
}
/* What a reader should know before believing the numbers; in the arena, NULL past the last. */
const char **training_notes(struct arena *arena, const struct training *training);

/* For people: sentences, where the time goes, checkpoints with their closed forms, notes. */
void training_print(const struct training *training, FILE *out);
/* Whether it is elastic and keeps its work where nodes are lost. */
bool training_keeps_work(const struct training *training);
/* The same as a line of a Markdown table, next to the reported values; `headed`: below its head. */
void training_row(const struct training *training, bool headed, FILE *out);
/* Writes trials.tsv, events.tsv (of trial 0), phases.tsv, progress.tsv and result.json into the folder, all of them or
 * none. */
int training_write(const struct training *training, struct folder *folder, struct error *err);
/* Refuses a folder whose files are not all of one training, as result_check does of a run. */
int training_check(const char *dir, struct error *err);

/* What `dtsim help result` says of its result.json and tables. */
void training_help(FILE *out);
/* J of the computers in a trial, of warm spare nodes too, which wait; NaN: not known. */
double training_energy(const struct training *training, const struct trial *trial);
/* The rules of its trials. */
struct trial_rules training_rules(const struct training *training);
/* GPU-seconds that a trial costs: those of the GPUs that train, and of all spare nodes all the time. */
double training_paid(const struct training *training, const struct trial *trial);
/* Plays the first `count` trials by these rules. Errors: the budget of `progress` (or NULL) is spent; processes. */
int trials_run(struct trial *trials, size_t count, const struct trial_rules *rules, size_t jobs, struct progress *progress,
               struct error *err);
/* Where the scenario leaves the number of spare nodes to dtsim, finds the one that costs the fewest GPU-hours: by at most 200
 * trials each from 0 on in growing steps, until three in a row cost more, and then the numbers between. Errors: with none does every trial end. */
int spares_choose(struct training *training, struct error *err);

#endif
