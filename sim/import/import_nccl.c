#include "import/import_nccl.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Programs of nccl-tests, and the names of their operations in dtsim. */
static const struct { const char *program, *op; } programs[] = {
    {"all_reduce_perf", "all_reduce"}, {"reduce_scatter_perf", "reduce_scatter"}, {"all_gather_perf", "all_gather"},
    {"broadcast_perf", "broadcast"},   {"alltoall_perf", "all_to_all"},           {"reduce_perf", "reduce"},
};

/* GPUs, as their driver calls them after "NVIDIA " or "Tesla ", and the platform that has them. `whole`: the name must
 * be equal, because longer ones ("H200 NVL") are in other machines; else the name need only begin so. */
static const struct { const char *device, *platform; bool whole; } devices[] = {
    {"V100-SXM2", "dgx-1-v100", false}, {"V100-SXM3", "dgx-2", false}, {"A100-SXM4", "dgx-a100", false},
    {"H100 80GB HBM3", "dgx-h100", false}, {"H200", "hgx-h200", true},
};

enum { MOST_RANKS = 65536 };

struct reader {
    struct arena *arena;
    const char *file;
    struct error *err;
    int line;
    char *text, *at;             /* the line; the rest of it, which has not been read */
    const char *unnamed;         /* the operation of runs that do not name their program; NULL: unknown */
    const char *op, *platform;
    int ranks, time_column;      /* time_column: words of a row before the time; 0: no header yet */
    bool measured;               /* rows were read since `op` was set: the next run must name its program again */
    bool refused;                /* this run lacks a line before its rows, and that was reported once */
    bool counts_wrong;           /* the header has "#wrong" after the time and its two bandwidths */
    const char *device;          /* of all ranks */
    struct { const char **items; size_t count, capacity; } hosts;
    int most_hosts;              /* maximum over the runs in the file */
    const char *title_op;        /* the operation of all rows; NULL: none yet, or they differ */
    int title_ranks;
    struct node *rows;
};

static struct loc here(const struct reader *reader, const char *at)
{
    return (struct loc){reader->file, reader->line, (int)(at - reader->text) + 1};
}

static int refuse(struct reader *reader, const char *at, const char *expected)
{
    char shown[CLIP_SIZE];

    return error_add(reader->err, EXIT_INPUT, here(reader, at), "expected %s, found '%s'", expected,
                     text_clip(at, shown, sizeof shown));
}

/* The next word of the line, NULL at its end. The space after it becomes a NUL. */
static char *word(struct reader *reader)
{
    char *begin = reader->at + strspn(reader->at, " \t");

    if (!*begin)
        return NULL;
    reader->at = begin + strcspn(begin, " \t");
    if (*reader->at)
        *reader->at++ = 0;
    return begin;
}

/* Adds a host unless it is known: the ranks of a host need not be in one block. */
static void add_host(struct reader *reader, const char *host)
{
    for (size_t i = reader->hosts.count; i > 0; i--)
        if (!strcmp(reader->hosts.items[i - 1], host))
            return;
    *GROW(&reader->hosts) = host;
    if ((int)reader->hosts.count > reader->most_hosts)
        reader->most_hosts = (int)reader->hosts.count;
}

static int read_device(struct reader *reader, const char *device)
{
    const char *name = device;

    name += !strncmp(name, "NVIDIA ", 7) ? 7 : 0;
    name += !strncmp(name, "Tesla ", 6) ? 6 : 0;
    if (reader->device && strcmp(reader->device, device) != 0)
        return error_add(reader->err, EXIT_INPUT, here(reader, device), "expected GPUs of one kind, found '%s' and "
                         "'%s'", device, reader->device);
    reader->device = device;
    for (size_t i = 0; i < COUNT(devices); i++)
        if (!strncmp(name, devices[i].device, strlen(devices[i].device)) &&
            (!devices[i].whole || !strcmp(name, devices[i].device)))
            reader->platform = devices[i].platform;
    return 0;
}

/* Reads "#  Rank  3 Group  0 Pid 1234 on host-1 device  3 [0x4e] NVIDIA A100-SXM4-80GB"; rank 0 begins another run. */
static int read_rank(struct reader *reader, const char *rank)
{
    const char *host = strstr(reader->text, " on "), *device = strstr(reader->text, "] ");

    if (strtol(rank, NULL, 10) == 0) {
        reader->ranks = 0;
        reader->hosts.count = 0;
        reader->refused = false;
        /* a program's name stands before the ranks of its run */
        reader->op = reader->measured ? reader->unnamed : reader->op;
    }
    if (++reader->ranks > MOST_RANKS)
        return error_add(reader->err, EXIT_INPUT, here(reader, reader->text), "more than %d ranks", (int)MOST_RANKS);
    if (host) {
        host += strlen(" on ") + strspn(host + strlen(" on "), " ");
        add_host(reader, arena_strndup(reader->arena, host, strcspn(host, " \t")));
    }
    for (size_t length = device ? strlen(reader->text) : 0; length && reader->text[length - 1] == ' '; length--)
        reader->text[length - 1] = '\0';
    return device && strlen(device) > 2 ? read_device(reader, device + 2) : 0;
}

