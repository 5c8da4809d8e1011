/* strategy.split: auto: the layers of each virtual stage with which the iteration ends first, as engine fast replays
 * it, of those that fit into memory.
 *
 * A split has a lower bound: the longest that a rank's works of all micro-batches take, with the forwards before its
 * first stage and the backwards behind them. Where there are few splits all are replayed from the lowest bound on,
 * until no bound is below the best: that is the best split. Where there are many, the search begins with even stages
 * and with the split of the lowest bound, and moves a block from one stage to another as long as that ends sooner. Before a
 * replay the split's workload has a second bound, which knows exchanges, too (bound.h). While no split fits, one that lacks
 * less memory is better, and no bound drops any. */
#include "auto/auto_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/cache.h"
#include "model/model.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "workload/workload.h"

enum { SPLITS_ALL = 3000, REPLAYS_LEAST = 24, REPLAYS_MOST = 400 };
#define OPERATIONS_MOST 2e6 /* that all replays of a search have, about, */
#define SHORT_MOST 8e6       /* and where there are few splits of which none has fitted so far */

struct splitting {
    const struct scenario *scenario;
    const struct workload *even; /* with even stages */
    lowered_end_function *ends;
    int nstages, blocks;
    const int *least;                            /* blocks that a stage has at least */
    const double *sums[3];                       /* a stage and a block: s of all blocks before it on the stage's GPUs,
                                                    forwards, whole backwards, and the least that the next stage waits for */
    const double *extra[3];                      /* the same of a stage's layers outside its blocks */
    bool bounded;
    bool halves;                                 /* some backwards are in halves, and weights may come after the last input */
    size_t replays, most;
    int *best; /* of the splits that were replayed, and how it ended */
    struct lowered_end end;
};

static double sum_of(const struct splitting *splitting, int which, const int *begins, int stage)
{
    const double *sums = splitting->sums[which] + (size_t)stage * ((size_t)splitting->blocks + 1);

    return sums[begins[stage + 1]] - sums[begins[stage]] + splitting->extra[which][stage];
}

/* A rank does nothing before the forwards of a micro-batch on the stages before its first one. From then on it does its
 * works of all micro-batches. The last backward that it sends on comes after all its forwards and all that it sends, and
 * goes back through the stages before. Where backwards are in halves, those for weights may come after that. */
static double bound_of(const struct splitting *splitting, const int *layers)
{
    const struct plan *plan = &splitting->even->plan;
    int *begins = xcalloc((size_t)splitting->nstages + 1, sizeof *begins);
    double *fills = xcalloc(2 * (size_t)splitting->nstages + 2, sizeof *fills), most = 0;
    double *drains = fills + splitting->nstages + 1;

    for (int s = 0; s < splitting->nstages; s++) {
        begins[s + 1] = begins[s] + layers[s];
        fills[s + 1] = fills[s] + sum_of(splitting, 0, begins, s);
        drains[s + 1] = drains[s] + sum_of(splitting, 2, begins, s);
    }
    for (int rank = 0; splitting->bounded && rank < plan->stages; rank++) {
        double all = 0, sent = 0;
        int first = splitting->nstages;

        for (int c = 0; c < plan_chunks(plan, rank); c++) {
            int s = plan_virtual_stage(plan, rank, c);

            first = s < first ? s : first;
            all += sum_of(splitting, 0, begins, s) + sum_of(splitting, 1, begins, s);
            sent += sum_of(splitting, 0, begins, s) + sum_of(splitting, splitting->halves ? 2 : 1, begins, s);
        }
        most = fmax(most, fills[first] + fmax(plan->micro_batches * all, plan->micro_batches * sent + drains[first]));
    }
    free(begins);
    free(fills);
    return most;
}

/* Replays the split unless it surely takes more than `most` s. */
static struct lowered_end replay_split(const struct splitting *splitting, const int *layers, double most)
{
    struct scenario scenario = scenario_settled(splitting->scenario, (struct settled){.layers = layers, .closed = true});

