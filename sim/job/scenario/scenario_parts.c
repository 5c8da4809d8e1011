/* What rules and the conditions of software files may name of a scenario: the keys of its parts, and facts that follow from
 * several of them. */
#include "scenario/scenario_internal.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "collective/collective.h"
#include "config/field.h"
#include "expression/expression.h"
#include "expression/rule.h"
#include "hardware/cluster.h"
#include "hardware/precision.h"
#include "kernels/costs.h"
#include "layout/layout.h"
#include "model/model.h"
#include "model/transformer.h"
#include "schedule/schedule.h"

typedef const struct scenario *subject;

#define FACT(name, result) \
    static struct value name(const void *of) \
    { \
        subject s = of; \
        return result; \
    }
#define NUMBER(name, expression) FACT(name##_fact, value_number((double)(expression)))
#define TRUE_IF(name, expression) FACT(name##_fact, value_boolean(expression))
#define WORDS(name, expression) FACT(name##_fact, value_text(expression))
#define SHAPE(s) ((s)->model.transformer)

/* The model. */
TRUE_IF(transformer, SHAPE(s) != NULL)
TRUE_IF(timed, model_is_timed(&s->model))
TRUE_IF(split_auto, list_is_auto(&s->parallelism.split))
NUMBER(experts, SHAPE(s) ? SHAPE(s)->experts : 0)
TRUE_IF(latent, SHAPE(s) && SHAPE(s)->kv_rank)
TRUE_IF(mixers, SHAPE(s) && SHAPE(s)->pattern && strpbrk(SHAPE(s)->pattern, "MGKL"))
TRUE_IF(two_sides, SHAPE(s) && SHAPE(s)->encoder)
TRUE_IF(head, SHAPE(s) && SHAPE(s)->head != HEAD_NONE)
NUMBER(model_stages, s->model.stages.count)
/* Whether every block is dense and ends with a GEMM whose result no backward needs. */
TRUE_IF(dense_ends, SHAPE(s) && SHAPE(s)->dropout <= 0 && !precision_is_narrow(&s->memory.precision) &&
        !(SHAPE(s)->experts && SHAPE(s)->moe_every == 1 && !SHAPE(s)->dense_layers))

/* The cluster. */
TRUE_IF(ideal, s->cluster.ideal)
TRUE_IF(named, scenario_names_gpus(s))
TRUE_IF(sized, s->cluster.nodes > 0)
NUMBER(gpus, s->cluster.nodes > 0 ? cluster_gpus(&s->cluster) : 0)
NUMBER(node_gpus, cluster_node_gpus(&s->cluster, 0))

/* The least compute capability of the GPUs; 0: a chip without one, or nobody says it. */
static struct value capability_fact(const void *of)
{
    subject s = of;
    double least = INFINITY;

    for (int kind = 0; !s->cluster.ideal && kind < cluster_kinds(&s->cluster); kind++)
        least = fmin(least, cluster_sheet(&s->cluster, cluster_kind_gpu(&s->cluster, kind))->compute_capability);
    return value_number(isfinite(least) ? least : 0);
}

static struct value sockets_fact(const void *of)
{
    subject s = of;
    const struct communication *library = s->cluster.ideal ? NULL : cluster_communication(&s->cluster, ~0u);

    return value_boolean(library && !isnan(library->send->copy));
}

/* Whether all kinds of nodes say a rate of their hosts. */
static bool hosts_say(subject s, double (*rate)(const struct cluster *cluster, int node))
{
    bool all = true;

    for (int kind = 0; kind < cluster_kinds(&s->cluster); kind++)
        all &= !isnan(rate(&s->cluster, cluster_kind_node(&s->cluster, kind)));
    return all;
}
TRUE_IF(hosts_known, hosts_say(s, cluster_host_bandwidth))
TRUE_IF(hosts_update, hosts_say(s, cluster_host_update))
TRUE_IF(room_known, !isinf(scenario_least_room(s)))

/* The schedule. */
WORDS(schedule, scenario_schedule(s)->name)
TRUE_IF(ordered, s->parallelism.schedule.order != NULL)
TRUE_IF(asynchronous, scenario_schedule(s)->asynchronous)
TRUE_IF(with_gradient, scenario_schedule(s)->recompute == RECOMPUTE_WITH_GRADIENT)
TRUE_IF(recomputes, scenario_schedule(s)->recompute == RECOMPUTE_JUST_IN_TIME ||
        (s->parallelism.schedule.order && s->parallelism.schedule.order->recomputes))
