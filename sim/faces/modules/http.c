/* dtsim-http.so: pages for a browser on this machine, by libmicrohttpd. */
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "app/http.h"
#include "base/base.h"

enum { HEAD_MOST = 32 << 10,         /* B of the head, and of what a connection holds besides the body */
       ROUNDS = 1 << 12,             /* of reading what has arrived, before deadlines are checked again */
       SPARE = 8 };                  /* connections that are free for new ones, so that these are heard at all */

/* A connection, from its beginning to its end. */
struct client {
    int socket;
    bool arrived;                    /* its request has */
    bool shut;                       /* it makes way, and is there until the library has seen that */
    double until;                    /* s: then it is shut; 0: while it waits for its reply */
    struct client *next, *before;    /* the older and the newer one */
};

struct http_server {
    const struct http_listener *listener;
    struct MHD_Daemon *daemon;
    struct client *newest, *oldest;
    size_t clients;
    bool changed;                    /* one came or went */
};

/* A request. */
struct http_exchange {
    struct MHD_Connection *connection;
    struct client *client;
    int number;                      /* what the listener said of its head */
    char *path;
    char *body;
    size_t length, room;
    bool suspended;
    struct MHD_Response *answer;     /* to be sent once the connection goes on */
    int status;
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void shut(struct client *client)
{
    shutdown(client->socket, SHUT_RDWR);     /* the library sees the end of it, and takes leave */
    client->until = now() + HTTP_LEAVE;
    client->shut = true;
}

/* Whoever has been longest without saying what it wants makes way. */
static void make_room(struct http_server *server)
{
    struct client *client = server->oldest;

    while (client && (client->arrived || client->shut))
        client = client->before;
    if (client)
        shut(client);
}

static void connection_changed(void *context, struct MHD_Connection *connection, void **own,
                               enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = context;
    struct client *client = *own;

    server->changed = true;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        if (server->clients + SPARE > HTTP_CONNECTIONS)
            make_room(server);
        client = *own = xcalloc(1, sizeof *client);
        client->socket = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        client->until = now() + HTTP_ARRIVE;
        client->next = server->newest;
        if (server->newest)
            server->newest->before = client;
        else
            server->oldest = client;
        server->newest = client;
        server->clients++;
        return;
    }
    if (!client)
        return;
    *(client->before ? &client->before->next : &server->newest) = client->next;
    *(client->next ? &client->next->before : &server->oldest) = client->before;
    server->clients--;
    free(client);
    *own = NULL;
}

static void exchange_ended(void *context, struct MHD_Connection *connection, void **own,
                           enum MHD_RequestTerminationCode code)
{
    struct http_exchange *exchange = *own;

    (void)context;
    (void)connection;
    (void)code;
    if (!exchange)
        return;
    if (exchange->answer)
        MHD_destroy_response(exchange->answer);
    free(exchange->path);
    free(exchange->body);
    free(exchange);
    *own = NULL;
}

static struct MHD_Response *response_of(const struct http_reply *reply)
{
    char *copy = memcpy(xcalloc(reply->length + 1, 1), reply->length ? reply->body : "", reply->length);
    struct MHD_Response *response = MHD_create_response_from_buffer(reply->length, copy, MHD_RESPMEM_MUST_FREE);

    for (size_t i = 0; response && reply->headers && reply->headers[i]; i++) {
        char *name = xstrdup(reply->headers[i]), *value = strchr(name, ':');

        if (value) {
            *value++ = '\0';
            MHD_add_response_header(response, name, value + strspn(value, " "));
        }
        free(name);
    }
    if (response)
        MHD_add_response_header(response, "Connection", "close");
    return response;
}

static enum MHD_Result send_answer(struct http_exchange *exchange)
{
    enum MHD_Result result = MHD_NO;

    exchange->client->arrived = true;
    exchange->client->until = now() + HTTP_LEAVE;
    if (exchange->answer)
        result = MHD_queue_response(exchange->connection, (unsigned)exchange->status, exchange->answer);
    if (exchange->answer)
        MHD_destroy_response(exchange->answer);
    exchange->answer = NULL;
    return result;
}

static void http_reply_to(struct http_exchange *exchange, const struct http_reply *reply)
{
    exchange->status = reply->status;
    exchange->answer = response_of(reply);
    if (exchange->suspended)
        MHD_resume_connection(exchange->connection);
    exchange->suspended = false;
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result count_hosts(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    (void)value;
    *(int *)context += !strcasecmp(name, "Host");
    return MHD_YES;
}

/* Of two hosts nobody knows which one is meant. */
static const char *only_host(struct MHD_Connection *connection)
{
    int hosts = 0;

    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_hosts, &hosts);
    return hosts == 1 ? header(connection, "Host") : NULL;
}

/* Addresses are taken as they are written: no page has a name that needs %00, which would end it. */
static size_t keep_escaped(void *context, struct MHD_Connection *connection, char *text)
{
    (void)context;
    (void)connection;
    return strlen(text);
}

