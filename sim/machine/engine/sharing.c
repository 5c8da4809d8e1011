#include "engine/sharing.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "hardware/cluster.h"

static const uint32_t NONE = UINT32_MAX;
/* Sums of bandwidths round: a link is not shared for less than this share of what it carries. */
static const double SLACK = 1e-12;

/* What a link carries, and what is wanted of it, in B/s: the sum over lanes of the most that a transfer of the lane takes. */
struct wanted {
    double capacity;                 /* 0: no transfer has been looked at */
    double all, lane, route;         /* by all lanes; by the lane that is looked at; by its route that is looked at */
    uint32_t of_lane, of_route;      /* which ones these are, + 1 */
};

/* The routes of the lanes: a transfer's traits, and the next route of its lane. */
struct lane_routes { struct lane_route { uint32_t traits, next; } *items; size_t count, capacity; };

/* The routes of each lane, some more than once; the caller frees `*first`, of each lane. */
static struct lane_routes find_routes(const struct program *program, uint32_t **first)
{
    struct lane_routes routes = {0};

    *first = xcalloc(program->lanes.count + 1, sizeof **first);
    memset(*first, 0xff, program->lanes.count * sizeof **first);     /* NONE */
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        uint32_t *last = &(*first)[op->lane];

        if (op->kind != OP_TRANSFER || op->amount <= 0 || (*last != NONE && routes.items[*last].traits == op->traits))
            continue;
        *GROW(&routes) = (struct lane_route){op->traits, *last};
        *last = (uint32_t)routes.count - 1;
    }
    return routes;
}

static size_t number_of(const struct sharing *sharing, struct link link)
{
    return sharing->first[link.kind] + (size_t)link.index;
}

/* A route may cross a link several times. */
static void want(struct wanted *wanted, uint32_t lane, uint32_t number, double rate)
{
    if (wanted->of_route != number + 1)
        wanted->route = 0;
    if (wanted->of_lane != lane + 1)
        wanted->lane = 0;
    wanted->of_route = number + 1;
    wanted->of_lane = lane + 1;
    wanted->route += rate;
    if (wanted->route > wanted->lane) {
        wanted->all += wanted->route - wanted->lane;
        wanted->lane = wanted->route;
    }
}

static struct route route_of(const struct program *program, const struct cluster *cluster, uint32_t traits)
{
    const struct op_transfer *transfer = &program->traits.items[traits].transfer;

    return cluster_route(cluster, (int)transfer->src, (int)transfer->dst);
}

/* Whether transfers of these traits cross a link that is shared. */
static bool any_shared(const struct sharing *sharing, const struct route *route)
{
    for (int hop = 0; hop < route->count; hop++)
        if (sharing_has(sharing, route->links[hop]))
            return true;
    return false;
}

static void want_all(struct sharing *sharing, const struct program *program, const struct cluster *cluster,
                     const struct lane_routes *routes, const uint32_t *first, const struct transfer_cost *costs)
{
    for (uint32_t lane = 0; lane < program->lanes.count; lane++)
        for (uint32_t i = first[lane]; i != NONE; i = routes->items[i].next) {
            struct route route = route_of(program, cluster, routes->items[i].traits);

            for (int hop = 0; hop < route.count; hop++) {
                struct wanted *wanted = &sharing->links[number_of(sharing, route.links[hop])];

                if (wanted->capacity == 0)
                    wanted->capacity = cluster_link_bandwidth(cluster, route.links[hop]);
                want(wanted, lane, i, costs[routes->items[i].traits].bandwidth);
            }
        }
}

struct sharing sharing_of(const struct program *program, const struct cluster *cluster, struct transfer_cost *costs)
{
    struct sharing sharing = {0};
    struct lane_routes routes;
    uint32_t *first;

