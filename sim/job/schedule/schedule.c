#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

static void append(struct row *row, enum work_kind kind, int chunk, int mb)
{
    *GROW(row) = (struct work){.kind = kind, .chunk = chunk, .mb = mb};
}

void forward(struct row *row, int chunk, int mb)
{
    append(row, FORWARD, chunk, mb);
}

void backward(struct row *row, int chunk, int mb)
{
    append(row, BACKWARD, chunk, mb);
}

void backward_input(struct row *row, int chunk, int mb)
{
    append(row, BACKWARD_INPUT, chunk, mb);
}

void backward_weight(struct row *row, int chunk, int mb)
{
    append(row, BACKWARD_WEIGHT, chunk, mb);
}

void recompute(struct row *row, int chunk, int mb)
{
    append(row, RECOMPUTE, chunk, mb);
}

void update(struct row *row)
{
    append(row, UPDATE, 0, -1);
}

void overlapped(struct row *row, int forward_chunk, int forward_mb, int backward_chunk, int backward_mb)
{
    append(row, FORWARD, forward_chunk, forward_mb);
    row->items[row->count - 1].with_next = true;
    append(row, BACKWARD, backward_chunk, backward_mb);
}

void forward_both(struct row *row, int chunk, int mb, int other_mb)
{
    append(row, FORWARD, chunk, mb);
    row->items[row->count - 1].with_next = true;
    append(row, FORWARD, chunk, other_mb);
}

/* Whether forward and backward of a direction's virtual stage and micro-batch have been done. */
struct done {
    bool forward, backward;
    int waits;                   /* 1 + the first rank that waits for one of them; 0: none */
};

/* Rows while they are tried in the order of their works. */
struct trial {
    const struct row *rows;
    const struct plan *plan;
    struct done *done;
    size_t *cursor;              /* by rank: its next cell */
    int *next;                   /* by rank: 1 + the next one that waits for the same; 0: none */
    int *ready, nready;          /* ranks that may go on */
};

static struct done *done_at(const struct trial *trial, int direction, int stage, int mb)
{
    size_t row = (size_t)direction * (size_t)plan_virtual_stages(trial->plan) + (size_t)stage;

    return &trial->done[row * (size_t)plan_micro_batches(trial->plan) + (size_t)mb];
}

/* The cell that a cell waits for; NULL: it waits for none. */
static struct done *obstacle(const struct trial *trial, int rank, struct work work)
{
    const struct plan *plan = trial->plan;
    int stage = plan_virtual_stage(plan, rank, work.chunk), direction = plan_direction(plan, rank, work.chunk);
    struct done *own, *other;

    if (work.kind == UPDATE || (work.kind == FORWARD && stage == 0))
        return NULL;
    own = done_at(trial, direction, stage, work.mb);
    if (work.kind == FORWARD) {
        other = done_at(trial, direction, stage - 1, work.mb);
        return other->forward ? NULL : other;
    }
    if (work.kind == BACKWARD_WEIGHT)
        return own->backward ? NULL : own;
    if (!own->forward)
        return own;
    if (work.kind == RECOMPUTE || stage == plan_virtual_stages(plan) - 1)
        return NULL;
    other = done_at(trial, direction, stage + 1, work.mb);
    return other->backward ? NULL : other;
}

/* Does a cell, and lets the cells go on that waited for it. */
static void finish(struct trial *trial, int rank, struct work work)
{
    const struct plan *plan = trial->plan;
    int stage = plan_virtual_stage(plan, rank, work.chunk), direction = plan_direction(plan, rank, work.chunk);
    struct done *done;

    if (work.kind != FORWARD && work.kind != BACKWARD && work.kind != BACKWARD_INPUT)
        return;
    done = done_at(trial, direction, stage, work.mb);
    *(work.kind == FORWARD ? &done->forward : &done->backward) = true;
    for (; done->waits; done->waits = trial->next[done->waits - 1])
        trial->ready[trial->nready++] = done->waits - 1;
}

