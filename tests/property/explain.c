/* `dtsim explain` against what must hold of it: waits add up to the account of seconds, the critical path is as long as
 * the iteration, and nothing gains more than the path holds of it. */
#include "random_plan.h"

#include <glob.h>

#include "report/explanation.h"
#include "trials.h"

/* A rank's waits are its bubble and all that is exposed, to rounding. */
static void assert_idle(const struct run *run, const char *text)
{
    const struct metrics *metrics = &run->metrics;
    int nranks = run->workload->plan.stages, replicas = run->lowered.alike.replicas;
    struct idle idle;

    idle_init(&idle, run);
    for (int rank = 0; rank < nranks; rank++) {
        double bubble = 0, exposed = 0;

        for (int replica = 0; replica < replicas; replica++) {
            const struct rank_metrics *one = &metrics->ranks[replica * nranks + rank];

            bubble += one->seconds[ACCOUNT_BUBBLE] / replicas;
            exposed += (one->exposed_communication + one->seconds[ACCOUNT_EXPOSED_OFFLOAD]) / replicas;
        }
        for (size_t i = 0; i < idle.count; i++)
            if (idle.items[i].rank == rank) {
                assert_true(idle.items[i].bubble >= 0 && idle.items[i].exposed >= 0);
                assert_true(idle.items[i].on != rank);
                bubble -= idle.items[i].bubble;
                exposed -= idle.items[i].exposed;
            }
        if (fabs(bubble) > 1e-12 * metrics->makespan || fabs(exposed) > 1e-12 * metrics->makespan)
            fail_msg("%s: rank %d: %g s of bubble and %g s exposed are not explained", text, rank, bubble, exposed);
    }
    idle_release(&idle);
}

/* Pieces follow one another without a gap from 0 to the makespan, so that its length is exactly that; each is where its
 * operation ran, or at most where that kept its lane. */
static void assert_path(const struct run *run, const char *text)
{
    const struct timeline *timeline = &run->timeline;
    struct critical_path path;
    double at = 0, kinds = 0, ranks = 0;

    critical_path_init(&path, run);
    for (size_t i = 0; i < path.pieces.count; i++) {
        const struct path_piece *piece = &path.pieces.items[i];

        if (piece->from != at || piece->from != timeline->start[piece->op] || !(piece->to > at) ||
            piece->to > timeline->end[piece->op])
            fail_msg("%s: piece %zu of the path is from %.17g to %.17g, after %.17g", text, i, piece->from, piece->to,
                     at);
        at = piece->to;
    }
    assert_true(at == run->metrics.makespan);
    for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++) {
        kinds += path.seconds[kind];
        for (int rank = 0; rank < path.nranks; rank++)
            ranks += path.ranks[rank][kind];
    }
    expect_near("the path by kind", kinds, run->metrics.iteration_time, text);
    expect_near("the path by rank", ranks, run->metrics.iteration_time, text);
    assert_true(path.seconds[ACCOUNT_BUBBLE] == 0);
    critical_path_release(&path);
}

/* No gain is more than what the path holds: on the ideal engine, where operations take what they take, and where rows
 * and the measure of an iteration stay what they are. */
static void assert_gains(const struct run *run, struct simulate_options options, const char *text)
{
    struct explanation explanation;
    struct error err = {0};
    double whole = run->metrics.iteration_time;

    assert_int_equal(explanation_init(&explanation, run, options, &err), 0);
    assert_true(explanation.gains.count >= 1);
    for (size_t i = 0; i < explanation.gains.count; i++) {
        const struct gain *gain = &explanation.gains.items[i];

        assert_true(i == 0 || gain[-1].time <= gain->time);
        if (whole - gain->time > gain->held + 1e-9 * whole)
            fail_msg("%s: %s gains %.9g s, of which the critical path holds %.9g s", text, gain->name,
                     whole - gain->time, gain->held);
        assert_true(!gain->sets || gain->sets_time < whole);
    }
    explanation_release(&explanation);
}

