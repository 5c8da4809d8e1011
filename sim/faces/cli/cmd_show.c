
#include "base/base.h"
#include "base/units.h"
#include "cli/alike_view.h"
#include "cli/cmd.h"
#include "cli/kernels_view.h"
#include "cli/memory_grid.h"
#include "cli/memory_view.h"
#include "cli/stages_view.h"
#include "collective/measure.h"
#include "config/conf.h"
#include "config/field.h"
#include "engine/program_text.h"
#include "hardware/cluster.h"
#include "lower/lower.h"
#include "report/figure.h"
#include "run/memory_advice.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "sweep/sweep.h"
#include "workload/workload.h"

enum { OPT_FIGURE, OPT_ORDERS, OPT_GRID, OPT_GROUPS, OPT_MEMORY, OPT_PROGRAM, OPT_PLATFORM, OPT_KERNELS, OPT_ALIKE,
       OPT_AFTER, OPT_JSON };

/* Durations of collectives that are not lowered to messages are measured on the scenario's engine. `after`:
 * the last pass that is shown; -1: the whole program. */
static int show_program(const struct workload *workload, int after, FILE *out, struct error *err)
{
    const struct scenario *scenario = workload->scenario;
    struct lowered lowered = {0};
    struct measure measure;
    int rc;

    measure_init(&measure, (enum engine)scenario->simulation.engine, &scenario->cluster);
    rc = after >= 0 ? lower_print(workload, (enum lower_pass)after, &measure, out, err)
               : lower(workload, LOWER_ITERATION, &measure, &lowered, err);
    if (!rc && lowered.alike.folded)
        fprintf(out, "# one replica stands for all %d, which do the same\n", scenario_replicas(scenario));
    if (!rc && after < 0)
        program_print(&lowered.program, out);
    lowered_release(&lowered);
    measure_release(&measure);
    return rc;
}

/* Some of it is known only once a shorter pipeline was simulated: so this simulates what a run would. Where that fails,
 * what is known before is shown. */
static int show_alike(const struct workload *workload, bool json, struct error *err)
{
    const struct scenario *scenario = workload->scenario;
    struct run run = {0};
    int rc = simulate(workload, simulate_numbers_of(scenario), &run, err);
    const struct alike *alike = rc ? &workload->alike : &run.lowered.alike;

    alike_show(alike, scenario, json);
    run_release(&run);
    return rc;
}

static void print_route(const struct cluster *cluster, const char *what, int src, int dst)
{
    struct route route = cluster_route(cluster, src, dst);
    char name[48], text[48];

    printf("%s, GPU %d to GPU %d:", what, src, dst);
    for (int i = 0; i < route.count; i++) {
        cluster_link_name(cluster, route.links[i], name, sizeof name);
        printf("%s %s", i ? "," : "", name);
    }
    printf("; %s", unit_format_short(UNIT_TIME, route.latency, text, sizeof text));
    printf(", %s\n", unit_format_short(UNIT_BANDWIDTH, route.bandwidth, text, sizeof text));
}

/* The first of each longer route from GPU 0 to other nodes' first GPUs, past the neighbouring node's. */
static void print_longer_routes(const struct cluster *cluster)
{
    int longest = cluster_route(cluster, 0, cluster_node_gpu(cluster, 1, 0)).count;

    for (int node = 2; node < cluster->nodes; node++) {
        int gpu = cluster_node_gpu(cluster, node, 0), count = cluster_route(cluster, 0, gpu).count;

        if (count > longest)
            print_route(cluster, "# farther", 0, gpu);
        longest = count > longest ? count : longest;
    }
}

static void show_platform(const struct cluster *cluster)
{
    struct arena arena = {0};
    int per_node = cluster_node_gpus(cluster, 0), gpus = cluster_gpus(cluster), leaf = cluster_leaf_nodes(cluster);

    if (cluster->ideal) {
        puts("the ideal cluster: as many GPUs as needed, zero latency, infinite bandwidth");
        return;
    }
    node_print(field_dump(&arena, &cluster_table, cluster), stdout);
    arena_release(&arena);
    if (cluster_kinds(cluster) == 1)
        printf("\n# %d nodes of %d GPUs = %d GPUs; routes:\n", cluster->nodes, per_node, gpus);
    else
        printf("\n# %d nodes in %d parts = %d GPUs; routes:\n", cluster->nodes, cluster_given_parts(cluster), gpus);
    if (per_node > 1)
        print_route(cluster, "# inside a node", 0, 1);
    if (cluster->nodes > 1)
        print_route(cluster, "# between neighbouring nodes", 0, per_node);
    if (cluster->nodes > leaf && cluster_topology(cluster) == TOPOLOGY_LEAF_SPINE)
        print_route(cluster, "# between leaves", 0, per_node * leaf);
    else if (cluster->nodes > 2)
        print_longer_routes(cluster);
}

