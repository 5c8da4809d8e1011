#include "schedule.h"

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

#define SCHEDULE(name) extern const struct strategy strategy_##name;
#include "list.h"
#undef SCHEDULE

static const struct strategy *const strategies[] = {
#define SCHEDULE(name) &strategy_##name,
#include "list.h"
#undef SCHEDULE
};

const struct strategy *strategy_at(size_t index)
{
    return index < COUNT(strategies) ? strategies[index] : NULL;
}

const char *strategy_name(size_t index)
{
    return index < COUNT(strategies) ? strategies[index]->name : NULL;
}

int plan_directions(const struct plan *plan)
{
    return plan->placement == PLACEMENT_BIDIRECTIONAL ? 2 : 1;
}

int plan_global_stages(const struct plan *plan)
{
    return plan->stages * plan->chunks / plan_directions(plan);
}

int plan_global_stage(const struct plan *plan, int rank, int chunk)
{
    if (plan->placement == PLACEMENT_LOOP)
        return chunk * plan->stages + rank;
    return chunk == 0 ? rank : plan_global_stages(plan) - 1 - rank;
}

int plan_direction(const struct plan *plan, int chunk)
{
    return plan->placement == PLACEMENT_BIDIRECTIONAL ? chunk : 0;
}

int plan_rank(const struct plan *plan, int direction, int global_stage, int *chunk)
{
    int turn = global_stage / plan->stages;

    if (plan->placement == PLACEMENT_BIDIRECTIONAL)
        turn = direction;
    if (chunk)
        *chunk = turn;
    if (plan->placement == PLACEMENT_LOOP)
        return global_stage % plan->stages;
    return turn == 0 ? global_stage : plan_global_stages(plan) - 1 - global_stage;
}

int plan_micro_batches(const struct plan *plan)
{
    return plan->micro_batches * plan->batches / plan_directions(plan);
}

char work_letter(enum work_kind kind)
{
    return "FBIWRU"[kind];
}

char *work_format(const struct plan *plan, int rank, struct work work, char *buffer, size_t size)
{
    int length = snprintf(buffer, size, "%d%c%d", plan_global_stage(plan, rank, work.chunk), work_letter(work.kind), work.mb);

    if (plan_directions(plan) > 1 && (size_t)length < size)
        snprintf(buffer + length, size - (size_t)length, "@%d", plan_direction(plan, work.chunk));
    return buffer;
}
