/* row: what a sweep keeps of a point: which one it is, how it ended, and its metrics.
 *
 *     {"id": "9f86...", "version": "8d1c...", "point": {"strategy.tensor": 8}, "engine": "ideal", "status": "ok",
 *      "metrics": {"iteration_time_s": 1.25, ...}}
 *     {..., "status": "infeasible", "rule": "degrees", "reason": "...", "metrics": {}}
 *
 * The id is a digest of the resolved scenario without its name, of this program's sources and of all data files. Where
 * the scenario cannot be resolved, it is one of the scenario as written. So equal ids have equal rows, and the row of a
 * build or of data that have changed is never taken for this one's. */
#ifndef DTSIM_ROW_H
#define DTSIM_ROW_H

#include "files/digest.h"
#include "sweep/points.h"
#include "store/store.h"

/* What all points share. */
struct row_maker {
    const struct points *points;
    const struct store *store;   /* rows that are there need not be made again */
    const char *engine;          /* "simulation.engine=NAME", or NULL: the scenario's */
    bool retry_failed, force;    /* repeat points that failed; repeat all points */
    const struct anchors *anchors;   /* correct the times; NULL: none */
    char common[DIGEST_HEX];     /* of sources, data files and anchors */
    struct cache *cache;         /* what points read is remembered here; or NULL */
    double timeout, bytes;       /* s and B of memory that a point may take; 0: any */
};

/* What rows of this program say under "version". */
json_t *row_version(void);
int row_maker_init(struct row_maker *maker, struct error *err);

/* Whether the store has a row of that id which need not be made again. */
bool row_is_done(const struct row_maker *maker, const char *id);

/* What is known of a row without parsing it. */
struct row_head {
    char id[ID_DIGITS + 1];
    bool stored;                 /* the store has it already */
    bool refused;                /* there is none, for the system did not let a file be read */
    enum outcome status;
    double tokens, samples;      /* per second; NaN: it has none */
};

/* Simulates the point and writes the head of its row and, unless the store has the row already, the row as JSON; or the
 * error that ends the sweep. `note` gets the id as soon as it is known (ID_DIGITS bytes and a zero byte). */
void row_make(const struct row_maker *maker, uint64_t number, char *note, FILE *out);
/* Takes apart what row_make wrote, `length` bytes and a zero byte: the row, and in `head` what precedes it. NULL: its
 * error. */
const char *row_split(const char *text, size_t length, struct row_head *head, struct error *err);
/* The head of a row. */
struct row_head row_head_of(const json_t *row);
/* The row of a point that has none of its own, for its worker died: the status and why. `id` is its note; where that is
 * empty the worker died before the id was known, and the id is looked for again. NULL: an error. */
json_t *row_lost(const struct row_maker *maker, uint64_t number, const char *id, enum outcome status,
                 const char *reason, struct error *err);

/* The point's values, by path. */
json_t *point_json(const struct point *point);
/* What a row begins with; what the file does (sweep_run.c); what rows have that were verified (verify.c). */
extern const struct view begun_view, sweep_header_view, verified_view, verified_row_view;

#endif
