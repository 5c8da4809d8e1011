/* Charts: their files to the byte, merging, and names that try to be code. */
#include "plot_run.h"

#include <math.h>

#include "engine/program.h"
#include "plots/gantt.h"

static void assert_plots(const char *kind, const char *dir, const char *format)
{
    struct plot_request request = request_of(kind, &dir, format);
    struct error err = {0};

    if (plot(&request, &err))
        fail_msg("%s", errors(&err));
    assert_int_equal(err.count, 0);
}

/* Whether a chart can be drawn from one run; charts of scaling, and of other files, cannot. */
static bool of_one_run(const struct plot_kind *kind)
{
    return kind->inputs <= PLOT_RUNS && strcmp(kind->name, "scaling") != 0;
}

static bool have_gnuplot(void)
{
    const char *const arguments[] = {"gnuplot", "--version", NULL};
    const struct tool tool = {"/", arguments, STDOUT_FILENO, TOOL_SECONDS};
    char text[100];
    int status = 1;

    return tool_run(&tool, text, sizeof text, &status) == 0 && status == 0;
}

static void every_kind_of_span_has_a_colour(void **state)
{
    (void)state;
    for (int i = 0; i < WHAT_COUNT; i++)
        assert_true(tone_of(op_what_names[i]) >= 0);
    assert_int_equal(tone_of("sync"), TONE_COMMUNICATION);
    assert_int_equal(tone_of("communication"), -1);
    assert_string_equal(plot_kind_at(0)->name, "gantt");
    assert_string_equal(plot_format_at(0), "png");
}

static void data_to_the_byte(void **state)
{
    const char *dir = make_run("bytes", RESULT("\"two\""), SPANS, WINDOWS);

    (void)state;
    if (!have_gnuplot())
        skip();
    assert_plots("gantt", dir, NULL);
    assert_string_equal(get(file_of("gantt", dir, NULL, 2)),
                        "rank\tlane\tkind\tt0\tt1\ttop\tbottom\tband\tcolour\tshaded\tlabelled\tcommunication\t"
                        "spans\tlabel\trun\n"
                        "0\tcompute\tforward\t0\t1\t0.06\t0.74\t0.25\t0\t0\t1\t0.25\t1\tF1\t0\n"
                        "0\tcompute\tbackward\t4.5\t6.5\t0.06\t0.74\t0\t1\t0\t1\t0\t1\tB1\t0\n"
                        "0\tsend-next.0\tactivation\t1\t1.5\t0.76\t0.94\t0\t7\t0\t0\t0.5\t1\tA1\t0\n"
                        "1\tcompute\tforward\t1.5\t2.5\t1.06\t1.74\t0\t0\t0\t1\t0\t1\tF1\t0\n"
                        "1\tcompute\tbackward\t2.5\t4.5\t1.06\t1.74\t0\t1\t0\t1\t0\t1\tB1\t0\n");
    assert_plots("utilization", dir, NULL);
    assert_string_equal(get(file_of("utilization", dir, NULL, 2)),
                        "time\tforward\tbackward\tbackward_input\tbackward_weight\trecompute\tupdate\tpack\t"
                        "exposed_tensor\texposed_pipeline\texposed_data\texposed_context\texposed_expert\t"
                        "exposed_offload\n"
                        "0\t0.5\t0\t0\t0\t0\t0\t0\t0.25\t0\t0\t0\t0\t0\n"
                        "2\t0.5\t0\t0\t0\t0\t0\t0\t0.25\t0\t0\t0\t0\t0\n"
                        "2\t0\t0.75\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\n"
                        "6.5\t0\t0.75\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\n");
}

/* A chart of nothing says so, once. */
static void memory_of_nothing(void **state)
{
    const char *dir = make_run("nothing", RESULT("\"none\""), NULL, NULL), *script;

    (void)state;
    if (!have_gnuplot())
        skip();
    put(arena_printf(&arena, "%s/memory.tsv", dir), MEMORY_HEADER "0\t0\tparameters\t0\t1\n1\t0\tactivations\t0\t1\n");
    assert_plots("memory", dir, NULL);
    script = get(file_of("memory", dir, NULL, 1));
    assert_non_null(strstr(script, "No rank holds anything: the scenario gives no bytes of parameters or activations"));
    assert_non_null(strstr(script, "\nheadings = \"'rank 0: at most 0 B'\"\n"));
    put(arena_printf(&arena, "%s/memory.tsv", dir), MEMORY_HEADER "0\t0\tparameters\t0\t1\n1\t0\tactivations\t1\t1\n");
    assert_plots("memory", dir, NULL);
    assert_null(strstr(get(file_of("memory", dir, NULL, 1)), "No rank holds anything"));
}

