/* child_command: commands in child processes, so that a test sees a crash. */
#ifndef DTSIM_CHILD_COMMAND_H
#define DTSIM_CHILD_COMMAND_H

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd.h"

/* A process whose signals end it: cmocka has handlers that would go on with the test in the child. As fork(). */
static inline pid_t child_fork(void)
{
    static const int caught[] = {SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS};
    pid_t pid;

    fflush(NULL);
    pid = fork();
    for (size_t i = 0; !pid && i < COUNT(caught); i++)
        signal(caught[i], SIG_DFL);
    return pid;
}

/* Runs the command of these words, NULL-terminated, in this process; its exit code. */
static inline int command_code(const char *const *words)
{
    enum { MOST = 16 };
    char *argv[MOST + 1];
    int argc = 0;

    for (; words[argc] && argc < MOST; argc++)
        argv[argc] = (char *)(uintptr_t)words[argc];
    argv[argc] = NULL;
    for (size_t i = 0; command_at(i); i++)
        if (!strcmp(command_at(i)->name, words[0]))
            return command_run(command_at(i), argc, argv);
    BUG("no command '%s'", words[0]);
}

#endif
