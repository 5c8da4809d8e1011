/* sandbox: the child's folder, its start, what it asks and says, and its end. */
#include "process/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "process/child.h"
#include "process/sandbox_internal.h"

enum { LISTENS = 202, DESCRIPTORS = 256, GRACE = 300, TICK = 50 };   /* ms */

struct held {
    const struct sandbox *sandbox;
    const char *const *words, *const *environment;
    struct sandbox_run *run;
    int says[2], hears[2], ready[2];
    int listener;
    size_t forks, said;
    size_t answered;                 /* how much of `said` was looked at for questions */
    struct child child;
};

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "%s: %s", what, strerror(errno));
    fflush(stderr);
    _exit(1);
}

/* The child, up to the program's start, which it asks. */
static void begin(void *context)
{
    struct held *held = context;
    char path[512];

    if (dup2(held->says[1], SANDBOX_SAYS) < 0 || dup2(held->hears[0], SANDBOX_HEARS) < 0 ||
        dup3(held->ready[1], LISTENS, O_CLOEXEC) < 0)
        fail("descriptors");
    close_range(3, SANDBOX_SAYS - 1, 0);
    close_range(LISTENS + 1, ~0U, 0);
    setsid();
    if (setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}) ||
        setrlimit(RLIMIT_CPU, &(struct rlimit){SANDBOX_SECONDS, SANDBOX_SECONDS}) ||
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){SANDBOX_BYTES, SANDBOX_BYTES}) ||
        setrlimit(RLIMIT_AS, &(struct rlimit){SANDBOX_MEMORY, SANDBOX_MEMORY}) ||
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){DESCRIPTORS, DESCRIPTORS}))
        fail("limits");
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &(sigset_t){0}, NULL);
    snprintf(path, sizeof path, "%s/bin/%s", held->sandbox->folder, held->words[0]);
    if (chdir(held->sandbox->folder) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        fail("the private folder");
    if (sandbox_holds(held->sandbox) && sandbox_landlock(held->sandbox))
        fail("Landlock");
    int listener = sandbox_seccomp();

    if (listener < 0 || write(LISTENS, &listener, sizeof listener) != sizeof listener)
        fail("seccomp");
    execve(path, (char *const *)held->words, (char *const *)held->environment);
    fail(held->words[0]);
}

/* A text in the child's memory; false: none can be read. */
static bool peek(pid_t pid, uint64_t at, void *text, size_t size)
{
    ssize_t got = process_vm_readv(pid, &(struct iovec){text, size}, 1, &(struct iovec){(void *)(uintptr_t)at, size}, 1, 0);

    if (got < (ssize_t)size) {       /* the memory may end before */
        size_t page = 4096 - at % 4096;

        if (page < size)
            got = process_vm_readv(pid, &(struct iovec){text, page}, 1, &(struct iovec){(void *)(uintptr_t)at, page}, 1, 0);
    }
    return got > 0;
}

/* Whether a program may be started: those of the private folder's `bin` alone. The name of any other is kept. */
static bool may_start(struct held *held, const struct seccomp_notif *asked)
{
    char path[1024] = "", name[1024] = "", own[sizeof held->sandbox->folder + 8];
    uint64_t first = 0;
    size_t known = 0, length = (size_t)snprintf(own, sizeof own, "%s/bin/", held->sandbox->folder);

    if (!peek((pid_t)asked->pid, asked->data.args[0], path, sizeof path - 1))
        return false;
    if (!strncmp(path, own, length) && !strchr(path + length, '/'))
        return true;
    if (peek((pid_t)asked->pid, asked->data.args[1], &first, sizeof first))
        peek((pid_t)asked->pid, first, name, sizeof name - 1);
    while (known < held->run->refused.count && strcmp(held->run->refused.items[known], name))
        known++;
    if (*name && known == held->run->refused.count && known < SANDBOX_FORKS)
        *GROW(&held->run->refused) = xstrdup(name);
    return false;
}

