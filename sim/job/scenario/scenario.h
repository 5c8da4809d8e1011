/* scenario: one YAML file, checked, with every default resolved. A function takes the part of it that it uses: its
 * parallelism, its memory policy or the precision or recomputation of that, its costs. */
#ifndef DTSIM_SCENARIO_H
#define DTSIM_SCENARIO_H

#include "collective/collective.h"
#include "engine/replay.h"
#include "evidence/evidence.h"
#include "expression/rule.h"
#include "hardware/cluster.h"
#include "kernels/costs.h"
#include "model/model.h"
#include "scenario/memory_policy.h"
#include "scenario/parallelism.h"
#include "scenario/process_group.h"
#include "scenario/recipe.h"
#include "scenario/search.h"
#include "scenario/train_section.h"
#include "software/software.h"

#define COLLECTIVES_MODES(X) \
    X(COLLECTIVES_AUTO, "auto") X(COLLECTIVES_MESSAGES, "messages") X(COLLECTIVES_MEASURED, "measured")
enum collectives_mode { COLLECTIVES_MODES(ENUM_VALUE) };
#define FOLDS(X) X(FOLD_AUTO, "auto") X(FOLD_OFF, "off")
enum fold { FOLDS(ENUM_VALUE) };

/* What follows from a pipeline rank's degrees. */
struct rank_view {
    int tensor, data;
    int micro;                           /* samples in a micro-batch of each of its replicas */
    const struct node *node;             /* of the first stage that says them */
    struct process_groups groups;        /* that its GPUs are in */
    struct recipe recipe;                /* what its replicas exchange */
};

struct scenario {
    const struct node *node;
    struct arena arena;                  /* owns everything below */
    struct cache *own;                   /* of scenario_load: its variations read and plan what is alike once */
    const char *name;
    struct model model;
    struct cluster cluster;
    struct batch {
        const struct node *node;
        int global;                      /* samples an iteration, over all replicas */
        int micro;                       /* samples a micro-batch; of all replicas' the mean */
        struct list shares;              /* of int: the ratio of these by replica; or auto; empty: equal */
        const int *samples;              /* a replica of `data`: of its micro-batches; NULL: `micro` in all */
        int micro_batches;               /* per replica */
        int flush;                       /* per replica, between two flushes of the pipeline; 0: all */
        int slice;                       /* which of a micro-batch's slices costs are asked for (workload/class_cost.c); else 0 */
        double documents;                /* tokens of each of the documents that a sample is packed of; 0: it is one */
        int count;                       /* batches in a row, of asynchronous schedules that have batches */
    } batch;
    struct parallelism parallelism;
    struct layout layout;                /* on which GPU each of its seats is */
    struct memory_spec memory;
    struct costs_spec costs;
    struct kernel_costs kernels[KINDS_MAX];      /* what that means for GPUs of each kind of node */
    struct software_spec {
        const struct node *node;
        const char *like;                /* a software file; NULL or "none": defaults of the tables */
        struct software_names names;     /* of the file; NULL without one */
        bool assumed;                    /* the scenario names none, so this is the usual one of its degrees */
    } software;
    struct simulation_spec {
        const struct node *node;
        int engine, collectives, fold;
        double jitter;                   /* standard deviation of a work's time, as a share of it */
        int seed;
        int repeat;                      /* replays with jitter, with this seed and the following ones */
        struct list stragglers, slow_links;  /* of struct straggler, struct slow_link (slow_parts.h): the cluster has
                                              * what they say */
    } simulation;
    struct data_spec {
        const struct node *node;
        double read;                     /* samples/s that the job reads from its storage */
        bool overlap;                    /* while it computes; else GPUs wait for all samples of a step */
    } *data;                             /* NULL: GPUs never wait for samples */
    double price;                        /* $ an hour of one GPU; NaN: not said */
    struct training_spec *train;         /* how long it is trained; NULL: not said */
    struct search_spec search;           /* what 'dtsim plan' is to search; nothing here depends on it */
    struct plan plan;                    /* what the schedule sees */
    struct process_groups groups;
    unsigned uneven;                     /* enum uneven: scenario_uneven */
    struct recipe recipe;                /* what replicas exchange */
    const struct rank_view *const *views;    /* a pipeline rank, where ranks differ in their degrees; NULL: groups, recipe
                                              * and batch.micro hold for all. Else these are of the largest degrees, and
                                              * batch.micro is of the first rank */
    const struct evidence *evidence;     /* how far off predictions were; NULL: nothing says it */
    struct progress *progress;           /* how far its simulation is, or NULL (base/progress.h) */
};
extern const struct table scenario_table, strategy_table, memory_table, recompute_table, software_table;

/* The field at a path ("cluster.network.bandwidth", "model.layers.0.forward", an option of any schedule under
 * "strategy."), or NULL: scenarios have no such path. */
