#include "import_nccl.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Programs of nccl-tests, and what dtsim calls what they measure. */
static const struct { const char *program, *op; } programs[] = {
    {"all_reduce_perf", "all_reduce"}, {"reduce_scatter_perf", "reduce_scatter"}, {"all_gather_perf", "all_gather"},
    {"broadcast_perf", "broadcast"},   {"alltoall_perf", "all_to_all"},           {"reduce_perf", "reduce"},
};

/* GPUs as their driver calls them, and the platform that has them. */
static const struct { const char *device, *platform; } devices[] = {
    {"V100-SXM2", "dgx-1-v100"}, {"A100-SXM4", "dgx-a100"}, {"H100 80GB HBM3", "dgx-h100"}, {"H200", "hgx-h200"},
};

enum { MOST_RANKS = 65536 };

struct reader {
    struct arena *arena;
    const char *file;
    struct error *err;
    int line;
    char *text, *at;             /* the line; where the next word begins */
    const char *op, *platform;
    int ranks, hosts, time_column;   /* time_column: words of a row before the time; 0: no header yet */
    const char *host;            /* of the last rank */
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

/* The next word of the line, NULL at its end; it ends with a NUL afterwards. */
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

/* "#  Rank  3 Group  0 Pid 1234 on host-1 device  3 [0x4e] NVIDIA A100-SXM4-80GB" */
static int read_rank(struct reader *reader)
{
    const char *host = strstr(reader->text, " on ");

    if (++reader->ranks > MOST_RANKS)
        return error_add(reader->err, EXIT_INPUT, here(reader, reader->text), "more than %d ranks", (int)MOST_RANKS);
    for (size_t i = 0; i < COUNT(devices); i++)
        if (strstr(reader->text, devices[i].device))
            reader->platform = devices[i].platform;
    if (!host)
        return 0;
    host += strlen(" on ") + strspn(host + strlen(" on "), " ");
    host = arena_strndup(reader->arena, host, strcspn(host, " \t"));
    reader->hosts += !reader->host || strcmp(reader->host, host) != 0;
    reader->host = host;
    return 0;
}

/* "#  size  count  type  redop  root  time  algbw ...": older versions have no root. */
static void read_header(struct reader *reader)
{
    char *name;

    reader->at = reader->text + 1;
    for (int column = 0; (name = word(reader)); column++)
        if (!strcmp(name, "time")) {
            reader->time_column = column;
            return;
        }
}

static int read_comment(struct reader *reader)
{
    const char *text = reader->text + 1 + strspn(reader->text + 1, " \t");

    for (size_t i = 0; i < COUNT(programs); i++) {
        const char *found = strstr(text, programs[i].program);

        /* "all_reduce_perf" holds "reduce_perf" */
        if (found && (found == text || !(isalnum((unsigned char)found[-1]) || found[-1] == '_')))
            reader->op = programs[i].op;
    }
    if (!strncmp(text, "Rank ", 5))
        return read_rank(reader);
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

static int read_row(struct reader *reader)
{
    struct node *row = node_mapping(reader->arena);
    char *size = word(reader), *time = size, *end = reader->text + strlen(reader->text);
    double bytes, us;

    if (!number(size, &bytes) || bytes > 1e15 || strspn(size, "0123456789") != strlen(size))
        return refuse(reader, size, "a size in bytes, or a comment");
    if (!reader->time_column)
        return error_add(reader->err, EXIT_INPUT, here(reader, size), "expected the header of the table ('# size count "
                         "type ... time algbw busbw') before its rows");
    if (!reader->op)
        return error_add(reader->err, EXIT_INPUT, here(reader, size), "expected the program's name in a comment before "
                         "the rows: '# Collective test starting: all_reduce_perf'; older versions do not print it: "
                         "add it");
    if (reader->ranks < 2)
        return error_add(reader->err, EXIT_INPUT, here(reader, size), "expected lines '# Rank 0 ... on HOST device 0 "
                         "...' before the rows, at least two");
    for (int column = 0; time && column < reader->time_column; column++)
        time = word(reader);
    if (!time)
        return error_add(reader->err, EXIT_INPUT, here(reader, end), "expected a time, found the end of the line");
    if (!number(time, &us) || us > 1e12)
        return refuse(reader, time, "a time in microseconds");
    if (bytes == 0 || us == 0)       /* of nothing, or too short to show */
        return 0;
    put(reader, row, "op", reader->op, "");
    node_put(reader->arena, row, "ranks",
             node_scalar(reader->arena, arena_printf(reader->arena, "%d", reader->ranks), false));
    if (reader->hosts > 1 && reader->ranks % reader->hosts == 0)
        node_put(reader->arena, row, "per_node",
                 node_scalar(reader->arena, arena_printf(reader->arena, "%d", reader->ranks / reader->hosts), false));
    put(reader, row, "bytes", size, " B");
    put(reader, row, "time", time, " us");
    node_append(reader->arena, reader->rows, row);
    return 0;
}

static int read_line(struct reader *reader)
{
    reader->text[strcspn(reader->text, "\r")] = 0;
    reader->at = reader->text;
    if (!reader->text[strspn(reader->text, " \t")])
        return 0;
    return reader->text[0] == '#' ? read_comment(reader) : read_row(reader);
}

static struct node *cluster_node(struct reader *reader)
{
    struct node *cluster = node_mapping(reader->arena);

    put(reader, cluster, "platform", reader->platform, "");
    node_put(reader->arena, cluster, "nodes",
             node_scalar(reader->arena, arena_printf(reader->arena, "%d", reader->hosts ? reader->hosts : 1), false));
    return cluster;
}

struct node *import_nccl_parse(struct arena *arena, const char *file, const char *text, size_t length,
                              struct error *err)
{
    struct reader reader = {.arena = arena, .file = file, .err = err, .rows = node_sequence(arena)};
    struct node *root = node_mapping(arena);
    const char *end = text + length;
    int status = 0;

    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t size = (size_t)((stop ? stop : end) - line);

        reader.line++;
        reader.text = arena_strndup(arena, line, size);
        if (strlen(reader.text) < size)
            status = error_add(err, EXIT_INPUT, here(&reader, reader.text + strlen(reader.text)),
                               "expected text, found a zero byte");
        else
            status |= read_line(&reader);
        line += size + 1;
    }
    if (!status && !reader.rows->count)
        status = error_add(err, EXIT_INPUT, (struct loc){file, reader.line ? reader.line : 1, 1},
                           "expected rows of nccl-tests (size, count, type, ... time), found none");
    if (status)
        return NULL;
    put(&reader, root, "title", reader.op, arena_printf(arena, " on %d GPUs", reader.ranks));
    node_put(arena, root, "source", node_scalar(arena, file, true));
    if (reader.platform)
        node_put(arena, root, "cluster", cluster_node(&reader));
    node_put(arena, root, "rows", reader.rows);
    return root;
}

struct node *import_nccl_load(struct arena *arena, const char *path, struct error *err)
{
    size_t length;
    char *text = file_read(path, "output of nccl-tests", IMPORT_NCCL_MAX_BYTES, (struct loc){0}, &length, err);
    struct node *root = text ? import_nccl_parse(arena, path, text, length, err) : NULL;

    free(text);
    return root;
}
