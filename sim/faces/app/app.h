/* app: the simulator in a page of a browser on this machine. One process listens on 127.0.0.1 and lets in whom guard.h
 * lets in; a second one answers questions (computed.h), one at a time, and keeps what it read for the next. A question
 * that takes too long, too much memory, or that nobody wants any more costs that process, and another one begins. */
#ifndef DTSIM_APP_H
#define DTSIM_APP_H

#include "base/base.h"

enum { APP_SECONDS = 10 };                           /* of a question, */
#define APP_BYTES (2.0 * 1024 * 1024 * 1024)         /* and B of memory of the process that answers it */
enum { APP_WAITING = 8 };                            /* questions at once; the others are refused */

struct app_options {
    int port;                    /* 0: any that is free */
    const char *state;           /* "#...", what the page shows first; NULL: its own */
    /* Hears the address of the page, once the server listens; -1: an error. */
    int (*opened)(const char *address, struct error *err);
};
/* What is wrong with a state that a person gives, as a sentence's end; NULL: nothing. */
const char *app_state_refused(const char *state);
/* Until nobody has asked anything for 30 minutes: 0. SIGINT and SIGTERM end it sooner: EXIT_INTERRUPTED. -1: an error. */
int app(const struct app_options *options, struct error *err);

#endif
