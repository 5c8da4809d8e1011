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
#include "run/run.h"
#include "scenario/memory_policy.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/memory.h"
#include "stage/stage.h"
#include "workload/workload.h"

/* Ways to need less, in the order in which they are preferred where they cost the same. Each has steps, the gentlest
 * first, and writes the --set assignments that bring a step about, separated by newlines, or nothing where it does not
 * apply. */
typedef void change_write(const struct scenario *scenario, int step, FILE *out);

static void shard_states(const struct scenario *scenario, int step, FILE *out)
{
    if (scenario->parallelism.zero <= step && scenario_replicas(scenario) > 1)
        fprintf(out, "strategy.zero=%d\n", step + 1);
}

static void shard_sequence(const struct scenario *scenario, int step, FILE *out)
{
    (void)step;
    if (scenario->parallelism.tensor > 1 && !scenario->parallelism.sequence_parallel && scenario->model.transformer)
        fputs("strategy.sequence_parallel=true\n", out);
}

static void recompute_more(const struct scenario *scenario, int step, FILE *out)
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
        fprintf(out, "memory.recompute=%s\n", ways[step].recompute);
}

static void move_to_host(const struct scenario *scenario, int step, FILE *out)
{
    enum { TENSORS = 2 };
    static const char *const what[] = {"optimizer", "activations", "tensors", "weights"};
    bool finer = step == TENSORS && scenario->memory.offload.count == 1 && scenario_offloads(scenario, OFFLOAD_ACTIVATIONS);

    if (finer)
        fputs("memory.offload=tensors\n", out);
    else if (!scenario_moves_activations(scenario) && !scenario_offloads(scenario, OFFLOAD_WEIGHTS) &&
        !scenario_offloads(scenario, OFFLOAD_OPTIMIZER) && !isnan(scenario_host_bandwidth(scenario, 0)))
        fprintf(out, "memory.offload=%s\n", what[step]);
}

/* As many samples an iteration, where micro-batches are given and not samples. */
static void more_micro_batches(const struct scenario *scenario, int times, FILE *out)
{
    if (node_get(scenario->batch.node, "micro_batches"))
        fprintf(out, "batch.micro_batches=%d\n", times * scenario->batch.micro_batches);
}

static void smaller_micro_batch(const struct scenario *scenario, int step, FILE *out)
{
    int times = 2 << step;

    if (scenario->batch.micro % times)
        return;
    fprintf(out, "batch.micro=%d\n", scenario->batch.micro / times);
    more_micro_batches(scenario, times, out);
}

/* The other degree grows: of the same GPUs where enough replicas are left, else of more. */
static void multiply_degree(const struct scenario *scenario, const char *key, int degree, int step, FILE *out)
{
    int data = scenario->parallelism.data, times = 2 << step;
    bool same = data % times == 0;

    if (scenario->parallelism.schedule.csv || stages_say_degrees(&scenario->parallelism.stages))
        return;
    fprintf(out, "strategy.%s=%d\n", key, times * degree);
    fprintf(out, "strategy.data=%d\n", same ? data / times : data);
    if (same)
        more_micro_batches(scenario, times, out);
}

static void more_tensor(const struct scenario *scenario, int step, FILE *out)
{
    if (scenario->model.transformer)
        multiply_degree(scenario, "tensor", scenario->parallelism.tensor, step, out);
}

static void more_pipeline(const struct scenario *scenario, int step, FILE *out)
{
    if (!scenario->model.stages.count)       /* which would be another model */
        multiply_degree(scenario, "pipeline", scenario->parallelism.pipeline, step, out);
}

static void more_context(const struct scenario *scenario, int step, FILE *out)
{
    if (scenario->model.transformer)
        multiply_degree(scenario, "context", scenario->parallelism.context, step, out);
}

/* More GPUs divide the parameters that not all tokens meet; they are replicas all the same. */
static void more_divided(const struct scenario *scenario, int step, FILE *out)
{
    const struct process_group *group = &scenario->groups.of[GROUP_EXPERT];

    if (model_active_parameters(&scenario->model) < model_parameters(&scenario->model))
        fprintf(out, "strategy.%s=%d\n", group->name, (2 << step) * group_members(group));
}

/* All `steps` of a change are tried alone; together with other changes only its first `paired` steps. */
enum { TOGETHER = 3 };
static const struct change { change_write *write; int steps, paired; } changes[] = {
    {shard_states, 3, 3}, {shard_sequence, 1, 1}, {recompute_more, 4, 3},
    {more_tensor, 3, 2},  {more_pipeline, 3, 2},  {more_divided, 3, 2},
    {more_context, 3, 2}, {move_to_host, 4, 1},   {smaller_micro_batch, 5, 5},
};

