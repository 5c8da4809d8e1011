/* recorded: the tables of a run read back: what ran when, and who exchanges with whom. */
#ifndef DTSIM_RECORDED_H
#define DTSIM_RECORDED_H

#include "files/json.h"
#include "files/tsv.h"

/* The operations of exchanges in the column `op`. */
enum recorded_op {
    RECORDED_ALL_REDUCE, RECORDED_REDUCE_SCATTER, RECORDED_ALL_GATHER, RECORDED_BROADCAST, RECORDED_REDUCE,
    RECORDED_ALL_TO_ALL, RECORDED_SEND, RECORDED_NONE, RECORDED_OP_COUNT
};
extern const char *const recorded_op_names[RECORDED_OP_COUNT + 1];     /* as spans.tsv has them; "" of none */

/* Kinds of lanes, by their name up to the dot. */
enum recorded_lane_kind {
    RECORDED_COMPUTE, RECORDED_TO_HOST, RECORDED_FROM_HOST, RECORDED_HOST, RECORDED_COPY, RECORDED_COMMUNICATES
};
struct recorded_lane {
    const char *name;
    enum recorded_lane_kind kind;
    int rank;                /* of the last span that was read, */
    int64_t until;           /* and its end, ns */
};

/* A row of spans.tsv. Texts are places in the file's text. */
struct recorded_span {
    int64_t start, end, communication;   /* ns: ends are rounded, not durations, so that neighbours never overlap */
    double bytes;
    uint32_t id;
    int rank, stage, group, peer;    /* -1: none */
    uint32_t kind, name, after;      /* texts */
    uint16_t lane;
    uint8_t op;
    bool awaited;                    /* a send for which a span of another rank waits */
};

struct recorded_group { const char *kind; int *ranks, nranks, gpus; };
enum { RECORDED_MOST_RANKS = 1 << 22 };

/* Set the first three and leave the rest 0. */
struct recorded {
    const char *dir;         /* the folder of a 'run -o'; of a run in memory a name for messages */
    const char *list;        /* "0-7,12": these ranks are chosen; NULL: all */
    bool repeats;            /* ranks of all replicas count, not of those alone that stand for the others */

    struct tsv spans_file, groups_file;
    struct { struct recorded_span *items; size_t count, capacity; } spans;   /* by rank and start */
    struct { struct recorded_lane *items; size_t count, capacity; } lanes;
    struct { struct recorded_group *items; size_t count, capacity; } groups;
    json_t *result;
    int ranks;               /* in the file: one more than the highest */
    int pipeline;            /* ranks of a replica */
    int replicas;            /* for which each row stands */
    size_t *groups_first;    /* a rank of all replicas: its first place in */
    int *groups_of;          /* the groups that it is in */
    size_t *first;           /* a rank: its first span; [ranks]: the count */
    bool *chosen;            /* a rank of all replicas */
    int written;             /* ranks that count: of all replicas with `repeats`, else of the file */
    uint32_t *by_id;         /* an id: its span + 1; 0: none, or of a rank that is not read */
    uint32_t ids;
    struct arena arena;
};
/* Reads the folder's spans.tsv, groups.tsv and result.json. Of a run in memory both tables' texts (tsv_open) and the
 * result are set before. recorded_release in either case. */
int recorded_read(struct recorded *run, struct error *err);
void recorded_release(struct recorded *run);
/* The names of a run's files; ends in NULL. */
extern const char *const recorded_files[];

static inline const char *recorded_text(const struct recorded *run, uint32_t text)
{
    return run->spans_file.text + text;
}
/* The name of the GPU; "" where it has none. */
static inline const char *recorded_gpu(const struct recorded *run)
{
    const char *name = json_string_value(json_object_get(run->result, "gpu"));

    return name ? name : "";
}
/* The next span that a list of the column `after` names: NULL at its end. `*at` moves on; `part` gets the s of the span
 * for which it waits, or -1: all. Spans that are not read are passed over. */
const struct recorded_span *recorded_awaited(const struct recorded *run, const char **at, double *part);

/* A rank of all replicas that counts: its spans, of the rank that stands for it. */
struct recorded_rows { const struct recorded_span *first; size_t count; int shift; };
static inline struct recorded_rows recorded_rows(const struct recorded *run, int rank)
{
    int own = rank % run->ranks;

    return (struct recorded_rows){run->spans.items + run->first[own], run->first[own + 1] - run->first[own], rank - own};
}
/* The next chosen rank from this one on; -1: there is none. */
int recorded_next_rank(const struct recorded *run, int rank);

/* groups.c */
int recorded_read_groups(struct recorded *run, struct error *err);
/* Finds the groups of each rank, once ranks and replicas are known. */
void recorded_index_groups(struct recorded *run);
void recorded_release_groups(struct recorded *run);
/* The group that a rank of all replicas is in, where the rank that stands for it is in this group; -1: none. */
int recorded_group_at(const struct recorded *run, int group, int rank);
/* "0, 4, ...": the first ranks of a group; the caller frees the text. */
char *recorded_group_ranks(const struct recorded_group *group, int most);

/* memory.c: from then on a rank holds these bytes of a kind, and these of all kinds. Kinds are numbered from 0 by the
 * order in which they first come. */
struct recorded_change { int rank, kind; const char *name; int64_t at; double bytes, held; };
typedef void recorded_visit_change(void *context, const struct recorded_change *change);
/* Reads the folder's memory.tsv, a change at a time. */
int recorded_read_memory(const char *dir, recorded_visit_change *visit, void *context, struct error *err);

/* As tsv_integer. Plain digits, which nearly all cells are, cost little. */
int recorded_integer(const struct tsv *tsv, int column, int low, int high, int *value, struct error *err);
/* A time in s as ns, rounded; -1 of one before 0. */
int recorded_ns(const struct tsv *tsv, int column, int64_t *ns, struct error *err);

#endif
