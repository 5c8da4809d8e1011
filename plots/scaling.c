/* The scaling chart: throughput against GPUs, next to ideal throughput: the throughput of each curve's smallest run,
 * times its number of GPUs over that run's. Below it efficiency, throughput over ideal throughput. Strong scaling: runs
 * of the same global batch. Weak scaling: runs of the same batch per GPU. */
#include <math.h>

#include <string.h>

#include "curves.h"
#include "rows.h"

struct size { double gpus, batch, throughput; };

static int read_size(const struct chart *chart, int run, struct size *size)
{
    const struct headline *headline = &chart->runs[run];

    if (headline_number(headline, "gpus", &size->gpus, chart->err) ||
        headline_number(headline, "scenario.batch.global", &size->batch, chart->err) ||
        headline_number(headline, "samples_per_s", &size->throughput, chart->err))
        return -1;
    if (size->gpus < 1 || size->throughput <= 0)
        return error_add(chart->err, EXIT_INPUT, (struct loc){.file = headline->path}, "no throughput to draw");
    return 0;
}

/* Whether both are of one curve. */
static bool related(const struct size *a, const struct size *b, bool strong)
{
    if (strong)
        return a->batch == b->batch;
    return fabs(a->batch / a->gpus - b->batch / b->gpus) <= 1e-9 * a->batch / a->gpus;
}

/* The run with the fewest GPUs of the run's curve; of several the first, or the best. -1: the curve has one number of
 * GPUs only. */
static int smallest_of(const struct size *sizes, int count, int run, bool strong, bool best)
{
    int smallest = run;
    bool several = false;

    for (int i = 0; i < count; i++)
        if (related(&sizes[i], &sizes[run], strong)) {
            several |= sizes[i].gpus != sizes[run].gpus;
            if (sizes[i].gpus < sizes[smallest].gpus ||
                (sizes[i].gpus == sizes[smallest].gpus && (best ? sizes[i].throughput > sizes[smallest].throughput
                                                                : i < smallest)))
                smallest = i;
        }
    return several ? smallest : -1;
}

/* Whether another run with as many GPUs and samples is faster, or is as fast and before it. Of a sweep the best points
 * alone are drawn. */
static bool is_bettered(const struct size *sizes, int count, int run)
{
    const struct size *own = &sizes[run];

    for (int i = 0; i < count; i++)
        if (i != run && sizes[i].gpus == own->gpus && sizes[i].batch == own->batch &&
            (sizes[i].throughput > own->throughput || (sizes[i].throughput >= own->throughput && i < run)))
            return true;
    return false;
}

static void add_points(const struct chart *chart, const struct size *sizes, struct curves *curves, bool strong)
{
    for (int i = 0; i < chart->ninputs; i++) {
        int first = smallest_of(sizes, chart->ninputs, i, strong, chart->rows->rows != NULL);
        const char *series;
        double ideal;

        if (first < 0 || (chart->rows->rows && is_bettered(sizes, chart->ninputs, i)))
            continue;
        series = strong ? arena_printf(chart->arena, "strong, batch %.6g", sizes[i].batch)
                        : arena_printf(chart->arena, "weak, batch %.4g a GPU", sizes[i].batch / sizes[i].gpus);
        ideal = sizes[first].throughput / sizes[first].gpus * sizes[i].gpus;
        *GROW(&curves->points) = (struct curve_point){
            series, sizes[i].gpus, sizes[i].throughput, ideal, 100 * sizes[i].throughput / ideal, 100, NULL, NULL,
        };
    }
}

/* Samples of different models are no throughput to compare. */
static int check_models(const struct chart *chart)
{
    const char *const *keys = point_keys(chart);

    for (size_t i = 0; keys[i]; i++)
        if (strncmp(keys[i], "model", 5) == 0 && key_varies(chart, keys[i], NULL, 1))
            return error_add(chart->err, EXIT_USAGE, (struct loc){0}, "scaling: the rows differ in '%s'; --where "
                             "chooses one", keys[i]);
    return 0;
}

int scaling_draw(struct chart *chart)
{
    struct curves curves = {
        .title = "Scaling: throughput and efficiency", .x = "GPUs", .y = "samples/s",
        .note = noted(chart, arena_printf(chart->arena, "%sideal: the throughput per GPU of each curve's smallest run",
                                          chart->rows->rows ? "the best points of a sweep; " : "")),
        .lower = "efficiency (%)", .reference = "ideal", .log_x = true, .log_y = true, .base = 2,
    };
    struct size *sizes = ARENA_ARRAY(chart->arena, struct size, chart->ninputs);
    int failed = check_models(chart);

    for (int i = 0; i < chart->ninputs; i++)
        failed |= read_size(chart, i, &sizes[i]);
    if (!failed) {
        add_points(chart, sizes, &curves, false);
        add_points(chart, sizes, &curves, true);
    }
    if (!failed && curves.points.count == 0)
        failed = error_add(chart->err, EXIT_USAGE, (struct loc){0}, "scaling: expected runs on different numbers of "
                           "GPUs with the same global batch (strong) or the same batch per GPU (weak)");
    failed = failed || curves_draw(chart, &curves);
    curves_release(&curves);
    return failed ? -1 : 0;
}
