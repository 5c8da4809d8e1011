/* Every number of a scenario at both of its bounds, on every engine. It is refused with a message, or it simulates with
 * finite results. The engines agree, since nothing contends between two GPUs. A number past a bound is refused. */
#include "simulated.h"

#include "process/pool.h"
#include "sweep/paths.h"
#include "trials.h"

static const double TIMEOUT = 120;

#define STAGES "model: {stages: {forward: 1 s, backward: 2 s, recompute: 1 s, backward_input: 1 s, " \
               "backward_weight: 1 s, parameters: 1 M, activation: 1 MB, boundary: 1 MB}}\n"
#define TRANSFORMER "model: {transformer: {layers: 2, hidden: 128, heads: 2, sequence: 128, vocabulary: 1000}}\n"
#define CLUSTER(nodes, gpus) \
    "cluster: {nodes: " nodes ", gpus_per_node: " gpus ", gpu: a100-40gb, " \
    "inside: {bandwidth: 300 GB/s, latency: 1 us}, network: {bandwidth: 25 GB/s, latency: 5 us}, " \
    "host: {bandwidth: 25 GB/s, latency: 1 us, memory: 100 GB}}\n"
#define REST "batch: {micro_batches: 4}\ncosts: {gpu: roofline}\n"

static const char *const bases[] = {
    STAGES CLUSTER("1", "2") REST "strategy: {pipeline: 2, schedule: gpipe}\n",
    STAGES CLUSTER("2", "1") REST "strategy: {pipeline: 2, schedule: 1f1b}\n",
    STAGES CLUSTER("2", "1") REST "strategy: {data: 2}\n",
    TRANSFORMER CLUSTER("1", "2") REST "strategy: {tensor: 2}\n",
    TRANSFORMER CLUSTER("1", "2") REST "strategy: {data: 2, zero: 1}\nmemory: {recompute: full}\n",
    TRANSFORMER CLUSTER("2", "1") REST "strategy: {pipeline: 2}\nmemory: {recompute: optimal, offload: activations}\n",
    TRANSFORMER CLUSTER("2", "1") REST "strategy: {pipeline: 2}\nmemory: {recompute: optimal, offload: tensors}\n",
    TRANSFORMER CLUSTER("2", "1") REST "strategy: {data: 2, compression: {method: top-k, share: 0.1}}\n",
};

/* A number: its path, its value as text, the scenario that it changes; whether it is past a bound, and so refused. */
struct place { const char *path; char value[64]; const char *base; bool past; };
struct places { struct place *items; size_t count, capacity, keys; };

/* The least and the most of a number that is no count, as its table says or, where it says nothing, unit_plausible. */
static void bounds_of(const struct field *field, double bounds[2])
{
    bool bounded = field->min != 0 || field->max != 0;

    unit_bounds(field->unit, &bounds[0], &bounds[1]);
    bounds[0] = bounded && field->min != 0 ? field->min : bounds[0];
    bounds[1] = bounded && field->max >= field->min && field->max < bounds[1] ? field->max : bounds[1];
}

static void add_place(struct places *places, const struct field *field, const char *path, double value, bool past)
{
    for (size_t b = 0; b < COUNT(bases); b++) {
        struct place *place = GROW(places);

        *place = (struct place){.path = path, .base = bases[b], .past = past};
        if (field->kind == FIELD_INT)
            snprintf(place->value, sizeof place->value, "%.0f", value);
        else
            unit_format(field->unit, value, place->value, sizeof place->value);
    }
}

/* Counts say how large a scenario is: the least of each, and one more than the most, which is refused. */
static void add_count(struct places *places, const struct field *field, const char *path)
{
    bool bounded = field->min != 0 || field->max != 0;

    add_place(places, field, path, bounded ? field->min : 0, false);
    if (bounded && field->min != 0)
        add_place(places, field, path, field->min - 1, true);
    add_place(places, field, path, bounded && field->max >= field->min ? field->max + 1.0 : 2147483648.0, true);
}

static void collect(struct arena *arena, struct places *places)
{
    const char **paths = path_list(arena);

    for (size_t p = 0; paths[p]; p++) {
        const struct field *field = scenario_field(paths[p]);
        double bounds[2];

        places->keys += field && (field->kind == FIELD_INT || field->kind == FIELD_QUANTITY);
        if (field && field->kind == FIELD_INT)
            add_count(places, field, paths[p]);
        if (!field || field->kind != FIELD_QUANTITY)
            continue;
        bounds_of(field, bounds);
        add_place(places, field, paths[p], bounds[0], false);
        add_place(places, field, paths[p], bounds[1], false);
        add_place(places, field, paths[p], bounds[0] / 1.5, true);
        add_place(places, field, paths[p], bounds[1] * 1.5, true);
    }
}

