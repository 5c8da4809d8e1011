/* field_value: reads one scalar of a table, and finds fields; for field*.c only. */
#ifndef DTSIM_FIELD_VALUE_H
#define DTSIM_FIELD_VALUE_H

#include "config/field.h"

/* The arena, the errors and the names that all functions of a reading need. */
struct reading {
    struct arena *arena;
    const char *name;            /* the table's, before every message */
    struct error *err;
    const char *unsaid;          /* a key that messages leave out because the user did not write it; or NULL */
    bool partial;                /* of a partial table, or of a mapping inside one (struct table) */
};

/* Adds "name: key: text"; key may be NULL. Returns -1. */
int reading_fail(const struct reading *reading, struct loc loc, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds "expected ..., found ..." with the node's text or kind. Returns -1. */
int reading_unexpected(const struct reading *reading, const struct node *node, const char *key, const char *expected);

/* Reads an INT, BOOL, QUANTITY, STRING or CHOICE, or one item of INTS, into *member. */
int value_parse(const struct reading *reading, const struct field *field, const struct node *node, void *member);
/* Reads a name of the field's choices into *index. */
int choice_parse(const struct reading *reading, const struct field *field, const struct node *node, int *index);

/* Reads a value of any kind into *member. */
int field_value(const struct reading *reading, const struct field *field, const struct node *node, void *member);
/* Reads the table's own keys of the mapping (NULL: the defaults), not the keys of its extension. */
int fields_parse(const struct reading *reading, const struct table *table, const struct node *node, void *object);

/* Whether other programs use the word for the field's key (`also`); case does not count, nor '-' instead of '_'. */
bool field_is_also(const struct field *field, const char *word);

/* Two tables whose keys stand in the same mapping; the second may be NULL. The first may host keys of others. */
struct key_tables {
    const struct table *tables[2];
};
bool key_known(const struct key_tables *keys, const char *key);

const char *key_candidate(size_t i, const void *key_tables);
/* "a, b, c": all of them. */
char *keys_text(struct arena *arena, const struct key_tables *keys);
/* The key that was meant by a word that is none; NULL: nobody knows. */
const char *key_meant(const struct key_tables *keys, const char *word);
/* Where in the tables below a key stands that a table has not itself: "strategy.tensor" of the scenario for "tensor";
 * in the arena, NULL: nowhere, or in several places. */
const char *key_below(struct arena *arena, const struct table *table, const char *key);

/* The i-th name a CHOICE accepts, NULL past the last. */
const char *choice_at(const struct field *field, size_t i);
/* All names of the field's choices: "1f1b, gpipe". */
char *choices_text(struct arena *arena, const struct field *field);
/* What a message expects of an INT, BOOL, QUANTITY or STRING: "an integer". */
const char *value_expectation(const struct field *field);

/* Whether the field has a bound, and the bound. INT_MIN and INT_MAX are not bounds of an integer. */
bool field_min(const struct field *field, double *min);
bool field_max(const struct field *field, double *max);
/* The bounds as text: "1 to 8", "1 or more", "at most 8", "more than 0 and at most 1"; NULL if there is none. */
char *bounds_text(struct arena *arena, const struct field *field);

/* The member of the object that holds the mapping it was read from. */
const struct node **object_node(const struct table *table, const void *object);

#endif
