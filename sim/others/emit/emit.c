/* emit: writes a draft, reads it back, adds the switches that are missing, and compares. */
#include "emit/emit_rows.h"

#include "auto/auto.h"
#include "base/text.h"

#include <stdlib.h>

#include "config/conf.h"
#include "hardware/cluster.h"
#include "launch/dialect.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "workload/workload.h"

/* A draft in memory, which the caller frees. */
static char *draft(const struct framework *framework, struct emit *e, size_t *length)
{
    char *text = NULL;

    e->out = open_memstream(&text, length);
    BUG_IF(!e->out);
    framework->write(e);
    fclose(e->out);
    return text;
}

/* What a draft says, with every default, on the scenario's own cluster; NULL after an error. `again` holds its texts.
 */
static const struct node *read_back(const struct framework *framework, struct emit *e, const char *text, size_t length,
                                    struct scenario *again, struct error *err)
{
    /* what no launch says */
    static const char *const kept[] = {
        "cluster",          "costs",          "simulation",         "memory.enforce",
        "memory.limit",     "memory.context", "memory.activations", "strategy.all_reduce",
        "strategy.channels"};
    const struct launch_set sets[] = {{"nnodes", "1"},
                                     {"nproc_per_node", arena_printf(e->arena, "%d", scenario_gpus(e->scenario))}};
    struct import_options options = {.sets = sets, .nsets = COUNT(sets)};
    const struct node *dump = NULL;
    char *said = NULL;
    size_t size;
    FILE *notes = open_memstream(&said, &size);
    const char *comment;
    const struct job_text job = {"what is written", text, length, &options, framework->beside ? node_get(e->tree, "model") : NULL,
                                 e->dialect->name};
    struct node *root = framework->read(e->arena, &job, &comment, notes, err);

    fclose(notes);
    free(said);
    for (size_t i = 0; root && i < COUNT(kept); i++) {
        struct node *own = node_at(e->scenario->node, kept[i]);

        if (own && conf_put(e->arena, root, kept[i], own, own->loc, err))
            return NULL;
    }
    /* a launch does not say its release, whose defaults are those of the software */
    if (root && e->own && conf_put(e->arena, root, "software.like", node_scalar(e->arena, e->scenario->software.like, false),
                                   e->scenario->node->loc, err))
        return NULL;
    if (root) {
        struct arena arena = {.cache = e->arena->cache};

        if (!scenario_read(&arena, root, NULL, 0, e->scenario->name, again, err))
            dump = scenario_dump(e->arena, again);
    }
    return dump;
}

static const char *shown(const struct emit *e, const struct node *value)
{
    return !value ? "nothing" : value->text ? value->text : node_flow(e->arena, value);
}

/* A key that both do not say alike: an error where the scenario, or its model, decides it, else a line of the notes. */
static bool is_error(const struct emit *e, const char *part, const char *key, const struct node *ours)
{
    bool said = node_get(node_at(e->scenario->node, part), key) != NULL;

    if (!strcmp(part, "software"))
        return e->own && said;
    return said || !strcmp(part, "model.transformer") || !ours || !ours->loc.file;
}

/* The value of a key; where it is left out, of the key that it is then as. */
static const struct node *value_of(const struct node *part, const char *key)
{
    static const char *const as[][2] = {
        {"kv_heads", "heads"}, {"embedding_size", "hidden"}, {"projection_bias", "bias"}, {"attention_dropout", "dropout"},
        {"expert_ffn", "ffn"},
    };
    const struct node *value = node_get(part, key);

    for (size_t i = 0; i < COUNT(as) && !value; i++)
        value = strcmp(as[i][0], key) ? NULL : node_get(part, as[i][1]);
    return value;
}

/* The keys of a part that both do not say alike. Keys that are there alone because of another one (a schedule's own)
 * count only where nothing else was found. */
static void compare(const struct framework *framework, struct emit *e, const char *part, const struct node *got,
                    bool follow, FILE *notes, struct error *err)
{
    const struct node *wanted = node_at(e->tree, part), *theirs = node_at(got, part);
    const char *list = "";
    size_t count = wanted ? wanted->count : 0;

    for (size_t i = 0; i < count + (theirs ? theirs->count : 0); i++) {
        const char *key = i < count ? wanted->keys[i] : theirs->keys[i - count];
        const struct node *ours = value_of(wanted, key), *other = value_of(theirs, key);
        bool following = (!node_get(wanted, key) || !node_get(theirs, key)) && !node_get(node_at(e->scenario->node, part), key);

        if ((ours && other && node_equal(ours, other)) || !strcmp(key, "like") || (i >= count && node_get(wanted, key)) ||
            (e->scenario->parallelism.context == 1 && !strcmp(key, "context_attention")))
            continue;
        if (!is_error(e, part, key, ours))
            list = arena_printf(e->arena, "%s%s%s %s (the scenario: %s)", list, *list ? ", " : "", key, shown(e, other),
                                shown(e, ours));
        else if (follow == following)
            error_add(err, EXIT_INFEASIBLE,
                      ours && ours->loc.file ? ours->loc : (struct loc){.file = e->scenario->name},
                      "%s.%s: %s cannot be told to %s, which would have %s", part, key, shown(e, ours),
                      framework->title, shown(e, other));
    }
    if (*list && !follow)
        text_wrap(arena_printf(e->arena, "note: %s will have %s", framework->title, list), 0, 2, text_width(notes, 100),
                  notes);
}

