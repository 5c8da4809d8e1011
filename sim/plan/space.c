#include "plan/space_internal.h"

#include <stdlib.h>
#include <string.h>

#include "files/data.h"
#include "scenario/scenario.h"

static bool says(const struct builder *builder, const char *path)
{
    return node_at(builder->facts->root, path) != NULL;
}

static void add_axis(struct builder *builder, const char *path, struct node *values, const char *why)
{
    node_put(builder->arena, builder->grid, path, values);
    *GROW(&builder->axes) = (struct space_axis){path, node_flow(builder->arena, values), why};
}

static void add_automatic(struct builder *builder, const struct automatic *automatic)
{
    struct node *values = node_sequence(builder->arena);

    values->loc = builder->facts->root->loc;
    if (automatic->values) {
        struct numbers numbers = automatic->values(builder->facts);

        for (int i = 0; i < numbers.count; i++)
            node_append(builder->arena, values,
                        node_scalar(builder->arena, arena_printf(builder->arena, "%d", numbers.items[i]), false));
    } else {
        char *rest = arena_strdup(builder->arena, automatic->words);

        for (char *word; (word = strsep(&rest, " "));)
            node_append(builder->arena, values, node_scalar(builder->arena, word, false));
    }
    add_axis(builder, automatic->path, values, automatic->why);
}

/* "PATH=auto" or "PATH=V1,V2". */
static int add_set(struct builder *builder, const char *set)
{
    const char *equals = strchr(set, '=');
    struct loc loc = {.file = arena_printf(builder->arena, "--set %s", set)};
    struct node *root = node_mapping(builder->arena), *values;
    const struct automatic *automatic;
    const char *path;

    if (!equals || equals == set)
        return error_add(builder->err, EXIT_USAGE, loc, "expected PATH=auto or PATH=VALUES such as "
                         "strategy.tensor=1,2,4");
    path = arena_strndup(builder->arena, set, (size_t)(equals - set));
    automatic = automatic_of(path);
    if (strcmp(equals + 1, "auto") == 0 && automatic) {
        add_automatic(builder, automatic);
        return 0;
    }
    if (strcmp(equals + 1, "auto") == 0 && !word_in("strategy.all_reduce strategy.split", path))
        return error_add(builder->err, EXIT_USAGE, loc, "'%s' has no auto; 'dtsim help plan' lists the axes that have "
                         "one; expected values such as %s=1,2", path, path);
    if (conf_set(builder->arena, root, arena_printf(builder->arena, "%s=[%s]", path, equals + 1), builder->err))
        return -1;
    values = node_at(root, path);
    values->loc = loc;
    add_axis(builder, path, values, NULL);
    return 0;
}

/* Numbers of GPUs as numbers of nodes. */
static int add_gpus(struct builder *builder)
{
    int per_node = builder->facts->per_node;
    char *rest = arena_strdup(builder->arena, builder->question->gpus);
    struct node *nodes = node_sequence(builder->arena);

    nodes->loc = (struct loc){.file = "--gpus"};
    for (char *text; (text = strsep(&rest, ","));) {
        char *end;
        long gpus = strtol(text, &end, 10);

        if (end == text || *end || gpus < 1 || gpus > 1000000)
            return error_add(builder->err, EXIT_USAGE, nodes->loc, "expected numbers of GPUs such as 64,128, found "
                             "'%s'", builder->question->gpus);
        if (gpus % per_node)
            return error_add(builder->err, EXIT_USAGE, nodes->loc, "%ld GPUs are no whole nodes of %d; expected a "
                             "multiple of %d", gpus, per_node, per_node);
        node_append(builder->arena, nodes, node_scalar(builder->arena, arena_printf(builder->arena, "%ld",
                                                                                   gpus / per_node), false));
    }
    add_axis(builder, "cluster.nodes", nodes, NULL);
    return 0;
}

/* The axes: those that a person names; where none is named, the usual ones that the scenario does not say. */
static int add_axes(struct builder *builder)
{
    const struct plan_question *question = builder->question;
    const struct automatic *automatic;

    if (question->gpus && add_gpus(builder))
        return -1;
    for (size_t i = 0; i < question->nsets; i++)
        if (add_set(builder, question->sets[i]))
            return -1;
    for (size_t i = 0; !question->nsets && (automatic = automatic_at(i)); i++) {
        bool of_transformer = strcmp(automatic->path, "memory.recompute") == 0;

        if (automatic->usual && !says(builder, automatic->path) && (builder->facts->transformer || !of_transformer))
            add_automatic(builder, automatic);
    }
    if (has_axis(builder, "strategy.schedule") && !has_axis(builder, "strategy.chunks") &&
        !says(builder, "strategy.chunks"))
        add_automatic(builder, automatic_of("strategy.chunks"));
    return 0;
}

