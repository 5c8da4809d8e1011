/* serve: many scenarios for another program: requests on standard input, answers on standard output, a line each, in
 * the order of the requests. Processes simulate them (process/pool.h), and each remembers files, kernels and
 * collectives from one request to the next. What kills a process, or spends its budget, costs that request alone. */
#ifndef DTSIM_SERVE_H
#define DTSIM_SERVE_H

#include "base/progress.h"

struct serve_options {
    size_t jobs;                 /* processes */
    struct budget budget;        /* of requests that say none */
};
/* Until standard input ends and all is answered: 0. SIGINT and SIGTERM end it sooner: EXIT_INTERRUPTED. -1: an error,
 * such as that nobody reads the answers. No process is left behind. */
int serve(const struct serve_options *options, struct error *err);

#endif
