/* The rules of a space: those that a scenario is asked when it is loaded, and what the software's release cannot run, asked of
 * points before they are loaded. What neither the axes nor the scenario tell is open; a rule that depends on it is undecided
 * and drops nothing. A rule is here because asking it is faster than loading. */
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "expression/expression.h"
#include "expression/rule.h"
#include "plan/space_ground.h"
#include "scenario/scenario.h"
#include "software/software.h"
#include "sweep/points.h"

static const struct value open = {.kind = VALUE_NONE};

/* A rule that is asked of points. */
struct asked_rule {
    const struct condition *condition;
    const struct ground *ground;
    struct asked_name { const struct following *derived; struct source source; } *names;     /* of the condition */
    size_t *axes, naxes;         /* that it reads */
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
             source_value(&name->source, asking->moment);
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

/* Whether software may say the key where nobody else does: its file may, or it is not known which one a point has. */
static bool software_may_say(const struct builder *builder, const struct condition_name *name)
{
    struct builder scratch = *builder;
    const struct node *names = framework_names(&scratch);
    bool gives = !names->count;

    if (!scenario_supplies(name))
        return false;
    for (size_t i = 0; i < names->count && !gives; i++)
        gives = names->items[i]->kind != NODE_SCALAR ||
                (strcmp(names->items[i]->text, "none") != 0 &&
                 software_gives(builder->arena, names->items[i]->text, names->items[i]->loc, name->field->key));
    return gives;
}

static struct asked_name meaning_of(const struct builder *builder, const struct condition_name *name)
{
    const char *path = scenario_written(name, builder->arena);
    bool told = axis_number(builder, path) >= 0 || node_at(builder->root, path), changed = axes_change(builder, path);
    bool supplied = software_may_say(builder, name);
    struct asked_name meaning = {.source = {-1, open}};

    if (name->said && !changed && (told || !supplied))
        meaning.source.value = value_boolean(told);
    if (name->said)
        return meaning;
    meaning.derived = following_of(name->path);
    if (name->field && !meaning.derived)
        meaning.source = source_of(builder, path, fallback_of(builder, name), supplied);
    return meaning;
}

static void note_axis(struct asked_rule *rule, int axis)
{
    for (size_t i = 0; i < rule->naxes && axis >= 0; i++)
        if (rule->axes[i] == (size_t)axis)
            axis = -1;
    if (axis >= 0)
        rule->axes[rule->naxes++] = (size_t)axis;
}

static void note_axes(struct asked_rule *rule, const struct asked_name *name)
{
    int axes[GROUNDS];

    ground_axes(rule->ground, axes);
    for (int i = 0; i < GROUNDS && name->derived; i++)
        if (name->derived->from >> i & 1)
            note_axis(rule, axes[i]);
    if (!name->derived)
        note_axis(rule, name->source.axis);
}

/* A row that may drop points; NULL: no axis decides it, or it holds whatever the axes say. */
static struct asked_rule *asked_of_points(const struct builder *builder, const struct condition *condition,
                                          const struct ground *ground)
{
    struct asked_rule *rule = ARENA_ARRAY(builder->arena, struct asked_rule, 1);

    *rule = (struct asked_rule){.condition = condition, .ground = ground, .release = -1,
                                .names = ARENA_ARRAY(builder->arena, struct asked_name, condition->count + 1),
                                .axes = ARENA_ARRAY(builder->arena, size_t, builder->grid->count + 1)};
    for (int i = 0; i < condition->count; i++) {
        rule->names[i] = meaning_of(builder, &condition->names[i]);
        note_axes(rule, &rule->names[i]);
    }
    return rule->naxes && ask(rule, NULL).kind == VALUE_NONE ? rule : NULL;
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
        note_axis(rule, rule->release);
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

    ground_find(builder, ground);
    for (size_t t = 0; (rules = scenario_rules(t)); t++) {
        const struct condition *conditions = scenario_conditions(builder->arena, rules);

        for (size_t i = 0; i < rules->count; i++) {
            const struct rule *row = &rules->items[i];
            struct asked_rule *rule = row->fault || row->kind == RULE_YIELDS ||
                                      (row->kind == RULE_SAME && !axes_are_ours(builder->axes.items, builder->axes.count, row->at)) ? NULL :
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
                .text = space->rules[i].expression, .asks = drops, .rule = space->rules[i].asked,
                .names = space->rules[i].asked->axes, .count = space->rules[i].asked->naxes};
}
