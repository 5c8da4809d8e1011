#include "files/look.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/base.h"

/* The path of the library that this code is loaded from; NULL: it is part of the program, whose headers the system names. */
static const char *own_library(void)
{
    extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));      /* the linker's */
    uintptr_t headers = (uintptr_t)&__ehdr_start + __ehdr_start.e_phoff;
    Dl_info found;

    return getauxval(AT_PHDR) == headers || !dladdr(&__ehdr_start, &found) ? NULL : found.dli_fname;
}

const char *look_program(struct arena *arena, struct error *err)
{
    static const char link[] = "/proc/self/exe";
    char path[PATH_MAX];
    const char *library = own_library();
    ssize_t length = library && realpath(library, path) ? (ssize_t)strlen(path) : readlink(link, path, sizeof path);

    /* Without /proc the system still says by which name it started the program. */
    if (length < 0 && errno == ENOENT && realpath((const char *)getauxval(AT_EXECFN), path))
        length = (ssize_t)strlen(path);
    else if (length < 0 && errno == ENOENT)
        errno = ENOSYS;                      /* nothing that the user named is missing */
    if (length == sizeof path) {
        errno = ENAMETOOLONG;
        length = -1;
    }
    if (length < 0) {
        error_system(err, (struct loc){.file = link}, "cannot find the folder of this program and its files");
        return NULL;
    }
    while (length > 0 && path[length - 1] != '/')
        length--;
    return arena_strndup(arena, path, (size_t)length);
}
