/* Other programs as children: no shell, no input, bounded output. */
#include "chart.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Starts the tool with one of its outputs in a pipe. Returns an errno. */
static int start(const char *folder, const char *const arguments[], int descriptor, int *output, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    int pipes[2], failed;

    if (pipe2(pipes, O_CLOEXEC))
        return errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, folder);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], descriptor);
    /* The tool's arguments are not changed; posix_spawn only lacks the const. */
    failed = posix_spawnp(child, arguments[0], &actions, NULL, (char *const *)(uintptr_t)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(pipes[1]);
    *output = pipes[0];
    if (failed)
        close(pipes[0]);
    return failed;
}

/* Reads to the end, so that the child never waits, and keeps the beginning. */
static void read_output(int output, char *text, size_t size)
{
    char buffer[4096];
    size_t length = 0;
    ssize_t got;

    while ((got = read(output, buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR))
        for (ssize_t i = 0; i < got && length + 1 < size; i++)
            text[length++] = buffer[i];
    text[length] = '\0';
    close(output);
}

int tool_run(const char *folder, const char *const arguments[], int descriptor, char *text, size_t size, int *status)
{
    int output = -1, failed;
    pid_t child;

    failed = start(folder, arguments, descriptor, &output, &child);
    if (failed)
        return failed;
    read_output(output, text, size);
    while (waitpid(child, status, 0) < 0)
        if (errno != EINTR)
            return errno;
    return 0;
}
