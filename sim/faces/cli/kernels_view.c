#include "cli/kernels_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sheet.h"
#include "base/units.h"
#include "explain/ledger.h"
#include "files/json.h"
#include "hardware/gpu.h"
#include "kernels/cost.h"
#include "model/model.h"
#include "schedule/schedule.h"

/* "24 x 2048 x 128 x 2048 nt" of a product: how many, m, n, k, and how its operands lie; queries, keys and the size of heads
 * of attention; the bytes that any other kernel reads and writes. */
static char *shape_text(const struct kernel *kernel, char *text, size_t size)
{
    char bytes[48];

    if (kernel->kind == KERNEL_MEMORY)
        snprintf(text, size, "%s", kernel->bytes > 0 ? unit_format_short(UNIT_BYTES, kernel->bytes, bytes, sizeof bytes) : "");
    else if (kernel->m == 0)
        snprintf(text, size, "%s", unit_format_short(UNIT_FLOP, kernel->flop, bytes, sizeof bytes));
    else if (kernel->kind == KERNEL_ATTENTION)
        snprintf(text, size, "%.0f heads, %.0f x %.0f x %.0f%s", kernel->batch, kernel->m, kernel->n, kernel->k,
                 kernel->causal ? " causal" : "");
    else if (kernel->kind == KERNEL_GROUPED)
        snprintf(text, size, "%.0f experts, %.6g x %.6g x %.6g %s", kernel->batch, kernel->m, kernel->n, kernel->k,
                 layout_names[kernel->layout]);
    else if (kernel->batch > 1)
        snprintf(text, size, "%.0f of %.6g x %.6g x %.6g %s", kernel->batch, kernel->m, kernel->n, kernel->k,
                 layout_names[kernel->layout]);
    else
        snprintf(text, size, "%.6g x %.6g x %.6g %s", kernel->m, kernel->n, kernel->k, layout_names[kernel->layout]);
    return text;
}

static const char *kind_text(enum kernel_kind kind)
{
    static const char *const texts[] = {
        [KERNEL_MATMUL] = "GEMM", [KERNEL_GROUPED] = "grouped GEMM", [KERNEL_ATTENTION] = "attention",
        [KERNEL_MEMORY] = "memory-bound",
    };

    return texts[kind];
}

/* The name of the basis as words. */
static char *basis_text(enum cost_basis basis, char *text, size_t size)
{
    snprintf(text, size, "%s", basis == BASIS_DATA_SHEET ? "roofline" : cost_basis_names[basis]);
    for (char *at = text; (at = strchr(at, '_'));)
        *at = ' ';
    return text;
}

static bool same_ledger(const struct ledger *a, const struct ledger *b)
{
    bool same = a->count == b->count && a->planned == b->planned && !memcmp(a->waits, b->waits, sizeof a->waits);

    for (size_t i = 0; same && i < a->count; i++) {
        const struct ledger_row *x = &a->items[i], *y = &b->items[i];
        char one[96], other[96];

        same = x->work == y->work && x->count == y->count && x->seconds == y->seconds && x->basis == y->basis &&
               !strcmp(x->kernel.name, y->kernel.name) &&
               !strcmp(shape_text(&x->kernel, one, sizeof one), shape_text(&y->kernel, other, sizeof other));
    }
    return same;
}

static double sum_of(const struct ledger *ledger, enum ledger_work work)
{
    double sum = ledger->waits[work];

    for (size_t i = 0; i < ledger->count; i++)
        sum += ledger->items[i].work == work ? ledger->items[i].seconds : 0;
    return sum;
}

static void add_number(struct sheet *sheet, double number)
{
    char text[32];

    snprintf(text, sizeof text, number < 9999.5 ? "%.4g" : "%.0f", number);
    sheet_add(sheet, text);
}

static void add_row(struct sheet *sheet, const struct ledger_row *row)
{
    char text[96];

    sheet_add(sheet, row->kernel.name);
    sheet_add(sheet, kind_text(row->kernel.kind));
    sheet_add(sheet, shape_text(&row->kernel, text, sizeof text));
    sheet_add(sheet, row->kernel.kind == KERNEL_MEMORY ? "" : dtype_names[row->kernel.dtype]);
    add_number(sheet, row->count);
    add_number(sheet, row->seconds / row->count * 1e6);
    add_number(sheet, row->seconds * 1e3);
    sheet_add(sheet, basis_text(row->basis, text, sizeof text));
}

