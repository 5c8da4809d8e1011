#include "import/import_nccl.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "collective/collective.h"
#include "config/conf.h"
#include "import/nccl_internal.h"

static const struct nccl_device devices[] = {
    {"V100-SXM2", "dgx-1-v100", false, false}, {"V100-SXM3", "dgx-2", false, false},
    {"A100-SXM4", "dgx-a100", false, false},   {"H100 80GB HBM3", "dgx-h100", false, false},
    {"H200", "hgx-h200", true, false},         {"B200", "dgx-b200", true, false},
    {"B300", "dgx-b300", true, false},         {"B300 SXM6", "dgx-b300", false, false},
    {"GB200", "gb200-nvl72", true, true},      {"GB300", "gb300-nvl72", true, true},
};

enum { MOST_STREAMS = 256, MOST_MARK = 1024 };

/* A list of ranks that is missing or shortened, and what would help. It is said when the run ends: its largest row
 * tells the number of ranks best. */
static int refuse_ranks(struct reader *reader, const struct nccl_run *run, const struct nccl_table *table)
{
    int ranks = table->op < 0 ? 0 : nccl_ranks_of((enum collective_op)table->op, table->algbw, table->busbw);
    char missing[160], hint[80] = "";

    nccl_run_missing(run, missing, sizeof missing);
    if (ranks > run->highest)
        snprintf(hint, sizeof hint, " (busbw / algbw is that of %d ranks)", ranks);
    if (run->highest < 0)
        return error_add(reader->err, EXIT_INPUT, table->first,
                         "expected lines '# Rank 0 ... on HOST device 0 ...' "
                         "before the rows, at least two, found none; say how many ranks there were: '--ranks N "
                         "--per-node M'%s",
                         hint);
    if (run->highest == 0 && !run->elided)
        return error_add(reader->err, EXIT_INPUT, table->first,
                         "expected lines '# Rank 0 ... on HOST device 0 ...' "
                         "before the rows, at least two, found one%s",
                         hint);
    return error_add(reader->err, EXIT_INPUT, table->first,
                     "the list of ranks was shortened: %s%s%s; say how many "
                     "there were: '--ranks N --per-node M'%s",
                     *missing ? "it lacks ranks " : "'...' follows its last rank, ",
                     *missing ? missing : arena_printf(reader->arena, "%d", run->highest),
                     *missing && run->elided ? ", where '...' stands" : "", hint);
}

static void end_run(struct reader *reader, struct stream *stream)
{
    if (stream->table.state == REFUSED)
        refuse_ranks(reader, &stream->run, &stream->table);
    nccl_run_begin(&stream->run, reader->line);
    stream->table = (struct nccl_table){.op = -1};
}

/* The stream of the lines with this mark; NULL: there is none. */
static struct stream *stream_find(const struct reader *reader, const char *source)
{
    for (size_t i = 0; i < reader->streams.count; i++)
        if (text_same(reader->streams.items[i].source, source))
            return &reader->streams.items[i];
    return NULL;
}

/* The same, made where there is none; NULL after an error. */
static struct stream *stream_of(struct reader *reader, const char *content)
{
    struct stream *stream;
    char source[SOURCE_SIZE];

    nccl_log_source(reader->text, (size_t)(content - reader->text), source, sizeof source);
    stream = stream_find(reader, source);
    if (stream)
        return stream;
    if (reader->streams.count == MOST_STREAMS) {
        error_add(reader->err, EXIT_INPUT, nccl_loc(reader, reader->text),
                  "lines of nccl-tests have more than %d different "
                  "marks before them",
                  (int)MOST_STREAMS);
        return NULL;
    }
    stream = GROW(&reader->streams);
    *stream = (struct stream){.table.op = -1};
    memcpy(stream->source, source, sizeof source);
    nccl_run_begin(&stream->run, reader->line);
    return stream;
}

static int read_device(struct reader *reader, const char *device)
{
    const char *name = device;

    name += !strncmp(name, "NVIDIA ", 7) ? 7 : 0;
    name += !strncmp(name, "Tesla ", 6) ? 6 : 0;
    if (reader->device && strcmp(reader->device, device) != 0)
        return error_add(reader->err, EXIT_INPUT, nccl_loc(reader, device),
                         "expected GPUs of one kind, found '%s' and "
                         "'%s'",
                         device, reader->device);
    if (reader->device)
        return 0;
    reader->device = arena_strdup(reader->arena, device);
    for (size_t i = 0; i < COUNT(devices); i++)
        if (!strncmp(name, devices[i].name, strlen(devices[i].name)) &&
            (!devices[i].whole || !strcmp(name, devices[i].name)))
            reader->known = &devices[i];
    return 0;
}

