/* condition: an expression over the keys of objects that tables describe. It is parsed once, with the names that it reads,
 * and then asked of many objects of these tables.
 *
 * A name is a path ("strategy.zero"), whose value is that of the key (of a mapping that may stand as a word, such as
 * strategy.schedule, that word); `said.` and a path, whether somebody gave the key; or a fact, a word for what follows from
 * several keys ("replicas"). What nothing tells is open, and a condition is then undecided (VALUE_NONE), unless the rest
 * decides it. */
#ifndef DTSIM_CONDITION_H
#define DTSIM_CONDITION_H

#include "config/field.h"
#include "expression/expression.h"

/* The object that one table describes, by its path: "memory.recompute". object NULL: there is none, its keys are open. */
struct key_part {
    const char *path;
    const struct table *table;
    void *object;
    const char *also;            /* space-separated keys that the table does not delegate, but software files may give; or NULL */
};

/* What follows from keys, in one word. */
struct fact {
    const char *name;
    struct value (*of)(const void *subject);
};

struct key_parts {
    const struct key_part *items;
    size_t count;
    const struct fact *facts;    /* with a last one without a name; NULL: none */
    const void *subject;         /* of the facts */
    const struct node *root;     /* where parts stand of which nothing is said; or NULL */
    bool settled;                /* every key has its value; false: a key that is left out and has no default is open, as its
                                    value follows later */
};

/* A key by its path; field NULL: no part has such a key. */
struct member {
    const struct key_part *part;
    const struct field *field;
};
struct member parts_member(const struct key_parts *parts, const char *path);
/* The i-th path of all keys of the parts, in the arena; NULL past the last. */
const char *parts_path_at(struct arena *arena, const struct key_parts *parts, size_t i);
enum { CONDITION_NAMES = 16 };   /* that a condition may read */
struct condition {
    struct expression *expression;
    struct condition_name {
        const char *path;        /* without `said.`, or the fact */
        const struct field *field;           /* NULL: a fact */
        int part, fact;          /* its number */
        bool said;
    } *names;
    int count;
};

/* Parses into the arena. -1: the first mistake, EXIT_INPUT. */
int condition_parse(struct arena *arena, const struct expression_text *text, const struct key_parts *parts,
                    struct condition *condition, struct error *err);
/* The value of the condition, or of another expression, for parts of the same tables; texts may stand in the arena. -1: an
 * error, such as a comparison of values of two kinds. */
int condition_evaluate(struct arena *arena, const struct condition *condition, const struct key_parts *parts,
                       struct value *value, struct error *err);
/* The same of a condition: anything but true, false and none is an error. */
int condition_holds(struct arena *arena, const struct condition *condition, const struct key_parts *parts,
                    struct value *value, struct error *err);

#endif
