#include "report/result.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report/caveats.h"

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* A scalar as YAML's JSON schema types it; quoted ones are strings. */
static json_t *scalar_json(const struct node *node)
{
    char *end;
    double value;

    if (node->quoted)
        return json_string(node->text);
    if (!strcmp(node->text, "true") || !strcmp(node->text, "false"))
        return json_boolean(node->text[0] == 't');
    value = strtod(node->text, &end);
    if (end == node->text || *end || !isfinite(value))
        return json_string(node->text);
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
            json_array_append_new(json, node_json(node->items[i]));
        else
            json_object_set_new(json, node->keys[i], node_json(node->items[i]));
    }
    return json;
}

static json_t *memory_json(const struct memory *memory)
{
    json_t *json = json_object();

    for (int kind = 0; kind < MEMORY_KIND_COUNT; kind++)
        json_object_set_new(json, memory_kind_names[kind], number(memory->bytes[kind]));
    return json;
}

json_t *breakdown_json(const struct metrics *metrics)
{
    json_t *json = json_object();

    for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
        json_object_set_new(json, account_names[kind], number(metrics->seconds[kind]));
    return json;
}

/* Of the mean rank's kernels, by class and by what their times stand on. */
static json_t *bases_json(const struct metrics *metrics)
{
    json_t *json = json_object();

    for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++) {
        json_t *bases = json_object();

        for (int basis = 0; basis < BASIS_COUNT; basis++)
            json_object_set_new(bases, cost_basis_names[basis], number(metrics->bases.seconds[kind][basis]));
        json_object_set_new(json, kernel_kind_names[kind], bases);
    }
    return json;
}

static json_t *sent_json(const struct metrics *metrics)
{
    json_t *json = json_object();

    for (int payload = 0; payload < PAYLOAD_COUNT; payload++)
        json_object_set_new(json, payload_names[payload], number(metrics->sent[payload]));
    return json;
}

/* What crosses all links of a class, an iteration. */
static json_t *links_json(const struct run *run)
{
    struct load sums[LINKS_COUNT] = {{0}};
    double all = run->metrics.window.all;
    json_t *json;

    if (!run->links.loads[0])        /* not counted */
        return json_null();
    json = json_object();
    for (int c = 0; c < CARRIER_COUNT; c++)
        for (int i = 0; i < run->links.counts[c]; i++) {
            sums[carrier_class(c)].payload += run->links.loads[c][i].payload;
            sums[carrier_class(c)].wire += run->links.loads[c][i].wire;
        }
    for (int k = 0; k < LINKS_COUNT; k++)
        json_object_set_new(json, link_class_names[k],
                            json_pack("{s:f, s:f}", "payload_bytes", sums[k].payload / all, "wire_bytes",
                                      sums[k].wire / all));
    return json;
}

/* The all-reduces that ran: the scenario's, or those that auto chose. */
static json_t *all_reduces_json(const struct lowered *lowered)
{
    json_t *json = json_array();

    for (size_t i = 0; all_reduce_name(i); i++)
        if (lowered->all_reduces >> i & 1)
            json_array_append_new(json, json_string(all_reduce_name(i)));
    return json;
}

/* The protocols of the communication profile that they ran with. */
static json_t *protocols_json(const struct lowered *lowered)
{
    json_t *json = json_array();

    for (int i = 0; i < PROTOCOL_COUNT; i++)
        if (lowered->protocols >> i & 1)
            json_array_append_new(json, json_string(protocol_names[i]));
    return json;
}

static json_t *caveats_json(const struct scenario *scenario)
{
    struct arena arena = {0};
    struct caveats caveats = caveats_of(&arena, scenario);
    json_t *json = json_array();

    for (size_t i = 0; i < caveats.count; i++)
        json_array_append_new(json, json_string(caveats.items[i]));
    arena_release(&arena);
    return json;
}

static json_t *scenario_json(const struct scenario *scenario)
{
    struct arena arena = {0};
    json_t *json = node_json(field_dump(&arena, &scenario_table, scenario));

    arena_release(&arena);
    return json;
}

