/* How SimGrid is used. The dispatcher settles every operation whose duration is known in advance; SimGrid finds the
 * durations of transfers. Each transfer in flight has an actor. It sleeps until the transfer's first byte arrives (its
 * start plus the latency of its route), then sends the bytes. When they have arrived, it tells the dispatcher. (In a
 * buffered transfer the latency comes last, so its end is in the future.) Then the actor goes on with a transfer that
 * became ready by this end, and wakes or creates an actor for each further one.
 *
 * So links have no latency of their own while SimGrid runs. A lone transfer takes as long as with it, and:
 * - SimGrid's CM02 model shares a link in inverse proportion to the latency of the flows; ours share it equally.
 * - Its solver adds and subtracts the integer 1 for each flow. With 1/latency it would leave rounding errors, which it
 *   takes for flows.
 *
 * A limit of SimGrid 3.32: it goes through a list of all flows each time one ends. Some thousand flows at the same time
 * make no difference; 30,000 of them take ten seconds to end. */
#include "engine/replay.h"
#include "engine/replay_simgrid.h"
#include "modules/simgrid_memory.h"
#include "modules/simgrid_platform.h"
#include "modules/simgrid_reader.h"
#include "process/child.h"

#include <errno.h>
#include <math.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/link.h>
#include <simgrid/semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xbt/dynar.h>

#include "base/base.h"
#include "hardware/cluster.h"

/* The one mutable global: SimGrid's engine is a singleton, and its actors take no pointer. */
static struct simulation {
    const struct program *program;
    const struct cluster *cluster;
    struct dispatcher *dispatcher;
    struct simgrid_so_far *so_far;   /* read by the parent */
    bool paired;                     /* platform_is_paired */
    sg_host_t *ports, *nics;         /* by GPU, by NIC; NULL if no transfer uses it */
    struct resolution resolution;
    sg_sem_t work;                   /* wakes sleeping actors: one release for each ready transfer */
    sg_host_t home;                  /* the host of all actors; any host will do */
    size_t idle;                     /* actors asleep without work, and not woken yet */
    size_t promised;                 /* actors on their way to a ready transfer */
    struct simgrid_route *route;     /* the argument and result of simgrid_route() */
} simulation;

static void configure(size_t lanes)
{
    char precision[64], guard[64];
    /* A stack with a guard page is two mappings, of which Linux allows 65,530. */
    const char *const options[] = {
        "dtsim", "--log=root.thresh:error", "--log=no_loc",
        ADDRESS_SANITIZER ? "--cfg=contexts/factory:thread" : "--cfg=contexts/factory:raw",
        "--cfg=contexts/stack-size:128", guard, "--cfg=contexts/nthreads:1",
        "--cfg=network/model:CM02", "--cfg=network/optim:Lazy", "--cfg=network/crosstraffic:0",
        "--cfg=network/TCP-gamma:0", "--cfg=network/weight-S:0", "--cfg=network/latency-factor:1",
        "--cfg=network/bandwidth-factor:1", "--cfg=cpu/model:Cas01", "--cfg=cpu/optim:Lazy",
        "--cfg=host/model:default", "--cfg=maxmin/concurrency-limit:-1", "--cfg=maxmin/precision:1e-9", precision,
        "--cfg=debug/verbose-exit:0", NULL,
    };
    char *argv[COUNT(options)];
    int argc = (int)COUNT(options) - 1;

    snprintf(guard, sizeof guard, "--cfg=contexts/guard-size:%d", lanes > 20000 ? 0 : 1);
    snprintf(precision, sizeof precision, "--cfg=surf/precision:%.17g", simulation.resolution.seconds);
    for (size_t i = 0; i < COUNT(options); i++)
        argv[i] = options[i] ? xstrdup(options[i]) : NULL;
    simgrid_init(&argc, argv);
}

/* A C program can describe a platform to SimGrid only in XML. A file in memory leaves nothing behind, even after a
 * crash. */
static void load_platform(const struct cluster *cluster, struct platform_use use)
{
    int fd = memfd_create("platform.xml", MFD_CLOEXEC);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    char path[64];

    if (!out) {
        fprintf(stderr, "cannot write the platform: %s", strerror(errno));
        exit(EXIT_FAILURE);
    }
    simulation.paired = platform_is_paired(cluster, &use);
    platform_print(cluster, use, out);
    fflush(out);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (access(path, R_OK)) {
        fputs("there is no /proc here, by which SimGrid reads its platform; the engine fast needs none", stderr);
        exit(EXIT_FAILURE);
    }
    simgrid_load_platform(path);
    fclose(out);
}

/* The platform file has latencies and bytes, for readers. Here actors sleep for the latency, and bytes are counted in
 * smaller units. */
