#include "results/results_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "results/sheet.h"
#include "run/metrics.h"

static bool is_rank(const struct row_key *key)
{
    return key->from == KEY_ROW && !strcmp(key->name, "rank");
}

size_t results_columns(const struct results *results, enum results_format format, int *columns)
{
    static const char *const wanted[] = {"iteration_time_s", "tokens_per_s", "samples_per_s", "mfu", "bubble_fraction",
                                         "exposed_communication_s", "peak_memory_bytes", "memory_margin_bytes"};
    size_t count = 0;

    for (size_t i = 0; i < results->keys.count; i++)
        if (format != FORMAT_CSV && results->ranked >= 0 && is_rank(&results->keys.items[i]))
            columns[count++] = (int)i;
    for (size_t i = 0; i < results->keys.count; i++)
        if (format == FORMAT_CSV || results->keys.items[i].from == KEY_POINT)
            columns[count++] = (int)i;
    for (size_t k = 0; k < COUNT(wanted) && format != FORMAT_CSV; k++)
        for (size_t i = 0; i < results->keys.count; i++) {
            bool known = false;

            for (size_t r = 0; r < results->rows.count && !known; r++)
                known = results_value(results, r, (int)i).kind == VALUE_NUMBER;
            if (known && !strcmp(results->keys.items[i].name, wanted[k]) &&
                !(k == 2 && !strcmp(results->keys.items[columns[count - 1]].name, wanted[1])))
                columns[count++] = (int)i;
        }
    return count;
}

int results_default_order(const struct results *results)
{
    static const char *const order[] = {"tokens_per_s", "samples_per_s"};

    for (size_t k = 0; k < COUNT(order); k++) {
        struct error ignored = {0};
        int key = results_key(results, order[k], "", &ignored);

        error_release(&ignored);
        for (size_t r = 0; key >= 0 && r < results->rows.count; r++)
            if (results_value(results, r, key).kind == VALUE_NUMBER)
                return key;
    }
    return -1;
}

/* A cell that is no number for people, as text; NULL: there is none. The caller frees it. */
static char *cell_text(const json_t *json)
{
    if (!json || json_is_null(json))
        return NULL;
    return json_is_string(json) ? strdup(json_string_value(json)) : json_text(json);
}

/* The style of a column, from all of its numbers that are printed. */
static struct number_style column_style(const struct results *results, int key, size_t rows)
{
    double *numbers = xcalloc(rows, sizeof *numbers);
    struct number_style style;

    for (size_t r = 0; r < rows; r++) {
        struct value value = results_value(results, r, key);

        numbers[r] = value.kind == VALUE_NUMBER ? value.number : NAN;
    }
    style = number_style_of(results->keys.items[key].name, numbers, rows);
    free(numbers);
    return style;
}

static void add_cell(struct sheet *sheet, const struct results *results, size_t row, int key,
                     const struct number_style *style)
{
    const json_t *json = results_json(results, row, key);
    char text[CLIP_SIZE], number[32], *whole;

    if (is_rank(&results->keys.items[key])) {
        sheet_add(sheet, tie_text(results_rank_of(results, row), text, sizeof text));
    } else if (json_is_number(json) && results->keys.items[key].from == KEY_METRIC) {
        sheet_add(sheet, number_text(style, json_number_value(json), text, sizeof text));
    } else if (json_is_real(json)) {
        snprintf(number, sizeof number, "%.6g", json_real_value(json));
        sheet_add(sheet, number);
    } else {
        whole = cell_text(json);
        sheet_add(sheet, whole ? text_clip(whole, text, sizeof text) : "-");
        free(whole);
    }
}

static void print_sheet(const struct results *results, bool markdown, const int *columns, size_t count, size_t rows,
                        FILE *out)
{
    struct sheet sheet = {.columns = count};
    struct number_style *styles = xcalloc(count, sizeof *styles);

    for (size_t c = 0; c < count; c++) {
        styles[c] = column_style(results, columns[c], rows);
        sheet_add(&sheet, results->keys.items[columns[c]].name);
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < count; c++)
            add_cell(&sheet, results, r, columns[c], &styles[c]);
    sheet_print(&sheet, markdown, out);
    free(styles);
    sheet_release(&sheet);
}

