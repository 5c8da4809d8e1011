#include "cli/memory_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "cli/said.h"
#include "files/json.h"
#include "recompute/stage_plan.h"
#include "report/caveats.h"
#include "run/memory_advice.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/memory.h"
#include "view/say.h"
#include "view/view.h"

/* ---- tensors that may go to the host ---- */

/* A name's tensors in a stage; B of one of them are the largest layer's. */
struct line {
    const char *name;
    int stage;
    double bytes;
    size_t kept, recomputed, host; /* layers */
    double away;                 /* B in host memory, of a micro-batch */
};
struct lines { struct line *items; size_t count, capacity; };

static struct line *line_of(struct lines *lines, const char *name)
{
    for (size_t i = 0; i < lines->count; i++)
        if (!strcmp(lines->items[i].name, name))
            return &lines->items[i];
    *GROW(lines) = (struct line){.name = name};
    return &lines->items[lines->count - 1];
}

/* Tensor number `tensor` of a layer, 0 being its input. */
static void add_tensor(struct lines *lines, const struct stage_plan *plan, size_t l, size_t tensor, const char *name,
                       double bytes, bool made)
{
    struct line *line = line_of(lines, name);
    bool away = false;

    if (!(bytes > 0))
        return;
    for (size_t c = 0; c < plan->ncopies && plan->tensors; c++)
        away |= plan->tensors[c].layer == l && plan->tensors[c].tensor == tensor;
    line->bytes = line->bytes > bytes ? line->bytes : bytes;
    line->away += away ? bytes : 0;
    line->kept += made && !away;
    line->recomputed += !made;
    line->host += away;
}

static void add_layer(struct lines *lines, const struct stage *stage, size_t l)
{
    const struct stage_plan *plan = stage->plan;
    const struct slice *slice = stage_layer(stage, l);
    const struct chain_kept *kept = &plan->kept[l];
    const struct layer *layer = slice->layer;
    double view = slice->input;

    add_tensor(lines, plan, l, 0, "input", slice->input, kept->input);
    if (!layer || !layer->saved)
        add_tensor(lines, plan, l, 1, layer ? layer->name : "activations", slice->activation - slice->input, kept->rest);
    for (size_t i = 0; layer && layer->saved && i < layer->nsaved; i++) {
        const struct saved_tensor *saved = &layer->saved[i];
        double seen = view < saved->bytes ? view : saved->bytes;

        view -= seen;
        add_tensor(lines, plan, l, i + 1, saved->name, saved->bytes - seen,
                   kept->rest && !(kept->selective && saved->core));
    }
}

static struct lines lines_of(const struct stage *stage)
{
    struct lines lines = {0};

    for (size_t l = 0; stage->plan && l < stage->plan->count; l++)
        add_layer(&lines, stage, l);
    return lines;
}

#define TENSOR(ROW) \
    ROW(stage, json_integer(it->stage), "virtual stage") \
    ROW(tensor, json_words(it->name), "that backwards read, of one micro-batch") \
    ROW(bytes, json_real(it->bytes), "of one layer, the largest") \
    ROW(kept, json_count(it->kept), "layers that keep it") \
    ROW(again, json_count(it->recomputed), "layers that compute it again") \
    ROW(host, json_count(it->host), "layers that send it to the host") \
    ROW(host_bytes, json_real(it->away), "in host memory, of all of these")
VIEW(tensor_view, struct line, it, TENSOR)

/* Of people's lists are left out stages that keep all of them. */
static json_t *tensors_json(const struct workload *workload, bool all)
{
    json_t *list = json_array();

    for (int s = 0; s < plan_virtual_stages(&workload->plan); s++) {
        struct lines lines = lines_of(&workload->stages[s]);
        bool shown = all;

        for (size_t i = 0; i < lines.count; i++)
            shown |= lines.items[i].recomputed + lines.items[i].host > 0;
        for (size_t i = 0; i < lines.count && shown; i++) {
            lines.items[i].stage = s;
            if (lines.items[i].kept + lines.items[i].recomputed + lines.items[i].host)
                json_append(list, view_json(&tensor_view, &lines.items[i]));
        }
        free(lines.items);
    }
    return list;
}

static void print_tensors(const struct workload *workload, FILE *out)
{
    json_t *list = tensors_json(workload, false);
    bool any = json_array_size(list);

    if (any)
        fprintf(out, "\n%-5s %-22s %10s %7s %7s %7s %12s\n", "stage", "tensor", "size", "kept", "again", "host", "on the host");
    say_each(list, "{stage@-5} {tensor@-22} {bytes@10} {kept@7} {again@7} {host@7} {host_bytes@12}\n", out);
    fputs(any ? "tensors that backwards read, of one micro-batch, and how many layers of the stage keep them, compute them again, "
                "or send them to the host\n" : "every stage keeps all tensors that its backwards read\n", out);
    json_decref(list);
}

