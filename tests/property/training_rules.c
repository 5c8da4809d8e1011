/* What a training pays for, what fails, and when checkpoints are begun: rules that hold for random trainings. */
#include "train/closed_form.h"
#include "trained.h"
#include "trials.h"

#include <unistd.h>

enum { CASES = 60, TRIALS = 40, NODES = 8 };

static struct training_options options = {TRIALS, 3, 1};

/* A batch that any of the numbers of nodes divides: a step takes 6.3 s over the number of nodes. */
static const char shape[] = "model: {stages: {forward: 2.5 ms, backward: 5 ms}}\n"
    "cluster: {nodes: %d, gpus_per_node: 1, inside: {bandwidth: 1 GB/s, latency: 0}, network: {bandwidth: 1 GB/s, "
    "latency: 0}, host: {bandwidth: 20 GB/s, latency: 0}}\nbatch: {global: 840, micro: 1}\nprice: 3 $/h\n"
    "train: {steps: %d, restart: {detect: 30 s, replace: %d s, init: 11 s, load: 7 s}, %s}\n";

__attribute__((format(printf, 5, 6)))
static void train_on(struct trained *trained, int nodes, int steps, int replace, const char *format, ...)
{
    va_list arguments;
    char *rest, *text;

    va_start(arguments, format);
    assert_true(vasprintf(&rest, format, arguments) >= 0);
    va_end(arguments);
    text = xprintf(shape, nodes, steps, replace, rest);
    train_whole(trained, text, options);
    free(rest);
    free(text);
}

/* A random trace: nodes that are up from each of its times on, the last row all. */
struct trace_file { char path[32]; double time[24]; int up[24], count; };

static void write_trace(struct trace_file *trace, int most, uint64_t *seed)
{
    FILE *out;
    double now = 0;

    *trace = (struct trace_file){.path = "/tmp/dtsim-trace-XXXXXX", .count = 6 + random_below(seed, 18)};
    out = fdopen(mkstemp(trace->path), "w");
    assert_non_null(out);
    fputs("time_s,nodes\n", out);
    for (int i = 0; i < trace->count; i++, now += 300 + random_below(seed, 4000)) {
        trace->time[i] = now;
        trace->up[i] = i + 1 == trace->count ? most : 1 + random_below(seed, most);
        fprintf(out, "%.17g,%d\n", now, trace->up[i]);
    }
    fclose(out);
}

/* Node-seconds up to a time, of at most so many nodes that train. */
static double node_seconds(const struct trace_file *trace, double end, int most)
{
    double sum = 0;

    for (int i = 0; i < trace->count && trace->time[i] < end; i++) {
        double until = i + 1 < trace->count ? fmin(end, trace->time[i + 1]) : end;

        sum += (until - trace->time[i]) * fmin(trace->up[i], most);
    }
    return sum;
}

/* Without `elastic` a training pays for the nodes that are there, up to as many as it has, from the beginning to the
 * end. */
static void a_trace_is_paid_for_what_is_up(void **state)
{
    double saved = 0;

    (void)state;
    EACH_TRIAL(i, CASES) {
        uint64_t seed = i * 0x9FB21C651E98DF25u;
        struct trained trained;
        struct trace_file trace;
        int more = random_below(&seed, 3);

        write_trace(&trace, NODES + more, &seed);
        train_on(&trained, NODES, 20000, 600, "failures: {trace: %s}, checkpoint: {every: 100 steps, block: 2 s}", trace.path);
        for (int k = 0; k < TRIALS; k++) {
            const struct trial *trial = &trained.training.trials[k];
            double paid = node_seconds(&trace, trial->wall, NODES);

            assert_int_equal(trial->end, TRIAL_FINISHED);
            expect_near("GPU-seconds", trial->gpu_seconds, paid, "a trace");
            saved += 1 - paid / (NODES * trial->wall);
        }
        expect_near("cost", trained.training.price.mean, 3 * trained.training.gpu_hours.mean, "a trace");
        trained_release(&trained);
        unlink(trace.path);
    }
    assert_true(saved / TRIALS / trials(CASES) > 0.02);
}

