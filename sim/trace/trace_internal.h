/* Declarations that the files of trace share. */
#ifndef DTSIM_TRACE_INTERNAL_H
#define DTSIM_TRACE_INTERNAL_H

#include "files/json.h"
#include "files/tsv.h"
#include "trace/trace.h"

/* The operations of exchanges in the column `op`. */
enum trace_op {
    TRACE_ALL_REDUCE, TRACE_REDUCE_SCATTER, TRACE_ALL_GATHER, TRACE_BROADCAST, TRACE_REDUCE, TRACE_ALL_TO_ALL, TRACE_SEND,
    TRACE_NONE, TRACE_OP_COUNT
};
extern const char *const trace_op_names[TRACE_OP_COUNT];     /* as spans.tsv has them; "" of none */

/* Kinds of lanes, by their name up to the dot. */
enum trace_lane_kind { TRACE_COMPUTE, TRACE_TO_HOST, TRACE_FROM_HOST, TRACE_HOST, TRACE_COPY, TRACE_COMMUNICATES };
struct trace_lane {
    const char *name;
    enum trace_lane_kind kind;
    int rank;                /* of the last span that was read, */
    int64_t until;           /* and its end, ns */
};

/* A row of spans.tsv. Texts are places in the file's text. */
struct trace_span {
    int64_t start, end, communication;   /* ns: ends are rounded, not durations, so that neighbours never overlap */
    double bytes;
    uint32_t id;
    int rank, stage, group, peer;    /* -1: none */
    uint32_t kind, name, after;      /* texts */
    uint16_t lane;
    uint8_t op;
    bool awaited;                    /* a send for which a span of another rank waits */
};

struct trace_group { const char *kind; int *ranks, nranks, gpus; };
enum { TRACE_MOST_RANKS = 1 << 22 };

/* From then on a counter has that value: B that a rank holds, or % of all ranks' time. */
struct trace_count { int rank; int64_t at; double value; };

struct trace {
    const struct trace_request *request;
    struct tsv spans_file, groups_file;
    struct { struct trace_span *items; size_t count, capacity; } spans;  /* by rank and start */
    struct { struct trace_lane *items; size_t count, capacity; } lanes;
    struct { struct trace_group *items; size_t count, capacity; } groups;
    json_t *result;
    int ranks;               /* in the file: one more than the highest */
    int pipeline;            /* ranks of a replica */
    int replicas;            /* for which each row stands */
    size_t *groups_first;    /* a rank of all replicas: its first place in */
    int *groups_of;          /* the groups that it is in */
    size_t *first;           /* a rank: its first span; [ranks]: the count */
    bool *chosen;            /* a rank of all replicas: --ranks has it */
    int written;             /* ranks that are written: of all replicas with `repeats`, else of the file */
    uint32_t *by_id;         /* an id: its span + 1; 0: none, or of a rank that is not read */
    uint32_t ids;
    struct { struct trace_count *items; size_t count, capacity; } memory, utilization;   /* changes of counters */
    struct arena arena;
};

static inline const char *trace_text(const struct trace *trace, uint32_t text)
{
    return trace->spans_file.text + text;
}
/* The next span that a list of the column `after` names: NULL at its end. `*at` moves on; `part` gets the s of the span
 * for which it waits, or -1: all. Spans that are not read are passed over. */
const struct trace_span *trace_awaited(const struct trace *trace, const char **at, double *part);

/* perfetto_counters.c: reads what counters are made of; -1: a mistake in it. */
int counters_read(struct trace *trace, struct error *err);

/* trace_groups.c */
int groups_read(struct trace *trace, struct error *err);
/* Finds the groups of each rank, once ranks and replicas are known. */
void groups_index(struct trace *trace);
void groups_release(struct trace *trace);
/* The group that a rank of all replicas is in, where the rank that stands for it is in this group; -1: none. */
int trace_group_at(const struct trace *trace, int group, int rank);
/* "0, 4, ...": the first ranks of a group; the caller frees the text. */
char *trace_group_ranks(const struct trace_group *group, int most);

/* The name of the GPU; "" where it has none. */
static inline const char *trace_gpu(const struct trace *trace)
{
    const char *name = json_string_value(json_object_get(trace->result, "gpu"));

    return name ? name : "";
}

/* trace_read.c */
/* As tsv_integer. Plain digits, which nearly all cells are, cost little. */
int read_integer(const struct tsv *tsv, int column, int low, int high, int *value, struct error *err);
/* A time in s as ns, rounded; -1 of one before 0. */
int read_ns(const struct tsv *tsv, int column, int64_t *ns, struct error *err);
/* Zero-initialise but for `request`; trace_release in either case. */
int trace_read(struct trace *trace, struct error *err);
void trace_release(struct trace *trace);

/* A file of a trace: of a rank, or of all that are chosen (-1). */
struct trace_file {
    const struct trace *trace;
    int rank;
    void (*write)(const struct trace_file *file, FILE *out);
    bool spans;              /* it has the spans of its ranks, not their groups alone */
};
/* Writes a file of the trace's folder, or the trace's only file where the request names one (`name` is its name in the
 * folder), and tells about it. */
int trace_put(const char *name, const struct trace_file *file, bool only, FILE *told, struct error *err);
/* A rank of all replicas that is written: its spans, of the rank that stands for it. */
struct trace_rows { const struct trace_span *first; size_t count; int shift; };
static inline struct trace_rows trace_rows(const struct trace *trace, int rank)
{
    int own = rank % trace->ranks;

    return (struct trace_rows){trace->spans.items + trace->first[own], trace->first[own + 1] - trace->first[own],
                               rank - own};
}
/* The next rank to write from this one on; -1: there is none. */
int trace_next_rank(const struct trace *trace, int rank);

/* gzip.c: a file whose bytes arrive compressed in `out`, which stays open. */
FILE *gzip_open(FILE *out);

int kineto_write(struct trace *trace, FILE *told, struct error *err);
int perfetto_write(struct trace *trace, FILE *told, struct error *err);
int chakra_write(struct trace *trace, FILE *told, struct error *err);

#endif
