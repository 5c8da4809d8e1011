/* sandbox: runs a program of others, which may try anything, in a child that can read some folders, write one private folder,
 * start the programs that are named there, and say lines to this process.
 *
 *   seccomp    a list of system calls; none makes a connection, sends a signal, leaves the process group, changes a file's
 *              rights or the machine. This process is asked about each fork, each start of a program, and each file that is
 *              opened to be written.
 *   Landlock   reading and writing of files by their folders; from version 4 on no TCP, from version 6 on no signals and no
 *              abstract sockets either
 *   limits     SANDBOX_SECONDS, SANDBOX_BYTES of lines and of each file, SANDBOX_MEMORY of all processes (of each at once, of
 *              their sum some 20 times a second), SANDBOX_FORKS; then all processes are killed */
#ifndef DTSIM_SANDBOX_H
#define DTSIM_SANDBOX_H

#include <sys/types.h>

#include "base/base.h"

enum {
    SANDBOX_SECONDS = 5,
    SANDBOX_BYTES = 1 << 20,
    SANDBOX_ALL_BYTES = 8 << 20,     /* of all files of the private folder */
    SANDBOX_MEMORY = 256 << 20,
    SANDBOX_FORKS = 500,
    SANDBOX_SAYS = 200,              /* the descriptor by which the child says lines */
    SANDBOX_HEARS = 201,             /* and the one by which it gets the answer to a line that begins with '?' */
};

struct sandbox {
    char folder[256];                /* the private folder, where the program works; the caller says so in TMPDIR and PATH */
    pid_t keeper;                    /* the process that removes it, also where this one is killed */
    int keeper_hears;                /* and the pipe by which it hears from this one */
    const char *const *read;         /* folders and files that it may read, up to NULL; /usr always */
    bool trust;                      /* also where there is no Landlock */
    int abi;                         /* the version of Landlock to use at most; 0: the kernel's, -1: none */
    /* Writes the answer to a line. */
    void (*answer)(void *context, const char *line, FILE *out);
    void *context;
};
/* What a run left. Release it. */
struct sandbox_run {
    char *said;                      /* the lines */
    char *words;                     /* its standard error, at most SANDBOX_BYTES */
    const char *killed;              /* the limit that ended it ("5 s"); NULL: none did */
    struct { char **items; size_t count, capacity; } refused;    /* names of programs that it may not start, as they were said */
};

/* The version of Landlock that the kernel has; 0: none. */
int sandbox_abi(void);
/* From now on this process and its children open files of the folder and of /usr alone, and read those of `read` (up to NULL). They
 * start no program and make no connection. -1: errno says why Landlock does not hold them. */
int sandbox_confine(const char *folder, const char *const *read);
/* Whether Landlock will hold the program. */
bool sandbox_holds(const struct sandbox *sandbox);
/* Makes the private folder, which has a process of its own that removes it, with links to those programs of /usr/bin that there are (names between spaces) in its folder
 * bin. sandbox_close removes it with all that is in it, and so does the end of this process, whatever ends it. */
int sandbox_open(struct sandbox *sandbox, const char *programs, struct error *err);
void sandbox_close(struct sandbox *sandbox);
/* Puts a text into the private folder. */
int sandbox_put(const struct sandbox *sandbox, const char *name, const char *text, size_t length, struct error *err);
/* Reads a file of the private folder, which the child may have made; NULL: there is none that can be read. Free it. */
char *sandbox_get(const struct sandbox *sandbox, const char *name, size_t *length);
/* Runs a program of the private folder's bin. No process of it is left afterwards, also where this process is
 * killed meanwhile. */
int sandbox_start(const struct sandbox *sandbox, const char *const *words, const char *const *environment,
                  struct sandbox_run *run, struct error *err);
void sandbox_run_release(struct sandbox_run *run);

#endif
