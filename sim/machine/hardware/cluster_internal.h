/* cluster_internal: the members of a cluster, and the steps of loading one. Only hardware/ and the tests of
 * clusters read these members; other rooms call the functions of cluster.h. The struct is complete for all so that a
 * scenario can hold one. */
#ifndef DTSIM_CLUSTER_INTERNAL_H
#define DTSIM_CLUSTER_INTERNAL_H

#include "base/cache.h"
#include "hardware/communication.h"
#include "hardware/gpu.h"
#include "topology/topology.h"

/* In a node whose links connect pairs of GPUs: rings of `gpus` GPUs, which follow these links, get `share` of the
 * bandwidth. */
struct mesh {
    const struct node *node;
    int gpus;
    double share;
};

/* All that nodes of one kind have in common. A cluster whose nodes are equal has one kind: nothing asks whether nodes
 * differ. */
struct machine_kind {
    int gpus;
    int gpus_per_switch;             /* GPUs of a PCIe switch, all equally near to its NICs; 0: no two share one */
    const struct gpu_spec *gpu_spec; /* NULL: none (times are given) */
    const char *gpu_name;            /* its name: platforms/gpus/NAME.yaml, or an absolute path; set by cluster_load */
    struct gpu gpu;                  /* set by cluster_load if gpu_name is set */
    struct inside {
        const struct node *node;
        int link;                    /* enum inside_link */
        double bandwidth;            /* B/s per GPU and direction, data sheet; NaN: not given, with one GPU per node */
        double latency;              /* s, one way, GPU to GPU; NaN as above */
        double efficiency;           /* achievable share of the bandwidth: transfers get efficiency * bandwidth */
        struct list meshes;          /* of struct mesh; empty if a switch connects all GPUs of a node */
    } inside;
    struct nics {
        double bandwidth;            /* B/s per NIC and direction, data sheet; NaN: not given, with one node */
        double latency;              /* s, one way, GPU to GPU of another node; NaN: not given, with one node */
        double efficiency;           /* achievable share of the bandwidth of NICs and uplinks */
        double share;                /* the most of a NIC's bandwidth that payload gets, whatever a communication profile
                                        says; NaN or 0: no bound */
        double rate;                 /* B/s to which a NIC is limited, at most its bandwidth; NaN or 0: no limit */
        double thread_rate;          /* B/s that a thread copies between GPU buffers and sockets; NaN or 0: none has to */
        int threads;                 /* of a GPU's process that do so */
        int count;                   /* per node */
    } nics;
    struct host {
        const struct node *node;
        double bandwidth;            /* B/s per GPU and direction while all GPUs of a node move data; NaN: not known */
        double latency;              /* s per copy */
        double efficiency;           /* achievable share of the bandwidth */
        double memory;               /* B per node; NaN: not known, taken as enough */
        double update;               /* parameters/s that the CPUs of a node update with Adam; NaN: not known */
        double across;               /* B/s of all traffic that goes from one PCIe switch through host memory to
                                        another; NaN: not known, taken as unlimited */
    } host;
    const struct communication_spec *communication_spec;     /* NULL: not given */
    const struct communication *communication;       /* set by cluster_load; NULL: latency + bytes / bandwidth */
};

/* Nodes of one kind that follow each other, up to the next part's first node or the cluster's last node. */
struct machine_part { int kind, first; };

enum { PARTS_MAX = 8, KINDS_MAX = PARTS_MAX, PAIRS_MAX = PARTS_MAX * (PARTS_MAX - 1) / 2 };

/* What connects parts of the cluster: one link in each direction for each pair that is said. */
struct between {
    const struct node *node;
    const struct table *table;       /* of the pairs, whose keys are names of parts */
    int count;
    struct part_pair {
        const struct node *node;
        double bandwidth;            /* B/s in each direction, of all messages between the two together */
        double latency;              /* s, one way, GPU to GPU; NaN: as the NICs */
        int one, other;              /* numbers of parts, the lower first */
    } pairs[PAIRS_MAX];
};

