/* Reads a scenario and resolves it, key by key in the order in which they follow from each other, then checks it. */
#include "scenario/scenario_internal.h"

#include <string.h>

#include "base/base.h"
#include "base/cache.h"
#include "collective/collective.h"
#include "config/conf.h"
#include "config/field.h"
#include "evidence/evidence.h"
#include "files/data.h"
#include "kernels/costs.h"
#include "layout/layout.h"
#include "model/model.h"
#include "schedule/order.h"
#include "schedule/schedule.h"

#define BATCH_LOC(scenario) ((scenario)->batch.node ? (scenario)->batch.node->loc : (scenario)->node->loc)

/* An order from a file says itself how many ranks and micro-batches it has; where the scenario says so too, they agree.
 */
static int resolve_order(struct scenario *scenario, struct error *err)
{
    struct parallelism *spec = &scenario->parallelism;
    struct batch *batch = &scenario->batch;
    struct loc loc;
    struct order *order;
    const char *path;
    int rc = 0;

    if (!spec->schedule.csv && !node_get(spec->schedule.node, "recomputation"))
        return 0;
    if (!spec->schedule.csv)
        return error_clash(
            err, node_loc(spec->schedule.node, "recomputation"),
            "strategy: schedule: recomputation: %s says itself when it recomputes; expected it with 'csv'",
            scenario_schedule(scenario)->name);
    order = ARENA_ARRAY(&scenario->arena, struct order, 1);
    loc = node_loc(spec->schedule.node, "csv");
    path = data_relative(&scenario->arena, loc, spec->schedule.csv, err);
    if (!path || order_load(&scenario->arena, path, loc, (enum recompute_rule)spec->schedule.recomputation, order, err))
        return -1;
    order->schedule.name = spec->schedule.csv;
    spec->schedule.order = order;
    if (!node_get(spec->node, "pipeline"))
        spec->pipeline = order->ranks;
    if (spec->pipeline != order->ranks)
        rc = error_infeasible(err, ERROR_SCHEDULE, STRATEGY_LOC(scenario, "pipeline"),
                              "strategy: pipeline: found %d; %s has %d ranks (lines)", spec->pipeline, order->file,
                              order->ranks);
    if (!batch->micro_batches)
        batch->micro_batches = order->micro_batches;
    if (batch->micro_batches != order->micro_batches)
        rc = error_infeasible(err, ERROR_SCHEDULE, node_loc(batch->node, "micro_batches"),
                              "batch: micro_batches: found %d; %s has %d%s", batch->micro_batches, order->file,
                              order->micro_batches, order->directions > 1 ? " in both directions" : "");
    return rc;
}

/* A schedule has one chunk a rank or a range of them, and a default. One rank alone gains nothing from several chunks,
 * so there the default is the least. */
static int resolve_chunks(struct scenario *scenario, struct error *err)
{
    const struct schedule *schedule = scenario_schedule(scenario);
    int min = schedule->min_chunks ? schedule->min_chunks : 1, max = schedule->max_chunks ? schedule->max_chunks : min;
    const struct order *order = scenario->parallelism.schedule.order;
    int *chunks = &scenario->parallelism.chunks;

    if (order)
        min = max = order->chunks;
    if (!*chunks)
        *chunks = schedule->usual_chunks && scenario->parallelism.pipeline > 1 ? schedule->usual_chunks : min;
    if (*chunks >= min && *chunks <= max)
        return 0;
    return error_clash(err, STRATEGY_LOC(scenario, "chunks"),
                       "strategy: chunks: found %d; %s has %d%s a rank", *chunks, schedule->name, min,
                       max > min ? " or more" : "");
}

