#include "explain/gains.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "engine/program.h"
#include "explain/changes.h"
#include "kernels/cost.h"
#include "run/account.h"
#include "run/attempt.h"
#include "run/run.h"
#include "run/what_if.h"
#include "scenario/process_group.h"
#include "scenario/scenario.h"
#include "workload/workload.h"

struct asking {
    struct arena *arena;
    const struct run *run;
    const struct critical_path *path;
    struct simulate_options options;
};

static double of_path(const struct critical_path *path, enum account_kind first, enum account_kind last)
{
    double seconds = 0;

    for (int kind = (int)first; kind <= (int)last; kind++)
        seconds += path->seconds[kind];
    return seconds;
}

static double held_network(const struct asking *asking)
{
    return of_path(asking->path, ACCOUNT_COMMUNICATION_FIRST, ACCOUNT_COMMUNICATION_LAST);
}

static double held_kernels(const struct asking *asking)
{
    return of_path(asking->path, ACCOUNT_FORWARD, ACCOUNT_PACK);
}

/* A rank that waits for nobody still does its own work on the path. */
static double held_bubble(const struct asking *asking)
{
    double most = 0;

    for (int r = 0; r < asking->path->nranks; r++) {
        double seconds = 0;

        for (int kind = 0; kind < ACCOUNT_EXPOSED_TENSOR; kind++)
            seconds += asking->path->ranks[r][kind];
        most = fmax(most, seconds);
    }
    return asking->run->metrics.iteration_time - most;
}

/* Recomputations with what they exchange. */
static double held_recomputation(const struct asking *asking)
{
    const struct ops *ops = &asking->run->lowered.program.ops;
    double seconds = 0;

    for (size_t i = 0; i < asking->path->pieces.count; i++) {
        const struct path_piece *piece = &asking->path->pieces.items[i];

        if (ops->items[piece->op].what == WHAT_RECOMPUTE)
            seconds += window_part(&asking->run->metrics.window, piece->from, piece->to);
    }
    return seconds;
}

/* What the path's works take longer than they would if all ranks took as long. */
static double held_imbalance(const struct asking *asking)
{
    const struct program *program = &asking->run->lowered.program;
    struct program even = program_copy(program);
    double seconds = 0;

    program_what_if(&even, WHAT_IF_BALANCED, NULL);
    for (size_t i = 0; i < asking->path->pieces.count; i++) {
        const struct path_piece *piece = &asking->path->pieces.items[i];
        const struct op *op = &program->ops.items[piece->op];
        double more = op->amount - even.ops.items[piece->op].amount;

        if (op->kind == OP_COMPUTE && more > 0)
            seconds += window_part(&asking->run->metrics.window, piece->from, piece->to) * more / op->amount;
    }
    program_release(&even);
    return seconds;
}

/* What the path's kernels take longer than on ordinary GPUs. */
static double held_stragglers(const struct asking *asking)
{
    const struct program *program = &asking->run->lowered.program;
    int stages = asking->run->workload->plan.stages;
    double seconds = 0;

    for (size_t i = 0; i < asking->path->pieces.count; i++) {
        const struct path_piece *piece = &asking->path->pieces.items[i];
        const struct op *op = &program->ops.items[piece->op];
        int rank = program->lanes.items[op->lane].rank;

        if (op->kind == OP_COMPUTE)
            seconds += window_part(&asking->run->metrics.window, piece->from, piece->to) *
                       (1 - 1 / scenario_slower(asking->run->workload->scenario, rank / stages, rank % stages));
    }
    return seconds;
}

/* Whether there is any of it to gain. */
static bool has_network(const struct asking *asking)
{
    return !asking->run->workload->scenario->cluster.ideal && asking->run->metrics.communication_bytes_per_gpu > 0;
}

static bool has_ranks(const struct asking *asking)
{
    return asking->run->workload->plan.stages > 1;
}

static bool has_recomputation(const struct asking *asking)
{
    return asking->run->metrics.seconds[ACCOUNT_RECOMPUTE] > 0;
}

static bool has_imbalance(const struct asking *asking)
{
    return asking->run->metrics.imbalance != 0;
}

static bool has_stragglers(const struct asking *asking)
{
    return (asking->run->workload->scenario->uneven & UNEVEN_GPUS) != 0;
}

/* Whether compute is more than kernels: the rest waits for the host to launch them. */
static bool has_launches(const struct asking *asking)
{
    const struct metrics *metrics = &asking->run->metrics;
    double compute = metrics->utilization * metrics->iteration_time, kernels = cost_bases_total(&metrics->bases);

    return kernels > 0 && kernels < 0.995 * compute;
}

