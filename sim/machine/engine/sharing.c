#include "engine/sharing.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "hardware/cluster.h"

static const uint32_t NONE = UINT32_MAX;
/* Sums of bandwidths round: a link is not shared for less than this share of what it carries. */
static const double SLACK = 1e-12;

/* What a link carries, and what is wanted of it, in B/s: the sum over lanes of the most that a transfer of the lane
 * takes. */
struct wanted {
    double capacity;                 /* 0: no transfer has been looked at */
    double all, lane, route;         /* by all lanes; by the lane that is looked at; by its route that is looked at */
    uint32_t of_lane, of_route;      /* which ones these are, + 1 */
    uint32_t number;                 /* of the shared link + 1 */
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

/* All links of the cluster, numbered kind by kind. */
struct numbers { size_t first[LINK_BETWEEN + 1], count; };

static struct numbers number_links(const struct cluster *cluster)
{
    const size_t links[] = {(size_t)cluster_gpus(cluster), (size_t)cluster_gpus(cluster), (size_t)cluster_nics(cluster),
                            (size_t)cluster_nics(cluster), (size_t)cluster_between_links(cluster)};
    struct numbers numbers = {.count = 0};

    for (size_t kind = 0; kind < COUNT(links); kind++) {
        numbers.first[kind] = numbers.count;
        numbers.count += links[kind];
    }
    return numbers;
}

static struct wanted *wanted_of(struct wanted *wanted, const struct numbers *numbers, struct link link)
{
    return &wanted[numbers->first[link.kind] + (size_t)link.index];
}

static struct route route_of(const struct program *program, const struct cluster *cluster, uint32_t traits)
{
    const struct op_transfer *transfer = &program->traits.items[traits].transfer;

    return cluster_route(cluster, (int)transfer->src, (int)transfer->dst);
}

/* The shared links of the routes, by traits. */
static void list_shared(struct sharing *sharing, const struct program *program, const struct cluster *cluster,
                        const struct lane_routes *routes, struct wanted *wanted, const struct numbers *numbers,
                        struct transfer_cost *costs)
{
    sharing->routes = xcalloc(program->traits.count + 1, sizeof *sharing->routes);
    for (size_t i = 0; i < routes->count; i++) {
        uint32_t traits = routes->items[i].traits;
        struct shared_route *own = &sharing->routes[traits];
        struct route route;

        if (own->hops)
            continue;
        route = route_of(program, cluster, traits);
        own->first = (uint32_t)sharing->crossed.count;
        for (int hop = 0; hop < route.count; hop++) {
            struct wanted *link = wanted_of(wanted, numbers, route.links[hop]);

            if (link->all <= link->capacity * (1 + SLACK))
                continue;
            if (!link->number) {
                *GROW(&sharing->links) = (struct shared_link){route.links[hop], link->capacity};
                link->number = (uint32_t)sharing->links.count;
            }
            *GROW(&sharing->crossed) = link->number - 1;
            own->hops++;
        }
        sharing->any |= costs[traits].shares = own->hops > 0;
    }
}

struct sharing sharing_of(const struct program *program, const struct cluster *cluster, struct transfer_cost *costs)
{
    struct sharing sharing = {0};
    struct lane_routes routes;
    struct numbers numbers;
    struct wanted *wanted;
    uint32_t *first;

