/* gnuplot as a child: no shell, nothing of the user's own settings, its complaints caught. */
#include "chart.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Starts `gnuplot -d SCRIPT` in the folder with its messages in a pipe. Returns an errno. */
static int start(const char *folder, const char *script, int *messages, pid_t *child)
{
    char *arguments[] = {(char[]){"gnuplot"}, (char[]){"-d"}, (char *)(uintptr_t)script, NULL};
    posix_spawn_file_actions_t actions;
    int pipes[2], failed;

    if (pipe2(pipes, O_CLOEXEC))
        return errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, folder);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDERR_FILENO);
    failed = posix_spawnp(child, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(pipes[1]);
    *messages = pipes[0];
    if (failed)
        close(pipes[0]);
    return failed;
}

/* Reads to the end, so that the child never waits, and keeps the beginning. */
static void read_messages(int messages, char *text, size_t size)
{
    char buffer[4096];
    size_t length = 0;
    ssize_t got;

    while ((got = read(messages, buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR))
        for (ssize_t i = 0; i < got && length + 1 < size; i++)
            text[length++] = buffer[i];
    text[length] = '\0';
    close(messages);
}

/* gnuplot shows the line, a caret below it and then says what is wrong: the last line that says something. */
static const char *last_words(char *text)
{
    const char *words = "";
    char *rest = text;

    for (char *line; (line = strsep(&rest, "\n"));)
        if (line[strspn(line, " \t^")])
            words = line;
    return words;
}

/* PDF files bear the date they were made on. The same run gives the same bytes, so theirs is the first of 2000. */
static void undate(const char *path)
{
    static const char mark[] = "/CreationDate (D:", date[] = "20000101000000";
    FILE *file = fopen(path, "r+b");
    size_t matched = 0;
    int c;

    if (!file)
        return;
    while ((c = getc(file)) != EOF) {
        matched = c == mark[matched] ? matched + 1 : c == mark[0];
        if (matched < sizeof mark - 1)
            continue;
        fseek(file, 0, SEEK_CUR);
        fwrite(date, 1, sizeof date - 1, file);
        break;
    }
    fclose(file);
}

static bool is_made(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && info.st_size > 0;
}

int gnuplot_run(const char *folder, const char *script, const char *picture, struct error *err)
{
    struct arena arena = {0};
    struct loc loc = {.file = arena_printf(&arena, "%s/%s", folder, script)};
    const char *path = arena_printf(&arena, "%s/%s", folder, picture);
    char text[4096];
    int messages = -1, status = 0, failed;
    pid_t child;

    unlink(path);                    /* so that an old picture is not taken for the new one */
    failed = start(folder, script, &messages, &child);
    if (failed == ENOENT) {
        error_add(err, EXIT_NO_TOOL, (struct loc){0},
                  "gnuplot is not installed (Debian: apt install gnuplot-nox; macOS: brew install gnuplot); "
                  "the chart's data and script are in '%s'", folder);
    } else if (failed) {
        error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "cannot start gnuplot: %s", strerror(failed));
    } else {
        read_messages(messages, text, sizeof text);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        if (WIFSIGNALED(status))
            failed = error_add(err, EXIT_UNEXPECTED, loc, "gnuplot was ended by signal %d", WTERMSIG(status));
        else if (WEXITSTATUS(status) || !is_made(path))
            failed = error_add(err, EXIT_UNEXPECTED, loc, "gnuplot: %s", last_words(text));
        else if (strcmp(strrchr(picture, '.'), ".pdf") == 0)
            undate(path);
    }
    if (failed)
        unlink(path);                /* half a picture is none */
    arena_release(&arena);
    return failed ? -1 : 0;
}
