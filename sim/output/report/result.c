#include "report/result.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "collective/collective.h"
#include "engine/program.h"
#include "engine/replay.h"
#include "files/digest.h"
#include "hardware/cluster.h"
#include "hardware/communication.h"
#include "kernels/cost.h"
#include "kernels/costs.h"
#include "model/model.h"
#include "report/caveats.h"
#include "run/account.h"
#include "run/certainty.h"
#include "run/links.h"
#include "run/metrics.h"
#include "scenario/memory_policy.h"
#include "scenario/process_group.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/memory.h"
#include "tables/tables.h"
#include "workload/workload.h"

/* A scalar as YAML's JSON schema types it; quoted ones are strings. */
static json_t *scalar_json(const struct node *node)
{
    char *end;
    double value;

    if (node->quoted)
        return json_words(node->text);
    if (!strcmp(node->text, "true") || !strcmp(node->text, "false"))
        return json_boolean(node->text[0] == 't');
    value = strtod(node->text, &end);
    if (end == node->text || *end || !isfinite(value))
        return json_words(node->text);
    return strpbrk(node->text, ".eE") ? json_real(value) : json_integer(strtoll(node->text, NULL, 10));
}

json_t *node_json(const struct node *node)
{
    json_t *json;

    if (node->kind == NODE_SCALAR)
        return scalar_json(node);
    json = node->kind == NODE_SEQUENCE ? json_array() : json_object();
    for (size_t i = 0; i < node->count; i++) {
        if (node->kind == NODE_SEQUENCE)
            json_append(json, node_json(node->items[i]));
        else
            json_put(json, node->keys[i], node_json(node->items[i]));
    }
    return json;
}

static json_t *memory_json(const struct memory *memory)
{
    json_t *json = json_object();

    for (int kind = 0; kind < MEMORY_KIND_COUNT; kind++)
        json_put(json, memory_kind_names[kind], json_finite(memory->bytes[kind]));
    return json;
}

json_t *breakdown_json(const struct metrics *metrics)
{
    json_t *json = json_object();

    for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
        json_put(json, account_names[kind], json_finite(metrics->seconds[kind]));
    return json;
}

/* The mean rank's kernel times, by class and by the source of their times. */
static json_t *bases_json(const struct metrics *metrics)
{
    json_t *json = json_object();

    for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++) {
        json_t *bases = json_object();

        for (int basis = 0; basis < BASIS_COUNT; basis++)
            json_put(bases, cost_basis_names[basis], json_finite(metrics->bases.seconds[kind][basis]));
        json_put(json, kernel_kind_names[kind], bases);
    }
    return json;
}

int result_weight_versions(const struct workload *workload)
{
    int most = 1;

    for (int s = 0; s < plan_virtual_stages(&workload->plan); s++)
        most = workload->stages[s].versions > most ? workload->stages[s].versions : most;
    return most;
}

static json_t *sent_json(const struct metrics *metrics)
{
    json_t *json = json_object();

    for (int payload = 0; payload < PAYLOAD_COUNT; payload++)
        json_put(json, payload_names[payload], json_finite(metrics->sent[payload]));
    return json;
}

/* What crosses all links of a class, an iteration. */
static json_t *links_json(const struct run *run)
{
    const struct cluster *cluster = &run->workload->scenario->cluster;
    struct load sums[LINKS_COUNT] = {{0}};
    double all = run->metrics.window.all;
    json_t *json;

    if (!run->links.loads[0])        /* not counted */
        return json_null();
    json = json_object();
    for (int c = 0; c < CARRIER_COUNT; c++)
        for (int i = 0; i < run->links.counts[c]; i++) {
            sums[carrier_class(cluster, c, i)].payload += run->links.loads[c][i].payload;
            sums[carrier_class(cluster, c, i)].wire += run->links.loads[c][i].wire;
        }
    for (int k = 0; k < LINKS_COUNT; k++)
        if (link_class_used(cluster, (enum link_class)k))
            json_put(json, link_class_names[k],
                                json_pack("{s:f, s:f}", "payload_bytes", sums[k].payload / all, "wire_bytes",
                                          sums[k].wire / all));
    return json;
}