/* ---- ranks ---- */

/* A line a rank, a column a kind that any of them holds. */
static void print_memory(const struct workload *workload, const struct metrics *metrics)
{
    const struct scenario *scenario = workload->scenario;
    bool held[MEMORY_KIND_COUNT] = {false};
    int ranks = scenario->plan.stages;
    struct arena arena = {0};
    const char *whole = caveat_whole(&arena, scenario);
    char text[48];

    for (int r = 0; r < ranks; r++)
        for (int kind = 0; kind < MEMORY_KIND_COUNT; kind++)
            held[kind] |= metrics->ranks[r].memory.bytes[kind] > 0;
    fputs("rank", stdout);
    for (int kind = 0; kind < MEMORY_KIND_COUNT; kind++)
        if (held[kind])
            printf(" %13s", memory_kind_title((enum memory_kind)kind));
    printf(" %13s\n", "total");
    for (int r = 0; r < ranks; r++) {
        printf("%-4d", r);
        for (int kind = 0; kind < MEMORY_KIND_COUNT; kind++)
            if (held[kind])
                printf(" %13s", unit_format_short(UNIT_BYTES, metrics->ranks[r].memory.bytes[kind], text, sizeof text));
        printf(" %13s\n", unit_format_short(UNIT_BYTES, metrics->ranks[r].peak_memory, text, sizeof text));
    }
    if (whole)
        printf("note: %s\n", whole);
    if (scenario_offloads(workload->scenario, OFFLOAD_TENSORS))
        print_tensors(workload, stdout);
    arena_release(&arena);
}

#define HELD(ROW, name, kind, brief) ROW(name##_bytes, json_real(it[i].memory.bytes[kind]), brief)
#define RANK(ROW) \
    ROW(rank, json_count(i), "of the pipeline; all bytes are of a GPU of it, at its peak") \
    HELD(ROW, parameters, MEMORY_PARAMETERS, "weights, every version") \
    HELD(ROW, gathered, MEMORY_GATHERED, "weights that ZeRO gathers for a while") \
    HELD(ROW, gradients, MEMORY_GRADIENTS, "of the weights") \
    HELD(ROW, optimizer, MEMORY_OPTIMIZER, "states, and weights in fp32") \
    HELD(ROW, activations, MEMORY_ACTIVATIONS, "kept for backwards") \
    HELD(ROW, workspace, MEMORY_WORKSPACE, "of the operation that runs") \
    HELD(ROW, buffers, MEMORY_BUFFERS, "of exchanges") \
    HELD(ROW, dummies, MEMORY_DUMMIES, "dummy weight gradients, one of each shape") \
    HELD(ROW, context, MEMORY_CONTEXT, "of CUDA and the communication library") \
    HELD(ROW, fragmentation, MEMORY_FRAGMENTATION, "of the framework's allocator") \
    ROW(peak_memory_bytes, json_real(it[i].peak_memory), "their sum")
VIEW(rank_view, struct rank_metrics, it, RANK)

struct shown { const struct workload *workload; const struct metrics *metrics; };

#define RANKS(ROW) \
    ROW(ranks, view_each(&rank_view, it->metrics->ranks, (size_t)it->workload->plan.stages), "pipeline ranks", \
        .form = VIEW_LIST, .of = &rank_view) \
    ROW(peak_memory_bytes, json_real(it->metrics->peak_memory), "of the fullest GPU") \
    ROW(tensors, scenario_offloads(it->workload->scenario, OFFLOAD_TENSORS) ? tensors_json(it->workload, true) : NULL, \
        "left out: 'offload' is not tensors", .form = VIEW_LIST, .of = &tensor_view)
VIEW_SHARED(memory_view, struct shown, it, RANKS)

static void print_memory_json(const struct workload *workload, const struct metrics *metrics)
{
    view_print(&memory_view, &(struct shown){workload, metrics}, stdout);
}

int memory_show(const struct workload *workload, bool json, struct error *err)
{
    const struct scenario *scenario = workload->scenario;
    struct run run = {0};
    int rc = simulate_advised(workload, memory_options_of(scenario), &run, err);

    if (run.metrics.ranks)
        (json ? print_memory_json : print_memory)(workload, &run.metrics);
    run_release(&run);
    return rc;
}
