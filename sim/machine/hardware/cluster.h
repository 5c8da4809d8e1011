/* cluster: the GPUs, the ports that connect them inside a node, and the NICs and switches that connect the nodes.
 *
 * Nodes are of one or more kinds (cluster_internal.h), so what differs between kinds is asked of a node or of a GPU.
 * GPUs are numbered node by node. Every GPU has a port inside its node (NVLink/NVSwitch or PCIe) with one link in each
 * direction; inside a node nothing but these links is shared. Every NIC has one link in each direction; NIC k of a node
 * serves the GPUs with floor(place * nics / gpus) = k, where nics and gpus are the node's numbers. A GPU with several
 * NICs uses them together: all functions here take them for one NIC, with the sum of their bandwidths, but no more than
 * the GPU's link to the host, which the data crosses too (one PCIe link for both). Behind the NICs are the links of the
 * topology (topology/topology.h), such as the uplinks of leaf switches or the links of a torus. */
#ifndef DTSIM_CLUSTER_H
#define DTSIM_CLUSTER_H

#include "hardware/cluster_internal.h"

/* What connects the GPUs of a node. It names the class of the links in results and changes no time. */
#define INSIDE_LINKS(X) X(INSIDE_OTHER, "other") X(INSIDE_NVLINK, "nvlink") X(INSIDE_PCIE, "pcie")
enum inside_link { INSIDE_LINKS(ENUM_VALUE) };

extern const struct table cluster_table;

/* Reads and checks a cluster, with its platform, GPU and communication profile. `value` is the value of `cluster:` (a
 * name, a path, or a mapping, which may name the platform that it changes) or the root of a file with such a
 * mapping. */
int cluster_load(struct arena *arena, const struct node *value, struct cluster *cluster, struct error *err);
/* Whether the cluster has another value at the dotted path ("inside.efficiency") than its platform or, without a
 * platform, than if the key was left out. */
bool cluster_changes(struct arena *arena, const struct cluster *cluster, const char *path);
/* The same of the part with that node, or of the cluster, where its file says no parts. */
bool cluster_node_changes(struct arena *arena, const struct cluster *cluster, int node, const char *path);
/* Whether the cluster names another network than its platform has. */
bool cluster_names_network(struct arena *arena, const struct cluster *cluster);
/* What the cluster changes of its platform, for people: "network.bandwidth 25 Gb/s (8 NICs a node)"; "":
 * nothing, or it has none. */
const char *cluster_changes_text(struct arena *arena, const struct cluster *cluster);
/* Sets `nodes`, if it was left out, to enough nodes of the first kind for that many GPUs. */
void cluster_size(struct cluster *cluster, int gpus);
int cluster_gpus(const struct cluster *cluster);
/* Parts are nodes of one kind that follow each other, at least one; kinds are numbered from 0. */
struct cluster_part { int kind, first, nodes; };
int cluster_parts(const struct cluster *cluster);
struct cluster_part cluster_part(const struct cluster *cluster, int part);
/* The parts that the file gives (`cluster.parts`), in the order of their nodes; 0: none. Parts of equal nodes are of
 * one kind. `slower`: the factor on the time of computations on its GPUs. */
struct given_part {
    const char *name;
    double slower;
    int first, nodes;
};
int cluster_given_parts(const struct cluster *cluster);
struct given_part cluster_given_part(const struct cluster *cluster, int part);
int cluster_kinds(const struct cluster *cluster);
int cluster_kind_of(const struct cluster *cluster, int node);
/* The first node of the kind, and the first GPU of that node. */
int cluster_kind_node(const struct cluster *cluster, int kind);
int cluster_kind_gpu(const struct cluster *cluster, int kind);
int cluster_node_of(const struct cluster *cluster, int gpu);
int cluster_nic_of(const struct cluster *cluster, int gpu);     /* numbered over the whole cluster, node by node */
int cluster_node_of_nic(const struct cluster *cluster, int nic);
int cluster_nics(const struct cluster *cluster);                /* of all nodes */
int cluster_node_gpus(const struct cluster *cluster, int node);
int cluster_node_nics(const struct cluster *cluster, int node);
/* How many NICs a GPU of the node uses together; 1: it has one, or shares one. */
int cluster_nics_together(const struct cluster *cluster, int node);
/* The number of the node's GPU k, of its NIC k, from 0; and the k of a GPU. */
int cluster_node_gpu(const struct cluster *cluster, int node, int k);
int cluster_node_nic(const struct cluster *cluster, int node, int k);
int cluster_place_of(const struct cluster *cluster, int gpu);
/* Whether two GPUs of a node are below the same PCIe switch; the number of NICs below each switch, at least 1. */
bool cluster_share_switch(const struct cluster *cluster, int gpu, int other);
double cluster_switch_nics(const struct cluster *cluster, int node);
/* Whether all n GPUs belong to one node; to one leaf (cluster_leaf_of). */
bool cluster_within_node(const struct cluster *cluster, const int *gpus, int n);
bool cluster_within_leaf(const struct cluster *cluster, const int *gpus, int n);

