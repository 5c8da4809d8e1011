/* bash: runs a launch script in bash, in a sandbox (process/sandbox.h), and tells the commands that it would start. A program
 * that makes text of text runs; any other one is a command: its words, expanded once. It succeeds, and where its output is
 * read, a mark stands for that. Scripts that such a command runs (sbatch, srun bash, ssh, a here-document) are read in turn. */
#ifndef DTSIM_BASH_H
#define DTSIM_BASH_H

#include "base/base.h"
#include "process/sandbox.h"

enum { BASH_MAX_BYTES = 1 << 20 };
/* Around the name of what is not known: MARK_BEGIN NAME MARK_END. No script may hold these characters; bash has uses of its own
 * for '\1'. */
#define MARK_BEGIN '\2'
#define MARK_END '\3'

struct launch_word { const char *text; struct loc loc; };
struct launch_set { const char *name, *value; };
struct bash_command;

/* A script and what a person says beside it. */
struct bash_script {
    const char *file, *text;         /* file: for messages, and where it stands; "standard input": nowhere */
    size_t length;
    const char *const *arguments;    /* up to NULL; or NULL */
    const struct launch_set *environment;
    size_t nenvironment;
    const char *const *folders;      /* that it may read besides its own, up to NULL; or NULL */
    bool trust;                      /* without Landlock */
    long long gpus;                       /* of a node: what nvidia-smi counts */
    /* Writes the variables that a command gives to the script that it runs, as lines of a shell. */
    void (*variables)(struct arena *arena, const struct bash_command *command, FILE *out);
};
/* What is taken of what nobody knows. */
struct bash_world {
    const char *prints;              /* what other programs print; NULL: marks */
    const struct launch_set *marks;  /* variables that nobody sets */
    size_t nmarks;
    bool fails;                      /* other programs fail */
    bool passes;                     /* exit is passed over */
    bool arrays;                     /* variables that hold arguments are told, too */
};
struct bash_command {
    enum bash_kind { BASH_COMMAND, BASH_CAPTURED, BASH_EXIT, BASH_ABSENT, BASH_ARRAY, BASH_HEADER } kind;
    struct launch_word *words;
    size_t count;
    const struct bash_command *outer;      /* the command that runs the script; NULL: none */
    struct loc loc;
    const char *name;                /* of its record */
};
struct bash_commands {
    struct bash_command **items;
    size_t count, capacity;
    const char *killed;              /* the limit that ended the script; NULL: none did */
    struct { struct bash_remark { struct loc loc; const char *text; } *items; size_t count, capacity; } remarks;
                                     /* what bash says of lines of the script */
};
/* A script that is open for reading. */
struct bash_reader {
    const struct bash_script *script;
    struct arena *arena;
    struct sandbox sandbox;
    const char *path;                /* where bash finds it */
    const char *functions;           /* programs that are called by a path */
    size_t nfunctions;
};

int bash_reader_open(struct bash_reader *reader, struct arena *arena, const struct bash_script *script, struct error *err);
/* Runs the script. All texts are the arena's; bash_commands_release frees the lists. */
int bash_run(struct bash_reader *reader, const struct bash_world *world, struct bash_commands *commands,
               struct error *err);
void bash_commands_release(struct bash_commands *commands);
void bash_reader_close(struct bash_reader *reader);
/* Where a word stands in the script, if it stands there once outside of comments; else `otherwise`. */
struct loc bash_place(const struct bash_script *script, const char *word, struct loc otherwise);
/* The name of the first thing in a word that is not known ("$(...)", "NODES"); NULL: all is known. */
const char *launch_unknown(struct arena *arena, const char *text);

#endif
