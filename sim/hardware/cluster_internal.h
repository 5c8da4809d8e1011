/* cluster_internal: what a cluster is made of. Only sim/hardware/ and the tests of clusters read these members; other
 * rooms call the functions of cluster.h. The struct is complete for all so that a scenario can hold one. */
#ifndef DTSIM_CLUSTER_INTERNAL_H
#define DTSIM_CLUSTER_INTERNAL_H

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
        double rate;                 /* B/s to which a NIC is limited, at most its bandwidth; NaN or 0: no limit */
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
};

/* Nodes of one kind that follow each other, up to the next part's first node or the cluster's last node. */
struct machine_part { int kind, first; };

enum { KINDS_MAX = 4, PARTS_MAX = 8 };
struct cluster {
    const struct node *node;
    const struct node *base;         /* the keys of the platform's file; keys of `node` replace them; NULL: none */
    const char *platform;            /* name or absolute path of the platform's file, or NULL; "ideal": a network that
                                        takes no time, whose bandwidths and latencies are NaN */
    const char *title;
    int nodes;                       /* of all parts; 0: as many as are needed (cluster_size sets it) */
    int part_count;                  /* up to 1: all nodes are of kinds[0], as every file says today */
    struct machine_part parts[PARTS_MAX];    /* in the order of their nodes; a leaf switch has nodes of one kind */
    struct machine_kind kinds[KINDS_MAX];
    struct network {                  /* between the nodes */
        const struct node *node;
        const char *name;            /* platforms/networks/NAME.yaml, or an absolute path; NULL: none */
        const char *file;            /* its path, as its keys' places have it; set by cluster_load */
        const char *title;
        const char *estimate;        /* of which rates here few public measurements are known; NULL: of none */
        double latency;              /* s, one way, GPU to GPU; NaN: not given, with one node */
        double efficiency;           /* achievable share of the bandwidth of NICs and uplinks */
        double share;                /* the most of a NIC's bandwidth that payload gets, whatever a communication profile
                                        says; NaN or 0: no bound */
        struct topology topology;
    } network;
    bool ideal;                      /* zero latency, infinite bandwidth */
    const double *gpu_slower;        /* a GPU: how many times as long its computations take; NULL: 1 (slow_parts.h) */
    const double *nic_shares;        /* a NIC: the share of its bandwidth that is left; NULL: 1 */
    const struct communication_spec *communication_spec;     /* NULL: not given */
    const struct communication *communication;       /* set by cluster_load; NULL: latency + bytes / bandwidth */
};

static inline const struct machine_kind *cluster_kind(const struct cluster *cluster, int node)
{
    int part = 0;

    while (part + 1 < cluster->part_count && cluster->parts[part + 1].first <= node)
        part++;
    return &cluster->kinds[cluster->parts[part].kind];
}

#endif
