/* data: finds the files that come with dtsim. They are searched in $DTSIM_DATA, then in ../share/dtsim, relative to the
 * program's folder, or, if that does not exist, in the sources. Where the system does not say whether there is a file,
 * or what is in a folder, that is an error (error_system). */
#ifndef DTSIM_DATA_H
#define DTSIM_DATA_H

#include "base/base.h"

/* The folder of the installation to which this program belongs, wherever it has been put: share/dtsim for bin/dtsim and for
 * lib/libdtsim.so; else the sources. NULL: an error. */
const char *data_own(struct arena *arena, struct error *err);
/* The path of a named file, "platforms/NAME.yaml" for ("platforms", "NAME"), or NULL if there is no such file. */
int data_file(struct arena *arena, const char *folder, const char *name, const char **path, struct error *err);
/* The same of a file whose name has another end: "scenarios/paper/errors.tsv" for ("scenarios/paper", "errors.tsv"). */
int data_path(struct arena *arena, const char *folder, const char *file, const char **path, struct error *err);
/* The files that belong to the program are those of this folder, for all who have the cache, until it is emptied. */
void data_belongs(struct cache *cache, const char *folder);
/* The names (without ".yaml") in a folder, sorted, NULL-terminated. NULL: an error. */
const char **data_names(struct arena *arena, const char *folder, struct error *err);
/* Whether text is a path rather than a name: it has a '/' or ends in ".yaml". */
bool data_is_path(const char *text);
/* The absolute path: resolved output needs paths that hold in any working directory. The path itself where there is no
 * such file. NULL: an error. */
const char *data_absolute(struct arena *arena, const char *path, struct error *err);
/* The file's name without folder and extension: "../gpus/mine.yaml" gives "mine". */
const char *data_stem(struct arena *arena, const char *path);
/* A path that was written at a place, relative to the folder of that file, as a path relative to the working directory;
 * an absolute path stays. All paths that scenarios write go through here. NULL: the arena's cache says names_only, and
 * the place is in none of the program's own files. */
const char *data_relative(struct arena *arena, struct loc loc, const char *path, struct error *err);

#endif
