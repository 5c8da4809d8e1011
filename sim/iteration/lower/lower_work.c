/* The works of a row: their operations, the operations that these wait for, and the events that others wait for.
 *
 * Reads an entry of a row and the entries that overlap with it, and the table of works (work_rules).
 * Adds their operations, the results that later works wait for, and the transfers to neighbouring stages. */
#include "lower/lower_internal.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "engine/program.h"
#include "lower/script_rows.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/memory.h"
#include "workload/workload.h"

static void wait_for_result(struct waits *waits, const struct micro_batch_state *state, enum result result)
{
    BUG_IF(state->done[result] == NO_OP);
    wait_for(waits, event_of(state->done[result]));
}

/* Lets a work wait for its inputs, by its rule. A lockstep group begins each work together: it waits for all its
 * inputs. */
static void wait_for_inputs(struct lowering *lowering, const struct place *here)
{
    const struct micro_batch_state *state = here->state;
    struct work work = here->work;
    const struct work_rule *rule = &work_rules[work.kind];
    enum result after = rule->after == RECOMPUTED && !(here->marks & ENTRY_RECOMPUTED) ? FORWARDED : rule->after;
    enum arrival arrival = work_arrival(&lowering->rows, work.kind, here->stage);
    struct waits *waits = &lowering->waits, *awaited = &here->chunk_state->awaited;
    bool recomputes = work.kind == RECOMPUTE;
    bool in_time = recomputes && lowering->rows.recompute == RECOMPUTE_JUST_IN_TIME;
    int n = lowering->exchanges.lockstep, first = here->replica / n * n;
    int slices = plan_slices(lowering->plan), other = work.mb % slices + rule->slice;

    if (rule->slice && other >= 0 && other < slices)
        wait_for_result(waits, &state[rule->slice], rule->leaves);
    if (after != NO_RESULT)
        wait_for_result(waits, state, after);
    while (awaited->count > 0)
        wait_for(waits, event_of(awaited->items[--awaited->count]));
    if (arrival == NO_ARRIVAL || (recomputes && lowering->rows.opportunistic))
        return;
    wait_for(waits, in_time ? event_of(state->due) : state->arrived[arrival]);
    for (int replica = first; n > 1 && !recomputes && replica < first + n; replica++)
        if (replica != here->replica)
            wait_for(waits, micro_batch_state_of(lowering, replica, here->direction, here->stage, work.mb)
                                ->arrived[arrival]);
}

/* Varuna at run time (varuna/pipeline.py, run). A rank may come to a recomputation before its gradient has arrived:
 * then it does its next forward first, and waits for this forward's input. After its last forward it recomputes without
 * the gradient. */
static uint32_t opportunistic_work(struct lowering *lowering, const struct place *here, struct new_op op)
{
    struct work work = here->work;
    struct event gradient = here->state->arrived[GRADIENTS];
    struct work_cost cost = stage_cost(here, work.kind);
    uint32_t id, most = (uint32_t)lowering->rows.opportunistic + (uint32_t)work.mb;

    op.advances = work.kind == FORWARD;
    id = lower_compute(lowering, here, work.kind, &cost, &op);
    if (work.kind == RECOMPUTE && gradient.count)     /* transfers of one boundary: their ids follow one another */
        program_choose(lowering->program, (struct choice){id, event_ids(&gradient)[0], gradient.count, most});
    return id;
}

/* Whether the work becomes one operation that differs from others of its kind and chunk in its micro-batch alone. */
static bool is_usual(const struct lowering *lowering, const struct place *here, bool cut)
{
    return !cut && plan_slices(lowering->plan) == 1 && !here->held->plan && !(here->marks & ENTRY_LAYERS) &&
           !lowering->rows.replicates && !lowering->rows.opportunistic && lowering->places.count == 1 &&
           !(here->work.kind == FORWARD && here->chunk_state->coming) &&
           lowering->ranks[here->prank].overlapped.collective == 0;
}

/* Adds such a work as a repetition of operation `like`, the one before of its kind and chunk. */
static uint32_t repeat_work(struct lowering *lowering, const struct place *here, uint32_t like)
{
    struct waits *waits = &lowering->waits;
    uint32_t id = program_repeat(lowering->program, like, here->work.mb, waits->items, waits->count);

    count_exchanges(lowering, here, &here->held->work[here->work.kind]);
    waits->count = 0;
    return lowering->ranks[here->prank].latest = id;
}

