/* Estimates of the time of collectives on a cluster, by their own formulas; the choice of the cheapest algorithm and
 * protocol of the communication library. */
#include "collective/collective.h"
#include "collective/library_cost.h"
#include "hardware/cluster.h"

#include <math.h>

/* The number of channels on which a collective runs: a small one does not need all. */
static double channels_used(const struct protocol_cost *cost, double bytes)
{
    double used = bytes / cost->channel_from;

    return isnan(used) ? cost->channels : fmin(fmax(used, 1), cost->channels);
}

/* Network latency in s: between the latencies of one channel and of all channels. */
static double network_latency(const struct protocol_cost *cost, double bytes)
{
    if (isnan(cost->network_single) || cost->channels == 1)
        return cost->network;
    return cost->network_single +
           (cost->network - cost->network_single) * (channels_used(cost, bytes) - 1) / (cost->channels - 1);
}

/* The factor on the latency of large all-reduces; 1 for all other collectives (NCCL, src/graph/tuning.cc). `nodes`: the
 * group spans several. */
static double plateau_of(const struct protocol_cost *cost, enum collective_op op, bool nodes, double bytes)
{
    if (op != COLLECTIVE_ALL_REDUCE || !(bytes >= cost->plateau_from))       /* NaN: never */
        return 1;
    return nodes ? cost->spanning_plateau : cost->plateau;
}

/* The share of the bandwidth in a node that is left, because at the ends of a ring a rank does not send and receive at
 * once. A gather sends n - 1 messages in n steps, the first of which only sends and the last of which only receives; an
 * all-reduce sends 2 (n - 1) in 2 n - 1 (NCCL, src/device/all_gather.h, all_reduce.h). cost.ends says how much of such
 * a step is not hidden. Measured bandwidths of 2, 4 and 8 GPUs follow it within 3 %. */
static double ends_share(const struct protocol_cost *cost, const struct collective_call *call)
{
    const struct collective *collective = call->collective;
    int n = call->group->n;
    double messages = (collective->op == COLLECTIVE_ALL_REDUCE ? 2.0 : 1.0) * (n - 1);
    double ends = cost->all_to_all ? all_to_all_ends(cost->all_to_all, n, call->bytes) : cost->ends;

    if (n < 2 || (!collective->ring && collective->op != COLLECTIVE_ALL_TO_ALL))
        return 1;
    return messages / (messages + ends);
}

/* `tuned`: as the library's tuning estimates, which knows no link's latency (NCCL, src/graph/tuning.cc). */
static struct rates rates_of(const struct collective_call *call, const struct protocol_cost *cost, bool tuned)
{
    const struct placed_group *group = call->group;
    const struct node_links *slowest = &group->slowest;
    const struct collective *collective = call->collective;
    struct rates rates = {
        .inside = {tuned ? 0 : slowest->inside_latency, slowest->inside},
        .network = {tuned ? 0 : slowest->network_latency, slowest->network},
        .network_most = INFINITY,
    };

    if (!cost)
        return rates;
    bool nodes = group->topology.nodes;
    double factor = plateau_of(cost, collective->op, nodes, call->bytes);
    rates.launch = cost->launch + group->communication->launch;
    rates.inside.latency = fmax(rates.inside.latency,
                                factor * (nodes ? fmax(cost->inside, cost->spanning) : cost->inside));
    rates.inside.bandwidth = cost->inside_share * group->mesh_share * slowest->inside_sheet;
    if (!nodes)
        rates.inside.bandwidth = fmin(rates.inside.bandwidth * ends_share(cost, call),
                                      cost->inside_most);       /* fmin ignores NaN */
    else
        rates.network_most = fmin(fmin(slowest->sockets, cost->network_most), call->channels * cost->nic_most);
    if (nodes && collective->ring && !tuned)
        rates.inside.bandwidth = rate_in_steps(cost, collective->op, fmin(rates.inside.bandwidth, rates.network_most),
                                         call->bytes / group->n);
    rates.network = (struct hop){fmax(rates.network.latency, factor * network_latency(cost, call->bytes)),
                                 cluster_payload_share(group->cluster, group->kinds, cost->network_share) *
                                     (tuned ? slowest->network_sheet : slowest->nic_rate)};
    return rates;
}

