/* data: where the files that come with dtsim are: $DTSIM_DATA, else ../share/dtsim beside the program, else the
 * sources. */
#ifndef DTSIM_DATA_H
#define DTSIM_DATA_H

#include "base/base.h"

/* The path of a named file, "platforms/NAME.yaml" for ("platforms", "NAME"), or NULL when there is none. */
const char *data_file(struct arena *arena, const char *folder, const char *name);
/* The names (without ".yaml") in a folder, sorted, NULL-terminated. */
const char **data_names(struct arena *arena, const char *folder);
/* Finds what a scenario names: text with a '/' or ending in ".yaml" is a path relative to the file it was written in
 * (loc.file), else a name in `folder`. Reports "unknown ...; did you mean ...?" with EXIT_INPUT; NULL then. */
const char *data_resolve(struct arena *arena, const char *folder, const char *what, const char *text, struct loc loc,
                         struct error *err);
/* Whether text is a path rather than a name: it has a '/' or ends in ".yaml". */
bool data_is_path(const char *text);
/* The same as a path that holds wherever it is read: resolved output needs such. */
const char *data_absolute(struct arena *arena, const char *path);
/* What a file is called: "../gpus/mine.yaml" is "mine". */
const char *data_stem(struct arena *arena, const char *path);
/* `path` as seen from the folder of `file`, unless absolute. */
const char *data_beside(struct arena *arena, const char *file, const char *path);

#endif
