/* Planned recomputation and offloading: what must hold for any schedule, model, limit and policy. */
#include "auto/bound.h"
#include "recompute/stage_plan.h"
#include "simulated.h"
#include "trials.h"
#include "stage/memory.h"

/* A random model, schedule, limit and policy; the limit may be one that no plan keeps. */
static char *random_scenario(unsigned number, const char *engine)
{
    static const char *const schedules[] = {"gpipe", "1f1b", "interleaved", "gpipe", "1f1b"};
    static const char *const recompute[] = {"none", "optimal", "optimal", "full"};
    static const char *const offload[] = {
        "none", "activations", "weights", "optimizer", "[activations, weights]", "[weights, optimizer]",
        "[activations, weights, optimizer]", "tensors", "tensors", "[tensors, weights]", "[tensors, weights, optimizer]",
    };
    uint64_t seed = seed_from(number * UINT64_C(0x9e3779b97f4a7c15));
    int pipeline = 1 + random_below(&seed, 4), schedule = random_below(&seed, (int)COUNT(schedules));
    int chunks = schedule == 2 && pipeline > 1 ? 2 : 1, micro = pipeline * (1 + random_below(&seed, 3));
    int layers = pipeline * chunks * (1 + random_below(&seed, 4)) + random_below(&seed, 3);
    int data = 1 + random_below(&seed, 2);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (schedule == 2 && pipeline == 1)
        schedule = 1;
    fputs("model: {layers: [", out);
    for (int l = 0; l < layers; l++)
        fprintf(out, "%s{forward: %d ms, backward: %d ms, activation: %d MB, boundary: %d MB, parameters: %d M}",
                l ? ", " : "", 1 + random_below(&seed, 20), 1 + random_below(&seed, 40), 20 + random_below(&seed, 80),
                random_below(&seed, 20), random_below(&seed, 4));
    fprintf(out, "]}\ncluster: {nodes: 1, gpus_per_node: %d, inside: {bandwidth: 100 GB/s, latency: 2 us}, "
            "host: {bandwidth: %d GB/s, latency: 10 us, update: 1 B}}\n", pipeline * data, 1 + random_below(&seed, 30));
    fprintf(out, "batch: {micro_batches: %d}\nstrategy: {schedule: %s, pipeline: %d, data: %d, zero: %d%s}\n", micro,
            schedules[schedule], pipeline, data, random_below(&seed, 4), chunks > 1 ? ", chunks: 2" : "");
    fprintf(out, "memory: {recompute: %s, ",
            recompute[random_below(&seed, strcmp(schedules[schedule], "gpipe") ? 4 : 3)]);
    fprintf(out, "offload: %s, ", offload[random_below(&seed, (int)COUNT(offload))]);
    fprintf(out, "limit: %d MB}\nsimulation: {engine: %s, collectives: measured, fold: off}\n",
            150 + random_below(&seed, 1200), engine);
    fclose(out);
    return text;
}

static void check_counts(const struct run *run, const char *text)
{
    const struct program *program = &run->lowered.program;
    const struct plan *plan = &run->workload->plan;

    for (int r = 0; r < program->ranks; r++) {
        double again = 0, moved = 0, ops[WHAT_COUNT] = {0}, layers = 0, steps = 0, held = 0, bytes = 0, sum = 0;
        const struct rank_metrics *rank = &run->metrics.ranks[r];

        for (int c = 0; c < plan_chunks(plan, r % plan->stages); c++) {
            int s = plan_virtual_stage(plan, r % plan->stages, c);
            const struct stage *stage = &run->workload->stages[s];

            if (!stage->plan)
                return;
            layers += (double)stage->nslices;
            steps += (double)(stage->plan->nsteps - stage->nslices);
            again += ordinary_times(run->workload)[s].recomputed.seconds;
            moved += 2 * stage->plan->offloaded;
        }
        for (size_t i = 0; i < program->ops.count; i++) {
            const struct op *op = &program->ops.items[i];
            const struct traits *traits = op_traits(program, op);

            if (program->lanes.items[op->lane].rank != r)
                continue;
            ops[op->what]++;
            held += traits->takes - traits->frees;
            if (op->mb >= 0 && (op->what == WHAT_OFFLOAD || (op->what == WHAT_PREFETCH && traits->takes > 0)))
                bytes += traits->compute.sent;
        }
        expect_near("forwards", ops[WHAT_FORWARD], layers * plan->micro_batches, text);
        expect_near("backwards", ops[WHAT_BACKWARD], layers * plan->micro_batches, text);
        expect_near("recomputations", ops[WHAT_RECOMPUTE], steps * plan->micro_batches, text);
        expect_near("recomputed", rank->seconds[ACCOUNT_RECOMPUTE], again * plan->micro_batches, text);
        expect_near("moved", bytes, moved * plan->micro_batches, text);
        assert_true(fabs(held) < 1);
        for (int kind = 0; kind <= ACCOUNT_PACK; kind++)
            sum += rank->seconds[kind];
        expect_near("every second", sum + rank->seconds[ACCOUNT_BUBBLE] + rank->exposed_communication +
                    rank->seconds[ACCOUNT_EXPOSED_OFFLOAD], run->metrics.iteration_time, text);
    }
}

