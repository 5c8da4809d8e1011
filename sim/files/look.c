#include "files/look.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

const char *look_program(struct arena *arena, struct error *err)
{
    static const char link[] = "/proc/self/exe";
    char path[PATH_MAX];
    ssize_t length = readlink(link, path, sizeof path);

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
