/* A platform file of SimGrid's, read by SimGrid. */
#include "modules/simgrid_reader.h"
#include "modules/simgrid_memory.h"

#include "process/child.h"

#include <fnmatch.h>
#include <math.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <xbt/dynar.h>

#include "base/base.h"

/* SimGrid calls functions without an argument of their own. */
static struct reading {
    struct file_tables *tables;
    sg_host_t *gpus;                 /* by number */
} reading;

/* A few lines may ask for hosts without end (a cluster's `radical`): beside what this process holds, SimGrid gets memory
 * for a thousand hosts, and for some routes in each kB of the file. */
static void limit(double size)
{
    static const struct rlimit seconds = {120, 120};
    unsigned long long held = 0;
    struct rlimit bytes;
    FILE *file = fopen("/proc/self/statm", "r");

    setrlimit(RLIMIT_CPU, &seconds);
    if (file && fscanf(file, "%*s %*s %*s %*s %*s %llu", &held) == 1 && !ADDRESS_SANITIZER) {
        bytes.rlim_cur = bytes.rlim_max = held * (unsigned long long)sysconf(_SC_PAGESIZE) + (256ull << 20) +
                                          (unsigned long long)(32 * size);
        setrlimit(RLIMIT_DATA, &bytes);
    }
    if (file)
        fclose(file);
}

