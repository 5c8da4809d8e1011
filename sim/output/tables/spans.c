/* spans.tsv: what ran when on which lane, what it waited for, and what it exchanged with which ranks. */
#include "tables/tables_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/cells.h"
#include "base/decimal.h"
#include "collective/collective.h"
#include "engine/program.h"
#include "layout/layout.h"
#include "scenario/scenario.h"

/* "F3", "U": the kind and the micro-batch. */
static void name_cell(struct cells *cells, const struct op *op)
{
    static const char letters[WHAT_COUNT] = {'F', 'B', 'I', 'W', 'R', 'K', 'U', 'A', 'G', 'S', 'P', 'O', 'L', 'H'};
    char name[1 + DECIMAL_SIZE] = {letters[op->what]};

    if (op->mb >= 0)
        decimal_integer(op->mb, name + 1);
    cells_text(cells, name);
}

/* "compute", "send-next.0". */
static void lane_cell(struct cells *cells, const struct lane *lane)
{
    char name[64], *end = stpcpy(name, lane_kind_names[lane->kind]);

    if (lane->kind != LANE_COMPUTE) {
        *end = '.';
        decimal_integer(lane->index, end + 1);
    }
    cells_text(cells, name);
}

/* Pieces of a work, one after another without a pause. */
struct span {
    uint32_t id, last;               /* the first piece, and the last one */
    bool overlapped;
    uint8_t peers;                   /* of its communication: enum peers */
    double start, end, communication, bytes;
};
struct spans { struct span *items; size_t count, capacity; };

/* The writing of all spans. */
struct writing {
    const struct run *run;
    const struct program *program;
    struct spans *ranks;             /* one a rank, in the order of ids */
    struct causes causes;
    struct rank_groups groups;
    int *rank_of;                    /* a GPU: the rank of all replicas that it belongs to */
    struct cells cells;
};

static bool continues(const struct run *run, const struct span *span, uint32_t id)
{
    const struct op *ops = run->lowered.program.ops.items;

    return ops[id].continues && ops[id].what == ops[span->id].what &&
           run->timeline.start[id] - span->end <= ROUNDING * span->end;
}

/* Whose exchanges take most of a work's communication; PEERS_COUNT: nobody's. */
static uint8_t peers_of(const struct op_compute *compute)
{
    enum peers most = PEERS_COUNT;

    for (enum peers peers = 0; peers < PEERS_DATA; peers++)
        if (compute->with[peers] > 0 && (most == PEERS_COUNT || compute->with[peers] > compute->with[most]))
            most = peers;
    return (uint8_t)most;
}

static void add_piece(const struct program *program, const struct op *op, double seconds, struct span *span)
{
    const struct lane *lane = &program->lanes.items[op->lane];
    const struct traits *traits = op_traits(program, op);
    const struct op_compute *compute = &traits->compute;
    bool transfer = op->kind == OP_TRANSFER;

    span->overlapped = op->overlapped;
    span->communication += lane->kind == LANE_COMPUTE ? compute->communication : lane->kind == LANE_HOST ? 0 : seconds;
    span->bytes += transfer ? payload_bytes(op->amount, &traits->transfer) : compute->vector > 0 ? compute->vector : compute->sent;
    if (!transfer && lane->kind == LANE_COMPUTE && span->peers == PEERS_COUNT)
        span->peers = peers_of(compute);
}

/* By rank, in the order of ids. The pieces of a work that are cut only for what waits for them are one span; where the
 * work waits itself, or pieces of it are computed again, there are several. Operations of no time that only join others
 * are none. */
static void find_spans(struct writing *writing)
{
    const struct run *run = writing->run;
    const struct program *program = writing->program;
    size_t *last = xcalloc(program->lanes.count + 1, sizeof *last);      /* span of a lane, counted from 1 */

    for (uint32_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        struct spans *own = &writing->ranks[program->lanes.items[op->lane].rank];

        if (op->kind == OP_COMPUTE && op->what >= WHAT_SYNC && op->amount == 0) {
            causes_join(&writing->causes, i);
            continue;
        }
        if (!last[op->lane] || !continues(run, &own->items[last[op->lane] - 1], i)) {
            *GROW(own) = (struct span){.id = i, .start = run->timeline.start[i], .peers = PEERS_COUNT};
            last[op->lane] = own->count;
        } else {
            writing->causes.spans[own->items[last[op->lane] - 1].last] |= SPAN_PART;
        }
        struct span *span = &own->items[last[op->lane] - 1];
        span->last = i;
        span->end = run->timeline.end[i];
        writing->causes.spans[i] = span->id;
        add_piece(program, op, run->timeline.end[i] - run->timeline.start[i], span);
    }
    free(last);
}