/* The first, the fullest and the last rank; what changes within a column is its highest, and then its last. */
static void memory_to_the_byte(void **state)
{
    const char *dir = make_run("memory", RESULT("\"four\""), NULL, NULL), *script;
    const double column = 6.5 / 700;

    (void)state;
    if (!have_gnuplot())
        skip();
    assert_plots("memory", dir, "svg");
    assert_string_equal(
        get(file_of("memory", dir, "svg", 2)),
        arena_printf(&arena, "rank\ttime\tcontext\tparameters\tgathered\tgradients\toptimizer\tbuffers\tfragmentation\t"
                     "activations\tworkspace\tother\n"
                     "0\t0\t6\t1\t2\t3\t4\t5\t9\t0\t0\t0\n0\t2\t6\t1\t2\t3\t4\t5\t9\t0\t0\t0\n"
                     "0\t2\t6\t1\t2\t3\t4\t5\t9\t2\t0\t0\n0\t6.5\t6\t1\t2\t3\t4\t5\t9\t2\t0\t0\n"
                     "1\t0\t0\t10\t0\t0\t0\t0\t0\t0\t0\t0\n1\t1\t0\t10\t0\t0\t0\t0\t0\t0\t0\t0\n"
                     "1\t1\t0\t10\t0\t0\t0\t0\t0\t30\t10\t0\n1\t3.5\t0\t10\t0\t0\t0\t0\t0\t30\t10\t0\n"
                     "1\t3.5\t0\t10\t0\t0\t0\t0\t0\t30\t5\t0\n1\t%.15g\t0\t10\t0\t0\t0\t0\t0\t30\t5\t0\n"
                     "1\t%.15g\t0\t10\t0\t0\t0\t0\t0\t0\t0\t0\n1\t6.5\t0\t10\t0\t0\t0\t0\t0\t0\t0\t0\n"
                     "3\t0\t0\t7\t0\t0\t0\t0\t0\t0\t0\t0\n3\t6.5\t0\t7\t0\t0\t0\t0\t0\t0\t0\t0\n",
                     3.5 + column, 3.5 + column));
    script = get(file_of("memory", dir, "svg", 1));
    assert_non_null(strstr(script, "'rank 0: at most 32 B' 'rank 1: at most 50 B' 'rank 3: at most 7 B'"));
    assert_non_null(strstr(script, "peak_times = \"2 1 0\""));
    assert_non_null(strstr(script, "the first, the last and the fullest of 4 ranks"));
    assert_null(strstr(script, "limit ="));
    dir = make_run("limited", "{\"iteration_time_s\": 6.5, \"bubble_fraction\": 0.25, \"utilization\": 0.5, "
                   "\"memory_limit_bytes\": 2048, \"scenario\": {\"name\": \"x\"}}", NULL, NULL);
    put(arena_printf(&arena, "%s/memory.tsv", dir), MEMORY_HEADER "0\t0\tparameters\t1024\t1\n");
    assert_plots("memory", dir, "svg");
    script = get(file_of("memory", dir, "svg", 1));
    assert_non_null(strstr(script, "limit = 2048\n"));
    assert_non_null(strstr(script, "line_1 = \"a GPU has 2 KiB\""));
    assert_non_null(strstr(script, "headings = \"'rank 0: at most 1 KiB'\""));
    assert_null(strstr(script, "\"other\""));
    /* kinds that the chart does not know are one area */
    put(arena_printf(&arena, "%s/memory.tsv", dir), MEMORY_HEADER "0\t0\tnew\t900\t1\n0\t0\tparameters\t24\t1\n"
        "0\t0\tnewer\t100\t1\n");
    assert_plots("memory", dir, "svg");
    assert_non_null(strstr(get(file_of("memory", dir, "svg", 2)), "\t0\t24\t0\t0\t0\t0\t0\t0\t0\t1000\n"));
    assert_non_null(strstr(get(file_of("memory", dir, "svg", 1)), "\"other\""));
}

