#include "cli/kernels_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sheet.h"
#include "base/words.h"
#include "base/units.h"
#include "cli/said.h"
#include "explain/ledger.h"
#include "files/json.h"
#include "hardware/gpu.h"
#include "kernels/cost.h"
#include "model/model.h"
#include "schedule/schedule.h"
#include "view/say.h"
#include "view/view.h"

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

/* The name of the basis as words. */
static json_t *basis_json(enum cost_basis basis)
{
    char text[96];

    snprintf(text, sizeof text, "%s", basis == BASIS_DATA_SHEET ? "roofline" : cost_basis_names[basis]);
    for (char *at = text; (at = strchr(at, '_'));)
        *at = ' ';
    return json_words(text);
}

static json_t *shape_json(const struct kernel *kernel)
{
    char text[96];

    return json_words(shape_text(kernel, text, sizeof text));
}

/* A side of a product or of attention; null: the kernel has none. */
static json_t *side(const struct kernel *kernel, double value)
{
    return kernel->m > 0 ? json_real(value) : json_null();
}

static json_t *layout_json(const struct kernel *kernel)
{
    bool product = kernel->kind == KERNEL_MATMUL || kernel->kind == KERNEL_GROUPED;

    return product && kernel->m > 0 ? json_string(layout_names[kernel->layout]) : json_null();
}

#define KERNEL(ROW) \
    ROW(work, json_string(ledger_work_names[it->work]), "of a micro-batch, or update, once an iteration") \
    ROW(kernel, json_words(it->kernel.name), "what it computes") \
    ROW(kind, json_string(kernel_kind_names[it->kernel.kind]), "class, as in cost_basis_s of result.json") \
    ROW(dtype, json_string(dtype_names[it->kernel.dtype]), "of its operands") \
    ROW(layout, layout_json(&it->kernel), "how the operands of a product lie; null: it is none") \
    ROW(batch, side(&it->kernel, it->kernel.batch), "products, heads or experts; null: it is no product and no attention") \
    ROW(m, side(&it->kernel, it->kernel.m), "rows, or queries") \
    ROW(n, side(&it->kernel, it->kernel.n), "columns, or keys") \
    ROW(k, side(&it->kernel, it->kernel.k), "sum over, or the size of heads") \
    ROW(flop, json_real(it->kernel.flop), "that one computes") \
    ROW(bytes, json_real(it->kernel.bytes), "that one reads and writes") \
    ROW(count, json_real(it->count), "equal ones in a work of the stage") \
    ROW(time_s, json_real(it->seconds), "of all of these") \
    ROW(basis, json_string(cost_basis_names[it->basis]), "what the time stands on, as in cost_basis_s of result.json") \
    ROW(kind_words, json_string(kind_text(it->kernel.kind)), NULL) ROW(shape, shape_json(&it->kernel), NULL) \
    ROW(format, json_words(it->kernel.kind == KERNEL_MEMORY ? "" : dtype_names[it->kernel.dtype]), NULL) \
    ROW(each_us, json_real(it->seconds / it->count * 1e6), NULL) ROW(all_ms, json_real(it->seconds * 1e3), NULL) \
    ROW(basis_words, basis_json(it->basis), NULL)
VIEW(kernel_view, struct ledger_row, it, KERNEL)

struct stage_ledger { int stage; struct ledger ledger; };

#define STAGE(ROW) \
    ROW(stage, json_integer(it->stage), "virtual stage") \
    ROW(kernels, view_list(&kernel_view, it->ledger.items, it->ledger.count, sizeof *it->ledger.items), "equal kernels of a work", \
        .form = VIEW_LIST, .of = &kernel_view) \
    ROW(waits_s, json_numbers(ledger_work_names, it->ledger.waits, LEDGER_WORK_COUNT), "for launches by the host, by work", \
        .form = VIEW_MAP) \
    ROW(planned_recomputation_s, json_real(it->ledger.planned), "kernels that a plan of layers computes again in each backward")
VIEW(stage_view, struct stage_ledger, it, STAGE)

static const struct say_column columns[] = {
    {"kernel", NULL, "{kernel}"}, {"kind", NULL, "{kind_words}"}, {"shape", NULL, "{shape}"}, {"format", NULL, "{format}"},
    {"count", NULL, "{count}"}, {"each", "us", "{each_us}"}, {"all", "ms", "{all_ms}"},
    {"its time stands on", NULL, "{basis_words}"},
};

static void print_work(const struct ledger *ledger, enum ledger_work work, FILE *out)
{
    struct sheet sheet = {.left = 3, .all = true, .needed = COUNT(columns)};
    struct arena arena = {0};
    json_t *list;
    char text[48];

    if (sum_of(ledger, work) == 0)
        return;
    list = json_array();
    fprintf(out, "\n%s%s: %s\n", words_of(&arena, ledger_work_names[work]), work == LEDGER_UPDATE ? ", once an iteration" :
            " of a micro-batch", unit_format_short(UNIT_TIME, sum_of(ledger, work), text, sizeof text));
    for (size_t i = 0; i < ledger->count; i++)
        if (ledger->items[i].work == work)
            json_append(list, view_facts(&kernel_view, &ledger->items[i]));
    say_table(list, columns, COUNT(columns), &sheet, false, out);
    if (ledger->waits[work] > 0)
        fprintf(out, "waits for launches by the host: %s\n",
                unit_format_short(UNIT_TIME, ledger->waits[work], text, sizeof text));
    json_decref(list);
    arena_release(&arena);
}

static void kernels_print(const struct workload *workload, FILE *out)
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

static json_t *stages_json(const struct workload *workload)
{
    json_t *list = json_array();

    for (int s = 0; s < plan_virtual_stages(&workload->plan); s++) {
        struct stage_ledger of = {.stage = s};

        ledger_init(&of.ledger, workload, s);
        json_append(list, view_json(&stage_view, &of));
        ledger_release(&of.ledger);
    }
    return list;
}

#define KERNELS(ROW) \
    ROW(stages, stages_json(it), "virtual stages", .form = VIEW_LIST, .of = &stage_view)
VIEW_SHARED(kernels_view, struct workload, it, KERNELS)

void kernels_show(const struct workload *workload, bool json)
{
    if (json)
        view_print(&kernels_view, workload, stdout);
    else
        kernels_print(workload, stdout);
}