/* Any two of global, micro and micro_batches give the third. */
static int resolve_batch(struct scenario *scenario, struct error *err)
{
    struct batch *batch = &scenario->batch;
    int data = layout_data(&scenario->layout, 0);
    long long step = (long long)batch->micro * data;

    if (!batch->global && !batch->micro_batches)
        return error_add(err, EXIT_INPUT, BATCH_LOC(scenario),
                         "batch: missing key '%s'", model_has_samples(&scenario->model) ? "global" : "micro_batches");
    if (!batch->micro_batches) {
        if (batch->global % step)
            return error_infeasible(
                err, ERROR_BATCH, node_loc(batch->node, "global"),
                "batch: global: %d is no multiple of micro %d x data %d%s = %lld samples", batch->global, batch->micro,
                data, node_get(scenario->parallelism.node, "data") || scenario->parallelism.ranks ? "" : " (what remains of the cluster)", step);
        batch->micro_batches = (int)(batch->global / step);
    }
    if (batch->micro_batches > 1000000)
        return error_infeasible(err, ERROR_BATCH, node_loc(batch->node, "global"),
                                "batch: %d micro-batches a replica; expected at most 1000000", batch->micro_batches);
    if (batch->global && batch->global != step * batch->micro_batches)
        return error_infeasible(err, ERROR_BATCH, node_loc(batch->node, "global"),
                                "batch: global: %d is not micro %d x data %d x micro_batches %d = %lld", batch->global,
                                batch->micro, data, batch->micro_batches,
                                step * batch->micro_batches);
    if (step * batch->micro_batches > 2000000000)
        return error_infeasible(err, ERROR_BATCH, BATCH_LOC(scenario),
                                "batch: %lld samples; expected at most 2000000000", step * batch->micro_batches);
    batch->global = (int)(step * batch->micro_batches);
    return 0;
}

static int check_model(const struct scenario *scenario, struct error *err)
{
    const struct model *model = &scenario->model;
    const struct list *split = &scenario->parallelism.split;
    int stages = plan_virtual_stages(&scenario->plan), rc = 0;
    int given = model_is_per_rank(model) ? scenario->plan.stages : stages;

    bool named = scenario_names_gpus(scenario);

    if (!model_is_timed(model) && scenario->cluster.ideal && !named)
        return error_clash(err, node_loc(scenario->node, "cluster"),
                           "cluster: the ideal cluster has no GPUs to compute on, and the model gives no times; "
                           "try '{platform: ideal, gpu: a100-80gb}', or give 'stages:' or 'layers:' with times");
    if (!model_is_timed(model) && !named)
        return error_add(err, EXIT_INPUT, node_loc(scenario->node, "cluster"),
                         "cluster: missing key 'gpu': the model's times are to be computed (dtsim list gpus)");
    if (model->stages.count > 1 && (int)model->stages.count != given)
        rc = error_add(err, EXIT_INFEASIBLE, node_loc(model->node, "stages"),
                       "model: stages: %zu are given, %s with pipeline %d and chunks %d has %d%s", model->stages.count,
                       scenario_schedule(scenario)->name, scenario->parallelism.pipeline, scenario->parallelism.chunks,
                       given, given == stages ? "" : " ranks");
    if (split->node && model->stages.count)
        rc = error_clash(err, split->node->loc,
                         "strategy: split: the model is given stage by stage, so there are no layers to divide; "
                         "expected it with 'layers:' or a transformer");
    else if (split->node && !list_is_auto(split) && (int)split->count != stages)
        rc = error_add(err, EXIT_INFEASIBLE, split->node->loc,
                       "strategy: split: %zu numbers, %s with pipeline %d and chunks %d has %d stages", split->count,
                       scenario_schedule(scenario)->name, scenario->parallelism.pipeline, scenario->parallelism.chunks,
                       stages);
    if (!model->transformer && scenario->parallelism.tensor > 1)
        rc = error_add(err, EXIT_INFEASIBLE, STRATEGY_LOC(scenario, "tensor"),
                       "strategy: tensor: %d needs a transformer; this model's times are given whole",
                       scenario->parallelism.tensor);
    return rc;
}

