#include "validate/validation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "files/json.h"
#include "report/result.h"
#include "run/metrics.h"

enum { CELL = 32 };

static bool has_relative(const struct validation *validation)
{
    return validation->relative.count > 0;
}

static char *number_text(const struct column *column, double value, char text[CELL])
{
    char long_text[48];

    if (isnan(value))
        return strcpy(text, "");
    if (column->metric->kind == METRIC_BYTES && !column->ratio)
        unit_format_short(UNIT_BYTES, value, long_text, sizeof long_text);
    else
        snprintf(long_text, sizeof long_text, fabs(value) < 9999.5 ? "%.4g" : "%.0f", value);
    snprintf(text, CELL, "%.*s", CELL - 1, long_text);
    return text;
}

static char *error_text(double error, char text[CELL])
{
    if (isnan(error))
        return strcpy(text, "");
    snprintf(text, CELL, "%+.1f %%", 100 * error);
    return text;
}

static int id_width(const struct paper *paper)
{
    size_t width = 3;

    for (size_t i = 0; i < paper->nrows; i++)
        width = strlen(paper->rows[i].id) > width ? strlen(paper->rows[i].id) : width;
    return (int)width;
}

/* Whose error a column states: a rate states the error of the time, which is longer where the rate is lower. */
static const char *error_head(const struct column *column)
{
    return column->metric->kind == METRIC_RATE ? "time error" : "error";
}

static void print_heading(const struct validation *validation, int width, FILE *out)
{
    const struct paper *paper = validation->paper;

    fprintf(out, "%-*s", width, "row");
    for (size_t c = 0; c < paper->ncolumns; c++)
        if (paper->columns[c].kind == COLUMN_MEASURED)
            fprintf(out, " | %25s %10s", paper->columns[c].name, "");
    fputs(has_relative(validation) ? " | relative\n" : "\n", out);
    fprintf(out, "%-*s", width, "");
    for (size_t c = 0; c < paper->ncolumns; c++)
        if (paper->columns[c].kind == COLUMN_MEASURED)
            fprintf(out, " | %12s %12s %10s", "measured", "predicted", error_head(&paper->columns[c]));
    fputs(has_relative(validation) ? " | to\n" : "\n", out);
}

static void print_row(const struct validation *validation, size_t row, int width, FILE *out)
{
    const struct paper *paper = validation->paper;
    const struct outcome *outcome = &validation->outcomes[row];
    char text[3][CELL];

    fprintf(out, "%-*s", width, paper->rows[row].id);
    for (size_t c = 0; c < paper->ncolumns; c++) {
        const struct column *column = &paper->columns[c];

        if (column->kind != COLUMN_MEASURED)
            continue;
        fprintf(out, " | %12s %12s %10s", number_text(column, paper->rows[row].measured[c], text[0]),
                number_text(column, validation_predicted(validation, row, c), text[1]),
                error_text(validation_error(validation, row, c), text[2]));
    }
    if (!isnan(validation_relative_error(validation, row)))
        fprintf(out, " | %9s %s", error_text(validation_relative_error(validation, row), text[0]),
                paper->rows[paper->rows[row].relative].id);
    if (!outcome->simulated)
        fputs("  failed", out);
    else if (paper->rows[row].oom || !outcome->fits)
        fprintf(out, "  memory: %s, predicted %s", paper->rows[row].oom ? "too little" : "enough",
                outcome->fits ? "enough" : "too little");
    else if (outcome->fits_twice)
        fputs("  memory: predicted enough for twice the micro-batch", out);
    fputc('\n', out);
}

static void print_summary(const struct validation *validation, const char *name, const struct summary *summary,
                          FILE *out)
{
    const struct paper *paper = validation->paper;

    if (!summary->count)
        return;
    fprintf(out, "%s: %zu rows, mean size of the error %.1f %%, largest %+.1f %% (%s), mean error %+.1f %%", name,
            summary->count, 100 * summary->mean, 100 * summary->max, paper->rows[summary->worst].id,
            100 * summary->bias);
    if (summary->groups)
        fprintf(out, ", rank correlation %.2f (%zu group%s)", summary->rank, summary->groups,
                summary->groups > 1 ? "s" : "");
    fputc('\n', out);
}

