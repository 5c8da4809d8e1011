/* A training of days: exact without failures, by the closed form with them, and the same whoever computes it. */
#include "train/closed_form.h"
#include "trained.h"

enum { TRIALS = 1000 };

static const struct training_options usual = {TRIALS, 7, 1};

static void test_days_without_failures(void **state)
{
    struct trained plain, kept;

    (void)state;
    train_text(&plain, "steps: 1234567", usual);
    assert_true(plain.training.days.mean * 86400 == 1234567 * 3.0);
    assert_true(plain.training.goodput.mean == 1 && plain.training.days.p10 == plain.training.days.p90);
    trained_release(&plain);
    /* checkpoints after steps 100, ..., 1000 and the last one; validations after 400 and 800 */
    train_text(&kept,
               "steps: 1050, checkpoint: {every: 100 steps, block: 20 s}, validation: {every: 400 steps, time: 7 s}",
               usual);
    assert_true(kept.training.course.checkpoints == 11);
    assert_true(fabs(kept.training.days.mean * 86400 - (1050 * 3 + 11 * 20 + 2 * 7)) < 1e-9);
    trained_release(&kept);
}

/* Stalls and recoveries of the unit test's closed forms, in trainings of about 600 failures. The mean is within 3
 * standard errors of the form, and near it; no interval 20 % away is better by more than these errors. */
static void test_closed_form(void **state)
{
    static const struct { double stall, recovery, mtbf, exact; } cases[] = {
        {20, 420, 11134.8, 0.90641}, {300, 600, 51923.1, 0.88602}, {40, 1800, 604800, 0.98561},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        double rate = 86400 / cases[i].mtbf, goodput[3];
        static const double factors[] = {1, 0.5, 2};

        for (size_t f = 0; f < COUNT(factors); f++) {
            double every = factors[f] * closed_form_exact(cases[i].stall, cases[i].mtbf), closed;
            char *train = xprintf(
                "steps: %.0f, failures: {per_node_day: %.17g}, checkpoint: {every: %.17g s, block: %g s}, "
                "restart: {detect: %g s, replace: 200 s, init: 100 s, load: 20 s}",
                200 * cases[i].mtbf, rate, every, cases[i].stall, cases[i].recovery - 320);
            struct trained trained;
            const struct training *training = &trained.training;

            train_text(&trained, train, usual);
            closed = training->course.useful / training->expected_wall;
            goodput[f] = training->goodput.mean;
            assert_true(fabs(goodput[f] - closed) < 3 * training->goodput_error && fabs(goodput[f] - closed) < 0.0005);
            assert_true(fabs(closed - training->chosen.goodput) < 1e-4);
            assert_true(f || fabs(closed - cases[i].exact) < 1e-4);
            trained_release(&trained);
            free(train);
        }
        assert_true(goodput[0] > goodput[1] && goodput[0] > goodput[2]);
    }
}

/* The closed form of checkpoints that are written while the training goes on (most of the time until the next one), of
 * several causes, and of validations. */
static void test_closed_form_asynchronous(void **state)
{
    struct trained trained;
    const struct training *training = &trained.training;

    (void)state;
    train_text(
        &trained,
        "steps: 1000000, failures: {causes: [{name: node, per_node_day: 40}, {name: hang, per_node_day: 30, "
        "node: false, detect: 10 min}]}, checkpoint: {every: 200 steps, block: 5 s, write: 1 GB/s, bytes: 550 GB, "
        "mode: "
        "async}, restart: {detect: 60 s, replace: 1 min, init: 2 min, load: 10 s}, validation: {every: 1000 steps, "
        "time: 60 s}",
        (struct training_options){300, 7, 1});
    assert_true(training->cost.write == 555);
    assert_true(fabs(training->goodput.mean - training->course.useful / training->expected_wall) <
                3 * training->goodput_error);
    assert_true(training->goodput_error < 1e-3);
    trained_release(&trained);
}

