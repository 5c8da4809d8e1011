/* The steps of all rows: the pass before any operation is written.
 *
 * Reads the rows, which entries complete gradients, which stages' gradients are summed (buckets), and who waits for whom
 * (work_rules, lockstep and barrier groups, process groups).
 * Adds the list of steps with the labels that they wait for and give. resolve.h puts them into an order, and each step
 * then writes its operations. */
#include "lower/exchange_internal.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/progress.h"
#include "exchange/exchange.h"
#include "scenario/scenario.h"
#include "schedule/resolve.h"
#include "schedule/schedule.h"

static uint32_t label_number(const struct labels *labels, struct label label)
{
    const struct label_block *block = &labels->blocks[label.kind];

    BUG_IF((uint32_t)label.number >= block->numbers || (uint32_t)label.stage >= block->stages);      /* of another label */
    return block->first + (((uint32_t)label.replica * block->directions + (uint32_t)label.direction) * block->stages +
                           (uint32_t)label.stage) * block->numbers + (uint32_t)label.number;
}

/* Who writes the steps of a row. */
struct writer {
    const struct lowering *lowering;
    const struct labels *labels;
    struct script *script;
    int replica, rank;
    int updates;                     /* so far */
    int *completed;                  /* a chunk: how often its gradients were complete so far */
    bool *gathered;                  /* a chunk: a work of it came before, which gathered its weights (ZeRO 3) */
};

static void add(struct writer *writer, enum step_kind kind, bool shared, size_t at, int number)
{
    script_add(writer->script, (struct step){.kind = (uint8_t)kind, .shared = shared, .at = (uint32_t)at,
                                           .number = (uint32_t)number});
}

static void need(struct writer *writer, struct label label)
{
    script_need(writer->script, label_number(writer->labels, label));
}

static void give(struct writer *writer, struct label label)
{
    script_give(writer->script, label_number(writer->labels, label));
}

/* A shared step that needs a label. */
static void add_shared(struct writer *writer, enum step_kind kind, size_t at, int number, struct label label)
{
    add(writer, kind, true, at, number);
    need(writer, label);
}

/* Says that the row has come so far, and lets a shared step wait until others have said the same. All have come to their
 * first entries: there the first replica says it for all. */
static void add_meeting(struct writer *writer, enum step_kind kind, size_t entry, int number, struct label label)
{
    if (entry > 0 || writer->replica == 0) {
        add(writer, STEP_ARRIVE, false, entry, 0);
        give(writer, label);
    }
    add_shared(writer, kind, entry, number, label);
}

/* Whether the work's ranks sum the gradients of the stage; in a figure, whether they wait for each other as for a sum. */
static bool is_summed(const struct lowering *lowering, int stage)
{
    return lowering->rules.whole ? lowering->exchanges.buckets[stage].count > 0
                           : plan_sharers(lowering->plan, stage) > 1 && lowering->workload->stages[stage].parameters > 0;
}

/* Of the two copies of tied weights the one that a chunk has; -1: none. */
static int tied_copy(const struct lowering *lowering, int rank, int chunk)
{
    int stages[] = {0, plan_virtual_stages(lowering->plan) - 1}, own;

    for (int i = 0; i < 2 && tied_rank(lowering, rank); i++)
        if (group_index(&lowering->scenario->groups.of[GROUP_EMBEDDING], 0, i) == rank &&
            plan_rank(lowering->plan, 0, stages[i], 0, &own) == rank && own == chunk)
            return i;
    return -1;
}

/* Whether the chunk's next work exchanges layers: not once all its weights stay for the iteration. */
static bool exchanges_layers(const struct writer *writer, int chunk)
{
    const struct recipe *recipe = &writer->lowering->scenario->recipe;
    bool stay = recipe->weights.stay_forward && recipe->weights.stay_backward;

    return writer->lowering->rules.zero && !(stay && writer->gathered[chunk]);
}

/* The number of consecutive replicas that wait for each other before the works of an entry. */
static int meeting_replicas(const struct writer *writer, size_t entry)
{
    const struct lowering *lowering = writer->lowering;
    struct work work = {.with_next = lowering->rules.gather_group > lowering->rules.barrier_group};
    int replicas = scenario_rank_replicas(lowering->scenario, writer->rank);

    while (work.with_next) {
        work = row_entry(lowering, writer->rank, entry++);
        if (exchanges_layers(writer, work.chunk))
            return lowering->rules.gather_group < replicas ? lowering->rules.gather_group : replicas;
    }
    return lowering->rules.barrier_group;
}

