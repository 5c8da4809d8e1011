/* launch_internal: for launch*.c only. */
#ifndef DTSIM_LAUNCH_INTERNAL_H
#define DTSIM_LAUNCH_INTERNAL_H

#include "launch/launch.h"

/* launch_log.c: the arguments that Megatron-LM prints when it begins (megatron/training/arguments.py, _print_args). Each stands
 * in a line of its own; what others put before a line (ranks, times) is skipped. */
/* Whether the text holds the line "---- arguments ----". */
bool launch_log_is(const char *text, size_t length);
int launch_log_read(struct arena *arena, const char *text, size_t length, struct launch *launch, struct error *err);

/* launch_words.c: adds the words of a text to a list, which the caller frees. */
int launch_words_read(struct arena *arena, const char *file, const char *text, size_t length, struct launch_words *words,
                      struct error *err);

/* launch_worlds.c */
/* Puts marks into words where `marked`, the same launch with marks for variables that nobody sets, has them in the place of
 * nothing. Where a default holds instead, the words stay. false: the launches have other options, and nothing is taken. */
bool launch_take_marks(struct arena *arena, struct launch_words *words, const struct launch_words *marked);
/* The same where the launches may have other options. */
void launch_merge_marks(struct arena *arena, struct launch_words *words, const struct launch_words *marked);
/* Adds a doubt for each option that two launches do not have alike. */
void launch_compare(struct arena *arena, const struct launch_words *words, const struct launch_words *other, struct loc loc,
                    const char *why, struct launch *launch);

/* launch_script.c: the launch of a script, by running it. */
int launch_script(struct arena *arena, const char *file, const char *text, size_t length, const struct import_options *options,
                  struct launch *launch, struct error *err);

/* launch.c: the launch that a command's words say; `command` has those that run it. */
void launch_take(struct arena *arena, const struct launch_words *words, const struct bash_command *command,
                 struct launch *launch);
/* The place of the program among a command's words; their number: there is none. */
size_t launch_program(const struct launch_word *words, size_t count);
/* --NAME */
bool launch_is_option(const char *word);
/* Says that a file has neither a launch, nor arguments: -1. */
int launch_refuse_empty(const struct launch *launch, struct error *err);
/* Refuses a text with control characters. */
int launch_check_text(const char *file, const char *text, size_t length, struct error *err);

/* launch_ranks.c: puts nnodes, nproc-per-node and world-size into launch->launcher, as far as the words before the program
 * and the commands around say them. Two that disagree are a doubt. */
void launch_ranks(struct arena *arena, const struct launch_words *words, size_t program, const struct bash_command *command,
                  struct launch *launch);

#endif
