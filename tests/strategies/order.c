/* Orders from CSV files: every schedule's file is read back and replayed alike; any placement; refused files. */
#include "simulated.h"
#include "trials.h"

#include <regex.h>

#include "report/figure.h"
#include "schedule/order.h"

static const char *const rules[] = {
    [RECOMPUTE_WITH_GRADIENT] = "with-gradient", [RECOMPUTE_EARLY] = "early", [RECOMPUTE_JUST_IN_TIME] = "just-in-time",
};

static char csv[64];         /* the file of every test */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static char *grid_text(struct simulated *simulated)
{
    struct error err = {0};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (grid_print(simulated_workload(simulated), out, &err))
        fail_at(simulated->text, &err);
    fclose(out);
    return text;
}

struct size { int pipeline, chunks, micro_batches; };

enum { STAGES_TEXT = 512 };

/* The scenario around a schedule, which is a name or a file. */
static void print_scenario(char text[STAGES_TEXT], const char *schedule, int pipeline, int chunks, int micro_batches,
                           const char *recompute, const char *engine)
{
    char given[64] = "", batch[64] = "";

    if (chunks)
        snprintf(given, sizeof given, ", chunks: %d", chunks);
    if (micro_batches)
        snprintf(batch, sizeof batch, "batch: {micro_batches: %d}\n", micro_batches);
    snprintf(text, STAGES_TEXT,
             "model: {stages: {forward: 1 s, backward: 2 s, activation: 7 MB, boundary: 3 MB, parameters: 5 M}}\n"
             "cluster: {nodes: %d, gpus_per_node: 2, gpu: a100-80gb, inside: {bandwidth: 100 MB/s, latency: 1 ms},\n"
             "          network: {bandwidth: 50 MB/s, latency: 2 ms, nics: 1}}\n%s"
             "strategy: {schedule: %s, pipeline: %d%s, data: 2}\nmemory: {recompute: %s}\nsimulation: {engine: %s}\n",
             pipeline, batch, schedule, pipeline, given, recompute, engine);
}

static void expect_alike(struct simulated *named, struct simulated *read, bool timed)
{
    char *orders[2] = {orders_text(named), orders_text(read)};
    char *grids[2] = {grid_text(named), grid_text(read)};

    assert_string_equal(orders[1], orders[0]);
    assert_string_equal(grids[1], grids[0]);
    if (timed) {
        expect_near("iteration time", read->run.metrics.iteration_time, named->run.metrics.iteration_time, read->text);
        expect_near("memory", read->run.metrics.peak_memory, named->run.metrics.peak_memory, read->text);
        expect_near("bytes sent", read->run.metrics.communication_bytes_per_gpu,
                    named->run.metrics.communication_bytes_per_gpu, read->text);
    }
    for (int i = 0; i < 2; i++) {
        free(orders[i]);
        free(grids[i]);
    }
}

/* The text is what torch.distributed.pipelining reads (schedules.py, _Action.from_str), all of it, unless orders_print names what
 * PyTorch has not. */
static void expect_pytorch(const struct simulated *simulated, const char *orders)
{
    static const char action[] = "[0-9]+[FBIW][0-9]+";
    FILE *nowhere = fopen("/dev/null", "w");
    char pattern[128];
    regex_t grammar;

    snprintf(pattern, sizeof pattern, "^((%s|\\(%s;%s\\)OVERLAP_F_B)[,\n])+$", action, action, action);
    assert_int_equal(regcomp(&grammar, pattern, REG_EXTENDED | REG_NOSUB), 0);
    if (!regexec(&grammar, orders, 0, NULL, 0) != !orders_print(&simulated->workload, nowhere))
        fail_msg("PyTorch would not read\n%sof\n%s", orders, simulated->text);
    regfree(&grammar);
    fclose(nowhere);
}

/* Asynchronous schedules update between their micro-batches; an order from a file ends with one update. And where a
 * schedule recomputes nothing although all is to be, the file cannot say so. */
static int round_trip(const struct schedule *strategy, const char *options, struct size size, const char *recompute,
                      const char *engine)
{
    char text[STAGES_TEXT], schedule[128], *orders;
    struct simulated named, read;
    struct error err = {0};
    struct scenario possible;

    snprintf(schedule, sizeof schedule, "%s%s", strategy->name, options);
    print_scenario(text, schedule, size.pipeline, size.chunks, size.micro_batches, recompute, engine);
    if (load_text(text, &possible, &err)) {      /* not every schedule works with these degrees */
        error_release(&err);
        scenario_release(&possible);
        return 0;
    }
    scenario_release(&possible);
    run_text(&named, "%s", text);
    orders = orders_text(&named);
    expect_pytorch(&named, orders);
    write_file(csv, orders);
    snprintf(schedule, sizeof schedule, "{csv: %s, recomputation: %s}", csv, rules[strategy->recompute]);
    print_scenario(text, schedule, size.pipeline, size.chunks, 0, strchr(orders, 'R') ? recompute : "none", engine);
    run_text(&read, "%s", text);
    expect_alike(&named, &read, !strategy->asynchronous);
    unlink(csv);
    free(orders);
    simulated_release(&named);
    simulated_release(&read);
    return 1;
}

