/* utilization.tsv: the activity of the compute lanes over time, as mean shares of the ranks. */
#include "tables/tables_internal.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/cells.h"
#include "run/account.h"
#include "scenario/scenario.h"


enum { WINDOWS = 200, SAMPLES = 8 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* When rank 0 begins a backward: of a micro-batch, or of the next part of it after something else. */
struct starts { double *items; size_t count, capacity; };
struct rhythm { struct starts whole, parts; enum op_what last; };

static void note_backward(void *context, const struct account_step *step)
{
    struct rhythm *rhythm = context;
    const struct op *op = step->op;

    if (step->rank != 0 || !op)
        return;
    if (op->what == WHAT_BACKWARD || op->what == WHAT_BACKWARD_INPUT) {
        if (!op->continues)
            *GROW(&rhythm->whole) = step->start;
        if (!op->continues || rhythm->last != op->what)
            *GROW(&rhythm->parts) = step->start;
    }
    rhythm->last = op->what;
}

/* The median time from one start to the next, in s; 0: there are not two of them. Releases them. */
static double period_of(struct starts *starts)
{
    double period = 0;

    for (size_t i = 0; i + 1 < starts->count; i++)
        starts->items[i] = starts->items[i + 1] - starts->items[i];
    if (starts->count > 1) {
        array_sort(starts->items, starts->count - 1, sizeof *starts->items, by_value);
        period = starts->items[(starts->count - 1) / 2];
    }
    free(starts->items);
    return period;
}

/* Windows that are neither parts of a period nor whole periods would beat against it: waves would be seen that nobody
 * makes. So a window is an eighth of a period or less, or else whole periods: of micro-batches, or, where these are
 * long, of the layers in them that recompute and then go back. */
static double window_width(const struct run *run)
{
    double wanted = run->timeline.makespan / WINDOWS, periods[2];
    struct rhythm rhythm = {.last = WHAT_COUNT};
    double width = wanted;

    account_walk(&run->timeline, note_backward, &rhythm, NULL);
    periods[0] = period_of(&rhythm.whole);
    periods[1] = period_of(&rhythm.parts);
    for (int i = 0; i < 2; i++) {
        double period = periods[i];

        if (period > 0 && period < SAMPLES * wanted)
            return period * fmax(1, round(wanted / period));
        if (period > 0)
            width = period / ceil(period / wanted);
    }
    return width;
}

struct bins { struct bin { double from, to, seconds[ACCOUNT_KIND_COUNT]; } *items; size_t count, capacity; double weight; };

/* Works of a rank that overlap: each of them takes the time of all, with its share of the rank. */
struct together { struct account_step *items; size_t count, capacity; };
struct sums { struct bins bins; struct together *ranks; const struct scenario *scenario; };

/* Windows of that width from `from` to `to`, the last one up to half as wide again, or half as wide. */
static void cut(struct bins *bins, double from, double to, double width)
{
    double count = to > from ? fmax(1, round((to - from) / width)) : 0;

    for (double i = 0; i < count; i++)
        *GROW(bins) = (struct bin){.from = from + i * width, .to = i + 1 < count ? from + (i + 1) * width : to};
}

/* The first of the windows that ends after that time. */
static size_t first_after(const struct bins *bins, double time)
{
    size_t low = 0, high = bins->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (bins->items[middle].to > time)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Adds the share of a step to the windows, with the weight of its rank. */
static void add_step(struct bins *bins, const struct account_step *step, double share)
{
    for (size_t i = first_after(bins, step->from); i < bins->count && bins->items[i].from < step->end; i++) {
        struct window window = {.from = bins->items[i].from, .to = bins->items[i].to, .updates = 1};
        double seconds[ACCOUNT_KIND_COUNT] = {0};

        account_add(step, &window, seconds);
        for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
            bins->items[i].seconds[kind] += bins->weight * share * seconds[kind];
    }
}

/* Adds works that overlap, and what the first of them waited for. */
static void add_together(struct bins *bins, struct together *works)
{
    if (!works->count)
        return;
    struct account_step wait = works->items[0];
    double start = wait.start, end = works->items[works->count - 1].end;

    wait.op = NULL;
    wait.end = start;
    add_step(bins, &wait, 1);
    for (size_t i = 0; i < works->count && end > start; i++) {
        struct account_step step = works->items[i];
        double share = (step.end - step.start) / (end - start);

        step.from = step.since = step.ready = step.start = start;
        step.end = end;
        add_step(bins, &step, share);
    }
    works->count = 0;
}

static void take_step(void *context, const struct account_step *step)
{
    struct sums *sums = context;
    struct together *works = &sums->ranks[step->rank];
    sums->bins.weight = scenario_rank_weight(sums->scenario, step->rank);
    bool follows = works->count && step->op && step->start - works->items[works->count - 1].end <= 1e-9 * step->start;

    if (!follows)
        add_together(&sums->bins, works);
    if (follows || (step->op && step->op->overlapped))
        *GROW(works) = *step;
    else
        add_step(&sums->bins, step, 1);
    if (works->count && step->op && !step->op->overlapped)
        add_together(&sums->bins, works);
}

/* The windows lie wholly within the part of the timeline that is measured, or outside it. */
void utilization_write(const struct run *run, FILE *out)
{
    const struct window *window = &run->metrics.window;
    double width = window_width(run), makespan = run->timeline.makespan;
    int ranks = run->lowered.program.ranks;
    struct cells cells = {.out = out};
    struct sums sums = {.ranks = xcalloc((size_t)ranks + 1, sizeof *sums.ranks), .scenario = run->workload->scenario};
    double weights = scenario_rank_weights(sums.scenario, ranks);

    if (width > 0) {
        cut(&sums.bins, 0, window->from, width);
        cut(&sums.bins, window->from, window->to, width);
        cut(&sums.bins, window->to, makespan, width);
        account_walk(&run->timeline, take_step, &sums, NULL);
    }
    fputs("t0\tt1", out);
    for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
        fprintf(out, "\t%s", account_names[kind]);
    putc('\n', out);
    for (size_t i = 0; i < sums.bins.count; i++) {
        const struct bin *bin = &sums.bins.items[i];

        cells_number(&cells, bin->from);
        cells_number(&cells, bin->to);
        for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
            cells_number(&cells, bin->seconds[kind] / (bin->to - bin->from) / weights);
        cells_end_line(&cells);
    }
    cells_flush(&cells);
    for (int rank = 0; rank < ranks; rank++)
        free(sums.ranks[rank].items);
    free(sums.ranks);
    free(sums.bins.items);
}
