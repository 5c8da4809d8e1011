/* Other programs as children: no shell, no input, bounded output, bounded time. */
#include "chart.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "files/look.h"

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The child: the tool, which ends with its parent. Why it cannot be started goes into `failure`, an errno. */
static _Noreturn void be_tool(const struct tool *tool, const char *path, int output, int failure, pid_t parent)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC), why;
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &signals, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);                   /* so that what it starts itself can be ended with it */
    if (getppid() == parent && nowhere >= 0 && dup2(nowhere, STDIN_FILENO) == STDIN_FILENO &&
        dup2(nowhere, STDOUT_FILENO) >= 0 && dup2(nowhere, STDERR_FILENO) >= 0 && dup2(output, tool->descriptor) >= 0 &&
        !chdir(tool->folder))
        /* The tool's arguments are not changed; execv only lacks the const. */
        execv(path, (char *const *)(uintptr_t)tool->arguments);
    why = errno;
    if (write(failure, &why, sizeof why) < 0)
        _exit(126);
    _exit(127);
}

/* Starts the tool with one of its outputs in a pipe. Returns an errno. */
static int start(const struct tool *tool, const char *path, int *output, pid_t *child)
{
    int pipes[2], failures[2], failed = 0;
    pid_t parent = getpid();

    if (pipe2(pipes, O_CLOEXEC))
        return errno;
    if (pipe2(failures, O_CLOEXEC)) {
        failed = errno;
        close(pipes[0]);
        close(pipes[1]);
        return failed;
    }
    *child = fork();
    if (!*child)
        be_tool(tool, path, pipes[1], failures[1], parent);
    failed = *child < 0 ? errno : 0;
    close(pipes[1]);
    close(failures[1]);
    if (!failed && read(failures[0], &failed, sizeof failed) == (ssize_t)sizeof failed)
        waitpid(*child, NULL, 0);
    close(failures[0]);
    if (failed)
        close(pipes[0]);
    *output = pipes[0];
    return failed;
}

/* Whether this process is to end and blocks the signal that says so. */
static bool interrupted(void)
{
    sigset_t signals;

    return !sigpending(&signals) && (sigismember(&signals, SIGINT) == 1 || sigismember(&signals, SIGTERM) == 1);
}

/* Reads to the end or until the deadline, so that the child never waits, and keeps the beginning. */
static void read_output(int output, double deadline, char *text, size_t size)
{
    enum { GLANCE = 50 };            /* ms */
    char buffer[4096];
    size_t length = 0;

    while (now() < deadline && !interrupted()) {
        ssize_t got;

        if (poll(&(struct pollfd){.fd = output, .events = POLLIN}, 1, GLANCE) <= 0)
            continue;
        got = read(output, buffer, sizeof buffer);
        if (!got || (got < 0 && errno != EINTR))
            break;
        for (ssize_t i = 0; i < got && length + 1 < size; i++)
            text[length++] = buffer[i];
    }
    text[length] = '\0';
}

/* Waits for the end of the child, which is killed at the deadline, or where this process is to end. Returns an errno. */
static int await(pid_t child, double deadline, int *status)
{
    const struct timespec moment = {.tv_nsec = 500000};
    pid_t ended;

    while ((ended = waitpid(child, status, WNOHANG)) == 0 && now() < deadline && !interrupted())
        nanosleep(&moment, NULL);
    if (ended)
        return ended < 0 ? errno : 0;
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
    while (waitpid(child, status, 0) < 0)
        if (errno != EINTR)
            return errno;
    return interrupted() ? EINTR : ETIMEDOUT;
}

int tool_run(const struct tool *tool, char *text, size_t size, int *status)
{
    double deadline = now() + tool->seconds;
    char *path = look_on_path(tool->arguments[0]);
    int output = -1, failed;
    pid_t child = -1;

    *text = '\0';
    failed = path ? start(tool, path, &output, &child) : ENOENT;
    free(path);
    if (failed)
        return failed;
    read_output(output, deadline, text, size);
    failed = await(child, deadline, status);
    close(output);                       /* not before: a tool that goes on writing would die of that */
    return failed;
}
