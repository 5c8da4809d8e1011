#include "hardware/contention.h"

#include <math.h>

bool contention_possible(const struct cluster *cluster)
{
    bool known = false;

    for (int kind = 0; kind < cluster_kinds(cluster); kind++)
        known |= cluster_sheet(cluster, cluster_kind_gpu(cluster, kind))->multiprocessors > 0;
    return cluster->communication && known &&
           (cluster->communication->channels_inside > 0 || cluster->communication->channels_spanning > 0);
}

double contention_share(const struct cluster *cluster, const int *gpus, int n)
{
    const struct communication *library = cluster->communication;
    int nics = cluster_node_nics(cluster, cluster_node_of(cluster, gpus[0]));
    int multiprocessors = cluster_sheet(cluster, gpus[0])->multiprocessors;
    double channels = 0;

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
