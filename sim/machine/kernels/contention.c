#include "kernels/contention.h"

#include <limits.h>
#include <math.h>

#include "hardware/cluster.h"

bool contention_possible(const struct cluster *cluster)
{
    bool known = false;

    for (int kind = 0; kind < cluster_kinds(cluster); kind++)
        known |= cluster_sheet(cluster, cluster_kind_gpu(cluster, kind))->multiprocessors > 0;
    for (int kind = 0; kind < cluster_kinds(cluster) && known; kind++) {
        const struct communication *library = cluster_communication(cluster, 1u << kind);

        if (library && (library->channels_inside > 0 || library->channels_spanning > 0))
            return true;
    }
    return false;
}

double contention_share(const struct cluster *cluster, const int *gpus, int n)
{
    const struct communication *library;
    int nics = INT_MAX, multiprocessors = INT_MAX;
    unsigned kinds = 0;
    double channels = 0;

    for (int i = 0; i < (cluster_kinds(cluster) > 1 ? n : 1); i++) {     /* of the kinds that it spans, the fewest */
        int node = cluster_node_of(cluster, gpus[i]), own = cluster_sheet(cluster, gpus[i])->multiprocessors;

        kinds |= 1u << cluster_kind_of(cluster, node);
        nics = cluster_node_nics(cluster, node) < nics ? cluster_node_nics(cluster, node) : nics;
        multiprocessors = own < multiprocessors ? own : multiprocessors;
    }
    library = cluster_communication(cluster, kinds);
    if (library)
        channels = cluster_within_node(cluster, gpus, n)
                       ? library->channels_inside
                       : fmin(library->channels_spanning, 2.0 * nics);
    return multiprocessors ? fmin(1, channels / multiprocessors) : 0;
}

double contention_exposed(double collective, double kernels, double share)
{
    return fmax(share * collective, collective - kernels);
}

void contention_add(struct contention *beside, double collective, double share)
{
    beside->collective += collective;
    beside->kept += share * collective;
}

void contention_pass(struct contention *beside, double seconds)
{
    double left = fmax(0, beside->collective - seconds);

    if (left > 0)
        beside->kept *= left / beside->collective;
    else
        beside->kept = 0;
    beside->collective = left;
}

double contention_stretch(struct contention *beside, double kernels)
{
    double share = beside->collective > 0 ? beside->kept / beside->collective : 0, longer;

    if (share == 0) {
        contention_pass(beside, kernels);
        return 0;
    }
    longer = share * fmin(beside->collective, share < 1 ? kernels / (1 - share) : INFINITY);
    contention_pass(beside, kernels + longer);
    return longer;
}
