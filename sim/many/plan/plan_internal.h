/* What the files of a plan share: the state of the search (plan.c), and the plan's rows in the store (plan_rows.c). */
#ifndef DTSIM_PLAN_INTERNAL_H
#define DTSIM_PLAN_INTERNAL_H

#include "plan/bounds.h"
#include "plan/plan.h"

/* A search that goes on. */
struct search {
    struct space *space;
    const struct plan_options *options;
    struct plan_outcome *outcome;
    struct bounded *bounds;          /* a point of the selection each */
    size_t *order;                   /* open points, the lowest bound first */
    size_t nopen, next;
    struct { size_t *items; size_t count, capacity; } missed;    /* points whose turn it was when the time ran out */
    struct replayed { size_t point; double seconds, ratio, fits; } *replayed;      /* of points that ran and fit */
    size_t nreplayed;
    double longest;                  /* s that the goal allows */
    size_t beyond;                   /* points whose bound is above that */
    double until;                    /* s of pool_now; 0: any time */
    struct plan_state state;
};

/* Counts a point that is refused, by the name of a rule. */
void plan_count_refusal(struct plan_outcome *outcome, const char *name, const char *reason, bool replayed);
/* Keeps in the outcome the point that does not fit and lacks least: B of a GPU. */
void plan_note_short(struct search *search, size_t point, double lacks);
/* The point of the selection that has that number. */
size_t plan_point_of(const struct search *search, uint64_t number);
/* Reads what the replays gave. -1, or how many of them did not fit. */
int plan_read_replays(struct search *search, struct error *err);

/* Sorts the outcome's points by the ids of their rows. */
void plan_sort_located(struct plan_outcome *outcome);
/* The point that has the row, in the order of plan_sort_located; NULL: the row is another plan's. */
const struct located *plan_located_of(const struct plan_outcome *outcome, const json_t *row);
/* The probability that the row fits; 1: it does not say. */
double plan_fits_of(const json_t *row);
/* plan_ties.c: orders rows that share a place, which have the numbers under the key. */
void plan_order_ties(struct results *results, int key, bool most);
/* Drops the rows of other points; `context`: the outcome. */
void plan_keep_located(struct results *results, const void *context);

#endif
