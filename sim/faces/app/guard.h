/* guard: whether a request comes from the page that this program opened, and from nobody else. A browser holds a secret
 * that the program made: it gets it once, for a token that stood in the first address, as a cookie that no script sees and
 * that no page of another site sends. */
#ifndef DTSIM_GUARD_H
#define DTSIM_GUARD_H

#include "app/http.h"

enum { GUARD_SECRET = 65,            /* bytes of a secret with its end: 32 random ones as hexadecimal digits */
       GUARD_IDLE = 30 * 60 };       /* s without a request of the page, after which the server ends */

struct guard {
    int port;
    char token[GUARD_SECRET];        /* "": it was used */
    char cookie[GUARD_SECRET];
    double asked;                    /* s: when the page last asked for something */
};

/* What is done with a request: it is let in, or answered with a status. */
enum guard_verdict {
    GUARD_PAGE,                      /* the page itself */
    GUARD_ENTER,                     /* the token was right: the cookie, and on to the page */
    GUARD_ENTER_BY_PAGE,             /* the same, where a page of another site holds the address: a browser sends the cookie
                                        only with a step that comes from here */
    GUARD_COMPUTE,                   /* a question, whose number follows in the path */
    GUARD_CANCEL,                    /* a question is not wanted any more */
    GUARD_REFUSED
};
struct guarded {
    enum guard_verdict verdict;
    int status;                      /* where it is refused, */
    const char *why;                 /* with a sentence */
    const char *id;                  /* of the question, in the path */
};

/* Makes the secrets. -1: the system has no random numbers. */
int guard_init(struct guard *guard, int port, struct error *err);
/* Looks at a head. A token that was right is used up; `time`: s of a clock that nobody sets. */
struct guarded guard_check(struct guard *guard, const struct http_head *head, double time);
bool guard_idle(const struct guard *guard, double time);
/* The name of the cookie, which has the port: other programs of this kind have their own. */
enum { GUARD_NAME = 24 };
void guard_name(const struct guard *guard, char name[GUARD_NAME]);

#endif
