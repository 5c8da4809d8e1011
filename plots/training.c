/* The training chart: above, how far the training is after how much wall time, for good: without failures, and over
 * its trials; below, where the time is lost, by cause. */
#include "chart.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "files/tsv.h"

enum { PROGRESS = 300, LEAST_PROGRESS = 120, BAR = 22, LEAST_BAR = 15, BETWEEN = 66 };       /* pixels */
enum { BARS = 16 };

/* When the training is so far, s of wall time. */
struct passed { double amount, uninterrupted, p10, p50, p90; };
/* A cause, and its seconds in a training, mean over the trials. */
struct loss { const char *name; double seconds; };
struct training_chart {
    struct { struct passed *items; size_t count, capacity; } passed;
    const char *amount;              /* "tokens", "samples" or "steps" */
    struct loss losses[BARS];
    int nlosses;
    double wall;                     /* s, mean over the trials */
};

/* The unit in which a number reads best: how much of s, or of a count, one of it is. */
struct scale { double size; char name[16]; };

static struct scale scale_for(enum unit unit, double value)
{
    struct scale scale;

    scale.size = unit_readable(unit, value, scale.name);
    return scale;
}

/* The first of tokens, samples and steps that the row has, in `amount`. */
static int read_row(struct training_chart *training, const struct tsv *tsv, struct passed *passed, struct error *err)
{
    enum { STEPS, SAMPLES, TOKENS, UNINTERRUPTED, P10, P50, P90 };
    int column = *tsv_text(tsv, TOKENS) ? TOKENS : *tsv_text(tsv, SAMPLES) ? SAMPLES : STEPS;
    size_t rows = training->passed.count;

    if (tsv_number(tsv, column, &passed->amount, err) ||
        tsv_number(tsv, UNINTERRUPTED, &passed->uninterrupted, err) || tsv_number(tsv, P10, &passed->p10, err) ||
        tsv_number(tsv, P50, &passed->p50, err) || tsv_number(tsv, P90, &passed->p90, err))
        return -1;
    training->amount = column == TOKENS ? "tokens" : column == SAMPLES ? "samples" : "steps";
    if (!(0 <= passed->uninterrupted && passed->p10 <= passed->p50 && passed->p50 <= passed->p90))
        return error_add(err, EXIT_INPUT, tsv->loc, "the times are not between 0 and each other");
    if (rows && passed->amount < training->passed.items[rows - 1].amount)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, column), "less than in the row above");
    return 0;
}

static int read_progress(struct training_chart *training, const struct chart *chart)
{
    static const char *const columns[] = {"steps", "samples", "tokens", "uninterrupted_s", "p10_s", "p50_s", "p90_s",
                                          NULL};
    int before = chart->err->count + chart->err->dropped, failed;
    struct tsv tsv = {0};

    failed = tsv_open(&tsv, arena_printf(chart->arena, "%s/progress.tsv", chart->dir), columns, chart->err);
    while (!failed && tsv_next(&tsv, chart->err)) {
        struct passed passed;

        if (!read_row(training, &tsv, &passed, chart->err))
            *GROW(&training->passed) = passed;
    }
    failed |= chart->err->count + chart->err->dropped > before;
    if (!failed && training->passed.count < 2)
        failed = error_add(chart->err, EXIT_INPUT, tsv.loc, "no trial finished: nothing to draw");
    tsv_release(&tsv);
    return failed ? -1 : 0;
}

/* Every share of the wall time but the steps'. */
static int read_losses(struct training_chart *training, const struct chart *chart)
{
    const struct headline *headline = chart->runs;
    struct loc loc = {.file = headline->path};
    json_t *shares = json_object_get(headline->result, "time_shares"), *share;
    double days, sum = 0;
    const char *name;

    if (!json_is_object(shares))
        return error_add(chart->err, EXIT_INPUT, loc, "'time_shares' is missing; expected the folder of one training, "
                         "which 'dtsim train -o' writes");
    if (headline_number(headline, "days", &days, chart->err))
        return -1;
    training->wall = SECONDS_A_DAY * days;
    json_object_foreach(shares, name, share) {
        double value = json_number_value(share);

        sum += value;
        if (!strcmp(name, "steps") || value <= 0)
            continue;
        if (training->nlosses == BARS)
            return error_add(chart->err, EXIT_INPUT, loc, "'time_shares' has more than %d losses", BARS);
        training->losses[training->nlosses++] = (struct loss){name, value * training->wall};
    }
    if (fabs(sum - 1) > 1e-6)
        return error_add(chart->err, EXIT_INPUT, loc, "'time_shares' adds up to %.9g, not to 1", sum);
    return 0;
}

