/* The Gantt chart: which ranks and times it shows, and that areas are seconds. */
#include "plot_run.h"

#include <math.h>

#include "plots/gantt.h"

#define DEGREES(pipeline) "{\"iteration_time_s\": 4, \"bubble_fraction\": 0.25, \"utilization\": 0.5, \"gpus\": 8, " \
    "\"scenario\": {\"name\": \"x\", \"model\": {\"title\": \"GPT\"}, \"batch\": {\"micro_batches\": 2}, " \
    "\"strategy\": {\"schedule\": \"1f1b\", \"pipeline\": " #pipeline ", \"data\": 4}}}\n"

/* Four replicas of two ranks; the last rank's last work takes `last` seconds. */
static const char *four_replicas(double last, int stands_for)
{
    const char *spans = HEADER;

    for (int rank = 0; rank < 8; rank++)
        spans = arena_printf(&arena, "%s%d\t%d\tforward\tF0\t0\t%d\t%d\tcompute\t0\t0\t%d\n"
                             "%d\t%d\tbackward\tB0\t0\t%d\t%g\tcompute\t0\t0\t%d\n", spans, rank, rank % 2, rank % 2,
                             rank % 2 + 1, stands_for, rank, rank % 2, 3 - rank % 2, 3 - rank % 2 +
                             (rank == 7 ? last : 1), stands_for);
    return spans;
}

static void draw(const char *dir, struct plot_view view, int code, const char *expected)
{
    struct plot_request request = request_of("gantt", &dir, "svg");
    struct error err = {0};
    const char *path = arena_strdup(&arena, getenv("PATH"));
    int found;

    request.view = view;
    setenv("PATH", "/nonexistent", 1);       /* data and script are all that is looked at */
    assert_int_equal(plot(&request, &err), -1);
    setenv("PATH", path, 1);
    found = (int)error_exit_code(&err);
    if (!strstr(errors(&err), expected))
        fail_msg("no '%s'", expected);
    assert_int_equal(found, code);
}

static int rows_of(const char *dir, const char *rank)
{
    const char *data = get(file_of("gantt", dir, "svg", 2));
    int rows = 0;

    for (const char *line = data; (line = strchr(line, '\n')) && line[1]; line++)
        rows += !strncmp(line + 1, rank, strlen(rank)) && line[1 + strlen(rank)] == '\t';
    return rows;
}

static void expect_line(const char *dir, const char *line)
{
    const char *script = get(file_of("gantt", dir, "svg", 1));

    if (!strstr(script, line))
        fail_msg("no '%s' in %.900s", line, script);
}

static void replicas(void **state)
{
    const char *dir = make_run("replicas", DEGREES(2), four_replicas(1, 3), NULL);
    const struct plot_view own = {.replica = -1}, second = {.replica = 1}, fifth = {.replica = 4};

    (void)state;
    draw(dir, own, EXIT_NO_TOOL, "gnuplot is not installed");
    assert_int_equal(rows_of(dir, "0") + rows_of(dir, "1"), 4);
    assert_int_equal(rows_of(dir, "2"), 0);
    expect_line(dir, "\"1 of 12 replicas, all alike\"");
    expect_line(dir, "\"GPT, 8 GPUs: pipeline 2, data 4; 1f1b, 2 micro-batches\"");
    draw(dir, second, EXIT_NO_TOOL, "gnuplot");
    assert_int_equal(rows_of(dir, "2") + rows_of(dir, "3"), 4);
    assert_int_equal(rows_of(dir, "0"), 0);
    expect_line(dir, "\"replica 1, one of 12\"");
    draw(dir, fifth, EXIT_USAGE, "--replica: found 4; the file has 4 replicas, counted from 0");
    dir = make_run("unlike", DEGREES(2), four_replicas(1.001, 1), NULL);
    draw(dir, own, EXIT_NO_TOOL, "gnuplot");
    assert_int_equal(rows_of(dir, "0") + rows_of(dir, "7"), 4);
}

static void listed_ranks(void **state)
{
    static const char *const bad[] = {"", "1,", "8", "3-1", "-1", "1-", "x", "1 2", "0-99999999999999999999"};
    const char *dir = make_run("listed", DEGREES(2), four_replicas(1, 1), NULL);

    (void)state;
    draw(dir, (struct plot_view){.ranks = "1,4-5", .replica = -1}, EXIT_NO_TOOL, "gnuplot");
    assert_int_equal(rows_of(dir, "1") + rows_of(dir, "4") + rows_of(dir, "5"), 6);
    assert_int_equal(rows_of(dir, "0") + rows_of(dir, "2"), 0);
    expect_line(dir, "\"ranks 1,4-5 of 8\"");
    for (size_t i = 0; i < COUNT(bad); i++)
        draw(dir, (struct plot_view){.ranks = bad[i], .replica = -1}, EXIT_USAGE, "--ranks: expected ranks such as");
}

