#include "cli/methods_table.h"

#include <math.h>
#include <stdlib.h>

#include "base/cache.h"
#include "base/sheet.h"
#include "cli/said.h"
#include "files/json.h"
#include "results/compared.h"
#include "results/comparison.h"
#include "view/say.h"
#include "view/view.h"

/* A number of a row that has numbers. */
static json_t *number(const struct comparison *row, double value)
{
    return json_finite(row->reason ? NAN : value);
}

#define METHOD(ROW) \
    ROW(name, json_words(it->name), "of the scenario, or what is set") \
    ROW(gpus, number(it, it->gpus), "of the scenario") \
    ROW(extra_computation, number(it, it->extra_computation), "FLOP of a sample over the first row's, less 1") \
    ROW(activation_bytes_per_gpu, number(it, it->sent[PAYLOAD_ACTIVATIONS]), "sent an iteration, mean over GPUs") \
    ROW(weight_bytes_per_gpu, number(it, it->sent[PAYLOAD_WEIGHTS]), "the same") \
    ROW(activation_gradient_bytes_per_gpu, number(it, it->sent[PAYLOAD_ACTIVATION_GRADIENTS]), "the same") \
    ROW(weight_gradient_bytes_per_gpu, number(it, it->sent[PAYLOAD_WEIGHT_GRADIENTS]), "the same") \
    ROW(largest_micro_batch, number(it, it->micro < 0 ? NAN : (double)it->micro), "samples that fit in memory; null: no limit is known") \
    ROW(batch_growth, number(it, it->batch_growth), "largest_micro_batch over the first row's") \
    ROW(flop_per_iteration, number(it, it->flop), "of the whole model") \
    ROW(iteration_time_s, number(it, it->time), "of the scenario") \
    ROW(peak_memory_bytes, number(it, it->peak_memory), "on one GPU, the largest") \
    ROW(reason, it->reason ? json_words(it->reason) : json_null(), "why there are no numbers; null: there are")
VIEW_SHARED(methods_view, struct comparison, it, METHOD)

static const struct say_column columns[] = {
    {"method", NULL, "{name}"},
    {NULL, NULL, "{reason}"},
    {"GPUs", NULL, "{gpus}"},
    {"extra FLOP", NULL, "{extra_computation*100:%+.1f} %"},
    {"activations sent", NULL, "[?activation_bytes_per_gpu {activation_bytes_per_gpu}|-]"},
    {"weights sent", NULL, "[?weight_bytes_per_gpu {weight_bytes_per_gpu}|-]"},
    {"act. gradients", NULL, "[?activation_gradient_bytes_per_gpu {activation_gradient_bytes_per_gpu}|-]"},
    {"weight gradients", NULL, "[?weight_gradient_bytes_per_gpu {weight_gradient_bytes_per_gpu}|-]"},
    {"micro-batch", NULL, "{largest_micro_batch}"},
    {"batch grows", NULL, "[?batch_growth>1 yes, x {batch_growth:%.3g}|?batch_growth<1 no, x {batch_growth:%.3g}|?batch_growth=1 no|-]"},
    {"FLOP", NULL, "{flop_per_iteration:flop}"},
    {"time", NULL, "{iteration_time_s}"},
    {"memory", NULL, "[?peak_memory_bytes {peak_memory_bytes}|-]"},
};

struct rows {
    struct comparison *items;
    size_t count, capacity;
};

static void print(const struct rows *rows, enum compare_format format, FILE *out)
{
    json_t *list = view_list(&methods_view, rows->items, rows->count, sizeof *rows->items);
    struct sheet sheet = {.left = 1, .all = true};

    if (format == COMPARE_JSON)
        json_print(list, out);
    else if (format == COMPARE_CSV)
        view_csv(&methods_view, list, out);
    else
        say_table(list, columns, COUNT(columns), &sheet, format == COMPARE_MARKDOWN, out);
    if (format == COMPARE_TEXT)
        fputs("\nper iteration, against the first row; sent: what a GPU sends (mean): activations, weights, and the "
              "gradients of\neither; micro-batch: the largest that fits in memory\n", out);
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
        print(&rows, format, stdout);
    for (size_t i = 0; i < rows.count; i++)
        comparison_release(&rows.items[i]);
    free(rows.items);
    cache_release(&cache);
    return printed;
}
