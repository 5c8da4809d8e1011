/* The rules of a space: those that a scenario is asked when it is loaded, and what the software's release cannot run, asked of
 * points before they are loaded. What neither the axes nor the scenario tell is open; a rule that depends on it is undecided
 * and drops nothing. A rule is here because asking it is faster than loading. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "expression/expression.h"
#include "expression/rule.h"
#include "plan/space_internal.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "software/software.h"
#include "sweep/paths.h"
#include "sweep/points.h"

/* Where a value comes from: an axis by its number, or, where that is -1, the scenario; none: it is open. */
struct source {
    int axis;
    struct value value;
};
static const struct value open = {.kind = VALUE_NONE};

/* What facts and settled keys follow from in a point. */
struct ground {
    struct source tensor, pipeline, context, data, schedule, data_parallel, micro, global, micro_batches, nodes;
    struct value gpus, per_node;             /* all of them, where no axis says the nodes; of a node where one does */
    struct value transformer, layers, experts;
};

static struct value value_in(const struct source *source, const struct moment *moment)
{
    struct value value = source->axis < 0 ? source->value : moment ? moment_axis(moment, (size_t)source->axis) : open;

    return value.kind <= VALUE_TEXT ? value : open;
}

/* NaN: it is open. */
static double number_in(const struct source *source, const struct moment *moment)
{
    struct value value = value_in(source, moment);

    return value.kind == VALUE_NUMBER ? value.number : NAN;
}

static struct value known(double number)
{
    return isnan(number) ? open : value_number(number);
}

static double number_of(struct value value)
{
    return value.kind == VALUE_NUMBER ? value.number : NAN;
}

static struct value gpus(const struct ground *g, const struct moment *m)
{
    return g->per_node.kind == VALUE_NONE ? g->gpus : known(number_in(&g->nodes, m) * g->per_node.number);
}

static struct value counted(const struct ground *g, const struct moment *m)
{
    (void)m;
    return value_boolean(g->data.axis >= 0 || g->data.value.kind == VALUE_NUMBER);
}

/* The replicas that remain of the cluster where nobody says them. */
static struct value data(const struct ground *g, const struct moment *m)
{
    double said = number_in(&g->data, m), replica = number_in(&g->tensor, m) * number_in(&g->pipeline, m) *
                  number_in(&g->context, m), all = number_of(gpus(g, m));

    return !isnan(said) ? value_number(said) : fmod(all, replica) == 0 ? value_number(all / replica) : open;
}

static struct value replicas(const struct ground *g, const struct moment *m)
{
    return known(number_of(data(g, m)) * number_in(&g->context, m));
}

static struct value step(const struct ground *g, const struct moment *m)
{
    return known(number_of(data(g, m)) * number_in(&g->micro, m));
}

static struct value micro_batched(const struct ground *g, const struct moment *m)
{
    (void)m;
    return value_boolean(g->micro_batches.axis >= 0 || g->micro_batches.value.kind == VALUE_NUMBER);
}

static struct value micro_batches(const struct ground *g, const struct moment *m)
{
    double said = number_in(&g->micro_batches, m), all = number_in(&g->global, m), one = number_of(step(g, m));

    return !isnan(said) ? value_number(said) : fmod(all, one) == 0 ? value_number(all / one) : open;
}

static struct value rooted(const struct ground *g, const struct moment *m)
{
    struct value form = value_in(&g->data_parallel, m);

    return form.kind == VALUE_TEXT ? value_boolean(word_in("parameter-server dataparallel", form.text)) : open;
}

static const struct schedule *schedule_in(const struct ground *g, const struct moment *m)
{
    struct value name = value_in(&g->schedule, m);

    for (size_t i = 0; name.kind == VALUE_TEXT && schedule_at(i); i++)
        if (!strcmp(schedule_at(i)->name, name.text))
            return schedule_at(i);
    return NULL;
}

static struct value fewest_chunks(const struct ground *g, const struct moment *m)
{
    const struct schedule *schedule = schedule_in(g, m);

    return !schedule ? open : value_number(schedule->min_chunks ? schedule->min_chunks : 1);
}