/* The first measured column, where flags that a person cannot know are left out (plain.h). */
static void print_plain(const struct validation *plain, FILE *out)
{
    const struct summary *summary = &plain->summaries[plain->first];

    print_summary(plain, "asked plainly", summary, out);
    if (plain->failed)
        fprintf(out, "asked plainly: %zu rows could not be simulated\n", plain->failed);
}

static void print_bars(const struct validation *validation, FILE *out)
{
    struct bar_result bars[BARS];
    size_t count = validation_bars(validation, bars);

    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%s %.3g of %s %.3g: %s", i ? "; " : "bars: ", bars[i].name, bars[i].value,
                bars[i].least ? "at least" : "at most", bars[i].limit, bars[i].passed ? "pass" : "miss");
    if (count)
        fputc('\n', out);
}

void validation_print_largest(const size_t largest[2], FILE *out)
{
    if (largest[0])
        fprintf(out, "largest micro-batch: %zu rows, %zu of them (%.1f %%) fit and with twice as much do not\n",
                largest[0], largest[1], 100.0 * (double)largest[1] / (double)largest[0]);
}

void validation_print(const struct validation *validation, bool brief, FILE *out)
{
    const struct paper *paper = validation->paper;
    int width = id_width(paper);

    fputs("== ", out);
    text_write(TEXT_LINE, paper->name, out);
    fputs(": ", out);
    text_write_lines(paper->source, out);
    fputc('\n', out);
    if (!brief)
        print_heading(validation, width, out);
    for (size_t i = 0; !brief && i < paper->nrows; i++)
        if (validation->outcomes[i].selected)
            print_row(validation, i, width, out);
    for (size_t c = 0; c < paper->ncolumns; c++)
        if (paper->columns[c].kind == COLUMN_MEASURED)
            print_summary(validation, paper->columns[c].name, &validation->summaries[c], out);
    print_plain(validation->plain, out);
    print_summary(validation, "relative to other rows", &validation->relative, out);
    if (!brief)
        validation_print_slopes(validation, out);
    if (validation->memory[0][1] + validation->memory[1][0] + validation->memory[1][1])
        fprintf(out, "memory: %zu rows fitted, %zu of them are predicted to; %zu did not, %zu of them are "
                "predicted not to\n", validation->memory[0][0] + validation->memory[0][1], validation->memory[0][0],
                validation->memory[1][0] + validation->memory[1][1], validation->memory[1][1]);
    validation_print_largest(validation->largest, out);
    if (validation->failed)
        fprintf(out, "%zu rows could not be simulated\n", validation->failed);
    fprintf(out, "fitted: %s\n", paper->fitted ? paper->fitted : "nothing, all is predicted");
    print_bars(validation, out);
}

void validation_print_line(const struct validation *validation, FILE *out)
{
    struct bar_result bars[BARS];
    size_t count = validation ? validation_bars(validation, bars) : 0, passed = 0;

    if (!validation) {
        fprintf(out, "%-32s %-24s %5s %8s %8s %9s %9s %6s  %s\n", "table", "compared", "rows", "mean", "plainly",
                "max", "bias", "rank", "bars");
        return;
    }
    for (size_t i = 0; i < count; i++)
        passed += bars[i].passed;
    for (size_t c = 0; c < validation->paper->ncolumns; c++) {
        const struct summary *summary = &validation->summaries[c];
        bool first = c == validation->first;
        char *name;

        if (!summary->count)
            continue;
        name = text_made(TEXT_LINE, first ? validation->paper->name : "");
        fprintf(out, "%-32s %-24s %5zu %6.1f %% %6.1f %% %+7.1f %% %+7.1f %% ", name,
                validation->paper->columns[c].name, summary->count, 100 * summary->mean,
                100 * validation->plain->summaries[c].mean, 100 * summary->max, 100 * summary->bias);
        free(name);
        if (summary->groups)
            fprintf(out, "%6.2f", summary->rank);
        else
            fprintf(out, "%6s", "");
        if (first && count)
            fprintf(out, "  %zu of %zu", passed, count);
        fputc('\n', out);
    }
}