/* Reads "#  size  count  type  redop  root  time  algbw  busbw  #wrong ..."; older versions have no root, and an error
 * instead of #wrong. */
static void read_header(struct reader *reader)
{
    char *name;

    reader->at = reader->text + strspn(reader->text, "# \t");
    reader->time_column = 0;
    reader->counts_wrong = false;
    for (int column = 0; (name = word(reader)); column++) {
        if (!strcmp(name, "time") && !reader->time_column)
            reader->time_column = column;
        if ((!strcmp(name, "#wrong") || !strcmp(name, "wrong")) && column == reader->time_column + 3)
            reader->counts_wrong = true;
    }
}

static int read_comment(struct reader *reader)
{
    const char *text = reader->text + strspn(reader->text, "# \t");

    for (size_t i = 0; i < COUNT(programs); i++) {
        const char *found = strstr(text, programs[i].program);

        /* "all_reduce_perf" contains "reduce_perf" */
        if (!found || (found != text && (isalnum((unsigned char)found[-1]) || found[-1] == '_')))
            continue;
        reader->op = programs[i].op;
        reader->measured = false;
    }
    if (!strncmp(text, "Rank ", 5))
        return read_rank(reader, text + 5);
    if (!strncmp(text, "size ", 5) || !strncmp(text, "size\t", 5))
        read_header(reader);
    return 0;
}

static bool number(const char *text, double *value)
{
    char *end;

    *value = strtod(text, &end);
    return end != text && !*end && isfinite(*value) && *value >= 0 && isdigit((unsigned char)*text);
}

static void put(struct reader *reader, struct node *mapping, const char *key, const char *value, const char *unit)
{
    node_put(reader->arena, mapping, key, node_scalar(reader->arena, arena_printf(reader->arena, "%s%s", value, unit),
                                                      false));
}

/* Checks the lines that rows need before them. A missing line is reported once per run. */
static int check_head(struct reader *reader, const char *size)
{
    if (!reader->time_column)
        return error_add(reader->err, EXIT_INPUT, here(reader, size), "expected the header of the table ('# size count "
                         "type ... time algbw busbw') before its rows");
    if (reader->refused)
        return -1;
    reader->refused = true;
    if (!reader->op)
        return error_add(reader->err, EXIT_INPUT, here(reader, size), "expected the program's name in a comment before "
                         "the rows: '# Collective test starting: all_reduce_perf'; for older versions, which do not "
                         "print it, say 'dtsim import nccl-tests FILE --op all_reduce'");
    if (reader->ranks < 2)
        return error_add(reader->err, EXIT_INPUT, here(reader, size), "expected lines '# Rank 0 ... on HOST device 0 "
                         "...' before the rows, at least two");
    reader->refused = false;
    return 0;
}

/* Checks that time and bandwidth agree with the size. If they do not, a number was cut or is in another column. */
static int check_bandwidth(struct reader *reader, const char *time, double bytes, double us)
{
    const char *algbw = word(reader);
    double expected = bytes / us / 1e3, printed;

    if (!algbw)
        return error_add(reader->err, EXIT_INPUT, here(reader, reader->at), "expected the bandwidth after the time "
                         "(algbw), found the end of the line");
    if (!number(algbw, &printed))
        return refuse(reader, algbw, "the bandwidth behind the time (algbw, GB/s)");
    /* both are rounded: the bandwidth to two decimals, a short time to few digits */
    if (fabs(printed - expected) > 0.02 * expected + 0.011)
        return error_add(reader->err, EXIT_INPUT, here(reader, time), "%.0f bytes in %s us are %.2f GB/s, but algbw "
                         "is %s; expected both to agree", bytes, time, expected, algbw);
    return 0;
}

static int check_results(struct reader *reader)
{
    const char *busbw = word(reader), *wrong = busbw ? word(reader) : NULL;
    double count;

    if (reader->counts_wrong && wrong && number(wrong, &count) && count > 0)
        return error_add(reader->err, EXIT_INPUT, here(reader, wrong), "%s results were wrong: the times are not of a "
                         "correct collective", wrong);
    return 0;
}

