#include "layout/layout.h"

#include "base/base.h"
#include "hardware/cluster.h"

/* The degree of the dimension whose seats are next to each other. */
static int innermost_degree(const struct layout *layout, const int *order)
{
    for (int i = 0; i < DIMENSION_COUNT; i++)
        if (layout->degree[order[i]] > 1)
            return layout->degree[order[i]];
    return 1;
}

/* The GPUs that the job takes of each node, of a cluster whose nodes are equal; the cluster has its size then. */
static int take(const struct layout *layout, struct cluster *cluster, int innermost)
{
    int each = cluster_node_gpus(cluster, 0), fewest = (layout->seats - 1) / each + 1;
    int most = cluster->nodes ? cluster->nodes : fewest + fewest / 8;

    for (int nodes = fewest; nodes <= most && nodes <= fewest + fewest / 8 && fewest > 1 && !cluster->ideal; nodes++) {
        int even = layout->seats / nodes;

        if (layout->seats % nodes || (innermost <= each && even % innermost))
            continue;
        cluster_size(cluster, nodes * each);
        return even;
    }
    cluster_size(cluster, layout->seats);
    return each;
}

/* The parts of the cluster, with the number of GPUs that the job takes of each node; 0: all. Leaves out parts that the
 * job does not reach, unless it may take any. */
static void add_parts(struct layout *layout, const struct cluster *cluster, int taken, bool any)
{
    int first = 0;

    layout->part_count = 0;
    for (int i = 0; i < cluster_parts(cluster); i++) {
        struct cluster_part part = cluster_part(cluster, i);
        int each = cluster_node_gpus(cluster, part.first);

        if (i > 0 && first >= layout->seats && !any)
            break;
        layout->parts[layout->part_count++] = (struct layout_part){
            first, cluster_node_gpu(cluster, part.first, 0), each, taken ? taken : each, part.kind,
        };
        first += part.nodes * (taken ? taken : each);
    }
}

/* Numbers the seats of ranks with degrees of their own, rank by rank. */
static void number_seats(struct layout *layout, struct rank_degrees *ranks, const int *order)
{
    int tensor = 0, data = 0;

    for (int i = 0; i < DIMENSION_COUNT; i++) {
        tensor = order[i] == DIMENSION_TENSOR ? i : tensor;
        data = order[i] == DIMENSION_DATA ? i : data;
    }
    layout->ranks = ranks;
    layout->data_first = data < tensor;
    layout->seats = 0;
    for (int p = 0; p < layout->degree[DIMENSION_PIPELINE]; p++) {
        ranks[p].first_seat = layout->seats;
        layout->seats += ranks[p].tensor * ranks[p].data;
    }
}

void layout_make(struct layout *layout, struct cluster *cluster, const int degree[DIMENSION_COUNT],
                 const int order[DIMENSION_COUNT], struct rank_degrees *ranks)
{
    int taken;

    *layout = (struct layout){.seats = 1};
    for (int i = 0; i < DIMENSION_COUNT; i++) {
        layout->degree[order[i]] = degree[order[i]];
        layout->stride[order[i]] = layout->seats;
        layout->seats *= degree[order[i]];
    }
    if (ranks)
        number_seats(layout, ranks, order);
    taken = cluster_parts(cluster) == 1 ? take(layout, cluster, innermost_degree(layout, order)) : 0;
    add_parts(layout, cluster, taken, false);
    for (int i = 0; i < layout->part_count; i++)
        layout->mixed |= layout->parts[i].kind != layout->parts[0].kind;
    layout->spans = cluster_node_of(cluster, layout_nth_gpu(layout, layout->seats - 1)) > 0;
}

int layout_nth_gpu(const struct layout *layout, int seat)
{
    const struct layout_part *part = layout->parts;

    if (layout->gpus)
        return layout->gpus[seat];
    while (part + 1 < layout->parts + layout->part_count && part[1].first <= seat)
        part++;
    seat -= part->first;
    return part->first_gpu + (part->taken == part->each ? seat : seat / part->taken * part->each + seat % part->taken);
}

int layout_tensor(const struct layout *layout, int p)
{
    return layout->ranks ? layout->ranks[p].tensor : layout->degree[DIMENSION_TENSOR];
}

int layout_data(const struct layout *layout, int p)
{
    return layout->ranks ? layout->ranks[p].data : layout->degree[DIMENSION_DATA];
}

int layout_replicas(const struct layout *layout, int p)
{
    return layout_data(layout, p) * layout->degree[DIMENSION_CONTEXT];
}