/* What the rules need to know, from the parts of the scenario that need no degrees. */
static int find_facts(struct arena *arena, const struct node *root, struct facts *facts, struct error *err)
{
    const struct node *model_node = node_get(root, "model"), *cluster_node = node_get(root, "cluster");
    const struct node *batch = node_at(root, "batch.global");
    struct model model;
    struct cluster cluster;

    *facts = (struct facts){.root = root, .layers = 1, .heads = 1, .kv_heads = 1, .experts = 1};
    if (!model_node || !cluster_node)
        return error_add(err, EXIT_INPUT, root->loc, "plan: expected a scenario with 'model' and 'cluster'");
    if (model_load(arena, model_node, &model, err) || cluster_load(arena, cluster_node, &cluster, err))
        return -1;
    if (model.transformer) {
        facts->transformer = true;
        facts->layers = model.transformer->layers;
        facts->heads = model.transformer->heads;
        facts->kv_heads = model.transformer->kv_heads ? model.transformer->kv_heads : facts->heads;
        facts->experts = model.transformer->experts ? model.transformer->experts : 1;
    } else if (model.layers.count) {
        facts->layers = (int)model.layers.count;
    }
    facts->per_node = cluster_gpus(&cluster) / (cluster.nodes ? cluster.nodes : 1);
    if (!cluster.nodes) {
        cluster_size(&cluster, 1);
        facts->per_node = cluster_gpus(&cluster);
    } else {
        facts->nodes = cluster.nodes;
    }
    facts->batch = batch && batch->text ? atoi(batch->text) : 0;
    return 0;
}

static int build(struct space *space, const struct node *root, const struct plan_question *question,
                 struct node **section, struct error *err)
{
    struct arena *arena = &space->sweep.arena;
    struct facts facts;
    struct builder builder = {.arena = arena, .facts = &facts, .question = question, .grid = node_mapping(arena),
                              .where = node_sequence(arena), .err = err};
    int rc = find_facts(arena, root, &facts, err);

    builder.grid->loc = builder.where->loc = root->loc;
    if (!rc && !facts.nodes && !question->gpus && !node_at(root, "strategy.data"))
        rc = error_add(err, EXIT_USAGE, (struct loc){0}, "plan: how many GPUs? The cluster does not say 'nodes'; "
                       "expected --gpus, such as --gpus %d,%d", 8 * facts.per_node, 16 * facts.per_node);
    rc = rc || add_axes(&builder) ? -1 : 0;
    if (!rc)
        add_rules(&builder);
    *section = node_mapping(arena);
    (*section)->loc = root->loc;
    if (builder.grid->count)
        node_put(arena, *section, "grid", builder.grid);
    if (builder.where->count)
        node_put(arena, *section, "where", builder.where);
    space->axes = ARENA_ARRAY(arena, struct space_axis, builder.axes.count + 1);
    space->rules = ARENA_ARRAY(arena, struct space_rule, builder.rules.count + 1);
    space->naxes = builder.axes.count;
    space->nrules = builder.rules.count;
    for (size_t i = 0; i < space->naxes; i++)
        space->axes[i] = builder.axes.items[i];
    for (size_t i = 0; i < space->nrules; i++)
        space->rules[i] = builder.rules.items[i];
    free(builder.axes.items);
    free(builder.rules.items);
    return rc;
}

int space_load(const struct plan_question *question, struct space *space, struct error *err)
{
    struct sweep *sweep = &space->sweep;
    struct node *root, *section;

    memset(space, 0, sizeof *space);
    if (conf_load(&sweep->arena, question->path, &root, err))
        return -1;
    if (node_get(root, "base") || node_get(root, "sweep"))
        return error_add(err, EXIT_INPUT, root->loc, "this is a sweep; expected a scenario, whose axes --set names "
                         "('dtsim help plan')");
    sweep->file = question->path;
    sweep->stem = sweep->name = strcmp(question->path, "-") ? data_stem(&sweep->arena, question->path) : "stdin";
    sweep->base = root;
    if (build(space, root, question, &section, err) ||
        points_read(&sweep->arena, section, NULL, root, sweep->name, &sweep->points, err))
        return -1;
    return points_select(&sweep->points, SPACE_MOST, &space->selection, err);
}

void space_release(struct space *space)
{
    selection_release(&space->selection);
    sweep_release(&space->sweep);
    memset(space, 0, sizeof *space);
}
