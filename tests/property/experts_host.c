/* What the host does for models with experts: it updates their parameters, and launches their kernels. */
#include "simulated.h"
#include "trials.h"

/* With ZeRO the hosts update every parameter once. Without ZeRO they update an expert's parameters once for each GPU
 * that has the expert, and common parameters once for each GPU. A GPU has an eighth of its node's rate; recomputation
 * changes nothing. */
static void host_updates(void **state)
{
    static const struct { const char *strategy; double experts, others; } cases[] = {
        {"zero: 1", 1, 1}, {"zero: 1, expert: 4", 1, 1}, {"zero: 2, expert: 8", 1, 1}, {"zero: 3, expert: 4", 1, 1},
        {"zero: 0, expert: 4", 4, 16}, {"zero: 0, expert: 8, context: 2", 2, 16}, {"zero: 1, context: 4", 1, 1},
    };
    const double expert = 3.0 * 64 * 32, experts = 2 * 8 * expert;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;
        const struct program *program = &simulated.run.lowered.program;
        double seconds = 0, updated;

        run_text(&simulated, "model: {transformer: {layers: 2, hidden: 64, heads: 8, sequence: 32, vocabulary: 512, "
                 "norm: rmsnorm, mlp: swiglu, ffn: 64, experts: 8, experts_per_token: 2, expert_ffn: 32, "
                 "positions: 0, bias: false, qkv_bias: false}}\n"
                 "cluster: {platform: dgx-h100, nodes: 2, host: {update: 8 M}}\nbatch: {global: 64}\n"
                 "memory: {precision: mixed-bf16, recompute: %s, offload: optimizer}\n"
                 "simulation: {engine: ideal, fold: off}\nsoftware: none\nstrategy: {%s}\n",
                 i % 2 ? "full" : "none", cases[i].strategy);
        for (size_t k = 0; k < program->ops.count; k++)
            seconds += program->ops.items[k].what == WHAT_HOST_UPDATE ? program->ops.items[k].amount : 0;
        updated = cases[i].experts * experts +
                  cases[i].others * (model_parameters(&simulated.scenario.model) - experts);
        expect_near("seconds of all hosts", seconds, updated / 1e6,
                    simulated.text);
        simulated_release(&simulated);
    }
}

/* A random layout of 16 GPUs, each of which holds whole tensors. */
struct layout_drawn { int pipeline, context, expert, zero; const char *schedule, *form; };

static struct layout_drawn draw_layout(uint64_t *seed)
{
    static const char *const schedules[] = {"1f1b", "gpipe", "interleaved"}, *const forms[] = {"ddp", "synchronous"};
    struct layout_drawn drawn = {.pipeline = 1 << random_below(seed, 3), .zero = random_below(seed, 4)};
    int replicas = 16 / drawn.pipeline;

    drawn.context = 1 << random_below(seed, 2);
    drawn.expert = 1 << random_below(seed, 5);
    if (drawn.expert > replicas || random_below(seed, 3) == 0)
        drawn.expert = replicas;                     /* no replica shares an expert */
    drawn.schedule = schedules[random_below(seed, drawn.pipeline > 1 ? 3 : 2)];
    drawn.form = forms[random_below(seed, 2)];
    return drawn;
}

/* Over random degrees: hosts update, in all, every parameter of the model once for each copy of its states; and so many
 * gradients go to hosts, and weights come back. */
static void nothing_forgotten(void **state)
{
    const double expert = 3.0 * 64 * 32, experts = 8 * 16 * expert;

    (void)state;
    EACH_TRIAL(number, 240) {
        uint64_t seed = number * UINT64_C(0x9e3779b97f4a7c15);
        struct layout_drawn drawn = draw_layout(&seed);
        int replicas = 16 / drawn.pipeline, apart = replicas / drawn.expert;
        struct simulated simulated;
        const struct program *program = &simulated.run.lowered.program;
        double seconds = 0, out = 0, back = 0, updated;
        struct parameter_bytes each;

        run_text(&simulated, "model: {transformer: {layers: 8, hidden: 64, heads: 8, sequence: 32, vocabulary: 512, "
                 "norm: rmsnorm, mlp: swiglu, ffn: 64, experts: 16, experts_per_token: 2, expert_ffn: 32, tied: false, "
                 "positions: 0, bias: false, qkv_bias: false}}\n"
                 "cluster: {platform: dgx-h100, nodes: 2, host: {update: 8 M}}\nbatch: {global: %d}\n"
                 "memory: {precision: mixed-bf16, recompute: %s, offload: optimizer}\n"
                 "simulation: {engine: ideal, fold: off}\nsoftware: none\n"
                 "strategy: {pipeline: %d, schedule: %s, context: %d, expert: %d, zero: %d, data_parallel: %s, "
                 "bucket: %d kB%s}\n",
                 16 * drawn.pipeline, strcmp(drawn.schedule, "gpipe") && random_below(&seed, 2) ? "full" : "none", drawn.pipeline, drawn.schedule,
                 drawn.context, drawn.expert, drawn.zero, drawn.zero == 3 ? "ddp" : drawn.form,
                 20 + random_below(&seed, 400), !strcmp(drawn.schedule, "interleaved") ? ", chunks: 2" : "");
        for (size_t k = 0; k < program->ops.count; k++) {
            const struct op *op = &program->ops.items[k];

            seconds += op->what == WHAT_HOST_UPDATE ? op->amount : 0;
            out += op->what == WHAT_OFFLOAD ? op_traits(program, op)->compute.sent : 0;
            back += op->what == WHAT_PREFETCH ? op_traits(program, op)->compute.sent : 0;
        }
        updated = (drawn.zero ? 1 : apart) * experts +
                  (drawn.zero ? 1 : replicas) * (model_parameters(&simulated.scenario.model) - experts);
        each = scenario_parameter_bytes(&simulated.scenario);
        expect_near("seconds of all hosts", seconds, updated / 1e6, simulated.text);
        expect_near("B of gradients to hosts", out, updated * each.gradients, simulated.text);
        expect_near("B of weights from hosts", back, updated * each.weights, simulated.text);
        simulated_release(&simulated);
    }
}

/* The host does not launch kernels that CUDA graphs record. With graphs of whole iterations it is as if launches took no
 * time; with graphs of blocks up to the dispatch of tokens only the experts' launches are left. In small blocks each phase
 * waits for its launches. */
static void recorded(void **state)
{
    static const char *const graphs[] = {"none", "attention", "iteration", "none"};
    double seconds[COUNT(graphs)];

    (void)state;
    for (size_t i = 0; i < COUNT(graphs); i++) {
        struct simulated simulated;

        run_text(&simulated, "model: {transformer: {layers: 2, hidden: 64, heads: 8, sequence: 32, vocabulary: 512, "
                 "norm: rmsnorm, mlp: swiglu, ffn: 64, experts: 8, experts_per_token: 2, expert_ffn: 32, "
                 "positions: 0, bias: false, qkv_bias: false}}\n"
                 "cluster: {platform: dgx-h100, nodes: 1}\nbatch: {global: 8}\nsimulation: {engine: ideal}\n"
                 "software: {like: none, cuda_graphs: %s}\ncosts: {host_launch: %s}\n",
                 graphs[i], i == 3 ? "0 us" : "55 us");
        seconds[i] = simulated.run.metrics.iteration_time;
        simulated_release(&simulated);
    }
    assert_true(seconds[0] > seconds[1] && seconds[1] > seconds[2]);
    expect_near("an iteration without launches", seconds[2], seconds[3], "cuda_graphs: iteration");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_updates), cmocka_unit_test(nothing_forgotten), cmocka_unit_test(recorded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
