/* field: a table describes the keys of a mapping. Parsing, defaults, resolved output, help and the JSON schema all use
 * the same table. */
#ifndef DTSIM_FIELD_H
#define DTSIM_FIELD_H

#include <limits.h>

#include "base/units.h"
#include "config/conf.h"

enum field_kind {
    FIELD_INT,          /* int */
    FIELD_BOOL,         /* bool; true and false only */
    FIELD_QUANTITY,     /* double, of `unit` */
    FIELD_STRING,       /* const char * */
    FIELD_CHOICE,       /* int: index into `choices`, or of `choice` */
    FIELD_RECORD,       /* a struct described by `table`, in place */
    FIELD_OPTIONAL,     /* a pointer to a struct described by `table`; NULL when left out */
    FIELD_LIST,         /* struct list of structs described by `table`; with `single`, one mapping stands for [it] */
    FIELD_CHOICES,      /* struct list of int: a sequence of names from `choices` */
    FIELD_INTS,         /* struct list of int */
};

/* The value of an INT that says auto. */
#define FIELD_AUTO INT_MIN

/* A parsed sequence; items is an array of structs of the field's table, or of int. */
struct list {
    void *items;
    size_t count;
    const struct node *node;    /* the value that was read; NULL if it was left out */
};

/* Whether `auto` was read, and not a list. */
static inline bool list_is_auto(const struct list *list)
{
    return list->node && !list->count && list->node->kind == NODE_SCALAR;
}
bool list_has(const struct list *list, int value);       /* of CHOICES or INTS */
/* Whether `words`, separated by spaces, contain the word; NULL contains none. */
bool word_in(const char *words, const char *word);

/* A function that gives the names that a CHOICE accepts, where they do not stand in one array. NULL past the last. */
typedef const char *choice_name(size_t index);

/* The names of an enum (ENUM_NAMES), or any others, for `choices`. */
#define CHOICES(LIST) (const char *const[])ENUM_NAMES(LIST)
#define NAMES(...) (const char *const[]){__VA_ARGS__, NULL}

struct table;
struct field {
    const char *key;
    enum field_kind kind;
    size_t offset;              /* of the member in the struct */
    const char *brief;          /* one line of help: the meaning of the value */
    const char *also;           /* space-separated words that other programs use for the key: messages and help know
                                   them, a file may not hold them; or NULL */
    const char *fallback;       /* the default as YAML text, parsed as if the user had written it; NULL: no default */
    bool required;              /* without a default, it is an error to leave the key out, */
    bool (*dispensable)(const struct node *mapping);     /* unless this function is true of the mapping; or NULL */
    enum unit unit;             /* QUANTITY */
    double min, max;            /* INT, INTS and QUANTITY: inclusive bounds; both 0: none, but a QUANTITY is >= 0; a max
                                   below min, infinite or INT_MAX is no bound, so that {.min = 1} is "1 or more" */
    bool by_name;               /* QUANTITY: a mapping of names to such values is allowed too, of which the reader chooses one */
    bool positive;              /* QUANTITY: 0 is refused */
    const char *const *choices; /* CHOICE, CHOICES */
    choice_name *choice;        /* or this */
    const char *const *choice_briefs;   /* a line of help for each of `choices`, in their order, NULL-terminated; NULL:
                                   the brief alone says it */
    const struct table *table;  /* RECORD, OPTIONAL, LIST */
    bool single;                /* LIST, CHOICES: a mapping or a name alone stands for a sequence of one */
    bool may_be_empty;          /* LIST, CHOICES, INTS: [] is allowed; else it is an error */
    const char *files;          /* STRING: the folder whose files it names ("platforms/gpus"), where it is no path; or NULL */
    const char *names;          /* STRING: further names, between spaces, that are no files ("ideal"); or NULL */
    bool may_be_auto;           /* INT: the word auto is allowed (FIELD_AUTO); INTS, not empty ones: list_is_auto */
    /* RECORD: reads the value (never null) instead of field_parse(table); the table then serves only help, schema and
     * dump. It is not called if the key is left out and has no default: the record then stays zero. */
    int (*load)(struct arena *arena, const struct node *value, void *object, struct error *err);
};

