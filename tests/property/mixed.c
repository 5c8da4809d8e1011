/* Random pipelines and replicas on parts of several kinds: engines and orders of parts against each other, and pipelines of
 * given times against a list schedule. */
#include "simulated.h"
#include "trials.h"

enum { PER_PART = 4, MOST_CELLS = 8, RANKS_MOST = 6, WORKS_MOST = 24 };

/* Prints `on` of each rank: half of the ranks' replicas on each part, shuffled. */
static void print_on(FILE *out, const int *parts, int pipeline, int data, const char *names)
{
    fputs("stages: [", out);
    for (int p = 0; p < pipeline; p++) {
        fputs("{on: [", out);
        for (int d = 0; d < data; d++)
            fprintf(out, "%s%c", d ? ", " : "", names[parts[p * data + d]]);
        fprintf(out, "]}%s", p + 1 < pipeline ? ", " : "]");
    }
}

/* Degrees, kinds of the two parts, and the seed of the shares. */
struct drawn {
    int tensor, pipeline, data, first, second, micro, zero;
    int parts[MOST_CELLS];           /* [rank * data + replica] */
    const char *schedule;
    uint64_t shares;
};

static struct drawn draw(uint64_t *seed)
{
    static const char *const schedules[] = {"1f1b", "gpipe", "zb-h1"};
    struct drawn drawn = {.tensor = 1 << random_below(seed, 3), .first = random_below(seed, 3),
                          .second = random_below(seed, 3), .micro = 2 + random_below(seed, 3)};
    int cells = MOST_CELLS / drawn.tensor;

    drawn.pipeline = 1 << random_below(seed, drawn.tensor == 4 ? 2 : drawn.tensor == 2 ? 3 : 4);
    drawn.data = cells / drawn.pipeline;
    drawn.schedule = schedules[random_below(seed, 3)];
    drawn.zero = drawn.data > 1 ? random_below(seed, 2) : 0;
    drawn.shares = random_next(seed);
    for (int i = 0; i < cells; i++)
        drawn.parts[i] = i < cells / 2;
    for (int i = cells - 1; i > 0; i--) {
        int other = random_below(seed, i + 1), kept = drawn.parts[i];

        drawn.parts[i] = drawn.parts[other];
        drawn.parts[other] = kept;
    }
    return drawn;
}

static void run_drawn(struct simulated *run, const struct drawn *drawn, const char *engine, bool turned)
{
    static const char *const kinds[] = {"dgx-a100", "dgx-h100", "dgx-1-v100"};
    char *strategy = NULL, shares[128] = "";
    size_t size;
    uint64_t seed = drawn->shares;
    FILE *out = open_memstream(&strategy, &size);

    for (int d = 0; d < drawn->data; d++)
        snprintf(shares + strlen(shares), sizeof shares - strlen(shares), "%s%d", d ? ", " : "", 2 + random_below(&seed, 2));
    print_on(out, drawn->parts, drawn->pipeline, drawn->data, "ab");
    fclose(out);
    run_text(run,
             "model: {transformer: {layers: 8, hidden: 1024, heads: 16, sequence: 512, vocabulary: 51200}}\n"
             "batch: {micro: %d, micro_batches: 4, shares: [%s]}\nsimulation: {engine: %s}\n"
             "strategy: {tensor: %d, data: %d, zero: %d, schedule: %s, %s}\n"
             "cluster: {network: {latency: 3 us}, parts: [{name: %c, platform: %s, nodes: 1, gpus_per_node: %d}, "
             "{name: %c, platform: %s, nodes: 1, gpus_per_node: %d}]}\n",
             drawn->micro, shares, engine, drawn->tensor, drawn->data, drawn->zero, drawn->schedule, strategy,
             turned ? 'b' : 'a', kinds[turned ? drawn->second : drawn->first], PER_PART,
             turned ? 'a' : 'b', kinds[turned ? drawn->first : drawn->second], PER_PART);
    free(strategy);
}

static void engines_and_orders_agree(void **state)
{
    const int count = few_or(12, 500);
    uint64_t seed = seed_from(7);
    double worst = 0, turned_worst = 0;
    int contended = 0;

    (void)state;
    for (int i = 0; i < count; i++) {
        struct drawn drawn = draw(&seed);
        struct simulated fast, other;
        double seconds;

        run_drawn(&fast, &drawn, "fast", false);
        seconds = fast.run.metrics.iteration_time;
        run_drawn(&other, &drawn, "simgrid", false);
        worst = fmax(worst, fabs(other.run.metrics.iteration_time / seconds - 1));
        if (fabs(other.run.metrics.iteration_time / seconds - 1) > 1e-9)
            fail_msg("fast %.17g, simgrid %.17g: %s", seconds, other.run.metrics.iteration_time, other.text);
        simulated_release(&other);
        run_drawn(&other, &drawn, "ideal", false);
        assert_true(other.run.metrics.iteration_time <= seconds * (1 + 1e-9));
        contended += other.run.metrics.iteration_time < seconds * (1 - 1e-6);
        simulated_release(&other);
        run_drawn(&other, &drawn, "fast", true);
        turned_worst = fmax(turned_worst, fabs(other.run.metrics.iteration_time / seconds - 1));
        if (fabs(other.run.metrics.iteration_time / seconds - 1) > 1e-12)
            fail_msg("%.17g, %.17g in the other order: %s", seconds, other.run.metrics.iteration_time, other.text);
        simulated_release(&other);
        simulated_release(&fast);
    }
    assert_true(count < 500 || contended > 20);      /* or the engines had nothing to differ in */
    print_message("%d mixed scenarios, in %d of which transfers meet: fast and simgrid differ by at most %.2g, orders of "
                  "parts by %.2g\n", count, contended, worst, turned_worst);
}

