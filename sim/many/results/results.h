/* results: the rows of sweeps read back, chosen, ordered and grouped.
 *
 * The files are read twice: first for what there is (which rows count, and their keys), then for the rows that are
 * asked for. Of few rows of one file the first reading serves for both. Of these no more are held than the question needs, so that the best ten of 10^7 rows fit in memory. */
#ifndef DTSIM_RESULTS_H
#define DTSIM_RESULTS_H

#include "files/json.h"

#include "expression/expression.h"
#include "store/tie.h"
#include "store/tally.h"
#include "store/store.h"

/* What a row may be asked for by name. */
struct row_key {
    const char *name;
    enum { KEY_POINT, KEY_ROW, KEY_METRIC } from;    /* what the sweep sets; how the point ended; a metric of
                                                        result.json, of which "breakdown_s.bubble" is one */
    const char *first;           /* the first point, in their order, whose row has it; those that ended well go first */
    bool well;                   /* that one ended well */
    size_t place;                /* in that row */
    bool number;                 /* some row has a number under it */
};

struct results {
    struct arena arena;
    const char **files;          /* NULL-terminated */
    uint32_t *ends;              /* by file: rows of it and of the files before it */
    struct { json_t **items; size_t count, capacity; } first;        /* the first rows of the first file, as they were read */
    size_t looked;               /* rows of all files, those of other builds among them */
    struct ids ids;              /* of all rows; numbers: which row of that id counts */
    struct { json_t **items; size_t count, capacity; } rows;
    /* First the keys of points, in the order of the first rows; then the keys of rows; then metrics. */
    struct { struct row_key *items; size_t count, capacity; } keys;
    json_t *header;              /* of the first file */
    json_t *objectives;          /* of the first file that names any, {metric: "min" | "max"}; else an empty object */
    int ranked;                  /* the key that ranks are by; -1: rows have none */
    size_t other_builds;         /* rows that are left out, as another build or other sources wrote them */
    struct tally tally;          /* how all points ended for which the condition is true */
};

/* Finds what all files of the folders, or files themselves, hold: keys, objectives, and of rows with one id the one
 * that counts: the last that did not fail, else the last. -1 where one of them cannot be read or holds no rows. Release
 * in either case. */
int results_open(const char *const *folders, size_t count, struct results *results, struct error *err);
/* Which rows are asked for. */
struct results_question {
    const char *where;           /* an expression over keys that must be true; NULL: none */
    /* Drops rows that are not asked for whatever other rows there are, and orders the rest. It is called for some of
     * the rows, in the order of their points, and again for those that it left and others. NULL: all are asked for. */
    void (*choose)(struct results *results, const void *context);
    const void *context;
};
/* Reads the rows that are asked for; -1 where the expression is wrong, or files change meanwhile. */
int results_read(struct results *results, const struct results_question *question, struct error *err);
void results_release(struct results *results);

/* The key of that name; -1: there is none. */
int results_find(const struct results *results, const char *name);
/* The same; -1 after an error that begins with `option`. */
int results_key(const struct results *results, const char *name, const char *option, struct error *err);
struct value results_value(const struct results *results, size_t row, int key);
/* The same as JSON; NULL where the row has none. */
const json_t *results_json(const struct results *results, size_t row, int key);

/* Keeps the rows for which `keep` is true, in their order. */
void results_keep(struct results *results, const bool *keep);
/* Keeps the first rows. */
void results_keep_first(struct results *results, size_t most);
/* Keeps the rows that have a number under each key and end "ok". */
void results_keep_numbers(struct results *results, const int *keys, size_t count);
/* Orders rows by their points: an order that depends neither on who wrote them when nor on the build. */
void results_sort_points(struct results *results);
/* Orders rows by a key, rows without a number last; equal rows keep their order. */
void results_sort(struct results *results, int key, bool largest_first);
/* Some keys. */
struct results_keys { const int *items; size_t count; };
/* Whether two rows have the same values under all of them, or both none. */
bool results_alike(const struct results *results, size_t a, size_t b, struct results_keys keys);
/* Keeps the rows that no other one with the same values under `within` betters: is as good in every key and better in one.
 * All must have numbers. */
void results_front(struct results *results, const int *keys, const bool *largest, size_t count, struct results_keys within);
/* Keeps of the rows with the same values under the keys the first `most` each. */
void results_per(struct results *results, struct results_keys keys, size_t most);

/* Ranks rows that results_sort has ordered by that key, under "rank"; rows that tie share one (tie.h). */
void results_rank(struct results *results, int key, bool largest_first);
struct tie_rank results_rank_of(const struct results *results, size_t row);
/* A line for people: what it means that rows share a rank. */
void results_explain_ranks(const struct results *results, FILE *out);

extern const struct view ranked_view;        /* what results_rank() adds to rows */

#endif
