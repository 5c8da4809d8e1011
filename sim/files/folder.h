/* folder: files of one run that are seen together or not at all, whatever ends the program while they are written.
 *
 * Each file is first written under a temporary name and brought to the disk. Then the last one, which says what the others
 * hold, is removed, the others are renamed, and the last one is renamed: a folder without it is no result. It holds the
 * digests of the others, so that a reader that opens files of two runs notices. */
#ifndef DTSIM_FOLDER_H
#define DTSIM_FOLDER_H

#include <signal.h>

#include "base/base.h"
#include "files/digest.h"

enum { FOLDER_FILES = 8 };

struct folder {
    const char *path;
    int fd;                      /* locked while it is open */
    const char *names[FOLDER_FILES];
    char others[FOLDER_FILES][64];   /* names in the folder until the files are put in place; "" then */
    size_t count;
    sigset_t signals;            /* those that were blocked before the first file was written */
};

/* Makes the folder, and those above it, and takes it: -1 where that cannot be, or another process writes it. Release in
 * either case; the path must live as long. */
int folder_open(struct folder *folder, const char *path, struct error *err);
/* Writes a file under its temporary name, from the first one on with SIGINT and SIGTERM blocked; `write` gets the context. `digest` gets that of its bytes, or is NULL. */
int folder_write(struct folder *folder, const char *name, void (*write)(const void *context, FILE *out),
                 const void *context, char digest[DIGEST_HEX], struct error *err);
/* Puts all files in place, and lets signals come again; the one that was written last at the end. On an error before the first of them has its name
 * what the folder held before is untouched. */
int folder_commit(struct folder *folder, struct error *err);
/* Lets go of it; files that were not put in place are removed. */
void folder_release(struct folder *folder);

/* One file alone, in the place of an older one only when it is whole. */
int file_replace(const char *path, void (*write)(const void *context, FILE *out), const void *context,
                 struct error *err);

/* Makes a new file ".NAME.RANDOM.new" in the folder of a path NAME, locked while it is open, and gives its name. No link
 * that stands there is followed, and nobody can guess the name. -1: errno says why. */
int temporary_open(int folder, const char *path, char *other, size_t size);
/* Removes what runs that have died left beside a file. */
void temporaries_clear_of(const char *path);
/* Removes the temporary files and folders of a file NAME (NULL: all) in a folder, which runs that have died left there. Those that
 * somebody writes are locked, and stay. */
void temporaries_clear(const char *path, const char *name);

/* Files that belong together, of which another program makes some: they are made under their final names in a hidden folder
 * ".NAME.RANDOM.new" inside their own folder, which is locked while it is open, and then put in place. SIGINT and SIGTERM
 * wait until it is released. */
struct staging {
    const char *folder;
    char path[4400];             /* the hidden folder; "": it is not open */
    int hidden, place;           /* descriptors of both folders */
    sigset_t signals;            /* those that were blocked before */
};
/* Makes the hidden folder in one that exists, whose path must live as long. On an error there is nothing to release. */
int staging_open(struct staging *staging, const char *folder, const char *name, struct error *err);
/* Whether the file that was made is, to the byte, the one in place. */
bool staging_same(const struct staging *staging, const char *name);
/* Keeps others from putting files in place until the release. */
int staging_lock(struct staging *staging, struct error *err);
/* Puts the file in place; where none was made, removes the older one. */
int staging_put(struct staging *staging, const char *name, struct error *err);
/* Lets go of it, and lets signals come again; files that were not put in place are removed. */
void staging_release(struct staging *staging);

/* Makes a folder and those above it. */
int make_folder(const char *dir, struct error *err);

#endif
