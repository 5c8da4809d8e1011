#include "lower/script_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

const struct work_rule work_rules[WORK_KIND_COUNT] = {
    [FORWARD] = {ACTIVATIONS, NO_RESULT, FORWARDED, ACTIVATIONS, .slice = -1, .takes = MEMORY_KEPT},
    [RECOMPUTE] = {GRADIENTS, FORWARDED, RECOMPUTED, NO_ARRIVAL, .takes = MEMORY_WORKING, .backward = true},
    [BACKWARD] = {GRADIENTS, RECOMPUTED, BACKWARDED, GRADIENTS, .slice = 1, .frees = MEMORY_ALL, .backward = true},
    [BACKWARD_INPUT] = {GRADIENTS, RECOMPUTED, BACKWARDED, GRADIENTS, .slice = 1, .backward = true},
    [BACKWARD_WEIGHT] = {NO_ARRIVAL, BACKWARDED, NO_RESULT, NO_ARRIVAL, .frees = MEMORY_ALL, .backward = true},
};

/* Marks the entries that complete their chunks' gradients before an update; sets `others`, the other works of a row
 * with the same chunk and micro-batch. */
static void look_ahead(const struct rows *rows, int rank, uint8_t *marks, uint8_t *others)
{
    bool every = rows->scenario->recipe.gradients.every;
    size_t chunks = (size_t)rows->plan->chunks;
    bool *complete = xcalloc(chunks, sizeof *complete);

    for (size_t i = row_entries(rows, rank); i-- > 0;) {
        struct work work = row_entry(rows, rank, i);

        if (work.kind == UPDATE)
            memset(complete, 0, chunks * sizeof *complete);
        /* ZeRO 2 keeps no whole gradients: it scatters them in every micro-batch, after the backward of its first slice */
        if ((work.kind == BACKWARD || work.kind == BACKWARD_WEIGHT) &&
            (!complete[work.chunk] || (every && work.mb % plan_slices(rows->plan) == 0))) {
            complete[work.chunk] = true;
            marks[i] |= ENTRY_COMPLETES;
        }
        if (work.kind == RECOMPUTE || work.kind == BACKWARD_WEIGHT)
            others[work.chunk * rows->micro_batches + work.mb] |= work.kind == RECOMPUTE ? ENTRY_RECOMPUTED : ENTRY_SPLIT;
    }
    free(complete);
}

static void mark_row(const struct rows *rows, int rank, struct arena *arena)
{
    const struct recipe *recipe = &rows->scenario->recipe;
    bool stay = recipe->weights.stay_forward && recipe->weights.stay_backward;
    size_t entries = row_entries(rows, rank), chunks = (size_t)rows->plan->chunks;
    uint8_t *marks = rows->marks[rank] = ARENA_ARRAY(arena, uint8_t, entries + 1);
    uint8_t *others = xcalloc(chunks * (size_t)rows->micro_batches, sizeof *others);
    bool *gathered = xcalloc(chunks, sizeof *gathered);

    look_ahead(rows, rank, marks, others);
    for (size_t i = 0; i < entries; i++) {
        struct work work = row_entry(rows, rank, i);

        if (work.kind == UPDATE || work.kind == GATHER)
            continue;
        marks[i] |= others[work.chunk * rows->micro_batches + work.mb];
        marks[i] |= rows->zero && !(stay && gathered[work.chunk]) ? ENTRY_LAYERS : 0;
        gathered[work.chunk] |= work.kind != RECOMPUTE && work.kind != BACKWARD_WEIGHT;
    }
    free(gathered);
    free(others);
}

void rows_find(struct rows *rows, const struct workload *workload, bool whole, struct arena *arena)
{
    const struct scenario *scenario = workload->scenario;
    const struct recipe *recipe = &scenario->recipe;
    const struct schedule *schedule = scenario_schedule(scenario);
    bool replicated = whole && scenario_replicas(scenario) > 1;
    int steps = whole ? scenario->parallelism.local_steps : 1;

    *rows = (struct rows){
        .workload = workload, .scenario = scenario, .plan = &workload->plan,
        .whole = whole, .steps = steps, .micro_batches = plan_micro_batches(&workload->plan) * steps,
        .update_last = !schedule->asynchronous, .gather_last = recipe->weights.when == WEIGHTS_UPDATED,
        .replicates = replicated && recipe->weights.when == WEIGHTS_FORWARD,
        .zero = replicated && recipe->weights.when == WEIGHTS_LAYER, .recompute = schedule->recompute,
        /* figures and orders show the rows, not choices at run time */
        .opportunistic = whole ? plan_opportunistic(schedule, &scenario->plan) : 0,
        .sums = recipe->gradients.every ? workload->plan.micro_batches : 1,
        .sums_late = whole && (recipe->gradients.flush || scenario->parallelism.compression.method != COMPRESSION_NONE),
        .marks = ARENA_ARRAY(arena, uint8_t *, workload->plan.stages),
    };
    for (int rank = 0; rank < rows->plan->stages; rank++)
        mark_row(rows, rank, arena);
}

void rows_print(const struct rows *rows, FILE *out)
{
    fputs("# rows\n# rank entry  work\n", out);
    for (int rank = 0; rank < rows->plan->stages; rank++)
        for (size_t i = 0; i < row_entries(rows, rank); i++) {
            struct work work = row_entry(rows, rank, i);
            int marks = rows->marks[rank][i];
            char cell[40];

            fprintf(out, "%6d %5zu  %s", rank, i, work.kind == UPDATE ? "update" : work.kind == GATHER ? "gather" :
                    work_format(rows->plan, rank, work, cell, sizeof cell));
            fputs(work.with_next ? " with the next" : "", out);
            fputs(work.kind == FORWARD && marks & ENTRY_RECOMPUTED ? ", recomputed later" : "", out);
            fputs(work.kind == BACKWARD_INPUT && marks & ENTRY_SPLIT ? ", half of a backward" : "", out);
            fputs(marks & ENTRY_COMPLETES ? ", completes gradients" : "", out);
            fputs(marks & ENTRY_LAYERS ? ", gathers layers" : "", out);
            fputc('\n', out);
        }
}
