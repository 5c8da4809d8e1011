/* folder: files of one run that are seen together or not at all, whatever ends the program while they are written.
 *
 * Each file is first written under another name and brought to the disk. Then the last one, which says what the others
 * hold, is removed, the others are renamed, and the last one is renamed: a folder without it is no result. It holds the
 * digests of the others, so that a reader that opens files of two runs notices. */
#ifndef DTSIM_FOLDER_H
#define DTSIM_FOLDER_H

#include "base/base.h"
#include "files/digest.h"

enum { FOLDER_FILES = 8 };

struct folder {
    const char *path;
    int fd;                      /* locked while it is open */
    const char *names[FOLDER_FILES];
    size_t count;
};

/* Makes the folder, and those above it, and takes it: -1 where that cannot be, or another process writes it. Release in
 * either case; the path must live as long. */
int folder_open(struct folder *folder, const char *path, struct error *err);
/* Writes a file under its other name; `write` gets the context. `digest` gets that of its bytes, or is NULL. */
int folder_write(struct folder *folder, const char *name, void (*write)(const void *context, FILE *out),
                 const void *context, char digest[DIGEST_HEX], struct error *err);
/* Puts all files in place, the one that was written last at the end. On an error before the first of them has its name
 * what the folder held before is untouched. */
int folder_commit(struct folder *folder, struct error *err);
/* Lets go of it; files that were not put in place are removed. */
void folder_release(struct folder *folder);

/* One file alone, in the place of an older one only when it is whole. */
int file_replace(const char *path, void (*write)(const void *context, FILE *out), const void *context,
                 struct error *err);

/* Makes a folder and those above it. */
int make_folder(const char *dir, struct error *err);

#endif
