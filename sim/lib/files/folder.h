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
    sigset_t signals;            /* signals that were blocked before the first file was written */
};

/* Makes the folder, and those above it, and takes it: -1 where that cannot be, or another process writes it. Release in
 * either case; the path must live as long. */
int folder_open(struct folder *folder, const char *path, struct error *err);
/* Writes a file under its temporary name; SIGINT and SIGTERM are blocked from the first file on. `write` gets the
 * context. `digest`, if not NULL, gets the digest of the file's bytes. */
int folder_write(struct folder *folder, const char *name, void (*write)(const void *context, FILE *out),
                 const void *context, char digest[DIGEST_HEX], struct error *err);
/* Puts all files in place, the last written one last, and unblocks signals. After an error before the first file is in
 * place, the folder is unchanged. */
int folder_commit(struct folder *folder, struct error *err);
/* Lets go of it; files that were not put in place are removed. */
void folder_release(struct folder *folder);

/* One file alone, in the place of an older one only when it is whole. */
int file_replace(const char *path, void (*write)(const void *context, FILE *out), const void *context,
                 struct error *err);

/* Makes a new file ".NAME.RANDOM.new" in the folder of a path NAME, locked while it is open, and gives its name. No link
 * that stands there is followed, and nobody can guess the name. -1: errno says why. */
int temporary_open(int folder, const char *path, char *other, size_t size);
/* Removes temporary files of dead runs from the file's folder. */
void temporaries_clear_of(const char *path);
/* Removes the temporary files and folders of NAME (NULL: of all names) that dead runs left in a folder. Files that a
 * live process writes are locked, and stay. */
void temporaries_clear(const char *path, const char *name);

/* Files that belong together, some of them made by another program: they are made under their final names in a hidden
 * folder ".NAME.RANDOM.new" inside their own folder, which is locked while it is open, and then put in place. SIGINT
 * and SIGTERM wait until it is released. */
struct staging {
    const char *folder;
    char path[4400];             /* the hidden folder; "": it is not open */
    int hidden, place;           /* descriptors of both folders */
    sigset_t signals;            /* signals that were blocked before */
};
/* Makes the hidden folder in an existing folder, whose path must live as long. On an error there is nothing to
 * release. */
int staging_open(struct staging *staging, const char *folder, const char *name, struct error *err);
/* Whether the new file equals the file in place, byte by byte. */
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
