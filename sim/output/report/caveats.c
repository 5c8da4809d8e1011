#include "report/caveats.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "collective/collective.h"
#include "config/conf.h"
#include "config/field.h"
#include "files/json.h"
#include "hardware/precision.h"
#include "hardware/slow_parts.h"
#include "layout/layout.h"
#include "model/model.h"
#include "run/certainty.h"
#include "scenario/process_group.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "software/software.h"

/* A vocabulary that nobody padded costs more than its rows: kernels for such products are slower. */
static const char *vocabulary_note(struct arena *arena, const struct scenario *scenario)
{
    const struct transformer *shape = scenario->model.transformer;
    int tensor = scenario_tensor(scenario, plan_rank(&scenario->plan, 0, plan_virtual_stages(&scenario->plan) - 1, 0, NULL));
    double share, value = dtype_bytes(precision_dtype(&scenario->memory.precision));

    if (!shape || shape->head == HEAD_NONE || scenario_first_costs(scenario)->model.source == COST_ROOFLINE)
        return NULL;
    share = transformer_output_columns(shape, tensor) / tensor;
    if (fmod(share * value, 16) == 0)
        return NULL;
    return arena_printf(arena, "the output layer has %.0f columns a GPU, no multiple of %.0f, for which its "
                        "kernels are slower; vocabulary: %.0f is what Megatron-LM pads to", share, 16 / value,
                        transformer_padded_vocabulary(shape, tensor));
}

static const char *model_note(struct arena *arena, const struct scenario *scenario)
{
    return scenario->model.transformer ? transformer_caveat(arena, scenario->model.transformer) : NULL;
}

static const char *skew_note(struct arena *arena, const struct scenario *scenario)
{
    const struct transformer *shape = scenario->model.transformer;

    if (!shape || !shape->experts || shape->expert_skew == 0)
        return NULL;
    return arena_printf(arena, "tokens choose experts unevenly (expert_skew %g): each GPU stands for the one of its "
                        "expert group whose experts get the most, in time, in memory and in the bytes of tokens; FLOPs "
                        "are the group's mean", shape->expert_skew);
}

/* Calibration that a change of the GPU's data sheet touches is calibration no more. */
static const char *kind_note(struct arena *arena, const struct scenario *scenario, int kind)
{
    const struct profile *profile = scenario->kernels[kind].model.profile;
    int first = cluster_kind_gpu(&scenario->cluster, kind);
    const struct gpu *gpu = cluster_sheet(&scenario->cluster, first);
    const struct gpu_spec *spec = cluster_gpu_spec(&scenario->cluster, first);
    const char *changes = spec ? gpu_changes(arena, spec) : "";

    if (!gpu->changed || !*changes)      /* certainty_sheets says so of a GPU that is based on another one */
        return NULL;
    return arena_printf(arena, "the GPU is %s with %s: %s", gpu->title, changes,
                        model_is_timed(&scenario->model) ? "without effect on the times, which the scenario gives" :
                        profile ? "kernels that this moves by more than 1 % are scaled from measured kernels, "
                                  "and count as extrapolated" :
                        "only kernels that it bounds take another time");
}

static const char *gpu_note(struct arena *arena, const struct scenario *scenario)
{
    const char *notes = NULL;

    for (int kind = 0; kind < cluster_kinds(&scenario->cluster); kind++) {
        const char *own = kind_note(arena, scenario, kind);

        if (own)
            notes = notes ? arena_printf(arena, "%s; %s", notes, own) : own;
    }
    return notes;
}

static const char *configuration_note(struct arena *arena, const struct scenario *scenario)
{
    const char *note = scenario->model.note;

    if (!scenario->model.longest)
        return note;
    return arena_printf(arena, "'sequence' is left out: a sample has %d tokens, as many as config.json allows%s%s",
                        scenario->model.sequence, note ? "; " : "", note ? note : "");
}

