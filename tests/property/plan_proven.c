/* What a plan proves, against brute force: every combination of random spaces is simulated on its own. No combination that
 * runs and fits is faster than the plan's first, whichever order the lists have. Of an axis with `auto` brute force tries
 * more values than the plan: all that loading takes, and of chunks also what a schedule has if nobody says it. */
#include "plan/plan.h"
#include "random_scenario.h"
#include "report/outcome.h"
#include "results/results.h"
#include "simulated.h"
#include "trials.h"

#include <ftw.h>

enum { AXES = 5, VALUES = 10 };

/* An axis of a random space; `asked`: how a person asks for it, NULL: not at all, so that the plan adds it itself. */
struct axis_values {
    const char *path;
    const char *values[VALUES];      /* that brute force tries; "": the key is left out */
    int count;
    bool named, is_auto;
};
struct random_space {
    char *text;                      /* of the scenario */
    struct axis_values axes[AXES];
    int naxes;
};

/* Brute force: the least time of all that run and fit. */
struct fastest { double seconds; char *sets; int runs; };

static struct axis_values *new_axis(struct random_space *space, const char *path)
{
    struct axis_values *axis = &space->axes[space->naxes++];

    *axis = (struct axis_values){.path = path, .named = true};
    return axis;
}

static bool has_value(const struct axis_values *axis, const char *value)
{
    for (int i = 0; i < axis->count; i++)
        if (!strcmp(axis->values[i], value))
            return true;
    return false;
}

static void add_value(struct axis_values *axis, const char *value)
{
    if (!has_value(axis, value))
        axis->values[axis->count++] = value;
}

/* Schedules that flush; asynchronous ones take other scenarios. */
static const char *flushing_schedule(uint64_t *seed)
{
    return PICK(seed, "1f1b", "gpipe", "interleaved", "zb-v", "zb-h1", "looped-bfs", "interleaved-zb", "chimera", "naive",
                "v-half", "dualpipe-v", "1f1b", "interleaved");
}

static void add_schedules(struct random_space *space, uint64_t *seed)
{
    struct axis_values *axis = new_axis(space, "strategy.schedule");
    int count = PICK_INT(seed, 2, 2, 3);

    while (axis->count < count)
        add_value(axis, flushing_schedule(seed));
}

/* 1 and one or two degrees, some of which divide no layers. */
static void add_pipelines(struct random_space *space, uint64_t *seed)
{
    struct axis_values *axis = new_axis(space, "strategy.pipeline");

    add_value(axis, "1");
    add_value(axis, PICK(seed, "2", "4"));
    if (random_below(seed, 2))
        add_value(axis, PICK(seed, "2", "3", "4"));
}

/* A list, or auto: then all divisors of a node. */
static void add_tensors(struct random_space *space, uint64_t *seed)
{
    static const char *const all[] = {"1", "2", "4", "8"};
    struct axis_values *axis = new_axis(space, "strategy.tensor");

    axis->is_auto = random_below(seed, 3) == 0;
    for (size_t i = 0; i < COUNT(all); i++)
        if (axis->is_auto || random_below(seed, 2) || i == 0)
            add_value(axis, all[i]);
}

/* A list, or nothing: then the plan adds an axis of its own where the schedule is one. */
static void add_chunks(struct random_space *space, uint64_t *seed)
{
    struct axis_values *axis = new_axis(space, "strategy.chunks");

    axis->named = random_below(seed, 2);
    add_value(axis, "1");
    add_value(axis, "2");
    if (!axis->named)
        add_value(axis, "");
    else if (random_below(seed, 2))
        add_value(axis, PICK(seed, "3", "4"));
}

static struct random_space draw(uint64_t *seed)
{
    struct random_space space = {0};
    int nodes = PICK_INT(seed, 1, 1, 2), micro_batches = PICK_INT(seed, 1, 1, 2, 4, 6);

