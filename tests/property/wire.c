/* What links carry: the bytes that a protocol really sends, whatever slows a flow, of random groups with all algorithms
 * and protocols; what ports really carry where switches reduce. A link is busy for its bytes over its rate. */
#include "collective/collective.h"
#include "collective/measure.h"
#include "random_scenario.h"
#include "run/links.h"
#include "tables/tables.h"
#include "trials.h"

#include <stdio.h>

enum { GROUPS = 1600, SCENARIOS = 400, MOST_GPUS = 64 };

/* NCCL, src/device/prims_ll.h and prims_ll128.h: 4 of 8 bytes are flags, 8 of 128. */
static const double factors[PROTOCOL_COUNT] = {2, 128 / 120.0, 1};
static const char *const protocols[PROTOCOL_COUNT] = {"ll", "ll128", "simple"};

static struct collective_call call_of(const struct collective *collective, const struct placed_group *group,
                                      uint64_t *seed)
{
    return (struct collective_call){collective, group, pow(2, 8 + random_below(seed, 24)), PICK_INT(seed, 1, 2, 4, 8)};
}

/* Random GPUs of the cluster in their order, or its first ones. Returns how many. */
static int draw_gpus(const struct cluster *cluster, int *gpus, uint64_t *seed)
{
    int all = cluster_gpus(cluster) < MOST_GPUS ? cluster_gpus(cluster) : MOST_GPUS, n = 0;
    bool first = random_below(seed, 2);

    if (first)
        all = 2 + random_below(seed, all - 1);
    for (int gpu = 0; gpu < all; gpu++)
        if (first || random_below(seed, 3))
            gpus[n++] = gpu;
    return n;
}

/* All messages of the call, none folded, as the bytes that leave each GPU by its port and by its NIC: [0] payload, [1]
 * with the protocol. */
struct sent { double inside[2], outside[2]; };

static struct sent *lowered(const struct collective_call *call, const struct cluster *cluster)
{
    int n = call->group->n, stride = collective_lanes(call);
    struct sent *sent = xcalloc((size_t)cluster_gpus(cluster), sizeof *sent);
    uint32_t *lanes = xcalloc((size_t)(n * stride), sizeof *lanes), *done = xcalloc((size_t)n, sizeof *done);
    struct program program = {.ranks = n};
    struct dags dags = {0};

    for (int i = 0; i < n * stride; i++)
        lanes[i] = program_lane(&program, i / stride, LANE_COLLECTIVE, i % stride);
    collective_lower(call, NULL, &(struct member_ops){lanes, stride, NULL, done},
                     (struct new_op){.what = WHAT_SYNC, .mb = -1, .stage = -1}, &program, &dags);
    for (size_t i = 0; i < program.ops.count; i++) {
        const struct op *op = &program.ops.items[i];
        const struct op_transfer *transfer = &op_traits(&program, op)->transfer;
        const int ends[] = {(int)transfer->src, (int)transfer->dst};

        if (op->kind != OP_TRANSFER)
            continue;
        double *out = cluster_within_node(cluster, ends, 2) ? sent[ends[0]].inside : sent[ends[0]].outside;
        out[0] += payload_bytes(op->amount, transfer);
        out[1] += wire_bytes(op->amount, transfer);
    }
    dags_release(&dags);
    program_release(&program);
    free(lanes);
    free(done);
    return sent;
}

/* (1 + 1/g) of the vector through each port: a member's vector goes up to be summed, and the sum of its share to be
 * copied. Of L nodes' trees each NIC sends 2 (1 - 1/L) of a share in the mean. */
static void expect_switched(const struct collective_call *call, const struct sent *sent, const char *text)
{
    double g = call->group->per_node, nodes = call->group->n / g, far = 0;

    for (int m = 0; m < call->group->n; m++) {
        far += sent[call->group->gpus[m]].outside[0] / call->group->n;
        if (g == 1)          /* nodes with different numbers of members: as if each were on a node of its own */
            far += sent[call->group->gpus[m]].inside[0] / call->group->n;
        if (g > 1)
            expect_near("a port's bytes", sent[call->group->gpus[m]].inside[0], (1 + 1 / g) * call->bytes, text);
    }
    expect_near("a NIC's bytes", far, 2 * (1 - 1 / nodes) * call->bytes / g, text);
}