/* By start, then id: the order in which people read the spans of a rank. */
static int by_start(const void *a, const void *b)
{
    const struct span *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The operation of a work's exchanges with those peers. A reduce-scatter and an all-gather of a tensor group stand for an
 * all-reduce, a ring of keys and values for an all-gather, and a hybrid context group's for the all-to-all of its heads
 * groups. */
static const char *work_exchange(const struct scenario *scenario, const struct op *op, enum peers peers)
{
    bool backward = op->what == WHAT_BACKWARD || op->what == WHAT_BACKWARD_INPUT;

    if (peers == PEERS_TENSOR)
        return collective_op_names[COLLECTIVE_ALL_REDUCE];
    if (peers == PEERS_EXPERT || (peers == PEERS_CONTEXT && scenario_ulysses(&scenario->parallelism) > 1))
        return collective_op_names[COLLECTIVE_ALL_TO_ALL];
    return collective_op_names[backward ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_GATHER];
}

/* What it exchanges: the operation, the group, the bytes and the peer; empty cells where there is none. */
static void exchange_cells(struct writing *writing, const struct span *span, const struct op *op, int rank)
{
    const struct scenario *scenario = writing->run->workload->scenario;
    bool heads = scenario->groups.of[GROUP_HEADS].exchanges, rings = scenario->groups.of[GROUP_RING].exchanges;
    const enum group_kind kinds[PEERS_DATA] = {GROUP_TENSOR, heads ? GROUP_HEADS : rings ? GROUP_RING : GROUP_CONTEXT,
                                               GROUP_EXPERT};
    struct cells *cells = &writing->cells;
    bool within = span->peers != PEERS_COUNT;
    int group = -1;

    if (within || op->exchange)
        group = rank_group_find(&writing->groups, scenario,
                                within ? kinds[span->peers] : exchange_group(op->exchange), rank, op->stage);
    cells_text(cells, within ? work_exchange(scenario, op, (enum peers)span->peers) : !op->exchange ? "" :
                      exchange_op(op->exchange) == COLLECTIVE_OP_COUNT ? "send" :
                      collective_op_names[exchange_op(op->exchange)]);
    if (group >= 0)
        cells_integer(cells, group);
    else
        cells_text(cells, "");
    if (span->bytes > 0)
        cells_number(cells, span->bytes);
    else
        cells_text(cells, "");
    if (op->kind == OP_TRANSFER)
        cells_integer(cells, writing->rank_of[op_traits(writing->program, op)->transfer.dst]);
    else
        cells_text(cells, "");
}

static void span_line(struct writing *writing, const struct span *span, int replicas)
{
    const struct op *op = &writing->program->ops.items[span->id];
    const struct lane *lane = &writing->program->lanes.items[op->lane];
    struct cells *cells = &writing->cells;

    cells_integer(cells, lane->rank);
    cells_integer(cells, op->stage);
    cells_text(cells, op_what_names[op->what]);
    name_cell(cells, op);
    cells_integer(cells, op->mb);
    cells_number(cells, span->start);
    cells_number(cells, span->end);
    lane_cell(cells, lane);
    cells_number(cells, span->communication);
    cells_integer(cells, span->overlapped);
    cells_integer(cells, replicas);
    cells_integer(cells, span->id);
    causes_cell(&writing->causes, cells, span->id);
    exchange_cells(writing, span, op, lane->rank);
    cells_end_line(cells);
}

/* The number of a GPU's rank over all replicas. */
static int *ranks_of_gpus(const struct scenario *scenario)
{
    const struct parallelism *spec = &scenario->parallelism;
    int replicas = scenario_replicas(scenario), most = 0, *ranks;

    for (int i = 0; i < scenario_gpus(scenario); i++)
        most = layout_nth_gpu(&scenario->layout, i) > most ? layout_nth_gpu(&scenario->layout, i) : most;
    ranks = xcalloc((size_t)most + 1, sizeof *ranks);
    for (int r = 0; r < replicas; r++)
        for (int p = 0; p < spec->pipeline; p++)
            for (int t = 0; t < scenario_tensor(scenario, p) && r < scenario_rank_replicas(scenario, p); t++)
                ranks[scenario_gpu(scenario, t, r, p)] = r * spec->pipeline + p;
    return ranks;
}

void spans_write(const struct run *run, FILE *out)
{
    const struct program *program = &run->lowered.program;
    struct writing writing = {.run = run, .program = program, .cells = {.out = out}};

    writing.ranks = xcalloc((size_t)program->ranks, sizeof *writing.ranks);
    writing.groups = rank_groups_of(run->workload->scenario);
    writing.rank_of = ranks_of_gpus(run->workload->scenario);
    causes_init(&writing.causes, run);
    find_spans(&writing);
    fputs("rank\tstage\tkind\tname\tmb\tt0\tt1\tlane\tcommunication\toverlapped\treplicas\t"
          "id\tafter\top\tgroup\tbytes\tpeer\n", out);
    for (int r = 0; r < program->ranks; r++) {
        struct spans *spans = &writing.ranks[r];

        array_sort(spans->items, spans->count, sizeof *spans->items, by_start);
        for (size_t i = 0; i < spans->count; i++)
            span_line(&writing, &spans->items[i], stood_for(run));
        free(spans->items);
    }
    cells_flush(&writing.cells);
    causes_release(&writing.causes);
    rank_groups_release(&writing.groups);
    free(writing.rank_of);
    free(writing.ranks);
}
