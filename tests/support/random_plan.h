/* random_plan: scenarios drawn at random, from a seed: degrees, schedules, placements, clusters, small models. */
#ifndef DTSIM_TEST_RANDOM_PLAN_H
#define DTSIM_TEST_RANDOM_PLAN_H

#include "simulated.h"

enum { HIDDEN = 64, HEADS = 8, SEQUENCE = 32, VOCABULARY = 1000 };

struct random_plan {
    bool transformer;                    /* else stages with given times */
    int blocks;                          /* a stage */
    int tensor, pipeline, data, micro_batches, micro;
    int chunks;                          /* 0: one; any_schedule sets it */
    const char *schedule, *recompute, *placement, *all_reduce, *data_parallel, *collectives, *fold, *engine;
    int channels;
    bool ideal;
    int gpus_per_node, nics, leaf_nodes;     /* leaf_nodes 0: nonblocking */
    double inside, network;              /* B/s */
    double inside_latency, network_latency;
    double forward, backward, boundary, parameters;      /* of stages; s, s, B, elements */
    bool tied, scatter_gather;
    double speed;                        /* multiplies rates, divides times; 1 unless a test says otherwise */
};

#define PICK(seed, ...) \
    ((const char *const[]){__VA_ARGS__}[random_below(seed, (int)COUNT(((const char *const[]){__VA_ARGS__})))])
#define PICK_INT(seed, ...) (((const int[]){__VA_ARGS__})[random_below(seed, (int)COUNT(((const int[]){__VA_ARGS__})))])

static inline double random_between(uint64_t *seed, double low, double high)
{
    return low + (high - low) * random_below(seed, 1 << 30) / (1 << 30);
}

static inline struct random_plan random_plan(uint64_t *seed)
{
    struct random_plan plan = {
        .transformer = random_below(seed, 2), .blocks = 1 + random_below(seed, 3), .tensor = 1,
        .pipeline = 1 + random_below(seed, 4), .data = 1 + random_below(seed, 4),
        .micro_batches = 1 + random_below(seed, 6), .micro = 1 + random_below(seed, 2),
        .schedule = PICK(seed, "naive", "gpipe", "gpipe, backward: ascending", "1f1b"),
        .recompute = PICK(seed, "none", "selective", "full"),
        .placement = PICK(seed, "tensor, data, pipeline", "tensor, pipeline, data", "data, tensor, pipeline",
                          "data, pipeline, tensor", "pipeline, tensor, data", "pipeline, data, tensor"),
        .all_reduce = PICK(seed, "naive", "tree", "butterfly", "halving-doubling", "ring", "ring", "ring"),
        .data_parallel = PICK(seed, "ddp", "synchronous"),
        .collectives = PICK(seed, "messages", "measured", "auto"), .fold = PICK(seed, "auto", "off"),
        .engine = PICK(seed, "ideal", "simgrid"), .channels = random_below(seed, 3),
        .gpus_per_node = PICK_INT(seed, 1, 2, 3, 4, 8), .leaf_nodes = PICK_INT(seed, 0, 0, 1, 2),
        .inside = random_between(seed, 1e10, 3e11), .network = random_between(seed, 1e9, 5e10),
        .inside_latency = random_below(seed, 3) * random_between(seed, 0, 5e-6),
        .network_latency = random_below(seed, 3) * random_between(seed, 0, 3e-5),
        .forward = random_between(seed, 1e-5, 1e-3), .backward = random_between(seed, 1e-5, 2e-3),
        .tied = random_below(seed, 2), .scatter_gather = random_below(seed, 2),
        .boundary = random_below(seed, 4) * random_between(seed, 1e3, 1e7),
        .parameters = random_below(seed, 4) * random_between(seed, 1e3, 1e6), .speed = 1,
    };

    plan.nics = plan.gpus_per_node == 3 ? 3 : PICK_INT(seed, 1, 2, 4, 8, 8);
    if (plan.nics > plan.gpus_per_node || random_below(seed, 2))
        plan.nics = plan.gpus_per_node;
    if (plan.transformer)
        plan.tensor = PICK_INT(seed, 1, 2, 4);
    else
        plan.ideal = random_below(seed, 4) == 0;
    return plan;
}