/* Where nodes are lost and none joins, nobody is replaced; where as many idle nodes are up, one is for each recovery. */
static void who_shrinks_replaces_nobody(void **state)
{
    static const char *const systems[] = {"varuna", "templates", "liveput"};
    int shrunk = 0;

    (void)state;
    EACH_TRIAL(i, CASES) {
        uint64_t seed = i * 0xD1342543DE82EF95u;
        char path[] = "/tmp/dtsim-trace-XXXXXX", rows[300];
        int idle = random_below(&seed, 2) ? NODES : 0, up = NODES + idle, length;
        const char *system = systems[random_below(&seed, 3)];
        struct trained trained;
        FILE *out = fdopen(mkstemp(path), "w");

        length = snprintf(rows, sizeof rows, "time_s,nodes\n0,%d\n", up);
        for (int k = 1; k < 4; k++) {
            up -= 1 + random_below(&seed, 2);
            length += snprintf(rows + length, sizeof rows - (size_t)length, "%d,%d\n", 3000 * k, up);
        }
        fputs(rows, out);
        fclose(out);
        train_on(&trained, NODES, 20000, 600, "failures: {trace: %s}, elastic: {system: %s%s}, checkpoint: {every: 100 steps, "
                 "block: 2 s}", path, system, strcmp(system, "varuna") ? ", reroute: 5 s" : "");
        for (int k = 0; k < TRIALS; k++) {
            const struct trial *trial = &trained.training.trials[k];
            double replaced = trial->losses[LOSS_REPLACEMENT];

            if (!idle)
                assert_true(replaced == 0);
            else if (!strcmp(system, "varuna"))
                assert_true(replaced == 600 * trial->failures);
            shrunk += !idle && trial->losses[LOSS_FEWER] > 0;
        }
        trained_release(&trained);
        unlink(path);
    }
    assert_true(shrunk > TRIALS);
}

/* A training that shrinks for lack of spare nodes replaces those that it has: each once, as none is repaired. */
static void spares_replace_once(void **state)
{
    (void)state;
    EACH_TRIAL(i, CASES) {
        uint64_t seed = i * 0xA24BAED4963EE407u;
        int spares = random_below(&seed, 4);
        struct trained trained;

        train_on(&trained, NODES, 60000, 600, "failures: {per_node_day: 0.8}, spares: {nodes: %d, empty: shrink}, elastic: "
                 "varuna, checkpoint: {every: 100 steps, block: 2 s}", spares);
        for (int k = 0; k < TRIALS; k++) {
            const struct trial *trial = &trained.training.trials[k];

            if (!spares)
                assert_true(trial->losses[LOSS_REPLACEMENT] == 0);
            if (trial->failures > spares + 3)        /* two may fall into one recovery, or interrupt a replacement */
                assert_true(trial->losses[LOSS_REPLACEMENT] <= 600 * (spares + 3));
        }
        trained_release(&trained);
    }
}

/* Refused if and only if there are fewer nodes than copies, of the whole training or of a phase. */
static void copies_need_nodes(void **state)
{
    (void)state;
    for (int nodes = 1; nodes <= 5; nodes++)
        for (int copies = 2; copies <= 5; copies++)
            for (int phase = nodes; phase >= 1; phase--) {
                char *rest = xprintf("phases: [{steps: 10}, {steps: 10, gpus: %d}], failures: {per_node_day: 1}, checkpoint: "
                                     "{every: 10 steps, block: 1 s, bytes: 1 GB, mode: memory, copies: %d}", phase, copies);
                char *text = xprintf("model: {stages: {forward: 1 s, backward: 2 s}}\ncluster: {nodes: %d, gpus_per_node: 1, "
                                     "inside: {bandwidth: 1 GB/s, latency: 0}, network: {bandwidth: 1 GB/s, latency: 0}}\n"
                                     "batch: {global: 60, micro: 1}\ntrain: {%s, restart: {detect: 1 s, replace: 1 s, init: "
                                     "1 s, load: 1 s}}\n", nodes, rest);
                struct trained trained;
                struct arena arena = {.cache = files_once()};
                struct error err = {0};
                struct node *root;
                int rc;

                memset(&trained, 0, sizeof trained);
                assert_int_equal(conf_parse(&arena, "train.yaml", text, strlen(text), &root, &err), 0);
                assert_int_equal(scenario_read(&arena, root, NULL, 0, "train", &trained.scenario, &err), 0);
                rc = training_init(&trained.training, &trained.scenario, (struct training_options){1, 1, 1}, &err);
                assert_int_equal(rc != 0, copies > phase);
                if (rc)
                    assert_non_null(strstr(err.messages[0].text, "copies need as many nodes"));
                error_release(&err);
                arena_release(&arena);
                trained_release(&trained);
                free(rest);
                free(text);
            }
}

/* All copies of a share are lost with probability closed_form_group_lost() where `copies` nodes are lost: of all ways to
 * lose them those that hold all copies of one, by brute force. A node of a whole group has its share on all of the group;
 * a node of a longer last group on those that follow it. */
