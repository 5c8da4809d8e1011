/* conf: one YAML (or JSON) document as a tree of nodes that know their place. conf.c is the only file that includes
 * <yaml.h>. Tags, several documents, duplicate keys, cyclic aliases and non-UTF-8 are refused; size, depth and node
 * count are limited, aliases counted as expanded; `<<` merges as in YAML 1.1. */
#ifndef DTSIM_CONF_H
#define DTSIM_CONF_H

#include "base/base.h"

enum node_kind { NODE_SCALAR, NODE_SEQUENCE, NODE_MAPPING };

struct node {
    enum node_kind kind;
    struct loc loc;              /* where the value begins */
    const char *text;            /* scalar: its text; else NULL */
    bool quoted;                 /* scalar in quotes or a block: never a number, a boolean or null */
    struct node **items;         /* sequence: its items; mapping: its values */
    const char **keys;           /* mapping: its keys */
    struct loc *key_locs;        /* mapping: where each key stands */
    size_t count, capacity;      /* items */
};

enum {
    CONF_MAX_BYTES = 8 << 20,    /* of a file */
    CONF_MAX_DEPTH = 64,
    CONF_MAX_NODES = 1000000,    /* with every alias expanded */
};

/* The document in a file or in memory; NULL root only with -1. The tree lives in the arena. Messages give `name`. The
 * path "-" is standard input. */
int conf_load(struct arena *arena, const char *path, struct node **root, struct error *err);
int conf_parse(struct arena *arena, const char *name, const char *text, size_t length, struct node **root,
               struct error *err);

/* The value of a mapping's key, or NULL (also when `mapping` is NULL or no mapping). */
struct node *node_get(const struct node *mapping, const char *key);
/* The same along a dotted path: "strategy.tensor". */
struct node *node_at(const struct node *root, const char *path);
/* Whether the value is null, ~ or nothing. */
bool node_is_null(const struct node *node);
/* Where the key's value stands, or, when it was left out, where the mapping begins. */
struct loc node_loc(const struct node *mapping, const char *key);

/* New nodes (for resolved output). A scalar that YAML could take for something else is `quoted`. */
struct node *node_scalar(struct arena *arena, const char *text, bool quoted);
struct node *node_sequence(struct arena *arena);
struct node *node_mapping(struct arena *arena);
void node_append(struct arena *arena, struct node *sequence, struct node *item);
/* Sets or replaces a key's value. */
void node_put(struct arena *arena, struct node *mapping, const char *key, struct node *value);
/* The base with the other mapping's keys over it, each at the place where it was written; mappings are merged key by
 * key, everything else is replaced. */
struct node *node_merge(struct arena *arena, const struct node *base, const struct node *over);

/* --set PATH=VALUE: VALUE is read as YAML and put at the dotted path; missing mappings on the way are made, a scalar on
 * the way is an error; list items are named by number ("model.layers.0.forward"). Aliased parts are changed for this
 * path alone. Messages name the place "--set PATH=VALUE". Error code: EXIT_USAGE when there is no '=' or path. */
int conf_set(struct arena *arena, struct node *root, const char *assignment, struct error *err);

/* The same with a value that is a node: `path` stands at `loc`, which messages name. Its parts must not be empty. */
int conf_put(struct arena *arena, struct node *root, const char *path, struct node *value, struct loc loc,
             struct error *err);

/* The tree as YAML, block style; short mappings and sequences of scalars in flow style. Reads back to the same tree. */
void node_print(const struct node *root, FILE *out);
/* The tree as JSON. A scalar that is not quoted and reads as a JSON number, true, false or null is printed bare. */
void node_print_json(const struct node *root, FILE *out);

#endif
