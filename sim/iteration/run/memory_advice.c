#include "run/memory_advice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "auto/auto.h"
#include "base/progress.h"
#include "config/conf.h"
#include "layout/stage_spec.h"
#include "model/model.h"
#include "recompute/stage_plan.h"
#include "run/attempt.h"
#include "run/run.h"
#include "scenario/memory_policy.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/memory.h"
#include "stage/stage.h"
#include "workload/workload.h"

/* Ways to need less, in the order in which they are preferred where they cost the same. Each has steps, the gentlest
 * first, and sets what brings a step about, or nothing where it does not apply. */
typedef void change_make(const struct scenario *scenario, int step, struct attempt *out);

static void shard_states(const struct scenario *scenario, int step, struct attempt *out)
{
    if (scenario->parallelism.zero <= step && scenario_replicas(scenario) > 1)
        attempt_set(out, "strategy.zero=%d", step + 1);
}

static void shard_sequence(const struct scenario *scenario, int step, struct attempt *out)
{
    (void)step;
    if (scenario_most_tensor(scenario) > 1 && !scenario->parallelism.sequence_parallel && scenario->model.transformer)
        attempt_set(out, "strategy.sequence_parallel=true");
}

static void recompute_more(const struct scenario *scenario, int step, struct attempt *out)
{
    const struct recompute_spec *now = &scenario->memory.recompute;
    bool full = now->mode == RECOMPUTE_FULL;
    const struct { bool applies; const char *recompute; } ways[] = {
        {now->mode < RECOMPUTE_SELECTIVE, "selective"},
        {now->mode < RECOMPUTE_FULL && !scenario->model.stages.count, "{mode: full, share: 0.5}"},
        {!full || now->every > 1 || recompute_is_partial(now), "full"},
        {now->mode < RECOMPUTE_FULL, "optimal"},
    };

    if (ways[step].applies)
        attempt_set(out, "memory.recompute=%s", ways[step].recompute);
}

static void move_to_host(const struct scenario *scenario, int step, struct attempt *out)
{
    enum { TENSORS = 2 };
    static const char *const what[] = {"optimizer", "activations", "tensors", "weights"};
    bool finer = step == TENSORS && scenario->memory.offload.count == 1 && scenario_offloads(scenario, OFFLOAD_ACTIVATIONS);

    if (finer)
        attempt_set(out, "memory.offload=tensors");
    else if (!scenario_moves_activations(scenario) && !scenario_offloads(scenario, OFFLOAD_WEIGHTS) &&
        !scenario_offloads(scenario, OFFLOAD_OPTIMIZER) && !isnan(scenario_host_bandwidth(scenario, 0)))
        attempt_set(out, "memory.offload=%s", what[step]);
}

/* As many samples an iteration, where micro-batches are given and not samples. */
static void more_micro_batches(const struct scenario *scenario, int times, struct attempt *out)
{
    if (node_get(scenario->batch.node, "micro_batches"))
        attempt_set(out, "batch.micro_batches=%d", times * scenario->batch.micro_batches);
}

static void smaller_micro_batch(const struct scenario *scenario, int step, struct attempt *out)
{
    int times = 2 << step;

    if (scenario->batch.micro % times)
        return;
    attempt_set(out, "batch.micro=%d", scenario->batch.micro / times);
    more_micro_batches(scenario, times, out);
}

/* The other degree grows: of the same GPUs where enough replicas are left, else of more. */
static void multiply_degree(const struct scenario *scenario, const char *key, int degree, int step, struct attempt *out)
{
    int data = scenario->parallelism.data, times = 2 << step;
    bool same = data % times == 0;

    if (scenario->parallelism.schedule.csv || stages_say_degrees(&scenario->parallelism.stages))
        return;
    attempt_set(out, "strategy.%s=%d", key, times * degree);
    attempt_set(out, "strategy.data=%d", same ? data / times : data);
    if (same)
        more_micro_batches(scenario, times, out);
}

static void more_tensor(const struct scenario *scenario, int step, struct attempt *out)
{
    if (scenario->model.transformer)
        multiply_degree(scenario, "tensor", scenario_most_tensor(scenario), step, out);
}

static void more_pipeline(const struct scenario *scenario, int step, struct attempt *out)
{
    if (!scenario->model.stages.count)       /* which would be another model */
        multiply_degree(scenario, "pipeline", scenario->parallelism.pipeline, step, out);
}