/* A share in percent: "-3.1 %", but never "-0.0 %". */
static char *percent_text(double share, char text[CELL])
{
    snprintf(text, CELL, "%+.1f %%", round(1000 * share) / 10 + 0.0);
    return text;
}

/* Cells for the whole table: for how many rows it is predicted correctly whether they fit in memory, of those that are held
 * against a limit or ran out, and for how many that twice the micro-batch does not fit. */
static void print_markdown_memory(const struct validation *validation, FILE *out)
{
    size_t right = validation->memory[0][0] + validation->memory[1][1];
    size_t wrong = validation->memory[0][1] + validation->memory[1][0];

    if (right + wrong)
        fprintf(out, " %zu of %zu |", right, right + wrong);
    else
        fputs(" |", out);
    if (validation->largest[0])
        fprintf(out, " %zu of %zu |", validation->largest[1], validation->largest[0]);
    else
        fputs(" |", out);
}

void validation_print_markdown(const struct validation *validation, FILE *out)
{
    if (!validation) {
        fputs("| table | what was measured | compared | rows | asked plainly | as configured | largest | bias | rank "
              "| fits | largest micro-batch |\n"
              "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n", out);
        return;
    }
    const struct paper *paper = validation->paper;

    for (size_t c = 0; c < paper->ncolumns; c++) {
        const struct summary *summary = &validation->summaries[c];
        bool first = c == validation->first;
        char text[2][CELL], *name, *title;

        if (!summary->count)
            continue;
        name = text_made(TEXT_LINE, paper->name);
        title = text_made(TEXT_LINE, first ? paper->title : "");
        fprintf(out, "| [%s](%s.yaml) | %s | %s | %zu | %.1f %% | %.1f %% | %s | %s |", name, name, title, paper->columns[c].name, summary->count,
                100 * validation->plain->summaries[c].mean, 100 * summary->mean,
                percent_text(summary->max, text[0]), percent_text(summary->bias, text[1]));
        free(name);
        free(title);
        if (summary->groups)
            fprintf(out, " %.2f |", summary->rank);
        else
            fputs(" |", out);
        if (first)
            print_markdown_memory(validation, out);
        else
            fputs(" | |", out);
        fputc('\n', out);
    }
}

/* Why the row could not be simulated, as errors of a command are told. */
static json_t *failure_json(const struct outcome *outcome)
{
    struct error err = {0};
    json_t *all, *errors;

    for (int i = 0; i < outcome->nmessages; i++)
        error_add(&err, outcome->messages[i].code,
                  (struct loc){outcome->messages[i].file, outcome->messages[i].line, outcome->messages[i].column}, "%s",
                  outcome->messages[i].text);
    all = errors_json(&err);
    errors = json_incref(json_object_get(all, "errors"));
    json_decref(all);
    error_release(&err);
    return errors;
}

