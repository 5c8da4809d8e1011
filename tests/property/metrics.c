/* The numbers of an iteration against what must hold of them: sums, traffic by formula, recomputing. */
#include "random_plan.h"
#include "trials.h"

enum { PLANS = 300 };

/* Every second of a rank is compute, exposed communication or bubble. */
static void assert_seconds(const struct simulated *simulated)
{
    const struct metrics *metrics = &simulated->run.metrics;
    double compute = 0, bubble = 0, exposed = 0, n = metrics->nranks;

    for (int r = 0; r < metrics->nranks; r++) {
        const struct rank_metrics *rank = &metrics->ranks[r];
        double busy = 0;

        for (int kind = 0; kind <= ACCOUNT_PACK; kind++)
            busy += rank->seconds[kind];
        expect_near("a rank's time", busy + rank->exposed_communication + rank->seconds[ACCOUNT_BUBBLE],
                    metrics->iteration_time, simulated->text);
        assert_true(rank->seconds[ACCOUNT_BUBBLE] >= -1e-15 && rank->exposed_communication >= -1e-15);
        compute += busy / n;
        bubble += rank->seconds[ACCOUNT_BUBBLE] / n;
        exposed += rank->exposed_communication / n;
    }
    expect_near("utilization", metrics->utilization, compute / metrics->iteration_time, simulated->text);
    assert_true(fabs(metrics->bubble_fraction - bubble / metrics->iteration_time) < 1e-12);
    assert_true(fabs(metrics->bubble_overhead - bubble / compute) < 1e-9);
    assert_true(fabs(metrics->exposed_communication - exposed) <= 1e-9 * metrics->iteration_time);
}

/* Kernels take the same time wherever they run and whenever. */
static void assert_compute(const struct simulated *simulated, const struct random_plan *plan)
{
    const struct run *run = &simulated->run;

    for (int r = 0; r < run->metrics.nranks; r++) {
        const struct stage_times *times = &ordinary_times(run->workload)[r % plan->pipeline];
        const double *seconds = run->metrics.ranks[r].seconds;

        expect_near("forward", seconds[ACCOUNT_FORWARD], plan->micro_batches * times->work[FORWARD].seconds,
                    simulated->text);
        expect_near("backward", seconds[ACCOUNT_BACKWARD], plan->micro_batches * times->work[BACKWARD].seconds,
                    simulated->text);
        expect_near("update", seconds[ACCOUNT_UPDATE], times->update.seconds, simulated->text);
    }
}

static int recomputed(const struct random_plan *plan)
{
    if (strcmp(plan->recompute, "full"))
        return 0;
    return strstr(plan->schedule, "gpipe") ? plan->micro_batches - 1 : plan->micro_batches;
}

/* Elements on each GPU of a stage of the little GPT (Shoeybi et al. 2019: columns and rows over t, norms and the biases
 * of rows whole). */
static double stage_parameters(const struct random_plan *plan, int stage)
{
    double h = HIDDEN, t = plan->tensor, block = (12 * h * h + 7 * h) / t + 6 * h;
    double vocabulary = ceil(VOCABULARY / t) * h;
    bool first = stage == 0, last = stage == plan->pipeline - 1;

    if (!plan->transformer)
        return plan->parameters;
    return plan->blocks * block + (first ? vocabulary + SEQUENCE * h : 0) +
           (last ? 2 * h + (first && plan->tied ? 0 : vocabulary) : 0);
}

/* All-reduces of the tensor group: a block has two in the forward, two in the backward, two more where it is
 * recomputed; the embedding has one in the forward, the output layer one in the backward. */
static double tensor_all_reduces(const struct random_plan *plan, int stage)
{
    return plan->micro_batches * (4.0 * plan->blocks + (stage == 0) + (stage == plan->pipeline - 1)) +
           recomputed(plan) * 2.0 * plan->blocks;
}

static double expected_bytes(const struct random_plan *plan)
{
    double activation = 2.0 * plan->micro * SEQUENCE * HIDDEN, bytes = 0;
    double boundary = plan->transformer ? activation : plan->boundary;

    for (int stage = 0; stage < plan->pipeline; stage++) {
        if (plan->tensor > 1)
            bytes += tensor_all_reduces(plan, stage) * all_reduce_sent(plan->all_reduce, plan->tensor, activation);
        if (plan->data > 1)
            bytes += all_reduce_sent(plan->all_reduce, plan->data, 2 * stage_parameters(plan, stage));
    }
    /* sent whole by each GPU, or a share, which the receivers gather: (t - 1) / t of it each */
    bytes += 2.0 * (plan->pipeline - 1) * plan->micro_batches * boundary;
    if (plan->transformer && plan->tied && plan->pipeline > 1)
        bytes += 2 * all_reduce_sent("ring", 2, 2 * ceil(VOCABULARY / (double)plan->tensor) * HIDDEN);
    return bytes / plan->pipeline;
}