/* The iteration time of the place on the engine; NaN, and the reply says why: it is refused. */
static double time_on(const char *engine, const struct place *place, bool first, FILE *reply)
{
    char *set = xprintf("%s=%s", place->path, place->value), *given = xprintf("simulation.engine=%s", engine);
    const char *const sets[] = {set, given};
    struct arena arena = {.cache = files_once()};
    struct node *root;
    struct error err = {0};
    struct simulated simulated = {0};
    double time = NAN;

    if (conf_parse(&arena, "bounds.yaml", place->base, strlen(place->base), &root, &err))
        fail_at(place->base, &err);
    if (scenario_read(&arena, root, sets, COUNT(sets), "bounds", &simulated.scenario, &err) ||
        simulated_run(&simulated, &err)) {
        if (error_exit_code(&err) == EXIT_UNEXPECTED)
            fprintf(reply, "%s: %s", engine, err.messages[0].text);
        else
            fprintf(reply, "%s%s: %s", first ? "" : engine, first ? "refused" : " refuses", err.messages[0].text);
    } else {
        time = simulated.run.metrics.iteration_time;
        for (size_t i = 0; metric_at(i); i++)
            if (isinf(metric_value(&simulated.run.metrics, metric_at(i))))
                fprintf(reply, "%s is infinite; ", metric_at(i)->name);
        if (!isfinite(time))
            fprintf(reply, "the iteration takes %g s; ", time);
    }
    simulated_release(&simulated);
    error_release(&err);
    arena_release(&arena);
    free(given);
    free(set);
    return time;
}

/* One place on the three engines; the reply says what is wrong, or "ran" or "refused". */
static void try(void *context, uint64_t piece, char *note, FILE *reply)
{
    const struct place *place = &((const struct places *)context)->items[piece];
    static const char *const engines[] = {"ideal", "fast", "simgrid"};
    /* SimGrid, a process each time, tries a sample of the places. */
    const int tried = piece % (uint64_t)one_in() == 0 ? (int)COUNT(engines) : (int)COUNT(engines) - 1;
    double times[COUNT(engines)] = {0};

    (void)note;
    for (int engine = 0; engine < tried; engine++) {
        times[engine] = time_on(engines[engine], place, engine == 0, reply);
        if (isnan(times[engine]))
            return;
    }
    if (fabs(times[0] - times[1]) > 1e-6 * times[0] || fabs(times[0] - times[tried - 1]) > 1e-6 * times[0])
        fprintf(reply, "%.9g s on ideal, %.9g s on fast, %.9g s on %s", times[0], times[1], times[tried - 1],
                engines[tried - 1]);
    else
        fputs("ran", reply);
}

struct outcomes { struct places places; size_t next, ran, refused, wrong; };

static void try_in(void *context, uint64_t piece, char *note, FILE *reply)
{
    try(&((struct outcomes *)context)->places, piece, note, reply);
}

static bool next(void *context, uint64_t *piece)
{
    struct outcomes *outcomes = context;

    *piece = outcomes->next++;
    return *piece < outcomes->places.count;
}

static int tell(struct outcomes *outcomes, uint64_t piece, const char *what)
{
    const struct place *place = &outcomes->places.items[piece];

    outcomes->wrong++;
    print_error("%s: %s: %s, in\n%s", place->path, place->value, what, place->base);
    return 0;
}

static int done(void *context, uint64_t piece, const char *reply, size_t length, struct error *err)
{
    struct outcomes *outcomes = context;
    char text[512];
    bool ran;

    (void)err;
    snprintf(text, sizeof text, "%.*s", (int)length, reply);
    ran = !strcmp(text, "ran");
    outcomes->ran += ran;
    outcomes->refused += !strncmp(text, "refused", 7);
    if (piece < COUNT(bases))            /* these are to run */
        return ran ? 0 : tell(outcomes, piece, text);
    if (outcomes->places.items[piece].past && ran)
        return tell(outcomes, piece, "not refused");
    return ran || !strncmp(text, "refused", 7) ? 0 : tell(outcomes, piece, text);
}

static int lost(void *context, uint64_t piece, enum pool_loss why, const char *note, const struct error *how,
                struct error *err)
{
    (void)note;
    (void)err;
    return tell(context, piece, why == POOL_TIMEOUT ? "takes too long" : how->messages[0].text);
}

static void test_every_number_at_its_bounds(void **state)
{
    struct outcomes outcomes = {.next = 0};
    struct arena arena = {0};
    struct error err = {0};
    const struct pool pool = {.jobs = 2, .timeout = TIMEOUT, .what = "the simulation", .context = &outcomes,
                              .work = try_in, .next = next, .done = done, .lost = lost};

    (void)state;
    for (size_t b = 0; b < COUNT(bases); b++)
        *GROW(&outcomes.places) = (struct place){"simulation.seed", "1", bases[b], false};
    collect(&arena, &outcomes.places);
    assert_true(outcomes.places.count > 1000);
    assert_int_equal(pool_run(&pool, &err), POOL_ALL);
    print_message("%zu keys in %zu places: %zu ran, %zu were refused\n", outcomes.places.keys, outcomes.places.count,
                  outcomes.ran, outcomes.refused);
    assert_int_equal(outcomes.wrong, 0);
    assert_true(outcomes.ran > 400);
    free(outcomes.places.items);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_number_at_its_bounds)};

    return cmocka_run_group_tests_name("bounds", tests, NULL, NULL);
}
