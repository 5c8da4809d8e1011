#include "run/memory_advice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lower/workload.h"
#include "recompute/stage_plan.h"
#include "run/run.h"

/* Ways to need less, in the order in which they are preferred where they cost the same. Each has steps, the gentlest
 * first, and writes the --set assignments that bring a step about, separated by newlines, or nothing where it does not
 * apply. */
typedef void change_write(const struct scenario *scenario, int step, FILE *out);

static void shard_states(const struct scenario *scenario, int step, FILE *out)
{
    if (scenario->strategy.zero <= step && scenario_replicas(scenario) > 1)
        fprintf(out, "strategy.zero=%d\n", step + 1);
}

static void shard_sequence(const struct scenario *scenario, int step, FILE *out)
{
    (void)step;
    if (scenario->strategy.tensor > 1 && !scenario->strategy.sequence_parallel && scenario->model.transformer)
        fputs("strategy.sequence_parallel=true\n", out);
}

static void compute_again(const struct scenario *scenario, int step, FILE *out)
{
    const struct recompute_spec *now = &scenario->memory.recompute;
    bool full = now->mode == RECOMPUTE_FULL;
    const struct { bool applies; const char *recompute; } ways[] = {
        {now->mode < RECOMPUTE_SELECTIVE, "selective"},
        {now->mode < RECOMPUTE_FULL && !scenario->model.stages.count, "{mode: full, share: 0.5}"},
        {!full || now->every > 1 || scenario_recomputes_some(scenario), "full"},
        {now->mode < RECOMPUTE_FULL, "optimal"},
    };

    if (ways[step].applies)
        fprintf(out, "memory.recompute=%s\n", ways[step].recompute);
}

static void move_to_host(const struct scenario *scenario, int step, FILE *out)
{
    static const char *const what[] = {"optimizer", "activations", "weights"};

    if (!scenario_offloads(scenario, OFFLOAD_ACTIVATIONS) && !scenario_offloads(scenario, OFFLOAD_WEIGHTS) &&
        !scenario_offloads(scenario, OFFLOAD_OPTIMIZER) && !isnan(scenario->cluster.host.bandwidth))
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
    int data = scenario->strategy.data, times = 2 << step;
    bool same = data % times == 0;

    if (scenario->strategy.schedule.csv)
        return;
    fprintf(out, "strategy.%s=%d\n", key, times * degree);
    fprintf(out, "strategy.data=%d\n", same ? data / times : data);
    if (same)
        more_micro_batches(scenario, times, out);
}

static void more_tensor(const struct scenario *scenario, int step, FILE *out)
{
    if (scenario->model.transformer)
        multiply_degree(scenario, "tensor", scenario->strategy.tensor, step, out);
}

static void more_pipeline(const struct scenario *scenario, int step, FILE *out)
{
    if (!scenario->model.stages.count)       /* which would be another model */
        multiply_degree(scenario, "pipeline", scenario->strategy.pipeline, step, out);
}

static void more_context(const struct scenario *scenario, int step, FILE *out)
{
    if (scenario->model.transformer)
        multiply_degree(scenario, "context", scenario->strategy.context, step, out);
}

static void more_expert(const struct scenario *scenario, int step, FILE *out)
{
    if (scenario->model.transformer && scenario->model.transformer->experts)
        fprintf(out, "strategy.expert=%d\n", (2 << step) * scenario->strategy.expert);
}

/* Alone all steps are tried, with others the first so many. */
enum { TOGETHER = 3 };
static const struct change { change_write *write; int steps, paired; } changes[] = {
    {shard_states, 3, 3}, {shard_sequence, 1, 1}, {compute_again, 4, 3}, {more_tensor, 3, 2}, {more_pipeline, 3, 2},
    {more_expert, 3, 2},  {more_context, 3, 2},   {move_to_host, 3, 1},  {smaller_micro_batch, 5, 5},
};

/* Up to three changes: a candidate. */
struct candidate {
    char *sets;              /* assignments, a line each */
    double cost;             /* GPU seconds a sample on the ideal engine; INFINITY: does not fit or is not possible */
};

/* Reads the scenario with the assignments; the arena becomes the candidate's. */
static int load_changed(const struct scenario *scenario, const char *sets, struct scenario *changed, struct error *err)
{
    struct arena arena = {0};
    struct node *root = ARENA_ARRAY(&arena, struct node, 1);

    *root = *scenario->node;
    for (const char *line = sets; *line; line += strcspn(line, "\n") + 1)
        if (conf_set(&arena, root, arena_strndup(&arena, line, strcspn(line, "\n")), err)) {
            arena_release(&arena);
            return -1;
        }
    return scenario_read(&arena, root, scenario->name, changed, err);
}