/* The times of every trial add up, and quantiles are in order. */
static void test_conservation(void **state)
{
    static const char *const trains[] = {
        "spares: {nodes: 1, repair: 1 h}",
        "spares: {nodes: 1, repair: 2 h, warm: true}",
        "spares: {nodes: 1, empty: stop}",
        "validation: {every: 7 steps, time: 1 s}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(trains); i++) {
        char *train = xprintf(
            "steps: 20000, failures: {per_node_day: 8, shape: 0.8}, checkpoint: {every: 5 min, block: 9 s}, "
            "restart: {detect: 5 min, replace: 5 min, init: 1 min, load: 20 s}, %s",
            trains[i]);
        struct trained trained;
        const struct training *training = &trained.training;
        size_t ended = 0;

        train_text(&trained, train, usual);
        for (size_t k = 0; k < TRIALS; k++) {
            const struct trial *trial = &training->trials[k];
            double sum = training->course.end;

            for (int loss = 0; loss < LOSS_COUNT; loss++) {
                assert_true(trial->losses[loss] >= 0);
                sum += trial->losses[loss];
            }
            assert_true(trial->end != TRIAL_FINISHED || fabs(sum - trial->wall) <= 1e-12 * trial->wall);
            assert_true(trial->nodes_lost <= trial->failures);
        }
        for (int end = 0; end <= TRIAL_STUCK; end++)
            ended += training->ended[end];
        assert_int_equal(ended, TRIALS);
        assert_true(training->ended[TRIAL_STOPPED] == 0 || i == 2);
        assert_true(isnan(training->days.mean) || (training->days.p10 <= training->days.p50 &&
                                                   training->days.p50 <= training->days.p90));
        trained_release(&trained);
        free(train);
    }
}

/* More processes, more trials: trial k of a seed stays what it is; another seed has other failures. */
static void test_the_same_trials(void **state)
{
    static const char train[] = "steps: 50000, failures: {per_node_day: 8}, checkpoint: {every: auto, block: 9 s}, "
                                "restart: {detect: 5 min, replace: 5 min, init: 1 min, load: 20 s}";
    struct trained all, two, few, other;

    (void)state;
    train_text(&all, train, usual);
    train_text(&two, train, (struct training_options){TRIALS, 7, 2});
    train_text(&few, train, (struct training_options){10, 7, 1});
    train_text(&other, train, (struct training_options){10, 8, 1});
    assert_memory_equal(all.training.trials, two.training.trials, TRIALS * sizeof(struct trial));
    assert_memory_equal(all.training.trials, few.training.trials, 10 * sizeof(struct trial));
    assert_true(all.training.trials[0].wall != other.training.trials[0].wall);
    trained_release(&all);
    trained_release(&two);
    trained_release(&few);
    trained_release(&other);
}

/* (S / S_min - 1) (E / E_min - 1) = 1, of steps S and samples E at any batch; E_min = 1e6 and S_min = E_min / 500. */
static void test_target(void **state)
{
    (void)state;
    for (int batch = 10; batch <= 10000; batch *= 10) {
        char *text = xprintf(
            "model: {stages: {forward: 1 s, backward: 2 s}}\ncluster: ideal\nbatch: {micro_batches: 1, micro: %d}\n"
            "train: {target: {samples: 1e6, critical_batch: 500}}\n",
            batch);
        struct trained trained;
        double steps, samples;

        train_whole(&trained, text, usual);
        steps = trained.training.course.steps;
        samples = trained.training.samples;
        assert_true(fabs((steps / 2000 - 1) * (samples / 1e6 - 1) - 1) < 0.02);
        trained_release(&trained);
        free(text);
    }
}

/* The mean times between failures that were published: of 16,384 GPUs of RSC-1 1.80 h (projected), of 131,072 0.23 h;
 * of Llama 3 one each 3.09 h. */