/* What a work waits for from other ranks, in its own replica and, as they begin together, in all of its lockstep group. */
static void add_needs(struct writer *writer, const struct place *here, struct work work)
{
    enum arrival arrival = work_arrival(writer->lowering, here, work.kind);
    int n = work.kind == RECOMPUTE ? 1 : writer->lowering->exchanges.lockstep, first = here->replica / n * n;

    for (int replica = first; arrival != NO_ARRIVAL && replica < first + n; replica++)
        need(writer, (struct label){(enum label_kind)arrival, replica, here->direction, here->stage, work.mb});
}

/* What the replicas of a neighbouring stage wait for that have samples in common with the work. */
static void give_arrivals(struct writer *writer, const struct place *here, struct work work, int stage)
{
    const struct lowering *lowering = writer->lowering;
    int there = plan_rank(lowering->plan, here->direction, stage, work.mb, NULL);
    struct partners replicas = partners_on(lowering, here, there);

    for (int replica = replicas.first; replica <= replicas.last; replica++)
        give(writer, (struct label){(enum label_kind)work_rules[work.kind].sends, replica, here->direction, stage, work.mb});
}

/* What others wait for after a work. */
static void add_gives(struct writer *writer, const struct place *here, struct work work, bool completes)
{
    const struct lowering *lowering = writer->lowering;
    int *completed = &writer->completed[work.chunk], each, copy, neighbour;

    if (work_sends(here, work.kind, &neighbour))
        give_arrivals(writer, here, work, neighbour);
    if (!completes)
        return;
    each = sums_of(lowering, 1);
    if (is_summed(lowering, here->stage) && !sums_late(lowering))
        give(writer, (struct label){.kind = LABEL_COMPLETE, .stage = here->stage, .number = *completed});
    copy = ++*completed % each ? -1 : tied_copy(lowering, here->rank, work.chunk);
    if (copy < 0)
        return;
    struct partners sums = tied_sums_of(&lowering->exchanges, here->rank, here->replica);

    for (int number = sums.first; number <= sums.last; number++) {
        give(writer, (struct label){.kind = LABEL_COPY, .replica = number, .stage = copy, .number = *completed / each - 1});
        give(writer, (struct label){.kind = LABEL_COPIES, .replica = number, .number = *completed / each - 1});
    }
}

/* The works that begin and end together; returns how many entries they are. */
static size_t add_works(struct writer *writer, size_t entry)
{
    const struct lowering *lowering = writer->lowering;
    int prank = program_rank(lowering, writer->replica, writer->rank), n = meeting_replicas(writer, entry);
    size_t count = 0;
    struct work work;

    if (n > 1 && entry > 0)
        add_meeting(writer, STEP_MEET, entry, n, (struct label){
            .kind = LABEL_MET, .replica = writer->replica / n * n, .stage = writer->rank, .number = (int)entry,
        });
    add(writer, STEP_WORKS, false, entry, 0);
    do {
        const struct place *here;

        work = row_entry(lowering, writer->rank, entry + count);
        here = &lowering->first_places[prank * lowering->plan->chunks + work.chunk];
        add_needs(writer, here, work);
        add_gives(writer, here, work, lowering->completes[writer->rank][entry + count++]);
        writer->gathered[work.chunk] |= work.kind != RECOMPUTE && work.kind != BACKWARD_WEIGHT;
    } while (work.with_next);
    return count;
}

