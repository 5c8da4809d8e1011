/* What follows from a scenario that is resolved: its schedule, its degrees and each rank's, which GPU has which seat, and
 * the memory and the links of a rank's GPUs and hosts. scenario_load.c resolves it. */
#include "scenario/scenario_internal.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/cache.h"
#include "collective/collective.h"
#include "config/conf.h"
#include "hardware/cluster.h"
#include "hardware/gpu.h"
#include "kernels/costs.h"
#include "layout/layout.h"
#include "schedule/order.h"
#include "schedule/schedule.h"

const struct schedule *scenario_schedule(const struct scenario *scenario)
{
    const struct schedule_spec *schedule = &scenario->parallelism.schedule;

    return schedule->order ? &schedule->order->schedule : schedule_at((size_t)schedule->name);
}

const struct collective *scenario_all_reduce(const struct scenario *scenario)
{
    return collective_of(COLLECTIVE_ALL_REDUCE, (size_t)scenario->parallelism.all_reduce);
}

int scenario_chunks(const struct scenario *scenario, bool most)
{
    const struct schedule *schedule = scenario_schedule(scenario);
    const struct order *order = scenario->parallelism.schedule.order;
    int min = schedule->min_chunks ? schedule->min_chunks : 1;

    return order ? order->chunks : most && schedule->max_chunks ? schedule->max_chunks : min;
}

int scenario_gpus(const struct scenario *scenario)
{
    const struct parallelism *spec = &scenario->parallelism;

    return spec->ranks ? scenario->layout.seats : spec->tensor * spec->context * spec->pipeline * spec->data;
}

int scenario_paid_gpus(const struct scenario *scenario)
{
    int gpus = scenario_gpus(scenario);

    return scenario->cluster.ideal || cluster_gpus(&scenario->cluster) < gpus ? gpus : cluster_gpus(&scenario->cluster);
}

int scenario_replicas(const struct scenario *scenario)
{
    return scenario->parallelism.data * scenario->parallelism.context;
}

bool scenario_hybrid(const struct scenario *scenario)
{
    return scenario->parallelism.zero && scenario->parallelism.shard < scenario_replicas(scenario);
}

int scenario_expert_tensor(const struct parallelism *spec)
{
    return spec->expert_tensor == 1 ? 1 : spec->tensor;      /* others are refused */
}

int scenario_ulysses(const struct parallelism *spec)
{
    return spec->context_attention == CONTEXT_ALL_TO_ALL ? spec->context :
           spec->context_attention == CONTEXT_HYBRID     ? spec->ulysses : 1;
}

int scenario_gpu(const struct scenario *scenario, int t, int replica, int p)
{
    return layout_gpu(&scenario->layout, t, replica, p);
}

bool scenario_spans_nodes(const struct scenario *scenario)
{
    return scenario->layout.spans;
}

struct seat scenario_seat(const struct scenario *scenario, int t, int replica, int p)
{
    return layout_seat(&scenario->layout, &scenario->cluster, t, replica, p);
}

char *scenario_degrees(const struct scenario *scenario, char *buffer, size_t size)
{
    const struct parallelism *spec = &scenario->parallelism;
    char context[32] = "", data[32] = "";

    if (spec->ranks)
        return rank_degrees_text(spec->ranks, spec->pipeline, buffer, size);
    if (spec->context > 1)
        snprintf(context, sizeof context, " x context %d", spec->context);
    if (spec->data)
        snprintf(data, sizeof data, " x data %d", spec->data);
    snprintf(buffer, size, "tensor %d%s x pipeline %d%s", spec->tensor, context, spec->pipeline, data);
    return buffer;
}

int scenario_samples(const struct scenario *scenario, int replica)
{
    const int *samples = scenario->batch.samples;

    return samples ? samples[replica / scenario->parallelism.context] : scenario->batch.micro;
}

int scenario_step_samples(const struct scenario *scenario)
{
    int64_t samples = (int64_t)scenario->batch.micro * layout_data(&scenario->layout, 0);

    return samples < INT_MAX ? (int)samples : INT_MAX;       /* refused later: no batch has as many */
}

int scenario_most_tensor(const struct scenario *scenario)
{
    return scenario->parallelism.tensor;
}

int scenario_tensor(const struct scenario *scenario, int p)
{
    return scenario->views ? scenario->views[p]->tensor : scenario->parallelism.tensor;
}

int scenario_rank_replicas(const struct scenario *scenario, int p)
{
    return scenario->views ? scenario->views[p]->data : scenario_replicas(scenario);
}

const struct process_groups *scenario_groups(const struct scenario *scenario, int p)
{
    return scenario->views ? &scenario->views[p]->groups : &scenario->groups;
}

const struct recipe *scenario_recipe(const struct scenario *scenario, int p)
{
    return scenario->views ? &scenario->views[p]->recipe : &scenario->recipe;
}

bool scenario_has_rank(const struct scenario *scenario, int rank)
{
    int stages = scenario->parallelism.pipeline;

    return rank / stages < scenario_rank_replicas(scenario, rank % stages);
}

double scenario_rank_weight(const struct scenario *scenario, int rank)
{
    if (!scenario->views)
        return 1;
    return scenario_has_rank(scenario, rank) ? scenario_tensor(scenario, rank % scenario->parallelism.pipeline) : 0;
}

double scenario_rank_weights(const struct scenario *scenario, int count)
{
    double sum = 0;

    for (int rank = 0; rank < count; rank++)
        sum += scenario_rank_weight(scenario, rank);
    return sum;
}

int scenario_rank_shard(const struct parallelism *spec, int data)
{
    return spec->shard < spec->data ? spec->shard : data;
}

