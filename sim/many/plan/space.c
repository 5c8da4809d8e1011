#include "plan/space_internal.h"
#include "plan/space_states.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "files/data.h"
#include "run/automatic_axis.h"
#include "run/facts.h"
#include "scenario/scenario.h"
#include "scenario/search.h"
#include "sweep/axis.h"
#include "sweep/points.h"
#include "sweep/sweep.h"

static bool says(const struct builder *builder, const char *path)
{
    return node_at(builder->root, path) != NULL;
}

/* The values of an axis, and why these; `named`: a person asks for it. NULL: a software file cannot be read. */
static struct node *values_of(struct builder *builder, const struct automatic *automatic, bool named, const char **why)
{
    const char *title = NULL;
    int mistakes = builder->err->count;
    struct node *values = automatic->framework ? framework_values(builder, automatic->path, &title) : NULL;

    if (builder->err->count > mistakes)
        return NULL;
    *why = values ? arena_printf(builder->arena, "what %s has; list others by name", title ? title : "one of the frameworks") :
           named && automatic->asked ? automatic->asked_why : automatic->why;
    if (!values)
        values = variants_values(builder, automatic, named);
    values->loc = builder->root->loc;
    return values;
}

static int add_automatic(struct builder *builder, const struct automatic *automatic, bool named)
{
    const char *why;
    struct node *values = values_of(builder, automatic, named, &why);

    if (values && (named || automatic->usual || values->count > 1))
        add_axis(builder, automatic->path, values, why);
    return values ? 0 : -1;
}

/* Keeps what is not searched. */
static int find_held(struct builder *builder, struct space *space)
{
    const struct automatic *automatic;
    const char *why;

    for (size_t i = 0; (automatic = automatic_at(i)); i++)
        space->nheld++;
    space->held = ARENA_ARRAY(builder->arena, struct space_held, space->nheld);
    space->nheld = 0;
    for (size_t i = 0; (automatic = automatic_at(i)); i++) {
        struct space_held *held = &space->held[space->nheld];

        if (has_axis(builder, automatic->path) || axes_change(builder, automatic->path) ||
            (automatic->experts && builder->facts->experts <= 1))
            continue;
        *held = (struct space_held){.path = automatic->path, .values = values_of(builder, automatic, false, &why)};
        if (!held->values)
            return -1;
        space->nheld++;
    }
    return 0;
}

bool space_holds(const struct space_held *held)
{
    for (size_t i = 0; i < held->values->count && held->found.count; i++) {
        size_t at = 0;

        while (at < held->found.count && strcmp(held->found.items[at], held->values->items[i]->text))
            at++;
        if (at == held->found.count)
            return true;
    }
    return false;
}

/* An axis with the values that a person gives: auto, one value or a list. */
static int add_asked(struct builder *builder, const char *path, struct node *values, struct loc loc)
{
    const struct automatic *automatic = automatic_of(path);
    bool is_auto = values->kind == NODE_SCALAR && !values->quoted && !strcmp(values->text, "auto");
    struct node *one;

    if (axis_name_check("plan", path, loc, builder->err))
        return -1;
    if (is_auto && automatic)
        return add_automatic(builder, automatic, true);
    if (is_auto && !word_in("strategy.all_reduce strategy.split strategy.stages_on batch.shares", path))
        return error_add(builder->err, EXIT_USAGE, loc, "'%s' has no auto; 'dtsim help plan' lists the axes that have "
                         "one; expected values such as %s=1,2", path, path);
    if (values->kind == NODE_SEQUENCE && !values->count)
        return error_add(builder->err, EXIT_INPUT, loc, "plan: %s: found an empty list; expected values%s", path,
                         automatic ? ", or auto" : "");
    if (values->kind == NODE_SCALAR) {
        one = node_sequence(builder->arena);
        one->loc = values->loc;
        node_append(builder->arena, one, values);
        values = one;
    }
    add_axis(builder, path, values, NULL);
    builder->grid->key_locs[builder->grid->count - 1] = loc;
    return 0;
}