/* What a script may write outside of its folder: what is lost, and what it has open. */
static bool is_device(const char *path)
{
    static const char *const names[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/stdin", "/dev/stdout", "/dev/stderr"};
    bool device = !strncmp(path, "/dev/fd/", 8) && path[8] && strspn(path + 8, "0123456789") == strlen(path + 8);

    for (size_t i = 0; i < COUNT(names); i++)
        device |= !strcmp(path, names[i]);
    return device;
}

/* Whether a file that is to be made or written is one of the private folder. */
static bool is_private(const struct held *held, const struct seccomp_notif *asked)
{
    char path[1024] = "", link[64], cwd[512] = "", whole[2048];
    const char *folder = held->sandbox->folder;
    struct stat status;
    ssize_t length;

    if (!peek((pid_t)asked->pid, asked->data.args[1], path, sizeof path - 1))
        return false;
    snprintf(link, sizeof link, "/proc/%d/cwd", (int)asked->pid);
    length = *path == '/' ? 0 : readlink(link, cwd, sizeof cwd - 1);
    snprintf(whole, sizeof whole, "%s%s%s", cwd, length > 0 ? "/" : "", path);
    if (strncmp(whole, folder, strlen(folder)) || whole[strlen(folder)] != '/' || strchr(whole + strlen(folder) + 1, '/'))
        return is_device(whole);
    return lstat(whole, &status) || S_ISREG(status.st_mode);
}

/* What is written elsewhere is lost: the file is /dev/null. */
static bool give_nothing(const struct held *held, const struct seccomp_notif *asked)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC), rc;
    struct seccomp_notif_addfd given = {.id = asked->id, .flags = SECCOMP_ADDFD_FLAG_SEND, .srcfd = (unsigned)nothing,
                                        .newfd_flags = (unsigned)asked->data.args[2] & O_CLOEXEC};

    rc = ioctl(held->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &given);
    close(nothing);
    return rc >= 0;
}

/* One fork, start of a program, or file that is opened to be written. */
static void decide(struct held *held)
{
    struct seccomp_notif asked = {0};
    struct seccomp_notif_resp reply = {.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};

    if (ioctl(held->listener, SECCOMP_IOCTL_NOTIF_RECV, &asked))
        return;                      /* it was killed meanwhile */
    reply.id = asked.id;
    if (asked.data.nr == SYS_openat) {
        bool own = is_private(held, &asked);

        if (!own && give_nothing(held, &asked))
            return;
        if (!own)                    /* before Linux 5.14 */
            reply = (struct seccomp_notif_resp){.id = asked.id, .error = -EACCES};
        ioctl(held->listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
        return;
    }
    if (asked.data.nr == SYS_execve ? !may_start(held, &asked) : ++held->forks > SANDBOX_FORKS)
        reply = (struct seccomp_notif_resp){.id = asked.id, .error = asked.data.nr == SYS_execve ? -ENOENT : -EAGAIN};
    if (held->forks > SANDBOX_FORKS)
        held->run->killed = "500 forks";
    ioctl(held->listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
}

/* Answers the lines that ask. An answer that nobody fetches is lost. */
static void answer(struct held *held)
{
    char *text = held->run->said, *end;

    while ((end = memchr(text + held->answered, '\n', held->said - held->answered))) {
        char *line = text + held->answered, *words = NULL;
        size_t length;
        FILE *out;

        held->answered = (size_t)(end + 1 - text);
        if (*line != '?' || !held->sandbox->answer)
            continue;
        line = memcpy(xcalloc(1, (size_t)(end - line)), line + 1, (size_t)(end - line - 1));
        out = open_memstream(&words, &length);
        BUG_IF(!out);
        held->sandbox->answer(held->sandbox->context, line, out);
        fclose(out);
        if (write(held->hears[1], words, length + 1) < 0)
            held->run->killed = "questions";
        free(words);
        free(line);
    }
}

/* Reads what it says; false: nobody can say anything any more. */
static bool hear(struct held *held)
{
    ssize_t got = read(held->says[0], held->run->said + held->said, SANDBOX_BYTES - held->said);

    if (got <= 0)
        return false;
    held->said += (size_t)got;
    if (held->said == SANDBOX_BYTES)
        held->run->killed = "1 MiB of output";
    answer(held);
    return true;
}

static long now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static bool is_full(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    struct stat status;
    long bytes = 0;

    while (folder && (entry = readdir(folder)))
        if (!fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW))
            bytes += status.st_size;
    if (folder)
        closedir(folder);
    return bytes > SANDBOX_ALL_BYTES;
}

/* Until all its processes have ended, or the first one and then the others' time of grace, or a limit is reached. */
static void watch(struct held *held, int process)
{
    long deadline = now() + SANDBOX_SECONDS * 1000, left, look = now() + TICK;
    struct pollfd places[] = {{held->says[0], POLLIN, 0}, {held->listener, POLLIN, 0}, {process, POLLIN, 0}};
    bool ended = false;

    while (!held->run->killed && (left = deadline - now()) > 0) {
        int ready = poll(places, COUNT(places), (int)(left < TICK ? left : TICK));

        if (ready < 0 && errno != EINTR)
            BUG("poll: %s", strerror(errno));
        if (ready > 0 && (places[1].revents & POLLIN))
            decide(held);
        if (ready > 0 && places[0].revents && !hear(held))
            return;
        if (ready > 0 && places[2].revents && !ended) {
            ended = true;
            places[2].fd = -1;
            deadline = now() + GRACE < deadline ? now() + GRACE : deadline;
        }
        if (now() >= look) {
            long began = now();

            if (is_full(held->sandbox->folder))
                held->run->killed = "8 MiB of files";
            else if (sandbox_memory(held->child.pid) > SANDBOX_MEMORY)
                held->run->killed = "256 MiB of memory";
            look = now() + TICK + 9 * (now() - began);       /* of many processes it takes long */
        }
    }
    if (!held->run->killed && !ended)
        held->run->killed = "5 s";
}

/* Its standard error, once no process can write it any more. */
static char *words_of(int file)
{
    off_t length = lseek(file, 0, SEEK_END);
    char *text = xcalloc(1, SANDBOX_BYTES + 1);

    if (pread(file, text, length < SANDBOX_BYTES ? (size_t)length : SANDBOX_BYTES, 0) < 0)
        *text = '\0';
    return text;
}

/* Ends all processes of the child's group, which none can leave, and waits for them. */
static void end(struct held *held)
{
    pid_t group = held->child.pid;

    kill(-group, SIGKILL);
    kill(group, SIGKILL);
    while (waitpid(-group, NULL, 0) > 0 || errno == EINTR)
        continue;
    waitpid(group, NULL, WNOHANG);
    held->run->words = words_of(held->child.words);
    close(held->child.words);
}

static void close_pair(int pair[2])
{
    close(pair[0]);
    close(pair[1]);
}

/* The descriptor by which the child asks; -1: it could not be held. */
static int listen_to(struct held *held, int process)
{
    int theirs;

    return read(held->ready[0], &theirs, sizeof theirs) == sizeof theirs ?
               (int)syscall(SYS_pidfd_getfd, process, theirs, 0) : -1;
}

/* Ctrl-C and SIGTERM wait until nothing of it is left. */
static int run_held(struct held *held, struct error *err)
{
    int before = 0, process, rc = 0;
    sigset_t signals, blocked;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, &blocked);
    prctl(PR_GET_CHILD_SUBREAPER, &before, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (child_start(&held->child, begin, held, held->words[0], err)) {
        rc = -1;
    } else {
        process = (int)syscall(SYS_pidfd_open, held->child.pid, 0);
        close(held->says[1]);
        close(held->ready[1]);
        held->says[1] = held->ready[1] = -1;
        sandbox_tell(held->sandbox, held->child.pid);
        held->listener = listen_to(held, process);
        if (held->listener >= 0)
            watch(held, process);
        end(held);
        sandbox_tell(held->sandbox, 0);
        if (held->listener < 0)
            rc = error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "%s cannot be held so that it can do nothing: %s",
                           held->words[0], *held->run->words ? held->run->words : strerror(errno));
        close(held->listener);
        close(process);
    }
    prctl(PR_SET_CHILD_SUBREAPER, before, 0, 0, 0);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    return rc;
}

