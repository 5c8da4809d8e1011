/* shell_internal: the state of the reader, for shell*.c only. */
#ifndef DTSIM_SHELL_INTERNAL_H
#define DTSIM_SHELL_INTERNAL_H

#include "launch/shell.h"

/* A character and the place where it was written, which goes with it through variables. */
struct cell { char c; int line, column; };
struct shell_cells {
    struct cell *items;
    size_t count, capacity;
};
/* The fields of a word: what is not quoted is split at blanks. */
struct fields {
    struct shell_cells *items;
    size_t count, capacity;
    bool open;                       /* the last one may grow */
    bool whole;                      /* there is to be but one: items of arrays are joined by spaces */
};
struct variable {
    const char *name;
    struct fields value;             /* one value, or the values of an array */
    bool present, fixed;             /* fixed: the caller said it, or it is readonly */
    bool odd;                        /* declared as a number, a reference, ...: what is put into it becomes another value */
    size_t doubt;                    /* 1 + the index of the doubt that made its value a mark; 0: none did */
    size_t since;                    /* how many doubts there were when it was set */
};
/* What a variable was before it was set: a subshell and a function give that back. */
struct snapshot { size_t variable; struct variable was; };
struct snapshots { struct snapshot *items; size_t count, capacity; };
/* Whether a command is run. LIFE_LIKELY: where other programs succeed. */
enum life { LIFE_DEAD, LIFE_MAYBE, LIFE_LIKELY, LIFE_SURE };
enum joint { JOINT_NONE, JOINT_AND, JOINT_OR };

/* Commands that && , || and | join. */
struct chain {
    enum joint joint;                /* before the pipeline under way */
    enum life life;                  /* of its commands */
    enum life before, status;        /* whether what stands before it succeeded; with it */
    bool any, piped, negated;        /* piped: the command reads a pipe; so it runs in a subshell */
    size_t begin, element;           /* snapshots at the beginning of the list, and of the command under way */
};
enum { SHELL_MAX_FRAMES = 64 };
struct frame {
    enum frame_kind { FRAME_IF, FRAME_LOOP, FRAME_CASE, FRAME_GROUP, FRAME_SUBSHELL, FRAME_FUNCTION } kind;
    enum life outer, life, reach;    /* around it; at its begin; of the script */
    bool condition;                  /* its condition is being read */
    bool ended;                      /* the script, when it began */
    bool taken, maybe;               /* an earlier branch was, or may have been; of a function: it is surely defined */
    struct chain list;                /* in which it stands */
    size_t snapshots;                /* how many there were when it began */
    const char *name;                /* of a function */
    size_t body;                     /* where its body begins */
    char close;                      /* its last character */
};
struct shell_function {
    const char *name;
    const struct cell *source;
    size_t length;
    bool subshell, certain;
};
struct shell {
    struct arena *arena;
    struct error *err;
    const char *file;
    const struct cell *source;
    size_t at, length, cells;        /* where it reads; how many cells there are by now */
    int depth, calls, inside;        /* inside: functions under way */
    struct variable *variables;
    size_t nvariables, capacity;
    struct variable argument;        /* what shell_variable made of $1, $2, ... */
    struct snapshots undo, locals;
    struct functions { struct shell_function *items; size_t count, capacity; } functions;
    struct shell_commands *commands;
    struct frame frames[SHELL_MAX_FRAMES];
    int nframes, base;               /* base: frames of the scripts around */
    enum life life, now, reach;      /* of the block; of the command under way; behind exit and return */
    enum life last;                  /* whether the last list succeeded */
    struct chain list;
    bool ended;                      /* by exit */
    bool loop_name, case_word;       /* the next words are NAME in ..., WORD in */
    const char *heredoc;             /* the line that ends the here-document that begins on the next line; or NULL */
    bool tabs;                       /* tabs may stand before it */
    /* Reads a script within the script: one in quotes, or a function's. */
    int (*inner)(struct shell *shell, const struct cell *items, size_t count, enum life life);
};