static void groups_of_any_number_of_nodes(void **state)
{
    (void)state;
    for (int nodes = 2; nodes <= 13; nodes++)
        for (int copies = 2; copies <= nodes && copies <= 5; copies++) {
            int last = (nodes / copies - 1) * copies, ways = 0, lost = 0;

            for (unsigned set = 0; set < 1u << nodes; set++) {
                bool gone = false;

                if (__builtin_popcount(set) != copies)
                    continue;
                for (int owner = 0; owner < nodes; owner++) {
                    int first = owner < last ? owner / copies * copies : last, size = owner < last ? copies : nodes - last;
                    unsigned holders = 0;

                    for (int k = 0; k < copies; k++)
                        holders |= 1u << (first + (owner - first + k) % size);
                    gone |= holders == set;
                }
                ways++;
                lost += gone;
            }
            assert_true(fabs(closed_form_group_lost(nodes, copies) - (double)lost / ways) < 1e-12);
        }
}

/* The same in trials: of recoveries in which another node fails the share that loses memory. */
static void trials_lose_memory_as_often(void **state)
{
    (void)state;
    options.trials = (size_t)few_or(400, 1000);
    for (int nodes = 2; nodes <= 7; nodes++) {
        double within, expected;
        struct trained trained;

        train_on(&trained, nodes, 150000 * nodes, 60, "failures: {per_node_day: %.17g}, checkpoint: {every: 40 steps, block: 1 s, bytes: 1 "
                 "GB, mode: memory, stored: 1, write: 1 GB/s}", 24.0 / nodes);
        within = -expm1(-108 / trained.training.mtbf);
        /* the second loss is of any node but may be the same one again, which loses nothing more */
        expected = within * closed_form_group_lost(nodes, 2) * (nodes - 1) / nodes;
        if (!(fabs(trained.training.memory_lost / trained.training.failed / expected - 1) < 0.15))
            fail_msg("%d nodes: %g of failures lose memory, expected %g", nodes,
                     trained.training.memory_lost / trained.training.failed, expected);
        trained_release(&trained);
    }
    options.trials = TRIALS;
}

static double async_goodput(struct trained *trained, const char *every, int steps, double rate, double bytes)
{
    train_on(trained, NODES, steps, 60, "failures: {per_node_day: %.17g}, checkpoint: {every: %s, block: 0.05 s, bytes: %.17g GB, "
             "write: 1 GB/s, mode: async}", rate, every, bytes / 1e9);
    return trained->training.course.useful / trained->training.expected_wall;
}

/* No checkpoint of `auto` waits for the one before, and no other interval near it is better. */
static void automatic_intervals_do_not_wait(void **state)
{
    (void)state;
    EACH_TRIAL(i, CASES) {
        uint64_t seed = i * 0x9FB21C651E98DF25u;
        int count = 20000 + random_below(&seed, 20000);
        double bytes = 1e9 * (20 + random_below(&seed, 2000) / 10.0), rate = 0.5 + random_below(&seed, 300) / 100.0, best;
        struct trained trained;
        const struct training *training = &trained.training;

        best = async_goodput(&trained, "auto", count, rate, bytes);
        int steps = (int)rint(training->every.seconds / steps_of(&training->steps, training->main)->seconds);
        double stalls = (training->course.checkpoints - 1) * training->cost.block + training->cost.write;

        assert_true(training->every.seconds >= (training->cost.write - training->cost.block) * (1 - 1e-9));
        expect_near("stalls", training->course.stalls, stalls, "auto");
        trained_release(&trained);
        for (int away = -15; away <= 15; away += 3) {
            char every[40];
            double other;

            snprintf(every, sizeof every, "%d steps", steps + away > 1 ? steps + away : 1);
            other = async_goodput(&trained, every, count, rate, bytes);
            trained_release(&trained);
            if (!(best >= other * (1 - 2e-4)))
                fail_msg("%d steps of %d, %g B, %g a day: %.8g, every %s: %.8g", steps, count, bytes, rate, best, every, other);
        }
    }
}

