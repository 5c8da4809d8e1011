#include "lower/script_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/progress.h"
#include "exchange/exchange.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

static void add_row(struct writer *writer, bool works_alone)
{
    const struct rows *rows = writer->rows;
    size_t entries = row_entries(rows, writer->rank);

    script_row(writer->script);
    if (!scenario_has_rank(rows->scenario, writer->replica * rows->plan->stages + writer->rank))
        return;
    writer->updates = 0;
    memset(writer->completed, 0, (size_t)rows->plan->chunks * sizeof *writer->completed);
    for (size_t entry = 0, count; entry < entries; entry += count) {
        enum work_kind kind = row_entry(rows, writer->rank, entry).kind;

        count = 1;
        if (rows->replicates)
            add_replication(writer, entry);
        if (kind != UPDATE && kind != GATHER)
            count = add_works(writer, entry);
        else if (!works_alone)
            (kind == UPDATE ? add_update : add_gather)(writer, entry);
    }
}

/* The number of consecutive replicas that wait for each other before an entry; `gathers`: before one that gathers
 * layers. ZeRO 3's replicas wait for each other in the gathers of layers. Replicas of a lockstep group wait for each
 * other inside their works; a barrier says so where their works do not take equally long. */
static int meeting_group(const struct exchanges *exchanges, bool gathers)
{
    bool differ = exchanges->alike.uneven & (UNEVEN_WORKS | UNEVEN_GPUS | UNEVEN_SAMPLES | UNEVEN_KINDS);
    int lockstep = differ ? exchanges->lockstep : 1;
    /* a rank with fewer replicas waits for all of these (meeting_replicas) */
    int shard = gathers ? exchanges->scenario->recipe.divided[HELD_WEIGHTS][PARAMETERS_COMMON] : 1;

    return exchanges->alike.replicas == 1 ? 1 : lcm(lockstep, shard, INT_MAX);
}

/* Numbers all labels that there may be. */
static void make_labels(const struct writer *writer, struct labels *labels)
{
    const struct rows *rows = writer->rows;
    uint32_t replicas = (uint32_t)writer->exchanges->alike.replicas, stages = (uint32_t)plan_virtual_stages(rows->plan);
    uint32_t ranks = (uint32_t)rows->plan->stages, entries = 0, updates = 0, first = 0;
    uint32_t directions = (uint32_t)plan_directions(rows->plan), mbs = (uint32_t)rows->micro_batches;
    uint32_t tied = (uint32_t)tied_sums(writer->exchanges);
    bool meet = writer->barrier_group > 1 || writer->gather_group > 1;

    /* the most of any rank: those that share a stage with others have fewer updates */
    for (int rank = 0; rank < rows->plan->stages; rank++) {
        uint32_t row_updates = 0, count = (uint32_t)row_entries(rows, rank);

        for (size_t i = 0; i < count; i++)
            row_updates += row_entry(rows, rank, i).kind == UPDATE;
        updates = row_updates > updates ? row_updates : updates;
        entries = count > entries ? count : entries;
    }
    /* updates + 1: an asynchronous schedule may complete gradients after its last update, for which no sum waits */
    labels->blocks[LABEL_ACTIVATION] = (struct label_block){0, replicas, directions, stages, mbs};
    labels->blocks[LABEL_GRADIENT] = labels->blocks[LABEL_ACTIVATION];
    labels->blocks[LABEL_COMPLETE] = (struct label_block){0, 1, 1, stages, (updates + 1) * (uint32_t)rows->sums};
    labels->blocks[LABEL_TIED_COPY] = (struct label_block){0, tied, 1, 2, updates + 1};
    labels->blocks[LABEL_TIED_COPIES] = (struct label_block){0, tied, 1, 1, updates + 1};
    labels->blocks[LABEL_UPDATED] = (struct label_block){0, 1, 1, stages, 1};
    labels->blocks[LABEL_GROUP_ARRIVED] = (struct label_block){0, replicas, 1, ranks, meet ? entries : 0};
    labels->blocks[LABEL_ALL_ARRIVED] = (struct label_block){0, 1, 1, 1, rows->replicates ? entries : 0};
    for (int kind = 0; kind < LABEL_KIND_COUNT; kind++) {
        struct label_block *block = &labels->blocks[kind];

        block->first = first;
        first += block->replicas * block->directions * block->stages * block->numbers;
    }
    labels->count = first;
}

const struct labels *script_write(const struct rows *rows, const struct exchanges *exchanges, bool works_alone,
                                  struct arena *arena, struct script *script)
{
    struct labels *labels = ARENA_ARRAY(arena, struct labels, 1);
    size_t entries = 0;
    struct writer writer = {
        .rows = rows, .exchanges = exchanges, .labels = labels, .script = script,
        .barrier_group = meeting_group(exchanges, false), .gather_group = meeting_group(exchanges, rows->zero),
        .completed = ARENA_ARRAY(arena, int, rows->plan->chunks),
    };

    make_labels(&writer, labels);
    *script = (struct script){
        .replicas = (uint32_t)exchanges->alike.replicas, .labels = labels->count, .progress = rows->scenario->progress,
    };
    for (int rank = 0; rank < rows->plan->stages; rank++)
        entries += row_entries(rows, rank) * (size_t)exchanges->alike.replicas;
    RESERVE(&script->steps, entries);
    RESERVE(&script->needs, entries);
    RESERVE(&script->gives, entries);
    for (writer.rank = 0; writer.rank < rows->plan->stages; writer.rank++) {
        if (progress_step(script->progress, "lowering", 0, 0, 0))
            return labels;
        for (writer.replica = 0; writer.replica < exchanges->alike.replicas; writer.replica++)
            add_row(&writer, works_alone);
    }
    return labels;
}

const struct script_step **script_order(const struct rows *rows, const struct script *script, const struct labels *labels,
                                        size_t *count)
{
    struct unresolved why = {0};
    const struct script_step **order = script_resolve(script, count, &why);
    char *text = NULL;
    size_t size;
    FILE *out;

    if (!why.step)
        return order;
    out = text_open(&text, &size);
    label_print(labels, why.label, out);
    text_close(out, &text);
    BUG("%s: on rank %u of replica %u the step '%s' (entry or stage %u) waits for %s; %s",
        scenario_schedule(rows->scenario)->name, why.step->row / script->replicas, why.step->row % script->replicas,
        step_names[why.step->kind], why.step->at, text, why.nobody ? "nobody gives them" : "who gives them waits for this step");
}