struct rank_replica layout_rank_replica(const struct layout *layout, int seat)
{
    const int *stride = layout->stride, *degree = layout->degree;
    int p = 0;

    if (!layout->ranks)
        return (struct rank_replica){seat / stride[DIMENSION_PIPELINE] % degree[DIMENSION_PIPELINE],
                                     seat / stride[DIMENSION_DATA] % degree[DIMENSION_DATA]};
    while (p + 1 < degree[DIMENSION_PIPELINE] && layout->ranks[p + 1].first_seat <= seat)
        p++;
    seat -= layout->ranks[p].first_seat;
    return (struct rank_replica){p, layout->data_first ? seat % layout->ranks[p].data : seat / layout->ranks[p].tensor};
}

int layout_gpu(const struct layout *layout, int t, int replica, int p)
{
    const int *stride = layout->stride, context = layout->degree[DIMENSION_CONTEXT];
    const struct rank_degrees *own = layout->ranks ? &layout->ranks[p] : NULL;

    BUG_IF(own && (t >= own->tensor || replica >= own->data));
    if (own)
        return layout_nth_gpu(layout, own->first_seat + (layout->data_first ? t * own->data + replica
                                                                            : replica * own->tensor + t));
    return layout_nth_gpu(layout, t * stride[DIMENSION_TENSOR] + replica / context * stride[DIMENSION_DATA] +
                                      replica % context * stride[DIMENSION_CONTEXT] + p * stride[DIMENSION_PIPELINE]);
}

/* The part with that GPU. */
static const struct layout_part *part_of(const struct layout *layout, int gpu)
{
    int i = 0;

    while (i + 1 < layout->part_count && layout->parts[i + 1].first_gpu <= gpu)
        i++;
    return &layout->parts[i];
}

bool layout_has(const struct layout *layout, int gpu)
{
    const struct layout_part *part = part_of(layout, gpu);

    if (layout->has)
        return layout->has[gpu];
    gpu -= part->first_gpu;
    return gpu % part->each < part->taken &&
           part->first + gpu / part->each * part->taken + gpu % part->each < layout->seats;
}

int layout_node_seats(const struct layout *layout, int gpu)
{
    const struct layout_part *part = part_of(layout, gpu);

    return part->taken < layout->seats ? part->taken : layout->seats;
}

void layout_take(struct layout *layout, const struct cluster *cluster, const int *gpus, const bool *has)
{
    layout->gpus = gpus;
    layout->has = has;
    add_parts(layout, cluster, 0, true);
    layout->mixed = layout->spans = false;
    for (int seat = 1; seat < layout->seats; seat++) {
        layout->mixed |= part_of(layout, gpus[seat])->kind != part_of(layout, gpus[0])->kind;
        layout->spans |= cluster_node_of(cluster, gpus[seat]) != cluster_node_of(cluster, gpus[0]);
    }
}

int layout_kind_seats(const struct layout *layout, int kind)
{
    int seats = 0;

    for (int seat = 0; layout->gpus && seat < layout->seats; seat++)
        seats += part_of(layout, layout->gpus[seat])->kind == kind;
    if (layout->gpus)
        return seats;
    for (int i = 0; i < layout->part_count; i++)
        if (layout->parts[i].kind == kind)
            seats += (i + 1 < layout->part_count ? layout->parts[i + 1].first : layout->seats) - layout->parts[i].first;
    return seats;
}

struct seat layout_seat(const struct layout *layout, const struct cluster *cluster, int t, int replica, int p)
{
    int gpu = layout_gpu(layout, t, replica, p);

    return (struct seat){gpu, cluster_node_of(cluster, gpu), part_of(layout, gpu)->kind,
                          cluster->gpu_slower ? cluster->gpu_slower[gpu] : 1};
}

unsigned layout_kinds(const struct layout *layout, int p)
{
    unsigned kinds = 0;

    if (!layout->mixed)
        return 1u << part_of(layout, layout_nth_gpu(layout, 0))->kind;
    for (int r = 0; r < layout_replicas(layout, p); r++)
        for (int t = 0; t < layout_tensor(layout, p); t++)
            kinds |= 1u << part_of(layout, layout_gpu(layout, t, r, p))->kind;
    return kinds;
}

double layout_common(int i, int n, int k, int m)
{
    long long from = (long long)i * m, to = from + m, other = (long long)k * n, end = other + n;

    from = other > from ? other : from;
    to = end < to ? end : to;
    return to > from ? (double)(to - from) / ((double)n * m) : 0;
}