static struct value most_chunks(const struct ground *g, const struct moment *m)
{
    const struct schedule *schedule = schedule_in(g, m);

    return schedule && schedule->max_chunks ? value_number(schedule->max_chunks) : fewest_chunks(g, m);
}

static struct value asynchronous(const struct ground *g, const struct moment *m)
{
    return schedule_in(g, m) ? value_boolean(schedule_in(g, m)->asynchronous) : open;
}

static struct value with_gradient(const struct ground *g, const struct moment *m)
{
    return schedule_in(g, m) ? value_boolean(schedule_in(g, m)->recompute == RECOMPUTE_WITH_GRADIENT) : open;
}

static struct value schedule(const struct ground *g, const struct moment *m)
{
    return value_in(&g->schedule, m);
}

static struct value sized(const struct ground *g, const struct moment *m)
{
    return gpus(g, m).kind == VALUE_NUMBER ? value_boolean(true) : open;
}

static struct value transformer(const struct ground *g, const struct moment *m)
{
    (void)m;
    return g->transformer;
}

static struct value layers(const struct ground *g, const struct moment *m)
{
    (void)m;
    return g->layers;
}

static struct value experts(const struct ground *g, const struct moment *m)
{
    (void)m;
    return g->experts;
}

/* Facts (scenario_parts.c), and keys whose values follow where nobody says them. */
static const struct following {
    const char *name;
    struct value (*of)(const struct ground *g, const struct moment *m);
} followings[] = {
    {"gpus", gpus}, {"sized", sized}, {"counted", counted}, {"strategy.data", data}, {"replicas", replicas}, {"step", step},
    {"micro_batched", micro_batched}, {"batch.micro_batches", micro_batches}, {"rooted", rooted}, {"schedule", schedule},
    {"fewest_chunks", fewest_chunks}, {"most_chunks", most_chunks}, {"asynchronous", asynchronous},
    {"with_gradient", with_gradient}, {"transformer", transformer}, {"experts", experts},
    {"model.transformer.layers", layers},
};

/* A rule that is asked of points. */
struct asked_rule {
    const struct condition *condition;
    const struct ground *ground;
    struct asked_name { const struct following *derived; struct source source; } *names;     /* of the condition */
    int release;                 /* the axis of software, of which only one value has this rule; -1: all points have it */
    const char *name;
};

/* While it is asked: no point yet, then nothing of the axes is known. */
struct asking { const struct asked_rule *rule; const struct moment *moment; };

static int value_of(void *context, int number, struct value *value, struct error *err)
{
    const struct asking *asking = context;
    const struct asked_name *name = &asking->rule->names[number];

    (void)err;
    *value = name->derived ? name->derived->of(asking->rule->ground, asking->moment) :
             value_in(&name->source, asking->moment);
    return 0;
}

/* Whether it is broken, or undecided. An axis may have values of several kinds: such a point is undecided. */
static struct value ask(const struct asked_rule *rule, const struct moment *moment)
{
    struct error err = {0};
    struct value value;

    if (expression_holds(rule->condition->expression, value_of, &(struct asking){rule, moment}, &value, &err))
        value = open;
    error_release(&err);
    return value;
}

static bool drops(const void *of, const struct moment *moment)
{
    const struct asked_rule *rule = of;
    struct value value, name = rule->release < 0 ? open : moment_axis(moment, (size_t)rule->release);

    if (rule->release >= 0 && (name.kind != VALUE_TEXT || strcmp(name.text, rule->name)))
        return false;
    value = ask(rule, moment);
    return value.kind == VALUE_BOOLEAN && value.boolean;
}

static int axis_number(const struct builder *builder, const char *path)
{
    for (size_t i = 0; i < builder->grid->count; i++)
        if (!strcmp(builder->grid->keys[i], path))
            return (int)i;
    return -1;
}

/* Where the scenario says a key, or what it has where nobody does; `supplied`: software may say it then. */
static struct source source_of(const struct builder *builder, const char *path, const char *fallback, bool supplied)
{
    struct source source = {axis_number(builder, path), open};
    const struct node *said = node_at(builder->root, path);