static int compare(const void *left, const void *right)
{
    const struct loss *a = left, *b = right;

    return a->seconds > b->seconds ? -1 : a->seconds < b->seconds ? 1 : strcmp(a->name, b->name);
}

/* "lost work": a key as words. */
static const char *words_of(struct arena *arena, const char *key)
{
    char *words = arena_strdup(arena, text_label(arena, key));

    for (char *c = words; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    return words;
}

static bool is_spread(const struct training_chart *training)
{
    const struct passed *last = &training->passed.items[training->passed.count - 1];

    return last->p10 < last->p90;
}

static void write_data(const struct chart *chart, const struct training_chart *training)
{
    const struct passed *items = training->passed.items;
    size_t count = training->passed.count;
    FILE *out = chart->data;

    fprintf(out, "part\t%s\tseconds\ttext\n", training->amount);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "uninterrupted\t%.15g\t%.15g\t\n", items[i].amount, items[i].uninterrupted);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "median\t%.15g\t%.15g\t\n", items[i].amount, items[i].p50);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "spread\t%.15g\t%.15g\t\n", items[i].amount, items[i].p10);
    for (size_t i = count; i-- > 0;)
        fprintf(out, "spread\t%.15g\t%.15g\t\n", items[i].amount, items[i].p90);
    for (int i = 0; i < training->nlosses; i++) {
        const struct loss *loss = &training->losses[i];
        struct scale scale = scale_for(UNIT_TIME, loss->seconds);

        fprintf(out, "lost\t%d\t%.17g\t%.2g %%, %.3g %s\n", i, loss->seconds, 100 * loss->seconds / training->wall,
                loss->seconds / scale.size, scale.name);
    }
}

/* Title lines below the name: the system, and the training's main numbers. */
static void set_lines(const struct chart *chart, const struct training_chart *training, struct layout *layout)
{
    const struct headline *headline = chart->runs;
    double p10 = headline_number_or(headline, "days_p10", NAN), p90 = headline_number_or(headline, "days_p90", NAN);
    struct scale scale = scale_for(UNIT_TIME, training->wall);
    const char *text;
    int lines = 0;

    layout->title = headline->name;
    if (*headline->system)
        layout->lines[lines++] = headline->system;
    text = arena_printf(chart->arena, "%.4g %s", training->wall / scale.size, scale.name);
    if (p10 < p90)
        text = arena_printf(chart->arena, "%s (P10 %.4g, P90 %.4g of %.0f trials)", text,
                            p10 * SECONDS_A_DAY / scale.size, p90 * SECONDS_A_DAY / scale.size,
                            headline_number_or(headline, "finished", NAN));
    layout->lines[lines++] = arena_printf(chart->arena, "%s, goodput %.1f %%", text,
                                          100 * headline_number_or(headline, "goodput", NAN));
}

static void write_progress(const struct chart *chart, const struct training_chart *training)
{
    const struct passed *last = &training->passed.items[training->passed.count - 1];
    struct scale time = scale_for(UNIT_TIME, last->p90), amount = scale_for(UNIT_COUNT, last->amount);
    FILE *out = chart->script;

    fprintf(out, "\nunit = %.15g    # s\nscale = %g\n", time.size, amount.size);
    fprintf(out, "set xrange [0:%.6g]\nset yrange [0:%.6g]\n", 1.02 * last->p90 / time.size,
            fmax(1.02 * last->amount / amount.size, 1e-9));
    fprintf(out, "set xlabel \"wall time (%s)\" offset 0,0.3\nset ylabel \"%s%s%s\" offset 0.8,0\n", time.name,
            amount.name, *amount.name ? " " : "", training->amount);
    fputs("set tmargin at screen 1 - 1.0*top/height\nset bmargin at screen 1 - (top + progress)/(1.0*height)\n"
          "at(part) = strcol(1) eq part ? $3/unit : NaN\nplot \\\n", out);
    if (is_spread(training))
        fputs("    data using (at(\"spread\")):($2/scale) with filledcurves closed fillstyle solid 1 noborder \\\n"
              "        fillcolor rgb spread_colour title \"P10 to P90 of the trials\", \\\n"
              "    data using (at(\"median\")):($2/scale) with lines linewidth 2 linecolor rgb median_colour \\\n"
              "        title \"median\", \\\n", out);
    fputs("    data using (at(\"uninterrupted\")):($2/scale) with lines dashtype (8, 6) linewidth 1.5 \\\n"
          "        linecolor rgb \"black\" title \"without failures\"\n", out);
}

