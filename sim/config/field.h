/* field: tables that say, once, what a mapping may hold: they parse it, give its defaults, print it resolved, write the
 * help and the JSON schema. */
#ifndef DTSIM_FIELD_H
#define DTSIM_FIELD_H

#include "config/conf.h"
#include "base/units.h"

enum field_kind {
    FIELD_INT,          /* int */
    FIELD_BOOL,         /* bool; true and false only */
    FIELD_QUANTITY,     /* double, of `unit` */
    FIELD_STRING,       /* const char * */
    FIELD_CHOICE,       /* int: index into `choices`, or what choice_value says */
    FIELD_RECORD,       /* a struct described by `table`, in place */
    FIELD_OPTIONAL,     /* a pointer to a struct described by `table`; NULL when left out */
    FIELD_LIST,         /* struct list of structs described by `table`; with `single`, one mapping stands for [it] */
    FIELD_CHOICES,      /* struct list of int: a sequence of names from `choices` */
    FIELD_INTS,         /* struct list of int */
};

/* A parsed sequence; items are structs of the element's type, one after another. */
struct list {
    void *items;
    size_t count;
    const struct node *node;    /* where it came from; NULL when left out */
};

bool list_has(const struct list *list, int value);       /* CHOICES, INTS */

/* The names a CHOICE accepts: a NULL-terminated array, or a function for names that are collected elsewhere. */
typedef const char *choice_name(size_t index);      /* NULL past the last */

struct table;
struct field {
    const char *key;
    enum field_kind kind;
    size_t offset;              /* of the member in the struct */
    const char *brief;          /* one line of help: what it is, in which unit */
    const char *fallback;       /* the default as YAML text, parsed as if the user had written it; NULL: no default */
    bool required;              /* with no default: leaving it out is an error */
    bool (*dispensable)(const struct node *mapping);     /* ... unless this says so of the mapping; or NULL */
    enum unit unit;             /* QUANTITY */
    double min, max;            /* INT, INTS and QUANTITY: inclusive bounds; both 0: no bound but QUANTITY >= 0; a max
                                   below min or infinite (or INT_MAX) is none, so that {.min = 1} is "1 or more" */
    bool positive;              /* QUANTITY: 0 is refused */
    const char *const *choices; /* CHOICE, CHOICES */
    choice_name *choice;        /* or this */
    const char *const *choice_briefs;   /* a line of help for each of `choices`, in their order, NULL-terminated; NULL:
                                   the brief alone says it */
    const struct table *table;  /* RECORD, OPTIONAL, LIST */
    bool single;                /* LIST, CHOICES: a lone mapping or name stands for a sequence of one */
    bool may_be_empty;          /* LIST, CHOICES, INTS: [] is an answer; else it is an error, as it says nothing */
    /* RECORD: reads the value (never null) instead of field_parse(table), which then serves help, schema and dump
     * alone. Not called for what is left out and has no default: that stays zero. */
    int (*load)(struct arena *arena, const struct node *value, void *object, struct error *err);
};

struct table {
    const char *name;           /* stands before messages: "strategy: unknown key ..."; "" or NULL: nothing does */
    const char *brief;          /* one line of help */
    const struct field *fields;
    size_t count;
    size_t size;                /* of the struct */
    size_t node_offset;         /* of its member `const struct node *node`, which remembers the mapping it came from */
    const char *shorthand;      /* a scalar S where the mapping is expected stands for {shorthand: S}; or NULL */
    bool bare;                  /* the shorthand is the usual way to write it: so it is printed, and messages about the
                                   scalar do not name the key that was not written */
    bool partial;               /* keys of another table, whichever are wanted: none is missing, none has a default */
    const char *exactly_one;    /* space-separated keys of which exactly one must be given; or NULL */
    /* More fields that depend on what was read (the options of the chosen schedule): gives the table and where its
     * struct stands (allocated from the arena); the second table's keys stand in the same mapping. Called when the
     * first table's fields were understood, and again to dump: it allocates once, keeps the address in the object, and
     * gives that the next time. NULL, or a NULL table: none. */
    const struct table *(*extension)(struct arena *arena, void *object, void **extra);
    /* What to say of a key that stands in neither table but would elsewhere ("'x' is an option of a, not of b"), or
     * NULL. Not required. */
    const char *(*misplaced)(struct arena *arena, const void *object, const char *key);
};

/* Fills *object (zeroed first) from the mapping. Reports every mistake it finds, then returns -1. `node` NULL: all
 * defaults. What is left out and has no default is 0, NULL or an empty list, a QUANTITY NaN; a RECORD left out has the
 * defaults of its table, and keys are missing (required, exactly_one) only from a mapping that was written. Unknown
 * keys, missing keys, wrong kinds, empty lists, bad units and ranges are errors at their place. Integers are decimal
 * only; null, a list or a mapping where a scalar is expected are named as what they are. */
int field_parse(struct arena *arena, const struct table *table, const struct node *node, void *object,
                struct error *err);

/* Whether the user gave that key. */
bool field_given(const struct table *table, const void *object, const char *key);
/* Where the key's value stands, else where its mapping begins. */
struct loc field_loc(const struct table *table, const void *object, const char *key);

/* The object as a tree, every default filled in; reading it back gives the same object. Left out are quantities that
 * are NaN or infinite, NULL strings, NULL optionals and empty lists (unless given or with a default), and what was
 * neither given nor has a default and is still 0, or is one of exactly_one and was not given. */
struct node *field_dump(struct arena *arena, const struct table *table, const void *object);

/* The fields as help text (key, choices or unit, default, brief), indented by depth. */
void field_help(const struct table *table, int depth, FILE *out);
/* The same of one key, "cluster.network"; false, and nothing is printed, where the table has none. */
bool field_help_at(const struct table *table, const char *path, FILE *out);
/* And wherever the table and those below it have the key, "zero", each under its path. */
bool field_help_everywhere(const struct table *table, const char *key, FILE *out);

/* The table as a JSON schema (draft 2020-12), as a tree for node_print_json. A table with an extension allows further
 * keys. */
struct node *field_schema(struct arena *arena, const struct table *table);

#endif
