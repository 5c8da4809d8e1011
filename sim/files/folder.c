#include "files/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/look.h"

static int refused(const char *path, const char *what, struct error *err)
{
    return error_add(err, EXIT_UNEXPECTED, (struct loc){.file = path}, "cannot %s: %s", what, strerror(errno));
}

/* Makes one folder where there is none. */
static int make_one(const char *path, struct error *err)
{
    enum look found;

    if (!mkdir(path, 0777))
        return 0;
    if (errno != EEXIST)
        return refused(path, "make the folder", err);
    if (look_at(path, &found, err))
        return -1;
    errno = EEXIST;
    return found == LOOK_FOLDER ? 0 : refused(path, "make the folder", err);
}

int make_folder(const char *dir, struct error *err)
{
    char path[4096];

    if (!*dir || strlen(dir) >= sizeof path)
        return error_add(err, EXIT_USAGE, (struct loc){0}, "-o: expected the name of a folder");
    strcpy(path, dir);
    for (char *slash = path + 1;; slash++) {
        char old = *slash;

        if (old && old != '/')
            continue;
        *slash = 0;
        if (make_one(path, err))
            return -1;
        *slash = old;
        if (!old)
            return 0;
    }
}

int folder_open(struct folder *folder, const char *path, struct error *err)
{
    *folder = (struct folder){.path = path, .fd = -1};
    if (make_folder(path, err))
        return -1;
    folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd < 0)
        return refused(path, "open the folder", err);
    if (!flock(folder->fd, LOCK_EX | LOCK_NB))
        return 0;
    return errno == EWOULDBLOCK ? error_add(err, EXIT_UNEXPECTED, (struct loc){.file = path}, "another run writes this "
                                            "folder; expected one at a time") : refused(path, "lock the folder", err);
}

/* The other name of a file. Only who has locked the folder uses it. */
static void other_name(const char *name, char *other, size_t size)
{
    const char *slash = strrchr(name, '/');

    if (snprintf(other, size, "%.*s.%s.new", slash ? (int)(slash + 1 - name) : 0, name, slash ? slash + 1 : name) >=
        (int)size)
        BUG("the name of a file is too long: %s", name);
}

static int digest_file(int fd, char digest[DIGEST_HEX])
{
    struct digest sum;
    int rc;

    digest_init(&sum);
    rc = digest_add_file(&sum, fd);
    digest_end(&sum, digest);
    return rc;
}

/* Writes a new file, whole and on the disk. `name` is for messages. */
static int write_new(int folder, const char *path, const char *name,
                     void (*write)(const void *context, FILE *out), const void *context, char digest[DIGEST_HEX],
                     struct error *err)
{
    int fd = openat(folder, path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    int failed;

    if (!out)
        return refused(name, "write", err);
    write(context, out);
    failed = fflush(out) || ferror(out) || fsync(fd) || (digest && digest_file(fd, digest)) ?
             refused(name, "write", err) : 0;
    if (fclose(out) && !failed)
        failed = refused(name, "write", err);
    return failed;
}

int folder_write(struct folder *folder, const char *name, void (*write)(const void *context, FILE *out),
                 const void *context, char digest[DIGEST_HEX], struct error *err)
{
    char other[256], shown[4400];

    BUG_IF(folder->count == FOLDER_FILES);
    other_name(name, other, sizeof other);
    snprintf(shown, sizeof shown, "%s/%s", folder->path, name);
    folder->names[folder->count++] = name;
    return write_new(folder->fd, other, shown, write, context, digest, err);
}

int folder_commit(struct folder *folder, struct error *err)
{
    size_t last = folder->count - 1;

    BUG_IF(!folder->count);
    if (unlinkat(folder->fd, folder->names[last], 0) && errno != ENOENT)
        return refused(folder->path, "replace the result in it", err);
    for (size_t i = 0; i <= last; i++) {
        char other[256], shown[4400];

        other_name(folder->names[i], other, sizeof other);
        snprintf(shown, sizeof shown, "%s/%s", folder->path, folder->names[i]);
        if (renameat(folder->fd, other, folder->fd, folder->names[i]))
            return refused(shown, "replace", err);
    }
    folder->count = 0;
    return fsync(folder->fd) ? refused(folder->path, "write", err) : 0;
}

void folder_release(struct folder *folder)
{
    for (size_t i = 0; i < folder->count; i++) {
        char other[256];

        other_name(folder->names[i], other, sizeof other);
        unlinkat(folder->fd, other, 0);
    }
    if (folder->path && folder->fd >= 0)
        close(folder->fd);
    *folder = (struct folder){.fd = -1};
}

int file_replace(const char *path, void (*write)(const void *context, FILE *out), const void *context,
                 struct error *err)
{
    char other[4200];
    int rc;

    if (strlen(path) + 8 > sizeof other)
        return error_add(err, EXIT_USAGE, (struct loc){0}, "the name of the file is too long");
    other_name(path, other, sizeof other);
    rc = write_new(AT_FDCWD, other, path, write, context, NULL, err);
    if (!rc && rename(other, path))
        rc = refused(path, "write", err);
    if (rc)
        unlink(other);
    return rc;
}