/* Does the next cell of a row, with the cells that overlap with it, if all of them may begin; else the rank waits.
 * Returns their number, or 0. */
static size_t advance(struct trial *trial, int rank)
{
    const struct row *row = &trial->rows[rank];
    size_t first = trial->cursor[rank], last = first;

    while (row->items[last].with_next)
        last++;
    for (size_t i = first; i <= last; i++) {
        struct done *missing = obstacle(trial, rank, row->items[i]);

        if (!missing)
            continue;
        trial->next[rank] = missing->waits;
        missing->waits = rank + 1;
        return 0;
    }
    for (size_t i = first; i <= last; i++)
        finish(trial, rank, row->items[i]);
    return last - first + 1;
}

bool rows_deadlock(const struct row *rows, const struct plan *plan)
{
    size_t ranks = (size_t)plan->stages, done = 0;
    size_t cells = (size_t)plan_directions(plan) * (size_t)plan_virtual_stages(plan) * (size_t)plan_micro_batches(plan);
    struct trial trial = {.rows = rows, .plan = plan, .done = xcalloc(cells, sizeof *trial.done),
                          .cursor = xcalloc(ranks, sizeof *trial.cursor), .next = xcalloc(ranks, sizeof *trial.next),
                          .ready = xcalloc(ranks, sizeof *trial.ready)};

    for (int rank = plan->stages - 1; rank >= 0; rank--)
        trial.ready[trial.nready++] = rank;
    while (trial.nready) {
        int rank = trial.ready[--trial.nready];
        size_t n = 1;

        while (n && trial.cursor[rank] < rows[rank].count)
            trial.cursor[rank] += n = advance(&trial, rank);
        done += n > 0;
    }
    free(trial.done);
    free(trial.cursor);
    free(trial.next);
    free(trial.ready);
    return done < ranks;
}

#define SCHEDULE(name) extern const struct schedule schedule_##name;
#include "strategies/list.h"
#undef SCHEDULE

static const struct schedule *const strategies[] = {
#define SCHEDULE(name) &schedule_##name,
#include "base/base.h"
#include "strategies/list.h"
#undef SCHEDULE
};

const struct schedule *schedule_at(size_t index)
{
    return index < COUNT(strategies) ? strategies[index] : NULL;
}

const char *schedule_name(size_t index)
{
    return index < COUNT(strategies) ? strategies[index]->name : NULL;
}

int plan_directions(const struct plan *plan)
{
    if (plan->placement == PLACEMENT_TABLE)
        return plan->table->directions;
    return plan->placement == PLACEMENT_BIDIRECTIONAL ? 2 : 1;
}

int plan_virtual_stages(const struct plan *plan)
{
    if (plan->placement == PLACEMENT_TABLE)
        return plan->table->stages;
    return plan->stages * plan->chunks / plan_directions(plan);
}

int plan_virtual_stage(const struct plan *plan, int rank, int chunk)
{
    if (plan->placement == PLACEMENT_TABLE)
        return plan->table->stage[rank * plan->chunks + chunk];
    if (plan->placement == PLACEMENT_LOOP)
        return chunk * plan->stages + rank;
    return chunk == 0 ? rank : plan_virtual_stages(plan) - 1 - rank;
}

int plan_direction(const struct plan *plan, int rank, int chunk)
{
    if (plan->placement == PLACEMENT_TABLE)
        return plan->table->direction[rank * plan->chunks + chunk];
    return plan->placement == PLACEMENT_BIDIRECTIONAL ? chunk : 0;
}

int plan_chunks(const struct plan *plan, int rank)
{
    return plan->placement == PLACEMENT_TABLE ? plan->table->chunks[rank] : plan->chunks;
}

int plan_sharers(const struct plan *plan, int virtual_stage)
{
    return plan->placement == PLACEMENT_TABLE && plan->table->sharers ? plan->table->sharers[virtual_stage] : 1;
}

bool plan_shares(const struct plan *plan)
{
    return plan_most_holders(plan) > plan_directions(plan);
}

