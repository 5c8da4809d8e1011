/* Charts: the errors for bad result files, for a missing gnuplot, and for nonsense. */
#include "plot_run.h"

/* Plotting fails with the code, and `expected` is part of the message. */
static void assert_fails(const char *kind, const char *dir, const char *format, int code, const char *expected)
{
    struct plot_request request = request_of(kind, &dir, format);
    struct error err = {0};
    const char *said;
    int found;

    assert_int_equal(plot(&request, &err), -1);
    found = (int)error_exit_code(&err);
    said = errors(&err);
    if (!strstr(said, expected))
        fail_msg("expected '%s' in: %s", expected, said);
    assert_int_equal(found, code);
}

#define RUN RESULT("\"x\"")

static const struct { const char *kind, *result, *spans, *windows, *expected; } bad[] = {
    {"gantt", NULL, SPANS, NULL, "bad/result.json: error: cannot open: No such file or directory; expected the folder"},
    {"gantt", "{\"iteration_time_s\": 1,\n", SPANS, NULL, "bad/result.json:2:"},
    {"gantt", "[]", SPANS, NULL, "result.json: error: not an object"},
    {"gantt", "{\"iteration_time_s\": \"1\", \"scenario\": {}}", SPANS, NULL, "'iteration_time_s' is not a number"},
    {"gantt", "{\"iteration_time_s\": 1, \"bubble_fraction\": 7, \"scenario\": {}}", SPANS, NULL,
     "'bubble_fraction' is 7"},
    {"gantt", "{\"scenario\": {}}", SPANS, NULL, "'scenario.name' is missing"},
    {"gantt", RUN, NULL, NULL, "bad/spans.tsv: error: cannot open: No such file"},
    {"gantt", RUN, "", NULL, "spans.tsv: error: the file is empty"},
    {"gantt", RUN, HEADER, NULL, "spans.tsv: error: no spans"},
    {"gantt", RUN, "rank\tstage\n", NULL, "spans.tsv:1:1: error: no column 'kind' in the header"},
    {"gantt", RUN, HEADER "0\t0\tforward\tF1\t0\t0\t1\tcomp", NULL, "spans.tsv:2:1: error: the file is truncated"},
    {"gantt", RUN, SPANS "0\t0\tforward\n", NULL, "spans.tsv:7:1: error: 3 cells where the header has 11"},
    {"gantt", RUN, SPANS "0\t0\tforward\tF1\t0\t0\tone\tcompute\t0\t0\t1\n", NULL,
     "spans.tsv:7:20: error: 'one' is not a number"},
    {"gantt", RUN, SPANS "0\t0\tforward\tF1\t0\t0\tnan\tcompute\t0\t0\t1\n", NULL, "'nan' is not a number"},
    {"gantt", RUN, SPANS "0\t0\tforward\tF1\t0\t0\t1e999\tcompute\t0\t0\t1\n", NULL, "'1e999' is not a number"},
    {"gantt", RUN, SPANS "0\t0\tforward\tF1\t0\t2\t1\tcompute\t0\t0\t1\n", NULL, "the span ends before it starts"},
    {"gantt", RUN, SPANS "0\t0\twalk\tF1\t0\t0\t1\tcompute\t0\t0\t1\n", NULL,
     "spans.tsv:7:5: error: unknown kind 'walk'"},
    {"gantt", RUN, SPANS "0.5\t0\tforward\tF1\t0\t0\t1\tcompute\t0\t0\t1\n", NULL, "'0.5' is not a whole number"},
    {"gantt", RUN, SPANS "-1\t0\tforward\tF1\t0\t0\t1\tcompute\t0\t0\t1\n", NULL, "-1 is not between 0 and"},
    {"gantt", RUN, SPANS "0\t0\tforward\tF1\t0\t0\t1\t\t0\t0\t1\n", NULL, "spans.tsv:7:22: error: a span without lane"},
    {"gantt", RUN, HEADER "0\t0\tforward\tF1\t0\t1\t1\tcompute\t0\t0\t1\n", NULL, "no span takes any time"},
    {"utilization", RUN, NULL, NULL, "bad/utilization.tsv: error: cannot open"},
    {"utilization", RUN, NULL, SPANS, "utilization.tsv:1:1: error: no column 'forward' in the header"},
    {"utilization", RUN, NULL,
     WINDOWS "6.5\t7\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t2\n", "2 is not between 0 and 1"},
    {"utilization", RUN, NULL,
     WINDOWS "6.5\t7\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t.5\n", "the shares add up to 0.5"},
    {"utilization", RUN, NULL, WINDOWS "5\t7\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t1\n",
     "utilization.tsv:4:1: error: the window starts"},
};