static void print_csv(const struct results *results, const int *columns, size_t count, size_t rows, FILE *out)
{
    for (size_t c = 0; c < count; c++)
        fprintf(out, "%s%s", c ? "," : "", results->keys.items[columns[c]].name);
    fputc('\n', out);
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < count; c++) {
            const json_t *json = results_json(results, r, columns[c]);
            char *text = cell_text(json);

            fputs(c ? "," : "", out);
            text_write(json_is_number(json) ? TEXT_LINE : TEXT_CSV, text ? text : "", out);
            free(text);
        }
        fputc('\n', out);
    }
}

void results_print(const struct results *results, enum results_format format, const int *columns, size_t count,
                   size_t most, FILE *out)
{
    size_t rows = most < results->rows.count ? most : results->rows.count;

    for (size_t r = 0; r < rows && format == FORMAT_JSON; r++) {
        json_line(results->rows.items[r], out);
        fputc('\n', out);
    }
    if (format == FORMAT_CSV)
        print_csv(results, columns, count, rows, out);
    else if (format != FORMAT_JSON)
        print_sheet(results, format == FORMAT_MARKDOWN, columns, count, rows, out);
}

static const char *rule_of(const json_t *row)
{
    const char *rule = json_string_value(json_object_get(row, "rule"));

    return rule ? rule : "other";
}

/* Of the rows that a rule made infeasible: their number, the least that is missing, and the first reason, or that of
 * the nearest. */
static void print_rule(const struct results *results, const char *rule, FILE *out)
{
    const char *reason = NULL;
    double least = -INFINITY;
    size_t count = 0;
    char text[48];

    for (size_t i = 0; i < results->rows.count; i++) {
        const json_t *row = results->rows.items[i];
        const json_t *margin = json_object_get(json_object_get(row, "metrics"), "memory_margin_bytes");
        bool nearer = json_is_number(margin) && json_number_value(margin) > least;

        if (outcome_of(row) != OUTCOME_INFEASIBLE || strcmp(rule_of(row), rule))
            continue;
        count++;
        least = nearer ? json_number_value(margin) : least;
        reason = nearer || !reason ? json_string_value(json_object_get(row, "reason")) : reason;
    }
    fprintf(out, "  %-10s %zu", rule, count);
    if (isfinite(least))
        fprintf(out, ", the nearest lacks %s", unit_format_short(UNIT_BYTES, -least, text, sizeof text));
    fputs(reason ? ", such as: " : "", out);
    text_write(TEXT_LINE, reason ? reason : "", out);
    fputc('\n', out);
}

static void print_rules(const struct results *results, FILE *out)
{
    for (size_t i = 0; i < results->rows.count; i++) {
        const char *rule = rule_of(results->rows.items[i]);
        bool first = outcome_of(results->rows.items[i]) == OUTCOME_INFEASIBLE;

        for (size_t j = 0; j < i && first; j++)
            first = outcome_of(results->rows.items[j]) != OUTCOME_INFEASIBLE ||
                    strcmp(rule, rule_of(results->rows.items[j]));
        if (first)
            print_rule(results, rule, out);
    }
}

void results_print_outcome(const struct results *results, FILE *out)
{
    size_t counts[OUTCOME_COUNT + 1] = {0};

    for (size_t i = 0; i < results->rows.count; i++)
        counts[outcome_of(results->rows.items[i])]++;
    fprintf(out, "%zu points:", results->rows.count);
    for (int status = 0, said = 0; status < OUTCOME_COUNT; status++)
        if (counts[status])
            fprintf(out, "%s %zu %s", said++ ? "," : "", counts[status], outcome_names[status]);
    fputc('\n', out);
    if (counts[OUTCOME_INFEASIBLE]) {
        fputs("infeasible by rule\n", out);
        print_rules(results, out);
    }
}

void results_per(struct results *results, int key, size_t most)
{
    bool *keep = xcalloc(results->rows.count, sizeof *keep);

    for (size_t i = 0; i < results->rows.count; i++) {
        size_t before = 0;

        for (size_t j = 0; j < i && before < most; j++)
            before += keep[j] && json_equal(results_json(results, j, key), results_json(results, i, key));
        keep[i] = before < most;
    }
    results_keep(results, keep);
    free(keep);
}

bool results_wants_most(const char *key)
{
    const struct metric *metric = metric_find(key);

    return (metric && metric->kind == METRIC_RATE) || strstr(key, "utilization") || strstr(key, "margin");
}
