#include "train/course.h"

#include <math.h>

#include "base/base.h"
#include "config/conf.h"
#include "hardware/cluster.h"

static const struct node *section_of(const struct scenario *scenario)
{
    return scenario->train->checkpoint->node;
}

/* Bytes for each parameter of a checkpoint under mixed precision with Adam: fp32 master weights and two moments, and
 * the weights in half precision. BLOOM's README states 14: 8, 4 and 2 (bigscience, train/tr11-176B-ml/README.md). */
int checkpoint_bytes(const struct scenario *scenario, const struct steps *steps, double *bytes, struct error *err)
{
    const struct checkpoint_spec *spec = scenario->train->checkpoint;
    const struct precision_spec *precision = &scenario->memory.precision;
    bool usual = precision->optimizer == OPTIMIZER_ADAM && precision->master == MASTER_FP32 &&
                 precision->format != PRECISION_FP32 && precision->format != PRECISION_TF32;

    *bytes = spec->bytes;
    if (!isnan(*bytes))
        return 0;
    if (!usual || scenario->memory.lora || isnan(steps->parameters))
        return error_add(err, EXIT_INPUT, section_of(scenario)->loc,
                         "train: checkpoint: missing key 'bytes': 14 for each "
                         "parameter hold for mixed precision with Adam and fp32 master weights only");
    *bytes = (spec->weights ? 14 : 12) * steps->parameters;
    return 0;
}

/* B/s of a storage's bandwidth and of all NICs of the nodes: the slower one. */
static double rate_of(const struct scenario *scenario, const struct step *step, double storage)
{
    const struct cluster *cluster = &scenario->cluster;
    double nics = INFINITY;          /* all nodes write as long as the slowest */

    for (int kind = 0; kind < cluster_kinds(cluster); kind++) {
        int node = cluster_kind_node(cluster, kind);
        double own = step->nodes * cluster_node_nics(cluster, node) * cluster_nic_rate(cluster, node);

        nics = isnan(own) || own < nics ? own : nics;
    }

    return nics < storage ? nics : storage;      /* NaN NICs: no limit; INFINITY: no storage */
}

static int missing(const struct scenario *scenario, const char *keys, struct error *err)
{
    return error_add(err, EXIT_INPUT, section_of(scenario)->loc, "train: checkpoint: expected %s", keys);
}

/* s that the training stands still, and until the checkpoint is safe. */
static int stall_of(const struct scenario *scenario, const struct step *step, struct checkpoint_cost *cost,
                    struct error *err)
{
    const struct checkpoint_spec *spec = scenario->train->checkpoint;
    double host = cluster_host_bandwidth(&scenario->cluster, 0);

    if (spec->mode == CHECKPOINT_BLOCKING && isnan(spec->block) && isnan(spec->write))
        return missing(scenario, "'write', the storage's bandwidth, or 'block', the time that was measured", err);
    if ((spec->mode == CHECKPOINT_ASYNC || spec->stored) && isnan(spec->write))
        return missing(scenario, "'write', the storage's bandwidth: a checkpoint is safe only when it is written", err);
    if (spec->mode != CHECKPOINT_BLOCKING && isnan(spec->block) && isnan(host))
        return missing(scenario, "'block': the cluster does not say how fast GPUs copy to their host", err);
    cost->block = spec->block;
    if (spec->mode == CHECKPOINT_BLOCKING) {
        if (isnan(cost->block))
            cost->block = cost->bytes / rate_of(scenario, step, spec->write);
        cost->write = cost->block;
        return 0;
    }
    if (isnan(cost->block))
        cost->block = cluster_host_copy(&scenario->cluster, 0, cost->bytes / step->gpus);
    cost->write = cost->block + (spec->mode == CHECKPOINT_MEMORY ?
                                 (spec->copies - 1) * cost->bytes / rate_of(scenario, step, INFINITY) :
                                 cost->bytes / rate_of(scenario, step, spec->write));
    return 0;
}

int checkpoint_cost(const struct scenario *scenario, const struct steps *steps, const struct step *step,
                    struct checkpoint_cost *cost, struct error *err)
{
    const struct training_spec *train = scenario->train;
    const struct checkpoint_spec *spec = train->checkpoint;
    double load = train->restart ? train->restart->load : 0, read = isnan(spec->read) ? spec->write : spec->read;
    bool memory = spec->mode == CHECKPOINT_MEMORY;
    bool writes = isnan(spec->block) || spec->mode != CHECKPOINT_BLOCKING, loads = train->failures && isnan(load);

    *cost = (struct checkpoint_cost){.bytes = NAN};
    if (memory && spec->copies > step->nodes)
        return error_clash(err, node_loc(spec->node, "copies"),
                           "train: checkpoint: mode: memory: %d copies need as many nodes, each of which may be lost; the "
                           "training has %d", spec->copies, step->nodes);
    if ((writes || loads) && checkpoint_bytes(scenario, steps, &cost->bytes, err))
        return -1;
    if (stall_of(scenario, step, cost, err))
        return -1;
    if (((loads && !memory) || (memory && spec->stored)) && isnan(read))
        return missing(scenario, "'read', the storage's bandwidth, or 'load' under 'restart'", err);
    if (memory && spec->stored) {
        cost->write_stored = cost->bytes / rate_of(scenario, step, spec->write);
        cost->load_stored = cost->bytes / rate_of(scenario, step, read);
    }
    cost->load = loads ? cost->bytes / rate_of(scenario, step, memory ? INFINITY : read) : load;
    if (loads && memory && !isnan(cluster_host_bandwidth(&scenario->cluster, 0)))
        cost->load += cluster_host_copy(&scenario->cluster, 0, cost->bytes / step->gpus);
    return 0;
}
