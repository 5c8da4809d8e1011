/* Keys of the section `train`. */
#include "scenario/train_section_internal.h"

#include "hardware/gpu.h"

#define AMOUNT(record) \
    {.key = "tokens", AT(record, amount.tokens), .kind = FIELD_QUANTITY, .unit = UNIT_COUNT, .positive = true, \
     .brief = "tokens that are trained on"}, \
    {.key = "samples", AT(record, amount.samples), .kind = FIELD_QUANTITY, .unit = UNIT_COUNT, .positive = true, \
     .brief = "the same in samples"}, \
    {.key = "steps", AT(record, amount.steps), .kind = FIELD_QUANTITY, .unit = UNIT_COUNT, .positive = true, \
     .brief = "the same in steps: iterations with an update"}

static const struct field phase_fields[] = {
    AMOUNT(phase_spec),
    {KEY(phase_spec, batch), .kind = FIELD_INT, .min = 1, .max = 1e9,
     .brief = "samples in an iteration; left out: the scenario's"},
    {KEY(phase_spec, sequence), .kind = FIELD_INT, .min = 1, .max = 1e9,
     .brief = "tokens of a sample; left out: the scenario's"},
    {KEY(phase_spec, gpus), .kind = FIELD_INT, .min = 1, .max = 1048576,
     .brief = "GPUs, of which data parallelism takes more or fewer; left out: the scenario's"},
};
static const struct table phase_table = {
    TABLE("train: phases", "a part of the training, with a batch, a sequence and GPUs of its own", phase_spec,
          phase_fields),
};

static const struct field ramp_fields[] = {
    {KEY(ramp_spec, start), .kind = FIELD_INT, .min = 1, .max = 1e9, .required = true,
     .brief = "samples of the first batch"},
    {KEY(ramp_spec, step), .kind = FIELD_INT, .min = 1, .max = 1e9, .required = true,
     .brief = "samples by which a batch grows"},
    {KEY(ramp_spec, samples), .kind = FIELD_QUANTITY, .unit = UNIT_COUNT, .positive = true, .required = true,
     .brief = "samples after which the batch is the scenario's"},
};
static const struct table ramp_table = {
    TABLE("train: batch", "a batch that grows to the scenario's (Megatron-LM's rampup-batch-size)", ramp_spec,
          ramp_fields),
};

static const struct field target_fields[] = {
    {KEY(target_spec, samples), .kind = FIELD_QUANTITY, .unit = UNIT_COUNT, .positive = true, .required = true,
     .brief = "samples that small batches need, E_min"},
    {KEY(target_spec, critical_batch), .kind = FIELD_QUANTITY, .unit = UNIT_COUNT, .positive = true, .required = true,
     .brief = "the batch that needs twice as many samples, as you measured it: about the gradient noise scale"},
};
static const struct table target_table = {
    TABLE("train: target",
          "training until a loss is reached: a batch of B samples takes E_min (1 + B / critical_batch) samples "
          "(McCandlish et al. 2018, \"An Empirical Model of Large-Batch Training\", arXiv 1812.06162)",
          target_spec, target_fields),
};

static const struct field checkpoint_fields[] = {
    {KEY(checkpoint_spec, every), .kind = FIELD_STRING, .required = true,
     .brief = "the time between checkpoints ('10 min', '500 steps'); auto: the time with the most goodput, but no less than one "
              "is written in"},
    {KEY(checkpoint_spec, bytes), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true,
     .brief = "bytes of a checkpoint, of the whole model; left out: 14 for each parameter (weights in half precision, "
              "master weights and two moments), which mixed precision with Adam has"},
    {KEY(checkpoint_spec, weights), .kind = FIELD_BOOL, .fallback = "true",
     .brief =
         "false: weights in half precision are made from the master weights when a checkpoint is loaded, and so are "
         "not in it: 12 bytes for each parameter"},
    {KEY(checkpoint_spec, write), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "bandwidth with which the storage takes a checkpoint, of all nodes together"},
    {KEY(checkpoint_spec, read), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "bandwidth with which the storage gives a checkpoint, to all nodes together; left out: as 'write'"},
    {KEY(checkpoint_spec, mode), .kind = FIELD_CHOICE, .fallback = "blocking", .choices = CHOICES(CHECKPOINT_MODES),
     .choice_briefs = NAMES(
         "the training stands still until the checkpoint is in the storage",
         "the training stands still until GPUs have copied their shares to their hosts, which then "
         "write them; it waits for a checkpoint that is still being written",
         "the same, but hosts send copies to the hosts of other nodes (Wang et al. 2023, GEMINI), beside "
         "the training's own traffic, which they do not slow down here"),
     .brief = "how checkpoints are written"},
    {KEY(checkpoint_spec, copies), .kind = FIELD_INT, .min = 2, .max = 16, .fallback = "2",
     .brief = "under memory: nodes that hold each share, at most those that train; as many nodes are a group, whose members hold "
              "each other's; nodes that are left over join the last group"},
    {KEY(checkpoint_spec, stored), .kind = FIELD_INT, .min = 0, .max = 1000000, .fallback = "0",
     .brief =
         "under memory: every N-th checkpoint is also written to the storage, from which the training goes on where a "
         "whole group is lost; 0: none is, and it begins anew"},
    {KEY(checkpoint_spec, block), .kind = FIELD_QUANTITY, .unit = UNIT_TIME,
     .brief = "time that the training stands still for each checkpoint, as it was measured; left out: by bytes and "
              "bandwidths"},
};
static const struct table checkpoint_table = {
    TABLE("train: checkpoint", "what is kept for the time after a failure", checkpoint_spec, checkpoint_fields),
};

