/* help: what there is to name on a command line, for the help, the manual page and completion. */
#ifndef DTSIM_HELP_H
#define DTSIM_HELP_H

#include "base/cache.h"
#include "cli/cmd.h"
#include "run/values.h"

/* The lists of `dtsim list`: the name, NULL past the last, and the folder of data files that it lists, or NULL. */
const char *list_at(size_t index);
const char *list_folder(size_t index);
/* Prints that list; false: no list has the name. Errors: the listed files cannot be read. */
bool list_named(const char *name, struct error *err);

/* All topics of `dtsim help` but keys of scenarios: commands, kinds of files, schedules, collectives and operations,
 * lists, and the names of data files. Each once, sorted, NULL-terminated, in the arena. NULL: an error. */
const char **help_topics(struct arena *arena, struct error *err);

/* cmd_check.c: which values of a key go with the rest of a file's scenario, which is changed by `sets` and may be none as it is
 * (run/values.h has the question and the errors). Release in either case. */
struct asked { struct cache cache; struct arena arena; struct asked_values values; };
int asked_find(struct asked *asked, const char *path, const char *const *sets, size_t nsets, const char *question,
               struct error *err);
void asked_release(struct asked *asked);

/* What may come behind these words of a command line, the program's name left out; the last one may be begun or empty. A
 * word a line. Errors: a folder of data cannot be read. */
int completion_print(const char *const *typed, int count, FILE *out, struct error *err);

/* Prints what platforms/names/words.yaml says of a word of the output; false: nothing, or after an error. */
bool help_word(const char *topic, FILE *out, struct error *err);
/* All its words, NULL-terminated, in the arena. NULL: an error. */
const char **help_words(struct arena *arena, struct error *err);

/* The manual page, dtsim(1), as man reads it (groff's man macros). */
void man_page_print(FILE *out);

#endif