/* Up to three changes: a candidate. */
struct candidate {
    char *sets;              /* assignments, a line each */
    double cost;             /* GPU seconds a sample on the ideal engine; INFINITY: does not fit or is not possible */
};

/* Less than what any schedule takes: GPU seconds of a sample's kernels, none of them computed again as a whole. */
static double least_cost(const struct workload *workload)
{
    const struct scenario *scenario = workload->scenario;
    const struct stage_times *times = ordinary_times(workload);
    double seconds = 0, all = (double)scenario->parallelism.tensor * scenario_rank_replicas(scenario, 0);

    for (int s = 0; s < plan_virtual_stages(&workload->plan); s++) {
        int rank = plan_rank(&workload->plan, 0, s, 0, NULL);
        double share = scenario_tensor(scenario, rank) * scenario_rank_replicas(scenario, rank) / all;

        seconds += share * (times[s].work[FORWARD].seconds + times[s].work[BACKWARD].seconds + times[s].recomputed.seconds);
    }
    return seconds * scenario->parallelism.tensor * scenario->parallelism.context / scenario->batch.micro;
}

/* What the workload costs; INFINITY where it does not fit, or costs `most` or more and that is known beforehand. */
static double workload_cost(const struct workload *workload, double most, struct error *err)
{
    const struct simulate_options whole = {.engine = ENGINE_IDEAL, .numbers = true};
    struct run run = {0};
    bool rows_tell = memory_options_of(workload->scenario).memory;
    double cost = INFINITY;

    if (least_cost(workload) < most && (!rows_tell || memory_fits(workload, memory_needs, true, err)) &&
        !simulate(workload, whole, &run, err) && run.metrics.peak_memory <= run.metrics.peak_room)
        cost = run.metrics.iteration_time * scenario_gpus(workload->scenario) / run.metrics.samples;
    run_release(&run);
    return cost;
}

/* What the candidate costs, where that is less than `most`; its collectives are measured alone, which is enough to
 * compare. */
static double cost_of(const struct scenario *scenario, const char *lines, double most, struct error *err)
{
    enum { MOST = 16 };
    const char *sets[MOST + 1];
    size_t count = 0;
    struct error found = {0};
    struct arena arena = {0};
    struct scenario changed = {0};
    struct workload workload = {0};
    double cost = INFINITY;

    for (size_t length; *lines; lines += length + 1) {
        length = strcspn(lines, "\n");
        BUG_IF(count == MOST);
        sets[count++] = arena_strndup(&arena, lines, length);
    }
    sets[count++] = "simulation.collectives=measured";
    if (!scenario_vary(scenario, sets, count, &changed, &found) && !workload_init(&workload, &changed, &found))
        cost = workload_cost(&workload, most, &found);
    workload_release(&workload);
    scenario_release(&changed);
    arena_release(&arena);
    error_pass_system(&found, err);
    error_release(&found);
    return cost;
}

/* A step of a change. */
struct step { size_t change; int step; };

/* The assignments of some steps, "" where one of them does not apply; the caller frees it. */
static char *sets_of(const struct scenario *scenario, const struct step *steps, int count)
{
    size_t size, before = 0;
    char *text = NULL;
    FILE *out = text_open(&text, &size);
    bool apply = true;

    for (int i = 0; i < count && apply; i++) {
        changes[steps[i].change].write(scenario, steps[i].step, out);
        fflush(out);
        apply = size > before;
        before = size;
    }
    text_close(out, &text);
    if (!apply)
        text[0] = '\0';
    return text;
}

/* Becomes the best where it fits and costs less; takes the text. */
static void consider(const struct scenario *scenario, char *sets, struct candidate *best,
                     struct error *err)
{
    bool over = scenario->progress && scenario->progress->over;
    double cost = *sets && !over ? cost_of(scenario, sets, best->cost, err) : INFINITY;

    if (cost < best->cost * (1 - 1e-9)) {
        free(best->sets);
        *best = (struct candidate){sets, cost};
    } else {
        free(sets);
    }
}

/* Looks at all ways to take `wanted` steps of different changes that begin with the `count` first ones. */
static void consider_more(const struct scenario *scenario, struct step *steps, int count, int wanted, struct candidate *best, struct error *err)
{
    if (count == wanted) {
        consider(scenario, sets_of(scenario, steps, count), best, err);
        return;
    }
    for (size_t c = count ? steps[count - 1].change + 1 : 0; c < COUNT(changes); c++)
        for (int step = 0; step < (wanted > 1 ? changes[c].paired : changes[c].steps); step++) {
            steps[count] = (struct step){c, step};
            consider_more(scenario, steps, count + 1, wanted, best, err);
        }
}

/* The cheapest single change that fits, else the cheapest pair or three; sets, freed by the caller, is NULL where none
 * does. */
