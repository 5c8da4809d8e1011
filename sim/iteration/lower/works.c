/* The steps of works.
 *
 * Reads the rows with their marks, the table of works (work_rules), and which replicas begin together (lockstep groups,
 * barriers, gathers of layers).
 * Adds a step for the works that begin together, with the labels that these wait for and give, and the meetings before it. */
#include "lower/script_internal.h"

#include "exchange/exchange.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

/* Adds a step that rows do together when all of them have come to an entry. Each row gives `label` when it comes there.
 * At the first entry the first replica gives it for all: all rows are there from the beginning. */
static void add_meeting(struct writer *writer, enum step_kind kind, size_t entry, int number, struct label label)
{
    if (entry > 0 || writer->replica == 0) {
        add_step(writer, STEP_ARRIVE, entry, 0);
        add_give(writer, label);
    }
    add_shared(writer, kind, entry, number, label);
}

void add_replication(struct writer *writer, size_t entry)
{
    add_meeting(writer, STEP_REPLICATE, entry, 0, (struct label){.kind = LABEL_ALL_ARRIVED, .number = (int)entry});
}

/* Whether an entry, or one of the entries that overlap with it, gathers layers. */
static bool gathers_layers(const struct writer *writer, size_t entry)
{
    const uint8_t *marks = writer->rows->marks[writer->rank];

    while (!(marks[entry] & ENTRY_LAYERS))
        if (!row_entry(writer->rows, writer->rank, entry++).with_next)
            return false;
    return true;
}

/* The number of consecutive replicas that wait for each other before the works of an entry. */
static int meeting_replicas(const struct writer *writer, size_t entry)
{
    int replicas;

    if (writer->gather_group <= writer->barrier_group || !gathers_layers(writer, entry))
        return writer->barrier_group;
    replicas = scenario_rank_replicas(writer->rows->scenario, writer->rank);
    return writer->gather_group < replicas ? writer->gather_group : replicas;
}

/* A work needs the tensors that it waits for from another rank. A lockstep group's replicas begin a work together: it
 * needs the tensors of all of them. */
static void add_needs(struct writer *writer, struct work work, int direction, int stage)
{
    enum arrival arrival = work_arrival(writer->rows, work.kind, stage);
    int n = work.kind == RECOMPUTE ? 1 : writer->exchanges->lockstep, first = writer->replica / n * n;

    for (int replica = first; arrival != NO_ARRIVAL && replica < first + n; replica++)
        add_need(writer, (struct label){(enum label_kind)arrival, replica, direction, stage, work.mb});
}

/* A work gives its tensors to the replicas of a neighbouring stage that share samples with it. */
static void give_arrivals(struct writer *writer, struct work work, int direction, int stage)
{
    int there = plan_rank(writer->rows->plan, direction, stage, work.mb, NULL);
    struct partners replicas = partners_on(writer->exchanges, writer->replica, writer->rank, there);

    for (int replica = replicas.first; replica <= replicas.last; replica++)
        add_give(writer, (struct label){(enum label_kind)work_rules[work.kind].sends, replica, direction, stage, work.mb});
}

/* A work that completes its chunk's gradients gives the labels for which the sums of these gradients wait. */
static void give_complete(struct writer *writer, int chunk, int stage)
{
    const struct rows *rows = writer->rows;
    int number = writer->completed[chunk]++, update = number / rows->sums, copy;

    if (is_summed(writer, stage) && !rows->sums_late)
        add_give(writer, (struct label){.kind = LABEL_COMPLETE, .stage = stage, .number = number});
    copy = tied_copy(writer->exchanges, writer->rank, chunk);
    if (copy < 0 || (number + 1) % rows->sums)
        return;
    struct partners sums = tied_sums_of(writer->exchanges, writer->rank, writer->replica);

    for (int sum = sums.first; sum <= sums.last; sum++) {
        add_give(writer, (struct label){.kind = LABEL_TIED_COPY, .replica = sum, .stage = copy, .number = update});
        add_give(writer, (struct label){.kind = LABEL_TIED_COPIES, .replica = sum, .number = update});
    }
}

size_t add_works(struct writer *writer, size_t entry)
{
    const struct rows *rows = writer->rows;
    int n = meeting_replicas(writer, entry), rank = writer->rank;
    size_t count = 0;
    struct work work;

    if (n > 1 && entry > 0)
        add_meeting(writer, STEP_MEET, entry, n, (struct label){
            .kind = LABEL_GROUP_ARRIVED, .replica = writer->replica / n * n, .stage = rank, .number = (int)entry,
        });
    add_step(writer, STEP_WORKS, entry, 0);
    do {
        work = row_entry(rows, rank, entry + count);
        int stage = plan_virtual_stage(rows->plan, rank, work.chunk), neighbour = work_sends(rows, work.kind, stage);
        int direction = plan_direction(rows->plan, rank, work.chunk);

        add_needs(writer, work, direction, stage);
        if (neighbour >= 0)
            give_arrivals(writer, work, direction, neighbour);
        if (rows->marks[rank][entry + count++] & ENTRY_COMPLETES)
            give_complete(writer, work.chunk, stage);
    } while (work.with_next);
    return count;
}