/* Nobody trains in fp32 unless asked, though many files hold such weights. */
static const char *precision_note(struct arena *arena, const struct scenario *scenario)
{
    static const char *const names[] = ENUM_NAMES(PRECISIONS);
    const char *dtype = scenario->model.dtype, *name = names[scenario->memory.precision.format];
    bool bf16 = dtype && !strcmp(dtype, "bfloat16"), fp16 = dtype && !strcmp(dtype, "float16");

    if (!dtype || scenario_says_precision(scenario))
        return NULL;
    if (bf16 && scenario->memory.precision.format == PRECISION_MIXED_FP16)
        return arena_printf(arena, "precision is %s: the model's weights are in %s, for which %s has no rate", name,
                            dtype, cluster_sheet(&scenario->cluster, 0)->name);
    if (bf16 || fp16)
        return arena_printf(arena, "precision is %s, as the model's weights are in %s and the scenario says none",
                            name, dtype);
    return arena_printf(arena, "precision is %s, the default: the model's weights are in %s, which says nothing of "
                        "how they are trained; 'memory: {precision: ...}' does", name, dtype);
}

/* Whoever runs something else has other times and another memory. */
static const char *software_note(struct arena *arena, const struct scenario *scenario)
{
    const struct software_spec *software = &scenario->software;

    if (!software->assumed || !software->names.title)
        return NULL;
    return arena_printf(arena, "software: %s is assumed, as the scenario names none; 'software:' names another, or "
                        "none ('dtsim list software')", software->like);
}

/* Nobody can launch that with the release; who changed the code for it knows. */
const char *caveat_framework(struct arena *arena, const struct scenario *scenario)
{
    struct software_lack lack;

    if (scenario_in_framework(arena, scenario, &lack) != SOFTWARE_LACKS)
        return NULL;
    return software_lack_text(arena, &scenario->software.names, &lack);
}

/* ZeRO cannot run the all-reduce that was asked for where that has no halves (collective_half). */
static const char *halves_note(struct arena *arena, const struct scenario *scenario)
{
    const struct collective *all_reduce = scenario_all_reduce(scenario);

    if (scenario->recipe.divided[HELD_STATES][PARAMETERS_COMMON] == 1 || all_reduce->reduce_scatter)
        return NULL;
    return arena_printf(arena, "all_reduce: %s has no reduce-scatter and all-gather of its own; ZeRO %s those of %s",
                        all_reduce->name,
                        scenario->parallelism.reduce_scatter ? "scatters gradients and gathers weights with"
                                                          : "gathers weights with",
                        collective_half(all_reduce, COLLECTIVE_ALL_GATHER)->name);
}

/* A tensor-parallel group under sequence parallelism has rings in an all-reduce's place (exchange/within.c). */
static const char *sequence_note(struct arena *arena, const struct scenario *scenario)
{
    const struct collective *all_reduce = scenario_all_reduce(scenario);

    if (scenario_most_tensor(scenario) == 1 || !scenario->parallelism.sequence_parallel ||
        all_reduce->reduce_scatter == collective_usual(COLLECTIVE_REDUCE_SCATTER, false))
        return NULL;
    return arena_printf(arena, "all_reduce: %s is not what sequence_parallel runs; its reduce-scatters and all-gathers "
                        "are rings", all_reduce->name);
}

/* Exchanges inside works, and the exchanges of ZeRO 3, take as long as they would alone (ARCHITECTURE.md, rules).
 * Between nodes others may want the same links: sums of gradients during the backward, boundaries of the pipeline. */
static const char *alone_note(struct arena *arena, const struct scenario *scenario)
{
    static const enum group_kind inside[] = {GROUP_TENSOR, GROUP_CONTEXT, GROUP_EXPERT};
    const struct recipe *recipe = &scenario->recipe;
    bool layers = recipe->weights.when == WEIGHTS_LAYER, pipeline = group_nodes(scenario, GROUP_PIPELINE) > 1;
    bool sums = group_nodes(scenario, GROUP_DATA) > 1 &&
                (layers || (recipe->gradients.unit != SUM_NOTHING && !recipe->gradients.flush));
    const char *names = layers && sums && pipeline ? "replicas (ZeRO-3)" : NULL;

    for (size_t i = 0; (sums || pipeline) && i < COUNT(inside); i++)
        if (group_nodes(scenario, inside[i]) > 1)
            names = arena_printf(arena, "%s%s%s groups", names ? names : "", names ? ", " : "",
                                 scenario->groups.of[inside[i]].name);
    if (!names || scenario->cluster.ideal)
        return NULL;
    return arena_printf(arena, "exchanges of %s reach over nodes and take as long as they would alone, also while "
                        "other exchanges are on the same links", names);
}