static void write_losses(const struct chart *chart, const struct training_chart *training)
{
    struct scale scale = scale_for(UNIT_TIME, training->losses[0].seconds);
    FILE *out = chart->script;

    fprintf(out, "\nunset label      # said once\nunset ylabel\n"
                 "unit = %g    # s\nset xrange [0:%.6g]\nset yrange [%d - 0.5:-0.5]\n", scale.size,
            (chart->look->zoom < 1 ? 1.5 : 1.25) * training->losses[0].seconds / scale.size, training->nlosses);
    fprintf(out, "set xlabel \"lost time (%s), mean of the trials\" offset 0,0.3\nset ytics () scale 0\n", scale.name);
    for (int i = 0; i < training->nlosses; i++)
        fprintf(out, "set ytics add (\"%s\" %d)\n",
                text_tic(chart->arena, words_of(chart->arena, training->losses[i].name)), i);
    fputs("set tmargin at screen 1 - (top + progress + between)/(1.0*height)\n"
          "set bmargin at screen 1.0*bottom/height\n"
          "plot data using (0):2:(0):(at(\"lost\")):($2 - 0.36):($2 + 0.36) with boxxyerror \\\n"
          "        fillstyle solid 1 noborder fillcolor rgb lost_colour notitle, \\\n"
          "    data using (at(\"lost\")):2:4 with labels left offset 0.6,0 font at_size(0.9*font_size) notitle\n", out);
}

static void write_script(const struct chart *chart, const struct training_chart *training)
{
    struct layout layout = {
        .right = 22, .bottom = CHART_AXIS_HEIGHT, .entries = is_spread(training) ? 3 : 1,
        .longest = (int)strlen("P10 to P90 of the trials"),
    };
    double longest = 4;              /* ems of the widest label at the left; of the amounts, about */
    bool lost = training->nlosses > 0;
    int below = lost ? BETWEEN + BAR * training->nlosses : 0, high;
    FILE *out = chart->script;

    for (int i = 0; i < training->nlosses; i++)
        longest = fmax(longest, text_ems(words_of(chart->arena, training->losses[i].name)));
    layout.left = 24 + (int)ceil(13.4 * longest);
    layout.width = layout_width(chart, 720 + layout.left);
    set_lines(chart, training, &layout);
    high = layout_height(chart, &layout, PROGRESS + below,
                         LEAST_PROGRESS + (lost ? BETWEEN + LEAST_BAR * training->nlosses : 0));
    if (high < PROGRESS + below && lost)
        below = BETWEEN + LEAST_BAR * training->nlosses;
    script_begin(chart, &layout);
    fprintf(out, "\nspread_colour = 0xa6d4fa\nmedian_colour = 0x0072b2\nlost_colour = 0xe69f00\n"
                 "progress = %d\nbetween = %d    # pixels\n"
                 "\n# columns: 1 part of the picture; 2 how much is trained, or the row of a loss; 3 seconds; 4 text\n"
                 "set multiplot\n", high - below, BETWEEN);
    write_progress(chart, training);
    if (lost)
        write_losses(chart, training);
    fputs("unset multiplot\n", out);
    script_end(chart);
}

int training_draw(struct chart *chart)
{
    struct training_chart training = {0};
    struct headline headline = {0};
    int failed = headline_load_training(chart->arena, arena_printf(chart->arena, "%s/result.json", chart->dir),
                                        &headline, chart->err);

    chart->runs = &headline;
    failed = failed || read_losses(&training, chart) || read_progress(&training, chart) || chart_open(chart);
    if (!failed) {
        array_sort(training.losses, (size_t)training.nlosses, sizeof *training.losses, compare);
        write_data(chart, &training);
        write_script(chart, &training);
    }
    chart->runs = NULL;
    headline_release(&headline);
    free(training.passed.items);
    return failed ? -1 : 0;
}
