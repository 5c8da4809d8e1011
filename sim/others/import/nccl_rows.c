#include "import/nccl_internal.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "collective/collective.h"
#include "config/conf.h"

enum { MOST_WORDS = 64 };

/* The words of a row, by the header's columns; NULL: the row has none there. */
struct words {
    char *items[MOST_WORDS];
    int count, shift, redop;
};

/* The next word at *at, NULL at the end of the line. The space after it becomes a NUL. */
static char *word(char **at)
{
    char *begin = *at + strspn(*at, " \t");

    if (!*begin)
        return NULL;
    *at = begin + strcspn(begin, " \t");
    if (**at)
        *(*at)++ = 0;
    return begin;
}

struct loc nccl_loc(const struct reader *reader, const char *at)
{
    return (struct loc){reader->file, reader->line, (int)(at - reader->text) + 1};
}

int nccl_refuse(struct reader *reader, const char *at, const char *expected)
{
    char shown[CLIP_SIZE];

    return error_add(reader->err, EXIT_INPUT, nccl_loc(reader, at), "expected %s, found '%s'", expected,
                     text_clip(at, shown, sizeof shown));
}

void nccl_put(struct reader *reader, struct node *mapping, const char *key, const char *value, const char *unit)
{
    node_put(reader->arena, mapping, key,
             node_scalar(reader->arena, arena_printf(reader->arena, "%s%s", value, unit), false));
}

void nccl_put_number(struct reader *reader, struct node *mapping, const char *key, int value)
{
    node_put(reader->arena, mapping, key, node_scalar(reader->arena, arena_printf(reader->arena, "%d", value), false));
}

void nccl_header(struct columns *columns, char *words)
{
    char *name;

    *columns = (struct columns){-1, -1, -1, -1, -1, 0, false};
    for (int column = 0; (name = word(&words)); column++) {
        int *place = !strcmp(name, "redop")                            ? &columns->redop :
                     !strcmp(name, "time") || !strcmp(name, "cputime") ? &columns->time :
                     !strcmp(name, "algbw")                            ? &columns->algbw :
                     !strcmp(name, "busbw")                            ? &columns->busbw :
                     !strcmp(name, "#wrong") || !strcmp(name, "wrong") ? &columns->wrong :
                                                                         NULL;

        if (place && *place < 0)
            *place = column;
        columns->cpu_time |= !strcmp(name, "cputime");
        columns->count = column + 1;
    }
}

static bool number(const char *text, double *value)
{
    char *end;

    *value = strtod(text, &end);
    return end != text && !*end && isfinite(*value) && *value >= 0 && isdigit((unsigned char)*text);
}

/* The operation of a run's rows. */
static int find_op(struct reader *reader, const struct nccl_run *run, struct nccl_table *table, const char *size)
{
    int said = -1;

    for (int op = 0; reader->hints->op && op < COLLECTIVE_OP_COUNT; op++)
        said = !strcmp(collective_op_names[op], reader->hints->op) ? op : said;
    table->op = run->program ? run->op : said;
    table->by_user |= !run->program;
    if (table->op < 0)
        return error_add(reader->err, EXIT_INPUT, nccl_loc(reader, size),
                         "expected the program's name in a comment before "
                         "the rows: '# Collective test starting: all_reduce_perf'; for older versions, which do not "
                         "print it, say 'dtsim import nccl-tests FILE --op all_reduce'");
    if (!run->program && reader->mentioned && nccl_program_op(reader->mentioned) != said)
        return error_add(reader->err, EXIT_INPUT, nccl_loc(reader, size),
                         "%s is the last program that is named before "
                         "these rows, and '--op %s' is another operation; expected rows of one run, or a comment with "
                         "the program's name before them",
                         reader->mentioned, reader->hints->op);
    return 0;
}

