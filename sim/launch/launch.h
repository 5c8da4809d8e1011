/* launch: the arguments with which a training program was launched, from one of three kinds of text:
 *
 *   a shell script            torchrun --nproc_per_node 8 pretrain_gpt.py ${MODEL_ARGS[@]} --bf16
 *   an argument list          --num-layers 32 --hidden-size 4096 ...
 *   the log of such a run     ------------------------ arguments ------------------------
 *                               num_layers ...................................... 32 */
#ifndef DTSIM_LAUNCH_H
#define DTSIM_LAUNCH_H

#include "launch/shell.h"

enum { LAUNCH_MAX_BYTES = 64 << 20 };    /* of a log; a script has SHELL_MAX_BYTES */

struct launch_argument {
    const char *name;                /* without "--"; of a log with '-' for '_' */
    struct loc loc;
    struct shell_word *values;
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
struct launch {
    const char *file;
    const char *program;             /* "pretrain_gpt.py"; NULL: the file is a list or a log */
    bool log;                        /* every argument stands there with its value: True, None, ... */
    bool keys;                       /* the keys of a file, with their dotted paths; `log` too */
    struct loc loc;                  /* of the program, or where the list or the log begins */
    struct launch_arguments launcher, arguments;         /* torchrun's and the program's, in their order */
    struct launch_warnings warnings;
};

/* Zero-initialise `launch`; launch_release when done. The arena has all texts. The path "-" is standard input. */
int launch_load(struct arena *arena, const char *path, const struct shell_set *sets, size_t nsets,
                struct launch *launch, struct error *err);
int launch_parse(struct arena *arena, const char *file, const char *text, size_t length, const struct shell_set *sets,
                 size_t nsets, struct launch *launch, struct error *err);
void launch_release(struct launch *launch);
void launch_warn(struct launch *launch, struct arena *arena, struct loc loc, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
