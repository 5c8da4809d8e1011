#include "modules/simgrid_platform.h"

#include <stdlib.h>

#include "base/base.h"
#include "hardware/cluster.h"

/* A GPU is two hosts. Its port, "gpu3", talks to the ports of its node. Its NIC, "nic0", which several GPUs may share,
 * talks to the NICs of other nodes. So no route needs more than [up, (uplinks), down] of one star, and each kind of
 * host gets zones that SimGrid routes by table look-up:
 *
 *     cluster (Full) -+- ports (star)     every gpuN: [gpuN.up] to the middle, [gpuN.down] from it
 *                     +- leaf0 (star)     every nicN below leaf 0, and the leaf's gateway to the other leaves
 *                     +- leaf1 (star)     leaf0 to leaf1: [leaf0.up, leaf1.down]
 *
 * One star holds the ports of all nodes. Ports of different nodes never talk, so it routes inside a node exactly as one
 * star for each node would, and SimGrid loads it in linear time (its Full zone is quadratic in the zones inside).
 *
 * Other topologies have no such zones: each pair of GPUs that sends gets its route, link by link. So it is where pairs
 * take no more than a part of their links, for C programs cannot say that of a transfer. Such transfers of a GPU have a
 * host, whose first link does not share its bandwidth, but bounds each flow (FATPIPE). */

/* 17 digits name every double. */
static void print_link(const struct cluster *cluster, struct link link, FILE *out)
{
    char name[48];
    double latency;         /* the NICs' links have the latency of the whole route; links of the topology have theirs */

    if (link.kind == LINK_PORT_UP || link.kind == LINK_PORT_DOWN)
        latency = cluster_latency(cluster, cluster_node_of(cluster, link.index), true) / 2;
    else if (link.kind == LINK_NIC_UP || link.kind == LINK_NIC_DOWN)
        latency = cluster_latency(cluster, cluster_node_of_nic(cluster, link.index), false) / 2;
    else
        latency = cluster_between_latency(cluster, link.index);
    cluster_link_name(cluster, link, name, sizeof name);
    fprintf(out, "      <link id=\"%s\" bandwidth=\"%.17gBps\" latency=\"%.17gs\"/>\n", name,
            cluster_link_bandwidth(cluster, link), latency);
}

/* A host of a star, with its links. Hosts compute nothing: an operation's seconds are given. */
static void print_arm(const struct cluster *cluster, const char *host, int index, enum link_kind up,
                      enum link_kind down, FILE *out)
{
    char up_name[48], down_name[48];

    cluster_link_name(cluster, (struct link){up, index}, up_name, sizeof up_name);
    cluster_link_name(cluster, (struct link){down, index}, down_name, sizeof down_name);
    fprintf(out, "      <host id=\"%s%d\" speed=\"1f\"/>\n", host, index);
    print_link(cluster, (struct link){up, index}, out);
    print_link(cluster, (struct link){down, index}, out);
    fprintf(out, "      <host_link id=\"%s%d\" up=\"%s\" down=\"%s\"/>\n", host, index, up_name, down_name);
}

static void print_ports(const struct cluster *cluster, const bool *used, FILE *out)
{
    fprintf(out, "    <zone id=\"ports\" routing=\"Cluster\">\n");
    for (int gpu = 0; gpu < cluster_gpus(cluster); gpu++)
        if ((!used || used[gpu]) && cluster_node_gpus(cluster, cluster_node_of(cluster, gpu)) > 1)
            print_arm(cluster, "gpu", gpu, LINK_PORT_UP, LINK_PORT_DOWN, out);
    fprintf(out, "    </zone>\n");
}

static void print_leaf(const struct cluster *cluster, const bool *nics, int leaf, FILE *out)
{
    int each = cluster_leaf_nodes(cluster);

    fprintf(out, "    <zone id=\"leaf%d\" routing=\"Cluster\">\n", leaf);
    for (int node = leaf * each; node < (leaf + 1) * each && node < cluster->nodes; node++)
        for (int k = 0; k < cluster_node_nics(cluster, node); k++)
            if (nics[cluster_node_nic(cluster, node, k)])
                print_arm(cluster, "nic", cluster_node_nic(cluster, node, k), LINK_NIC_UP, LINK_NIC_DOWN, out);
    fprintf(out, "      <router id=\"leaf%d.gateway\"/>\n    </zone>\n", leaf);
}

/* Links come first: a zone's routes may only name links that are declared before them. The topology has one level: its
 * links are the leaves' uplinks, up, then down. */
static void print_spine(const struct cluster *cluster, const bool *leaves, int count, FILE *out)
{
    for (int leaf = 0; leaf < count; leaf++) {
        if (!leaves[leaf])
            continue;
        print_link(cluster, (struct link){LINK_BETWEEN, leaf}, out);
        print_link(cluster, (struct link){LINK_BETWEEN, count + leaf}, out);
    }
    for (int src = 0; src < count; src++)
        for (int dst = 0; dst < count; dst++)
            if (src != dst && leaves[src] && leaves[dst])
                fprintf(out,
                        "    <zoneRoute src=\"leaf%d\" dst=\"leaf%d\" symmetrical=\"NO\" gw_src=\"leaf%d.gateway\""
                        " gw_dst=\"leaf%d.gateway\"><link_ctn id=\"leaf%d.up\"/><link_ctn id=\"leaf%d.down\"/>"
                        "</zoneRoute>\n",
                        src, dst, src, dst, src, dst);
}

