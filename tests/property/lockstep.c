/* lockstep: replicas that share NICs (workload/lockstep.h). Of random scenarios on clusters with few NICs: what the program says of
 * replicas that do the same at the same time is what it says of replicas whose kernels vary, whoever asks for it. */
#include "auto/bound.h"
#include "random_plan.h"
#include "workload/lockstep.h"
#include "simulated.h"
#include "trials.h"

enum { SCENARIOS = 200, OTHER_SEEDS = 100 };

static char *draw(uint64_t *seed)
{
    const char *schedule = PICK(seed, "gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "dualpipe",
                                "dualpipe-v");
    int pipeline = PICK_INT(seed, 1, 2, 4, 8);
    char *text = NULL;

    assert_true(asprintf(&text, "model: {transformer: {layers: 16, hidden: %d, heads: 16, sequence: %d, vocabulary: 32000, "
                         "dropout: 0}}\n"
                         "cluster: {platform: %s, nodes: 0}\nbatch: {micro_batches: %d, micro: %d}\n"
                         "strategy: {schedule: %s, tensor: %d, pipeline: %d, data: %d, zero: %d, all_reduce: %s%s}\n"
                         "memory: {precision: mixed-fp16, enforce: false, recompute: %s}\n",
                         PICK_INT(seed, 1024, 2048), PICK_INT(seed, 512, 1024), PICK(seed, "a2", "pcie-10gbe"),
                         pipeline * PICK_INT(seed, 1, 2, 4, 8), PICK_INT(seed, 1, 2, 4), pipeline > 1 ? schedule : "1f1b",
                         PICK_INT(seed, 1, 1, 2, 4), pipeline, PICK_INT(seed, 2, 2, 4, 8), PICK_INT(seed, 0, 1, 2),
                         PICK(seed, "auto", "ring", "tree"),
                         PICK(seed, "", ", placement: [data, tensor, pipeline]", ", placement: [pipeline, data, tensor]"),
                         PICK(seed, "none", "selective", "full")) >= 0);
    return text;
}

/* What a run says. */
struct said { double time, least, most, lockstep, bound; long long seed; };

/* The scenario with more keys, on engine fast; false: it does not load, or no schedule goes with it. */
static bool ask(const char *text, const char *more, bool numbers, struct said *said)
{
    struct simulated simulated = {0};
    struct error err = {0};
    struct simulate_options options;
    bool known;

    assert_true(asprintf(&simulated.text, "%ssimulation: {engine: fast%s}\n", text, more) >= 0);
    known = !load_text(simulated.text, &simulated.scenario, &err) &&
            !workload_init(&simulated.workload, &simulated.scenario, &err);
    options = numbers ? simulate_numbers_of(&simulated.scenario) : simulate_options_of(&simulated.scenario);
    if (known && simulate(&simulated.workload, options, &simulated.run, &err))
        fail_at(simulated.text, &err);
    if (known) {
        const struct metrics *m = &simulated.run.metrics;
        double sum = 0;

        for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
            sum += m->seconds[kind];
        *said = (struct said){m->iteration_time, m->iteration_time_p10, m->iteration_time_p90, m->lockstep,
                              workload_bound(&simulated.workload, NULL, NULL), simulated.run.seed};
        expect_near("the account of the time", sum, m->iteration_time, simulated.text);
        if (!numbers)        /* charts and tables are of the timeline that the metrics are of */
            expect_near("the timeline", metrics_iteration_time(simulated.run.workload, &simulated.run.timeline),
                        m->iteration_time, simulated.text);
        if (!isnan(m->lockstep) && !isnan(m->expected_error))
            assert_true(m->expected_error * m->iteration_time >=
                        0.999999 * fmax(said->most - said->time, said->time - said->least));
    }
    error_release(&err);
    simulated_release(&simulated);
    return known;
}

/* How far the replays of a result are from it, as a share. */
static double spread(const struct said *said)
{
    return isnan(said->lockstep) ? 0 : fmax(said->most - said->time, said->time - said->least) / said->time;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The median of five runs whose kernels vary a little, of seeds that no result takes. */
static double median(const char *text, const char *jitter)
{
    double times[5];

    for (int i = 0; i < 5; i++) {
        struct said said;
        char more[64];

        snprintf(more, sizeof more, ", jitter: %s, seed: %d", jitter, OTHER_SEEDS + i);
        assert_true(ask(text, more, false, &said));
        times[i] = said.time;
    }
    qsort(times, 5, sizeof *times, by_size);
    return times[2];
}

/* A number that is asked for in two ways is the same, the run that stands for all is one that can be asked for, no bound is
 * above it, and kernels that vary by a part in 10^6 do not take another time: by 2 % and by what the result says itself.
 * A straggler that is slower by a part in 10^4 is further, in few scenarios: a cluster is another one with it. */
static void stands(void **state)
{
    uint64_t seed = 0xA2D71B5C93u;       /* each week: at DTSIM_SEED=202650 a run is 4 % off where kernels vary, which is to be
                                            understood first */
    int done = 0, apart = 0, moved = 0, count = trials(SCENARIOS);

    (void)state;
    while (done < count) {
        struct said said, numbers, straggler, same;
        char *text = draw(&seed), more[96];
        double varied;

        if (!ask(text, "", false, &said)) {
            free(text);
            continue;
        }
        done++;
        assert_true(ask(text, "", true, &numbers));
        if (fabs(numbers.time / said.time - 1) > 1e-9 || isnan(numbers.lockstep) != isnan(said.lockstep))
            fail_msg("%g s, and of its numbers alone %g s, in\n%s", said.time, numbers.time, text);
        if (said.bound > said.time)
            fail_msg("%g s are below the bound %g s in\n%s", said.time, said.bound, text);
        snprintf(more, sizeof more, ", stragglers: [{gpu: %d, slower: 1.0001}]", random_below(&seed, 2));
        assert_true(ask(text, more, false, &straggler));
        if (fabs(straggler.time / said.time - 1) > fmax(0.02, fmax(spread(&said), spread(&straggler)))) {
            print_message("%g s, and %g s with a straggler, in\n%s", said.time, straggler.time, text);
            moved++;
        }
        if (!isnan(said.lockstep)) {
            apart++;
            assert_true(said.least <= said.time && said.time <= said.most);
            snprintf(more, sizeof more, ", jitter: 0.01, seed: %lld", said.seed);
            assert_true(ask(text, more, false, &same));
            expect_near("the run of that seed", same.time, said.time, text);
            varied = median(text, "0.01");
        } else {
            varied = median(text, "1e-6");
        }
        if (fabs(varied / said.time - 1) > fmax(0.02, spread(&said)))
            fail_msg("%g s, and %g s where kernels vary, in\n%s", said.time, varied, text);
        free(text);
    }
    print_message("%d of %d are replayed apart, and %d move with a straggler\n", apart, done, moved);
    assert_true(apart > done / 40);
    assert_true(moved <= 2 + done / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stands)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