/* A forward and a backward take about a kilobyte until they are replayed: more would take all of a machine's memory. */
static int check_size(const struct scenario *scenario, struct error *err)
{
    enum { MOST = 10000000 };
    double works = (double)plan_virtual_stages(&scenario->plan) * scenario->plan.micro_batches *
                   plan_slices(&scenario->plan) * scenario->plan.batches * scenario->parallelism.local_steps;

    if (works <= MOST)
        return 0;
    return error_clash(err, BATCH_LOC(scenario),
                       "batch: %d stages x %d micro-batches%s are more than %d forwards; expected fewer of either",
                       plan_virtual_stages(&scenario->plan), scenario->plan.micro_batches,
                       plan_slices(&scenario->plan) > 1 ? " in slices" : "", MOST);
}

/* batch.flush: the same rows again and again, all for one update. After recipe_make. */
static int check_flush(const struct scenario *scenario, struct error *err)
{
    const struct schedule *schedule = scenario_schedule(scenario);
    const struct parallelism *spec = &scenario->parallelism;
    int flush = scenario->batch.flush;
    const char *why = spec->pipeline == 1      ? "there is no pipeline; expected a pipeline degree above 1"
                      : schedule->asynchronous ? "the schedule updates without a flush"
                      : spec->schedule.order   ? "the order from a file has all micro-batches"
                      : scenario->recipe.gradients.once
                          ? "with sums_once every flush would scatter gradients, which is not simulated; expected no ZeRO "
                            "2 or 3, or 'software: {sums_once: false}'"
                          : NULL;

    if (!flush || (flush == scenario->plan.micro_batches && !schedule->asynchronous))
        return 0;
    if (why)
        return error_clash(err, node_loc(scenario->batch.node, "flush"), "batch: flush: %d, but %s", flush, why);
    if (scenario->plan.micro_batches % flush)
        return error_infeasible(err, ERROR_BATCH, node_loc(scenario->batch.node, "flush"),
                                "batch: flush: %d does not divide the %d micro-batches of a replica", flush,
                                scenario->plan.micro_batches);
    return 0;
}

/* Checks each key by itself, and sets the order in which the schedule computes. */
static int resolve_schedule(struct scenario *scenario, struct error *err)
{
    int rc = placement_resolve(scenario, err);

    if (stages_resolve(scenario, err) || resolve_order(scenario, err))
        rc = -1;
    return sharers_resolve(scenario, err) ? -1 : rc;
}

/* How the model and the batch are divided. */
static int resolve_division(struct scenario *scenario, struct error *err)
{
    int rc = resolve_chunks(scenario, err);

    if ((!rc && stages_split(scenario, err)) || degrees_resolve(scenario, err))
        rc = -1;
    if (!rc)
        ulysses_resolve(scenario);
    return rc ? rc : shard_resolve(scenario, err);
}

/* What goes together, and the batch. */
static int resolve_rest(struct scenario *scenario, struct error *err)
{
    static scenario_rule *const rules[] = {
        exchanges_check, check_model, scenario_check_memory, degrees_check, rank_degrees_check,
    };
    int rc = scenario_settle_idle(scenario, err);

    if (data_parallel_check(scenario, err))
        rc = -1;
    if (scenario_check(scenario, rules, COUNT(rules), err))
        rc = -1;
    if (resolve_batch(scenario, err) || shares_resolve(scenario, err))
        rc = -1;
    return rc;
}

static int resolve_costs(struct scenario *scenario, struct error *err)
{
    return costs_resolve(&scenario->arena, &scenario->costs, scenario->node, &scenario->cluster,
                         model_is_timed(&scenario->model), scenario->kernels, err);
}

