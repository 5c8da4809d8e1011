#include "process/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "process/child.h"

struct worker {
    const struct pool *pool;
    struct child child;
    int socket;                  /* this process' end */
    int end;                     /* the worker's, in the worker alone */
    char *note;                  /* shared memory */
    bool busy;
    uint64_t piece;
    double began;                /* s: when the piece was handed out */
};

/* A pool that runs. */
struct running {
    const struct pool *pool;
    struct worker *workers;
    char *notes;
    int signals;                 /* file that tells of them */
    int interrupts;
    double interrupted;          /* s: when the first one came */
    bool exhausted;              /* there is no next piece */
    bool open;                   /* more pieces may come through the inlet */
    struct error *err;
};

double pool_now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* All bytes; false at the end of the file. */
static bool read_all(int fd, void *bytes, size_t length)
{
    char *at = bytes;

    while (length) {
        ssize_t count = read(fd, at, length);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        at += count;
        length -= (size_t)count;
    }
    return true;
}

static bool send_all(int fd, const void *bytes, size_t length)
{
    const char *at = bytes;

    while (length) {
        ssize_t count = send(fd, at, length, MSG_NOSIGNAL);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        at += count;
        length -= (size_t)count;
    }
    return true;
}

/* If memory runs out, a worker goes first, not whoever writes the rows. */
static void offer_to_die(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0 && write(fd, "1000", 4) == 4)
        close(fd);
}

/* A message instead of a piece that tells a worker to end. It would not notice a closed socket, because workers that
 * were started later hold copies of this process' end. */
static const uint64_t NO_MORE = UINT64_MAX;

/* In a worker: the text of a piece, which the caller frees; NULL where this process's parent has gone. */
static char *take_text(const struct worker *worker, uint64_t *length)
{
    char *text;

    if (!read_all(worker->end, length, sizeof *length))
        return NULL;
    text = xcalloc(*length + 1, 1);
    if (read_all(worker->end, text, *length))
        return text;
    free(text);
    return NULL;
}

/* A worker: one piece after another until there are no more. Its standard error tells of the present piece alone. */
static void serve(void *context)
{
    const struct worker *worker = context;
    const struct pool *pool = worker->pool;
    uint64_t piece;

    offer_to_die();
    if (pool->begin)
        pool->begin(pool->context);
    while (read_all(worker->end, &piece, sizeof piece) && piece != NO_MORE) {
        char *reply = NULL, *text = NULL;
        size_t length = 0;
        FILE *out;
        uint64_t size;

        if (pool->inlet && !(text = take_text(worker, &size)))
            return;
        out = text_open(&reply, &length);
        if (!ftruncate(STDERR_FILENO, 0))
            lseek(STDERR_FILENO, 0, SEEK_SET);
        if (pool->inlet)
            pool->inlet->answer(pool->context, piece, text, size, out);
        else
            pool->work(pool->context, piece, worker->note, out);
        text_close(out, &reply);
        free(text);
        size = length;
        if (!send_all(worker->end, &size, sizeof size) || !send_all(worker->end, reply, length))
            return;
        free(reply);
    }
}

static int worker_start(struct running *running, struct worker *worker)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return error_add(running->err, EXIT_UNEXPECTED, (struct loc){0}, "%s: no socket: %s", running->pool->what,
                         strerror(errno));
    worker->socket = ends[0];
    worker->end = ends[1];
    if (child_start(&worker->child, serve, worker, running->pool->what, running->err)) {
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    close(ends[1]);
    return 0;
}

