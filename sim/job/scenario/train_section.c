#include "scenario/train_section_internal.h"

#include <math.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "files/data.h"

static int amounts(const struct amount *amount)
{
    return !isnan(amount->tokens) + !isnan(amount->samples) + !isnan(amount->steps);
}

/* How much is trained is said once: as a whole, or by each phase; the last phase may take the rest of the whole. */
static int check_amount(const struct training_spec *spec, struct error *err)
{
    const struct phase_spec *phases = spec->phases.items;
    int whole = amounts(&spec->amount) + !isnan(spec->per_parameter) + (spec->target != NULL), rc = 0;

    if (whole > 1)
        return error_add(err, EXIT_INPUT, spec->node->loc,
                         "train: found %d of 'tokens', 'samples', 'steps', 'per_parameter' "
                         "and 'target'; expected one",
                         whole);
    if (spec->target && (spec->phases.count || spec->ramp))
        return error_clash(err, spec->target->node->loc,
                           "train: target: it holds for one batch; expected neither 'phases' nor "
                           "'batch' with it");
    if (!whole && !spec->phases.count)
        return error_add(err, EXIT_INPUT, spec->node->loc, "train: expected one of 'tokens', 'samples', 'steps', "
                         "'per_parameter' and 'target', or 'phases' that say it");
    for (size_t i = 0; i < spec->phases.count; i++) {
        bool rest = i + 1 == spec->phases.count && whole;
        int said = amounts(&phases[i].amount);

        if (said > 1 || (!said && !rest))
            rc = error_add(err, EXIT_INPUT, phases[i].node->loc, "train: phases: found %d of 'tokens', 'samples' and "
                           "'steps'; expected one", said);
        else if (said && rest)
            rc = error_add(err, EXIT_INPUT, phases[i].node->loc, "train: phases: the last phase and the training both "
                           "say how much; expected one of them: the last phase takes the rest of the whole");
    }
    if (spec->phases.count && spec->ramp)
        rc = error_clash(err, spec->ramp->node->loc,
                         "train: batch: it does not go with 'phases'; expected one of them");
    return rc;
}

static int check_interval(const struct node *mapping, const char *section, const char *text, struct interval *interval,
                          struct error *err)
{
    char why[256];

    if (!interval_parse(text, interval, why, sizeof why))
        return 0;
    return error_add(err, EXIT_INPUT, node_loc(mapping, "every"), "train: %s: every: %s", section, why);
}

/* Keys that go with one system alone. */
static int check_elastic_keys(const struct training_spec *spec, struct error *err)
{
    const struct elastic_spec *elastic = spec->elastic;
    bool redundant = elastic->system == ELASTIC_REDUNDANCY, rates = !spec->failures || !spec->failures->trace;

    if (redundant && isnan(elastic->redundant))
        return error_add(err, EXIT_INPUT, elastic->node->loc,
                         "train: elastic: redundancy: missing key 'redundant', the share by "
                         "which steps take longer for the work that is done twice; try 0 and 0.33, its bounds");
    if (!redundant && !isnan(elastic->redundant))
        return error_clash(err, node_loc(elastic->node, "redundant"),
                           "train: elastic: redundant: it goes with 'system: redundancy'");
    if (redundant && elastic->pipeline.count)
        return error_clash(err, node_loc(elastic->node, "pipeline"),
                           "train: elastic: pipeline: redundancy keeps the scenario's "
                           "number of stages");
    if (elastic->system == ELASTIC_VARUNA && !isnan(elastic->reroute))
        return error_clash(err, node_loc(elastic->node, "reroute"),
                           "train: elastic: reroute: varuna begins again from a checkpoint; "
                           "expected another 'system'");
    if (elastic->system == ELASTIC_LIVEPUT && rates)
        return error_clash(err, elastic->node->loc,
                           "train: elastic: liveput: it chooses for the nodes of the time ahead, which a rate "
                           "of failures does not say; expected 'failures: {trace: FILE}'");
    return 0;
}

/* A training that shrinks, and why it may. */
static int check_elastic(const struct training_spec *spec, struct error *err)
{
    bool shrinks = spec->spares && spec->spares->empty == SPARES_SHRINK;

    if (shrinks && !spec->elastic)
        return error_clash(err, node_loc(spec->spares->node, "empty"), "train: spares: empty: shrink goes with 'elastic', which "
                           "says how; try 'elastic: {least: 1}'");
    if (!spec->elastic)
        return 0;
    if (!shrinks && !(spec->failures && spec->failures->trace))
        return error_clash(err, spec->elastic->node->loc, "train: elastic: nodes are never short here; expected 'spares: {empty: "
                           "shrink}' or 'failures: {trace: FILE}'");
    if (spec->phases.count || spec->ramp)
        return error_clash(err, spec->elastic->node->loc, "train: elastic: it holds for one batch on one number of GPUs; "
                           "expected neither 'phases' nor 'batch' with it");
    if (check_elastic_keys(spec, err))
        return -1;
    if (spec->checkpoint && spec->checkpoint->mode == CHECKPOINT_MEMORY)
        return error_clash(err, node_loc(spec->checkpoint->node, "mode"), "train: checkpoint: mode: memory does not go with "
                           "'elastic': groups of nodes that hold copies change with it");
    return 0;
}