/* What holds for a scenario that has been loaded; `gains`: for its gains, too, which take many simulations. */
static void check(struct simulated *simulated, const char *text, bool gains)
{
    struct error err = {0};
    struct simulate_options options = simulate_options_of(&simulated->scenario);

    options.causes = options.engine == ENGINE_IDEAL;
    if (simulate(simulated_workload(simulated), options, &simulated->run, &err))
        fail_at(text, &err);
    assert_idle(&simulated->run, text);
    assert_path(&simulated->run, text);
    if (gains && options.engine == ENGINE_IDEAL && !simulated->run.lowered.program.choices.count &&
        !scenario_schedule(&simulated->scenario)->asynchronous)
        assert_gains(&simulated->run, options, text);
    simulated_release(simulated);
}

static void check_scenario(const char *path, const char *engine, bool gains)
{
    const char *const sets[] = {engine};
    struct simulated simulated = {0};
    struct error err = {0};

    if (load_once(path, sets, 1, &simulated.scenario, &err))
        fail_at(path, &err);
    check(&simulated, path, gains);
}

static void check_all(const char *engine)
{
    glob_t files = {0};

    assert_int_equal(glob(DTSIM_SOURCE_DIR "/scenarios/tour/*.yaml", 0, NULL, &files), 0);
    assert_int_equal(glob(DTSIM_SOURCE_DIR "/scenarios/methods/*.yaml", GLOB_APPEND, NULL, &files), 0);
    assert_true(files.gl_pathc > 30);
    for (size_t i = 0; i < files.gl_pathc; i++)
        check_scenario(files.gl_pathv[i], engine, (i + seed_base()) % (size_t)one_in() == 0);
    globfree(&files);
}

static void test_ideal(void **state)
{
    (void)state;
    check_all("simulation.engine=ideal");
}

static void test_simgrid(void **state)
{
    (void)state;
    check_all("simulation.engine=simgrid");
}

static void test_random_plans(void **state)
{
    enum { PLANS = 120 };
    uint64_t seed = seed_from(5);

    (void)state;
    for (int i = 0; i < PLANS; i++) {
        struct random_plan plan = random_plan(&seed);
        struct simulated simulated;
        char *text;

        if (i % 2)
            any_schedule(&plan, &seed);
        if (i % 4)
            plan.engine = "ideal";
        text = plan_yaml(&plan);
        simulated_load(&simulated, "%s", text);
        check(&simulated, text, true);
        free(text);
    }
}

/* On a free network each stage of GPipe and 1F1B waits (P-1) times as long as a micro-batch takes it: the last for the
 * first activations and for the end, the first for gradients. */
static void test_closed_forms(void **state)
{
    static const char *const schedules[] = {"gpipe", "1f1b"};

    (void)state;
    for (size_t k = 0; k < COUNT(schedules); k++)
        for (int p = 1; p <= 8; p++)
            for (int m = 1; m <= 17; m += 4) {
                struct simulated simulated;
                struct idle idle;

                run_text(&simulated, "model: {stages: {forward: 1 s, backward: 2 s}}\ncluster: ideal\n"
                         "batch: {micro_batches: %d}\nstrategy: {schedule: %s, pipeline: %d}\n", m, schedules[k], p);
                idle_init(&idle, &simulated.run);
                for (int rank = 0; rank < p; rank++) {
                    double sum = 0, fill = 0, gradients = 0, end = 0;

                    for (size_t i = 0; i < idle.count; i++) {
                        const struct idle_wait *wait = &idle.items[i];

                        if (wait->rank != rank)
                            continue;
                        sum += wait->bubble + wait->exposed;
                        fill += wait->cause == IDLE_ACTIVATION ? wait->bubble : 0;
                        gradients += wait->cause == IDLE_GRADIENT ? wait->bubble : 0;
                        end += wait->cause == IDLE_END ? wait->bubble : 0;
                        assert_true(wait->cause != IDLE_ACTIVATION || wait->on == rank - 1);
                        assert_true(wait->cause != IDLE_GRADIENT || wait->on == rank + 1);
                    }
                    expect_near("idle", sum / simulated.run.metrics.iteration_time, (p - 1.0) / (m + p - 1),
                                simulated.text);
                    expect_near("fill", fill, rank, simulated.text);
                    expect_near("drain", end, 2 * rank, simulated.text);
                    expect_near("gradients", gradients, 3.0 * (p - 1 - rank), simulated.text);
                }
                idle_release(&idle);
                simulated_release(&simulated);
            }
}

