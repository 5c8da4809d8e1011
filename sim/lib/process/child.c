#include "process/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

enum { CHILD_DONE = 0, CHILD_FAILED = 1 };

_Noreturn void child_done(void)
{
    _exit(CHILD_DONE);
}

bool child_there(void)
{
    return true;
}

int child_file(const char *name)
{
    return memfd_create(name, MFD_CLOEXEC);
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

static _Noreturn void be_child(void (*body)(void *), void *context, int words, pid_t parent)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)     /* the parent ended before this child had asked to end with it */
        _exit(CHILD_FAILED);
    on_exit(leave_at_once, NULL);
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(words, STDERR_FILENO);
    body(context);
    child_done();
}

/* The child's standard error on one line, only its beginning and its end: some programs print the cause of a failure
 * first, others last. */
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
        return error_add(err, EXIT_UNEXPECTED, nowhere, "%s died of signal %d (%s): %s%s", what, WTERMSIG(status),
                         strsignal(WTERMSIG(status)), *said ? said : "without a word",
                         WTERMSIG(status) == SIGKILL ? "; the system does so when memory runs out" : "");
    return error_add(err, EXIT_UNEXPECTED, nowhere, "%s failed with exit status %d: %s", what, WEXITSTATUS(status),
                     *said ? said : "without a word");
}

int child_start(struct child *child, void (*body)(void *context), void *context, const char *what, struct error *err)
{
    struct loc nowhere = {0};
    pid_t parent = getpid();

    *child = (struct child){.words = child_file("words")};
    if (child->words < 0)
        return error_add(err, EXIT_UNEXPECTED, nowhere, "%s: no memory file: %s", what, strerror(errno));
    child->pid = fork();
    if (child->pid == 0)
        be_child(body, context, child->words, parent);
    if (child->pid > 0)
        return 0;
    child->pid = 0;
    close(child->words);
    return error_add(err, EXIT_UNEXPECTED, nowhere, "%s: cannot fork: %s", what, strerror(errno));
}

/* Waits for the end of this child, or (pid -1) of any child. */
static pid_t await(pid_t pid, int *status)
{
    pid_t ended;

    do
        ended = waitpid(pid, status, 0);
    while (ended < 0 && errno == EINTR);
    return ended;
}

int child_end(struct child *child, int status, const char *what, struct error *err)
{
    int rc = report(status, child->words, what, err);

    close(child->words);
    child->pid = 0;
    return rc;
}

/* Waits for the end of a child that has been started. */
static int finish(struct child *child, const char *what, struct error *err)
{
    int status = 0;

    if (await(child->pid, &status) == child->pid)
        return child_end(child, status, what, err);
    error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "%s: cannot wait: %s", what, strerror(errno));
    close(child->words);
    return -1;
}

int child_run(void (*body)(void *context), void *context, const char *what, struct error *err)
{
    struct child child;

    return child_start(&child, body, context, what, err) ? -1 : finish(&child, what, err);
}

/* The child alone holds the pipe's end for writing: the other end is closed when the child has ended. */
int child_run_until(void (*body)(void *context), bool (*stop)(void *context), void *context, const char *what,
                    struct error *err)
{
    enum { PATIENCE = 100 };     /* ms */
    struct error killed = {0};
    struct child child;
    int ends[2], rc;
    bool over = false;

    if (pipe2(ends, O_CLOEXEC))
        return error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "%s: no pipe: %s", what, strerror(errno));
    rc = child_start(&child, body, context, what, err);
    close(ends[1]);
    while (!rc && !over && poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}, 1, PATIENCE) <= 0)
        over = stop(context);
    close(ends[0]);
    if (over)
        kill(child.pid, SIGKILL);
    if (!rc)
        rc = finish(&child, what, over ? &killed : err);
    error_release(&killed);
    return over ? -1 : rc;
}

struct indexed {
    void (*body)(void *context, size_t index);
    void *context;
    size_t index;
};

static void run_indexed(void *context)
{
    struct indexed *indexed = context;

    indexed->body(indexed->context, indexed->index);
}

/* The child with this pid among `jobs` of them, or with pid 0 a free place; NULL if there is none. */
static struct child *child_find(struct child *children, size_t jobs, pid_t pid)
{
    for (size_t i = 0; i < jobs; i++)
        if (children[i].pid == pid)
            return &children[i];
    return NULL;
}

void child_each(void (*body)(void *context, size_t index),
                void (*ended)(void *context, size_t index, const struct error *err), void *context, size_t count,
                size_t jobs, const char *what)
{
    struct child *children = xcalloc(jobs, sizeof *children), *child;
    size_t next = 0, running = 0;

    while (next < count || running > 0) {
        struct error err = {0};
        int status = 0;

        if (next < count && running < jobs) {
            struct indexed indexed = {body, context, next};

            child = child_find(children, jobs, 0);
            if (child_start(child, run_indexed, &indexed, what, &err)) {
                ended(context, next, &err);
            } else {
                child->index = next;
                running++;
            }
            next++;
        } else {
            pid_t pid = await(-1, &status);

            if (pid < 0)
                BUG("%s: cannot wait: %s", what, strerror(errno));
            child = child_find(children, jobs, pid);
            if (!child)
                continue;
            size_t index = child->index;
            child_end(child, status, what, &err);
            running--;
            ended(context, index, &err);
        }
        error_release(&err);
    }
    free(children);
}
