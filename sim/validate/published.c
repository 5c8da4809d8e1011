#include "validate/published.h"

#include "config/conf.h"

#include <math.h>
#include <stdlib.h>

#define AT(member) offsetof(struct published_host, member)

static const struct field host_fields[] = {
    {.key = "gpu", .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .offset = AT(gpu), .required = true,
     .brief = "to launch on a GPU"},
    {.key = "channel", .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .offset = AT(channel), .fallback = "0 s",
     .brief = "and for each of its channels"},
    {.key = "channels", .kind = FIELD_INT, .min = 1, .max = 1024, .offset = AT(channels), .fallback = "1",
     .brief = "that a large collective runs over"},
    {.key = "channel_from", .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true, .offset = AT(channel_from),
     .fallback = "1 B", .brief = "so much of a smaller one's vector has a channel of its own"},
};
#undef AT

static const struct table host_table = {
    .name = "host",
    .brief = "one process that launches on all GPUs of a node",
    .fields = host_fields,
    .count = COUNT(host_fields),
    .size = sizeof(struct published_host),
    .node_offset = offsetof(struct published_host, node),
};

#define AT(member) offsetof(struct published_row, member)

static const struct field row_fields[] = {
    {.key = "op", .kind = FIELD_CHOICE, .choices = collective_op_names, .offset = AT(op), .fallback = "all_reduce",
     .brief = "the operation"},
    {.key = "algorithm", .kind = FIELD_STRING, .offset = AT(algorithm), .brief = "left out: the table's"},
    {.key = "ranks", .kind = FIELD_INT, .min = 2, .max = 65536, .offset = AT(ranks), .required = true,
     .brief = "how many GPUs take part"},
    {.key = "per_node", .kind = FIELD_INT, .max = 1024, .offset = AT(per_node), .fallback = "0",
     .brief = "so many of them on a node; 0: as many as it has"},
    {.key = "bytes", .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true, .offset = AT(bytes),
     .required = true, .brief = "as nccl-tests counts them"},
    {.key = "time", .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .positive = true, .offset = AT(time),
     .brief = "measured"},
    {.key = "busbw", .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true, .offset = AT(busbw),
     .brief = "measured bus bandwidth"},
};
#undef AT

static const struct table row_table = {
    .name = "row",
    .brief = "one measurement",
    .fields = row_fields,
    .count = COUNT(row_fields),
    .size = sizeof(struct published_row),
    .node_offset = offsetof(struct published_row, node),
    .exactly_one = "time busbw",
};

static int load_cluster(struct arena *arena, const struct node *node, void *object, struct error *err)
{
    return cluster_load(arena, node, object, err);
}

#define AT(member) offsetof(struct published, member)

static const struct field published_fields[] = {
    {.key = "title", .kind = FIELD_STRING, .offset = AT(title), .required = true, .brief = "what was measured"},
    {.key = "source", .kind = FIELD_STRING, .offset = AT(source), .required = true, .brief = "where it stands"},
    {.key = "algorithm", .kind = FIELD_STRING, .offset = AT(algorithm),
     .brief = "of rows that name none; left out: auto for all_reduce, else ring"},
    {.key = "cluster", .kind = FIELD_RECORD, .table = &cluster_table, .load = load_cluster, .offset = AT(cluster),
     .required = true, .brief = "what it was measured on"},
    {.key = "host", .kind = FIELD_OPTIONAL, .table = &host_table, .offset = AT(host),
     .brief = "the process that launches on all GPUs of a node; left out: a process a GPU, which waits for none"},
    {.key = "rows", .kind = FIELD_LIST, .table = &row_table, .offset = AT(rows), .required = true,
     .brief = "the measurements"},
};
#undef AT

const struct table published_table = {
    .name = "table",
    .brief = "collectives that somebody measured (a file of scenarios/paper/collectives/)",
    .fields = published_fields,
    .count = COUNT(published_fields),
    .size = sizeof(struct published),
    .node_offset = offsetof(struct published, node),
};

/* The algorithm of a row; what it needs of the cluster. */
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
        return error_add(err, EXIT_INPUT, loc, "row: %s needs switches that reduce: a cluster whose communication "
                         "profile has 'nvls'", row->collective->name);
    if (row->per_node > cluster->gpus_per_node)
        return error_add(err, EXIT_INPUT, field_loc(&row_table, row, "per_node"),
                         "row: per_node: a node has %d GPUs, expected at most as many", cluster->gpus_per_node);
    if (!cluster->ideal && row->ranks > most)
        return error_add(err, EXIT_INFEASIBLE, field_loc(&row_table, row, "ranks"),
                         "row: ranks: %d ranks, the cluster has room for %d", row->ranks, most);
    return 0;
}

/* The cluster is as large as the largest row needs, where its nodes are not counted. */
static void size_cluster(struct published *published)
{
    int most = 1;

    for (size_t i = 0; i < published->rows.count; i++) {
        const struct published_row *row = (const struct published_row *)published->rows.items + i;
        int per_node = row->per_node ? row->per_node : published->cluster.gpus_per_node;
        int gpus = ((row->ranks - 1) / per_node + 1) * published->cluster.gpus_per_node;

        most = gpus > most ? gpus : most;
    }
    cluster_size(&published->cluster, most);
}

int published_load(struct arena *arena, const char *path, struct published *published, struct error *err)
{
    struct node *root;
    int status = 0;

    if (conf_load(arena, path, &root, err) || field_parse(arena, &published_table, root, published, err))
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

/* What the host is busy with, for the GPUs of one node. */
static double host_seconds(const struct published *published, const struct published_row *row)
{
    const struct published_host *host = published->host;
    int per_node = row->per_node ? row->per_node : published->cluster.gpus_per_node;

    if (!host)
        return 0;
    return fmin(row->ranks, per_node) *
           (host->gpu + host->channel * fmin(fmax(row->bytes / host->channel_from, 1), host->channels));
}

int published_simulate(const struct published *published, const struct published_row *row, struct measure *measure,
                       struct measured *measured, struct error *err)
{
    int whole = published->cluster.gpus_per_node, per_node = row->per_node ? row->per_node : whole, rc;
    int *gpus = xcalloc((size_t)row->ranks, sizeof *gpus);

    for (int i = 0; i < row->ranks; i++)
        gpus[i] = i / per_node * whole + i % per_node;
    rc = measure_collective(measure, row->collective, gpus, 1, row->ranks, row->bytes, 0, measured, err);
    free(gpus);
    if (!rc)
        measured->seconds = fmax(measured->seconds, host_seconds(published, row));
    return rc;
}