static int resolve(struct scenario *scenario, struct error *err)
{
    static scenario_rule *const sizes[] = {check_size, sharers_check, slices_check};
    const struct schedule *schedule;
    const struct order *order;
    struct plan part;

    scenario_settle_precision(scenario);
    if (resolve_schedule(scenario, err) || scenario_lay_software(scenario, err))
        return -1;
    schedule = scenario_schedule(scenario);
    order = scenario->parallelism.schedule.order;
    if (!node_get(scenario->memory.node, "gradients"))
        scenario->memory.precision.gradients = memory_default_gradients(scenario);
    if (resolve_division(scenario, err))
        return -1;
    scenario->plan = (struct plan){
        .stages = scenario->parallelism.pipeline, .chunks = scenario->parallelism.chunks,
        .placement = schedule->placement, .batches = 1,
        .recompute = scenario_has_recomputations(scenario), .pairs = parallelism_pairs(&scenario->parallelism),
        .options = order ? (const void *)order : scenario->parallelism.options, .table = order ? order->table : NULL,
    };
    sharers_place(scenario);
    if (resolve_rest(scenario, err) || resolve_costs(scenario, err))
        return -1;
    scenario->plan.micro_batches = scenario->batch.micro_batches;
    scenario->plan.flush = scenario->batch.flush == scenario->batch.micro_batches ? 0 : scenario->batch.flush;
    scenario->plan.slices = schedule->slices ? schedule->slices(scenario->parallelism.options) : 1;
    if (schedule->batches)
        scenario->plan.batches = scenario->batch.count =
            scenario->batch.count ? scenario->batch.count : schedule->batches;
    else if (scenario->batch.count > 1)
        return error_clash(err, node_loc(scenario->batch.node, "count"),
                           "batch: count: %s simulates one batch, found %d", schedule->name, scenario->batch.count);
    if (scenario_check(scenario, sizes, COUNT(sizes), err))
        return -1;
    part = plan_of_flush(&scenario->plan);
    if (part.micro_batches % plan_directions(&scenario->plan))
        return error_infeasible(err, ERROR_BATCH, node_loc(scenario->batch.node, "micro_batches"),
                                "batch: %d micro-batches a replica do not divide into the two directions of %s",
                                part.micro_batches, schedule->name);
    if (scenario->model.transformer)
        scenario->model.transformer->documents = scenario->batch.documents;
    process_groups_make(scenario);
    recipe_make(scenario);
    rank_views_make(scenario);
    scenario->uneven = scenario_uneven(scenario);
    if (process_groups_check(scenario, err) || check_flush(scenario, err) ||
        (schedule->check && schedule->check(&part, STRATEGY_LOC(scenario, "schedule"), err)))
        return -1;
    /* Nobody can measure a network that takes no time. */
    return scenario->cluster.ideal ? 0 : evidence_load(&scenario->arena, &scenario->evidence, err);
}

/* The axes of `plan`; 'dtsim plan' reads their values. */
static int check_axes(const struct search_spec *search, struct error *err)
{
    int rc = 0;

    for (size_t i = 0; search->axes && i < search->axes->count; i++)
        if (!scenario_field(search->axes->keys[i]))
            rc = error_add(err, EXIT_INPUT, search->axes->key_locs[i], "plan: scenarios have no '%s'; expected a path such "
                           "as strategy.tensor", search->axes->keys[i]);
    return rc;
}

/* Reads the tree. `like` may be a parsed scenario that shares nodes with it. */
static int read_tree(struct arena *arena, const struct node *root, const struct scenario *like, const char *name,
                     struct scenario *scenario, struct error *err)
{
    int rc = 0;

    if (!like || !field_parse_like(arena, &scenario_table, root, like, scenario))
        rc = field_parse(arena, &scenario_table, root, scenario, err) || check_axes(&scenario->search, err) ? -1 : 0;
    scenario->arena = *arena;
    *arena = (struct arena){0};
    if (!rc && !scenario->name)
        scenario->name = arena_strdup(&scenario->arena, name);
    if (scenario->node && scenario_lay_own(scenario, err))
        rc = -1;
    return rc ? -1 : resolve(scenario, err);
}

