/* The number of spare nodes that a training has: said, or the one that costs the fewest GPU-hours. */
#include "train/training.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"

enum { TRIALS = 200,             /* that choose */
       WORSE = 3 };              /* numbers in a row that cost more than the best before them end the search */

/* The number that costs the fewest GPU-seconds so far, and the number that was tried before it. */
struct search {
    struct training *training;
    struct trial *trials;
    size_t count;
    int best, below;
    double least;
};

/* Plays a training with as many spare nodes; a number with which a trial does not finish is none. -1: an error. */
static int try_nodes(struct search *search, int nodes, struct error *err)
{
    struct training *training = search->training;
    struct trial_rules rules;
    size_t finished = 0;
    double sum = 0;

    training->spared.nodes = nodes;
    rules = training_rules(training);
    if (trials_run(search->trials, search->count, &rules, training->options.jobs, training->scenario->progress, err))
        return -1;
    for (size_t i = 0; i < search->count; i++)
        if (search->trials[i].end == TRIAL_FINISHED) {
            sum += training_paid(training, &search->trials[i]);
            finished++;
        }
    if (finished == search->count && sum < search->least)
        search->least = sum, search->best = nodes;
    return 0;
}

/* The next number that is tried: each up to 8, then about a quarter more, and the last one. */
static int step_from(int nodes, int most)
{
    int next = nodes + (nodes < 8 ? 1 : nodes / 4);

    return nodes < most && next > most ? most : next;
}

int spares_choose(struct training *training, struct error *err)
{
    const struct spares_spec *said = training->scenario->train->spares;
    size_t count = training->options.trials < TRIALS ? training->options.trials : TRIALS;
    int most = steps_of(&training->steps, training->main)->nodes, worse = 0, rc = 0;
    struct search search = {.training = training, .count = count, .least = INFINITY};

    if (!said || said->nodes != FIELD_AUTO)
        return 0;
    search.trials = xcalloc(count, sizeof *search.trials);
    for (int nodes = 0; nodes <= most && worse < WORSE && !rc; nodes = step_from(nodes, most)) {
        int before = search.best;
        double least = search.least;

        rc = try_nodes(&search, nodes, err);
        worse = search.least < least ? 0 : worse + isfinite(least);
        if (search.best != before)
            search.below = before;
    }
    for (int nodes = search.below + 1, last = step_from(search.best, most), middle = search.best; nodes < last && !rc; nodes++)
        rc = nodes == middle ? 0 : try_nodes(&search, nodes, err);
    training->spared.nodes = search.best;
    free(search.trials);
    if (!rc && !isfinite(search.least))
        return error_clash(err, node_loc(said->node, "nodes"),
                           "train: spares: nodes: with none of up to %d spare nodes does every trial end; expected 'repair', a "
                           "smaller 'per_node_day', or a number of nodes", most);
    return rc;
}
