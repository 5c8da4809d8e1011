#include "topology/simgrid_file.h"

#include "base/cache.h"
#include "files/data.h"
#include "process/child.h"
#include "process/module.h"
#include "topology/platform_text.h"
#include "topology/topology_internal.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "config/field.h"

enum { FILE_BYTES_MAX = 64 << 20 };

static const char WHAT[] = "SimGrid, which reads 'topology: xml',";

static int gpus_of(struct hosts hosts)
{
    return hosts.first[hosts.nodes];
}

static struct loc place(const struct topology *topology)
{
    return field_loc(&topology_table, topology, "xml");
}

/* SimGrid takes a file of any other name for a program that makes a platform, and runs it. */
static int look(const struct topology *topology, const char *path, struct stat *found, struct error *err)
{
    const char *end = strrchr(path, '.');

    if (!end || strcmp(end, ".xml") != 0)
        return error_add(err, EXIT_INPUT, place(topology), "topology: xml: found '%s'; expected the path of a file that "
                         "ends in .xml", topology->xml);
    if (stat(path, found))
        return error_system(err, place(topology), "topology: xml: cannot open '%s'", topology->xml);
    if (!S_ISREG(found->st_mode))
        return error_add(err, EXIT_INPUT, place(topology), "topology: xml: '%s' is no file", topology->xml);
    if (found->st_size > FILE_BYTES_MAX)
        return error_add(err, EXIT_INPUT, place(topology), "topology: xml: '%s' has %lld MB; expected at most %d (a zone or "
                         "a 'cluster' describes many hosts in one line)", topology->xml,
                         (long long)found->st_size / 1000000, FILE_BYTES_MAX / 1000000);
    return 0;
}

/* The memory that parent and child share. */
struct shared { struct file_tables *tables; size_t pairs; };

static size_t most_crossed(const struct shared *shared)
{
    return shared->pairs * WAY_MAX * sizeof(uint32_t);
}

static void unshare(struct shared *shared)
{
    if (shared->tables->link)
        child_unshare(shared->tables->link, FILE_LINKS_MAX * sizeof(struct file_link));
    if (shared->tables->begins)
        child_unshare(shared->tables->begins, (shared->pairs + 1) * sizeof(uint32_t));
    if (shared->tables->crossed)
        child_unshare(shared->tables->crossed, most_crossed(shared));
    child_unshare(shared->tables, sizeof *shared->tables);
}

static int share(struct shared *shared, struct error *err)
{
    shared->tables = child_share(sizeof *shared->tables);
    if (shared->tables) {
        shared->tables->link = child_share(FILE_LINKS_MAX * sizeof(struct file_link));
        shared->tables->begins = child_share((shared->pairs + 1) * sizeof(uint32_t));
        shared->tables->crossed = child_share(most_crossed(shared));
        if (shared->tables->link && shared->tables->begins && shared->tables->crossed)
            return 0;
        unshare(shared);
    }
    return error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "no memory to share with SimGrid");
}

struct asked { const struct simgrid_reader *reader; struct file_tables *tables; };

static void read_in_child(void *context)
{
    const struct asked *asked = context;

    asked->reader->read(asked->tables);
}

/* The sentence of SimGrid's among what its process left, with its place in the file; NULL: there is none. */
static const char *sentence(struct arena *arena, const char *said)
{
    static const char *const before[] = {"Uncaught exception ", "/ERROR] ", "/CRITICAL] ", "failed with exit status 1: "};
    static const char *const after[] = {" [", "  ->", " If you are"};      /* what its log begins with, a trace */
    char *text = NULL;

    for (size_t i = 0; i < COUNT(before) && !text; i++)
        if (strstr(said, before[i]))
            text = arena_strdup(arena, strstr(said, before[i]) + strlen(before[i]));
    if (text && !strncmp(text, "simgrid::", 9))       /* "simgrid::AssertionError by maestro/0: ..." */
        text = strstr(text, ": ") ? strstr(text, ": ") + 2 : text;
    for (size_t i = 0; text && i < COUNT(after); i++)
        if (strstr(text, after[i]))
            *strstr(text, after[i]) = '\0';
    return text;
}

/* Says what SimGrid finds wrong in the file, with the line that it names and the attribute that holds the value: "Parse error at
 * FILE:5: cannot parse number:fast", "std::invalid_argument: Link not found: m". */