#define ROW "0\t0\tparameters\t9\t1\n"
static const struct { const char *text, *expected; } bad_memory[] = {
    {"", "memory.tsv: error: the file is empty"},
    {MEMORY_HEADER, "memory.tsv: error: no rows"},
    {"rank\tt\tbytes\n", "memory.tsv:1:1: error: no column 'kind' in the header"},
    {MEMORY_HEADER ROW "0\t-1\tparameters\t9\t1\n", "memory.tsv:3:3: error: a time before 0"},
    {MEMORY_HEADER "0\t2\tworkspace\t9\t1\n" ROW, "memory.tsv:3:3: error: a time before that of the rank's row above"},
    {MEMORY_HEADER "0\t0\tactivations\t-3\t1\n", "memory.tsv:2:17: error: -3 bytes: less than none"},
    {MEMORY_HEADER "x\t0\tactivations\t9\t1\n", "memory.tsv:2:1: error: 'x' is not a whole number"},
    {MEMORY_HEADER "0\t0\ta\t1\t1\n0\t0\tb\t1\t1\n0\t0\tc\t1\t1\n0\t0\td\t1\t1\n0\t0\te\t1\t1\n0\t0\tf\t1\t1\n"
     "0\t0\tg\t1\t1\n0\t0\th\t1\t1\n0\t0\ti\t1\t1\n", "memory.tsv:10:5: error: too many kinds of memory"},
};

static void bad_files_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad_memory); i++) {
        const char *dir = make_run("bad", RUN, NULL, NULL);

        put(arena_printf(&arena, "%s/memory.tsv", dir), bad_memory[i].text);
        assert_fails("memory", dir, NULL, EXIT_INPUT, bad_memory[i].expected);
    }
    assert_null(get(arena_printf(&arena, "%s/bad/plots/memory.tsv", root)));
    put(arena_printf(&arena, "%s/links.tsv", make_run("bad", RUN, NULL, NULL)), LINKS "nic1.up\tnic\t7\t7\t0.5\t3\n");
    assert_fails("links", arena_printf(&arena, "%s/bad", root), NULL, EXIT_INPUT, "3 is not between 1 and 2");
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_fails(bad[i].kind, make_run("bad", bad[i].result, bad[i].spans, bad[i].windows), NULL, EXIT_INPUT,
                     bad[i].expected);
    assert_null(get(arena_printf(&arena, "%s/bad/plots/gantt.tsv", root)));
    assert_fails("gantt", arena_printf(&arena, "%s/none", root), NULL, EXIT_INPUT, "none: error: cannot open");
    assert_fails("gantt", arena_printf(&arena, "%s/bad/result.json", root), NULL, EXIT_INPUT, "not a folder");
    assert_fails("gant", root, NULL, EXIT_USAGE, "unknown kind of chart 'gant'; did you mean 'gantt'?");
}

