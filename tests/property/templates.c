/* Replicas of unequal numbers of stages side by side, against all of them, tried one by one. */
#include "trained.h"

/* On each number of nodes the templates are as fast as the best of all sets of replicas and all divisions of the
 * micro-batches, each replica simulated among as many alike. */
struct brute {
    struct scenario *scenario;
    double time[7][7][25];
};

static double time_of(struct brute *brute, int replicas, int stages, int micro)
{
    double *time = &brute->time[replicas][stages][micro];

    if (*time == 0) {
        char *changed = xprintf("strategy.pipeline=%d strategy.data=%d batch.global=%d cluster.nodes=%d", stages,
                                replicas, replicas * micro, replicas * stages);
        const char *sets[4], *at = strtok(changed, " ");
        size_t count = 0;

        for (; at; at = strtok(NULL, " "))
            sets[count++] = at;
        *time = varied_seconds(brute->scenario, sets, count, NULL);
        free(changed);
    }
    return *time;
}

static double best_of(struct brute *brute, int replicas, int left, int nodes, int micro, int least)
{
    double best = INFINITY;

    if (!left)
        return micro ? INFINITY : 0;
    for (int stages = least; stages <= nodes; stages++)
        for (int own = 1; own <= micro - (left - 1); own++) {
            double rest = best_of(brute, replicas, left - 1, nodes - stages, micro - own, stages);

            if (rest < best)
                best = fmin(best, fmax(rest, time_of(brute, replicas, stages, own)));
        }
    return best;
}

static void test_templates(void **state)
{
    static const char text[] =
        "model: {transformer: {layers: 12, hidden: 2048, heads: 16, sequence: 1024, vocabulary: 1024}}\n"
        "cluster: {platform: dgx-a100, nodes: 6, gpus_per_node: 1}\n"
        "batch: {global: 12, micro: 1}\nstrategy: {pipeline: 6}\nsimulation: {engine: fast}\n"
        "train: {steps: 100, failures: {per_node_day: 1}, spares: {nodes: 0, empty: shrink, repair: 1 h}, "
        "checkpoint: {every: 10 steps, block: 1 s}, restart: {detect: 1 s, replace: 1 s, init: 1 s, load: 1 s}, "
        "elastic: {system: templates, reroute: 1 s, pipeline: [2, 3, 4, 5, 6]}}\n";
    struct trained trained;
    const struct shapes *shapes = &trained.training.course.shapes;
    struct brute *brute = xcalloc(1, sizeof *brute);

    (void)state;
    train_whole(&trained, text, (struct training_options){5, 7, 1});
    brute->scenario = &trained.scenario;
    assert_int_equal(shapes->on[1].nodes, 0);
    for (int nodes = 2; nodes < 6; nodes++) {
        double best = INFINITY;

        for (int replicas = 1; replicas <= nodes / 2; replicas++)
            best = fmin(best, best_of(brute, replicas, replicas, nodes, 12, 2));
        if (shapes->on[nodes].seconds < best * (1 - 1e-9) || shapes->on[nodes].seconds > best * 1.01)
            fail_msg("%d nodes: %g s; the best is %g s", nodes, shapes->on[nodes].seconds, best);
    }
    /* 5 nodes are all in use: replicas of 2 and 3 stages */
    assert_true(shapes->on[5].nodes == 5);
    trained_release(&trained);
    free(brute);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_templates)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