    assert_true(asprintf(&space.text,
        "model: {transformer: {layers: %d, hidden: 1024, heads: 16, kv_heads: %d, sequence: %d, vocabulary: 32000}}\n"
        "cluster: {platform: %s, nodes: %d}\nbatch: {global: %d}\nstrategy: {zero: %d}\n"
        "memory: {precision: mixed-bf16, recompute: %s%s}\nsoftware: %s\n", PICK_INT(seed, 5, 7, 9, 10, 11, 14),
        PICK_INT(seed, 1, 2, 4), PICK_INT(seed, 512, 2048), PICK(seed, "dgx-a100", "dgx-h100", "l40s-pcie"), nodes,
        nodes * 8 * micro_batches, PICK_INT(seed, 0, 1, 2), PICK(seed, "none", "selective", "full"),
        sometimes(seed, 3, ", limit: 6 GB"),
        PICK(seed, "megatron-core", "megatron-bridge", "torchtitan", "deepspeed", "none")) >= 0);
    add_schedules(&space, seed);
    add_pipelines(&space, seed);
    add_tensors(&space, seed);
    add_chunks(&space, seed);
    if (random_below(seed, 4) == 0) {
        struct axis_values *axis = new_axis(&space, "strategy.data");

        add_value(axis, "1");
        add_value(axis, PICK(seed, "2", "4"));
    } else {
        struct axis_values *axis = new_axis(&space, "batch.micro");

        add_value(axis, "1");
        add_value(axis, PICK(seed, "2", "4"));
    }
    return space;
}

