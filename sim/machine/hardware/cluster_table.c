/* The keys of a cluster in a file, of its parts and of what is between these. */
#include "hardware/cluster.h"

#include <stddef.h>

#include "base/base.h"
#include "config/field.h"
#include "topology/topology.h"

enum { NODES_MAX = 1000000, GPUS_PER_NODE_MAX = 1024 };

static const char *const inside_link_names[] = ENUM_NAMES(INSIDE_LINKS);

static const struct field mesh_fields[] = {
    {KEY(mesh, gpus), .kind = FIELD_INT, .min = 2, .max = GPUS_PER_NODE_MAX, .required = true,
     .brief = "number of GPUs of a node in a ring"},
    {KEY(mesh, share), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1e-6, .max = 1, .required = true,
     .brief = "share of the bandwidth that such a ring gets"},
};

static const struct table mesh_table = {
    TABLE("mesh", "bandwidth of rings on links that connect pairs of GPUs", mesh, mesh_fields),
};

static const struct field inside_fields[] = {
    {KEY(inside, link), .kind = FIELD_CHOICE, .choices = inside_link_names, .fallback = "other",
     .brief = "what the links are; it names their class in results and changes no time"},
    {KEY(inside, bandwidth), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "bandwidth per GPU and direction, from the data sheet"},
    {KEY(inside, latency), .kind = FIELD_QUANTITY, .unit = UNIT_TIME,
     .brief = "latency of a message from GPU to GPU, one way"},
    {KEY(inside, efficiency), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1e-6, .max = 1, .fallback = "1",
     .brief = "share of the bandwidth that transfers achieve"},
    {.key = "mesh", AT(inside, meshes), .kind = FIELD_LIST, .table = &mesh_table,
     .brief = "if links connect pairs of GPUs: share of the bandwidth that rings of some size get; used only with a "
              "communication profile"},
};

const struct table cluster_inside_table = {
    TABLE("inside", "the links between the GPUs of a node (NVLink, PCIe)", inside, inside_fields),
};

static const struct field network_fields[] = {
    {.key = "name", AT(cluster, network.name), .kind = FIELD_STRING, .files = "platforms/networks",
     .brief = "a name of platforms/networks/ (dtsim list networks) or a path, whose keys replace the platform's; the other "
              "keys here replace the file's"},
    {.key = "title", AT(cluster, network.title), .kind = FIELD_STRING, .brief = "full name"},
    {.key = "estimate", AT(cluster, network.estimate), .kind = FIELD_STRING,
     .brief = "which numbers rest on few public measurements; results say so, and exposed communication makes their expected error larger"},
    {.key = "bandwidth", AT(cluster, kinds[0].nics.bandwidth), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH,
     .positive = true, .brief = "bandwidth per NIC and direction, from the data sheet"},
    {.key = "latency", AT(cluster, kinds[0].nics.latency), .kind = FIELD_QUANTITY, .unit = UNIT_TIME,
     .brief = "latency of a message from GPU to GPU, one way"},
    {.key = "efficiency", AT(cluster, kinds[0].nics.efficiency), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1e-6,
     .max = 1, .fallback = "1", .brief = "share of the bandwidth that transfers achieve"},
    {.key = "share", AT(cluster, kinds[0].nics.share), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1e-6, .max = 1,
     .brief = "the most of a NIC's bandwidth that payload gets on this network; left out: the share of the communication "
              "profile or, without one, the efficiency"},
    {.key = "rate", AT(cluster, kinds[0].nics.rate), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "bandwidth to which software limits a NIC (netem); the communication library does not know this limit"},
    {.key = "thread_rate", AT(cluster, kinds[0].nics.thread_rate), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH,
     .positive = true, .brief = "over sockets: what one thread of the communication library sends or receives; left out: "
                                "no thread is in the way (RDMA)"},
    {.key = "threads", AT(cluster, kinds[0].nics.threads), .kind = FIELD_INT, .min = 1, .max = 16, .fallback = "1",
     .brief = "such threads of a GPU's process (NCCL_SOCKET_NTHREADS; NCCL itself takes its one proxy thread, on EC2 2, on "
              "Google Cloud 4)"},
    {.key = "nics", AT(cluster, kinds[0].nics.count), .kind = FIELD_INT, .min = 1, .max = GPUS_PER_NODE_MAX,
     .fallback = "1", .brief = "number of NICs per node; its GPUs share them evenly, or each uses several together, as one NIC"},
    {.key = "topology", AT(cluster, network.topology), .kind = FIELD_RECORD, .table = &topology_table,
     .brief = "the switches: nonblocking, or a mapping such as {leaf_nodes: 16, oversubscription: 2}"},
};

/* Its record is the cluster, as the NICs belong to the kind of node and the rest to the network. It has no size of its
 * own: the cluster's table clears the whole. */
const struct table cluster_network_table = {
    .name = "network", .brief = "the network between nodes", .fields = network_fields, .count = COUNT(network_fields),
    .size = 0, .node_offset = offsetof(struct cluster, network.node), .shorthand = "name",
};

static const struct field host_fields[] = {
    {KEY(host, bandwidth), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "bandwidth per GPU and direction while all GPUs of a node move data"},
    {KEY(host, latency), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .brief = "latency of a copy"},
    {KEY(host, efficiency), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1e-6, .max = 1, .fallback = "1",
     .brief = "share of the bandwidth that copies achieve"},
    {KEY(host, memory), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true,
     .brief = "memory of a node; left out: enough"},
    {KEY(host, update), .kind = FIELD_QUANTITY, .unit = UNIT_COUNT, .positive = true,
     .brief = "parameters per second that the CPUs of a node update with Adam"},
    {KEY(host, across), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "bandwidth through host memory from one PCIe switch to another; used only with communication.nics"},
};