static void more_context(const struct scenario *scenario, int step, struct attempt *out)
{
    if (scenario->model.transformer)
        multiply_degree(scenario, "context", scenario->parallelism.context, step, out);
}

/* More GPUs divide the parameters that not all tokens meet; they are replicas all the same. */
static void more_divided(const struct scenario *scenario, int step, struct attempt *out)
{
    const struct process_group *group = &scenario->groups.of[GROUP_EXPERT];

    if (model_active_parameters(&scenario->model) < model_parameters(&scenario->model))
        attempt_set(out, "strategy.%s=%d", group->name, (2 << step) * group_members(group));
}

/* All `steps` of a change are tried alone; together with other changes only its first `paired` steps. */
enum { TOGETHER = 3 };
static const struct change { change_make *make; int steps, paired; } changes[] = {
    {shard_states, 3, 3}, {shard_sequence, 1, 1}, {recompute_more, 4, 3},
    {more_tensor, 3, 2},  {more_pipeline, 3, 2},  {more_divided, 3, 2},
    {more_context, 3, 2}, {move_to_host, 4, 1},   {smaller_micro_batch, 5, 5},
};

/* A step of a change; and up to three of them, a candidate. */
struct step { size_t change; int step; };
struct candidate {
    struct step steps[TOGETHER];
    int count;
    double cost;             /* GPU seconds a sample on the ideal engine; INFINITY: does not fit or is not possible */
};

/* Less than what any schedule takes: GPU seconds of a sample's kernels, none of them computed again as a whole. */
static double least_cost(const struct workload *workload)
{
    const struct scenario *scenario = workload->scenario;
    const struct stage_times *times = ordinary_times(workload);
    double seconds = 0;

    for (int s = 0; s < plan_virtual_stages(&workload->plan); s++) {
        int rank = plan_rank(&workload->plan, 0, s, 0, NULL);
        double share = (double)scenario_rank_replicas(scenario, rank) / scenario_rank_replicas(scenario, 0);

        seconds += share * scenario_tensor(scenario, rank) *
                   (times[s].work[FORWARD].seconds + times[s].work[BACKWARD].seconds + times[s].recomputed.seconds);
    }
    return seconds * scenario->parallelism.context / scenario->batch.micro;
}

/* Sets all steps; false: one of them does not apply. */
static bool take_steps(const struct candidate *candidate, struct attempt *attempt)
{
    for (int i = 0; i < candidate->count; i++) {
        const struct step *step = &candidate->steps[i];
        size_t before = attempt->nsets;

        changes[step->change].make(attempt->of, step->step, attempt);
        if (attempt->nsets == before)
            return false;
    }
    return true;
}

static bool is_over(const struct scenario *scenario)
{
    return scenario->progress && scenario->progress->over;
}

/* The candidate becomes the best where it fits and costs less; its collectives are measured alone, which is enough to
 * compare. */
static void consider(const struct scenario *scenario, struct candidate *candidate, struct candidate *best, struct error *err)
{
    const struct simulate_options whole = {.engine = ENGINE_IDEAL, .numbers = true};
    struct attempt attempt = {.of = scenario};
    const struct metrics *metrics = &attempt.run.metrics;

    candidate->cost = INFINITY;
    if (!is_over(scenario) && take_steps(candidate, &attempt)) {
        attempt_set(&attempt, "simulation.collectives=measured");
        if (!attempt_build(&attempt) && least_cost(&attempt.workload) < best->cost && !attempt_simulate(&attempt, whole))
            candidate->cost = metrics->iteration_time * scenario_gpus(&attempt.varied) / metrics->samples;
    }
    attempt_end(&attempt, err);
    if (candidate->cost < best->cost * (1 - 1e-9))
        *best = *candidate;
}

/* Looks at all ways to take `wanted` steps of different changes that begin with those of the candidate. */
static void consider_more(const struct scenario *scenario, struct candidate candidate, int wanted, struct candidate *best,
                          struct error *err)
{
    int count = candidate.count;

