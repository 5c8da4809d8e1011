/* Elastic trainings that keep their work: by hand, by counting which losses are survived, by Daly's formula, and
 * against a small model here. */
#include "base/random.h"
#include "train/closed_form.h"
#include "trained.h"

/* 4 nodes of a GPU, a replica each, and micro-batches of 3 s; checkpoints each 20 steps. */
#define REPLICAS \
    "model: {stages: {forward: 1 s, backward: 2 s}}\n" \
    "cluster: {nodes: 4, gpus_per_node: 1, inside: {bandwidth: 1 GB/s, latency: 0}, network: {bandwidth: 1 GB/s, " \
    "latency: 0}}\n" \
    "batch: {global: 4, micro: 1}\n" \
    "train: {steps: %d, failures: {trace: %s}, checkpoint: {every: 20 steps, block: 1 s}, restart: {detect: 10 s, " \
    "replace: 5 s, " \
    "init: 3 s, load: 2 s}, elastic: {%s}}\n"
/* 8 nodes: 2 replicas of 4 stages, a stage on each node. */
#define STAGES \
    "model: {stages: {forward: 1 s, backward: 2 s}}\n" \
    "cluster: {nodes: 8, gpus_per_node: 1, inside: {bandwidth: 1 GB/s, latency: 0}, network: {bandwidth: 1 GB/s, " \
    "latency: 0}}\n" \
    "batch: {global: 16, micro: 1}\nstrategy: {pipeline: 4}\n" \
    "train: {steps: %d, failures: {trace: %s}, checkpoint: {every: 20 steps, block: 1 s}, restart: {detect: 10 s, " \
    "replace: 5 s, " \
    "init: 3 s, load: 2 s}, elastic: {%s}}\n"

static void train_rows(struct trained *trained, const char *scenario, int steps, const char *rows, const char *elastic,
                       size_t trials)
{
    char path[] = "/tmp/dtsim-survivors-XXXXXX", *text;
    int fd = mkstemp(path);

    assert_true(fd >= 0 && write(fd, rows, strlen(rows)) == (ssize_t)strlen(rows) && close(fd) == 0);
    text = xprintf(scenario, steps, path, elastic);
    train_whole(trained, text, (struct training_options){trials, 7, 1});
    free(text);
    unlink(path);
}

/* Losses and the course add up to the wall time; none is negative. */
static void check_sums(const struct trained *trained)
{
    for (size_t i = 0; i < trained->training.options.trials; i++) {
        const struct trial *trial = &trained->training.trials[i];
        double sum = trained->training.course.end;

        assert_true(trial->end == TRIAL_FINISHED && trial->gpu_seconds > 0);
        for (int loss = 0; loss < LOSS_COUNT; loss++) {
            assert_true(trial->losses[loss] > -1e-6);
            sum += trial->losses[loss];
        }
        assert_true(fabs(sum - trial->wall) < 1e-9 * sum);
    }
}

/* 20 steps and a stall take 61 s, on 2 or 3 nodes 121 s. A node is lost at 1001 s, 25 s after the 16th checkpoint: the
 * step under way loses 1 s. 14 s later the training goes on at clock 1000, at 61/121 of the speed. At 2000 s, clock
 * 1496.57, the node is back: the step ends at clock 1464 + 33 = 1497, and 4 s later 4 nodes do the rest. */
static void test_step_is_lost(void **state)
{
    static const char *const systems[] = {"system: templates, pipeline: [1], reroute: 4 s",
                                          "system: liveput, reroute: 4 s"};

    (void)state;
    for (size_t i = 0; i < COUNT(systems); i++) {
        struct trained trained;
        const struct trial *trial;

        train_rows(&trained, REPLICAS, 600, "time_s,change\n0,4\n1001,-1\n2000,1\n", systems[i], 3);
        check_sums(&trained);
        for (size_t k = 0; k < 3; k++) {
            trial = &trained.training.trials[k];
            assert_true(trial->failures == 1 && trial->nodes_lost == 1);
            assert_true(fabs(trial->losses[LOSS_WORK] - 1) < 1e-6 && trial->losses[LOSS_LOADING] == 0);
            assert_true(fabs(trial->losses[LOSS_INITIALISATION] - 8) < 1e-9);
            assert_true(fabs(trial->wall - (1015 + 497 * 121.0 / 61 + 4 + 333)) < 1e-6);
        }
        trained_release(&trained);
    }
}

/* One replica of 4 stages: work that is done twice makes a step longer by a tenth; a lost node makes its neighbour, and
 * so all, slower by what a straggler of 2 does; nothing else is lost until the node is back. */