static void print_network(const struct cluster *cluster, const bool *used, FILE *out)
{
    int count = cluster_leaf_of(cluster, cluster->nodes - 1) + 1;
    bool *nics = xcalloc((size_t)cluster_nics(cluster) + 1, sizeof *nics);
    bool *leaves = xcalloc((size_t)count, sizeof *leaves);

    for (int gpu = 0; gpu < cluster_gpus(cluster); gpu++)
        if (!used || used[gpu])
            nics[cluster_nic_of(cluster, gpu)] = leaves[cluster_leaf_of(cluster, cluster_node_of(cluster, gpu))] = true;
    for (int leaf = 0; leaf < count; leaf++)
        if (leaves[leaf])
            print_leaf(cluster, nics, leaf, out);
    if (count > 1)
        print_spine(cluster, leaves, count, out);
    free(nics);
    free(leaves);
}

static bool has_ports(const struct cluster *cluster)
{
    for (int kind = 0; kind < cluster_kinds(cluster); kind++)
        if (cluster_node_gpus(cluster, cluster_kind_node(cluster, kind)) > 1)
            return true;
    return false;
}

bool platform_is_paired(const struct cluster *cluster, const struct platform_use *use)
{
    for (size_t i = 0; i < use->count; i++)
        if (use->pairs[i].most > 0)
            return true;
    return (cluster_topology(cluster) != TOPOLOGY_NONBLOCKING && cluster_topology(cluster) != TOPOLOGY_LEAF_SPINE) ||
           cluster_has_pairs(cluster);
}

void platform_sender(int gpu, double most, char name[PLATFORM_HOST_SIZE])
{
    if (most > 0)
        snprintf(name, PLATFORM_HOST_SIZE, "gpu%d.%.17g", gpu, most);
    else
        snprintf(name, PLATFORM_HOST_SIZE, "gpu%d", gpu);
}

static void print_route(const struct cluster *cluster, const struct platform_pair *pair, FILE *out)
{
    struct route route = cluster_route(cluster, pair->src, pair->dst);
    char sender[PLATFORM_HOST_SIZE];

    platform_sender(pair->src, pair->most, sender);
    fprintf(out, "    <route src=\"%s\" dst=\"gpu%d\" symmetrical=\"NO\">", sender, pair->dst);
    if (pair->most > 0)
        fprintf(out, "<link_ctn id=\"%s\"/>", sender);
    for (int i = 0; i < route.count; i++) {
        char name[48];

        cluster_link_name(cluster, route.links[i], name, sizeof name);
        fprintf(out, "<link_ctn id=\"%s\"/>", name);
    }
    fputs("</route>\n", out);
}

static void print_links(const struct cluster *cluster, struct platform_use use, FILE *out)
{
    const int counts[] = {
        cluster_gpus(cluster), cluster_gpus(cluster), cluster_nics(cluster), cluster_nics(cluster),
        cluster_between_links(cluster),
    };
    bool *used[COUNT(counts)];

    for (size_t kind = 0; kind < COUNT(counts); kind++)
        used[kind] = xcalloc((size_t)counts[kind] + 1, sizeof *used[kind]);
    for (size_t i = 0; i < use.count; i++) {
        struct route route = cluster_route(cluster, use.pairs[i].src, use.pairs[i].dst);

        for (int hop = 0; hop < route.count; hop++)
            used[route.links[hop].kind][route.links[hop].index] = true;
    }
    for (size_t kind = 0; kind < COUNT(counts); kind++) {
        for (int i = 0; i < counts[kind]; i++)
            if (used[kind][i])
                print_link(cluster, (struct link){(enum link_kind)kind, i}, out);
        free(used[kind]);
    }
}

/* The hosts and links of pairs that take no more than a part of their links. */
static void print_bounds(struct platform_use use, FILE *out)
{
    for (size_t i = 0; i < use.count; i++) {
        const struct platform_pair *pair = &use.pairs[i];
        char sender[PLATFORM_HOST_SIZE];

        if (!(pair->most > 0) || (i && pair[-1].src == pair->src && pair[-1].most == pair->most))
            continue;
        platform_sender(pair->src, pair->most, sender);
        fprintf(out, "      <host id=\"%s\" speed=\"1f\"/>\n"
                     "      <link id=\"%s\" bandwidth=\"%.17gBps\" latency=\"0s\" sharing_policy=\"FATPIPE\"/>\n",
                sender, sender, pair->most);
    }
}

static void print_pairs(const struct cluster *cluster, struct platform_use use, FILE *out)
{
    for (int gpu = 0; gpu < cluster_gpus(cluster); gpu++)
        if (!use.gpus || use.gpus[gpu])
            fprintf(out, "      <host id=\"gpu%d\" speed=\"1f\"/>\n", gpu);
    print_bounds(use, out);
    print_links(cluster, use, out);
    for (size_t i = 0; i < use.count; i++)
        print_route(cluster, &use.pairs[i], out);
}

/* A cluster of one node needs no network (its file may leave it out); the ideal cluster has no links at all. */
void platform_print(const struct cluster *cluster, struct platform_use use, FILE *out)
{
    fprintf(out, "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                 "<platform version=\"4.1\">\n  <zone id=\"cluster\" routing=\"Full\">\n");
    if (!cluster->ideal && platform_is_paired(cluster, &use)) {
        print_pairs(cluster, use, out);
    } else if (!cluster->ideal) {
        if (has_ports(cluster))
            print_ports(cluster, use.gpus, out);
        if (cluster->nodes > 1)
            print_network(cluster, use.gpus, out);
    }
    fprintf(out, "  </zone>\n</platform>\n");
}
