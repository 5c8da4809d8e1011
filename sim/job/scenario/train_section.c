#include "scenario/train_section_internal.h"

#include <math.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "config/named.h"
#include "expression/rule.h"
#include "files/data.h"

static int amounts(const struct amount *amount)
{
    return !isnan(amount->tokens) + !isnan(amount->samples) + !isnan(amount->steps);
}

bool training_says_amount(const struct training_spec *spec)
{
    return spec && (amounts(&spec->amount) || !isnan(spec->per_parameter) || spec->target || spec->phases.count);
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
    if (!training_says_amount(spec) && !(spec->energy && spec->node->count == 1))
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

/* What does not go together. Groups of nodes that hold copies of checkpoints change with the number of nodes. */
#define TRACED "said.train.failures.trace"
static const struct rule list[] = {
    {"train.target", RULE_VALUES, "said.train.target && (said.train.phases || said.train.batch)",
     "it holds for one batch; expected neither 'phases' nor 'batch' with it", NULL},
    {"train.batch", RULE_VALUES, "said.train.phases && said.train.batch && !said.train.target",
     "it does not go with 'phases'; expected one of them", NULL},
    {"train.spares", RULE_VALUES, "said.train.spares && " TRACED,
     "a trace says itself how many nodes are up; expected one of them", NULL},
    {"train.checkpoint.mode", RULE_VALUES, "train.checkpoint.mode == 'memory' && " TRACED,
     "memory does not go with a trace, which does not say which nodes are lost", NULL},
    {"train.spares.empty", RULE_VALUES, "train.spares.empty == 'shrink' && !said.train.elastic",
     "shrink goes with 'elastic', which says how; try 'elastic: {least: 1}'", NULL},
    {"train.elastic", RULE_VALUES,
     "said.train.elastic && !" TRACED " && (!said.train.spares || train.spares.empty != 'shrink')",
     "nodes are never short here; expected 'spares: {empty: shrink}' or 'failures: {trace: FILE}'", NULL},
    {"train.elastic", RULE_VALUES, "said.train.elastic && (said.train.phases || said.train.batch)",
     "it holds for one batch on one number of GPUs; expected neither 'phases' nor 'batch' with it", NULL},
    {"train.elastic", RULE_INPUT, "train.elastic.system == 'redundancy' && !said.train.elastic.redundant",
     "redundancy: missing key 'redundant', the share by which steps take longer for the work that is done twice; try 0 and 0.33, "
     "its bounds", NULL},
    {"train.elastic.redundant", RULE_VALUES, "train.elastic.system != 'redundancy' && said.train.elastic.redundant",
     "it goes with 'system: redundancy'", NULL},
    {"train.elastic.pipeline", RULE_VALUES, "train.elastic.system == 'redundancy' && said.train.elastic.pipeline",
     "redundancy keeps the scenario's number of stages", NULL},
    {"train.elastic.reroute", RULE_VALUES, "train.elastic.system == 'varuna' && said.train.elastic.reroute",
     "varuna begins again from a checkpoint; expected another 'system'", NULL},
    {"train.elastic", RULE_VALUES, "train.elastic.system == 'liveput' && !" TRACED,
     "liveput: it chooses for the nodes of the time ahead, which a rate of failures does not say; expected 'failures: {trace: "
     "FILE}'", NULL},
    {"train.checkpoint.mode", RULE_VALUES, "train.checkpoint.mode == 'memory' && said.train.elastic",
     "memory does not go with 'elastic': groups of nodes that hold copies change with it", NULL},
};

static int ask_rules(struct arena *arena, struct training_spec *spec, const struct node *root, struct error *err)
{
    static const struct rules rules = RULES("train", list);
    const struct key_part items[] = {
        {"train", &training_table, spec, NULL},
        {"train.spares", field_find(&training_table, "spares")->table, spec->spares, NULL},
        {"train.elastic", field_find(&training_table, "elastic")->table, spec->elastic, NULL},
        {"train.checkpoint", field_find(&training_table, "checkpoint")->table, spec->checkpoint, NULL},
        {"train.failures", field_find(&training_table, "failures")->table, spec->failures, NULL},
    };
    const struct key_parts parts = {.items = items, .count = COUNT(items), .root = root, .settled = true};

    return rules_ask(arena, &rules, &parts, err);
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
    if (spec->spares && check_spares(spec->spares, err))
        rc = -1;
    if (ask_rules(arena, spec, value, err))
        rc = -1;
    if (spec->energy && check_energy(spec->energy, err))
        rc = -1;
    return rc;
}
