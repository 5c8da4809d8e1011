/* cache: results that several scenarios share. It is an ordinary value: an arena carries its address to all code that\n * reads a scenario into that arena. Without a cache results are the same, only slower.
 *
 * Entries are const and live while any scenario that was read with them lives, so none is dropped meanwhile. A full\n * cache takes no new entries until cache_renew empties it between two scenarios. */
#ifndef DTSIM_CACHE_H
#define DTSIM_CACHE_H

#include "base/base.h"

/* Who remembers what, and by which key. */
enum cache_kind {
    CACHE_ROOT,                  /* data_path: the folder of the files that belong to the program, once */
    CACHE_PATH,                  /* data_path, where files stay: the path of a file, by folder and name */
    CACHE_ABSOLUTE,              /* data_absolute, where files stay: the absolute path, by the path */
    CACHE_TREE,                  /* conf_shared: the tree of a file, by its path; read again once the file is another */
    CACHE_RECORD,                /* field_load: the struct that a tree is parsed to, by path and table */
    CACHE_PRODUCT,               /* profile_kernel: the seconds of a matrix product, by its shape and the fit */
    CACHE_PLACEMENT,             /* measure: a number for the places of GPUs on a cluster, by both */
    CACHE_COLLECTIVE,            /* measure: the time of a collective alone, by engine, collective, size, placement */
    CACHE_CONDITION,             /* software_holds: a condition of a software file, parsed; by its text and place. rules_conditions:
                                    those of a table of rules, by its address */
    CACHE_SOFTWARE,              /* software_supply, where files stay: the values of a file by its name and the conditions
                                    that hold; and its conditions, by its name */
    CACHE_EVIDENCE,              /* evidence_load: the errors on published measurements, once */
    CACHE_RATIO,                 /* evidence_recall_ratio: the expected error of a ratio, by software, costs, model */
    CACHE_PLAN,                  /* chain_plan: the plan of a stage's layers, by their costs and sizes and the limit */
    CACHE_SPLIT,                 /* auto_split: the layers of each stage, by the scenario */
    CACHE_TOPOLOGY,              /* simgrid_file_load: links and routes of a file of SimGrid's, by its path and time and the
                                    GPUs of the nodes */
    CACHE_ORDER,                 /* auto_parts: the part of each pipeline rank, by the scenario */
    CACHE_MEMORY,                /* auto_memory: which plans of layers, by the scenario */
    CACHE_SHARES,                /* auto_shares: the samples of each replica's micro-batches, by the scenario */
    CACHE_COUNTS,                /* schedule_counts: how many works of each kind rows have, by schedule, degrees, options */
    CACHE_KINDS
};

enum { CACHE_BYTES = 256 << 20 };        /* the usual limit */

struct cache {
    size_t limit, bytes;
    bool files_stay;             /* nobody changes, adds or deletes files: each is looked at once. For a command whose
                                    scenarios all mean the files as they are when it begins */
    bool names_only;             /* scenarios come from others: a path is refused that stands in none of the files that
                                    belong to the program (data_relative), before anybody looks at it */
    bool refused;                /* something had no room */
    struct arena own;            /* entries, and values that were copied */
    struct cache_entry **chains; /* by hash of the key; the newest first */
    size_t nchains, count;
    size_t found[CACHE_KINDS], missed[CACHE_KINDS];
};

void cache_init(struct cache *cache, size_t limit);
void cache_release(struct cache *cache);
/* Between two scenarios, when nobody has anything that it gave: empties the cache if something had no room in it. */
void cache_renew(struct cache *cache);

/* A key that is put together. Zero-initialise; free(items). */
struct cache_key { unsigned char *items; size_t count, capacity; };
void cache_key_add(struct cache_key *key, const void *bytes, size_t size);
void cache_key_text(struct cache_key *key, const char *text);    /* which may be NULL */

/* What is remembered under the key (`size` bytes), or NULL. */
const void *cache_find(struct cache *cache, enum cache_kind kind, const void *key, size_t size);
/* Remembers the value, which lives in that arena, in the place of an older one under the key. The cache takes over the
 * arena's memory; false, and the arena stays, if there is no room. */
bool cache_put(struct cache *cache, enum cache_kind kind, const void *key, size_t size, const void *value,
               struct arena *arena);

/* The same of a value of a few bytes, which is copied. */
bool cache_copy(struct cache *cache, enum cache_kind kind, const void *key, size_t size, const void *value,
                size_t bytes);

#endif
