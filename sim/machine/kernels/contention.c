#include "kernels/contention.h"

#include <limits.h>
#include <math.h>

#include "hardware/cluster.h"
#include "hardware/gpu.h"

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

struct contention_share contention_share(const struct cluster *cluster, const int *gpus, int n, bool margin)
{
    const struct communication *library;
    int nics = INT_MAX, multiprocessors = INT_MAX;
    unsigned kinds = 0;
    double channels = 0, share;
    bool waves = false;

    for (int i = 0; i < (cluster_kinds(cluster) > 1 ? n : 1); i++) {     /* of the kinds that it spans, the fewest */
        const struct gpu *sheet = cluster_sheet(cluster, gpus[i]);
        int node = cluster_node_of(cluster, gpus[i]), own = sheet->multiprocessors;

        kinds |= 1u << cluster_kind_of(cluster, node);
        nics = cluster_node_nics(cluster, node) < nics ? cluster_node_nics(cluster, node) : nics;
        multiprocessors = own < multiprocessors ? own : multiprocessors;
        waves |= !margin && sheet->compute_capability >= 9 && sheet->compute_capability < 10;
    }
    library = cluster_communication(cluster, kinds);
    if (library)
        channels = cluster_within_node(cluster, gpus, n)
                       ? library->channels_inside
                       : fmin(library->channels_spanning, 2.0 * nics);
    share = multiprocessors ? fmin(1, channels / multiprocessors) : 0;
    return (struct contention_share){share, waves && share > 0 ? fmax(share, 0.5) : share};
}

double contention_mean(struct contention_share share, double products)
{
    return share.all + products * (share.products - share.all);
}

double contention_exposed(double collective, double kernels, double share)
{
    return fmax(share * collective, collective - kernels);
}

void contention_add(struct contention *beside, double collective, struct contention_share share)
{
    beside->collective += collective;
    beside->kept.all += share.all * collective;
    beside->kept.products += share.products * collective;
}

void contention_join(struct contention *beside, const struct contention *more, int times)
{
    beside->collective = fmax(0, beside->collective + times * more->collective);
    beside->kept.all = fmax(0, beside->kept.all + times * more->kept.all);
    beside->kept.products = fmax(0, beside->kept.products + times * more->kept.products);
}

void contention_pass(struct contention *beside, double seconds)
{
    double left = fmax(0, beside->collective - seconds);

    double rest = left > 0 ? left / beside->collective : 0;

    beside->kept.all *= rest;
    beside->kept.products *= rest;
    beside->collective = left;
}

double contention_stretch(struct contention *beside, double kernels, double products)
{
    double share = beside->collective > 0 ? contention_mean(beside->kept, products) / beside->collective : 0, longer;

    if (share == 0) {
        contention_pass(beside, kernels);
        return 0;
    }
    longer = share * fmin(beside->collective, share < 1 ? kernels / (1 - share) : INFINITY);
    contention_pass(beside, kernels + longer);
    return longer;
}