static void test_hole(void **state)
{
    static const char text[] = "model: {stages: {forward: 1 s, backward: 2 s}}\n"
                               "cluster: {nodes: 4, gpus_per_node: 1, inside: {bandwidth: 1 GB/s, latency: 0}, "
                               "network: {bandwidth: 1 GB/s, latency: 0}}\n"
                               "batch: {global: 8, micro: 1}\nstrategy: {pipeline: 4}\n"
                               "train: {steps: %d, failures: {trace: %s}, checkpoint: {every: 20 steps, block: 0 s}, "
                               "restart: {detect: 10 s, replace: 5 s, "
                               "init: 3 s, load: 2 s}, elastic: {%s}}\n";
    static const char straggling[] =
        "model: {stages: {forward: 1 s, backward: 2 s}}\n"
        "cluster: {nodes: 4, gpus_per_node: 1, inside: {bandwidth: 1 GB/s, latency: 0}, network: {bandwidth: 1 GB/s, "
        "latency: 0}}\n"
        "batch: {global: 8, micro: 1}\nstrategy: {pipeline: 4}\nsimulation: {stragglers: [{gpu: 2, slower: 2}]}\n"
        "train: {steps: 1}\n";
    struct trained trained, slower;
    const struct training *training = &trained.training;
    double step, holed, clock, slow, ends;

    (void)state;
    train_rows(&trained, text, 1000, "time_s,change\n0,4\n5000,-1\n9000,1\n",
               "system: redundancy, redundant: 0.1, reroute: 4 s", 3);
    check_sums(&trained);
    step = steps_of(&training->steps, training->main)->seconds;
    assert_true(fabs(step - 33) < 0.01);
    train_whole(&slower, straggling, (struct training_options){1, 7, 1});
    holed = steps_of(&slower.training.steps, slower.training.main)->seconds;
    trained_release(&slower);
    assert_true(holed > 1.5 * step && holed < 2 * step);
    clock = 5000 / 1.1;
    slow = holed * 1.1 / step;
    ends = ceil((clock + (9000 - 5014) / slow) / step) * step;
    for (size_t k = 0; k < 3; k++) {
        const struct trial *trial = &training->trials[k];

        assert_true(trial->losses[LOSS_WORK] == 0 && fabs(trial->losses[LOSS_INITIALISATION] - 8) < 1e-9);
        assert_true(fabs(trial->wall - (5014 + (ends - clock) * slow + 4 + (1000 * step - ends) * 1.1)) < 1e-5);
        assert_true(fabs(trial->losses[LOSS_REDUNDANT] - 100 * step) < 1e-5);
        /* 3 GPUs from the loss, found 10 s later, to the end of the step in which the node is back; else 4 */
        assert_true(fabs(trial->gpu_seconds - (4 * trial->wall - (10 + 4 + (ends - clock) * slow))) < 1e-4);
    }
    trained_release(&trained);
}

/* Two nodes of 8 are lost at once: 28 pairs. Of these 8 are neighbours on the rings of 4, which redundancy does not
 * survive; 4 are the same stage of both replicas, which copies do not survive. Three of 8: of 56 cases 16 leave no
 * neighbours lost (two opposite ones of a ring, and any one of the other), and in 24 a stage is lost. */
static void test_which_losses(void **state)
{
    static const struct {
        const char *elastic, *rows;
        double lost;
    } cases[] = {
        {"system: redundancy, redundant: 0", "time_s,change\n0,8\n1000,-2\n1001,2\n", 8.0 / 28},
        {"system: liveput", "time_s,change\n0,8\n1000,-2\n1001,2\n", 4.0 / 28},
        {"system: templates", "time_s,change\n0,8\n1000,-2\n1001,2\n", 4.0 / 28},
        {"system: redundancy, redundant: 0", "time_s,change\n0,8\n1000,-3\n1001,3\n", 40.0 / 56},
        {"system: liveput", "time_s,change\n0,8\n1000,-3\n1001,3\n", 24.0 / 56},
        {"system: varuna", "time_s,change\n0,8\n1000,-2\n1001,2\n", 1},
    };
    enum { MANY = 2000 };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *elastic = xprintf("%s%s", cases[i].elastic, strstr(cases[i].elastic, "varuna") ? "" : ", reroute: 1 s");
        struct trained trained;
        double lost = 0, error = sqrt(cases[i].lost * (1 - cases[i].lost) / MANY);

        train_rows(&trained, STAGES, 100, cases[i].rows, elastic, MANY);
        check_sums(&trained);
        for (size_t k = 0; k < MANY; k++)
            lost += trained.training.trials[k].losses[LOSS_WORK] > 40;
        if (fabs(lost / MANY - cases[i].lost) > 3.5 * error)
            fail_msg("%s: %g of %d lose work; expected %g", cases[i].elastic, lost, MANY, cases[i].lost * MANY);
        trained_release(&trained);
        free(elastic);
    }
}

