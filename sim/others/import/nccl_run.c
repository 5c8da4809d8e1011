#include "import/nccl_run.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "collective/collective.h"

/* Programs of nccl-tests that measure an operation of dtsim. The others that it had in July 2026 (src/Makefile) have no
 * counterpart here: alltoallv_perf, gather_perf, hypercube_perf, scatter_perf, sendrecv_perf. */
static const struct { const char *stem; enum collective_op op; } programs[] = {
    {"all_reduce", COLLECTIVE_ALL_REDUCE}, {"reduce_scatter", COLLECTIVE_REDUCE_SCATTER},
    {"all_gather", COLLECTIVE_ALL_GATHER}, {"broadcast", COLLECTIVE_BROADCAST},
    {"alltoall", COLLECTIVE_ALL_TO_ALL},   {"reduce", COLLECTIVE_REDUCE},
};

enum { MOST_NAME = 64 };

void nccl_run_release(struct nccl_run *run)
{
    for (size_t i = 0; i < run->hosts.count; i++)
        free(run->hosts.items[i].name);
    free(run->hosts.items);
    free(run->places);
    free(run->ranks.items);
    free(run->program);
    *run = (struct nccl_run){0};
}

void nccl_run_begin(struct nccl_run *run, int line)
{
    nccl_run_release(run);
    *run = (struct nccl_run){.op = -1, .line = line, .highest = -1, .repeated = -1};
}

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

const char *nccl_program_in(const char *text, size_t *length)
{
    for (const char *found = text; (found = strstr(found, "_perf")); found++) {
        const char *begin = found, *end = found + strlen("_perf");

        while (begin > text && found - begin < MOST_NAME && in_name(begin[-1]))
            begin--;
        /* a suffix of the build (NAME_SUFFIX of its Makefile): "_mpi" */
        if (*end == '_')
            end += strspn(end, "_abcdefghijklmnopqrstuvwxyz0123456789");
        if (begin == found || in_name(*end))
            continue;
        *length = (size_t)(end - begin);
        return begin;
    }
    return NULL;
}

int nccl_program_op(const char *name)
{
    for (size_t i = 0; i < COUNT(programs); i++) {
        size_t length = strlen(programs[i].stem);

        if (!strncmp(name, programs[i].stem, length) && !strncmp(name + length, "_perf", 5))
            return (int)programs[i].op;
    }
    return -1;
}

void nccl_run_name(struct nccl_run *run, const char *program, size_t length)
{
    free(run->program);
    run->program = xcalloc(length + 1, 1);
    memcpy(run->program, program, length);
    run->op = nccl_program_op(run->program);
}

/* Where the number of the host of that name stands, or is to stand: 1 more than its index, 0 where there is none yet. */
static uint32_t *place_of(const struct nccl_run *run, const char *name, size_t length)
{
    size_t at = (size_t)hash_more(HASH_START, name, length) & (run->places_size - 1);

    for (uint32_t number; (number = run->places[at]); at = (at + 1) & (run->places_size - 1)) {
        const char *other = run->hosts.items[number - 1].name;

        if (strlen(other) == length && !memcmp(other, name, length))
            break;
    }
    return &run->places[at];
}

/* Keeps at most half of the places taken. */
static void make_places(struct nccl_run *run)
{
    if (run->hosts.count * 2 < run->places_size)
        return;
    free(run->places);
    run->places_size = run->places_size ? 2 * run->places_size : 16;
    run->places = xcalloc(run->places_size, sizeof *run->places);
    for (size_t i = 0; i < run->hosts.count; i++)
        *place_of(run, run->hosts.items[i].name, strlen(run->hosts.items[i].name)) = (uint32_t)i + 1;
}

/* Adds a rank of a host: the ranks of a host need not be in one block. */
static void add_host(struct nccl_run *run, const char *name, size_t length)
{
    struct nccl_host *host;
    uint32_t *place;

    make_places(run);
    place = place_of(run, name, length);
    if (*place) {
        run->hosts.items[*place - 1].ranks++;
        return;
    }
    host = GROW(&run->hosts);
    *host = (struct nccl_host){xcalloc(length + 1, 1), 1};
    memcpy(host->name, name, length);
    *place = (uint32_t)run->hosts.count;
}

