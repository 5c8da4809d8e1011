/* Charts of files with records: collectives and fits. */
#include "plot_run.h"

#include "plots/records.h"

static void draw(const char *kind, const char *text, int code, const char *expected)
{
    const char *path = arena_printf(&arena, "%s/in.json", root), *old = arena_strdup(&arena, getenv("PATH")), *message;
    struct plot_request request = {.kind = kind, .inputs = &path, .ninputs = 1, .folder = root,
                                   .view = {.replica = -1}};
    struct error err = {0};
    int found;

    put(path, text);
    setenv("PATH", "/nonexistent", 1);       /* data and script are all that is looked at */
    assert_int_equal(plot(&request, &err), -1);
    setenv("PATH", old, 1);
    found = (int)error_exit_code(&err);
    message = errors(&err);
    if (!strstr(message, expected))
        fail_msg("expected '%s' in: %s", expected, message);
    assert_int_equal(found, code);
}

#define COLLECTIVE_HEADER "series\tname\tx\ty\treference\tlower\tlower_reference\n"
#define ONE(op, bytes) "{\"op\": \"" op "\", \"algorithm\": \"ring\", \"ranks\": 4, \"bytes\": " bytes ", " \
    "\"time_s\": 0.5}"

/* Objects one after another, arrays, and arrays called rows. */
static void forms_of_files(void **state)
{
    static const char *const forms[] = {
        ONE("broadcast", "1e9") "\n" ONE("broadcast", "2e9") "\n",
        "[" ONE("broadcast", "1e9") "," ONE("broadcast", "2e9") "]",
        "{\"rows\": [" ONE("broadcast", "1e9") "]}" ONE("broadcast", "2e9"),
    };

    (void)state;
    for (size_t i = 0; i < COUNT(forms); i++) {
        draw("collective", forms[i], EXIT_NO_TOOL, "gnuplot");
        assert_string_equal(get(arena_printf(&arena, "%s/collective.tsv", root)), COLLECTIVE_HEADER
                            "0\tring, 4 ranks\t1000000000\t2\tNaN\t0.5\tNaN\n"
                            "0\tring, 4 ranks\t2000000000\t4\tNaN\t0.5\tNaN\n");
    }
    assert_non_null(strstr(get(arena_printf(&arena, "%s/collective.gp", root)),
                           "\"broadcast: bus bandwidth and time against size\""));
    draw("collective", ONE("broadcast", "1e9") ONE("reduce", "1e9"), EXIT_NO_TOOL, "gnuplot");
    assert_non_null(strstr(get(arena_printf(&arena, "%s/collective.tsv", root)), "1\treduce ring, 4 ranks\t"));
    draw("collective", "", EXIT_INPUT, "in.json: error: no rows");
    draw("collective", "[]", EXIT_INPUT, "no rows");
    draw("collective", "[1]", EXIT_INPUT, "row 0 is not an object");
    draw("collective", "3", EXIT_INPUT, "in.json: error: ");
    draw("collective", "{\"rows\": ", EXIT_INPUT, "in.json: error: ");
    draw("collective", "{\"op\": \"x\"}", EXIT_INPUT, "a row has no number 'ranks'");
}

/* What a library chose size by size is one curve. */
static void chosen_algorithms(void **state)
{
    (void)state;
    draw("collective", "{\"op\": \"broadcast\", \"asked\": \"auto\", \"algorithm\": \"tree\", \"ranks\": 4, "
         "\"bytes\": 1e9, \"time_s\": 0.5} {\"op\": \"broadcast\", \"asked\": \"auto\", \"algorithm\": \"ring\", "
         "\"ranks\": 4, \"bytes\": 2e9, \"time_s\": 0.5}", EXIT_NO_TOOL, "gnuplot");
    assert_string_equal(get(arena_printf(&arena, "%s/collective.tsv", root)), COLLECTIVE_HEADER
                        "0\tauto, 4 ranks\t1000000000\t2\tNaN\t0.5\tNaN\n"
                        "0\tauto, 4 ranks\t2000000000\t4\tNaN\t0.5\tNaN\n");
}

