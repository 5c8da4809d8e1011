#include "serve/serve.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/cache.h"
#include "base/units.h"
#include "serve/answer.h"
#include "serve/queue.h"
#include "serve/request.h"
#include "serve/requested.h"

enum { READ = 64 << 10 };        /* bytes that are read at once */

struct server {
    const struct serve_options *options;
    struct queue queue;
    struct { char *items; size_t count, capacity; } line;        /* what is there of it */
    bool too_long;               /* its rest is passed over */
    bool ended;                  /* standard input has */
    struct { char *text; size_t length, done; } out;             /* the text to write, and how much of it is written */
    struct cache cache;          /* in a worker */
};

static void begin(void *context)
{
    struct server *server = context;

    cache_init(&server->cache, CACHE_BYTES);
}

static void answer(void *context, uint64_t piece, const char *text, size_t length, FILE *reply)
{
    struct server *server = context;
    struct budget budget;

    memcpy(&budget, text, sizeof budget);
    answer_write(&server->cache, text + sizeof budget, length - sizeof budget, (int)piece + 1, budget, reply);
}

static bool next(void *context, uint64_t *piece)
{
    struct server *server = context;

    return queue_next(&server->queue, piece);
}

static const char *text_of(void *context, uint64_t piece, size_t *length)
{
    struct server *server = context;
    const struct queued *queued = queue_at(&server->queue, piece);

    *length = queued->length;
    return queued->text;
}

static int done(void *context, uint64_t piece, const char *reply, size_t length, struct error *err)
{
    struct server *server = context;
    char *answer = memcpy(xcalloc(length + 1, 1), reply, length);

    (void)err;
    queue_answer(&server->queue, piece, answer);
    return 0;
}

static bool unwanted(void *context, uint64_t piece, double seconds)
{
    struct server *server = context;
    const struct queued *queued = queue_at(&server->queue, piece);

    return queued->state == QUEUED_UNWANTED ||
           (queued->budget.seconds > 0 && seconds > queued->budget.seconds + REQUESTED_GRACE);
}

static int lost(void *context, uint64_t piece, enum pool_loss why, const char *note, const struct error *how,
                struct error *err)
{
    struct server *server = context;
    const struct queued *queued = queue_at(&server->queue, piece);
    struct error found = {0};
    char spent[48], *stopped = xprintf("by --budget %s", unit_format_short(UNIT_TIME, queued->budget.seconds, spent,
                                                                           sizeof spent));

    (void)note;
    (void)err;
    requested_lost(queued->state == QUEUED_UNWANTED, why, stopped, how, &found);
    free(stopped);
    queue_answer(&server->queue, piece, answer_errors(&found));
    error_release(&found);
    return 0;
}

/* Adds what was read of the present line. */
static void extend(struct server *server, const char *text, size_t length)
{
    server->too_long |= server->line.count + length > REQUEST_MOST;
    if (server->too_long) {
        free(server->line.items);
        memset(&server->line, 0, sizeof server->line);
        return;
    }
    if (server->line.count + length + 1 > server->line.capacity) {
        server->line.capacity = 2 * (server->line.count + length + 1);
        server->line.items = xrealloc(server->line.items, server->line.capacity, 1);
    }
    memcpy(server->line.items + server->line.count, text, length);
    server->line.count += length;
}

/* The present line is complete. */
static void end_line(struct server *server)
{
    if (server->too_long) {
        queue_add_long(&server->queue);
    } else {
        extend(server, "", 0);
        server->line.items[server->line.count] = '\0';
        queue_add(&server->queue, server->line.items, server->line.count, server->options->budget);
    }
    memset(&server->line, 0, sizeof server->line);
    server->too_long = false;
}

static int read_lines(struct server *server, struct error *err)
{
    char text[READ];
    ssize_t count = read(STDIN_FILENO, text, sizeof text);

    if (count < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (count < 0)
        return error_system(err, (struct loc){.file = REQUESTS}, "cannot read");
    for (char *at = text, *end = text + count, *stop; at < end; at = stop + 1) {
        stop = memchr(at, '\n', (size_t)(end - at));
        extend(server, at, (size_t)((stop ? stop : end) - at));
        if (!stop)
            return 0;
        end_line(server);
    }
    if (count > 0)
        return 0;
    server->ended = true;
    if (server->line.count || server->too_long)
        end_line(server);
    return 0;
}

/* So much that a pipe that has room takes it at once: whoever does not read answers keeps no requests waiting. */
static int write_answers(struct server *server, struct error *err)
{
    size_t left = server->out.length - server->out.done;
    ssize_t count = write(STDOUT_FILENO, server->out.text + server->out.done, left < PIPE_BUF ? left : PIPE_BUF);

    if (count < 0 && errno != EINTR && errno != EAGAIN)
        return error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "cannot write to standard output: %s", strerror(errno));
    server->out.done += count > 0 ? (size_t)count : 0;
    return 0;
}

/* Puts what can be answered behind what is to be written. Whether no line is left. */
static bool collect(struct server *server)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out;
    bool all;

    if (server->out.done < server->out.length)
        return false;
    out = text_open(&text, &length);
    all = queue_write(&server->queue, out);
    text_close(out, &text);
    free(server->out.text);
    server->out.text = text;
    server->out.length = length;
    server->out.done = 0;
    return all;
}

static bool writes(const struct server *server)
{
    return server->out.done < server->out.length;
}

static void watch(void *context, struct pollfd *files)
{
    struct server *server = context;
    bool reads = !server->ended && server->queue.held < QUEUE_MOST;

    collect(server);
    files[0] = (struct pollfd){.fd = reads ? STDIN_FILENO : -1, .events = POLLIN};
    files[1] = (struct pollfd){.fd = STDOUT_FILENO, .events = writes(server) ? POLLOUT : 0};
}

static int attend(void *context, const struct pollfd *files, struct error *err)
{
    struct server *server = context;

    if (files[0].revents && read_lines(server, err))
        return -1;
    if (files[1].revents & (POLLERR | POLLNVAL))
        return error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "cannot write to standard output: nobody reads it");
    if (files[1].revents && writes(server) && write_answers(server, err))
        return -1;
    return !(collect(server) && server->ended) || writes(server);
}

int serve(const struct serve_options *options, struct error *err)
{
    static const struct pool_inlet inlet = {.watch = watch, .attend = attend, .text = text_of, .answer = answer,
                                            .unwanted = unwanted};
    struct server server = {.options = options};
    struct pool pool = {.jobs = options->jobs, .context = &server, .inlet = &inlet, .begin = begin, .next = next,
                        .done = done, .lost = lost};
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    int rc = requested_run(pool, err);

    signal(SIGPIPE, before);
    queue_release(&server.queue);
    free(server.line.items);
    free(server.out.text);
    return rc;
}