/* Which sets of lost nodes leave every part of the model on some node, tried at many parts. */
static void test_keeps(void **state)
{
    static const struct shape shapes[] = {
        {.nodes = 6, .replicas = 2, .pipeline = 3, .stage_nodes = 1},
        {.nodes = 7, .replicas = 2, .pipeline = 3, .deep = 1, .deep_pipeline = 4, .stage_nodes = 1},
        {.nodes = 9, .replicas = 3, .pipeline = 2, .deep = 1, .deep_pipeline = 5, .stage_nodes = 1},
        {.nodes = 4, .replicas = 8, .pipeline = 2, .stage_nodes = 0.25},
        {.nodes = 6, .replicas = 3, .pipeline = 1, .stage_nodes = 2},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        const struct shape *shape = &shapes[i];

        for (unsigned set = 0; set < 1u << shape->nodes; set++) {
            int lost[16], count = 0;
            bool whole = true;

            for (int node = 0; node < shape->nodes; node++)
                if (set >> node & 1)
                    lost[count++] = node;
            for (int part = 0; part < 840; part++) {
                bool held = false;
                double begin = 0;

                for (int r = 0; r < shape->replicas; r++) {
                    double width = shape->stage_nodes *
                                   (r < shape->replicas - shape->deep ? shape->pipeline : shape->deep_pipeline);

                    held |= !(set >> (int)(begin + (part + 0.5) / 840 * width) & 1);
                    begin += width;
                }
                whole &= held;
            }
            assert_true(shape_keeps(shape, lost, count) == whole);
        }
    }
}

/* With foresight a training does not take a node that comes back for less time than joining takes. Then 2 of 4 nodes
 * train, and a loss hits them in half of the cases. Without foresight each loss costs detection and pause, and each
 * return the pause of joining. */
static void test_foresight(void **state)
{
    static const char rows[] = "time_s,change\n0,4\n500,-1\n1000,1\n1010,-1\n2000,1\n2010,-1\n3000,1\n";
    enum { MANY = 400 };
    struct trained liveput, templates;
    double failures = 0;

    (void)state;
    train_rows(&liveput, REPLICAS, 1000, rows, "system: liveput, reroute: 30 s", MANY);
    train_rows(&templates, REPLICAS, 1000, rows, "system: templates, pipeline: [1], reroute: 30 s", MANY);
    check_sums(&liveput);
    check_sums(&templates);
    for (size_t k = 0; k < MANY; k++) {
        failures += liveput.training.trials[k].failures - 1;
        assert_true(templates.training.trials[k].failures == 3);
    }
    assert_true(fabs(failures / MANY - 1) < 4 * sqrt(0.5 / MANY));
    assert_true(liveput.training.days.mean * 86400 < templates.training.days.mean * 86400 - 15);
    trained_release(&liveput);
    trained_release(&templates);
}

/* Rates: each node alone is up 0.8 of the time, and with no time for recoveries and steps that are short the training
 * has that share of its speed (test_closed_form of elastic.c, for systems that lose a step instead of work since a
 * checkpoint). */
static void test_rates(void **state)
{
    static const char text[] = "model: {stages: {forward: 1 s, backward: 2 s}}\n"
                               "cluster: {nodes: 4, gpus_per_node: 1, inside: {bandwidth: 1 GB/s, latency: 0}, "
                               "network: {bandwidth: 1 GB/s, latency: 0}}\n"
                               "batch: {global: 12, micro: 1}\n"
                               "train: {steps: 80000, failures: {per_node_day: 2.4}, spares: {nodes: 0, empty: shrink, "
                               "repair: 2.5 h}, checkpoint: {every: "
                               "500 steps, block: 0 s}, restart: {detect: 0 s, replace: 0 s, init: 0 s, load: 0 s}, "
                               "elastic: {system: templates, pipeline: "
                               "[1], reroute: 0 s}}\n";
    struct trained trained;

    (void)state;
    train_whole(&trained, text, (struct training_options){200, 3, 1});
    check_sums(&trained);
    assert_true(trained.training.goodput_error < 0.002);
    assert_true(fabs(trained.training.goodput.mean - 0.8) < 3 * trained.training.goodput_error + 0.004);
    trained_release(&trained);
}

/* The mean speed of a ring of 4 nodes, as a share of its full speed, in a small model. Each node fails alone, every 20
 * h, and is back 2.5 h later. With a hole the ring runs at `slow`; when two neighbours are holes it stands. All holes
 * are filled at once, when all nodes are back; nodes that wait for that do not fail, nor do those of a ring that stands. */
