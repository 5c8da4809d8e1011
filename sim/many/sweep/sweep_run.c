#include "sweep/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/cache.h"
#include "engine/replay.h"
#include "files/json.h"
#include "process/pool.h"
#include "report/result.h"
#include "store/store.h"
#include "sweep/verify.h"
#include "view/view.h"

/* s after the timeout within which a worker ends the point itself and says how far it came; then it is killed. */
enum { GRACE = 1 };

/* A sweep that runs. */
struct running {
    const struct selection *selection;
    const struct sweep_options *options;
    struct store store;
    struct row_maker maker;
    struct cache cache;          /* each worker fills its own copy */
    size_t next;                 /* index into the selection */
    struct locations points;     /* where the best are to be verified: all that have a row */
    struct sweep_state *state;
    void (*progress)(void *context, const struct sweep_state *state);
    void *context;
};

static json_t *objectives_json(const struct sweep *sweep)
{
    json_t *objectives = json_object();

    for (size_t i = 0; sweep->report.objectives && i < sweep->report.objectives->count; i++)
        json_put(objectives, sweep->report.objectives->keys[i], json_words(sweep->report.objectives->items[i]->text));
    return objectives;
}

struct header_of { const struct sweep *sweep; const struct selection *selection; const struct sweep_options *options; };

#define DROPPED(ROW) \
    ROW(by, json_words(it->sweep->points.constraints.items[i].text), "what must hold") \
    ROW(points, json_count(it->selection->dropped[i]), "combinations that it drops")
VIEW(dropped_view, struct header_of, it, DROPPED)

/* The first line of the file: which sweep the rows belong to. */
#define HEADER(ROW) \
    ROW(dtsim_sweep, json_integer(1), "of the format") \
    ROW(dtsim, json_words(DTSIM_VERSION), "the program's version") \
    ROW(version, row_version(), "digest of its sources") \
    ROW(name, json_words(it->sweep->stem), "of the sweep") \
    ROW(shard, json_pack("[i, i]", it->options->shard, it->options->shards), "[which, of how many]") \
    ROW(combinations, json_count(it->selection->looked), "of the axes' values") \
    ROW(points, json_count(it->selection->count), "that are left") \
    ROW(dropped, view_each(&dropped_view, it, it->sweep->points.constraints.count), "by 'where'", .form = VIEW_LIST, \
        .of = &dropped_view) \
    ROW(objectives, objectives_json(it->sweep), "of the report: min or max, by key", .form = VIEW_MAP) \
    ROW(base, node_json(it->sweep->points.base), "the scenario that each point's values change")
VIEW_SHARED(sweep_header_view, struct header_of, it, HEADER)

/* The file is the parent's alone: with a worker's copy of it open it would stay locked when the parent has died. */
static void begin(void *context)
{
    struct running *running = context;

    store_leave(&running->store);
}

static void work(void *context, uint64_t piece, char *note, FILE *reply)
{
    const struct running *running = context;

    row_make(&running->maker, piece, note, reply);
}

static bool next(void *context, uint64_t *piece)
{
    struct running *running = context;

    if (running->next >= running->selection->count || (running->options->fail_fast && running->state->failed) ||
        (running->options->until > 0 && pool_now() > running->options->until))
        return false;
    *piece = running->selection->items[running->next];
    running->next += (size_t)running->options->shards;
    return true;
}

/* Whether the best points are verified in the end. */
static bool verifies(const struct sweep_options *options)
{
    return options->verify > 0 && options->shards == 1;
}

static void locate(struct running *running, const struct row_head *head, uint64_t piece)
{
    struct located located = {.number = piece};

    memcpy(located.id, head->id, sizeof located.id);
    if (verifies(running->options))
        *GROW(&running->points) = located;
    if (running->options->located)
        *GROW(running->options->located) = located;
}

static void count(struct running *running, const struct row_head *head)
{
    struct sweep_state *state = running->state;

    state->done++;
    state->rows[head->status]++;
    state->failed += outcome_failed(head->status);
    state->best.tokens = fmax(state->best.tokens, head->tokens);
    state->best.samples = fmax(state->best.samples, head->samples);
    running->progress(running->context, state);
}

/* Stores the row, unless this run has stored one of its id, or the store had it, which a process of mpirun that does
 * not see the folder cannot know. */
static int keep(struct running *running, const struct row_head *head, const char *row, struct error *err)
{
    if (store_added(&running->store, head->id))
        running->state->alike++;
    else if (row_is_done(&running->maker, head->id))
        running->state->before++;
    else if (store_add(&running->store, head->id, head->status, row, err))
        return -1;
    count(running, head);
    return 0;
}

