#include "hardware/cluster.h"

#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"

/* The value at the path, with its default filled in; "": none. Other mistakes of the mapping do not matter here. */
static const char *value_at(struct arena *arena, const struct node *map, const char *path)
{
    struct cluster cluster;
    struct error unread = {0};
    int status = field_parse(arena, &cluster_table, map, &cluster, &unread);
    const struct node *value = status ? NULL : node_at(field_dump(arena, &cluster_table, &cluster), path);

    error_release(&unread);
    return value ? node_flow(arena, value) : "";
}

bool cluster_changes(struct arena *arena, const struct cluster *cluster, const char *path)
{
    const struct node *own = node_at(cluster->node, path), *other = node_at(cluster->base, path);

    if (!own || (other && node_equal(own, other)))
        return false;
    return strcmp(value_at(arena, cluster->node, path), value_at(arena, cluster->base, path)) != 0;
}

bool cluster_node_changes(struct arena *arena, const struct cluster *cluster, int node, const char *path)
{
    const struct part_spec *parts = cluster->given.items;

    return cluster_changes(arena, cluster->given.count ? &parts[cluster_given_part_of(cluster, node)].cluster : cluster,
                           path);
}

/* What each part changes, after its name. */
static const char *parts_text(struct arena *arena, const struct list *given)
{
    const struct part_spec *parts = given->items;
    const char *text = "";

    for (size_t i = 0; i < given->count; i++) {
        const char *own = cluster_changes_text(arena, &parts[i].cluster);

        if (*own)
            text = arena_printf(arena, "%s%s%s: %s", text, *text ? "; " : "", parts[i].name, own);
    }
    return text;
}

bool cluster_names_network(struct arena *arena, const struct cluster *cluster)
{
    const struct part_spec *parts = cluster->given.items;

    for (size_t i = 0; i < cluster->given.count; i++)
        if (cluster_names_network(arena, &parts[i].cluster))
            return true;
    return cluster->network.name && cluster_changes(arena, cluster, "network.name");
}

/* Whether the key is one that a named network's file says, and nobody else. */
static bool is_of_file(const struct cluster *cluster, const char *part, const struct node *value)
{
    const char *file = cluster->network.file;

    return !strcmp(part, "network") && file && value->loc.file && !strcmp(value->loc.file, file);
}

/* The number of a node's NICs, with the rate where the cluster changes it. */
static const char *nics_text(struct arena *arena, const struct cluster *cluster, bool rate)
{
    const struct nics *nics = &cluster->kinds[0].nics;
    const char *each = rate ? arena_printf(arena, " of %.4g Gb/s", nics->bandwidth * 8 / 1e9) : "";

    return arena_printf(arena, " (%d NIC%s%s a node)", nics->count, nics->count == 1 ? "" : "s", each);
}

const char *cluster_changes_text(struct arena *arena, const struct cluster *cluster)
{
    static const char shown_apart[] = "platform nodes gpu gpus_per_node title";
    const struct node *own = cluster->node;
    const char *text = "";

    if (cluster->given.count)
        return parts_text(arena, &cluster->given);
    for (size_t i = 0; cluster->base && own->kind == NODE_MAPPING && i < own->count; i++) {
        const struct node *value = own->items[i];
        bool map = value->kind == NODE_MAPPING;

        for (size_t k = 0; k < (map ? value->count : 1) && !word_in(shown_apart, own->keys[i]); k++) {
            const char *path = map ? arena_printf(arena, "%s.%s", own->keys[i], value->keys[k]) : own->keys[i];
            bool name = !strcmp(path, "network.name"), nic = name || !strcmp(path, "network.bandwidth");

            if ((map && is_of_file(cluster, own->keys[i], value->items[k])) || !cluster_changes(arena, cluster, path))
                continue;
            text = arena_printf(arena, "%s%s%s %s%s", text, *text ? ", " : "", name ? "network" : path,
                                name ? cluster->network.name : node_flow(arena, map ? value->items[k] : value),
                                nic ? nics_text(arena, cluster, name) : "");
        }
    }
    return text;
}

static bool no_time(const struct cluster *cluster)
{
    return cluster->ideal;
}

static bool paced(const struct cluster *cluster)
{
    return !cluster->ideal && cluster->kinds[0].communication;
}

static bool unpaced(const struct cluster *cluster)
{
    return !cluster->ideal && !cluster->kinds[0].communication;
}

static bool unthreaded(const struct cluster *cluster)
{
    return !(cluster->kinds[0].nics.thread_rate > 0);
}

static bool alone(const struct cluster *cluster)
{
    return cluster->nodes == 1 && cluster_topology(cluster) != TOPOLOGY_LEAF_SPINE;
}

static const char takes_no_time[] = "the network of the ideal cluster takes no time; expected it to be left out";
static const char has_a_share[] =
    "the communication profile says what share of the bandwidth payload gets (inside_share, network_share); expected "
    "another 'bandwidth', a profile of your own (dtsim help communication), or 'communication: none'";

static const struct idle {
    const char *path;
    bool (*idle)(const struct cluster *cluster);
    const char *why;
} idles[] = {
    {"inside.efficiency", no_time, takes_no_time},
    {"inside.mesh", no_time, takes_no_time},
    {"network.efficiency", no_time, takes_no_time},
    {"network.share", no_time, takes_no_time},
    {"network.rate", no_time, takes_no_time},
    {"network.nics", no_time, takes_no_time},
    {"network.thread_rate", no_time, takes_no_time},
    {"network.thread_rate", unpaced, "only a communication profile has threads; expected a profile, or leave it out"},
    {"network.threads", unthreaded, "no thread is in the way of messages; expected 'thread_rate' too, or leave it out"},
    {"network.topology", no_time, takes_no_time},
    {"network.topology", alone, "one node has no network; expected more nodes, or leave it out"},
    {"communication", no_time, takes_no_time},
    {"inside.efficiency", paced, has_a_share},
    {"network.efficiency", paced, has_a_share},
    {"inside.mesh", unpaced, "only a communication profile runs rings; expected a profile, or leave it out"},
};

int cluster_check_idle(struct arena *arena, const struct cluster *cluster, bool is_part, struct error *err)
{
    int status = 0;

    for (size_t i = 0; i < COUNT(idles); i++)
        if (!(is_part && idles[i].idle == alone) && idles[i].idle(cluster) && cluster_changes(arena, cluster, idles[i].path))
            status = error_clash(err, node_at(cluster->node, idles[i].path)->loc,
                                 "cluster: %s: has no effect here: %s", idles[i].path, idles[i].why);
    return status;
}
