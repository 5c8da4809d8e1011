/* Degrees, where they place GPUs and what they divide; how groups exchange. */
#include "scenario/scenario_internal.h"

#include <math.h>

#include "base/base.h"
#include "collective/collective.h"
#include "config/conf.h"
#include "hardware/slow_parts.h"
#include "layout/layout.h"
#include "layout/stage_spec.h"
#include "schedule/schedule.h"

int scenario_lay_out(struct scenario *scenario, struct error *err)
{
    const struct parallelism *spec = &scenario->parallelism;
    const struct list *placement = &spec->placement;
    int order[DIMENSION_COUNT] = {[DIMENSION_COUNT - 1] = DIMENSION_CONTEXT};    /* left out where its degree is 1 */

    for (size_t i = 0; i < placement->count; i++)
        order[i] = ((const int *)placement->items)[i];
    layout_make(&scenario->layout, &scenario->cluster,
                (const int[DIMENSION_COUNT]){[DIMENSION_TENSOR] = spec->tensor, [DIMENSION_DATA] = spec->data,
                                             [DIMENSION_PIPELINE] = spec->pipeline, [DIMENSION_CONTEXT] = spec->context},
                order, spec->ranks);
    if (!stages_say_parts(&spec->stages))
        return 0;
    const int *parts = stages_parts(&scenario->arena, &spec->stages, &scenario->cluster, &scenario->layout, err);

    return parts ? stages_place(&scenario->arena, parts, spec->stages.node->loc, &scenario->cluster, &scenario->layout,
                                err) : -1;
}

/* Whether the cluster has room for all replicas of equal ranks; finds how many there are where it is left out. */
static int size_replicas(struct scenario *scenario, struct error *err)
{
    struct parallelism *spec = &scenario->parallelism;
    struct cluster *cluster = &scenario->cluster;
    double per_replica = (double)spec->tensor * spec->context * spec->pipeline;
    char degrees[128];
    struct loc loc = STRATEGY_LOC(scenario, node_get(spec->node, "data") ? "data" :
                                            node_get(spec->node, "tensor") ? "tensor" :
                                            node_get(spec->node, "context") ? "context" : "pipeline");
    bool sized = cluster->nodes > 0;

    if (per_replica > 1048576 || per_replica * (spec->data ? spec->data : 1) > 1048576)
        return error_infeasible(err, ERROR_GPUS, loc, "strategy: %s is more than 1048576 GPUs",
                                scenario_degrees(scenario, degrees, sizeof degrees));
    if (!spec->data && sized && cluster_gpus(cluster) % (int)per_replica)
        return error_infeasible(err, ERROR_GPUS, loc, "strategy: %s = %d does not divide the cluster's %d GPUs",
                                scenario_degrees(scenario, degrees, sizeof degrees), (int)per_replica,
                                cluster_gpus(cluster));
    if (!spec->data)
        spec->data = sized ? cluster_gpus(cluster) / (int)per_replica : 1;
    if (sized && scenario_gpus(scenario) > cluster_gpus(cluster))
        return error_infeasible(err, ERROR_GPUS, loc, "strategy: %s needs %d GPUs, the cluster has %d",
                                scenario_degrees(scenario, degrees, sizeof degrees), scenario_gpus(scenario),
                                cluster_gpus(cluster));
    return 0;
}

int degrees_resolve(struct scenario *scenario, struct error *err)
{
    if (rank_degrees_resolve(scenario, err) || (!scenario->parallelism.ranks && size_replicas(scenario, err)))
        return -1;
    return scenario_lay_out(scenario, err) ||
           slow_parts_set(&scenario->arena, &scenario->simulation.stragglers, &scenario->simulation.slow_links,
                          &scenario->cluster, err) ? -1 : 0;
}

