/* How a scenario is resolved and checked, for the files of this folder. */
#ifndef DTSIM_SCENARIO_INTERNAL_H
#define DTSIM_SCENARIO_INTERNAL_H

#include "expression/rule.h"
#include "scenario/scenario.h"

/* Where a key of `strategy:` stands. */
#define STRATEGY_LOC(scenario, key)                                                                                    \
    node_loc((scenario)->parallelism.node ? (scenario)->parallelism.node : (scenario)->node, key)

/* scenario_parts.c: the parts whose keys rules and software files name. Software may set the first ones. */
enum {
    PART_STRATEGY, PART_MEMORY, PART_RECOMPUTE, PART_COSTS, PART_TRANSFORMER, PART_BATCH, SOFTWARE_PARTS,
    PART_COMPRESSION = SOFTWARE_PARTS, PART_SCHEDULE, PART_MODEL, PART_CLUSTER, PARTS
};
struct key_parts scenario_parts(struct scenario *scenario, struct key_part parts[PARTS], size_t count);
/* Asks rules, in the order in which what they read is known. */
int scenario_ask(struct scenario *scenario, const struct rules *rules, struct error *err);
/* strategy_rules.c */
extern const struct rules gpus_rules, shard_rules, yielding_rules, idle_strategy_rules, data_parallel_rules, shares_rules;
/* degree_rules.c */
extern const struct rules order_rules, chunks_rules, same_rules, batch_rules, batch_size_rules, model_rules, degrees_rules, ranks_rules, sizes_rules,
                          flush_rules;
/* memory_rules.c */
extern const struct rules idle_memory_rules, memory_rules;
/* scenario.c */
/* The fewest model chunks that a rank of the schedule has, or the most. */
int scenario_chunks(const struct scenario *scenario, bool most);
/* Whether each kind of node has a GPU with a name. */
bool scenario_names_gpus(const struct scenario *scenario);
/* The costs that were settled, in words of `costs:`; as the scenario says them where nodes are of several kinds. */
struct costs_spec scenario_resolved_costs(const struct scenario *scenario);
/* The number of replicas among which ZeRO divides a rank's states: the group size that the scenario gives, else all
 * `data` replicas. */
int scenario_rank_shard(const struct parallelism *spec, int data);

/* process_group.c */
/* Sets strategy.ulysses of a hybrid context group, where it was left out. The layout is made. */
void ulysses_resolve(struct scenario *scenario);

/* parallelism.c */
/* Makes scenario->layout of the degrees and the placement, and settles the cluster's size if it was left out. */
int scenario_lay_out(struct scenario *scenario, struct error *err);
/* The number of replicas: given, or what remains of the cluster; then the layout, stragglers and slow links. */
int degrees_resolve(struct scenario *scenario, struct error *err);
/* Checks strategy.placement, and puts context into it where it is left out. */
int placement_resolve(struct scenario *scenario, struct error *err);

/* Takes the pipeline degree and the layers of stages from strategy.stages, before and after chunks are known. */
int stages_resolve(struct scenario *scenario, struct error *err);
int stages_split(struct scenario *scenario, struct error *err);
/* Takes the degrees of ranks from strategy.stages: strategy.tensor and data where all have the same, else
 * parallelism.ranks, and the largest. Before the layout is made. */
int rank_degrees_resolve(struct scenario *scenario, struct error *err);
/* Whether the replicas of unequal ranks divide the samples of a micro-batch. */
int rank_samples_check(const struct scenario *scenario, struct error *err);
/* Makes scenario->views. All else is resolved. */
void rank_views_make(struct scenario *scenario);
/* Sharers are the ranks of a pipeline that hold the same stage and take turns at the micro-batches (PipeDream's
 * 1F1B-RR). The ranks of all stages add up to the pipeline's: sets it where it was not given. */
int sharers_resolve(struct scenario *scenario, struct error *err);
/* Places the plan's stages, where any is shared: rank by rank, the sharers of a stage in a row. */
void sharers_place(struct scenario *scenario);
/* Every rank that shares a stage does as many micro-batches, as all of them sum their gradients at every update. */
int sharers_check(const struct scenario *scenario, struct error *err);

/* data_parallel.c */
/* Over how many replicas ZeRO divides: over all, or within groups of that many. The number of replicas is known. */
void shard_resolve(struct parallelism *spec);
/* Whether replica 0 alone has the states, and updates. */
bool scenario_rooted(const struct scenario *scenario);
/* Who that is, and who updates, in words; "" where it is not so. */
const char *scenario_root(const struct scenario *scenario);
const char *scenario_root_updates(const struct scenario *scenario);
/* Fills the defaults of the compression's method. */
void compression_resolve(struct compression_spec *spec);

/* What replicas get of each micro-batch; the model and all policies are known. */
int shares_resolve(struct scenario *scenario, struct error *err);

/* memory_policy.c: whether blocks can keep what they save in the form that `memory:` says. */
int scenario_check_saved(const struct scenario *scenario, struct error *err);
/* The data sheet of a kind of GPU that has no rate in the format, or NULL. */
const struct gpu *scenario_sheet_without(const struct scenario *scenario, enum dtype dtype);
/* Where nobody says a precision, weights that config.json has in bf16 train in mixed-bf16, unless the GPU has none; all
 * others in the default, mixed-fp16. */
void scenario_settle_precision(struct scenario *scenario);
/* Replaces `precision: bf16` by what it stands for, as if the scenario said it: mixed-bf16, moments of Adam in half precision
 * and, where software's own keys are not said, no master weights and gradients in the format of the weights. So PyTorch
 * trains a model whose weights were loaded in bf16: autograd's gradients and zeros_like's states have their format. */
int scenario_lay_bf16(struct scenario *scenario, struct error *err);
/* scenario_table.c */
extern const struct table batch_table, schedule_table, compression_table;
/* These keys belong to the scenario: they say what is exchanged, or how the host was told to launch. A software file
 * may give them too. */
#define FILES_MAY_GIVE "data_parallel all_reduce context_attention dispatcher"
#define FILES_MAY_COST "host_launch launch_blocking"
/* scenario_software.c */
/* Lays what the scenario itself gives under `software`, as if it stood in the parts that delegate it; refuses it
 * there. */
int scenario_lay_own(struct scenario *scenario, struct error *err);
/* Sets the values of the scenario's software below its own values, except values that change nothing here. */
int scenario_lay_software(struct scenario *scenario, struct error *err);
/* Refuses what is said and changes nothing here, and takes back what was supplied and changes nothing. */
int scenario_settle_idle(struct scenario *scenario, struct error *err);
/* The dispatcher: as the scenario says; else the software's own, unless the scenario says with the older word that tokens
 * are dispatched in the other way. */
int scenario_settle_dispatcher(struct scenario *scenario, struct error *err);
/* The format of gradients (enum gradients) where the scenario does not say. */
int memory_default_gradients(const struct scenario *scenario);

#endif
