#include "results/compared.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/text.h"
#include "results/sheet.h"

/* A column: its key, under which rows have it too, and its title for people; NULL: for programs alone. */
static const struct column {
    const char *key, *title;
    bool same_hidden;            /* people do not see it where all rows have the same */
} columns[] = {
    {"gpus", "GPUs", true},
    {"samples_per_s", "samples/s", false},
    {"tokens_per_s", NULL, false},
    {"speedup", "speed-up", false},
    {"rank", "rank", false},
    {"iteration_time_s", "iteration", false},
    {"iteration_time_s_p10", NULL, false},
    {"iteration_time_s_p90", NULL, false},
    {"stated_error_share", NULL, false},
    {"expected_error_share", NULL, false},
    {"expected_ratio_error_share", NULL, false},
    {"expected_ratio_error_share_p90", NULL, false},
    {"bubble_fraction", "bubble", false},
    {"utilization", "utilization", false},
    {"exposed_communication_s", "exposed comm.", false},
    {"mfu", "MFU", false},
    {"peak_memory_bytes", "peak memory", false},
    {"weight_versions", "weight versions", true},
};

static double metric_of(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(json_object_get(row, "metrics"), key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* The row that the others are measured by; NULL: none has a throughput. */
static const struct compared_row *baseline(const struct compared *compared)
{
    for (size_t i = 0; i < compared->rows.count; i++)
        if (metric_of(compared->rows.items[i].row, "samples_per_s") > 0)
            return &compared->rows.items[i];
    return NULL;
}

static double value_of(const struct compared *compared, size_t row, const struct column *column)
{
    const struct compared_row *first = baseline(compared);
    const json_t *of = compared->rows.items[row].row;

    if (!strcmp(column->key, "rank"))
        return compared->rows.items[row].rank.rank ? (double)compared->rows.items[row].rank.rank : NAN;
    if (strcmp(column->key, "speedup"))
        return metric_of(of, column->key);
    return first ? metric_of(of, "samples_per_s") / metric_of(first->row, "samples_per_s") : NAN;
}

/* Why a row has no numbers for people; NULL: it has. */
static const char *refused(const struct compared *compared, size_t row)
{
    return json_string_value(json_object_get(compared->rows.items[row].row, "reason"));
}

/* The column's numbers by row; whether people see it. */
static bool read_column(const struct compared *compared, const struct column *column, double *numbers)
{
    bool any = false, differ = false, several = false;
    double first = NAN;

    for (size_t i = 0; i < compared->rows.count; i++) {
        numbers[i] = refused(compared, i) ? NAN : value_of(compared, i, column);
        if (isnan(numbers[i]))
            continue;
        several |= any;
        differ |= any && numbers[i] != first;
        first = any ? first : numbers[i];
        any = true;
    }
    if (!strcmp(column->key, "rank") && !several)        /* among one there is no order */
        return false;
    /* One version of the weights is what everybody expects. */
    return column->title && any && (!column->same_hidden || differ || (!strcmp(column->key, "weight_versions") &&
                                                                       first > 1));
}

static void add_cells(struct sheet *sheet, const struct compared *compared, const struct column *const *shown,
                      size_t count, const struct number_style *styles)
{
    for (size_t i = 0; i < compared->rows.count; i++) {
        const json_t *row = compared->rows.items[i].row;
        const char *reason = refused(compared, i);

        sheet_add(sheet, compared->rows.items[i].name);
        if (reason) {
            char *text = xprintf("%s: %s", outcome_names[outcome_of(row)], reason);

            sheet_add_rest(sheet, text);
            free(text);
        }
        for (size_t c = 0; c < count && !reason; c++) {
            char text[CLIP_SIZE];
            bool rank = !strcmp(shown[c]->key, "rank");

            sheet_add(sheet, rank ? tie_text(compared->rows.items[i].rank, text, sizeof text) :
                             number_text(&styles[c], value_of(compared, i, shown[c]), text, sizeof text));
        }
    }
}

static bool has_note(const struct compared_row *row, const char *text)
{
    json_t *notes = json_object_get(row->row, "notes"), *note;
    size_t i;

    json_array_foreach(notes, i, note)
        if (json_is_string(note) && !strcmp(json_string_value(note), text))
            return true;
    return false;
}

/* "note: gpipe, 1f1b: ...", each text once, behind the rows that it is about; of all rows without them. */
static void print_note(const struct compared *compared, const char *text, const char *before, FILE *out)
{
    const struct compared_row *rows = compared->rows.items;
    size_t count = 0;

    for (size_t i = 0; i < compared->rows.count; i++)
        count += has_note(&rows[i], text);
    fprintf(out, "%snote: ", before);
    for (size_t i = 0; i < compared->rows.count && count < compared->rows.count; i++)
        if (has_note(&rows[i], text)) {
            text_write(TEXT_LINE, rows[i].name, out);
            fputs(--count ? ", " : ": ", out);
        }
    text_write(TEXT_LINE, text, out);
    fputc('\n', out);
}

/* What a reader should know before believing rows; `line`: before each. */
static void print_caveats(const struct compared *compared, const char *line, FILE *out)
{
    for (size_t i = 0; i < compared->rows.count; i++) {
        json_t *notes = json_object_get(compared->rows.items[i].row, "notes"), *note;
        size_t k;

        json_array_foreach(notes, k, note) {
            const char *text = json_string_value(note);
            size_t before = 0;

            while (text && before < i && !has_note(&compared->rows.items[before], text))
                before++;
            if (text && before == i)
                print_note(compared, text, line, out);
        }
    }
}

/* What runs: of the first row of each scenario; others differ in what their names say. */
static void print_setups(const struct compared *compared, const char *before, FILE *out)
{
    const struct compared_row *rows = compared->rows.items;

    for (size_t i = 0; i < compared->rows.count; i++) {
        const char *setup = json_string_value(json_object_get(rows[i].row, "setup"));

        if (!setup || (i > 0 && !strcmp(rows[i].path, rows[i - 1].path)))
            continue;
        fprintf(out, "%s", before);
        text_write(TEXT_LINE, rows[i].name, out);
        fputs(": ", out);
        text_write(TEXT_LINE, setup, out);
        fputc('\n', out);
    }
}

static void explain_ranks(const struct compared *compared, const char *before, FILE *out)
{
    struct tie_number *numbers = xcalloc(compared->rows.count + 1, sizeof *numbers);

    for (size_t i = 0; i < compared->rows.count; i++)
        numbers[i] = compared->rows.items[i].number;
    fputs(before, out);
    tie_explain(numbers, compared->rows.count, out);
    free(numbers);
}

/* `before`: each note. Of one row there is nothing to compare. */
static void print_notes(const struct compared *compared, bool versions, const char *before, FILE *out)
{
    const struct compared_row *first = baseline(compared);
    size_t ranked = 0;

    for (size_t i = 0; i < compared->rows.count; i++)
        ranked += compared->rows.items[i].rank.rank > 0;
    if (!first)
        return;
    fprintf(out, "\n%sspeed-up: samples/s over those of ", before);
    if (first == compared->rows.items)
        fputs("the first row", out);
    else
        text_write(TEXT_LINE, first->name, out);
    fputc('\n', out);
    if (versions)
        fprintf(out, "%sversions: where a rank holds several of its weights, the schedule is asynchronous, and iteration "
                "is its\nmean time from update to update\n", before);
    if (ranked > 1)
        explain_ranks(compared, before, out);
}

void compared_print(const struct compared *compared, bool markdown, FILE *out)
{
    struct sheet sheet = {.columns = 1, .left = 1};
    const struct column *shown[COUNT(columns)];
    struct number_style styles[COUNT(columns)];
    double *numbers = xcalloc(compared->rows.count, sizeof *numbers);
    bool versions = false;
    size_t count = 0;

    for (size_t c = 0; c < COUNT(columns); c++) {
        if (!read_column(compared, &columns[c], numbers))
            continue;
        versions |= !strcmp(columns[c].key, "weight_versions");
        styles[count] = number_style_of(columns[c].key, numbers, compared->rows.count);
        shown[count++] = &columns[c];
    }
    sheet.columns = count ? count + 1 : 2;       /* no row has numbers: reasons alone */
    sheet_add(&sheet, "scenario");
    for (size_t c = 0; c < count; c++)
        sheet_add(&sheet, shown[c]->title);
    if (!count) {
        sheet.left = 2;
        sheet_add(&sheet, "outcome");
    }
    add_cells(&sheet, compared, shown, count, styles);
    sheet_print(&sheet, markdown, out);
    print_notes(compared, versions, markdown ? "- " : "", out);
    print_setups(compared, markdown ? "- " : "", out);
    print_caveats(compared, markdown ? "- " : "", out);
    sheet_release(&sheet);
    free(numbers);
}

static const char *const texts[] = {"status", "engine", "setup", "software", "model", "gpu", "rule", "reason"};

void compared_print_csv(const struct compared *compared, FILE *out)
{
    fputs("name", out);
    for (size_t c = 0; c < COUNT(columns); c++)
        fprintf(out, ",%s", columns[c].key);
    for (size_t k = 0; k < COUNT(texts); k++)
        fprintf(out, ",%s", texts[k]);
    for (size_t i = 0; i < compared->rows.count; i++) {
        fputc('\n', out);
        text_write(TEXT_CSV, compared->rows.items[i].name, out);
        for (size_t c = 0; c < COUNT(columns); c++) {
            double value = value_of(compared, i, &columns[c]);

            putc(',', out);
            if (isfinite(value))
                decimal_write(value, out);
        }
        for (size_t k = 0; k < COUNT(texts); k++) {
            const char *text = json_string_value(json_object_get(compared->rows.items[i].row, texts[k]));

            fputc(',', out);
            text_write(TEXT_CSV, text ? text : "", out);
        }
    }
    fputc('\n', out);
}

json_t *compared_json(const struct compared *compared)
{
    json_t *list = json_array();

    for (size_t i = 0; i < compared->rows.count; i++) {
        json_t *json = json_pack("{s:o}", "name", json_words(compared->rows.items[i].name));

        for (size_t c = 0; c < COUNT(columns); c++) {
            json_t *value = json_object_get(json_object_get(compared->rows.items[i].row, "metrics"), columns[c].key);
            double speedup = !strcmp(columns[c].key, "speedup") ? value_of(compared, i, &columns[c]) : NAN;
            size_t rank = !strcmp(columns[c].key, "rank") ? compared->rows.items[i].rank.rank : 0;

            json_put(json, columns[c].key, isfinite(speedup) ? json_real(speedup) :
                                rank ? json_integer((json_int_t)rank) : value ? json_incref(value) : json_null());
        }
        for (size_t k = 0; k < COUNT(texts); k++) {
            json_t *text = json_object_get(compared->rows.items[i].row, texts[k]);

            if (text)
                json_object_set(json, texts[k], text);
        }
        json_append(list, json);
    }
    return list;
}
