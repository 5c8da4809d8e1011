#include "validate/validation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "files/json.h"
#include "report/result.h"
#include "run/metrics.h"
#include "view/say.h"
#include "view/view.h"

enum { CELL = 32 };

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
    fputs(validation->relative.count ? " | relative\n" : "\n", out);
    fprintf(out, "%-*s", width, "");
    for (size_t c = 0; c < paper->ncolumns; c++)
        if (paper->columns[c].kind == COLUMN_MEASURED)
            fprintf(out, " | %12s %12s %10s", "measured", "predicted", error_head(&paper->columns[c]));
    fputs(validation->relative.count ? " | to\n" : "\n", out);
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

/* The errors of a column; of what is no column, `column` is the number of columns. */
struct summed { const struct validation *validation; const struct summary *summary; size_t column; const char *name; };

static bool is_first(const struct summed *summed)
{
    return summed->column == summed->validation->first;
}

/* In percent with a digit behind the point, but never -0.0. */
static json_t *percent_json(double share)
{
    return json_finite(round(1000 * share) / 10 + 0.0);
}

static json_t *plain_mean(const struct summed *summed)
{
    const struct validation *validation = summed->validation;

    return json_finite(validation->plain && summed->column < validation->paper->ncolumns ?
                       validation->plain->summaries[summed->column].mean : NAN);
}

/* Rows of a table that are held against a limit or ran out of memory: all, or those that are predicted right. */
static size_t judged(const struct validation *validation, bool right)
{
    const size_t (*memory)[2] = validation->memory;

    return memory[0][0] + memory[1][1] + (right ? 0 : memory[0][1] + memory[1][0]);
}

static size_t bars_of(const struct validation *validation, bool passed)
{
    struct bar_result bars[BARS];
    size_t count = validation_bars(validation, bars), all = 0;

    for (size_t i = 0; i < count; i++)
        all += !passed || bars[i].passed;
    return all;
}

#define SUMMARY(ROW) \
    ROW(rows, json_count(it->summary->count), "that are compared") \
    ROW(mean, json_finite(it->summary->mean), "size of the error, a share") \
    ROW(max, json_finite(it->summary->max), "the largest error, with its sign") \
    ROW(worst, json_words(it->summary->count ? it->validation->paper->rows[it->summary->worst].id : ""), "its row") \
    ROW(bias, json_finite(it->summary->bias), "mean error") \
    ROW(rank, json_finite(it->summary->groups ? it->summary->rank : NAN), \
        "Spearman's correlation within groups of three rows or more, mean over groups; null: there is none") \
    ROW(groups, json_count(it->summary->groups), "these groups") \
    ROW(name, json_words(it->name), NULL) ROW(table, json_words(it->validation->paper->name), NULL) \
    ROW(of, json_words(is_first(it) ? it->validation->paper->name : ""), NULL) \
    ROW(title, json_words(is_first(it) ? it->validation->paper->title : ""), NULL) ROW(plain_mean, plain_mean(it), NULL) \
    ROW(max_percent, percent_json(it->summary->max), NULL) ROW(bias_percent, percent_json(it->summary->bias), NULL) \
    ROW(bars, json_count(is_first(it) ? bars_of(it->validation, false) : 0), NULL) \
    ROW(passed, json_count(bars_of(it->validation, true)), NULL) \
    ROW(judged, json_count(is_first(it) ? judged(it->validation, false) : 0), NULL) \
    ROW(right, json_count(judged(it->validation, true)), NULL) \
    ROW(largest, json_count(is_first(it) ? it->validation->largest[0] : 0), NULL) \
    ROW(largest_right, json_count(it->validation->largest[1]), NULL)
VIEW(summary_view, struct summed, it, SUMMARY)

static void say_summary(struct summed summed, const char *line, FILE *out)
{
    if (summed.summary->count)
        view_say(&summary_view, &summed, line, out);
}

