#include "app/app.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "app/computed.h"
#include "app/guard.h"
#include "app/known.h"
#include "base/base.h"
#include "base/cache.h"
#include "page/page.h"
#include "process/module.h"
#include "process/pool.h"
#include "serve/requested.h"

enum { STATE_MOST = 64 << 10 };      /* B of a state on the command line */

struct asked {
    uint64_t number;
    char id[40];
    char *text;
    size_t length;
    struct http_exchange *exchange;      /* NULL: the place is free */
    bool runs, unwanted;
};

struct server {
    const struct app_options *options;
    const struct http_module *http;
    struct http_server *listens;
    struct guard guard;
    char *page, *policy;                 /* the page, and its Content-Security-Policy as a header */
    size_t page_length;
    struct asked asked[APP_WAITING];
    uint64_t next;                       /* the number of the next question */
    struct cache cache;                  /* in the process that answers */
};

/* On every reply: it is for the page of this server alone, and nobody keeps it. */
#define EVERY \
    "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer", "Cache-Control: no-store", \
    "Cross-Origin-Resource-Policy: same-origin", "Cross-Origin-Opener-Policy: same-origin", "X-Frame-Options: DENY"

static void reply(struct server *server, struct http_exchange *exchange, int status, const char *text)
{
    static const char *const headers[] = {EVERY, "Content-Type: application/json", NULL};
    const struct http_reply answer = {status, headers, text, strlen(text)};

    server->http->reply(exchange, &answer);
}

/* Releases the errors. */
static void reply_errors(struct server *server, struct http_exchange *exchange, struct error *err)
{
    char *text = computed_errors(err);

    reply(server, exchange, 200, text);
    free(text);
    error_release(err);
}

static void reply_error(struct server *server, struct http_exchange *exchange, enum exit_code code, const char *why)
{
    struct error err = {0};

    error_add(&err, code, (struct loc){0}, "%s", why);
    reply_errors(server, exchange, &err);
}

/* http's callback. */
static int receive_head(void *context, const struct http_head *head, struct http_reply *answer)
{
    static const char *const headers[] = {EVERY, "Content-Type: text/plain; charset=utf-8", NULL};
    struct server *server = context;
    struct guarded found = guard_check(&server->guard, head, pool_now());

    if (found.verdict != GUARD_REFUSED)
        return (int)found.verdict;
    *answer = (struct http_reply){found.status, headers, found.why, strlen(found.why)};
    return -1;
}

/* The cookie, and on to the page: by the status, or, where another program's page holds the address, by a page of this
 * server, since a browser sends the cookie only if the step comes from here. */
static void reply_enter(struct server *server, struct http_exchange *exchange, bool by_page)
{
    const char *state = server->options->state ? server->options->state : "";
    char name[GUARD_NAME];
    char *place = xprintf("Location: /%s", state), *cookie, *page;      /* a state has no character that HTML reads */

    guard_name(&server->guard, name);
    cookie = xprintf("Set-Cookie: %s=%s; HttpOnly; SameSite=Strict; Path=/", name, server->guard.cookie);
    page = xprintf("<!doctype html><meta charset=\"utf-8\"><title>dtsim</title><meta http-equiv=\"refresh\" "
                   "content=\"0;url=/%s\">", state);
    const char *const moved[] = {EVERY, cookie, place, NULL};
    const char *const shown[] = {EVERY, cookie, "Content-Type: text/html; charset=utf-8",
                                 "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'", NULL};
    const struct http_reply answer = {by_page ? 200 : 303, by_page ? shown : moved, page, by_page ? strlen(page) : 0};

    server->http->reply(exchange, &answer);
    free(place);
    free(cookie);
    free(page);
}

static void reply_page(struct server *server, struct http_exchange *exchange)
{
    const char *const headers[] = {EVERY, server->policy, "Content-Type: text/html; charset=utf-8", NULL};
    const struct http_reply answer = {200, headers, server->page, server->page_length};

    server->http->reply(exchange, &answer);
}