    if (cluster->ideal)
        return sharing;
    numbers = number_links(cluster);
    wanted = xcalloc(numbers.count + 1, sizeof *wanted);
    routes = find_routes(program, &first);
    for (uint32_t lane = 0; lane < program->lanes.count; lane++)
        for (uint32_t i = first[lane]; i != NONE; i = routes.items[i].next) {
            struct route route = route_of(program, cluster, routes.items[i].traits);

            for (int hop = 0; hop < route.count; hop++) {
                struct wanted *link = wanted_of(wanted, &numbers, route.links[hop]);

                if (link->capacity == 0)
                    link->capacity = cluster_link_bandwidth(cluster, route.links[hop]);
                want(link, lane, i, costs[routes.items[i].traits].bandwidth);
            }
        }
    list_shared(&sharing, program, cluster, &routes, wanted, &numbers, costs);
    free(wanted);
    free(first);
    free(routes.items);
    if (!sharing.any)
        sharing_release(&sharing);
    return sharing;
}

/* A transfer's bytes are under way from `from` to `to` (s). */
struct crossing { double from, to, rate; uint32_t id; };

static int by_begin(const void *a, const void *b)
{
    const struct crossing *x = a, *y = b;

    return x->from != y->from ? (x->from < y->from ? -1 : 1) : x->id < y->id ? -1 : x->id > y->id;
}

static bool asks(const struct op *op, const struct transfer_cost *costs)
{
    return op->kind == OP_TRANSFER && op->amount > 0 && costs[op->traits].shares;
}

/* The crossings of each shared link, in the order of ids; the caller frees them. `first`: of a link, one more at the end. */
static struct crossing *list_crossings(const struct sharing *sharing, const struct timeline *timeline,
                                       const struct transfer_cost *costs, size_t *first)
{
    const struct program *program = timeline->program;
    const uint32_t *crossed = sharing->crossed.items;
    size_t *transfers = xcalloc(program->traits.count + 1, sizeof *transfers);
    struct crossing *crossings;

    for (size_t i = 0; i < program->ops.count; i++)
        transfers[program->ops.items[i].traits] += asks(&program->ops.items[i], costs);
    for (size_t i = 0; i < program->traits.count; i++)
        for (uint32_t hop = 0; transfers[i] && hop < sharing->routes[i].hops; hop++)
            first[crossed[sharing->routes[i].first + hop] + 2] += transfers[i];
    free(transfers);
    for (size_t link = 2; link < sharing->links.count + 2; link++)
        first[link] += first[link - 1];
    crossings = xrealloc(NULL, first[sharing->links.count + 1] + 1, sizeof *crossings);
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];

        if (!asks(op, costs))
            continue;
        const struct transfer_cost *cost = &costs[op->traits];
        struct shared_route route = sharing->routes[op->traits];
        bool buffered = op_traits(program, op)->transfer.buffered;
        struct crossing own = {timeline->start[i] + (buffered ? 0 : cost->latency),
                               timeline->end[i] - (buffered ? cost->latency : 0), cost->bandwidth, (uint32_t)i};

        for (uint32_t hop = 0; hop < route.hops; hop++)
            crossings[first[crossed[route.first + hop] + 1]++] = own;
    }
    return crossings;
}

/* Most are in order already, or nearly. */
static void sort_crossings(struct crossing *crossings, size_t count)
{
    enum { FAR = 8 };

    for (size_t i = 1; i < count; i++) {
        struct crossing own = crossings[i];
        size_t at = i;

        for (; at && crossings[at - 1].from > own.from && i - at < FAR; at--)
            crossings[at] = crossings[at - 1];
        crossings[at] = own;
        if (at && crossings[at - 1].from > own.from) {
            array_sort(crossings, count, sizeof *crossings, by_begin);
            return;
        }
    }
}

/* Whether more is wanted of a link at some time than it carries. Those before `there` have ended; `room` for all. */
static bool meet(const struct crossing *crossings, size_t count, double capacity, double together, uint32_t *room, bool *met)
{
    size_t there = 0;
    bool any = false;

    for (size_t i = 0; i < count && (met || !any); i++) {
        double wanted = crossings[i].rate;
        size_t kept = 0;

        for (size_t k = 0; k < there; k++)
            if (crossings[room[k]].to > crossings[i].from + together) {
                wanted += crossings[room[k]].rate;
                room[kept++] = room[k];
            }
        room[kept] = (uint32_t)i;
        there = kept + 1;
        if (wanted <= capacity * (1 + SLACK))
            continue;
        any = true;
        for (size_t k = 0; met && k < there; k++)
            met[crossings[room[k]].id] = true;
    }
    return any;
}

bool sharing_meets(const struct sharing *sharing, const struct timeline *timeline, const struct transfer_cost *costs,
                   bool *met)
{
    size_t *first = xcalloc(sharing->links.count + 2, sizeof *first);
    struct crossing *crossings = list_crossings(sharing, timeline, costs, first);
    uint32_t *room = xrealloc(NULL, first[sharing->links.count] + 1, sizeof *room);
    bool any = false;

    for (size_t link = 0; link < sharing->links.count && (met || !any); link++) {
        struct crossing *own = crossings + first[link];
        size_t count = first[link + 1] - first[link];

        sort_crossings(own, count);
        any |= meet(own, count, sharing->links.items[link].capacity, ROUNDING * timeline->makespan, room, met);
    }
    free(room);
    free(crossings);
    free(first);
    return any;
}

void sharing_release(struct sharing *sharing)
{
    free(sharing->links.items);
    free(sharing->routes);
    free(sharing->crossed.items);
    *sharing = (struct sharing){0};
}