static void print_work(const struct ledger *ledger, enum ledger_work work, FILE *out)
{
    static const struct { const char *name, *unit; } heads[] = {
        {"kernel", ""}, {"kind", ""}, {"shape", ""}, {"format", ""}, {"count", ""}, {"each", "us"}, {"all", "ms"},
        {"its time stands on", ""},
    };
    struct sheet sheet = {.left = 3, .all = true, .needed = COUNT(heads)};
    char name[48], text[48];

    if (sum_of(ledger, work) == 0)
        return;
    snprintf(name, sizeof name, "%s", ledger_work_names[work]);
    for (char *at = name; (at = strchr(at, '_'));)
        *at = ' ';
    fprintf(out, "\n%s%s: %s\n", name, work == LEDGER_UPDATE ? ", once an iteration" : " of a micro-batch",
            unit_format_short(UNIT_TIME, sum_of(ledger, work), text, sizeof text));
    for (size_t i = 0; i < COUNT(heads); i++)
        sheet_head(&sheet, heads[i].name, heads[i].unit);
    for (size_t i = 0; i < ledger->count; i++)
        if (ledger->items[i].work == work)
            add_row(&sheet, &ledger->items[i]);
    sheet_print(&sheet, false, out);
    if (ledger->waits[work] > 0)
        fprintf(out, "waits for launches by the host: %s\n",
                unit_format_short(UNIT_TIME, ledger->waits[work], text, sizeof text));
    sheet_release(&sheet);
}

void kernels_print(const struct workload *workload, FILE *out)
{
    int stages = plan_virtual_stages(&workload->plan), last;
    struct ledger ledger, next;
    char text[48];

    if (model_is_timed(&workload->scenario->model))
        fputs("the scenario gives the times of its model; no kernels are timed\n", out);
    for (int first = 0; first < stages && !model_is_timed(&workload->scenario->model); first = last + 1) {
        bool same = true;

        ledger_init(&ledger, workload, first);
        for (last = first; last + 1 < stages && same;) {
            ledger_init(&next, workload, last + 1);
            same = same_ledger(&ledger, &next);
            last += same;
            ledger_release(&next);
        }
        fprintf(out, last > first ? "%sstages %d to %d, each\n" : "%sstage %d\n", first ? "\n" : "", first, last);
        for (enum ledger_work work = LEDGER_FORWARD; work < LEDGER_WORK_COUNT; work++)
            print_work(&ledger, work, out);
        if (ledger.planned > 0)
            fprintf(out, "\nkernels of the forward that the plan of layers runs again in a backward: %s\n",
                    unit_format_short(UNIT_TIME, ledger.planned, text, sizeof text));
        ledger_release(&ledger);
    }
}

static json_t *row_json(const struct ledger_row *row)
{
    const struct kernel *kernel = &row->kernel;
    bool product = kernel->kind == KERNEL_MATMUL || kernel->kind == KERNEL_GROUPED;
    json_t *json = json_object();

    json_put(json, "work", json_string(ledger_work_names[row->work]));
    json_put(json, "kernel", json_words(kernel->name));
    json_put(json, "kind", json_string(kernel_kind_names[kernel->kind]));
    json_put(json, "dtype", json_string(dtype_names[kernel->dtype]));
    json_put(json, "layout", product && kernel->m > 0 ? json_string(layout_names[kernel->layout]) : json_null());
    json_put(json, "batch", kernel->m > 0 ? json_real(kernel->batch) : json_null());
    json_put(json, "m", kernel->m > 0 ? json_real(kernel->m) : json_null());
    json_put(json, "n", kernel->m > 0 ? json_real(kernel->n) : json_null());
    json_put(json, "k", kernel->m > 0 ? json_real(kernel->k) : json_null());
    json_put(json, "flop", json_real(kernel->flop));
    json_put(json, "bytes", json_real(kernel->bytes));
    json_put(json, "count", json_real(row->count));
    json_put(json, "time_s", json_real(row->seconds));
    json_put(json, "basis", json_string(cost_basis_names[row->basis]));
    return json;
}

json_t *kernels_json(const struct workload *workload)
{
    json_t *list = json_array();

    for (int s = 0; s < plan_virtual_stages(&workload->plan); s++) {
        json_t *stage = json_object(), *kernels = json_array(), *waits = json_object();
        struct ledger ledger;

        ledger_init(&ledger, workload, s);
        for (size_t i = 0; i < ledger.count; i++)
            json_append(kernels, row_json(&ledger.items[i]));
        for (enum ledger_work work = LEDGER_FORWARD; work < LEDGER_WORK_COUNT; work++)
            json_put(waits, ledger_work_names[work], json_real(ledger.waits[work]));
        json_put(stage, "stage", json_integer(s));
        json_put(stage, "kernels", kernels);
        json_put(stage, "waits_s", waits);
        json_put(stage, "planned_recomputation_s", json_real(ledger.planned));
        json_append(list, stage);
        ledger_release(&ledger);
    }
    return json_pack("{s:o}", "stages", list);
}