/* A null closed form: nothing fails, not exponentially, or nothing is kept. Each number of another one is one. */
static void closed_forms(void **state)
{
    static const struct { const char *rest; bool has; } cases[] = {
        {"validation: {every: 10 steps, time: 1 s}", false},
        {"checkpoint: {every: 100 steps, block: 2 s}", false},
        {"checkpoint: {every: auto, block: 2 s}", false},
        {"failures: {per_node_day: 0}, checkpoint: {every: 100 steps, block: 2 s}", false},
        {"failures: {per_node_day: 1, shape: 0.7}, checkpoint: {every: auto, block: 2 s}", false},
        {"failures: {per_node_day: 1}, checkpoint: {every: 100 steps, block: 2 s}", true},
        {"failures: {per_node_day: 1}, checkpoint: {every: auto, block: 2 s}, spares: {nodes: 1, repair: 1 h}", true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        static const char *const forms[] = {"young", "daly", "exact", "chosen"};
        struct trained trained;
        json_t *json, *form;

        train_on(&trained, NODES, 5000, 60, "%s", cases[i].rest);
        json = view_json(&training_view, &trained.training);
        form = json_object_get(json, "closed_form");
        assert_int_equal(!json_is_null(form), cases[i].has);
        for (size_t k = 0; cases[i].has && k < COUNT(forms); k++) {
            const json_t *one = json_object_get(form, forms[k]);

            assert_true(json_number_value(json_object_get(one, "goodput")) > 0.5);
            assert_true(json_number_value(json_object_get(one, "interval_s")) > 1);
        }
        json_decref(json);
        trained_release(&trained);
    }
}

/* The mean energy_j of trials.tsv, times the facility's factor, is result.json's, whatever spare nodes there are: each
 * warm one takes what an idle node takes. */
static void energy_of_files(void **state)
{
    (void)state;
    for (int warm = 0; warm <= 5; warm++) {
        char dir[] = "/tmp/dtsim-energy-XXXXXX", *path, *text, *line;
        struct trained trained;
        struct folder folder;
        struct error err = {0};
        double sum = 0, wall = 0;
        int rows = 0;

        train_on(&trained, NODES, 20000, 60, "failures: {per_node_day: 2}, checkpoint: {every: auto, block: 2 s}, spares: {nodes: "
                 "%d, warm: %s, repair: 1 h}, energy: {gpu: {idle: 100 W, compute: 500 W, communication: 150 W}, "
                 "node: 1 kW, pue: 1.25}", warm ? warm : 3, warm ? "true" : "false");
        assert_non_null(mkdtemp(dir));
        assert_int_equal(folder_open(&folder, dir, &err), 0);
        assert_int_equal(training_write(&trained.training, &folder, &err), 0);
        folder_release(&folder);
        path = xprintf("%s/trials.tsv", dir);
        text = read_file(path);
        for (line = strchr(text, '\n') + 1; *line; line = strchr(line, '\n') + 1, rows++) {
            double wall_s, joules;

            assert_int_equal(sscanf(line, "%*d finished %lf %*f %lf", &wall_s, &joules), 2);
            sum += joules;
            wall += wall_s;
        }
        assert_int_equal(rows, TRIALS);
        expect_near("energy", sum / rows * 1.25, trained.training.energy.mean, "trials.tsv");
        for (int k = 0; k < TRIALS; k++)
            sum -= trained.training.trials[k].joules;
        if (!(fabs(sum - 1100.0 * warm * wall) <= 1e-6 * 1100 * wall))       /* an idle node takes 1,100 W */
            fail_msg("%d warm nodes: %g J for %g s", warm, sum, wall);
        free(path);
        free(text);
        path = xprintf("rm -r %s", dir);
        assert_int_equal(system(path), 0);
        free(path);
        trained_release(&trained);
    }
}

/* Failures come at the rate of the nodes in the time in which these do not wait: the mean of a Poisson process. */
static void nodes_that_wait_do_not_fail(void **state)
{
    (void)state;
    for (int hours = 1; hours <= 30; hours += 7) {
        struct trained trained;
        double failures = 0, working = 0, waiting = 0, wall = 0;

        train_on(&trained, NODES, 400000, 60, "failures: {per_node_day: 0.4}, checkpoint: {every: 200 steps, block: 2 s}, spares: "
                 "{nodes: 0, empty: wait, repair: %d h}", hours);
        for (int k = 0; k < TRIALS; k++) {
            const struct trial *trial = &trained.training.trials[k];

            failures += trial->failures;
            working += trial->wall - trial->losses[LOSS_WAITING];
            waiting += trial->losses[LOSS_WAITING];
            wall += trial->wall;
        }
        double expected = working * NODES * 0.4 / 86400;

        if (!(fabs(failures - expected) < 4 * sqrt(expected) + 0.01 * expected))
            fail_msg("repair %d h: %g failures, expected %g (%g of the time waits)", hours, failures, expected, waiting / wall);
        assert_true(hours < 8 || waiting > 0.3 * wall);
        trained_release(&trained);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_is_paid_for_what_is_up), cmocka_unit_test(who_shrinks_replaces_nobody),
        cmocka_unit_test(spares_replace_once), cmocka_unit_test(copies_need_nodes),
        cmocka_unit_test(groups_of_any_number_of_nodes), cmocka_unit_test(trials_lose_memory_as_often),
        cmocka_unit_test(automatic_intervals_do_not_wait), cmocka_unit_test(closed_forms), cmocka_unit_test(energy_of_files),
        cmocka_unit_test(nodes_that_wait_do_not_fail),
    };

    return cmocka_run_group_tests_name("training_rules", tests, NULL, NULL);
}
