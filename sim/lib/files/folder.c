#include "files/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
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

/* A temporary name is ".NAME.RANDOM.new". */
enum { RANDOM_DIGITS = 16 };
static const char ending[] = ".new";

static bool temporary_name(const char *name)
{
    size_t length = strlen(name), tail = RANDOM_DIGITS + sizeof ending - 1;

    return *name == '.' && length > tail + 2 && name[length - tail - 1] == '.' &&
           strspn(name + length - tail, "0123456789abcdef") == RANDOM_DIGITS &&
           !strcmp(name + length - sizeof ending + 1, ending);
}

/* A new temporary name for that path. -1: errno says why. */
static int name_anew(const char *path, char *other, size_t size)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    unsigned long long random;

    if (getentropy(&random, sizeof random))
        return -1;
    if (snprintf(other, size, "%.*s.%s.%0*llx%s", (int)(name - path), path, name, RANDOM_DIGITS, random, ending) <
        (int)size)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

int temporary_open(int folder, const char *path, char *other, size_t size)
{
    for (;;) {
        struct stat status;
        int fd;

        if (name_anew(path, other, size))
            return -1;
        fd = openat(folder, other, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd < 0 && errno == EEXIST)
            continue;
        /* Whoever cleans up meanwhile takes it for one that a dead run left: then it has no name any more. */
        if (fd < 0 || (!flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &status) && status.st_nlink))
            return fd;
        close(fd);
    }
}

/* Whether a temporary name is one of this file's; no file: any is. */
static bool is_of(const char *temporary, const char *name)
{
    size_t length = name ? strlen(name) : 0;

    return !name || (!strncmp(temporary + 1, name, length) &&
                     strlen(temporary) == length + RANDOM_DIGITS + sizeof ending + 1);
}

/* Removes the files of an open hidden folder. */
static void empty(int hidden)
{
    int copy = openat(hidden, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);

    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        unlinkat(hidden, entry->d_name, 0);      /* "." and ".." are none that it removes */
    if (dir)
        closedir(dir);
    else if (copy >= 0)
        close(copy);
}

void temporaries_clear(const char *path, const char *name)
{
    struct error ignored = {0};  /* a folder that cannot be listed may be written all the same */
    struct arena arena = {0};
    struct look_names names = {0};
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (folder >= 0)
        look_into(&arena, path, temporary_name, &names, &ignored);

    for (size_t i = 0; i < names.count; i++) {
        int fd = is_of(names.items[i], name) ? openat(folder, names.items[i], O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
                                                      O_CLOEXEC) : -1;

        struct stat status;

        if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &status)) {
            if (S_ISDIR(status.st_mode))
                empty(fd);
            unlinkat(folder, names.items[i], S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0);
        }
        if (fd >= 0)
            close(fd);
    }
    if (folder >= 0)
        close(folder);
    free(names.items);
    arena_release(&arena);
    error_release(&ignored);
}

void temporaries_clear_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? xprintf("%.*s", (int)(slash + 1 - path), path) : xprintf(".");

    temporaries_clear(dir, slash ? slash + 1 : path);
    free(dir);
}

/* Ctrl-C and SIGTERM wait until a file has its name, or is gone. */
static void hold_signals(sigset_t *before)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, before);
}

int folder_open(struct folder *folder, const char *path, struct error *err)
{
    *folder = (struct folder){.path = path, .fd = -1};
    if (make_folder(path, err))
        return -1;
    folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd < 0)
        return refused(path, "open the folder", err);
    if (!flock(folder->fd, LOCK_EX | LOCK_NB)) {
        temporaries_clear(path, NULL);
        return 0;
    }
    return errno == EWOULDBLOCK ? error_add(err, EXIT_UNEXPECTED, (struct loc){.file = path}, "another run writes this "
                                            "folder; expected one at a time") : refused(path, "lock the folder", err);
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

/* Writes a new file, whole and on the disk, and closes it. `name` is for messages. */
static int write_new(int fd, const char *name, void (*write)(const void *context, FILE *out), const void *context,
                     char digest[DIGEST_HEX], struct error *err)
{
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    int failed;

    if (!out) {
        refused(name, "write", err);
        if (fd >= 0)
            close(fd);
        return -1;
    }
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
    size_t place = folder->count;
    char shown[4400];
    int fd;

    BUG_IF(place == FOLDER_FILES);
    if (!place)
        hold_signals(&folder->signals);
    folder->count++;
    folder->names[place] = name;
    snprintf(shown, sizeof shown, "%s/%s", folder->path, name);
    fd = temporary_open(folder->fd, name, folder->others[place], sizeof folder->others[place]);
    return write_new(fd, shown, write, context, digest, err);
}

