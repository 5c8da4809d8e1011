#include "layout/stage_spec.h"

#include <string.h>

#include "base/base.h"
#include "hardware/cluster.h"

static const struct field on_fields[] = {
    {KEY(on_part, part), .kind = FIELD_STRING, .required = true, .brief = "the name of a part"},
};
static const struct table on_table = {
    TABLE("on", "a part of the cluster", on_part, on_fields), .shorthand = "part", .bare = true,
};

static const struct field stage_spec_fields[] = {
    {KEY(stage_spec, layers), .kind = FIELD_INT, .min = 1, .max = 1000000,
     .brief = "number of the model's layers that the rank holds; left out, in all stages: as 'split' and software say"},
    {KEY(stage_spec, tensor), .kind = FIELD_INT, .min = 1, .max = 65536,
     .brief = "the rank's tensor-parallel degree; left out: strategy.tensor"},
    {KEY(stage_spec, data), .kind = FIELD_INT, .min = 1, .max = 1048576,
     .brief = "the rank's number of replicas, which share a micro-batch of the pipeline: batch.micro x data of the first "
              "rank samples; left out: strategy.data"},
    {KEY(stage_spec, on), .kind = FIELD_LIST, .table = &on_table, .single = true,
     .brief = "the part of the cluster (cluster.parts) on which the rank is, or a list with a part for each replica; left "
              "out, in all stages: ranks are on GPUs in the order of 'placement'"},
};
const struct table stage_spec_table = {
    TABLE("stages", "what a pipeline rank holds, and where it is", stage_spec, stage_spec_fields),
};

bool stages_say_parts(const struct list *stages)
{
    const struct stage_spec *items = stages->items;

    for (size_t p = 0; p < stages->count; p++)
        if (items[p].on.count)
            return true;
    return false;
}

bool stages_say_degrees(const struct list *stages)
{
    const struct stage_spec *items = stages->items;

    for (size_t p = 0; p < stages->count; p++)
        if (items[p].tensor || items[p].data)
            return true;
    return false;
}

char *rank_degrees_text(const struct rank_degrees *ranks, int count, char *buffer, size_t size)
{
    size_t used = 0;

    for (int p = 0, end; p < count && used < size; p = end) {
        int length;

        for (end = p + 1; end < count && ranks[end].tensor == ranks[p].tensor && ranks[end].data == ranks[p].data;)
            end++;
        length = end == p + 1 ? snprintf(buffer + used, size - used, "%srank %d", p ? "; " : "", p)
                              : snprintf(buffer + used, size - used, "%sranks %d-%d", p ? "; " : "", p, end - 1);
        used += (size_t)length;
        if (used < size)
            used += (size_t)snprintf(buffer + used, size - used, ": tensor %d x data %d", ranks[p].tensor, ranks[p].data);
    }
    if (used >= size && size >= sizeof "...")
        strcpy(buffer + size - sizeof "...", "...");
    return buffer;
}

/* The number of the part of that name; -1 after an error. */
static int find_part(struct arena *arena, const struct cluster *cluster, const struct on_part *on, struct error *err)
{
    const char *names = "";

    for (int i = 0; i < cluster_given_parts(cluster); i++) {
        const char *name = cluster_given_part(cluster, i).name;

        if (!strcmp(name, on->part))
            return i;
        names = arena_printf(arena, "%s%s%s", names, i ? ", " : "", name);
    }
    if (!cluster_given_parts(cluster))
        return error_clash(err, on->node->loc, "stages: on: '%s', but the cluster says no parts; expected 'parts' in the "
                           "cluster, or no 'on'", on->part);
    return error_add(err, EXIT_INPUT, on->node->loc, "stages: on: the cluster has no part '%s'; expected one of %s",
                     on->part, names);
}

const int *stages_parts(struct arena *arena, const struct list *stages, const struct cluster *cluster,
                        const struct layout *layout, struct error *err)
{
    const struct stage_spec *items = stages->items;
    size_t most = (size_t)layout->degree[DIMENSION_DATA];
    int *parts = arena_alloc(arena, stages->count * most * sizeof *parts), rc = 0;

    for (size_t p = 0; p < stages->count; p++) {
        const struct list *on = &items[p].on;
        int data = layout_data(layout, (int)p);

        if (!on->count)
            rc = error_add(err, EXIT_INPUT, items[p].node->loc, "stages: rank %zu does not say 'on' which part it is, as "
                           "others do; expected it in all stages or in none", p);
        else if (on->count != 1 && on->count != (size_t)data)
            rc = error_add(err, EXIT_INFEASIBLE, on->node->loc, "stages: on: %zu parts for %d replicas; expected one for "
                           "all, or one for each", on->count, data);
        for (int r = 0; !rc && r < data; r++) {
            int *part = &parts[p * most + (size_t)r];

            *part = find_part(arena, cluster, (const struct on_part *)on->items + (on->count > 1 ? r : 0), err);
            rc = *part < 0 ? -1 : rc;
        }
    }
    return rc ? NULL : parts;
}

/* The replica and the pipeline rank of a seat: its number among these, as stages_parts counts. */
static int place_of(const struct layout *layout, int seat)
{
    struct rank_replica place = layout_rank_replica(layout, seat);

    return place.rank * layout->degree[DIMENSION_DATA] + place.data;
}

/* "rank 0", or "ranks 0-2, 5": those that have a replica on the part. */
static const char *ranks_on(struct arena *arena, const int *parts, const struct layout *layout, int part)
{
    int ranks = layout->degree[DIMENSION_PIPELINE], most = layout->degree[DIMENSION_DATA], count = 0;
    bool *on = ARENA_ARRAY(arena, bool, ranks + 1);
    const char *text = "";

    for (int p = 0; p < ranks; p++) {
        for (int r = 0; r < layout_data(layout, p); r++)
            on[p] |= parts[p * most + r] == part;
        count += on[p];
    }
    for (int p = 0, end; p < ranks; p = end + 1) {
        for (end = p; on[end]; )
            end++;
        if (end > p)
            text = arena_printf(arena, end > p + 1 ? "%s%s%d-%d" : "%s%s%d", text, *text ? ", " : "", p, end - 1);
    }
    return arena_printf(arena, "rank%s %s", count > 1 ? "s" : "", text);
}

int stages_place(struct arena *arena, const int *parts, struct loc loc, const struct cluster *cluster,
                 struct layout *layout, struct error *err)
{
    int counts[PARTS_MAX] = {0}, rc = 0;
    int *gpus = ARENA_ARRAY(arena, int, layout->seats);
    bool *has = ARENA_ARRAY(arena, bool, cluster_gpus(cluster));

    for (int seat = 0; seat < layout->seats; seat++)
        counts[parts[place_of(layout, seat)]]++;
    for (int i = 0; i < cluster_given_parts(cluster); i++) {
        struct given_part part = cluster_given_part(cluster, i);
        int most = part.nodes * cluster_node_gpus(cluster, part.first);

        if (counts[i] > most)
            rc = error_add(err, EXIT_INFEASIBLE, loc, "strategy: stages: '%s' has %d GPUs, the stages on it (%s) "
                           "need %d; expected fewer stages on it, smaller degrees, or more of its nodes", part.name, most,
                           ranks_on(arena, parts, layout, i), counts[i]);
        counts[i] = cluster_node_gpu(cluster, part.first, 0);        /* the next one */
    }
    for (int seat = 0; !rc && seat < layout->seats; seat++) {
        gpus[seat] = counts[parts[place_of(layout, seat)]]++;
        has[gpus[seat]] = true;
    }
    if (!rc)
        layout_take(layout, cluster, gpus, has);
    return rc;
}
