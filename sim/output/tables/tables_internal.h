/* Declarations that the files of tables share. */
#ifndef DTSIM_TABLES_INTERNAL_H
#define DTSIM_TABLES_INTERNAL_H

#include "base/cells.h"
#include "tables/tables.h"

/* How many replicas each row about a rank stands for. */
static inline int stood_for(const struct run *run)
{
    return scenario_replicas(run->workload->scenario) / run->lowered.alike.replicas;
}

/* groups.c */
/* The process groups of a run, as ranks of spans.tsv: rank = replica * pipeline degree + pipeline rank. */
struct rank_group {
    enum group_kind kind;
    int gpus;                /* members of each group of GPUs */
    int alike;               /* groups of GPUs with these ranks: one a tensor index, or a single one */
    int *ranks, nranks;
};
struct rank_groups {
    struct rank_group_list { struct rank_group *items; size_t count, capacity; } list;
    int *ids[GROUP_KIND_COUNT];      /* [slot * numbers + number]: a group; NULL: none of the kind exchanges */
    int numbers[GROUP_KIND_COUNT];
};
/* rank_groups_release when done. */
struct rank_groups rank_groups_of(const struct scenario *scenario);
void rank_groups_release(struct rank_groups *groups);
/* The group of a kind that a rank is in, for an exchange of the virtual stage; -1: there is none. */
int rank_group_find(const struct rank_groups *groups, const struct scenario *scenario, enum group_kind kind, int rank,
                    int stage);

/* causes.c */
/* For what each span waits. A span is named by its first operation. Operations of no time that only join others are no
 * spans: through them, a span waits for all that they join on its own rank, and, of all other ranks, for what ended
 * last. So an exchange of n members has n such entries, not n times n. */
struct causes {
    const struct run *run;
    uint32_t *spans;         /* an operation: its span, + SPAN_PART if others follow it in this; NO_OP: a join */
    struct joins { struct join *items; size_t count, capacity; } joins;  /* by operation */
    struct join_ids { uint32_t *items; size_t count, capacity; } ids;    /* of all joins: operations, by rank and id */
    struct join_ids found;   /* scratch */
};
struct join { uint32_t op, last; size_t first, count; };
#define SPAN_PART 0x80000000u
/* Before the first operation. */
void causes_init(struct causes *causes, const struct run *run);
/* Notes an operation that is no span, in the order of ids. */
void causes_join(struct causes *causes, uint32_t id);
/* The next cell: the spans of other lanes for which an operation waits, by id, with commas between them: "12,15", and
 * "12+0.5" for the first 0.5 s of span 12. */
void causes_cell(struct causes *causes, struct cells *cells, uint32_t id);
void causes_release(struct causes *causes);

#endif
