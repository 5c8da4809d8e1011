/* Loaded before the C library (LD_PRELOAD), fails one call of a program, and counts them, as SQLite's tests do.
 *   FAIL_KIND     malloc, open, read, write, fsync, rename, fork or mmap
 *   FAIL_AT       which call fails, from 1; 0: none
 *   FAIL_COUNTER  a file of 8 bytes, which holds the number of calls in this process and its children
 * Calls count from main() on, in the program and in its own children, but not in programs that it starts. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static _Atomic long *counter;
static long fails_at;
static const char *kind = "";

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

/* Whether this call is the one that fails. */
static int fails(const char *of, int why)
{
    if (!counter || strcmp(of, kind) || ++*counter != fails_at)
        return 0;
    errno = why;
    return 1;
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int (*main_real)(int, char **, char **);

static int main_counted(int argc, char **argv, char **environment)
{
    const char *path = getenv("FAIL_COUNTER");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    void *memory;

    if (fd < 0 || ftruncate(fd, sizeof *counter))
        abort();
    memory = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    kind = getenv("FAIL_KIND");
    fails_at = atol(getenv("FAIL_AT"));
    unsetenv("LD_PRELOAD");
    counter = memory;
    return main_real(argc, argv, environment);
}

int __libc_start_main(int (*body)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack)
{
    REAL(__libc_start_main);

    main_real = body;
    return real(main_counted, argc, argv, init, fini, rtld_fini, stack);
}

void *malloc(size_t size)
{
    return fails("malloc", ENOMEM) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails("malloc", ENOMEM) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails("malloc", ENOMEM) ? NULL : __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t count, size_t size)
{
    return fails("malloc", ENOMEM) ? NULL : __libc_realloc(old, count * size);
}

void *mmap(void *at, size_t length, int access, int flags, int fd, off_t offset)
{
    REAL(mmap);
    return fails("mmap", ENOMEM) ? MAP_FAILED : real(at, length, access, flags, fd, offset);
}

int open(const char *path, int flags, ...)
{
    REAL(open);
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return fails("open", EMFILE) ? -1 : real(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    REAL(openat);
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return fails("open", EMFILE) ? -1 : real(folder, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    REAL(fopen);
    return fails("open", EMFILE) ? NULL : real(path, mode);
}

size_t fread(void *to, size_t size, size_t count, FILE *file)
{
    REAL(fread);

    if (!fails("read", EIO))
        return real(to, size, count, file);
    file->_flags |= 0x20;        /* what glibc's ferror() looks at */
    return 0;
}

ssize_t getline(char **line, size_t *size, FILE *file)
{
    REAL(getline);

    if (!fails("read", EIO))
        return real(line, size, file);
    file->_flags |= 0x20;
    return -1;
}

ssize_t read(int fd, void *to, size_t size)
{
    REAL(read);
    return fails("read", EIO) ? -1 : real(fd, to, size);
}

ssize_t pread(int fd, void *to, size_t size, off_t at)
{
    REAL(pread);
    return fails("read", EIO) ? -1 : real(fd, to, size, at);
}

ssize_t write(int fd, const void *from, size_t size)
{
    REAL(write);
    return fails("write", ENOSPC) ? -1 : real(fd, from, size);
}

ssize_t send(int fd, const void *from, size_t size, int flags)
{
    REAL(send);
    return fails("write", EPIPE) ? -1 : real(fd, from, size, flags);
}

int fflush(FILE *file)
{
    REAL(fflush);
    return fails("write", ENOSPC) ? EOF : real(file);
}

int fclose(FILE *file)
{
    REAL(fclose);
    int failed = fails("write", ENOSPC), rc = real(file);

    if (failed)
        errno = ENOSPC;
    return failed ? EOF : rc;
}

int fsync(int fd)
{
    REAL(fsync);
    return fails("fsync", EIO) ? -1 : real(fd);
}

int fdatasync(int fd)
{
    REAL(fdatasync);
    return fails("fsync", EIO) ? -1 : real(fd);
}

int rename(const char *from, const char *to)
{
    REAL(rename);
    return fails("rename", EIO) ? -1 : real(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    REAL(renameat);
    return fails("rename", EIO) ? -1 : real(from_folder, from, to_folder, to);
}

pid_t fork(void)
{
    REAL(fork);
    return fails("fork", EAGAIN) ? -1 : real();
}