static void ask(struct server *server, struct http_exchange *exchange, const char *id, const char *body, size_t length)
{
    for (size_t i = 0; i < APP_WAITING; i++) {
        struct asked *asked = &server->asked[i];

        if (asked->exchange)
            continue;
        *asked = (struct asked){.number = server->next++, .length = length, .exchange = exchange};
        snprintf(asked->id, sizeof asked->id, "%s", id);
        asked->text = memcpy(xcalloc(length + 1, 1), body, length);
        return;
    }
    reply_error(server, exchange, EXIT_STOPPED, "too many questions at once; ask again when one is answered");
}

static void forget(struct asked *asked)
{
    free(asked->text);
    *asked = (struct asked){0};
}

static void cancel(struct server *server, const char *id)
{
    for (size_t i = 0; i < APP_WAITING; i++) {
        struct asked *asked = &server->asked[i];

        if (!asked->exchange || strcmp(asked->id, id))
            continue;
        asked->unwanted = true;
        if (asked->runs)
            continue;
        reply_error(server, asked->exchange, EXIT_INTERRUPTED, "cancelled");
        forget(asked);
    }
}

/* The number of a question, which its path ends in. */
static const char *id_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

/* http's callback. */
static void receive_whole(void *context, struct http_exchange *exchange, const struct http_whole *request)
{
    struct server *server = context;

    switch ((enum guard_verdict)request->number) {
    case GUARD_ENTER:
    case GUARD_ENTER_BY_PAGE:
        reply_enter(server, exchange, request->number == GUARD_ENTER_BY_PAGE);
        return;
    case GUARD_PAGE:
        reply_page(server, exchange);
        return;
    case GUARD_COMPUTE:
        ask(server, exchange, id_of(request->path), request->body, request->length);
        return;
    case GUARD_CANCEL:
        cancel(server, id_of(request->path));
        reply(server, exchange, 200, "{}");
        return;
    case GUARD_REFUSED:
        break;
    }
    BUG("a request that was refused came in");
}

/* pool's callbacks, in the process that answers. */
static void begin(void *context)
{
    struct server *server = context;
    struct rlimit memory = {(rlim_t)APP_BYTES, (rlim_t)APP_BYTES};

    server->http->leave(server->listens);
    if (!ADDRESS_SANITIZER)              /* which takes more addresses itself */
        setrlimit(RLIMIT_AS, &memory);
    cache_init(&server->cache, CACHE_BYTES);
    server->cache.names_only = true;
}

static void answer(void *context, uint64_t piece, const char *text, size_t length, FILE *out)
{
    struct server *server = context;

    (void)piece;
    computed_write(&server->cache, text, length, (struct budget){APP_SECONDS, APP_BYTES}, out);
}

/* pool's callbacks, in the process that listens. */
static struct asked *asked_at(struct server *server, uint64_t number)
{
    for (size_t i = 0; i < APP_WAITING; i++)
        if (server->asked[i].exchange && server->asked[i].number == number)
            return &server->asked[i];
    BUG("there is no question %llu", (unsigned long long)number);
}

static bool next(void *context, uint64_t *piece)
{
    struct server *server = context;
    struct asked *first = NULL;

    for (size_t i = 0; i < APP_WAITING; i++) {
        struct asked *asked = &server->asked[i];

        if (asked->exchange && !asked->runs && (!first || asked->number < first->number))
            first = asked;
    }
    if (!first)
        return false;
    first->runs = true;
    *piece = first->number;
    return true;
}

static const char *text_of(void *context, uint64_t piece, size_t *length)
{
    const struct asked *asked = asked_at(context, piece);

    *length = asked->length;
    return asked->text;
}

static int done(void *context, uint64_t piece, const char *text, size_t length, struct error *err)
{
    struct server *server = context;
    struct asked *asked = asked_at(server, piece);

    (void)length;
    (void)err;
    reply(server, asked->exchange, 200, text);
    forget(asked);
    server->http->attend(server->listens);           /* the reply goes out before anything is waited for */
    return 0;
}

static bool unwanted(void *context, uint64_t piece, double seconds)
{
    return asked_at(context, piece)->unwanted || seconds > APP_SECONDS + REQUESTED_GRACE;
}

