/* cmd: the command line. Data goes to stdout, messages to stderr; only here does the program print errors and exit. */
#ifndef DTSIM_CMD_H
#define DTSIM_CMD_H

#include "base/progress.h"
#include "config/field.h"
#include "report/result.h"

/* Words of which one is expected, for a check, its message and completion: the names or the function, in their order. */
struct words {
    const char *what;                /* "engine", for messages */
    const char *const *names;
    choice_name *name;
};

/* A row says all that is known of an option: the command line is parsed by it, and usage, help, manual page and
 * completion are made of it. */
enum option_kind {
    OPTION_TEXT,                     /* any text, or nothing where there is no `value` */
    OPTION_COUNT,                    /* a whole number from `least` to `most` */
    OPTION_JOBS,                     /* the same; left out: one a processor */
    OPTION_TIME,                     /* "30 s"; `least` 0: also no time at all */
    OPTION_CHOICE,                   /* one of `words` */
    OPTION_BUDGET,                   /* a time or an amount of memory; both may be given */
    OPTION_SET,                      /* PATH=VALUE */
};
struct option {
    const char *name;                /* "--engine", "-o"; without '-': a word of the usage, which help explains as well */
    const char *value;               /* what stands behind it, for help; NULL: nothing does */
    const char *help;
    enum option_kind kind;
    size_t least, most;
    struct words words;
    bool bare;                       /* TIME: a number alone is in s */
    const char *usual;               /* the value where it is left out, or NULL */
    bool many;                       /* may be repeated */
    bool needed;                     /* unless an option is given that it does not go with */
    int one_of;                      /* of neighbouring rows with one number, not 0, one may be given */
    const char *with;                /* goes with any of these words alone: options, or what the first argument is, OTHER: a word
                                      * that no list has */
    const char *without;             /* does not go with any of these */
};
/* Rows that several commands have. */
#define ENGINE_OPTION(text) {"--engine", "ENGINE", .help = text, .kind = OPTION_CHOICE, .words = {"engine", engine_names, NULL}}
#define ENGINE_HELP "simgrid or fast (flows share links), or ideal (nothing contends)"
#define SET_OPTION(value, text) {"--set", value, .help = text, .kind = OPTION_SET, .many = true}
#define JOBS_OPTION(text) {"-j", "N", .help = text, .kind = OPTION_JOBS, .least = 1, .most = 1024}
#define BUDGET_OPTION(text) {"--budget", "LIMIT", .help = text, .kind = OPTION_BUDGET, .many = true}
#define BUDGET_HELP "end after this wall time ('30 s') or before this process needs more memory ('4 GiB') with exit code 7"

enum { ARGS_MAX = 256, OPTIONS_MAX = 48 };
struct arguments {
    const struct command *command;
    const char *positional[ARGS_MAX];
    int npositional;
    int first;                       /* the number of the first among the command's `first` words */
    const char *sets[256];           /* --set PATH=VALUE */
    size_t nsets;
    const char *values[OPTIONS_MAX]; /* by row: as it was given, "" of an option that takes no value, the last one of
                                      * several; NULL: left out */
    double numbers[OPTIONS_MAX];     /* COUNT, JOBS; TIME in s; CHOICE: which word. Left out: the usual one, else 0 */
    struct { size_t option; const char *value; } given[ARGS_MAX];    /* all options in their order */
    size_t ngiven;
    struct budget budget;            /* of commands that have --budget */
};

struct command {
    const char *name;
    const char *arguments;           /* what stands before the options: "SCENARIO" */
    int least, most;                 /* how many arguments there may be */
    const char *brief;
    const char *examples;            /* first in the help, a line each */
    const struct option *options;
    size_t noptions;
    const char *more;                /* the rest of the help: a paragraph a line; a line that begins with a blank stays as
                                      * it is */
    const char *no_set;              /* why it has no --set; NULL: there is no scenario */
    struct words first;              /* what the first argument may be; what NULL: it is not checked. No words: a file */
    bool (*other)(const char *text); /* whether the first argument may be that word too; NULL: no other */
    const char **(*topics)(struct arena *arena, struct error *err);
                                     /* the same where files have the names, NULL-terminated; NULL after an error */
    int (*main)(const struct arguments *arguments);      /* returns an exit code */
    double held;                     /* s that an agent's call has: no script is run; 0: no agent calls */
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
/* "dtsim run SCENARIO [-o DIR] ..." in lines of at most `width` columns, the first from `column` on, without an end. */
void command_usage(const struct command *command, int column, int width, FILE *out);
/* "--engine ENGINE", and its help with what its row says of values, repetition and other options. In the arena. */
const char *option_head(struct arena *arena, const struct option *option);
const char *option_help(struct arena *arena, const struct option *option);
/* "a, b or c" of words between blanks. In the arena. */
const char *words_or(struct arena *arena, const char *words);
/* Parses the command line and runs the command; argv[0]: its name. */
int command_run(const struct command *command, int argc, char **argv);

/* options.c: parses the words behind the command's name, and checks values and what goes together. */
enum { ARGS_DONE = -1 };             /* go on; else the exit code to return */
int arguments_parse(const struct command *command, int argc, char **argv, struct arguments *arguments);
/* Which of the words the text is: ARGS_DONE, or EXIT_USAGE after an error with the nearest one, or all. `option`: what it
 * stands behind, or "". */
int word_parse(const struct command *command, const char *option, const struct words *words, const char *text, int *which);
/* The i-th of the words; NULL past the last. */
const char *words_at(const struct words *words, size_t i);
/* Whether the word is --color[=WHEN]; says it then to whoever prints, by variables. *wrong: a WHEN that there is not, or
 * NULL. */
bool color_option(const char *word, const char **wrong);
size_t processors(void);
/* "dtsim run: MESSAGE", then where help is; on stdout too where a program reads, as report_as() has it. EXIT_USAGE. */
int usage_error(const struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
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
