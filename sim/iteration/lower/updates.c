/* The steps at the end of an iteration.
 *
 * Reads the updates and gathers among the rows' entries, which stages' gradients are summed (buckets), and who holds what
 * (process groups).
 * Adds sums of gradients, sums of tied weights' gradients, updates, and gathers of updated weights, each with the labels
 * that it waits for and gives. */
#include "lower/script_internal.h"

#include <stdlib.h>

#include "base/base.h"
#include "exchange/exchange.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

/* Adds one of a stage's sums, numbered from 0. It also waits for the label `copy`, unless that is NULL. */
static void add_sum(struct writer *writer, int stage, int number, const struct label *copy)
{
    if (!is_summed(writer, stage))
        return;
    add_shared(writer, STEP_SUM, (size_t)stage, number,
               (struct label){.kind = LABEL_COMPLETE, .stage = stage, .number = number});
    if (copy)
        add_need(writer, *copy);
}

/* The last of a rank's virtual stages before `before`; -1: there is none. */
static int last_stage_before(const struct plan *plan, int rank, int before)
{
    int last = -1;

    for (int chunk = 0; chunk < plan_chunks(plan, rank); chunk++) {
        int stage = plan_virtual_stage(plan, rank, chunk);

        last = stage < before && stage > last ? stage : last;
    }
    return last;
}

/* Adds the sums of gradients that an update of a rank waits for, the last stage first: its gradients are complete
 * first. Where every micro-batch has a sum (ZeRO 2), they follow the order in which the row completes the gradients;
 * the row then holds one iteration. `copy`: a label for which they also wait, or NULL. */
static void add_sums(struct writer *writer, int rank, const struct label *copy)
{
    const struct rows *rows = writer->rows;
    const struct row *row = &rows->workload->rows[rank];
    bool every = rows->scenario->recipe.gradients.every;
    int *done = xcalloc((size_t)rows->plan->chunks, sizeof *done), stage = plan_virtual_stages(rows->plan);

    for (size_t i = 0; every && i < row->count; i++) {
        int chunk = row->items[i].chunk;

        if (rows->marks[rank][i] & ENTRY_COMPLETES)
            add_sum(writer, plan_virtual_stage(rows->plan, rank, chunk), done[chunk]++, copy);
    }
    free(done);
    while (!every && (stage = last_stage_before(rows->plan, rank, stage)) >= 0)
        add_sum(writer, stage, writer->updates, copy);
}

/* Adds tied sum `number`. The sums over replicas of both ranks that hold a copy go before it. */
static void add_tie(struct writer *writer, int number)
{
    struct label copy = {.kind = LABEL_TIED_COPY, .replica = number, .number = writer->updates};

    for (copy.stage = 0; copy.stage < 2; copy.stage++)
        add_sums(writer, group_index(&writer->rows->scenario->groups.of[GROUP_EMBEDDING], 0, copy.stage), &copy);
    add_shared(writer, STEP_TIE, 0, number,
               (struct label){.kind = LABEL_TIED_COPIES, .replica = number, .number = writer->updates});
}

/* For sums that wait until their members have come to their updates (rows->sums_late): the row has come to its update,
 * and so all its gradients are complete. */
static void add_flush(struct writer *writer, size_t entry)
{
    const struct rows *rows = writer->rows;

    add_step(writer, STEP_ARRIVE, entry, 0);
    for (int chunk = 0; chunk < plan_chunks(rows->plan, writer->rank); chunk++) {
        int stage = plan_virtual_stage(rows->plan, writer->rank, chunk), first = writer->updates * rows->sums;

        for (int i = 0; i < rows->sums && is_summed(writer, stage); i++)
            add_give(writer, (struct label){.kind = LABEL_COMPLETE, .stage = stage, .number = first + i});
    }
}

void add_update(struct writer *writer, size_t entry)
{
    const struct rows *rows = writer->rows;
    bool updates_here = writer->replica == 0 || !rows->scenario->recipe.rooted;
    int stage = plan_virtual_stage(rows->plan, writer->rank, 0);

    if (!rows->whole) {          /* a figure shows how ranks wait for each other; it shows no sum and no update */
        if (is_summed(writer, stage))
            add_shared(writer, STEP_JOIN, (size_t)stage, 0,
                       (struct label){.kind = LABEL_COMPLETE, .stage = stage, .number = writer->updates});
    } else {
        if (rows->sums_late)
            add_flush(writer, entry);
        add_sums(writer, writer->rank, NULL);
        struct partners sums = tied_sums_of(writer->exchanges, writer->rank, writer->replica);

        for (int number = sums.first; number <= sums.last && updates_here; number++)
            add_tie(writer, number);
        add_step(writer, STEP_UPDATE, entry, 0);
    }
    writer->updates++;
}

void add_gather(struct writer *writer, size_t entry)
{
    const struct rows *rows = writer->rows;
    int chunks = plan_chunks(rows->plan, writer->rank);

    if (!rows->whole)
        return;
    add_step(writer, STEP_ARRIVE, entry, 0);
    for (int pass = 0; pass < 2; pass++)     /* the row first says that all its stages are updated, then gathers each */
        for (int chunk = 0; chunk < chunks; chunk++) {
            int stage = plan_virtual_stage(rows->plan, writer->rank, chunk);
            struct label updated = {.kind = LABEL_UPDATED, .stage = stage};

            if (!is_shared(writer->exchanges, stage))
                continue;
            if (pass == 0)
                add_give(writer, updated);
            else
                add_shared(writer, STEP_GATHER, (size_t)stage, 0, updated);
        }
    add_step(writer, STEP_RENEW, entry, 0);
}