/* A picture of another format stays while the data are the same, and goes with them. A chart that cannot be drawn leaves
 * the older one as it is. */
static void only_the_picture_is_replaced(void **state)
{
    const char *dir = make_run("formats", RESULT("\"two\""), SPANS, WINDOWS);
    struct plot_request request = request_of("gantt", &dir, NULL);
    struct error err = {0};

    (void)state;
    if (!have_gnuplot())
        skip();
    assert_plots("gantt", dir, "svg");
    assert_plots("gantt", dir, "png");
    assert_non_null(get(file_of("gantt", dir, "svg", 0)));
    make_run("formats", RESULT("\"two\""), "rank\n", WINDOWS);
    assert_int_equal(plot(&request, &err), -1);
    error_release(&err);
    assert_non_null(get(file_of("gantt", dir, "png", 0)));
    make_run("formats", RESULT("\"two\""), HEADER "0\t0\tforward\tF1\t0\t0\t1\tcompute\t0.25\t0\t1\n", WINDOWS);
    assert_plots("gantt", dir, "png");
    assert_non_null(get(file_of("gantt", dir, "png", 0)));
    assert_non_null(get(file_of("gantt", dir, "svg", 0)));
}

static void same_run_same_bytes(void **state)
{
    const char *dir = make_run("same", RESULT("\"two\""), SPANS, WINDOWS), *first;
    size_t size;

    (void)state;
    if (!have_gnuplot())
        skip();
    for (int k = 0; plot_kind_at((size_t)k); k++)
        for (size_t f = 0; plot_format_at(f); f++) {
            const char *kind = plot_kind_at((size_t)k)->name, *format = plot_format_at(f), *path;
            char *before[3];
            size_t sizes[3];

            if (!of_one_run(plot_kind_at((size_t)k)))
                continue;
            assert_plots(kind, dir, format);
            for (size_t i = 0; (path = file_of(kind, dir, format, i)); i++)
                before[i] = get_sized(path, &sizes[i]);
            assert_plots(kind, dir, format);
            for (size_t i = 0; (path = file_of(kind, dir, format, i)); i++) {
                char *second = get_sized(path, &size);

                assert_non_null(second);
                assert_int_equal(size, sizes[i]);
                assert_memory_equal(before[i], second, size);
            }
        }
    first = get_sized(file_of("gantt", dir, "pdf", 0), &size);
    assert_non_null(memmem(first, size, "(D:20000101000000Z)", strlen("(D:20000101000000Z)")));
}

static void scripts_run_from_anywhere(void **state)
{
    const char *dir = make_run("any where", RESULT("\"two\""), SPANS, WINDOWS);
    const char *script = file_of("gantt", dir, "svg", 1);
    const char *const arguments[] = {"gnuplot", "-d", script, NULL};
    const struct tool tool = {"/", arguments, STDERR_FILENO, TOOL_SECONDS};
    char text[1000];
    int status = 1;

    (void)state;
    if (!have_gnuplot())
        skip();
    assert_plots("gantt", dir, "svg");
    assert_int_equal(remove(file_of("gantt", dir, "svg", 0)), 0);
    assert_int_equal(tool_run(&tool, text, sizeof text, &status), 0);
    assert_string_equal(text, "");
    assert_int_equal(status, 0);
    assert_non_null(strstr(get(file_of("gantt", dir, "svg", 0)), "</svg>"));
}

