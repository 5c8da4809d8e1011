#include "plan/space_ground.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "expression/expression.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "sweep/paths.h"

static const struct value open = {.kind = VALUE_NONE};

struct value source_value(const struct source *source, const struct moment *moment)
{
    struct value value = source->axis < 0 ? source->value : moment ? moment_axis(moment, (size_t)source->axis) : open;

    return value.kind <= VALUE_TEXT ? value : open;
}

/* NaN: it is open. */
static double number_in(const struct source *source, const struct moment *moment)
{
    struct value value = source_value(source, moment);

    return value.kind == VALUE_NUMBER ? value.number : NAN;
}

/* Whether an axis says it that is not chosen yet: then nothing follows from what else is known. */
static bool is_awaited(const struct source *source, const struct moment *moment)
{
    return source->axis >= 0 && source_value(source, moment).kind == VALUE_NONE;
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

    if (is_awaited(&g->data, m))
        return open;
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

    if (is_awaited(&g->micro_batches, m))
        return open;
    return !isnan(said) ? value_number(said) : fmod(all, one) == 0 ? value_number(all / one) : open;
}

static struct value rooted(const struct ground *g, const struct moment *m)
{
    struct value form = source_value(&g->data_parallel, m);

    return form.kind == VALUE_TEXT ? value_boolean(word_in("parameter-server dataparallel", form.text)) : open;
}

static const struct schedule *schedule_in(const struct ground *g, const struct moment *m)
{
    struct value name = source_value(&g->schedule, m);

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
    return source_value(&g->schedule, m);
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

static struct value shared_experts(const struct ground *g, const struct moment *m)
{
    (void)m;
    return g->shared_experts;
}

/* Tensor groups whose GPUs have whole experts each. */
static struct value expert_parts(const struct ground *g, const struct moment *m)
{
    double said = number_in(&g->expert_tensor, m), tensor = number_in(&g->tensor, m);

    return known(said == 1 ? tensor : isnan(said) ? said : 1);
}

/* What facts and settled keys follow from, as bits. */
enum {
    TENSOR = 1, PIPELINE = 2, CONTEXT = 4, WHOLE_EXPERTS = 8, DATA = 16, SCHEDULE = 32, FORM = 64, MICRO = 128, GLOBAL = 256,
    MICRO_BATCHES = 512, NODES = 1024, REPLICAS = TENSOR | PIPELINE | CONTEXT | DATA | NODES, STEP = REPLICAS | MICRO,
};

/* Facts (scenario_parts.c), and keys whose values follow where nobody says them. */
static const struct following followings[] = {
    {"gpus", gpus, NODES}, {"sized", sized, NODES}, {"counted", counted, 0}, {"strategy.data", data, REPLICAS},
    {"replicas", replicas, REPLICAS}, {"step", step, STEP}, {"micro_batched", micro_batched, 0},
    {"batch.micro_batches", micro_batches, STEP | GLOBAL | MICRO_BATCHES}, {"rooted", rooted, FORM},
    {"schedule", schedule, SCHEDULE}, {"fewest_chunks", fewest_chunks, SCHEDULE}, {"most_chunks", most_chunks, SCHEDULE},
    {"asynchronous", asynchronous, SCHEDULE}, {"with_gradient", with_gradient, SCHEDULE}, {"transformer", transformer, 0},
    {"experts", experts, 0}, {"expert_parts", expert_parts, TENSOR | WHOLE_EXPERTS}, {"model.transformer.layers", layers, 0},
    {"model.transformer.experts", experts, 0}, {"model.transformer.shared_experts", shared_experts, 0},
};

const struct following *following_of(const char *name)
{
    for (size_t i = 0; i < COUNT(followings); i++)
        if (!strcmp(followings[i].name, name))
            return &followings[i];
    return NULL;
}

void ground_axes(const struct ground *g, int axes[GROUNDS])
{
    const int all[GROUNDS] = {
        g->tensor.axis, g->pipeline.axis, g->context.axis, g->expert_tensor.axis, g->data.axis, g->schedule.axis,
        g->data_parallel.axis, g->micro.axis, g->global.axis, g->micro_batches.axis, g->nodes.axis,
    };

    memcpy(axes, all, sizeof all);
}

int axis_number(const struct builder *builder, const char *path)
{
    for (size_t i = 0; i < builder->grid->count; i++)
        if (!strcmp(builder->grid->keys[i], path))
            return (int)i;
    return -1;
}

struct source source_of(const struct builder *builder, const char *path, const char *fallback, bool supplied)
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

bool has_own_degrees(const struct builder *builder)
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

void ground_find(const struct builder *builder, struct ground *found)
{
    const struct facts *facts = builder->facts;
    bool own = has_own_degrees(builder), nodes = has_axis(builder, "cluster.nodes");

    *found = (struct ground){
        .tensor = source_of(builder, "strategy.tensor", "1", own), .pipeline = source_of(builder, "strategy.pipeline", "1", own),
        .context = source_of(builder, "strategy.context", "1", own),
        .expert_tensor = source_of(builder, "strategy.expert_tensor", "0", true), .data = source_of(builder, "strategy.data", NULL, true),
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
        .shared_experts = facts->transformer && builder->variants.count == 1 ? value_number(facts->shared_experts) : open,
        .experts = builder->same_layers && facts->experts > 1 && builder->variants.count == 1 ? value_number(facts->experts) : open,
    };
    if (own)
        found->gpus = found->per_node = open;
}