TRUE_IF(just_in_time, scenario_schedule(s)->recompute == RECOMPUTE_JUST_IN_TIME)
TRUE_IF(opportunistic, plan_opportunistic(scenario_schedule(s), &s->plan) != 0)
TRUE_IF(placed, s->plan.placement == PLACEMENT_TABLE)
NUMBER(directions, plan_directions(&s->plan))
NUMBER(stages, plan_virtual_stages(&s->plan))
NUMBER(slices, scenario_schedule(s)->slices ? scenario_schedule(s)->slices(s->parallelism.options) : 1)
NUMBER(micro_batches, s->plan.micro_batches)
NUMBER(forwards, (double)plan_virtual_stages(&s->plan) * s->plan.micro_batches * plan_slices(&s->plan) * s->plan.batches *
       s->parallelism.local_steps)

/* Degrees and replicas. */
TRUE_IF(counted, s->parallelism.data > 0)
TRUE_IF(micro_batched, s->batch.micro_batches > 0)
NUMBER(replicas, scenario_replicas(s))
NUMBER(step, (double)s->batch.micro * layout_data(&s->layout, 0))
NUMBER(fewest_chunks, scenario_chunks(s, false))
NUMBER(most_chunks, scenario_chunks(s, true))
TRUE_IF(one_batch, !scenario_schedule(s)->batches)
NUMBER(flushed, plan_of_flush(&s->plan).micro_batches)
TRUE_IF(layers_said, s->parallelism.split.count > 0)
TRUE_IF(rooted, scenario_rooted(s))
WORDS(root, scenario_root(s))
WORDS(updates, scenario_root_updates(s))
TRUE_IF(hybrid, scenario_hybrid(s))
NUMBER(ulysses, scenario_ulysses(&s->parallelism))
NUMBER(expert_parts, s->parallelism.tensor / scenario_expert_tensor(&s->parallelism))
TRUE_IF(unequal, s->parallelism.ranks != NULL)
TRUE_IF(sums_once, s->recipe.gradients.once)

static struct value unequal_data_fact(const void *of)
{
    subject s = of;
    bool data = false;

    for (int p = 1; s->parallelism.ranks && p < s->parallelism.pipeline; p++)
        data |= s->parallelism.ranks[p].data != s->parallelism.ranks[0].data;
    return value_boolean(data);
}

static struct value last_dimension_fact(const void *of)
{
    const struct list *order = &((subject)of)->parallelism.placement;

    return value_text(dimension_names[((const int *)order->items)[order->count - 1]]);
}

static struct value degrees_fact(const void *of)
{
    subject s = of;
    char degrees[240];

    /* a fact has no memory of its own, and only a message asks for this one */
    return value_text(arena_strdup((struct arena *)(uintptr_t)&s->arena, scenario_degrees(s, degrees, sizeof degrees)));
}

/* Words in messages. */
WORDS(of_context, s->parallelism.context > 1 ? " (data x context)" : "")
WORDS(of_cluster, node_get(s->parallelism.node, "data") || s->parallelism.ranks ? "" : " (what remains of the cluster)")
WORDS(of_tensor, s->parallelism.tensor > scenario_expert_tensor(&s->parallelism) ? " x tensor" : "")
WORDS(of_tensor_index, s->parallelism.tensor > 1 ? " of each tensor index" : "")
WORDS(replicas_or_gpus, s->parallelism.tensor > scenario_expert_tensor(&s->parallelism) ? "GPUs" : "replicas")
WORDS(in_slices, plan_slices(&s->plan) > 1 ? " in slices" : "")
WORDS(unequal_in, unequal_data_fact(s).boolean ? "degrees" : "tensor degrees")
WORDS(planner, s->memory.recompute.mode == RECOMPUTE_OPTIMAL ? "recompute: optimal" : "offload")

/* Memory. */
TRUE_IF(mixed, s->memory.precision.format >= PRECISION_MIXED_FP16)
TRUE_IF(narrow, precision_is_narrow(&s->memory.precision))
TRUE_IF(factored, precision_optimizer(&s->memory.precision).factored)
WORDS(products, dtype_names[precision_products(&s->memory.precision)])
TRUE_IF(packed, s->memory.lora && s->memory.lora->weights != LORA_WEIGHTS_FULL)
TRUE_IF(by_layers, scenario_by_layers(s))
TRUE_IF(plans_memory, scenario_plans_memory(s))
TRUE_IF(moves_activations, scenario_moves_activations(s))
NUMBER(offloads, scenario_offloads(s, OFFLOAD_NONE) ? 0 : s->memory.offload.count)
TRUE_IF(recomputes_experts, recomputed_modules(&s->memory.recompute) >> MODULE_EXPERTS & 1)
TRUE_IF(recomputes_shared, recomputed_modules(&s->memory.recompute) >> MODULE_SHARED & 1)