/* Keeps an axis that a person names. Where numbers of GPUs are asked for, a cluster that is named is the platform of so
 * many nodes as make them. */
static void name_axis(struct builder *builder, const char *path, struct node *values, struct loc loc)
{
    const struct node *cluster = node_get(builder->root, "cluster");
    bool words = !strcmp(path, "cluster") && builder->gpus;

    for (size_t i = 0; words && i < values->count; i++)
        words = values->items[i]->kind == NODE_SCALAR;
    for (size_t i = 0; words && cluster && i < cluster->count; i++)
        words = word_in("platform nodes", cluster->keys[i]);
    *GROW(&builder->named) = (struct named_axis){words ? "cluster.platform" : path, values, loc};
}

/* "PATH=auto" or "PATH=V1,V2". */
static int read_set(struct builder *builder, const char *set)
{
    const char *equals = strchr(set, '=');
    struct loc loc = conf_set_place(builder->arena, set);
    struct node *root = node_mapping(builder->arena), *values;
    const char *path;

    if (!equals || equals == set)
        return error_add(builder->err, EXIT_USAGE, loc, "expected PATH=auto or PATH=VALUES such as "
                         "strategy.tensor=1,2,4");
    path = arena_strndup(builder->arena, set, (size_t)(equals - set));
    if (!strcmp(equals + 1, "auto")) {
        values = node_scalar(builder->arena, "auto", false);
    } else {
        if (conf_set(builder->arena, root, arena_printf(builder->arena, "%s=[%s]", path, equals + 1), builder->err))
            return -1;
        values = node_at(root, path);
    }
    values->loc = loc;
    if (named_axis(builder, path))
        return error_add(builder->err, EXIT_USAGE, loc, "'%s' is given twice; expected all of its values in one --set", path);
    name_axis(builder, path, values, loc);
    return 0;
}

/* Words separated by commas, as a list at that place. */
static struct node *list_of(struct arena *arena, const char *text, const char *place)
{
    struct node *list = node_sequence(arena);
    char *rest = arena_strdup(arena, text);

    list->loc = (struct loc){.file = place};
    for (char *word; (word = strsep(&rest, ","));) {
        struct node *item = node_scalar(arena, word, false);

        item->loc = list->loc;
        node_append(arena, list, item);
    }
    return list;
}

/* The axes that a person names: by options or, where these do not say the path, under `plan`. */
static int read_named(struct builder *builder)
{
    const struct plan_question *question = builder->question;
    const struct node *axes = builder->asked->axes;
    int rc = 0;

    builder->gpus = question->gpus ? list_of(builder->arena, question->gpus, "--gpus") : builder->asked->gpus.node;
    for (size_t i = 0; i < question->nsets; i++)
        rc = read_set(builder, question->sets[i]) ? -1 : rc;
    for (size_t i = 0; axes && i < axes->count; i++)
        if (!named_axis(builder, axes->keys[i]))
            name_axis(builder, axes->keys[i], axes->items[i], axes->key_locs[i]);
    if (!rc && question->gpus && named_axis(builder, "cluster.nodes"))
        rc = error_add(builder->err, EXIT_USAGE, (struct loc){.file = "--gpus"}, "numbers of GPUs are numbers of nodes, which "
                       "'cluster.nodes' gives too; expected one of the two");
    return rc;
}