/* The all-reduces that ran: the scenario's, or the ones that auto chose. */
static json_t *all_reduces_json(const struct lowered *lowered)
{
    json_t *json = json_array();

    for (size_t i = 0; all_reduce_name(i); i++)
        if (lowered->used.all_reduces >> i & 1)
            json_append(json, json_words(all_reduce_name(i)));
    return json;
}

/* The pipeline ranks that compute slower than others, with how many times as long their kernels take. */
static json_t *stragglers_json(const struct scenario *scenario)
{
    int stages = scenario->parallelism.pipeline, ranks = scenario_replicas(scenario) * stages;
    json_t *json = json_array();

    for (int rank = 0; rank < ranks; rank++) {
        double slower = scenario_has_rank(scenario, rank) ? scenario_slower(scenario, rank / stages, rank % stages) : 1;

        if (slower > 1)
            json_append(json, json_pack("{s:i, s:f}", "rank", rank, "slower", slower));
    }
    return json;
}

/* The GPUs of each rank, where nodes are of several kinds. */
static json_t *rank_gpus_json(const struct scenario *scenario)
{
    int stages = scenario->parallelism.pipeline, ranks = scenario_replicas(scenario) * stages;
    json_t *json = json_array();

    for (int rank = 0; rank < ranks; rank++) {
        int gpu = scenario_has_rank(scenario, rank) ? scenario_gpu(scenario, 0, rank / stages, rank % stages) : -1;
        const char *name = gpu < 0 ? NULL : cluster_gpu_name(&scenario->cluster, gpu);

        json_append(json, name ? json_words(name) : json_null());
    }
    return json;
}

/* The protocols of the communication profile that they ran with. */
static json_t *protocols_json(const struct lowered *lowered)
{
    json_t *json = json_array();

    for (int i = 0; i < PROTOCOL_COUNT; i++)
        if (lowered->used.protocols >> i & 1)
            json_append(json, json_words(protocol_names[i]));
    return json;
}

static json_t *scenario_json(const struct scenario *scenario)
{
    struct arena arena = {0};
    json_t *json = node_json(scenario_dump(&arena, scenario));

    arena_release(&arena);
    return json;
}

/* Names of enumerators that are listed by field tables alone. */
static const char *const precisions[] = ENUM_NAMES(PRECISIONS);
static const char *const offloads[] = ENUM_NAMES(OFFLOADS);

/* Adds a part behind a comma. */
static const char *with(struct arena *arena, const char *text, const char *part)
{
    return arena_printf(arena, "%s%s%s", text, *text ? ", " : "", part);
}

/* How replicas divide or exchange what they hold, where it is not by sums of gradients alone. */
static const char *sharding(struct arena *arena, const struct scenario *scenario)
{
    const struct parallelism *spec = &scenario->parallelism;
    const char *text = spec->zero ? arena_printf(arena, "ZeRO-%d%s", spec->zero, spec->zero == 3 ? " (FSDP)" : "") : "";

    if (spec->zero && spec->shard < scenario_replicas(scenario))
        text = arena_printf(arena, "%s among %d replicas", text, spec->shard);
    return text;
}

static const char *memory_said(struct arena *arena, const struct scenario *scenario)
{
    const struct memory_spec *memory = &scenario->memory;
    enum recompute mode = (enum recompute)memory->recompute.mode;
    const char *text = model_is_timed(&scenario->model) ? "" : precisions[memory->precision.format];

    if (mode != RECOMPUTE_NONE || !model_is_timed(&scenario->model))
        text = with(arena, text, mode == RECOMPUTE_NONE ? "no activation checkpointing" :
                    arena_printf(arena, "%s activation checkpointing", recompute_names[mode]));
    for (enum offload offload = OFFLOAD_NONE + 1; offload < COUNT(offloads) - 1; offload++)
        if (scenario_offloads(scenario, offload))
            text = with(arena, text, arena_printf(arena, "%s offloaded", offloads[offload]));
    if (memory->saved.few_bit > 0)
        text = with(arena, text, arena_printf(arena, "%d-bit activation functions", memory->saved.few_bit));
    if (memory->saved.randomized_linear > 0)
        text = with(arena, text, arena_printf(arena, "linear layers randomized to %g", memory->saved.randomized_linear));
    if (memory->saved.activations_bits > 0)
        text = with(arena, text, arena_printf(arena, "%d-bit activations", memory->saved.activations_bits));
    return memory->lora ? with(arena, text, "LoRA") : text;
}

