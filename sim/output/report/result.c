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
#include "view/view.h"
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

json_t *breakdown_json(const struct metrics *metrics)
{
    return json_numbers(account_names, metrics->seconds, ACCOUNT_KIND_COUNT);
}

struct bases_of { const double *seconds; };

#define BASES(ROW) \
    ROW(measured, json_finite(it->seconds[BASIS_MEASURED]), "kernels like these were measured, of sizes in that range") \
    ROW(other_sizes, json_finite(it->seconds[BASIS_SIZES]), \
        "the same of sizes outside that range, or only their FLOPs are known") \
    ROW(other_layout, json_finite(it->seconds[BASIS_LAYOUT]), "measured in another layout, number format or mask") \
    ROW(other_kernels, json_finite(it->seconds[BASIS_KERNELS]), \
        "scaled from other kernels: of another phase, or of all bound by memory") \
    ROW(other_gpu, json_finite(it->seconds[BASIS_GPU]), \
        "measured on the GPU of the data sheet, scaled to what the scenario changes of it") \
    ROW(data_sheet, json_finite(it->seconds[BASIS_DATA_SHEET]), "the GPU's roofline")
VIEW(bases_view, struct bases_of, it, BASES)

/* The mean rank's kernel times, by class and by the source of their times. */
static json_t *bases_json(const struct metrics *metrics)
{
    json_t *json = json_object();

    for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++)
        json_put(json, kernel_kind_names[kind], view_json(&bases_view, &(struct bases_of){metrics->bases.seconds[kind]}));
    return json;
}

int result_weight_versions(const struct workload *workload)
{
    int most = 1;

    for (int s = 0; s < plan_virtual_stages(&workload->plan); s++)
        most = workload->stages[s].versions > most ? workload->stages[s].versions : most;
    return most;
}

#define LINK(ROW) \
    ROW(payload_bytes, json_finite(it->payload), "over all links of a class (nvlink, pcie or inside, nic, uplink, host); of " \
        "reductions in a switch what ports really carry") \
    ROW(wire_bytes, json_finite(it->wire), "the same with the flags of protocols: LL 2 x, LL128 128/120, others 1")
VIEW(link_view, struct load, it, LINK)

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
                     view_json(&link_view, &(struct load){.payload = sums[k].payload / all, .wire = sums[k].wire / all}));
    return json;
}

/* The names of the bits that are set. */
static json_t *used_json(uint64_t bits, const char *(*name)(size_t))
{
    json_t *json = json_array();

    for (size_t i = 0; name(i); i++)
        if (bits >> i & 1)
            json_append(json, json_words(name(i)));
    return json;
}

static const char *protocol_name(size_t i)
{
    return i < PROTOCOL_COUNT ? protocol_names[i] : NULL;
}

struct straggler { int rank; double slower; };

#define STRAGGLER(ROW) \
    ROW(rank, json_integer(it->rank), "pipeline rank") \
    ROW(slower, json_real(it->slower), "how many times as long its kernels take")
VIEW(straggler_view, struct straggler, it, STRAGGLER)