/* The axes that a person names; where none of them is a choice, also the usual axes that the scenario does not set. */
static int add_axes(struct builder *builder)
{
    const struct automatic *automatic;
    int rc = 0;

    if (builder->gpus && add_gpus(builder, builder->gpus))
        return -1;
    for (size_t i = 0; i < builder->named.count; i++)
        if (add_asked(builder, builder->named.items[i].path, builder->named.items[i].values, builder->named.items[i].loc))
            rc = -1;
    if (rc)
        return -1;
    for (size_t i = 0; !names_search(builder) && (automatic = automatic_at(i)); i++) {
        bool of_any_model = word_in("strategy.tensor strategy.pipeline strategy.schedule batch.micro", automatic->path);
        struct node *values;
        int searches = framework_searches(builder, automatic, &values);

        if (searches < 0)
            return -1;
        if (searches && (strcmp(automatic->path, "strategy.chunks") || has_axis(builder, "strategy.schedule")) &&
            !says(builder, automatic->path) &&
            !has_axis(builder, automatic->path) && !axes_change(builder, automatic->path) &&
            (builder->facts->transformer || of_any_model) &&
            (builder->facts->experts > 1 || !automatic->experts)) {
            if (values)
                add_axis(builder, automatic->path, values, "what 'dtsim emit' can write of it; list others by name");
            else if (add_automatic(builder, automatic, false))
                return -1;
        }
    }
    if (has_axis(builder, "strategy.schedule") && !has_axis(builder, "strategy.chunks") &&
        !says(builder, "strategy.chunks"))
        return add_automatic(builder, automatic_of("strategy.chunks"), false);
    return 0;
}

/* Refuses 'auto' where the scenario itself has the value. */
static int refuse_auto(const struct builder *builder)
{
    const struct automatic *automatic;
    int rc = 0;

    for (size_t i = 0; (automatic = automatic_at(i)); i++) {
        const struct node *said = node_at(builder->root, automatic->path);

        if (said && said->kind == NODE_SCALAR && !strcmp(said->text, "auto"))
            rc = error_add(builder->err, EXIT_INPUT, said->loc, "plan: %s: a scenario's own value cannot be auto; "
                           "expected 'plan: {%s: auto}'", automatic->path, automatic->path);
    }
    return rc;
}

/* Whether the scenario says one of the keys, or an axis does. */
static bool is_among(const struct builder *builder, const char *const *paths, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (says(builder, paths[i]) || has_axis(builder, paths[i]))
            return true;
    return false;
}

static bool trains(const struct builder *builder)
{
    static const char *const amounts[] = {"train.tokens", "train.samples", "train.steps", "train.per_parameter", "train.target",
                                          "train.phases"};

    return is_among(builder, amounts, COUNT(amounts));
}

/* A training whose steps differ, or that goes on with fewer nodes. */
static const char *const unsteady[] = {"train.phases", "train.batch", "train.target", "train.elastic", "train.failures.trace"};

/* Whether candidates may take other numbers of steps: by an axis of the batch, of the model or of the training. */
static bool axes_of_steps(const struct builder *builder)
{
    static const char *const parts[] = {"batch.global", "batch.micro_batches", "model", "train"};

    for (size_t i = 0; i < builder->axes.count; i++)
        for (size_t k = 0; k < COUNT(parts); k++)
            if (!strncmp(builder->axes.items[i].path, parts[k], strlen(parts[k])))
                return true;
    return false;
}

/* What is looked for. */
static int read_goal(struct builder *builder, struct goal *goal)
{
    const struct plan_question *question = builder->question;
    const struct node *objective = builder->asked->objective.node, *limits = builder->asked->subject_to.node;
    struct goal_needs needs = {.priced = says(builder, "price") || has_axis(builder, "price"), .trained = trains(builder),
                               .steady = !is_among(builder, unsteady, COUNT(unsteady)),
                               .same_steps = says(builder, "batch.global") && !axes_of_steps(builder)};
    bool powered = says(builder, "train.energy.gpu") || has_axis(builder, "train.energy.gpu") ||
                   axes_change(builder, "train.energy.gpu");
    struct node *said;

    if (question->objective)
        objective = list_of(builder->arena, question->objective, "--objective");
    if (question->limits) {
        if (goal_limits(builder->arena, question->limits, &said, builder->err))
            return -1;
        limits = said;
    }
    for (size_t v = 0; v < builder->variants.count && !powered; v++)
        needs.powerless = needs.powerless ? needs.powerless : builder->variants.items[v].facts.powerless;
    if (goal_read(objective, limits, needs, goal, builder->err))
        return -1;
    for (size_t i = 0; i < goal->nobjectives && !has_axis(builder, "cluster.nodes"); i++)
        if (!strcmp(goal->objectives[i].name, "gpus"))
            add_all_gpus(builder);
    return 0;
}

