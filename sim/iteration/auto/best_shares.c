/* batch.shares: auto: the samples of each replica's micro-batches with which the iteration ends first, as engine fast
 * replays it, of those that fit into memory.
 *
 * Replicas on equal GPUs get equal numbers, or such that differ by one. A replay says how long a replica's works take, with all
 * exchanges within them, for its number of samples; beyond it the time is a straight line through the last two such points. By
 * these times each further sample goes to the replica that is done first with it: so the slowest replica ends as soon as it can.
 * That is replayed, which gives further points, until nothing new comes of them. Then samples move from one kind of replica to
 * another as long as that ends sooner. Equal shares are replayed first, so what is found is not behind them. */
#include "auto/auto_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/cache.h"
#include "config/field.h"
#include "scenario/process_group.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

enum { REPLAYS_LEAST = 24, REPLAYS_MOST = 400, ROUNDS = 8 };
#define OPERATIONS_MOST 2e6 /* that all replays of a search have, about */

/* Replicas that are alike: the first one, how many, s of their works with some samples, and of each further one. */
struct alike_replicas { int first, count, samples; double seconds, each; };

/* Samples of each kind of replicas together. */
struct given { int *totals; struct lowered_end end; };

struct sharing {
    const struct scenario *scenario; /* with nothing else to be found */
    lowered_end_function *ends;
    int data, *kind_of;              /* replicas, and the kind of each */
    int nkinds, *samples;
    struct alike_replicas *kinds;
    double *works;                   /* a replica: s of its works in the last replay */
    struct { struct given *items; size_t count, capacity; } tried;
    size_t most;
    struct given best;
    struct arena *arena;
};

/* Gives each kind's samples to its replicas, the first ones one more where they do not divide. */
static void spread(const struct sharing *sharing, const int *totals)
{
    int *so_far = xcalloc((size_t)sharing->nkinds, sizeof *so_far);

    for (int d = 0; d < sharing->data; d++) {
        int kind = sharing->kind_of[d], count = sharing->kinds[kind].count;

        sharing->samples[d] = totals[kind] / count + (so_far[kind]++ < totals[kind] % count);
    }
    free(so_far);
}

static bool was_tried(const struct sharing *sharing, const int *totals)
{
    for (size_t i = 0; i < sharing->tried.count; i++)
        if (!memcmp(sharing->tried.items[i].totals, totals, (size_t)sharing->nkinds * sizeof *totals))
            return true;
    return false;
}

/* Replays the samples, or equal ones, with which replicas may stand for each other. */
static struct lowered_end replay_shares(struct sharing *sharing, bool equal)
{
    struct scenario scenario = scenario_settled(sharing->scenario, (struct settled){.samples = equal ? NULL : sharing->samples});

    return sharing->ends(&scenario, INFINITY, sharing->works);
}

/* The time is a straight line through the last two points, or in proportion to the samples where there is one. */
static void note_works(struct alike_replicas *kind, int samples, double seconds)
{
    if (samples != kind->samples)
        kind->each = (seconds - kind->seconds) / (samples - kind->samples);
    kind->samples = samples;
    kind->seconds = seconds;
}

static void note_replay(struct sharing *sharing, const int *totals, struct lowered_end end)
{
    struct given given = {ARENA_ARRAY(sharing->arena, int, sharing->nkinds), end};

    memcpy(given.totals, totals, (size_t)sharing->nkinds * sizeof *totals);
    *GROW(&sharing->tried) = given;
    for (int d = 0; isfinite(end.seconds) && d < sharing->data; d++)
        note_works(&sharing->kinds[sharing->kind_of[d]], sharing->samples[d], sharing->works[d]);
    if (!sharing->best.totals || lowered_better(end, sharing->best.end))
        sharing->best = given;
}

/* Replays these samples. Whether they are better; nothing that was tried before is. */
static bool try_totals(struct sharing *sharing, const int *totals)
{
    const int *best = sharing->best.totals;

    if (was_tried(sharing, totals))
        return false;
    spread(sharing, totals);
    note_replay(sharing, totals, replay_shares(sharing, false));
    return sharing->best.totals != best;
}

/* Whether two replicas have equal GPUs and their works took equally long. */
static bool are_alike(const struct sharing *sharing, int d, int other)
{
    const struct scenario *scenario = sharing->scenario;
    int context = scenario->parallelism.context;

    if (fabs(sharing->works[d] - sharing->works[other]) > ROUNDING * sharing->works[d])
        return false;
    for (int c = 0; c < context; c++)
        for (int p = 0; p < scenario->parallelism.pipeline; p++)
            for (int t = 0; t < scenario_tensor(scenario, p); t++)
                if (scenario_seat(scenario, t, d * context + c, p).kind !=
                    scenario_seat(scenario, t, other * context + c, p).kind)
                    return false;
    return true;
}

static void find_kinds(struct sharing *sharing)
{
    for (int d = 0; d < sharing->data; d++) {
        int kind = 0;

        while (kind < sharing->nkinds && !are_alike(sharing, d, sharing->kinds[kind].first))
            kind++;
        if (kind == sharing->nkinds)
            sharing->kinds[sharing->nkinds++] = (struct alike_replicas){.first = d};
        sharing->kinds[kind].count++;
        sharing->kind_of[d] = kind;
    }
}