#define ROW(name) {#name, name##_fact}
static const struct fact facts[] = {
    ROW(transformer), ROW(timed), ROW(split_auto), ROW(experts), ROW(latent), ROW(mixers), ROW(two_sides), ROW(head), ROW(model_stages), ROW(dense_ends),
    ROW(ideal), ROW(named), ROW(sized), ROW(gpus), ROW(node_gpus), ROW(capability), ROW(sockets), ROW(hosts_known), ROW(hosts_update),
    ROW(room_known), ROW(schedule), ROW(ordered), ROW(asynchronous), ROW(with_gradient), ROW(recomputes), ROW(just_in_time),
    ROW(opportunistic), ROW(placed), ROW(directions), ROW(stages), ROW(slices), ROW(micro_batches), ROW(forwards),
    ROW(counted), ROW(micro_batched), ROW(replicas), ROW(step), ROW(fewest_chunks), ROW(most_chunks), ROW(one_batch),
    ROW(flushed), ROW(layers_said),
    ROW(of_context), ROW(of_cluster), ROW(of_tensor), ROW(of_tensor_index), ROW(replicas_or_gpus), ROW(in_slices),
    ROW(unequal_in), ROW(planner), ROW(rooted), ROW(root), ROW(updates), ROW(hybrid), ROW(ulysses), ROW(expert_parts), ROW(unequal),
    ROW(sums_once), ROW(unequal_data), ROW(last_dimension), ROW(degrees), ROW(mixed), ROW(narrow), ROW(factored),
    ROW(products), ROW(packed), ROW(by_layers), ROW(plans_memory), ROW(moves_activations), ROW(offloads),
    ROW(recomputes_experts), ROW(recomputes_shared), {NULL, NULL},
};

struct key_parts scenario_parts(struct scenario *scenario, struct key_part parts[PARTS], size_t count)
{
    const struct key_part all[PARTS] = {
        [PART_STRATEGY] = {"strategy", &strategy_table, &scenario->parallelism, FILES_MAY_GIVE},
        [PART_MEMORY] = {"memory", &memory_table, &scenario->memory, NULL},
        [PART_RECOMPUTE] = {"memory.recompute", &recompute_table, &scenario->memory.recompute, NULL},
        [PART_COSTS] = {"costs", &costs_table, &scenario->costs, FILES_MAY_COST},
        [PART_TRANSFORMER] = {"model.transformer", &transformer_table, scenario->model.transformer, NULL},
        [PART_BATCH] = {"batch", &batch_table, &scenario->batch, NULL},
        [PART_COMPRESSION] = {"strategy.compression", &compression_table, &scenario->parallelism.compression, NULL},
        [PART_SCHEDULE] = {"strategy.schedule", &schedule_table, &scenario->parallelism.schedule, NULL},
        [PART_MODEL] = {"model", &model_table, &scenario->model, NULL},
        [PART_CLUSTER] = {"cluster", &cluster_table, &scenario->cluster, NULL},
    };

    memcpy(parts, all, count * sizeof *parts);
    return (struct key_parts){.items = parts, .count = count, .facts = facts, .subject = scenario, .root = scenario->node};
}

int scenario_ask(struct scenario *scenario, const struct rules *rules, struct error *err)
{
    struct key_part items[PARTS];
    struct key_parts parts = scenario_parts(scenario, items, PARTS);

    parts.settled = true;
    return rules_ask(&scenario->arena, rules, &parts, err);
}

const struct rules *scenario_rules(size_t i)
{
    static const struct rules *const all[] = {
        &order_rules, &chunks_rules, &gpus_rules, &shard_rules, &yielding_rules, &idle_strategy_rules, &idle_memory_rules,
        &data_parallel_rules, &model_rules, &memory_rules, &degrees_rules, &ranks_rules, &batch_rules, &batch_size_rules,
        &shares_rules, &sizes_rules, &flush_rules, &same_rules,
    };

    return i < COUNT(all) ? all[i] : NULL;
}

const struct condition *scenario_conditions(struct arena *arena, const struct rules *rules)
{
    struct scenario none = {0};
    struct key_part items[PARTS];
    const struct key_parts parts = scenario_parts(&none, items, PARTS);

    return rules_conditions(arena, rules, &parts);
}

int scenario_condition(struct arena *arena, const struct node *text, struct condition *condition, struct error *err)
{
    struct scenario none = {0};
    struct key_part items[PARTS];
    const struct key_parts parts = scenario_parts(&none, items, SOFTWARE_PARTS);
    const struct expression_text written = {"software: if", text->text, text->loc, NULL};

    return condition_parse(arena, &written, &parts, condition, err);
}

const char *scenario_written(const struct condition_name *name, struct arena *arena)
{
    struct scenario none = {0};
    struct key_part items[PARTS];
    const struct table *table;

    scenario_parts(&none, items, PARTS);
    table = name->field ? items[name->part].table : NULL;
    return table && word_in(table->delegated, name->field->key) ? arena_printf(arena, "software.%s", name->field->key) :
           name->path;
}

bool scenario_supplies(const struct condition_name *name)
{
    struct scenario none = {0};
    struct key_part items[PARTS];
    const struct key_part *part = &items[name->field ? name->part : 0];

    scenario_parts(&none, items, PARTS);
    return name->field && (word_in(part->table->delegated, name->field->key) || word_in(part->also, name->field->key));
}
