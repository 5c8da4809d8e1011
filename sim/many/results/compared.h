/* compared: scenarios, points of sweeps and folders of runs in one table: how fast each is, where its time goes, what
 * it needs; or why it is not possible. */
#ifndef DTSIM_COMPARED_H
#define DTSIM_COMPARED_H

#include "base/cache.h"
#include "report/outcome.h"
#include "store/tie.h"

struct compared {
    struct arena arena;
    struct cache cache;          /* what scenarios read is remembered for the next ones */
    struct progress *progress;   /* how far the command is, or NULL */
    struct {
        struct compared_row {
            const char *name, *path;
            json_t *row;
            struct tie_rank rank;        /* by throughput */
            struct tie_number number;    /* that, and what is known of its error */
        } *items;
        size_t count, capacity;
    } rows;
};

enum { COMPARED_MOST = 1000 };   /* points of one scenario */

/* Who gets the scenarios of a file, one after another. */
struct compared_each {
    struct cache *cache;         /* what scenarios read is remembered for the next ones */
    const char *engine;          /* "simulation.engine=NAME", or NULL */
    bool prefix;                 /* names of several points also say which scenario they are of */
    struct progress *progress;   /* that holds reading and simulating to a budget, or NULL */
    /* `scenario` NULL: it is refused, and `found` says why. What else is found wrong may be added to `found`. The name
     * and the scenario live until the call ends. */
    void (*call)(void *context, const char *name, struct scenario *scenario, struct error *found);
    void *context;
};
/* Calls for each point of a scenario or a sweep, changed by `sets` ("PATH=V1,V2", nsets of them). -1: some were found
 * wrong; the messages of what is wrong, and not merely infeasible, are added to err. */
int compared_visit(const struct compared_each *each, const char *path, const char *const *sets, size_t nsets,
                   struct error *err);
/* Adds a row for the folder of a run, or one for each point of a sweep or of a scenario, changed by `sets`
 * ("PATH=V1,V2", nsets of them); simulates them. A scenario that is refused or does not fit is a row that says so.
 * `prefix`: rows of several points also say which scenario they are of. The messages of what is wrong, and not merely
 * infeasible, are added to err, and the result is -1. */
int compared_add(struct compared *compared, const char *path, const char *const *sets, size_t nsets,
                 const char *engine, bool prefix, struct error *err);
/* For people: against the first row that has a throughput. Columns without numbers are left out. `keys`: the names of
 * keys stand above columns, not words for them. */
void compared_print(const struct compared *compared, bool markdown, bool keys, FILE *out);
/* For programs, all columns in SI units. */
extern const struct view compared_view;
json_t *compared_json(const struct compared *compared);
void compared_release(struct compared *compared);

#endif
