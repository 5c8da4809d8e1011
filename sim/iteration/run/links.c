#include "run/links.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "collective/measure.h"
#include "hardware/cluster.h"
#include "scenario/scenario.h"

const char *const link_class_names[] = {"inside", "nvlink", "pcie", "nic", "uplink", "host", NULL};
_Static_assert(COUNT(link_class_names) == LINKS_COUNT + 1, "a name for every class");

static enum link_class inside_class(const struct cluster *cluster, int node)
{
    static const enum link_class classes[] = {
        [INSIDE_OTHER] = LINKS_INSIDE, [INSIDE_NVLINK] = LINKS_NVLINK, [INSIDE_PCIE] = LINKS_PCIE,
    };

    return classes[cluster_inside_link(cluster, node)];
}

bool link_class_used(const struct cluster *cluster, enum link_class class)
{
    bool used = class > LINKS_PCIE;

    for (int kind = 0; kind < cluster_kinds(cluster); kind++)
        used |= class == inside_class(cluster, cluster_kind_node(cluster, kind));
    return used;
}

enum link_class carrier_class(const struct cluster *cluster, int carrier, int index)
{
    static const enum link_class classes[CARRIER_COUNT] = {
        [LINK_PORT_UP] = LINKS_INSIDE, [LINK_PORT_DOWN] = LINKS_INSIDE, [LINK_NIC_UP] = LINKS_NIC,
        [LINK_NIC_DOWN] = LINKS_NIC, [LINK_BETWEEN] = LINKS_UPLINK,
        [CARRIER_TO_HOST] = LINKS_HOST, [CARRIER_FROM_HOST] = LINKS_HOST,
    };

    return classes[carrier] == LINKS_INSIDE ? inside_class(cluster, cluster_node_of(cluster, index)) : classes[carrier];
}

double carrier_bandwidth(const struct cluster *cluster, int carrier, int index)
{
    return carrier < CARRIER_TO_HOST ? cluster_link_bandwidth(cluster, (struct link){(enum link_kind)carrier, index})
                                     : cluster_host_bandwidth(cluster, cluster_node_of(cluster, index));
}

void carrier_name(const struct cluster *cluster, int carrier, int index, char *buffer, size_t size)
{
    if (carrier < CARRIER_TO_HOST)
        cluster_link_name(cluster, (struct link){(enum link_kind)carrier, index}, buffer, size);
    else
        snprintf(buffer, size, "gpu%d.%s", index, carrier == CARRIER_TO_HOST ? "to-host" : "from-host");
}

/* What counting goes through: `place` tells of every GPU which part it has. */
struct counting {
    struct links *links;
    const struct scenario *scenario;
    const struct lowered *lowered;
    struct place_of { int t, replica, p; } *place;
};

static void carry(struct links *links, int carrier, int index, double payload, double wire)
{
    struct load *load = &links->loads[carrier][index];

    load->payload += payload;
    load->wire += wire;
}

static int moved(const struct counting *counting, int gpu, int t, int replicas)
{
    struct place_of place = counting->place[gpu];

    return scenario_gpu(counting->scenario, (place.t + t) % scenario_tensor(counting->scenario, place.p),
                        place.replica + replicas, place.p);
}

/* The same on the GPUs that many tensor indices and replicas further on. */
static void carry_pair(const struct counting *counting, struct pair pair, int t, int replicas)
{
    const struct cluster *cluster = &counting->scenario->cluster;
    struct route route = cluster_route(cluster, moved(counting, pair.src, t, replicas),
                                       moved(counting, pair.dst, t, replicas));

    for (int i = 0; i < route.count; i++)
        carry(counting->links, (int)route.links[i].kind, route.links[i].index, pair.payload, pair.wire);
}

/* What is sent within groups of the first replicas is sent as well within those that they stand for: on all tensor
 * indices where one stands for all, and on the replicas of the other groups where replicas are folded. `group` NULL:
 * a replica by itself. */
static void carry_all(const struct counting *counting, struct pair pair, const struct process_group *group,
                      bool tensors)
{
    int replicas = scenario_replicas(counting->scenario), groups = 1;
    int all = scenario_tensor(counting->scenario, counting->place[pair.src].p);
    bool within = !group || group->axis != AXIS_REPLICA;

    if (counting->lowered->alike.folded)
        groups = within ? replicas : replicas / group->size;
    for (int g = 0; g < groups; g++)
        for (int t = 0; t < (tensors ? all : 1); t++)
            carry_pair(counting, pair, t, within ? g : group_index(group, g, 0) - group->first);
}

/* What a rank copies to its host, or back, is copied on all GPUs of its tensor group, and in all replicas that it
 * stands for. */
