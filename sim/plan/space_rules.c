/* The rules of a space: what axes must keep together, as conditions of a sweep. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "plan/space_internal.h"
#include "schedule/schedule.h"
#include "software/software.h"

/* A path in an expression: an axis by its name, else the number that the scenario says. */
static const char *term(const struct builder *builder, const char *path, const char *left_out)
{
    const struct node *said = node_at(builder->facts->root, path);

    if (has_axis(builder, path))
        return path;
    return said && said->kind == NODE_SCALAR ? said->text : left_out;
}

__attribute__((format(printf, 3, 4)))
static void add_rule(struct builder *builder, const char *why, const char *format, ...)
{
    va_list arguments;
    char text[2000];

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    *GROW(&builder->rules) = (struct space_rule){why, arena_strdup(builder->arena, text)};
    node_append(builder->arena, builder->where, node_scalar(builder->arena, arena_strdup(builder->arena, text), true));
}

/* Each schedule of the axis with the chunks that it can have; a pipeline of one stage has none. */
static void add_chunk_rules(struct builder *builder, const struct node *schedules)
{
    const char *pipeline = term(builder, "strategy.pipeline", "1");

    for (size_t i = 0; schedules && i < schedules->count; i++) {
        const struct schedule *schedule = NULL;

        for (size_t s = 0; schedule_at(s); s++)
            if (schedules->items[i]->text && strcmp(schedule_at(s)->name, schedules->items[i]->text) == 0)
                schedule = schedule_at(s);
        if (!schedule)
            continue;                            /* the sweep refuses it */
        if (schedule->max_chunks <= 1)
            add_rule(builder, "a schedule without chunks has one", "strategy.schedule != '%s' || strategy.chunks == 1",
                     schedule->name);
        else if (schedule->usual_chunks)         /* with one chunk an interleaved schedule is the plain one */
            add_rule(builder, "an interleaved schedule has several chunks",
                     "strategy.schedule != '%s' || strategy.chunks >= 2", schedule->name);
        else
            add_rule(builder, "the schedule's number of chunks is fixed",
                     "strategy.schedule != '%s' || strategy.chunks == %d", schedule->name, schedule->min_chunks);
    }
    add_rule(builder, "chunks need a pipeline", "%s > 1 || strategy.chunks == 1", pipeline);
    /* a pipeline that a person lists may be one of uneven stages */
    add_rule(builder, "virtual stages divide the layers", "strategy.chunks == 1 || divides(%s * strategy.chunks, %d)",
             pipeline, builder->facts->layers);
}

/* What a condition of a software file means by a path, in a rule of the space: a word or number. NULL: the axes and what
 * the scenario says do not tell. */
static const char *meaning_of(const struct builder *builder, const char *path)
{
    static const char degrees[] = "strategy.tensor strategy.pipeline strategy.context";
    const struct node *said = node_at(builder->facts->root, path);
    char *end;

    if (has_axis(builder, path))
        return path;
    if (!strcmp(path, "batch.micro_batches") && !said)
        return builder->micro_batches;
    if (!strcmp(path, "model.transformer.layers") && builder->facts->transformer)
        return arena_printf(builder->arena, "%d", builder->facts->layers);
    if (!said)
        return word_in(degrees, path) ? "1" : NULL;
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

/* What releases of the software cannot run. Where no axis has values of ours, a person asked for each point. */
static int add_framework_rules(struct builder *builder)
{
    const struct node *names = framework_names(builder);
    bool automatic = false;

    for (size_t i = 0; i < builder->axes.count; i++)
        automatic |= builder->axes.items[i].why != NULL;
    for (size_t n = 0; automatic && n < names->count; n++) {
        const struct node *name = names->items[n], *lacks = NULL;
        const char *title = NULL, *of_name = "";

        if (name->kind != NODE_SCALAR || !strcmp(name->text, "none"))
            continue;
        if (software_list(builder->arena, name->text, name->loc, NULL, &title, &lacks, builder->err))
            return -1;
        if (has_axis(builder, "software"))
            of_name = arena_printf(builder->arena, "software != '%s' || ", name->text);
        for (size_t i = 0; lacks && lacks->kind == NODE_SEQUENCE && i < lacks->count; i++) {
            const struct node *condition = node_get(lacks->items[i], "if"), *why = node_get(lacks->items[i], "why");
            const char *rule = condition && condition->kind == NODE_SCALAR && why && why->kind == NODE_SCALAR ?
                               translated(builder, condition->text) : NULL;

            if (rule)
                add_rule(builder, arena_printf(builder->arena, "%s: %s", title ? title : name->text, why->text),
                         "%s!(%s)", of_name, rule);
        }
    }
    return 0;
}

int add_rules(struct builder *builder)
{
    const struct facts *facts = builder->facts;
    const char *tensor = term(builder, "strategy.tensor", "1"), *pipeline = term(builder, "strategy.pipeline", "1");
    const char *context = term(builder, "strategy.context", "1"), *data = term(builder, "strategy.data", NULL);
    const char *nodes = has_axis(builder, "cluster.nodes") ? "cluster.nodes" :
                        facts->nodes ? arena_printf(builder->arena, "%d", facts->nodes) : NULL;
    const char *gpus = facts->in_parts ? arena_printf(builder->arena, "%d", facts->in_parts) :
                       nodes ? arena_printf(builder->arena, "(%s * %d)", nodes, facts->per_node) : NULL;
    const char *degrees = arena_printf(builder->arena, "%s * %s * %s", tensor, pipeline, context);
    const char *micro = term(builder, "batch.micro", "1"), *batch = term(builder, "batch.global", NULL);
    const struct node *schedules = node_get(builder->grid, "strategy.schedule");

    if (gpus && data)
        add_rule(builder, "the degrees multiply to the GPUs", "%s * %s == %s", degrees, data, gpus);
    else if (gpus)
        add_rule(builder, "tensor x pipeline x context divides the GPUs; the rest is data parallel",
                 "divides(%s, %s)", degrees, gpus);
    if (!data && gpus)
        data = arena_printf(builder->arena, "(%s / (%s))", gpus, degrees);
    if (data && batch)
        add_rule(builder, "micro-batches of all replicas divide the batch",
                 "divides(%s * %s, %s)", micro, data, batch);
    if (schedules && schedules->kind == NODE_SEQUENCE && schedules->count > 1)
        add_rule(builder, "without a pipeline all schedules are the same", "%s > 1 || strategy.schedule == '%s'",
                 pipeline, schedules->items[0]->text ? schedules->items[0]->text : "");
    if (has_axis(builder, "strategy.chunks") && schedules && schedules->kind == NODE_SEQUENCE)
        add_chunk_rules(builder, schedules);
    if (has_axis(builder, "strategy.sequence_parallel"))
        add_rule(builder, "sequence parallelism needs a tensor group", "%s > 1 || !strategy.sequence_parallel", tensor);
    if (data && batch)
        builder->micro_batches = arena_printf(builder->arena, "(%s / (%s * %s))", batch, micro, data);
    return add_framework_rules(builder);
}