/* Where context is left out it varies next after tensor (Megatron-LM's order). */
int placement_resolve(struct scenario *scenario, struct error *err)
{
    struct list *list = &scenario->parallelism.placement;
    int *placement = ARENA_ARRAY(&scenario->arena, int, list->count + 1), seen[DIMENSION_COUNT] = {0};
    bool adds = false, once = true;
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++)
        seen[((const int *)list->items)[i]]++;
    adds = scenario->parallelism.context > 1 && !seen[DIMENSION_CONTEXT];
    for (int i = 0; i < DIMENSION_COUNT; i++)
        once &= seen[i] == 1 || (i == DIMENSION_CONTEXT && seen[i] == 0);
    if (!once)
        return error_add(err, EXIT_INPUT, STRATEGY_LOC(scenario, "placement"),
                         "strategy: placement: expected tensor, data and pipeline, each once, and context at most "
                         "once");
    for (size_t i = 0; i < list->count; i++) {
        placement[count++] = ((const int *)list->items)[i];
        if (adds && placement[count - 1] == DIMENSION_TENSOR)
            placement[count++] = DIMENSION_CONTEXT;
    }
    list->items = placement;
    list->count = count;
    return 0;
}

/* A GPU needs whole heads: queries, and keys and values unless these are repeated for each of the queries' heads before
 * they are sent (DeepSpeed, sequence/layer.py, single_all_to_all; Transformer Engine, AttnFuncWithCPAndQKVOA2A). */
static int check_ulysses(const struct scenario *scenario, struct error *err)
{
    const struct transformer *shape = scenario->model.transformer;
    const struct parallelism *spec = &scenario->parallelism;
    bool hybrid = spec->context_attention == CONTEXT_HYBRID, latent = shape && shape->kv_rank > 0;
    int heads = scenario_ulysses(spec), tensor = spec->tensor;
    struct loc loc = STRATEGY_LOC(scenario, hybrid && node_get(spec->node, "ulysses") ? "ulysses" : "context");

    if (spec->ulysses && !hybrid)
        return error_clash(err, STRATEGY_LOC(scenario, "ulysses"),
                           "strategy: ulysses: goes with 'context_attention: hybrid' alone; all-to-all has the whole "
                           "context group exchange heads");
    if (!shape || heads == 1)
        return 0;
    if (spec->context % heads)
        return error_add(err, EXIT_INFEASIBLE, loc,
                         "strategy: ulysses: %d does not divide the %d GPUs of a context group; expected a divisor", heads,
                         spec->context);
    if (shape->heads % (tensor * heads))
        return error_add(err, EXIT_INFEASIBLE, loc,
                         "strategy: context_attention: %d GPUs%s cannot share %d attention heads equally; expected a "
                         "degree that divides %d, or 'context_attention: ring'", heads,
                         tensor > 1 ? " of each tensor index" : "", shape->heads / tensor, shape->heads / tensor);
    if (latent || shape->ways.repeated_groups || shape->kv_heads % (tensor * heads) == 0)
        return 0;
    return error_add(err, EXIT_INFEASIBLE, loc,
                     "strategy: context_attention: %d GPUs%s cannot share %d heads of keys and values equally; expected a "
                     "degree that divides %d, 'context_attention: ring', or hybrid with a smaller ulysses", heads,
                     tensor > 1 ? " of each tensor index" : "", shape->kv_heads / tensor, shape->kv_heads / tensor);
}

/* Packed documents (FlashAttention's cu_seqlens, Transformer Engine's format thd): the transformer attends to them alone.
 * Attention that is not fused computes all scores and masks the scores of other documents. */
static int check_documents(const struct scenario *scenario, struct error *err)
{
    const struct transformer *shape = scenario->model.transformer;
    double documents = scenario->batch.documents;
    struct loc loc = node_loc(scenario->batch.node, "documents");

    if (documents == 0)
        return 0;
    if (!shape)
        return error_clash(err, loc, "batch: documents: %g needs a transformer; this model has no attention", documents);
    if (documents < 1 || documents > shape->sequence)
        return error_add(err, EXIT_INPUT, loc, "batch: documents: %g tokens; expected 1 to the %d tokens of a sample, or 0 "
                         "where a sample is one document", documents, shape->sequence);
    if (!shape->ways.flash_attention)
        return error_clash(err, loc, "batch: documents: attention that is not fused computes all scores of a sample, and "
                           "masks them; expected 'flash_attention: true', or 0");
    return 0;
}