struct table {
    const char *name;           /* before messages: "strategy: unknown key ..."; "" or NULL: no name */
    const char *brief;          /* one line of help */
    const struct field *fields;
    size_t count;
    size_t size;                /* of the struct */
    size_t node_offset;         /* of its member `const struct node *node`: the mapping that it was read from */
    const char *shorthand;      /* instead of the mapping a scalar S is allowed and means {shorthand: S}; or NULL */
    bool bare;                  /* the scalar is the usual form: it is printed so, and messages about it do not name the
                                   key, which the user did not write */
    bool partial;               /* any keys of another table: no key is required and none has a default, nor in its mappings */
    const char *exactly_one;    /* space-separated keys; exactly one of them must be given; or NULL */
    /* Whether the object has no such key, which its dump leaves out then; or NULL. */
    bool (*hides)(const void *object, const char *key);
    const char *delegated;      /* space-separated keys that the user writes in the mapping of another table, its
                                   host, and never in this one's; or NULL */
    /* The i-th table whose delegated keys this table hosts; NULL past the last, or no such function. The user writes
     * these keys in this table's mapping; its reader moves them to their own tables (field_supply). */
    const struct table *(*hosts)(size_t i);
    /* A second table, which depends on the values of this one (the options of the chosen schedule). Its keys stand in
     * the same mapping. The function returns the table and sets *extra to the address of its struct, which it allocates
     * from the arena. It is called once all fields of this table could be read, and again for a dump: it must allocate
     * only once and keep the address in the object. NULL, or a NULL result: there is no second table. */
    const struct table *(*extension)(struct arena *arena, void *object, void **extra);
    /* All tables that `extension` may return, for help and schema: the i-th, NULL past the last. One may come twice. */
    const struct table *(*extension_at)(size_t i);
    /* The message for a key that neither table has but another one does ("'x' is an option of a, not of b"), or NULL.
     * The function may be NULL too. */
    const char *(*misplaced)(struct arena *arena, const void *object, const char *key);
};

/* The place of a field: KEY where the key is called as its member in the struct, AT where .key says another name. */
#define AT(record, member) .offset = offsetof(struct record, member)
#define KEY(record, member) .key = #member, AT(record, member)
/* A table of the struct, by its array of fields. */
#define TABLE(text, help, record, list) \
    .name = text, .brief = help, .fields = list, .count = COUNT(list), .size = sizeof(struct record), \
    .node_offset = offsetof(struct record, node)

/* Fills *object, which it zeroes first, from the mapping; with `node` NULL all values are defaults. Reports every
 * mistake, each at its place, then returns -1: unknown or missing keys, wrong kinds, empty lists, wrong units, values
 * out of range. Integers must be decimal.
 * A value that is left out and has no default is 0, NULL, an empty list or, if a QUANTITY, NaN. A RECORD that is left
 * out has the defaults of its table; required keys and exactly_one apply only to a mapping that was written. */
int field_parse(struct arena *arena, const struct table *table, const struct node *node, void *object,
                struct error *err);

/* The same, sooner, of a mapping that differs in few values from one that was read before without errors: `like` is that
 * object, which must outlive this one. A value that is the very same node in both is copied, the others are read. False:
 * there is a mistake, or the two are too unlike; then only field_parse says more. */
bool field_parse_like(struct arena *arena, const struct table *table, const struct node *node, const void *like,
                      void *object);

/* Refuses a value that is wrong whatever the other keys say: by its kind, unit, range or name. Does not look into
 * values that a table or a function reads. Messages begin with `name`, the mapping of the key. */
