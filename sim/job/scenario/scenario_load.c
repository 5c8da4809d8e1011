/* Reads a scenario and resolves it, key by key in the order in which they follow from each other, then checks it. */
#include "scenario/scenario_internal.h"

#include <string.h>

#include "base/base.h"
#include "base/cache.h"
#include "base/progress.h"
#include "collective/collective.h"
#include "config/conf.h"
#include "config/field.h"
#include "evidence/evidence.h"
#include "files/data.h"
#include "kernels/costs.h"
#include "layout/layout.h"
#include "model/model.h"
#include "scenario/price.h"
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

    if (scenario_ask(scenario, &order_rules, err))
        return -1;
    if (!spec->schedule.csv)
        return 0;
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
    int *chunks = &scenario->parallelism.chunks;

    if (!*chunks)
        *chunks = schedule->usual_chunks && scenario->parallelism.pipeline > 1 ? schedule->usual_chunks :
                  scenario_chunks(scenario, false);
    return scenario_ask(scenario, &chunks_rules, err);
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
    if (scenario_ask(scenario, &batch_rules, err))
        return -1;
    if (!batch->micro_batches)
        batch->micro_batches = (int)(batch->global / step);
    if (scenario_ask(scenario, &batch_size_rules, err))
        return -1;
    batch->global = (int)(step * batch->micro_batches);
    return 0;
}

static int check_model(const struct scenario *scenario, struct error *err)
{
    const struct model *model = &scenario->model;
    const struct list *split = &scenario->parallelism.split;
    int stages = plan_virtual_stages(&scenario->plan), rc = 0;
    int given = model_is_per_rank(model) ? scenario->plan.stages : stages;

    if (model->stages.count > 1 && (int)model->stages.count != given)
        rc = error_add(err, EXIT_INFEASIBLE, node_loc(model->node, "stages"),
                       "model: stages: %zu are given, %s with pipeline %d and chunks %d has %d%s", model->stages.count,
                       scenario_schedule(scenario)->name, scenario->parallelism.pipeline, scenario->parallelism.chunks,
                       given, given == stages ? "" : " ranks");
    if (split->node && !model->stages.count && !list_is_auto(split) && (int)split->count != stages)
        rc = error_add(err, EXIT_INFEASIBLE, split->node->loc,
                       "strategy: split: %zu numbers, %s with pipeline %d and chunks %d has %d stages", split->count,
                       scenario_schedule(scenario)->name, scenario->parallelism.pipeline, scenario->parallelism.chunks,
                       stages);
    return rc;
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

    if (!rc && stages_split(scenario, err))
        rc = -1;
    if (rank_degrees_resolve(scenario, err) || (!scenario->parallelism.ranks && scenario_ask(scenario, &gpus_rules, err)) ||
        degrees_resolve(scenario, err))
        rc = -1;
    if (rc)
        return rc;
    ulysses_resolve(scenario);
    shard_resolve(&scenario->parallelism);
    return scenario_ask(scenario, &shard_rules, err);
}

