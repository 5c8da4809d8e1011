/* Random pipelines whose ranks differ in their degrees: engines and orders of parts against each other, and pipelines of
 * given times against a list schedule. */
#include "trials.h"
#include "unequal_ranks.h"

enum { MICRO_BATCHES = 4, RANKS_MOST = 4, REPLICAS_MOST = 6 };

/* Ranks with random degrees, samples, schedule and placement. */
struct drawn {
    int ranks, tensor[RANKS_MOST], data[RANKS_MOST], micro;
    char stages[512], rest[256];
};

static void draw(uint64_t *seed, struct drawn *drawn)
{
    static const int tensors[] = {1, 2, 4, 3}, datas[] = {1, 2, 3, 4};
    static const char *const schedules[] = {"1f1b", "gpipe", "zb-h1", "interleaved, chunks: 2"};
    const char *schedule;

    *drawn = (struct drawn){.ranks = 2 + random_below(seed, 3)};
    schedule = schedules[random_below(seed, drawn->ranks == 2 ? 4 : 3)];
    for (int p = 0; p < drawn->ranks; p++) {
        drawn->tensor[p] = tensors[random_below(seed, 4)];
        drawn->data[p] = datas[random_below(seed, 4)];
        snprintf(drawn->stages + strlen(drawn->stages), sizeof drawn->stages - strlen(drawn->stages),
                 "%s{tensor: %d, data: %d}", p ? ", " : "", drawn->tensor[p], drawn->data[p]);
    }
    drawn->micro = 12 / drawn->data[0];
    snprintf(drawn->rest, sizeof drawn->rest, "schedule: %s, zero: %d, sequence_parallel: %s, overlap_p2p: %s, duplex_p2p: %s, "
             "placement: [%s, pipeline]", schedule, random_below(seed, 4), random_below(seed, 2) ? "true" : "false",
             random_below(seed, 2) ? "true" : "false", random_below(seed, 2) ? "true" : "false",
             random_below(seed, 2) ? "tensor, data" : "data, tensor");
}

static void engines_agree(void **state)
{
    const int count = few_or(16, 500);
    uint64_t seed = seed_from(11);
    double worst = 0;
    int contended = 0;

    (void)state;
    for (int i = 0; i < count; i++) {
        struct drawn drawn;
        struct simulated fast, other;
        const char *tied = random_below(&seed, 2) ? "true" : "false";
        double seconds;

        draw(&seed, &drawn);
        run_text(&fast, shape, tied, drawn.micro, "fast", drawn.stages, drawn.rest, 8);
        seconds = fast.run.metrics.iteration_time;
        run_text(&other, shape, tied, drawn.micro, "simgrid", drawn.stages, drawn.rest, 8);
        worst = fmax(worst, fabs(other.run.metrics.iteration_time / seconds - 1));
        if (fabs(other.run.metrics.iteration_time / seconds - 1) > 1e-9)
            fail_msg("fast %.17g, simgrid %.17g: %s", seconds, other.run.metrics.iteration_time, other.text);
        simulated_release(&other);
        run_text(&other, shape, tied, drawn.micro, "ideal", drawn.stages, drawn.rest, 8);
        contended += other.run.metrics.iteration_time < seconds * (1 - 1e-6);
        if (other.run.metrics.iteration_time > seconds * (1 + 1e-9))
            fail_msg("fast %.17g, ideal %.17g: %s", seconds, other.run.metrics.iteration_time, other.text);
        simulated_release(&other);
        simulated_release(&fast);
    }
    assert_true(2 * contended > count);
    print_message("%d scenarios with unequal degrees, in %d of which transfers meet: fast and simgrid differ by at most "
                  "%.2g\n", count, contended, worst);
}

/* Parts in another order, with the stages on the same ones, are the same on a network in which all nodes are alike. */
static void order_of_parts_does_not_matter(void **state)
{
    static const char *const orders[] = {
        "{name: a, platform: dgx-a100, nodes: 1}, {name: b, platform: dgx-h100, nodes: 2}, {name: c, platform: dgx-1-v100, nodes: 1}",
        "{name: c, platform: dgx-1-v100, nodes: 1}, {name: a, platform: dgx-a100, nodes: 1}, {name: b, platform: dgx-h100, nodes: 2}",
    };
    static const char *const on[] = {
        "{on: a, tensor: 2, data: 4}, {on: b, tensor: 8, data: 2}, {on: c, tensor: 4, data: 1}",
        "{on: c, tensor: 1, data: 6}, {on: [a, b], tensor: 4, data: 2}, {on: b, tensor: 2, data: 3}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(on); i++) {
        double seconds[2];

        for (size_t k = 0; k < 2; k++) {
            struct simulated simulated;

            run_text(&simulated, "model: {transformer: {layers: 6, hidden: 768, heads: 24, sequence: 768, vocabulary: 50304}}\n"
                     "batch: {micro: 6, micro_batches: 4}\nsimulation: {engine: fast}\nstrategy: {zero: 1, stages: [%s]}\n"
                     "cluster: {network: {latency: 3 us}, parts: [%s]}\n", on[i], orders[k]);
            seconds[k] = simulated.run.metrics.iteration_time;
            simulated_release(&simulated);
        }
        if (fabs(seconds[1] / seconds[0] - 1) > 1e-12)
            fail_msg("%.17g in one order of parts, %.17g in the other: %s", seconds[0], seconds[1], on[i]);
    }
}

