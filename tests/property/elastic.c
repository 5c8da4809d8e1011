/* A training that goes on with fewer nodes: by hand, by its closed form, and with the fastest shape. */
#include "trained.h"
#include "trials.h"

/* 4 nodes of a GPU, a replica each, and 12 micro-batches of 3 s, so that k nodes have k quarters of the speed. */
#define QUARTERS \
    "model: {stages: {forward: 1 s, backward: 2 s}}\n" \
    "cluster: {nodes: 4, gpus_per_node: 1, inside: {bandwidth: 1 GB/s, latency: 0}, network: {bandwidth: 1 GB/s, latency: 0}}\n" \
    "batch: {global: %d, micro: 1}\n" \
    "train: {steps: %d, %s, checkpoint: {every: %d steps, block: %g s}, restart: {detect: %g s, replace: 5 s, init: 3 s, " \
    "load: 2 s}%s}\n"

static void train_trace(struct trained *trained, const char *rows, const char *elastic, size_t trials)
{
    char path[] = "/tmp/dtsim-elastic-XXXXXX", *failures, *text;
    int fd = mkstemp(path);

    assert_true(fd >= 0 && write(fd, rows, strlen(rows)) == (ssize_t)strlen(rows) && close(fd) == 0);
    failures = xprintf("failures: {trace: %s}", path);
    text = xprintf(QUARTERS, 4, 600, failures, 20, 1.0, 10.0, elastic);
    train_whole(trained, text, (struct training_options){trials, 7, 1});
    free(text);
    free(failures);
    unlink(path);
}

/* 4 micro-batches: 3 s on 4 nodes, 6 s on 2 or 3 (2 are taken), 12 s on one. 20 steps and a stall of 1 s take 61 s, on two
 * nodes 121 s. A node is lost at 1000 s, 24 s after the 16th checkpoint. Nobody replaces it: 15 s later 2 nodes go on. At
 * 2000 s it is back; the 25th checkpoint is finished at 1015 + 9 x 121 = 2104 s, 5 s later 4 nodes go on, and 5 x 61 s are
 * left. */
static void test_by_hand(void **state)
{
    struct trained trained;
    const struct trial *trial;

    (void)state;
    train_trace(&trained, "time_s,change\n0,4\n1000,-1\n2000,1\n", ", elastic: {}", 3);
    for (size_t i = 0; i < 3; i++) {
        trial = &trained.training.trials[i];
        assert_true(trial->end == TRIAL_FINISHED && trial->failures == 1 && trial->nodes_lost == 1);
        assert_true(fabs(trial->wall - 2414) < 1e-6);
        assert_true(fabs(trial->losses[LOSS_WORK] - 24) < 1e-6 && fabs(trial->losses[LOSS_FEWER] - 9 * 60) < 1e-6);
        assert_true(fabs(trial->losses[LOSS_INITIALISATION] - 6) < 1e-9 && fabs(trial->losses[LOSS_LOADING] - 4) < 1e-9);
        assert_true(trial->losses[LOSS_REPLACEMENT] == 0);
        /* 4 GPUs until one is lost, 3 until that is found, 2 until the 25th checkpoint, then 4 */
        assert_true(fabs(trial->gpu_seconds - (1000 * 4 + 10 * 3 + (5 + 9 * 121) * 2 + (5 + 5 * 61) * 4)) < 1e-5);
        assert_true(fabs(trial->passed[TRIAL_PARTS] - trial->wall) < 1e-9);
    }
    trained_release(&trained);
}

