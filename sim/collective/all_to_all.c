#include "collective/all_to_all.h"

#include <math.h>

/* Sends that are grouped into one collective begin at the same time, so its launch includes their latency once. */
static struct pace grouped(const struct pace *send, bool nodes)
{
    struct pace pace = *send;

    pace.launch += nodes ? send->network : send->inside;
    pace.inside = pace.spanning = pace.network = 0;
    return pace;
}

bool all_to_all_pace(const struct communication *communication, int protocol, bool nodes, struct pace *pace)
{
    const struct all_to_all_paces *inside = &communication->all_to_all;
    const struct all_to_all_pace *with = protocol == PROTOCOL_LL     ? inside->ll :
                                         protocol == PROTOCOL_SIMPLE ? inside->simple : NULL;

    *pace = grouped(communication->send, nodes);
    if (nodes || (!inside->ll && !inside->simple))
        return protocol == PROTOCOL_SIMPLE;
    if (!with)
        return false;
    pace->launch = with->launch;
    pace->inside_share = with->inside_share;
    pace->all_to_all = with;
    return true;
}

/* Where messages become large, the time does not fall: it stays as it is until large_ends would take as long. */
double all_to_all_ends(const struct all_to_all_pace *pace, int n, double bytes)
{
    double share = bytes / n, ends = pace->ends;

    if (bytes <= 0)
        return ends;
    if (share > pace->large_from && !isnan(pace->large_ends))        /* NaN: never */
        ends = fmax(pace->large_ends, (n - 1 + ends) * pace->large_from / share - (n - 1));
    return isnan(pace->pieces) ? ends : ends + pace->piece_copy * fmin(bytes, pace->pieces) / share;
}
