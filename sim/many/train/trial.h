/* trial: one simulation of a training, with random failures. */
#ifndef DTSIM_TRIAL_H
#define DTSIM_TRIAL_H

#include "train/failure.h"

/* Where the wall time of a trial goes besides steps, checkpoints and validations. */
#define LOSSES(X) \
    X(LOSS_WORK, "lost_work") \
    X(LOSS_DETECTION, "detection") \
    X(LOSS_WAITING, "waiting") X(LOSS_REPLACEMENT, "replacement") X(LOSS_INITIALISATION, "initialisation") \
        X(LOSS_LOADING, "loading") \
            X(LOSS_FEWER, \
              "fewer_nodes") /* what steps on fewer nodes take longer; from here on: of elastic trainings alone */ \
        X(LOSS_REDUNDANT, "redundant_work") /* what steps take longer because nodes do the work of others too */
enum loss { LOSSES(ENUM_VALUE) LOSS_COUNT };
extern const char *const loss_names[];

#define TRIAL_ENDS(X) X(TRIAL_FINISHED, "finished") X(TRIAL_STOPPED, "stopped") X(TRIAL_STUCK, "stuck")
enum trial_end { TRIAL_ENDS(ENUM_VALUE) };
extern const char *const trial_end_names[];

/* The number of equal parts of the course's clock. */
enum { TRIAL_PARTS = 50 };

/* Wall time over the time of the steps from which on a training does not progress. */
enum { TRIAL_HOPELESS = 100 };

struct trial {
    double wall;                     /* s */
    double passed[TRIAL_PARTS + 1];  /* s of wall time at which a finished trial passes the end of that part of the
                                      * clock and does not fall behind it again */
    double losses[LOSS_COUNT];       /* s; with the course's `end` they are the wall time of a finished trial */
    double failures, nodes_lost;
    double memory_lost;              /* times that all copies in memory of a share were lost */
    double gpu_seconds;              /* of the GPUs that train */
    double joules;                   /* of all nodes that train; NaN: not known */
    enum trial_end end;
};

/* What happens to a trial. */
#define TRIAL_EVENTS(X) \
    X(EVENT_FAILURE, "failure") X(EVENT_SPARE_FAILURE, "spare_failure") X(EVENT_RESUMED, "resumed") \
    X(EVENT_RESIZED, "resized") \
    X(EVENT_FINISHED, "finished") X(EVENT_STOPPED, "stopped") X(EVENT_STUCK, "stuck")
enum trial_event_kind { TRIAL_EVENTS(ENUM_VALUE) };
extern const char *const trial_event_names[];
struct trial_event {
    double time;                     /* s of wall time */
    enum trial_event_kind kind;
    int node;                        /* -1: of none; of resized: how many nodes train from then on */
    const char *cause;               /* or NULL */
    double steps_lost;
};

/* The rules that all trials of a training share. */
struct trial_rules {
    const struct course *course;
    const struct failures *failures;
    const struct spares_spec *spares;        /* NULL: there is always one */
    int copies, stored; /* copies of checkpoints in memory, as in struct checkpoint_spec; 0: checkpoints are in the
                           storage */
    const struct elastic_spec *elastic; /* NULL: it waits for nodes */
    double init;                     /* s until a training of another size runs */
    double most;                     /* s of wall time after which a trial is stuck */
    uint64_t seed;
};

/* Trial `number` of a seed is the same however many there are. `observe` (or NULL) hears of each event, in their order.
 */
struct trial trial_run(const struct trial_rules *rules, uint64_t number,
                       void (*observe)(void *context, const struct trial_event *event), void *context);

#endif
