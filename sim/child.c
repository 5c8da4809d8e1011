#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_DONE = 0, CHILD_FAILED = 1 };

_Noreturn void child_done(void)
{
    _exit(CHILD_DONE);
}

void *child_share(size_t size)
{
    void *memory = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

void child_unshare(void *memory, size_t size)
{
    if (memory)
        munmap(memory, size ? size : 1);
}

/* A library that calls exit() must not flush the parent's buffers a second time, nor run its exit handlers. */
static void leave_at_once(int status, void *unused)
{
    (void)unused;
    _exit(status == CHILD_DONE ? CHILD_FAILED : status);
}

static _Noreturn void be_child(void (*body)(void *), void *context, int words)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    on_exit(leave_at_once, NULL);
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(words, STDERR_FILENO);
    body(context);
    child_done();
}

/* What the child wrote, on one line: its beginning and its end, as causes come first in some and last in others. */
static void last_words(int words, char *text, size_t size)
{
    static const char gap[] = " ... ";
    size_t half = (size - sizeof gap) / 2, length = 0;
    off_t all = lseek(words, 0, SEEK_END);
    ssize_t count = pread(words, text, half, 0);

    if (count > 0)
        length = (size_t)count;
    if (all > (off_t)(2 * half)) {
        memcpy(text + length, gap, sizeof gap - 1);
        length += sizeof gap - 1;
    }
    if (all > (off_t)half) {
        off_t first = all - (off_t)half > (off_t)half ? all - (off_t)half : (off_t)half;

        count = pread(words, text + length, half, first);
        length += count > 0 ? (size_t)count : 0;
    }
    text[length] = '\0';
    for (char *c = text; *c; c++)
        if (*c == '\n' || *c == '\r' || *c == '\033')
            *c = ' ';
    while (length && text[length - 1] == ' ')
        text[--length] = '\0';
}

static int report(int status, int words, const char *what, struct error *err)
{
    struct loc nowhere = {0};
    char said[1200];

    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_DONE)
        return 0;
    last_words(words, said, sizeof said);
    if (WIFSIGNALED(status))
        return error_add(err, EXIT_UNEXPECTED, nowhere, "%s died of signal %d (%s): %s", what, WTERMSIG(status),
                         strsignal(WTERMSIG(status)), *said ? said : "without a word");
    return error_add(err, EXIT_UNEXPECTED, nowhere, "%s failed with exit status %d: %s", what, WEXITSTATUS(status),
                     *said ? said : "without a word");
}

int child_run(void (*body)(void *context), void *context, const char *what, struct error *err)
{
    struct loc nowhere = {0};
    int words = memfd_create("words", MFD_CLOEXEC), status = 0, result;
    pid_t pid, ended;

    if (words < 0)
        return error_add(err, EXIT_UNEXPECTED, nowhere, "%s: no memory file: %s", what, strerror(errno));
    pid = fork();
    if (pid == 0)
        be_child(body, context, words);
    if (pid < 0) {
        result = error_add(err, EXIT_UNEXPECTED, nowhere, "%s: cannot fork: %s", what, strerror(errno));
    } else {
        do
            ended = waitpid(pid, &status, 0);
        while (ended < 0 && errno == EINTR);
        result = ended == pid ? report(status, words, what, err)
                              : error_add(err, EXIT_UNEXPECTED, nowhere, "%s: cannot wait: %s", what, strerror(errno));
    }
    close(words);
    return result;
}
