/* Collectives as transfers of a program: their times and dependencies. */
#include "collective_run.h"
#include "contributions.h"
#include "trials.h"

#include <math.h>

/* Equal up to rounding; within the algorithm's error if its formula is an estimate for counts other than powers of
 * two. */
static void assert_near(double value, double expected, const struct collective *collective, int n)
{
    double error = n & (n - 1) ? collective->error : 0;

    if (!(fabs(value - expected) <= (1e-9 + error) * expected))
        fail_msg("%s %s of %d: %.17g s, not %.17g s", collective_op_names[collective->op], collective->name, n, value,
                 expected);
}

/* One GPU a node or all in one node, where every pair is equally far: the makespan is the closed form, also with
 * channels, which share the vector. */
static void times_are_the_closed_form(void **state)
{
    static const struct { double bytes, latency, bandwidth; } cases[] = {
        {1e9, 5e-6, 25e9}, {4, 1e-6, 4.5e11}, {123457, 0, 1e10}, {3.3e6, 2e-3, 1e8}, {0, 1e-6, 1e9}, {1e6, 0, INFINITY},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(cases) * 2; k++) {
        double bytes = cases[k / 2].bytes, latency = cases[k / 2].latency, bandwidth = cases[k / 2].bandwidth;

        for (size_t i = 0; collective_at(i); i++)
            for (int n = 1; n <= MAX_MEMBERS && collective_at(i)->write_messages; n++) {
                const struct collective *collective = collective_at(i);
                struct cluster cluster = k % 2 ? make_cluster(1, n, 1) : make_cluster(n, 1, 1);
                int channels = n % 3 == 2 && !collective->every_nic ? 3 : 1;
                struct run run;

                if (!tried())
                    continue;
                cluster.kinds[0].inside.latency = k % 2 ? latency : 1;
                cluster.kinds[0].inside.bandwidth = k % 2 ? bandwidth : 1;
                cluster.kinds[0].nics.latency = k % 2 ? 1 : latency;
                cluster.kinds[0].nics.bandwidth = k % 2 ? 1 : bandwidth;
                run_init(&run, collective, &cluster, n, identity(), bytes, channels, NULL);
                assert_near(run.timeline.makespan, collective->ideal(&run.task, latency, bandwidth), collective, n);
                run_release(&run);
            }
    }
}

/* Random messages over a few ranks, ports and phases, several of one step often delivering the same chunk to the same
 * rank. */
static uint64_t random_seed;

enum { RANDOM_CHUNKS = 5 };

static int random_chunks(const struct task *task)
{
    (void)task;
    return RANDOM_CHUNKS;
}

static int random_ports(const struct task *task)
{
    return 1 + (task->n + (int)(random_seed % 3)) % 3;
}

/* Phases begin with steps. */
static void random_draw(struct messages *messages, const struct task *task)
{
    uint64_t seed = random_seed;
    int count = random_below(&seed, 60), n = task->n;

    for (int i = 0, step = 0; i < count; i++) {
        if (random_below(&seed, 5) == 0) {
            step++;
            if (random_below(&seed, 3) == 0)
                next_phase(messages);
        }
        through_port(messages, random_below(&seed, random_ports(task)));
        int src = random_below(&seed, n), dst = (src + 1 + random_below(&seed, n - 1)) % n;
        int chunk = random_below(&seed, RANDOM_CHUNKS);
        reduce(messages, step, src, dst, chunk, 1 + random_below(&seed, RANDOM_CHUNKS));
    }
}

/* The time when a message can leave, by the rule in collective.h: both ends ready, the chunks' last arrivals at both
 * ends in earlier steps. (Its lane may delay it more.) */
static double rule_start(const struct messages *messages, size_t i, int chunks, const double *delays,
                         const double *ends)
{
    const struct message *message = &messages->items[i];
    int rank[] = {message->src, message->dst};
    double start = fmax(delays[message->src], delays[message->dst]);

    for (int end = 0; end < 2; end++)
        for (int c = 0; c < message->nchunks; c++) {
            int chunk = (message->chunk + c) % chunks, last = -1;
            for (size_t k = i; k-- > 0;) {
                const struct message *other = &messages->items[k];
                if (other->step == message->step || other->dst != rank[end] ||
                    (chunk - other->chunk + chunks) % chunks >= other->nchunks)
                    continue;
                if (last >= 0 && other->step < last)
                    break;
                last = other->step;
                start = fmax(start, ends[k]);
            }
        }
    return start;
}

/* The time when the rank has, on each port, the last message that came in earlier steps; 0 if the message is not its
 * source's first in a phase on its port. */