/* Bus bandwidths as nccl-tests has them, and what was measured. */
static void bus_bandwidths(void **state)
{
    (void)state;
    draw("collective", ONE("all_reduce", "1e9"), EXIT_NO_TOOL, "gnuplot");
    assert_non_null(strstr(get(arena_printf(&arena, "%s/collective.tsv", root)), "\t1000000000\t3\tNaN\t0.5\tNaN\n"));
    draw("collective", ONE("all_gather", "1e9"), EXIT_NO_TOOL, "gnuplot");
    assert_non_null(strstr(get(arena_printf(&arena, "%s/collective.tsv", root)), "\t1000000000\t1.5\tNaN\t0.5\tNaN\n"));
    draw("collective", "{\"op\": \"reduce\", \"algorithm\": \"ring\", \"ranks\": 4, \"bytes\": 1e9, \"time_s\": 0.5, "
         "\"measured_s\": 0.25}", EXIT_NO_TOOL, "gnuplot");
    assert_non_null(strstr(get(arena_printf(&arena, "%s/collective.tsv", root)), "\t1000000000\t2\t4\t0.5\t0.25\n"));
}

#define SIZED(algorithm, ranks, seconds) \
    "{\"op\": \"broadcast\", \"algorithm\": \"" algorithm "\", \"ranks\": " ranks ", " \
    "\"bytes\": 1e9, \"time_s\": " seconds "}"

/* An algorithm has a colour, a number of ranks a line style; both panels have all curves. */
static void colours_and_styles(void **state)
{
    static const char *const curves[] = {
        "($1 == 0 ? $3 : NaN):4 with linespoints linewidth 3 pointtype 7 \\\n"
        "        pointsize 1 linecolor rgb 0x0072b2 dashtype 1 title \"ring, 4 ranks\"",
        "($1 == 1 ? $3 : NaN):4 with linespoints linewidth 2.7 pointtype 5 \\\n"
        "        pointsize 0.92 linecolor rgb 0xd55e00 dashtype 1 title \"tree, 4 ranks\"",
        "($1 == 2 ? $3 : NaN):6 with linespoints linewidth 3 pointtype 7 \\\n"
        "        pointsize 1 linecolor rgb 0x0072b2 dashtype (10, 5) notitle",
    };

    (void)state;
    draw("collective", SIZED("ring", "4", "0.5") SIZED("tree", "4", "0.6") SIZED("ring", "8", "0.7"), EXIT_NO_TOOL,
         "gnuplot");
    for (size_t i = 0; i < COUNT(curves); i++)
        assert_non_null(strstr(get(arena_printf(&arena, "%s/collective.gp", root)), curves[i]));
    assert_non_null(strstr(get(arena_printf(&arena, "%s/collective.gp", root)), "set ylabel \"time\""));
}

#define KERNEL(name, sizes, held) "{\"kernel\": \"" name "\", \"dtype\": \"fp16\", " sizes ", \"measured_us\": 10, " \
    "\"predicted_us\": 12, \"held_out\": " #held "}"

/* Three groups of unequal sizes; fitted samples are not drawn. */
static void errors_by_size(void **state)
{
    (void)state;
    draw("fit", KERNEL("matmul", "\"batch\": 2, \"m\": 10, \"n\": 10, \"k\": 10", 1)
         KERNEL("attention-forward", "\"batch\": 1, \"m\": 10, \"n\": 10, \"k\": 10", 1)
         KERNEL("gelu-forward", "\"bytes\": 64", 1) KERNEL("gelu-forward", "\"bytes\": 128", 0),
         EXIT_NO_TOOL, "gnuplot");
    assert_string_equal(get(arena_printf(&arena, "%s/fit.tsv", root)), "group\tseries\tname\tsize\tratio\n"
                        "0\t0\tmatmul fp16\t4000\t1.2\n1\t0\tattention-forward fp16\t4000\t1.2\n"
                        "2\t0\tgelu-forward fp16\t64\t1.2\n");
    draw("fit", KERNEL("gelu-forward", "\"bytes\": 128", 0), EXIT_INPUT, "no shape was held out");
    draw("fit", KERNEL("matmul", "\"m\": 10", 1), EXIT_INPUT, "a row of 'matmul' without size or time");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_of_files), cmocka_unit_test(chosen_algorithms),
        cmocka_unit_test(bus_bandwidths), cmocka_unit_test(colours_and_styles), cmocka_unit_test(errors_by_size),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