    if (source.axis >= 0 || axes_change(builder, path))
        return source;
    if (!said && fallback && !supplied)
        said = node_scalar(builder->arena, fallback, false);
    if (said && said->kind == NODE_SCALAR)
        source.value = path_value(path, said);
    return source;
}

/* Whether pipeline ranks may have degrees of their own, or an order from a file or a list says how many there are. */
static bool has_own_degrees(const struct builder *builder)
{
    static const char *const paths[] = {"strategy.stages", "strategy.stage_replicas", "strategy.schedule.csv"};
    const struct node *schedules = node_get(builder->grid, "strategy.schedule");
    bool own = false;

    for (size_t i = 0; i < COUNT(paths); i++)
        own |= has_axis(builder, paths[i]) || node_at(builder->root, paths[i]) ||
               (axes_change(builder, paths[i]) && strcmp(paths[i], "strategy.schedule.csv"));
    for (size_t i = 0; schedules && i < schedules->count; i++)
        own |= schedules->items[i]->kind != NODE_SCALAR;
    return own;
}

/* The value of a key that nobody says is known where its default is, and loading does not settle it. */
static const char *fallback_of(const struct builder *builder, const struct condition_name *name)
{
    static const char settled[] = "strategy.chunks strategy.shard strategy.all_reduce strategy.dispatcher strategy.dispatch "
                                  "memory.precision memory.gradients strategy.schedule.csv";
    static const char degrees[] = "strategy.tensor strategy.pipeline strategy.context";
    bool own = word_in(degrees, name->path) && has_own_degrees(builder);
    bool plain = !strncmp(name->path, "strategy.", 9) || !strncmp(name->path, "memory.", 7) || !strncmp(name->path, "batch.", 6);

    return plain && !own && !word_in(settled, name->path) ? name->field->fallback : NULL;
}

static void find_ground(const struct builder *builder, struct ground *found)
{
    const struct facts *facts = builder->facts;
    bool own = has_own_degrees(builder), nodes = has_axis(builder, "cluster.nodes");

    *found = (struct ground){
        .tensor = source_of(builder, "strategy.tensor", "1", own), .pipeline = source_of(builder, "strategy.pipeline", "1", own),
        .context = source_of(builder, "strategy.context", "1", own), .data = source_of(builder, "strategy.data", NULL, true),
        .schedule = source_of(builder, "strategy.schedule", "1f1b", false),
        .data_parallel = source_of(builder, "strategy.data_parallel", NULL, true),
        .micro = source_of(builder, "batch.micro", "1", false), .global = source_of(builder, "batch.global", NULL, true),
        .micro_batches = source_of(builder, "batch.micro_batches", NULL, true),
        .nodes = source_of(builder, "cluster.nodes", NULL, true),
        .gpus = !builder->same_nodes || nodes ? open : facts->in_parts ? value_number(facts->in_parts) :
                builder->same_count && facts->nodes ? value_number(facts->nodes * facts->per_node) : open,
        .per_node = builder->same_nodes && nodes ? value_number(facts->per_node) : open,
        .transformer = builder->same_layers ? value_boolean(facts->transformer) : open,
        .layers = builder->same_layers && facts->transformer ? value_number(facts->layers) : open,
        .experts = builder->same_layers && facts->experts > 1 && builder->variants.count == 1 ? value_number(facts->experts) : open,
    };
    if (own)
        found->gpus = found->per_node = open;
}

static struct asked_name meaning_of(const struct builder *builder, const struct condition_name *name)
{
    const char *path = scenario_written(name, builder->arena);
    bool told = axis_number(builder, path) >= 0 || node_at(builder->root, path), changed = axes_change(builder, path);
    struct asked_name meaning = {.source = {-1, open}};

    if (name->said && !changed && (told || !scenario_supplies(name)))
        meaning.source.value = value_boolean(told);
    if (name->said)
        return meaning;
    for (size_t i = 0; i < COUNT(followings) && !meaning.derived; i++)
        meaning.derived = strcmp(followings[i].name, name->path) ? NULL : &followings[i];
    if (name->field && !meaning.derived)
        meaning.source = source_of(builder, path, fallback_of(builder, name), scenario_supplies(name));
    return meaning;
}

