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
    struct launch_arguments launcher;    /* as far as they are known: nnodes, nproc-per-node ("gpu": all of a node),
                                            world-size */
    struct launch_arguments arguments;   /* the program's, in their order */
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

/* For launch.c alone. launch_log.c: the arguments that Megatron-LM prints when it begins (megatron/training/arguments.py,
 * _print_args). Each stands in a line of its own; what others put before a line (ranks, times) is skipped. */
/* Whether the text holds the line "---- arguments ----". */
bool launch_log_is(const char *text, size_t length);
int launch_log_read(struct arena *arena, const char *text, size_t length, struct launch *launch, struct error *err);

/* launch_ranks.c */
/* A number that a launch says; 0: it does not; below 0: it is not known. */
struct launch_number { long value; struct loc loc; };
/* What Slurm is asked for: nodes, tasks, tasks a node, GPUs a node. */
struct launch_slurm { struct launch_number nodes, tasks, per_node, gpus; };

enum { LAUNCH_SLURM_VARIABLES = 8 };

/* Reads the #SBATCH lines of a script. */
void launch_slurm_read(struct arena *arena, const char *file, const char *text, size_t length, struct launch_slurm *slurm);
/* The variables that Slurm sets for such a job, LAUNCH_SLURM_VARIABLES at most. Returns how many. */
size_t launch_slurm_variables(struct arena *arena, const struct launch_slurm *slurm, struct shell_given *given);
/* Puts nnodes, nproc-per-node and world-size into launch->launcher, as far as the words before the program and Slurm say
 * them; warns where these differ. */
void launch_ranks(struct arena *arena, const struct shell_command *command, size_t program,
                  const struct launch_slurm *slurm, struct launch *launch);

#endif