/* With as many nodes as it wants it is what it was; with fewer than 'least' holds it waits, as it did. */
static void test_as_it_was(void **state)
{
    static const struct { const char *rows, *elastic; } cases[] = {
        {"time_s,change\n0,5\n700,-2\n700.5,3\n1300,-1\n", ", elastic: {}"},
        {"time_s,change\n0,3\n50,1\n700,-2\n900,2\n", ", elastic: {least: 4}"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct trained elastic, plain;

        train_trace(&elastic, cases[i].rows, cases[i].elastic, 50);
        train_trace(&plain, cases[i].rows, "", 50);
        for (size_t k = 0; k < 50; k++) {
            const struct trial *a = &elastic.training.trials[k], *b = &plain.training.trials[k];

            if (a->losses[LOSS_FEWER] == 0)
                assert_true(a->wall == b->wall && a->gpu_seconds == b->gpu_seconds && a->failures == b->failures);
            assert_true(i == 0 || a->losses[LOSS_FEWER] == 0);
        }
        trained_release(&elastic);
        trained_release(&plain);
    }
}

/* Each node alone is up a share MTBF / (MTBF + repair) of the time, whatever the others do, and the training has the share
 * of its speed that is up: 10 h and 2.5 h, 0.8. Checkpoints after each step, and no time for recoveries, so that nearly
 * nothing else is lost. */
static void test_closed_form(void **state)
{
    char *text = xprintf(QUARTERS, 12, 80000, "failures: {per_node_day: 2.4}, spares: {nodes: 0, empty: shrink, repair: 2.5 h}", 1,
                         0.0, 0.0, ", elastic: {}");
    struct trained trained;
    const struct training *training = &trained.training;

    (void)state;
    train_whole(&trained, text, (struct training_options){200, 3, 1});
    assert_int_equal(training->ended[TRIAL_FINISHED], 200);
    assert_true(training->goodput_error < 0.002);
    assert_true(fabs(training->goodput.mean - 0.8) < 3 * training->goodput_error + 0.004);
    for (size_t i = 0; i < 200; i++) {
        double sum = training->course.end;

        for (int loss = 0; loss < LOSS_COUNT; loss++) {
            assert_true(training->trials[i].losses[loss] > -1e-6);
            sum += training->trials[i].losses[loss];
        }
        assert_true(fabs(sum - training->trials[i].wall) < 1e-9 * sum);
    }
    trained_release(&trained);
    free(text);
}

/* Nodes that never come back: it shrinks until nothing is left, and ends. */
static void test_without_repair(void **state)
{
    char *text = xprintf(QUARTERS, 12, 80000, "failures: {per_node_day: 24}, spares: {nodes: 1, empty: shrink}", 1, 0.0, 0.0,
                         ", elastic: {}");
    struct trained trained;

    (void)state;
    train_whole(&trained, text, (struct training_options){20, 3, 1});
    assert_int_equal(trained.training.ended[TRIAL_STOPPED], 20);
    for (size_t i = 0; i < 20; i++)
        assert_true(trained.training.trials[i].nodes_lost == 5);
    trained_release(&trained);
    free(text);
}

/* On each number of nodes it takes the fastest number of stages. Each number is simulated alone. */
static void test_fastest_shape(void **state)
{
    static const char text[] =
        "model: {transformer: {layers: 8, hidden: 1024, heads: 16, sequence: 512, vocabulary: 1024}}\n"
        "cluster: {platform: dgx-a100, nodes: 4, gpus_per_node: 2}\n"
        "batch: {global: 48, micro: 1}\nstrategy: {pipeline: 2}\nsimulation: {engine: fast}\n"
        "train: {steps: 100, failures: {per_node_day: 1}, spares: {nodes: 0, empty: shrink, repair: 1 h}, "
        "checkpoint: {every: 10 steps, block: 1 s}, restart: {detect: 1 s, replace: 1 s, init: 1 s, load: 1 s}, "
        "elastic: {pipeline: [1, 2, 4]}}\n";
    static const int stages[] = {1, 2, 4};
    struct trained trained;
    const struct shapes *shapes = &trained.training.course.shapes;

    (void)state;
    train_whole(&trained, text, (struct training_options){5, 7, 1});
    assert_int_equal(shapes->nodes, 4);
    for (int nodes = 1; nodes < 4; nodes++) {
        double best = INFINITY;

        for (size_t i = 0; i < COUNT(stages); i++)
            for (int replicas = 1; replicas * stages[i] <= 2 * nodes; replicas++) {
                char *changed = xprintf("strategy.pipeline=%d strategy.data=%d batch.global=%d cluster.nodes=%d", stages[i], replicas,
                                        (48 + replicas - 1) / replicas * replicas, (replicas * stages[i] + 1) / 2);
                const char *sets[4], *at = strtok(changed, " ");
                size_t count = 0;

                for (; at; at = strtok(NULL, " "))
                    sets[count++] = at;
                best = fmin(best, varied_seconds(&trained.scenario, sets, count, NULL));
                free(changed);
            }
        assert_true(shapes->on[nodes].nodes > 0 && shapes->on[nodes].nodes <= nodes && shapes->on[nodes].seconds == best);
        assert_true(nodes == 1 || shapes->on[nodes].seconds <= shapes->on[nodes - 1].seconds);
    }
    trained_release(&trained);
}

/* Nodes on which nothing runs take what a node takes whose GPU waits, in steps and while a checkpoint stops the others. */
static void idle_nodes_take_power(void **state)
{
    (void)state;
    EACH_TRIAL(i, 40) {
        uint64_t seed = i * 0x9FB21C651E98DF25u;
        int nodes = 3 + random_below(&seed, 6), used = 1 + random_below(&seed, 2), every = 5 + random_below(&seed, 50);
        struct trained trained;
        char *text = xprintf("model: {stages: {forward: 2.5 ms, backward: 5 ms}}\n"
            "cluster: {nodes: %d, gpus_per_node: 1, inside: {bandwidth: 1 GB/s, latency: 0}, network: {bandwidth: 1 GB/s, latency: 0}}\n"
            "batch: {global: 840, micro: 1}\nstrategy: {data: %d}\ntrain: {steps: 1000, checkpoint: {every: %d steps, block: 2 s}, "
            "energy: {gpu: {idle: 100 W, compute: 500 W, communication: 150 W}, node: 1 kW, pue: 1}}\n", nodes, used, every);

        train_whole(&trained, text, (struct training_options){1, 1, 1});
        const struct course *course = &trained.training.course;
        double expected = course->useful * (used * 1500.0 + (nodes - used) * 1100.0) + course->stalls * nodes * 1100.0;
        if (!(fabs(trained.training.energy.mean / expected - 1) < 1e-9))
            fail_msg("energy is %g, not %g in\n%s", trained.training.energy.mean, expected, text);
        trained_release(&trained);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand), cmocka_unit_test(test_as_it_was), cmocka_unit_test(test_closed_form),
        cmocka_unit_test(test_without_repair), cmocka_unit_test(test_fastest_shape), cmocka_unit_test(idle_nodes_take_power),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
