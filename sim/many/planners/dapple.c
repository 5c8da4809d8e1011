#include "planners/dapple.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"

enum { DAPPLE_LABELS = 32 }; /* of one state */

static double sum_seconds(const struct dapple *question, size_t begin, size_t end)
{
    double sum = 0;

    for (size_t i = begin; i < end; i++)
        sum += question->layers[i].seconds;
    return sum;
}

static double stage_seconds(const struct dapple *question, const struct planned_stage *stage)
{
    return sum_seconds(question, stage->begin, stage->end) / stage->data;
}

/* s, there and back, behind a stage. */
static double transfer_seconds(const struct dapple *question, size_t end)
{
    return end < question->count ? 2 * question->layers[end - 1].output / question->p2p : 0;
}

static double exchange_seconds(const struct dapple *question, const struct planned_stage *stage)
{
    double weights = 0;

    for (size_t i = stage->begin; i < stage->end; i++)
        weights += question->layers[i].weights;
    return stage->data == 1 ? 0 : 2 * weights * (stage->data - 1) / stage->data / question->exchange[stage->data];
}

static double released_score(const struct dapple *question, const struct planned *plan)
{
    double block = 0, transfers = 0, late = 0;

    for (size_t i = 0; i < plan->count; i++) {
        double transfer = transfer_seconds(question, plan->stages[i].end);

        block = fmax(block, fmax(stage_seconds(question, &plan->stages[i]), transfer));
        transfers += transfer;
    }
    for (size_t i = 0; i < plan->count; i++)
        late = fmax(late, exchange_seconds(question, &plan->stages[i]) - (double)i * block);
    return block * (question->micro_batches - 1) + sum_seconds(question, 0, question->count) + transfers + late;
}

/* A stage of the paper's latency: of computation, or a transfer. */
struct phase {
    double forward, backward, exchange;
};

static size_t phases_of(const struct dapple *question, const struct planned *plan, struct phase *phases)
{
    size_t count = 0;

    for (size_t i = 0; i < plan->count; i++) {
        double seconds = stage_seconds(question, &plan->stages[i]), transfer;

        phases[count++] = (struct phase){seconds * question->forward, seconds * (1 - question->forward),
                                         exchange_seconds(question, &plan->stages[i])};
        transfer = transfer_seconds(question, plan->stages[i].end) / 2;
        if (i + 1 < plan->count)
            phases[count++] = (struct phase){transfer, transfer, 0};
    }
    return count;
}

static size_t pivot_of(const struct dapple *question, const struct phase *phases, size_t count)
{
    size_t pivot = count - 1;
    double between = 0;

    BUG_IF(!count);
    for (size_t s = count - 1; s-- > 0;) {
        double own = (question->micro_batches - 1) * (phases[s].forward + phases[s].backward);
        double its = (question->micro_batches - 1) * (phases[pivot].forward + phases[pivot].backward);

        if (own > its + between) {
            pivot = s;
            between = 0;
        } else {
            between += phases[s].forward + phases[s].backward;
        }
    }
    return pivot;
}

static double paper_score(const struct dapple *question, const struct planned *plan)
{
    struct phase phases[2 * PLANNED_MOST];
    size_t count = phases_of(question, plan, phases), pivot = pivot_of(question, phases, count);
    double score = (question->micro_batches - 1) * (phases[pivot].forward + phases[pivot].backward), last = -INFINITY;

    for (size_t s = 0; s < count; s++) {
        double backwards = 0;

        score += s <= pivot ? phases[s].forward : 0;
        for (size_t b = s; b <= pivot; b++)
            backwards += phases[b].backward;
        for (size_t b = pivot; b < s; b++)
            backwards -= phases[b].backward;
        last = fmax(last, phases[s].exchange + backwards);
    }
    return score + last;
}

double dapple_score(const struct dapple *question, const struct planned *plan)
{
    return question->paper ? paper_score(question, plan) : released_score(question, plan);
}

static bool may_have(const struct dapple *question, int data)
{
    return !question->data || question->data == data;
}

/* Of some stages of the first layers on some devices, no stage or transfer longer than the block: a plan that no other
 * one betters in both transfers and lateness (of an exchange behind the end of the last block before it). */
struct label {
    double transfers, late;
    struct planned_stage last;
    const struct label *before;
};
struct labels {
    struct label *items[DAPPLE_LABELS];
    size_t count;
};

static void add_label(struct arena *arena, struct labels *labels, const struct label *label)
{
    size_t left = 0;

    for (size_t i = 0; i < labels->count; i++)
        if (labels->items[i]->transfers <= label->transfers && labels->items[i]->late <= label->late)
            return;
    for (size_t i = 0; i < labels->count; i++)
        if (label->transfers > labels->items[i]->transfers || label->late > labels->items[i]->late)
            labels->items[left++] = labels->items[i];
    labels->count = left;
    if (labels->count == DAPPLE_LABELS)
        return;
    labels->items[labels->count] = ARENA_ARRAY(arena, struct label, 1);
    *labels->items[labels->count++] = *label;
}

/* The labels with one stage more, which itself makes `more` transfers and lateness. */
static void add_labels(struct arena *arena, const struct labels *before, const struct label *more, double most,
                       struct labels *after)
{
    for (size_t i = 0; i < before->count; i++) {
        const struct label *label = before->items[i];
        double transfers = label->transfers + more->transfers, late = fmax(label->late, more->late);

        if (transfers + late < most)
            add_label(arena, after, &(struct label){transfers, late, more->last, label});
    }
}

