/* The rules of a space: what axes must keep together, as conditions of a sweep. A rule drops what loading would refuse, and
 * is there because an expression is faster than loading; or what a release cannot run. Where axes change what a rule would
 * have to know, there is none. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "plan/space_internal.h"
#include "schedule/schedule.h"
#include "software/software.h"

/* A path in an expression: an axis by its name, else the number that the scenario says, else `left_out`. NULL: neither
 * tells, as an axis changes what is there. */
static const char *term(const struct builder *builder, const char *path, const char *left_out)
{
    const struct node *said = node_at(builder->root, path);

    if (has_axis(builder, path))
        return path;
    if (axes_change(builder, path))
        return NULL;
    if (!said || node_is_null(said))
        return left_out;
    return said->kind == NODE_SCALAR ? said->text : NULL;
}

/* Each schedule of the axis with the chunks that it can have. */
static void add_chunk_rules(struct builder *builder, const struct node *schedules)
{
    for (size_t i = 0; i < schedules->count; i++) {
        const struct schedule *schedule = NULL;

        for (size_t s = 0; schedule_at(s); s++)
            if (schedules->items[i]->text && strcmp(schedule_at(s)->name, schedules->items[i]->text) == 0)
                schedule = schedule_at(s);
        if (!schedule)
            continue;                            /* the sweep refuses it */
        if (schedule->max_chunks <= 1)
            add_rule(builder, "a schedule without chunks has one", "strategy.schedule != '%s' || strategy.chunks == 1",
                     schedule->name);
        else if (schedule->min_chunks == schedule->max_chunks)
            add_rule(builder, "the schedule's number of chunks is fixed",
                     "strategy.schedule != '%s' || strategy.chunks == %d", schedule->name, schedule->min_chunks);
    }
}

/* Whether pipeline ranks may have degrees of their own, or an order from a file says how many there are. */
static bool has_own_degrees(const struct builder *builder)
{
    static const char *const paths[] = {"strategy.stages", "strategy.schedule.csv"};
    const struct node *schedules = node_get(builder->grid, "strategy.schedule");

    for (size_t i = 0; i < COUNT(paths); i++)
        if (has_axis(builder, paths[i]) || node_at(builder->root, paths[i]))
            return true;
    for (size_t i = 0; schedules && i < schedules->count; i++)
        if (schedules->items[i]->kind != NODE_SCALAR)
            return true;
    return axes_change(builder, "strategy.stages");
}

/* What a condition of a software file means by a path, in a rule of the space: a word or number. NULL: the axes and what
 * the scenario says do not tell. */
static const char *meaning_of(const struct builder *builder, const char *path)
{
    static const char degrees[] = "strategy.tensor strategy.pipeline strategy.context";
    const struct node *said = node_at(builder->root, path);
    char *end;

    if (has_axis(builder, path))
        return path;
    if (!strcmp(path, "model.transformer.layers") && builder->facts->transformer)
        return builder->same_layers ? arena_printf(builder->arena, "%d", builder->facts->layers) : NULL;
    if (axes_change(builder, path))
        return NULL;
    if (!strcmp(path, "batch.micro_batches") && !said)
        return builder->micro_batches;
    if (!said)
        return word_in(degrees, path) && !has_own_degrees(builder) ? "1" : NULL;
    if (said->kind != NODE_SCALAR)
        return NULL;
    strtod(said->text, &end);
    return (*said->text && !*end) || word_in("true false", said->text) ? said->text :
           arena_printf(builder->arena, "'%s'", said->text);
}

/* The condition of a software file as one of the space; NULL: a path in it has no meaning there. */
static const char *translated(const struct builder *builder, const char *condition)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789.";
    const char *text = "";

    while (*condition) {
        size_t word = *condition >= 'a' && *condition <= 'z' ? strspn(condition, letters) : 0;
        size_t length = word ? word : *condition == '"' || *condition == '\'' ?
                        1 + strcspn(condition + 1, (char[]){*condition, 0}) + 1 : 1;
        const char *part = arena_strndup(builder->arena, condition, strnlen(condition, length));

        if (word && strchr(part, '.') && !(part = meaning_of(builder, part)))
            return NULL;
        text = arena_printf(builder->arena, "%s%s", text, part);
        condition += strnlen(condition, length);
    }
    return text;
}