/* The bytes of memory that a work's rule names by `what`. */
static double memory_of(int what, double kept, double working)
{
    return (what & MEMORY_KEPT ? kept : 0) + (what & MEMORY_WORKING ? working : 0);
}

static double largest_block(const struct stage *stage)
{
    double most = 0;

    for (size_t i = 0; i < stage->nslices; i++)
        most = fmax(most, stage->slices[i].block ? stage->slices[i].activation : 0);
    return most;
}

/* B that a work of the stage takes, frees, and holds besides while it runs. */
struct work_memory { double takes, frees, workspace; };
static struct work_memory work_memory(const struct stage *held, enum work_kind kind, int marks)
{
    const struct work_rule *rule = &work_rules[kind];
    bool recomputed = marks & ENTRY_RECOMPUTED, split = marks & ENTRY_SPLIT;
    double kept = recomputed ? held->checkpoint : held->activation;
    double working = !recomputed ? 0 : split ? held->working_split : held->working;
    const struct stage_workspace *workspace = !recomputed ? &held->plain : split ? &held->ahead : &held->recompute;

    return (struct work_memory){
        .takes = memory_of(rule->takes, kept, working), .frees = memory_of(rule->frees, kept, working),
        .workspace = rule->backward ? workspace->backward : workspace->forward,
    };
}

/* Of a forward and a backward that go together: after each block of the one a block of the other, from the other end of the
 * model (Megatron Core, models/common/model_chunk_schedule_plan.py: TransformerModelChunkSchedulePlan.run). What the backward
 * frees is there for the forward, but for a block. */
static void share_memory(struct work_memory *memory, enum work_kind kind, const struct stage *held, const struct stage *other)
{
    double *bytes = kind == FORWARD ? &memory->takes : &memory->frees;

    *bytes = fmax(0, *bytes - other->activation) + fmax(largest_block(held), largest_block(other));
}

/* The place of the backward that goes together with the forward at a place, or the reverse; NULL: it goes alone. */
static const struct place *pair_of(const struct lowering *lowering, const struct place *here)
{
    const struct place *places = lowering->places.items, *other = here == places ? places + 1 : places;
    bool pair = lowering->places.count == 2 && parallelism_pairs(&lowering->scenario->parallelism);

    return pair && here->work.kind != other->work.kind ? other : NULL;
}

/* Lowers a work: as a repetition of an equal one, layer by layer, in pieces, or as one operation. Returns the last
 * one. */
static uint32_t lower_work(struct lowering *lowering, const struct place *here)
{
    enum work_kind kind = here->work.kind;
    bool in_buckets = here->marks & ENTRY_COMPLETES && lowering->exchanges.buckets[here->stage].count;
    bool in_time = kind == BACKWARD && here->stage > 0 && !lowering->rows.opportunistic &&
                   lowering->rows.recompute == RECOMPUTE_JUST_IN_TIME;
    struct usual_work *before = &here->chunk_state->usual[kind];
    struct usual_work now = {
        .known = is_usual(lowering, here, in_buckets || in_time), .gathers = boundary_gathers(lowering, here),
        .marks = here->marks & (ENTRY_RECOMPUTED | ENTRY_SPLIT),
    };
    struct work_memory memory;
    struct work_cost cost;
    struct new_op op;

    here->chunk_state->exchanged[EXCHANGE_GATHER] += now.gathers * here->chunk_state->exchanges[EXCHANGE_GATHER].bytes_sent;
    if (now.known && before->known && before->marks == now.marks && before->gathers == now.gathers)
        return repeat_work(lowering, here, before->id);
    op = op_with_gathers(here, now.gathers);
    memory = work_memory(here->held, kind, here->marks);
    if (pair_of(lowering, here))
        share_memory(&memory, kind, here->held, pair_of(lowering, here)->held);
    op.takes = memory.takes, op.frees = memory.frees, op.workspace = memory.workspace;
    if (kind == FORWARD && here->chunk_state->coming) {
        if (!here->held->plan && !lowering->rows.opportunistic)
            return first_forward(lowering, here, op);
        wait_for_weights(lowering, here);
    }
    if (here->held->plan || here->marks & ENTRY_LAYERS)
        return layers_work(lowering, here, op);
    if (lowering->rows.replicates)
        return replicated_work(lowering, here, op);
    if (in_buckets)
        return sliced_backward(lowering, here, in_time, op);
    if (in_time)
        return timed_backward(lowering, here, op);
    if (lowering->rows.opportunistic)
        return opportunistic_work(lowering, here, op);
    cost = stage_cost(here, kind);
    now.id = lower_compute(lowering, here, kind, &cost, &op);
    *before = now;
    return now.id;
}