int scenario_read(struct arena *arena, struct node *root, const char *const *sets, size_t nsets, const char *name,
                  struct scenario *scenario, struct error *err)
{
    memset(scenario, 0, sizeof *scenario);
    for (size_t i = 0; i < nsets; i++)
        if (scenario_set(arena, root, sets[i], err)) {
            scenario->arena = *arena;
            *arena = (struct arena){0};
            return -1;
        }
    return read_tree(arena, root, NULL, name, scenario, err);
}

void scenario_common_make(struct scenario_common *common, struct cache *cache, const struct node *root)
{
    struct error ignored = {0};

    *common = (struct scenario_common){.arena = {.cache = cache}};
    common->parsed = ARENA_ARRAY(&common->arena, struct scenario, 1);
    if (field_parse(&common->arena, &scenario_table, root, common->parsed, &ignored) ||
        check_axes(&common->parsed->search, &ignored))
        common->parsed = NULL;
    error_release(&ignored);
}

int scenario_read_like(struct arena *arena, const struct node *root, const struct scenario_common *common,
                       const char *name, struct scenario *scenario, struct error *err)
{
    return read_tree(arena, root, common->parsed, name, scenario, err);
}

/* A variation is called by its first changes: "gpipe, schedule=1f1b", unless one of them names it. */
static const char *changed_name(struct scenario *scenario, const char *const *sets, size_t nsets)
{
    enum { MOST = 8 };
    const char *name = scenario->name;

    for (size_t i = 0; i < nsets; i++) {
        size_t path = strcspn(sets[i], "=");
        const char *dot = memrchr(sets[i], '.', path);
        char shown[CLIP_SIZE];

        if (path == strlen("name") && !strncmp(sets[i], "name", path))
            return scenario->name;
        if (i < MOST)
            name = arena_printf(&scenario->arena, "%s, %s", name,
                                text_clip(dot ? dot + 1 : sets[i], shown, sizeof shown));
    }
    return nsets > MOST ? arena_printf(&scenario->arena, "%s, ...", name) : name;
}

/* Files of other kinds are told by a key of theirs. */
static int refuse_others(const struct node *root, struct error *err)
{
    static const struct { const char *key, *what; } others[] = {
        {"sweep", "a sweep ('dtsim sweep')"}, {"columns", "a paper ('dtsim validate')"},
        {"rows", "a table of collectives ('dtsim collective --table')"},
    };

    for (size_t i = 0; i < COUNT(others); i++)
        if (node_get(root, others[i].key))
            return error_add(err, EXIT_INPUT, node_loc(root, others[i].key), "the file is %s; expected a scenario",
                             others[i].what);
    return 0;
}

int scenario_load(const char *path, const char *const *sets, size_t nsets, struct scenario *scenario, struct error *err)
{
    struct node *root;
    struct cache *cache = xcalloc(1, sizeof *cache);
    struct arena arena = {.cache = cache};
    const char *name = strcmp(path, "-") ? data_stem(&arena, path) : "stdin";
    int rc;

    memset(scenario, 0, sizeof *scenario);
    cache_init(cache, CACHE_BYTES);
    rc = conf_load(&arena, path, &root, err) || refuse_others(root, err) ? -1 : 0;
    if (!rc && !(rc = scenario_read(&arena, root, sets, nsets, name, scenario, err)))
        scenario->name = changed_name(scenario, sets, nsets);
    scenario->own = cache;
    arena_release(&arena);
    return rc;
}

int scenario_vary(const struct scenario *scenario, const char *const *sets, size_t nsets, struct scenario *varied,
                  struct error *err)
{
    struct arena arena = {.cache = scenario->arena.cache};
    struct node *root = ARENA_ARRAY(&arena, struct node, 1);
    int rc;

    *root = *scenario->node;
    rc = scenario_read(&arena, root, sets, nsets, scenario->name, varied, err);
    varied->progress = scenario->progress;
    return rc;
}
