#include "hardware/slow_parts.h"

#include "base/base.h"
#include "config/field.h"

enum { NUMBER_MAX = 1048575 };

static const struct field straggler_fields[] = {
    {KEY(straggler, gpu), .kind = FIELD_INT, .max = NUMBER_MAX, .required = true,
     .brief = "its number, node by node, from 0"},
    {KEY(straggler, slower), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1, .max = 1e6, .required = true,
     .brief = "how many times as long its computations take; 1: it is as fast as the others"},
};

const struct table straggler_table = {
    TABLE("stragglers", "a GPU that computes slower than the others", straggler, straggler_fields),
};

static const struct field slow_link_fields[] = {
    {.key = "node", AT(slow_link, of_node), .kind = FIELD_INT, .max = NUMBER_MAX, .required = true,
     .brief = "number of the node, from 0"},
    {KEY(slow_link, nic), .kind = FIELD_INT, .max = NUMBER_MAX, .required = true,
     .brief = "number of the NIC within the node, from 0"},
    {KEY(slow_link, share), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1e-6, .max = 1, .required = true,
     .brief = "share of its bandwidth that is left, in both directions; 1: it is as fast as the others"},
};

const struct table slow_link_table = {
    TABLE("slow_links", "a NIC that is slower than the others", slow_link, slow_link_fields),
};

/* Refuses a number that is not among `count`, which are of `owner` ("the cluster"). */
static int check_number(const struct table *table, const void *record, const char *key, int number, int count,
                        const char *owner, struct error *err)
{
    if (number < count)
        return 0;
    return error_clash(err, field_loc(table, record, key), "%s: %s: found %d, but %s has %d; expected %s%d",
                       table->name, key, number, owner, count, count > 1 ? "0 to " : "", count - 1);
}

static int set_gpu(const struct straggler *straggler, const struct cluster *cluster, double *slower,
                   struct error *err)
{
    if (check_number(&straggler_table, straggler, "gpu", straggler->gpu, cluster_gpus(cluster), "the cluster", err))
        return -1;
    if (slower[straggler->gpu] > 0)
        return error_add(err, EXIT_INPUT, field_loc(&straggler_table, straggler, "gpu"),
                         "stragglers: gpu: %d is named twice", straggler->gpu);
    slower[straggler->gpu] = straggler->slower;
    return 0;
}

static int set_nic(const struct slow_link *link, const struct cluster *cluster, double *shares, struct error *err)
{
    if (cluster->ideal)
        return error_clash(err, link->node->loc, "slow_links: the ideal cluster has no NICs; expected a "
                           "cluster with a network");
    if (check_number(&slow_link_table, link, "node", link->of_node, cluster->nodes, "the cluster", err) ||
        check_number(&slow_link_table, link, "nic", link->nic, cluster_node_nics(cluster, link->of_node), "a node",
                     err))
        return -1;
    if (cluster_nics_together(cluster, link->of_node) > 1)
        return error_clash(err, link->node->loc, "slow_links: each GPU of node %d uses %d NICs together, and a slow one "
                           "of these is not simulated; expected at most as many NICs as GPUs", link->of_node,
                           cluster_nics_together(cluster, link->of_node));
    int nic = cluster_node_nic(cluster, link->of_node, link->nic);
    if (shares[nic] > 0)
        return error_add(err, EXIT_INPUT, field_loc(&slow_link_table, link, "nic"),
                         "slow_links: NIC %d of node %d is named twice", link->nic, link->of_node);
    shares[nic] = link->share;
    return 0;
}

/* What nobody named is 1. NULL where all are. */
static const double *completed(double *values, int count)
{
    bool any = false;

    for (int i = 0; i < count; i++) {
        values[i] = values[i] > 0 ? values[i] : 1;
        any |= values[i] != 1;
    }
    return any ? values : NULL;
}

static bool has_slower_part(const struct cluster *cluster)
{
    for (int i = 0; i < cluster_given_parts(cluster); i++)
        if (cluster_given_part(cluster, i).slower > 1)
            return true;
    return false;
}

/* A part's factor holds for all of its GPUs, stragglers among them too. */
static void slow_down(const struct cluster *cluster, struct given_part part, double *slower)
{
    int first = cluster_node_gpu(cluster, part.first, 0);
    int end = first + part.nodes * cluster_node_gpus(cluster, part.first);

    for (int gpu = first; gpu < end && part.slower > 1; gpu++)
        slower[gpu] = (slower[gpu] > 0 ? slower[gpu] : 1) * part.slower;
}

int slow_parts_set(struct arena *arena, const struct list *stragglers, const struct list *slow_links,
                   struct cluster *cluster, struct error *err)
{
    int gpus = cluster_gpus(cluster), nics = cluster_nics(cluster), rc = 0;
    double *slower = stragglers->count || has_slower_part(cluster) ? ARENA_ARRAY(arena, double, gpus) : NULL;
    double *shares = slow_links->count ? ARENA_ARRAY(arena, double, nics) : NULL;

    for (size_t i = 0; i < stragglers->count; i++)
        if (set_gpu((const struct straggler *)stragglers->items + i, cluster, slower, err))
            rc = -1;
    for (size_t i = 0; i < slow_links->count; i++)
        if (set_nic((const struct slow_link *)slow_links->items + i, cluster, shares, err))
            rc = -1;
    for (int i = 0; slower && i < cluster_given_parts(cluster); i++)
        slow_down(cluster, cluster_given_part(cluster, i), slower);
    cluster->gpu_slower = slower ? completed(slower, gpus) : NULL;
    cluster->nic_shares = shares ? completed(shares, nics) : NULL;
    return rc;
}
