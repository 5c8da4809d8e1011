#include "plan/bounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "auto/auto.h"
#include "base/base.h"
#include "base/cache.h"
#include "collective/measure.h"
#include "config/conf.h"
#include "config/field.h"
#include "auto/bound.h"
#include "process/pool.h"
#include "report/caveats.h"
#include "run/memory_advice.h"
#include "scenario/scenario.h"
#include "sweep/points.h"
#include "workload/row_counts.h"
#include "workload/workload.h"

enum { TOGETHER = 64 };          /* points of a piece of work, but where each is a search of its own */

struct bounding {
    struct space *space;
    struct bounded *bounds;
    struct cache cache;
    struct scenario_common common;
    size_t next, points, together, known;
    const struct bounds_options *options;
    struct texts { char **items; size_t count, capacity; } held;     /* of a piece: what its points hold, each once */
};

static void refused(const struct error *err, enum bounded_status status, struct bounded *bounded)
{
    const struct error_message *message = &err->messages[0];
    char *text = xprintf("%s%s%s", status == BOUNDED_BROKEN && message->loc.file ? message->loc.file : "",
                         status == BOUNDED_BROKEN && message->loc.file ? ": " : "", message->text);

    bounded->status = status;
    bounded->rule = message->kind;
    text_clip(text, bounded->reason, sizeof bounded->reason);
    free(text);
}

static uint32_t mixed(uint32_t size, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        size = (size ^ ((const unsigned char *)bytes)[i]) * 16777619u;
    return size;
}

/* What points have in common of which the fastest is the best, whatever the objective: the hardware, GPUs, those that are paid
 * and their price, samples and their tokens, and how much is trained. As one number: points of one size have equal ones. */
static uint32_t size_of(const struct scenario *scenario, const struct point *point)
{
    const struct training_spec *train = scenario->train;
    const double parts[] = {
        scenario_gpus(scenario), scenario_paid_gpus(scenario), scenario->batch.global,
        scenario->batch.global ? 0 : scenario->batch.micro_batches, scenario->model.sequence, scenario->price,
        train ? train->amount.tokens : 0, train ? train->amount.samples : 0, train ? train->amount.steps : 0,
        train ? train->per_parameter : 0,
    };
    uint32_t size = 2166136261u;

    struct arena arena = {0};

    for (size_t i = 0; i < COUNT(parts); i++) {
        double part = isnan(parts[i]) ? 0 : parts[i];

        size = mixed(size, &part, sizeof part);
    }
    for (size_t i = 0; i < point->count; i++)
        if (plan_is_hardware(point->items[i].name)) {
            const char *value = node_flow(&arena, point->items[i].node);

            size = mixed(size, value, strlen(value) + 1);
        }
    arena_release(&arena);
    return size;
}

/* Refuses values that the framework's release lacks and that nobody asked for. */
static int check_framework(const struct space *space, const struct scenario *scenario, struct error *err)
{
    struct arena arena = {.cache = scenario->arena.cache};
    struct software_lack lack;
    int rc = 0;

    if (scenario_in_framework(&arena, scenario, &lack) == SOFTWARE_LACKS &&
        axes_are_ours(space->axes, space->naxes, lack.why ? lack.condition : lack.path))
        rc = error_infeasible(err, ERROR_FRAMEWORK, (struct loc){0}, "%s", caveat_framework(&arena, scenario));
    arena_release(&arena);
    return rc;
}

/* The rows and plans of layers. Where layers have no plan for all memory, something else may still fit: auto_memory
 * knows. */
static int order_workload(struct workload *workload, const struct scenario *scenario, struct error *err)
{
    struct error none = {0};
    bool planned = scenario_plans_memory(scenario);
    int rc = workload_order(workload, planned ? &none : err);

    error_release(&none);
    if (!rc || !planned)
        return rc;
    workload_release(workload);
    return workload_init(workload, scenario, err);
}

/* A workload whose time is to be bounded, without `alike`. *counts: of its rows, which are not made where many points have
 * the same. *lacks: B that a GPU surely lacks; where it does, the rest may be left out. Only the rows of an asynchronous
 * schedule say how many versions of weights its memory holds. */
