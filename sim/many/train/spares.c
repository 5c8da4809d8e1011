/* The number of spare nodes that a training has: said, or the one that costs the fewest GPU-hours. */
#include "train/training.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"

enum { TRIALS = 200,             /* that choose */
       WORSE = 3 };              /* numbers in a row that cost more than the best before them end the search */

/* Mean GPU-seconds of a training with as many spare nodes; INFINITY: no trial finishes. -1: an error. */
static int paid_with(struct training *training, int nodes, struct trial *trials, size_t count, double *paid, struct error *err)
{
    struct trial_rules rules;
    size_t finished = 0;
    double sum = 0;

    training->spared.nodes = nodes;
    rules = training_rules(training);
    if (trials_run(trials, count, &rules, training->options.jobs, training->scenario->progress, err))
        return -1;
    for (size_t i = 0; i < count; i++)
        if (trials[i].end == TRIAL_FINISHED) {
            sum += training_paid(training, &trials[i]);
            finished++;
        }
    *paid = finished < count ? INFINITY : sum / (double)finished;
    return 0;
}

int spares_choose(struct training *training, struct error *err)
{
    const struct spares_spec *said = training->scenario->train->spares;
    size_t count = training->options.trials < TRIALS ? training->options.trials : TRIALS;
    int most = steps_of(&training->steps, training->main)->nodes, best = 0, worse = 0, rc = 0;
    struct trial *trials;
    double least = INFINITY, paid;

    if (!said || said->nodes != FIELD_AUTO)
        return 0;
    trials = xcalloc(count, sizeof *trials);
    for (int nodes = 0; nodes <= most && worse < WORSE && !rc; nodes += nodes < 8 ? 1 : nodes / 4) {
        rc = paid_with(training, nodes, trials, count, &paid, err);
        if (!rc && paid < least)
            least = paid, best = nodes, worse = 0;
        else
            worse += isfinite(least);
    }
    training->spared.nodes = best;
    free(trials);
    if (!rc && !isfinite(least))
        return error_clash(err, node_loc(said->node, "nodes"),
                           "train: spares: nodes: with none of up to %d spare nodes does every trial end; expected 'repair', a "
                           "smaller 'per_node_day', or a number of nodes", most);
    return rc;
}