/* The cluster on which a part of a collective stands for all (collective.h, struct folded): the links of its topology are
 * narrower by that factor, for flows that are not simulated. With a torus that has dimensions, it is that torus, of nodes
 * like this one; the torus outlives it. */
struct cluster cluster_folded(const struct cluster *cluster, double narrower, const struct torus *torus, int node);

/* The links that a transfer from one GPU to another crosses, in order. All engines take their routes from here. */
enum link_kind { LINK_PORT_UP, LINK_PORT_DOWN, LINK_NIC_UP, LINK_NIC_DOWN, LINK_BETWEEN };
struct link { enum link_kind kind; int index; };                /* index: GPU, NIC or link of the topology */
enum { ROUTE_MAX = WAY_MAX + 4 };
struct route {
    int count;
    bool refused;                    /* the topology does not allow it (across_rails: refuse) */
    double latency;                  /* s, of the whole route */
    double bandwidth;                /* B/s, of the slowest link; INFINITY on the ideal cluster */
    struct link links[ROUTE_MAX];
};
/* The route of a GPU to itself leads through its port, like a message between two GPUs of a node, because the GPU may
 * stand for several GPUs (collective.h, struct folded). */
struct route cluster_route(const struct cluster *cluster, int src, int dst);
/* An error if the topology refuses messages from one GPU to the other. */
bool cluster_refuses(const struct cluster *cluster);     /* whether it refuses any */
int cluster_check_route(const struct cluster *cluster, int src, int dst, struct error *err);
/* At least the number of links of the longest route. The number of links of the topology. The s that one of these adds
 * to a route. */
int cluster_longest_route(const struct cluster *cluster);
int cluster_between_links(const struct cluster *cluster);
/* Whether parts of the cluster are connected by links of their own (`between`). */
bool cluster_has_pairs(const struct cluster *cluster);
double cluster_between_latency(const struct cluster *cluster, int link);
/* The name of a GPU: platforms/gpus/NAME.yaml, or an absolute path; NULL if the cluster names none, as where the times
 * of a model are given. The value of `gpu:`, or NULL. */
const char *cluster_gpu_name(const struct cluster *cluster, int gpu);
const struct gpu_spec *cluster_gpu_spec(const struct cluster *cluster, int gpu);
/* The data sheet of a GPU, with the changes that the cluster makes to it. Its numbers are 0 if the GPU has no name. */
const struct gpu *cluster_sheet(const struct cluster *cluster, int gpu);
/* What connects the GPUs of a node, and whether these links connect pairs of GPUs (struct mesh). */
enum inside_link cluster_inside_link(const struct cluster *cluster, int node);
bool cluster_is_mesh(const struct cluster *cluster, int node);
/* s, one way, GPU to GPU: of a message that stays inside the node, or that leaves it. NaN: there is no such link. */
double cluster_latency(const struct cluster *cluster, int node, bool inside);
/* B/s per direction, data sheet: of each GPU's port inside the node, or of each of its NICs. NaN as above. */
double cluster_bandwidth(const struct cluster *cluster, int node, bool inside);
/* B/s, data sheet, of the slowest NIC of all nodes or, of one node, of its ports. */
double cluster_slowest_link(const struct cluster *cluster);
/* B/s to which software limits each NIC of the node; NaN or 0: there is no limit. */
double cluster_nic_limit(const struct cluster *cluster, int node);
/* B/s of a GPU's way to the network: of a NIC of the node, or of the NICs that a GPU has to itself, by the data sheet;
 * the same at the rate to which software limits each NIC. */
double cluster_nic_sheet(const struct cluster *cluster, int node);
double cluster_nic_rate(const struct cluster *cluster, int node);
/* B/s that the threads of a GPU's process move through sockets, each way, with a communication profile; INFINITY: NICs read
 * the memory themselves. */
double cluster_sockets(const struct cluster *cluster, int node);
/* The switches between the nodes. Leaves are nodes that follow each other, `leaf_nodes` each, and reach each other
 * without a link of the topology: all nodes if it is nonblocking, the nodes of a leaf switch, of a unit of rails, of a
 * router, or a single node. */
