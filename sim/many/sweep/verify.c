#include "sweep/verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "engine/replay.h"
#include "files/json.h"
#include "process/pool.h"
#include "report/outcome.h"
#include "store/tie.h"
#include "view/view.h"

/* The row of a point of the sweep. */
struct candidate {
    struct located point;
    size_t file;                 /* that has it */
    struct tie_number number;    /* the objective's value, which ranks the points; NaN: none */
    bool done;                   /* it needs no verification any more */
    json_t *row;                 /* of the verified points */
};

struct verifying {
    const struct verification *of;
    struct row_maker maker;
    struct arena arena;
    const char **files;          /* NULL-terminated */
    size_t nfiles, file;         /* file: while they are read */
    struct store *stores;        /* by file */
    struct candidate *candidates;        /* by id */
    size_t count, next;
    const char *key;             /* the objective */
    bool largest;
};

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct located *)a)->id, ((const struct located *)b)->id);
}

/* One candidate an id. */
static void make_candidates(struct verifying *verifying)
{
    struct locations *points = verifying->of->points;

    array_sort(points->items, points->count, sizeof *points->items, by_id);
    verifying->candidates = xcalloc(points->count + 1, sizeof *verifying->candidates);
    for (size_t i = 0; i < points->count; i++)
        if (i == 0 || strcmp(points->items[i - 1].id, points->items[i].id))
            verifying->candidates[verifying->count++] = (struct candidate){
                .point = points->items[i], .number = {.number = NAN}, .done = true,
            };
}

/* The candidate of a row, by its id; NULL: the row belongs to no point of this sweep. (`point` is the first member.) */
static struct candidate *find(const struct verifying *verifying, const json_t *row)
{
    struct located wanted = {0};

    memcpy(wanted.id, store_id(row), ID_DIGITS);
    return array_find(&wanted, verifying->candidates, verifying->count, sizeof *verifying->candidates, by_id);
}

