/* cmd: the command line. Data goes to stdout, messages to stderr; only here does the program print errors and exit. */
#ifndef DTSIM_CMD_H
#define DTSIM_CMD_H

#include "base/progress.h"
#include "report/result.h"

struct command {
    const char *name;
    const char *usage;               /* after "dtsim NAME" */
    const char *brief;
    const char *examples;            /* first in the help, a line each */
    const char *options;             /* the rest of the help */
    const char *const *accepts;      /* its options: "--json" takes no value, "--engine=" does; "-o=" is short */
    size_t naccepts;
    const char **(*words)(struct arena *arena, struct error *err);
                                     /* what its first argument may be, NULL-terminated, for completion; NULL after an
                                      * error. No function: a file or a folder */
    int (*main)(const struct command *command, int argc, char **argv);   /* argv[0]: the name; returns an exit code */
    bool json;                       /* a program reads what this call prints, mistakes of the command line too */
};
extern const struct command cmd_run, cmd_show, cmd_check, cmd_compare, cmd_collective, cmd_plot, cmd_report, cmd_trace, cmd_import,
    cmd_emit, cmd_calibrate, cmd_list, cmd_help, cmd_schema, cmd_validate, cmd_sweep, cmd_plan, cmd_train, cmd_results,
    cmd_serve, cmd_app, cmd_explain, cmd_completion;
const struct command *command_at(size_t index);      /* NULL past the last */
/* The meaning of an exit code, in the order of codes; NULL past the last. */
struct exit_text { enum exit_code code; const char *text; };
const struct exit_text *exit_text_at(size_t index);
void command_help(const struct command *command, FILE *out);
/* Runs the command. */
int command_run(const struct command *command, int argc, char **argv);

/* What several commands accept. */
enum { ARGS_MAX = 256 };
#define BUDGET_OPTION "--budget="
struct arguments {
    const char *positional[ARGS_MAX];
    int npositional;
    const char *sets[256];           /* --set PATH=VALUE */
    size_t nsets;
    const char *values[32];          /* by index in `accepts`; of an option that is given again the last one */
    struct { size_t option; const char *value; } given[ARGS_MAX];    /* all options in their order */
    size_t ngiven;
    struct budget budget;            /* of commands that accept --budget */
};
/* The value of an option, or "" of one that takes none, goes to arguments.values. All commands know --set, --help and
 * --color. */
enum { ARGS_DONE = -1 };             /* go on; else the exit code to return */
int arguments_parse(const struct command *command, int argc, char **argv, int min_positional, int max_positional,
                    struct arguments *arguments);
/* Whether the word is --color[=WHEN]; says it then to whoever prints, by variables. *wrong: a WHEN that there is not, or
 * NULL. */
bool color_option(const char *word, const char **wrong);
/* "dtsim run: MESSAGE", then where help is; on stdout too where a program reads, as report_as() has it. EXIT_USAGE. */
int usage_error(const struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The engine of that name; ARGS_DONE, or EXIT_USAGE after saying which there are. */
int engine_parse(const struct command *command, const char *name, enum engine *engine);
/* The operation of collectives of that name, behind --op; the same. */
int op_parse(const struct command *command, const char *name, enum collective_op *op);
/* A whole number from 1 to `most` behind an option; ARGS_DONE, or EXIT_USAGE after saying what was expected. */
int count_parse(const struct command *command, const char *option, const char *text, size_t most, size_t *value);
/* The same for -j, whose default (text NULL) is one process a processor. */
int jobs_parse(const struct command *command, const char *text, size_t *jobs);
/* Prints the description of a run, and its numbers (run_print.c). */
struct run;
void run_print(const struct run *run, FILE *out);
/* Refuses a folder that holds the rows of a sweep where a folder of one run is needed. */
int refuse_sweep(const char *folder, struct error *err);
/* Prints the errors and gives their exit code; releases them. */
int report(struct error *err);
/* The same; where a program reads (`json`) and has got nothing yet, stdout gets them too: {"errors": [{"file", "line",
 * "column", "message", "rule"}], "exit_code"}. */
int report_as(struct error *err, bool json);

#endif