/* The least of what the kinds say, whose bits are set. */
static double least_of(const struct cluster *cluster, unsigned kinds, double (*of)(const struct cluster *, int kind))
{
    double least = INFINITY;

    for (int kind = 0; kinds >> kind; kind++) {
        double own = kinds >> kind & 1 ? of(cluster, kind) : INFINITY;

        least = isnan(own) || own < least ? own : least;     /* and NaN stays */
    }
    return least;
}

static double kind_memory(const struct cluster *cluster, int kind)
{
    int gpu = cluster_kind_gpu(cluster, kind);

    return cluster_gpu_name(cluster, gpu) ? cluster_sheet(cluster, gpu)->memory : INFINITY;
}

static double kind_host_bandwidth(const struct cluster *cluster, int kind)
{
    return cluster_host_bandwidth(cluster, cluster_kind_node(cluster, kind));
}

double scenario_room(const struct scenario *scenario, int rank)
{
    if (!isnan(scenario->memory.limit))
        return scenario->memory.limit;
    return least_of(&scenario->cluster, layout_kinds(&scenario->layout, rank), kind_memory);
}

double scenario_least_room(const struct scenario *scenario)
{
    double least = INFINITY;

    for (int rank = 0; rank < (scenario->layout.mixed ? scenario->parallelism.pipeline : 1); rank++)
        least = fmin(least, scenario_room(scenario, rank));
    return least;
}

double scenario_host_bandwidth(const struct scenario *scenario, int rank)
{
    return least_of(&scenario->cluster, layout_kinds(&scenario->layout, rank), kind_host_bandwidth);
}

static double less_host_latency(const struct cluster *cluster, int kind)
{
    return -cluster_host_copy(cluster, cluster_kind_node(cluster, kind), 0);
}

double scenario_host_latency(const struct scenario *scenario, int rank)
{
    return -least_of(&scenario->cluster, layout_kinds(&scenario->layout, rank), less_host_latency);
}

bool scenario_names_gpus(const struct scenario *scenario)
{
    bool named = true;

    for (int kind = 0; kind < cluster_kinds(&scenario->cluster); kind++)
        named &= cluster_gpu_name(&scenario->cluster, cluster_kind_gpu(&scenario->cluster, kind)) != NULL;
    return named;
}

const char *scenario_gpu_names(struct arena *arena, const struct scenario *scenario, int rank)
{
    unsigned kinds = rank < 0 ? ~0u : layout_kinds(&scenario->layout, rank);
    const char *names = NULL;

    for (int kind = 0; kind < cluster_kinds(&scenario->cluster); kind++) {
        const char *name = cluster_gpu_name(&scenario->cluster, cluster_kind_gpu(&scenario->cluster, kind));

        if (name && kinds >> kind & 1 && layout_kind_seats(&scenario->layout, kind) > 0 &&
            (!names || !strstr(names, name)))
            names = names ? arena_printf(arena, "%s + %s", names, name) : name;
    }
    return names;
}

double scenario_mean_peak(const struct scenario *scenario, enum dtype products)
{
    double mean = 0, seats = 0;

    for (int kind = 0; kind < cluster_kinds(&scenario->cluster); kind++) {
        double own = layout_kind_seats(&scenario->layout, kind);
        double peak = gpu_peak(cluster_sheet(&scenario->cluster, cluster_kind_gpu(&scenario->cluster, kind)), products);

        seats += own;
        mean += own > 0 ? (peak - mean) * (own / seats) : 0;     /* of one kind its very peak */
    }
    return mean;
}

const struct kernel_costs *scenario_first_costs(const struct scenario *scenario)
{
    return &scenario->kernels[scenario_seat(scenario, 0, 0, 0).kind];
}

struct costs_spec scenario_resolved_costs(const struct scenario *scenario)
{
    struct costs_spec costs = scenario->costs;

    if (costs_host_supplied(&costs))
        costs.host_launch = cluster_kinds(&scenario->cluster) > 1 ? NAN : scenario->kernels[0].host_launch;
    if (cluster_kinds(&scenario->cluster) > 1)
        return costs;
    costs.gpu = (int)scenario->kernels[0].model.source;
    if (!scenario->kernels[0].given)
        costs.profile = scenario->kernels[0].profile;
    return costs;
}

void scenario_prefer(struct scenario *scenario, enum engine engine)
{
    const struct node *said = scenario->simulation.node;

    if (!said || !node_get(said, "engine"))
        scenario->simulation.engine = (int)engine;
}

void scenario_release(struct scenario *scenario)
{
    arena_release(&scenario->arena);
    if (scenario->own)
        cache_release(scenario->own);
    free(scenario->own);
    memset(scenario, 0, sizeof *scenario);
}

const char *scenario_value(struct arena *arena, const struct scenario *scenario, const char *path)
{
    const struct { const char *path; const struct table *table; const void *object; } parts[] = {
        {"strategy", &strategy_table, &scenario->parallelism}, {"memory", &memory_table, &scenario->memory},
        {"batch", &batch_table, &scenario->batch},
    };
    const char *key = strrchr(path, '.') + 1;
    const struct node *value = NULL;

    for (size_t i = 0; i < COUNT(parts) && !value; i++) {
        const struct field *field = field_find(parts[i].table, key);
        size_t length = strlen(parts[i].path);

        if (!field || strncmp(parts[i].path, path, length) || path + length + 1 != key)
            continue;
        value = field_dump_key(arena, parts[i].table, parts[i].object, key);
        if (value && value->kind == NODE_MAPPING && field->table && field->table->shorthand)
            value = node_get(value, field->table->shorthand);
    }
    return value && value->kind == NODE_SEQUENCE && value->count == 1 ? node_flow(arena, value->items[0]) :
           value ? node_flow(arena, value) : NULL;
}