/* Narrow boxes of several lanes and kinds join; the time of each kind in each lane of each rank stays. */
static void merging_conserves_time(void **state)
{
    static const char *const whats[] = {"forward", "backward", "recompute"};
    enum { RANKS = 2, LANES = 2, EACH = 3000 };
    double before[RANKS][LANES][3] = {{{0}}}, after[RANKS][LANES][3] = {{{0}}}, end = 0, last = 0;
    struct gantt gantt = {0};
    double communication = 0;
    size_t spans = 0;
    unsigned random = 1;

    (void)state;
    for (int i = 0; i < RANKS * LANES * EACH; i++) {
        double start = i % EACH ? last : 0;

        random = random * 1664525u + 1013904223u;
        start += random >> 29 ? 0 : 1e-4;
        last = start + 1e-4 * (1 + (random >> 8) % 40);
        *GROW(&gantt.boxes) = (struct box){
            .rank = i / EACH / LANES, .lane = i / EACH % LANES, .kind = (int)(random >> 16) % 3, .start = start,
            .end = last, .communication = 0.5 * (last - start), .high = 1, .spans = 1, .name = "x",
            .what = whats[(random >> 16) % 3],
        };
        before[i / EACH / LANES][i / EACH % LANES][(random >> 16) % 3] += last - start;
        end = fmax(end, last);
    }
    gantt_merge(&gantt, end / GANTT_COLUMNS);
    assert_true(gantt.boxes.count < RANKS * LANES * EACH / 4);
    assert_true(gantt.column > 0);
    for (size_t i = 0; i < gantt.boxes.count; i++) {
        const struct box *box = &gantt.boxes.items[i];

        after[box->rank][box->lane][box->kind] += box->end - box->start;
        spans += (size_t)box->spans;
        communication += 2 * box->communication - (box->end - box->start);
        assert_true(box->end > box->start && box->end <= end * (1 + 1e-12));
        assert_string_equal(box->name, box->spans > 1 ? "" : "x");
        if (i && box[-1].rank == box->rank && box[-1].lane == box->lane)
            assert_true(box->start >= box[-1].end - 1e-9);
    }
    assert_int_equal(spans, RANKS * LANES * EACH);
    assert_true(fabs(communication) < 1e-9 * end);
    for (int r = 0; r < RANKS; r++)
        for (int l = 0; l < LANES; l++)
            for (int k = 0; k < 3; k++)
                assert_true(fabs(before[r][l][k] - after[r][l][k]) < 1e-9 * end);
    gantt_release(&gantt);
}

/* The area below each curve is the time spent on it, whatever windows were averaged. */
static void averaging_conserves_time(void **state)
{
    char *windows = arena_alloc(&arena, 1 << 20), *to;
    double forward = 0, drawn = 0, time, share, last_time = 0;
    const char *dir, *data;
    int rows = 0;

    (void)state;
    if (!have_gnuplot())
        skip();
    strcpy(windows, WINDOWS);
    to = strchr(windows, '\n') + 1;
    for (int i = 0; i < 5000; i++) {
        share = i * 37 % 101 / 128.0;
        to += sprintf(to, "%g\t%g\t%.9g\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t%.9g\n", i / 1000.0, (i + 1) / 1000.0,
                      share, 1 - share);
        forward += share / 1000;
    }
    dir = make_run("average", RESULT("\"x\""), NULL, windows);
    assert_plots("utilization", dir, "svg");
    data = strchr(get(file_of("utilization", dir, "svg", 2)), '\n') + 1;
    for (; *data; data = strchr(data, '\n') + 1, rows++) {
        assert_int_equal(sscanf(data, "%lf %lf", &time, &share), 2);
        if (rows % 2)
            drawn += share * (time - last_time);
        last_time = time;
    }
    assert_true(rows > 1000 && rows <= 1400);
    assert_true(fabs(forward - drawn) < 1e-6);
}

static void many_ranks_are_not_cut_in_silence(void **state)
{
    const char *dir, *script;
    char *spans = arena_strdup(&arena, HEADER);

    (void)state;
    if (!have_gnuplot())
        skip();
    for (int i = 0; i < 70; i++)
        spans = arena_printf(&arena, "%s%d\t%d\tforward\tF1\t0\t0\t1\tcompute\t0\t0\t1\n", spans, i, i);
    dir = make_run("ranks", RESULT("\"many\""), spans, NULL);
    assert_plots("gantt", dir, "svg");
    script = get(file_of("gantt", dir, "svg", 1));
    assert_non_null(strstr(script, "line_1 = \"first, middle and last of 70 ranks; below, all of them\""));
    assert_non_null(strstr(script, "\"rank 0 (S0)\" 0.5, "));
}