int sandbox_start(const struct sandbox *sandbox, const char *const *words, const char *const *environment,
                  struct sandbox_run *run, struct error *err)
{
    struct held held = {sandbox, words, environment, run, {-1, -1}, {-1, -1}, {-1, -1}, -1, 0, 0, 0, {0}};
    int rc;

    *run = (struct sandbox_run){.said = xcalloc(1, SANDBOX_BYTES + 1)};
    if (!sandbox->trust && !sandbox_holds(sandbox))
        return error_add(err, EXIT_INPUT, (struct loc){0}, "this kernel has no Landlock, which holds scripts so that they cannot "
                         "read or write your files; --trust runs a script that you trust without it");
    if (pipe2(held.says, O_CLOEXEC) || pipe2(held.hears, O_CLOEXEC | O_NONBLOCK) || pipe2(held.ready, O_CLOEXEC))
        rc = error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "no pipe: %s", strerror(errno));
    else
        rc = fcntl(held.hears[0], F_SETFL, 0) ? -1 : run_held(&held, err);
    close_pair(held.says);
    close_pair(held.hears);
    close_pair(held.ready);
    return rc;
}

void sandbox_run_release(struct sandbox_run *run)
{
    for (size_t i = 0; i < run->refused.count; i++)
        free(run->refused.items[i]);
    free(run->refused.items);
    free(run->said);
    free(run->words);
    *run = (struct sandbox_run){0};
}