    if (count == wanted) {
        consider(scenario, &candidate, best, err);
        return;
    }
    candidate.count++;
    for (size_t c = count ? candidate.steps[count - 1].change + 1 : 0; c < COUNT(changes); c++)
        for (int step = 0; step < (wanted > 1 ? changes[c].paired : changes[c].steps); step++) {
            candidate.steps[count] = (struct step){c, step};
            consider_more(scenario, candidate, wanted, best, err);
        }
}

/* "--set strategy.zero=1 --set memory.recompute=full", what a person can add to the command as it stands, in quotes where a
 * shell would take it apart: the cheapest single change that fits, else the cheapest pair or three. */
static const char *advice(struct arena *arena, const struct scenario *scenario, struct error *err)
{
    struct candidate best = {.cost = INFINITY};
    struct attempt told = {.of = scenario};
    const char *text = "";

    for (int wanted = 1; wanted <= TOGETHER && !best.count; wanted++)
        consider_more(scenario, (struct candidate){.count = 0}, wanted, &best, err);
    if (err->system)
        return "no change that would make it fit was found: files could not be read";
    if (!best.count)
        return is_over(scenario) ? "the budget was spent before a change was found that would make it fit" :
               "no one, two or three of: ZeRO, sequence parallelism, activation checkpointing, higher degrees of parallelism, "
               "offloading, smaller micro-batches would make it fit";
    take_steps(&best, &told);
    for (size_t i = 0; i < told.nsets; i++) {
        const char *quote = strchr(told.sets[i], '{') ? "'" : "";

        text = arena_printf(arena, "%s --set %s%s%s", text, quote, told.sets[i], quote);
    }
    attempt_end(&told, err);
    return arena_printf(arena, "of the changes that would make it fit the one that costs the least GPU time is%s%s",
                        text, is_over(scenario) ? ", as far as the search came before the budget was spent" : "");
}

void memory_advise(const struct scenario *scenario, struct error *err)
{
    struct arena arena = {0};
    const struct error_message *last = err->count ? &err->messages[err->count - 1] : NULL;

    if (last && last->kind == ERROR_MEMORY && scenario_by_layers(scenario))
        error_infeasible(err, ERROR_MEMORY, last->loc, "memory: %s", advice(&arena, scenario, err));
    arena_release(&arena);
}

int memory_check(const struct run *run, bool advised, struct error *err)
{
    struct arena arena = {0};
    int rc = 0;

    if (memory_lack(run) > 0)
        rc = memory_refuse(run, advised ? advice(&arena, run->workload->scenario, err) : "", err);
    arena_release(&arena);
    return rc;
}

int memory_fits_micro(const struct scenario *scenario, int micro, bool *fits, struct error *err)
{
    struct attempt attempt = {.of = scenario};
    enum attempted came;

    attempt_set(&attempt, "memory.enforce=true\nbatch.micro=%d", micro);
    if (node_get(scenario->batch.node, "global"))
        attempt_set(&attempt, "batch.global=%d", scenario->batch.global / scenario->batch.micro * micro);
    came = attempt_run(&attempt, memory_options_of(scenario));
    *fits = !came;
    if (came == ATTEMPT_REFUSED)
        error_copy(&attempt.found, err);
    return attempt_end(&attempt, err) || came == ATTEMPT_REFUSED ? -1 : 0;
}

int workload_init_advised(struct workload *workload, const struct scenario *scenario, struct error *err)
{
    if (!workload_init(workload, scenario, err))
        return 0;
    memory_advise(scenario, err);
    return -1;
}

int simulate_advised(const struct workload *workload, struct simulate_options options, struct run *run,
                     struct error *err)
{
    return simulate(workload, options, run, err) ? -1 : memory_check(run, !options.no_advice, err);
}

int simulate_scenario(const struct scenario *scenario, struct simulate_options options, struct workload *workload,
                      struct run *run, struct error *err)
{
    bool no_advice = options.no_advice;

    if ((no_advice ? workload_init : workload_init_advised)(workload, scenario, err))
        return -1;
    if (memory_is_short(workload))
        options = memory_needs;
    else
        options.causes = true;
    options.no_advice = no_advice;
    if (!simulate_advised(workload, options, run, err))
        return 0;
    if (error_exit_code(err) != EXIT_STOPPED || !run->metrics.ranks)
        return -1;
    error_add(err, EXIT_STOPPED, (struct loc){0}, "the results are complete but for imbalance and jitter, each of "
              "which takes another replay");
    return 0;
}