/* The view that was asked for. */
static void show(const struct workload *workload, const struct arguments *arguments, struct error *err)
{
    bool json = arguments->values[OPT_JSON];
    const char *own = NULL;

    if (arguments->values[OPT_FIGURE]) {
        if (!figure_print(workload, stdout, err))
            printf("stages and %s count from 1, as in papers\n", plan_slices(&workload->plan) > 1 ? "slices" : "micro-batches");
    } else if (arguments->values[OPT_ORDERS])
        own = orders_print(workload, stdout);
    else if (arguments->values[OPT_GRID])
        grid_print(workload, stdout, err);
    else if (arguments->values[OPT_GROUPS])
        groups_print(workload->scenario, stdout);
    else if (arguments->values[OPT_MEMORY])
        memory_show(workload, json, err);
    else if (arguments->values[OPT_PROGRAM])
        show_program(workload, arguments->values[OPT_AFTER] ? (int)arguments->numbers[OPT_AFTER] : -1, stdout, err);
    else if (arguments->values[OPT_PLATFORM])
        show_platform(&workload->scenario->cluster);
    else if (arguments->values[OPT_KERNELS])
        kernels_show(workload, json);
    else if (arguments->values[OPT_ALIKE])
        show_alike(workload, json, err);
    else
        stages_show(workload, stdout);
    if (own)
        fprintf(stderr, "note: PyTorch's schedules have no word for %s\n", own);
}

/* The memory of a sweep's points. */
static int show_memory_grid(const struct arguments *arguments)
{
    struct sweep sweep;
    struct error err = {0};
    bool json = arguments->values[OPT_JSON];
    int code, rc = sweep_load(arguments->positional[0], arguments->sets, arguments->nsets, NULL, &sweep, &err);

    if (!rc)
        rc = memory_grid_print(&sweep, json, stdout, &err);
    code = report_as(&err, rc && json);
    sweep_release(&sweep);
    return code;
}

static int show_main(const struct arguments *arguments)
{
    struct error err = {0};
    struct scenario scenario;
    struct workload workload = {0};
    bool grid = false;
    int code, rc;

    if (arguments->values[OPT_MEMORY] && !sweep_is(arguments->positional[0], NULL, &grid, &err) && grid)
        return show_memory_grid(arguments);
    error_release(&err);         /* the scenario says it again */
    err = (struct error){0};
    rc = scenario_load(arguments->positional[0], arguments->sets, arguments->nsets, NULL, &scenario, &err);
    if (arguments->values[OPT_ALIKE])
        scenario_prefer(&scenario, ENGINE_FAST);
    if (!rc)
        rc = workload_init_advised(&workload, &scenario, &err);
    if (!rc)
        show(&workload, arguments, &err);
    if (!rc && (arguments->values[OPT_FIGURE] || arguments->values[OPT_ORDERS] || arguments->values[OPT_GRID]) &&
        plan_opportunistic(scenario_schedule(&scenario), &scenario.plan))
        fputs("this is the order computed beforehand; 'dtsim run -o DIR' writes what happened to DIR/spans.tsv\n",
              stderr);
    code = report_as(&err, rc && arguments->values[OPT_JSON]);
    workload_release(&workload);
    scenario_release(&scenario);
    return code;
}

static const struct option options[] = {
    [OPT_FIGURE] = {"--figure", .help = "the schedule as its paper draws it, in text; it counts from 1", .one_of = 1},
    [OPT_ORDERS] = {"--orders", .help = "what each rank computes, in order, as PyTorch's schedules read it (0F0,0B0)", .one_of = 1},
    [OPT_GRID] = {"--grid", .help = "the same in slots of the smallest stage time, on a free network, as CSV", .one_of = 1},
    [OPT_GROUPS] = {"--groups", .help = "which GPUs form which process group", .one_of = 1},
    [OPT_MEMORY] = {"--memory",
        .help = "what each rank holds at its peak; with 'offload: tensors' also which tensors are kept, recomputed or sent to the "
        "host; for a sweep file a table of the peaks of all points (scenarios/sweeps/gpt2-activations.yaml)", .one_of = 1},
    [OPT_PROGRAM] = {"--program",
        .help = "the operations of an iteration, a line each: id, lane (rank.kind), purpose, micro-batch, stage, seconds or bytes, "
        "and the ids of the operations that it waits for", .one_of = 1},
    [OPT_PLATFORM] = {"--platform", .help = "the cluster with its links, every default filled in", .one_of = 1},
    [OPT_KERNELS] = {"--kernels",
        .help = "every GEMM, attention and memory-bound kernel of each stage, with its shape, format, count and time, and the "
        "source of the time: measured kernels, similar kernels, or the roofline", .one_of = 1},
    [OPT_ALIKE] = {"--alike",
        .help = "which replicas, GPUs and channels the simulation leaves out because others, simulated once, do the same; where "
        "nothing is left out, the key that prevents it and what would change that; this needs a whole run, and takes as long",
        .one_of = 1},
    [OPT_AFTER] = {"--after", "PASS",
        .help = "what a pass found before operations were written: rows, exchanges, works (steps row by row, with the labels that "
        "they wait for and give), updates (all steps), hosts (what they keep and update), order (of the steps), durations "
        "(of works)", OPTION_CHOICE, .words = {"pass", lower_pass_names, NULL}, .with = "--program"},
    [OPT_JSON] = {"--json", .help = "for programs", .with = "--memory --kernels --alike"},
    SET_OPTION("PATH=VALUE", "change the scenario"),
    {"(nothing)", .help = "what each stage holds and costs"},
};

const struct command cmd_show = {
    .name = "show",
    .arguments = "SCENARIO",
    .least = 1, .most = 1,
    .brief = "Shows what would run, without simulating the network.",
    .examples = "  dtsim show scenarios/tour/03-gpipe.yaml --figure\n"
                "  dtsim show scenario.yaml --groups --set strategy.tensor=4\n"
                "  dtsim show scenario.yaml --program | less\n",
    .options = options, .noptions = COUNT(options),
    .main = show_main,
};
