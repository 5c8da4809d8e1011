/* cluster: GPUs, the ports that join them inside a node, the NICs and switches that join the nodes.
 *
 * GPUs are numbered node by node. Every GPU has a port inside its node (NVLink/NVSwitch or PCIe) with one link each
 * way; inside a node any two ports reach each other without other contention. Every NIC has one link each way; NIC k of
 * a node serves the GPUs with floor(local * nics / gpus_per_node) = k. Nodes hang below leaf switches; between leaves,
 * each leaf's uplinks are one link up and one down of leaf_nodes * nics * bandwidth / oversubscription. */
#ifndef DTSIM_CLUSTER_H
#define DTSIM_CLUSTER_H

#include "hardware/communication.h"
#include "hardware/gpu.h"

#define TOPOLOGIES(X) X(TOPOLOGY_NONBLOCKING, "nonblocking") X(TOPOLOGY_LEAF_SPINE, "leaf-spine")
enum topology { TOPOLOGIES(ENUM_VALUE) };

/* Rings of so many GPUs of a node find that share of the bandwidth, laid along the links that join these GPUs. */
struct mesh {
    const struct node *node;
    int gpus;
    double share;
};

struct cluster {
    const struct node *node;
    const char *platform;            /* name or absolute path of the file it started from, or NULL; "ideal": the free
                                        network, whose bandwidths and latencies are NaN */
    const char *title;
    int nodes;                       /* 0: as many as are needed (cluster_size settles it) */
    int gpus_per_node;
    int gpus_per_switch;             /* below one PCIe switch, all equally near to their NICs; 0: none share one */
    const char *gpu_name;            /* platforms/gpus/NAME.yaml, or an absolute path; NULL: none (times are given) */
    struct inside {
        const struct node *node;
        double bandwidth;            /* B/s per GPU and direction, data sheet; NaN: one GPU a node and none given */
        double latency;              /* s, one way, GPU to GPU; NaN as above */
        double efficiency;           /* achievable share of the bandwidth: transfers get efficiency * bandwidth */
        struct list meshes;          /* of struct mesh: where links join pairs of GPUs, not all through a switch */
    } inside;
    struct network {
        const struct node *node;
        double bandwidth;            /* B/s per NIC and direction, data sheet; NaN: one node and none given */
        double latency;              /* s, one way, GPU to GPU; NaN as above */
        double efficiency;           /* achievable share of the bandwidth, uplinks included */
        double rate;                 /* B/s that a NIC is held to, below its bandwidth; NaN or 0: nothing does */
        int nics;                    /* per node */
        struct topology_spec {
            const struct node *node;
            int kind;                /* enum topology */
            int leaf_nodes;          /* nodes below one leaf switch, >= 1; 0 when nonblocking */
            double oversubscription; /* a leaf's NIC bandwidth over its uplink bandwidth, >= 1; 1 when nonblocking */
        } topology;
    } network;
    struct host {
        const struct node *node;
        double bandwidth;            /* B/s per GPU and direction while all GPUs of a node move data; NaN: not known */
        double latency;              /* s of a copy */
        double efficiency;           /* achievable share of the bandwidth */
        double memory;               /* B of a node; NaN: not known, and then never too little */
        double update;               /* parameters/s that the CPUs of a node update with Adam; NaN: not known */
        double across;               /* B/s from below one PCIe switch through memory to below another, of all that
                                        goes that way; NaN: not known, and then nothing holds it */
    } host;
    bool ideal;                      /* zero latency, infinite bandwidth */
    const struct communication_spec *communication_spec;     /* NULL: not given */
    const struct communication *communication;       /* filled by cluster_load; NULL: latency + bytes / bandwidth */
    struct gpu gpu;                  /* filled by cluster_load when gpu_name is set */
};
extern const struct table cluster_table;

/* `value` is what stands under `cluster:` (a name, a path or a map; a map may name a platform that it changes), or the
 * root of a file that holds just that map. Reads the platform and the GPU, checks every number. */
int cluster_load(struct arena *arena, const struct node *value, struct cluster *cluster, struct error *err);
/* Settles `nodes` where it was left out: enough for that many GPUs. */
void cluster_size(struct cluster *cluster, int gpus);
int cluster_gpus(const struct cluster *cluster);
int cluster_node_of(const struct cluster *cluster, int gpu);
int cluster_nic_of(const struct cluster *cluster, int gpu);     /* numbered over the whole cluster, node by node */
int cluster_leaf_of(const struct cluster *cluster, int node);   /* 0 when nonblocking */
/* Whether all of the GPUs are in one node; below one leaf switch. */
bool cluster_within_node(const struct cluster *cluster, const int *gpus, int n);
bool cluster_within_leaf(const struct cluster *cluster, const int *gpus, int n);

/* The links that a transfer from one GPU to another crosses, in order. Routes of the two engines come from here. */
enum link_kind { LINK_PORT_UP, LINK_PORT_DOWN, LINK_NIC_UP, LINK_NIC_DOWN, LINK_LEAF_UP, LINK_LEAF_DOWN };
struct link { enum link_kind kind; int index; };                /* index: GPU, NIC or leaf */
enum { ROUTE_MAX = 4 };
struct route {
    int count;
    struct link links[ROUTE_MAX];
    double latency;                  /* s, the whole way */
    double bandwidth;                /* B/s, of the narrowest link; INFINITY on the ideal cluster */
};
struct route cluster_route(const struct cluster *cluster, int src, int dst);    /* src != dst */
/* B/s of a NIC: its bandwidth, or what it is held to. */
double cluster_nic_rate(const struct cluster *cluster);
/* What transfers get of the link: its efficiency applied. */
double cluster_link_bandwidth(const struct cluster *cluster, enum link_kind kind);
/* What a copy to the host or back gets of its link; INFINITY: it costs nothing but its latency. */
double cluster_host_bandwidth(const struct cluster *cluster);
/* The share of the bandwidth inside a node that rings of so many of its GPUs get: 1 but on a mesh. */
double cluster_mesh_share(const struct cluster *cluster, int gpus);
/* What sending from one GPU to another costs beside the route, as struct op's delay and overhead. */
struct extra { double delay, overhead; };
struct extra cluster_send(const struct cluster *cluster, int src, int dst);
/* Likewise of a message at that pace and payload bandwidth (B/s, INFINITY: the link's), inside a node or not. */
struct extra cluster_pace(const struct cluster *cluster, bool inside, double latency, double bandwidth);
/* B/s at which either end copies what is sent between the GPU and the buffers of sockets; INFINITY: nothing is. */
double cluster_copy(const struct cluster *cluster, int src, int dst);
/* The link's name on the simulated platform and in links.tsv: "gpu3.up", "nic12.down", "leaf0.up". */
void cluster_link_name(struct link link, char *buffer, size_t size);

#endif
