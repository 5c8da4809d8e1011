#include "memory_advice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "result.h"

/* Ways to need less, in the order in which they are preferred where they cost the same. Each writes the --set
 * assignments that bring it about, separated by newlines, or nothing where it does not apply. */
typedef void change_write(const struct scenario *scenario, FILE *out);

static void shard_optimizer(const struct scenario *scenario, FILE *out)
{
    if (scenario->strategy.zero < 1 && scenario_replicas(scenario) > 1)
        fputs("strategy.zero=1\n", out);
}

static void shard_gradients(const struct scenario *scenario, FILE *out)
{
    if (scenario->strategy.zero < 2 && scenario_replicas(scenario) > 1)
        fputs("strategy.zero=2\n", out);
}

static void shard_parameters(const struct scenario *scenario, FILE *out)
{
    if (scenario->strategy.zero < 3 && scenario_replicas(scenario) > 1)
        fputs("strategy.zero=3\n", out);
}

static void shard_sequence(const struct scenario *scenario, FILE *out)
{
    if (scenario->strategy.tensor > 1 && !scenario->strategy.sequence_parallel && scenario->model.transformer)
        fputs("strategy.sequence_parallel=true\n", out);
}

static void recompute_core(const struct scenario *scenario, FILE *out)
{
    if (scenario->memory.recompute.mode == RECOMPUTE_NONE && scenario->model.transformer)
        fputs("memory.recompute=selective\n", out);
}

static void recompute_all(const struct scenario *scenario, FILE *out)
{
    if (scenario->memory.recompute.mode != RECOMPUTE_FULL || scenario->memory.recompute.every > 1)
        fputs("memory.recompute=full\n", out);
}

/* As many samples an iteration, where micro-batches are given and not samples. */
static void more_micro_batches(const struct scenario *scenario, FILE *out)
{
    if (node_get(scenario->batch.node, "micro_batches"))
        fprintf(out, "batch.micro_batches=%d\n", 2 * scenario->batch.micro_batches);
}

static void smaller_micro_batch(const struct scenario *scenario, FILE *out)
{
    if (scenario->batch.micro % 2)
        return;
    fprintf(out, "batch.micro=%d\n", scenario->batch.micro / 2);
    more_micro_batches(scenario, out);
}

/* The other degree doubles: of the same GPUs where replicas are left, else of twice as many. */
static void double_degree(const struct scenario *scenario, const char *key, int degree, FILE *out)
{
    int data = scenario->strategy.data;

    if (scenario->strategy.schedule.csv)
        return;
    fprintf(out, "strategy.%s=%d\n", key, 2 * degree);
    fprintf(out, "strategy.data=%d\n", data % 2 ? data : data / 2);
    if (data % 2 == 0)
        more_micro_batches(scenario, out);
}

static void more_tensor(const struct scenario *scenario, FILE *out)
{
    if (scenario->model.transformer)
        double_degree(scenario, "tensor", scenario->strategy.tensor, out);
}

static void more_pipeline(const struct scenario *scenario, FILE *out)
{
    if (!scenario->model.stages.count)       /* which would be another model */
        double_degree(scenario, "pipeline", scenario->strategy.pipeline, out);
}

static change_write *const changes[] = {
    shard_optimizer, shard_sequence, shard_gradients, recompute_core,      more_tensor,
    more_pipeline,   recompute_all,  shard_parameters, smaller_micro_batch,
};

/* One or two changes: a candidate. */
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

/* Whether the changed scenario fits: its memory follows from the rows of one replica. */
static bool fits(struct scenario *changed, double limit, struct error *err)
{
    struct measure measure;
    struct lowered lowered = {0};
    struct timeline timeline = {0};
    struct stage *stages;
    bool fit = !stages_build(changed, &stages, err);

    if (!fit)
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

/* What the candidate costs; its collectives are measured alone, which is enough to compare. */
static double cost_of(const struct scenario *scenario, const char *sets, double limit)
{
    struct error err = {0};
    struct scenario changed = {0};
    double cost = INFINITY;

    if (!load_changed(scenario, sets, &changed, &err)) {
        struct run run = {0};

        changed.simulation.engine = ENGINE_IDEAL;
        changed.simulation.collectives = COLLECTIVES_MEASURED;
        if (fits(&changed, limit, &err) && !run_simulate(&run, &changed, &err))
            cost = run.metrics.iteration_time * scenario_gpus(&changed) / run.metrics.samples;
        run_release(&run);
    }
    scenario_release(&changed);
    error_release(&err);
    return cost;
}

/* The assignments of one or two changes, "" where one of them does not apply; the caller frees it. */
static char *sets_of(const struct scenario *scenario, size_t first, size_t second)
{
    size_t size, before;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);

    changes[first](scenario, out);
    fflush(out);
    before = size;
    if (second != first && before)
        changes[second](scenario, out);
    fclose(out);
    if (second != first && size == before)
        text[0] = '\0';
    return text;
}

/* The cheapest of all single changes that fits, else of all pairs; sets is "" where none does, freed by the caller. */
static struct candidate cheapest(const struct scenario *scenario, double limit)
{
    struct candidate best = {.sets = NULL, .cost = INFINITY};

    for (int pairs = 0; pairs < 2 && !best.sets; pairs++)
        for (size_t i = 0; i < COUNT(changes); i++)
            for (size_t k = pairs ? i + 1 : i; k < (pairs ? COUNT(changes) : i + 1); k++) {
                char *sets = sets_of(scenario, i, k);
                double cost = *sets ? cost_of(scenario, sets, limit) : INFINITY;

                if (cost < best.cost * (1 - 1e-9)) {
                    free(best.sets);
                    best = (struct candidate){sets, cost};
                } else {
                    free(sets);
                }
            }
    return best;
}

/* "--set strategy.zero=1 --set memory.recompute=full": what a person can add to the command as it stands. */
static const char *advice(struct arena *arena, const struct scenario *scenario, double limit)
{
    struct candidate best = cheapest(scenario, limit);
    const char *text = "";

    if (!best.sets)
        return "no one or two of: ZeRO, sequence parallelism, recomputation, twice the tensor or pipeline degree, half "
               "the micro-batch would make it fit";
    for (char *line = best.sets, *end; *line; line = end + 1) {
        end = line + strcspn(line, "\n");
        text = arena_printf(arena, "%s --set %.*s", text, (int)(end - line), line);
    }
    free(best.sets);
    return arena_printf(arena, "of the changes that would make it fit the cheapest is%s", text);
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
        *fit = fits(&changed, scenario_room(scenario), err);
    scenario_release(&changed);
    arena_release(&arena);
    return err->count + err->dropped > before ? -1 : 0;
}

int memory_check(const struct metrics *metrics, const struct scenario *scenario, struct error *err)
{
    double limit = memory_limit(scenario);
    struct arena arena = {0};
    char need[48], have[48], over[48];

    if (metrics->peak_memory <= limit)
        return 0;
    error_add(err, EXIT_INFEASIBLE, scenario->memory.node ? scenario->memory.node->loc : scenario->node->loc,
              "memory: a GPU of rank %d needs %s and has %s, %s too little (%s); %s; or 'enforce: false' simulates it "
              "anyway", metrics->peak_rank % scenario->plan.stages,
              unit_format_short(UNIT_BYTES, metrics->peak_memory, need, sizeof need),
              unit_format_short(UNIT_BYTES, limit, have, sizeof have),
              unit_format_short(UNIT_BYTES, metrics->peak_memory - limit, over, sizeof over),
              largest_parts(&arena, &metrics->memory), advice(&arena, scenario, limit));
    arena_release(&arena);
    return -1;
}