/* What goes together, and the batch. */
static int resolve_rest(struct scenario *scenario, struct error *err)
{
    static const struct rules *const rules[] = {&data_parallel_rules, &model_rules, &memory_rules, &degrees_rules,
                                                &ranks_rules};
    int rc = scenario_settle_idle(scenario, err);

    for (size_t i = 0; i < COUNT(rules); i++)
        rc = scenario_ask(scenario, rules[i], err) ? -1 : rc;
    compression_resolve(&scenario->parallelism.compression);
    if (check_model(scenario, err))
        rc = -1;
    if (scenario_check_saved(scenario, err))
        rc = -1;
    if (!rc && rank_samples_check(scenario, err))
        rc = -1;
    if (resolve_batch(scenario, err) || scenario_ask(scenario, &shares_rules, err) || shares_resolve(scenario, err))
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
    if (scenario_ask(scenario, &sizes_rules, err) || sharers_check(scenario, err))
        return -1;
    part = plan_of_flush(&scenario->plan);
    if (scenario->model.transformer)
        scenario->model.transformer->documents = scenario->batch.documents;
    process_groups_make(scenario);
    recipe_make(scenario);
    rank_views_make(scenario);
    scenario->uneven = scenario_uneven(scenario);
    if (process_groups_check(scenario, err) || scenario_ask(scenario, &flush_rules, err) ||
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
    if (!rc && node_get(root, "price") && node_get(root, "price")->kind == NODE_MAPPING)
        rc = price_of_own(arena, node_get(root, "price"), &scenario->cluster, &scenario->price, err);
    scenario->arena = *arena;
    scenario->progress = arena->progress;
    *arena = (struct arena){0};
    if (!rc && !scenario->name)
        scenario->name = arena_strdup(&scenario->arena, name);
    if (scenario->node && (scenario_lay_own(scenario, err) || scenario_lay_bf16(scenario, err)))
        rc = -1;
    return rc || progress_look(scenario->progress, err) || resolve(scenario, err) ||
           progress_look(scenario->progress, err) ? -1 : 0;
}

int scenario_read(struct arena *arena, struct node *root, const char *const *sets, size_t nsets, const char *name,
                  struct scenario *scenario, struct error *err)
{
    memset(scenario, 0, sizeof *scenario);
    if (nsets)
        conf_change(arena, root);
    for (size_t i = 0; i < nsets; i++)
        if (scenario_set(arena, root, sets[i], err) || progress_look(arena->progress, err)) {
            scenario->arena = *arena;
            *arena = (struct arena){0};
            return -1;
        }
    conf_changed(root);
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

#define IMPORT(READER, REST) "'dtsim import " READER " FILE" REST "' makes one of it"

/* What a key of the file tells it to be. */
struct file_kind { const char *key, *what; };

static int refuse_kinds(const struct node *root, const struct file_kind *kinds, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (node_at(root, kinds[i].key))
            return error_add(err, EXIT_INPUT, node_at(root, kinds[i].key)->loc, "the file is %s; expected a scenario",
                             kinds[i].what);
    return 0;
}

int scenario_tree(struct arena *arena, const char *path, struct node **root, struct error *err)
{
    static const struct file_kind ends[] = {
        {".sh", "script of bash: " IMPORT("megatron", "")}, {".toml", "job of torchtitan: " IMPORT("torchtitan", "")},
        {".py", "program in Python, which is not run"},
    };
    static const struct file_kind others[] = {
        {"model_type", "a config.json of Hugging Face's (model: {hf_config: FILE})"},
        {"architectures", "a config.json of Hugging Face's (model: {hf_config: FILE})"},
        {"zero_optimization", "DeepSpeed's: " IMPORT("deepspeed", " --hf-config CONFIG")},
        {"train_micro_batch_size_per_gpu", "DeepSpeed's: " IMPORT("deepspeed", " --hf-config CONFIG")},
        {"per_device_train_batch_size", "of Transformers: " IMPORT("transformers", " --hf-config CONFIG")},
        {"_target_", "a recipe of NeMo 2: " IMPORT("nemo", "")},
        {"MODEL_ARGS", "a list of arguments of Megatron-LM: " IMPORT("megatron", "")},
        {"model.seq_length", "of Megatron Bridge: " IMPORT("bridge", "")},
        {"train.micro_batch_size", "of Megatron Bridge: " IMPORT("bridge", "")},
    };
    size_t length = strlen(path);

    for (size_t i = 0; i < COUNT(ends); i++)
        if (length > strlen(ends[i].key) && !strcmp(path + length - strlen(ends[i].key), ends[i].key))
            return error_add(err, EXIT_INPUT, (struct loc){.file = path}, "expected a scenario, found a %s", ends[i].what);
    return conf_load(arena, path, root, err) || refuse_kinds(*root, others, COUNT(others), err) ? -1 : 0;
}

/* Files of dtsim's other kinds. */
static int refuse_others(const struct node *root, struct error *err)
{
    static const struct file_kind others[] = {
        {"sweep", "a sweep ('dtsim sweep')"}, {"columns", "a paper ('dtsim validate')"},
        {"rows", "a table of collectives ('dtsim collective --table')"},
        {"peak", "a GPU's data sheet (cluster: {gpu: FILE})"},
    };

    return refuse_kinds(root, others, COUNT(others), err);
}

int scenario_load(const char *path, const char *const *sets, size_t nsets, struct progress *progress,
                  struct scenario *scenario, struct error *err)
{
    struct node *root;
    struct cache *cache = xcalloc(1, sizeof *cache);
    struct arena arena = {.cache = cache, .progress = progress};
    const char *name = strcmp(path, "-") ? data_stem(&arena, path) : "stdin";
    int rc;

    memset(scenario, 0, sizeof *scenario);
    cache_init(cache, CACHE_BYTES);
    rc = scenario_tree(&arena, path, &root, err) || refuse_others(root, err) ? -1 : 0;
    if (!rc && !(rc = scenario_read(&arena, root, sets, nsets, name, scenario, err)))
        scenario->name = changed_name(scenario, sets, nsets);
    scenario->own = cache;
    arena_release(&arena);
    return rc;
}

int scenario_vary(const struct scenario *scenario, const char *const *sets, size_t nsets, struct scenario *varied,
                  struct error *err)
{
    struct arena arena = {.cache = scenario->arena.cache, .progress = scenario->progress};
    struct node *root = ARENA_ARRAY(&arena, struct node, 1);

    *root = *scenario->node;
    return scenario_read(&arena, root, sets, nsets, scenario->name, varied, err);
}

const struct scenario *scenario_with_memory(struct arena *arena, const struct scenario *scenario, const char *recompute,
                                            const char *offload)
{
    struct scenario *own = ARENA_ARRAY(arena, struct scenario, 1), varied = {0};
    const char *sets[2];
    size_t count = 0;
    struct error none = {0};
    int rc;

    if (recompute)
        sets[count++] = arena_printf(arena, "memory.recompute=%s", recompute);
    if (offload)
        sets[count++] = arena_printf(arena, "memory.offload=%s", offload);
    if (!count)
        return scenario;
    rc = scenario_vary(scenario, sets, count, &varied, &none);
    *own = *scenario;
    own->memory = varied.memory;
    own->parallelism = varied.parallelism;
    own->costs = varied.costs;
    own->software = varied.software;
    own->model = varied.model;
    own->recipe = varied.recipe;
    own->plan = varied.plan;
    own->memory.node = scenario->memory.node;
    own->memory.other_recompute = recompute;
    own->memory.stays = offload;
    arena_join(arena, &varied.arena);
    error_release(&none);
    return rc ? NULL : own;
}