static void test_random_plans(void **state)
{
    (void)state;
    EACH_CASE(i, PLANS) {
        uint64_t seed = i * 0xD1B54A32D192ED03u;
        struct random_plan plan = random_plan(&seed);
        struct simulated simulated;

        if (random_below(&seed, 3))
            plan.engine = "ideal";
        simulate_plan(&simulated, &plan);
        assert_seconds(&simulated);
        if (isnan(simulated.run.metrics.lockstep))       /* else the run is a replay whose kernels vary (lockstep.h) */
            assert_compute(&simulated, &plan);
        for (int stage = 0; stage < plan.pipeline; stage++)
            expect_near("parameters", simulated.workload.stages[stage].parameters, stage_parameters(&plan, stage),
                        simulated.text);
        expect_near("traffic", simulated.run.metrics.communication_bytes_per_gpu, expected_bytes(&plan),
                    simulated.text);
        simulated_release(&simulated);
    }
}

/* The sums hold whatever the schedule. */
static void test_any_schedule(void **state)
{
    (void)state;
    EACH_CASE(i, PLANS / 2) {
        uint64_t seed = i * 0xE7037ED1A0B428DBu;
        struct random_plan plan = random_plan(&seed);
        struct simulated simulated;

        any_schedule(&plan, &seed);
        simulate_plan(&simulated, &plan);
        if (!scenario_schedule(&simulated.scenario)->asynchronous)      /* their metrics are of the steady state */
            assert_seconds(&simulated);
        simulated_release(&simulated);
    }
}

static struct random_plan little_gpt(void)
{
    return (struct random_plan){
        .transformer = true, .blocks = 4, .tensor = 1, .pipeline = 2, .data = 1, .micro_batches = 6, .micro = 2,
        .schedule = "1f1b", .recompute = "none", .placement = "tensor, data, pipeline", .all_reduce = "ring",
        .data_parallel = "ddp", .collectives = "auto", .fold = "auto", .engine = "ideal", .gpus_per_node = 8, .nics = 8,
        .inside = 3e11, .network = 2.5e10, .speed = 1,
    };
}

/* Forward FLOPs of the whole model and batch: 24 B s l h^2 (1 + s / 6h) and the logits' 2 B s h V. */
static void test_flop_of_recomputing(void **state)
{
    static const char *const modes[] = {"none", "selective", "full"};

    (void)state;
    for (size_t mode = 0; mode < COUNT(modes); mode++)
        for (int data = 1; data <= 2; data++)
            for (int tensor = 1; tensor <= 4; tensor *= 4) {
                struct random_plan plan = little_gpt();
                double h = HIDDEN, s = SEQUENCE, samples = 6 * 2 * data, l = plan.blocks * plan.pipeline;
                double blocks = 24 * samples * s * l * h * h * (1 + s / (6 * h));
                double logits = 2 * samples * s * h * VOCABULARY;
                double core = 4 * samples * s * s * h * l, again = mode == 2 ? blocks : mode == 1 ? core : 0;
                struct simulated simulated;

                plan.data = data;
                plan.tensor = tensor;
                plan.recompute = modes[mode];
                simulate_plan(&simulated, &plan);
                expect_near("model flop", simulated.run.metrics.model_flop, 3 * (blocks + logits), simulated.text);
                expect_near("hardware flop", simulated.run.metrics.hardware_flop, 3 * (blocks + logits) + again,
                            simulated.text);
                expect_near("flop rate", simulated.run.metrics.hardware_flops_per_gpu,
                            (3 * (blocks + logits) + again) / simulated.run.metrics.iteration_time /
                            (2 * data * tensor),
                            simulated.text);
                simulated_release(&simulated);
            }
}

/* Korthikanti et al. 2022, table 2: s b h (10 + 24/t + 5 a s/(h t)) a block; without the attention core s b h (10 +
 * 24/t); under full recomputation 2 s b h, and all else of one block while it is recomputed. Stage 0 of 1F1B holds P of
 * them, and the masks of the embedding's dropout, s b h. */
