/* Rules for V-shaped and bidirectional schedules and for Varuna, for all numbers of stages and micro-batches: rows
 * are complete, no rank waits forever, closed forms hold. Rows are replayed here by rules written independently of
 * lower's. */
#include "schedule_v.h"
#include "trials.h"

/* Whether the schedule's rule covers the plan. */
static bool possible(enum shape schedule, int p, int m)
{
    switch (schedule) {
    case DUALPIPE: return p % 2 == 0 && m % 2 == 0 && m >= 2 * p;
    case DUALPIPE_V: return m >= 2 * p;
    case CHIMERA:
    case CHIMERA_DOUBLING: return p % 2 == 0 && m % 2 == 0;
    default: return true;
    }
}

/* The works done of each direction, virtual stage and micro-batch, and their ends. */
struct done { double forward, input, weight, recompute; };
struct played {
    const struct plan *plan;
    const struct times *times;
    const struct row *rows;
    struct done *done;
    size_t *next;            /* cell of a rank */
    double *free;            /* a rank: since when it is free */
    int *in_flight, *most;   /* of a rank */
};

static struct done *done_at(const struct played *played, int direction, int stage, int mb)
{
    int stages = plan_virtual_stages(played->plan), each = plan_micro_batches(played->plan);

    return &played->done[(direction * stages + stage) * each + mb];
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* The time when all works that a cell waits for have ended; -1: not yet. */
static double begins(const struct played *played, int rank, struct work work)
{
    const struct plan *plan = played->plan;
    int stage = plan_virtual_stage(plan, rank, work.chunk), direction = plan_direction(plan, rank, work.chunk);
    bool last = stage == plan_virtual_stages(plan) - 1;
    struct done own = *done_at(played, direction, stage, work.mb);
    double other;

    if (work.kind == FORWARD)
        return stage == 0 ? 0 : done_at(played, direction, stage - 1, work.mb)->forward;
    if (work.kind == BACKWARD_WEIGHT)
        return own.input;
    other = last ? own.forward : done_at(played, direction, stage + 1, work.mb)->input;
    return own.forward < 0 || other < 0 ? -1 : later(later(own.forward, own.recompute), other);
}

static double seconds(const struct times *times, enum work_kind kind)
{
    switch (kind) {
    case FORWARD: return times->forward;
    case BACKWARD: return times->input + times->weight;
    case BACKWARD_INPUT: return times->input;
    case BACKWARD_WEIGHT: return times->weight;
    default: return times->recompute;
    }
}

static void end(struct played *played, int rank, struct work work, double at)
{
    struct done *done = done_at(played, plan_direction(played->plan, rank, work.chunk),
                                plan_virtual_stage(played->plan, rank, work.chunk), work.mb);

    if (work.kind == FORWARD) {
        assert_true(done->forward < 0);
        done->forward = at;
        if (++played->in_flight[rank] > played->most[rank])
            played->most[rank] = played->in_flight[rank];
    } else if (work.kind == RECOMPUTE) {
        assert_true(done->forward >= 0 && done->recompute < 0 && done->input < 0);
        done->recompute = at;
    }
    if (work.kind == BACKWARD || work.kind == BACKWARD_INPUT) {
        assert_true(done->input < 0);
        done->input = at;
    }
    if (work.kind == BACKWARD || work.kind == BACKWARD_WEIGHT) {
        assert_true(done->weight < 0);
        done->weight = at;
        played->in_flight[rank]--;
    }
}

/* The next cell of a rank, with those that overlap with it. */
static bool play_cell(struct played *played, int rank)
{
    const struct row *row = &played->rows[rank];
    size_t first = played->next[rank], last = first;
    double at = played->free[rank];

    if (first == row->count)
        return false;
    while (row->items[last].with_next)
        last++;
    for (size_t i = first; i <= last; i++) {
        double begin = begins(played, rank, row->items[i]);

        if (begin < 0)
            return false;
        at = later(at, begin);
    }
    for (size_t i = first; i <= last; i++)
        at += seconds(played->times, row->items[i].kind);
    for (size_t i = first; i <= last; i++)
        end(played, rank, row->items[i], at);
    played->free[rank] = at;
    played->next[rank] = last + 1;
    return true;
}

/* Replays the rows, and checks that every rank does all of its work. Returns when all is done. */
static double play(struct played *played, struct simulated *simulated, const struct times *times)
{
    const struct workload *workload = simulated_workload(simulated);
    const struct plan *plan = &workload->plan;
    int cells = plan_directions(plan) * plan_virtual_stages(plan) * plan_micro_batches(plan);
    double makespan = 0;

    *played = (struct played){
        .plan = plan, .times = times, .rows = workload->rows,
        .done = xcalloc((size_t)cells, sizeof *played->done),
        .next = xcalloc((size_t)plan->stages, sizeof *played->next),
        .free = xcalloc((size_t)plan->stages, sizeof *played->free),
        .in_flight = xcalloc((size_t)plan->stages, sizeof *played->in_flight),
        .most = xcalloc((size_t)plan->stages, sizeof *played->most),
    };
    for (int i = 0; i < cells; i++)
        played->done[i] = (struct done){-1, -1, -1, -1};
    for (bool moved = true; moved;) {
        moved = false;
        for (int rank = 0; rank < plan->stages; rank++)
            while (play_cell(played, rank))
                moved = true;
    }
    for (int rank = 0; rank < plan->stages; rank++) {
        makespan = later(makespan, played->free[rank]);
        if (played->next[rank] < played->rows[rank].count)
            fail_msg("rank %d waits forever in\n%s", rank, simulated->text);
    }
    for (int i = 0; i < cells; i++)
        if (played->done[i].forward < 0 || played->done[i].input < 0 || played->done[i].weight < 0)
            fail_msg("some work is missing in\n%s", simulated->text);
    return makespan;
}

static void played_release(struct played *played)
{
    free(played->done);
    free(played->next);
    free(played->free);
    free(played->in_flight);
    free(played->most);
}

/* Activations that a rank may hold: a chunk's of a micro-batch. */
static int limit(enum shape schedule, int p, int m, int rank)
{
    int outside = rank < p - 1 - rank ? rank : p - 1 - rank, block = p < m ? p : m;

    switch (schedule) {
    case VARUNA: return rank == p - 1 ? 1 : m < 3 * (p - 1 - rank) ? m : 3 * (p - 1 - rank);
    case DUALPIPE: return p + 1;
    case DUALPIPE_V: return 2 * p + 1;
    case CHIMERA: return block / 2 + 1 + outside < block ? block / 2 + 1 + outside : block;
    case V_HALF: return p + 2 - p % 2;
    case V_MIN: return 2 * ((p + 1) / 3 + 1);
    default: return 2 * p;
    }
}

static void assert_in_flight(enum shape schedule, const struct simulated *simulated, const struct played *played)
{
    const struct plan *plan = &simulated->workload.plan;
    const struct schedule *strategy = scenario_schedule(&simulated->scenario);

    for (int rank = 0; rank < plan->stages; rank++) {
        int bound = limit(schedule, plan->stages, plan->micro_batches, rank);

        if (played->most[rank] > bound || (schedule <= CHIMERA && played->most[rank] != bound))
            fail_msg("rank %d has %d in flight instead of %d in\n%s", rank, played->most[rank], bound, simulated->text);
        int expected = strategy->ideal_in_flight ? strategy->ideal_in_flight(plan, rank) : -1;
        if (expected >= 0 && expected != played->most[rank])
            fail_msg("rank %d has %d in flight, its schedule says %d, in\n%s", rank, played->most[rank], expected,
                     simulated->text);
        if (!plan->recompute && schedule != VARUNA)
            expect_near("activations", simulated->run.metrics.ranks[rank].peak_activation, played->most[rank],
                        simulated->text);
    }
}

static void check(enum shape schedule, int p, int m, bool recompute, const struct times *t)
{
    struct simulated simulated;
    struct played played;
    double makespan, ideal = NAN;

    run_shape(&simulated, schedule, p, m, recompute, t);
    const struct schedule *strategy = scenario_schedule(&simulated.scenario);

    makespan = play(&played, &simulated, t);
    if (schedule != VARUNA)      /* recomputations begin later than they could */
        expect_near("iteration", simulated.run.metrics.iteration_time, makespan, simulated.text);
    if (strategy->ideal_makespan)
        ideal = strategy->ideal_makespan(&simulated.workload.plan, t->forward, t->input + t->weight, t->recompute);
    if (!isnan(ideal) && t->input == t->weight)
        expect_near("iteration", makespan, ideal, simulated.text);
    assert_in_flight(schedule, &simulated, &played);
    played_release(&played);
    simulated_release(&simulated);
}

static void test_rules(void **state)
{
    (void)state;
    for (int schedule = 0; schedule < SCHEDULE_COUNT; schedule++)
        for (int p = 1; p <= 16; p++)
            for (int m = 1; m <= 3 * p + 8; m += m < 2 * p + 2 ? 1 : 3)
                if (possible((enum shape)schedule, p, m) && tried())
                    check((enum shape)schedule, p, m, (p + m) % 3 == 0, &even);
}

/* Other times change the order of some, and the closed forms of others. */
static void test_times(void **state)
{
    static const double values[] = {0.3, 1, 1.5, 2, 7};
    uint64_t seed = 1;

    (void)state;
    for (int i = 0; i < trials(600); i++) {
        int schedule = random_below(&seed, SCHEDULE_COUNT), p = 1 + random_below(&seed, 12);
        int m = 1 + random_below(&seed, 40);
        struct times times = {values[random_below(&seed, 5)], values[random_below(&seed, 5)],
                              values[random_below(&seed, 5)], 1};

        if (i % 2)
            times.weight = times.input;
        if (possible((enum shape)schedule, p, m))
            check((enum shape)schedule, p, m, i % 3 == 0, &times);
    }
}

static void test_refusals(void **state)
{
    static const struct { const char *text, *message; } cases[] = {
        {"schedule: dualpipe, pipeline: 3}\nbatch: {micro_batches: 8}",
         "strategy: schedule: dualpipe found pipeline 3; expected an even number, half of the ranks for each "
         "direction"},
        {"schedule: dualpipe, pipeline: 4}\nbatch: {micro_batches: 6}",
         "strategy: schedule: dualpipe with pipeline 4 found 6 micro-batches; expected at least 8, over both "
         "directions"},
        {"schedule: dualpipe, pipeline: 4}\nbatch: {micro_batches: 9}",
         "batch: 9 micro-batches a replica do not divide into the two directions of dualpipe"},
        {"schedule: dualpipe-v, pipeline: 3}\nbatch: {micro_batches: 5}",
         "strategy: schedule: dualpipe-v with pipeline 3 found 5 micro-batches; expected at least 6"},
        {"schedule: chimera, pipeline: 5}\nbatch: {micro_batches: 6}",
         "strategy: schedule: chimera found pipeline 5; expected an even number, so that the two directions meet "
         "between ranks"},
        {"schedule: chimera, pipeline: 4}\nbatch: {micro_batches: 3}",
         "batch: 3 micro-batches a replica do not divide into the two directions of chimera"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct scenario scenario;
        struct error err = {0};
        char text[256];

        snprintf(text, sizeof text, "model: {stages: {forward: 1 s}}\ncluster: ideal\nstrategy: {%s\n", cases[i].text);
        assert_int_equal(load_text(text, &scenario, &err), -1);
        assert_int_equal(err.count, 1);
        assert_string_equal(err.messages[0].text, cases[i].message);
        assert_int_equal(err.messages[0].code, EXIT_INFEASIBLE);
        error_release(&err);
        scenario_release(&scenario);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
