#include "cli/memory_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "files/json.h"
#include "recompute/stage_plan.h"
#include "report/caveats.h"
#include "run/memory_advice.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/memory.h"

/* ---- tensors that may go to the host ---- */

/* A name's tensors in a stage; B of one of them are the largest layer's. */
struct line {
    const char *name;
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

/* The tensors of a stage; nothing if it keeps all of them. Returns whether there were any. */
static bool print_stage(int number, const struct lines *lines, bool headed, FILE *out)
{
    char text[2][48];
    bool keeps_all = true;

    for (size_t i = 0; i < lines->count; i++)
        keeps_all &= lines->items[i].recomputed + lines->items[i].host == 0;
    if (keeps_all)
        return false;
    if (!headed)
        fprintf(out, "\n%-5s %-22s %10s %7s %7s %7s %12s\n", "stage", "tensor", "size", "kept", "again", "host",
                "on the host");
    for (size_t i = 0; i < lines->count; i++) {
        const struct line *line = &lines->items[i];

        if (line->kept + line->recomputed + line->host)
            fprintf(out, "%-5d %-22s %10s %7zu %7zu %7zu %12s\n", number, line->name,
                    unit_format_short(UNIT_BYTES, line->bytes, text[0], sizeof text[0]), line->kept, line->recomputed,
                    line->host, unit_format_short(UNIT_BYTES, line->away, text[1], sizeof text[1]));
    }
    return true;
}

static void print_tensors(const struct workload *workload, FILE *out)
{
    bool headed = false;

    for (int s = 0; s < plan_virtual_stages(&workload->plan); s++) {
        struct lines lines = lines_of(&workload->stages[s]);

        headed |= print_stage(s, &lines, headed, out);
        free(lines.items);
    }
    fputs(headed ? "tensors that backwards read, of one micro-batch, and how many layers of the stage keep them, compute "
                   "them again, or send them to the host\n"
                 : "every stage keeps all tensors that its backwards read\n", out);
}

static json_t *tensors_json(const struct workload *workload)
{
    json_t *list = json_array();

    for (int s = 0; s < plan_virtual_stages(&workload->plan); s++) {
        struct lines lines = lines_of(&workload->stages[s]);

        for (size_t i = 0; i < lines.count; i++) {
            const struct line *line = &lines.items[i];

            if (line->kept + line->recomputed + line->host)
                json_append(list, json_pack("{s:i, s:s, s:f, s:i, s:i, s:i, s:f}", "stage", s, "tensor", line->name,
                                            "bytes", line->bytes, "kept", (int)line->kept, "again",
                                            (int)line->recomputed, "host", (int)line->host, "host_bytes", line->away));
        }
        free(lines.items);
    }
    return list;
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

static void print_memory_json(const struct workload *workload, const struct metrics *metrics)
{
    json_t *list = json_array(), *whole;

    for (int r = 0; r < workload->plan.stages; r++) {
        json_t *rank = json_pack("{s:i}", "rank", r);

        for (int kind = 0; kind < MEMORY_KIND_COUNT; kind++) {
            char key[48];

            snprintf(key, sizeof key, "%s_bytes", memory_kind_names[kind]);
            json_put(rank, key, json_real(metrics->ranks[r].memory.bytes[kind]));
        }
        json_put(rank, "peak_memory_bytes", json_real(metrics->ranks[r].peak_memory));
        json_append(list, rank);
    }
    whole = json_pack("{s:o, s:f}", "ranks", list, "peak_memory_bytes", metrics->peak_memory);
    if (scenario_offloads(workload->scenario, OFFLOAD_TENSORS))
        json_put(whole, "tensors", tensors_json(workload));
    json_print(whole, stdout);
    json_decref(whole);
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
