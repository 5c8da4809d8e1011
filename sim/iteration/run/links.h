/* links: the bytes on every link of the cluster in all that was simulated: messages of the program, and messages that
 * measured collectives, folded replicas and flows of tensor groups stand for. */
#ifndef DTSIM_LINKS_H
#define DTSIM_LINKS_H

#include "lower/lower.h"

enum link_class {
    LINKS_INSIDE,            /* between the GPUs of a node, where the cluster does not say that they are one of these */
    LINKS_NVLINK, LINKS_PCIE,
    LINKS_NIC,
    LINKS_UPLINK,            /* of the topology: uplinks of switches, or links between nodes or routers */
    LINKS_HOST,              /* between a GPU and host memory */
    LINKS_COUNT
};
extern const char *const link_class_names[];     /* "inside", "nvlink", ...; NULL-terminated */

/* Kinds of links: the links of routes, then links to the host and from it. */
enum { CARRIER_TO_HOST = LINK_BETWEEN + 1, CARRIER_FROM_HOST, CARRIER_COUNT };
enum link_class carrier_class(const struct cluster *cluster, int carrier, int index);
/* Whether the cluster's links may be of that class: of the first three, one is. */
bool link_class_used(const struct cluster *cluster, enum link_class class);
/* What transfers get of the link of that kind and index, B/s. */
double carrier_bandwidth(const struct cluster *cluster, int carrier, int index);
/* "gpu3.up", "nic12.down", "leaf0.up", "gpu3.to-host". */
void carrier_name(const struct cluster *cluster, int carrier, int index, char *buffer, size_t size);

/* B that crossed each link: `payload`, and `wire` with what protocols add. Where switches reduce and copy, both are
 * what really crosses the ports, not the messages that stand for it. */
struct load { double payload, wire; };
/* Zero-initialise. Nothing is counted on the ideal cluster, which has no links. */
struct links {
    int counts[CARRIER_COUNT];           /* how many of each kind there are */
    struct load *loads[CARRIER_COUNT];   /* by index */
};
void links_count(struct links *links, const struct workload *workload, const struct lowered *lowered,
                 const struct measure *measure);
/* The share of that many seconds that the link's full rate needs for its bytes on the wire. */
double links_busy(const struct links *links, const struct cluster *cluster, int carrier, int index, double seconds);
void links_release(struct links *links);

#endif