static void test_published_rates(void **state)
{
    static const struct { const char *source; int nodes; double hours; } cases[] = {
        {"rsc-1", 2048, 1.80}, {"rsc-1", 16384, 0.225}, {"llama3", 2048, 3.093}, {"bloom", 48, 168},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = xprintf(
            "model: {stages: {forward: 1 s, backward: 2 s}}\ncluster: {nodes: %d, gpus_per_node: 1, inside: {"
            "bandwidth: 1 GB/s, latency: 0}, network: {bandwidth: 1 GB/s, latency: 0}}\nbatch: {micro_batches: 1}\n"
            "train: {steps: 1000, failures: {source: %s}, checkpoint: {every: auto, block: 1 s}, restart: {detect: "
            "1 s, replace: 1 s, init: 1 s, load: 1 s}}\n",
            cases[i].nodes, cases[i].source);
        struct trained trained;

        train_whole(&trained, text, (struct training_options){10, 1, 1});
        assert_true(fabs(trained.training.mtbf / 3600 / cases[i].hours - 1) < 0.005);
        trained_release(&trained);
        free(text);
    }
}

/* A trace of a node for each of the 4 that train, and of 2 that are idle: 4 nodes wait from 100 s on until 2 of 6 are
 * lost, all of which train in 6 of 15 cases and none in 1 (the idle two). */
static void test_trace(void **state)
{
    static const char rows[] = "time_s,change\n0,3\n100,1\n700,2\n900,-2\n";
    char path[] = "/tmp/dtsim-trace-XXXXXX", *text;
    struct trained trained;
    const struct training *training = &trained.training;
    int fd = mkstemp(path), untouched = 0;

    (void)state;
    assert_true(fd >= 0 && write(fd, rows, strlen(rows)) == (ssize_t)strlen(rows) && close(fd) == 0);
    text = xprintf(
        "model: {stages: {forward: 1 s, backward: 2 s}}\ncluster: {nodes: 4, gpus_per_node: 1, inside: {bandwidth: "
        "1 GB/s, latency: 0}, network: {bandwidth: 1 GB/s, latency: 0}}\nbatch: {micro_batches: 1}\n"
        "train: {steps: 1000, failures: {trace: %s}, checkpoint: {every: 20 steps, block: 1 s}, restart: {detect: 10 "
        "s, "
        "replace: 5 s, init: 3 s, load: 2 s}}\n",
        path);
    train_whole(&trained, text, usual);
    for (size_t i = 0; i < TRIALS; i++) {
        const struct trial *trial = &training->trials[i];

        assert_true(trial->end == TRIAL_FINISHED && trial->losses[LOSS_WAITING] == 100);
        assert_true(trial->failures == (trial->nodes_lost > 0) && trial->nodes_lost <= 2);
        assert_true(fabs(trial->wall - 3150 - (trial->failures > 0 ? 20 + trial->losses[LOSS_WORK] : 0)) < 1e-9);
        untouched += trial->failures == 0;
    }
    assert_true(untouched > 1000 / 15 - 30 && untouched < 1000 / 15 + 30);
    trained_release(&trained);
    free(text);
    unlink(path);
}

/* Checkpoints in memory: recoveries lose a whole group as often as the closed form says of the failures that come into
 * another one's recovery; with all in the storage too they lose less work. */
static void test_memory(void **state)
{
    struct trained bare, stored;
    const char *checkpoint = "{every: 20 steps, block: 1 s, bytes: 1 GB, mode: memory%s}";
    double within;

    (void)state;
    for (int i = 0; i < 2; i++) {
        char *keep = xprintf("%s", i ? ", stored: 4, write: 1 GB/s" : ""), *text = xprintf(checkpoint, keep);
        char *whole = xprintf(
            "model: {stages: {forward: 1 s, backward: 2 s}}\ncluster: {nodes: 16, gpus_per_node: 1, inside: {"
            "bandwidth: 1 GB/s, latency: 0}, network: {bandwidth: 1 GB/s, latency: 0}}\nbatch: {micro_batches: "
            "1}\ntrain: {steps: 20000, failures: {per_node_day: 5}, checkpoint: %s, restart: {detect: 60 s, "
            "replace: 30 s, init: 9 s, load: 1 s}}\n",
            text);

        train_whole(i ? &stored : &bare, whole, usual);
        free(keep);
        free(text);
        free(whole);
    }
    /* of all failures the share 1 - exp(-100 s / M) is followed by another one within its recovery, of the other node
     * of the group in 1 of 16 cases */
    within = (1 - exp(-100 / bare.training.mtbf)) / 16;
    assert_true(fabs(bare.training.memory_lost / bare.training.failed / within - 1) < 0.1);
    assert_true(isnan(bare.training.expected_wall) && bare.training.ended[TRIAL_STUCK] == 0);
    assert_true(stored.training.losses[LOSS_WORK] < bare.training.losses[LOSS_WORK]);
    trained_release(&bare);
    trained_release(&stored);
}

