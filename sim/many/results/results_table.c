#include "results/results_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sheet.h"
#include "base/text.h"
#include "base/units.h"
#include "base/words.h"
#include "files/json.h"
#include "run/metrics.h"
#include "store/tie.h"

static bool is_rank(const struct row_key *key)
{
    return key->from == KEY_ROW && !strcmp(key->name, "rank");
}

size_t results_columns(const struct results *results, enum results_format format, int *columns)
{
    static const char *const wanted[] = {"iteration_time_s", "verified_iteration_time_s", "tokens_per_s",
                                         "samples_per_s", "days", "days_p90", "goodput", "training_cost", "mfu",
                                         "peak_memory_bytes", "bubble_fraction", "exposed_communication_s",
                                         "memory_margin_bytes"};
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
                !(k == 3 && !strcmp(results->keys.items[columns[count - 1]].name, wanted[2])))
                columns[count++] = (int)i;
        }
    return count;
}

/* A cell that is no number for people, as text; NULL: there is none. The caller frees it. */
static char *cell_text(const json_t *json)
{
    if (!json || json_is_null(json))
        return NULL;
    return json_is_string(json) ? xstrdup(json_string_value(json)) : json_text(json);
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

/* What people call a key: by its path where another column has the same words. */
static const char *head_of(const struct results *results, struct arena *arena, const int *columns, size_t count, size_t c)
{
    const char *key = results->keys.items[columns[c]].name, *words = words_of(arena, key);

    for (size_t i = 0; i < count; i++)
        if (i != c && !strcmp(words_of(arena, results->keys.items[columns[i]].name), words))
            return key;
    return words;
}

/* Whether the numbers under the key are said with the key's unit, which its style knows. */
static bool has_unit(const struct row_key *key)
{
    return key->from == KEY_METRIC && key->number;
}

static void print_sheet(const struct results *results, const struct results_look *look, size_t rows, FILE *out)
{
    struct sheet sheet = {.all = look->all};
    struct number_style *styles = xcalloc(look->count, sizeof *styles);
    char unit[CLIP_SIZE];

    for (size_t c = 0; c < look->count; c++) {
        const struct row_key *key = &results->keys.items[look->columns[c]];

        styles[c] = column_style(results, look->columns[c], rows);
        sheet_head(&sheet, look->keys ? key->name : head_of(results, &sheet.arena, look->columns, look->count, c),
                   has_unit(key) ? number_unit(&styles[c], unit, sizeof unit) : "");
        if (key->from != KEY_METRIC)
            sheet.needed = c + 2;        /* which rows they are, and the first number of each */
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < look->count; c++)
            add_cell(&sheet, results, r, look->columns[c], &styles[c]);
    sheet_print(&sheet, look->format == FORMAT_MARKDOWN, out);
    free(styles);
    sheet_release(&sheet);
}

static void print_csv(const struct results *results, const int *columns, size_t count, size_t rows, FILE *out)
{
    for (size_t c = 0; c < count; c++) {
        fputs(c ? "," : "", out);
        text_write(TEXT_CSV, results->keys.items[columns[c]].name, out);
    }
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

void results_print(const struct results *results, const struct results_look *look, FILE *out)
{
    size_t rows = look->most < results->rows.count ? look->most : results->rows.count;

    for (size_t r = 0; r < rows && look->format == FORMAT_JSON; r++) {
        json_line(results->rows.items[r], out);
        fputc('\n', out);
    }
    if (look->format == FORMAT_CSV)
        print_csv(results, look->columns, look->count, rows, out);
    else if (look->format != FORMAT_JSON)
        print_sheet(results, look, rows, out);
}

bool results_wants_most(const char *key)
{
    const struct metric *metric = metric_find(key);

    return (metric && metric->kind == METRIC_RATE) || strstr(key, "utilization") || strstr(key, "margin") ||
           strstr(key, "probability") || strstr(key, "goodput");
}