const char *setup_text(struct arena *arena, const struct scenario *scenario)
{
    const struct parallelism *spec = &scenario->parallelism;
    const char *text = "", *shares = sharding(arena, scenario), *memory = memory_said(arena, scenario);

    if (spec->expert > 1)
        text = arena_printf(arena, "expert %d%s", spec->expert,
                            spec->expert_tensor == 1 && spec->tensor > 1 ? " with expert_tensor 1" : "");
    if (scenario->plan.chunks > 1)
        text = with(arena, text, arena_printf(arena, "%d chunks a rank", scenario->plan.chunks));
    if (*shares)
        text = with(arena, text, shares);
    if (scenario->batch.micro > 1 || !model_is_timed(&scenario->model))
        text = with(arena, text, arena_printf(arena, "micro-batches of %s", samples_text(arena, scenario)));
    return *memory ? with(arena, text, memory) : text;
}

json_t *setup_json(const struct scenario *scenario)
{
    struct arena arena = {0};
    const char *setup = setup_text(&arena, scenario), *software = scenario->software.names.title;
    char degrees[128];
    int gpus = scenario_gpus(scenario);
    json_t *json = json_words(arena_printf(
        &arena, "%s, %s = %d GPU%s%s%s%s%s", scenario_schedule(scenario)->name,
        scenario_degrees(scenario, degrees, sizeof degrees), gpus, gpus == 1 ? "" : "s", *setup ? ", " : "", setup,
        software ? "; " : "", software ? software : ""));

    arena_release(&arena);
    return json;
}

json_t *software_json(const struct scenario *scenario)
{
    return scenario->software.names.title ? json_words(scenario->software.like) : json_null();
}

json_t *in_framework_json(const struct scenario *scenario)
{
    struct arena arena = {0};
    struct software_lack lack;
    enum software_has has = scenario_in_framework(&arena, scenario, &lack);

    arena_release(&arena);
    return has == SOFTWARE_UNKNOWN ? json_null() : json_boolean(has == SOFTWARE_HAS);
}

json_t *model_json(const struct scenario *scenario)
{
    char text[64];

    certainty_name_model(&scenario->model, text, sizeof text);
    return json_string(text);
}

json_t *gpu_json(const struct scenario *scenario)
{
    struct arena arena = {0};
    const char *names = scenario_gpu_names(&arena, scenario, -1);
    json_t *json = names ? json_words(names) : json_null();

    arena_release(&arena);
    return json;
}

double result_gpu_hours(const struct run *run)
{
    return run->metrics.iteration_time / SECONDS_AN_HOUR * scenario_paid_gpus(run->workload->scenario);
}

double result_cost(const struct run *run)
{
    return result_gpu_hours(run) * run->workload->scenario->price;
}