/* A rank's works in order: the micro-batch of a forward, -1 - micro-batch of a backward. */
static int list_works(bool gpipe, int rank, int ranks, int micro_batches, int *works)
{
    int count = 0, forward = 0, warm = gpipe ? micro_batches : ranks - rank;

    for (int backward = 0; backward < micro_batches; backward++) {
        while (forward < micro_batches && forward < backward + warm)
            works[count++] = forward++;
        works[count++] = -1 - (gpipe ? micro_batches - 1 - backward : backward);
    }
    return count;
}

/* s until a list schedule has done all, where sending takes no time. */
static double list_schedule(bool gpipe, int ranks, int micro_batches, double times[][2])
{
    int works[RANKS_MOST][WORKS_MOST], counts[RANKS_MOST], done[RANKS_MOST] = {0}, left = 0;
    double free_at[RANKS_MOST] = {0}, ends[2][RANKS_MOST][WORKS_MOST], last = 0;

    for (int p = 0; p < ranks; p++) {
        left += counts[p] = list_works(gpipe, p, ranks, micro_batches, works[p]);
        for (int m = 0; m < micro_batches; m++)
            ends[0][p][m] = ends[1][p][m] = INFINITY;
    }
    while (left)
        for (int p = 0; p < ranks; p++)
            while (done[p] < counts[p]) {
                int work = works[p][done[p]], back = work < 0, m = back ? -1 - work : work;
                double input = !back ? (p ? ends[0][p - 1][m] : 0) :
                               p + 1 < ranks ? ends[1][p + 1][m] : ends[0][p][m];

                if (isinf(input))
                    break;
                free_at[p] = ends[back][p][m] = fmax(free_at[p], input) + times[p][back];
                last = fmax(last, free_at[p]);
                done[p]++;
                left--;
            }
    return last;
}

static void pipelines_are_a_list_schedule(void **state)
{
    const int count = few_or(100, 1000);
    uint64_t seed = seed_from(11);
    double worst = 0;

    (void)state;
    for (int i = 0; i < count; i++) {
        int ranks = 1 + random_below(&seed, RANKS_MOST), micro_batches = 1 + random_below(&seed, WORKS_MOST / 2);
        bool gpipe = random_below(&seed, 2);
        double times[RANKS_MOST][2], expected, found;
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        struct simulated run;

        fputs("model: {stages: [", out);
        for (int p = 0; p < ranks; p++) {
            times[p][0] = (1 + random_below(&seed, 1000)) * 1e-3;
            times[p][1] = (1 + random_below(&seed, 1000)) * 1e-3;
            fprintf(out, "%s{forward: %.17g s, backward: %.17g s}", p ? ", " : "", times[p][0], times[p][1]);
        }
        fprintf(out, "]}\nbatch: {micro_batches: %d}\nsimulation: {engine: fast}\nstrategy: {schedule: %s, data: 1, stages: [",
                micro_batches, gpipe ? "gpipe" : "1f1b");
        for (int p = 0; p < ranks; p++)
            fprintf(out, "%s{on: %s}", p ? ", " : "", random_below(&seed, 2) ? "a" : "b");
        fputs("]}\ncluster: {communication: none, network: {latency: 0 us}, parts: [{name: a, platform: dgx-a100, nodes: 1, "
              "inside: {latency: 0 us}}, {name: b, platform: dgx-1-v100, nodes: 1, inside: {latency: 0 us}}]}\n", out);
        fclose(out);
        run_text(&run, "%s", text);
        found = run.run.metrics.iteration_time;
        expected = list_schedule(gpipe, ranks, micro_batches, times);
        worst = fmax(worst, fabs(found / expected - 1));
        if (fabs(found / expected - 1) > 1e-12)
            fail_msg("%.17g, a list schedule %.17g: %s", found, expected, text);
        simulated_release(&run);
        free(text);
    }
    print_message("%d mixed pipelines differ from a list schedule by at most %.2g\n", count, worst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_and_orders_agree), cmocka_unit_test(pipelines_are_a_list_schedule),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
