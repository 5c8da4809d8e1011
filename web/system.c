/* What the simulator asks of the system, where there is none: no other processes, no modules, no folder of the program. */
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/progress.h"
#include "files/look.h"
#include "process/child.h"
#include "process/module.h"
#include "process/pool.h"

double memory_held(void)
{
    return (double)mallinfo().uordblks;
}

const char *look_program(struct arena *arena, struct error *err)
{
    (void)err;
    return arena_strdup(arena, "");
}

const void *module_open(const char *name, enum module_symbols symbols, const char *what, struct error *err)
{
    (void)symbols;
    error_add(err, EXIT_NO_TOOL, (struct loc){0}, "%s needs the module %s, which is not in this page; the program dtsim has it", what,
              name);
    return NULL;
}

bool child_there(void)
{
    return false;
}

int child_file(const char *name)
{
    (void)name;
    errno = ENOSYS;
    return -1;
}

void *child_share(size_t size)
{
    return xcalloc(size, 1);
}

void child_unshare(void *memory, size_t size)
{
    (void)size;
    free(memory);
}

int child_run(void (*body)(void *context), void *context, const char *what, struct error *err)
{
    (void)what;
    (void)err;
    body(context);
    return 0;
}

int child_run_until(void (*body)(void *context), bool (*stop)(void *context), void *context, const char *what,
                    struct error *err)
{
    return stop(context) ? -1 : child_run(body, context, what, err);
}

double pool_now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

enum pool_end pool_run(const struct pool *pool, struct error *err)
{
    enum pool_end end = POOL_ALL;
    uint64_t piece;

    if (pool->begin)
        pool->begin(pool->context);
    while (end == POOL_ALL && pool->next(pool->context, &piece)) {
        char note[POOL_NOTE] = "", *reply = NULL;
        size_t length = 0;
        FILE *out = text_open(&reply, &length);

        pool->work(pool->context, piece, note, out);
        text_close(out, &reply);
        if (pool->done(pool->context, piece, reply, length, err))
            end = POOL_FAILED;
        else if (pool->tick)
            pool->tick(pool->context);
        free(reply);
    }
    return end;
}