static double ring_speed(double slow, double hours, uint64_t seed)
{
    double back[4] = {0}, now = 0, done = 0;
    bool hole[4] = {false}, stands = false;

    for (uint64_t draw = 0; now < hours;) {
        double next = INFINITY;
        int event = -1, holes = 0;

        for (int i = 0; i < 4; i++) {
            double at = hole[i] ? back[i] : stands ? INFINITY : now - 20 * log1p(-random_share(seed, draw++));

            holes += hole[i];
            if (at > now && at < next) {
                next = at;
                event = hole[i] ? -1 : i;
            }
        }
        done += (next - now) * (stands ? 0 : holes ? slow : 1);
        now = next;
        if (event >= 0) {
            hole[event] = true;
            back[event] = now + 2.5;
            stands |= hole[(event + 1) % 4] || hole[(event + 3) % 4];
        } else if (fmax(fmax(back[0], back[1]), fmax(back[2], back[3])) <= now) {
            memset(hole, 0, sizeof hole);
            stands = false;
        }
    }
    return done / now;
}

static void test_ring(void **state)
{
    static const char text[] =
        "model: {stages: {forward: 1 s, backward: 2 s}}\n"
        "cluster: {nodes: 4, gpus_per_node: 1, inside: {bandwidth: 1 GB/s, latency: 0}, network: {bandwidth: 1 GB/s, "
        "latency: 0}}\n"
        "batch: {global: 8, micro: 1}\nstrategy: {pipeline: 4}\n"
        "train: {steps: 100000, failures: {per_node_day: 1.2}, spares: {nodes: 0, empty: shrink, repair: 2.5 h}, "
        "checkpoint: {every: 1 step, block: 0 s}, restart: {detect: 0 s, replace: 0 s, init: 0 s, load: 0 s}, "
        "elastic: {system: redundancy, redundant: 0, reroute: 0 s}}\n";
    struct trained trained;
    const struct training *training = &trained.training;
    double speed;

    (void)state;
    train_whole(&trained, text, (struct training_options){200, 3, 1});
    check_sums(&trained);
    speed = ring_speed(
        steps_of(&training->steps, training->main)->seconds / training->course.shapes.on[4].holed_seconds, 4e6, 5);
    printf("speed %.4f +- %.4f; by a model of its own %.4f\n", training->goodput.mean, training->goodput_error, speed);
    assert_true(training->goodput_error < 0.002);
    assert_true(fabs(training->goodput.mean - speed) < 3 * training->goodput_error + 0.0005);
    trained_release(&trained);
}

/* Spare nodes are always there, so that a loss costs the step under way, its detection and the pause: Daly's form with
 * an interval of a step and no stall. Each of 4 replicas holds the model, so that more is lost only when all are, in a
 * recovery: in 1 of 10,000 failures. */
static void test_closed_form(void **state)
{
    static const char text[] =
        "model: {stages: {forward: 5 s, backward: 10 s}}\n"
        "cluster: {nodes: 4, gpus_per_node: 1, inside: {bandwidth: 1 GB/s, latency: 0}, network: {bandwidth: 1 GB/s, "
        "latency: 0}}\n"
        "batch: {global: 4, micro: 1}\n"
        "train: {steps: 4000, failures: {per_node_day: 72}, spares: {nodes: 4, empty: shrink, repair: 60 s}, "
        "checkpoint: {every: 10 steps, block: 0 s}, restart: {detect: 10 s, replace: 0 s, init: 0 s, load: 0 s}, "
        "elastic: {system: templates, pipeline: [1], reroute: 20 s}}\n";
    struct trained trained;
    double closed = 1 / closed_form_wall(15, 0, 30, 300), formula;

    (void)state;
    train_whole(&trained, text, (struct training_options){400, 3, 1});
    check_sums(&trained);
    printf("goodput %.5f +- %.5f; closed form %.5f\n", trained.training.goodput.mean, trained.training.goodput_error,
           closed);
    formula = failures_step_wall(&trained.training.failures, &trained.training.course);
    assert_true(fabs(formula / trained.training.course.useful * closed - 1) < 1e-12);
    assert_true(trained.training.goodput_error < 0.001);
    assert_true(fabs(trained.training.goodput.mean - closed) < 3 * trained.training.goodput_error);
    trained_release(&trained);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step_is_lost), cmocka_unit_test(test_hole),      cmocka_unit_test(test_which_losses),
        cmocka_unit_test(test_keeps),        cmocka_unit_test(test_foresight), cmocka_unit_test(test_rates),
        cmocka_unit_test(test_closed_form),  cmocka_unit_test(test_ring),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