static int check_context(const struct scenario *scenario, struct error *err)
{
    const struct transformer *shape = scenario->model.transformer;
    int context = scenario->parallelism.context, rings = context / scenario_ulysses(&scenario->parallelism);

    if (context == 1)
        return 0;
    if (!shape)
        return error_add(err, EXIT_INFEASIBLE, STRATEGY_LOC(scenario, "context"),
                         "strategy: context: %d needs a transformer; this model has no tokens to divide", context);
    if (shape->causal && rings > 1 && shape->sequence % (2 * context))
        return error_add(err, EXIT_INFEASIBLE, STRATEGY_LOC(scenario, "context"),
                         "strategy: context: %d GPUs with two pieces each do not divide the %d tokens of a sample; "
                         "expected a degree whose double divides them", context, shape->sequence);
    if (shape->sequence % context)
        return error_add(err, EXIT_INFEASIBLE, STRATEGY_LOC(scenario, "context"),
                         "strategy: context: %d does not divide the %d tokens of a sample; expected a divisor",
                         context, shape->sequence);
    return 0;
}

static int check_expert(const struct scenario *scenario, struct error *err)
{
    const struct transformer *shape = scenario->model.transformer;
    int expert = scenario->parallelism.expert, replicas = scenario_replicas(scenario);
    int tensor = scenario->parallelism.tensor, tensors = tensor / scenario_expert_tensor(&scenario->parallelism);
    bool whole = tensors < tensor && expert % tensor == 0 && replicas * tensor % expert == 0;

    if (expert == 1)
        return 0;
    if (!shape || !shape->experts)
        return error_add(err, EXIT_INFEASIBLE, STRATEGY_LOC(scenario, "expert"),
                         "strategy: expert: %d needs a model with experts; expected 1, or 'experts' in the transformer",
                         expert);
    if (shape->experts % expert)
        return error_add(err, EXIT_INFEASIBLE, STRATEGY_LOC(scenario, "expert"),
                         "strategy: expert: %d does not divide the %d experts; expected a divisor", expert,
                         shape->experts);
    if (expert % tensors)
        return error_add(err, EXIT_INFEASIBLE, STRATEGY_LOC(scenario, "expert"),
                         "strategy: expert: %d is no multiple of tensor %d, whose GPUs have different experts under "
                         "'expert_tensor: 1'; expected a multiple", expert, tensors);
    if (replicas * tensors % expert)
        return error_add(err, EXIT_INFEASIBLE, STRATEGY_LOC(scenario, "expert"),
                         "strategy: expert: %d does not divide the %d %s (data %d x context %d%s) that the experts "
                         "are to be divided over; expected a divisor%s", expert, replicas * tensors,
                         tensors > 1 ? "GPUs" : "replicas", scenario->parallelism.data, scenario->parallelism.context,
                         tensors > 1 ? " x tensor" : "",
                         whole ? ", or 'expert_tensor: 1' with 'sequence_parallel: true', which divides them over the "
                                 "GPUs of the tensor groups too" : "");
    return 0;
}

/* GPUs with whole experts need the rows of their own tokens alone: only sequence parallelism divides these (Megatron
 * Core's rule for experts under tensor parallelism). Their experts differ, so an expert degree divides them. */
static int check_expert_tensor(const struct scenario *scenario, struct error *err)
{
    const struct parallelism *spec = &scenario->parallelism;
    struct loc loc = STRATEGY_LOC(scenario, "expert_tensor");
    int own = spec->expert_tensor;

    if (own == 0 || own == spec->tensor)
        return 0;
    if (own != 1)
        return error_clash(err, loc, "strategy: expert_tensor: %d; expected 1, or the tensor degree %d", own,
                           spec->tensor);
    if (!scenario->model.transformer || !scenario->model.transformer->experts)
        return error_clash(err, loc, "strategy: expert_tensor: this model has no experts; leave it out");
    if (!spec->sequence_parallel)
        return error_clash(err, loc,
                           "strategy: expert_tensor: 1 needs GPUs of a tensor group that have different tokens; "
                           "expected 'sequence_parallel: true', or expert_tensor %d", spec->tensor);
    if (spec->expert == 1)
        return error_clash(err, loc,
                           "strategy: expert_tensor: 1, but 'expert: 1' puts all experts on each GPU; expected an "
                           "expert degree that is a multiple of tensor %d", spec->tensor);
    return 0;
}