/* Failures that take a node away from a pool need one that comes back, or an end. */
static int check_spares(const struct spares_spec *spares, struct error *err)
{
    if (spares->empty != SPARES_WAIT || !isnan(spares->repair))
        return 0;
    return error_add(err, EXIT_INPUT, spares->node->loc,
                     "train: spares: without 'repair' a lost node never comes back, and "
                     "a training that waits for one never ends; expected 'repair', or 'empty: stop'");
}

static int load_trace(struct arena *arena, struct failures_spec *failures, struct error *err)
{
    struct loc loc = node_loc(failures->node, "trace");
    struct node_trace *trace = ARENA_ARRAY(arena, struct node_trace, 1);

    if (!failures->trace)
        return 0;
    failures->trace = data_relative(arena, loc, failures->trace, err);
    if (!failures->trace || trace_load(arena, failures->trace, loc, trace, err))
        return -1;
    failures->traced = trace;
    failures->trace = data_absolute(arena, failures->trace, err);
    return failures->trace ? 0 : -1;
}

/* The power in a GPU's file includes its share of the node, so the scenario gives both or neither. */
static int check_energy(const struct energy_spec *energy, struct error *err)
{
    if ((energy->gpu != NULL) == !isnan(energy->host))
        return 0;
    return error_add(err, EXIT_INPUT, energy->node->loc,
                     "train: energy: found %s without %s; expected both, or neither: the "
                     "power in a GPU's file has the GPU's share of its node in it",
                     energy->gpu ? "'gpu'" : "'node'", energy->gpu ? "'node'" : "'gpu'");
}

static int load_source(struct arena *arena, struct failures_spec *failures, struct error *err)
{
    static const struct data_kind kind = {"platforms/failures", "failures", NULL};
    struct failures_file *file;
    const char *path;

    if (!failures->source)
        return 0;
    path = data_resolve(arena, &kind, failures->source, node_loc(failures->node, "source"), err);
    file = ARENA_ARRAY(arena, struct failures_file, 1);
    if (!path || field_load(arena, &failures_file_table, path, file, err))
        return -1;
    failures->named = file;
    if (data_is_path(failures->source))
        failures->source = data_absolute(arena, path, err);
    return failures->source ? 0 : -1;
}

int training_load(struct arena *arena, const struct node *value, void *object, struct error *err)
{
    struct training_spec *spec = object;
    int rc = field_parse(arena, &training_table, value, spec, err);

    if (rc)
        return -1;
    rc = check_amount(spec, err);
    if (spec->failures && (load_source(arena, spec->failures, err) || load_trace(arena, spec->failures, err)))
        rc = -1;
    if (spec->failures && spec->failures->trace && spec->spares)
        rc = error_clash(err, spec->spares->node->loc,
                         "train: spares: a trace says itself how many nodes are up; expected "
                         "one of them");
    if (spec->checkpoint && check_interval(spec->checkpoint->node, "checkpoint", spec->checkpoint->every,
                                           &spec->checkpoint->interval, err))
        rc = -1;
    if (spec->validation && check_interval(spec->validation->node, "validation", spec->validation->every,
                                           &spec->validation->interval, err))
        rc = -1;
    else if (spec->validation && isnan(spec->validation->interval.steps))
        rc = error_add(err, EXIT_INPUT, node_loc(spec->validation->node, "every"),
                       "train: validation: every: found '%s'; "
                       "expected a number of steps such as '1000 steps'",
                       spec->validation->every);
    if (spec->failures && spec->failures->trace && spec->checkpoint && spec->checkpoint->mode == CHECKPOINT_MEMORY)
        rc = error_clash(err, node_loc(spec->checkpoint->node, "mode"),
                         "train: checkpoint: mode: memory does not go with a "
                         "trace, which does not say which nodes are lost");
    if (spec->spares && check_spares(spec->spares, err))
        rc = -1;
    if (check_elastic(spec, err))
        rc = -1;
    if (spec->energy && check_energy(spec->energy, err))
        rc = -1;
    return rc;
}
