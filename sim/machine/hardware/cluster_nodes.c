/* Loads a cluster whose nodes are equal, or one part of a larger cluster: its links, NICs and switches fit its GPUs. */
#include "hardware/cluster.h"

#include "files/data.h"

#include <math.h>

#include "base/base.h"
#include "base/units.h"
#include "config/field.h"

/* Checks that bandwidth and latency of a link are both given or, if nothing needs the link, neither; a value that is
 * not given is set to NaN. There is no default: a forgotten latency taken as zero would give wrong results. `why` says
 * what needs the link; NULL: nothing. */
static int check_link(const struct cluster *cluster, const struct table *table, const void *link, const char *why,
                      double *bandwidth, double *latency, struct error *err)
{
    bool has_bandwidth = field_given(table, link, "bandwidth"), has_latency = field_given(table, link, "latency");
    struct loc loc = field_loc(&cluster_table, cluster, table->name);

    if (!has_bandwidth)
        *bandwidth = NAN;
    if (!has_latency)
        *latency = NAN;
    if (has_bandwidth && has_latency)
        return 0;
    if (!field_given(&cluster_table, cluster, table->name))
        return !why ? 0 : error_add(err, EXIT_INPUT, cluster->node->loc, "cluster: '%s' is missing: %s", table->name,
                                    why);
    if (why || has_bandwidth || has_latency)
        return error_add(err, EXIT_INPUT, loc, "%s: '%s' is missing", table->name,
                         has_bandwidth ? "latency" : "bandwidth");
    return 0;
}

/* GPUs are below switches in equal numbers. The NICs of a node must serve equal numbers of GPUs, or its GPUs have equal
 * numbers of NICs. A single node uses no NIC, so the platform's number of NICs need not fit the number of GPUs: it is then
 * set to one per GPU. */
static int check_counts(struct cluster *cluster, bool alone, struct error *err)
{
    int gpus = cluster->kinds[0].gpus, nics = cluster->kinds[0].nics.count, below = cluster->kinds[0].gpus_per_switch;

    if (alone && gpus % nics != 0)
        cluster->kinds[0].nics.count = nics = gpus;
    const struct clash clashes[] = {
        {gpus % nics && nics % gpus, field_loc(&cluster_network_table, cluster, "nics"),
         "network: the %d GPUs of a node cannot share %d NICs evenly; expected a divisor or a multiple of %d", {gpus, nics, gpus}},
        {below && below < gpus && gpus % below, field_loc(&cluster_table, cluster, "gpus_per_switch"),
         "cluster: gpus_per_switch: the %d GPUs of a node are not %d below each switch; expected a divisor of %d",
         {gpus, below, gpus}},
    };
    return clashes_add(err, clashes, COUNT(clashes));
}

static int check_rate(const struct cluster *cluster, struct error *err)
{
    const struct nics *nics = &cluster->kinds[0].nics;
    char rate[48], bandwidth[48];

    if (!(nics->rate > nics->bandwidth))       /* either may be NaN */
        return 0;
    return error_clash(err, field_loc(&cluster_network_table, cluster, "rate"),
                       "network: rate: %s is more than the bandwidth of a NIC, %s; expected at most that, or leave it "
                       "out", unit_format_short(UNIT_BANDWIDTH, nics->rate, rate, sizeof rate),
                       unit_format_short(UNIT_BANDWIDTH, nics->bandwidth, bandwidth, sizeof bandwidth));
}

/* The ideal cluster's network takes no time: a bandwidth or a latency is refused, as it would have no effect. */
static int check_ideal(struct cluster *cluster, struct error *err)
{
    static const char *const silent[] = {"bandwidth", "latency"};
    int status = 0;

    cluster->kinds[0].inside.bandwidth = cluster->kinds[0].inside.latency = NAN;
    cluster->kinds[0].nics.bandwidth = cluster->kinds[0].nics.latency = cluster->kinds[0].nics.rate = NAN;
    cluster->kinds[0].nics.thread_rate = NAN;
    if (cluster->network.name)
        return error_clash(err, field_loc(&cluster_network_table, cluster, "name"),
                           "network: the ideal cluster's takes no time; expected a platform with nodes to connect, or "
                           "no network");
    for (size_t i = 0; i < COUNT(silent); i++) {
        if (field_given(&cluster_inside_table, &cluster->kinds[0].inside, silent[i]))
            status = error_clash(err, field_loc(&cluster_inside_table, &cluster->kinds[0].inside, silent[i]),
                                 "inside: the ideal cluster has no %s", silent[i]);
        if (field_given(&cluster_network_table, cluster, silent[i]))
            status = error_clash(err, field_loc(&cluster_network_table, cluster, silent[i]),
                                 "network: the ideal cluster has no %s", silent[i]);
    }
    return status;
}

