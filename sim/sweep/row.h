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
#include "sweep/store.h"

/* What all points have in common. */
struct row_maker {
    const struct points *points;
    const struct store *store;   /* rows that are there need not be made again */
    const char *engine;          /* "simulation.engine=NAME", or NULL: the scenario's */
    bool retry_failed, force;    /* make again those that failed; all */
    char common[DIGEST_HEX];     /* of sources and data files */
};

/* What rows of this program say under "version". */
json_t *row_version(void);
int row_maker_init(struct row_maker *maker, struct error *err);

/* Simulates the point and writes its row as JSON, or, where the store has its row, '=' and the id. `note` gets the id
 * as soon as it is known (STORE_ID bytes and a zero byte). */
void row_make(const struct row_maker *maker, uint64_t number, char *note, FILE *out);
/* The row of a point that has none of its own, for its worker died: the status and why. `id` is its note. */
json_t *row_lost(const struct row_maker *maker, uint64_t number, const char *id, enum outcome status,
                 const char *reason);

#endif