static void test_round_trip(void **state)
{
    static const struct size sizes[] = {
        {1, 0, 3}, {2, 0, 2}, {2, 0, 4}, {4, 0, 8}, {3, 0, 9}, {4, 0, 16}, {2, 3, 4}, {4, 2, 8},
    };
    static const char *const engines[] = {"ideal", "simgrid"}, *const recomputes[] = {"none", "full"};

    int all = 0;

    (void)state;
    for (size_t i = 0; schedule_at(i); i++) {
        int done = 0;

        for (size_t s = 0; s < COUNT(sizes); s++)
            for (size_t r = 0; r < COUNT(recomputes); r++)
                if (tried())
                    done += round_trip(schedule_at(i), "", sizes[s], recomputes[r], engines[(s + r) % 2]);
        all += done;
        if (done < 6 && one_in() == 1)
            fail_msg("%s works with %d cases only", schedule_name(i), done);
    }
    assert_true(all > trials(128));
}

/* A pass of two forwards is a pair in a file, and one work in time. */
static void test_round_trip_of_passes(void **state)
{
    (void)state;
    for (size_t i = 0; schedule_at(i); i++)
        if (!strcmp(schedule_name(i), "chimera"))
            assert_int_equal(round_trip(schedule_at(i), ", concatenation: forward-doubling", (struct size){4, 0, 16},
                                        "none", "simgrid"), 1);
}

static int parse(struct arena *arena, const char *text, struct order *order, struct error *err)
{
    return order_parse(arena, "o.csv", text, strlen(text), RECOMPUTE_WITH_GRADIENT, order, err);
}

static void test_notation(void **state)
{
    struct arena arena = {0};
    struct error err = {0};
    struct order order;

    (void)state;
    assert_int_equal(parse(&arena, "\xef\xbb\xbf 0F0 ,,0F1,\t(2F0; 2B0)O,(2F1;2B1 )OVERLAP_F_B\r\n"
                                   ",,1F0,1I0\r\n \r\n", &order, &err), -1);
    assert_string_equal(err.messages[0].text, "0F0: 0B0 is missing on rank 0, or its halves I and W");
    error_release(&err);
    assert_int_equal(parse(&arena, "0F0,,0F1 ,\t0B0,0I1,0W1\r\n,,1F0,1R0, 1B0,(1F1;1I1)O,1W1\r\n \r\n\n", &order,
                           &err), -1);
    assert_non_null(strstr(err.messages[0].text, "waits at 1I1 for 1F1, which is part of the same action"));
    error_release(&err);
    assert_int_equal(parse(&arena, "0F0,,0F1 ,\t0B0,0I1,0W1\r\n,,1F0,1R0,(1F1 ; 1B0)O, 1I1,1W1\r\n \r\n\n", &order,
                           &err), 0);
    assert_int_equal(order.ranks, 2);
    assert_int_equal(order.chunks, 1);
    assert_int_equal(order.micro_batches, 2);
    assert_true(order.recomputes && order.schedule.placement == PLACEMENT_LOOP && !order.table);
    assert_int_equal(order.cells[order.first[1]].column, 3);
    assert_int_equal(order.cells[order.first[1]].line, 2);
    arena_release(&arena);
}

