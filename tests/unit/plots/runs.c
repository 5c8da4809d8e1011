/* Charts of links and of several runs: their data say what the results say, and nothing else is drawn. */
#include "plot_run.h"

#include <math.h>

#include "files/tsv.h"

static const char *path_of_nothing(void)
{
    const char *path = arena_strdup(&arena, getenv("PATH"));

    setenv("PATH", "/nonexistent", 1);       /* data and script are all that is looked at */
    return path;
}

/* Draws from the inputs into the folder; all but the picture is there afterwards. */
static void draw(const char *kind, const char *const *inputs, int count, int code, const char *expected)
{
    struct plot_request request = {.kind = kind, .inputs = inputs, .ninputs = count, .folder = root,
                                   .view = {.replica = -1}};
    const char *path = path_of_nothing(), *message;
    struct error err = {0};
    int found;

    assert_int_equal(plot(&request, &err), -1);
    setenv("PATH", path, 1);
    found = (int)error_exit_code(&err);
    message = errors(&err);
    if (!strstr(message, expected))
        fail_msg("expected '%s' in: %s", expected, message);
    assert_int_equal(found, code);
}

/* The sum of a column of the chart's data, weighed by another one ("": by 1). */
static double sum_of(const char *kind, const char *column, const char *weight)
{
    const char *columns[] = {column, *weight ? weight : column, NULL};
    struct error err = {0};
    struct tsv tsv = {0};
    double sum = 0, value, times;

    assert_int_equal(tsv_open(&tsv, arena_printf(&arena, "%s/%s.tsv", root, kind), columns, &err), 0);
    while (tsv_next(&tsv, &err)) {
        assert_int_equal(tsv_number(&tsv, 0, &value, &err) | tsv_number(&tsv, 1, &times, &err), 0);
        sum += value * (*weight ? times : 1);
    }
    tsv_release(&tsv);
    return sum;
}

static const char *result_of(const char *name, const char *schedule, int pipeline, int micro_batches, int gpus,
                             int batch, double samples, const char *closed)
{
    return arena_printf(&arena, "{\"iteration_time_s\": 2, \"bubble_fraction\": 0.25, \"utilization\": 0.5, "
                        "\"gpus\": %d, \"samples_per_s\": %g, \"closed_form_bubble\": %s, \"scenario\": {\"name\": "
                        "\"%s\", \"batch\": {\"global\": %d, \"micro_batches\": %d}, \"strategy\": {\"schedule\": "
                        "\"%s\", \"chunks\": 1, \"pipeline\": %d}}}", gpus, samples, closed, name, batch,
                        micro_batches, schedule, pipeline);
}

/* The result with another number of GPUs than its 2. */
static const char *with_gpus(const char *result, const char *gpus)
{
    static const char two[] = "\"gpus\": 2";
    const char *at = strstr(result, two);

    return arena_printf(&arena, "%.*s\"gpus\": %s%s", (int)(at - result), result, gpus, at + strlen(two));
}

static void links_add_up(void **state)
{
    const char *links = "link\tclass\tpayload_bytes\twire_bytes\tbusy\treplicas\n", *dir;
    double payload = 0, wire = 0;

    (void)state;
    for (int i = 0; i < 50; i++) {
        int times = 1 + i / 2 % 2;          /* of two GPUs */

        links = arena_printf(&arena, "%sgpu%d.up\t%s\t%d\t%d\t%g\t%d\n", links, i, i % 2 ? "nic" : "inside", 10 * i,
                             11 * i, i / 100.0, times);
        payload += 10.0 * i * times;
        wire += 11.0 * i * times;
    }
    dir = make_run("links", RESULT("\"x\""), NULL, NULL);
    put(arena_printf(&arena, "%s/links.tsv", dir), links);
    draw("links", &dir, 1, EXIT_NO_TOOL, "gnuplot");
    assert_true(fabs(sum_of("links", "payload_bytes", "links") - payload) < 1e-9 * payload);
    assert_true(fabs(sum_of("links", "wire_bytes", "links") - wire) < 1e-9 * wire);
    assert_non_null(strstr(get(arena_printf(&arena, "%s/links.tsv", root)), "\n1\tgpu48.up\t2\t1\t480\t528\t0.47"));
    links = "link\tclass\tpayload_bytes\twire_bytes\tbusy\treplicas\n";
    for (int i = 0; i < 10; i++)         /* more links than an int can count */
        links = arena_printf(&arena, "%sgpu%d.up\tnic\t1\t1\t0.5\t2147483647\n", links, i);
    put(arena_printf(&arena, "%s/links.tsv", dir), links);
    draw("links", &dir, 1, EXIT_INPUT, "links.tsv:2:21: error: 2147483647 is not between 1 and 2");
    dir = make_run("many", with_gpus(RESULT("\"x\""), "2147483647"), NULL, NULL);
    put(arena_printf(&arena, "%s/links.tsv", dir), links);
    draw("links", &dir, 1, EXIT_NO_TOOL, "gnuplot");
    assert_non_null(strstr(get(arena_printf(&arena, "%s/links.tsv", root)), "\t4294967294 more, mean\t3\t4294967294"));
    put(arena_printf(&arena, "%s/links.tsv", dir), "link\tclass\tpayload_bytes\twire_bytes\tbusy\treplicas\n");
    draw("links", &dir, 1, EXIT_INPUT, "links.tsv: error: no link carried anything: nothing to draw");
    put(arena_printf(&arena, "%s/links.tsv", dir), LINKS "x\trope\t1\t1\t0\t1\n");
    draw("links", &dir, 1, EXIT_INPUT, "links.tsv:5:3: error: unknown class of links 'rope'");
}