static int check_capacity(const struct scenario *scenario, struct error *err)
{
    const struct transformer *shape = scenario->model.transformer;
    double factor = scenario->parallelism.capacity_factor;

    if (factor == 0)
        return 0;
    if (!shape || !shape->experts)
        return error_clash(err, STRATEGY_LOC(scenario, "capacity_factor"),
                           "strategy: capacity_factor: this model has no experts; expected 0");
    if (shape->expert_skew > 0)
        return error_clash(err, STRATEGY_LOC(scenario, "capacity_factor"),
                           "strategy: capacity_factor: experts with a capacity compute equally many rows, but the "
                           "transformer says 'expert_skew: %g'; expected 0 here or 0 there", shape->expert_skew);
    if (factor < 1)
        return error_add(err, EXIT_INPUT, STRATEGY_LOC(scenario, "capacity_factor"),
                         "strategy: capacity_factor: %g drops tokens even where routing is balanced; expected 1 or "
                         "more, or 0 for no limit", factor);
    return 0;
}

/* What Megatron Core asks of --overlap-moe-expert-parallel-comm and --moe-shared-expert-overlap (transformer_config.py,
 * __post_init__): without chunks the last rank has no backward that could overlap with a forward without waiting for it. */
static int check_overlap_dispatch(const struct scenario *scenario, struct error *err)
{
    const struct parallelism *spec = &scenario->parallelism;
    const struct recompute_spec *recompute = &scenario->memory.recompute;
    const struct transformer *shape = scenario->model.transformer;
    const char *schedule = scenario_schedule(scenario)->name;
    bool pairs = parallelism_pairs(spec), one = spec->pipeline == 1 && !strcmp(schedule, "1f1b");
    unsigned modules = recomputed_modules(recompute);
    const struct { bool fault; const char *why;
    } faults[] = {
        {spec->expert == 1, "needs experts on several GPUs; expected an expert degree above 1"},
        {spec->dispatcher == DISPATCHER_ALLGATHER, "goes with the dispatchers alltoall, deepep and hybridep alone"},
        {pairs && !one && strcmp(schedule, "interleaved"),
         "micro-batches goes with 'schedule: interleaved', or 1f1b without a pipeline"},
        {pairs && (recompute->mode == RECOMPUTE_FULL || recompute->mode == RECOMPUTE_OPTIMAL ||
                   modules >> MODULE_EXPERTS & 1),
         "micro-batches does not go with recomputation of the experts, which would exchange again alone"},
        {!pairs && (!shape || !shape->shared_experts), "shared-experts needs some in model.transformer"},
        {!pairs && modules >> MODULE_SHARED & 1, "shared-experts does not go with their recomputation"},
    };

    for (size_t i = 0; spec->overlap_dispatch && i < COUNT(faults); i++)
        if (faults[i].fault)
            return error_clash(err, STRATEGY_LOC(scenario, "overlap_dispatch"), "strategy: overlap_dispatch: %s",
                               faults[i].why);
    return 0;
}

/* One server would hold the experts of all others; and GPUs that meet in every layer cannot each choose their order. */
static int check_companions(const struct scenario *scenario, struct error *err)
{
    const struct parallelism *spec = &scenario->parallelism;

    if (spec->context * spec->expert == 1)
        return 0;
    if (plan_opportunistic(scenario_schedule(scenario), &scenario->plan))
        return error_clash(err, STRATEGY_LOC(scenario, spec->context > 1 ? "context" : "expert"),
                           "strategy: %s: GPUs that meet in every layer do not go with 'runtime: opportunistic'; "
                           "expected 1, or 'runtime: static'", spec->context > 1 ? "context" : "expert");
    if (spec->data_parallel != DATA_PARALLEL_SERVER)
        return 0;
    return error_clash(err, STRATEGY_LOC(scenario, spec->context > 1 ? "context" : "expert"),
                       "strategy: %s: does not go with a parameter server; expected 1, or 'data_parallel: ddp'",
                       spec->context > 1 ? "context" : "expert");
}

