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

int plan_global_stage(const struct plan *plan, int rank, int chunk)
{
    return chunk * plan->stages + rank;
}

int plan_rank(const struct plan *plan, int global_stage)
{
    return global_stage % plan->stages;
}

int plan_global_stages(const struct plan *plan)
{
    return plan->stages * plan->chunks;
}

char work_letter(enum work_kind kind)
{
    return "FBIWR"[kind];
}

char *work_format(const struct plan *plan, int rank, struct work work, char *buffer, size_t size)
{
    snprintf(buffer, size, "%d%c%d", plan_global_stage(plan, rank, work.chunk), work_letter(work.kind), work.mb);
    return buffer;
}