static char *written(const char *text)
{
    char *path = strdup("/tmp/dtsim-test-XXXXXX");
    FILE *file = fdopen(mkstemp(path), "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* The scenario with these sets, as 'dtsim run' has it. `release`: what the software's release lacks does not count, as an
 * axis with auto leaves that out. */
static double seconds_of(const char *path, const char *const *sets, size_t nsets, bool release)
{
    struct scenario scenario = {.arena.cache = NULL};
    struct software_lack lack;
    struct error err = {0};
    json_t *row = json_object();
    double seconds = INFINITY;
    struct arena arena = {0};

    if (!load_once(path, sets, nsets, &scenario, &err) &&
        !(release && scenario_in_framework(&arena, &scenario, &lack) == SOFTWARE_LACKS)) {
        assert_int_equal(outcome_simulate(row, &scenario, NULL, &err), 0);
        if (outcome_of(row) == OUTCOME_OK)
            seconds = json_number_value(json_object_get(json_object_get(row, "metrics"), "iteration_time_s"));
    }
    json_decref(row);
    arena_release(&arena);
    scenario_release(&scenario);
    error_release(&err);
    return seconds;
}

static struct fastest force(const struct random_space *space, const char *path)
{
    struct fastest fastest = {.seconds = INFINITY};
    int at[AXES] = {0}, axis;
    bool release = false;

    for (int a = 0; a < space->naxes; a++)
        release |= space->axes[a].is_auto;
    do {
        const char *sets[AXES + 1] = {"simulation.engine=fast"};
        struct arena arena = {0};
        const char *words = "";
        size_t nsets = 1;
        double seconds;

        for (int a = 0; a < space->naxes; a++)
            if (*space->axes[a].values[at[a]]) {
                sets[nsets++] = arena_printf(&arena, "%s=%s", space->axes[a].path, space->axes[a].values[at[a]]);
                words = arena_printf(&arena, "%s %s", words, sets[nsets - 1]);
            }
        seconds = seconds_of(path, sets, nsets, release);
        fastest.runs += isfinite(seconds);
        if (seconds < fastest.seconds) {
            free(fastest.sets);
            fastest.seconds = seconds;
            fastest.sets = strdup(words);
        }
        arena_release(&arena);
        for (axis = 0; axis < space->naxes && ++at[axis] == space->axes[axis].count; axis++)
            at[axis] = 0;
    } while (axis < space->naxes);
    return fastest;
}

/* The axes as options: "strategy.pipeline=1,2". */
static size_t options_of(struct arena *arena, const struct random_space *space, bool reverse, const char **sets)
{
    size_t nsets = 0;

    for (int a = 0; a < space->naxes; a++) {
        const struct axis_values *axis = &space->axes[a];
        const char *text = "";

        for (int i = 0; i < axis->count; i++)
            text = arena_printf(arena, "%s%s%s", text, i ? "," : "", axis->values[reverse ? axis->count - 1 - i : i]);
        if (axis->named)
            sets[nsets++] = arena_printf(arena, "%s=%s", axis->path, axis->is_auto ? "auto" : text);
    }
    return nsets;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static double seconds_of_row(const json_t *row)
{
    return json_number_value(json_object_get(json_object_get(row, "metrics"), "iteration_time_s"));
}

static double fits_of_row(const json_t *row)
{
    const json_t *fits = json_object_get(json_object_get(row, "metrics"), "fits_probability");

    return json_is_number(fits) ? json_number_value(fits) : 1;
}

/* The first shares the fastest one's place. It likely fits if any of the place does, and of those that do it is within a
 * hundredth of the fastest. */
static void check_first(const struct results *results, double fastest)
{
    const json_t *first = results->rows.items[0];
    double likely = INFINITY, own = seconds_of_row(first);
    bool found = false;

    for (size_t i = 0; i < results->rows.count && results_rank_of(results, i).rank == 1; i++) {
        const json_t *row = results->rows.items[i];

        found |= seconds_of_row(row) <= fastest;
        if (fits_of_row(row) >= PLAN_LIKELY)
            likely = fmin(likely, seconds_of_row(row));
    }
    assert_true(found);
    assert_true(isinf(likely) || (fits_of_row(first) >= PLAN_LIKELY && own <= 1.01 * likely));
    assert_true(isfinite(likely) || own <= 1.01 * fastest);
}

/* The time of the plan's fastest; INFINITY: none is feasible. */
static double planned(const struct random_space *random, const char *path, bool reverse, struct arena *arena,
                      const char **words)
{
    char folder[] = "/tmp/dtsim-plan-XXXXXX";
    const char *sets[AXES], *folders = folder;
    struct plan_question question = {.path = path, .sets = sets, .nsets = options_of(arena, random, reverse, sets)};
    struct plan_options options = {.folder = folder, .jobs = 1, .top = 1};
    struct space space;
    struct plan_outcome outcome;
    struct results results = {0};
    struct error err = {0};
    double seconds = INFINITY;
    bool front;

    for (size_t i = 0; i < question.nsets; i++)
        *words = arena_printf(arena, "%s --set %s", i ? *words : "", sets[i]);
    assert_non_null(mkdtemp(folder));
    if (space_load(&question, &space, &err) || plan_search(&space, &options, &outcome, &err))
        fail_at(random->text, &err);
    if (outcome.status == PLAN_NOT_PROVEN)
        fail_msg("%s%s: not proven", random->text, *words);
    if (outcome.status == PLAN_PROVEN) {
        assert_int_equal(results_open(&folders, 1, &results, &err) ||
                         plan_order(&results, &outcome, &space.goal, &front, &err), 0);
        for (size_t i = 0; i < results.rows.count; i++)
            seconds = fmin(seconds, seconds_of_row(results.rows.items[i]));
        check_first(&results, seconds);
        results_release(&results);
    }
    plan_release(&outcome);
    space_release(&space);
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return seconds;
}

/* How many combinations run and fit. */
static int check(uint64_t seed)
{
    struct random_space space = draw(&seed);
    char *path = written(space.text);
    struct fastest fastest = force(&space, path);
    double both[2];

    for (int reverse = 0; reverse < 2; reverse++) {
        struct arena arena = {0};
        const char *words = "";
        double seconds = both[reverse] = planned(&space, path, reverse, &arena, &words);

        if (seconds > fastest.seconds * (1 + 1e-12) || (isinf(seconds) && isfinite(fastest.seconds)))
            fail_msg("%splan%s: %.9g s is proven; %.9g s by%s", space.text, words, seconds, fastest.seconds,
                     fastest.sets);
        arena_release(&arena);
    }
    if (both[0] < both[1] || both[0] > both[1])
        fail_msg("%sthe order of lists decides: %.9g s, %.9g s", space.text, both[0], both[1]);
    unlink(path);
    free(path);
    free(fastest.sets);
    free(space.text);
    return fastest.runs;
}

/* Both orders of each of 60 spaces; a few unless all are asked for. */
static void test_never_beaten(void **state)
{
    int spaces = few_or(ADDRESS_SANITIZER ? 1 : 10, 60), feasible = 0;

    (void)state;
    for (int i = 1; i <= spaces; i++)
        feasible += check((uint64_t)i * 7919) >= 4;
    assert_true(feasible > spaces / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_never_beaten)};

    return cmocka_run_group_tests_name("plan_proven", tests, NULL, NULL);
}