/* How many ranks of a run are in a node. A rack of hosts that share their links is a node. */
static int find_nodes(struct reader *reader, const struct nccl_run *run, struct nccl_table *table, bool complete,
                      const char *size)
{
    bool rack = reader->known && reader->known->rack, listed = complete && !rack && run->hosts.count;
    int found = listed ? nccl_run_per_node(run) : 0, said = reader->hints->per_node;

    if (said && listed && found >= 0 && said != (found ? found : table->ranks))
        return error_add(reader->err, EXIT_INPUT, nccl_loc(reader, size),
                         "--per-node %d: the list before these rows has "
                         "a host of %d; expected that number, or no --per-node",
                         said, found ? found : table->ranks);
    if (!said && found < 0)
        table->why = "its hosts have different numbers of ranks; expected one number, '--per-node M'";
    table->per_node = said ? said : found;
    if (!said && !listed)
        table->doubt = rack ?
                           "ranks are taken to fill one rack after the other; where they do not, say '--per-node M', "
                           "their number in a rack" :
                           "the file does not say how many ranks are in a node; they are taken to fill whole nodes, "
                           "or say '--per-node M'";
    return 0;
}

/* The ranks of a run's rows, and how many of them are in a node. */
static int find_ranks(struct reader *reader, const struct nccl_run *run, struct nccl_table *table, const char *size)
{
    const struct nccl_hints *hints = reader->hints;
    bool complete = run->highest >= 0 && run->listed == run->highest + 1 && !run->elided;

    if (run->repeated >= 0)
        return error_add(reader->err, EXIT_INPUT, nccl_loc(reader, size),
                         "rank %d is listed twice before these rows: "
                         "several runs wrote into the file at the same time; expected one (nccl-tests counts its ranks "
                         "over all processes only where it was built with MPI=1)",
                         run->repeated);
    if (!hints->ranks && (!complete || run->highest < 1)) {
        table->state = REFUSED;
        return -1;
    }
    if (hints->ranks && complete && hints->ranks != run->listed)
        return error_add(reader->err, EXIT_INPUT, nccl_loc(reader, size),
                         "--ranks %d: %d ranks are listed before these "
                         "rows; expected that number, or no --ranks",
                         hints->ranks, run->listed);
    if (hints->ranks && hints->ranks <= run->highest)
        return error_add(reader->err, EXIT_INPUT, nccl_loc(reader, size),
                         "--ranks %d: rank %d is listed before these "
                         "rows; expected more",
                         hints->ranks, run->highest);
    table->by_user |= !complete;
    table->ranks = complete ? run->listed : hints->ranks;
    return find_nodes(reader, run, table, complete, size);
}

/* What happens to the rows of a run, decided at its first one. */
static void decide(struct reader *reader, struct stream *stream, const char *size)
{
    const struct nccl_run *run = &stream->run;
    struct nccl_table *table = &stream->table;

    table->first = nccl_loc(reader, size);
    table->state = SAID;
    if (run->program && run->op < 0)
        table->why = arena_printf(reader->arena,
                                  "%s is not known; expected all_reduce_perf, reduce_scatter_perf, "
                                  "all_gather_perf, broadcast_perf, alltoall_perf or reduce_perf",
                                  run->program);
    else if (table->columns.cpu_time)
        table->why = "the times are of the host ('-C 1'), not of the collectives";
    else if (run->groups > 1)
        table->why = "its ranks are in several groups, which run at the same time (NCCL_TESTS_SPLIT)";
    else if (run->aggregated > 1)
        table->why = "several collectives were launched as one ('-m'), and the time is a share of theirs";
    else if (find_op(reader, run, table, size) || find_ranks(reader, run, table, size))
        return;
    table->state = table->why ? LEFT_OUT : READ;
}

static char *in_column(const struct words *words, int column)
{
    int at = column - (column > words->redop ? words->shift : 0);

    return column >= 0 && at < words->count ? words->items[at] : NULL;
}

/* Splits a row. From 2018 to August 2022 nccl-tests printed an empty redop for operations that reduce nothing: a number
 * stands in its column then. */
static void split(struct words *words, const struct columns *columns, char *row)
{
    char *item, *end;

    *words = (struct words){.redop = columns->redop};
    while (words->count < MOST_WORDS && (item = word(&row)))
        words->items[words->count++] = item;
    item = in_column(words, columns->redop);
    if (!item)
        return;
    strtod(item, &end);
    words->shift = end != item && !*end;
}

