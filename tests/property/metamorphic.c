/* How times change, or do not, when a scenario changes in a way whose effect is known: other engines, modes, units,
 * names of GPUs, channels, batches. Random plans, from fixed seeds. */
#include "random_plan.h"
#include "trials.h"

enum { PLANS = 80, MORE_PLANS = 160 };

static double iteration(const struct random_plan *plan)
{
    struct simulated simulated;
    double time;

    simulate_plan(&simulated, plan);
    time = simulated.run.timeline.makespan;
    simulated_release(&simulated);
    return time;
}

/* Gradient all-reduces alone on their links: one stage, one bucket. */
static void alone(struct random_plan *plan)
{
    plan->pipeline = 1;
    plan->data_parallel = "synchronous";
}

struct use { struct link link; double from, to; };

static int by_link_and_time(const void *a, const void *b)
{
    const struct use *x = a, *y = b;

    if (x->link.kind != y->link.kind)
        return x->link.kind < y->link.kind ? -1 : 1;
    if (x->link.index != y->link.index)
        return x->link.index < y->link.index ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* Whether two transfers of the timeline are on one link at the same time. */
static bool contends(const struct simulated *simulated)
{
    const struct program *program = &simulated->run.lowered.program;
    const struct cluster *cluster = &simulated->scenario.cluster;
    struct { struct use *items; size_t count, capacity; } uses = {0};
    bool found = false;

    for (size_t i = 0; i < program->ops.count && !cluster->ideal; i++) {
        const struct op *op = &program->ops.items[i];
        const struct op_transfer *transfer = &op_traits(program, op)->transfer;

        if (op->kind != OP_TRANSFER || op->amount == 0)
            continue;
        struct route route = cluster_route(cluster, (int)transfer->src, (int)transfer->dst);
        for (int k = 0; k < route.count; k++)
            *GROW(&uses) = (struct use){route.links[k], simulated->run.timeline.start[i] + route.latency,
                                        simulated->run.timeline.end[i]};
    }
    if (uses.count)
        qsort(uses.items, uses.count, sizeof *uses.items, by_link_and_time);
    for (size_t i = 1; i < uses.count && !found; i++)
        found = uses.items[i - 1].link.kind == uses.items[i].link.kind &&
                uses.items[i - 1].link.index == uses.items[i].link.index &&
                uses.items[i].from < uses.items[i - 1].to - 1e-12;
    free(uses.items);
    return found;
}

/* Where the ideal timeline puts no two transfers on a link at once SimGrid says the same, operation by operation; it is
 * never earlier anywhere. */
static void test_engines(void **state)
{
    int agreed = 0, contended = 0;

    (void)state;
    EACH_TRIAL(i, PLANS) {
        uint64_t seed = i * 0xA0761D6478BD642Fu;
        struct random_plan plan = random_plan(&seed);
        struct simulated ideal, simgrid;
        bool same = true;

        if (i % 2)
            any_schedule(&plan, &seed);
        plan.engine = "ideal";
        simulate_plan(&ideal, &plan);
        plan.engine = "simgrid";
        simulate_plan(&simgrid, &plan);
        assert_int_equal(ideal.run.lowered.program.ops.count, simgrid.run.lowered.program.ops.count);
        for (size_t op = 0; op < ideal.run.lowered.program.ops.count; op++) {
            double a = ideal.run.lowered.program.ops.items[op].amount;
            double b = simgrid.run.lowered.program.ops.items[op].amount;

            same = same && fabs(a - b) <= 1e-12;
            if (simgrid.run.timeline.start[op] < ideal.run.timeline.start[op] - 1e-9 ||
                simgrid.run.timeline.end[op] < ideal.run.timeline.end[op] - 1e-9)
                fail_msg("simgrid is earlier than ideal in\n%s", simgrid.text);
        }
        same = same && !contends(&ideal);
        for (size_t op = 0; same && op < ideal.run.lowered.program.ops.count; op++)
            if (fabs(simgrid.run.timeline.end[op] - ideal.run.timeline.end[op]) > 1e-9)
                fail_msg("operation %zu ends at %.17g with simgrid, at %.17g with ideal, in\n%s", op,
                         simgrid.run.timeline.end[op], ideal.run.timeline.end[op], simgrid.text);
        agreed += same;
        contended += simgrid.run.timeline.makespan > 1.01 * ideal.run.timeline.makespan;
        simulated_release(&ideal);
        simulated_release(&simgrid);
    }
    assert_true(agreed > trials(PLANS) / 40 && contended > trials(PLANS) / 40);      /* or this has tested nothing */
}

/* One replica stands for all, and gives the times of all. */
static void test_fold(void **state)
{
    int folded = 0;

    (void)state;
    EACH_TRIAL(i, PLANS) {
        uint64_t seed = i * 0xE7037ED1A0B428DBu;
        struct random_plan plan = random_plan(&seed);
        struct simulated one, all;

        if (i % 2)
            any_schedule(&plan, &seed);
        plan.collectives = "measured";
        plan.fold = "auto";
        simulate_plan(&one, &plan);
        plan.fold = "off";
        simulate_plan(&all, &plan);
        expect_near("iteration", one.run.timeline.makespan, all.run.timeline.makespan, one.text);
        expect_near("exposed", 1 + one.run.metrics.exposed_communication, 1 + all.run.metrics.exposed_communication,
                    one.text);
        expect_near("traffic", one.run.metrics.communication_bytes_per_gpu,
                    all.run.metrics.communication_bytes_per_gpu, one.text);
        folded += one.run.lowered.alike.folded;
        simulated_release(&one);
        simulated_release(&all);
    }
    assert_true(folded > trials(PLANS) / 10);
}

/* One leaf switch over all nodes is the same network as the nonblocking one. But there every GPU of a tensor group has
 * its own flows: without folding none stands for another. Degrees that do not divide the GPUs of a node, in any
 * placement, put some groups inside a node and others across. */
static void test_representatives(void **state)
{
    int represented = 0, folded = 0;

    (void)state;
    EACH_TRIAL(i, MORE_PLANS) {
        uint64_t seed = i * 0xC2B2AE3D27D4EB4Fu;
        struct random_plan plan = random_plan(&seed);
        struct simulated few, all;

        plan.transformer = true;
        plan.engine = i % 4 ? "ideal" : "simgrid";
        plan.ideal = false;
        plan.tensor = PICK_INT(&seed, 2, 2, 4);
        plan.data = PICK_INT(&seed, 1, 2, 3, 4, 5, 6);
        plan.pipeline = PICK_INT(&seed, 1, 1, 2, 3);
        plan.nics = plan.gpus_per_node = PICK_INT(&seed, 1, 2, 3, 4, 5, 8);
        plan.leaf_nodes = 0;
        simulate_plan(&few, &plan);
        plan.leaf_nodes = 100;
        plan.fold = "off";
        simulate_plan(&all, &plan);
        assert_int_equal(all.run.lowered.program.flows, all.scenario.cluster.nodes > 1 ? plan.tensor : 1);
        expect_near("iteration", few.run.timeline.makespan, all.run.timeline.makespan, few.text);
        expect_near("traffic", few.run.metrics.communication_bytes_per_gpu,
                    all.run.metrics.communication_bytes_per_gpu, few.text);
        represented += few.run.lowered.program.flows == 1;
        folded += few.run.lowered.alike.folded;
        simulated_release(&few);
        simulated_release(&all);
    }
    assert_true(represented > trials(MORE_PLANS) / 8 && folded > trials(MORE_PLANS) / 80);
}

/* A measured all-reduce takes as long as its messages, where nothing else is on its links. */
static void test_measured(void **state)
{
    int synced = 0;

    (void)state;
    EACH_TRIAL(i, PLANS) {
        uint64_t seed = i * 0x8EBC6AF09C88C6E3u;
        struct random_plan plan = random_plan(&seed);
        double messages, measured;

        alone(&plan);
        plan.collectives = "messages";
        messages = iteration(&plan);
        plan.collectives = "measured";
        measured = iteration(&plan);
        if (fabs(messages - measured) > 1e-9 * measured) {
            char *text = plan_yaml(&plan);
            print_error("%.17g as messages, %.17g measured, in\n%s", messages, measured, text);
            free(text);
            fail();
        }
        synced += plan.data > 1;
    }
    assert_true(synced > trials(PLANS) / 2);
}

/* Without contention other stages do not matter: a measured all-reduce of one bucket is never too early, and exact
 * where all replicas are ready at once. With several stages on SimGrid it misses what it shares with their traffic. */
static void test_measured_stages(void **state)
{
    int exact = 0;

    (void)state;
    EACH_TRIAL(i, MORE_PLANS) {
        uint64_t seed = i * 0x94D049BB133111EBu;
        struct random_plan plan = random_plan(&seed);
        struct simulated messages, measured;

        plan.data_parallel = "synchronous";
        plan.engine = "ideal";
        plan.fold = "auto";
        plan.collectives = "messages";
        simulate_plan(&messages, &plan);
        plan.collectives = "measured";
        simulate_plan(&measured, &plan);
        assert_true(messages.run.timeline.makespan <= measured.run.timeline.makespan * (1 + 1e-12));
        if (measured.run.lowered.alike.folded) {
            expect_near("iteration", measured.run.timeline.makespan, messages.run.timeline.makespan, measured.text);
            exact++;
        }
        simulated_release(&messages);
        simulated_release(&measured);
    }
    assert_true(exact > trials(MORE_PLANS) / 4);
}

/* Everything twice as slow takes twice as long. */
static void test_doubling(void **state)
{
    (void)state;
    EACH_TRIAL(i, PLANS) {
        uint64_t seed = i * 0x589965CC75374CC3u;
        struct random_plan plan = random_plan(&seed);
        double once;
        char *text;

        if (plan.transformer)
            plan.tensor = 1;
        plan.transformer = false;
        once = iteration(&plan);
        plan.speed = 0.5;
        text = plan_yaml(&plan);
        expect_near("iteration", iteration(&plan), 2 * once, text);
        free(text);
    }
}

static void test_faster_networks(void **state)
{
    (void)state;
    EACH_TRIAL(i, PLANS) {
        uint64_t seed = i * 0x1D8E4E27C47D124Fu;
        struct random_plan plan = random_plan(&seed);
        double before, after;

        plan.engine = "ideal";
        before = iteration(&plan);
        plan.inside *= random_below(&seed, 2) ? 2 : 1;
        plan.network *= random_below(&seed, 2) ? 3 : 1;
        plan.inside_latency /= random_below(&seed, 2) ? 2 : 1;
        plan.network_latency /= random_below(&seed, 2) ? 2 : 1;
        after = iteration(&plan);
        assert_true(after <= before * (1 + 1e-12));
    }
}

/* Where all GPUs are alike to one another, it does not matter which is which. */
static void test_relabelling(void **state)
{
    static const char *const placements[] = {
        "tensor, data, pipeline", "tensor, pipeline, data", "data, tensor, pipeline", "data, pipeline, tensor",
        "pipeline, tensor, data", "pipeline, data, tensor",
    };

    (void)state;
    EACH_TRIAL(i, PLANS / 4) {
        uint64_t seed = i * 0xEB44ACCAB455D165u;
        struct random_plan plan = random_plan(&seed);
        double first = 0;

        plan.gpus_per_node = plan.nics = random_below(&seed, 2) ? 1 : plan.tensor * plan.data * plan.pipeline;
        plan.leaf_nodes = 0;
        for (size_t p = 0; p < COUNT(placements); p++) {
            char *text;
            double time;

            plan.placement = placements[p];
            text = plan_yaml(&plan);
            time = iteration(&plan);
            first = p ? first : time;
            expect_near("iteration", time, first, text);
            free(text);
        }
    }
}

/* Channels divide the bytes, and add none. */
static void test_channels(void **state)
{
    (void)state;
    EACH_TRIAL(i, PLANS / 4) {
        uint64_t seed = i * 0x2545F4914F6CDD1Du;
        struct random_plan plan = random_plan(&seed);
        double first = 0;

        for (plan.channels = 1; plan.channels <= 4; plan.channels++) {
            struct simulated simulated;

            simulate_plan(&simulated, &plan);
            first = plan.channels > 1 ? first : simulated.run.metrics.communication_bytes_per_gpu;
            expect_near("traffic", simulated.run.metrics.communication_bytes_per_gpu, first, simulated.text);
            simulated_release(&simulated);
        }
    }
}

/* Twice the micro-batches: on a free network each further one costs what one costs on the busiest rank, the model's
 * FLOPs and the traffic of a replica double. */
static void test_batches(void **state)
{
    (void)state;
    EACH_TRIAL(i, PLANS / 4) {
        uint64_t seed = i * 0x9FB21C651E98DF25u;
        struct random_plan plan = random_plan(&seed);
        struct simulated once, twice;
        double each = plan.forward + plan.backward, further;

        plan.data = 1;
        plan.tied = false;
        plan.recompute = "none";
        plan.ideal = !plan.transformer;
        further = plan.micro_batches * each * (strcmp(plan.schedule, "naive") ? 1 : plan.pipeline);
        simulate_plan(&once, &plan);
        plan.micro_batches *= 2;
        simulate_plan(&twice, &plan);
        expect_near("traffic", twice.run.metrics.communication_bytes_per_gpu,
                    2 * once.run.metrics.communication_bytes_per_gpu, twice.text);
        if (plan.transformer)
            expect_near("flop", twice.run.metrics.model_flop, 2 * once.run.metrics.model_flop, twice.text);
        else
            expect_near("iteration", twice.run.timeline.makespan, once.run.timeline.makespan + further, twice.text);
        simulated_release(&once);
        simulated_release(&twice);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engines),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_representatives),
        cmocka_unit_test(test_measured),
        cmocka_unit_test(test_measured_stages),
        cmocka_unit_test(test_doubling),
        cmocka_unit_test(test_faster_networks),
        cmocka_unit_test(test_relabelling),
        cmocka_unit_test(test_channels),
        cmocka_unit_test(test_batches),
    };

    return cmocka_run_group_tests_name("metamorphic", tests, NULL, NULL);
}