static void adapt_links(void)
{
    size_t count = sg_link_count();
    sg_link_t *links = sg_link_list();

    for (size_t i = 0; i < count; i++) {
        sg_link_set_latency(links[i], 0);
        sg_link_set_bandwidth(links[i], sg_link_get_bandwidth(links[i]) * simulation.resolution.unit);
    }
    free(links);
}

static sg_host_t find_host(const char *kind, int index)
{
    char name[32];

    snprintf(name, sizeof name, "%s%d", kind, index);
    return sg_host_by_name(name);
}

static void find_hosts(const struct cluster *cluster, const bool *used)
{
    int gpus = cluster_gpus(cluster);

    simulation.ports = xcalloc((size_t)gpus + 1, sizeof *simulation.ports);
    simulation.nics = xcalloc((size_t)cluster_nics(cluster) + 1, sizeof *simulation.nics);
    for (int gpu = 0; gpu < gpus; gpu++) {
        int nic = cluster_nic_of(cluster, gpu);

        if (used && !used[gpu])
            continue;
        if (simulation.paired || cluster_node_gpus(cluster, cluster_node_of(cluster, gpu)) > 1)
            simulation.home = simulation.ports[gpu] = find_host("gpu", gpu);
        if (!simulation.paired && cluster->nodes > 1 && !simulation.nics[nic])
            simulation.home = simulation.nics[nic] = find_host("nic", nic);
    }
}

static void endpoints(int src, int dst, double most, sg_host_t *from, sg_host_t *to)
{
    const struct cluster *cluster = simulation.cluster;
    bool inside = simulation.paired || cluster_node_of(cluster, src) == cluster_node_of(cluster, dst);

    *from = inside ? simulation.ports[src] : simulation.nics[cluster_nic_of(cluster, src)];
    *to = inside ? simulation.ports[dst] : simulation.nics[cluster_nic_of(cluster, dst)];
    if (most > 0) {
        char sender[PLATFORM_HOST_SIZE];

        platform_sender(src, most, sender);
        *from = sg_host_by_name(sender);
    }
}

static void run_transfer(uint32_t id)
{
    const struct op *op = &simulation.program->ops.items[id];
    const struct op_transfer *transfer = &op_traits(simulation.program, op)->transfer;
    double sleep = simulation.dispatcher->start[id] - simgrid_get_clock();
    sg_host_t from, to;

    double latency = simulation.dispatcher->costs[op->traits].latency;

    if (!transfer->buffered)
        sleep += latency;
    if (sleep > simulation.resolution.seconds)
        sg_actor_sleep_for(sleep);
    endpoints((int)transfer->src, (int)transfer->dst, transfer->most, &from, &to);
    sg_host_sendto(from, to, resolution_units(&simulation.resolution, flow_bytes(op->amount, transfer)));
    dispatcher_end(simulation.dispatcher, id, simgrid_get_clock() + (transfer->buffered ? latency : 0));
    *simulation.so_far = (struct simgrid_so_far){
        simulation.program->ops.count - simulation.dispatcher->left, simgrid_get_clock(),
    };
}

/* A lane's choice that depends on a transfer under way: sleeps until its time, then decides. */
static void choose(uint32_t id)
{
    double sleep = dispatcher_choice_time(simulation.dispatcher, id) - simgrid_get_clock();

    if (sleep > simulation.resolution.seconds)
        sg_actor_sleep_for(sleep);
    dispatcher_choose(simulation.dispatcher, id);
}

static void work(int argc, char **argv);

/* Promises an actor to every ready transfer that has none: an idle one if there is one, because creating an actor maps
 * a stack. */
static void share_work(void)
{
    while (dispatcher_ready(simulation.dispatcher) > simulation.promised) {
        simulation.promised++;
        if (simulation.idle) {
            simulation.idle--;
            sg_sem_release(simulation.work);
        } else {
            sg_actor_create("worker", simulation.home, work, 0, NULL);
        }
    }
}

/* Actors yield to each other in sg_ calls only. Before it yields, an actor that ended a transfer takes one that became
 * ready, unless it is promised to another actor. So each ready transfer has exactly one actor on its way to it. The
 * semaphore keeps a wake-up that comes before its actor sleeps. */
static void work(int argc, char **argv)
{
    uint32_t id;

    (void)argc, (void)argv;
    for (;;) {
        BUG_IF(!dispatcher_take(simulation.dispatcher, &id));
        simulation.promised--;
        do {
            share_work();
            if (simulation.program->ops.items[id].kind == OP_TRANSFER)
                run_transfer(id);
            else
                choose(id);
            if (simulation.dispatcher->left == 0)
                child_done();
        } while (dispatcher_ready(simulation.dispatcher) > simulation.promised &&
                 dispatcher_take(simulation.dispatcher, &id));
        simulation.idle++;
        sg_sem_acquire(simulation.work);
    }
}

