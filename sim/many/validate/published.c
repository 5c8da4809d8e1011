#include "validate/published.h"

#include "config/conf.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "collective/collective.h"
#include "collective/measure.h"
#include "collective/placed_group.h"
#include "hardware/cluster.h"

static const struct field host_fields[] = {
    {KEY(published_host, gpu), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .required = true,
     .brief = "time to launch on a GPU"},
    {KEY(published_host, channel), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .fallback = "0 s",
     .brief = "additional time for each channel of a GPU"},
    {KEY(published_host, channels), .kind = FIELD_INT, .min = 1, .max = 1024, .fallback = "1",
     .brief = "number of channels of a large collective"},
    {KEY(published_host, channel_from), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true, .fallback = "1 B",
     .brief = "a smaller collective uses one channel per this number of bytes of its vector"},
};

static const struct table host_table = {
    TABLE("host", "one process that launches on all GPUs of a node", published_host, host_fields),
};

static const struct field row_fields[] = {
    {KEY(published_row, op), .kind = FIELD_CHOICE, .choices = collective_op_names, .fallback = "all_reduce",
     .brief = "the operation"},
    {KEY(published_row, algorithm), .kind = FIELD_STRING, .brief = "the algorithm; left out: the table's"},
    {KEY(published_row, ranks), .kind = FIELD_INT, .min = 2, .max = 65536, .required = true,
     .brief = "number of GPUs that take part"},
    {KEY(published_row, per_node), .kind = FIELD_INT, .max = 1024, .fallback = "0",
     .brief = "number of these GPUs per node; 0: all GPUs of a node"},
    {KEY(published_row, bytes), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true, .required = true,
     .brief = "size, counted as in nccl-tests"},
    {KEY(published_row, time), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .positive = true, .brief = "measured time"},
    {KEY(published_row, busbw), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "measured bus bandwidth"},
};

static const struct table row_table = {
    TABLE("row", "one measurement", published_row, row_fields),
    .exactly_one = "time busbw",
};

static int load_cluster(struct arena *arena, const struct node *node, void *object, struct error *err)
{
    return cluster_load(arena, node, object, err);
}

static const struct field published_fields[] = {
    {KEY(published, title), .kind = FIELD_STRING, .required = true, .brief = "title of the table"},
    {KEY(published, source), .kind = FIELD_STRING, .required = true, .brief = "where the measurements are published"},
    {KEY(published, algorithm), .kind = FIELD_STRING,
     .brief = "the algorithm of rows without one; left out: auto for all_reduce, else ring"},
    {KEY(published, cluster), .kind = FIELD_RECORD, .table = &cluster_table, .load = load_cluster, .required = true,
     .brief = "the cluster that was measured"},
    {KEY(published, host), .kind = FIELD_OPTIONAL, .table = &host_table,
     .brief = "the process that launches on all GPUs of a node; left out: one process per GPU, and launches take no "
              "time of the host"},
    {KEY(published, rows), .kind = FIELD_LIST, .table = &row_table, .required = true, .brief = "the measurements"},
};

const struct table published_table = {
    TABLE("table", "measured collectives (a file of scenarios/paper/collectives/)",
          published, published_fields),
};

/* Finds the algorithm of a row, and checks that the cluster can run it. */
static int resolve_row(struct published *published, struct published_row *row, struct error *err)
{
    const char *name = row->algorithm ? row->algorithm : published->algorithm;
    const struct loc loc = row->algorithm || !published->algorithm ? field_loc(&row_table, row, "algorithm") :
                           field_loc(&published_table, published, "algorithm");
    const struct cluster *cluster = &published->cluster;
    int most = row->per_node ? row->per_node * cluster->nodes : cluster_gpus(cluster);

    row->collective = name ? collective_find((enum collective_op)row->op, name)
                           : collective_usual((enum collective_op)row->op, true);
    if (!row->collective)
        return error_add(err, EXIT_INPUT, loc, "row: %s has no algorithm '%s' (dtsim list collectives)",
                         collective_op_names[row->op], name);
    if (!collective_runs_on(row->collective, cluster))
        return error_add(err, EXIT_INPUT, loc, "row: %s needs %s", row->collective->name,
                         collective_needs(row->collective));
    if (row->per_node > cluster_node_gpus(cluster, 0))
        return error_add(err, EXIT_INPUT, field_loc(&row_table, row, "per_node"),
                         "row: per_node: a node has %d GPUs; expected at most that", cluster_node_gpus(cluster, 0));
    if (!cluster->ideal && row->ranks > most)
        return error_add(err, EXIT_INFEASIBLE, field_loc(&row_table, row, "ranks"),
                         "row: ranks: %d ranks, the cluster has room for %d", row->ranks, most);
    return 0;
}

/* If the cluster has no number of nodes, it gets as many as the largest row needs. */
static void size_cluster(struct published *published)
{
    int most = 1;

    for (size_t i = 0; i < published->rows.count; i++) {
        const struct published_row *row = (const struct published_row *)published->rows.items + i;
        int per_node = row->per_node ? row->per_node : cluster_node_gpus(&published->cluster, 0);
        int gpus = ((row->ranks - 1) / per_node + 1) * cluster_node_gpus(&published->cluster, 0);

        most = gpus > most ? gpus : most;
    }
    cluster_size(&published->cluster, most);
}

int published_load(struct arena *arena, const char *path, struct published *published, struct error *err)
{
    struct node *root;

    return conf_load(arena, path, &root, err) || published_read(arena, root, published, err) ? -1 : 0;
}

int published_read(struct arena *arena, const struct node *root, struct published *published, struct error *err)
{
    int status = 0;

    if (field_parse(arena, &published_table, root, published, err))
        return -1;
    size_cluster(published);
    for (size_t i = 0; i < published->rows.count; i++)
        if (resolve_row(published, (struct published_row *)published->rows.items + i, err))
            status = -1;
    return status ? -1 : 0;
}

double published_seconds(const struct published_row *row)
{
    if (!isnan(row->time))
        return row->time;
    return row->bytes * collective_bus_factor((enum collective_op)row->op, row->ranks) / row->busbw;
}

/* The time that the host needs for the GPUs of one node, in s. */
static double host_seconds(const struct published *published, const struct published_row *row)
{
    const struct published_host *host = published->host;
    int per_node = row->per_node ? row->per_node : cluster_node_gpus(&published->cluster, 0);

    if (!host)
        return 0;
    return fmin(row->ranks, per_node) *
           (host->gpu + host->channel * fmin(fmax(row->bytes / host->channel_from, 1), host->channels));
}

int published_simulate(const struct published *published, const struct published_row *row, struct measure *measure,
                       struct measured *measured, struct error *err)
{
    int whole = cluster_node_gpus(&published->cluster, 0), per_node = row->per_node ? row->per_node : whole, rc;
    int *gpus = xcalloc((size_t)row->ranks, sizeof *gpus);

    for (int i = 0; i < row->ranks; i++)
        gpus[i] = i / per_node * whole + i % per_node;
    struct placed_group group = placed_group_of(&published->cluster, gpus, row->ranks);

    rc = measure_collective(measure, &(struct collective_call){row->collective, &group, row->bytes, 0}, 1, measured,
                            err);
    free(gpus);
    if (!rc)
        measured->seconds = fmax(measured->seconds, host_seconds(published, row));
    return rc;
}