static void names_are_text(void **state)
{
    /* What JSON says, and what the picture shows. */
    static const char *const names[][2] = {
        {"\"'; system('touch pwned') #\"", "'; system('touch pwned') #"},
        {"\"\\\"; system(\\\"touch pwned\\\") #\"", "\"; system(\"touch pwned\") #"},
        {"\"a\\nsystem('touch pwned')\\n\"", "a system('touch pwned') "},
        {"\"`touch pwned` $(touch pwned) @name\"", "`touch pwned` $(touch pwned) @name"},
        {"\"a_b^c{/=40 d}~e\\\\n\\\\\"", "a_b^c{/=40 d}~e\\n\\"},
        {"\"\\u00e9\\u65e5 </text><script> &amp; %s\"", "é日 &lt;/text>&lt;script> &amp;amp; %s"},
    };

    (void)state;
    if (!have_gnuplot())
        skip();
    for (size_t i = 0; i < COUNT(names); i++) {
        const char *result = arena_printf(&arena, RESULT("%s"), names[i][0]);
        const char *dir = make_run("it's \"a\" $(touch pwned) `touch pwned`; #", result, SPANS, WINDOWS);

        for (int k = 0; plot_kind_at((size_t)k); k++)
            for (size_t f = 0; plot_format_at(f); f++) {
                const char *kind = plot_kind_at((size_t)k)->name, *format = plot_format_at(f);

                if (!of_one_run(plot_kind_at((size_t)k)))
                    continue;
                assert_plots(kind, dir, format);
                assert_null(get(arena_printf(&arena, "%s/plots/pwned", dir)));
                assert_null(get("pwned"));
                if (strcmp(format, "svg") == 0 && strcmp(kind, "bubble") != 0 &&
                    !strstr(get(file_of(kind, dir, format, 0)), names[i][1]))
                    fail_msg("no '%s'", names[i][1]);
            }
    }
}

static void labels_are_text(void **state)
{
    const char *dir = make_run("labels", RESULT("\"x\""),
                               HEADER "0\t0\tforward\ta\"b`c\\n@{d}'\xFF\t0\t0\t9\tcompute\t0\t0\t1\n"
                               "0\t0\tsync\t\"\t-1\t0\t9\t\"\\\"`touch pwned`\t9\t0\t1\n", NULL);

    (void)state;
    if (!have_gnuplot())
        skip();
    assert_plots("gantt", dir, "svg");
    assert_non_null(strstr(get(file_of("gantt", dir, "svg", 0)), "a\"b`c\\n@{d}'?"));
    assert_null(get(arena_printf(&arena, "%s/plots/pwned", dir)));
}

static void text_is_cleaned(void **state)
{
    (void)state;
    assert_string_equal(text_clean(&arena, "a\n\x1b[0m\x7f", 90), "a  [0m ");
    assert_string_equal(text_clean(&arena, "\xC0\xAF\xED\xA0\x80\xE2\x82", 90),
                        "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
    assert_string_equal(text_clean(&arena, "\u00e9\u65e5\U0001F600", 3), "\u00e9\u65e5\U0001F600");
    assert_string_equal(text_clean(&arena, "abcdef", 4), "abc\u2026");
    assert_string_equal(text_clean(&arena, "a\u202Eb", 90), "a b");
    assert_string_equal(text_escape(&arena, "a\"b\\c`d'e"), "a\\042b\\134c\\140d\\047e");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_span_has_a_colour), cmocka_unit_test(data_to_the_byte),
        cmocka_unit_test(memory_of_nothing), cmocka_unit_test(memory_to_the_byte),
        cmocka_unit_test(only_the_picture_is_replaced), cmocka_unit_test(same_run_same_bytes),
        cmocka_unit_test(scripts_run_from_anywhere),
        cmocka_unit_test(merging_conserves_time), cmocka_unit_test(averaging_conserves_time),
        cmocka_unit_test(many_ranks_are_not_cut_in_silence),
        cmocka_unit_test(names_are_text), cmocka_unit_test(labels_are_text), cmocka_unit_test(text_is_cleaned),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