static int refuse(struct arena *arena, const struct topology *topology, const char *path, const char *words, struct error *err)
{
    static const char at[] = "Parse error at ", input[] = "Invalid XML (", invalid[] = "std::";
    struct loc loc = {.file = path, .column = 1};
    size_t length = strlen(path), size;
    const char *rest = words, *value, *key = NULL;
    char *text;

    if (!strncmp(words, at, strlen(at)) && !strncmp(words + strlen(at), path, length) && words[strlen(at) + length] == ':') {
        loc.line = (int)strtol(words + strlen(at) + length + 1, (char **)(uintptr_t)&rest, 10);
        rest += strspn(rest, ": ");
        if (!strncmp(rest, input, strlen(input)) && strstr(rest, "): "))
            rest = strstr(rest, "): ") + 3;
    } else if (!strncmp(words, invalid, strlen(invalid)) && strstr(words, ": ")) {
        rest = strstr(words, ": ") + 2;
    }
    value = strrchr(rest, ':');
    text = value ? file_read(path, "a platform", FILE_BYTES_MAX, place(topology), &size, err) : NULL;
    if (text)
        key = platform_text_find(arena, text, size, value + 1 + strspn(value + 1, " "), loc.line, &loc);
    free(text);
    if (!loc.line)
        return error_add(err, EXIT_INPUT, place(topology), "topology: xml: %s", rest);
    return error_add(err, EXIT_INPUT, loc, "%s%s%s", key ? key : "", key ? ": " : "", rest);
}

static int read_file(struct arena *arena, const struct topology *topology, struct shared *shared, struct error *err)
{
    struct asked asked = {module_open("simgrid", MODULE_OWN_FIRST, "'topology: xml'", err), shared->tables};
    struct error own = {0};

    if (!asked.reader)
        return -1;
    if (!child_run(read_in_child, &asked, WHAT, &own))
        return 0;
    const char *text = own.count ? own.messages[0].text : "", *words = sentence(arena, text);
    refuse(arena, topology, shared->tables->path, words ? words : arena_strdup(arena, text), err);
    error_release(&own);
    return -1;
}

/* "host-0.gpu-1, host-1.gpu-0 and 6 more": the names of at most `most` hosts. */
static const char *listed(struct arena *arena, const struct file_names *names, int most)
{
    const char *text = "";

    for (int i = 0; i < names->count && i < most; i++)
        text = arena_printf(arena, "%s%s%s", text, i ? ", " : "", names->names[i]);
    if (names->count > most)
        text = arena_printf(arena, "%s and %d more", text, names->count - most);
    return text;
}

static int check_hosts(struct arena *arena, const struct topology *topology, const struct file_tables *tables,
                       struct error *err)
{
    if (!tables->missing.count)
        return 0;
    if (tables->name_count)
        return error_add(err, EXIT_INPUT, field_loc(&topology_table, topology, "hosts"), "topology: hosts: '%s' has no %s; expected a host "
                         "for each of %d GPUs, or of %d nodes; its hosts that are left: %s", topology->xml,
                         listed(arena, &tables->missing, FILE_NAMES), gpus_of(tables->hosts), tables->hosts.nodes,
                         tables->extra.count ? listed(arena, &tables->extra, FILE_NAMES) : "none");
    return error_add(err, EXIT_INPUT, place(topology), "topology: xml: of the %d GPUs of %d nodes '%s' lacks %d: %s; its hosts "
                     "that are none of them: %s; expected GPU M of node N as host-N.gpu-M, both from 0",
                     gpus_of(tables->hosts), tables->hosts.nodes, topology->xml, tables->missing.count,
                     listed(arena, &tables->missing, FILE_NAMES),
                     tables->extra.count ? listed(arena, &tables->extra, FILE_NAMES) : "none");
}

/* Links of ports and NICs are called gpu3.up and nic3.up. */
static int check_links(const struct topology *topology, const struct file_tables *tables, struct error *err)
{
    for (int i = 0; i < tables->links; i++) {
        const struct file_link *link = &tables->link[i];
        bool plain = *link->name, taken = !strncmp(link->name, "gpu", 3) || !strncmp(link->name, "nic", 3);

        for (const char *c = link->name; *c; c++)
            plain &= isalnum((unsigned char)*c) || strchr("_.:+-~", *c);
        if (!plain || (taken && isdigit((unsigned char)link->name[3])))
            return error_add(err, EXIT_INPUT, place(topology), "topology: xml: a link is called '%s'; expected letters, "
                             "digits, '_', '.', ':', '+' and '-', and not a name of the cluster's own links (gpu3.up, nic3.up)",
                             link->name);
        if (!(link->bandwidth > 0) || isinf(link->bandwidth) || !(link->latency >= 0) || isinf(link->latency))
            return error_add(err, EXIT_INPUT, place(topology), "topology: xml: link '%s' has %g B/s and %g s; expected a "
                             "bandwidth of more than 0, and a latency", link->name, link->bandwidth, link->latency);
    }
    return 0;
}