/* The path of GPipe is the way down, all micro-batches of a stage, and the way back; what waits gains (P-1) of them. */
static void test_gpipe_path(void **state)
{
    enum { P = 4, M = 8 };
    struct simulated simulated;
    struct simulate_options options;
    struct explanation explanation;
    struct error err = {0};

    (void)state;
    run_text(&simulated, "model: {stages: {forward: 1 s, backward: 2 s}}\ncluster: ideal\n"
             "batch: {micro_batches: %d}\nstrategy: {schedule: gpipe, pipeline: %d}\n", M, P);
    options = simulate_options_of(&simulated.scenario);
    assert_int_equal(explanation_init(&explanation, &simulated.run, options, &err), 0);
    expect_near("forwards", explanation.path.seconds[ACCOUNT_FORWARD], M + P - 1, simulated.text);
    expect_near("backwards", explanation.path.seconds[ACCOUNT_BACKWARD], 2 * (M + P - 1), simulated.text);
    for (size_t i = 0; i < explanation.gains.count; i++) {
        const struct gain *gain = &explanation.gains.items[i];

        if (!strcmp(gain->name, "no_bubble"))
            expect_near("without a bubble", gain->time, 3 * M, simulated.text);
        if (!strcmp(gain->name, "gpu_twice_as_fast"))
            expect_near("twice as fast", gain->time, 1.5 * (M + P - 1), simulated.text);
    }
    explanation_release(&explanation);
    simulated_release(&simulated);
}

/* Kernels of all sources take 1/speed: on a free network, with launches recorded, so does the iteration. */
static void test_speed(void **state)
{
    static const char *const models[] = {
        "model: {preset: gpt2-124m}\ncluster: {platform: ideal, gpu: a100-80gb}\nbatch: {global: 8, micro: 1}\n"
        "strategy: {schedule: zb-h1, pipeline: 4, data: 1}\n",
        "model: {preset: vgg16}\ncluster: {platform: ideal, gpu: a100-80gb}\nbatch: {global: 8, micro: 1}\n"
        "strategy: {schedule: gpipe, pipeline: 4, data: 1}\nmemory: {recompute: full}\n",
        "model: {layers: [{name: a, forward: 1 ms, backward: 3 ms}, {name: b, forward: 2 ms}]}\ncluster: ideal\n"
        "batch: {global: 8, micro: 1}\nstrategy: {schedule: 1f1b, pipeline: 2, data: 1}\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(models); i++) {
        struct simulated plain, fast;

        run_text(&plain, "%scosts: {host_launch: 0 s}\n", models[i]);
        run_text(&fast, "%scosts: {host_launch: 0 s, speed: 4}\n", models[i]);
        expect_near("iteration time", fast.run.metrics.iteration_time, plain.run.metrics.iteration_time / 4,
                    fast.text);
        expect_near("extrapolated", fast.run.metrics.extrapolated, plain.run.metrics.extrapolated / 4, fast.text);
        simulated_release(&plain);
        simulated_release(&fast);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ideal), cmocka_unit_test(test_simgrid), cmocka_unit_test(test_random_plans),
        cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_gpipe_path), cmocka_unit_test(test_speed),
    };

    return cmocka_run_group_tests_name("explain", tests, NULL, NULL);
}
