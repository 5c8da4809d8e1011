#include "process/ranks.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "process/module.h"

/* What a worker tells the first process; behind it stand the reply, or the words of how the piece was lost. */
struct report {
    enum { REPORT_READY, REPORT_DONE, REPORT_LOST } kind;
    enum pool_loss why;
    uint64_t piece;
    char note[POOL_NOTE];
};
/* A message to a worker in the place of a piece. */
static const uint64_t NO_MORE = UINT64_MAX;

/* One of the processes. */
struct ranked {
    const struct pool *pool;
    const struct ranks_module *module;
};

static int number_of(const char *variable)
{
    const char *text = getenv(variable);

    return text ? atoi(text) : 0;
}

bool ranks_there(void)
{
    return number_of("OMPI_COMM_WORLD_SIZE") > 1;
}

bool pool_serves(const struct pool *pool)
{
    return pool->ranks && ranks_there() && number_of("OMPI_COMM_WORLD_RANK") > 0;
}

static void send_report(const struct ranked *ranked, const struct report *report, const char *text, size_t length)
{
    char *bytes = xcalloc(sizeof *report + length + 1, 1);

    memcpy(bytes, report, sizeof *report);
    memcpy(bytes + sizeof *report, text, length);
    ranked->module->send(0, bytes, sizeof *report + length);
    free(bytes);
}

/* The functions of a worker's own pool: pieces come from the first process, and how they end goes back there. */
static void begin(void *context)
{
    const struct pool *pool = ((const struct ranked *)context)->pool;

    if (pool->begin)
        pool->begin(pool->context);
}

static void work(void *context, uint64_t piece, char *note, FILE *reply)
{
    const struct pool *pool = ((const struct ranked *)context)->pool;

    pool->work(pool->context, piece, note, reply);
}

/* The pool has signals wait until it asks for them; here one ends the process at once, as nothing is lost. */
static void *await_piece(const struct ranked *ranked, size_t *length)
{
    sigset_t signals, before;
    void *message;
    int from;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &signals, &before);
    message = ranked->module->receive(&from, length);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return message;
}

static bool next(void *context, uint64_t *piece)
{
    size_t length;
    void *message = await_piece(context, &length);

    BUG_IF(length != sizeof *piece);
    memcpy(piece, message, sizeof *piece);
    free(message);
    return *piece != NO_MORE;
}

static int done(void *context, uint64_t piece, const char *reply, size_t length, struct error *err)
{
    const struct report report = {.kind = REPORT_DONE, .piece = piece};

    (void)err;
    send_report(context, &report, reply, length);
    return 0;
}

static int lost(void *context, uint64_t piece, enum pool_loss why, const char *note, const struct error *how,
                struct error *err)
{
    struct report report = {.kind = REPORT_LOST, .why = why, .piece = piece};
    const char *words = how->count ? how->messages[0].text : "";

    (void)err;
    memcpy(report.note, note, POOL_NOTE);
    send_report(context, &report, words, strlen(words));
    return 0;
}

static enum pool_end serve(struct ranked *ranked, struct error *err)
{
    const struct pool own = {.jobs = 1, .timeout = ranked->pool->timeout, .what = ranked->pool->what,
                             .context = ranked, .begin = begin, .work = work, .next = next, .done = done,
                             .lost = lost};
    const struct report ready = {.kind = REPORT_READY};

    send_report(ranked, &ready, "", 0);
    return pool_run_here(&own, err);
}

/* A report that has come. */
static int receive_report(const struct pool *pool, const struct report *report, const char *text, size_t length,
                          struct error *err)
{
    struct error how = {0};
    int rc = 0;

    if (report->kind == REPORT_DONE)
        return pool->done(pool->context, report->piece, text, length, err);
    if (report->kind == REPORT_LOST) {
        if (length)
            error_add(&how, EXIT_UNEXPECTED, (struct loc){0}, "%s", text);
        rc = pool->lost(pool->context, report->piece, report->why, report->note, &how, err);
        error_release(&how);
    }
    return rc;
}

/* The first process: every report is answered by the next piece. After an error what runs ends, and nothing begins. */
static enum pool_end hand_out(const struct ranked *ranked, int count, struct error *err)
{
    const struct pool *pool = ranked->pool;
    int working = count - 1, rc = 0;

    while (working) {
        size_t length;
        int from;
        char *message = ranked->module->receive(&from, &length);
        struct report report;
        uint64_t piece = NO_MORE;

        BUG_IF(length < sizeof report);
        memcpy(&report, message, sizeof report);
        if (!rc)
            rc = receive_report(pool, &report, message + sizeof report, length - sizeof report, err);
        free(message);
        if (rc || !pool->next(pool->context, &piece)) {
            piece = NO_MORE;
            working--;
        }
        ranked->module->send(from, &piece, sizeof piece);
        if (pool->tick)
            pool->tick(pool->context);
    }
    return rc ? POOL_FAILED : POOL_ALL;
}

/* pool_run among mpirun's processes: in the first one until all pieces have ended, in another one until there are none for
 * it. */
static enum pool_end ranks_run(const struct pool *pool, struct error *err)
{
    static const char what[] = "mpirun (which needs libopenmpi-dev when dtsim is built)";
    struct ranked ranked = {pool, module_open("mpi", MODULE_PROGRAM_FIRST, what, err)};
    enum pool_end end;
    int rank, count;

    if (!ranked.module)
        return POOL_FAILED;
    ranked.module->begin(&rank, &count);
    end = rank ? serve(&ranked, err) : hand_out(&ranked, count, err);
    if (end != POOL_INTERRUPTED)         /* else mpirun ends the others too, and nobody waits for this one */
        ranked.module->end();
    return end;
}

enum pool_end pool_run(const struct pool *pool, struct error *err)
{
    return pool->ranks && ranks_there() ? ranks_run(pool, err) : pool_run_here(pool, err);
}