static int read_rank(struct reader *reader, struct stream *stream, char *words)
{
    char *device;

    if (stream->run.header)
        end_run(reader, stream);
    if (nccl_run_rank(&stream->run, words, &device))
        return error_add(reader->err, EXIT_INPUT, nccl_loc(reader, words), "expected a rank from 0 to %d",
                         NCCL_MOST_RANKS - 1);
    return device ? read_device(reader, device) : 0;
}

/* The program that a comment names. */
static void read_program(struct reader *reader, struct stream *stream, const char *words, bool starting)
{
    size_t length;
    const char *program = nccl_program_in(words, &length);

    if (!program && starting) { /* a program of another name */
        program = words + strlen("Collective test starting:");
        program += strspn(program, " \t");
        length = strcspn(program, " \t");
    }
    if (!program || !length)
        return;
    if (stream->run.header || (starting && stream->run.program))
        end_run(reader, stream);
    nccl_run_name(&stream->run, program, length);
}

static int read_comment(struct reader *reader, struct stream *stream, char *content)
{
    const char *found;
    enum nccl_comment comment = nccl_comment_at(content, &found);
    char *words = content + (found - content);
    const char *agg = strstr(words, "agg iters: ");

    switch (comment) {
    case NCCL_RANK:
        return read_rank(reader, stream, words);
    case NCCL_HEADER:
        if (stream->run.header)
            end_run(reader, stream);
        nccl_header(&stream->table.columns, words);
        stream->run.header = stream->table.open = stream->table.columns.time >= 0;
        return 0;
    case NCCL_FOOTER:
        stream->table.open = false;
        return 0;
    case NCCL_CONCLUDED:
        end_run(reader, stream);
        return 0;
    case NCCL_VERSION:
    case NCCL_ARGUMENTS:
    case NCCL_DEVICES:
        if (stream->run.header || (comment == NCCL_ARGUMENTS && stream->run.listed))
            end_run(reader, stream);
        if (comment == NCCL_ARGUMENTS && agg)
            stream->run.aggregated = atoi(agg + strlen("agg iters: "));
        return 0;
    default:
        stream->run.elided |= stream->run.listed && !stream->run.header && nccl_log_ellipsis(words);
        read_program(reader, stream, words, comment == NCCL_STARTING);
        return 0;
    }
}

/* A line that is neither: a list of ranks that is cut short by "...", or a command that names a program. */
static void read_other(struct reader *reader)
{
    size_t length;
    const char *program = nccl_program_in(reader->text, &length);
    char source[SOURCE_SIZE];

    if (program)
        reader->mentioned = arena_strndup(reader->arena, program, length);
    for (const char *at = reader->text; (at = strpbrk(at, "#.[(<\xE2")); at += strspn(at, "#.[(<\xE2 \t")) {
        struct stream *stream;

        if (!nccl_log_ellipsis(at))
            continue;
        nccl_log_source(reader->text, (size_t)(at - reader->text), source, sizeof source);
        stream = stream_find(reader, source);
        if (stream && stream->run.listed && !stream->run.header)
            stream->run.elided = true;
        return;
    }
}

/* Where a row begins that was cut off, or whose type is not known: below the header of a table, a number behind the
 * mark of the table's lines. NULL: the line is none. Other lines that are no comments come from other programs: "NCCL
 * version 2.30.3+cuda13.0", warnings of MPI, commands. */
static char *cut_row(const struct reader *reader)
{
    char source[SOURCE_SIZE];

    for (char *at = reader->text; (at = strpbrk(at, "0123456789")) && at < reader->text + MOST_MARK;) {
        size_t digits = strspn(at, "0123456789");

        if ((at == reader->text || !isalnum((unsigned char)at[-1])) && (!at[digits] || strchr(" \t", at[digits]))) {
            const struct stream *stream;

            nccl_log_source(reader->text, (size_t)(at - reader->text), source, sizeof source);
            stream = stream_find(reader, source);
            if (stream && stream->table.open)
                return at;
        }
        at += digits;
    }
    return NULL;
}

static int read_line(struct reader *reader)
{
    char *content, *comment;
    struct stream *stream;

    nccl_log_clean(reader->text);
    content = nccl_log_content(reader->text);
    comment = reader->text + strspn(reader->text, " \t");
    if (!content && *comment == '#')
        content = comment;
    if (!content)
        content = cut_row(reader);
    if (!content) {
        read_other(reader);
        return 0;
    }
    stream = stream_of(reader, content);
    if (!stream)
        return -1;
    return *content == '#' ? read_comment(reader, stream, content) : nccl_row(reader, stream, content);
}

