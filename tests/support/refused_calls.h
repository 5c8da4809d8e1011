/* refused_calls: calls of the system that fail, one at a time: the linker sends a program's calls to these functions first
 * (--wrap). Only one program includes them. */
#ifndef DTSIM_TEST_REFUSED_CALLS_H
#define DTSIM_TEST_REFUSED_CALLS_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

#define REAL(type, name, ...) type __real_##name(__VA_ARGS__); type __wrap_##name(__VA_ARGS__)

/* What fails, in a command and in the processes that it starts. */
struct fault {
    atomic_int calls;
    int at;                      /* this call fails; 0: none */
    int why;                     /* errno */
    atomic_bool struck;
    char path[4096];             /* of the call that failed; "" where it has none */
};
static struct fault *fault;      /* shared memory; NULL: calls are not counted */

/* Whether this call is the one that fails. */
static bool fails(const char *path)
{
    if (!fault || atomic_fetch_add(&fault->calls, 1) + 1 != fault->at)
        return false;
    snprintf(fault->path, sizeof fault->path, "%s", path ? path : "");
    fault->struck = true;
    errno = fault->why;
    return true;
}

REAL(int, open, const char *path, int flags, ...);
REAL(int, openat, int folder, const char *path, int flags, ...);
REAL(int, stat, const char *path, struct stat *status);
REAL(int, fstat, int fd, struct stat *status);
REAL(int, access, const char *path, int mode);
REAL(DIR *, opendir, const char *path);
REAL(struct dirent *, readdir, DIR *dir);
REAL(char *, realpath, const char *path, char *resolved);
REAL(ssize_t, readlink, const char *path, char *text, size_t size);
REAL(ssize_t, pread, int fd, void *bytes, size_t size, off_t at);
REAL(FILE *, fopen, const char *path, const char *mode);
REAL(FILE *, fdopen, int fd, const char *mode);
REAL(ssize_t, read, int fd, void *bytes, size_t size);

int __wrap_open(const char *path, int flags, ...)
{
    va_list args;

    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    return fails(path) ? -1 : __real_open(path, flags, mode);
}

/* Names are relative to the folder: messages have others. */
int __wrap_openat(int folder, const char *path, int flags, ...)
{
    va_list args;

    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    return fails(NULL) ? -1 : __real_openat(folder, path, flags, mode);
}

int __wrap_stat(const char *path, struct stat *status)
{
    return fails(path) ? -1 : __real_stat(path, status);
}

int __wrap_fstat(int fd, struct stat *status)
{
    return fails(NULL) ? -1 : __real_fstat(fd, status);
}

int __wrap_access(const char *path, int mode)
{
    return fails(path) ? -1 : __real_access(path, mode);
}

DIR *__wrap_opendir(const char *path)
{
    return fails(path) ? NULL : __real_opendir(path);
}

struct dirent *__wrap_readdir(DIR *dir)
{
    return fails(NULL) ? NULL : __real_readdir(dir);
}

char *__wrap_realpath(const char *path, char *resolved)
{
    return fails(path) ? NULL : __real_realpath(path, resolved);
}

ssize_t __wrap_readlink(const char *path, char *text, size_t size)
{
    return fails(path) ? -1 : __real_readlink(path, text, size);
}

ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t at)
{
    return fails(NULL) ? -1 : __real_pread(fd, bytes, size, at);
}

/* What workers say comes through a socket, which does not fail while they live. */
ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
    struct stat status;
    bool socket = !__real_fstat(fd, &status) && S_ISSOCK(status.st_mode);

    return !socket && fails(NULL) ? -1 : __real_read(fd, bytes, size);
}

/* A file that cannot be read beyond its half. */
struct torn { FILE *file; size_t left; };

static ssize_t torn_read(void *cookie, char *bytes, size_t size)
{
    struct torn *torn = cookie;

    if (!torn->left) {
        errno = fault->why;
        return -1;
    }
    size = fread(bytes, 1, size < torn->left ? size : torn->left, torn->file);
    torn->left -= size;
    return (ssize_t)size;
}

static int torn_close(void *cookie)
{
    struct torn *torn = cookie;
    int rc = fclose(torn->file);

    free(torn);
    return rc;
}

static FILE *torn_file(FILE *file)
{
    struct torn *cookie = xcalloc(1, sizeof *cookie);
    struct stat status;

    *cookie = (struct torn){file, __real_fstat(fileno(file), &status) ? 0 : (size_t)status.st_size / 2};
    return fopencookie(cookie, "r", (cookie_io_functions_t){.read = torn_read, .close = torn_close});
}

/* A call to read counts twice: it fails, or reading does. */
FILE *__wrap_fopen(const char *path, const char *mode)
{
    bool refused = fails(path), torn = fault && mode[0] == 'r' && fails(path);
    FILE *file = refused ? NULL : __real_fopen(path, mode);

    return file && torn ? torn_file(file) : file;
}

FILE *__wrap_fdopen(int fd, const char *mode)
{
    bool refused = fails(NULL), torn = fault && mode[0] == 'r' && fails(NULL);
    FILE *file = refused ? NULL : __real_fdopen(fd, mode);

    return file && torn ? torn_file(file) : file;
}

#endif