int folder_commit(struct folder *folder, struct error *err)
{
    size_t last = folder->count - 1;
    int rc;

    BUG_IF(!folder->count);
    if (unlinkat(folder->fd, folder->names[last], 0) && errno != ENOENT)
        return refused(folder->path, "replace the result in it", err);
    for (size_t i = 0; i <= last; i++) {
        char shown[4400];

        snprintf(shown, sizeof shown, "%s/%s", folder->path, folder->names[i]);
        if (renameat(folder->fd, folder->others[i], folder->fd, folder->names[i]))
            return refused(shown, "replace", err);
        *folder->others[i] = '\0';
    }
    folder->count = 0;
    rc = fsync(folder->fd) ? refused(folder->path, "write", err) : 0;
    sigprocmask(SIG_SETMASK, &folder->signals, NULL);
    return rc;
}

void folder_release(struct folder *folder)
{
    for (size_t i = 0; i < folder->count; i++)
        if (*folder->others[i])
            unlinkat(folder->fd, folder->others[i], 0);
    if (folder->path && folder->fd >= 0)
        close(folder->fd);
    if (folder->count)
        sigprocmask(SIG_SETMASK, &folder->signals, NULL);
    *folder = (struct folder){.fd = -1};
}

int file_replace(const char *path, void (*write)(const void *context, FILE *out), const void *context,
                 struct error *err)
{
    char other[4200] = "";
    sigset_t signals;
    int rc;

    if (strlen(path) + RANDOM_DIGITS + 8 > sizeof other)
        return error_add(err, EXIT_USAGE, (struct loc){0}, "the name of the file is too long");
    temporaries_clear_of(path);
    hold_signals(&signals);
    rc = write_new(temporary_open(AT_FDCWD, path, other, sizeof other), path, write, context, NULL, err);
    if (!rc && rename(other, path))
        rc = refused(path, "write", err);
    if (rc && *other)
        unlink(other);
    sigprocmask(SIG_SETMASK, &signals, NULL);
    return rc;
}

/* Makes the hidden folder, opens and locks it. -1: errno says why. */
static int make_hidden(struct staging *staging, const char *path)
{
    for (;;) {
        struct stat status;

        if (name_anew(path, staging->path, sizeof staging->path) || (mkdir(staging->path, 0700) && errno != EEXIST))
            return -1;
        staging->hidden = open(staging->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (staging->hidden < 0 && errno != ENOENT)
            return -1;
        /* As with files: whoever cleans up meanwhile takes it for one that a dead run left. */
        if (staging->hidden >= 0 && !flock(staging->hidden, LOCK_EX | LOCK_NB) && !stat(staging->path, &status))
            return 0;
        if (staging->hidden >= 0)
            close(staging->hidden);
    }
}

int staging_open(struct staging *staging, const char *folder, const char *name, struct error *err)
{
    char path[4300];
    int rc = 0;

    *staging = (struct staging){.folder = folder, .hidden = -1, .place = -1};
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return error_add(err, EXIT_USAGE, (struct loc){0}, "the name of the file is too long");
    temporaries_clear(folder, name);
    hold_signals(&staging->signals);
    staging->place = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (staging->place < 0 || make_hidden(staging, path)) {
        rc = refused(folder, "write into the folder", err);
        *staging->path = '\0';
        if (staging->place >= 0)
            close(staging->place);
        sigprocmask(SIG_SETMASK, &staging->signals, NULL);
    }
    return rc;
}

bool staging_same(const struct staging *staging, const char *name)
{
    const int folders[] = {staging->hidden, staging->place};
    char digests[2][DIGEST_HEX];
    bool read = true;

    for (int i = 0; i < 2 && read; i++) {
        int fd = openat(folders[i], name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

        read = fd >= 0 && !digest_file(fd, digests[i]);
        if (fd >= 0)
            close(fd);
    }
    return read && !strcmp(digests[0], digests[1]);
}

int staging_lock(struct staging *staging, struct error *err)
{
    while (flock(staging->place, LOCK_EX))
        if (errno != EINTR)
            return refused(staging->folder, "lock the folder", err);
    return 0;
}

int staging_put(struct staging *staging, const char *name, struct error *err)
{
    char shown[4400];
    int fd = openat(staging->hidden, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), rc = 0;

    snprintf(shown, sizeof shown, "%s/%s", staging->folder, name);
    if (fd >= 0) {
        if (fsync(fd) || renameat(staging->hidden, name, staging->place, name))
            rc = refused(shown, "write", err);
        close(fd);
    } else if (errno != ENOENT || (unlinkat(staging->place, name, 0) && errno != ENOENT))
        rc = refused(shown, "replace", err);
    return rc;
}

void staging_release(struct staging *staging)
{
    if (!*staging->path)
        return;
    empty(staging->hidden);
    rmdir(staging->path);
    close(staging->hidden);
    close(staging->place);
    sigprocmask(SIG_SETMASK, &staging->signals, NULL);
    *staging->path = '\0';
}
