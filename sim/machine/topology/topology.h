/* topology: the switches and links between the nodes of a cluster, and which of them a message crosses. It knows nodes
 * and their NICs by number and no GPUs; the links that it names are its own, behind the NICs. Every link is a link of
 * one direction and has a number from 0 on.
 *
 * NONBLOCKING: no link of its own.
 * LEAF_SPINE, LEVELS: a tree. Nodes that follow each other are a unit of the first level (a leaf), such units that
 *     follow each other a unit of the next level, and so on. All uplinks of a unit together are one link up and one down
 *     (Leiserson, "Fat-trees: universal networks for hardware-efficient supercomputing", IEEE Transactions on Computers
 *     C-34(10), 1985). LEAF_SPINE is the tree of one level.
 * RAIL: NIC i of all nodes of a unit is on a switch of its own, the unit's rail i. All uplinks of a rail together are
 *     one link up and one down (NVIDIA DGX SuperPOD Reference Architecture, section "Compute fabric": rail-optimised).
 * TORUS: a node has a link to its neighbour in both directions of each dimension. A message goes along the first
 *     dimension, then the next, each the shorter way round; where both are equally long, every second message goes up
 *     (torus.c), so that all pairs together load all links equally (Dally and Seitz, "Deadlock-free message routing in multiprocessor interconnection
 *     networks", IEEE Transactions on Computers C-36(5), 1987).
 * DRAGONFLY: the routers of a group are connected in pairs; pairs of groups share the groups' global links evenly (Kim,
 *     Dally, Scott, Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA 2008). A message takes a local
 *     link to the router with the global link, this link, and a local link; with Valiant's routing it goes in this way
 *     to a third group first.
 * XML: the links and routes that a file of SimGrid's own says (simgrid_file.h). */
#ifndef DTSIM_TOPOLOGY_H
#define DTSIM_TOPOLOGY_H

#include "config/field.h"
#include "topology/torus.h"

#define TOPOLOGIES(X) \
    X(TOPOLOGY_NONBLOCKING, "nonblocking") X(TOPOLOGY_LEAF_SPINE, "leaf-spine") X(TOPOLOGY_LEVELS, "levels") \
    X(TOPOLOGY_RAIL, "rail") X(TOPOLOGY_TORUS, "torus") X(TOPOLOGY_DRAGONFLY, "dragonfly") X(TOPOLOGY_XML, "xml")
enum topology_kind { TOPOLOGIES(ENUM_VALUE) };

/* How a message gets to a NIC on another rail. NVLINK: inside the sender's node to the GPU of that rail, and on from
 * there (NCCL calls this PXN); SPINE: up to the spine and down to the other rail; REFUSE: it is an error. */
#define ACROSS_RAILS(X) X(ACROSS_NVLINK, "nvlink") X(ACROSS_SPINE, "spine") X(ACROSS_REFUSE, "refuse")
enum across_rails { ACROSS_RAILS(ENUM_VALUE) };

#define ROUTINGS(X) X(ROUTING_MINIMAL, "minimal") X(ROUTING_VALIANT, "valiant")
enum routing { ROUTINGS(ENUM_VALUE) };

struct level {
    const struct node *node;
    const char *name;                /* of a unit, in the names of links; NULL: leaf, pod, zone, region */
    int leaf_nodes;                  /* of the first level: nodes of a unit */
    int units;                       /* of the others: units of the level below in a unit */
    double oversubscription;         /* what comes up from below / what the unit's uplinks carry */
    double bandwidth;                /* B/s of the unit's uplinks together; NaN: by oversubscription */
    double latency;                  /* s that a message which leaves the unit takes longer, on its way up and down */
};