/* Counts for each link the GPUs whose routes to others cross it, or from others. */
static void count_ends(const struct simgrid_network *network, struct file_link *link, bool senders)
{
    int gpus = gpus_of(network->hosts), *last = xcalloc((size_t)network->links + 1, sizeof *last);

    for (int one = 0; one < gpus; one++)
        for (int other = 0; other < gpus; other++) {
            size_t pair = senders ? (size_t)one * (size_t)gpus + (size_t)other : (size_t)other * (size_t)gpus + (size_t)one;

            for (uint32_t i = network->begins[pair]; i < network->begins[pair + 1]; i++) {
                uint32_t at = network->crossed[i];

                if (last[at] == one + 1)
                    continue;
                last[at] = one + 1;
                *(senders ? &link[at].senders : &link[at].receivers) += 1;
            }
        }
    free(last);
}

static struct simgrid_network *keep(struct arena *arena, const struct topology *topology, const struct file_tables *tables,
                                    size_t pairs)
{
    struct simgrid_network *network = ARENA_ARRAY(arena, struct simgrid_network, 1);
    size_t nodes = (size_t)tables->hosts.nodes, crossed = tables->begins[pairs];
    struct file_link *link = ARENA_ARRAY(arena, struct file_link, tables->links + 1);
    uint32_t *begins = ARENA_ARRAY(arena, uint32_t, pairs + 1), *all = ARENA_ARRAY(arena, uint32_t, crossed + 1);
    int *first = ARENA_ARRAY(arena, int, nodes + 1), length = 0;
    struct digest digest;

    memcpy(first, tables->hosts.first, (nodes + 1) * sizeof *first);
    memcpy(link, tables->link, (size_t)tables->links * sizeof *link);
    memcpy(begins, tables->begins, (pairs + 1) * sizeof *begins);
    memcpy(all, tables->crossed, crossed * sizeof *all);
    *network = (struct simgrid_network){
        .hosts = {tables->hosts.nodes, first}, .links = tables->links, .link = link, .begins = begins, .crossed = all,
    };
    for (size_t pair = 0; pair < pairs; pair++)
        network->longest = (int)fmax(network->longest, begins[pair + 1] - begins[pair]);
    digest_init(&digest);
    digest_add(&digest, link, (size_t)tables->links * sizeof *link);
    digest_add(&digest, begins, (pairs + 1) * sizeof *begins);
    digest_add(&digest, all, crossed * sizeof *all);
    digest_end(&digest, network->digest);
    count_ends(network, link, true);
    count_ends(network, link, false);
    if (tables->taken.count)
        length = snprintf(network->said, sizeof network->said, "%s 0, 1, ... are the hosts %.160s%s",
                          tables->taken.count == gpus_of(tables->hosts) ? "GPUs" : "nodes", listed(arena, &tables->taken, FILE_NAMES),
                          tables->extra.count ? "; " : "");
    if (tables->extra.count)
        snprintf(network->said + length, sizeof network->said - (size_t)length, "of the hosts of %.40s %d are no GPU of the cluster: "
                 "%.60s", data_stem(arena, topology->xml), tables->extra.count, listed(arena, &tables->extra, 2));
    return network;
}

/* Refuses what SimGrid reads and its tables of links do not say. */
static int check_text(const struct topology *topology, const char *path, struct error *err)
{
    size_t length;
    char *text = file_read(path, "a platform", FILE_BYTES_MAX, place(topology), &length, err);
    int rc = text ? platform_text_check(path, text, length, err) : -1;

    free(text);
    return rc;
}

/* Reads the file anew. */
static const struct simgrid_network *read_network(struct arena *arena, const struct topology *topology, const char *path,
                                                  double size, struct hosts hosts, struct error *err)
{
    size_t gpus = (size_t)gpus_of(hosts);
    struct shared shared = {.pairs = gpus * gpus};
    const struct simgrid_network *network = NULL;

    if (check_text(topology, path, err) || share(&shared, err))
        return NULL;
    shared.tables->path = path;
    shared.tables->size = size;
    shared.tables->hosts = hosts;
    shared.tables->names = topology->hosts.items;
    shared.tables->name_count = topology->hosts.count;
    if (!read_file(arena, topology, &shared, err) && !check_hosts(arena, topology, shared.tables, err) &&
        !check_links(topology, shared.tables, err))
        network = keep(arena, topology, shared.tables, shared.pairs);
    unshare(&shared);
    return network;
}