/* What the pairs of a measured call say, folded or not, is what the messages of all its members say. Returns the
 * protocol. */
static int check_call(const struct collective_call *call, const struct cluster *cluster, const char *text)
{
    struct measure measure;
    struct measured measured;
    struct error err = {0};
    double all = 0;

    measure_init(&measure, ENGINE_FAST, cluster);
    measure.counts = true;
    assert_int_equal(measure_collective(&measure, call, 1, &measured, &err), 0);
    const struct pairs *pairs = &measure.counted.items[measured.index].pairs;
    struct sent *sent = lowered(call, cluster);
    double factor = measured.protocol == PROTOCOL_NONE ? 1 : factors[measured.protocol];

    if (measured.used->in_switch)
        expect_switched(call, sent, text);
    for (size_t i = 0; i < pairs->count; i++) {
        const struct pair *pair = &pairs->items[i];
        struct sent *from = &sent[pair->src];
        double *out = cluster_within_node(cluster, (const int[]){pair->src, pair->dst}, 2) ? from->inside : from->outside;

        expect_near("bytes with the protocol", pair->wire, factor * pair->payload, text);
        all += pair->payload;
        out[0] -= pair->payload;
        out[1] -= pair->wire;
    }
    for (int gpu = 0; gpu < cluster_gpus(cluster); gpu++)
        for (int k = 0; k < 2; k++)
            if (!(fabs(sent[gpu].inside[k]) <= 1e-9 * all && fabs(sent[gpu].outside[k]) <= 1e-9 * all))
                fail_msg("%s: GPU %d: %g and %g B too few in pairs", text, gpu, sent[gpu].inside[k], sent[gpu].outside[k]);
    expect_near("bytes sent", measured.bytes_sent, all / call->group->n, text);
    free(sent);
    measure_release(&measure);
    return measured.protocol;
}

/* A random call on a platform, with one protocol or any. False: its library has no such protocol, or the call no place. */
static bool check_random(uint64_t *seed, int *seen, int *switched)
{
    const char *platform = PICK(seed, "dgx-h100", "dgx-b200", "hgx-h100-4", "dgx-a100", "dgx-1-v100", "mi300x-platform",
                                "gb200-nvl72", "l40s-pcie");
    int only = random_below(seed, PROTOCOL_COUNT + 2), gpus[MOST_GPUS], count = 0, n = 0;
    char *yaml = NULL, text[200], protocol[60] = "";
    struct scenario scenario = {0};
    struct error err = {0};
    bool checked = false;

    if (only > PROTOCOL_COUNT)
        snprintf(protocol, sizeof protocol, ", communication: none");
    else if (only < PROTOCOL_COUNT)
        snprintf(protocol, sizeof protocol, ", communication: {protocol: %s}", protocols[only]);
    assert_true(asprintf(&yaml, "model: {stages: {forward: 1 s, backward: 2 s}}\nbatch: {micro_batches: 1}\n"
                         "cluster: {platform: %s, nodes: %d%s}\n", platform, PICK_INT(seed, 1, 1, 2, 3, 4), protocol) >= 0);
    while (collective_at((size_t)count))
        count++;
    const struct collective *collective = random_below(seed, 4) ? collective_at((size_t)random_below(seed, count)) :
                                          collective_find(COLLECTIVE_ALL_REDUCE, "nvls");
    if (!load_text(yaml, &scenario, &err) && collective_runs_on(collective, &scenario.cluster))
        n = draw_gpus(&scenario.cluster, gpus, seed);
    if (n > 1) {
        struct placed_group group = placed_group_of(&scenario.cluster, gpus, n);
        struct collective_call call = call_of(collective, &group, seed);

        snprintf(text, sizeof text, "%s, %d GPUs, %s %s, %d channels, %g B, %s", platform, n,
                 collective_op_names[collective->op], collective->name, call.channels, call.bytes,
                 only < PROTOCOL_COUNT ? protocols[only] : only > PROTOCOL_COUNT ? "no profile" : "any protocol");
        checked = !collective_check_group(collective, &group, &err);
        if (checked) {
            seen[1 + check_call(&call, &scenario.cluster, text)]++;
            *switched += collective->in_switch != NULL;
        }
    }
    error_release(&err);
    scenario_release(&scenario);
    free(yaml);
    return checked;
}

