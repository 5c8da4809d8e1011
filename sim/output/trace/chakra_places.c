/* chakra_places: which NPU is on which node, and the network and the memory between them as ASTRA-sim's analytical backends
 * take them (network-parser/NetworkParser.cpp, remote_memory_backend/analytical/AnalyticalRemoteMemory.cc). */
#include "trace/chakra_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "files/json.h"
#include "tables/recorded.h"

static const json_t *scenario_part(const struct trace *trace, const char *part)
{
    return json_object_get(json_object_get(trace->run.result, "scenario"), part);
}

static int whole_number(const json_t *mapping, const char *key)
{
    const json_t *value = json_object_get(mapping, key);

    return json_is_integer(value) ? (int)json_integer_value(value) : 0;
}

/* How far GPUs stand apart that follow each other in each dimension, as the placement says (layout/layout.h). False: the jobs'
 * ranks differ in their degrees, or the result does not say them. */
struct strides { int tensor, data, pipeline, context, replicas; };
static bool find_strides(const struct trace *trace, struct strides *strides)
{
    const json_t *strategy = scenario_part(trace, "strategy"), *order = json_object_get(strategy, "placement");
    int at = 1;

    *strides = (struct strides){.replicas = whole_number(strategy, "context")};
    for (size_t i = 0; i < json_array_size(order); i++) {
        const char *name = json_string_value(json_array_get(order, i));
        int degree = name ? whole_number(strategy, name) : 0;

        *(!name                       ? &strides->tensor
          : !strcmp(name, "data")     ? &strides->data
          : !strcmp(name, "pipeline") ? &strides->pipeline
          : !strcmp(name, "context")  ? &strides->context
                                      : &strides->tensor) = at;
        at *= degree;
    }
    return !json_object_get(strategy, "stages") && at > 0 && strides->replicas > 0 &&
           at == whole_number(trace->run.result, "gpus") && whole_number(strategy, "pipeline") == trace->run.pipeline &&
           at == whole_number(strategy, "tensor") * trace->run.ranks * trace->run.replicas;
}

/* A rank and the first GPU of its tensor group. */
struct place { int rank, seat; };

static int by_seat(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    return x->seat != y->seat ? (x->seat < y->seat ? -1 : 1) : x->rank < y->rank ? -1 : x->rank > y->rank;
}

void chakra_place(struct chakra *chakra)
{
    const struct trace *trace = chakra->trace;
    const json_t *cluster = scenario_part(trace, "cluster");
    int count = 0, nodes = whole_number(cluster, "nodes"), gpus = whole_number(trace->run.result, "gpus"), taken;
    struct place *places = xcalloc((size_t)trace->run.written + 1, sizeof *places);
    struct strides strides;
    bool known = find_strides(trace, &strides) && nodes > 0;

    taken = !known || gpus % nodes ? whole_number(cluster, "gpus_per_node") : gpus / nodes;
    for (int rank = 0; (rank = recorded_next_rank(&trace->run, rank)) >= 0; rank++) {
        int replica = rank / trace->run.pipeline;

        places[count++] = (struct place){rank, !known ? rank : rank % trace->run.pipeline * strides.pipeline +
                                               replica / strides.replicas * strides.data + replica % strides.replicas * strides.context};
    }
    array_sort(places, (size_t)count, sizeof *places, by_seat);
    chakra->npu = xcalloc((size_t)trace->run.written + 1, sizeof *chakra->npu);
    chakra->node_of = xcalloc((size_t)count + 1, sizeof *chakra->node_of);
    chakra->npus = count;
    for (int rank = 0; rank < trace->run.written; rank++)
        chakra->npu[rank] = -1;
    for (int i = 0; i < count; i++) {
        chakra->npu[places[i].rank] = i;
        chakra->node_of[i] = known && taken > 0 ? places[i].seat / taken : -1;
    }
    free(places);
}

/* NPUs of each node; 0: nodes have unlike numbers, or nobody knows. */
static int each_node(const struct chakra *chakra)
{
    int first = 0;

    while (first < chakra->npus && chakra->node_of[first] == chakra->node_of[0])
        first++;
    for (int i = 0; i < chakra->npus; i++)
        if (chakra->node_of[i] < 0 || chakra->npus % first || chakra->node_of[i] != chakra->node_of[i / first * first] ||
            (i >= first && i % first == 0 && chakra->node_of[i] == chakra->node_of[i - 1]))
            return 0;
    return first;
}

/* A quantity of a link, in SI; what is left out takes no time. */
static double quantity(const json_t *link, const char *key, enum unit unit, double else_value)
{
    const char *text = json_string_value(json_object_get(link, key));
    double value;
    char why[256];

    return text && !unit_parse(unit, text, &value, why, sizeof why) ? value : else_value;
}

static double share(const json_t *link, const char *key)
{
    const json_t *value = json_object_get(link, key);

    return json_is_number(value) ? json_number_value(value) : 1;
}

enum { FREE = 1000000 };                 /* GB/s of a link that takes no time */

/* What the switches of network.yml leave out of the network. */
static void tell_topology(const json_t *topology, FILE *out)
{
    const char *kind = json_string_value(json_object_get(topology, "kind"));
    double over = share(topology, "oversubscription");

    if (kind && strcmp(kind, "nonblocking"))
        fprintf(out, "# not said here: the %s between the nodes%s; this switch has all of their bandwidth, which is too much where nodes "
                "share links of it\n", kind, over > 1 ? ", oversubscribed" : "");
}