const struct table cluster_host_table = {
    TABLE("host", "for offloading: the links to the host, its memory and its CPUs", host, host_fields),
};

/* cluster_load reads them, once what holds for all parts is known. */
static int keep_part(struct arena *arena, const struct node *value, void *object, struct error *err)
{
    (void)arena;
    (void)err;
    ((struct part_spec *)object)->node = value;
    return 0;
}

/* cluster_load reads it, once the parts are known. */
static int keep_between(struct arena *arena, const struct node *value, void *object, struct error *err)
{
    (void)arena;
    (void)err;
    ((struct between *)object)->node = value;
    return 0;
}

static const struct table *between_pairs(struct arena *arena, void *object, void **extra)
{
    (void)arena;
    *extra = object;
    return ((const struct between *)object)->table;
}

static const struct table between_table = {
    .name = "between", .brief = "pairs of parts", .size = sizeof(struct between),
    .node_offset = offsetof(struct between, node), .extension = between_pairs,
};

static const struct field cluster_fields[] = {
    {KEY(cluster, platform), .kind = FIELD_STRING, .files = "platforms", .names = "ideal",
     .brief = "a name of platforms/ or a path; the other keys replace the platform's values; 'ideal': a network that "
              "takes no time"},
    {KEY(cluster, title), .kind = FIELD_STRING, .brief = "full name"},
    {KEY(cluster, nodes), .kind = FIELD_INT, .max = NODES_MAX, .fallback = "0",
     .brief = "number of nodes; 0: as many as the scenario needs. A scenario that needs several nodes and does not "
              "fill them takes as many GPUs of each, unless that cuts its innermost groups"},
    {.key = "gpus_per_node", AT(cluster, kinds[0].gpus), .kind = FIELD_INT, .min = 1, .max = GPUS_PER_NODE_MAX,
     .fallback = "1",
     .brief = "number of GPUs per node; a number below the platform's also drops NICs beyond one per GPU"},
    {.key = "gpus_per_switch", AT(cluster, kinds[0].gpus_per_switch), .kind = FIELD_INT, .min = 0,
     .max = GPUS_PER_NODE_MAX, .fallback = "0",
     .brief = "number of GPUs that share a PCIe switch and its NICs; 0: no two GPUs share a switch; used only with "
              "communication.nics"},
    {.key = "gpu", AT(cluster, kinds[0].gpu_spec), .kind = FIELD_OPTIONAL, .table = &gpu_spec_table,
     .brief = "a name of platforms/gpus/ or a path; not needed for a model whose times are given"},
    {.key = "inside", AT(cluster, kinds[0].inside), .kind = FIELD_RECORD, .table = &cluster_inside_table,
     .brief = "links between the GPUs of a node; not needed for gpus_per_node: 1"},
    {.key = "network", .offset = 0, .kind = FIELD_RECORD, .table = &cluster_network_table,
     .brief = "network between nodes; not needed for nodes: 1"},
    {.key = "host", AT(cluster, kinds[0].host), .kind = FIELD_RECORD, .table = &cluster_host_table,
     .brief = "host memory and the links to it; not needed unless something is offloaded"},
    {.key = "communication", AT(cluster, kinds[0].communication_spec), .kind = FIELD_OPTIONAL,
     .table = &communication_spec_table,
     .brief = "how NCCL uses the links; left out: a message costs latency + bytes / bandwidth"},
    {.key = "parts", AT(cluster, given), .kind = FIELD_LIST, .table = &part_table, .load = keep_part,
     .brief = "nodes of several kinds, part by part in the order of the ranks: [{name: old, platform: dgx-a100, nodes: "
              "2}, {name: new, platform: dgx-h100, nodes: 4}]. Then the keys of nodes stand in the parts; 'network' and "
              "'communication' beside 'parts' hold for each part that does not say them itself"},
    {KEY(cluster, between), .kind = FIELD_RECORD, .table = &between_table, .load = keep_between,
     .brief = "links between two parts, one in each direction that all messages between them share: {old-new: {bandwidth: "
              "100 Gb/s, latency: 5 ms}}; without a latency it is that of the NICs; left out: NICs alone limit"},
};

/* Where parts say what nodes are, the cluster itself does not. */
static bool hidden(const void *object, const char *key)
{
    return ((const struct cluster *)object)->given.count &&
           word_in("nodes gpus_per_node gpus_per_switch gpu inside network host communication", key);
}

const struct table cluster_table = {
    TABLE("cluster", "the cluster: a name of platforms/, a path, or these keys", cluster, cluster_fields),
    .shorthand = "platform", .hides = hidden,
};

/* The same but for the last keys: parts have no parts. */
static const struct table nodes_table = {
    .name = "parts", .brief = "what its nodes are", .fields = cluster_fields, .count = COUNT(cluster_fields) - 2,
    .size = sizeof(struct cluster), .node_offset = offsetof(struct cluster, node),
};

static const struct table *part_nodes(struct arena *arena, void *object, void **extra)
{
    (void)arena;
    *extra = &((struct part_spec *)object)->cluster;
    return &nodes_table;
}

static const struct table *part_nodes_at(size_t i)
{
    return i == 0 ? &nodes_table : NULL;
}

static const struct field part_fields[] = {
    {KEY(part_spec, name), .kind = FIELD_STRING, .required = true,
     .brief = "what the rest of the scenario calls the part: letters, digits, '_' and '.'"},
    {KEY(part_spec, slower), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1, .max = 1e6, .fallback = "1",
     .brief = "how many times as long computations take on its GPUs as on others of their type"},
};
const struct table part_table = {
    TABLE("parts", "nodes of one kind, with the keys of a cluster", part_spec, part_fields),
    .extension = part_nodes, .extension_at = part_nodes_at,
};