static int build_workload(struct workload *workload, const struct scenario *scenario,
                          const struct row_counts **counts, double *lacks, struct error *err)
{
    const struct schedule *schedule = scenario_schedule(scenario);

    if (auto_time(workload, scenario, err))
        return -1;
    *counts = schedule->asynchronous || scenario_by_layers(scenario) ? NULL :
              schedule_counts(&workload->arena, schedule, &workload->plan);
    *lacks = schedule->asynchronous ? 0 : memory_surely_lacks(workload, *counts);
    if (*counts || *lacks > 0)
        return 0;
    if (order_workload(workload, scenario, err))
        return -1;
    *counts = rows_count(&workload->arena, workload->rows, &workload->plan);
    *lacks = memory_surely_lacks(workload, schedule->asynchronous ? NULL : *counts);
    return 0;
}

/* The bound of the time on the engine that replays it. The reference engine would take long to measure exchanges. */
static double bound_of(const struct workload *workload, const struct row_counts *counts)
{
    enum engine engine = (enum engine)workload->scenario->simulation.engine;
    struct measure measure;
    double seconds;

    measure_init(&measure, engine, &workload->scenario->cluster);
    measure.cache = workload->scenario->arena.cache;
    seconds = workload_bound(workload, counts, engine == ENGINE_SIMGRID ? NULL : &measure);
    measure_release(&measure);
    return seconds;
}

/* Adds the values of the keys that the space holds, as one text. */
static void note_held(struct bounding *bounding, const struct scenario *scenario)
{
    const struct space *space = bounding->space;
    struct arena arena = {0};
    const char *text = "";

    if (!space->nheld)
        return;
    for (size_t i = 0; i < space->nheld; i++) {
        const char *value = scenario_value(&arena, scenario, space->held[i].path);

        text = arena_printf(&arena, "%s%s\t", text, value ? value : "");
    }
    for (size_t i = 0; i < bounding->held.count; i++)
        if (!strcmp(bounding->held.items[i], text)) {
            arena_release(&arena);
            return;
        }
    *GROW(&bounding->held) = xprintf("%s", text);
    arena_release(&arena);
}

static void bound_point(struct bounding *bounding, uint64_t number, struct bounded *bounded)
{
    const struct points *points = &bounding->space->sweep.points;
    struct arena arena = {.cache = (struct cache *)&bounding->cache};
    struct scenario scenario = {0};
    struct workload workload = {0};
    const struct row_counts *counts = NULL;
    struct error found = {0};
    struct point point;
    double lacks = 0;

    memset(bounded, 0, sizeof *bounded);
    if (point_make(points, number, &arena, &point, &found) ||
        scenario_read_like(&arena, point.root, &bounding->common, points->name, &scenario, &found) ||
        check_framework(bounding->space, &scenario, &found) ||
        build_workload(&workload, &scenario, &counts, &lacks, &found)) {
        refused(&found, found.system ? BOUNDED_BROKEN : found.messages[0].kind == ERROR_MEMORY ? BOUNDED_SHORT :
                        BOUNDED_REFUSED, bounded);
        bounded->lacks = INFINITY;
    } else if (lacks > 0) {
        *bounded = (struct bounded){.status = BOUNDED_SHORT, .lacks = lacks};
    } else {
        scenario_prefer(&scenario, ENGINE_FAST);
        *bounded = (struct bounded){.status = BOUNDED_OPEN, .seconds = bound_of(&workload, counts),
                                    .size = size_of(&scenario, &point)};
    }
    if (bounded->status == BOUNDED_OPEN || bounded->status == BOUNDED_SHORT)
        note_held(bounding, &scenario);
    workload_release(&workload);
    scenario_release(&scenario);
    arena_release(&arena);
    error_release(&found);
}

static size_t piece_size(const struct bounding *bounding, uint64_t piece)
{
    size_t first = (size_t)piece * bounding->together;

    return first + bounding->together <= bounding->points ? bounding->together : bounding->points - first;
}

static void work(void *context, uint64_t piece, char *note, FILE *reply)
{
    struct bounding *bounding = context;

    (void)note;
    for (size_t i = 0; i < piece_size(bounding, piece); i++) {
        struct bounded bounded;

        bound_point(bounding, bounding->space->selection.items[(size_t)piece * bounding->together + i], &bounded);
        cache_renew(&bounding->cache);
        fwrite(&bounded, sizeof bounded, 1, reply);
    }
    for (size_t i = 0; i < bounding->held.count; i++) {
        fputs(bounding->held.items[i], reply);
        putc('\n', reply);
        free(bounding->held.items[i]);
    }
    bounding->held.count = 0;
}