static void add_row(struct reader *reader, const char *size, const char *time)
{
    struct node *row = node_mapping(reader->arena);
    int hosts = (int)reader->hosts.count;

    put(reader, row, "op", reader->op, "");
    node_put(reader->arena, row, "ranks",
             node_scalar(reader->arena, arena_printf(reader->arena, "%d", reader->ranks), false));
    /* left out, ranks fill whole nodes */
    if (hosts > 1 && reader->ranks % hosts == 0)
        node_put(reader->arena, row, "per_node",
                 node_scalar(reader->arena, arena_printf(reader->arena, "%d", reader->ranks / hosts), false));
    put(reader, row, "bytes", size, " B");
    put(reader, row, "time", time, " us");
    if (!reader->rows->count) {
        reader->title_op = reader->op;
        reader->title_ranks = reader->ranks;
    } else if (reader->title_op != reader->op || reader->title_ranks != reader->ranks) {
        reader->title_op = NULL;
    }
    node_append(reader->arena, reader->rows, row);
    reader->measured = true;
}

static int read_row(struct reader *reader)
{
    char *size = word(reader), *time = size, *end = reader->text + strlen(reader->text);
    double bytes, us;

    if (!number(size, &bytes) || bytes > 1e15)
        return refuse(reader, size, "a size in bytes");
    if (check_head(reader, size))
        return -1;
    for (int column = 0; time && column < reader->time_column; column++)
        time = word(reader);
    if (!time)
        return error_add(reader->err, EXIT_INPUT, here(reader, end), "expected a time, found the end of the line");
    if (!number(time, &us) || us > 1e12)
        return refuse(reader, time, "a time in microseconds");
    if (bytes == 0 || us == 0)       /* no bytes, or a time too short to print */
        return 0;
    if (check_bandwidth(reader, time, bytes, us) || check_results(reader))
        return -1;
    add_row(reader, size, time);
    return 0;
}

/* Rows begin with a size; below the header of a table, a line that is cut off after the size is a row too. Other lines
 * that are not comments come from other programs: "NCCL version 2.30.3+cuda13.0", warnings of MPI, commands. */
static bool is_row(const struct reader *reader)
{
    const char *size = reader->text + strspn(reader->text, " \t");
    size_t digits = strspn(size, "0123456789");

    return digits && (size[digits] == ' ' || size[digits] == '\t' || (!size[digits] && reader->time_column));
}

static int read_line(struct reader *reader)
{
    reader->text[strcspn(reader->text, "\r")] = 0;
    reader->at = reader->text;
    if (!reader->text[strspn(reader->text, " \t")])
        return 0;
    if (reader->text[strspn(reader->text, " \t")] == '#')
        return read_comment(reader);
    return is_row(reader) ? read_row(reader) : 0;
}

static struct node *cluster_node(struct reader *reader)
{
    struct node *cluster = node_mapping(reader->arena);

    put(reader, cluster, "platform", reader->platform, "");
    node_put(reader->arena, cluster, "nodes",
             node_scalar(reader->arena, arena_printf(reader->arena, "%d", reader->most_hosts ? reader->most_hosts : 1),
                         false));
    return cluster;
}

struct node *import_nccl_parse(struct arena *arena, const char *file, const char *text, size_t length,
                               const char *op, struct error *err)
{
    struct reader reader = {
        .arena = arena, .file = file, .err = err, .rows = node_sequence(arena), .unnamed = op, .op = op,
    };
    struct node *root = node_mapping(arena);
    const char *end = text + length;
    int status = 0;

    for (const char *line = text + text_mark(text, length); line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t size = (size_t)((stop ? stop : end) - line);

        reader.line++;
        reader.text = arena_strndup(arena, line, size);
        if (strlen(reader.text) < size)
            status = error_add(err, EXIT_INPUT, here(&reader, reader.text + strlen(reader.text)),
                               "expected text, found a zero byte");
        else if (read_line(&reader))
            status = -1;
        line += size + 1;
    }
    if (!status && !reader.rows->count)
        status = error_add(err, EXIT_INPUT, (struct loc){file, reader.line ? reader.line : 1, 1},
                           "expected rows of nccl-tests (size, count, type, ... time), found none");
    free(reader.hosts.items);
    if (status)
        return NULL;
    put(&reader, root, "title", reader.title_op ? reader.title_op : "collectives",
        reader.title_op ? arena_printf(arena, " on %d GPUs", reader.title_ranks) : "");
    node_put(arena, root, "source", node_scalar(arena, file, true));
    if (reader.platform)
        node_put(arena, root, "cluster", cluster_node(&reader));
    node_put(arena, root, "rows", reader.rows);
    return root;
}

struct node *import_nccl_load(struct arena *arena, const char *path, const char *op, struct error *err)
{
    size_t length;
    char *text = file_read(path, "output of nccl-tests", IMPORT_NCCL_MAX_BYTES, (struct loc){0}, &length, err);
    struct node *root = text ? import_nccl_parse(arena, path, text, length, op, err) : NULL;

    free(text);
    return root;
}