static struct node *cluster_node(struct reader *reader)
{
    struct node *cluster = node_mapping(reader->arena);

    nccl_put(reader, cluster, "platform", reader->known->platform, "");
    if (!reader->known->rack)
        nccl_put_number(reader, cluster, "nodes", reader->most_nodes ? reader->most_nodes : 1);
    return cluster;
}

static void write_notes(const struct reader *reader, const struct remarks *remarks, const char *what, FILE *notes)
{
    for (size_t i = 0; i < remarks->count; i++) {
        const struct remark *remark = &remarks->items[i];

        text_write(TEXT_LINE, reader->file, notes);
        fprintf(notes, ": %s: %zu %s of ", what, remark->count, remark->count == 1 ? "row" : "rows");
        text_write(TEXT_LINE, remark->name, notes);
        fprintf(notes, ": %s\n", remark->why);
    }
}

static int read_text(struct reader *reader, const char *text, size_t length)
{
    const char *end = text + length;
    int status = 0;

    for (const char *line = text + text_mark(text, length); line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t size = (size_t)((stop ? stop : end) - line);

        reader->line++;
        reader->text = arena_strndup(reader->arena, line, size);
        if (strlen(reader->text) < size)
            status = error_add(reader->err, EXIT_INPUT, nccl_loc(reader, reader->text + strlen(reader->text)),
                               "expected text, found a zero byte");
        else if (read_line(reader))
            status = -1;
        line += size + 1;
    }
    for (size_t i = 0; i < reader->streams.count; i++)
        end_run(reader, &reader->streams.items[i]);
    return status;
}

/* Nothing was read, and no line is wrong: the file is of something else, or all of it was left out. */
static int refuse_nothing(const struct reader *reader)
{
    const struct remark *left = reader->left.items;

    if (!reader->left.count)
        return error_add(reader->err, EXIT_INPUT, (struct loc){reader->file, reader->line ? reader->line : 1, 1},
                         "expected rows of nccl-tests (size, count, type, ... time), found none");
    return error_add(reader->err, EXIT_INPUT, (struct loc){.file = reader->file}, "no row is left: %zu of %s: %s",
                     left->count, left->name, left->why);
}

static struct node *table_node(struct reader *reader)
{
    struct node *root = node_mapping(reader->arena);

    if (reader->title_ranks)
        nccl_put(reader, root, "title", collective_op_names[reader->title_op],
                 arena_printf(reader->arena, " on %d GPUs", reader->title_ranks));
    else
        nccl_put(reader, root, "title", "collectives", "");
    node_put(reader->arena, root, "source", node_scalar(reader->arena, reader->file, true));
    if (reader->known)
        node_put(reader->arena, root, "cluster", cluster_node(reader));
    node_put(reader->arena, root, "rows", reader->rows);
    return root;
}

struct node *import_nccl_parse(struct arena *arena, const char *file, const char *text, size_t length,
                               const struct nccl_hints *hints, FILE *notes, struct error *err)
{
    struct reader reader = {.arena = arena, .file = file, .hints = hints, .err = err, .rows = node_sequence(arena)};
    int before = err->count;
    struct node *root = NULL;

    if (!read_text(&reader, text, length) && err->count == before && !reader.rows->count)
        refuse_nothing(&reader);
    if (err->count == before) {
        write_notes(&reader, &reader.left, "left out", notes);
        write_notes(&reader, &reader.doubts, "note", notes);
        root = table_node(&reader);
    }
    for (size_t i = 0; i < reader.streams.count; i++)
        nccl_run_release(&reader.streams.items[i].run);
    free(reader.streams.items);
    remarks_release(&reader.left);
    remarks_release(&reader.doubts);
    return root;
}

struct node *import_nccl_load(struct arena *arena, const char *path, const struct nccl_hints *hints, FILE *notes,
                              struct error *err)
{
    size_t length;
    char *text = file_read_stream(path, "output of nccl-tests", IMPORT_NCCL_MAX_BYTES, (struct loc){0}, &length, err);
    bool json = text && text[strspn(text, " \t\r\n")] == '{';
    char *lines = json ? nccl_json_text(path, text, length, &length, err) : text;
    struct node *root = lines && !(json && err->count) ? import_nccl_parse(arena, path, lines, length, hints, notes, err) : NULL;

    if (json)
        free(lines);
    free(text);
    return root;
}
