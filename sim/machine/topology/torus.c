#include "topology/topology_internal.h"

#include <math.h>

#include "base/base.h"

static const int *dims_of(const struct topology *keys)
{
    return keys->dims.items;
}

static int dims(struct topology_of topology)
{
    return (int)topology.keys->dims.count;
}

long long torus_nodes(const struct topology *topology)
{
    long long nodes = 1;

    for (size_t k = 0; k < topology->dims.count && nodes < INT32_MAX; k++)
        nodes *= dims_of(topology)[k];
    return nodes;
}

static int nodes_of(const struct torus *torus)
{
    int nodes = 1;

    for (int k = 0; k < torus->dims; k++)
        nodes *= torus->size[k];
    return nodes;
}

/* How far node `number` of a torus is from its first one, by the node numbers of a larger torus, which are `strides`
 * apart along its dimensions. */
static int distance(const struct torus *torus, const int *strides, int number)
{
    int node = 0;

    for (int k = torus->dims - 1; k >= 0; number /= torus->size[k], k--)
        node += number % torus->size[k] * strides[k];
    return node;
}

bool topology_torus_of(const struct topology *topology, const int *nodes, int n, struct torus *torus)
{
    int strides[TORUS_DIMS], stride = (int)torus_nodes(topology);

    *torus = (struct torus){0};
    if (topology->kind != TOPOLOGY_TORUS || !topology->wraps)
        return false;
    for (size_t k = 0; k < topology->dims.count; k++) {
        int size = dims_of(topology)[k], same = 0;

        stride /= size;
        while (same < n && nodes[same] / stride % size == nodes[0] / stride % size)
            same++;
        if (same < n) {
            strides[torus->dims] = stride;
            torus->size[torus->dims++] = size;
        }
    }
    bool is = n == nodes_of(torus);

    for (int i = 0; i < n && is; i++)
        is = nodes[i] == nodes[0] + distance(torus, strides, i);
    if (!is)
        *torus = (struct torus){0};
    return is;
}

static int torus_links(struct topology_of topology)
{
    return topology.nodes * 2 * dims(topology);
}

/* A number that tells apart the messages along one line of dimension k: the sum of their start coordinates in the
 * dimensions before k and their end coordinates in the dimensions after it. */
static int others(struct topology_of topology, int src, int dst, int k)
{
    int sum = 0, stride = topology.nodes;

    for (int other = 0; other < dims(topology); other++) {
        int size = dims_of(topology.keys)[other];

        stride /= size;
        if (other != k)
            sum += (other < k ? src : dst) / stride % size;
    }
    return sum;
}

/* Steps from one coordinate to another: positive up, negative down. `odd`: down where both are equally long. */
static int steps(const struct topology *keys, int size, int from, int to, int odd)
{
    int up = (to - from + size) % size;

    if (!keys->wraps)
        return to - from;
    if (2 * up == size)
        return odd % 2 ? -up : up;
    return 2 * up < size ? up : up - size;
}

/* Node numbers count the last dimension fastest. */
static void torus_way(struct topology_of topology, struct topology_end src, struct topology_end dst,
                      struct topology_way *way)
{
    int here = src.node, stride = topology.nodes;

    for (int k = 0; k < dims(topology); k++) {
        int size = dims_of(topology.keys)[k];

        stride /= size;
        int at = here / stride % size, odd = at + others(topology, src.node, dst.node, k);
        int left = steps(topology.keys, size, at, dst.node / stride % size, odd);
        int step = left < 0 ? -1 : 1;

        for (; left; left -= step) {
            way_through(way, (here * dims(topology) + k) * 2 + (step < 0));
            way->latency += topology.keys->hop_time;
            here += ((at + step + size) % size - at) * stride;
            at = (at + step + size) % size;
        }
    }
}

static struct topology_link torus_link(struct topology_of topology, int link)
{
    return (struct topology_link){topology.keys->link, 1, topology.keys->hop_time, link / 2 / dims(topology), 1, true};
}

static void torus_name(struct topology_of topology, int link, char *buffer, size_t size)
{
    static const char axes[] = "xyzwvuts";
    int dim = link / 2 % dims(topology);

    snprintf(buffer, size, "node%d.%c%c", link / 2 / dims(topology), axes[dim], link % 2 ? '-' : '+');
}

static int torus_block(struct topology_of topology)
{
    (void)topology;
    return 1;
}

/* If all N nodes send to all, half of the bytes cross the middle of the longest dimension, of n nodes, on 4 N / n links
 * (2 N / n without wrap). So a link direction carries n / 8 (n / 4) times the bytes that a node sends. */
static double torus_crowding(struct topology_of topology, int node, int other, double nic)
{
    int longest = 1;

    (void)node, (void)other;
    for (int k = 0; k < dims(topology); k++)
        longest = dims_of(topology.keys)[k] > longest ? dims_of(topology.keys)[k] : longest;
    double share = longest / (topology.keys->wraps ? 8.0 : 4.0), link = topology.keys->link;
    return fmax(1, fmax(1, share) * (isnan(link) ? 1 : topology.nics * nic / link));
}

const struct topology_class topology_torus = {
    torus_links, torus_way, torus_link, torus_name, torus_block, torus_crowding,
};