    if (cluster->ideal)
        return sharing;
    const size_t links[] = {(size_t)cluster_gpus(cluster), (size_t)cluster_gpus(cluster), (size_t)cluster_nics(cluster),
                            (size_t)cluster_nics(cluster), (size_t)cluster_between_links(cluster)};
    for (size_t kind = 0; kind < COUNT(links); kind++) {
        sharing.first[kind] = sharing.count;
        sharing.count += links[kind];
    }
    routes = find_routes(program, &first);
    sharing.links = xcalloc(sharing.count + 1, sizeof *sharing.links);
    want_all(&sharing, program, cluster, &routes, first, costs);
    for (size_t i = 0; i < routes.count; i++) {
        struct route route = route_of(program, cluster, routes.items[i].traits);

        sharing.any |= costs[routes.items[i].traits].shares = any_shared(&sharing, &route);
    }
    free(first);
    free(routes.items);
    if (!sharing.any)
        sharing_release(&sharing);
    return sharing;
}

bool sharing_has(const struct sharing *sharing, struct link link)
{
    const struct wanted *wanted = &sharing->links[number_of(sharing, link)];

    return wanted->all > wanted->capacity * (1 + SLACK);
}

/* A transfer's bytes are under way from `from` to `to` (s). */
struct crossing { double from, to, rate; uint32_t id; };

static int by_begin(const void *a, const void *b)
{
    const struct crossing *x = a, *y = b;

    return x->from != y->from ? (x->from < y->from ? -1 : 1) : x->id < y->id ? -1 : x->id > y->id;
}

/* The transfers that may share links, in the order in which their bytes begin. */
static struct crossing *list_crossings(const struct timeline *timeline, const struct transfer_cost *costs, size_t *count)
{
    const struct program *program = timeline->program;
    struct crossing *crossings = xcalloc(program->ops.count + 1, sizeof *crossings);

    *count = 0;
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        const struct transfer_cost *cost = &costs[op->traits];

        if (op->kind != OP_TRANSFER || op->amount <= 0 || !cost->shares)
            continue;
        bool buffered = op_traits(program, op)->transfer.buffered;
        crossings[(*count)++] = (struct crossing){
            timeline->start[i] + (buffered ? 0 : cost->latency), timeline->end[i] - (buffered ? cost->latency : 0),
            cost->bandwidth, (uint32_t)i,
        };
    }
    array_sort(crossings, *count, sizeof *crossings, by_begin);
    return crossings;
}

/* The transfers under way on a link. */
struct under_way { const struct crossing **items; size_t count, capacity; };

/* Another one comes to a link at which those that have ended are forgotten. */
static bool meets(struct under_way *there, const struct crossing *next, double capacity, double together, bool *met)
{
    double wanted = next->rate;
    size_t kept = 0;

    for (size_t i = 0; i < there->count; i++)
        if (there->items[i]->to > next->from + together) {
            wanted += there->items[i]->rate;
            there->items[kept++] = there->items[i];
        }
    there->count = kept;
    *GROW(there) = next;
    if (wanted <= capacity * (1 + SLACK))
        return false;
    for (size_t i = 0; i < there->count; i++)
        met[there->items[i]->id] = true;
    return true;
}

bool *sharing_met(const struct sharing *sharing, const struct timeline *timeline, const struct cluster *cluster,
                  const struct transfer_cost *costs)
{
    const struct program *program = timeline->program;
    bool *met = xcalloc(program->ops.count + 1, sizeof *met), any = false;
    size_t count, links = sharing->count;
    struct crossing *crossings = list_crossings(timeline, costs, &count);
    struct under_way *there = xcalloc(links + 1, sizeof *there);

    for (size_t i = 0; i < count; i++) {
        const struct op *op = &program->ops.items[crossings[i].id];
        struct route route = route_of(program, cluster, op->traits);

        for (int hop = 0; hop < route.count; hop++) {
            size_t number = number_of(sharing, route.links[hop]);

            if (sharing_has(sharing, route.links[hop]))
                any |= meets(&there[number], &crossings[i], sharing->links[number].capacity,
                             ROUNDING * timeline->makespan, met);
        }
    }
    for (size_t link = 0; link < links; link++)
        free(there[link].items);
    free(there);
    free(crossings);
    if (any)
        return met;
    free(met);
    return NULL;
}

void sharing_release(struct sharing *sharing)
{
    free(sharing->links);
    *sharing = (struct sharing){0};
}