static bool always(const struct asking *asking)
{
    return asking != NULL;
}

/* A question is answered by a change of the scenario, where there is one that is exactly this; else by options of the
 * simulation. The nearest changes are tried all the same. */
static const struct question {
    const char *name, *title;
    bool (*applies)(const struct asking *asking);
    double (*held)(const struct asking *asking);
    change_list *changes;
    bool exact;                      /* the first change is the question itself */
    bool free_network;
    unsigned what_ifs;
} questions[] = {
    {"network_twice_as_fast", "links twice as fast", has_network, held_network, changes_of_links, .exact = true},
    {"network_free", "network free", has_network, held_network, changes_of_network, .free_network = true},
    {"no_bubble", "no bubble", has_ranks, held_bubble, changes_of_schedule, .what_ifs = WHAT_IF_NO_BUBBLE},
    {"no_recomputation", "no recomputation", has_recomputation, held_recomputation, changes_of_recomputation,
     .what_ifs = WHAT_IF_NO_RECOMPUTATION},
    {"balanced_stages", "stages balanced", has_imbalance, held_imbalance, changes_of_split,
     .what_ifs = WHAT_IF_BALANCED},
    {"no_stragglers", "without stragglers", has_stragglers, held_stragglers, changes_of_stragglers, .exact = true},
    {"launches_free", "kernel launches free", has_launches, held_kernels, changes_of_launches, .exact = true},
    {"gpu_twice_as_fast", "GPU twice as fast", always, held_kernels, changes_of_gpu, .exact = true},
};
_Static_assert(COUNT(questions) <= COUNT(((struct gains *)0)->items), "room for every question");

/* The iteration with the changes ("PATH=VALUE" lines), NaN where it cannot be simulated. */
static double time_with(const struct asking *asking, const char *lines, bool *fits, struct error *err)
{
    struct attempt attempt = {.of = asking->run->workload->scenario, .anyway = true};
    const struct metrics *metrics = &attempt.run.metrics;
    double time = NAN;

    attempt_set(&attempt, "simulation.fold=auto\n%s", lines);      /* of the run its metrics alone are looked at */
    if (!attempt_run(&attempt, asking->options)) {
        time = metrics->iteration_time;
        *fits = metrics->peak_memory <= metrics->peak_room;
    }
    attempt_end(&attempt, err);
    return time;
}

static double time_if(const struct asking *asking, const struct question *question)
{
    struct simulate_options options = asking->options;
    struct error err = {0};
    struct run run = {0};
    double time = NAN;

    options.free_network = question->free_network;
    options.what_ifs = question->what_ifs;
    if (!simulate(asking->run->workload, options, &run, &err))
        time = run.metrics.iteration_time;
    run_release(&run);
    error_release(&err);
    return time;
}

/* Whether a is the better change: what fits comes first. */
static bool better(double time, bool fits, const struct gain *than)
{
    return !than->sets || (fits != than->fits ? fits : time < than->sets_time);
}

static struct gain answer(const struct asking *asking, const struct question *question, struct error *err)
{
    struct changes changes = {.arena = asking->arena, .err = err};
    struct gain gain = {.name = question->name, .title = question->title, .time = NAN};
    double shorter = asking->run->metrics.iteration_time * (1 - 1e-9);

    question->changes(&changes, asking->run->workload);
    if (!question->exact)
        gain.time = time_if(asking, question);
    for (size_t i = 0; i < changes.count; i++) {
        bool fits = false;
        double time = time_with(asking, changes.items[i], &fits, err);

        if (question->exact && i == 0)
            gain.time = time;
        if (!(time < shorter) || !better(time, fits, &gain))
            continue;
        gain.sets = changes.items[i];
        gain.sets_time = time;
        gain.fits = fits;
    }
    gain.held = question->held(asking);
    return gain;
}

static int by_time(const void *a, const void *b)
{
    const struct gain *x = a, *y = b;

    return x->time != y->time ? (x->time < y->time ? -1 : 1) : strcmp(x->name, y->name);
}

int gains_init(struct gains *gains, struct arena *arena, const struct run *run, const struct critical_path *path,
               struct simulate_options options, struct error *err)
{
    struct asking asking = {arena, run, path, options};

    asking.options.causes = false;
    asking.options.numbers = true;
    gains->count = 0;
    for (size_t i = 0; i < COUNT(questions) && !err->system; i++) {
        struct gain gain;

        if (!questions[i].applies(&asking))
            continue;
        gain = answer(&asking, &questions[i], err);
        if (!isnan(gain.time))
            gains->items[gains->count++] = gain;
    }
    array_sort(gains->items, gains->count, sizeof *gains->items, by_time);
    return err->system ? -1 : 0;
}
