/* request: a line of `dtsim serve` that asks for a simulation, understood. */
#ifndef DTSIM_REQUEST_H
#define DTSIM_REQUEST_H

#include "config/conf.h"
#include "config/field.h"

enum { REQUEST_MOST = CONF_MAX_BYTES };  /* bytes of a line */
#define REQUESTS "stdin"                 /* what messages call the file that the lines come from */

struct request {
    const struct node *node;
    struct request_value { const struct node *node; } id, scenario, set, limits, cancel;
    const char *base;                    /* the path of a scenario; NULL: the scenario stands in the request */
    int engine;                          /* enum engine, or ENGINE_OF_SCENARIO */
    bool advice;
    const char *const *sets;             /* "PATH=VALUE", nsets of them, as after --set */
    size_t nsets;
};
enum { ENGINE_OF_SCENARIO = -1 };
extern const struct table request_table;

/* Reads a line, number `line` of the input, which is JSON already; within the budget of the arena's progress, which the queue
 * has read. The request lives in the arena. */
int request_read(struct arena *arena, const char *text, size_t length, int line, struct request *request,
                 struct error *err);

/* Parts of it, which other programs' requests have too. The tree of JSON that stands at a line of a file `name`. */
int request_tree(struct arena *arena, const char *name, const char *text, size_t length, int line, struct node **root,
                 struct error *err);
/* {"strategy.tensor": 8} as --set has it: strategy.tensor=8. */
int request_sets(struct arena *arena, const struct node *set, const char *const **sets, size_t *count, struct error *err);

#endif