int field_check(const struct field *field, const char *name, const struct node *value, struct error *err);

/* Sets those keys of `values` that the table has and the object's mapping leaves out, as if they stood there; where
 * nobody said them of this object (`supplied`) their nodes are marked so. Messages begin with `name`. The mapping itself is
 * not changed: the object gets another one. */
struct supplying { const char *name; bool supplied; };
int field_supply(struct arena *arena, const struct table *table, void *object, const struct node *values,
                 struct supplying how, struct error *err);
/* Takes a key back that was supplied: the default is as if nobody had said anything. */
void field_withdraw(struct arena *arena, const struct table *table, void *object, const char *key);
/* Whether the key's value was supplied. */
bool field_supplied(const struct table *table, const void *object, const char *key);

/* Makes way for a value at the dotted path below the tree, whose root the table describes: a scalar on the way that
 * stands for a mapping (a shorthand: `cluster: dgx-a100`) becomes this mapping. Error: the path is too long. */
int field_open(struct arena *arena, const struct table *table, struct node *root, const char *path, struct error *err);

/* Fills *object from a file that many scenarios name. Where the arena has a cache that is done once: what *object
 * points to is shared then, and const. */
int field_load(struct arena *arena, const struct table *table, const char *path, void *object, struct error *err);

/* The table's field of that key; NULL: none, or no table. */
const struct field *field_find(const struct table *table, const char *key);
/* The i-th delegated field of other tables that this table hosts; NULL past the last. */
const struct field *field_hosted(const struct table *table, size_t i);
/* The i-th field whose key the user writes in the table's mapping: first the table's own fields without the delegated
 * ones, then the fields that it hosts. NULL past the last. */
const struct field *field_standing(const struct table *table, size_t i);
/* The field of that key, which is `length` bytes long; NULL: none. */
const struct field *field_at(const struct table *table, const char *key, size_t length);

/* Whether the user gave that key. */
bool field_given(const struct table *table, const void *object, const char *key);
/* The place of the key's value or, if the key was left out, of its mapping. */
struct loc field_loc(const struct table *table, const void *object, const char *key);

/* The object as a tree with every default filled in; reading it back gives the same object. Values that were given
 * keep their places, others have none. These are left out:
 * - quantities that are NaN or infinite,
 * - NULL strings, NULL optionals, and empty lists that were not given and have no default,
 * - integers, choices and booleans that are 0, were not given and have no default,
 * - records and integers among exactly_one that were not given. */
struct node *field_dump(struct arena *arena, const struct table *table, const void *object);
/* One value of it, given or not; NULL where it has none. */
struct node *field_dump_key(struct arena *arena, const struct table *table, const void *object, const char *key);

/* Adds to the key the values of all fields of the object, of an extension's fields too: objects of the table with the
 * same bytes are the same but for their places in files. */
struct cache_key;
void field_key(const struct table *table, const void *object, struct cache_key *key);

/* The fields as help text (key, choices or unit, default, brief), indented by depth. */
void field_help(const struct table *table, int depth, FILE *out);
/* A line for each key of the table and of the tables right below it: what it means, in short. */
void field_summary(const struct table *table, FILE *out);
/* The help of the fields that a table hosts. */
void field_help_hosted(const struct table *table, FILE *out);
/* The help of one key at a dotted path, "cluster.network". Prints nothing and returns false if there is no such key. */
bool field_help_at(const struct table *table, const char *path, FILE *out);
/* The help of a key, "zero", or of a word that other programs use for it, wherever the table, a table below it or an
 * extension has it, each after a line with its path. Returns false if there is none. */
bool field_help_everywhere(const struct table *table, const char *key, FILE *out);

/* The table as a JSON schema (draft 2020-12), a tree for node_print_json. A table with an extension allows the keys of
 * all its extensions, whatever the other values are. */
struct node *field_schema(struct arena *arena, const struct table *table);

#endif