/* Any schedule of the list, with degrees that all of them accept. What it costs is not known here. */
static inline void any_schedule(struct random_plan *plan, uint64_t *seed)
{
    int count = 0;

    while (schedule_at((size_t)count))
        count++;
    const struct schedule *strategy = schedule_at((size_t)random_below(seed, count));
    plan->schedule = strategy->name;
    plan->chunks = strategy->min_chunks;
    plan->pipeline = PICK_INT(seed, 2, 4);
    plan->micro_batches = 2 * plan->pipeline * PICK_INT(seed, 1, 2);
    plan->data = 1 + random_below(seed, 3);
}

/* The part of the YAML that says where the plan runs. */
static inline void print_cluster(const struct random_plan *plan, FILE *out)
{
    int gpus = plan->tensor * plan->pipeline * plan->data;

    if (plan->ideal) {
        fputs("cluster: ideal\n", out);
        return;
    }
    fprintf(out, "cluster:\n  nodes: %d\n  gpus_per_node: %d\n  gpu: a100-80gb\n", (gpus - 1) / plan->gpus_per_node + 1,
            plan->gpus_per_node);
    fprintf(out, "  inside: {bandwidth: %.17g B/s, latency: %.17g s}\n", plan->inside * plan->speed,
            plan->inside_latency / plan->speed);
    fprintf(out, "  network: {bandwidth: %.17g B/s, latency: %.17g s, nics: %d, topology: ",
            plan->network * plan->speed, plan->network_latency / plan->speed, plan->nics);
    if (plan->leaf_nodes)
        fprintf(out, "{leaf_nodes: %d, oversubscription: %d}}\n", plan->leaf_nodes, plan->leaf_nodes < 10 ? 2 : 1);
    else
        fputs("nonblocking}\n", out);
}

/* As YAML; the caller frees it. */
static inline char *plan_yaml(const struct random_plan *plan)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (plan->transformer)
        fprintf(out, "model: {transformer: {layers: %d, hidden: %d, heads: %d, sequence: %d, vocabulary: %d, "
                "tied: %s}}\n", plan->blocks * plan->pipeline * (plan->chunks ? plan->chunks : 1), HIDDEN, HEADS,
                SEQUENCE, VOCABULARY, plan->tied ? "true" : "false");
    else
        fprintf(out, "model: {stages: {forward: %.17g s, backward: %.17g s, boundary: %.17g B, "
                "parameters: %.17g, activation: 1000 B}}\n", plan->forward / plan->speed,
                plan->backward / plan->speed, plan->boundary, plan->parameters);
    print_cluster(plan, out);
    fprintf(out, "batch: {micro_batches: %d, micro: %d}\n", plan->micro_batches, plan->micro);
    fprintf(out, "strategy: {schedule: %s, chunks: %d, tensor: %d, pipeline: %d, data: %d, placement: [%s],\n"
            "           all_reduce: %s, channels: %d, data_parallel: %s%s, scatter_gather: %s}\n", plan->schedule,
            plan->chunks ? plan->chunks : 1, plan->tensor, plan->pipeline, plan->data, plan->placement,
            plan->all_reduce, plan->channels,
            plan->data_parallel, strcmp(plan->data_parallel, "ddp") ? "" : ", first_bucket: 20 kB, bucket: 70 kB",
            plan->scatter_gather ? "true" : "false");
    fprintf(out, "memory: {recompute: %s, optimizer: adam}\n",
            plan->transformer || strcmp(plan->recompute, "selective") ? plan->recompute : "none");
    if (plan->transformer)
        fputs("costs: {host_launch: 0}\n", out);     /* so small layers would be host alone */
    fprintf(out, "simulation: {engine: %s, collectives: %s, fold: %s}\n", plan->engine, plan->collectives, plan->fold);
    fclose(out);
    return text;
}

static inline void simulate_plan(struct simulated *simulated, const struct random_plan *plan)
{
    char *text = plan_yaml(plan);

    run_text(simulated, "%s", text);
    free(text);
}

/* Bytes that a member sends in an all-reduce of `bytes`, mean over the n members: what each algorithm is known for. */
static inline double all_reduce_sent(const char *algorithm, int n, double bytes)
{
    int p = 1, rounds = 0;

    if (!strcmp(algorithm, "naive") || !strcmp(algorithm, "tree") || !strcmp(algorithm, "ring"))
        return 2.0 * (n - 1) / n * bytes;
    for (; 2 * p <= n; p *= 2)
        rounds++;
    if (!strcmp(algorithm, "butterfly"))
        return (p * rounds + 2.0 * (n - p)) / n * bytes;
    return (2.0 * (p - 1) + 2.0 * (n - p)) / n * bytes;      /* halving-doubling */
}

#endif
