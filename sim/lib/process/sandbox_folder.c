/* sandbox_folder: the private folder of a sandbox. */
#include "process/sandbox_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

static int refuse(const struct sandbox *sandbox, struct error *err)
{
    return error_system(err, (struct loc){0}, "cannot write the private folder '%s'", sandbox->folder);
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

/* The keeper makes the folder and removes it when the other process closes the pipe, or ends in whatever way: killed, too. Before,
 * it ends the process group of which it was told last. */
static _Noreturn void keep(struct sandbox *sandbox, int hears, int says)
{
    pid_t told, group = 0;
    int why;

    setsid();
    signal(SIGTERM, SIG_IGN);
    why = mkdtemp(sandbox->folder) ? 0 : errno;
    if (write(says, &why, sizeof why) < 0 || write(says, sandbox->folder, sizeof sandbox->folder) < 0 ||
        dup2(hears, STDIN_FILENO) < 0)
        why = why ? why : EPIPE;
    close_range(1, ~0U, 0);
    while (read(STDIN_FILENO, &told, sizeof told) == sizeof told)
        group = told;
    if (group > 0)
        kill(-group, SIGKILL);
    for (int tries = 0; *sandbox->folder && !access(sandbox->folder, F_OK) && tries < 100; tries++) {
        remove_all(sandbox->folder, 1);
        if (!access(sandbox->folder, F_OK))
            usleep(10000);               /* a process that was killed still had a file to make */
    }
    _exit(0);
}

/* Starts the keeper; -1: errno says why there is no folder. */
static int start_keeper(struct sandbox *sandbox)
{
    int to[2], from[2], why = EPIPE;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to))
        return -1;
    if (pipe2(from, O_CLOEXEC)) {
        close(to[0]);
        close(to[1]);
        return -1;
    }
    sandbox->keeper = fork();
    why = sandbox->keeper < 0 ? errno : why;
    if (!sandbox->keeper) {
        close(to[1]);
        keep(sandbox, to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    sandbox->keeper_hears = to[1];
    if (sandbox->keeper < 0)
        close(to[1]);
    if (sandbox->keeper < 0 || read(from[0], &why, sizeof why) != sizeof why ||
        read(from[0], sandbox->folder, sizeof sandbox->folder) != sizeof sandbox->folder)
        why = why ? why : EPIPE;
    close(from[0]);
    errno = why;
    return why ? -1 : 0;
}

void sandbox_tell(const struct sandbox *sandbox, pid_t group)
{
    if (send(sandbox->keeper_hears, &group, sizeof group, MSG_NOSIGNAL) < 0)
        return;                          /* the keeper was killed: then nobody else ends the group */
}

void sandbox_close(struct sandbox *sandbox)
{
    if (sandbox->keeper > 0) {
        close(sandbox->keeper_hears);
        while (waitpid(sandbox->keeper, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    sandbox->keeper = 0;
    *sandbox->folder = '\0';
}

int sandbox_open(struct sandbox *sandbox, const char *programs, struct error *err)
{
    const char *place = getenv("TMPDIR");
    char target[512], link[512];

    sandbox->keeper = 0;
    if (snprintf(sandbox->folder, sizeof sandbox->folder - 32, "%s/dtsim.XXXXXX", place && *place == '/' ? place : "/tmp") >=
            (int)sizeof sandbox->folder - 32 || start_keeper(sandbox)) {
        int rc = refuse(sandbox, err);

        sandbox_close(sandbox);
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