json_t *result_metrics_json(const struct run *run)
{
    const struct metrics *m = &run->metrics;
    const struct scenario *scenario = run->workload->scenario;
    const struct kernel_costs *costs = scenario_first_costs(scenario);
    bool calibrated = costs_calibrated(costs);
    json_t *json = json_object();

    for (size_t i = 0; metric_at(i); i++)
        json_put(json, metric_at(i)->name, json_finite(metric_value(m, metric_at(i))));
    json_put(json, "extrapolated_s", json_finite(calibrated ? m->extrapolated : NAN));
    json_put(json, "cost_basis_s", model_is_timed(&scenario->model) ? json_null() : bases_json(m));
    json_put(json, "communication_breakdown_bytes_per_gpu", sent_json(m));
    json_put(json, "link_bytes", links_json(run));
    json_put(json, "memory_breakdown_bytes", memory_json(&m->memory));
    json_put(json, "memory_limit_bytes", json_finite(m->peak_room));
    json_put(json, "window_s", json_pack("[f, f]", m->window.from, m->window.to));
    json_put(json, "breakdown_s", breakdown_json(m));
    json_put(json, "closed_form_bubble", json_finite(workload_ideal_bubble(run->workload)));
    json_put(json, "imbalance_s", json_finite(m->imbalance));
    json_put(json, "jitter_s", json_finite(m->jitter));
    json_put(json, "steady_state", !m->window.steady ? json_null() :
                        json_pack("{s:f, s:f, s:i}", "from_s", m->window.from, "to_s", m->window.to, "updates",
                                  m->window.updates));
    json_put(json, "model_flop", json_finite(m->model_flop));
    json_put(json, "hardware_flop", json_finite(m->hardware_flop));
    json_put(json, "gpus", json_integer(scenario_gpus(scenario)));
    json_put(json, "gpus_paid", json_integer(scenario_paid_gpus(scenario)));
    json_put(json, "cost", json_finite(result_cost(run)));
    json_put(json, "gpu_hours", json_finite(result_gpu_hours(run)));
    json_put(json, "weight_versions", json_integer(result_weight_versions(run->workload)));
    json_put(json, "operations", json_integer((json_int_t)run->lowered.program.ops.count));
    json_put(json, "collectives", json_words(run->lowered.alike.measured ? "measured" : "messages"));
    json_put(json, "all_reduces", all_reduces_json(&run->lowered));
    if (run->lowered.used.protocols)
        json_put(json, "protocols", protocols_json(&run->lowered));
    json_put(json, "folded", json_boolean(run->lowered.alike.folded));
    if (scenario->cluster.gpu_slower && scenario->uneven & UNEVEN_GPUS)
        json_put(json, "stragglers", stragglers_json(scenario));
    if (scenario->layout.mixed)
        json_put(json, "rank_gpus", rank_gpus_json(scenario));
    if (cluster_given_parts(&scenario->cluster) && scenario_paid_gpus(scenario) > scenario_gpus(scenario))
        json_put(json, "idle_gpus", idle_json(scenario));
    json_put(json, "jitter", json_real(scenario->simulation.jitter));
    json_put(json, "seed", json_integer(run->seed));
    json_put(json, "cost_source", json_words(model_is_timed(&scenario->model) ? "given" :
                                                         cost_source_names[costs->model.source]));
    json_put(json, "cost_profile", calibrated ? json_words(costs->profile) : json_null());
    json_put(json, "setup", setup_json(scenario));
    json_put(json, "software", software_json(scenario));
    json_put(json, "model", model_json(scenario));
    json_put(json, "gpu", gpu_json(scenario));
    json_put(json, "in_framework", in_framework_json(scenario));
    json_put(json, "software_assumed", json_boolean(scenario->software.assumed && scenario->software.names.title));
    json_put(json, "notes", caveats_json(scenario, &run->metrics));
    json_put(json, "engine", json_words(engine_names[scenario->simulation.engine]));
    json_put(json, "version", json_words(DTSIM_VERSION));
    return json;
}

json_t *result_json(const struct run *run)
{
    json_t *json = result_metrics_json(run);

    json_put(json, "scenario", scenario_json(run->workload->scenario));
    return json;
}

/* A file while it is written. */
struct writing {
    const struct run *run;
    void (*write)(const struct run *run, FILE *out);
    const json_t *tables;        /* the digests of the written tables */
};

static void write_table(const void *context, FILE *out)
{
    const struct writing *writing = context;

    writing->write(writing->run, out);
}

/* The run's id is a digest of all that it is: two runs with one id are the same. */
static void write_result(const void *context, FILE *out)
{
    const struct writing *writing = context;
    json_t *json = result_json(writing->run);

    digests_identify(json, writing->tables);
    json_put(json, "build", json_words(sources_digest));
    json_print(json, out);
    json_decref(json);
}

int result_write(const struct run *run, struct folder *folder, struct error *err)
{
    json_t *digests = json_object();
    struct writing writing = {.run = run, .tables = digests};
    int rc = 0;

    for (size_t i = 0; i < RUN_TABLES && !rc; i++) {
        char digest[DIGEST_HEX] = "";

        writing.write = run_tables[i].write;
        rc = folder_write(folder, run_tables[i].file, write_table, &writing, digest, err);
        json_put(digests, run_tables[i].name, json_words(digest));
    }
    if (!rc && (folder_write(folder, "result.json", write_result, &writing, NULL, err) || folder_commit(folder, err)))
        rc = -1;
    json_decref(digests);
    return rc;
}
