#include "train/row_metrics.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "files/json.h"
#include "scenario/scenario.h"
#include "train/training.h"

enum { TRIALS = 200 };

#define QUANTILES(NAME) NAME, NAME "_p10", NAME "_p50", NAME "_p90"

/* In the order of estimates(); those of a training whose name an iteration has too begin with "training_". */
static const char *const names[] = {
    QUANTILES("days"), QUANTILES("goodput"), QUANTILES("training_gpu_hours"), QUANTILES("training_cost"),
    QUANTILES("training_energy_j"),
};

const char *training_metric(const char *name)
{
    static const char own[] = "training_";

    for (size_t i = 0; i < COUNT(names); i++)
        if (!strcmp(names[i], name) || (!strncmp(names[i], own, strlen(own)) && !strcmp(names[i] + strlen(own), name)))
            return names[i];
    return NULL;
}

const char *training_metric_at(size_t index)
{
    return index < COUNT(names) ? names[index] : NULL;
}

bool training_is_asked(const struct scenario *scenario)
{
    const struct training_spec *train = scenario->train;

    return train && (!isnan(train->amount.tokens) || !isnan(train->amount.samples) || !isnan(train->amount.steps) ||
                     !isnan(train->per_parameter) || train->target || train->phases.count);
}

int training_put_metrics(json_t *metrics, const struct scenario *scenario, struct error *err)
{
    struct training training;
    int rc = training_init(&training, scenario, (struct training_options){.trials = TRIALS, .seed = 1, .jobs = 1}, err);
    const struct estimate *estimates[] = {&training.days, &training.goodput, &training.gpu_hours, &training.price,
                                          &training.energy};

    for (size_t i = 0; i < COUNT(estimates) && !rc; i++) {
        const double values[] = {estimates[i]->mean, estimates[i]->p10, estimates[i]->p50, estimates[i]->p90};

        for (size_t k = 0; k < COUNT(values); k++)
            json_put(metrics, names[i * COUNT(values) + k], json_finite(values[k]));
    }
    if (!rc)
        json_put(metrics, "training_steps", json_integer((json_int_t)training.course.steps));
    training_release(&training);
    return rc;
}