/* The bandwidth of the NICs that the library chose for the group; sends use each GPU's own NIC. */
static void take_nics(const struct collective_call *call, struct rates *rates)
{
    if (call->collective->library_cost != LIBRARY_SEND)
        rates->network.bandwidth = placed_group_nic_bandwidth(call->group, rates->network.bandwidth);
}

/* B of the vector that are on their way through the switches at once. */
static double piece_of(const struct protocol_cost *cost, const struct placed_group *group, const struct task *task)
{
    const struct list *chunks = group->topology.nodes ? &cost->spanning_chunks : &cost->chunks;
    double piece = 0, lanes = (double)cost->channels * task->per_node;

    for (size_t i = 0; i < chunks->count; i++) {
        const struct chunk *chunk = (const struct chunk *)chunks->items + i;

        piece = lanes * chunk->bytes;
        if (task->bytes >= chunk->rounds * piece)
            break;
    }
    return fmin(piece, task->bytes);
}

static struct fabric fabric_of(const struct collective_call *call, const struct rates *rates, double flows)
{
    const struct group_topology *topology = &call->group->topology;
    int channels = call->channels;
    struct hop inside = {0, INFINITY}, between, crowded;

    if (topology->most > 1)
        inside = (struct hop){rates->inside.latency, fmin(rates->inside.bandwidth, rates->network_most) / flows};
    if (!topology->nodes)
        return (struct fabric){.inside = inside, .between = inside, .crowded = inside};
    double nic = rates->network.bandwidth, most = rates->network_most / channels;
    between = crowded = (struct hop){rates->network.latency,
                                     fmin(nic * fmin(1, (double)topology->fewest_nics / channels), most)};
    crowded.bandwidth = fmin(nic * topology->share / channels, most) / topology->crowding;
    between.bandwidth /= topology->narrowing;
    if (topology->scattered)
        between = crowded;
    return (struct fabric){.inside = topology->most > 1 ? inside : between, .between = between, .crowded = crowded};
}

static int channels_of(const struct collective *collective, int channels)
{
    return collective->every_nic ? 1 : channels;
}

/* The profile's values for few ranks in the switch, if the group is that small and in one node; else NULL. */
static const struct nvls_few *few_of(const struct placed_group *group)
{
    const struct nvls_few *few = group && group->communication ? group->communication->nvls_few : NULL;

    return few && !group->topology.nodes && group->n <= few->most ? few : NULL;
}

/* The protocol cost of a collective; false: the library has no such pair. `group` NULL: of any group in one node. */
static bool find_cost(const struct collective *collective, const struct communication *communication, int protocol,
                      const struct placed_group *group, struct protocol_cost *cost)
{
    const struct nvls_few *few = collective->library_cost == LIBRARY_NVLS ? few_of(group) : NULL;
    const struct protocol_cost *found = NULL;

    if (collective->library_cost == LIBRARY_SEND)
        return all_to_all_cost(communication, protocol, group && group->topology.nodes, cost);
    if (collective->library_cost == LIBRARY_TREE)
        found = algorithm_cost_with(&communication->tree, (enum protocol)protocol);
    else if (collective->library_cost == LIBRARY_NVLS)
        found = algorithm_cost_with(&communication->nvls, (enum protocol)protocol);
    else
        found = algorithm_cost_with(&communication->ring, (enum protocol)protocol);
    if (found)
        *cost = *found;
    cost->protocol = protocol;
    if (found && few && !isnan(few->inside_share))
        cost->inside_share = few->inside_share;
    return found;
}

static bool has_costs(const struct collective *collective, const struct communication *library)
{
    struct protocol_cost cost = {0};

    for (int protocol = 0; library && protocol < PROTOCOL_COUNT; protocol++)
        if (find_cost(collective, library, protocol, NULL, &cost))
            return true;
    return false;
}

/* If switches reduce, a message's hop stands for their work. */
static void stand_in_for(struct hop *hop, double latency, double bytes, double fill)
{
    hop->latency = latency * hop->latency + fill / hop->bandwidth;
    hop->bandwidth /= bytes;
}

struct task collective_task(const struct collective_call *call)
{
    const struct placed_group *group = call->group;

    return (struct task){.n = group->n, .per_node = group->per_node, .bytes = call->bytes / call->channels,
                         .buffered = has_costs(call->collective, group->communication), .torus = group->torus};
}