static void part_of_the_time(void **state)
{
    const char *dir = make_run("part", DEGREES(2), four_replicas(1, 1), NULL);

    (void)state;
    draw(dir, (struct plot_view){.from = 0.5, .to = 3.25, .replica = -1}, EXIT_NO_TOOL, "gnuplot");
    assert_non_null(strstr(get(file_of("gantt", dir, "svg", 2)), "0\tcompute\tforward\t0.5\t1\t"));
    assert_non_null(strstr(get(file_of("gantt", dir, "svg", 2)), "0\tcompute\tbackward\t3\t3.25\t"));
    expect_line(dir, "begin = 0.5\nend = 3.25\n");
    draw(dir, (struct plot_view){.from = 9, .replica = -1}, EXIT_USAGE, "--from: the run ends at 4 s");
}

#define RUN(name, seconds, more) "{\"iteration_time_s\": " seconds ", \"bubble_fraction\": 0.25, " \
    "\"utilization\": 0.5, \"gpus\": 2, " more "\"scenario\": {\"name\": \"" name "\", \"strategy\": " \
    "{\"schedule\": \"1f1b\", \"pipeline\": 2}}}\n"

/* Two runs on one time axis, as long as the longer one: each has a heading, its rows below it, and grey bars as long as
 * it takes. A straggler and the steady state are marked. */
static void stacked_runs(void **state)
{
    const char *const dirs[] = {
        make_run("short", RUN("short", "6.5", "\"stragglers\": [{\"rank\": 1, \"slower\": 1.5}], "), SPANS, NULL),
        make_run("long", RUN("long", "9", "\"steady_state\": {\"from_s\": 2, \"to_s\": 8}, "), SPANS, NULL),
    };
    static const char *const lines[] = {
        "name = \"2 runs on one time axis\"", "begin = 0\nend = 9\n", "\"a: iteration 6.5 s, bubble 25.0 %\"",
        "\"b: iteration 9 s, bubble 25.0 %\"", "to 6.5*unit, ", "to 9*unit, ", "\"rank 1 (S1) ×1.5\"",
        "×: a straggler, with the factor by which its kernels take longer", "set arrow from 2*unit, ",
        "\"steady state\" at 5*unit",
        "lanes below a rank, downwards: send-next", "at the foot of a work: its share that is communication",
    };
    static const char *const labels[] = {"a", "b", "c"};
    const char *many[GANTT_RUNS + 1], *data;
    struct plot_request request = request_of("gantt", dirs, "svg");
    struct error err = {0};

    (void)state;
    request.ninputs = 2;
    request.look = (struct plot_look){.labels = labels, .nlabels = 3, .width = 3000};
    assert_int_equal(plot(&request, &err), -1);
    assert_non_null(strstr(errors(&err), "--labels: 3 labels for 2 runs; expected one a run"));
    request.look.nlabels = 2;
    plot(&request, &err);                    /* without gnuplot there is no picture */
    errors(&err);
    for (size_t i = 0; i < COUNT(lines); i++)
        expect_line(dirs[0], lines[i]);
    data = get(file_of("gantt", dirs[0], "svg", 2));
    assert_non_null(strstr(data, "0\tcompute\tforward\t0\t1\t0."));
    assert_non_null(strstr(data, "1\tcompute\tbackward\t2.5\t4.5\t4."));    /* below two rows and two headings */
    assert_non_null(strstr(data, "\tB1\t0\n"));
    assert_non_null(strstr(data, "\tB1\t1\n"));
    for (size_t i = 0; i < COUNT(many); i++)
        many[i] = dirs[0];
    request = request_of("gantt", many, "svg");
    request.ninputs = COUNT(many);
    assert_int_equal(plot(&request, &err), -1);
    assert_non_null(strstr(errors(&err), "gantt: 13 runs; expected at most 12"));
}

/* Of many ranks a straggler has a row too, which the last ones give away. */
static void straggler_of_many(void **state)
{
    const char *spans = HEADER, *dir;

    (void)state;
    for (int rank = 0; rank < 100; rank++)
        spans = arena_printf(&arena, "%s%d\t%d\tforward\tF0\t0\t0\t%d\tcompute\t0\t0\t1\n", spans, rank, rank,
                             rank == 30 ? 2 : 1);
    dir = make_run("many", "{\"iteration_time_s\": 4, \"bubble_fraction\": 0.25, \"utilization\": 0.5, "
                   "\"stragglers\": [{\"rank\": 30, \"slower\": 2}], \"scenario\": {\"name\": \"x\"}}", spans, NULL);
    draw(dir, (struct plot_view){.replica = -1}, EXIT_NO_TOOL, "gnuplot");
    expect_line(dir, "\"rank 30 (S30) ×2\"");
    expect_line(dir, "first, middle, slow and last of 100 ranks; below, all of them");
    assert_int_equal(rows_of(dir, "0") + rows_of(dir, "7") + rows_of(dir, "46") + rows_of(dir, "93"), 4);
    assert_int_equal(rows_of(dir, "8") + rows_of(dir, "92"), 0);
    assert_int_equal(rows_of(dir, "99"), 1);
}