static void test_placements(void **state)
{
    static const struct { const char *text; enum placement placement; int chunks, directions; } cases[] = {
        {"0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0", PLACEMENT_LOOP, 2, 1},
        {"0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0", PLACEMENT_V, 2, 1},
        {"0F0@0,1F0@1,1B0@1,0B0@0\n0F0@1,1F0@0,1B0@0,0B0@1", PLACEMENT_BIDIRECTIONAL, 2, 2},
        {"1F0,1B0\n0F0,0B0", PLACEMENT_TABLE, 1, 1},
        {"0F0,1F0,1B0,0B0\n2F0,3F0,3B0,2B0", PLACEMENT_TABLE, 2, 1},
        {"0F0,2F0,2B0,0B0\n1F0,1B0", PLACEMENT_TABLE, 2, 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct arena arena = {0};
        struct error err = {0};
        struct order order;

        if (parse(&arena, cases[i].text, &order, &err))
            fail_at(cases[i].text, &err);
        assert_int_equal(order.schedule.placement, cases[i].placement);
        assert_int_equal(order.chunks, cases[i].chunks);
        assert_int_equal(order.directions, cases[i].directions);
        assert_int_equal(order.table != NULL, cases[i].placement == PLACEMENT_TABLE);
        arena_release(&arena);
    }
}

/* Ranks with different numbers of stages; transfers only between ranks, gradients of every stage. */
static void test_table(void **state)
{
    struct simulated simulated;
    double updates;

    (void)state;
    write_file(csv, "0F0,1F0,3F0,3B0,1B0,0B0\n2F0,2B0\n");
    for (int e = 0; e < 2; e++) {
        run_text(&simulated, "model: {stages: {forward: 1 s, backward: 2 s, boundary: 1 MB, parameters: 1 M}}\n"
                 "cluster: {nodes: 2, gpus_per_node: 2, gpu: a100-80gb, inside: {bandwidth: 1 MB/s, latency: 0 s},\n"
                 "          network: {bandwidth: 1 GB/s, latency: 0 s, nics: 2}}\n"
                 "strategy: {schedule: {csv: %s}, data: 2, placement: [pipeline, data, tensor]}\n"
                 "memory: {precision: fp32, enforce: false}\nsimulation: {engine: %s}\n", csv, e ? "simgrid" : "ideal");
        assert_int_equal(simulated.scenario.plan.stages, 2);
        assert_int_equal(simulated.scenario.batch.micro_batches, 1);
        assert_int_equal(plan_chunks(&simulated.scenario.plan, 1), 1);
        /* four forwards and backwards one after another, and the boundaries around stage 2 both ways; after them only
         * the gradients of stage 0 are exposed, 4 MB over 1 GB/s in a ring of two */
        updates = 4 * (1 + 2) + 4 * 1 + 4e-3;
        if (fabs(simulated.run.metrics.iteration_time - updates) > 1e-6)
            fail_msg("%g instead of %g s", simulated.run.metrics.iteration_time, updates);
        assert_true(simulated.run.metrics.ranks[0].peak_memory > 2.9 * simulated.run.metrics.ranks[1].peak_memory);
        simulated_release(&simulated);
    }
    unlink(csv);
}

/* Under full recomputation without R in the order, each micro-batch is recomputed right before its backward. */
static void test_fill(void **state)
{
    struct simulated simulated;
    char *orders;

    (void)state;
    write_file(csv, "0F0,0F1,0B0,0I1,0W1\n1F0,(1F1;1B0)O,1B1\n");
    simulated_load(&simulated, "model: {stages: {forward: 1 s, backward: 2 s}}\ncluster: ideal\n"
                   "strategy: {schedule: {csv: %s}}\nmemory: {recompute: full}\n", csv);
    orders = orders_text(&simulated);
    assert_string_equal(orders, "0F0,0F1,0R0,0B0,0R1,0I1,0W1\n1F0,1R0,(1F1;1B0)OVERLAP_F_B,1R1,1B1\n");
    free(orders);
    simulated_release(&simulated);
    unlink(csv);
}

/* The message names the whole circle of waits, and only the ranks in it. */
static void test_deadlock(void **state)
{
    static const struct { const char *text; int line, column; const char *message; } cases[] = {
        {"0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n2F0,2B0,2F1,2B1", 1, 5,
         "rank 0 waits at 0B0 for rank 1 (1B0), which waits at 1F1 (line 2, column 5) for rank 0 (0F1)"},
        {"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n2F0,2F1,2B0,2B1", 2, 5,
         "rank 1 waits at 1B0 for rank 2 (2B0), which waits at 2F1 (line 3, column 5) for rank 1 (1F1)"},
        {"3F0,0F0,3B0,0B0\n1F0,1B0\n2F0,2B0", 1, 1,
         "rank 0 waits at 3F0 for rank 2 (2F0), which waits at 2F0 (line 3, column 1) for rank 1 (1F0), which waits at "
         "1F0 (line 2, column 1) for rank 0 (0F0)"},
        {"0F0,0W0,0I0", 1, 5, "rank 0 waits at 0W0 for 0I0, which it would do later (line 1, column 9)"},
        {"0F0,0B0,0R0", 1, 5, "rank 0 waits at 0B0 for 0R0, which it would do later (line 1, column 9)"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        static const char begins[] = "the order deadlocks: ";
        struct arena arena = {0};
        struct error err = {0};
        struct order order;

        assert_int_equal(parse(&arena, cases[i].text, &order, &err), -1);
        assert_int_equal(err.count, 1);
        assert_int_equal(err.messages[0].loc.line, cases[i].line);
        assert_int_equal(err.messages[0].loc.column, cases[i].column);
        assert_string_equal(err.messages[0].text + strlen(begins), cases[i].message);
        error_release(&err);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notation), cmocka_unit_test(test_placements), cmocka_unit_test(test_table),
        cmocka_unit_test(test_fill), cmocka_unit_test(test_deadlock), cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_round_trip_of_passes),
    };

    snprintf(csv, sizeof csv, "/tmp/dtsim-test-order-%ld.csv", (long)getpid());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