/* The parts of a scenario that a launch says: the shape of the network, and how it is trained. */
static void compare_all(const struct framework *framework, struct emit *e, const struct node *got, FILE *notes,
                        struct error *err)
{
    static const char *const parts[] = {"model.transformer", "batch", "strategy", "memory", "software"};

    int before = err->count;

    for (int follow = 0; follow < 2 && err->count == before; follow++)
        for (size_t i = 0; i < COUNT(parts); i++)
            compare(framework, e, parts[i], got, follow, notes, err);
}

/* Whether nobody says how many layers each stage has, and the stages cannot have as many each. */
static bool is_uneven(const struct scenario *scenario)
{
    const struct transformer *shape = scenario->model.transformer;

    return shape && !scenario->parallelism.split.node &&
           (shape->mtp > 0 || shape->layers % plan_virtual_stages(&scenario->plan));
}

/* Frameworks have no split: auto, and some no uneven stages of their own: they are told the layers of each stage. */
static int auto_split(const struct framework *framework, struct arena *arena, const struct scenario *scenario,
                      struct node *tree, struct error *err)
{
    struct node *layers = node_sequence(arena);
    struct workload workload = {0};
    int rc = 0;

    if (!list_is_auto(&scenario->parallelism.split) && !(framework->even && is_uneven(scenario)))
        return 0;
    rc = workload_init(&workload, scenario, err);
    for (int s = 0; !rc && s < plan_virtual_stages(&workload.plan); s++)
        node_append(arena, layers, node_scalar(arena, arena_printf(arena, "%d", workload.stages[s].layers), false));
    workload_release(&workload);
    layers->loc = scenario->parallelism.split.node ? scenario->parallelism.split.node->loc : scenario->node->loc;
    return rc || conf_put(arena, tree, "strategy.split", layers, layers->loc, err) ? -1 : 0;
}

/* What no framework can be told. */
static int refuse(const struct framework *framework, const struct scenario *scenario, const struct node *tree,
                  struct error *err)
{
    const struct cluster *cluster = &scenario->cluster;

    if (!node_at(tree, "model.transformer"))
        return error_add(err, EXIT_INFEASIBLE, (struct loc){.file = scenario->name}, "its model is no transformer; %s trains "
                         "transformers", framework->title);
    for (int node = 1; node < cluster->nodes; node++)
        if (cluster_node_gpus(cluster, node) != cluster_node_gpus(cluster, 0))
            return error_add(err, EXIT_INFEASIBLE, node_loc(scenario->node, "cluster"), "its nodes have %d and %d GPUs; %s "
                             "is launched with as many processes on each", cluster_node_gpus(cluster, 0),
                             cluster_node_gpus(cluster, node), framework->title);
    if (scenario->views)
        return error_add(err, EXIT_INFEASIBLE, scenario->parallelism.stages.node->loc, "strategy: stages: its pipeline ranks "
                         "have unequal degrees; %s has the same for all", framework->title);
    return 0;
}

int emit_checked(const struct framework *framework, const struct scenario *scenario, FILE *out, FILE *notes,
                 struct error *err)
{
    struct arena arena = {.cache = scenario->arena.cache};
    struct node *tree = scenario_dump(&arena, scenario);
    struct emit e = {.arena = &arena, .scenario = scenario, .tree = tree};
    int before = err->count;
    struct scenario first = {0}, second = {0};
    size_t length;
    char *text;

    e.dialect = dialect_load(&arena, framework->dialect, err);
    e.own = e.dialect && scenario->software.like && !scenario->software.assumed &&
            dialect_is_release(e.dialect, scenario->software.like);
    if (e.own)
        e.release = dialect_releases(e.dialect, scenario->software.like);
    if (!e.dialect || refuse(framework, scenario, tree, err) || auto_split(framework, &arena, scenario, tree, err) ||
        (framework->fit && framework->fit(&e, tree, err)) || (emit_refuse(&e, framework, err), err->count > before)) {
        arena_release(&arena);
        return -1;
    }
    text = draft(framework, &e, &length);
    e.base = read_back(framework, &e, text, length, &first, err);
    free(text);
    if (e.base && err->count == before) {
        const struct node *got;
        char *remarks = NULL;
        size_t size;
        FILE *buffer = open_memstream(&remarks, &size);

        BUG_IF(!buffer);
        text = draft(framework, &e, &length);
        got = read_back(framework, &e, text, length, &second, err);
        if (got)
            compare_all(framework, &e, got, buffer, err);
        fclose(buffer);
        if (err->count == before) {
            fwrite(text, 1, length, out);
            fwrite(remarks, 1, size, notes);
            if (e.remark)
                fprintf(notes, "%s\n", e.remark);
        }
        free(remarks);
        free(text);
    }
    scenario_release(&first);
    scenario_release(&second);
    arena_release(&arena);
    return err->count == before ? 0 : -1;
}