/* shell_state.c */
struct loc shell_loc(const struct shell *shell);
/* The character `ahead` cells further; 0: past the end. */
char shell_peek(const struct shell *shell, size_t ahead);
int shell_push(struct shell *shell, struct shell_cells *cells, struct cell cell);
/* The characters of a text, all of them at one place. */
struct shell_cells shell_cells(struct shell *shell, const char *text, struct loc loc);
const char *shell_text(struct arena *arena, const struct shell_cells *cells);
/* A variable that is set, or an argument of a function; NULL: there is none. */
struct variable *shell_variable(struct shell *shell, const char *name);
/* A variable's place; a new one is not present. */
struct variable *shell_make(struct shell *shell, const char *name);
/* Sets a variable, or adds to its end. Where the command may not run nobody knows what it is afterwards. */
int shell_assign(struct shell *shell, const char *name, const struct fields *value, bool add, enum life life);
/* The same where nobody knows the value. */
void shell_spoil(struct shell *shell, const char *name, enum life life);
int shell_unset(struct shell *shell, const char *name, enum life life);
bool shell_is_name(const char *text, size_t length);
/* Remembers a variable before it is set. */
int shell_remember(struct shell *shell, size_t variable);
/* Gives variables back what they were when there were `count` snapshots. */
void shell_undo(struct shell *shell, size_t count);
/* The variable is the function's own; the function's end gives it back. */
void shell_local(struct shell *shell, const char *name);
void shell_end_locals(struct shell *shell, size_t count);
/* Skips blanks, comments and continued lines; newlines too where `lines`. */
void shell_skip_blanks(struct shell *shell, bool lines);

/* shell_doubt.c */
/* The statement from `begin` up to the reader's place is not evaluated: what it may set is in doubt. name: one variable,
 * which is not known from here on; NULL: any. */
void shell_doubt(struct shell *shell, size_t begin, const char *name, enum life life);
/* A variable's value is used, or a variable that is not set: tells the doubts that concern it. */
void shell_used(struct shell *shell, const char *name, const struct variable *variable);
/* A doubt for each variable that arithmetic sets. */
void shell_doubt_arithmetic(struct shell *shell, size_t begin, const char *text, enum life life);

/* shell_block.c */
/* A redirection: its file is skipped, the end of a here-document remembered. */
int shell_skip_redirection(struct shell *shell);
/* The lines of a here-document, and the one that ends it. */
int shell_skip_document(struct shell *shell);
struct frame *shell_top(struct shell *shell);
int shell_open(struct shell *shell, enum frame_kind kind);
/* Ends the block; `status`: whether it succeeded. */
void shell_close(struct shell *shell, enum life status);
/* What a word that shells reserve says of the commands behind it: shell->life. *is: whether the word is one. */
int shell_keyword(struct shell *shell, const char *word, bool *is);
/* NAME () or function NAME, with the reader behind the name. */
int shell_function(struct shell *shell, const char *name, size_t begin);
/* Keeps the body of the function that ends before the reader's place. */
void shell_end_function(struct shell *shell);
/* A command is over, or a block; a list of commands is over; && or || follows. */
void shell_succeeded(struct shell *shell, enum life status);
void shell_end_list(struct shell *shell);
void shell_join(struct shell *shell, enum joint joint);

/* shell_builtin.c */
/* The shell's own commands that set variables or end something. Their words are fields; `begin`: where the command
 * begins. 1: it was one, and *status says whether it succeeded; 0; -1: an error. */
int shell_builtin(struct shell *shell, const struct fields *fields, size_t begin, enum life life, enum life *status);
/* Words of declare, export, local, readonly besides NAME=VALUE. */
int shell_declared(struct shell *shell, const struct fields *fields, size_t begin, enum life life);
/* Calls a function, if the first word is the name of one. before: assignments stand before it. 1, 0 or -1. */
int shell_call(struct shell *shell, const struct fields *fields, size_t begin, bool before, enum life *status);

/* shell_command.c */
/* A simple command up to what ends it. */
int shell_simple(struct shell *shell);

/* shell_word.c */
/* Reads one word and adds its fields; `whole`: it is not split (the value of an assignment). */
int shell_word(struct shell *shell, struct fields *fields, bool whole);
/* Reads to the character `end` as if in double quotes, expands, and adds to the fields' last one. */
int shell_quoted(struct shell *shell, struct fields *fields, char end, struct loc opened);

/* shell_value.c */
/* The value of $(( )); false: something in it is not known, or it is no arithmetic of whole numbers. */
bool shell_arithmetic(struct shell *shell, const char *text, long long *value);
/* Whether [ WORDS ] holds; LIFE_MAYBE: not known. pattern: of [[ ]], where the word behind = is one. */
enum life shell_test(struct shell *shell, const struct shell_word *words, size_t count, bool pattern);

#endif