/* Notes the work's result, which is there after operation `id`, and sends it to the next or previous stage. */
static void leave_result(struct lowering *lowering, const struct place *here, uint32_t id)
{
    const struct work_rule *rule = &work_rules[here->work.kind];
    int to = work_sends(&lowering->rows, here->work.kind, here->stage);
    struct micro_batch_state *there;

    if (rule->leaves != NO_RESULT)
        here->state->done[rule->leaves] = id;
    if (to < 0)
        return;
    there = on_neighbour(lowering, here, to - here->stage);
    lower_send(lowering, here, rule->sends == ACTIVATIONS, id);
    if (rule->sends == GRADIENTS && there->due == NO_OP)
        there->due = id;
}

void lower_meeting(struct lowering *lowering, int first, int n, int rank, size_t entry)
{
    struct rank_state *ranks = &lowering->ranks[program_rank(lowering, first, rank)];
    int each = lowering->plan->stages;       /* ranks from one replica to the next */
    struct waits all = {0};
    uint32_t id;

    for (int r = 0; r < n; r++)
        wait_for(&all, event_of(ranks[r * each].latest));
    id = lower_after_all(lowering, (struct new_op){
        .kind = OP_COMPUTE, .what = WHAT_SYNC, .lane = ranks[0].compute_lane,
        .mb = row_entry(&lowering->rows, rank, entry).mb, .stage = -1,
    }, &all);
    for (int r = 0; r < n; r++)
        ranks[r * each].latest = ranks[r * each].met = id;
}

/* Marks the works from operation `first` on: each runs together with the next work of its lane. */
static void mark_overlapped(struct program *program, size_t first)
{
    for (size_t i = first; i < program->ops.count; i++)
        if (program->lanes.items[program->ops.items[i].lane].kind == LANE_COMPUTE)
            program->ops.items[i].overlapped = true;
}

static void place_set(const struct lowering *lowering, int replica, int rank, size_t entry, struct place *place)
{
    struct work work = row_entry(&lowering->rows, rank, entry);

    *place = lowering->first_places[program_rank(lowering, replica, rank) * lowering->plan->chunks + work.chunk];
    if (lowering->plan->slices > 1) {
        struct token_slice slice = class_slice(lowering->plan, lowering->ranks[place->prank].class, work.mb);

        place->held = &slice.stages[place->stage];
        place->times = &slice.times[place->stage];
    }
    place->state += work.mb;
    place->work = work;
    place->marks = lowering->rows.marks[rank][entry];
}

/* Sets `lowering->places` to the places of an entry and of the entries that overlap with it. */
static void places_find(struct lowering *lowering, int replica, int rank, size_t entry)
{
    struct places *places = &lowering->places;
    struct place *place;

    places->count = 0;
    do {
        place = GROW(places);
        place_set(lowering, replica, rank, entry++, place);
    } while (place->work.with_next);
    if (places->count > 1 || lowering->scenario->parallelism.overlap_dispatch == OVERLAP_DISPATCH_SHARED)
        hide_dispatches(lowering);
}

/* Overlapped entries begin when all of them can, and their results are there when all of them have ended. */
void lower_works(struct lowering *lowering, int replica, int rank, size_t entry)
{
    int prank = program_rank(lowering, replica, rank);
    const struct event *sent = lowering->ranks[prank].sent;
    struct places *places = &lowering->places;
    uint32_t id = NO_OP;

    wait_for(&lowering->waits, event_of(lowering->ranks[prank].met));
    lowering->ranks[prank].met = NO_OP;
    for (int up = 0; up < 2 && !lowering->scenario->parallelism.overlap_p2p; up++)
        wait_for(&lowering->waits, sent[up]);
    places_find(lowering, replica, rank, entry);
    for (size_t i = 0; i < places->count; i++)
        wait_for_inputs(lowering, &places->items[i]);
    /* in a figure of sharers, the first work after an update waits as if their gradients were summed (lower_join) */
    if (!lowering->rows.whole && entry > 0 && row_entry(&lowering->rows, rank, entry - 1).kind == UPDATE)
        wait_for(&lowering->waits, lowering->sums.computed[plan_virtual_stage(lowering->plan, rank, 0)]);
    for (size_t i = 0; i < places->count; i++)
        lower_arrival(lowering, &places->items[i]);
    for (size_t i = 0; i < places->count; i++) {
        const struct place *here = &places->items[i];
        size_t before = lowering->program->ops.count;

        id = lower_work(lowering, here);
        if (i + 1 < places->count)
            mark_overlapped(lowering->program, before);
        if (here->marks & ENTRY_COMPLETES)
            here->chunk_state->complete = id;
    }
    for (size_t i = 0; i < places->count; i++)
        leave_result(lowering, &places->items[i], id);
}