static double metric_of(const json_t *row, const char *name)
{
    const json_t *value = json_object_get(json_object_get(row, "metrics"), name);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

#define UNUSED_LINE(line, length, err) ((void)(line), (void)(length), (void)(err))
/* Of two rows with one id the later one counts. */
static int see_row(void *context, const json_t *row, const char *line, size_t length, struct error *err)
{
    struct verifying *verifying = context;
    struct candidate *candidate = find(verifying, row);
    const char *engine = json_string_value(json_object_get(row, "engine"));
    bool reference = engine && !strcmp(engine, engine_names[ENGINE_SIMGRID]);

    UNUSED_LINE(line, length, err);
    if (!candidate || outcome_of(row) != OUTCOME_OK)
        return 0;
    candidate->file = verifying->file;
    candidate->number = tie_number_of(row, verifying->key, metric_of(row, verifying->key));
    candidate->done = reference || json_object_get(row, "verified_engine");
    return 0;
}

static int take_row(void *context, const json_t *row, const char *line, size_t length, struct error *err)
{
    struct verifying *verifying = context;
    struct candidate *candidate = find(verifying, row);

    UNUSED_LINE(line, length, err);
    if (!candidate || candidate->done || outcome_of(row) != OUTCOME_OK)
        return 0;
    json_decref(candidate->row);
    candidate->row = json_incref((json_t *)(uintptr_t)row);
    return 0;
}

static int read_files(struct verifying *verifying,
                      int (*row)(void *, const json_t *, const char *, size_t, struct error *), struct error *err)
{
    const struct store_reader reader = {.row = row, .context = verifying};
    int rc = 0;

    for (verifying->file = 0; verifying->file < verifying->nfiles && !rc; verifying->file++)
        rc = store_read(verifying->files[verifying->file], &reader, err);
    return rc;
}

static bool any_number(const struct verifying *verifying)
{
    for (size_t i = 0; i < verifying->count; i++)
        if (!isnan(verifying->candidates[i].number.number))
            return true;
    return false;
}

/* The rows' numbers under the first objective; without one under throughput, of tokens where there are any. */
static int read_numbers(struct verifying *verifying, struct error *err)
{
    static const char *const rates[] = {"tokens_per_s", "samples_per_s"};
    const struct node *objectives = verifying->of->sweep->report.objectives;

    verifying->largest = !objectives || !strcmp(objectives->items[0]->text, "max");
    for (size_t i = 0; i < COUNT(rates); i++) {
        verifying->key = objectives ? objectives->keys[0] : rates[i];
        if (read_files(verifying, see_row, err))
            return -1;
        if (objectives || any_number(verifying))
            return 0;
    }
    return 0;
}

static int compare_ranks(const void *a, const void *b)
{
    const size_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The rank of the last point to verify: all points of that rank tie with it. */
static size_t last_rank(const struct tie_rank *ranks, size_t count, size_t most)
{
    size_t *all = xcalloc(count + 1, sizeof *all), found = 0, last;

    for (size_t i = 0; i < count; i++)
        if (ranks[i].rank)
            all[found++] = ranks[i].rank;
    array_sort(all, found, sizeof *all, compare_ranks);
    last = found ? all[most < found ? most - 1 : found - 1] : 0;
    free(all);
    return last;
}

/* Points that are not among the best need no verification. */
static void choose(struct verifying *verifying)
{
    size_t count = verifying->count, last;
    struct tie_number *numbers = xcalloc(count + 1, sizeof *numbers);
    struct tie_rank *ranks = xcalloc(count + 1, sizeof *ranks);

    for (size_t i = 0; i < count; i++)
        numbers[i] = verifying->candidates[i].number;
    tie_ranks(numbers, count, verifying->largest, ranks);
    last = last_rank(ranks, count, verifying->of->options->verify);
    for (size_t i = 0; i < count; i++) {
        bool best = ranks[i].rank && ranks[i].rank <= last;

        verifying->of->state->verify.best += best;
        verifying->candidates[i].done |= !best;
        verifying->of->state->verify.chosen += !verifying->candidates[i].done;
    }
    free(numbers);
    free(ranks);
}

/* The files that have rows which will be written again. */
static int open_stores(struct verifying *verifying, struct error *err)
{
    int rc = 0;

    for (size_t i = 0; i < verifying->count && !rc; i++) {
        size_t file = verifying->candidates[i].file;

        if (!verifying->candidates[i].done && verifying->stores[file].fd < 0)
            rc = store_reopen(&verifying->stores[file], verifying->files[file], err);
    }
    return rc;
}

static int close_stores(struct verifying *verifying, struct error *err)
{
    int rc = 0;

    for (size_t i = 0; i < verifying->nfiles; i++)
        if (verifying->stores[i].fd >= 0)
            rc = store_close(&verifying->stores[i], err) ? -1 : rc;
    return rc;
}

static void begin(void *context)
{
    struct verifying *verifying = context;

    for (size_t i = 0; i < verifying->nfiles; i++)
        if (verifying->stores[i].fd >= 0)
            store_leave(&verifying->stores[i]);
}

static void work(void *context, uint64_t piece, char *note, FILE *reply)
{
    const struct verifying *verifying = context;

    row_make(&verifying->maker, verifying->candidates[piece].point.number, note, reply);
}

static bool next(void *context, uint64_t *piece)
{
    struct verifying *verifying = context;

    if (verifying->of->options->until > 0 && pool_now() > verifying->of->options->until)
        return false;
    while (verifying->next < verifying->count && verifying->candidates[verifying->next].done)
        verifying->next++;
    *piece = verifying->next;
    return verifying->next++ < verifying->count;
}

/* `why`: it could not be verified; else NULL. */
static void count(struct verifying *verifying, const char *why)
{
    struct sweep_verified *verified = &verifying->of->state->verify;

    verified->done++;
    if (why && !verified->failed++)
        text_clip(why, verified->why, sizeof verified->why);
    verifying->of->progress(verifying->of->context, verifying->of->state);
}

/* s of an iteration by the row's own engine and by the other. */
struct both { double own, other; };

#define VERIFIED(ROW) \
    ROW(verified_iteration_time_s, json_real(it->other), "of rows that were verified: on the engine simgrid") \
    ROW(verified_difference_share, json_real(it->other / it->own - 1), "that over iteration_time_s, less 1")
VIEW_SHARED(verified_view, struct both, it, VERIFIED)

#define VERIFIED_ROW(ROW) \
    ROW(verified_engine, json_words(engine_names[ENGINE_SIMGRID]), "of rows that were verified")
VIEW_SHARED(verified_row_view, struct candidate, it, VERIFIED_ROW)

/* The old row, with the results of the other engine. */
static int done(void *context, uint64_t piece, const char *reply, size_t length, struct error *err)
{
    struct verifying *verifying = context;
    struct candidate *candidate = &verifying->candidates[piece];
    struct row_head head;
    const char *row = row_split(reply, length, &head, err);
    json_t *other = row ? json_loads(row, 0, NULL) : NULL;
    double own = metric_of(candidate->row, "iteration_time_s"), time = metric_of(other, "iteration_time_s");
    const char *why = json_string_value(json_object_get(other, "reason"));
    char *text;
    int rc;

    if (row && (head.status != OUTCOME_OK || isnan(time)))
        count(verifying, why ? why : "it has no iteration time there");
    json_decref(other);
    if (!row || head.status != OUTCOME_OK || isnan(time))
        return row ? 0 : -1;
    view_put(&verified_view, &(struct both){own, time}, json_object_get(candidate->row, "metrics"));
    view_put(&verified_row_view, candidate, candidate->row);
    text = json_text(candidate->row);
    rc = store_add(&verifying->stores[candidate->file], candidate->point.id, OUTCOME_OK, text, err);
    free(text);
    if (!rc)
        count(verifying, NULL);
    return rc;
}

static int lost(void *context, uint64_t piece, enum pool_loss why, const char *note, const struct error *how,
                struct error *err)
{
    (void)piece;
    (void)note;
    (void)err;
    if (why == POOL_LATE)
        return 0;
    count(context, why == POOL_TIMEOUT ? "the simulation took longer than --timeout" :
                   how->count ? how->messages[0].text : "the simulation ended early");
    return 0;
}

static void tick(void *context)
{
    const struct verifying *verifying = context;

    verifying->of->progress(verifying->of->context, verifying->of->state);
}

static int run(struct verifying *verifying, struct error *err)
{
    const struct sweep_options *options = verifying->of->options;
    size_t chosen = verifying->of->state->verify.chosen;
    const struct pool pool = {.jobs = options->jobs < chosen ? options->jobs : chosen, .timeout = options->timeout,
                              .until = options->until, .grace = options->grace, .what = "the simulation", .context = verifying, .begin = begin, .work = work,
                              .next = next, .done = done, .lost = lost, .tick = tick};
    enum pool_end end;

    replay_prepare(ENGINE_SIMGRID);
    end = pool_run(&pool, err);
    verifying->of->state->interrupted = end == POOL_INTERRUPTED;
    return end == POOL_FAILED ? -1 : 0;
}

static void verifying_release(struct verifying *verifying)
{
    for (size_t i = 0; i < verifying->count; i++)
        json_decref(verifying->candidates[i].row);
    for (size_t i = 0; i < verifying->nfiles; i++)
        store_release(&verifying->stores[i]);
    free(verifying->candidates);
    free(verifying->stores);
    arena_release(&verifying->arena);
}

int verify_best(const struct verification *verification, struct error *err)
{
    struct verifying verifying = {.of = verification, .maker = *verification->maker};
    char engine[64];
    int rc;

    snprintf(engine, sizeof engine, "simulation.engine=%s", engine_names[ENGINE_SIMGRID]);
    verifying.maker.engine = engine;
    verifying.maker.force = true;
    verifying.files = store_files(&verifying.arena, verification->options->folder, err);
    while (verifying.files && verifying.files[verifying.nfiles])
        verifying.nfiles++;
    verifying.stores = xcalloc(verifying.nfiles + 1, sizeof *verifying.stores);
    for (size_t i = 0; i < verifying.nfiles; i++)
        verifying.stores[i].fd = -1;
    make_candidates(&verifying);
    rc = verifying.files ? read_numbers(&verifying, err) : -1;
    if (!rc)
        choose(&verifying);
    if (!rc && verification->state->verify.chosen) {
        rc = open_stores(&verifying, err) || read_files(&verifying, take_row, err) || run(&verifying, err) ? -1 : 0;
        rc = close_stores(&verifying, err) ? -1 : rc;
    }
    verifying_release(&verifying);
    return rc;
}