json_t *result_json(const struct run *run)
{
    const struct metrics *m = &run->metrics;
    const struct scenario *scenario = run->workload->scenario;
    bool calibrated = !model_is_timed(&scenario->model) && scenario->costs.gpu == COST_CALIBRATED;
    json_t *json = json_object();

    for (size_t i = 0; metric_at(i); i++)
        json_object_set_new(json, metric_at(i)->name, number(metric_value(m, metric_at(i))));
    json_object_set_new(json, "energy_j", json_null());
    json_object_set_new(json, "extrapolated_s", number(calibrated ? m->extrapolated : NAN));
    json_object_set_new(json, "cost_basis_s", model_is_timed(&scenario->model) ? json_null() : bases_json(m));
    json_object_set_new(json, "communication_breakdown_bytes_per_gpu", sent_json(m));
    json_object_set_new(json, "link_bytes", links_json(run));
    json_object_set_new(json, "memory_breakdown_bytes", memory_json(&m->memory));
    json_object_set_new(json, "memory_limit_bytes", number(scenario_room(scenario)));
    json_object_set_new(json, "window_s", json_pack("[f, f]", m->window.from, m->window.to));
    json_object_set_new(json, "breakdown_s", breakdown_json(m));
    json_object_set_new(json, "closed_form_bubble", number(workload_ideal_bubble(run->workload)));
    json_object_set_new(json, "imbalance_s", number(m->imbalance));
    json_object_set_new(json, "jitter_s", number(m->jitter));
    json_object_set_new(json, "steady_state", !m->window.steady ? json_null() :
                        json_pack("{s:f, s:f, s:i}", "from_s", m->window.from, "to_s", m->window.to, "updates",
                                  m->window.updates));
    json_object_set_new(json, "model_flop", number(m->model_flop));
    json_object_set_new(json, "hardware_flop", number(m->hardware_flop));
    json_object_set_new(json, "gpus", json_integer(scenario_gpus(scenario)));
    json_object_set_new(json, "operations", json_integer((json_int_t)run->lowered.program.ops.count));
    json_object_set_new(json, "collectives", json_string(run->lowered.measured ? "measured" : "messages"));
    json_object_set_new(json, "all_reduces", all_reduces_json(&run->lowered));
    if (run->lowered.protocols)
        json_object_set_new(json, "protocols", protocols_json(&run->lowered));
    json_object_set_new(json, "folded", json_boolean(run->lowered.folded));
    json_object_set_new(json, "jitter", json_real(scenario->simulation.jitter));
    json_object_set_new(json, "cost_source", json_string(model_is_timed(&scenario->model) ? "given" :
                                                         cost_source_names[scenario->costs.gpu]));
    json_object_set_new(json, "cost_profile", calibrated ? json_string(scenario->costs.profile) : json_null());
    json_object_set_new(json, "notes", caveats_json(scenario));
    json_object_set_new(json, "engine", json_string(engine_names[scenario->simulation.engine]));
    json_object_set_new(json, "version", json_string(DTSIM_VERSION));
    json_object_set_new(json, "scenario", scenario_json(scenario));
    return json;
}

void json_print(const json_t *json, FILE *out)
{
    json_dumpf(json, out, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    fputc('\n', out);
}

/* Leaves errno as it is. */
static bool is_folder(const char *path)
{
    struct stat status;
    int before = errno;
    bool folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);

    errno = before;
    return folder;
}

int make_folder(const char *dir, struct error *err)
{
    char path[4096];

    if (!*dir || strlen(dir) >= sizeof path)
        return error_add(err, EXIT_USAGE, (struct loc){0}, "-o: expected the name of a folder");
    strcpy(path, dir);
    for (char *slash = path + 1;; slash++) {
        char old = *slash;

        if (old && old != '/')
            continue;
        *slash = 0;
        if (mkdir(path, 0777) && (errno != EEXIST || !is_folder(path)))
            return error_add(err, EXIT_UNEXPECTED, (struct loc){.file = path}, "cannot make the folder: %s",
                             strerror(errno));
        *slash = old;
        if (!old)
            return 0;
    }
}

static void write_json(const struct run *run, FILE *out)
{
    json_t *json = result_json(run);

    json_print(json, out);
    json_decref(json);
}

int result_write(const struct run *run, const char *dir, struct error *err)
{
    static const struct { const char *name; void (*write)(const struct run *, FILE *); } files[] = {
        {"result.json", write_json}, {"spans.tsv", spans_write}, {"memory.tsv", memory_write},
        {"utilization.tsv", utilization_write}, {"links.tsv", links_write},
    };

    if (make_folder(dir, err))
        return -1;
    for (size_t i = 0; i < COUNT(files); i++) {
        char path[4200];
        FILE *out;
        bool failed;

        snprintf(path, sizeof path, "%s/%s", dir, files[i].name);
        out = fopen(path, "w");
        if (out)
            files[i].write(run, out);
        failed = !out || ferror(out);
        if ((out && fclose(out)) || failed)
            return error_add(err, EXIT_UNEXPECTED, (struct loc){.file = path}, "cannot write: %s", strerror(errno));
    }
    return 0;
}