enum { LEVELS_MAX = 4, DIMS_MAX = TORUS_DIMS };
struct topology {
    const struct node *node;
    int kind;                        /* enum topology_kind */
    int leaf_nodes;                  /* LEAF_SPINE: nodes per leaf switch, >= 1 */
    double oversubscription;         /* LEAF_SPINE, RAIL: bandwidth of a switch's NICs / bandwidth of its uplinks */
    struct list levels;              /* LEVELS: of struct level, the lowest first */
    int unit_nodes;                  /* RAIL; 0: all nodes are one unit */
    int across_rails;                /* RAIL: enum across_rails */
    struct list dims;                /* TORUS: of int, nodes in each dimension */
    bool wrap, wraps;                /* TORUS: the last node of a dimension has a link to the first: the key; settled */
    double link;                     /* TORUS, DRAGONFLY: B/s of a (local) link in one direction; NaN: as a NIC */
    double hop, hop_time;            /* TORUS, DRAGONFLY: s that a message takes longer for each of their links: the
                                        key; settled */
    int groups, routers, nodes_per_router, global_links;     /* DRAGONFLY: of all, a group, a router, a router */
    double global_link;              /* DRAGONFLY: B/s of a global link in one direction; NaN: as a local one */
    int routing;                     /* DRAGONFLY: enum routing */
    const char *xml;                 /* XML: the file's path; absolute once it is loaded */
    struct list hosts;               /* XML: of struct host_name: the file's hosts in the order of GPUs */
    const struct simgrid_network *network;   /* XML: the network of its file; set by simgrid_file_load */
};
extern const struct table topology_table;

/* Settles the kind where it follows from the keys, and checks them against it and against the number of nodes. `nodes`
 * may be 0, not known yet: it is set where the topology has a number of its own. Sizes of units beyond `nodes` are
 * allowed. -1 after an error. */
int topology_check(struct topology *topology, int *nodes, struct error *err);

/* What a person may not expect of the topology; NULL: nothing. */
const char *topology_note(const struct topology *topology);
/* Adds bytes that describe what the keys leave open: topologies with the same keys and the same bytes are alike. */
void topology_key(const struct topology *topology, struct cache_key *key);

/* A topology for that many nodes with up to that many NICs each. */
struct topology_of { const struct topology *keys; int nodes, nics; };
/* Where a message begins or ends: its node, and the numbers there of the NIC and of the GPU. */
struct topology_end { int node, nic, gpu; };
/* The links that a message crosses behind its NICs, in order; and the s that it takes longer. */
enum { WAY_MAX = 60 };
struct topology_way { int count; double latency; int links[WAY_MAX]; };
void topology_way(struct topology_of topology, struct topology_end src, struct topology_end dst,
                  struct topology_way *way);

int topology_links(struct topology_of topology);
/* An upper bound of the number of links of any way. */
int topology_longest(const struct topology *keys);
/* What a link carries: `bandwidth` in B/s or, where it is NaN, the NICs of the nodes [first, first + nodes) together,
 * divided by `narrower`; `one_nic`: one NIC of each of these nodes. Nodes may end past the last one of the cluster.
 * `latency`: its part of a way's, in s. */
struct topology_link { double bandwidth, narrower, latency; int first, nodes; bool one_nic; };
struct topology_link topology_link(struct topology_of topology, int link);
/* "leaf0.up", "unit0.rail3.down", "node5.x+", "router2.to3", "group0.global4". */
void topology_link_name(struct topology_of topology, int link, char *buffer, size_t size);

/* Nodes in blocks of this size reach each other without a link of the topology: the nodes of a leaf, a unit of rails,
 * or a router, all nodes, or 1. */
int topology_block(struct topology_of topology);
/* Whether the links of two blocks, as all their nodes send to other blocks, may be the same. */
bool topology_blocks_meet(struct topology_of topology, int block, int other);
/* A tree: a way is longer the higher it leads, so of three nodes two are equally far from the third, or nearer to each
 * other. */
bool topology_is_tree(struct topology_of topology);
/* Whether n >= 1 nodes, in their order, are a torus themselves: of a torus with wrap they have all nodes of some
 * dimensions, and one place in each other dimension. `torus`: these dimensions; none if they are no torus. */
bool topology_torus_of(const struct topology *topology, const int *nodes, int n, struct torus *torus);
/* How many times narrower than `nic` (B/s, of each NIC) the way between two nodes is, if all nodes send to far ones at
 * once; at least 1. An estimate by the bisection or the uplinks, for the choice of algorithms. */
double topology_crowding(struct topology_of topology, int node, int other, double nic);

#endif