/* Until June 2020 algbw of these two operations counted what each rank sends, as busbw does (NVIDIA/nccl-tests, commit
 * ec1b5e2). */
static bool is_old_algbw(const struct nccl_table *table, const struct words *words, double bytes_per_us)
{
    const char *algbw = in_column(words, table->columns.algbw), *busbw = in_column(words, table->columns.busbw);
    double all = bytes_per_us / 1e3, printed;
    double sent = all * collective_bus_factor((enum collective_op)table->op, table->ranks);

    return (table->op == COLLECTIVE_ALL_GATHER || table->op == COLLECTIVE_REDUCE_SCATTER) && algbw && busbw &&
           number(algbw, &printed) && !strcmp(algbw, busbw) && fabs(printed - sent) <= fabs(printed - all);
}

/* Checks that time and bandwidth agree with the size. If they do not, a number was cut or is in another column. */
static int check_bandwidth(struct reader *reader, const struct nccl_table *table, const struct words *words,
                           const char *time, double bytes, double us)
{
    const char *algbw = in_column(words, table->columns.algbw), *last = words->items[words->count - 1];
    double expected = bytes / us / 1e3, printed;

    if (!algbw)
        return error_add(reader->err, EXIT_INPUT, nccl_loc(reader, last + strlen(last)),
                         "expected the bandwidth after "
                         "the time (algbw), found the end of the line");
    if (!number(algbw, &printed))
        return nccl_refuse(reader, algbw, "the bandwidth behind the time (algbw, GB/s)");
    if (is_old_algbw(table, words, bytes / us))
        expected *= collective_bus_factor((enum collective_op)table->op, table->ranks);
    /* both are rounded: the bandwidth to two decimals, a short time to few digits, one of 10 s and more to two digits */
    if (fabs(printed - expected) > (strchr(time, 'e') ? 0.06 : 0.02) * expected + 0.011)
        return error_add(reader->err, EXIT_INPUT, nccl_loc(reader, time),
                         "%.0f bytes in %s us are %.2f GB/s, but algbw "
                         "is %s; expected both to agree",
                         bytes, time, expected, algbw);
    return 0;
}

/* Checks busbw / algbw, which tells operation and ranks. A difference is an error where the user says one of them;
 * where the file does, it is a note. */
static int check_factor(struct reader *reader, const struct nccl_table *table, const struct words *words,
                        double bytes_per_us)
{
    const char *algbw = in_column(words, table->columns.algbw), *busbw = in_column(words, table->columns.busbw);
    const char *op = collective_op_names[table->op];
    double factor = collective_bus_factor((enum collective_op)table->op, table->ranks);
    int ranks;

    if (!busbw || is_old_algbw(table, words, bytes_per_us) ||
        nccl_ranks_agree((enum collective_op)table->op, table->ranks, algbw, busbw))
        return 0;
    if (!table->by_user) {
        remark_add(&reader->doubts, op, "busbw / algbw does not fit the number of ranks that the file lists", 1, 0);
        return 0;
    }
    ranks = nccl_ranks_of((enum collective_op)table->op, algbw, busbw);
    return error_add(reader->err, EXIT_INPUT, nccl_loc(reader, busbw),
                     "busbw / algbw is %s / %s, and of %s on %d ranks "
                     "it is %.4g; expected the operation and the number of ranks that were measured%s",
                     busbw, algbw, op, table->ranks, factor,
                     ranks ? arena_printf(reader->arena, ": %s of that ratio has %d ranks", op, ranks) : "");
}

static int check_results(struct reader *reader, const struct nccl_table *table, const struct words *words)
{
    const char *wrong = in_column(words, table->columns.wrong);
    double count;

    if (wrong && number(wrong, &count) && count > 0)
        return error_add(reader->err, EXIT_INPUT, nccl_loc(reader, wrong),
                         "%s results were wrong: the times are not of "
                         "a correct collective",
                         wrong);
    return 0;
}

