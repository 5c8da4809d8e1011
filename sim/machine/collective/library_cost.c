#include "collective/library_cost.h"

#include <math.h>

double rate_in_steps(const struct protocol_cost *cost, enum collective_op op, double bandwidth, double each)
{
    double step = op == COLLECTIVE_ALL_REDUCE ? cost->all_reduce_step : cost->step;

    return isnan(step) || each <= 0 ? bandwidth : each / (step * fmin(1, each / cost->step_bytes) + each / bandwidth);
}

void rates_in_rounds(const struct protocol_cost *cost, double share, int channels, struct rates *rates)
{
    double latency = rates->network.latency, each = share / channels;
    double wire = each / fmin(rates->network.bandwidth, rates->network_most / channels);
    double rounds = fmax(1, share / cost->round), chunk = wire / rounds, slice = chunk, step;

    if (isnan(cost->round) || share <= 0)
        return;
    if (cost->slice < cost->round)
        slice *= cost->slice / cost->round;
    step = rounds * fmax(chunk, latency + slice);
    wire = fmax(wire, step - latency);
    rates->network = (struct hop){step - wire, each / wire};
    rates->launch += latency - rates->network.latency;
}

double port_flows(const struct collective_call *call)
{
    const struct group_topology *topology = &call->group->topology;
    bool leave = call->collective->ring && topology->nodes && topology->most > 1 && call->channels >= topology->most;

    return call->channels * (leave ? 1 - 1.0 / topology->most : 1);
}

double ring_most(const struct collective_call *call)
{
    return call->collective->ring && call->channels > 1 ? call->group->slowest.inside / port_flows(call) : 0;
}

/* Tenths of the bandwidth that a tree has with vectors of 64 B, 128 B, ... 256 MiB; 10 beyond. */
enum { SHARES = 23 };
static const char tree_tenths[PROTOCOL_COUNT][SHARES] = {
    [PROTOCOL_LL] = {10, 10, 10, 10, 9, 8, 7, 7, 7, 7, 6, 5, 4, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10},
    [PROTOCOL_LL128] = {10, 10, 10, 10, 10, 9, 8, 8, 8, 7, 6, 6, 6, 6, 6, 6, 8, 9, 9, 9, 9, 10, 10},
    [PROTOCOL_SIMPLE] = {9, 9, 9, 9, 9, 9, 9, 8, 7, 6, 6, 5, 5, 5, 5, 6, 7, 8, 7, 7, 8, 9, 9},
};

static double share_at(int protocol, double power)
{
    return !(power >= 0 && power < SHARES) ? 1 : tree_tenths[protocol][(int)power] / 10.0;
}

static void take_share(double bytes, int protocol, struct rates *rates)
{
    double power = log2(bytes / 64), share = share_at(protocol, power);

    if (power >= 0)
        share += (power - floor(power)) * (share_at(protocol, power + 1) - share);
    rates->inside.bandwidth *= share;
    rates->network.bandwidth *= share;
    rates->network_most *= share;
}

enum { SLOTS = 8, KIB = 1024 };

/* B of a chunk, where a tree has `bytes` on a channel and `depth` ranks from a leaf to the root. */
static double chunk_of(double bytes, int depth)
{
    double chunk = fmax(32 * KIB, fmin(64 * KIB, bytes / depth));

    chunk = fmax(chunk, fmin(128 * KIB, bytes / (4 * depth)));
    return fmin(bytes, fmax(chunk, fmin(512 * KIB, bytes / (8 * depth))));
}

static void wait_for_slots(const struct collective_call *call, struct task task, struct rates *rates)
{
    const struct placed_group *group = call->group;
    int nodes = group->topology.nodes ? task.n / task.per_node : task.n, each = task.n / nodes, levels = 0;
    double half = task.bytes / 2, chunk, port, nic;

    for (int reach = 1; reach < nodes; reach *= 2)
        levels++;
    if (half <= 0 || !levels)
        return;
    chunk = chunk_of(half, each - 1 + levels);
    port = fmin(rates->inside.bandwidth, rates->network_most) / call->channels;
    rates->inside.latency += chunk / port;
    if (!group->topology.nodes)
        return;
    int used = call->channels < group->topology.fewest_nics ? call->channels : group->topology.fewest_nics;
    double connections = (nodes > 4 ? 4 : nodes) * (double)call->channels / used;

    nic = fmin(rates->network.bandwidth, connections * SLOTS * chunk / (2 * rates->network.latency));
    rates->network.bandwidth = nic;
    rates->network.latency += chunk * call->channels / used / nic;
}

/* How long a chunk takes to arrive depends on the links alone. */
void rates_in_slots(const struct collective_call *call, struct task task, int protocol, struct rates *rates)
{
    struct rates alone = *rates;

    if (protocol == PROTOCOL_SIMPLE)
        wait_for_slots(call, task, rates);
    take_share(call->bytes, protocol, &alone);
    rates->inside.bandwidth = alone.inside.bandwidth;
    rates->network.bandwidth = fmin(rates->network.bandwidth, alone.network.bandwidth);
    rates->network_most = alone.network_most;
}

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
