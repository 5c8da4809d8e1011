/* results: the rows of sweeps read back, chosen, ordered and grouped. */
#ifndef DTSIM_RESULTS_H
#define DTSIM_RESULTS_H

#include "files/json.h"

#include "expression/expression.h"
#include "run/tie.h"
#include "sweep/store.h"

/* What a row may be asked for by name. */
struct row_key {
    const char *name;
    enum { KEY_POINT, KEY_ROW, KEY_METRIC } from;    /* what the sweep sets; how the point ended; a metric of
                                                        result.json, of which "breakdown_s.bubble" is one */
};

struct results {
    struct arena arena;
    struct { json_t **items; size_t count, capacity; } rows;
    /* Those of points, in the order of the first rows; then those of rows; then metrics. */
    struct { struct row_key *items; size_t count, capacity; } keys;
    json_t *objectives;          /* of the first file that names any, {metric: "min" | "max"}; else an empty object */
    int ranked;                  /* the key that ranks are by; -1: rows have none */
    size_t other_builds;         /* rows that are left out, as another build or other sources wrote them */
};

/* Reads all files of the folders, or files themselves. Of rows with one id the one that did not fail counts, else the
 * last. -1 where one of them cannot be read or holds no rows. Release in either case. */
int results_load(const char *const *folders, size_t count, struct results *results, struct error *err);
void results_release(struct results *results);

/* The key of that name; -1 after an error that begins with `option`. */
int results_key(const struct results *results, const char *name, const char *option, struct error *err);
struct value results_value(const struct results *results, size_t row, int key);
/* The same as JSON; NULL where the row has none. */
const json_t *results_json(const struct results *results, size_t row, int key);

/* Keeps the rows for which the expression over keys is true. */
int results_where(struct results *results, const char *expression, struct error *err);
/* Keeps the rows for which `keep` is true, in their order. */
void results_keep(struct results *results, const bool *keep);
/* Keeps the rows that have a number under each key and end "ok". */
void results_keep_numbers(struct results *results, const int *keys, size_t count);
/* Orders rows by a key, those that have no number last; rows that are alike stay in the order of their points. */
void results_sort(struct results *results, int key, bool largest_first);
/* Keeps the rows that no other one betters: is as good in every key and better in one. All must have numbers. */
void results_front(struct results *results, const int *keys, const bool *largest, size_t count);

/* Ranks rows that results_sort has ordered by that key, under "rank"; rows that tie share one (tie.h). */
void results_rank(struct results *results, int key, bool largest_first);
struct tie_rank results_rank_of(const struct results *results, size_t row);
/* A line for people: what it means that rows share a rank. */
void results_explain_ranks(const struct results *results, FILE *out);

#endif
