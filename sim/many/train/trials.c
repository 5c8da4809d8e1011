/* The trials of a training: their rules, what one costs, and their play, in several processes where that is worth it. */
#include "train/training.h"

#include <string.h>

#include "base/base.h"
#include "base/progress.h"
#include "hardware/cluster.h"
#include "process/pool.h"

struct trial_rules training_rules(const struct training *training)
{
    const struct training_spec *spec = training->scenario->train;
    bool memory = spec->checkpoint && spec->checkpoint->mode == CHECKPOINT_MEMORY;

    return (struct trial_rules){
        .copies = memory ? spec->checkpoint->copies : 0, .stored = memory ? spec->checkpoint->stored : 0,
        .course = &training->course, .failures = &training->failures, .seed = training->options.seed,
        .spares = training->spares, .elastic = spec->elastic,
        .init = spec->restart ? spec->restart->init : 0, .most = TRIAL_HOPELESS * 10 * training->course.end,
    };
}

double training_paid(const struct training *training, const struct trial *trial)
{
    const struct spares_spec *spares = training->spares;
    double spare = spares ? (double)spares->nodes * cluster_node_gpus(&training->scenario->cluster, 0) : 0;

    return trial->gpu_seconds + spare * trial->wall;
}

enum { PIECE = 50 };             /* trials that a process does at once */

/* Trials under way. */
struct running {
    struct progress *progress;
    struct trial *trials;
    size_t count, next;          /* the next piece, or the next trial where this process plays them */
    const struct trial_rules *rules;
};

/* The first trial of a piece. */
static size_t first_of(uint64_t piece)
{
    return (size_t)piece * PIECE;
}

static size_t piece_size(const struct running *running, uint64_t piece)
{
    size_t rest = running->count - first_of(piece);

    return rest < PIECE ? rest : PIECE;
}

/* Whether the command's budget is spent. */
static bool is_over(const struct running *running, size_t done)
{
    return running->progress && progress_step(running->progress, "playing trials", done, running->count, 0);
}

/* 0, or -1 where the budget was spent before all trials. */
static int check_over(const struct running *running, size_t done, struct error *err)
{
    if (!running->progress || !running->progress->over)
        return 0;
    return error_add(err, EXIT_STOPPED, (struct loc){0},
                     "stopped by %s: of %zu trials about %zu were played; try fewer --trials",
                     running->progress->option, running->count, done);
}

/* Where the budget is spent on the way the reply is short. */
static void work(void *context, uint64_t piece, char *note, FILE *reply)
{
    const struct running *running = context;

    (void)note;
    for (size_t i = 0; i < piece_size(running, piece) && !is_over(running, first_of(piece) + i); i++) {
        struct trial trial = trial_run(running->rules, first_of(piece) + i, NULL, NULL);

        fwrite(&trial, sizeof trial, 1, reply);
    }
}

static bool next(void *context, uint64_t *piece)
{
    struct running *running = context;

    *piece = running->next;
    if (running->next * PIECE >= running->count || is_over(running, running->next * PIECE))
        return false;
    running->next++;
    return true;
}

static int done(void *context, uint64_t piece, const char *reply, size_t length, struct error *err)
{
    struct running *running = context;

    if (is_over(running, first_of(piece)))
        return check_over(running, first_of(piece), err);
    if (length != piece_size(running, piece) * sizeof(struct trial))
        return error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "train: a process sent %zu bytes of trials", length);
    memcpy(running->trials + first_of(piece), reply, length);
    return 0;
}

static int lost(void *context, uint64_t piece, enum pool_loss why, const char *note, const struct error *how,
                struct error *err)
{
    (void)context, (void)piece, (void)why, (void)note;
    return error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "train: a process that ran trials ended%s%s",
                     how && how->count ? ": " : "", how && how->count ? how->messages[0].text : "");
}

int trials_run(struct trial *trials, size_t count, const struct trial_rules *rules, size_t jobs,
                      struct progress *progress, struct error *err)
{
    struct running running = {.progress = progress, .trials = trials, .count = count, .rules = rules};
    struct pool pool = {
        .jobs = jobs, .what = "the trial", .context = &running, .work = work, .next = next, .done = done, .lost = lost};
    enum pool_end end;

    if (jobs > 1 && count > PIECE) {
        end = pool_run(&pool, err);
        if (end == POOL_INTERRUPTED)
            error_add(err, EXIT_INTERRUPTED, (struct loc){0}, "train: interrupted");
        return end == POOL_ALL ? check_over(&running, running.next * PIECE, err) : -1;
    }
    for (; running.next < count && !is_over(&running, running.next); running.next++)
        trials[running.next] = trial_run(rules, running.next, NULL, NULL);
    return check_over(&running, running.next, err);
}
