/* http: what a server of pages asks of the module dtsim-http.so, which links libmicrohttpd. It listens on 127.0.0.1 alone,
 * has one thread, the caller's, and limits whoever speaks to it: the size of heads and bodies, the seconds that a request
 * may take to arrive and a reply to leave, and the number of connections, of which the oldest that has not said what it
 * wants goes for a new one. Each connection brings one request. */
#ifndef DTSIM_HTTP_H
#define DTSIM_HTTP_H

#include "base/base.h"

enum { HTTP_BODY_MOST = 1 << 20,         /* B of a body */
       HTTP_ARRIVE = 10,                 /* s from the connection to the end of its request, */
       HTTP_LEAVE = 60,                  /* and from the reply to its end */
       HTTP_CONNECTIONS = 64 };

/* The head of a request; what it does not have is NULL. */
struct http_head {
    const char *method, *path;
    const char *token;           /* the argument `token` of the address */
    const char *host, *origin, *site, *cookie, *type, *length;   /* site: Sec-Fetch-Site; type, length: Content-* */
};

/* A header is "Name: value". */
struct http_reply {
    int status;
    const char *const *headers;  /* NULL-terminated; NULL: none */
    const char *body;            /* copied */
    size_t length;
};

struct http_exchange;            /* a request that waits for its reply */
struct http_whole {
    int number;                  /* what `head` said of it */
    const char *path, *body;
    size_t length;               /* of the body, behind which a zero byte stands */
};

/* What the server calls, from inside `attend`. */
struct http_listener {
    void *context;
    /* The head has arrived. A number that `whole` gets: the body may come; -1: the reply goes out, and the body is not
     * read. */
    int (*head)(void *context, const struct http_head *head, struct http_reply *reply);
    /* All has arrived. The exchange must be replied to once, now or later. */
    void (*whole)(void *context, struct http_exchange *exchange, const struct http_whole *request);
};

/* The symbol of the module. */
struct http_module {
    /* Listens; port 0: any that is free. NULL: an error. */
    struct http_server *(*open)(int port, const struct http_listener *listener, struct error *err);
    int (*port)(const struct http_server *server);
    int (*file)(const struct http_server *server);           /* to poll for reading */
    void (*attend)(struct http_server *server);              /* does what is there to do; at least once a second */
    void (*reply)(struct http_exchange *exchange, const struct http_reply *reply);
    void (*close)(struct http_server *server);               /* at once, whoever waits */
    /* In a child process: closes its copies of all sockets, so that they end when the server ends them. */
    void (*leave)(struct http_server *server);
};

#endif