/* Adds a piece's values, which are in the order of the keys, each behind the one before. */
static void take_held(struct space *space, const char *text, const char *end)
{
    for (size_t i = 0; text < end; i = *text == '\n' ? 0 : i + 1, text += *text == '\n') {
        struct space_held *held = &space->held[i];
        size_t length = strcspn(text, "\t"), at = 0;

        while (at < held->found.count && (strncmp(held->found.items[at], text, length) || held->found.items[at][length]))
            at++;
        if (at == held->found.count && length)
            *GROW(&held->found) = arena_strndup(&space->sweep.arena, text, length);
        text += length + 1;
    }
}

/* By number, and words by letter. */
static int by_value(const void *left, const void *right)
{
    const char *a = *(const char *const *)left, *b = *(const char *const *)right;
    long long difference = strtoll(a, NULL, 10) - strtoll(b, NULL, 10);

    return difference ? (difference > 0) - (difference < 0) : strcmp(a, b);
}

static bool next(void *context, uint64_t *piece)
{
    struct bounding *bounding = context;

    if (bounding->next * bounding->together >= bounding->points || (bounding->options->until > 0 && pool_now() > bounding->options->until))
        return false;
    *piece = bounding->next++;
    return true;
}

static int done(void *context, uint64_t piece, const char *reply, size_t length, struct error *err)
{
    struct bounding *bounding = context;
    size_t count = piece_size(bounding, piece);

    if (length < count * sizeof(struct bounded))
        return error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "plan: a worker's reply has %zu bytes, expected %zu",
                         length, count * sizeof(struct bounded));
    memcpy(&bounding->bounds[(size_t)piece * bounding->together], reply, count * sizeof(struct bounded));
    bounding->known += count;
    take_held(bounding->space, reply + count * sizeof(struct bounded), reply + length);
    for (size_t i = 0; i < count; i++)
        if (bounding->bounds[(size_t)piece * bounding->together + i].status == BOUNDED_BROKEN)
            return error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "plan: %s",
                             bounding->bounds[(size_t)piece * bounding->together + i].reason);
    return 0;
}

/* Of points that were read when a worker ended nothing is known: they are replayed, each of which has a row of its own. */
static int lost(void *context, uint64_t piece, enum pool_loss why, const char *note, const struct error *how,
                struct error *err)
{
    struct bounding *bounding = context;

    (void)note;
    (void)how;
    (void)err;
    for (size_t i = 0; i < piece_size(bounding, piece) && why != POOL_LATE; i++)
        bounding->bounds[(size_t)piece * bounding->together + i] = (struct bounded){.status = BOUNDED_OPEN};
    return 0;
}

static void tick(void *context)
{
    const struct bounding *bounding = context;

    bounding->options->progress(bounding->options->context, bounding->known);
}

int bounds_find(struct space *space, const struct bounds_options *options, struct bounded *bounds, bool *interrupted,
                struct error *err)
{
    struct bounding bounding = {.space = space, .bounds = bounds, .points = space->selection.count,
                                .together = space_is_open(space) ? 1 : TOGETHER, .options = options};
    size_t pieces = (bounding.points + bounding.together - 1) / bounding.together;
    const struct pool pool = {.jobs = options->jobs < pieces ? options->jobs : pieces ? pieces : 1, .what = "the bound",
                              .until = options->until, .grace = options->grace, .context = &bounding, .work = work,
                              .next = next, .done = done, .lost = lost, .tick = tick};
    enum pool_end end;

    memset(bounds, 0, bounding.points * sizeof *bounds);
    cache_init(&bounding.cache, CACHE_BYTES);
    bounding.cache.files_stay = true;
    scenario_common_make(&bounding.common, NULL, space->sweep.points.base);
    end = pool_run(&pool, err);
    arena_release(&bounding.common.arena);
    cache_release(&bounding.cache);
    free(bounding.held.items);
    for (size_t i = 0; i < space->nheld; i++)
        array_sort(space->held[i].found.items, space->held[i].found.count, sizeof *space->held[i].found.items, by_value);
    *interrupted = end == POOL_INTERRUPTED;
    return end == POOL_FAILED ? -1 : 0;
}
