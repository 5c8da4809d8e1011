/* sandbox_folder: the private folder of a sandbox. */
#include "process/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

static int refuse(const struct sandbox *sandbox, struct error *err)
{
    return error_system(err, (struct loc){0}, "cannot write the private folder '%s'", sandbox->folder);
}

int sandbox_open(struct sandbox *sandbox, const char *programs, struct error *err)
{
    const char *place = getenv("TMPDIR");
    char target[512], link[512];

    if (snprintf(sandbox->folder, sizeof sandbox->folder - 32, "%s/dtsim.XXXXXX", place && *place == '/' ? place : "/tmp") >=
            (int)sizeof sandbox->folder - 32 || !mkdtemp(sandbox->folder)) {
        int rc = refuse(sandbox, err);

        *sandbox->folder = '\0';
        return rc;
    }
    snprintf(link, sizeof link, "%s/bin", sandbox->folder);
    if (mkdir(link, 0700))
        return refuse(sandbox, err);
    for (const char *at = programs; *at; at += strspn(at, " ")) {
        int length = (int)strcspn(at, " ");

        snprintf(target, sizeof target, "/usr/bin/%.*s", length, at);
        snprintf(link, sizeof link, "%s/bin/%.*s", sandbox->folder, length, at);
        if (!access(target, X_OK) && symlink(target, link))
            return refuse(sandbox, err);
        at += length;
    }
    return 0;
}

/* The child makes no folders: there are no deeper ones. */
static void remove_all(const char *path, int depth)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    char inner[1024];

    while (folder && (entry = readdir(folder)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && unlinkat(dirfd(folder), entry->d_name, 0) && depth) {
            snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
            remove_all(inner, depth - 1);
        }
    if (folder)
        closedir(folder);
    rmdir(path);
}

void sandbox_close(struct sandbox *sandbox)
{
    if (*sandbox->folder)
        remove_all(sandbox->folder, 1);
    *sandbox->folder = '\0';
}

int sandbox_put(const struct sandbox *sandbox, const char *name, const char *text, size_t length, struct error *err)
{
    char path[512];
    FILE *file;
    size_t put;

    snprintf(path, sizeof path, "%s/%s", sandbox->folder, name);
    unlink(path);
    file = fopen(path, "wxe");
    put = file ? fwrite(text, 1, length, file) : 0;
    return !file || (fclose(file) | (put != length)) ? refuse(sandbox, err) : 0;
}

char *sandbox_get(const struct sandbox *sandbox, const char *name, size_t *length)
{
    char path[512], *text = NULL;
    struct stat status;
    ssize_t got = -1;
    int file;

    snprintf(path, sizeof path, "%s/%s", sandbox->folder, name);
    file = strchr(name, '/') ? -1 : open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0 && !fstat(file, &status) && S_ISREG(status.st_mode) && status.st_size <= SANDBOX_BYTES) {
        text = xcalloc(1, (size_t)status.st_size + 1);
        got = read(file, text, (size_t)status.st_size);
    }
    if (file >= 0)
        close(file);
    if (got < 0) {
        free(text);
        return NULL;
    }
    *length = (size_t)got;
    return text;
}