static void breakdowns_add_up(void **state)
{
    const char *const dirs[] = {make_run("one", RESULT("\"same\""), NULL, NULL),
                                make_run("two", RESULT("\"same\""), NULL, NULL),
                                make_run("bad", RESULT("\"bad\""), NULL, NULL)};
    char *bad = strstr(arena_strdup(&arena, RESULT("\"bad\"")), "{");

    (void)state;
    draw("breakdown", dirs, 2, EXIT_NO_TOOL, "gnuplot");
    assert_true(sum_of("breakdown", "forward", "") == 2 && sum_of("breakdown", "backward", "") == 4.5 &&
                sum_of("breakdown", "exposed_pipeline", "") == 3.25 && sum_of("breakdown", "bubble", "") == 3.25);
    assert_non_null(strstr(get(arena_printf(&arena, "%s/breakdown.tsv", root)), "0\tone\t"));     /* not "same" */
    *strstr(bad, "2.25") = '3';
    put(arena_printf(&arena, "%s/result.json", dirs[2]), bad);
    draw("breakdown", dirs, 3, EXIT_INPUT, "'breakdown_s' adds up to 7.5 s, not to the iteration's 6.5 s");
}

static void bubbles_by_what_varies(void **state)
{
    const char *const dirs[] = {
        make_run("b1", result_of("a", "1f1b", 4, 4, 4, 4, 1, "0.5"), NULL, NULL),
        make_run("b2", result_of("b", "1f1b", 4, 8, 4, 8, 1, "null"), NULL, NULL),
        make_run("b3", result_of("c", "gpipe", 4, 8, 4, 8, 1, "0.125"), NULL, NULL),
        make_run("b4", result_of("d", "gpipe", 8, 8, 8, 8, 1, "0.125"), NULL, NULL),
    };

    (void)state;
    draw("bubble", dirs, 3, EXIT_NO_TOOL, "gnuplot");
    assert_string_equal(get(arena_printf(&arena, "%s/bubble.tsv", root)), "series\tname\tx\ty\treference\n"
                        "0\t1f1b\t4\t25\t50\n0\t1f1b\t8\t25\tNaN\n1\tgpipe\t8\t25\t12.5\n");
    assert_non_null(strstr(get(arena_printf(&arena, "%s/bubble.gp", root)), "micro-batches of a replica"));
    draw("bubble", dirs + 2, 2, EXIT_NO_TOOL, "gnuplot");
    assert_non_null(strstr(get(arena_printf(&arena, "%s/bubble.gp", root)), "pipeline stages"));
    put(arena_printf(&arena, "%s/result.json", dirs[0]),         /* another model is no point of the curve */
        "{\"iteration_time_s\": 2, \"bubble_fraction\": 0.5, \"utilization\": 0.5, \"gpus\": 4, "
        "\"scenario\": {\"name\": \"a\", \"model\": {\"title\": \"GPT\"}, \"batch\": {\"micro_batches\": 4}, \"strategy\": {\"schedule\": "
        "\"1f1b\", \"chunks\": 1, \"pipeline\": 4}}}");
    draw("bubble", dirs, 2, EXIT_NO_TOOL, "gnuplot");
    assert_non_null(strstr(get(arena_printf(&arena, "%s/bubble.tsv", root)), "1f1b, 4 micro-batches, GPT\t50\t"));
    draw("bubble", dirs + 1, 2, EXIT_NO_TOOL, "gnuplot");        /* schedules of one shape: a bar each */
    assert_string_equal(get(arena_printf(&arena, "%s/bubble.tsv", root)), "row\trun\tbubble\tclosed_form\n"
                        "0\t1f1b\t25\tNaN\n1\tgpipe\t25\t12.5\n");
    draw("bubble", (const char *const[]){dirs[1], dirs[3]}, 2, EXIT_NO_TOOL, "gnuplot");   /* no curve of two points */
    assert_non_null(strstr(get(arena_printf(&arena, "%s/bubble.tsv", root)), "\n0\t1f1b, 4 stages, 4 GPUs\t25\t"));
}

static void scaling_weak_and_strong(void **state)
{
    const char *const dirs[] = {
        make_run("s1", result_of("a", "1f1b", 1, 4, 4, 64, 10, "null"), NULL, NULL),
        make_run("s2", result_of("b", "1f1b", 1, 4, 8, 64, 15, "null"), NULL, NULL),
        make_run("s3", result_of("c", "1f1b", 1, 4, 8, 128, 18, "null"), NULL, NULL),
    };

    (void)state;
    draw("scaling", dirs, 3, EXIT_NO_TOOL, "gnuplot");
    assert_string_equal(get(arena_printf(&arena, "%s/scaling.tsv", root)), "series\tname\tx\ty\treference\tlower\t"
                        "lower_reference\n0\tweak, batch 16 a GPU\t4\t10\t10\t100\t100\n"
                        "0\tweak, batch 16 a GPU\t8\t18\t20\t90\t100\n1\tstrong, batch 64\t4\t10\t10\t100\t100\n"
                        "1\tstrong, batch 64\t8\t15\t20\t75\t100\n");
    assert_non_null(strstr(get(arena_printf(&arena, "%s/scaling.gp", root)),
                           "set xtics ()\nset xtics add (\"4\" 4)\nset xtics add (\"8\" 8)\n"));
    draw("scaling", dirs + 1, 2, EXIT_USAGE, "scaling: expected runs on different numbers of GPUs");
    draw("memory", dirs, 2, EXIT_USAGE, "memory: expected the folder of one run, found 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_add_up), cmocka_unit_test(breakdowns_add_up), cmocka_unit_test(bubbles_by_what_varies),
        cmocka_unit_test(scaling_weak_and_strong),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