/* The pipeline ranks that compute slower than others, with how many times as long their kernels take. */
static json_t *stragglers_json(const struct scenario *scenario)
{
    int stages = scenario->parallelism.pipeline, ranks = scenario_replicas(scenario) * stages;
    json_t *json = json_array();

    for (int rank = 0; rank < ranks; rank++) {
        double slower = scenario_has_rank(scenario, rank) ? scenario_slower(scenario, rank / stages, rank % stages) : 1;

        if (slower > 1)
            json_append(json, view_json(&straggler_view, &(struct straggler){rank, slower}));
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

static json_t *scenario_json(const struct scenario *scenario)
{
    struct arena arena = {0};
    json_t *json = node_json(scenario_dump(&arena, scenario));

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

double result_by_tokens(const struct run *run, double amount)
{
    return 1e6 * amount / (run->metrics.tokens_per_s * run->metrics.iteration_time);
}

static bool is_calibrated(const struct run *run)
{
    return costs_calibrated(scenario_first_costs(run->workload->scenario));
}

/* Whether the cluster has parts, some of whose GPUs are idle. */
static bool has_idle_parts(const struct scenario *scenario)
{
    return cluster_given_parts(&scenario->cluster) && scenario_paid_gpus(scenario) > scenario_gpus(scenario);
}

static json_t *source_json(const struct scenario *scenario)
{
    return json_words(model_is_timed(&scenario->model) ? "given" :
                      cost_source_names[scenario_first_costs(scenario)->model.source]);
}

#define STEADY(ROW) \
    ROW(from_s, json_finite(it->from), "begin of the window") \
    ROW(to_s, json_finite(it->to), "its end") \
    ROW(updates, json_integer(it->updates), "in the window")
VIEW(steady_view, struct window, it, STEADY)

#define RUN(ROW) \
    ROW(extrapolated_s, json_finite(is_calibrated(it) ? it->metrics.extrapolated : NAN), \
        "compute of the mean rank on kernels unlike those measured; null: no profile") \
    ROW(cost_basis_s, model_is_timed(&it->workload->scenario->model) ? json_null() : bases_json(&it->metrics), \
        "kernels of the mean rank by class (products, attention, memory_bound); null: times are given", .form = VIEW_MAP, \
        .of = &bases_view) \
    ROW(communication_breakdown_bytes_per_gpu, json_numbers(payload_names, it->metrics.sent, PAYLOAD_COUNT), \
        "communication_bytes_per_gpu by what is sent", .form = VIEW_MAP) \
    ROW(link_bytes, links_json(it), "by class of links", .form = VIEW_MAP, .of = &link_view) \
    ROW(memory_breakdown_bytes, json_numbers(memory_kind_names, it->metrics.memory.bytes, MEMORY_KIND_COUNT), \
        "peak_memory_bytes by kind", .form = VIEW_MAP) \
    ROW(memory_limit_bytes, json_finite(it->metrics.peak_room), "what a GPU may hold; null: not known") \
    ROW(window_s, json_pack("[f, f]", it->metrics.window.from, it->metrics.window.to), \
        "[from, to]: the part of the simulated time that all means are over") \
    ROW(breakdown_s, breakdown_json(&it->metrics), "the time of the mean rank by kind; adds up to iteration_time_s", \
        .form = VIEW_MAP) \
    ROW(closed_form_bubble, json_finite(workload_ideal_bubble(it->workload)), \
        "bubble_fraction by the schedule's closed form, mean stages, free network; null: none") \
    ROW(imbalance_s, json_finite(it->metrics.imbalance), \
        "of breakdown_s.bubble: more than in a replay in which works take all ranks as long; or less") \
    ROW(jitter_s, json_finite(it->metrics.jitter), "of iteration_time_s: more than in a replay without jitter; or less") \
    ROW(steady_state, it->metrics.window.steady ? view_json(&steady_view, &it->metrics.window) : json_null(), \
        "null: synchronous, or no steady state", .of = &steady_view) \
    ROW(model_flop, json_finite(it->metrics.model_flop), \
        "what the mathematics of the whole model needs, an iteration, whatever the software: min(sequence, window or chunk) " \
        "keys a query, a causal mask takes none off; null where times are given") \
    ROW(hardware_flop, json_finite(it->metrics.hardware_flop), \
        "what the kernels compute: also what is recomputed, and scores beyond a window where attention is not fused; scores " \
        "that a causal mask hides count in both") \
    ROW(gpus, json_integer(scenario_gpus(it->workload->scenario)), "that compute") \
    ROW(gpus_paid, json_integer(scenario_paid_gpus(it->workload->scenario)), \
        "of the cluster: gpus and the idle ones. What an iteration costs, GPU-hours, energy and tokens per GPU count them") \
    COST_ROWS(ROW) \
    ROW(operations, json_count(it->lowered.program.ops.count), "simulated") \
    ROW(collectives, json_words(it->lowered.alike.measured ? "measured" : "messages"), \
        "messages: every one was simulated; measured: each different collective once") \
    ROW(all_reduces, used_json(it->lowered.used.all_reduces, all_reduce_name), "those that ran") \
    ROW(protocols, it->lowered.used.protocols ? used_json(it->lowered.used.protocols, protocol_name) : NULL, \
        "of the communication library that they ran with; left out: it has none") \
    ROW(folded, json_boolean(it->lowered.alike.folded), "one replica was simulated for all") \
    ROW(stragglers, it->workload->scenario->cluster.gpu_slower && it->workload->scenario->uneven & UNEVEN_GPUS ? \
        stragglers_json(it->workload->scenario) : NULL, "ranks with slower kernels; left out: none", .form = VIEW_LIST, \
        .of = &straggler_view) \
    ROW(rank_gpus, it->workload->scenario->layout.mixed ? rank_gpus_json(it->workload->scenario) : NULL, \
        "the GPU of each rank, of the first of a tensor group; left out: nodes are of one kind") \
    ROW(idle_gpus, has_idle_parts(it->workload->scenario) ? idle_json(it->workload->scenario) : NULL, \
        "of the cluster's part of that name, without a stage; left out: none, or all parts are of one kind", .form = VIEW_MAP) \
    ROW(jitter, json_real(it->workload->scenario->simulation.jitter), \
        "standard deviation of a work's time, as a share of it") \
    ROW(seed, json_integer(it->seed), "of the random numbers; of several runs (repeat, or replicas that leave their lockstep): " \
        "of the one with the median time; all other keys describe that run") \
    ROW(cost_source, source_json(it->workload->scenario), "given, roofline or calibrated") \
    ROW(cost_profile, is_calibrated(it) ? json_words(scenario_first_costs(it->workload->scenario)->profile) : json_null(), \
        "its name; null: not calibrated") \
    ROW(setup, setup_json(it->workload->scenario), \
        "in words: schedule, degrees, chunks, ZeRO, micro-batch, precision, activation checkpointing, software") \
    ROW(software, software_json(it->workload->scenario), "whose values hold; null: none") \
    ROW(model, model_json(it->workload->scenario), "its title, or its blocks and their width; given: times are given") \
    ROW(gpu, gpu_json(it->workload->scenario), "its name in 'dtsim list gpus'; null: none is named") \
    ROW(in_framework, in_framework_json(it->workload->scenario), \
        "that release has this schedule, ZeRO stage and recomputation; false: a note says what it lacks; null: not known") \
    ROW(software_assumed, \
        json_boolean(it->workload->scenario->software.assumed && it->workload->scenario->software.names.title), \
        "the scenario names none: the usual one of its degrees") \
    ROW(notes, caveats_json(it->workload->scenario, &it->metrics), "what to know before relying on the numbers") \
    ROW(engine, json_words(engine_names[it->workload->scenario->simulation.engine]), "that simulated it") \
    ROW(version, json_words(DTSIM_VERSION), "of dtsim")
VIEW_SHARED(run_view, struct run, it, RUN)

#define RESOLVED(ROW) \
    ROW(scenario, scenario_json(it->workload->scenario), "as it was simulated, with every default")
VIEW_SHARED(resolved_view, struct run, it, RESOLVED)

json_t *result_metrics_json(const struct run *run)
{
    json_t *json = view_json(&metrics_view, &run->metrics);

    view_put(&run_view, run, json);
    return json;
}

json_t *result_json(const struct run *run)
{
    json_t *json = result_metrics_json(run);

    view_put(&resolved_view, run, json);
    return json;
}

/* What its folder adds to a result; in this order, as the id is a digest of all that the result is: two with one id are the
 * same. */
struct in_folder { const json_t *result, *tables; };

#define IN_FOLDER(ROW) \
    ROW(tables_xxh128, json_incref((json_t *)(uintptr_t)it->tables), \
        "digest of each table, by which readers notice files of another run; in a folder", .form = VIEW_MAP) \
    ROW(run_id, digests_id(it->result), "of this result and its tables, by their content; in a folder") \
    ROW(build, json_words(sources_digest), \
        "digest of the sources of the program that wrote it, by which another build tells; in a folder")
VIEW_SHARED(folder_view, struct in_folder, it, IN_FOLDER)

/* A file while it is written. */
struct writing { const struct result_files *files; size_t table; const json_t *digests; };

static void write_table(const void *context, FILE *out)
{
    const struct writing *writing = context;

    writing->files->table(writing->files->of, writing->table, out);
}

static void write_result(const void *context, FILE *out)
{
    const struct writing *writing = context;
    json_t *json = writing->files->result(writing->files->of);

    view_put(&folder_view, &(struct in_folder){json, writing->digests}, json);
    json_print_all(json, out);
}

int result_files(const struct result_files *files, struct folder *folder, struct error *err)
{
    json_t *digests = json_object();
    struct writing writing = {.files = files, .digests = digests};
    struct arena arena = {0};
    int rc = 0;

    for (size_t i = 0; files->names[i] && !rc; i++) {
        char digest[DIGEST_HEX] = "";

        writing.table = i;
        rc = folder_write(folder, arena_printf(&arena, "%s.tsv", files->names[i]), write_table, &writing, digest, err);
        json_put(digests, files->names[i], json_words(digest));
    }
    if (!rc && (folder_write(folder, "result.json", write_result, &writing, NULL, err) || folder_commit(folder, err)))
        rc = -1;
    json_decref(digests);
    arena_release(&arena);
    return rc;
}

static void write_run_table(const void *run, size_t table, FILE *out)
{
    run_tables[table](run, out);
}

static json_t *run_result(const void *run)
{
    return result_json(run);
}

int result_write(const struct run *run, struct folder *folder, struct error *err)
{
    return result_files(&(struct result_files){run_table_names, write_run_table, run_result, run}, folder, err);
}
