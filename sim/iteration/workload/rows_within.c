#include "workload/rows_within.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "base/progress.h"
#include "process/child.h"
#include "schedule/schedule.h"

/* Works that any schedule writes in less time than a budget can notice. */
enum { FEW_WORKS = 1 << 20 };

struct writing {
    const struct schedule *schedule;
    const struct plan *plan;
    struct progress *progress;
    size_t *counts;              /* [rank], shared with the child */
    int file;                    /* of memory: the works of all ranks, one rank after the other */
};

static size_t all_works(const struct writing *writing)
{
    size_t all = 0;

    for (int rank = 0; rank < writing->plan->stages; rank++)
        all += writing->counts[rank];
    return all;
}

/* The works in the file; NULL: none, or errno says why not. */
static struct work *map_works(const struct writing *writing, int access)
{
    size_t size = all_works(writing) * sizeof(struct work);
    void *memory = size ? mmap(NULL, size, access, MAP_SHARED, writing->file, 0) : NULL;

    return memory == MAP_FAILED ? NULL : memory;
}

static _Noreturn void give_up(void)
{
    fprintf(stderr, "no memory to hand the rows over: %s", strerror(errno));
    _exit(EXIT_UNEXPECTED);
}

static void write_rows(void *context)
{
    struct writing *writing = context;
    struct row *rows = rows_of(writing->schedule, writing->plan);
    struct work *works = NULL;

    for (int rank = 0; rank < writing->plan->stages; rank++)
        writing->counts[rank] = rows[rank].count;
    if (!all_works(writing))
        return;
    errno = posix_fallocate(writing->file, 0, (off_t)(all_works(writing) * sizeof *works));
    if (errno || !(works = map_works(writing, PROT_READ | PROT_WRITE)))
        give_up();
    for (int rank = 0; rank < writing->plan->stages; works += rows[rank++].count)
        if (rows[rank].count)
            memcpy(works, rows[rank].items, rows[rank].count * sizeof *works);
}

static bool is_over(void *context)
{
    const struct writing *writing = context;

    return progress_step(writing->progress, "writing rows", 0, 0, 0);
}

/* The rows that the child wrote. */
static struct row *take_rows(const struct writing *writing, struct error *err)
{
    size_t all = all_works(writing), ranks = (size_t)writing->plan->stages;
    struct work *works = map_works(writing, PROT_READ), *at = works;
    struct row *rows;

    if (all && !works) {
        error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "cannot read the rows of the schedule: %s", strerror(errno));
        return NULL;
    }
    rows = xcalloc(ranks, sizeof *rows);
    for (size_t rank = 0; works && rank < ranks; at += writing->counts[rank++]) {
        size_t count = writing->counts[rank];

        if (!count)
            continue;
        rows[rank] = (struct row){xmalloc(count * sizeof *at), count, count};
        memcpy(rows[rank].items, at, count * sizeof *at);
    }
    if (works)
        munmap(works, all * sizeof *works);
    return rows;
}

struct row *rows_within(const struct schedule *schedule, const struct plan *plan, struct progress *progress,
                        struct error *err)
{
    size_t ranks = (size_t)plan->stages, works = ranks * (size_t)plan->chunks * (size_t)plan_micro_batches(plan);
    struct writing writing = {schedule, plan, progress, NULL, -1};
    struct row *rows = NULL;

    if (!progress || works < FEW_WORKS)
        return rows_of(schedule, plan);
    /* Each forward becomes an operation at least: a program that has no room for these has no room for its rows. */
    if (progress_admit(progress, (double)works, err))
        return NULL;
    if (progress->seconds == 0 || !child_there())
        return rows_of(schedule, plan);
    writing.counts = child_share(ranks * sizeof *writing.counts);
    writing.file = child_file("rows");
    if (!writing.counts || writing.file < 0)
        error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "no memory to share for the rows: %s", strerror(errno));
    else if (!child_run_until(write_rows, is_over, &writing, "writing the rows of the schedule", err))
        rows = take_rows(&writing, err);
    else
        progress_check(progress, err);
    if (writing.file >= 0)
        close(writing.file);
    child_unshare(writing.counts, ranks * sizeof *writing.counts);
    return rows;
}