const char *caveat_whole(struct arena *arena, const struct scenario *scenario)
{
    const struct recipe *recipe = &scenario->recipe;
    bool weights = recipe->weights.stay_forward || recipe->weights.stay_backward, gradients = recipe->gradients.once;

    if ((!weights && !gradients) || scenario_replicas(scenario) == 1)
        return NULL;
    return arena_printf(arena, "%s are whole during %s: ZeRO-%d divides them among %d replicas at rest alone (%s%s%s)",
                        !gradients ? "weights" : !weights ? "gradients" : "weights and gradients",
                        gradients ? "an iteration" : "a micro-batch", scenario->parallelism.zero,
                        recipe->divided[HELD_STATES][PARAMETERS_COMMON],
                        recipe->weights.stay_forward ? "reshard_after_forward: false" : "",
                        recipe->weights.stay_forward && gradients ? ", " : "", gradients ? "sums_once: true" : "");
}

/* Who measured a rank would give it several times. */
static const char *stages_note(struct arena *arena, const struct scenario *scenario)
{
    const struct plan *plan = &scenario->plan;

    if (!scenario->model.stages.count || model_is_per_rank(&scenario->model) ||
        plan_virtual_stages(plan) <= plan->stages)
        return NULL;
    return arena_printf(arena, "the numbers under 'stages' are of a chunk, and a rank has %d chunks; with %s they are of "
                        "a rank, and each chunk has an equal part", plan->chunks,
                        scenario->model.stages.count == 1 ? "--set model.stages.per=rank" : "'per: rank' in each item");
}

static const char *stragglers_note(struct arena *arena, const struct scenario *scenario)
{
    const struct list *list = &scenario->simulation.stragglers;
    int gpus = scenario_gpus(scenario), slow = 0, unused = 0;
    double most = 1;

    for (size_t i = 0; i < list->count; i++) {
        const struct straggler *straggler = (const struct straggler *)list->items + i;

        unused += !layout_has(&scenario->layout, straggler->gpu);
        slow += layout_has(&scenario->layout, straggler->gpu) && straggler->slower > 1;
        most = layout_has(&scenario->layout, straggler->gpu) ? fmax(most, straggler->slower) : most;
    }
    if (unused)
        return arena_printf(arena, "%d of the stragglers comput%s nothing here: the scenario runs on other GPUs ('dtsim "
                            "show --groups' lists them)", unused, unused > 1 ? "e" : "es");
    return !slow ? NULL : arena_printf(arena, "%d of %d GPUs compute%s slower, up to %.4g times as long, so that every "
                                       "replica is simulated", slow, gpus, slow > 1 ? "" : "s", most);
}

static const char *slow_links_note(struct arena *arena, const struct scenario *scenario)
{
    const struct list *list = &scenario->simulation.slow_links;
    bool any = false;

    for (size_t i = 0; i < list->count; i++)
        any |= ((const struct slow_link *)list->items)[i].share < 1;
    if (!any)
        return NULL;
    if (!(scenario->uneven & UNEVEN_LINKS))
        return "the slow links change nothing: nothing that the scenario sends goes through them";
    return arena_printf(arena, "NICs have less than their bandwidth (slow_links), so that every replica and every "
                        "link is simulated; the communication library chooses as if it did not know");
}

static const char *repeat_note(struct arena *arena, const struct scenario *scenario)
{
    if (scenario->simulation.repeat == 1 || scenario->simulation.jitter > 0)
        return NULL;
    return arena_printf(arena, "repeat: %d, but nothing is random without jitter: one run stands for all",
                        scenario->simulation.repeat);
}