static enum MHD_Result begin(struct http_server *server, struct MHD_Connection *connection, const char *path,
                             const char *method, void **own)
{
    struct http_exchange *exchange = *own = xcalloc(1, sizeof *exchange);
    struct http_reply reply = {0};
    const struct http_head head = {
        .method = method, .path = path, .token = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token"),
        .host = only_host(connection), .origin = header(connection, "Origin"),
        .site = header(connection, "Sec-Fetch-Site"), .cookie = header(connection, "Cookie"),
        .type = header(connection, "Content-Type"), .length = header(connection, "Content-Length"),
    };

    exchange->connection = connection;
    exchange->client = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    exchange->path = xstrdup(path);
    exchange->number = server->listener->head(server->listener->context, &head, &reply);
    if (exchange->number >= 0)
        return MHD_YES;
    http_reply_to(exchange, &reply);
    return send_answer(exchange);
}

/* Adds to the body; no more than was announced, which was found to be little enough. */
static bool take(struct http_exchange *exchange, const char *bytes, size_t count)
{
    if (exchange->length + count > HTTP_BODY_MOST)
        return false;
    if (exchange->length + count + 1 > exchange->room) {
        exchange->room = 2 * (exchange->length + count + 1);
        exchange->body = xrealloc(exchange->body, exchange->room, 1);
    }
    memcpy(exchange->body + exchange->length, bytes, count);
    exchange->length += count;
    exchange->body[exchange->length] = '\0';
    return true;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                              const char *version, const char *bytes, size_t *count, void **own)
{
    struct http_server *server = context;
    struct http_exchange *exchange = *own;

    (void)version;
    if (!exchange)
        return begin(server, connection, path, method, own);
    if (exchange->answer)
        return send_answer(exchange);        /* it goes on */
    if (*count) {
        if (!take(exchange, bytes, *count))
            return MHD_NO;
        *count = 0;
        return MHD_YES;
    }
    exchange->client->arrived = true;
    exchange->client->until = 0;
    server->listener->whole(server->listener->context, exchange,
                            &(struct http_whole){exchange->number, exchange->path, exchange->body ? exchange->body : "",
                                                 exchange->length});
    if (exchange->answer)
        return send_answer(exchange);
    exchange->suspended = true;
    MHD_suspend_connection(connection);
    return MHD_YES;
}

static void say_nothing(void *context, const char *format, va_list list)
{
    (void)context;
    (void)format;
    (void)list;
}

static struct http_server *http_open(int port, const struct http_listener *listener, struct error *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct http_server *server = xcalloc(1, sizeof *server);

    server->listener = listener;
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, (uint16_t)port, NULL, NULL, handle, server,
        MHD_OPTION_EXTERNAL_LOGGER, say_nothing, NULL,       /* first, or else it speaks of later ones */
        MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address, MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_MOST,
        MHD_OPTION_UNESCAPE_CALLBACK, keep_escaped, NULL,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, connection_changed, server,
        MHD_OPTION_NOTIFY_COMPLETED, exchange_ended, server, MHD_OPTION_END);
    if (server->daemon)
        return server;
    if (port)
        error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "cannot listen on port %d of 127.0.0.1: %s; expected one that is "
                  "free, or none, so that one is found", port, strerror(errno));
    else
        error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "cannot listen on 127.0.0.1: %s", strerror(errno));
    free(server);
    return NULL;
}

static int http_port(const struct http_server *server)
{
    const union MHD_DaemonInfo *socket = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_LISTEN_FD);
    struct sockaddr_in address = {0};
    socklen_t size = sizeof address;

    return socket && !getsockname(socket->listen_fd, (struct sockaddr *)&address, &size) ? ntohs(address.sin_port) : 0;
}

static int http_file(const struct http_server *server)
{
    return MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

/* The library hears of new bytes once: while it has some that it did not look at, it says that nothing is to be waited
 * for. Where there were too many connections it looks for new ones again only when it runs after some went. A client that sends without end is shut out by its time. */
static void http_attend(struct http_server *server)
{
    double time = now();
    MHD_UNSIGNED_LONG_LONG wait;
    int rounds = 0;

    for (struct client *client = server->newest; client; client = client->next)
        if (client->until > 0 && time > client->until)
            shut(client);
    do {
        server->changed = false;
        MHD_run(server->daemon);
    } while ((server->changed || (MHD_get_timeout(server->daemon, &wait) == MHD_YES && !wait)) && ++rounds < ROUNDS);
}

static void http_close(struct http_server *server)
{
    MHD_stop_daemon(server->daemon);
    free(server);
}

static void http_leave(struct http_server *server)
{
    for (struct client *client = server->newest; client; client = client->next)
        close(client->socket);
    close(http_file(server));
    close(MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_LISTEN_FD)->listen_fd);
}

extern const struct http_module module_http;
const struct http_module module_http = {http_open, http_port, http_file, http_attend, http_reply_to, http_close, http_leave};