/* The work of a row that goes together with the i-th, of another kind; NULL: that goes alone. */
static const struct work *pair_in(const struct scenario *scenario, const struct row *row, size_t i)
{
    const struct work *works = row->items;
    size_t first = i > 0 && works[i - 1].with_next ? i - 1 : i;
    bool pair = parallelism_pairs(&scenario->parallelism) && works[first].with_next && !works[first + 1].with_next &&
                !(first > 0 && works[first - 1].with_next) && works[first].kind != works[first + 1].kind;

    return pair ? &works[first == i ? i + 1 : first] : NULL;
}

/* A rank does its works one after the other, so that when each begins does not matter. */
struct memory_peak *works_peaks(const struct workload *workload)
{
    const struct plan *plan = &workload->plan;
    struct memory_peak *peaks = memory_peaks_begin(workload->scenario, workload->stages, plan->stages);
    struct arena arena = {0};
    struct rows rows;

    rows_find(&rows, workload, false, &arena);
    for (int rank = 0; rank < plan->stages; rank++) {
        const struct gpu_class *class = workload_class(workload, 0, rank);

        for (size_t i = 0; scenario_has_rank(workload->scenario, rank) && i < workload->rows[rank].count; i++) {
            struct work work = workload->rows[rank].items[i];
            const struct stage *stages = class_slice(plan, class, work.mb).stages;

            if (work.kind == UPDATE)
                continue;
            struct work_memory memory = work_memory(&stages[plan_virtual_stage(plan, rank, work.chunk)], work.kind,
                                                    rows.marks[rank][i]);
            const struct work *pair = pair_in(workload->scenario, &workload->rows[rank], i);

            if (pair)
                share_memory(&memory, work.kind, &stages[plan_virtual_stage(plan, rank, work.chunk)],
                             &stages[plan_virtual_stage(plan, rank, pair->chunk)]);
            memory_peak_take(&peaks[rank], memory.takes, memory.workspace);
            peaks[rank].now -= memory.frees;
        }
    }
    memory_peaks_end(workload->scenario, peaks, plan->stages);
    arena_release(&arena);
    return peaks;
}

/* Prints how long one work takes. */
static void print_duration(const struct lowering *lowering, const struct place *here, FILE *out)
{
    struct work_cost cost = stage_cost(here, here->work.kind);
    struct new_op op = op_with_gathers(here, boundary_gathers(lowering, here));
    char cell[40];

    set_duration(lowering, here, &cost, &op);
    fprintf(out, "%6d %5d  %-8s %.9g s, of which kernels %.9g s\n", here->rank, here->work.chunk,
            work_format(lowering->plan, here->rank, here->work, cell, sizeof cell), op.amount, cost.times.seconds);
}

/* Prints the works that begin together, from an entry on, unless `printed` has them; returns their number. */
static size_t print_durations(struct lowering *lowering, int rank, size_t entry, bool (*printed)[WORK_KIND_COUNT], FILE *out)
{
    const struct places *places = &lowering->places;

    places_find(lowering, 0, rank, entry);
    for (size_t i = 0; i < places->count; i++) {
        const struct work *work = &places->items[i].work;
        bool *known = &printed[work->chunk][work->kind];

        if (!*known)
            print_duration(lowering, &places->items[i], out);
        *known = true;
    }
    return places->count;
}

void durations_print(struct lowering *lowering, FILE *out)
{
    fputs("# durations of works while no collective over replicas slows them down, the first of each kind\n"
          "# rank chunk  work     duration\n", out);
    for (int rank = 0; rank < lowering->plan->stages; rank++) {
        bool (*printed)[WORK_KIND_COUNT] = xcalloc((size_t)lowering->plan->chunks, sizeof *printed);

        lowering->ranks[rank].overlapped = (struct contention){0};
        for (size_t entry = 0; entry < row_entries(&lowering->rows, rank); entry++) {
            enum work_kind kind = row_entry(&lowering->rows, rank, entry).kind;

            if (kind != UPDATE && kind != GATHER)
                entry += print_durations(lowering, rank, entry, printed, out) - 1;
        }
        free(printed);
    }
}