/* What another build did not write is left out, as far as the rest says enough; what it says otherwise is an error. */
static void files_of_another_build(void **state)
{
    static const char spans[] = "rank\tkind\tt0\tt1\tlane\n0\tforward\t0\t1\tcompute\n0\tbackward\t1\t2\tcompute\n";
    static const char windows[] = "t0\tt1\tforward\tbackward\n0\t2\t0.5\t0.5\n";
    const char *own = make_run("own", RUN, spans, windows), *other = make_run("other", " " RUN, spans, windows);
    const char *path = getenv("PATH") ? arena_strdup(&arena, getenv("PATH")) : "";

    (void)state;
    assert_fails("gantt", own, NULL, EXIT_INPUT, "spans.tsv:1:1: error: no column 'stage' in the header");
    assert_fails("utilization", own, NULL, EXIT_INPUT, "utilization.tsv:1:1: error: no column 'backward_input'");
    setenv("PATH", "/nonexistent", 1);
    assert_fails("gantt", other, NULL, EXIT_NO_TOOL, "gnuplot is not installed");
    assert_fails("utilization", other, NULL, EXIT_NO_TOOL, "gnuplot is not installed");
    put(arena_printf(&arena, "%s/utilization.tsv", other), "t0\tt1\tforward\tdreaming\n0\t2\t0.5\t0.5\n");
    assert_fails("utilization", other, NULL, EXIT_INPUT, "the shares add up to 0.5, not to 1");
    setenv("PATH", path, 1);
    assert_non_null(strstr(get(file_of("gantt", other, NULL, 2)),
                           "\n0\tcompute\tforward\t0\t1\t0.06\t0.94\t0\t0\t0\t"));
}

/* Run with a PATH that has nothing: the data and the script are made, the picture is not. */
static void without_gnuplot(void **state)
{
    const char *dir = make_run("no tool", RUN, SPANS, WINDOWS);
    const char *path = getenv("PATH") ? arena_strdup(&arena, getenv("PATH")) : "";

    (void)state;
    setenv("PATH", "/nonexistent", 1);
    assert_fails("gantt", dir, NULL, EXIT_NO_TOOL, "error: gnuplot is not installed (Debian: apt install gnuplot-nox");
    setenv("PATH", path, 1);
    assert_non_null(get(file_of("gantt", dir, NULL, 2)));
    assert_non_null(get(file_of("gantt", dir, NULL, 1)));
    assert_null(get(file_of("gantt", dir, NULL, 0)));
}

/* Bytes of good files changed at random: no crash, and every refusal is a message. */
static void damaged_files(void **state)
{
    const char *path = getenv("PATH") ? arena_strdup(&arena, getenv("PATH")) : "";
    static const char palette[] = "\t\n0-9.e\xFF\"\\x \r";
    unsigned random = 7;

    (void)state;
    setenv("PATH", "/nonexistent", 1);
    for (int round = 0; round < 600; round++) {
        static const char *const kinds[] = {"gantt", "utilization", "gantt", "memory"};
        char *texts[] = {arena_strdup(&arena, SPANS), arena_strdup(&arena, WINDOWS), arena_strdup(&arena, RUN),
                         arena_strdup(&arena, MEMORY)};
        char *text = texts[round % 4];
        struct plot_request request;
        const char *dir;
        struct error err = {0};

        for (int i = 0; i < 1 + round % 5; i++) {
            random = random * 1664525u + 1013904223u;
            text[(random >> 8) % strlen(text)] = palette[(random >> 4) % (sizeof palette - 1)];
        }
        if (round % 7 == 0)
            text[(random >> 8) % strlen(text)] = '\0';
        dir = make_run("damaged", texts[2], texts[0], texts[1]);
        put(arena_printf(&arena, "%s/memory.tsv", dir), texts[3]);
        request = request_of(kinds[round % 4], &dir, NULL);
        assert_int_equal(plot(&request, &err), -1);
        assert_true(err.count > 0);
        error_release(&err);
    }
    setenv("PATH", path, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_files_are_named), cmocka_unit_test(files_of_another_build),
        cmocka_unit_test(without_gnuplot), cmocka_unit_test(damaged_files),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
