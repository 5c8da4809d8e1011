/* The rules of a space: what axes must keep together, as conditions of a sweep. */
#include <string.h>

#include "plan/space_internal.h"
#include "schedule/schedule.h"

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

void add_rules(struct builder *builder)
{
    const struct facts *facts = builder->facts;
    const char *tensor = term(builder, "strategy.tensor", "1"), *pipeline = term(builder, "strategy.pipeline", "1");
    const char *context = term(builder, "strategy.context", "1"), *data = term(builder, "strategy.data", NULL);
    const char *nodes = has_axis(builder, "cluster.nodes") ? "cluster.nodes" :
                        facts->nodes ? arena_printf(builder->arena, "%d", facts->nodes) : NULL;
    const char *gpus = facts->in_parts ? arena_printf(builder->arena, "%d", facts->in_parts) : nodes ? arena_printf(builder->arena, "(%s * %d)", nodes, facts->per_node) : NULL;
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
}