static void test_memory_of_recomputing(void **state)
{
    (void)state;
    for (int tensor = 1; tensor <= 4; tensor *= 2) {
        struct random_plan plan = little_gpt();
        double sbh = SEQUENCE * plan.micro * HIDDEN, t = tensor, core = 5.0 * HEADS * SEQUENCE / (HIDDEN * t);
        double whole = sbh * (10 + 24 / t + core);
        const struct { const char *mode; double expected; } cases[] = {
            {"none", 2 * (4 * whole + sbh)},
            {"selective", 2 * (4 * sbh * (10 + 24 / t) + sbh)},
            {"full", 2 * (4 * 2 * sbh + sbh) + whole - 2 * sbh},
        };

        plan.tensor = tensor;
        for (size_t i = 0; i < COUNT(cases); i++) {
            struct simulated simulated;

            plan.recompute = cases[i].mode;
            simulate_plan(&simulated, &plan);
            expect_near("activations", simulated.run.metrics.ranks[0].peak_activation, cases[i].expected,
                        simulated.text);
            const double *held = simulated.run.metrics.ranks[0].memory.bytes;
            expect_near("states", held[MEMORY_PARAMETERS] + held[MEMORY_GRADIENTS] + held[MEMORY_OPTIMIZER],
                        16 * stage_parameters(&plan, 0), simulated.text);
            simulated_release(&simulated);
        }
    }
}

/* The time of the rank that is longest at work. With a flush and no other work it is the first rank's, which begins and
 * ends the iteration. In ZB-H2 (F = I = W, 2P - 1 micro-batches and more) it is the time of the rank's work alone. In
 * an asynchronous schedule, whose ranks never end, it is undefined. */
static void test_rank_span(void **state)
{
    static const struct { const char *schedule; double extra; } cases[] = {
        {"gpipe", 3}, {"1f1b", 3}, {"zb-h1", 1}, {"zb-h2", 0}, {"pipedream-2bw", NAN},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int p = 1; p <= 5; p++) {
            struct simulated simulated;
            double work = 3.0 * 12, span = work + cases[i].extra * (p - 1);

            run_text(&simulated, "model: {stages: {forward: 1 s, backward: 2 s}}\ncluster: ideal\n"
                     "batch: {micro_batches: 12}\nstrategy: {schedule: %s, pipeline: %d}\n"
                     "simulation: {engine: ideal}\n", cases[i].schedule, p);
            if (isnan(span)) {
                assert_true(isnan(simulated.run.metrics.rank_span));
                assert_true(isnan(simulated.run.metrics.span_utilization));
            } else {
                expect_near("span", simulated.run.metrics.rank_span, span, simulated.text);
                expect_near("utilization", simulated.run.metrics.span_utilization, work / span, simulated.text);
            }
            simulated_release(&simulated);
        }
}

/* Without a flush every iteration sends as much, however few of them are simulated and wherever the steady state's
 * window begins: each micro-batch's activations leave one stage, their gradients the other; and each of the n holders
 * of a stage sends (n - 1) / n of its gradients twice, once in as many micro-batches as ranks share it. */
static void test_bytes_without_flush(void **state)
{
    static const char *const modes[] = {"messages", "measured"};
    const double boundary = 3e6, gradients = 4e6;

    (void)state;
    for (int sharers = 1; sharers <= 3; sharers++)
        for (int data = 1; data <= 3; data++)
            for (int k = 0; k < 4; k++) {
                double ranks = 1 + sharers, all = sharers * data, each, sums;
                struct simulated simulated;

                run_text(&simulated,
                         "model: {stages: [{forward: 50 us, backward: 100 us, boundary: %.0f B, parameters: 1 M},\n"
                         "                 {forward: 300 us, backward: 100 us, parameters: 1 M}]}\n"
                         "cluster: {nodes: 1, gpus_per_node: 12, inside: {bandwidth: 1 GB/s, latency: 5 us}}\n"
                         "batch: {micro_batches: %d}\nmemory: {precision: fp32}\n"
                         "strategy: {schedule: pipedream, stage_replicas: [1, %d], data: %d}\n"
                         "simulation: {engine: ideal, collectives: %s}\n", boundary, (2 + 2 * (k / 2)) * sharers,
                         sharers, data, modes[k % 2]);
                each = simulated.run.metrics.samples / data * boundary / ranks;
                sums = 2 * ((data - 1.0) / data + (all - 1) / all) * gradients / ranks;
                expect_near("activations", simulated.run.metrics.sent[PAYLOAD_ACTIVATIONS], each, simulated.text);
                expect_near("gradients", simulated.run.metrics.sent[PAYLOAD_ACTIVATION_GRADIENTS], each,
                            simulated.text);
                expect_near("sums", 1 + simulated.run.metrics.sent[PAYLOAD_WEIGHT_GRADIENTS], 1 + sums,
                            simulated.text);
                simulated_release(&simulated);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_plans),
        cmocka_unit_test(test_any_schedule),
        cmocka_unit_test(test_flop_of_recomputing),
        cmocka_unit_test(test_memory_of_recomputing),
        cmocka_unit_test(test_rank_span),
        cmocka_unit_test(test_bytes_without_flush),
    };

    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