/* A row that may drop points; NULL: no axis decides it, or it holds whatever the axes say. */
static struct asked_rule *asked_of_points(const struct builder *builder, const struct condition *condition,
                                          const struct ground *ground)
{
    struct asked_rule *rule = ARENA_ARRAY(builder->arena, struct asked_rule, 1);
    bool varies = false;

    *rule = (struct asked_rule){condition, ground, ARENA_ARRAY(builder->arena, struct asked_name, condition->count + 1), -1, NULL};
    for (int i = 0; i < condition->count; i++) {
        rule->names[i] = meaning_of(builder, &condition->names[i]);
        varies |= rule->names[i].derived || rule->names[i].source.axis >= 0;
    }
    return varies && ask(rule, NULL).kind == VALUE_NONE ? rule : NULL;
}

static void add_asked(struct builder *builder, const struct asked_rule *rule, const struct rule *row, const char *why,
                      const char *condition)
{
    *GROW(&builder->rules) = (struct space_rule){
        .why = why, .row = row, .expression = arena_printf(builder->arena, "!(%s)", condition), .asked = rule};
}

/* What one software cannot run, where an axis has values of ours: where a person listed all values that a condition names, they
 * are asked for. */
static int add_lacks(struct builder *builder, const struct node *lacks, const char *title, const struct node *name,
                     const struct ground *ground)
{
    const char *axis = framework_axis(builder);

    for (size_t i = 0; lacks && lacks->kind == NODE_SEQUENCE && i < lacks->count; i++) {
        const struct node *text = node_get(lacks->items[i], "if"), *why = node_get(lacks->items[i], "why");
        struct condition *condition = ARENA_ARRAY(builder->arena, struct condition, 1);
        struct asked_rule *rule;

        if (!text || text->kind != NODE_SCALAR || !why || why->kind != NODE_SCALAR ||
            !axes_are_ours(builder->axes.items, builder->axes.count, text->text))
            continue;
        if (scenario_condition(builder->arena, text, condition, builder->err))
            return -1;
        if (!(rule = asked_of_points(builder, condition, ground)))
            continue;
        rule->release = axis ? axis_number(builder, axis) : -1;
        rule->name = name->text;
        add_asked(builder, rule, NULL, arena_printf(builder->arena, "%s: %s", title, why->text), text->text);
        builder->rules.items[builder->rules.count - 1].of_release = true;
    }
    return 0;
}

static int add_framework_rules(struct builder *builder, const struct ground *ground)
{
    const struct node *names = framework_names(builder);

    for (size_t n = 0; n < names->count; n++) {
        const struct node *name = names->items[n], *lacks = NULL;
        const char *title = NULL;

        if (name->kind != NODE_SCALAR || !strcmp(name->text, "none"))
            continue;
        if (software_list(builder->arena, name->text, name->loc, NULL, &title, &lacks, builder->err) ||
            add_lacks(builder, lacks, title ? title : name->text, name, ground))
            return -1;
    }
    return 0;
}

int add_rules(struct builder *builder)
{
    struct ground *ground = ARENA_ARRAY(builder->arena, struct ground, 1);
    const struct rules *rules;

    find_ground(builder, ground);
    for (size_t t = 0; (rules = scenario_rules(t)); t++) {
        const struct condition *conditions = scenario_conditions(builder->arena, rules);

        for (size_t i = 0; i < rules->count; i++) {
            const struct rule *row = &rules->items[i];
            struct asked_rule *rule = row->fault || row->kind == RULE_YIELDS ? NULL :
                                      asked_of_points(builder, &conditions[i], ground);

            if (rule)
                add_asked(builder, rule, row, rule_words(builder->arena, row), row->when);
        }
    }
    return add_framework_rules(builder, ground);
}

void ask_rules(const struct space *space, struct points *points)
{
    for (size_t i = 0; i < space->nrules; i++)
        if (space->rules[i].asked)
            *GROW(&points->constraints) = (struct constraint){
                .text = space->rules[i].expression, .asks = drops, .rule = space->rules[i].asked};
}