static const struct field restart_fields[] = {
    {KEY(restart_spec, detect), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .required = true,
     .brief = "time from a failure until it is noticed and its node is found"},
    {KEY(restart_spec, replace), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .required = true,
     .brief = "time to replace a node with another one that is there; where 'elastic' goes on with fewer nodes nobody is "
              "replaced"},
    {KEY(restart_spec, init), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .required = true,
     .brief = "time until the job runs again: processes, communicators, data"},
    {KEY(restart_spec, load), .kind = FIELD_QUANTITY, .unit = UNIT_TIME,
     .brief =
         "time to load the checkpoint; left out: its bytes at the storage's bandwidth, or at that of the nodes' NICs "
         "where these are slower or it is in memory; what unpacking takes is not in it"},
};
static const struct table restart_table = {
    TABLE("train: restart", "what a failure takes, besides the work that it loses", restart_spec, restart_fields),
};

static const struct field spares_fields[] = {
    {KEY(spares_spec, nodes), .kind = FIELD_INT, .min = 0, .max = 1048576, .required = true, .may_be_auto = true,
     .brief = "spare nodes; auto: as many as make the GPU-hours that are paid fewest"},
    {KEY(spares_spec, warm), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "whether they are switched on all the time, and so take power and fail as often as nodes that train"},
    {KEY(spares_spec, empty), .kind = FIELD_CHOICE, .fallback = "wait", .choices = CHOICES(SPARES_EMPTIES),
     .choice_briefs = NAMES("the training waits until a node has been repaired; nodes that wait do not fail",
                            "it goes on with the nodes that are left, as 'elastic' says", "the training ends"),
     .brief = "what happens when a node is lost and there is no spare"},
    {KEY(spares_spec, repair), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .positive = true,
     .brief = "time after which a lost node is a spare one again; left out: it never is"},
};
static const struct table spares_table = {
    TABLE("train: spares", "nodes that replace lost ones", spares_spec, spares_fields), .shorthand = "nodes",
};

static const struct field elastic_fields[] = {
    {KEY(elastic_spec, system), .kind = FIELD_CHOICE, .fallback = "varuna", .choices = CHOICES(ELASTIC_SYSTEMS),
     .choice_briefs = NAMES("begins again from the last checkpoint, and takes nodes that come back when one is "
                            "finished (job morphing, Athlur et al. "
                            "2022, arXiv 2111.04007)",
                            "each node also does the work of the next one in its pipeline, so that a lost one's "
                            "neighbour goes on with both; only "
                            "two neighbours lost are a loss of work (Bamboo, Thorpe et al. 2023, arXiv 2204.12013)",
                            "replicas of unequal numbers of stages side by side use all nodes; what a lost node held "
                            "is copied from another replica "
                            "(Oobleck, Jang et al. 2023, arXiv 2309.08125)",
                            "shapes as varuna, chosen for the time ahead, whose losses are known; weights are copied "
                            "from other replicas (Parcae, "
                            "Duan et al. 2024, arXiv 2403.14097)"),
     .brief = "how it goes on"},
    {KEY(elastic_spec, pipeline), .kind = FIELD_INTS, .min = 1, .max = 1048576, .may_be_empty = true,
     .brief = "numbers of stages, of which the fastest on the nodes that are there is taken; left out: the scenario's, "
              "or of "
              "templates all"},
    {KEY(elastic_spec, least), .kind = FIELD_INT, .min = 1, .max = 1048576, .fallback = "1",
     .brief = "replicas that there are at least: with fewer the training waits; of templates f + 1, to survive any f "
              "losses at once"},
    {KEY(elastic_spec, redundant), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 0, .max = 10,
     .brief = "redundancy needs it: share by which steps take longer for the work that is done twice, as you measured "
              "it; 0: all "
              "of it is in bubbles; a whole forward more is about 0.33"},
    {KEY(elastic_spec, reroute), .kind = FIELD_QUANTITY, .unit = UNIT_TIME,
     .brief = "all but varuna: time that the training stands still for a loss that costs no work, and for nodes that "
              "join; left "
              "out: restart.init and the copy of a node's share of a checkpoint over its NICs"},
    {KEY(elastic_spec, ahead), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .fallback = "12 min",
     .brief =
         "liveput: how far ahead the nodes of the trace are known (Parcae's optimizer looks at 8 to 12 intervals of a "
         "minute)"},
};
static const struct table elastic_table = {
    TABLE("train: elastic",
          "fewer nodes than the training wants: it goes on with fewer replicas, or shallower ones, and the same batch, "
          "until "
          "nodes come back",
          elastic_spec, elastic_fields),
    .shorthand = "system",
};