/* The same file for the same GPUs, as it was read before. */
static const struct simgrid_network *network_of(struct arena *arena, const struct topology *topology, const char *path,
                                                const struct stat *found, struct hosts hosts, struct error *err)
{
    const long long stamp[] = {(long long)found->st_dev, (long long)found->st_ino, found->st_size, found->st_mtim.tv_sec,
                               found->st_mtim.tv_nsec};
    struct cache *cache = arena->cache;
    const struct simgrid_network *network;
    struct cache_key key = {0};
    struct arena own = {0};

    if (!cache)
        return read_network(arena, topology, path, (double)found->st_size, hosts, err);
    cache_key_text(&key, path);
    cache_key_add(&key, stamp, sizeof stamp);
    cache_key_add(&key, hosts.first, ((size_t)hosts.nodes + 1) * sizeof *hosts.first);
    for (size_t i = 0; i < topology->hosts.count; i++)
        cache_key_text(&key, ((const struct host_name *)topology->hosts.items)[i].name);
    network = cache_find(cache, CACHE_TOPOLOGY, key.items, key.count);
    if (!network && (network = read_network(&own, topology, path, (double)found->st_size, hosts, err)) &&
        !cache_put(cache, CACHE_TOPOLOGY, key.items, key.count, network, &own))
        arena_join(arena, &own);
    else if (!network)
        arena_release(&own);
    free(key.items);
    return network;
}

int simgrid_file_load(struct arena *arena, struct topology *topology, struct hosts hosts, struct error *err)
{
    struct stat found;
    const char *path;

    if (topology->kind != TOPOLOGY_XML)
        return 0;
    path = data_relative(arena, place(topology), topology->xml, err);
    if (!path || look(topology, path, &found, err) || !(path = data_absolute(arena, path, err)) ||
        !(topology->network = network_of(arena, topology, path, &found, hosts, err)))
        return -1;
    topology->xml = path;
    return 0;
}

static int file_links(struct topology_of topology)
{
    return topology.keys->network->links;
}

static size_t pair_of(const struct simgrid_network *network, struct topology_end src, struct topology_end dst)
{
    return (size_t)(network->hosts.first[src.node] + src.gpu) * (size_t)gpus_of(network->hosts) +
           (size_t)(network->hosts.first[dst.node] + dst.gpu);
}

static void file_way(struct topology_of topology, struct topology_end src, struct topology_end dst,
                     struct topology_way *way)
{
    const struct simgrid_network *network = topology.keys->network;
    size_t pair = pair_of(network, src, dst);

    for (uint32_t i = network->begins[pair]; i < network->begins[pair + 1]; i++) {
        way_through(way, (int)network->crossed[i]);
        way->latency += network->link[network->crossed[i]].latency;
    }
}

static struct topology_link file_link(struct topology_of topology, int link)
{
    const struct file_link *own = &topology.keys->network->link[link];

    return (struct topology_link){own->bandwidth, 1, own->latency, 0, 0, false};
}

static void file_name(struct topology_of topology, int link, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s", topology.keys->network->link[link].name);
}

static int file_block(struct topology_of topology)
{
    (void)topology;
    return 1;
}

/* If all GPUs send to distant GPUs at once, a link carries the messages of all pairs that may cross it: one for each
 * GPU that sends through it, or for each that receives. The messages of a NIC's GPUs together have the NIC's rate. */
static double file_crowding(struct topology_of topology, int node, int other, double nic)
{
    const struct simgrid_network *network = topology.keys->network;
    size_t pair = pair_of(network, (struct topology_end){.node = node}, (struct topology_end){.node = other});
    int gpus = network->hosts.first[node + 1] - network->hosts.first[node];
    double each = nic * fmin(1, (double)topology.nics / gpus), most = 1;

    for (uint32_t i = network->begins[pair]; i < network->begins[pair + 1]; i++) {
        const struct file_link *link = &network->link[network->crossed[i]];
        int ends = link->senders < link->receivers ? link->senders : link->receivers;

        most = fmax(most, ends * each / link->bandwidth);
    }
    return most;
}

const struct topology_class topology_file = {file_links, file_way, file_link, file_name, file_block, file_crowding};
