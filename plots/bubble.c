/* The bubble chart: bubbles of several runs against micro-batches, stages or GPUs, a curve a schedule, and what the
 * closed forms of the schedules say. */
#include <math.h>
#include <string.h>

#include "curves.h"
#include "rows.h"

/* What may be the horizontal axis: the first of which there are several values. */
static const struct axis { const char *key, *label; } axes[] = {
    {"scenario.batch.micro_batches", "micro-batches of a replica"},
    {"scenario.strategy.pipeline", "pipeline stages"},
    {"scenario.strategy.chunks", "chunks of a rank"},
    {"gpus", "GPUs"},
};

static int values_at(const struct chart *chart, const char *key, double *values, bool *vary)
{
    *vary = false;
    for (int i = 0; i < chart->ninputs; i++) {
        if (chart->rows->rows && !headline_text(chart->arena, &chart->runs[i], key))
            return 0;                    /* a row has what the sweep sets alone */
        if (headline_number(&chart->runs[i], key, &values[i], chart->err))
            return -1;
        *vary |= values[i] != values[0];
    }
    return 0;
}

/* The axis, and each run's place on it. */
static int choose_axis(const struct chart *chart, const struct axis **axis, double *values)
{
    bool vary = false;

    for (size_t i = 0; i < COUNT(axes) && !vary; i++) {
        *axis = &axes[i];
        if (values_at(chart, axes[i].key, values, &vary))
            return -1;
    }
    if (!vary && chart->rows->rows)
        return error_add(chart->err, EXIT_USAGE, (struct loc){0}, "bubble: expected rows that differ in micro-batches "
                         "(batch.micro_batches), stages, chunks or GPUs");
    return vary ? 0 : values_at(chart, (*axis = &axes[0])->key, values, &vary);
}

/* What tells curves apart: the schedule, and the numbers that vary without being the axis. `of_rows`: the axis of a
 * sweep's rows. */
static const char *series_of(const struct chart *chart, const struct axis *axis, const struct row_axis *of_rows,
                             int run)
{
    static const char *const names[] = {" micro-batches", " stages", " chunks", " GPUs"};
    const char *text = headline_text(chart->arena, &chart->runs[run], "scenario.strategy.schedule");

    if (chart->rows->rows) {
        text = row_label(chart, chart->runs[run].result, of_rows);
        return *text ? text : sweep_title(chart);
    }
    text = text ? text : "own order";
    for (size_t k = 0; k < 3; k++) {
        const char *own = headline_text(chart->arena, &chart->runs[run], axes[k].key);
        bool vary = false;

        for (int i = 0; i < chart->ninputs && own && &axes[k] != axis; i++) {
            const char *other = headline_text(chart->arena, &chart->runs[i], axes[k].key);

            vary |= !other || strcmp(own, other) != 0;
        }
        if (vary && !(k == 2 && strcmp(own, "1") == 0))
            text = arena_printf(chart->arena, "%s, %s%s", text, own, names[k]);
    }
    return text;
}

int bubble_draw(struct chart *chart)
{
    struct curves curves = {
        .title = "Bubble: the share of an iteration that the average rank waits for other ranks' kernels",
        .rings = true,
        .y = "bubble (%)",
    };
    double *values = ARENA_ARRAY(chart->arena, double, chart->ninputs);
    const struct axis *axis;
    struct row_axis of_rows;
    int failed = choose_axis(chart, &axis, values);
    const char *dot = failed ? NULL : strchr(axis->key, '.');

    if (!failed && chart->rows->rows)
        failed = row_axis_read(chart, dot ? dot + 1 : axis->key, &of_rows);

    for (int i = 0; !failed && i < chart->ninputs; i++) {
        double closed;

        if (!headline_text(chart->arena, &chart->runs[i], "closed_form_bubble") ||
            headline_number(&chart->runs[i], "closed_form_bubble", &closed, chart->err))
            closed = NAN;
        if (!isnan(closed))
            curves.reference = "closed form";
        *GROW(&curves.points) = (struct curve_point){
            series_of(chart, axis, &of_rows, i), values[i], 100 * fmax(chart->runs[i].bubble, 0), 100 * closed,
        };
    }
    if (!failed) {
        curves.x = axis->label;
        curves.note = noted(chart, curves.reference ? "closed forms: every stage takes the mean time for its kernels, "
                                                      "the network none" : "");
        failed = curves_draw(chart, &curves);
    }
    curves_release(&curves);
    return failed ? -1 : 0;
}