static const struct field validation_fields[] = {
    {KEY(validation_spec, every), .kind = FIELD_STRING, .required = true,
     .brief = "steps between validations: '1000 steps'"},
    {KEY(validation_spec, time), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .required = true,
     .brief = "time that each takes"},
};
static const struct table validation_table = {
    TABLE("train: validation", "evaluations on the way", validation_spec, validation_fields),
};

static const struct field energy_fields[] = {
    {KEY(energy_spec, gpu), .kind = FIELD_OPTIONAL, .table = &gpu_power_table,
     .brief = "power of a GPU alone, as you measured it; left out: as its file says, with its share of the node"},
    {.key = "node", AT(energy_spec, host), .kind = FIELD_QUANTITY, .unit = UNIT_POWER,
     .brief = "with 'gpu': power of a node besides its GPUs (processors, memory, NICs, fans)"},
    {KEY(energy_spec, pue), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .fallback = "1.2", .min = 1, .max = 10,
     .brief = "power of the facility, with its cooling and switches, over that of its computers; 1: only the computers are counted; "
              "1.2 is what BLOOM's computer center has (arXiv 2211.02001)"},
};
static const struct table energy_table = {TABLE("train: energy", "power, for energy", energy_spec, energy_fields)};

static const struct field reported_fields[] = {
    {KEY(reported_spec, days), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .positive = true,
     .brief = "days of wall time"},
    {KEY(reported_spec, goodput), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .positive = true, .max = 1,
     .brief = "time of steps that counted over wall time"},
    {KEY(reported_spec, gpu_hours), .kind = FIELD_QUANTITY, .unit = UNIT_COUNT, .positive = true, .brief = "GPU-hours"},
    {KEY(reported_spec, source), .kind = FIELD_STRING, .required = true, .brief = "where that is published"},
};
static const struct table reported_table = {
    TABLE("train: reported", "what such a training took, for comparison", reported_spec, reported_fields),
};

static const struct field training_fields[] = {
    AMOUNT(training_spec),
    {KEY(training_spec, per_parameter), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .positive = true,
     .brief = "tokens for each parameter of the model; 20: as Hoffmann et al. 2022 (\"Chinchilla\") advise"},
    {KEY(training_spec, target), .kind = FIELD_OPTIONAL, .table = &target_table,
     .brief =
         "training until a loss is reached, instead of an amount; a larger batch takes more samples and fewer steps"},
    {KEY(training_spec, phases), .kind = FIELD_LIST, .table = &phase_table,
     .brief =
         "parts of the training that differ, in their order; the last one may leave out how much, and takes the rest"},
    {.key = "batch",
     AT(training_spec, ramp),
     .kind = FIELD_OPTIONAL,
     .table = &ramp_table,
     .brief = "a batch that grows; left out: it is the scenario's from the first step on"},
    {KEY(training_spec, failures), .kind = FIELD_OPTIONAL, .table = &failures_table,
     .brief = "how often nodes fail; left out: never, which the results say"},
    {KEY(training_spec, checkpoint), .kind = FIELD_OPTIONAL, .table = &checkpoint_table,
     .brief = "checkpoints; left out: none, which failures do not go with"},
    {KEY(training_spec, restart), .kind = FIELD_OPTIONAL, .table = &restart_table,
     .brief = "how long a recovery takes; failures need it"},
    {KEY(training_spec, spares), .kind = FIELD_OPTIONAL, .table = &spares_table,
     .brief = "nodes that replace lost ones; left out: there is always one"},
    {KEY(training_spec, elastic), .kind = FIELD_OPTIONAL, .table = &elastic_table,
     .brief = "how the training goes on with fewer nodes than it wants, of a trace or of spares; left out: it waits"},
    {KEY(training_spec, validation), .kind = FIELD_OPTIONAL, .table = &validation_table,
     .brief = "validation; left out: none"},
    {KEY(training_spec, energy), .kind = FIELD_OPTIONAL, .table = &energy_table,
     .brief = "power, for energy; left out: as the GPU's file says, and a facility that takes 1.2 times that; it may stand alone in 'train', for a "
              "single iteration"},
    {KEY(training_spec, reported), .kind = FIELD_OPTIONAL, .table = &reported_table,
     .brief = "what a real training took; printed next to the prediction; it changes nothing"},
};
const struct table training_table = {
    TABLE("train", "how long the model is trained, and what happens on the way (dtsim train)", training_spec,
          training_fields),
};
