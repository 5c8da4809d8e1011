#include "train/row_metrics.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "files/json.h"
#include "scenario/scenario.h"
#include "train/training_view.h"
#include "view/view.h"

enum { TRIALS = 200 };

/* Those of a training whose name an iteration has too begin with "training_". */
#define ROW_METRICS(ROW) \
    ESTIMATE(ROW, days, it->days, "of rows with 'train': as dtsim train has it") \
    ESTIMATE(ROW, goodput, it->goodput, "the same") \
    ESTIMATE(ROW, training_gpu_hours, it->gpu_hours, "the same: gpu_hours") \
    ESTIMATE(ROW, training_cost, it->price, "the same: cost") \
    ESTIMATE(ROW, training_energy_j, it->energy, "the same: energy_j") \
    ROW(training_steps, json_integer((json_int_t)it->course.steps), "the same: steps")
VIEW_SHARED(training_row_view, struct training, it, ROW_METRICS)

const char *training_metric(const char *name)
{
    static const char own[] = "training_";
    const char *metric;

    for (size_t i = 0; (metric = training_metric_at(i)); i++)
        if (!strcmp(metric, name) || (!strncmp(metric, own, strlen(own)) && !strcmp(metric + strlen(own), name)))
            return metric;
    return NULL;
}

const char *training_metric_at(size_t index)
{
    return index + 1 < training_row_view.count ? training_row_view.rows[index].key : NULL;
}

bool training_is_asked(const struct scenario *scenario)
{
    return training_says_amount(scenario->train);
}

int training_put_metrics(json_t *metrics, const struct scenario *scenario, const struct run *run, struct error *err)
{
    struct training training;
    int rc = training_init_with(&training, scenario, run, (struct training_options){.trials = TRIALS, .seed = 1, .jobs = 1}, err);

    if (!rc)
        view_put(&training_row_view, &training, metrics);
    training_release(&training);
    return rc;
}