/* A line for each measured column that has errors. */
static void say_columns(const struct validation *validation, const char *line, FILE *out)
{
    for (size_t c = 0; c < validation->paper->ncolumns; c++)
        if (validation->paper->columns[c].kind == COLUMN_MEASURED)
            say_summary((struct summed){validation, &validation->summaries[c], c, validation->paper->columns[c].name}, line, out);
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

/* By measured column. */
static json_t *columns_json(const struct validation *validation, size_t row, bool errors)
{
    const struct paper *paper = validation->paper;
    json_t *json = json_object();

    for (size_t c = 0; c < paper->ncolumns; c++)
        if (paper->columns[c].kind == COLUMN_MEASURED)
            json_put(json, paper->columns[c].name,
                     json_finite(errors ? validation_error(validation, row, c) : paper->rows[row].measured[c]));
    return json;
}

#define PAPER_ROW(ROW) \
    ROW(id, json_words(it->paper->rows[i].id), "of the row") \
    ROW(group, json_words(it->paper->rows[i].group), "of rows among which ranks are compared") \
    ROW(software, it->outcomes[i].measurable ? json_words(it->outcomes[i].likeness.software) : json_null(), "null: not measurable") \
    ROW(expect, json_words(it->paper->rows[i].oom ? "oom" : "fits"), "fits or oom, as published") \
    ROW(found, json_words(!it->outcomes[i].simulated ? "failed" : it->outcomes[i].fits ? "fits" : "oom"), \
        "fits, oom or failed, as predicted") \
    ROW(errors, it->outcomes[i].simulated ? NULL : failure_json(&it->outcomes[i]), "of a row that failed") \
    ROW(measured, columns_json(it, i, false), "by column", .form = VIEW_MAP) \
    ROW(predicted, it->outcomes[i].simulated ? view_json(&metrics_view, &it->outcomes[i].metrics) : json_object(), \
        "metrics as in result.json", .form = VIEW_MAP) \
    ROW(breakdown_s, it->outcomes[i].simulated ? breakdown_json(&it->outcomes[i].metrics) : json_null(), "as in result.json", \
        .form = VIEW_MAP) \
    ROW(error, columns_json(it, i, true), \
        "by column: predicted / measured - 1 of a time, or of the time that a rate stands for; of a share the difference", \
        .form = VIEW_MAP) \
    ROW(plain_error, json_finite(validation_error(it->plain, i, it->first)), \
        "of the first column, asked plainly") \
    ROW(relative_error, json_finite(validation_relative_error(it, i)), \
        "of the ratio to the row that it is relative to")
VIEW(paper_row_view, struct validation, it, PAPER_ROW)

static json_t *rows_json(const struct validation *validation)
{
    json_t *rows = view_each(&paper_row_view, validation, validation->paper->nrows);

    for (size_t i = validation->paper->nrows; i-- > 0;)
        if (!validation->outcomes[i].selected)
            json_array_remove(rows, i);
    return rows;
}

static json_t *summaries_json(const struct validation *validation)
{
    json_t *summaries = json_object();

    for (size_t c = 0; c < validation->paper->ncolumns; c++)
        if (validation->paper->columns[c].kind == COLUMN_MEASURED)
            json_put(summaries, validation->paper->columns[c].name,
                     view_json(&summary_view, &(struct summed){validation, &validation->summaries[c], c, ""}));
    return summaries;
}

/* Of a summary that is of no column. */
static json_t *summary_json(const struct validation *validation, const struct summary *summary)
{
    return view_json(&summary_view, &(struct summed){validation, summary, validation->paper->ncolumns, ""});
}

#define BAR(ROW) \
    ROW(value, json_finite(it->value), "in %; rank: a correlation; memory: a number of rows") \
    ROW(limit, json_finite(it->limit), "the same") \
    ROW(passed, json_boolean(it->passed), "whether the value keeps the limit") \
    ROW(name, json_words(it->name), NULL) ROW(least, json_boolean(it->least), NULL)
VIEW(bar_view, struct bar_result, it, BAR)

static json_t *bars_json(const struct validation *validation)
{
    struct bar_result bars[BARS];
    size_t count = validation_bars(validation, bars);
    json_t *json = json_object();

    for (size_t i = 0; i < count; i++)
        json_put(json, bars[i].name, view_json(&bar_view, &bars[i]));
    return json;
}

#define MEMORY(ROW) \
    ROW(fits_as_fits, json_count(it->memory[0][0]), "rows that fit and are predicted to") \
    ROW(fits_as_oom, json_count(it->memory[0][1]), "rows that fit and are predicted not to") \
    ROW(oom_as_fits, json_count(it->memory[1][0]), "rows that ran out of memory and are predicted to fit") \
    ROW(oom_as_oom, json_count(it->memory[1][1]), "rows that ran out of memory and are predicted to")
VIEW(memory_view, struct validation, it, MEMORY)

#define LARGEST(ROW) \
    ROW(rows, json_count(it[0]), "whose micro-batch is the largest that fits") \
    ROW(right, json_count(it[1]), "of them: fit and with twice as much do not, as predicted")
VIEW(largest_view, size_t, it, LARGEST)

#define VALIDATION(ROW) \
    ROW(name, json_words(it->paper->name), "of the table") \
    ROW(source, json_words(it->paper->source), "where it was published") \
    ROW(fitted, it->paper->fitted ? json_words(it->paper->fitted) : json_null(), "what was fitted to it; null: nothing") \
    ROW(rows, rows_json(it), "of the table", .form = VIEW_LIST, .of = &paper_row_view) \
    ROW(summary, summaries_json(it), "by column", .form = VIEW_MAP, .of = &summary_view) \
    ROW(plain, summary_json(it, &it->plain->summaries[it->first]), "the same of the first column, asked plainly", \
        .of = &summary_view) \
    ROW(plain_failed, json_count(it->plain->failed), "rows that could not be simulated, asked plainly") \
    ROW(relative, summary_json(it, &it->relative), "the same of ratios to other rows", .of = &summary_view) \
    ROW(memory, view_json(&memory_view, it), "whether rows fit", .of = &memory_view) \
    ROW(largest_micro_batch, it->paper->largest ? view_json(&largest_view, it->largest) : NULL, \
        "left out: the table says none", .of = &largest_view) \
    ROW(failed, json_count(it->failed), "rows that could not be simulated") \
    ROW(bars, bars_json(it), "by name", .form = VIEW_MAP, .of = &bar_view) \
    ROW(fitted_words, json_words(it->paper->fitted ? it->paper->fitted : "nothing, all is predicted"), NULL) \
    ROW(fits, json_count(it->memory[0][0] + it->memory[0][1]), NULL) \
    ROW(oom, json_count(it->memory[1][0] + it->memory[1][1]), NULL)
VIEW_SHARED(validation_view, struct validation, it, VALIDATION)

static const char summed[] =
    "{name}: {rows} rows, mean size of the error {mean*100:%.1f} %, largest {max*100:%+.1f} % ({worst}), mean error "
    "{bias*100:%+.1f} %[, rank correlation {rank:%.2f} ({groups group})]\n";

void validation_print_largest(const size_t largest[2], FILE *out)
{
    if (largest[0])
        fprintf(out, "largest micro-batch: %zu rows, %zu of them (%.1f %%) fit and with twice as much do not\n",
                largest[0], largest[1], 100.0 * (double)largest[1] / (double)largest[0]);
}

static void print_bars(const struct validation *validation, FILE *out)
{
    struct bar_result bars[BARS];
    size_t count = validation_bars(validation, bars);

    for (size_t i = 0; i < count; i++) {
        fputs(i ? "; " : "bars: ", out);
        view_say(&bar_view, &bars[i], "{name} {value:%.3g} of [?least at least|at most] {limit:%.3g}: [?passed pass|miss]", out);
    }
    fputs(count ? "\n" : "", out);
}

void validation_print(const struct validation *validation, bool brief, FILE *out)
{
    const struct paper *paper = validation->paper;
    int width = id_width(paper);
    json_t *facts = view_facts(&validation_view, validation);

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
    say_columns(validation, summed, out);
    /* Flags that a person cannot know are left out (plain.h). */
    say_summary((struct summed){validation->plain, &validation->plain->summaries[validation->first], 0, "asked plainly"}, summed,
                out);
    say(facts, "[?plain_failed>0 asked plainly: {plain_failed} rows could not be simulated\n]", out);
    say_summary((struct summed){validation, &validation->relative, 0, "relative to other rows"}, summed, out);
    if (!brief)
        validation_print_slopes(validation, out);
    if (judged(validation, false) > validation->memory[0][0])
        say(facts, "memory: {fits} rows fitted, {memory.fits_as_fits} of them are predicted to; {oom} did not, {memory.oom_as_oom} "
            "of them are predicted not to\n", out);
    validation_print_largest(validation->largest, out);
    say(facts, "[?failed>0 {failed} rows could not be simulated\n]", out);
    say(facts, "fitted: {fitted_words}\n", out);
    print_bars(validation, out);
    json_decref(facts);
}

void validation_print_line(const struct validation *validation, FILE *out)
{
    if (!validation)
        fprintf(out, "%-32s %-24s %5s %8s %8s %9s %9s %6s  %s\n", "table", "compared", "rows", "mean", "plainly", "max", "bias",
                "rank", "bars");
    else
        say_columns(validation, "{of@-32} {name@-24} {rows@5} {mean*100:%6.1f} % {plain_mean*100:%6.1f} % {max*100:%+7.1f} % "
                    "{bias*100:%+7.1f} % [{rank:%6.2f}|      ][?bars>0   {passed} of {bars}]\n", out);
}

void validation_print_markdown(const struct validation *validation, FILE *out)
{
    if (!validation)
        fputs("| table | what was measured | compared | rows | asked plainly | as configured | largest | bias | rank "
              "| fits | largest micro-batch |\n"
              "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n", out);
    else
        say_columns(validation, "| \\[{table}\\]({table}.yaml) | {title} | {name} | {rows} | {plain_mean*100:%.1f} % | "
                    "{mean*100:%.1f} % | {max_percent:%+.1f} % | {bias_percent:%+.1f} % |[ {rank:%.2f}] |"
                    "[?judged>0  {right} of {judged}] |[?largest>0  {largest_right} of {largest}] |\n", out);
}