static int done(void *context, uint64_t piece, const char *reply, size_t length, struct error *err)
{
    struct running *running = context;
    struct row_head head;
    const char *row = row_split(reply, length, &head, err);

    if (!row)
        return -1;
    locate(running, &head, piece);
    if (!head.stored)
        return keep(running, &head, row, err);
    if (store_added(&running->store, head.id))
        running->state->alike++;
    else
        running->state->before++;
    store_find(&running->store, head.id, &head.status);
    head.tokens = head.samples = NAN;
    count(running, &head);
    return 0;
}

static int keep_lost(struct running *running, uint64_t piece, const char *note, enum outcome status,
                     const char *reason, struct error *err)
{
    json_t *row = row_lost(&running->maker, piece, note, status, reason, err);
    struct row_head head;
    char *text;
    int rc;

    if (!row)
        return -1;
    head = row_head_of(row);
    locate(running, &head, piece);
    text = json_text(row);
    rc = keep(running, &head, text, err);
    free(text);
    json_decref(row);
    return rc;
}

static int lost(void *context, uint64_t piece, enum pool_loss why, const char *note, const struct error *how,
                struct error *err)
{
    struct running *running = context;
    char reason[128];

    if (why == POOL_LATE)
        return 0;
    if (why == POOL_CRASH)
        return keep_lost(running, piece, note, OUTCOME_CRASH,
                         how->count ? how->messages[0].text : "the simulation ended early", err);
    snprintf(reason, sizeof reason, "the simulation took longer than %g s", running->options->timeout);
    return keep_lost(running, piece, note, OUTCOME_TIMEOUT, reason, err);
}

static void tick(void *context)
{
    const struct running *running = context;

    running->progress(running->context, running->state);
}

static int open_store(struct running *running, const struct sweep *sweep, struct error *err)
{
    const struct sweep_options *options = running->options;
    json_t *header = view_json(&sweep_header_view, &(struct header_of){sweep, running->selection, options});
    int rc = store_open(&running->store, options->folder, options->shard, options->shards, header, err);

    json_decref(header);
    return rc;
}

/* The store, or, in a process that works for another one, what is in it. */
static int take_store(struct running *running, const struct sweep *sweep, struct error *err)
{
    return running->state->serves ? store_index(&running->store, running->options->folder, err)
                                  : open_store(running, sweep, err);
}

/* All points run, and the store closed. */
static int run_points(struct running *running, const struct pool *pool, struct error *err)
{
    enum pool_end end;

    if (running->options->engine && !strcmp(running->options->engine, engine_names[ENGINE_SIMGRID]))
        replay_prepare(ENGINE_SIMGRID);
    end = pool_run(pool, err);
    running->state->interrupted = end == POOL_INTERRUPTED;
    return (!running->state->serves && store_close(&running->store, err)) || end == POOL_FAILED ? -1 : 0;
}

int sweep_run(const struct sweep *sweep, const struct selection *selection, const struct sweep_options *options,
              void (*progress)(void *context, const struct sweep_state *state), void *context,
              struct sweep_state *state, struct error *err)
{
    struct running running = {.selection = selection, .options = options, .next = (size_t)options->shard - 1,
                              .state = state, .progress = progress, .context = context};
    const struct verification verification = {sweep, options, &running.maker, &running.points, state, progress,
                                              context};
    struct pool pool = {.jobs = options->jobs, .ranks = options->ranks,
                        .timeout = options->timeout > 0 ? options->timeout + GRACE : 0,
                        .until = options->until, .grace = options->grace,
                        .what = "the simulation", .context = &running, .begin = begin, .work = work, .next = next,
                        .done = done, .lost = lost, .tick = tick};
    size_t shards = (size_t)options->shards, first = running.next;
    char engine[64];
    int rc;

    *state = (struct sweep_state){.points = selection->count > first ? (selection->count - first - 1) / shards + 1 : 0,
                                  .serves = pool_serves(&pool)};
    pool.jobs = pool.jobs > state->points ? state->points ? state->points : 1 : pool.jobs;
    snprintf(engine, sizeof engine, "simulation.engine=%s", options->engine ? options->engine : "");
    running.maker = (struct row_maker){.points = &sweep->points, .store = &running.store,
                                       .engine = options->engine ? engine : NULL,
                                       .anchors = options->anchors,
                                       .retry_failed = options->retry_failed, .force = options->force,
                                       .cache = &running.cache, .timeout = options->timeout,
                                       .bytes = options->bytes};
    cache_init(&running.cache, CACHE_BYTES);
    rc = row_maker_init(&running.maker, err) || take_store(&running, sweep, err) || run_points(&running, &pool, err)
             ? -1 : 0;
    if (!rc && !state->serves && verifies(options) && !state->interrupted && !(options->fail_fast && state->failed))
        rc = verify_best(&verification, err);
    store_release(&running.store);
    cache_release(&running.cache);
    free(running.points.items);
    return rc;
}