struct heard { double time, lost; size_t failures, resumed, ends; };

static void hear(void *context, const struct trial_event *event)
{
    struct heard *heard = context;

    assert_true(event->time >= heard->time && event->steps_lost >= 0 && event->steps_lost <= 100);
    heard->time = event->time;
    heard->failures += event->kind == EVENT_FAILURE;
    heard->resumed += event->kind == EVENT_RESUMED;
    heard->ends += event->kind == EVENT_FINISHED;
}

/* Events come in order; each recovery follows a failure; a failure loses at most the steps between two checkpoints. */
static void test_events(void **state)
{
    struct trained trained;
    struct trial_rules rules;
    struct heard heard = {0};
    struct trial trial;

    (void)state;
    train_text(&trained, "steps: 50000, failures: {per_node_day: 20}, checkpoint: {every: 100 steps, block: 9 s}, "
               "restart: {detect: 5 min, replace: 5 min, init: 1 min, load: 20 s}", usual);
    rules = training_rules(&trained.training);
    trial = trial_run(&rules, 0, hear, &heard);
    assert_true(trial.wall == trained.training.trials[0].wall);
    assert_true(heard.failures == (size_t)trial.failures && heard.resumed > 0 && heard.resumed <= heard.failures);
    assert_int_equal(heard.ends, 1);
    assert_true(fabs(heard.time - trial.wall) < 1e-6);
    trained_release(&trained);
}

/* Times of a Weibull distribution have the same mean as times of the exponential one. */
static void test_random_failures(void **state)
{
    static const double shapes[] = {0.5, 0.7, 1, 2};

    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        struct failures failures = {.shape = shapes[i]};
        struct random_failures random = {.seed = 3};
        double sum = 0;

        for (int k = 0; k < 200000; k++) {
            random_failures_next(&random, &failures);
            sum += random.left;
        }
        assert_true(fabs(sum / 200000 - 1) < 0.02);
    }
}

/* `dtsim help result` explains every key of a training. */
static void test_keys(void **state)
{
    struct trained trained;
    json_t *json;
    const char *key;
    json_t *value;
    size_t explained = 0;
    double shares = 0;

    (void)state;
    train_text(&trained,
               "steps: 100000, failures: {per_node_day: 8}, checkpoint: {every: 5 min, block: 9 s}, restart: {detect: "
               "5 min, replace: 5 min, init: 1 min, load: 20 s}, validation: {every: 7 steps, time: 1 s}",
               usual);
    json = view_json(&training_view, &trained.training);
    json_object_foreach(json_object_get(json, "time_shares"), key, value)
        shares += json_real_value(value);
    assert_true(fabs(shares - 1) < 1e-12);
    json_object_foreach(json, key, value) {
        explained++;
    }
    assert_true(explained > 40);
    json_decref(json);
    trained_release(&trained);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_days_without_failures), cmocka_unit_test(test_closed_form),
        cmocka_unit_test(test_closed_form_asynchronous), cmocka_unit_test(test_conservation),
        cmocka_unit_test(test_the_same_trials), cmocka_unit_test(test_events), cmocka_unit_test(test_random_failures),
        cmocka_unit_test(test_keys), cmocka_unit_test(test_trace), cmocka_unit_test(test_target),
        cmocka_unit_test(test_published_rates),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