/* Takes leave of a worker that has ended or is to end; 0 where it ended well. */
static int worker_end(struct worker *worker, struct error *how)
{
    int status = 0;
    pid_t ended;

    close(worker->socket);
    do
        ended = waitpid(worker->child.pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    worker->busy = false;
    return child_end(&worker->child, status, worker->pool->what, how);
}

/* The worker's piece has no reply: it died, or is killed here. */
static int lose(struct running *running, struct worker *worker, enum pool_loss why)
{
    struct error how = {0};
    bool busy = worker->busy;
    int rc = 0;

    kill(worker->child.pid, SIGKILL);    /* one that has died keeps its own end; one whose reply cannot be read waits */
    worker_end(worker, &how);
    worker->note[POOL_NOTE - 1] = '\0';
    if (busy)
        rc = running->pool->lost(running->pool->context, worker->piece, why, worker->note, &how, running->err);
    error_release(&how);
    return rc;
}

static int receive(struct running *running, struct worker *worker)
{
    uint64_t length;
    char *reply;
    int rc;

    if (!read_all(worker->socket, &length, sizeof length))
        return lose(running, worker, POOL_CRASH);
    reply = xcalloc(length + 1, 1);
    if (read_all(worker->socket, reply, length)) {
        worker->busy = false;
        rc = running->pool->done(running->pool->context, worker->piece, reply, length, running->err);
    } else {
        rc = lose(running, worker, POOL_CRASH);
    }
    free(reply);
    return rc;
}

/* Whether a worker that has no piece has died, which its socket tells. */
static bool died_idle(const struct worker *worker)
{
    char byte;

    return worker->child.pid && recv(worker->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* A worker that cannot be told its piece is killed: its socket says so when it is read. */
static void hand_out(const struct pool *pool, struct worker *worker)
{
    uint64_t size = 0;
    size_t length = 0;
    const char *text = "";
    bool sent;

    worker->busy = true;
    worker->note[0] = '\0';      /* a worker that has died since its last piece would leave that one's note */
    worker->began = pool_now();
    sent = send_all(worker->socket, &worker->piece, sizeof worker->piece);
    if (sent && pool->inlet) {
        text = pool->inlet->text(pool->context, worker->piece, &length);
        size = length;
        sent = send_all(worker->socket, &size, sizeof size) && send_all(worker->socket, text, length);
    }
    if (!sent)
        kill(worker->child.pid, SIGKILL);
}

/* Gives every idle worker a piece, and starts it where it does not run, or does not any more. */
static int feed(struct running *running)
{
    const struct pool *pool = running->pool;

    if (pool->inlet)
        running->exhausted = false;
    for (size_t i = 0; i < pool->jobs && !running->exhausted && !running->interrupts; i++) {
        struct worker *worker = &running->workers[i];

        if (worker->busy)
            continue;
        if (died_idle(worker) && lose(running, worker, POOL_CRASH))
            return -1;
        if (!worker->child.pid && worker_start(running, worker))
            return -1;
        running->exhausted = !pool->next(pool->context, &worker->piece);
        if (running->exhausted)
            break;
        hand_out(pool, worker);
    }
    return 0;
}

static size_t busy_workers(const struct running *running)
{
    size_t busy = 0;

    for (size_t i = 0; i < running->pool->jobs; i++)
        busy += running->workers[i].busy;
    return busy;
}

/* s of the moment when pieces are given up, whatever they do; INFINITY: none. */
static double end_of(const struct running *running)
{
    const struct pool *pool = running->pool;
    double end = pool->until > 0 ? pool->until : INFINITY;

    if (!(pool->grace > 0))
        return INFINITY;
    return pool->grace + (running->interrupts ? fmin(end, running->interrupted) : end);
}

/* Milliseconds until something may have to be done without being told. */
static int patience(const struct running *running)
{
    double time = pool_now(), wait = fmin(1, end_of(running) - time);

    for (size_t i = 0; i < running->pool->jobs && running->pool->timeout > 0; i++)
        if (running->workers[i].busy)
            wait = fmin(wait, running->workers[i].began + running->pool->timeout - time);
    return wait > 0 ? (int)(1000 * wait) + 1 : 0;
}

/* Reads the signals that have come. Whether what runs is to be killed. */
static bool take_signals(struct running *running)
{
    struct signalfd_siginfo signal;
    bool kill_all = false;

    while (read(running->signals, &signal, sizeof signal) == (ssize_t)sizeof signal) {
        if (!running->interrupts++)
            running->interrupted = pool_now();
        kill_all |= signal.ssi_signo == SIGTERM || running->interrupts > 1;
    }
    return kill_all;
}

/* Ends a busy worker whose piece takes too long, or is not wanted any more. */
static int overdue(struct running *running, struct worker *worker)
{
    const struct pool *pool = running->pool;
    double time = pool_now(), seconds = time - worker->began;

    if (pool->timeout > 0 && seconds >= pool->timeout)
        return lose(running, worker, POOL_TIMEOUT);
    if (pool->inlet && pool->inlet->unwanted(pool->context, worker->piece, seconds))
        return lose(running, worker, POOL_UNWANTED);
    if (time >= end_of(running))
        return lose(running, worker, POOL_LATE);
    return 0;
}

/* The inlet's files. */
static int attend_inlet(struct running *running, const struct pollfd *files)
{
    int more = running->pool->inlet->attend(running->pool->context, files, running->err);

    running->open = more > 0;
    return more < 0 ? -1 : 0;
}

/* Waits for replies, deaths, signals, files and deadlines, and sees to them. */
static int attend(struct running *running, struct pollfd *polls)
{
    const struct pool *pool = running->pool;
    size_t jobs = pool->jobs, count = jobs + 1 + (pool->inlet ? POOL_FILES : 0);

    for (size_t i = 0; i < jobs; i++)
        polls[i] = (struct pollfd){.fd = running->workers[i].busy ? running->workers[i].socket : -1, .events = POLLIN};
    polls[jobs] = (struct pollfd){.fd = running->signals, .events = POLLIN};
    if (pool->inlet)
        pool->inlet->watch(pool->context, &polls[jobs + 1]);
    if (poll(polls, count, patience(running)) < 0 && errno != EINTR)
        return error_add(running->err, EXIT_UNEXPECTED, (struct loc){0}, "%s: cannot wait: %s", pool->what,
                         strerror(errno));
    if (polls[jobs].revents && take_signals(running))
        return 1;
    if (pool->inlet && attend_inlet(running, &polls[jobs + 1]))
        return -1;
    for (size_t i = 0; i < jobs; i++) {
        struct worker *worker = &running->workers[i];

        if (polls[i].revents && receive(running, worker))
            return -1;
        if (worker->busy && overdue(running, worker))
            return -1;
    }
    if (pool->tick)
        pool->tick(pool->context);
    return 0;
}

static void dismiss(struct running *running, bool kill_all)
{
    for (size_t i = 0; i < running->pool->jobs; i++) {
        struct error ignored = {0};
        struct worker *worker = &running->workers[i];

        if (!worker->child.pid)
            continue;
        if (kill_all || worker->busy || !send_all(worker->socket, &NO_MORE, sizeof NO_MORE))
            kill(worker->child.pid, SIGKILL);
        worker_end(worker, &ignored);
        error_release(&ignored);
    }
}

enum pool_end pool_run_here(const struct pool *pool, struct error *err)
{
    struct running running = {.pool = pool, .err = err, .open = pool->inlet};
    struct pollfd *polls = xcalloc(pool->jobs + 1 + POOL_FILES, sizeof *polls);
    sigset_t signals, before;
    int rc = 0;

    running.workers = xcalloc(pool->jobs, sizeof *running.workers);
    running.notes = child_share(pool->jobs * POOL_NOTE);
    if (!running.notes)
        rc = error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "%s: no memory to share", pool->what);
    for (size_t i = 0; i < pool->jobs && !rc; i++)
        running.workers[i] = (struct worker){.pool = pool, .note = running.notes + i * POOL_NOTE};
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, &before);
    running.signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    while (!rc && !(rc = feed(&running)) && (busy_workers(&running) || (running.open && !running.interrupts)))
        rc = attend(&running, polls);
    dismiss(&running, rc != 0);
    close(running.signals);
    sigprocmask(SIG_SETMASK, &before, NULL);
    child_unshare(running.notes, pool->jobs * POOL_NOTE);
    free(running.workers);
    free(polls);
    return rc < 0 ? POOL_FAILED : running.interrupts ? POOL_INTERRUPTED : POOL_ALL;
}