static double phase_start(const struct messages *messages, size_t i, int ports, const double *ends)
{
    const struct message *message = &messages->items[i];
    double start = 0;
    int phase = 0;

    for (size_t k = 0; k < i; k++)
        if (messages->items[k].src == message->src && messages->items[k].port == message->port)
            phase = messages->items[k].phase;
    for (int port = 0; port < ports && phase != message->phase; port++)
        for (size_t k = i; k-- > 0;) {
            const struct message *other = &messages->items[k];

            if (other->step < message->step && other->dst == message->src && other->port == port) {
                start = fmax(start, ends[k]);
                break;
            }
        }
    return start;
}

static void check_rule(const struct collective *collective, int n, uint64_t *seed)
{
    struct cluster cluster = make_cluster(4, 2, 2);
    struct messages messages = {0};
    double delays[8], lanes[8 * 16] = {0}, finish[8] = {0}, *ends;
    bool takes_part[8] = {false};
    struct run run;
    int chunks, ports;

    for (int m = 0; m < n; m++)
        delays[m] = 1e-5 * random_below(seed, 10);
    run_init(&run, collective, &cluster, n, identity(), 4e6, 1, delays);
    chunks = collective->chunks(&run.task);
    ports = collective->ports ? collective->ports(&run.task) : 1;
    collective->write_messages(&messages, &run.task);
    ends = xcalloc(messages.count + 1, sizeof *ends);
    for (size_t i = 0; i < messages.count; i++) {
        const struct message *message = &messages.items[i];
        struct route route = cluster_route(&cluster, message->src, message->dst);
        double *lane = &lanes[message->src * 16 + message->port];
        double start = fmax(fmax(*lane, rule_start(&messages, i, chunks, delays, ends)),
                            phase_start(&messages, i, ports, ends));

        ends[i] = start + route.latency + 4e6 * message->nchunks / chunks / route.bandwidth;
        assert_true(fabs(run.timeline.start[run.first + i] - start) < 1e-12);
        assert_true(fabs(run.timeline.end[run.first + i] - ends[i]) < 1e-12);
        *lane = ends[i];
        finish[message->src] = fmax(finish[message->src], ends[i]);
        finish[message->dst] = fmax(finish[message->dst], ends[i]);
        takes_part[message->src] = takes_part[message->dst] = true;
    }
    for (int m = 0; m < n; m++)
        assert_true(fabs(run.timeline.end[run.done[m]] - (takes_part[m] ? finish[m] : delays[m])) < 1e-12);
    free(ends);
    free(messages.items);
    run_release(&run);
}

static void dependencies_follow_the_rule(void **state)
{
    static const struct collective chaos = {.name = "chaos", .every_nic = true, .chunks = random_chunks,
                                            .ports = random_ports, .write_messages = random_draw};
    uint64_t seed = 1;

    (void)state;
    for (int round = 0; round < trials(3000); round++) {
        random_seed = random_next(&seed);
        check_rule(&chaos, 2 + round % 7, &seed);
    }
    for (size_t i = 0; collective_at(i); i++)
        for (int round = 0; round < trials(80) && collective_at(i)->write_messages; round++)
            check_rule(collective_at(i), 1 + round % 8, &seed);
}

/* Departures and arrivals in the order of time; arrivals first. */
struct event { double time; bool leaves; uint32_t message; };

static int event_order(const void *left, const void *right)
{
    const struct event *a = left, *b = right;

    if (a->time < b->time || a->time > b->time)
        return a->time < b->time ? -1 : 1;
    if (a->leaves != b->leaves)
        return a->leaves ? 1 : -1;
    return (a->message > b->message) - (a->message < b->message);
}

/* One channel's data, moved when its transfers begin and end. Every rank of the collective is the same GPU
 * throughout. */
static void check_times_move_data(const struct run *run, const struct collective *collective, int n, int channel)
{
    struct contributions table;
    struct messages messages = {0};
    uint64_t **payloads;
    struct event *events;
    int gpu[MAX_MEMBERS];

    memset(gpu, -1, sizeof gpu);
    collective->write_messages(&messages, &run->task);
    payloads = xcalloc(messages.count + 1, sizeof *payloads);
    events = xcalloc(2 * messages.count + 1, sizeof *events);
    contributions_init(&table, collective->op, n, collective->chunks(&run->task));
    for (uint32_t i = 0; i < messages.count; i++) {
        size_t id = run->first + (size_t)channel * messages.count + i;
        const struct op_transfer *transfer = &op_traits(&run->program, &run->program.ops.items[id])->transfer;
        int src = (int)transfer->src, dst = (int)transfer->dst;

        assert_true(gpu[messages.items[i].src] == -1 || gpu[messages.items[i].src] == src);
        gpu[messages.items[i].src] = src;
        assert_true(gpu[messages.items[i].dst] == -1 || gpu[messages.items[i].dst] == dst);
        gpu[messages.items[i].dst] = dst;
        events[2 * i] = (struct event){run->timeline.start[id], true, i};
        events[2 * i + 1] = (struct event){run->timeline.end[id], false, i};
    }
    qsort(events, 2 * messages.count, sizeof *events, event_order);
    for (size_t e = 0; e < 2 * messages.count; e++) {
        uint32_t i = events[e].message;
        if (events[e].leaves)
            payloads[i] = contributions_leave(&table, &messages.items[i]);
        else
            contributions_arrive(&table, &messages.items[i], payloads[i]);
    }
    contributions_finish(&table, collective->name);
    if (collective->op == COLLECTIVE_BROADCAST || collective->op == COLLECTIVE_REDUCE)
        assert_true(n == 1 || gpu[0] == 0);
    free(payloads);
    free(events);
    free(messages.items);
}

