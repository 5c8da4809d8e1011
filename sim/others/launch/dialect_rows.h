/* dialect_rows: rows of a dialect that go both ways. A row has two sides, what a launch says and what a scenario is then;
 * import reads it from left to right, emit from right to left:
 *
 *     {say: {window-size: 'N,0', window-attn-skip-freq: E}, is: {model.transformer.window: N + 1, model.transformer.full_every: E}}
 *
 * A value is a word; one of several words, of which `same` on the other side is the one that was found; or an expression in
 * names of one capital letter, which both sides share. A row fits where all values of the side that is read are there and
 * agree; an expression with one name that is not known yet says its value, a whole number. Rows are tried in their order, and
 * what one has written stays: a later one fits only if it agrees. '[L]' is a list, whose items L has with commas between them.
 * A row may have a message for who imports, or for who emits (cannot): <L> in it is a letter's value, <PATH> a scenario's, <NAME>
 * what messages call an argument. */
#ifndef DTSIM_DIALECT_ROWS_H
#define DTSIM_DIALECT_ROWS_H

#include "expression/expression.h"

enum { TERM_ITEMS = 4, TERMS = 8, LETTERS = 26 };     /* expressions name a letter by its number, paths behind them */

/* A key and its value: items with a comma or a blank between them. */
struct dialect_term {
    const char *key;
    const char *words;               /* one of these, between spaces; NULL: items */
    bool same;                       /* the one of the other side */
    struct { const char *text; struct expression *value; } items[TERM_ITEMS];    /* value NULL: the text as it is */
    size_t count;
    char between;
    bool list;                       /* in brackets */
};
struct dialect_side { struct dialect_term terms[TERMS]; size_t count; };
struct dialect_row {
    struct loc loc;                  /* in its file */
    const char *part;
    struct dialect_side say, is;
    const struct expression *where;  /* it fits only where this is true; or NULL */
    bool importing, emitting;        /* the directions in which it is read */
    bool always;                     /* it is imported also where none of its arguments is given */
    bool needed;                     /* it is emitted only where a launch without it means something else */
    const char *given;               /* it is imported only where all of these are given; or NULL */
    const char *unless;              /* it is imported only where none of these arguments is given; or NULL */
    const char *missing;             /* it fits only where nothing has been written to one of these keys; or NULL */
    enum tells { TELLS_NOTHING, TELLS_WARNING, TELLS_ERROR, TELLS_CANNOT } tells;    /* CANNOT: an error for who emits: what the
                                        framework refuses; the others are for who imports */
    const char *message;             /* or NULL */
    const char *at;                  /* the argument, or the key, at which the message stands */
};
struct dialect_rows {
    struct dialect_row *items;
    size_t count;
    const char *const *paths;        /* that their expressions name */
};

/* Parses rows: lists by the names of parts. -1: an error. */
int dialect_rows_read(struct arena *arena, const struct node *parts, struct dialect_rows *rows, struct error *err);

/* How the two sides are reached. */
struct dialect_ways {
    bool emits;
    bool (*wanted)(void *context, const struct dialect_row *row);            /* whether the row is to be tried */
    const char *(*read)(void *context, const char *key);     /* the value of the side that is read; NULL: there is none */
    const char *(*written)(void *context, const char *key);  /* what stands on the other side already; NULL: nothing */
    void (*write)(void *context, const struct dialect_row *row, const char *key, const char *value);
    const char *(*path)(void *context, const char *path);    /* of a scenario, for conditions; NULL: it is not known */
    void (*tell)(void *context, const struct dialect_row *row, const char *message);       /* NULL: there are no messages */
    void *context;
};
/* Whether a row that is imported takes this text as a value of the argument. *words: what rows take instead, for messages; NULL:
 * none asks for the argument. */
bool dialect_rows_take(struct arena *arena, const struct dialect_rows *rows, const char *argument, const char *text,
                       const struct dialect_ways *ways, const char **words);
/* Goes through the rows of a part. A condition that compares values of two kinds does not hold. */
void dialect_rows_apply(struct arena *arena, const struct dialect_rows *rows, const char *part, const struct dialect_ways *ways);

#endif