static void write_network(const struct trace_file *file, FILE *out)
{
    const struct chakra *chakra = ((const struct chakra_file *)file)->chakra;
    const json_t *cluster = scenario_part(chakra->trace, "cluster"), *inside = json_object_get(cluster, "inside"),
                 *network = json_object_get(cluster, "network"), *host = json_object_get(cluster, "host");
    int each = each_node(chakra), nodes = each ? chakra->npus / each : 0, nics = whole_number(network, "nics");
    int per_node = whole_number(cluster, "gpus_per_node");
    double own = !nics || !per_node ? 1 : nics > per_node ? nics / per_node : (double)nics / per_node;    /* as cluster_nic_sheet */
    double wire = quantity(network, "bandwidth", UNIT_BANDWIDTH, FREE * 1e9) * own;
    double bandwidth[] = {quantity(inside, "bandwidth", UNIT_BANDWIDTH, FREE * 1e9) * share(inside, "efficiency"),
                          (own > 1 ? fmin(wire, quantity(host, "bandwidth", UNIT_BANDWIDTH, FREE * 1e9)) : wire) * share(network, "efficiency")};
    double latency[] = {quantity(inside, "latency", UNIT_TIME, 0), quantity(network, "latency", UNIT_TIME, 0)};
    int first = each == 1 || !each, last = nodes == 1 ? 0 : 1;

    fprintf(out, "# %d NPUs%s; NICs a GPU: %g\n", chakra->npus, each ? "" : "; nodes hold unlike numbers of them, or ranks unlike "
            "numbers of GPUs: all as if on nodes of their own", own);
    tell_topology(json_object_get(network, "topology"), out);
    fputs(first == last ? "topology: [ Switch ]\n" : "topology: [ Switch, Switch ]\n", out);
    fprintf(out, first < last ? "npus_count: [ %d, %d ]\n" : "npus_count: [ %d ]\n", first < last ? each : chakra->npus, nodes);
    fprintf(out, first < last ? "bandwidth: [ %.9g, %.9g ]  # GB/s\n" : "bandwidth: [ %.9g ]  # GB/s\n", bandwidth[first] / 1e9,
            bandwidth[last] / 1e9);
    fprintf(out, first < last ? "latency: [ %.9g, %.9g ]  # ns\n" : "latency: [ %.9g ]  # ns\n", latency[first] * 1e9,
            latency[last] * 1e9);
}

/* Where a GPU's tensors go that are offloaded: its host, by a link of its own. */
static void write_memory(const struct trace_file *file, FILE *out)
{
    const json_t *host = json_object_get(scenario_part(file->trace, "cluster"), "host");

    fprintf(out, "{\"memory-type\": \"PER_NPU_MEMORY_EXPANSION\", \"remote-mem-latency\": %.0f, \"remote-mem-bw\": %.9g}\n",
            1e9 * quantity(host, "latency", UNIT_TIME, 0),
            quantity(host, "bandwidth", UNIT_BANDWIDTH, FREE * 1e9) * share(host, "efficiency") / 1e9);
}

/* Rings, one chunk a collective; all_to_all directly. For groups of some NPUs ASTRA-sim takes rings whatever a list of two says
 * (CommunicatorGroup.cc), by which an all_to_all of 8 carries four times as much; a list of one holds for them. */
static void write_system(const struct trace_file *file, FILE *out)
{
    const struct chakra *chakra = ((const struct chakra_file *)file)->chakra;
    int each = each_node(chakra);
    bool two = each > 1 && each < chakra->npus;
    const char *ring = two ? "[\"ring\", \"ring\"]" : "[\"ring\"]";

    fprintf(out, "{\"scheduling-policy\": \"LIFO\", \"endpoint-delay\": 1, \"active-chunks-per-dimension\": 1,\n"
            " \"preferred-dataset-splits\": 1, \"all-reduce-implementation\": %s, \"all-gather-implementation\": %s,\n"
            " \"reduce-scatter-implementation\": %s, \"all-to-all-implementation\": [\"direct\"],\n"
            " \"collective-optimization\": \"localBWAware\", \"local-mem-bw\": 1600, \"boost-mode\": 0, \"roofline-enabled\": 0}\n",
            ring, ring, ring);
}

/* What starts ASTRA-sim. Its backend with contention knows networks of one dimension alone, and passes a message on behind a switch
 * once all of it is there: a send takes twice as long. */
static void tell_command(const struct chakra *chakra, FILE *log)
{
    const struct trace_request *request = chakra->trace->request;
    char *folder = request->out ? xstrdup(request->out) : xprintf("%s/trace", request->dir);

    fprintf(log, "ASTRA-sim: AstraSim_Analytical_Congestion_Unaware --workload-configuration=%s/dtsim "
            "--comm-group-configuration=%s/dtsim.json --network-configuration=%s/network.yml --system-configuration=%s/system.json "
            "--remote-memory-configuration=%s/memory.json\n", folder, folder, folder, folder, folder);
    free(folder);
}

int chakra_write_machine(struct chakra *chakra, FILE *log, struct error *err)
{
    static const struct { const char *name, *what; void (*write)(const struct trace_file *file, FILE *out); } files[] = {
        {"network.yml", "the network", write_network}, {"memory.json", "the hosts", write_memory}, {"system.json", "rings", write_system},
    };

    if (chakra->npus < 2)
        return 0;
    for (size_t i = 0; i < COUNT(files); i++) {
        struct chakra_file file = {.file = {chakra->trace, -1, files[i].write, files[i].what}, .chakra = chakra};

        if (trace_put(files[i].name, &file.file, false, log, err))
            return -1;
    }
    tell_command(chakra, log);
    return 0;
}