/* The latencies of a node's communication library, where its links at the path have shorter ones, which are not its
 * platform's; else `most` is 0. */
static struct latencies longer_latencies(struct arena *arena, const struct cluster *cluster, int node, const char *path)
{
    const struct communication *library = cluster_communication(cluster, 1u << cluster_kind_of(cluster, node));
    bool spanning = !strcmp(path, "network.latency");
    struct latencies own = library ? communication_latencies(library, spanning) : (struct latencies){0};

    if (!(cluster_latency(cluster, node, !spanning) < own.most) || !cluster_node_changes(arena, cluster, node, path))
        own.most = 0;
    return own;
}

/* The library's own latencies count where they are longer than the links'. An all-to-all has the links' latencies. */
static const char *latency_note(struct arena *arena, const struct scenario *scenario)
{
    static const char *const paths[] = {"inside.latency", "network.latency"};
    const struct cluster *cluster = &scenario->cluster;
    const char *notes = NULL;
    char least[48], most[48];

    for (size_t i = 0; i < COUNT(paths) && !cluster->ideal; i++) {
        struct latencies own = longer_latencies(arena, cluster, 0, paths[i]);

        for (int part = 1; part < cluster_given_parts(cluster) && !(own.most > 0); part++)
            own = longer_latencies(arena, cluster, cluster_given_part(cluster, part).first, paths[i]);
        if (own.most > 0)
            notes = arena_printf(arena, "%s%scluster.%s counts in all-to-alls, and else only where the communication "
                                 "profile's own latency is shorter, which is %s to %s by algorithm and protocol",
                                 notes ? notes : "", notes ? "; " : "", paths[i],
                                 unit_format_short(UNIT_TIME, own.least, least, sizeof least),
                                 unit_format_short(UNIT_TIME, own.most, most, sizeof most));
    }
    return notes;
}

/* Leaf switches whose uplinks carry as much as all NICs below them never make a message wait. */
static const char *leaves_note(struct arena *arena, const struct scenario *scenario)
{
    const struct cluster *cluster = &scenario->cluster;
    bool crowded = cluster_oversubscription(cluster) > 1;
    const char *note = cluster_topology_note(cluster);

    if (note)
        return arena_printf(arena, "cluster.network.topology: %s", note);
    if (cluster_topology(cluster) != TOPOLOGY_LEAF_SPINE || !cluster_changes(arena, cluster, "network.topology"))
        return NULL;
    if (crowded && cluster_leaf_nodes(cluster) < cluster->nodes)
        return NULL;
    return arena_printf(arena, "cluster.network.topology: leaf_nodes, kind and oversubscription are without effect "
                        "here, as %s", crowded ?
                        "all nodes are below one leaf switch" : "the uplinks carry as much as all NICs below them "
                        "(oversubscription: 1)");
}

/* Whether nothing of the scenario uses a key of the cluster's part, "" for the cluster's own. */
static bool is_unused(const struct scenario *scenario, const char *part, const char *key)
{
    const struct cluster *cluster = &scenario->cluster;
    const struct communication *library = cluster_communication(cluster, ~0u);
    bool one_node = !scenario_spans_nodes(scenario);

    if (!strcmp(part, "inside"))
        return cluster_node_gpus(cluster, 0) == 1 || scenario_gpus(scenario) == 1;
    if (!strcmp(key, "across") || !strcmp(key, "gpus_per_switch"))
        return one_node || cluster->ideal || !library || library->nics == NICS_OWN;
    if (!strcmp(part, "host"))
        return scenario_offloads(scenario, OFFLOAD_NONE) ||
               (!strcmp(key, "update") && !scenario_offloads(scenario, OFFLOAD_OPTIMIZER));
    if (!strcmp(key, "communication"))
        return scenario_gpus(scenario) == 1;
    return one_node;
}

/* Whether the file does not give the number of NICs, so that it follows the number of GPUs (cluster_platform.c). */
static bool nics_follow(const struct cluster *cluster)
{
    const struct node *nics = node_at(cluster->node, "network.nics"), *gpus = node_get(cluster->node, "gpus_per_node");

    return nics && gpus && nics->loc.file == gpus->loc.file && nics->loc.line == gpus->loc.line &&
           nics->loc.column == gpus->loc.column;
}

