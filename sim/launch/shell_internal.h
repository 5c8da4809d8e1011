/* shell_internal: the state of the reader, for shell*.c only. */
#ifndef DTSIM_SHELL_INTERNAL_H
#define DTSIM_SHELL_INTERNAL_H

#include "launch/shell.h"

/* A character and the place where it was written, which goes with it through variables. */
struct cell { char c; int line, column; };
struct cells {
    struct cell *items;
    size_t count, capacity;
};
/* The fields of a word: what is not quoted is split at blanks. */
struct fields {
    struct cells *items;
    size_t count, capacity;
    bool open;                       /* the last one may grow */
    bool whole;                      /* there is to be but one: items of arrays are joined by spaces */
};
struct variable {
    const char *name;
    struct fields value;             /* one value, or the values of an array */
    bool fixed;                      /* the caller said it */
};
/* Whether a command is run. */
enum life { LIFE_DEAD, LIFE_MAYBE, LIFE_SURE };

enum { SHELL_MAX_FRAMES = 64 };
struct frame {
    enum { FRAME_IF, FRAME_LOOP, FRAME_CASE } kind;
    enum life outer;
    bool condition;                  /* its condition is being read */
    bool taken, maybe;               /* an earlier branch was, or may have been */
    int tests;                       /* commands of the condition */
    enum life result;                /* of its last one */
};
struct shell {
    struct arena *arena;
    struct error *err;
    const char *file;
    const struct cell *source;
    size_t at, length, cells;        /* where it reads; how many cells there are by now */
    int depth;
    struct variable *variables;
    size_t nvariables, capacity;
    struct shell_commands *commands;
    struct frame frames[SHELL_MAX_FRAMES];
    int nframes;
    enum life life, chain;           /* of the block; of the next command alone (behind && and ||) */
    const char *heredoc;             /* the line that ends the here-document that begins on the next line; or NULL */
};

/* shell_state.c */
struct loc shell_loc(const struct shell *shell);
/* The character `ahead` cells further; 0: past the end. */
char shell_peek(const struct shell *shell, size_t ahead);
int shell_push(struct shell *shell, struct cells *cells, struct cell cell);
/* The characters of a text, all of them at one place. */
struct cells shell_cells(struct shell *shell, const char *text, struct loc loc);
const char *shell_text(struct arena *arena, const struct cells *cells);
struct variable *shell_variable(struct shell *shell, const char *name);
/* Sets a variable, or adds to its end. Where the command may not run nobody knows what it is afterwards. */
int shell_assign(struct shell *shell, const char *name, const struct fields *value, bool add, enum life life);
/* Skips blanks, comments and continued lines; newlines too where `lines`. */
void shell_skip_blanks(struct shell *shell, bool lines);

/* shell_block.c */
/* A redirection: its file is skipped, the end of a here-document remembered. */
int shell_skip_redirection(struct shell *shell);
/* The lines of a here-document, and the one that ends it. */
int shell_skip_document(struct shell *shell);
/* What a word that shells reserve says of the commands behind it: shell->life. false: the word is none of them. */
bool shell_keyword(struct shell *shell, const char *word);

/* shell_word.c */
/* Reads one word and adds its fields; `whole`: it is not split (the value of an assignment). */
int shell_word(struct shell *shell, struct fields *fields, bool whole);
/* Reads to the character `end` as if in double quotes, expands, and adds to the fields' last one. */
int shell_quoted(struct shell *shell, struct fields *fields, char end, struct loc opened);

/* shell_value.c */
/* The value of $(( )); false: something in it is not known, or it is no arithmetic of whole numbers. */
bool shell_arithmetic(struct shell *shell, const char *text, long long *value);
/* Whether [ WORDS ] holds; LIFE_MAYBE: not known. */
enum life shell_test(struct shell *shell, const struct shell_word *words, size_t count);

#endif
