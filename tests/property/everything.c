/* Rules that hold for every scenario, on scenarios that mix everything: real models and clusters, any schedule, ZeRO,
 * context and expert degrees, recomputation, offloading, adapters, frameworks. Whatever is refused must be refused with
 * a reason; all others keep the rules. */
#include "run/memory_advice.h"
#include "simulated.h"

enum { SCENARIOS = 400, LEAST = 150 };   /* drawn; of them so many run */

#define PICK(seed, ...) \
    ((const char *const[]){__VA_ARGS__}[random_below(seed, (int)COUNT(((const char *const[]){__VA_ARGS__})))])
#define PICK_INT(seed, ...) (((const int[]){__VA_ARGS__})[random_below(seed, (int)COUNT(((const int[]){__VA_ARGS__})))])

/* Now and then the option, else nothing. */
static const char *sometimes(uint64_t *seed, int one_in, const char *option)
{
    return random_below(seed, one_in) ? "" : option;
}

/* The caller frees it. */
static char *draw(uint64_t *seed)
{
    const char *model = PICK(seed, "llama3-8b", "gpt2-355m", "llama2-7b", "megatron-7.5b", "mixtral-8x7b");
    const char *cluster = PICK(seed, "dgx-1-v100", "dgx-a100", "dgx-h100", "gb200-nvl72", "hgx-a100-4", "pcie-25gbe");
    bool copied = random_below(seed, 12) == 0;       /* DataParallel, which goes with few others */
    int pipeline = copied ? 1 : PICK_INT(seed, 1, 2, 4), tensor = copied ? 1 : PICK_INT(seed, 1, 1, 2, 4);
    int data = PICK_INT(seed, 1, 2, 3, 4, 8), context = copied || random_below(seed, 6) ? 1 : 2;
    int expert = copied || data % 2 || random_below(seed, 3) ? 1 : 2;
    bool whole = tensor > 1 && expert > 1 && random_below(seed, 2);     /* experts that no tensor group divides */
    int micro_batches = pipeline * PICK_INT(seed, 1, 2, 4), count = 0;
    char *text = NULL;

    while (schedule_at((size_t)count))
        count++;
    const struct schedule *schedule = schedule_at((size_t)random_below(seed, count));
    assert_true(asprintf(&text,
        "model: {preset: %s, with: {layers: 16}%s}\n"
        "cluster: {platform: %s, nodes: %d%s}\nbatch: {micro_batches: %d, micro: %d}\n"
        "strategy: {schedule: %s, pipeline: %d, tensor: %d, data: %d, context: %d, expert: %d%s%s%s%s%s}\n"
        "memory: {enforce: false, precision: %s, recompute: %s%s%s}\n"
        "software: %s\nsimulation: {engine: fast%s}\n",
        model, strncmp(model, "llama3", 6) ? "" : ", sequence: 2048", cluster, tensor * context * pipeline * data,
        sometimes(seed, 6, ", network: {topology: {leaf_nodes: 1, oversubscription: 4}}"), micro_batches,
        PICK_INT(seed, 1, 2), pipeline > 1 ? schedule->name : "1f1b", pipeline, tensor, data, context,
        expert * (whole ? tensor : 1),
        copied ? "" : PICK(seed, "", "", ", zero: 1", ", zero: 2", ", zero: 3"),
        whole ? ", sequence_parallel: true, expert_tensor: 1" : sometimes(seed, 3, ", sequence_parallel: true"),
        copied ? ", data_parallel: dataparallel"
               : sometimes(seed, 6, PICK(seed, ", data_parallel: synchronous", ", data_parallel: parameter-server")),
        sometimes(seed, 8, PICK(seed, ", compression: top-k", ", compression: powersgd", ", local_steps: 2")),
        sometimes(seed, 3, PICK(seed, ", placement: [data, tensor, pipeline]",
                                ", placement: [pipeline, data, tensor]")),
        PICK(seed, "mixed-fp16", "mixed-bf16", "mixed-bf16", "fp32", "mixed-fp8"),
        PICK(seed, "none", "none", "selective", "operators", "modules", "full", "optimal"),
        sometimes(seed, 6, PICK(seed, ", offload: activations", ", offload: weights", ", offload: optimizer")),
        sometimes(seed, 8, ", lora: {rank: 16}"),
        PICK(seed, "none", "megatron-core", "pytorch-fsdp", "deepspeed", "torchtitan", "jax-maxtext", "megatron-bridge",
             "nemo"),
        sometimes(seed, 8, ", jitter: 0.05")) >= 0);
    return text;
}

/* What memory.tsv says that a rank holds of a kind is never less than nothing. */
static void expect_held(const struct run *run, const char *text)
{
    char *table = NULL, kind[32], *line;
    size_t size;
    FILE *out = open_memstream(&table, &size);

    memory_write(run, out);
    fclose(out);
    for (char *rest = strchr(table, '\n') + 1; (line = strsep(&rest, "\n")) && *line;) {
        double t, bytes;
        int rank;

        assert_int_equal(sscanf(line, "%d %lf %31s %lf", &rank, &t, kind, &bytes), 4);
        if (bytes < -1e-3)
            fail_msg("rank %d holds %g B of %s at %g s in\n%s", rank, bytes, kind, t, text);
    }
    free(table);
}

static void expect_shares(const struct metrics *metrics, const char *text)
{
    double sum = 0;

    for (int account = 0; account < ACCOUNT_KIND_COUNT; account++) {
        sum += metrics->seconds[account];
        if (metrics->seconds[account] < -1e-9 * metrics->iteration_time)
            fail_msg("%d takes %g s in\n%s", account, metrics->seconds[account], text);
    }
    expect_near("sum of the breakdown", sum, metrics->iteration_time, text);
}

static void expect_rules(struct simulated *simulated)
{
    const struct metrics *metrics = &simulated->run.metrics;
    const char *text = simulated->text;
    struct run memory = {0};
    struct error err = {0};
    double difference;

    expect_shares(metrics, text);
    expect_held(&simulated->run, text);
    if (metrics->hardware_flop < metrics->model_flop * (1 - 1e-9))
        fail_msg("GPUs compute %g FLOP, less than the %g that the model needs, in\n%s", metrics->hardware_flop,
                 metrics->model_flop, text);
    if (simulate(&simulated->workload, memory_options_of(&simulated->scenario), &memory, &err))
        fail_at(text, &err);
    expect_near("peak memory without the network", memory.metrics.peak_memory, metrics->peak_memory, text);
    run_release(&memory);
    if (simulated->run.lowered.program.ops.count > 5000)
        return;
    if (run_verify(&simulated->run, ENGINE_SIMGRID, &difference, &err))
        fail_at(text, &err);
    if (difference > 1e-9)
        fail_msg("on simgrid starts and ends differ by %g of the iteration in\n%s", difference, text);
}

static void test_rules(void **state)
{
    uint64_t seed = 20261123;
    int ran = 0;

    (void)state;
    for (int i = 0; i < SCENARIOS; i++) {
        struct simulated simulated = {.text = draw(&seed)};
        struct error err = {0};

        if (!load_text(simulated.text, &simulated.scenario, &err) && !simulated_run(&simulated, &err)) {
            expect_rules(&simulated);
            ran++;
        } else if (!err.count) {
            fail_msg("refused without a reason:\n%s", simulated.text);
        }
        simulated_release(&simulated);
    }
    assert_true(ran >= LEAST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
