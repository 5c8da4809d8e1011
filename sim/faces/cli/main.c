#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cmd.h"

static const char *command_candidate(size_t i, const void *context)
{
    (void)context;
    return command_at(i) ? command_at(i)->name : NULL;
}

/* Where a standard stream is closed, the next file that is opened would become it, and be read or written as such. A
 * stream that only reads stands in its place: what is written to it fails, and is reported. */
static void take_closed(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDONLY) < 0)
            return;
}

/* Whether the stack may grow to what every command does with; raises its limit where that may be done. Beyond the limit
 * the system ends a process without a word. */
static bool has_stack(void)
{
    enum { LEAST = 1 << 20 };
    struct rlimit limit;

    if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= LEAST)
        return true;
    limit.rlim_cur = LEAST;
    if (limit.rlim_max >= LEAST && !setrlimit(RLIMIT_STACK, &limit))
        return true;
    fputs("dtsim: the stack may take less than 1 MiB; raise its limit ('ulimit -s') and try again\n", stderr);
    return false;
}

/* The exit code of a command whose output is complete; EXIT_UNEXPECTED where it could not be written. */
static int printed(int code)
{
    if (!fflush(stdout) && !ferror(stdout))
        return code;
    fputs("dtsim: cannot write to standard output\n", stderr);
    return EXIT_UNEXPECTED;
}

int main(int argc, char **argv)
{
    const char *word, *meant, *wrong = NULL;

    json_set_alloc_funcs(xmalloc, free);     /* jansson's own answer to no memory is an object that lacks a key */
    take_closed();
    signal(SIGXFSZ, SIG_IGN);                /* a file that grows beyond RLIMIT_FSIZE fails to be written, and the message says so */
    if (!has_stack())
        return EXIT_UNEXPECTED;
    for (; argc > 1 && color_option(argv[1], &wrong) && !wrong; argc--)
        argv++;
    if (wrong) {
        fputs("dtsim: --color: expected auto, always or never, found '", stderr);
        text_write(TEXT_LINE, wrong, stderr);
        fputs("'\n", stderr);
        return EXIT_USAGE;
    }
    word = argc > 1 ? argv[1] : "help";
    if (!strcmp(word, "--help") || !strcmp(word, "-h"))
        word = "help";
    if (!strcmp(word, "--version"))
        return puts("dtsim " DTSIM_VERSION), printed(EXIT_OK);
    for (size_t i = 0; command_at(i); i++)
        if (!strcmp(word, command_at(i)->name)) {
            int code = printed(command_run(command_at(i), argc > 1 ? argc - 1 : 1, argc > 1 ? argv + 1 : argv));

            if (!ADDRESS_SANITIZER)      /* which looks for leaks at the end of main() */
                _exit(code);             /* destructors of SimGrid's libraries take as long as a small simulation */
            return code;
        }
    meant = nearest(word, command_candidate, NULL);
    fputs("dtsim: unknown command '", stderr);
    text_write(TEXT_LINE, word, stderr);
    fputs("'", stderr);
    if (meant)
        fprintf(stderr, "; did you mean '%s'?\n", meant);
    else
        fputs("; see 'dtsim help'\n", stderr);
    return EXIT_USAGE;
}
