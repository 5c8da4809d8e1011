/* The steps of works.
 *
 * Reads the rows with their marks, the table of works (work_rules), and which replicas begin together (lockstep groups,
 * barriers, gathers of layers).
 * Adds a step for the works that begin together, with the labels that these wait for and give, and the meetings before it. */
#include "script/script_internal.h"

#include "exchange/exchange.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

/* Says that the row has come so far, and lets a shared step wait until others have said the same. All have come to their
 * first entries: there the first replica says it for all. */
static void add_meeting(struct writer *writer, enum step_kind kind, size_t entry, int number, struct label label)
{
    if (entry > 0 || writer->replica == 0) {
        add_step(writer, STEP_ARRIVE, entry, 0);
        add_give(writer, label);
    }
    add_shared(writer, kind, entry, number, label);
}

void add_hand_round(struct writer *writer, size_t entry)
{
    add_meeting(writer, STEP_HAND_ROUND, entry, 0, (struct label){.kind = LABEL_ALL, .number = (int)entry});
}

/* The number of consecutive replicas that wait for each other before the works of an entry. */
static int meeting_replicas(const struct writer *writer, size_t entry)
{
    const struct rows *rows = writer->rows;
    int replicas = scenario_rank_replicas(rows->scenario, writer->rank);
    bool more = writer->gather_group > writer->barrier_group;

    for (; more; more = row_entry(rows, writer->rank, entry++).with_next)
        if (rows->marks[writer->rank][entry] & ENTRY_LAYERS)
            return writer->gather_group < replicas ? writer->gather_group : replicas;
    return writer->barrier_group;
}

/* What a work waits for from other ranks, in its own replica and, as they begin together, in all of its lockstep group. */
static void add_needs(struct writer *writer, struct work work, int direction, int stage)
{
    enum arrival arrival = work_arrival(writer->rows, work.kind, stage);
    int n = work.kind == RECOMPUTE ? 1 : writer->exchanges->lockstep, first = writer->replica / n * n;

    for (int replica = first; arrival != NO_ARRIVAL && replica < first + n; replica++)
        add_need(writer, (struct label){(enum label_kind)arrival, replica, direction, stage, work.mb});
}

/* Labels for the replicas of a neighbouring stage that share samples with the work. */
static void give_arrivals(struct writer *writer, struct work work, int direction, int stage)
{
    int there = plan_rank(writer->rows->plan, direction, stage, work.mb, NULL);
    struct partners replicas = partners_on(writer->exchanges, writer->replica, writer->rank, there);

    for (int replica = replicas.first; replica <= replicas.last; replica++)
        add_give(writer, (struct label){(enum label_kind)work_rules[work.kind].sends, replica, direction, stage, work.mb});
}

/* Labels for sums of gradients after a work that completes the gradients of its chunk. */
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
        add_give(writer, (struct label){.kind = LABEL_COPY, .replica = sum, .stage = copy, .number = update});
        add_give(writer, (struct label){.kind = LABEL_COPIES, .replica = sum, .number = update});
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
            .kind = LABEL_MET, .replica = writer->replica / n * n, .stage = rank, .number = (int)entry,
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