/* `is_part`: of a larger cluster. */
static int check_cluster(struct arena *arena, struct cluster *cluster, bool is_part, struct error *err)
{
    struct host *host = &cluster->kinds[0].host;
    int status = is_part ? 0 : cluster_topology_settle(arena, cluster, err);

    if (check_counts(cluster, cluster->nodes == 1 && !is_part, err))
        status = -1;
    if (check_link(cluster, &cluster_host_table, host, NULL, &host->bandwidth, &host->latency, err))
        status = -1;
    if (cluster->ideal)
        return check_ideal(cluster, err) ? -1 : status;
    const char *pairs = NULL, *nodes = NULL;
    if (cluster->kinds[0].gpus > 1)
        pairs = arena_printf(arena, "the %d GPUs of a node need its bandwidth and latency", cluster->kinds[0].gpus);
    if (is_part)
        nodes = "the parts need a network between them";
    else if (cluster->nodes > 1)
        nodes = arena_printf(arena, "%d nodes need its bandwidth and latency", cluster->nodes);
    else if (cluster->nodes == 0)
        nodes = "without 'nodes' there may be several nodes; only 'nodes: 1' needs no network";
    struct inside *inside = &cluster->kinds[0].inside;
    struct nics *nics = &cluster->kinds[0].nics;
    if (check_link(cluster, &cluster_inside_table, inside, pairs, &inside->bandwidth, &inside->latency, err))
        status = -1;
    if (check_link(cluster, &cluster_network_table, cluster, nodes, &nics->bandwidth, &nics->latency, err))
        status = -1;
    return check_rate(cluster, err) ? -1 : status;
}

static int load_gpu(struct arena *arena, struct cluster *cluster, struct error *err)
{
    struct gpu_spec *spec;
    const char *name;

    if (!cluster->kinds[0].gpu_spec || !cluster->kinds[0].gpu_spec->name)
        return 0;
    spec = ARENA_ARRAY(arena, struct gpu_spec, 1);
    *spec = *cluster->kinds[0].gpu_spec;
    name = spec->name;
    struct loc loc = field_loc(&gpu_spec_table, spec, "name");
    if (data_is_path(name) && (!(spec->name = data_relative(arena, loc, name, err)) ||
                               !(spec->name = data_absolute(arena, spec->name, err))))
        return -1;
    if (gpu_load(arena, name, loc, &cluster->kinds[0].gpu, err))
        return -1;
    if (!data_is_path(name))
        spec->name = cluster->kinds[0].gpu.name;    /* the name may be an alias */
    cluster->kinds[0].gpu_spec = spec;
    cluster->kinds[0].gpu_name = spec->name;
    gpu_change(arena, spec, &cluster->kinds[0].gpu);
    return 0;
}

static int load_communication(struct arena *arena, struct machine_kind *kind, struct error *err)
{
    struct communication_spec *spec;

    if (!kind->communication_spec || !kind->communication_spec->profile)
        return 0;
    spec = ARENA_ARRAY(arena, struct communication_spec, 1);
    *spec = *kind->communication_spec;
    kind->communication_spec = spec;
    if (communication_load(arena, spec, &kind->communication, err))
        return -1;
    if (spec->nics != NICS_OWN && kind->gpus_per_switch == 0)
        return error_clash(err, field_loc(&communication_spec_table, spec, "nics"),
                           "communication: nics: has no effect here: no two GPUs of the cluster share a PCIe switch "
                           "and its NICs; expected 'gpus_per_switch' in the cluster, or leave it out");
    if (!data_is_path(spec->profile))
        return 0;
    spec->profile = data_relative(arena, field_loc(&communication_spec_table, spec, "profile"), spec->profile, err);
    return spec->profile && (spec->profile = data_absolute(arena, spec->profile, err)) ? 0 : -1;
}

int cluster_load_nodes(struct arena *arena, const struct node *value, bool is_part, struct cluster *cluster,
                       struct error *err)
{
    bool ideal;
    struct node *map = cluster_mapping(arena, value, err);
    const struct node *base, *whole = map ? cluster_platform(arena, map, &ideal, &base, err) : NULL;

    if (!whole) {
        /* Without its platform a cluster cannot be checked, but mistakes in its keys can be reported. */
        if (map)
            field_parse(arena, &cluster_table, map, cluster, err);
        return -1;
    }
    int status = field_parse(arena, &cluster_table, whole, cluster, err);
    cluster->part_count = 1;
    cluster->ideal = ideal;
    cluster->base = base;
    if (cluster->between.node && !cluster->given.node)
        return error_clash(err, cluster->between.node->loc, "cluster: between: the cluster says no parts; expected 'parts', "
                           "or no between");
    if (cluster->given.node)
        return status;
    if (!status)
        status = check_cluster(arena, cluster, is_part, err);
    if (cluster_network_file(arena, cluster, err) || load_communication(arena, &cluster->kinds[0], err))
        status = -1;
    if (!status)
        status = cluster_check_idle(arena, cluster, is_part, err);
    return load_gpu(arena, cluster, err) ? -1 : status;
}