/* A member is done when, on all channels, all its messages have arrived and left. */
static void check_done(const struct run *run, int n, const double *delays)
{
    double finish[MAX_MEMBERS] = {0};

    for (size_t i = run->first; i < run->program.ops.count; i++) {
        const struct op *op = &run->program.ops.items[i];
        const struct op_transfer *transfer = &op_traits(&run->program, op)->transfer;

        if (op->kind != OP_TRANSFER)
            continue;
        finish[transfer->src] = fmax(finish[transfer->src], run->timeline.end[i]);
        finish[transfer->dst] = fmax(finish[transfer->dst], run->timeline.end[i]);
    }
    for (int m = 0; m < n; m++) {
        assert_true(run->timeline.start[run->done[m]] == (n == 1 ? delays[0] : finish[m]));
        assert_true(run->timeline.end[run->done[m]] == run->timeline.start[run->done[m]]);
    }
}

/* Unequal routes and late members, on every channel's order: the dependencies alone keep the data right. */
static void dependencies_move_every_contribution_once(void **state)
{
    uint64_t seed = 2;
    double delays[MAX_MEMBERS];

    (void)state;
    for (size_t i = 0; collective_at(i); i++)
        for (int n = 1; n <= MAX_MEMBERS && collective_at(i)->write_messages; n++) {
            int per_node = 1 + random_below(&seed, 9);
            int channels = collective_at(i)->every_nic ? 1 : 1 + random_below(&seed, MAX_CHANNELS);
            struct cluster cluster = make_cluster((n + per_node - 1) / per_node, per_node, 1);
            struct run run;

            for (int m = 0; m < n; m++)
                delays[m] = 1e-7 * (1 + random_below(&seed, 1000));
            run_init(&run, collective_at(i), &cluster, n, identity(), 1e6, channels, delays);
            for (int c = 0; c < channels; c++)
                check_times_move_data(&run, collective_at(i), n, c);
            check_done(&run, n, delays);
            run_release(&run);
        }
}

static void operations_take_what_they_need_from_the_template(void **state)
{
    struct cluster cluster = make_cluster(2, 2, 2);
    struct run run;

    (void)state;
    run_init(&run, collective_find(COLLECTIVE_ALL_REDUCE, "ring"), &cluster, 4, identity(), 1e6, 2, NULL);
    assert_int_equal(run.program.ops.count, 2 * 24 + 4);
    for (size_t i = 0; i < run.program.ops.count; i++) {
        const struct op *op = &run.program.ops.items[i];
        const struct traits *traits = op_traits(&run.program, op);

        assert_true(op->what == WHAT_SYNC && op->mb == -1 && op->stage == 3);
        assert_true(traits->takes == 0 && traits->frees == 0 && !op->continues);
        assert_true(op->amount == (i < 48 ? 1e6 / 2 / 4 : 0));
        assert_int_equal(op->kind, i < 48 ? OP_TRANSFER : OP_COMPUTE);
        if (op->kind == OP_TRANSFER) {
            assert_int_equal(run.program.lanes.items[op->lane].rank, traits->transfer.src);
            assert_int_equal(run.program.lanes.items[op->lane].index, i / 24);
            assert_true(program_deps(&run.program, op).count <= 1);
        } else {
            assert_true(traits->compute.communication == 0);
        }
    }
    for (int m = 0; m < 4; m++) {
        const struct op *op = &run.program.ops.items[run.done[m]];
        assert_int_equal(run.program.lanes.items[op->lane].rank, m);
        assert_int_equal(run.program.lanes.items[op->lane].index, 0);
    }
    run_release(&run);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_the_closed_form),
        cmocka_unit_test(dependencies_follow_the_rule),
        cmocka_unit_test(dependencies_move_every_contribution_once),
        cmocka_unit_test(operations_take_what_they_need_from_the_template),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
