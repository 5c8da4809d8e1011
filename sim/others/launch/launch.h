/* launch: the arguments with which a training program was launched, from one of three kinds of text:
 *
 *   a script of bash          torchrun --nproc_per_node 8 pretrain_gpt.py ${MODEL_ARGS[@]} --bf16
 *   an argument list          --num-layers 32 --hidden-size 4096 ...
 *   the log of such a run     ------------------------ arguments ------------------------
 *                               num_layers ...................................... 32 */
#ifndef DTSIM_LAUNCH_H
#define DTSIM_LAUNCH_H

#include "launch/bash.h"

enum { LAUNCH_MAX_BYTES = 64 << 20 };    /* of a log; a script has BASH_MAX_BYTES */

struct launch_argument {
    const char *name;                /* without "--"; of a log with '-' for '_' */
    struct loc loc;
    struct launch_word *values;
    size_t count;
};
struct launch_arguments {
    struct launch_argument *items;
    size_t count, capacity;
};
/* What a reader should know of the file, at its place. */
struct launch_warnings {
    struct launch_warning { struct loc loc; const char *text; } *items;
    size_t count, capacity;
};
struct launch_words { struct launch_word *items; size_t count, capacity; };
/* An option of the launch that is not known, and why. */
struct launch_doubt { const char *name, *why; struct loc loc; };
struct import_options {
    const char *cluster;             /* a file of platforms/, or a path; NULL: dgx-h100 */
    bool strict;                     /* a warning is an error */
    const char *hf_config;           /* a Hugging Face config.json with the model; NULL: none */
    const struct launch_set *sets;   /* of arguments (num-layers, 32) */
    size_t nsets;
    const struct launch_set *environment;    /* variables of a script */
    size_t nenvironment;
    const char *const *arguments;    /* of a script, or Accelerate's file, up to NULL; or NULL */
    const char *const *folders;      /* that a script may read besides its own, up to NULL; or NULL */
    bool held;                       /* no script is run */
    bool trust;                      /* run a script where nothing holds it (process/sandbox.h) */
    int launch;                      /* which launch of a script, from 1; 0: the first one with a model */
};
struct launch {
    const char *file;
    const char *program;             /* "pretrain_gpt.py"; NULL: the file is a list or a log */
    bool log;                        /* every argument stands there with its value: True, None, ... */
    bool keys;                       /* the keys of a file, with their dotted paths; `log` too */
    struct loc loc;                  /* of the program, or where the list or the log begins */
    struct launch_arguments launcher;    /* as far as they are known: nnodes, nproc-per-node ("gpu": all of a node),
                                            world-size */
    struct launch_arguments arguments;   /* the program's, in their order */
    struct launch_warnings warnings;
    struct { struct launch_doubt *items; size_t count, capacity; } doubts;
};

/* Zero-initialise `launch`; launch_release when done. The arena has all texts. The path "-" is standard input. */
int launch_load(struct arena *arena, const char *path, const struct import_options *options, struct launch *launch,
                struct error *err);
/* A list of arguments, or one command; its words are divided, and nothing is expanded. */
int launch_parse(struct arena *arena, const char *file, const char *text, size_t length, struct launch *launch,
                 struct error *err);
void launch_release(struct launch *launch);
void launch_warn(struct launch *launch, struct arena *arena, struct loc loc, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The variables that a command sets for the script that it runs, as lines of a shell. */
void launch_variables(struct arena *arena, const struct bash_command *command, FILE *out);
/* Whether what is said, with '_' for '-' too, is the name. */
bool launch_same_name(const char *said, const char *name);
/* Whether the name is an option of a program that starts processes, and says how many. */
bool launch_is_count(const char *name);

#endif
