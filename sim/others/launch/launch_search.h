/* launch_search: the search for a script's launch, for launch_*.c only. */
#ifndef DTSIM_LAUNCH_SEARCH_H
#define DTSIM_LAUNCH_SEARCH_H

#include "launch/launch_internal.h"

enum { MOST_NAMES = 40 };

struct launch_search {
    struct bash_reader reader;
    struct bash_script script;
    struct arena *arena;
    const struct import_options *options;
    struct launch *launch;
    struct bash_commands commands;         /* of the first run */
    const struct bash_command *chosen;
    size_t index;                            /* of the chosen one among the launches */
    size_t place;                            /* and among the commands */
    bool passes;
    struct launch_set marks[MOST_NAMES];     /* of variables without which the script ends (set -u) */
    size_t nmarks;
    struct error *err;
};

/* launch_search.c */
/* How much a command looks like the training; 0: not at all; 4 and more: it says a model. */
int launch_likeness(const struct bash_command *command);
/* The nth launch, from 0; NULL: there is none. *at: its place among the commands. */
const struct bash_command *launch_nth(const struct bash_commands *commands, size_t n, size_t *at);
/* Chooses the first of the most likely launches, or that of the options. */
void launch_choose(struct launch_search *s);
/* A command's words, each with its place in the text, if it has one of its own there. The caller frees them. */
struct launch_words launch_words_of(const struct launch_search *s, const struct bash_command *command);
/* The words of the same launch where something else is taken. false: there is none. */
bool launch_elsewhere(struct launch_search *s, const struct bash_world *world, struct launch_words *words);

/* launch_unset.c */
/* Marks for all variables and arguments that nobody sets are those of the search from now on. */
void launch_mark_all(struct launch_search *s);
/* The variables that the script uses, and neither it nor anybody sets, between commas; NULL: none. */
const char *launch_unset_list(const struct launch_search *s);
/* Finds the words that variables make which nobody sets. */
void launch_take_unset(struct launch_search *s, struct launch_words *words);
/* The script's arguments, and marks for those that it uses and that are not given ($1). */
const char *const *launch_marked_arguments(const struct launch_search *s);

#endif
