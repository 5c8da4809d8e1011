/* simgrid_file: the links between nodes as a file of SimGrid's own says them: a platform in XML (SimGrid's manual,
 * "Platform description"). GPU M of node N is its host "host-N.gpu-M", or the next of `hosts`. SimGrid itself reads the file, in a child process,
 * as it ends the process where it finds a mistake. What it finds becomes two tables: of links, and of the links that a
 * message crosses from each GPU to each GPU of another node, in order.
 *
 * A message crosses these links between the sender's NIC and the receiver's, and takes their latency longer. Inside
 * nodes the file's routes are not used. */
#ifndef DTSIM_SIMGRID_FILE_H
#define DTSIM_SIMGRID_FILE_H

#include "files/digest.h"
#include "topology/topology.h"

struct host_name { const struct node *node; const char *name; };     /* or several: "node-*" */
/* The GPUs of each node: `first` has the number of its first one, and at [nodes] how many GPUs there are. */
struct hosts { int nodes; const int *first; };

struct file_link {
    char name[40];                   /* of a longer one its beginning and a number: "local_link_from_router_0_to~7" */
    double bandwidth, latency;       /* B/s, s */
    int senders, receivers;          /* GPUs whose messages to other nodes, or from them, may cross it */
};
/* What a file says. `begins`: of the pair src * GPUs + dst, where its links begin in `crossed`; one more ends the last. */
struct simgrid_network {
    struct hosts hosts;
    int links, longest, extra;       /* links that some route crosses; of the longest route; hosts that are no GPU */
    const struct file_link *link;
    const uint32_t *begins, *crossed;
    char said[320];                  /* which GPUs its hosts are, and of hosts that are none; "": each is the GPU of its name */
    char digest[DIGEST_HEX];         /* of all this */
};

/* Reads the file that `topology` names, for these GPUs, and makes its path absolute; nothing where it names none. -1 after
 * an error: no such file, not a platform, a host or a route that is missing, links that no engine has. */
int simgrid_file_load(struct arena *arena, struct topology *topology, struct hosts hosts, struct error *err);

/* What the module "simgrid" fills, in memory that parent and child share. */
enum { FILE_HOSTS_MAX = 2048, FILE_LINKS_MAX = 1 << 17, FILE_NAMES = 8 };
struct file_names { int count; char names[FILE_NAMES][40]; };        /* the first of this number */
struct file_tables {
    const char *path;
    double size;                     /* B, of the file */
    struct hosts hosts;
    const struct host_name *names;   /* in the order of GPUs, or of nodes; count 0: by the cluster's names */
    size_t name_count;
    struct file_names missing, extra, taken;     /* taken: by GPU or node, of `names` */
    int links;
    struct file_link *link;          /* [FILE_LINKS_MAX] */
    uint32_t *begins, *crossed;      /* as above; links by their number in `link` */
};
/* The module begins with it. It runs in a child, once, and ends it. Where it cannot go on it says why on standard error. */
struct simgrid_reader { void (*read)(struct file_tables *tables); };

#endif
