#include "scenario/train_section_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { TRACE_BYTES = 64 << 20, TRACE_NODES = 1048576 };

/* A trace while it is read. */
struct reading {
    struct loc loc;                  /* of the line at hand */
    double unit;                     /* s of its times */
    bool changes;                    /* its second column says how many nodes come or go */
    int nodes;                       /* that are up */
    struct { struct trace_row *items; size_t count, capacity; } rows;
};

/* The text of the first or second cell of a line; what follows it is cut off. NULL: there is none. */
static char *cell(char **line)
{
    char *at = *line, *end = at ? at + strcspn(at, ",\t") : NULL;

    if (!at)
        return NULL;
    *line = *end ? end + 1 : NULL;
    *end = '\0';
    at += strspn(at, " ");
    while (end > at && end[-1] == ' ')
        *--end = '\0';
    return at;
}

static int read_header(struct reading *reading, char *line, struct error *err)
{
    const char *time = cell(&line), *nodes = cell(&line);

    if (nodes && (!strcmp(time, "time_s") || !strcmp(time, "time_h")) &&
        (!strcmp(nodes, "nodes") || !strcmp(nodes, "change"))) {
        reading->unit = time[5] == 'h' ? SECONDS_AN_HOUR : 1;
        reading->changes = *nodes == 'c';
        return 0;
    }
    return error_add(err, EXIT_INPUT, reading->loc,
                     "expected a header line: 'time_s' or 'time_h', a comma, and 'nodes' (that "
                     "are up) or 'change'");
}

static int read_row(struct reading *reading, char *line, struct error *err)
{
    char shown[CLIP_SIZE], clock[CLIP_SIZE], *time_end = NULL, *nodes_end = NULL;
    const char *whole = text_clip(line, shown, sizeof shown), *time = cell(&line), *nodes = cell(&line);
    double seconds = strtod(time, &time_end) * reading->unit;
    long long number = nodes ? strtoll(nodes, &nodes_end, 10) : 0, up;
    size_t count = reading->rows.count;

    if (!nodes || line || time_end == time || *time_end || nodes_end == nodes || *nodes_end || !isfinite(seconds))
        return error_add(err, EXIT_INPUT, reading->loc,
                         "found '%s'; expected a time, a comma and a whole number of nodes", whole);
    if (seconds < 0 || (count && seconds < reading->rows.items[count - 1].time))
        return error_add(err, EXIT_INPUT, reading->loc, "the time %s is before %s; expected rows in the order of time",
                         text_clip(time, clock, sizeof clock), count ? "that of the row above" : "0");
    if (number < -TRACE_NODES || number > TRACE_NODES)
        return error_add(err, EXIT_INPUT, reading->loc, "found '%s'; expected at most %d nodes", whole, TRACE_NODES);
    up = reading->changes ? reading->nodes + number : number;
    if (up < 0 || up > TRACE_NODES)
        return error_add(err, EXIT_INPUT, reading->loc, "%lld nodes are up; expected 0 to %d", up, TRACE_NODES);
    reading->nodes = (int)up;
    *GROW(&reading->rows) = (struct trace_row){seconds, (int)up};
    return 0;
}

/* Reads each line, but comments ("#") and empty ones; lines may end in CR LF. Stops at the first mistake. */
static int read_lines(struct reading *reading, char *text, size_t length, struct error *err)
{
    bool header = false;

    for (char *line = text, *end; line < text + length; line = end + 1) {
        size_t size;

        end = memchr(line, '\n', (size_t)(text + length - line));
        end = end ? end : text + length;
        *end = '\0';
        size = strlen(line);
        reading->loc.line++;
        if (line + size < end)
            return error_add(err, EXIT_INPUT, reading->loc, "a zero byte: this is no text file");
        if (size && line[size - 1] == '\r')
            line[size - 1] = '\0';
        if (!*line || *line == '#')
            continue;
        if (header ? read_row(reading, line, err) : read_header(reading, line, err))
            return -1;
        header = true;
    }
    if (reading->rows.count)
        return 0;
    reading->loc.line = reading->loc.column = 0;
    return error_add(err, EXIT_INPUT, reading->loc, "the trace has no rows");
}

/* What is said of the whole trace: its mean is over the time from its first to its last row. */
static void summarize(struct node_trace *trace)
{
    double node_seconds = 0, span = trace->rows[trace->count - 1].time - trace->rows[0].time;
    double losing = 0;

    for (size_t i = 1; i < trace->count; i++) {
        int change = trace->rows[i].nodes - trace->rows[i - 1].nodes;

        trace->gained += change > 0 ? change : 0;
        trace->lost += change < 0 ? -change : 0;
        losing += change < 0;
        node_seconds += (trace->rows[i].time - trace->rows[i - 1].time) * trace->rows[i - 1].nodes;
    }
    trace->mean = span > 0 ? node_seconds / span : trace->rows[0].nodes;
    trace->mtbf = losing > 0 ? span / losing : INFINITY;
}

int trace_load(struct arena *arena, const char *path, struct loc loc, struct node_trace *trace, struct error *err)
{
    struct reading reading = {.loc = {.file = path, .column = 1}};
    size_t length;
    char *text = file_read(path, "trace of failures", TRACE_BYTES, loc, &length, err);
    int rc = text ? read_lines(&reading, text, length, err) : -1;

    *trace = (struct node_trace){0};
    if (!rc) {
        trace->count = reading.rows.count;
        trace->rows = ARENA_ARRAY(arena, struct trace_row, trace->count);
        memcpy(trace->rows, reading.rows.items, trace->count * sizeof *trace->rows);
        summarize(trace);
    }
    free(reading.rows.items);
    free(text);
    return rc;
}