static void carry_host(const struct counting *counting, const struct lane *lane, double bytes)
{
    int carrier = lane->kind == LANE_TO_HOST ? CARRIER_TO_HOST : CARRIER_FROM_HOST;
    int stages = counting->scenario->plan.stages;

    for (int r = lane->rank / stages; r < scenario_replicas(counting->scenario); r += counting->lowered->alike.replicas)
        for (int t = 0; t < scenario_tensor(counting->scenario, lane->rank % stages); t++)
            carry(counting->links, carrier, scenario_gpu(counting->scenario, t, r, lane->rank % stages), bytes, bytes);
}

/* Takes the bytes that went along a lane from `sum`, which is 0 then. */
static void carry_sum(const struct counting *counting, const struct lane *lane, struct pair *sum)
{
    if (sum->payload > 0 && (lane->kind == LANE_TO_HOST || lane->kind == LANE_FROM_HOST))
        carry_host(counting, lane, sum->payload);
    else if (sum->payload > 0)
        carry_all(counting, *sum, NULL, counting->lowered->alike.flows == 1);
    sum->payload = sum->wire = 0;
}

/* Sums the bytes of a lane as long as they go between the same GPUs, which in most lanes is always. */
static void count_program(const struct counting *counting)
{
    const struct program *program = &counting->lowered->program;
    bool ideal = counting->scenario->cluster.ideal;
    struct pair *sums = xcalloc(program->lanes.count + 1, sizeof *sums);

    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        const struct lane *lane = &program->lanes.items[op->lane];
        struct pair *sum = &sums[op->lane];

        if (op->kind == OP_TRANSFER && !ideal) {
            const struct op_transfer *transfer = &op_traits(program, op)->transfer;
            int src = (int)transfer->src, dst = (int)transfer->dst;

            if (sum->src != src || sum->dst != dst)
                carry_sum(counting, lane, sum);
            *sum = (struct pair){src, dst, sum->payload + payload_bytes(op->amount, transfer),
                                 sum->wire + wire_bytes(op->amount, transfer)};
        } else if (op->kind == OP_COMPUTE && (lane->kind == LANE_TO_HOST || lane->kind == LANE_FROM_HOST)) {
            sum->payload += op_traits(program, op)->compute.sent;
        }
    }
    for (size_t i = 0; i < program->lanes.count; i++)
        carry_sum(counting, &program->lanes.items[i], &sums[i]);
    free(sums);
}

/* The bytes that a group sends are divided among its pairs of GPUs as in the collective that was measured. */
static void count_measured(const struct counting *counting, const struct measure *measure)
{
    for (size_t i = 0; i < measure->carried.count; i++) {
        const struct carried *carried = &measure->carried.items[i];
        int shift;
        const struct pairs *pairs = measure_pairs(measure, carried, &shift);
        const struct process_group *group = &counting->scenario->groups.of[carried->kind];
        double all = 0;

        for (size_t k = 0; k < pairs->count; k++)
            all += pairs->items[k].payload;
        for (size_t k = 0; k < pairs->count; k++) {
            struct pair pair = pairs->items[k];
            double share = carried->bytes / all;

            pair = (struct pair){pair.src + shift, pair.dst + shift, pair.payload * share, pair.wire * share};
            carry_all(counting, pair, group, carried->kind != GROUP_TENSOR && group->tensors == 1);
        }
    }
}

static void make_loads(struct links *links, const struct cluster *cluster)
{
    int gpus = cluster_gpus(cluster), nics = cluster->ideal ? 0 : cluster_nics(cluster);
    int between = cluster->ideal ? 0 : cluster_between_links(cluster);

    for (int c = 0; c < CARRIER_COUNT; c++) {
        enum link_class kind = carrier_class(cluster, c, 0);

        links->counts[c] = kind == LINKS_NIC ? nics : kind == LINKS_UPLINK ? between : gpus;
        links->loads[c] = xcalloc((size_t)links->counts[c] + 1, sizeof *links->loads[c]);
    }
}

void links_count(struct links *links, const struct workload *workload, const struct lowered *lowered,
                 const struct measure *measure)
{
    const struct scenario *scenario = workload->scenario;
    struct counting counting = {links, scenario, lowered, NULL};

    make_loads(links, &scenario->cluster);
    counting.place = xcalloc((size_t)cluster_gpus(&scenario->cluster) + 1, sizeof *counting.place);
    for (int p = 0; p < scenario->parallelism.pipeline; p++)
        for (int r = 0; r < scenario_rank_replicas(scenario, p); r++)
            for (int t = 0; t < scenario_tensor(scenario, p); t++)
                counting.place[scenario_gpu(scenario, t, r, p)] = (struct place_of){t, r, p};
    count_program(&counting);
    if (!scenario->cluster.ideal)
        count_measured(&counting, measure);
    free(counting.place);
}

double links_busy(const struct links *links, const struct cluster *cluster, int carrier, int index, double seconds)
{
    return links->loads[carrier][index].wire / carrier_bandwidth(cluster, carrier, index) / seconds;
}

void links_release(struct links *links)
{
    for (int c = 0; c < CARRIER_COUNT; c++)
        free(links->loads[c]);
    memset(links, 0, sizeof *links);
}