/* Makes the axes and rules, and the section of a sweep that says them. *root may get a software. */
static int build(struct space *space, struct node **root, const struct plan_question *question, struct node **section,
                 struct error *err)
{
    struct arena *arena = &space->sweep.arena;
    struct builder builder = {.arena = arena, .root = *root, .question = question, .grid = node_mapping(arena),
                              .where = node_sequence(arena), .asked = &space->asked, .err = err};
    int rc = refuse_auto(&builder) || read_named(&builder) ? -1 : 0;

    builder.grid->loc = builder.where->loc = (*root)->loc;
    if (!rc)
        *root = builder.root = space_without_data(arena, space_with_software(space, &builder));
    rc = rc || find_variants(&builder) || add_axes(&builder) || read_goal(&builder, &space->goal) ? -1 : 0;
    if (!rc && !builder.facts->nodes && !has_axis(&builder, "cluster.nodes") && !node_at(*root, "strategy.data"))
        rc = error_add(err, EXIT_USAGE, (struct loc){0}, "plan: how many GPUs? The cluster does not say 'nodes'; "
                       "expected --gpus, such as --gpus %d,%d", 8 * builder.facts->per_node, 16 * builder.facts->per_node);
    rc = rc || add_rules(&builder) || find_held(&builder, space) ? -1 : 0;
    *section = node_mapping(arena);
    (*section)->loc = (*root)->loc;
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
    free(builder.named.items);
    free(builder.variants.items);
    return rc;
}

int space_load(const struct plan_question *question, struct space *space, struct error *err)
{
    struct sweep *sweep = &space->sweep;
    struct node *root, *section;
    int rc;

    memset(space, 0, sizeof *space);
    if (scenario_tree(&sweep->arena, question->path, &root, err))
        return -1;
    if (node_get(root, "base") || node_get(root, "sweep"))
        return error_add(err, EXIT_INPUT, root->loc, "this is a sweep; expected a scenario, whose axes --set names "
                         "('dtsim help plan')");
    if (node_get(root, "plan")) {
        if (search_load(&sweep->arena, node_get(root, "plan"), &space->asked, err))
            return -1;
        root = space_without(&sweep->arena, root, "plan");
    } else {
        space->asked = (struct search_spec){.top = -1, .verify = -1, .time_limit = NAN};
    }
    sweep->file = question->path;
    sweep->stem = sweep->name = strcmp(question->path, "-") ? data_stem(&sweep->arena, question->path) : "stdin";
    sweep->base = sweep->points.base = root;
    if (search_is_planner(space->asked.method))
        return 0;
    rc = build(space, &root, question, &section, err);
    sweep->base = sweep->points.base = root;
    if (rc || points_read(&sweep->arena, section, NULL, root, sweep->name, &sweep->points, err))
        return -1;
    ask_rules(space, &sweep->points);
    ask_states(space, &sweep->points);
    rc = points_select(&sweep->points, SPACE_MOST, &space->selection, err);
    if (rc || space->selection.count || !states_spare(space))
        return rc;
    selection_release(&space->selection);
    return points_select(&sweep->points, SPACE_MOST, &space->selection, err);
}

bool space_asks_largest(const struct space *space)
{
    const char *searched = "";

    for (size_t i = 0; i < space->naxes; i++)
        if (space->axes[i].several)
            searched = *searched ? "several" : space->axes[i].path;
    return !strcmp(searched, "batch.micro");
}

void space_release(struct space *space)
{
    for (size_t i = 0; i < space->nheld; i++)
        free(space->held[i].found.items);
    selection_release(&space->selection);
    states_release(space);
    sweep_release(&space->sweep);
    memset(space, 0, sizeof *space);
}
