/* What a choice by predictions costs: of rows of one group, model, software, format, number of GPUs and of samples, how
 * much slower the one that is predicted to be the fastest is than the one that was measured to be. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "validate/validation.h"

enum { TOP = 3 };

/* A row of a choice: s, or what a rate makes of them. */
struct option {
    size_t row;
    double predicted, measured;
};

static bool is_time(const struct column *column)
{
    return column->kind == COLUMN_MEASURED && !column->ratio &&
           (column->metric->kind == METRIC_TIME || column->metric->kind == METRIC_RATE);
}

static bool option_of(const struct validation *validation, size_t row, struct option *option)
{
    const struct column *column = &validation->paper->columns[validation->first];
    double predicted = validation_predicted(validation, row, validation->first);
    double measured = validation->paper->rows[row].measured[validation->first];
    bool rate = column->metric->kind == METRIC_RATE;

    *option = (struct option){row, rate ? 1 / predicted : predicted, rate ? 1 / measured : measured};
    return validation->outcomes[row].measurable && isfinite(option->predicted) && isfinite(option->measured);
}

static bool together(const struct validation *validation, size_t a, size_t b)
{
    const struct outcome *one = &validation->outcomes[a], *other = &validation->outcomes[b];

    return !strcmp(validation->paper->rows[a].group, validation->paper->rows[b].group) &&
           fabs(one->metrics.samples - other->metrics.samples) < 0.5 &&
           fabs(one->likeness.gpus - other->likeness.gpus) < 0.5 &&
           text_same(one->likeness.software, other->likeness.software) &&
           text_same(one->likeness.model, other->likeness.model) &&
           text_same(one->likeness.costs, other->likeness.costs) &&
           text_same(one->likeness.format, other->likeness.format) &&
           fabs(one->likeness.sequence - other->likeness.sequence) < 0.5;
}

static int by_prediction(const void *left, const void *right)
{
    const struct option *a = left, *b = right;

    if (a->predicted < b->predicted || a->predicted > b->predicted)
        return a->predicted < b->predicted ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

static void take_choice(struct option *options, size_t count, struct regret *regret)
{
    double best = INFINITY, three = INFINITY, one;

    array_sort(options, count, sizeof *options, by_prediction);
    for (size_t i = 0; i < count; i++) {
        best = fmin(best, options[i].measured);
        three = i < TOP ? fmin(three, options[i].measured) : three;
    }
    one = options[0].measured / best - 1;
    if (one > regret->worst[0])
        regret->row = options[0].row;
    regret->choices++;
    regret->sum[0] += one;
    regret->sum[1] += three / best - 1;
    regret->worst[0] = fmax(regret->worst[0], one);
    regret->worst[1] = fmax(regret->worst[1], three / best - 1);
}

void validation_regret(const struct validation *validation, struct regret *regret)
{
    size_t rows = validation->paper->nrows;
    struct option *options = xcalloc(rows + 1, sizeof *options);
    bool *taken = xcalloc(rows + 1, sizeof *taken);

    *regret = (struct regret){0};
    for (size_t i = 0; i < rows && is_time(&validation->paper->columns[validation->first]); i++) {
        size_t count = 0;

        for (size_t j = i; j < rows; j++)
            if (!taken[j] && option_of(validation, j, &options[count]) &&
                (j == i || (count && together(validation, i, j)))) {
                taken[j] = true;
                count++;
            }
        if (count > 1)
            take_choice(options, count, regret);
    }
    free(options);
    free(taken);
}

void validation_print_regret(const struct validation *validation, FILE *out)
{
    struct regret regret;

    validation_regret(validation, &regret);
    if (!regret.choices)
        return;
    fprintf(out,
            "%s: %zu choice%s of configurations of one model, software, format, number of GPUs and of samples: the row "
            "that is predicted to be the fastest is "
            "%.2f %% slower than the fastest, %.1f %% at most (%s); the best of the first three %.2f %%, %.1f %%\n",
            validation->paper->name, regret.choices, regret.choices == 1 ? "" : "s",
            100 * regret.sum[0] / (double)regret.choices, 100 * regret.worst[0],
            regret.worst[0] > 0 ? validation->paper->rows[regret.row].id : "none",
            100 * regret.sum[1] / (double)regret.choices, 100 * regret.worst[1]);
}