/* The samples with which the slowest replica is done first, by the times that are known. */
static void share_by_times(const struct sharing *sharing, int *totals)
{
    int left = sharing->scenario->batch.micro * sharing->data;

    for (int k = 0; k < sharing->nkinds; k++)
        left -= totals[k] = sharing->kinds[k].count;
    for (; left > 0; left--) {
        int next = 0;
        double soonest = INFINITY;

        for (int k = 0; k < sharing->nkinds; k++) {
            const struct alike_replicas *kind = &sharing->kinds[k];
            double seconds = kind->seconds + kind->each * (totals[k] / kind->count + 1 - kind->samples);

            if (seconds < soonest) {
                soonest = seconds;
                next = k;
            }
        }
        totals[next]++;
    }
}

/* Tries what is left when the slowest replicas of one kind have `steps` samples fewer, and another kind has these. */
static bool try_move(struct sharing *sharing, int from, int to, int steps, int *totals)
{
    int count = sharing->kinds[from].count, more;

    memcpy(totals, sharing->best.totals, (size_t)sharing->nkinds * sizeof *totals);
    more = totals[from] % count;             /* replicas that have one more than the others of the kind */
    more = (more ? more : count) + (steps - 1) * count;
    if (from == to || totals[from] - more < count)
        return false;
    totals[from] -= more;
    totals[to] += more;
    return try_totals(sharing, totals);
}

static void try_moves(struct sharing *sharing, int *totals)
{
    bool better = true;

    while (better && sharing->tried.count < sharing->most) {
        better = false;
        for (int steps = 1; steps <= 2 && !better; steps++)
            for (int from = 0; from < sharing->nkinds && !better; from++)
                for (int to = 0; to < sharing->nkinds && !better && sharing->tried.count < sharing->most; to++)
                    better = try_move(sharing, from, to, steps, totals);
    }
}

/* Leaves the best samples in `samples`. */
static void search(struct sharing *sharing)
{
    int micro = sharing->scenario->batch.micro, *totals = ARENA_ARRAY(sharing->arena, int, sharing->data);
    struct lowered_end equal = replay_shares(sharing, true);

    for (int d = 0; d < sharing->data; d++)
        sharing->samples[d] = micro;
    find_kinds(sharing);
    if (sharing->nkinds == 1)
        return;
    for (int k = 0; k < sharing->nkinds; k++)
        totals[k] = micro * sharing->kinds[k].count;
    note_replay(sharing, totals, equal);
    for (int i = 0; i < ROUNDS; i++) {
        share_by_times(sharing, totals);
        if (was_tried(sharing, totals))
            break;
        try_totals(sharing, totals);
    }
    try_moves(sharing, totals);
    spread(sharing, sharing->best.totals);
    free(sharing->tried.items);
}

static void find_samples(struct arena *arena, const struct scenario *scenario, lowered_end_function *ends, int *samples)
{
    int data = scenario->parallelism.data;
    double operations = 4.0 * plan_virtual_stages(&scenario->plan) * scenario->plan.micro_batches * scenario_replicas(scenario);
    struct sharing sharing = {
        .scenario = scenario, .ends = ends, .data = data, .samples = samples, .arena = arena,
        .kind_of = ARENA_ARRAY(arena, int, data), .works = ARENA_ARRAY(arena, double, data),
        .kinds = ARENA_ARRAY(arena, struct alike_replicas, data),
        .most = (size_t)fmin(REPLAYS_MOST, fmax(REPLAYS_LEAST, OPERATIONS_MOST / operations)),
    };

    search(&sharing);
}

const struct scenario *auto_shares(struct arena *arena, const struct scenario *scenario, lowered_end_function *ends,
                                   struct error *err)
{
    int data = scenario->parallelism.data, *samples = ARENA_ARRAY(arena, int, data);
    const struct scenario *equal = keep_settled(arena, scenario, (struct settled){.closed = true});
    struct cache *cache = scenario->arena.cache;
    struct cache_key key = {0};
    const int *known = NULL;
    bool same = true;

    if (!(scenario->uneven & (UNEVEN_GPUS | UNEVEN_LINKS | UNEVEN_KINDS)))
        return scenario;
    if (cache) {
        key = auto_key(scenario);
        known = cache_find(cache, CACHE_SHARES, key.items, key.count);
    }
    if (!known && list_is_auto(&scenario->parallelism.split))    /* the split that is best for equal shares */
        equal = auto_split(arena, equal, ends, err);
    if (known)
        memcpy(samples, known, (size_t)data * sizeof *samples);
    else if (equal)
        find_samples(arena, equal, ends, samples);
    if (equal && cache && !known)
        cache_copy(cache, CACHE_SHARES, key.items, key.count, samples, (size_t)data * sizeof *samples);
    for (int d = 0; d < data; d++)
        same &= samples[d] == scenario->batch.micro;
    free(key.items);
    return !equal || same ? equal ? scenario : NULL : keep_settled(arena, scenario, (struct settled){.samples = samples});
}