int plan_holders(const struct plan *plan, int virtual_stage)
{
    return plan_directions(plan) * plan_sharers(plan, virtual_stage);
}

int plan_most_holders(const struct plan *plan)
{
    int most = 0;

    for (int stage = 0; stage < plan_virtual_stages(plan); stage++)
        most = plan_holders(plan, stage) > most ? plan_holders(plan, stage) : most;
    return most;
}

int plan_rank(const struct plan *plan, int direction, int virtual_stage, int mb, int *chunk)
{
    int turn = virtual_stage / plan->stages;

    if (plan->placement == PLACEMENT_TABLE) {
        int at = direction * plan->table->stages + virtual_stage;

        if (chunk)
            *chunk = plan->table->chunk[at];
        return plan->table->rank[at] + mb % plan_sharers(plan, virtual_stage);
    }
    if (plan->placement == PLACEMENT_BIDIRECTIONAL)
        turn = direction;
    if (chunk)
        *chunk = turn;
    if (plan->placement == PLACEMENT_LOOP)
        return virtual_stage % plan->stages;
    return turn == 0 ? virtual_stage : plan_virtual_stages(plan) - 1 - virtual_stage;
}

int plan_micro_batches(const struct plan *plan)
{
    return plan->micro_batches * plan_slices(plan) * plan->batches / plan_directions(plan);
}

char work_letter(enum work_kind kind)
{
    return "FBIWRUG"[kind];
}

char *work_format(const struct plan *plan, int rank, struct work work, char *buffer, size_t size)
{
    int length =
        snprintf(buffer, size, "%d%c%d", plan_virtual_stage(plan, rank, work.chunk), work_letter(work.kind), work.mb);

    if (plan_directions(plan) > 1 && (size_t)length < size)
        snprintf(buffer + length, size - (size_t)length, "@%d", plan_direction(plan, rank, work.chunk));
    return buffer;
}

int plan_opportunistic(const struct schedule *schedule, const struct plan *plan)
{
    return schedule->opportunistic ? schedule->opportunistic(plan) : 0;
}

int rows_updates(const struct row *rows)
{
    int updates = 0;

    for (size_t i = 0; i < rows[0].count; i++)
        updates += rows[0].items[i].kind == UPDATE;
    return updates ? updates : 1;
}

/* The weight version that each forward of a rank finds: the number of updates before it. */
static void versions_found(const struct row *row, int *found)
{
    int version = 0;

    for (size_t i = 0; i < row->count; i++) {
        if (row->items[i].kind == FORWARD)
            found[row->items[i].mb] = version;
        version += row->items[i].kind == UPDATE;
    }
}

int rows_versions(const struct schedule *schedule, const struct plan *plan, const struct row *rows, int rank)
{
    bool vertical = schedule->vertical_sync && schedule->vertical_sync(plan);
    const struct row *row = &rows[rank];
    int *used = xcalloc((size_t)plan_micro_batches(plan), sizeof *used), newest = 0, most = 1 + schedule->delay;
    size_t oldest = 0;       /* the forward whose backward comes next: backwards have the same order as forwards */

    if (!schedule->asynchronous) {
        free(used);
        return 1;
    }
    for (int mb = 0; schedule->delay && mb < plan_micro_batches(plan); mb++)
        used[mb] = mb / plan->micro_batches > schedule->delay ? mb / plan->micro_batches - schedule->delay : 0;
    if (!schedule->delay && !vertical)
        versions_found(row, used);
    for (int sharer = 0; vertical && sharer < plan_sharers(plan, 0); sharer++)
        versions_found(&rows[plan_rank(plan, 0, 0, sharer, NULL)], used);
    for (size_t i = 0; i < row->count; i++) {
        while (oldest < i && row->items[oldest].kind != FORWARD)
            oldest++;
        if (row->items[i].kind == FORWARD && newest - used[row->items[oldest].mb] + 1 > most)
            most = newest - used[row->items[oldest].mb] + 1;
        newest += row->items[i].kind == UPDATE;
        oldest += row->items[i].kind == BACKWARD;
    }
    free(used);
    return most;
}
