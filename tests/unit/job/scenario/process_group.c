/* The table of process groups: its sizes, and that groups of a kind hold every GPU once. */
#include "simulated.h"

static void load(struct simulated *simulated, const char *strategy)
{
    simulated_load(simulated,
                   "model: {transformer: {layers: 4, hidden: 64, heads: 4, sequence: 32, vocabulary: 128, experts: 8, "
                   "experts_per_token: 2}}\ncluster: {platform: ideal, gpu: a100-80gb}\n"
                   "batch: {micro_batches: 4}\nstrategy: {%s}\n", strategy);
}

static const char *const strategies[] = {
    "tensor: 2, pipeline: 4, data: 3", "tensor: 4, context: 2, pipeline: 2, data: 6, expert: 4",
    "pipeline: 2, data: 12, zero: 3, shard: 4, placement: [data, tensor, pipeline]",
    "schedule: zb-v, pipeline: 2, data: 4, expert: 4",
};

/* Counts the GPUs of all groups of a kind in `seen`; of embedding groups those on the pipeline's ends. */
static void count_members(const struct scenario *scenario, const struct process_group *group, int *seen)
{
    int *gpus = xcalloc((size_t)group->size, sizeof *gpus), groups = group_count(scenario, group);
    int tensors = group->axis == AXIS_TENSOR ? groups : scenario->parallelism.tensor;
    int replicas = group->axis == AXIS_REPLICA ? groups : scenario_replicas(scenario);
    int ranks = group->axis == AXIS_PIPELINE ? groups : scenario->parallelism.pipeline;

    for (int i = 0; i < tensors * replicas * ranks; i++) {
        int place[AXIS_COUNT] = {i % tensors, i / tensors % replicas, i / tensors / replicas};

        place[group->axis] = group_index(group, place[group->axis], 0);
        group_gpus(scenario, group, place[AXIS_TENSOR], place[AXIS_REPLICA], place[AXIS_PIPELINE], gpus);
        for (int m = 0; m < group->size; m++)
            seen[gpus[m]]++;
    }
    free(gpus);
}

static void test_partition(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++) {
        struct simulated simulated;
        const struct scenario *scenario = &simulated.scenario;

        load(&simulated, strategies[i]);
        for (enum group_kind kind = 0; kind < GROUP_KIND_COUNT; kind++) {
            const struct process_group *group = &scenario->groups.of[kind];
            int *seen = xcalloc((size_t)scenario_gpus(scenario), sizeof *seen), found = 0;

            count_members(scenario, group, seen);
            for (int gpu = 0; gpu < scenario_gpus(scenario); gpu++) {
                assert_true(seen[gpu] == 1 || (kind == GROUP_EMBEDDING && seen[gpu] == 0));
                found += seen[gpu];
            }
            if (kind == GROUP_EMBEDDING)
                assert_int_equal(found, scenario_gpus(scenario) / scenario->parallelism.pipeline * group->size);
            free(seen);
        }
        loaded_release(&simulated);
    }
}

/* Who sums which gradients: all replicas; those with the same experts; within each copy of the states, and across. */
static void test_sums(void **state)
{
    static const struct { int sums[PARAMETER_CLASS_COUNT], same_share; } sizes[] = {
        {{3, 1}, 1}, {{12, 3}, 1}, {{4, 1}, 3}, {{4, 1}, 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++) {
        struct simulated simulated;
        const struct process_groups *groups = &simulated.scenario.groups;

        load(&simulated, strategies[i]);
        for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++)
            assert_int_equal(groups->of[groups->sums[class]].size, sizes[i].sums[class]);
        assert_int_equal(groups->of[GROUP_SAME_SHARE].size, sizes[i].same_share);
        assert_true(groups->of[GROUP_SAME_SHARE].exchanges == (sizes[i].same_share > 1));
        loaded_release(&simulated);
    }
}

/* Tied weights are summed where their two copies stand on different ranks. */
static void test_embedding(void **state)
{
    static const int sizes[] = {2, 2, 2, 1};     /* a V brings the last stage back to the first rank */

    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++) {
        struct simulated simulated;

        load(&simulated, strategies[i]);
        assert_int_equal(simulated.scenario.groups.of[GROUP_EMBEDDING].size, sizes[i]);
        loaded_release(&simulated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_partition), cmocka_unit_test(test_sums), cmocka_unit_test(test_embedding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