static struct rates switched(const struct collective_call *call, const struct protocol_cost *cost, struct rates rates)
{
    struct task task = collective_task(call);
    struct stand_in stand_in = call->collective->in_switch(&task, piece_of(cost, call->group, &task));

    if (stand_in.through > 0)        /* topology.share: the part of a NIC's bandwidth that a member has */
        rates.network.bandwidth = fmin(rates.network.bandwidth,
                                       rates.inside.bandwidth / stand_in.through / call->group->topology.share);
    rates.stands = stand_in.crosses - 1;
    stand_in_for(&rates.inside, stand_in.inside.latency, stand_in.inside.bytes, stand_in.inside.fill);
    stand_in_for(&rates.network, stand_in.between.latency, stand_in.between.bytes, stand_in.between.fill);
    return rates;
}

/* The rates of a collective's messages by a cost of the library's profile. */
static struct rates profile_rates(const struct collective_call *call, const struct protocol_cost *cost)
{
    struct rates rates = rates_of(call, cost, false);

    take_nics(call, &rates);
    if (call->collective->in_switch)
        rates = switched(call, cost, rates);
    if (call->collective->ring)
        rates_in_rounds(cost, call->bytes / call->group->n, call->channels, &rates);
    if (call->collective->library_cost == LIBRARY_TREE)
        rates_in_slots(call, collective_task(call), cost->protocol, &rates);
    return rates;
}

/* Seconds of the call's collective, on all its channels. `tuned`: see rates_of(). */
static double cost_at(const struct collective_call *call, const struct protocol_cost *cost, bool tuned)
{
    const struct collective *collective = call->collective;
    struct task task = collective_task(call);
    struct rates rates = cost && !tuned ? profile_rates(call, cost) : rates_of(call, cost, tuned);
    struct fabric fabric = {.inside = {0, INFINITY}, .between = {0, INFINITY}, .crowded = {0, INFINITY}};
    double launch;

    if (tuned && collective->in_switch)
        rates = switched(call, cost, rates);
    launch = call->group->n > 1 ? rates.launch : 0;
    if (!call->group->cluster->ideal)
        fabric = fabric_of(call, &rates, cost && !tuned ? port_flows(call) : call->channels);
    fabric.buffered = cost;
    fabric.tuned = tuned;
    fabric.channels = call->channels;
    struct hop far = collective->crowds ? fabric.crowded : fabric.between;

    if (collective->cost)
        return launch + collective->cost(&task, &fabric);
    return launch + collective->ideal(&task, fmax(fabric.inside.latency, far.latency),
                                      fmin(fabric.inside.bandwidth, far.bandwidth));
}

/* A collective with the protocol that takes the least time here, so that more bytes never take less. `supposed`: s that
 * the library's tuning estimates for it, by which auto chooses among algorithms. */
static struct collective_choice choose_protocol(struct collective_call call, double *supposed)
{
    const struct placed_group *group = call.group;

    call.channels = channels_of(call.collective, call.channels);
    struct collective_choice best = {call.collective, call.channels, PROTOCOL_NONE, INFINITY};
    struct protocol_cost cost = {0};

    if (!has_costs(call.collective, group->communication)) {
        *supposed = best.seconds = cost_at(&call, NULL, false);
        return best;
    }
    *supposed = INFINITY;
    for (int protocol = 0; protocol < PROTOCOL_COUNT; protocol++) {
        double seconds;

        if (!find_cost(call.collective, group->communication, protocol, group, &cost))
            continue;
        *supposed = fmin(*supposed, cost_at(&call, &cost, true));
        seconds = cost_at(&call, &cost, false);
        if (seconds < best.seconds) {
            best.protocol = protocol;
            best.seconds = seconds;
        }
    }
    return best;
}

/* Whether the collective runs on nodes of all these kinds (bit k: kind k) with that communication library. */
static bool runs_on(const struct collective *collective, const struct cluster *cluster, unsigned kinds,
                    const struct communication *library)
{
    if (collective->torus)
        return cluster_wraps(cluster);
    for (int kind = 0; kind < cluster_kinds(cluster) && collective->in_switch; kind++)
        if (kinds >> kind & 1 && cluster_is_mesh(cluster, cluster_kind_node(cluster, kind)))
            return false;
    return !collective->in_switch || has_costs(collective, library);
}