/* s until a list schedule has done all works, where sending takes no time: a work waits for the works of the neighbouring rank
 * on all replicas that have any of its samples. `slower`: of each replica and rank. */
static double list_schedule(const struct workload *workload, const int *data, double slower[][RANKS_MOST], double forward,
                            double backward)
{
    int ranks = workload->plan.stages, left = 0, done[REPLICAS_MOST][RANKS_MOST] = {{0}};
    double ends[2][REPLICAS_MOST][RANKS_MOST][MICRO_BATCHES], ready[REPLICAS_MOST][RANKS_MOST] = {{0}}, last = 0;

    for (int p = 0; p < ranks; p++)
        for (int r = 0; r < data[p]; r++)
            for (size_t i = 0; i < workload->rows[p].count; i++) {
                left += workload->rows[p].items[i].kind <= BACKWARD;
                if (workload->rows[p].items[i].kind <= BACKWARD)
                    ends[workload->rows[p].items[i].kind == BACKWARD][r][p][workload->rows[p].items[i].mb] = INFINITY;
            }
    while (left)
        for (int p = 0; p < ranks; p++)
            for (int r = 0; r < data[p]; r++) {
                bool over = (size_t)done[r][p] == workload->rows[p].count;
                struct work work = workload->rows[p].items[over ? 0 : done[r][p]];
                bool back = work.kind == BACKWARD;
                int other = back ? p + 1 : p - 1;
                double begin = ready[r][p];

                if (over || (work.kind != FORWARD && work.kind != BACKWARD))
                    continue;
                for (int k = 0; other >= 0 && other < ranks && k < data[other]; k++)     /* samples k / d to (k + 1) / d */
                    if (k * data[p] < (r + 1) * data[other] && r * data[other] < (k + 1) * data[p])
                        begin = fmax(begin, ends[back][k][other][work.mb]);
                if (isinf(begin))
                    continue;
                ready[r][p] = ends[back][r][p][work.mb] = begin + slower[r][p] * (back ? backward : forward);
                last = fmax(last, ready[r][p]);
                done[r][p]++;
                left--;
            }
    return last;
}

/* Given times on GPUs of which some are slower. */
static void given_times_are_a_list_schedule(void **state)
{
    static const int datas[] = {1, 2, 3, 4, 6};
    const int count = few_or(16, 1000);
    uint64_t seed = seed_from(5);

    (void)state;
    for (int i = 0; i < count; i++) {
        struct simulated simulated;
        int ranks = 2 + random_below(&seed, RANKS_MOST - 1), data[RANKS_MOST], seat = 0;
        char stages[256] = "", stragglers[1024] = "";
        double slower[REPLICAS_MOST][RANKS_MOST];

        for (int p = 0; p < ranks; p++) {
            data[p] = datas[random_below(&seed, 5)];
            snprintf(stages + strlen(stages), sizeof stages - strlen(stages), "%s{data: %d}", p ? ", " : "", data[p]);
            for (int r = 0; r < data[p]; r++, seat++) {
                slower[r][p] = random_below(&seed, 3) ? 1 : 1 + 0.25 * (1 + random_below(&seed, 4));
                if (slower[r][p] > 1)
                    snprintf(stragglers + strlen(stragglers), sizeof stragglers - strlen(stragglers),
                             "%s{gpu: %d, slower: %g}", *stragglers ? ", " : "", seat, slower[r][p]);
            }
        }
        run_text(&simulated, "model: {stages: {forward: 1 s, backward: 2 s}}\nbatch: {micro: %d, micro_batches: 4}\n"
                 "strategy: {schedule: %s, stages: [%s]}\ncluster: {platform: ideal}\n"
                 "simulation: {engine: ideal, stragglers: [%s]}\n", 12 / data[0], random_below(&seed, 2) ? "gpipe" : "1f1b",
                 stages, stragglers);
        expect_near("iteration", simulated.run.metrics.iteration_time,
                    list_schedule(&simulated.workload, data, slower, 1, 2), simulated.text);
        simulated_release(&simulated);
    }
    print_message("%d pipelines with unequal degrees are a list schedule\n", count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_agree), cmocka_unit_test(order_of_parts_does_not_matter),
        cmocka_unit_test(given_times_are_a_list_schedule),
    };

    return cmocka_run_group_tests_name("degrees_random", tests, NULL, NULL);
}