    return splitting->ends(&scenario, most, NULL);
}

/* Replays the split unless its bound says that it is no better. Whether it is. */
static bool try_split(struct splitting *splitting, int *layers, double bound)
{
    double most = splitting->end.lacks <= 0 ? splitting->end.seconds * (1 + 1e-9) : INFINITY;
    struct lowered_end end;

    if (bound > most)
        return false;
    end = replay_split(splitting, layers, most);
    splitting->replays++;
    if (!lowered_better(end, splitting->end))
        return false;
    splitting->end = end;
    memcpy(splitting->best, layers, (size_t)splitting->nstages * sizeof *layers);
    return true;
}

/* A change of the best split, or one of all splits. */
struct trial {
    double bound;
    size_t number;
    int from, to;
    int *layers;
};

static int by_bound(const void *left, const void *right)
{
    const struct trial *a = left, *b = right;

    if (a->bound < b->bound || a->bound > b->bound)
        return a->bound < b->bound ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

struct trials {
    struct trial *items;
    size_t count, capacity;
};

static void sort_trials(struct trials *trials)
{
    array_sort(trials->items, trials->count, sizeof *trials->items, by_bound);
}

/* Adds all splits whose stages before `stage` are as in `layers`. */
static void add_splits(const struct splitting *splitting, struct arena *arena, int *layers, int stage, int left,
                       struct trials *trials)
{
    int behind = 0;

    for (int s = stage + 1; s < splitting->nstages; s++)
        behind += splitting->least[s];
    if (stage + 1 == splitting->nstages) {
        struct trial *trial = GROW(trials);

        layers[stage] = left;
        *trial = (struct trial){.bound = bound_of(splitting, layers),
                                .number = trials->count,
                                .layers = ARENA_ARRAY(arena, int, splitting->nstages)};
        memcpy(trial->layers, layers, (size_t)splitting->nstages * sizeof *layers);
        return;
    }
    for (layers[stage] = splitting->least[stage]; layers[stage] + behind <= left; layers[stage]++)
        add_splits(splitting, arena, layers, stage + 1, left - layers[stage], trials);
}

/* Ends after `most` replays where none fits. */
static void try_all(struct splitting *splitting, size_t most)
{
    struct arena arena = {0};
    struct trials trials = {0};
    int *layers = ARENA_ARRAY(&arena, int, splitting->nstages);

    add_splits(splitting, &arena, layers, 0, splitting->blocks, &trials);
    sort_trials(&trials);
    for (size_t i = 0; i < trials.count && (splitting->end.lacks <= 0 || splitting->replays < most); i++)
        try_split(splitting, trials.items[i].layers, trials.items[i].bound);
    free(trials.items);
    arena_release(&arena);
}

/* All splits that have one block of a stage on another one. */
static void add_moves(const struct splitting *splitting, int *layers, struct trials *trials)
{
    trials->count = 0;
    for (int from = 0; from < splitting->nstages; from++)
        for (int to = 0; to < splitting->nstages; to++) {
            if (from == to || layers[from] <= splitting->least[from])
                continue;
            layers[from]--;
            layers[to]++;
            *GROW(trials) = (struct trial){bound_of(splitting, layers), trials->count, from, to, NULL};
            layers[from]++;
            layers[to]--;
        }
    sort_trials(trials);
}

/* Moves blocks as long as the bound falls. */
static void lower_bound(const struct splitting *splitting, int *layers, struct trials *trials)
{
    double bound = bound_of(splitting, layers);

    for (;;) {
        add_moves(splitting, layers, trials);
        if (!trials->count || trials->items[0].bound >= bound * (1 - ROUNDING))
            return;
        bound = trials->items[0].bound;
        layers[trials->items[0].from]--;
        layers[trials->items[0].to]++;
    }
}

static void try_moves(struct splitting *splitting, int *layers)
{
    struct trials trials = {0};
    bool better = true;

    try_split(splitting, layers, 0);
    lower_bound(splitting, layers, &trials);
    try_split(splitting, layers, bound_of(splitting, layers));
    while (better && splitting->replays < splitting->most) {
        better = false;
        memcpy(layers, splitting->best, (size_t)splitting->nstages * sizeof *layers);
        add_moves(splitting, layers, &trials);
        for (size_t i = 0; i < trials.count && !better && splitting->replays < splitting->most; i++) {
            struct trial *trial = &trials.items[i];

            layers[trial->from]--;
            layers[trial->to]++;
            better = try_split(splitting, layers, trial->bound);
            layers[trial->from]++;
            layers[trial->to]--;
        }
    }
    free(trials.items);
}

/* How many splits there are; SPLITS_ALL + 1: more than SPLITS_ALL. */
static int count_splits(const struct splitting *splitting)
{
    int free_blocks = splitting->blocks;
    double count = 1;

    for (int s = 0; s < splitting->nstages; s++)
        free_blocks -= splitting->least[s];
    for (int s = 1; s < splitting->nstages && count <= SPLITS_ALL; s++)
        count = round(count * (free_blocks + s) / s);
    return count > SPLITS_ALL ? SPLITS_ALL + 1 : (int)count;
}

/* s of a layer's forward, whole backward, and the least of it that the stage before waits for. */
enum { LAYER_WORKS = 3 };
static void layer_seconds(const struct work_times *const *work, double seconds[LAYER_WORKS])
{
    double backward = work[BACKWARD]->seconds, input = work[BACKWARD_INPUT]->seconds;

    seconds[0] = work[FORWARD]->seconds;
    seconds[1] = input > 0 ? fmin(backward, input + work[BACKWARD_WEIGHT]->seconds) : backward;
    seconds[2] = input > 0 ? fmin(backward, input) : 0;
}

/* The same of the layer of stage `s` on the GPUs of the rank, each the least of all replicas: with these a bound holds. */
static void least_seconds(const struct workload *workload, int rank, int s, size_t slice, double seconds[LAYER_WORKS])
{
    bool alike = !workload->scenario->layout.mixed && !workload->scenario->batch.samples;      /* but for stragglers */
    const struct stage_times *times = alike ? ordinary_times(workload) : workload_times(workload, 0, rank);

    layer_seconds(times[s].slices[slice].work, seconds);
    for (int r = 1; !alike && r < workload_timed_replicas(workload); r++) {
        double own[LAYER_WORKS];

        layer_seconds(workload_times(workload, r, rank)[s].slices[slice].work, own);
        for (int i = 0; i < LAYER_WORKS; i++)
            seconds[i] = fmin(seconds[i], own[i]);
    }
}

/* The seconds of blocks on the GPUs of one stage, and of its layers outside blocks, from the times of even stages. Blocks
 * of multi-token prediction stay on the last stage whatever the split is. */
static void find_stage_seconds(const struct splitting *splitting, int of, double *const *sums, double *const *extra)
{
    int block = 0, rank = plan_rank(&splitting->even->plan, 0, of, 0, NULL);

    for (int s = 0; s < splitting->nstages; s++) {
        const struct stage *stage = &splitting->even->stages[s];

        for (size_t k = stage->nslices; k-- > 0;) {
            bool moves = stage->slices[k].layer->role == LAYER_BLOCK;
            double own[LAYER_WORKS];

            least_seconds(splitting->even, rank, s, k, own);
            for (int i = 0; i < LAYER_WORKS; i++) {
                if (moves)
                    sums[i][block + 1] = sums[i][block] + own[i];
                else if (s == of)
                    extra[i][s] += own[i];
            }
            block += moves;
        }
    }
    BUG_IF(block != splitting->blocks);
}

static void find_seconds(struct arena *arena, struct splitting *splitting)
{
    size_t width = (size_t)splitting->blocks + 1;
    double *sums[3], *extra[3];

    for (int i = 0; i < 3; i++) {
        splitting->sums[i] = sums[i] = arena_alloc(arena, (size_t)splitting->nstages * width * sizeof **sums);
        splitting->extra[i] = extra[i] = ARENA_ARRAY(arena, double, splitting->nstages);
    }
    for (int s = 0; s < splitting->nstages; s++) {
        find_stage_seconds(splitting, s, sums, extra);
        for (int i = 0; i < 3; i++)
            sums[i] += width;
    }
}

static bool has_halves(const struct workload *workload)
{
    for (int rank = 0; rank < workload->plan.stages; rank++)
        for (size_t i = 0; i < workload->rows[rank].count; i++)
            if (workload->rows[rank].items[i].kind == BACKWARD_INPUT)
                return true;
    return false;
}

static void search(struct arena *arena, struct splitting *splitting)
{
    const struct plan *plan = &splitting->even->plan;
    int *layers = ARENA_ARRAY(arena, int, splitting->nstages), *least = ARENA_ARRAY(arena, int, splitting->nstages);
    double operations = 4.0 * splitting->nstages * plan->micro_batches;

    for (int s = 0; s < splitting->nstages; s++) {
        const struct stage *stage = &splitting->even->stages[s];

        layers[s] = stage->layers;
        splitting->blocks += stage->layers;
        least[s] = (s > 0 && s + 1 < splitting->nstages) || stage->nslices == (size_t)stage->layers;
    }
    splitting->least = least;
    splitting->most = (size_t)fmin(REPLAYS_MOST, fmax(REPLAYS_LEAST, OPERATIONS_MOST / operations));
    splitting->bounded = !scenario_schedule(splitting->scenario)->asynchronous && plan_directions(plan) == 1 &&
                         !plan_shares(plan) && plan_slices(plan) == 1 && splitting->scenario->parallelism.local_steps == 1;
    splitting->halves = has_halves(splitting->even);
    find_seconds(arena, splitting);
    if (splitting->nstages == 1)
        memcpy(splitting->best, layers, sizeof *layers);
    else if (count_splits(splitting) <= SPLITS_ALL && count_splits(splitting) * operations < 100 * OPERATIONS_MOST)
        try_all(splitting, (size_t)fmax((double)splitting->most, SHORT_MOST / operations));
    else
        try_moves(splitting, layers);
    if (splitting->nstages > 1 && splitting->end.lacks > 0) {        /* not one of the lowest bounds fits */
        splitting->most += splitting->replays;
        try_moves(splitting, layers);
    }
}

const struct scenario *auto_split(struct arena *arena, const struct scenario *scenario, lowered_end_function *ends,
                                  struct error *err)
{
    int nstages = plan_virtual_stages(&scenario->plan), *layers = ARENA_ARRAY(arena, int, nstages);
    struct cache *cache = scenario->arena.cache;
    struct cache_key key = cache ? auto_key(scenario) : (struct cache_key){0};
    const int *known = cache ? cache_find(cache, CACHE_SPLIT, key.items, key.count) : NULL;
    const struct scenario *plain = keep_settled(arena, scenario, (struct settled){.closed = true});
    struct workload even = {0};
    struct arena own = {0};
    int rc = 0;

    if (known) {
        memcpy(layers, known, (size_t)nstages * sizeof *layers);
    } else if (!(rc = workload_build(&even, plain, err))) {
        struct splitting splitting = {
            .scenario = scenario, .even = &even, .ends = ends, .nstages = nstages, .best = layers,
            .end = {INFINITY, INFINITY}};

        search(&own, &splitting);
        if (isinf(splitting.end.seconds)) /* one stage, or none of them can be: the next step says why */
            for (int s = 0; s < nstages; s++)
                layers[s] = even.stages[s].layers;
        if (cache)
            cache_copy(cache, CACHE_SPLIT, key.items, key.count, layers, (size_t)nstages * sizeof *layers);
    }
    workload_release(&even);
    arena_release(&own);
    free(key.items);
    return rc ? NULL : keep_settled(arena, scenario, (struct settled){.layers = layers});
}