static void add_rank(struct nccl_run *run, int rank)
{
    while (run->ranks.count <= (size_t)rank)
        *GROW(&run->ranks) = false;
    if (run->ranks.items[rank] && run->repeated < 0)
        run->repeated = rank;
    run->ranks.items[rank] = true;
    run->highest = rank > run->highest ? rank : run->highest;
    run->listed++;
}

int nccl_run_rank(struct nccl_run *run, char *words, char **device)
{
    const char *host = strstr(words, " on "), *group = strstr(words, " Group ");
    char *bus = strstr(words, "] "), *end = words + strlen(words);
    long long rank = strtoll(words + strlen("Rank "), NULL, 10);

    while (end > words && end[-1] == ' ')
        *--end = '\0';
    *device = bus && bus[2] ? bus + 2 : NULL;
    /* nccl-tests cuts a long list of one process so (MAX_LINE in src/util.cu) */
    if (end - words >= 3 && !strcmp(end - 3, "...")) {
        run->elided = true;
        *device = NULL;
        return 0;
    }
    if (rank < 0 || rank >= NCCL_MOST_RANKS)
        return -1;
    add_rank(run, (int)rank);
    if (group) {
        int number = atoi(group + strlen(" Group "));

        run->groups = run->listed == 1 || (run->groups == 1 && number == run->group) ? 1 : 2;
        run->group = number;
    }
    if (host) {
        host += strlen(" on ") + strspn(host + strlen(" on "), " ");
        add_host(run, host, strcspn(host, " \t"));
    }
    return 0;
}

void nccl_run_missing(const struct nccl_run *run, char *text, size_t size)
{
    size_t length = 0;

    *text = '\0';
    for (int rank = 0, next; rank <= run->highest; rank = next) {
        const bool *listed = run->ranks.items;

        for (next = rank + 1; next <= run->highest && listed[next] == listed[rank];)
            next++;
        if (listed[rank])
            continue;
        length += (size_t)snprintf(text + length, size - length, "%s%d", length ? ", " : "", rank);
        if (length < size && next > rank + 1)
            length += (size_t)snprintf(text + length, size - length, " to %d", next - 1);
        if (length + 32 > size) {
            snprintf(text + length, size > length ? size - length : 0, ", ...");
            return;
        }
    }
}

int nccl_run_per_node(const struct nccl_run *run)
{
    const struct nccl_host *hosts = run->hosts.items;
    int most = 0, fewer = 0;

    if (run->hosts.count < 2)
        return 0;
    for (size_t i = 0; i < run->hosts.count; i++)
        most = hosts[i].ranks > most ? hosts[i].ranks : most;
    for (size_t i = 0; i < run->hosts.count; i++)
        fewer += hosts[i].ranks < most;
    return fewer > 1 ? -1 : most;            /* the last node may have room left */
}

/* A number as it was printed, and half of the unit of its last digit; false: it is none. */
static bool printed(const char *text, double *value, double *half)
{
    const char *point = strchr(text, '.');
    char *end;

    *value = strtod(text, &end);
    *half = 0.5 * pow(10, point ? -(double)strspn(point + 1, "0123456789") : 0);
    return end != text && !*end && isfinite(*value) && *value > 0;
}

/* The least and the greatest busbw / algbw before rounding. */
static bool ratio(const char *algbw, const char *busbw, double *least, double *most)
{
    double algorithm, bus, algorithm_half, bus_half;

    if (!printed(algbw, &algorithm, &algorithm_half) || !printed(busbw, &bus, &bus_half) ||
        algorithm <= algorithm_half)
        return false;
    *least = (bus - bus_half) / (algorithm + algorithm_half) * (1 - 1e-9);
    *most = (bus + bus_half) / (algorithm - algorithm_half) * (1 + 1e-9);
    return true;
}

bool nccl_ranks_agree(enum collective_op op, int n, const char *algbw, const char *busbw)
{
    double least, most, factor = collective_bus_factor(op, n);

    return !ratio(algbw, busbw, &least, &most) || (factor >= least && factor <= most);
}

int nccl_ranks_of(enum collective_op op, const char *algbw, const char *busbw)
{
    double least, most;
    int found = 0;

    if (!ratio(algbw, busbw, &least, &most) || collective_bus_factor(op, 2) == collective_bus_factor(op, 3))
        return 0;
    for (int n = 2; n <= NCCL_MOST_RANKS; n++) {
        double factor = collective_bus_factor(op, n);

        if (factor < least || factor > most)
            continue;
        if (found)
            return 0;
        found = n;
    }
    return found;
}