/* The conditions of one software under which it cannot run, where an axis has values of ours. */
static void add_lacks(struct builder *builder, const struct node *lacks, const char *title, const char *of_name)
{
    for (size_t i = 0; lacks && lacks->kind == NODE_SEQUENCE && i < lacks->count; i++) {
        const struct node *condition = node_get(lacks->items[i], "if"), *why = node_get(lacks->items[i], "why");
        const char *rule = condition && condition->kind == NODE_SCALAR && why && why->kind == NODE_SCALAR &&
                           axes_are_ours(builder->axes.items, builder->axes.count, condition->text) ?
                               translated(builder, condition->text) : NULL;

        if (!rule)
            continue;
        add_rule(builder, arena_printf(builder->arena, "%s: %s", title, why->text), "%s!(%s)", of_name, rule);
        builder->rules.items[builder->rules.count - 1].of_release = true;
    }
}

/* What releases of the software cannot run. Where a person listed all values that a condition names, they are asked for. */
static int add_framework_rules(struct builder *builder)
{
    const struct node *names = framework_names(builder);
    const char *axis = framework_axis(builder);

    for (size_t n = 0; n < names->count; n++)
        if (names->items[n]->kind != NODE_SCALAR)
            return 0;                            /* no word that a rule could name */
    for (size_t n = 0; n < names->count; n++) {
        const struct node *name = names->items[n], *lacks = NULL;
        const char *title = NULL;

        if (!strcmp(name->text, "none"))
            continue;
        if (software_list(builder->arena, name->text, name->loc, NULL, &title, &lacks, builder->err))
            return -1;
        add_lacks(builder, lacks, title ? title : name->text,
                  axis ? arena_printf(builder->arena, "%s != '%s' || ", axis, name->text) : "");
    }
    return 0;
}

/* All GPUs of the cluster, as an expression; NULL: axes change that. */
static const char *all_gpus(const struct builder *builder)
{
    const struct facts *facts = builder->facts;

    if (!builder->same_nodes)
        return NULL;
    if (facts->in_parts)
        return arena_printf(builder->arena, "%d", facts->in_parts);
    if (has_axis(builder, "cluster.nodes"))
        return arena_printf(builder->arena, "(cluster.nodes * %d)", facts->per_node);
    return builder->same_count && facts->nodes ?
           arena_printf(builder->arena, "(%d * %d)", facts->nodes, facts->per_node) : NULL;
}

/* Degrees that the cluster has room for, and micro-batches that divide the batch. */
static void add_degree_rules(struct builder *builder)
{
    const char *tensor = term(builder, "strategy.tensor", "1"), *pipeline = term(builder, "strategy.pipeline", "1");
    const char *context = term(builder, "strategy.context", "1"), *data = term(builder, "strategy.data", "");
    const char *micro = term(builder, "batch.micro", "1"), *batch = term(builder, "batch.global", NULL);
    const char *gpus = all_gpus(builder), *degrees;

    if (!tensor || !pipeline || !context || !data)
        return;
    degrees = arena_printf(builder->arena, "%s * %s * %s", tensor, pipeline, context);
    if (*data && gpus)
        add_rule(builder, "the cluster has the GPUs of all degrees", "%s * %s <= %s", degrees, data, gpus);
    else if (gpus)
        add_rule(builder, "tensor x pipeline x context divides the GPUs; the rest is data parallel",
                 "divides(%s, %s)", degrees, gpus);
    if (!*data && gpus)
        data = arena_printf(builder->arena, "(%s / (%s))", gpus, degrees);
    if (!*data || !micro || !batch)
        return;
    add_rule(builder, "micro-batches of all replicas divide the batch", "divides(%s * %s, %s)", micro, data, batch);
    builder->micro_batches = arena_printf(builder->arena, "(%s / (%s * %s))", batch, micro, data);
}

int add_rules(struct builder *builder)
{
    const struct node *schedules = node_get(builder->grid, "strategy.schedule");

    if (!has_own_degrees(builder))
        add_degree_rules(builder);
    if (has_axis(builder, "strategy.chunks") && schedules && schedules->kind == NODE_SEQUENCE)
        add_chunk_rules(builder, schedules);
    return add_framework_rules(builder);
}