/* As the command, but for advice, which takes many simulations. */
static int simulate_what_fits(struct simulated *simulated, struct error *err)
{
    const struct scenario *scenario = &simulated->scenario;

    if (workload_init(&simulated->workload, scenario, err) ||
        simulate(&simulated->workload, simulate_options_of(scenario), &simulated->run, err))
        return -1;
    if (simulated->run.metrics.peak_memory <= memory_limit(scenario))
        return 0;
    return error_add(err, EXIT_INFEASIBLE, scenario->node->loc, "memory: too little");
}

/* No iteration is shorter than what its works with what is recomputed in them, or its copies, take; counts those that are not
 * much longer. */
static void check_bound(const struct simulated *simulated, unsigned *near)
{
    double bound = workload_bound(&simulated->workload, NULL, NULL), time = simulated->run.metrics.iteration_time;

    if (bound > time * (1 + 1e-9))
        fail_msg("the bound is %.12g s, the iteration takes %.12g s:\n%s", bound, time, simulated->text);
    *near += bound > 0.9 * time;
}

/* Whatever is planned fits, as the timeline has it. */
static void test_random(void **state)
{
    const unsigned scenarios = (unsigned)trials(700);
    unsigned planned = 0, refused = 0, near = 0;

    (void)state;
    for (unsigned seed = 1; seed <= scenarios; seed++) {
        struct error err = {0};
        struct simulated simulated = {.text = random_scenario(seed, "ideal")};

        if (load_text(simulated.text, &simulated.scenario, &err))
            fail_at(simulated.text, &err);
        if (simulate_what_fits(&simulated, &err)) {
            if (scenario_plans_memory(&simulated.scenario) && !strstr(err.messages[0].text, "the least that a plan") &&
                !strstr(err.messages[0].text, "for what it always holds"))
                fail_at(simulated.text, &err);
            refused++;
        } else {
            check_counts(&simulated.run, simulated.text);
            planned += simulated.workload.stages[0].plan != NULL;
            check_bound(&simulated, &near);
        }
        simulated_release(&simulated);
        error_release(&err);
    }
    assert_true(planned > scenarios / 4 && refused > scenarios / 20 && near > scenarios / 8);
}

/* Seconds of an iteration, INFINITY where it does not fit; flop: that the hardware computes. */
static double seconds_with(const char *schedule, const char *mode, double limit, double *flop)
{
    struct error err = {0};
    struct simulated simulated;
    double seconds = INFINITY;

    simulated_load(&simulated,
                   "model: {transformer: {layers: 8, hidden: 1024, heads: 16, sequence: 1024, vocabulary: 8192}}\n"
                   "cluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro: 2, micro_batches: 8}\n"
                   "strategy: {schedule: %s, pipeline: 2, data: 1}\n"
                   "memory: {recompute: %s, limit: %.0f B}\ncosts: {host_launch: 0 s}\n"
                   "simulation: {engine: ideal}\n", schedule, mode, limit);
    if (!simulate_what_fits(&simulated, &err))
        seconds = simulated.run.metrics.iteration_time;
    *flop = simulated.run.metrics.hardware_flop;
    simulated_release(&simulated);
    error_release(&err);
    return seconds;
}

/* A plan that may keep a block, or all but the core of its attention, or its input, is as fast as the best of none,
 * selective and full, but for what rounding to slots costs; and between two of them faster than either. */
static void test_selective(void **state)
{
    static const char *const schedules[] = {"1f1b", "gpipe, recompute_last: true", "interleaved"};
    static const char *const modes[] = {"none", "selective", "full"};
    int faster = 0, fitting = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(schedules); i++)
        for (double limit = 3.5e9; limit <= 9e9; limit += 1.25e9) {
            double best = INFINITY, flop[4], planned = seconds_with(schedules[i], "optimal", limit, &flop[3]);

            for (size_t mode = 0; mode < COUNT(modes); mode++) {
                double seconds = seconds_with(schedules[i], modes[mode], limit, &flop[mode]);

                best = fmin(best, seconds);
                if (planned <= seconds * 0.9999 && isfinite(seconds))
                    assert_true(flop[3] <= flop[mode] * (1 + 1e-9));
            }
            fitting += isfinite(best);
            faster += planned < 0.99 * best && isfinite(best);
            if (planned > best * 1.002)
                fail_msg("%s, %g B: planned %g s, best %g s", schedules[i], limit, planned, best);
        }
    assert_true(fitting > 6 && faster > 2);
}

/* Copies to a host do not contend, so the engines agree wherever nothing else does. */
static void test_engines(void **state)
{
    const unsigned engines = (unsigned)trials(60);

    (void)state;
    for (unsigned seed = 1; seed <= engines; seed++) {
        double seconds[2] = {0};

        for (int engine = 0; engine < 2; engine++) {
            struct error err = {0};
            struct simulated simulated = {.text = random_scenario(seed, engine ? "ideal" : "simgrid")};

            assert_int_equal(load_text(simulated.text, &simulated.scenario, &err), 0);
            if (!simulate_what_fits(&simulated, &err))
                seconds[engine] = simulated.run.metrics.iteration_time;
            simulated_release(&simulated);
            error_release(&err);
        }
        assert_true(fabs(seconds[0] - seconds[1]) <= 1e-9 * (1 + seconds[1]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random), cmocka_unit_test(test_engines), cmocka_unit_test(test_selective),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