static json_t *row_json(const struct validation *validation, size_t row)
{
    const struct paper *paper = validation->paper;
    const struct outcome *outcome = &validation->outcomes[row];
    json_t *json = json_object(), *measured = json_object(), *error = json_object(), *predicted = json_object();

    json_put(json, "id", json_words(paper->rows[row].id));
    json_put(json, "group", json_words(paper->rows[row].group));
    json_put(json, "software", outcome->measurable ? json_words(outcome->likeness.software) : json_null());
    json_put(json, "expect", json_words(paper->rows[row].oom ? "oom" : "fits"));
    json_put(json, "found", json_words(!outcome->simulated ? "failed" : outcome->fits ? "fits" : "oom"));
    for (size_t c = 0; c < paper->ncolumns; c++) {
        const struct column *column = &paper->columns[c];

        if (column->kind != COLUMN_MEASURED)
            continue;
        json_put(measured, column->name, json_finite(paper->rows[row].measured[c]));
        json_put(error, column->name, json_finite(validation_error(validation, row, c)));
    }
    for (size_t i = 0; outcome->simulated && metric_at(i); i++)
        json_put(predicted, metric_at(i)->name, json_finite(metric_value(&outcome->metrics, metric_at(i))));
    if (!outcome->simulated)
        json_put(json, "errors", failure_json(outcome));
    json_put(json, "measured", measured);
    json_put(json, "predicted", predicted);
    json_put(json, "breakdown_s", outcome->simulated ? breakdown_json(&outcome->metrics) : json_null());
    json_put(json, "error", error);
    json_put(json, "plain_error",
                        json_finite(validation_error(validation->plain, row, validation->first)));
    json_put(json, "relative_error", json_finite(validation_relative_error(validation, row)));
    return json;
}

static json_t *summary_json(const struct summary *summary, const struct paper *paper)
{
    return json_pack("{s:I, s:o, s:o, s:s, s:o, s:o, s:I}", "rows", (json_int_t)summary->count, "mean",
                     json_finite(summary->mean), "max", json_finite(summary->max), "worst",
                     summary->count ? paper->rows[summary->worst].id : "", "bias", json_finite(summary->bias), "rank",
                     json_finite(summary->groups ? summary->rank : NAN), "groups", (json_int_t)summary->groups);
}

static json_t *bars_json(const struct validation *validation)
{
    struct bar_result bars[BARS];
    size_t count = validation_bars(validation, bars);
    json_t *json = json_object();

    for (size_t i = 0; i < count; i++)
        json_put(json, bars[i].name,
                            json_pack("{s:o, s:f, s:b}", "value", json_finite(bars[i].value), "limit", bars[i].limit,
                                      "passed", (int)bars[i].passed));
    return json;
}

json_t *validation_json(const struct validation *validation)
{
    const struct paper *paper = validation->paper;
    json_t *json = json_object(), *rows = json_array(), *summaries = json_object();

    for (size_t i = 0; i < paper->nrows; i++)
        if (validation->outcomes[i].selected)
            json_append(rows, row_json(validation, i));
    for (size_t c = 0; c < paper->ncolumns; c++)
        if (paper->columns[c].kind == COLUMN_MEASURED)
            json_put(summaries, paper->columns[c].name,
                                summary_json(&validation->summaries[c], paper));
    json_put(json, "name", json_words(paper->name));
    json_put(json, "source", json_words(paper->source));
    json_put(json, "fitted", paper->fitted ? json_words(paper->fitted) : json_null());
    json_put(json, "rows", rows);
    json_put(json, "summary", summaries);
    json_put(json, "plain", summary_json(&validation->plain->summaries[validation->first], paper));
    json_put(json, "plain_failed", json_integer((json_int_t)validation->plain->failed));
    json_put(json, "relative", summary_json(&validation->relative, paper));
    json_put(json, "memory",
                        json_pack("{s:I, s:I, s:I, s:I}", "fits_as_fits", (json_int_t)validation->memory[0][0],
                                  "fits_as_oom", (json_int_t)validation->memory[0][1], "oom_as_fits",
                                  (json_int_t)validation->memory[1][0], "oom_as_oom",
                                  (json_int_t)validation->memory[1][1]));
    if (paper->largest)
        json_put(json, "largest_micro_batch",
                            json_pack("{s:I, s:I}", "rows", (json_int_t)validation->largest[0], "right",
                                      (json_int_t)validation->largest[1]));
    json_put(json, "failed", json_integer((json_int_t)validation->failed));
    json_put(json, "bars", bars_json(validation));
    return json;
}