static void add_name(struct file_names *names, const char *name)
{
    if (names->count < FILE_NAMES)
        snprintf(names->names[names->count], sizeof names->names[0], "%s", name);
    names->count++;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* All hosts that are no GPU of the cluster, by name: SimGrid returns them in the order of a hash table. */
static void name_extra(struct file_tables *tables)
{
    size_t count = sg_host_count(), extra = 0;
    sg_host_t *hosts = sg_host_list();
    const char **names = xcalloc(count + 1, sizeof *names);

    for (size_t i = 0; i < count; i++)
        if (!sg_host_get_data(hosts[i]))
            names[extra++] = sg_host_get_name(hosts[i]);
    array_sort(names, extra, sizeof *names, by_name);
    for (size_t i = 0; i < extra; i++)
        add_name(&tables->extra, names[i]);
    free(names);
    free(hosts);
}

static int by_number(const void *a, const void *b)
{
    return strverscmp(sg_host_get_name(*(const sg_host_t *)a), sg_host_get_name(*(const sg_host_t *)b));
}

/* The hosts that the names mean, each once, in their order; a pattern's in the order of their numbers. The caller frees them. */
static sg_host_t *named_hosts(struct file_tables *tables, size_t *count)
{
    size_t all = sg_host_count();
    sg_host_t *hosts = sg_host_list(), *named = xcalloc(all + 1, sizeof *named);

    array_sort(hosts, all, sizeof *hosts, by_number);
    *count = 0;
    for (size_t i = 0; i < tables->name_count; i++) {
        const char *name = tables->names[i].name;
        size_t before = *count;

        for (size_t k = 0; k < all; k++)
            if (hosts[k] && (!strcmp(name, sg_host_get_name(hosts[k])) || !fnmatch(name, sg_host_get_name(hosts[k]), 0))) {
                named[(*count)++] = hosts[k];
                hosts[k] = NULL;
            }
        if (*count == before)
            add_name(&tables->missing, name);
    }
    free(hosts);
    return named;
}

/* Gives a named host to each GPU, or, where there are fewer, to all GPUs of each node. */
static void find_named(struct file_tables *tables)
{
    const struct hosts *hosts = &tables->hosts;
    int gpus = hosts->first[hosts->nodes];
    size_t count;
    sg_host_t *named = named_hosts(tables, &count);
    bool each = count >= (size_t)gpus;
    char lacks[40];

    reading.gpus = xcalloc((size_t)gpus + 1, sizeof *reading.gpus);
    for (int node = 0; node < hosts->nodes; node++)
        for (int gpu = hosts->first[node]; gpu < hosts->first[node + 1]; gpu++) {
            size_t at = (size_t)(each ? gpu : node);

            snprintf(lacks, sizeof lacks, "host %zu", at);
            reading.gpus[gpu] = at < count ? named[at] : NULL;
            if (!reading.gpus[gpu])
                add_name(&tables->missing, lacks);
            else
                sg_host_set_data(reading.gpus[gpu], &reading.gpus[gpu]);
            if (reading.gpus[gpu] && (each || gpu == hosts->first[node]))
                add_name(&tables->taken, sg_host_get_name(reading.gpus[gpu]));
        }
    free(named);
    name_extra(tables);
}

static void find_gpus(struct file_tables *tables)
{
    const struct hosts *hosts = &tables->hosts;
    int gpu = 0;

    reading.gpus = xcalloc((size_t)hosts->first[hosts->nodes] + 1, sizeof *reading.gpus);
    for (int node = 0; node < hosts->nodes; node++)
        for (int k = 0; k < hosts->first[node + 1] - hosts->first[node]; k++, gpu++) {
            char name[40];

            snprintf(name, sizeof name, "host-%d.gpu-%d", node, k);
            reading.gpus[gpu] = sg_host_by_name(name);
            if (reading.gpus[gpu])
                sg_host_set_data(reading.gpus[gpu], &reading.gpus[gpu]);
            else
                add_name(&tables->missing, name);
        }
    name_extra(tables);
}

_Noreturn static void give_up(const char *what, const char *name)
{
    fprintf(stderr, "%s '%.60s'", what, name);
    exit(EXIT_FAILURE);
}

/* The number of a link: links count from 0 in the order in which routes cross them. A link that no two messages share gets a
 * bandwidth for the messages of all GPUs (read_route). */
static uint32_t number_of(struct file_tables *tables, sg_link_t link)
{
    const char *name = sg_link_get_name(link);
    struct file_link *own;

    if (sg_link_get_data(link))
        return (uint32_t)((struct file_link *)sg_link_get_data(link) - tables->link);
    if (tables->links == FILE_LINKS_MAX)
        give_up("messages between nodes cross too many links; the first of those beyond 131072 is", name);
    own = &tables->link[tables->links++];
    if (strlen(name) < sizeof own->name)
        snprintf(own->name, sizeof own->name, "%s", name);
    else
        snprintf(own->name, sizeof own->name, "%.27s~%d", name, tables->links);
    own->bandwidth = sg_link_get_bandwidth(link) * (sg_link_is_shared(link) ? 1 : tables->hosts.first[tables->hosts.nodes]);
    own->latency = sg_link_get_latency(link);
    sg_link_set_data(link, own);
    return (uint32_t)(own - tables->link);
}

/* Engines here share each link. One that is not shared (FATPIPE) bounds each message for itself, and not at all where another
 * link of the way is no faster. */
static void check_unshared(xbt_dynar_t links, unsigned long count)
{
    double least = INFINITY;

    for (unsigned long i = 0; i < count; i++) {
        sg_link_t link = *(sg_link_t *)xbt_dynar_get_ptr(links, i);

        least = sg_link_is_shared(link) ? fmin(least, sg_link_get_bandwidth(link)) : least;
    }
    for (unsigned long i = 0; i < count; i++) {
        sg_link_t link = *(sg_link_t *)xbt_dynar_get_ptr(links, i);

        if (!sg_link_is_shared(link) && sg_link_get_bandwidth(link) < least)
            give_up("a message between nodes crosses a link that no two messages share (FATPIPE) and that is slower than the others of "
                    "its way; expected SHARED or SPLITDUPLEX, as engines here share each link:", sg_link_get_name(link));
    }
}

static size_t read_route(struct file_tables *tables, int src, int dst, size_t at)
{
    xbt_dynar_t links = xbt_dynar_new(sizeof(sg_link_t), NULL);
    double latency = sg_host_get_route_latency(reading.gpus[src], reading.gpus[dst]);
    unsigned long count;

    sg_host_get_route(reading.gpus[src], reading.gpus[dst], links);
    count = xbt_dynar_length(links);
    if (count > WAY_MAX)
        give_up("a message crosses more than 60 links, from", sg_host_get_name(reading.gpus[src]));
    check_unshared(links, count);
    for (unsigned long i = 0; i < count; i++) {
        tables->crossed[at] = number_of(tables, *(sg_link_t *)xbt_dynar_get_ptr(links, i));
        latency -= tables->link[tables->crossed[at++]].latency;
    }
    if (!(fabs(latency) < 1e-12))
        give_up("a message takes longer than the latencies of its links together, as between hosts with coordinates (Vivaldi); expected "
                "that links have all latencies; it is from", sg_host_get_name(reading.gpus[src]));
    xbt_dynar_free(&links);
    return at;
}

/* Runs as an actor, because SimGrid completes the routes when the simulation starts. */
static void read_routes(int argc, char **argv)
{
    struct file_tables *tables = reading.tables;
    const struct hosts *hosts = &tables->hosts;
    int gpus = hosts->first[hosts->nodes], node = 0;
    size_t at = 0, pair = 0;

    (void)argc, (void)argv;
    for (int src = 0; src < gpus; src++) {
        while (hosts->first[node + 1] <= src)
            node++;
        for (int dst = 0; dst < gpus; dst++) {
            tables->begins[pair++] = (uint32_t)at;
            if (dst < hosts->first[node] || dst >= hosts->first[node + 1])
                at = read_route(tables, src, dst, at);
        }
    }
    tables->begins[pair] = (uint32_t)at;
    child_done();
}

void simgrid_read_file(struct file_tables *tables)
{
    const char *const options[] = {"dtsim", "--log=root.thresh:error", "--log=no_loc", "--cfg=contexts/stack-size:1024",
                                   ADDRESS_SANITIZER ? "--cfg=contexts/factory:thread" : "--cfg=contexts/factory:raw",
                                   "--cfg=debug/verbose-exit:0",
                                   "--cfg=tracing:no", NULL};      /* a <config> of the file may ask for a file to be written */
    char *argv[COUNT(options)];
    int argc = (int)COUNT(options) - 1;

    for (size_t i = 0; i < COUNT(options); i++)
        argv[i] = options[i] ? xstrdup(options[i]) : NULL;
    limit(tables->size);
    simgrid_memory(memory_ran_out);
    simgrid_init(&argc, argv);
    simgrid_load_platform(tables->path);
    reading.tables = tables;
    if (tables->name_count)
        find_named(tables);
    else
        find_gpus(tables);
    if (tables->missing.count)
        child_done();
    sg_actor_create("reader", reading.gpus[0], read_routes, 0, NULL);
    simgrid_run();
    BUG("SimGrid ended before the routes were read");
}
