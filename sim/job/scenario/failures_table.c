/* Keys of failures, and of the files that publish them. */
#include "scenario/train_section_internal.h"

static const struct field cause_fields[] = {
    {KEY(cause_spec, name), .kind = FIELD_STRING, .required = true,
     .brief = "the cause, as the table of lost time has it"},
    {KEY(cause_spec, per_node_day), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .required = true,
     .brief = "failures for each node and day"},
    {.key = "node",
     AT(cause_spec, loses_node),
     .kind = FIELD_BOOL,
     .fallback = "true",
     .brief = "whether a node is lost, which another one replaces; false: the job starts again on the same nodes"},
    {KEY(cause_spec, detect), .kind = FIELD_QUANTITY, .unit = UNIT_TIME,
     .brief = "time until the failure is noticed; left out: as under 'restart'"},
    {KEY(cause_spec, replace), .kind = FIELD_QUANTITY, .unit = UNIT_TIME,
     .brief = "time to replace the node; left out: as under 'restart'"},
    {KEY(cause_spec, init), .kind = FIELD_QUANTITY, .unit = UNIT_TIME,
     .brief = "time until the job is initialised again; left out: as under 'restart'"},
};
static const struct table cause_table = {
    TABLE("train: failures: causes", "one cause of failures", cause_spec, cause_fields)};

static const struct field failures_fields[] = {
    {KEY(failures_spec, per_node_day), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER,
     .brief = "failures for each node and day that it trains or recovers, from your own cluster's logs"},
    {KEY(failures_spec, causes), .kind = FIELD_LIST, .table = &cause_table, .brief = "the same, cause by cause"},
    {KEY(failures_spec, source), .kind = FIELD_STRING, .files = "platforms/failures",
     .brief = "published failures of another system: a name (dtsim list failures), or a file"},
    {KEY(failures_spec, trace), .kind = FIELD_STRING,
     .brief = "a file that says how many nodes are up over time: a header 'time_s,nodes' (or time_h; or change: nodes "
              "that come "
              "or go), then rows; nodes that the training does not need are idle, and which nodes are lost is random"},
    {KEY(failures_spec, shape), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .fallback = "1", .min = 0.1, .max = 10,
     .brief =
         "shape of the Weibull distribution of the times between failures, whose mean stays; 1: exponential; below 1: "
         "failures follow each other more often"},
};
const struct table failures_table = {
    TABLE("train: failures", "how often a node fails", failures_spec, failures_fields),
    .exactly_one = "per_node_day causes source trace",
};

static const struct field failures_file_fields[] = {
    {KEY(failures_file, title), .kind = FIELD_STRING, .required = true, .brief = "the system, with its GPUs"},
    {KEY(failures_file, source), .kind = FIELD_STRING, .required = true, .brief = "where the numbers are published"},
    {KEY(failures_file, per_node_day), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER,
     .brief = "failures for each node and day"},
    {KEY(failures_file, causes), .kind = FIELD_LIST, .table = &cause_table, .brief = "the same, cause by cause"},
};
const struct table failures_file_table = {
    TABLE("failures", "published failures of a system", failures_file, failures_file_fields),
    .exactly_one = "per_node_day causes",
};
