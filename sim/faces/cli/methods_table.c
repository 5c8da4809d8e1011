#include "cli/methods_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "base/decimal.h"
#include "base/sheet.h"
#include "base/text.h"
#include "files/json.h"
#include "results/compared.h"
#include "results/comparison.h"

/* How people read a number: with its unit, as a share, or as a factor over the baseline. */
enum style { STYLE_UNIT, STYLE_SHARE, STYLE_FACTOR };

/* A column: what programs call it, what people read above it, and its value. */
struct column {
    const char *key, *title;
    enum unit unit;
    enum style style;
    double (*value)(const struct comparison *row);
};

#define COLUMN(name, expression) \
    static double name(const struct comparison *row) \
    { \
        return expression; \
    }
COLUMN(gpus, row->gpus)
COLUMN(extra_computation, row->extra_computation)
COLUMN(activations, row->sent[PAYLOAD_ACTIVATIONS])
COLUMN(weights, row->sent[PAYLOAD_WEIGHTS])
COLUMN(activation_gradients, row->sent[PAYLOAD_ACTIVATION_GRADIENTS])
COLUMN(weight_gradients, row->sent[PAYLOAD_WEIGHT_GRADIENTS])
COLUMN(micro, row->micro < 0 ? NAN : (double)row->micro)
COLUMN(batch_growth, row->batch_growth)
COLUMN(flop, row->flop)
COLUMN(iteration_time, row->time)
COLUMN(peak_memory, row->peak_memory)

static const struct column columns[] = {
    {"gpus", "GPUs", UNIT_NUMBER, STYLE_UNIT, gpus},
    {"extra_computation", "extra FLOP", UNIT_NUMBER, STYLE_SHARE, extra_computation},
    {"activation_bytes_per_gpu", "activations sent", UNIT_BYTES, STYLE_UNIT, activations},
    {"weight_bytes_per_gpu", "weights sent", UNIT_BYTES, STYLE_UNIT, weights},
    {"activation_gradient_bytes_per_gpu", "act. gradients", UNIT_BYTES, STYLE_UNIT, activation_gradients},
    {"weight_gradient_bytes_per_gpu", "weight gradients", UNIT_BYTES, STYLE_UNIT, weight_gradients},
    {"largest_micro_batch", "micro-batch", UNIT_NUMBER, STYLE_UNIT, micro},
    {"batch_growth", "batch grows", UNIT_NUMBER, STYLE_FACTOR, batch_growth},
    {"flop_per_iteration", "FLOP", UNIT_FLOP, STYLE_UNIT, flop},
    {"iteration_time_s", "time", UNIT_TIME, STYLE_UNIT, iteration_time},
    {"peak_memory_bytes", "memory", UNIT_BYTES, STYLE_UNIT, peak_memory},
};

struct rows {
    struct comparison *items;
    size_t count, capacity;
};

static const char *cell(const struct column *column, const struct comparison *row, char *buffer, size_t size)
{
    double value = column->value(row);

    if (isnan(value) || (value == 0 && column->unit == UNIT_BYTES))
        return "-";
    if (column->style == STYLE_SHARE)
        snprintf(buffer, size, "%+.1f %%", 100 * value + 0.0);
    else if (column->style == STYLE_FACTOR)
        snprintf(buffer, size, value > 1 ? "yes, x %.3g" : value < 1 ? "no, x %.3g" : "no", value);
    else
        unit_format_short(column->unit, value, buffer, size);
    return buffer;
}

static void print_people(const struct rows *rows, bool markdown, FILE *out)
{
    struct sheet sheet = {.left = 1, .all = true};
    char text[48];

    sheet_head(&sheet, "method", "");
    for (size_t c = 0; c < COUNT(columns); c++)
        sheet_head(&sheet, columns[c].title, "");
    for (size_t i = 0; i < rows->count; i++) {
        sheet_add(&sheet, rows->items[i].name);
        if (rows->items[i].reason)
            sheet_add_rest(&sheet, rows->items[i].reason);
        for (size_t c = 0; c < COUNT(columns) && !rows->items[i].reason; c++)
            sheet_add(&sheet, cell(&columns[c], &rows->items[i], text, sizeof text));
    }
    sheet_print(&sheet, markdown, out);
    sheet_release(&sheet);
}

static void print_text(const struct rows *rows, FILE *out)
{
    print_people(rows, false, out);
    fputs("\nper iteration, against the first row; sent: what a GPU sends (mean): activations, weights, and the "
          "gradients of\neither; micro-batch: the largest that fits in memory\n", out);
}

static void print_markdown(const struct rows *rows, FILE *out)
{
    print_people(rows, true, out);
}

/* Numbers in SI units; empty where there is none. */
static void print_csv(const struct rows *rows, FILE *out)
{
    fputs("name", out);
    for (size_t c = 0; c < COUNT(columns); c++)
        fprintf(out, ",%s", columns[c].key);
    fputs(",reason", out);
    for (size_t i = 0; i < rows->count; i++) {
        fputc('\n', out);
        text_write(TEXT_CSV, rows->items[i].name, out);
        for (size_t c = 0; c < COUNT(columns); c++) {
            double value = columns[c].value(&rows->items[i]);

            putc(',', out);
            if (isfinite(value) && !rows->items[i].reason)
                decimal_write(value, out);
        }
        putc(',', out);
        if (rows->items[i].reason)
            text_write(TEXT_CSV, rows->items[i].reason, out);
    }
    fputc('\n', out);
}

static void print_json(const struct rows *rows, FILE *out)
{
    json_t *list = json_array();

    for (size_t i = 0; i < rows->count; i++) {
        json_t *json = json_object();

        json_put(json, "name", json_words(rows->items[i].name));
        for (size_t c = 0; c < COUNT(columns); c++) {
            double value = columns[c].value(&rows->items[i]);

            json_put(json, columns[c].key,
                                isfinite(value) && !rows->items[i].reason ? json_real(value) : json_null());
        }
        json_put(json, "reason", rows->items[i].reason ? json_words(rows->items[i].reason) : json_null());
        json_append(list, json);
    }
    json_print(list, out);
    json_decref(list);
}

static void add(void *context, const char *name, struct scenario *scenario, struct error *found)
{
    struct rows *rows = context;
    const struct comparison *baseline = NULL;
    struct comparison row;

    for (size_t i = 0; i < rows->count && !baseline; i++)
        baseline = rows->items[i].reason ? NULL : &rows->items[i];
    if (scenario)
        comparison_init(&row, name, scenario, baseline, found);
    else
        comparison_refused(&row, name, found);
    *GROW(rows) = row;
}

size_t methods_print(const struct arguments *arguments, enum compare_format format, struct error *err)
{
    static void (*const prints[])(const struct rows *, FILE *) = {
        [COMPARE_TEXT] = print_text, [COMPARE_JSON] = print_json, [COMPARE_CSV] = print_csv,
        [COMPARE_MARKDOWN] = print_markdown,
    };
    struct cache cache = {0};
    struct rows rows = {0};
    const struct compared_each each = {
        .cache = &cache, .prefix = arguments->npositional > 1, .call = add, .context = &rows,
    };
    size_t printed = 0;

    cache_init(&cache, CACHE_BYTES);
    for (int i = 0; i < arguments->npositional; i++)
        printed += !compared_visit(&each, arguments->positional[i], arguments->sets, arguments->nsets, err);
    if (printed && error_exit_code(err) != EXIT_USAGE)
        prints[format](&rows, stdout);
    for (size_t i = 0; i < rows.count; i++)
        comparison_release(&rows.items[i]);
    free(rows.items);
    cache_release(&cache);
    return printed;
}