/* One of a stage's sums, numbered from 0. It also waits until a copy of tied weights, unless NULL, has its gradients. */
static void add_sum(struct writer *writer, int stage, int number, const struct label *copy)
{
    add_shared(writer, STEP_SUM, (size_t)stage, number,
               (struct label){.kind = LABEL_COMPLETE, .stage = stage, .number = number});
    if (copy)
        need(writer, *copy);
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

/* The sums of gradients that an update of a rank waits for. Later stages come first, as their gradients are complete
 * first; sums of every micro-batch (ZeRO 2; the row then holds one iteration) in the order in which the row completes
 * them. */
static void add_sums(struct writer *writer, int rank, const struct label *copy)
{
    const struct lowering *lowering = writer->lowering;
    const struct row *row = &lowering->workload->rows[rank];
    int *done = xcalloc((size_t)lowering->plan->chunks, sizeof *done);

    for (size_t i = 0; lowering->scenario->recipe.gradients.every && i < row->count; i++) {
        int chunk = row->items[i].chunk, stage = plan_virtual_stage(lowering->plan, rank, chunk);

        if (lowering->completes[rank][i] && is_summed(lowering, stage))
            add_sum(writer, stage, done[chunk]++, copy);
    }
    free(done);
    for (int last = lowering->scenario->recipe.gradients.every ? 0 : plan_virtual_stages(lowering->plan), stage = 0;
         (stage = last_stage_before(lowering->plan, rank, last)) >= 0; last = stage)
        if (is_summed(lowering, stage))
            add_sum(writer, stage, writer->updates, copy);
}

/* A sum of tied gradients, after the sums of both ranks that hold a copy. */
static void add_tie(struct writer *writer, int number)
{
    struct label copy = {.kind = LABEL_COPY, .replica = number, .number = writer->updates};

    for (copy.stage = 0; copy.stage < 2; copy.stage++)
        add_sums(writer, group_index(&writer->lowering->scenario->groups.of[GROUP_EMBEDDING], 0, copy.stage), &copy);
    add_shared(writer, STEP_TIE, 0, number,
               (struct label){.kind = LABEL_COPIES, .replica = number, .number = writer->updates});
}

/* Sums that wait for a flush, or with compression, whose kernels are on the ranks' lanes, need members that have come to
 * their updates. */
static void add_flush(struct writer *writer, size_t entry)
{
    const struct lowering *lowering = writer->lowering;
    int each = sums_of(lowering, 1);

    add(writer, STEP_ARRIVE, false, entry, 0);
    for (int chunk = 0; chunk < plan_chunks(lowering->plan, writer->rank); chunk++) {
        int stage = plan_virtual_stage(lowering->plan, writer->rank, chunk);

        for (int i = 0; i < each && is_summed(lowering, stage); i++)
            give(writer, (struct label){.kind = LABEL_COMPLETE, .stage = stage, .number = writer->updates * each + i});
    }
}

static void add_update(struct writer *writer, size_t entry)
{
    const struct lowering *lowering = writer->lowering;
    bool updates_here = writer->replica == 0 || !lowering->scenario->recipe.rooted;
    int stage = plan_virtual_stage(lowering->plan, writer->rank, 0);

    if (!lowering->rules.whole) {          /* a figure shows the wait alone */
        if (is_summed(lowering, stage))
            add_shared(writer, STEP_JOIN, (size_t)stage, 0,
                       (struct label){.kind = LABEL_COMPLETE, .stage = stage, .number = writer->updates});
    } else {
        if (sums_late(lowering))
            add_flush(writer, entry);
        add_sums(writer, writer->rank, NULL);
        struct partners sums = tied_sums_of(&lowering->exchanges, writer->rank, writer->replica);

        for (int number = sums.first; number <= sums.last && updates_here && tied_rank(lowering, writer->rank); number++)
            add_tie(writer, number);
        add(writer, STEP_UPDATE, false, entry, 0);
    }
    writer->updates++;
}

/* The exchange of updated weights at the end of a row. */
static void add_gather(struct writer *writer, size_t entry)
{
    const struct lowering *lowering = writer->lowering;
    int chunks = plan_chunks(lowering->plan, writer->rank);

    if (!lowering->rules.whole)
        return;
    add(writer, STEP_ARRIVE, false, entry, 0);
    for (int pass = 0; pass < 2; pass++)
        for (int chunk = 0; chunk < chunks; chunk++) {
            int stage = plan_virtual_stage(lowering->plan, writer->rank, chunk);
            struct label updated = {.kind = LABEL_UPDATED, .stage = stage};

            if (!is_shared(&lowering->exchanges, stage))
                continue;
            if (pass == 0)
                give(writer, updated);
            else
                add_shared(writer, STEP_GATHER, (size_t)stage, 0, updated);
        }
    add(writer, STEP_RENEW, false, entry, 0);
}

static void add_row(struct writer *writer)
{
    const struct lowering *lowering = writer->lowering;
    size_t entries = row_entries(lowering, writer->rank), chunks = (size_t)lowering->plan->chunks;

    script_row(writer->script);
    if (!scenario_has_rank(lowering->scenario, program_rank(lowering, writer->replica, writer->rank)))
        return;
    writer->updates = 0;
    memset(writer->completed, 0, chunks * sizeof *writer->completed);
    memset(writer->gathered, 0, chunks * sizeof *writer->gathered);
    for (size_t entry = 0, count; entry < entries; entry += count) {
        enum work_kind kind = row_entry(lowering, writer->rank, entry).kind;

        count = 1;
        if (lowering->rules.replicates)
            add_meeting(writer, STEP_HAND_ROUND, entry, 0, (struct label){.kind = LABEL_ALL, .number = (int)entry});
        if (kind == UPDATE)
            add_update(writer, entry);
        else if (kind == GATHER)
            add_gather(writer, entry);
        else
            count = add_works(writer, entry);
    }
}

/* Numbers all labels that there may be. */
static void make_labels(const struct lowering *lowering, struct labels *labels)
{
    uint32_t replicas = (uint32_t)lowering->exchanges.alike.replicas, stages = (uint32_t)plan_virtual_stages(lowering->plan);
    uint32_t ranks = (uint32_t)lowering->plan->stages, entries = 0, updates = 0, first = 0;
    uint32_t directions = (uint32_t)plan_directions(lowering->plan), mbs = (uint32_t)lowering->rules.micro_batches;
    bool meet = lowering->rules.barrier_group > 1 || lowering->rules.gather_group > 1;

    for (int rank = 0; rank < lowering->plan->stages; rank++) {      /* ranks that share a stage update more rarely */
        uint32_t own = 0, count = (uint32_t)row_entries(lowering, rank);

        for (size_t i = 0; i < count; i++)
            own += row_entry(lowering, rank, i).kind == UPDATE;
        updates = own > updates ? own : updates;
        entries = count > entries ? count : entries;
    }
    labels->blocks[LABEL_ACTIVATION] = (struct label_block){0, replicas, directions, stages, mbs};
    labels->blocks[LABEL_GRADIENT] = labels->blocks[LABEL_ACTIVATION];
    labels->blocks[LABEL_COMPLETE] = (struct label_block){0, 1, 1, stages, (updates + 1) * (uint32_t)sums_of(lowering, 1)};
    labels->blocks[LABEL_COPY] = (struct label_block){0, (uint32_t)tied_sums(&lowering->exchanges), 1, 2, updates + 1};
    labels->blocks[LABEL_COPIES] = (struct label_block){0, (uint32_t)tied_sums(&lowering->exchanges), 1, 1, updates + 1};
    labels->blocks[LABEL_UPDATED] = (struct label_block){0, 1, 1, stages, 1};
    labels->blocks[LABEL_MET] = (struct label_block){0, replicas, 1, ranks, meet ? entries : 0};
    labels->blocks[LABEL_ALL] = (struct label_block){0, 1, 1, 1, lowering->rules.replicates ? entries : 0};
    for (int kind = 0; kind < LABEL_KIND_COUNT; kind++) {
        struct label_block *block = &labels->blocks[kind];

        block->first = first;
        first += block->replicas * block->directions * block->stages * block->numbers;
    }
    labels->count = first;
}

const struct labels *script_write(struct lowering *lowering, struct script *script)
{
    size_t chunks = (size_t)lowering->plan->chunks;
    struct labels *labels = ARENA_ARRAY(&lowering->arena, struct labels, 1);
    struct writer writer = {
        .lowering = lowering, .labels = labels, .script = script,
        .completed = ARENA_ARRAY(&lowering->arena, int, chunks), .gathered = ARENA_ARRAY(&lowering->arena, bool, chunks),
    };

    make_labels(lowering, labels);
    *script = (struct script){
        .replicas = (uint32_t)lowering->exchanges.alike.replicas, .labels = labels->count, .progress = lowering->scenario->progress,
    };
    for (writer.rank = 0; writer.rank < lowering->plan->stages; writer.rank++) {
        if (progress_step(script->progress, "lowering", 0, 0, 0))
            return labels;
        for (writer.replica = 0; writer.replica < lowering->exchanges.alike.replicas; writer.replica++)
            add_row(&writer);
    }
    return labels;
}
