/* The collective chart: the bus bandwidth of collectives and their time against their size, and what was measured where
 * the rows say so. An algorithm has a colour, a number of ranks a line style. */
#include <math.h>
#include <string.h>

#include "curves.h"
#include "records.h"

/* What makes bytes over seconds the bandwidth of a bus (nccl-tests, doc/PERFORMANCE.md). */
static double bus_factor(const char *op, double ranks)
{
    static const char *const shared[] = {"reduce_scatter", "all_gather", "all_to_all"};

    if (strcmp(op, "all_reduce") == 0)
        return 2 * (ranks - 1) / ranks;
    for (size_t i = 0; i < COUNT(shared); i++)
        if (strcmp(op, shared[i]) == 0)
            return (ranks - 1) / ranks;
    return 1;
}

/* The text that all rows have under a key; "" where they differ. */
static const char *shared_text(const struct records *rows, const char *key)
{
    const char *text = rows->count ? record_text(&rows->items[0], key) : "";

    for (size_t i = 1; i < rows->count; i++)
        if (strcmp(record_text(&rows->items[i], key), text))
            return "";
    return text;
}

/* "all_reduce on dgx-h100: bus bandwidth and time against size", as far as all rows have it. */
static const char *title_of(const struct chart *chart, const struct records *rows)
{
    const char *op = shared_text(rows, "op"), *cluster = shared_text(rows, "cluster");

    return text_clean(chart->arena, arena_printf(chart->arena, "%s%s%s: bus bandwidth and time against size",
                                                 *op ? op : "Collectives", *cluster ? " on " : "",
                                                 last_part(chart->arena, cluster)), 90);
}

/* "ring"; with the operation, and the file's name, where there are several. Where a library chose the algorithm size by
 * size, what it chose is one curve: "auto". */
static const char *algorithm_of(const struct chart *chart, const struct record *row, bool one_op)
{
    const char *asked = record_text(row, "asked"), *text;

    text = arena_printf(chart->arena, "%s%s%s", one_op ? "" : record_text(row, "op"), one_op ? "" : " ",
                        *asked ? asked : record_text(row, "algorithm"));
    if (chart->ninputs > 1)
        text = arena_printf(chart->arena, "%s, %s", text, last_part(chart->arena, row->path));
    return text_clean(chart->arena, text, 50);
}

static int add_row(const struct chart *chart, const struct record *row, bool one_op, struct curves *curves)
{
    double ranks, bytes, seconds, measured = record_number_or(row, "measured_s", NAN), factor;
    const char *algorithm = algorithm_of(chart, row, one_op), *dash;

    if (record_number(row, "ranks", &ranks, chart->err) || record_number(row, "bytes", &bytes, chart->err) ||
        record_number(row, "time_s", &seconds, chart->err))
        return -1;
    if (bytes <= 0 || seconds <= 0 || ranks < 1)
        return 0;                        /* nothing was sent */
    factor = bus_factor(record_text(row, "op"), ranks) * bytes / 1e9;
    if (measured > 0)
        curves->reference = "measured";
    dash = arena_printf(chart->arena, "%g ranks", ranks);
    *GROW(&curves->points) = (struct curve_point){
        arena_printf(chart->arena, "%s, %s", algorithm, dash), bytes, factor / seconds,
        measured > 0 ? factor / measured : NAN, seconds, measured > 0 ? measured : NAN, algorithm, dash,
    };
    return 0;
}

int collective_draw(struct chart *chart)
{
    struct curves curves = {
        .x = "size", .x_format = "%.0s %cB", .y = "bus bandwidth (GB/s)", .lower = "time", .lower_format = "%.0s %cs",
        .rings = true, .log_x = true, .log_lower = true, .base = 10,
    };
    struct records rows = {0};
    bool one_op;
    int failed = chart->rows->rows ? records_add(&rows, chart->rows->rows, chart->dir, chart->err) : 0;

    for (int i = 0; !chart->rows->rows && i < chart->ninputs; i++)
        failed |= records_load(&rows, chart->inputs[i], chart->err);
    one_op = *shared_text(&rows, "op");
    curves.title = title_of(chart, &rows);
    for (size_t i = 0; !failed && i < rows.count; i++)
        failed = add_row(chart, &rows.items[i], one_op, &curves);
    if (!failed && curves.points.count == 0)
        failed = error_add(chart->err, EXIT_INPUT, (struct loc){.file = chart->dir}, "no row sends anything");
    failed = failed || curves_draw(chart, &curves);
    curves_release(&curves);
    records_release(&rows);
    return failed ? -1 : 0;
}
