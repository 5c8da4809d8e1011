/* named: files that come with dtsim, by the name that a scenario says. platforms/names/aliases.yaml has the names that people
 * know from elsewhere: of a cloud's instance, of nvidia-smi, of a model's repository. */
#ifndef DTSIM_NAMED_H
#define DTSIM_NAMED_H

#include "base/base.h"

/* A kind of file that scenarios name: its folder, a noun for messages, and a name that is known though it has no file
 * (or NULL). */
struct data_kind { const char *folder, *what, *other; };

/* The path of a file that a scenario names. Text with a '/' or ending in ".yaml" is a path relative to the file in
 * which it was written (loc.file), unless it is an alias; other text is a name in the folder, or an alias of one. If there is
 * no such file: NULL, and the error "unknown ...; did you mean ...?" with EXIT_INPUT. */
const char *data_resolve(struct arena *arena, const struct data_kind *kind, const char *text, struct loc loc,
                         struct error *err);
/* The name of the folder's file that other text stands for: in other letters, or as an alias. NULL: none, or an error where it may be
 * several. */
const char *data_meant(struct arena *arena, const struct data_kind *kind, const char *text, struct loc loc, struct error *err);

#endif
