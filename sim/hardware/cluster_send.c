/* What a message from GPU to GPU costs in addition to its route, by the communication library. */
#include "hardware/cluster.h"

#include <math.h>

struct extra extra_cost(double usual, double link, double latency, double bandwidth)
{
    return (struct extra){latency - usual, isinf(bandwidth) ? 0 : link / bandwidth - 1};
}

/* The extra cost of a send whose slower end is on that node. */
static struct extra send_at(const struct cluster *cluster, int node, bool inside, const struct pace *pace)
{
    double usual = cluster_latency(cluster, node, inside);
    double link = cluster_node_bandwidth(cluster, node, inside ? LINK_PORT_UP : LINK_NIC_UP);

    if (inside)
        return extra_cost(usual, link, fmax(pace->inside, usual),
                          pace->inside_share * cluster_bandwidth(cluster, node, true));
    return extra_cost(usual, link, fmax(pace->network, usual),
                      cluster_payload_share(cluster, 1u << cluster_kind_of(cluster, node), pace->network_share) *
                          cluster_nic_rate(cluster, node));
}

static const struct pace *send_pace(const struct cluster *cluster, int node)
{
    const struct communication *library = cluster_kind(cluster, node)->communication;

    return library && !cluster->ideal ? library->send : NULL;
}

/* Between nodes of two kinds the slower end decides. Both kinds have a library, or neither has. */
struct extra cluster_send(const struct cluster *cluster, int src, int dst)
{
    int from = cluster_node_of(cluster, src), to = cluster_node_of(cluster, dst);
    const struct pace *pace = send_pace(cluster, from);
    struct extra extra = {0, 0}, other;

    if (!pace)
        return extra;
    extra = send_at(cluster, from, from == to, pace);
    if (cluster_kind(cluster, from) == cluster_kind(cluster, to))
        return extra;
    other = send_at(cluster, to, false, send_pace(cluster, to));
    double usual = cluster_latency(cluster, from, false), other_usual = cluster_latency(cluster, to, false);
    double whole = fmax(usual + extra.delay, other_usual + other.delay);

    return (struct extra){whole - (usual + other_usual) / 2, fmax(extra.overhead, other.overhead)};
}

double cluster_copy(const struct cluster *cluster, int src, int dst)
{
    const int nodes[] = {cluster_node_of(cluster, src), cluster_node_of(cluster, dst)};
    double slowest = INFINITY;

    for (size_t end = 0; end < COUNT(nodes) && nodes[0] != nodes[1]; end++) {
        const struct pace *pace = send_pace(cluster, nodes[end]);

        slowest = pace ? fmin(slowest, pace->copy) : slowest;    /* fmin ignores NaN */
    }
    return slowest;
}