static int lost(void *context, uint64_t piece, enum pool_loss why, const char *note, const struct error *how,
                struct error *err)
{
    struct server *server = context;
    struct asked *asked = asked_at(server, piece);
    struct error found = {0};

    (void)note;
    (void)err;
    requested_lost(asked->unwanted, why, "after 10 s", how, &found);
    reply_errors(server, asked->exchange, &found);
    forget(asked);
    server->http->attend(server->listens);
    return 0;
}

static void watch(void *context, struct pollfd *files)
{
    const struct server *server = context;

    files[0] = (struct pollfd){.fd = server->http->file(server->listens), .events = POLLIN};
    files[1] = (struct pollfd){.fd = -1};
}

static int attend(void *context, const struct pollfd *files, struct error *err)
{
    struct server *server = context;

    (void)files;
    (void)err;
    server->http->attend(server->listens);
    return !guard_idle(&server->guard, pool_now());
}

const char *app_state_refused(const char *state)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789*-._+%=:,~/&";

    if (state[0] != '#')
        return "expected '#' and the state that 'copy the state' in the page gives";
    if (strlen(state) > STATE_MOST)
        return "expected at most 64 KiB";
    return state[1 + strspn(state + 1, allowed)] ? "it has characters that no state has; quote it as a whole" : NULL;
}

/* The policy that the page itself has, and that no other page shows it inside. */
static char *policy_of(const char *page)
{
    static const char mark[] = "http-equiv=\"Content-Security-Policy\" content=\"";
    const char *at = strstr(page, mark), *end = at ? strchr(at + sizeof mark - 1, '"') : NULL;

    BUG_IF(!end);
    at += sizeof mark - 1;
    return xprintf("Content-Security-Policy: %.*s; frame-ancestors 'none'", (int)(end - at), at);
}

/* The page, with what it knows when it opens. */
static int make_page(struct server *server, struct error *err)
{
    json_t *known = known_json(err);
    FILE *out;
    int rc;

    if (!known)
        return -1;
    out = text_open(&server->page, &server->page_length);
    rc = page_of_app(known, out, err);
    text_close(out, &server->page);
    json_decref(known);
    if (!rc)
        server->policy = policy_of(server->page);
    return rc;
}

/* The address that a person opens. */
static int print_address(struct server *server, struct error *err)
{
    char *address = xprintf("http://127.0.0.1:%d/?token=%s", server->guard.port, server->guard.token);
    int rc = server->options->opened(address, err);

    free(address);
    return rc;
}

static int run(struct server *server, struct error *err)
{
    static const struct pool_inlet inlet = {.watch = watch, .attend = attend, .text = text_of, .answer = answer,
                                            .unwanted = unwanted};
    struct pool pool = {.jobs = 1, .context = server, .inlet = &inlet, .begin = begin, .next = next, .done = done,
                        .lost = lost};

    server->guard.asked = pool_now();
    return requested_run(pool, err);
}

/* Whoever waits hears that the server ends: the library does not let it end before. */
static void dismiss(struct server *server)
{
    for (size_t i = 0; i < APP_WAITING; i++)
        if (server->asked[i].exchange) {
            reply_error(server, server->asked[i].exchange, EXIT_INTERRUPTED, "'dtsim app' was ended");
            forget(&server->asked[i]);
        }
    server->http->attend(server->listens);
    server->http->close(server->listens);
}

int app(const struct app_options *options, struct error *err)
{
    struct server server = {.options = options};
    const struct http_listener listener = {&server, receive_head, receive_whole};
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    int rc = -1;

    server.http = module_open("http", MODULE_PROGRAM_FIRST, "'dtsim app'", err);
    if (server.http && !make_page(&server, err) && (server.listens = server.http->open(options->port, &listener, err))) {
        rc = guard_init(&server.guard, server.http->port(server.listens), err) || print_address(&server, err) ? -1 :
             run(&server, err);
        dismiss(&server);
    }
    free(server.page);
    free(server.policy);
    signal(SIGPIPE, before);
    return rc;
}