const struct field *scenario_field(const char *path);

/* The rules of what goes with what, a table of those that are asked at once, in the order in which loading asks them; NULL past
 * the last. And their conditions, in the
 * arena or its cache, for who asks before there is a scenario: then what nothing tells is open, and so undecided. */
const struct rules *scenario_rules(size_t i);
const struct condition *scenario_conditions(struct arena *arena, const struct rules *rules);
/* A condition of a software file. */
int scenario_condition(struct arena *arena, const struct node *text, struct condition *condition, struct error *err);
/* Where a scenario says the key that a condition names ("software.sums_once"); and whether a software file may say it. */
const char *scenario_written(const struct condition_name *name, struct arena *arena);
bool scenario_supplies(const struct condition_name *name);

/* conf_load of a file that should be a scenario, or one of dtsim's own files about scenarios: files of other programs are
 * refused, with the command that imports them. */
int scenario_tree(struct arena *arena, const char *path, struct node **root, struct error *err);
/* Reads and checks the file, changed by `sets` ("PATH=VALUE", nsets of them), which its name then tells. Degrees that
 * do not divide, more stages than layers and values of several keys that do not go together (error_clash) are
 * EXIT_INFEASIBLE. Reading and what follows are held to the budget of `progress` (or NULL), whose end is EXIT_STOPPED. Release
 * in either case. */
int scenario_load(const char *path, const char *const *sets, size_t nsets, struct progress *progress,
                  struct scenario *scenario, struct error *err);
/* The same from a tree in the arena, with its progress. The scenario takes the arena over in either case; without a name of its
 * own it is called `name`. */
int scenario_read(struct arena *arena, struct node *root, const char *const *sets, size_t nsets, const char *name,
                  struct scenario *scenario, struct error *err);
/* Changes the tree by "PATH=VALUE". */
int scenario_set(struct arena *arena, struct node *root, const char *set, struct error *err);
/* The common part of many scenarios: a parsed tree, so that for each scenario only the values that differ are read
 * (field_parse_like). It must outlive them, as the tree must outlive it. */
struct scenario_common {
    struct scenario *parsed;         /* but not resolved; NULL: the tree cannot be parsed alone, so they share nothing */
    struct arena arena;              /* release it */
};
void scenario_common_make(struct scenario_common *common, struct cache *cache, const struct node *root);
/* scenario_read of a tree that shares its unchanged nodes with the tree of `common`. */
int scenario_read_like(struct arena *arena, const struct node *root, const struct scenario_common *common,
                       const char *name, struct scenario *scenario, struct error *err);
/* The software that a scenario is taken to have which names none, before it is resolved; `parallel`: with a pipeline.
 * NULL: it names one, or its times are given. */
const char *scenario_usual_software(const struct scenario *parsed, bool parallel);
/* "What if": the scenario as it was written, changed by `sets` and read anew. It shares the tree of the first one,
 * which must outlive it. Release in either case. */
int scenario_vary(const struct scenario *scenario, const char *const *sets, size_t nsets, struct scenario *varied,
                  struct error *err);
/* The scenario with another memory.recompute and memory.offload, each unless it is NULL, and with all that was found for it, or
 * asked for beside its file; in the arena. NULL: it cannot be so. */
const struct scenario *scenario_with_memory(struct arena *arena, const struct scenario *scenario, const char *recompute,
                                            const char *offload);
/* The scenario with every default, as field_dump; what software decides stands under `software`. Read again it is the
 * same scenario. */
struct node *scenario_dump(struct arena *arena, const struct scenario *scenario);
/* The engine on which it is to be simulated, unless it names one: simgrid is the default of a single run, fast of
 * commands that simulate many. */
void scenario_prefer(struct scenario *scenario, enum engine engine);
void scenario_release(struct scenario *scenario);

const struct schedule *scenario_schedule(const struct scenario *scenario);
/* Whether ZeRO divides among fewer than all replicas; replicas with the same share then also sum their gradients. */
bool scenario_hybrid(const struct scenario *scenario);
const struct collective *scenario_all_reduce(const struct scenario *scenario);
/* The GPUs of a tensor group that divide each expert among them; the others hold other experts. */
int scenario_expert_tensor(const struct parallelism *spec);
/* GPUs of a context group that exchange heads for tokens around attention; 1: none do. */
int scenario_ulysses(const struct parallelism *spec);
int scenario_gpus(const struct scenario *scenario);      /* tensor * context * pipeline * data, or the sum over the ranks */
int scenario_paid_gpus(const struct scenario *scenario);    /* of the cluster: those, and the idle ones */
/* GPUs of a tensor group, the most of all ranks. */
int scenario_most_tensor(const struct scenario *scenario);
/* Of a pipeline rank: GPUs of each tensor group, replicas (with the GPUs of their context groups), process groups and
 * recipe. */
