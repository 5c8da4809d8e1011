/* The collective chart: the bus bandwidth of collectives against their size, and what was measured where the rows say
 * so. */
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

/* "all_reduce ring, 16 ranks"; with the file's name where there are several. */
static const char *series_of(const struct chart *chart, const struct record *row, double ranks)
{
    const char *slash = strrchr(row->path, '/'), *text;

    text = arena_printf(chart->arena, "%s %s, %g ranks", record_text(row, "op"), record_text(row, "algorithm"), ranks);
    if (chart->ninputs > 1)
        text = arena_printf(chart->arena, "%s, %s", text, slash ? slash + 1 : row->path);
    return text_clean(chart->arena, text, 60);
}

static int add_row(const struct chart *chart, const struct record *row, struct curves *curves)
{
    double ranks, bytes, seconds, measured = record_number_or(row, "measured_s", NAN), factor;

    if (record_number(row, "ranks", &ranks, chart->err) || record_number(row, "bytes", &bytes, chart->err) ||
        record_number(row, "time_s", &seconds, chart->err))
        return -1;
    if (bytes <= 0 || seconds <= 0 || ranks < 1)
        return 0;                        /* nothing was sent */
    factor = bus_factor(record_text(row, "op"), ranks) * bytes / 1e9;
    if (measured > 0)
        curves->reference = "measured";
    *GROW(&curves->points) = (struct curve_point){
        series_of(chart, row, ranks), bytes, factor / seconds, measured > 0 ? factor / measured : NAN,
    };
    return 0;
}

int collective_draw(struct chart *chart)
{
    struct curves curves = {
        .title = "Collectives: bus bandwidth against size", .x = "size", .x_format = "%.0s %cB",
        .y = "bus bandwidth (GB/s)", .rings = true, .log_x = true, .x_base = 10,
    };
    struct records rows = {0};
    int failed = 0;

    for (int i = 0; i < chart->ninputs; i++)
        failed |= records_load(&rows, chart->inputs[i], chart->err);
    for (size_t i = 0; !failed && i < rows.count; i++)
        failed = add_row(chart, &rows.items[i], &curves);
    if (!failed && curves.points.count == 0)
        failed = error_add(chart->err, EXIT_INPUT, (struct loc){.file = chart->dir}, "no row sends anything");
    failed = failed || curves_draw(chart, &curves);
    curves_release(&curves);
    records_release(&rows);
    return failed ? -1 : 0;
}