bool collective_runs_on(const struct collective *collective, const struct cluster *cluster)
{
    for (int kind = 0; kind < cluster_kinds(cluster); kind++)
        if (!runs_on(collective, cluster, 1u << kind, cluster->ideal ? NULL : cluster_communication(cluster, 1u << kind)))
            return false;
    return true;
}

/* Whether auto may let the switch reduce: it needs several ranks in a node. */
static bool may_switch(const struct placed_group *group, double bytes)
{
    const struct nvls_few *few = few_of(group);

    return group->per_node > 1 && (!few || (group->n >= few->least && !(bytes < few->bytes)));     /* NaN: any */
}

/* Whether auto may choose it. NCCL's tree is a chain inside a node, and no better there than a ring. */
static bool is_candidate(const struct collective *collective, const struct placed_group *group, double bytes)
{
    if (!collective->write_messages || collective->torus ||
        !runs_on(collective, group->cluster, group->kinds, group->communication))
        return false;
    if (!group->communication)
        return true;
    if (!collective->library || !has_costs(collective, group->communication))
        return false;
    return collective->library_cost == LIBRARY_NVLS ? may_switch(group, bytes) :
           collective->library_cost == LIBRARY_TREE ? group->topology.nodes : true;
}

struct collective_choice collective_choose(const struct collective_call *call)
{
    const struct collective *collective = call->collective, *candidate;
    struct collective_choice best = {collective, channels_of(collective, call->channels), PROTOCOL_NONE, NAN};
    double least = INFINITY, supposed;

    if (collective->write_messages)
        return has_costs(collective, call->group->communication) ? choose_protocol(*call, &supposed) : best;
    for (size_t i = 0; (candidate = collective_of(collective->op, i)); i++) {
        struct collective_call other = *call;
        struct collective_choice choice;

        if (!is_candidate(candidate, call->group, call->bytes))
            continue;
        other.collective = candidate;
        choice = choose_protocol(other, &supposed);
        if (!best.used->write_messages || supposed < least) {
            best = choice;
            least = supposed;
        }
    }
    return best;
}

int collective_lanes(const struct collective_call *call)
{
    const struct collective *collective = call->collective, *candidate;
    struct collective_call other = collective_chosen(*call, collective, channels_of(collective, call->channels));
    int most = 1;

    if (collective->write_messages) {
        struct task task = collective_task(&other);
        return other.channels * (collective->ports ? collective->ports(&task) : 1);
    }
    for (size_t i = 0; (candidate = collective_of(collective->op, i)); i++) {
        other.collective = candidate;
        if (is_candidate(candidate, call->group, INFINITY) && collective_lanes(&other) > most)
            most = collective_lanes(&other);
    }
    return most;
}

double collective_cost(const struct collective_call *call)
{
    double supposed;

    return call->collective->write_messages ? choose_protocol(*call, &supposed).seconds : collective_choose(call).seconds;
}

static struct op_transfer transfer_of(struct extra extra, int protocol)
{
    return (struct op_transfer){.delay = extra.delay, .overhead = extra.overhead, .buffered = true,
                                .protocol = protocol_bytes((enum protocol)protocol)};
}

struct tuning collective_tuning(const struct collective_call *chosen, int protocol)
{
    const struct placed_group *group = chosen->group;
    const struct group_topology *topology = &group->topology;
    const struct node_links *slowest = &group->slowest;
    struct tuning tuning = {0};
    struct rates rates;
    struct protocol_cost cost = {0};

    if (protocol == PROTOCOL_NONE)
        return tuning;
    find_cost(chosen->collective, group->communication, protocol, chosen->group, &cost);
    rates = profile_rates(chosen, &cost);
    tuning.launch = group->n > 1 ? rates.launch : 0;
    tuning.inside = tuning.between = (struct op_transfer){.buffered = true};
    if (topology->most > 1) {
        tuning.inside = transfer_of(extra_cost(slowest->inside_latency, slowest->inside, rates.inside.latency,
                                               fmin(rates.inside.bandwidth, rates.network_most)), protocol);
        tuning.inside.stands = rates.stands;
        tuning.inside.most = ring_most(chosen);
    }
    if (topology->nodes) {
        int used = chosen->channels < topology->fewest_nics ? chosen->channels : topology->fewest_nics;

        tuning.between = transfer_of(extra_cost(slowest->network_latency, slowest->network, rates.network.latency,
                                                fmin(rates.network.bandwidth, rates.network_most / used)), protocol);
    }
    return tuning;
}
