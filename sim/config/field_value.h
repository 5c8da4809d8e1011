/* field_value: one scalar of a table; for field*.c only. */
#ifndef DTSIM_FIELD_VALUE_H
#define DTSIM_FIELD_VALUE_H

#include "config/field.h"

/* What is being read: for the messages. */
struct reading {
    struct arena *arena;
    const char *name;            /* the table's, before every message */
    struct error *err;
    const char *unsaid;          /* a key that messages leave out, for the user did not write it; or NULL */
};

/* Adds "name: key: text"; key may be NULL. Returns -1. */
int reading_fail(const struct reading *reading, struct loc loc, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* "expected ..., found ...", with what the node is. Returns -1. */
int reading_unexpected(const struct reading *reading, const struct node *node, const char *key, const char *expected);

/* INT, BOOL, QUANTITY, STRING or CHOICE into *member. */
int value_parse(const struct reading *reading, const struct field *field, const struct node *node, void *member);
/* A name of `choices` as its index. */
int choice_parse(const struct reading *reading, const struct field *field, const struct node *node, int *index);

/* The i-th name a CHOICE accepts, NULL past the last. */
const char *choice_at(const struct field *field, size_t i);
/* "1f1b, gpipe" */
char *choices_text(struct arena *arena, const struct field *field);
/* What an INT, BOOL, QUANTITY or STRING is called where something else is found: "an integer". */
const char *value_expectation(const struct field *field);

/* The bounds that hold: true and the bound where there is one. An integer's outermost bounds are those of int. */
bool field_min(const struct field *field, double *min);
bool field_max(const struct field *field, double *max);
/* "1 to 8", "1 or more", "at most 8", "more than 0 and at most 1"; NULL when there is no bound. */
char *bounds_text(struct arena *arena, const struct field *field);

/* Where the object remembers the mapping it came from. */
const struct node **object_node(const struct table *table, const void *object);
/* Whether the word is one of the space-separated ones. */
bool word_in(const char *words, const char *word);

#endif