static void add_row(struct reader *reader, const struct stream *stream, const char *size, const char *time)
{
    const struct nccl_table *table = &stream->table;
    struct node *row = node_mapping(reader->arena);
    int nodes = (int)stream->run.hosts.count;

    nccl_put(reader, row, "op", collective_op_names[table->op], "");
    nccl_put_number(reader, row, "ranks", table->ranks);
    if (table->per_node) {
        nccl_put_number(reader, row, "per_node", table->per_node);
        nodes = (table->ranks - 1) / table->per_node + 1;
    }
    nccl_put(reader, row, "bytes", size, " B");
    nccl_put(reader, row, "time", time, " us");
    reader->most_nodes = nodes > reader->most_nodes ? nodes : reader->most_nodes;
    if (!reader->rows->count) {
        reader->title_op = table->op;
        reader->title_ranks = table->ranks;
    } else if (reader->title_op != table->op || reader->title_ranks != table->ranks) {
        reader->title_ranks = 0;
    }
    node_append(reader->arena, reader->rows, row);
}

/* Keeps the bandwidths of the largest row: they tell the number of ranks best. */
static void keep_largest(struct nccl_table *table, const struct words *words, double bytes)
{
    const char *algbw = in_column(words, table->columns.algbw), *busbw = in_column(words, table->columns.busbw);

    if (bytes < table->largest || !algbw || !busbw)
        return;
    table->largest = bytes;
    snprintf(table->algbw, sizeof table->algbw, "%s", algbw);
    snprintf(table->busbw, sizeof table->busbw, "%s", busbw);
}

/* A row of a run that is read. */
static int read_row(struct reader *reader, struct stream *stream, const struct words *words, double bytes)
{
    const struct nccl_table *table = &stream->table;
    const char *time = in_column(words, table->columns.time), *last = words->items[words->count - 1];
    int expected = table->columns.count - words->shift;
    double us, rate;

    if (!time)
        return error_add(reader->err, EXIT_INPUT, nccl_loc(reader, last + strlen(last)),
                         "expected a time, found the end "
                         "of the line");
    if (!number(time, &us) || us > 1e12)
        return nccl_refuse(reader, time, "a time in microseconds");
    if (bytes == 0 || us == 0) {
        remark_add(&reader->left, collective_op_names[table->op], "it has no bytes, or a time too short to print", 1,
                   0);
        return 0;
    }
    if (check_bandwidth(reader, table, words, time, bytes, us) || check_factor(reader, table, words, bytes / us) ||
        check_results(reader, table, words))
        return -1;
    if (words->count < expected)
        return error_add(reader->err, EXIT_INPUT, nccl_loc(reader, last + strlen(last)),
                         "expected %d values, as many "
                         "as the header has columns, found %d",
                         expected, words->count);
    /* of 10 s and more the bandwidth has more digits than the time */
    if (strchr(time, 'e') && !is_old_algbw(table, words, bytes / us) && number(in_column(words, table->columns.algbw), &rate) && rate >= 1)
        time = arena_printf(reader->arena, "%.6g", bytes / rate / 1e3);
    if (table->doubt)
        remark_add(&reader->doubts, collective_op_names[table->op], table->doubt, 1, 0);
    add_row(reader, stream, words->items[0], time);
    return 0;
}

int nccl_row(struct reader *reader, struct stream *stream, char *row)
{
    struct nccl_table *table = &stream->table;
    struct words words;
    double bytes;

    split(&words, &table->columns, row);
    if (!words.count || !number(words.items[0], &bytes) || bytes > 1e15)
        return nccl_refuse(reader, row, "a size in bytes");
    if (!stream->run.header)
        return error_add(reader->err, EXIT_INPUT, nccl_loc(reader, row),
                         "expected the header of the table ('# size "
                         "count type ... time algbw busbw') before its rows");
    if (table->state == UNDECIDED)
        decide(reader, stream, row);
    if (table->state == LEFT_OUT)
        remark_add(&reader->left, stream->run.program ? stream->run.program : "a program without a name", table->why,
                   1, 0);
    if (table->state == REFUSED)
        keep_largest(table, &words, bytes);
    return table->state == READ ? read_row(reader, stream, &words, bytes) : table->state == SAID ? -1 : 0;
}
