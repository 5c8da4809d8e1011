/* shell: reads a launch script as a shell would, as far as words and variables go. Nothing is run: a command is only a
 * list of words. Of the shell's language it knows quotes, comments, continued lines, CRLF, here-documents, variables,
 * arrays, ${NAME:-default}, $(( )) of whole numbers, tests ([ A = B ], -z, -eq, ...) that choose a branch of an if,
 * functions and their arguments, subshells, and the shell's own commands that set variables (shell_builtin.c).
 * Whatever it cannot know ($1, $(...), a variable that the file never sets, or sets in a loop or in a branch that
 * may or may not be taken) stands in a word as a mark, so that it is an error only where somebody needs the value. What
 * it does not evaluate (source, let, read, ...) is a doubt: the statement, and the variables that are used behind it and
 * that it may have set. */
#ifndef DTSIM_SHELL_H
#define DTSIM_SHELL_H

#include "base/base.h"

enum {
    SHELL_MAX_BYTES = 1 << 20,       /* of a script */
    SHELL_MAX_CELLS = 4 << 20,       /* characters of all words and values together */
    SHELL_MAX_DEPTH = 32,            /* of ${A:-${B:-...}}, of scripts in quotes and of calls in calls */
    SHELL_MAX_CALLS = 1000,          /* of functions */
    SHELL_MAX_DOUBTS = 1000,
};
/* Around the name of what is not known: MARK_BEGIN NAME MARK_END. No script may hold these characters. */
#define MARK_BEGIN '\1'
#define MARK_END '\2'

struct shell_word { const char *text; struct loc loc; };
struct shell_command {
    struct shell_word *words;
    size_t count;
    bool certain;                    /* false: in a loop, or in a branch that may not be taken */
    struct shell_word *outer;        /* of a script in quotes: the words of the command that runs it (srun ...); or NULL */
    size_t nouter;
};
/* A statement that is not evaluated. any: it may set any variable. names: those of them that are used behind it. */
struct shell_doubt { struct loc loc; const char *what, *names; bool any; };
struct shell_commands {
    struct shell_command *items;
    size_t count, capacity;
    struct shell_doubts { struct shell_doubt *items; size_t count, capacity; } doubts;   /* in their order */
};

/* A variable that the caller knows: it keeps its value whatever the script says. */
struct shell_set { const char *name, *value; };

/* A variable that the script begins with, and where it is said. */
struct shell_given { struct shell_set set; struct loc loc; };
struct shell_script {
    const char *file, *text;         /* file: for messages */
    size_t length;
    const struct shell_set *sets;
    size_t nsets;
    const struct shell_given *given;
    size_t ngiven;
};

/* Reads the simple commands of a script in their order. Everything lives in the arena, but for the lists of `commands`,
 * which shell_commands_release frees. */
int shell_read(struct arena *arena, const struct shell_script *script, struct shell_commands *commands, struct error *err);
void shell_commands_release(struct shell_commands *commands);
/* The name of the first thing in a word that is not known ("$1", "$(...)", "NODES"); NULL: all is known. */
const char *shell_unknown(struct arena *arena, const char *text);

#endif
