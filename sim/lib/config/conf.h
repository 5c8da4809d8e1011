/* conf: reads one YAML (or JSON) document into a tree of nodes, each with its place in the file. conf.c is the only
 * file that includes <yaml.h>. Tags, several documents, duplicate keys, cyclic aliases and text that is not UTF-8 are
 * refused. Size, depth and the number of nodes (with aliases expanded) are limited. `<<` merges as in YAML 1.1. */
#ifndef DTSIM_CONF_H
#define DTSIM_CONF_H

#include "base/base.h"

struct made;

enum node_kind { NODE_SCALAR, NODE_SEQUENCE, NODE_MAPPING };

struct node {
    enum node_kind kind;
    struct loc loc;              /* where the value begins */
    const char *text;            /* scalar: its text; else NULL */
    bool quoted;                 /* scalar in quotes or a block: never a number, a boolean or null */
    bool supplied;                   /* nobody wrote the value here: field_supply put it here */
    const void *changes;         /* the mark of those that made this copy (conf_change), or NULL */
    struct node **items;         /* sequence: its items; mapping: its values */
    const char **keys;           /* mapping: its keys */
    struct loc *key_locs;        /* mapping: the place of each key */
    struct key_places *places;   /* of a large mapping: where the hash of a key says that it stands; or NULL */
    size_t count, capacity;      /* of items */
};

enum {
    CONF_MAX_BYTES = 8 << 20,    /* of a file */
    CONF_MAX_DEPTH = 64,
    CONF_MAX_NODES = 1000000,    /* with every alias expanded */
};

/* Reads the document in a file or in memory. The tree lives in the arena; *root is NULL only if the result is -1.
 * `name` stands for the file in messages. The path "-" is standard input. */
int conf_load(struct arena *arena, const char *path, struct node **root, struct error *err);
/* The same of a file that many scenarios name. Where the arena has a cache the tree is read once and lives there. */
int conf_shared(struct arena *arena, const char *path, const struct node **root, struct error *err);
int conf_parse(struct arena *arena, const char *name, const char *text, size_t length, struct node **root,
               struct error *err);

/* Makes what conf_load finds instead of reading the file again. */
int conf_make(struct made *made, const char *path, struct error *err);

/* A file's description of itself: its `title`, else its `source`, else "the same as" its `alias`; "" where it has none
 * or is damaged, which is allowed where names are only listed. -1: the system did not let it be read (error_system). */
int conf_title(struct arena *arena, const char *path, const char **title, struct error *err);

/* The value of a mapping's key; NULL if there is none, or if `mapping` is NULL or not a mapping. */
struct node *node_get(const struct node *mapping, const char *key);
/* The value at a dotted path, "strategy.tensor"; a list's items are named by number. NULL if there is none. */
struct node *node_at(const struct node *root, const char *path);
/* Whether both trees have the same values, mappings in the same order of keys. */
bool node_equal(const struct node *a, const struct node *b);
/* Whether the value is null, ~ or empty. */
bool node_is_null(const struct node *node);
/* The place of the key's value or, if the key was left out, of the mapping. */
struct loc node_loc(const struct node *mapping, const char *key);

/* New nodes, for resolved output. Text that YAML could read as a number, a boolean or null must be `quoted`. */
struct node *node_scalar(struct arena *arena, const char *text, bool quoted);
struct node *node_sequence(struct arena *arena);
struct node *node_mapping(struct arena *arena);
void node_append(struct arena *arena, struct node *sequence, struct node *item);
/* Sets or replaces a key's value. */
void node_put(struct arena *arena, struct node *mapping, const char *key, struct node *value);
/* A new mapping with the keys of both: where both have a key, two mappings are merged key by key, and any other value
 * of `over` replaces the value of `base`. Each key keeps the place where it was written. */
struct node *node_merge(struct arena *arena, const struct node *base, const struct node *over);

/* --set PATH=VALUE: reads VALUE as YAML and puts it at the dotted path. Missing mappings along the path are created; a
 * scalar along the path is an error. A list's items are named by number ("model.layers.0.forward"). If a value on the
 * path is shared by aliases, only this path's copy changes. Messages name the place "--set PATH=VALUE". Error code:
 * EXIT_USAGE if there is no '=' or no path. */
int conf_set(struct arena *arena, struct node *root, const char *assignment, struct error *err);
/* That place; a long assignment is cut. In the arena. */
struct loc conf_set_place(struct arena *arena, const char *assignment);

/* Begins many changes of one tree: until conf_changed(), conf_set and conf_put copy each node on their paths once, and not
 * for each of them; and after one that fails, the tree is good for nothing. */
void conf_change(struct arena *arena, struct node *root);
void conf_changed(struct node *root);

/* As conf_set, but the value is a node. Messages name `loc`, the place of `path`, whose parts must not be empty. */
int conf_put(struct arena *arena, struct node *root, const char *path, struct node *value, struct loc loc,
             struct error *err);

/* Prints the tree as YAML in block style, with short mappings and sequences of scalars in flow style. Reading it back
 * gives the same tree. */
void node_print(const struct node *root, FILE *out);
/* The same on one line, in flow style. */
const char *node_flow(struct arena *arena, const struct node *node);
/* The same, but a comment behind every value says in which file and line it was written, or "default" without a file;
 * no mapping is in flow style. */
void node_print_origins(const struct node *root, FILE *out);
/* Prints the tree as JSON. A scalar that is not `quoted` and is a JSON number, true, false or null gets no quotes. */
void node_print_json(const struct node *root, FILE *out);

#endif