/* Less than what any schedule takes: GPU seconds of a sample's kernels, none of them computed again as a whole. */
static double least_cost(const struct scenario *scenario, const struct stage *stages)
{
    double seconds = 0;

    for (int s = 0; s < plan_global_stages(&scenario->plan); s++)
        seconds += stages[s].work[FORWARD].seconds + stages[s].work[BACKWARD].seconds +
                   (stages[s].plan ? stages[s].plan->chain.recompute : 0);
    return seconds * scenario->strategy.tensor * scenario->strategy.context / scenario->batch.micro;
}

static bool states_fit(const struct scenario *scenario, const struct stage *stages, double limit)
{
    for (int r = 0; r < scenario->plan.stages; r++) {
        struct memory states = memory_states(scenario, stages, r);

        if (memory_total(&states) > limit)
            return false;
    }
    return true;
}

/* Whether the changed scenario fits: its memory follows from the rows of one replica. What would cost `most` or more
 * need not be looked at. */
static bool fits(struct scenario *changed, double limit, double most, struct error *err)
{
    struct measure measure;
    struct lowered lowered = {0};
    struct timeline timeline = {0};
    struct stage *stages;
    bool fit;

    if (stages_build(changed, &stages, err))
        return false;
    if (least_cost(changed, stages) >= most || !states_fit(changed, stages, limit))
        return false;
    measure_init(&measure, ENGINE_IDEAL, &changed->cluster);
    fit = !lower(changed, stages, LOWER_COMPUTE, &measure, &lowered, err);
    if (fit) {
        timeline_init(&timeline, &lowered.program);
        fit = !replay(ENGINE_IDEAL, &lowered.program, &changed->cluster, &timeline, err);
    }
    if (fit) {
        struct memory_peak *peaks = memory_peaks(changed, stages, &timeline);

        for (int r = 0; r < lowered.program.ranks; r++)
            fit &= memory_total(&peaks[r].memory) <= limit;
        free(peaks);
    }
    timeline_release(&timeline);
    lowered_release(&lowered);
    measure_release(&measure);
    return fit;
}

/* What the candidate costs, where that is less than `most`; its collectives are measured alone, which is enough to
 * compare. */
static double cost_of(const struct scenario *scenario, const char *sets, double limit, double most)
{
    struct error err = {0};
    struct scenario changed = {0};
    double cost = INFINITY;

    if (!load_changed(scenario, sets, &changed, &err)) {
        struct run run = {0};

        changed.simulation.engine = ENGINE_IDEAL;
        changed.simulation.collectives = COLLECTIVES_MEASURED;
        if (fits(&changed, limit, most, &err) && !run_simulate(&run, &changed, &err))
            cost = run.metrics.iteration_time * scenario_gpus(&changed) / run.metrics.samples;
        run_release(&run);
    }
    scenario_release(&changed);
    error_release(&err);
    return cost;
}

/* A step of a change. */
struct step { size_t change; int step; };

/* The assignments of some steps, "" where one of them does not apply; the caller frees it. */
static char *sets_of(const struct scenario *scenario, const struct step *steps, int count)
{
    size_t size, before = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);
    bool apply = true;

    for (int i = 0; i < count && apply; i++) {
        changes[steps[i].change].write(scenario, steps[i].step, out);
        fflush(out);
        apply = size > before;
        before = size;
    }
    fclose(out);
    if (!apply)
        text[0] = '\0';
    return text;
}

/* Becomes the best where it fits and costs less; takes the text. */
static void consider(const struct scenario *scenario, char *sets, double limit, struct candidate *best)
{
    double cost = *sets ? cost_of(scenario, sets, limit, best->cost) : INFINITY;

    if (cost < best->cost * (1 - 1e-9)) {
        free(best->sets);
        *best = (struct candidate){sets, cost};
    } else {
        free(sets);
    }
}

/* Looks at all ways to take `wanted` steps of different changes that begin with the `count` first ones. */
static void consider_more(const struct scenario *scenario, struct step *steps, int count, int wanted, double limit,
                          struct candidate *best)
{
    if (count == wanted) {
        consider(scenario, sets_of(scenario, steps, count), limit, best);
        return;
    }
    for (size_t c = count ? steps[count - 1].change + 1 : 0; c < COUNT(changes); c++)
        for (int step = 0; step < (wanted > 1 ? changes[c].paired : changes[c].steps); step++) {
            steps[count] = (struct step){c, step};
            consider_more(scenario, steps, count + 1, wanted, limit, best);
        }
}

