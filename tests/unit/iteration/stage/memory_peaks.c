/* memory_peaks: the most that a rank holds, found once more by going through all times at which an operation begins. */
#include "replayed.h"
#include "simulated.h"

#include "base/random.h"

/* The next number below `below`. */
static uint32_t draw(uint64_t *drawn, uint32_t below)
{
    return (uint32_t)(random_share(11, (*drawn)++) * below);
}

/* What takes and frees memory stands on one lane, or on any; durations are whole numbers, so that many times are equal. */
static void random_memory(struct program *program, uint64_t *drawn, bool one_lane)
{
    enum { COMPUTES = 60 };

    memset(program, 0, sizeof *program);
    program->ranks = 1;
    for (int i = 0; i < 3; i++)
        program_lane(program, 0, i ? LANE_TO_HOST : LANE_COMPUTE, i);
    for (uint32_t i = 0; i < COMPUTES; i++) {
        struct new_op op = {.lane = draw(drawn, 3), .amount = draw(drawn, 4), .stage = -1, .mb = -1};
        uint32_t dep = i ? draw(drawn, i) : 0;
        bool takes = !one_lane || op.lane == 0;

        op.takes = takes && draw(drawn, 2) ? draw(drawn, 5) : 0;
        op.frees = takes && draw(drawn, 2) ? draw(drawn, 5) : 0;
        op.workspace = takes && draw(drawn, 2) ? draw(drawn, 3) : 0;
        program_add(program, op, &dep, i && draw(drawn, 2));
    }
}

/* Whether the first operation's end comes before the second one's beginning: at the same time by the order of ids. */
static bool freed_before(const struct timeline *timeline, uint32_t first, uint32_t second)
{
    return timeline->end[first] < timeline->start[second] ||
           (timeline->end[first] == timeline->start[second] && first < second);
}

static bool taken_before(const struct timeline *timeline, uint32_t first, uint32_t second)
{
    return timeline->start[first] < timeline->start[second] ||
           (timeline->start[first] == timeline->start[second] && first <= second);
}

/* Whole numbers add up without rounding, in whatever order. */
static void assert_peak(const struct timeline *timeline, struct memory_peak peak)
{
    const struct program *program = timeline->program;
    double most = 0, kept = 0;

    for (uint32_t i = 0; i < program->ops.count; i++) {
        double held = 0;

        for (uint32_t k = 0; k < program->ops.count; k++) {
            const struct traits *traits = op_traits(program, &program->ops.items[k]);

            held += taken_before(timeline, k, i) ? traits->takes : 0;
            held -= k != i && freed_before(timeline, k, i) ? traits->frees : 0;
        }
        kept = fmax(kept, held);
        most = fmax(most, held + op_traits(program, &program->ops.items[i])->workspace);
    }
    assert_true(peak.activations == kept);
    assert_true(peak.memory.bytes[MEMORY_ACTIVATIONS] + peak.memory.bytes[MEMORY_WORKSPACE] == most);
}

static void test_peaks(void **state)
{
    static const struct cluster cluster = {.nodes = 1, .kinds[0].gpus = 1, .ideal = true};
    struct simulated simulated;
    uint64_t drawn = 0;

    (void)state;
    simulated_load(&simulated, "model: {stages: {forward: 1 s, backward: 1 s}}\nbatch: {micro_batches: 1}\n"
                   "cluster: ideal\nstrategy: {pipeline: 1}\n");
    simulated_workload(&simulated);
    for (int i = 0; i < 400; i++) {
        struct timeline timeline;
        struct memory_peak *peaks;
        struct program program;

        random_memory(&program, &drawn, i % 2);
        replayed(ENGINE_IDEAL, &program, &cluster, &timeline);
        peaks = memory_peaks(&simulated.scenario, simulated.workload.stages, &timeline);
        assert_peak(&timeline, peaks[0]);
        free(peaks);
        timeline_release(&timeline);
        program_release(&program);
    }
    simulated_release(&simulated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_peaks)};

    return cmocka_run_group_tests_name("memory_peaks", tests, NULL, NULL);
}