int scenario_tensor(const struct scenario *scenario, int p);
int scenario_rank_replicas(const struct scenario *scenario, int p);
const struct process_groups *scenario_groups(const struct scenario *scenario, int p);
const struct recipe *scenario_recipe(const struct scenario *scenario, int p);
/* Whether there is a rank of that number, replica * pipeline + pipeline rank: not every rank has as many replicas. */
bool scenario_has_rank(const struct scenario *scenario, int rank);
/* The weight of a rank in a mean over all GPUs: 1 where all ranks have equally many, 0 for a rank without; and the sum
 * of the weights of the first `count` ranks. */
double scenario_rank_weight(const struct scenario *scenario, int rank);
double scenario_rank_weights(const struct scenario *scenario, int count);
/* Samples of a micro-batch on all replicas together: batch.micro x data of the first rank. */
int scenario_step_samples(const struct scenario *scenario);
/* The kernel costs of the GPU of the first seat, which reports describe. */
const struct kernel_costs *scenario_first_costs(const struct scenario *scenario);
/* The names of the GPUs of a pipeline rank, -1: of all ranks, in the order of the nodes: "a100-80gb + h100-80gb". NULL:
 * they have none. */
const char *scenario_gpu_names(struct arena *arena, const struct scenario *scenario, int rank);
/* FLOP/s: the mean of the peaks of the job's GPUs in that format, by their data sheets. */
double scenario_mean_peak(const struct scenario *scenario, enum dtype products);
/* data * context, the most of all ranks. The GPUs of a context group work on shares of the same samples and otherwise do the work of replicas.
 * So they count as replicas: the i-th GPU of the group of replica d has number d * context + i. */
int scenario_replicas(const struct scenario *scenario);
/* Samples in a micro-batch of a replica. */
int scenario_samples(const struct scenario *scenario, int replica);
/* Divides micro x data samples among the replicas of `data`, in proportion to their weights, rounded by largest remainder,
 * of equal ones the first. In the arena; a replica may get 0. NULL: all get `micro`. */
int *scenario_share(struct arena *arena, const struct scenario *scenario, const double *weights);
/* Whether it runs on several nodes. */
bool scenario_spans_nodes(const struct scenario *scenario);
/* layout_gpu and layout_seat of its layout. */
int scenario_gpu(const struct scenario *scenario, int t, int replica, int p);
struct seat scenario_seat(const struct scenario *scenario, int t, int replica, int p);
/* "tensor 2 x context 4 x pipeline 2 x data 3", a context degree of 1 left out, and data where it is 0; returns
 * buffer. */
char *scenario_degrees(const struct scenario *scenario, char *buffer, size_t size);

/* Whether the scenario's file says memory.precision. */
bool scenario_says_precision(const struct scenario *scenario);
/* precision_bytes of the scenario: whether gradients add up follows from its schedule. */
struct parameter_bytes scenario_parameter_bytes(const struct scenario *scenario);
/* B that each GPU of a pipeline rank may hold: the limit, or the least memory of these GPUs; INFINITY where neither is
 * known. The least of all ranks. */
double scenario_room(const struct scenario *scenario, int rank);
double scenario_least_room(const struct scenario *scenario);
/* B/s of copies between each GPU of a rank and its host, the least of these GPUs, NaN: it is not known; s of a copy of
 * nothing, the most of these GPUs. */
double scenario_host_bandwidth(const struct scenario *scenario, int rank);
double scenario_host_latency(const struct scenario *scenario, int rank);
bool scenario_offloads(const struct scenario *scenario, enum offload what);
/* Whether activations may go to the host, layer by layer or tensor by tensor. */
bool scenario_moves_activations(const struct scenario *scenario);
/* Whether schedules have recomputations: works of their own, before backwards. */
bool scenario_has_recomputations(const struct scenario *scenario);
/* Whether stages are computed layer by layer, each with memory and transfers of its own: stage_plan.h. */
bool scenario_by_layers(const struct scenario *scenario);
/* Whether what their activations do is planned for what a GPU may hold. */
bool scenario_plans_memory(const struct scenario *scenario);

/* Whether its framework's release has what it asks: its schedule, ZeRO stage, recomputation and whatever else the software
 * file lists. Not known without software, or where nobody looked it up. *lack as software_has. */
enum software_has scenario_in_framework(struct arena *arena, const struct scenario *scenario,
                                        struct software_lack *lack);
/* The value of a key of its strategy, memory or batch ("strategy.zero") as text, in the arena; a list of one as that one.
 * NULL: it has none. */
const char *scenario_value(struct arena *arena, const struct scenario *scenario, const char *path);

#endif