enum topology_kind cluster_topology(const struct cluster *cluster);
int cluster_leaf_nodes(const struct cluster *cluster);
int cluster_leaf_of(const struct cluster *cluster, int node);
/* Whether what the nodes of two leaves send to other leaves may meet on a link. Whether the topology is a tree. */
bool cluster_leaves_meet(const struct cluster *cluster, int leaf, int other);
bool cluster_is_tree(const struct cluster *cluster);
/* Whether the nodes are a torus with wrap. Whether n members on these GPUs, one a node, are a torus themselves
 * (topology_torus_of). */
bool cluster_wraps(const struct cluster *cluster);
bool cluster_torus(const struct cluster *cluster, const int *gpus, int n, struct torus *torus);
/* The bandwidth of the NICs below a switch over the bandwidth of its uplinks, of a leaf-spine or of rails; else 1. */
double cluster_oversubscription(const struct cluster *cluster);
const char *cluster_topology_note(const struct cluster *cluster);     /* topology_note */
/* How many times narrower than a NIC the way from one GPU to another is if all GPUs send to far ones at once
 * (topology_crowding), and if they alone send: of a leaf-spine 1, as its uplinks are wider than one NIC. */
double cluster_crowding(const struct cluster *cluster, int gpu, int other);
double cluster_narrowing(const struct cluster *cluster, int gpu, int other);
/* B/s of a node's links of that kind that transfers can use, where none is slower than others: their efficiency is
 * applied. */
double cluster_node_bandwidth(const struct cluster *cluster, int node, enum link_kind kind);
/* The same of the fastest links of all nodes. */
double cluster_widest(const struct cluster *cluster, enum link_kind kind);
/* The same of one link, which may be slower. _at: for callers who know its node; any node if it is of the topology. */
double cluster_link_bandwidth(const struct cluster *cluster, struct link link);
double cluster_link_bandwidth_at(const struct cluster *cluster, int node, struct link link);
/* The share of a NIC's bandwidth that is left; of the GPU's own NIC. */
double cluster_nic_share(const struct cluster *cluster, int gpu);
/* B/s of a copy between a GPU of the node and its host, efficiency applied; NaN if it is not known. s of a copy of so
 * many bytes, latency included. */
double cluster_host_bandwidth(const struct cluster *cluster, int node);
double cluster_host_copy(const struct cluster *cluster, int node, double bytes);
/* B of the node's host memory; NaN: not known, taken as enough. */
double cluster_host_memory(const struct cluster *cluster, int node);
/* Parameters/s that the CPUs of the node update with Adam; NaN: not known. */
double cluster_host_update(const struct cluster *cluster, int node);
/* B/s of all traffic through the node's host memory from one PCIe switch to another; NaN: not known, unlimited. */
double cluster_across(const struct cluster *cluster, int node);
/* The share of the bandwidth inside a node of the kind that a ring over `gpus` of its GPUs gets: 1, except on a
 * mesh. */
double cluster_mesh_share(const struct cluster *cluster, int kind, int gpus);
/* How the communication library uses the links of a group of nodes of these kinds (bit k: kind k; ~0u: of all): as on
 * the kind whose links are the slowest, since the group waits for it. NULL: a message takes latency + bytes /
 * bandwidth. */
const struct communication *cluster_communication(const struct cluster *cluster, unsigned kinds);
/* The cost of a transfer in addition to its route: struct op_transfer's delay (s) and overhead (bytes per byte of
 * payload). */
struct extra { double delay, overhead; };
/* The extra cost of a send from one GPU to another. */
struct extra cluster_send(const struct cluster *cluster, int src, int dst);
/* The extra cost of a message with a latency in s and a payload bandwidth in B/s (INFINITY: the whole link's), on a
 * route of latency `usual` (s) and bandwidth `link` (B/s). */
struct extra extra_cost(double usual, double link, double latency, double bandwidth);
/* B/s at which each end copies a message between its GPU and the buffers of sockets; INFINITY: there is no such
 * copy. */
double cluster_copy(const struct cluster *cluster, int src, int dst);
/* Links with few public measurements, as text: "network efa: ..."; `between`: also the links between nodes. NULL: there
 * are none. */
const char *cluster_estimates(struct arena *arena, const struct cluster *cluster, bool between);
/* The share of a NIC's bandwidth that payload of a library gets whose profile says `share`: the most that the networks of
 * nodes of these kinds (bit k: kind k) allow. */
double cluster_payload_share(const struct cluster *cluster, unsigned kinds, double share);
/* Adds to the key all that the cluster is: clusters with the same bytes move data and compute alike. */
void cluster_key(const struct cluster *cluster, struct cache_key *key);
/* The link's name on the simulated platform and in links.tsv: "gpu3.up", "nic12.down", "leaf0.up". */
void cluster_link_name(const struct cluster *cluster, struct link link, char *buffer, size_t size);

#endif
