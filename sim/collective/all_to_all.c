#include "collective/all_to_all.h"

#include <math.h>

/* Sends that are grouped into one collective begin at the same time, so its launch includes their latency once. */
static struct protocol_cost grouped(const struct protocol_cost *send, bool nodes)
{
    struct protocol_cost cost = *send;

    cost.launch += nodes ? send->network : send->inside;
    cost.inside = cost.spanning = cost.network = 0;
    return cost;
}

bool all_to_all_cost(const struct communication *communication, int protocol, bool nodes, struct protocol_cost *cost)
{
    const struct all_to_all_costs *inside = &communication->all_to_all;
    const struct all_to_all_cost *with = protocol == PROTOCOL_LL     ? inside->ll :
                                         protocol == PROTOCOL_SIMPLE ? inside->simple : NULL;

    *cost = grouped(communication->send, nodes);
    if (nodes || (!inside->ll && !inside->simple))
        return protocol == PROTOCOL_SIMPLE;
    if (!with)
        return false;
    cost->launch = with->launch;
    cost->inside_share = with->inside_share;
    cost->all_to_all = with;
    return true;
}

/* Where messages become large, the time does not fall: it stays as it is until large_ends would take as long. */
double all_to_all_ends(const struct all_to_all_cost *cost, int n, double bytes)
{
    double share = bytes / n, ends = cost->ends;

    if (bytes <= 0)
        return ends;
    if (share > cost->large_from && !isnan(cost->large_ends))        /* NaN: never */
        ends = fmax(cost->large_ends, (n - 1 + ends) * cost->large_from / share - (n - 1));
    return isnan(cost->pieces) ? ends : ends + cost->piece_copy * fmin(bytes, cost->pieces) / share;
}