/* The GPUs that flows use. No other host is built, because loading many is slow. */
static bool *used_gpus(void)
{
    bool *used = xcalloc((size_t)cluster_gpus(simulation.cluster) + 1, sizeof *used);

    for (uint32_t i = 0; i < simulation.program->ops.count; i++) {
        const struct op *op = &simulation.program->ops.items[i];
        const struct op_transfer *transfer = &op_traits(simulation.program, op)->transfer;

        if (dispatcher_asks(simulation.dispatcher, i))
            used[transfer->src] = used[transfer->dst] = true;
    }
    return used;
}

static int by_pair(const void *a, const void *b)
{
    const struct platform_pair *one = a, *other = b;

    if (one->src != other->src)
        return one->src < other->src ? -1 : 1;
    if (one->most != other->most)
        return one->most < other->most ? -1 : 1;
    return (one->dst > other->dst) - (one->dst < other->dst);
}

/* The pairs of GPUs between which bytes go, each once; the caller frees them. */
static struct platform_pair *used_pairs(size_t *count)
{
    const struct program *program = simulation.program;
    struct platform_pair *pairs = xcalloc(program->traits.count + 1, sizeof *pairs);
    bool *seen = xcalloc(program->traits.count + 1, sizeof *seen);
    size_t all = 0;

    *count = 0;
    for (uint32_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        const struct op_transfer *transfer = &op_traits(program, op)->transfer;

        if (!dispatcher_asks(simulation.dispatcher, i) || seen[op->traits])
            continue;
        seen[op->traits] = true;
        pairs[all++] = (struct platform_pair){(int)transfer->src, (int)transfer->dst, transfer->most};
    }
    free(seen);
    array_sort(pairs, all, sizeof *pairs, by_pair);
    for (size_t i = 0; i < all; i++)
        if (!i || by_pair(&pairs[i], &pairs[*count - 1]))
            pairs[(*count)++] = pairs[i];
    return pairs;
}

static void simulate(const struct cluster *cluster, struct dispatcher *dispatcher, struct simgrid_so_far *so_far)
{
    bool *used;

    simgrid_memory(memory_ran_out);
    simulation.program = dispatcher->program;
    simulation.cluster = cluster;
    simulation.dispatcher = dispatcher;
    simulation.so_far = so_far;
    simulation.resolution = resolution_of(simulation.program, dispatcher->costs);
    used = used_gpus();
    configure(simulation.program->lanes.count);
    struct platform_use use = {.gpus = used};
    struct platform_pair *pairs = used_pairs(&use.count);
    use.pairs = pairs;
    load_platform(simulation.cluster, use);
    free(pairs);
    adapt_links();
    find_hosts(simulation.cluster, used);
    simulation.work = sg_sem_init(0);
    share_work();
    simgrid_run();
    BUG("the simulation stopped before the program's end");
}

/* Runs as an actor, because SimGrid completes the routes when the simulation starts. */
static void look_up_route(int argc, char **argv)
{
    struct simgrid_route *route = simulation.route;
    xbt_dynar_t links = xbt_dynar_new(sizeof(sg_link_t), NULL);
    sg_host_t from, to;

    (void)argc, (void)argv;
    endpoints(route->src, route->dst, 0, &from, &to);
    sg_host_get_route(from, to, links);
    route->latency = sg_host_get_route_latency(from, to);
    route->bandwidth = sg_host_get_route_bandwidth(from, to);
    route->count = (int)xbt_dynar_length(links);
    for (int i = 0; i < route->count && i < ROUTE_MAX; i++)
        snprintf(route->links[i], sizeof route->links[i], "%s",
                 sg_link_get_name(*(sg_link_t *)xbt_dynar_get_ptr(links, (unsigned long)i)));
    child_done();
}

static void look_up(const struct cluster *cluster, struct simgrid_route *route)
{
    static const struct program none;

    simgrid_memory(memory_ran_out);
    simulation.program = &none;
    simulation.cluster = cluster;
    simulation.route = route;
    simulation.resolution = resolution_of(&none, NULL);
    configure(1);
    struct platform_pair pair = {simulation.route->src, simulation.route->dst, 0};
    load_platform(simulation.cluster, (struct platform_use){NULL, &pair, 1});
    find_hosts(simulation.cluster, NULL);
    sg_actor_create("reader", simulation.home, look_up_route, 0, NULL);
    simgrid_run();
}

extern const struct simgrid_module module_simgrid;
const struct simgrid_module module_simgrid = {{simgrid_read_file}, simulate, look_up};