static void random_groups(void **state)
{
    int seen[PROTOCOL_COUNT + 1] = {0}, switched = 0, checked = 0;

    (void)state;
    EACH_TRIAL(i, GROUPS) {
        uint64_t seed = i * 0xD1342543DE82EF95u;

        checked += check_random(&seed, seen, &switched);
    }
    print_message("%d calls: no protocol %d, LL %d, LL128 %d, Simple %d; in a switch %d\n", checked, seen[0], seen[1],
                  seen[2], seen[3], switched);
    for (int k = 0; k <= PROTOCOL_COUNT; k++)
        assert_true(seen[k] >= trials(GROUPS) / 50);
    assert_true(switched >= trials(GROUPS) / 100);
}

/* Each row of links.tsv. Returns the busiest link's share. */
static double check_rows(const struct simulated *simulated, double *up, double *down)
{
    const struct run *run = &simulated->run;
    const struct cluster *cluster = &simulated->scenario.cluster;
    double seconds = run->metrics.iteration_time * run->metrics.window.all, most = 0;
    char *text = NULL, name[48], class[16], expected[48];
    size_t size;
    FILE *out = open_memstream(&text, &size);
    const char *line;

    links_write(run, out);
    fclose(out);
    line = strchr(text, '\n') + 1;
    for (int c = 0; c < CARRIER_COUNT; c++)
        for (int i = 0; i < run->links.counts[c]; i++) {
            const struct load *load = &run->links.loads[c][i];
            double payload, wire, busy, rate = carrier_bandwidth(cluster, c, i);

            if (load->payload == 0)
                continue;
            assert_int_equal(sscanf(line, "%47s %15s %lf %lf %lf", name, class, &payload, &wire, &busy), 5);
            line = strchr(line, '\n') + 1;
            carrier_name(cluster, c, i, expected, sizeof expected);
            assert_string_equal(name, expected);
            expect_near("payload", payload, load->payload / run->metrics.window.all, simulated->text);
            expect_near("busy", busy, wire / rate / run->metrics.iteration_time, simulated->text);
            expect_near("busy", busy, load->wire / rate / seconds, simulated->text);
            if (!(wire >= payload * (1 - 1e-9) && wire <= 2 * payload * (1 + 1e-9)))
                fail_msg("%s: %g B on the wire of %g B:\n%s", name, wire, payload, simulated->text);
            most = fmax(most, busy);
            *(c == LINK_PORT_UP ? up : c == LINK_PORT_DOWN ? down : &rate) += wire;
        }
    assert_true(*line == '\0');
    free(text);
    return most;
}

/* Bytes that go up through ports come down through ports. */
static void random_scenarios(void **state)
{
    double most = 0;
    int more = 0;

    (void)state;
    EACH_TRIAL(i, SCENARIOS) {
        uint64_t seed = i * 0x9FB21C651E98DF25u;
        char *text = random_scenario(1, &seed);
        struct simulated simulated;
        struct error err = {0};
        double up = 0, down = 0;

        memset(&simulated, 0, sizeof simulated);
        simulated.text = text;
        if (!load_text(text, &simulated.scenario, &err) &&
            !workload_init(&simulated.workload, &simulated.scenario, &err)) {
            struct simulate_options options = simulate_options_of(&simulated.scenario);

            options.links = true;
            if (simulate(&simulated.workload, options, &simulated.run, &err))
                fail_at(text, &err);
            most = fmax(most, check_rows(&simulated, &up, &down));
            expect_near("bytes down", down, up, text);
            more += up > 0;
        }
        error_release(&err);
        simulated_release(&simulated);
    }
    print_message("scenarios with bytes inside nodes: %d, the busiest link %.3f of the time\n", more, most);
    assert_true(more >= trials(SCENARIOS) / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_groups), cmocka_unit_test(random_scenarios)};

    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