struct cluster {
    const struct node *node;
    const struct node *base;         /* the keys of the platform's file; keys of `node` replace them; NULL: none */
    const char *platform;            /* name or absolute path of the platform's file, or NULL; "ideal": a network that
                                        takes no time, whose bandwidths and latencies are NaN */
    const char *title;
    struct between between;
    struct list given;               /* of struct part_spec, where the file says `parts`; else empty */
    int nodes;                       /* of all parts; 0: as many as are needed (cluster_size sets it) */
    int part_count;                  /* up to 1: all nodes are of kinds[0] */
    struct machine_part parts[PARTS_MAX];    /* in the order of their nodes */
    struct machine_kind kinds[KINDS_MAX];
    struct network {                  /* between the nodes */
        const struct node *node;
        const char *name;            /* platforms/networks/NAME.yaml, or an absolute path; NULL: none */
        const char *file;            /* its path, as in the places of its keys; set by cluster_load */
        const char *title;
        const char *estimate;        /* the rates here with few public measurements; NULL: there are none */
        struct topology topology;
    } network;
    bool ideal;                      /* zero latency, infinite bandwidth */
    const double *gpu_slower;        /* a GPU: how many times as long its computations take; NULL: 1 (slow_parts.h) */
    const double *nic_shares;        /* a NIC: the share of its bandwidth that is left; NULL: 1 */
    double narrower;                 /* by how much all links of the topology are narrower (cluster_folded); 0: they are not */
};

static inline const struct machine_kind *cluster_kind(const struct cluster *cluster, int node)
{
    int part = 0;

    while (part + 1 < cluster->part_count && cluster->parts[part + 1].first <= node)
        part++;
    return &cluster->kinds[cluster->parts[part].kind];
}

/* A part as the file says it: a cluster of its own, of nodes of one kind. Parts of equal kinds that follow each other
 * are one machine_part. */
struct part_spec {
    const struct node *node;
    const char *name;
    double slower;                   /* how many times as long computations take on its GPUs */
    struct cluster cluster;
    int first;                       /* its first node */
};

/* Loading a cluster. The keys of a platform's file are merged with the user's keys as trees and then parsed once, so
 * that every message names the place where its value was written. */

/* The value of `cluster:` as a mapping; a name or a path becomes {platform: NAME}. NULL after an error. */
struct node *cluster_mapping(struct arena *arena, const struct node *value, struct error *err);
/* The mapping merged over its platform, which may itself be merged over another platform. *ideal: whether this chain of
 * platforms ends at 'ideal'. *base: the keys of the platform's file, merged in the same way, or NULL. NULL after an
 * error. */
const struct node *cluster_platform(struct arena *arena, const struct node *map, bool *ideal, const struct node **base,
                                    struct error *err);
/* Sets network.file of a cluster whose network is named. -1 after an error. */
int cluster_network_file(struct arena *arena, struct cluster *cluster, struct error *err);
/* Settles the topology of a cluster whose nodes are known (topology_check), and reads the file that it may name. */
int cluster_topology_settle(struct arena *arena, struct cluster *cluster, struct error *err);
/* Refuses keys that have no effect on this cluster, whatever runs on it, if they differ from the platform's. The
 * platform's own are no mistake: another communication library may use them. `is_part`: of a larger cluster, which has a
 * network however few nodes this part has. -1 after an error. */
int cluster_check_idle(struct arena *arena, const struct cluster *cluster, bool is_part, struct error *err);
/* cluster_load of a value whose nodes are equal; one that says `parts` is parsed and no more. `is_part`: of a larger
 * cluster; then its nodes need a network, however many they are. */
int cluster_load_nodes(struct arena *arena, const struct node *value, bool is_part, struct cluster *cluster,
                       struct error *err);
/* Adds all that the kind is: kinds with the same bytes are one. */
void cluster_kind_key(const struct machine_kind *kind, struct cache_key *key);
/* The pair of parts to which two nodes belong, if a link of their own connects these; or NULL. */
const struct part_pair *cluster_pair_of(const struct cluster *cluster, int node, int to);
/* The number of the pair's link for messages from that node. */
int cluster_pair_index(const struct cluster *cluster, const struct part_pair *pair, int from);
/* s that its link adds to the latency of the NICs. */
double cluster_pair_latency(const struct cluster *cluster, const struct part_pair *pair);
/* The number of the given part that has the node. */
int cluster_given_part_of(const struct cluster *cluster, int node);
/* The network between nodes, as topology.h asks for it. */
struct topology_of cluster_topology_of(const struct cluster *cluster);
/* Tables of parts of cluster_table. The record of cluster_network_table is the cluster. */
extern const struct table cluster_inside_table, cluster_network_table, cluster_host_table, part_table;

#endif