static struct candidate cheapest(const struct scenario *scenario, struct error *err)
{
    struct candidate best = {.sets = NULL, .cost = INFINITY};
    struct step steps[TOGETHER];

    for (int wanted = 1; wanted <= TOGETHER && !best.sets; wanted++)
        consider_more(scenario, steps, 0, wanted, &best, err);
    return best;
}

/* "--set strategy.zero=1 --set memory.recompute=full": what a person can add to the command as it stands, in quotes
 * where a shell would take it apart. */
static const char *advice(struct arena *arena, const struct scenario *scenario, struct error *err)
{
    struct candidate best = cheapest(scenario, err);
    bool over = scenario->progress && scenario->progress->over;
    const char *text = "";

    if (err->system) {
        free(best.sets);
        return "no change that would make it fit was found: files could not be read";
    }
    if (!best.sets && over)
        return "the budget was spent before a change was found that would make it fit";
    if (!best.sets)
        return "no one, two or three of: ZeRO, sequence parallelism, activation checkpointing, higher degrees of parallelism, "
               "offloading, smaller micro-batches would make it fit";
    for (char *line = best.sets, *end; *line; line = end + 1) {
        end = line + strcspn(line, "\n");
        const char *quote = memchr(line, '{', (size_t)(end - line)) ? "'" : "";
        text = arena_printf(arena, "%s --set %s%.*s%s", text, quote, (int)(end - line), line, quote);
    }
    free(best.sets);
    return arena_printf(arena, "of the changes that would make it fit the one that costs the least GPU time is%s%s",
                        text, over ? ", as far as the search came before the budget was spent" : "");
}

/* The kinds that hold most, largest first, as far as they make up nine tenths. */
static const char *largest_parts(struct arena *arena, const struct memory *memory)
{
    struct memory left = *memory;
    double total = memory_total(memory), named = 0;
    const char *text = "";

    while (named < 0.9 * total) {
        int most = 0;
        char bytes[48];

        for (int kind = 1; kind < MEMORY_KIND_COUNT; kind++)
            most = left.bytes[kind] > left.bytes[most] ? kind : most;
        text = arena_printf(arena, "%s%s%s %s", text, named > 0 ? ", " : "", memory_kind_title((enum memory_kind)most),
                            unit_format_short(UNIT_BYTES, left.bytes[most], bytes, sizeof bytes));
        named += left.bytes[most];
        left.bytes[most] = 0;
    }
    return text;
}

void memory_advise(const struct scenario *scenario, struct error *err)
{
    struct arena arena = {0};
    const struct error_message *last = err->count ? &err->messages[err->count - 1] : NULL;

    if (last && last->kind == ERROR_MEMORY && scenario_by_layers(scenario))
        error_infeasible(err, ERROR_MEMORY, last->loc, "memory: %s", advice(&arena, scenario, err));
    arena_release(&arena);
}

char *memory_shortage(const struct run *run, char *buffer, size_t size)
{
    const struct scenario *scenario = run->workload->scenario;
    char need[48], have[48];

    snprintf(buffer, size, "memory: a GPU of rank %d needs %s and has %s",
             run->metrics.peak_rank % scenario->plan.stages,
             unit_format_short(UNIT_BYTES, run->metrics.peak_memory, need, sizeof need),
             unit_format_short(UNIT_BYTES, run->metrics.peak_room, have, sizeof have));
    return buffer;
}

/* Activations may be those of a length that nobody said. */
static const char *unsaid_length(struct arena *arena, const struct model *model)
{
    return !model->longest ? "" : arena_printf(arena, "; a sample has %d tokens, as many as config.json allows, as nobody says "
                                               "'sequence'", model->sequence);
}

int memory_check(const struct run *run, bool advised, struct error *err)
{
    const struct scenario *scenario = run->workload->scenario;
    const struct metrics *metrics = &run->metrics;
    double lack = memory_lack(run);
    struct arena arena = {0};
    char shortage[160], over[48], fits[64] = "";

    if (lack <= 0)
        return 0;
    if (metrics->fits >= 0.005)
        snprintf(fits, sizeof fits, "; it fits all the same with a probability of %.0f %%", 100 * metrics->fits);
    error_infeasible(
        err, ERROR_MEMORY, scenario->memory.node ? scenario->memory.node->loc : scenario->node->loc,
        "%s, %s too little (%s)%s%s; %s%s'enforce: false' simulates it anyway",
        memory_shortage(run, shortage, sizeof shortage),
        unit_format_short(UNIT_BYTES, lack, over, sizeof over),
        largest_parts(&arena, &metrics->memory), fits, unsaid_length(&arena, &scenario->model), advised ? advice(&arena, scenario, err) : "",
        advised ? "; or " : "");
    arena_release(&arena);
    return -1;
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