/* All labels with one stage more; transfers and lateness that together are `most` s or more are of no use. */
static void add_stage(struct arena *arena, const struct dapple *question, double block, double most, size_t s,
                      const struct labels *before, struct labels *after)
{
    size_t n = question->count, width = (size_t)question->devices + 1;

    for (size_t begin = s; begin < n; begin++)
        for (size_t end = begin + 1; end <= n; end++) {
            double transfer = transfer_seconds(question, end), seconds = sum_seconds(question, begin, end);

            for (size_t r = (size_t)fmax(1, ceil(seconds / (block * (1 + ROUNDING)))); r < width; r++) {
                struct planned_stage stage = {begin, end, (int)r, 1, 0};
                struct label more = {transfer, 0, stage, NULL};

                if (!may_have(question, (int)r) || transfer > block * (1 + ROUNDING))
                    continue;
                more.late = fmax(0, exchange_seconds(question, &stage) - (double)s * block);
                for (size_t d = r; d < width && more.late < most; d++)
                    add_labels(arena, &before[begin * width + d - r], &more, most, &after[end * width + d]);
            }
        }
}

static void try_label(const struct dapple *question, const struct label *label, size_t count, struct planned *planned)
{
    struct planned plan = {.count = count};

    for (size_t i = count; i-- > 0; label = label->before)
        plan.stages[i] = label->last;
    plan.objective = released_score(question, &plan);
    if (plan.objective < planned->objective)
        *planned = plan;
}

/* The best of the plans whose longest stage or transfer is no longer than the block. */
static void try_block(const struct dapple *question, double block, struct planned *planned)
{
    double own = block * (question->micro_batches - 1) + sum_seconds(question, 0, question->count);
    size_t n = question->count, devices = (size_t)question->devices, width = devices + 1;
    size_t states = (n + 1) * width, most = n < devices ? n : devices;
    struct labels *before = xcalloc(states, sizeof *before), *after = xcalloc(states, sizeof *after), *swap;
    struct arena arena = {0};

    add_label(&arena, &before[0], &(struct label){0, 0, {0}, NULL});
    for (size_t s = 0; s < most && s < PLANNED_MOST; s++) {
        for (size_t i = 0; i < states; i++)
            after[i].count = 0;
        add_stage(&arena, question, block, planned->objective - own, s, before, after);
        for (size_t i = 0; i < after[n * width + devices].count; i++)
            try_label(question, after[n * width + devices].items[i], s + 1, planned);
        swap = before;
        before = after;
        after = swap;
    }
    free(before);
    free(after);
    arena_release(&arena);
}

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* The released search: each time that the longest stage or transfer may take, the shortest first, until that time alone
 * is too long. */
static void plan_released(const struct dapple *question, struct planned *planned)
{
    size_t n = question->count, count = 0;
    double *blocks = xcalloc(n * n * (size_t)question->devices + n + 1, sizeof *blocks);
    double all = sum_seconds(question, 0, n), last = 0;

    for (size_t begin = 0; begin < n; begin++) {
        blocks[count++] = transfer_seconds(question, begin + 1);
        for (size_t end = begin + 1; end <= n; end++)
            for (int r = 1; r <= question->devices; r++)
                if (may_have(question, r))
                    blocks[count++] = sum_seconds(question, begin, end) / r;
    }
    array_sort(blocks, count, sizeof *blocks, ascending);
    for (size_t i = 0; i < count && blocks[i] * (question->micro_batches - 1) + all < planned->objective; i++)
        if (blocks[i] > last * (1 + ROUNDING)) {
            last = blocks[i];
            if (last * question->devices >= all * (1 - ROUNDING))
                try_block(question, last, planned);
        }
    free(blocks);
}

/* Whether the plan is better whose last stage ends earlier, on `data` replicas, with one further stage behind it; then
 * its first stages are kept, up to that one. */
static void try_prefix(const struct dapple *question, struct planned *whole, size_t end, int data,
                       struct planned *prefix)
{
    struct planned_stage *last = &whole->stages[whole->count - 1], old = *last;
    double score;

    whole->stages[whole->count++] = (struct planned_stage){end, old.end, old.data - data, 1, 0};
    *last = (struct planned_stage){old.begin, end, data, 1, 0};
    score = paper_score(question, whole);
    whole->count--;
    if (score < prefix->objective) {
        *prefix = *whole;
        prefix->objective = score;
    }
    *last = old;
}

/* The paper's: of the first layers on some devices the plan that is best with one further stage. */
static void plan_paper(const struct dapple *question, struct planned *planned)
{
    size_t n = question->count, devices = (size_t)question->devices;
    struct planned *prefixes = xcalloc(n * (devices + 1), sizeof *prefixes);

    for (size_t i = 0; i < n * (devices + 1); i++)
        prefixes[i].objective = INFINITY;
    prefixes[0].objective = 0;
    for (size_t begin = 0; begin < n; begin++)
        for (size_t d = 0; d < devices; d++) {
            struct planned whole = prefixes[begin * (devices + 1) + d];

            if (isinf(whole.objective))
                continue;
            whole.stages[whole.count++] = (struct planned_stage){begin, n, (int)(devices - d), 1, 0};
            whole.objective = paper_score(question, &whole);
            if (may_have(question, (int)(devices - d)) && whole.objective < planned->objective)
                *planned = whole;
            for (size_t end = begin + 1; end < n && whole.count < PLANNED_MOST; end++)
                for (size_t r = 1; d + r < devices; r++)
                    if (may_have(question, (int)r))
                        try_prefix(question, &whole, end, (int)r, &prefixes[end * (devices + 1) + d + r]);
        }
    free(prefixes);
}

void dapple_plan(const struct dapple *question, struct planned *planned)
{
    *planned = (struct planned){.objective = INFINITY};
    if (question->paper)
        plan_paper(question, planned);
    else
        plan_released(question, planned);
}
