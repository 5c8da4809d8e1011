/* look: what stands at a path, and what is in a folder. That nothing is there is an answer; that the system does not say
 * is an error (error_system). */
#ifndef DTSIM_LOOK_H
#define DTSIM_LOOK_H

#include <sys/types.h>

#include "base/base.h"

enum look { LOOK_NOTHING, LOOK_FOLDER, LOOK_FILE };      /* LOOK_FILE: anything but a folder; links are followed */
int look_at(const char *path, enum look *found, struct error *err);
/* Adds to the list, in no order, the names in the folder that `wanted` takes; none where there is no such folder. */
struct look_names { const char **items; size_t count, capacity; };
int look_into(struct arena *arena, const char *path, bool (*wanted)(const char *name), struct look_names *names,
              struct error *err);
/* Opens a file to read it to its end: a file of at most FILE_LIMIT bytes, or standard input. Folders are refused, devices,
 * because some never end (/dev/zero), and pipes, because nobody may ever write them. NULL: an error at the path. */
#define FILE_LIMIT (8ll << 30)
enum { LINE_LIMIT = 16 << 20 };          /* B, of a line of a file that is read line by line */
FILE *look_open(const char *path, struct error *err);
/* The same of a file that the command line names, which may be a pipe; look_open_any gives its descriptor (-1: an error), which
 * is to be polled before each read. */
FILE *look_open_stream(const char *path, struct error *err);
int look_open_any(const char *path, struct error *err);
/* Refuses to write to a path over what is no file, or over one of the files `names` (NULL-terminated) of a folder, which
 * are read. */
int look_apart(const char *path, const char *folder, const char *const *names, struct error *err);
/* The next line with its newline, as getline(); of one that is longer than LINE_LIMIT the first LINE_LIMIT + 1 bytes, and the
 * rest of it is passed over. -1: there is none, or it cannot be read (ferror). */
ssize_t look_line(FILE *file, char **line, size_t *capacity);
/* The program of that name in one of PATH's folders that are named from the root; the caller frees it. NULL: there is none. A
 * relative folder counts for nothing: it would be one inside a folder that may be somebody else's. */
char *look_on_path(const char *name);
/* The folder of this program, or of the library that it is in, with a '/' at its end. NULL: an error. */
const char *look_program(struct arena *arena, struct error *err);

#endif