/* What is said of links that nothing uses. Without a platform a cluster must say most of it, used or not. */
static const char *unused_note(struct arena *arena, const struct scenario *scenario)
{
    static const struct { const char *part, *key; bool always; } all[] = {      /* key NULL: all of the part */
        {"inside", NULL, false}, {"network", NULL, false}, {"host", NULL, true}, {"", "gpus_per_switch", true},
        {"", "communication", false}, {"communication", "nics", true},
    };
    const struct cluster *cluster = &scenario->cluster;
    const char *names = "";

    for (size_t i = 0; i < COUNT(all); i++) {
        const struct table *table = all[i].key ? NULL : field_find(&cluster_table, all[i].part)->table;

        if (table && is_unused(scenario, all[i].part, "name") && !strcmp(all[i].part, "network") &&
            cluster_names_network(arena, cluster)) {
            names = arena_printf(arena, "%s%scluster.%s", names, *names ? ", " : "", all[i].part);
            continue;
        }
        for (size_t k = 0; k < (table ? table->count : 1) && (cluster->base || all[i].always); k++) {
            const char *key = table ? table->fields[k].key : all[i].key ? all[i].key : "";
            const char *path = arena_printf(arena, "%s%s%s", all[i].part, *all[i].part ? "." : "", key);

            if (is_unused(scenario, all[i].part, key) && cluster_changes(arena, cluster, path) &&
                (strcmp(key, "nics") != 0 || !nics_follow(cluster)))
                names = arena_printf(arena, "%s%scluster.%s", names, *names ? ", " : "", path);
        }
    }
    return !*names ? NULL : arena_printf(arena, "%s: without effect here, as nothing of the scenario uses it", names);
}

struct caveats caveats_of(struct arena *arena, const struct scenario *scenario)
{
    static const char *(*const all[])(struct arena *, const struct scenario *) = {
        software_note, caveat_framework, gpu_note, caveat_rates, caveat_attention, caveat_mixed_groups, caveat_order, caveat_idle, caveat_shares, caveat_planned, caveat_two_sides,
        vocabulary_note, model_note, skew_note, configuration_note, precision_note, caveat_packed,
        halves_note, sequence_note, alone_note, caveat_whole, stages_note, stragglers_note, slow_links_note,
        repeat_note, latency_note, leaves_note, unused_note,
    };
    struct caveats caveats = {0};

    for (size_t i = 0; i < COUNT(all); i++)
        if ((caveats.items[caveats.count] = all[i](arena, scenario)))
            caveats.count++;
    return caveats;
}

void caveats_print(const struct scenario *scenario, const struct metrics *metrics, FILE *out)
{
    struct arena arena = {0};
    struct caveats caveats = caveats_of(&arena, scenario);
    const char *const own[] = {caveat_short(&arena, metrics), caveat_lockstep(&arena, metrics)};

    for (size_t i = 0; i < caveats.count; i++)
        fprintf(out, "note: %s\n", caveats.items[i]);
    for (size_t i = 0; i < COUNT(own); i++)
        if (own[i])
            fprintf(out, "note: %s\n", own[i]);
    arena_release(&arena);
}

json_t *caveats_json(const struct scenario *scenario, const struct metrics *metrics)
{
    struct arena arena = {0};
    struct caveats caveats = caveats_of(&arena, scenario);
    const char *const own[] = {
        caveat_short(&arena, metrics), caveat_lockstep(&arena, metrics), certainty_sheets(&arena, scenario, metrics), certainty_links(&arena, scenario),
        metrics ? certainty_model(&arena, scenario, metrics) : NULL, certainty_unlike(&arena, scenario, metrics),
    };
    json_t *json = json_array();

    for (size_t i = 0; i < caveats.count; i++)
        json_append(json, json_words(caveats.items[i]));
    for (size_t i = 0; i < COUNT(own); i++)
        if (own[i])
            json_append(json, json_words(own[i]));
    arena_release(&arena);
    return json;
}