/* A border stands between two works, and in no box that stands for several. */
static void borders(void **state)
{
    const char *spans = HEADER, *dir;

    (void)state;
    for (int i = 0; i < 1000; i++)
        spans = arena_printf(&arena, "%s0\t0\tforward\tF%d\t0\t%g\t%g\tcompute\t0\t0\t1\n", spans, i, i * 4e-3,
                             (i + 1) * 4e-3);
    dir = make_run("borders", DEGREES(1), spans, NULL);
    draw(dir, (struct plot_view){.replica = -1}, EXIT_NO_TOOL, "gnuplot");
    expect_line(dir, "gap(t0, t1, spans) = spans == 1 && t1 - t0 > 5*pixel");
    expect_line(dir, "(unit*($4 + gap($4, $5, $13)))");
    assert_non_null(strstr(get(file_of("gantt", dir, "svg", 2)), "\t5\t\t0\n"));
}

/* Works that overlap stand one above the other over the time of both: each area is its seconds. */
static void overlapped_works(void **state)
{
    struct gantt gantt = {.compute = 0, .to = 10};
    const struct box boxes[] = {
        {.start = 0, .end = 1, .high = 1, .spans = 1},
        {.start = 2, .end = 3, .high = 1, .spans = 1, .overlapped = true},
        {.start = 3, .end = 6, .high = 1, .spans = 1},
        {.start = 7, .end = 8, .high = 1, .spans = 1, .overlapped = true},
        {.start = 9, .end = 10, .high = 1, .spans = 1},
    };
    static const double drawn[][4] = {{0, 1, 0, 1}, {2, 6, 0, 0.25}, {2, 6, 0.25, 1}, {7, 8, 0, 1}, {9, 10, 0, 1}};

    (void)state;
    for (size_t i = 0; i < COUNT(boxes); i++)
        *GROW(&gantt.boxes) = boxes[i];
    gantt_overlap(&gantt);
    for (size_t i = 0; i < COUNT(boxes); i++) {
        const struct box *box = &gantt.boxes.items[i];

        assert_true(fabs(box->start - drawn[i][0]) < 1e-12 && fabs(box->end - drawn[i][1]) < 1e-12);
        assert_true(fabs(box->low - drawn[i][2]) < 1e-12 && fabs(box->high - drawn[i][3]) < 1e-12);
    }
    gantt_release(&gantt);
}

/* Every row of the image has as many cells of a kind as its ranks spend time on it, to one cell. */
static void image_conserves_time(void **state)
{
    enum { RANKS = 500, EACH = 400 };
    struct gantt gantt = {.compute = 0, .to = 0, .ranks = RANKS, .image = {.ranks = RANKS, .pipeline = RANKS}};
    double seconds[TONE_COUNT + 1] = {0}, counted[TONE_COUNT + 1] = {0};
    unsigned random = 1;

    (void)state;
    for (int i = 0; i < RANKS * EACH; i++) {
        double start = i % EACH * 1e-3, busy;

        random = random * 1664525u + 1013904223u;
        busy = 1e-3 * ((random >> 8) % 11) / 10;
        *GROW(&gantt.boxes) = (struct box){
            .rank = i / EACH, .kind = (int)(random >> 16) % TONE_UPDATE, .start = start, .end = start + busy,
            .communication = busy / 4, .high = 1, .spans = 1,
        };
        seconds[(random >> 16) % TONE_UPDATE] += 0.75 * busy;
        seconds[TONE_COMMUNICATION] += 0.25 * busy;
        seconds[TONE_COUNT] += 1e-3 - busy;
    }
    gantt.to = EACH * 1e-3;
    gantt_image(&gantt);
    for (int i = 0; i < gantt.image.rows * gantt.image.columns; i++)
        counted[gantt.image.cells[i]] += 1;
    for (int k = 0; k <= TONE_COUNT; k++) {
        double expected = seconds[k] / gantt.to / RANKS * gantt.image.rows * gantt.image.columns;

        if (fabs(counted[k] - expected) > 2.0 * gantt.image.rows)
            fail_msg("kind %d: %g cells, expected %g", k, counted[k], expected);
    }
    gantt_release(&gantt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas), cmocka_unit_test(listed_ranks), cmocka_unit_test(part_of_the_time),
        cmocka_unit_test(stacked_runs),
        cmocka_unit_test(straggler_of_many), cmocka_unit_test(borders), cmocka_unit_test(overlapped_works),
        cmocka_unit_test(image_conserves_time),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