/* The cheapest single change that fits, else the cheapest pair or three; sets, freed by the caller, is NULL where none
 * does. */
static struct candidate cheapest(const struct scenario *scenario, double limit)
{
    struct candidate best = {.sets = NULL, .cost = INFINITY};
    struct step steps[TOGETHER];

    for (int wanted = 1; wanted <= TOGETHER && !best.sets; wanted++)
        consider_more(scenario, steps, 0, wanted, limit, &best);
    return best;
}

/* "--set strategy.zero=1 --set memory.recompute=full": what a person can add to the command as it stands, in quotes
 * where a shell would take it apart. */
static const char *advice(struct arena *arena, const struct scenario *scenario, double limit)
{
    struct candidate best = cheapest(scenario, limit);
    const char *text = "";

    if (!best.sets)
        return "no one, two or three of: ZeRO, sequence parallelism, recomputation, higher tensor, pipeline, context "
               "or expert degrees, offloading, smaller micro-batches would make it fit";
    for (char *line = best.sets, *end; *line; line = end + 1) {
        end = line + strcspn(line, "\n");
        const char *quote = memchr(line, '{', (size_t)(end - line)) ? "'" : "";
        text = arena_printf(arena, "%s --set %s%.*s%s", text, quote, (int)(end - line), line, quote);
    }
    free(best.sets);
    return arena_printf(arena, "of the changes that would make it fit the one that costs the least GPU time is%s",
                        text);
}

/* The kinds that hold most, largest first, as far as they make up nine tenths. */
static const char *largest_parts(struct arena *arena, const struct memory *memory)
{
    struct memory left = *memory;
    double total = memory_total(memory), told = 0;
    const char *text = "";

    while (told < 0.9 * total) {
        int most = 0;
        char bytes[48];

        for (int kind = 1; kind < MEMORY_KIND_COUNT; kind++)
            most = left.bytes[kind] > left.bytes[most] ? kind : most;
        text = arena_printf(arena, "%s%s%s %s", text, told > 0 ? ", " : "", memory_kind_names[most],
                            unit_format_short(UNIT_BYTES, left.bytes[most], bytes, sizeof bytes));
        told += left.bytes[most];
        left.bytes[most] = 0;
    }
    return text;
}

int memory_fits_twice(const struct scenario *scenario, bool *fit, struct error *err)
{
    struct scenario changed = {0};
    struct arena arena = {0};
    const char *sets = arena_printf(&arena, "batch.micro=%d\n", 2 * scenario->batch.micro);
    int before = err->count + err->dropped;

    if (node_get(scenario->batch.node, "global"))
        sets = arena_printf(&arena, "%sbatch.global=%d\n", sets, 2 * scenario->batch.global);
    if (!load_changed(scenario, sets, &changed, err))
        *fit = fits(&changed, scenario_room(scenario), INFINITY, err);
    scenario_release(&changed);
    arena_release(&arena);
    return err->count + err->dropped > before ? -1 : 0;
}

void memory_advise(const struct scenario *scenario, struct error *err)
{
    struct arena arena = {0};
    const struct error_message *last = err->count ? &err->messages[err->count - 1] : NULL;

    if (last && last->kind == ERROR_MEMORY && scenario_by_layers(scenario))
        error_memory(err, last->loc, "memory: %s", advice(&arena, scenario, scenario_room(scenario)));
    arena_release(&arena);
}

int memory_check(const struct metrics *metrics, const struct scenario *scenario, struct error *err)
{
    double limit = memory_limit(scenario);
    struct arena arena = {0};
    char need[48], have[48], over[48];

    if (metrics->peak_memory <= limit)
        return 0;
    error_memory(err, scenario->memory.node ? scenario->memory.node->loc : scenario->node->loc,
                 "memory: a GPU of rank %d needs %s and has %s, %s too little (%s); %s; or 'enforce: false' simulates "
                 "it anyway", metrics->peak_rank % scenario->plan.stages,
                 unit_format_short(UNIT_BYTES, metrics->peak_memory, need, sizeof need),
                 unit_format_short(UNIT_BYTES, limit, have, sizeof have),
                 unit_format_short(UNIT_BYTES, metrics->peak_memory - limit, over, sizeof over),
                 largest_parts(&arena, &metrics->memory), advice(&arena, scenario, limit));
    arena_release(&arena);
    return -1;
}