int degrees_check(const struct scenario *scenario, struct error *err)
{
    static scenario_rule *const rules[] = {check_documents, check_context, check_ulysses, check_expert_tensor, check_expert, check_capacity,
                                          check_overlap_dispatch, check_companions};

    return scenario_check(scenario, rules, COUNT(rules), err);
}

static int check_switches(const struct scenario *scenario, struct error *err)
{
    const struct collective *collective = scenario_all_reduce(scenario);

    if (collective_runs_on(collective, &scenario->cluster))
        return 0;
    return error_clash(err, STRATEGY_LOC(scenario, "all_reduce"), "strategy: all_reduce: %s needs %s",
                       collective->name, collective_needs(collective));
}

static int check_communicator(const struct scenario *scenario, struct error *err)
{
    const struct communication *communication = cluster_communication(&scenario->cluster, ~0u);

    if (!scenario->parallelism.one_communicator || scenario->cluster.ideal ||
        (communication && !isnan(communication->send->copy)))
        return 0;
    return error_clash(err, STRATEGY_LOC(scenario, "one_communicator"),
                       "software: one_communicator: what it holds up is the copying to and from sockets, of which the "
                       "cluster says nothing; expected a communication profile whose 'send' has 'copy', such as "
                       "nccl-socket");
}

static int check_overlap(const struct scenario *scenario, struct error *err)
{
    const struct parallelism *spec = &scenario->parallelism;

    if (!spec->overlap_products || !spec->sequence_parallel || spec->overlap_tensor)
        return 0;
    return error_clash(err, STRATEGY_LOC(scenario, "overlap_tensor"),
                       "software: overlap_tensor: false, but overlap_products hides sums of the backward too; expected "
                       "true, or leave it out");
}

int exchanges_check(const struct scenario *scenario, struct error *err)
{
    static scenario_rule *const rules[] = {check_switches, check_communicator, check_overlap};

    return scenario_check(scenario, rules, COUNT(rules), err);
}

/* A slice's works need the keys and values of all slices before it, and of these alone. */
int slices_check(const struct scenario *scenario, struct error *err)
{
    const struct transformer *shape = scenario->model.transformer;
    const struct parallelism *spec = &scenario->parallelism;
    enum recompute mode = (enum recompute)scenario->memory.recompute.mode;
    int slices = plan_slices(&scenario->plan), pieces = slices * (spec->sequence_parallel ? spec->tensor : 1);
    const struct { bool has; const char *what; } others[] = {
        {shape && !shape->causal, "tokens of this model see those after them; expected a model with 'causal: true'"},
        {shape && shape->window > 0, "attention of this model has a window"},
        {scenario->batch.documents > 0, "samples are packed of documents (batch.documents)"},
        {spec->context > 1, "'context' divides the tokens already"},
        {mode != RECOMPUTE_NONE && mode != RECOMPUTE_SELECTIVE, "a recomputed slice would need keys and values of slices "
         "that are recomputed after it; expected 'memory: {recompute: none}' or 'selective'"},
        {scenario_by_layers(scenario), "'offload' goes layer by layer through whole micro-batches"},
    };
    int rc = 0;

    for (size_t i = 0; slices > 1 && i < COUNT(others); i++)
        if (others[i].has)
            rc = error_clash(err, STRATEGY_LOC(scenario, "slices"), "strategy: slices: %d does not go with the rest: %s",
                             slices, others[i].what);
    if (slices > 1 && shape && shape->sequence % pieces)
        rc = error_infeasible(err, ERROR_BATCH, STRATEGY_LOC(scenario, "slices"), "strategy: slices: the %d tokens of a "
                              "sample do not divide into %d slices%s; expected a divisor", shape->sequence, slices,
                              spec->sequence_parallel ? ", of which sequence_parallel gives each GPU a share" : "");
    return rc;
}
