#include "train/training.h"

#include <string.h>

#include "process/pool.h"

enum { PIECE = 50 };             /* trials that a process does at once */

/* Trials under way. */
struct running {
    struct trial *trials;
    size_t count, next;
    const struct trial_rules *rules;
};

static size_t piece_size(const struct running *running, uint64_t piece)
{
    size_t rest = running->count - piece * PIECE;

    return rest < PIECE ? rest : PIECE;
}

static void work(void *context, uint64_t piece, char *note, FILE *reply)
{
    const struct running *running = context;

    (void)note;
    for (size_t i = 0; i < piece_size(running, piece); i++) {
        struct trial trial = trial_run(running->rules, piece * PIECE + i, NULL, NULL);

        fwrite(&trial, sizeof trial, 1, reply);
    }
}

static bool next(void *context, uint64_t *piece)
{
    struct running *running = context;

    *piece = running->next;
    if (running->next * PIECE >= running->count)
        return false;
    running->next++;
    return true;
}

static int done(void *context, uint64_t piece, const char *reply, size_t length, struct error *err)
{
    struct running *running = context;

    if (length != piece_size(running, piece) * sizeof(struct trial))
        return error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "train: a process sent %zu bytes of trials", length);
    memcpy(running->trials + piece * PIECE, reply, length);
    return 0;
}

static int lost(void *context, uint64_t piece, enum pool_loss why, const char *note, const struct error *how,
                struct error *err)
{
    (void)context, (void)piece, (void)why, (void)note;
    return error_add(err, EXIT_UNEXPECTED, (struct loc){0}, "train: a process that ran trials ended%s%s",
                     how && how->count ? ": " : "", how && how->count ? how->messages[0].text : "");
}

int trials_run(struct trial *trials, size_t count, const struct trial_rules *rules, size_t jobs, struct error *err)
{
    struct running running = {.trials = trials, .count = count, .rules = rules};
    struct pool pool = {.jobs = jobs, .what = "the trial", .context = &running, .work = work, .next = next, .done = done,
                        .lost = lost};
    enum pool_end end;

    if (jobs > 1 && count > PIECE) {
        end = pool_run(&pool, err);
        if (end == POOL_INTERRUPTED)
            error_add(err, EXIT_INTERRUPTED, (struct loc){0}, "train: interrupted");
        return end == POOL_ALL ? 0 : -1;
    }
    for (size_t i = 0; i < count; i++)
        trials[i] = trial_run(rules, i, NULL, NULL);
    return 0;
}
