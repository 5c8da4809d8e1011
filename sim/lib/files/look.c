#include "files/look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

int look_at(const char *path, enum look *found, struct error *err)
{
    struct stat status;

    *found = LOOK_NOTHING;
    if (stat(path, &status) == 0)
        *found = S_ISDIR(status.st_mode) ? LOOK_FOLDER : LOOK_FILE;
    else if (errno != ENOENT && errno != ENOTDIR)
        return error_system(err, (struct loc){.file = path}, "cannot find out whether it is there");
    return 0;
}

int look_into(struct arena *arena, const char *path, bool (*wanted)(const char *name), struct look_names *names,
              struct error *err)
{
    struct loc loc = {.file = path};
    DIR *dir = opendir(path);
    int rc = 0;

    if (!dir && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (!dir)
        return error_system(err, loc, "cannot open the folder");
    for (const struct dirent *entry; errno = 0, (entry = readdir(dir));)
        if (wanted(entry->d_name))
            *GROW(names) = arena_strdup(arena, entry->d_name);
    if (errno)
        rc = error_system(err, loc, "cannot list the folder");
    closedir(dir);
    return rc;
}

ssize_t look_line(FILE *file, char **line, size_t *capacity)
{
    size_t length = 0;
    int c;

    flockfile(file);
    while ((c = getc_unlocked(file)) != EOF) {
        if (length >= *capacity && length <= LINE_LIMIT) {
            *capacity = *capacity ? 2 * *capacity : 4096;
            *line = xrealloc(*line, *capacity, 1);
        }
        if (length <= LINE_LIMIT)
            (*line)[length++] = (char)c;
        if (c == '\n')
            break;
    }
    funlockfile(file);
    return c == EOF && !length ? -1 : (ssize_t)length;
}

/* Whether it is the device that is standard input, a terminal perhaps. */
static bool is_input(const struct stat *status)
{
    struct stat input;

    return !fstat(STDIN_FILENO, &input) && input.st_dev == status->st_dev && input.st_ino == status->st_ino;
}

/* A pipe that nobody writes yet does not keep its reader from looking at what it is. */
static int open_checked(const char *path, bool pipes, struct error *err)
{
    struct loc loc = {.file = path};
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), rc = 0;
    struct stat status;

    if (file < 0)
        rc = error_system(err, loc, "cannot open");
    else if (fstat(file, &status))
        return file;                     /* what keeps it from being looked at keeps it from being read, which says so */
    else if (S_ISDIR(status.st_mode))
        rc = error_add(err, EXIT_INPUT, loc, "this is a directory; expected a file");
    else if (S_ISFIFO(status.st_mode) && !pipes && !is_input(&status))
        rc = error_add(err, EXIT_INPUT, loc, "this is a pipe; expected a file");
    else if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode) && !is_input(&status))
        rc = error_add(err, EXIT_INPUT, loc, "this is a device; expected a file%s", pipes ? " or a pipe" : "");
    else if (status.st_size > FILE_LIMIT)
        rc = error_add(err, EXIT_INPUT, loc, "the file has %lld bytes; expected at most %lld",
                       (long long)status.st_size, FILE_LIMIT);
    if (file >= 0 && rc)
        close(file);
    return rc ? -1 : file;
}

/* Waits until somebody writes, if it is a pipe; reads wait from now on. */
static FILE *stream_of(int fd, const char *path, struct error *err)
{
    struct pollfd written = {.fd = fd, .events = POLLIN};
    int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);
    FILE *file;

    if (fd < 0)
        return NULL;
    if (flags >= 0 && poll(&written, 1, -1) >= 0)
        fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    file = fdopen(fd, "rb");
    if (!file) {
        error_system(err, (struct loc){.file = path}, "cannot open");
        close(fd);
    }
    return file;
}

FILE *look_open(const char *path, struct error *err)
{
    return stream_of(open_checked(path, false, err), path, err);
}

FILE *look_open_stream(const char *path, struct error *err)
{
    return stream_of(open_checked(path, true, err), path, err);
}

int look_open_any(const char *path, struct error *err)
{
    return open_checked(path, true, err);
}

int look_apart(const char *path, const char *folder, const char *const *names, struct error *err)
{
    struct stat there, other;
    struct loc loc = {.file = path};

    if (stat(path, &there))
        return 0;                /* a new file, or one that file_replace refuses */
    if (S_ISDIR(there.st_mode))
        return error_add(err, EXIT_USAGE, loc, "this is a folder; expected a file to write");
    if (!S_ISREG(there.st_mode))
        return error_add(err, EXIT_USAGE, loc, "this is no regular file; expected a file to write, which appears when it "
                         "is whole");
    for (size_t i = 0; names[i]; i++) {
        char name[4400];

        snprintf(name, sizeof name, "%s/%s", folder, names[i]);
        if (!stat(name, &other) && other.st_dev == there.st_dev && other.st_ino == there.st_ino)
            return error_add(err, EXIT_USAGE, loc, "this is %s of the input; expected another file to write", names[i]);
    }
    return 0;
}

char *look_on_path(const char *name)
{
    const char *folders = getenv("PATH");

    if (!folders)
        folders = "/usr/local/bin:/usr/bin:/bin";
    for (const char *end; *folders; folders = *end ? end + 1 : end) {
        struct stat info;
        char *path;

        end = strchrnul(folders, ':');
        if (*folders != '/')
            continue;
        path = xprintf("%.*s/%s", (int)(end - folders), folders, name);
        if (!access(path, X_OK) && !stat(path, &info) && S_ISREG(info.st_mode))
            return path;
        free(path);
    }
    return NULL;
}
