/* Charts of sweeps: cells hold the best of their rows, axes are in their natural order, fronts hold what nothing
 * betters, and labels overlap neither each other nor the front's points. */
#include "plot_run.h"

#include <jansson.h>
#include <math.h>

#include "plots/rows.h"
#include "files/tsv.h"

/* Draws from rows; data and script are all that is looked at. */
static void draw(const char *kind, json_t *rows, struct plot_key x, struct plot_key y, struct plot_key by,
                 int code, const char *expected)
{
    const char *const input = "some.sweep";
    struct plot_request request = {.kind = kind, .inputs = &input, .ninputs = 1, .folder = root,
                                   .view = {.replica = -1}, .rows = {rows, x, y, by}};
    const char *path = arena_strdup(&arena, getenv("PATH")), *message;
    struct error err = {0};
    int found;

    setenv("PATH", "/nonexistent", 1);
    assert_int_equal(plot(&request, &err), -1);
    setenv("PATH", path, 1);
    found = (int)error_exit_code(&err);
    message = errors(&err);
    if (!strstr(message, expected))
        fail_msg("expected '%s' in: %s", expected, message);
    assert_int_equal(found, code);
}

static const struct plot_key none = {NULL, false}, fastest = {"iteration_time_s", false},
                             rate = {"samples_per_s", true};

static json_t *row_of(const char *point, const char *status, const char *rest)
{
    const char *text = arena_printf(&arena, "{\"point\": %s, \"status\": \"%s\", %s}", point, status, rest);
    json_t *row = json_loads(text, 0, NULL);

    assert_non_null(row);
    return row;
}

static const char *data_of(const char *kind)
{
    return get(arena_printf(&arena, "%s/%s.tsv", root, kind));
}

static const char *script_of(const char *kind)
{
    return get(arena_printf(&arena, "%s/%s.gp", root, kind));
}

/* A number that depends on nothing but its place. */
static double number_at(unsigned place)
{
    return 1 + (place * 2654435761u >> 16) % 1000;
}

/* Rows of 5 x 4 x 6 points, of which every fifth is infeasible. */
static json_t *many_rows(void)
{
    json_t *rows = json_array();

    for (unsigned i = 0; i < 120; i++)
        json_array_append_new(rows, row_of(
            arena_printf(&arena, "{\"a\": %u, \"b\": \"%u MB\", \"c\": %u}", 1u << (i % 5), 1u << (4 * (i / 5 % 4)),
                         i / 20), i % 5 == 3 && i % 4 ? "infeasible" : "ok",
            arena_printf(&arena, "\"rule\": \"memory\", \"metrics\": {\"iteration_time_s\": %g, \"samples_per_s\": %g, "
                         "\"memory_margin_bytes\": %g}", number_at(i), number_at(i + 1000), -number_at(i + 2000))));
    return rows;
}

static void cells_have_the_best(void **state)
{
    json_t *rows = many_rows();

    (void)state;
    draw("heat", rows, none, none, fastest, EXIT_NO_TOOL, "gnuplot");
    for (unsigned x = 0; x < 5; x++)
        for (unsigned y = 0; y < 4; y++) {
            double best = INFINITY, nearest_fit = -INFINITY;
            const char *line;

            for (unsigned c = 0; c < 6; c++) {
                unsigned i = x + 5 * y + 20 * c;

                if (i % 5 == 3 && i % 4)
                    nearest_fit = fmax(nearest_fit, -number_at(i + 2000));
                else
                    best = fmin(best, number_at(i));
            }
            line = arena_printf(&arena, "\n%u\t%u\t%s\t%u\t%u MB\t", x, y, isfinite(best) ? "value" : "infeasible",
                                1u << x, 1u << (4 * y));
            line = isfinite(best) ? arena_printf(&arena, "%s%g\t", line, best) :
                   arena_printf(&arena, "%sNaN\tmemory\tlacks %.3g B\t", line, -nearest_fit);
            if (!strstr(data_of("heat"), line))
                fail_msg("expected '%s' in %s", line, data_of("heat"));
        }
    assert_non_null(strstr(script_of("heat"), "iteration time (s) by a and b; best over c\""));
    json_decref(rows);
}

/* A line parts cells that fit in memory from those that do not, whether these have a number or none; its pieces are as long
 * as they can be. Of other metrics there is none, nor where all fit. */
static void memory_has_a_limit(void **state)
{
    static const struct plot_key memory = {"peak_memory_bytes", false};
    const char *script;

    (void)state;
    for (int limit = 30; limit <= 90; limit += 60) {
        json_t *rows = json_array();

        for (int i = 0; i < 12; i++) {       /* 4 x 3 cells of 5 x + 20 y + 1 bytes */
            int x = i % 4, y = i / 4, bytes = 5 * x + 20 * y + 1;

            json_array_append_new(rows, row_of(
                arena_printf(&arena, "{\"a\": %d, \"b\": %d}", x, y), x == 3 && bytes > limit ? "infeasible" : "ok",
                arena_printf(&arena, "\"rule\": \"memory\", \"metrics\": {\"peak_memory_bytes\": %d, "
                             "\"iteration_time_s\": %d, \"memory_margin_bytes\": %d}", bytes, 1 + i, limit - bytes)));
        }
        draw("heat", rows, none, none, fastest, EXIT_NO_TOOL, "gnuplot");
        assert_null(strstr(script_of("heat"), "limit of memory"));
        assert_null(strstr(script_of("heat"), "set arrow"));
        draw("heat", rows, none, none, memory, EXIT_NO_TOOL, "gnuplot");
        script = script_of("heat");
        if (limit == 30) {                   /* 21 26 | 31 36 in the middle; all above are beyond it, none below */
            assert_non_null(strstr(script, "\"the limit of memory, 30 B\""));
            assert_non_null(strstr(script, "set arrow from 1.5,1 - 0.5 to 1.5,2 - 0.5 "));
            assert_non_null(strstr(script, "set arrow from 2 - 0.5,0.5 to 4 - 0.5,0.5 "));
            assert_non_null(strstr(script, "set arrow from 0 - 0.5,1.5 to 2 - 0.5,1.5 "));
        } else {
            assert_null(strstr(script, "set arrow"));
        }
        json_decref(rows);
    }
}

/* Below its number a cell says where its best row is on the axes in which cells differ, in as many lines as it needs.
 * Values that all cells have are printed once. */
static void cells_say_where_the_best_is(void **state)
{
    json_t *rows = json_array();

    (void)state;
    for (unsigned i = 0; i < 64; i++)        /* the best: zero as a is even or odd, micro 1, never recomputation */
        json_array_append_new(rows, row_of(
            arena_printf(&arena, "{\"a\": %u, \"b\": %u, \"strategy.zero\": %u, \"strategy.schedule\": \"%s\", "
                         "\"memory.recompute\": \"%s\"}", i % 8, i / 8 % 2, i / 16 % 2,
                         i / 8 % 2 ? "gpipe" : "interleaved",
                         i / 32 ? "full" : "none"), "ok",
            arena_printf(&arena, "\"metrics\": {\"iteration_time_s\": %u}", 1 + i / 32 + (i % 2 != i / 16 % 2))));
    for (unsigned i = 0; i < 16; i++)        /* worse rows of the other schedule, so that the schedule is no axis */
        json_array_append_new(rows, row_of(
            arena_printf(&arena, "{\"a\": %u, \"b\": %u, \"strategy.zero\": 0, \"strategy.schedule\": \"1f1b\", "
                         "\"memory.recompute\": \"none\"}", i % 8, i / 8), "ok",
            "\"metrics\": {\"iteration_time_s\": 9}"));
    draw("heat", rows, none, none, fastest, EXIT_NO_TOOL, "gnuplot");
    assert_non_null(strstr(script_of("heat"),
                           "best over strategy.zero, strategy.schedule, memory.recompute; all cells: no recompute"));
    assert_non_null(strstr(data_of("heat"), "\n1\t0\tvalue\t1\t0\t1\t1.000\tZeRO-1\\ninterleaved\t"));
    assert_non_null(strstr(data_of("heat"), "\tZeRO-1 interleaved no recompute\t"));
    assert_non_null(strstr(data_of("heat"), "\n2\t1\tvalue\t2\t1\t1\t1.000\tZeRO-0 gpipe\t"));
    json_decref(rows);
}

static void axes_are_in_order(void **state)
{
    static const char *const sizes[] = {"512 MB", "1 GB", "16 GB", "2 GB"};
    static const char *const kinds[] = {"zb-v", "1f1b", "16", "2"};
    json_t *rows = json_array();

    (void)state;
    for (size_t i = 0; i < 16; i++)
        json_array_append_new(rows, row_of(arena_printf(&arena, "{\"size\": \"%s\", \"kind\": \"%s\"}", sizes[i % 4],
                                                        kinds[i / 4]), "ok", "\"metrics\": {\"iteration_time_s\": 1}"));
    draw("heat", rows, none, none, fastest, EXIT_NO_TOOL, "gnuplot");
    assert_non_null(strstr(script_of("heat"), "set xtics add (\"512 MB\" 0)\nset xtics add (\"1 GB\" 1)\n"
                           "set xtics add (\"2 GB\" 2)\nset xtics add (\"16 GB\" 3)\n"));
    assert_non_null(strstr(script_of("heat"), "set ytics add (\"1f1b\" 0)\nset ytics add (\"2\" 1)\n"
                           "set ytics add (\"16\" 2)\nset ytics add (\"zb-v\" 3)\n"));
    assert_null(strstr(script_of("heat"), "best over"));
    assert_non_null(strstr(script_of("heat"), "15 other cells are as good"));
    draw("heat", rows, (struct plot_key){"size", false}, (struct plot_key){"size", false}, fastest, EXIT_USAGE,
         "heat: the axes are both 'size'");
    draw("heat", rows, none, none, rate, EXIT_INPUT, "some.sweep: error: no row that ran has a number 'samples_per_s'");
    json_array_clear(rows);
    draw("heat", rows, none, none, fastest, EXIT_USAGE, "heat: expected rows that differ in two axes, found none");
    json_decref(rows);
}

struct label { double left, right, low, high, x, y; };

/* Labels where the script draws them: their letters are narrower than this. */
static size_t read_labels(struct label *labels, size_t most, size_t *front)
{
    static const char *const columns[] = {"front", "x", "y", "label", "label_x", "label_y", "side", NULL};
    struct error err = {0};
    struct tsv tsv = {0};
    size_t count = 0;

    *front = 0;
    assert_int_equal(tsv_open(&tsv, arena_printf(&arena, "%s/pareto.tsv", root), columns, &err), 0);
    while (tsv_next(&tsv, &err)) {
        double x, y, side, wide = 6.5 * (double)strlen(tsv_text(&tsv, 3));

        *front += tsv_text(&tsv, 0)[0] == '1';
        if (strcmp(tsv_text(&tsv, 4), "NaN") == 0)
            continue;
        assert_true(count < most);
        assert_int_equal(tsv_number(&tsv, 4, &x, &err) | tsv_number(&tsv, 5, &y, &err), 0);
        assert_int_equal(tsv_number(&tsv, 6, &side, &err), 0);
        labels[count].left = side < 0 ? x - wide : side > 0 ? x : x - 0.5 * wide;
        labels[count].right = labels[count].left + wide;
        labels[count].low = y - 6;
        labels[count++].high = y + 6;
    }
    tsv_release(&tsv);
    return count;
}

static void fronts_and_labels(void **state)
{
    json_t *rows = many_rows();
    struct label labels[64];
    size_t front, count, expected = 0;

    (void)state;
    draw("pareto", rows, fastest, rate, none, EXIT_NO_TOOL, "gnuplot");
    count = read_labels(labels, COUNT(labels), &front);
    for (unsigned i = 0; i < 120; i++) {
        bool bettered = i % 5 == 3 && i % 4;

        for (unsigned k = 0; k < 120; k++)
            bettered |= !(k % 5 == 3 && k % 4) && k != i && number_at(k) <= number_at(i) &&
                        number_at(k + 1000) >= number_at(i + 1000);
        expected += !bettered;
    }
    assert_true(expected > 3);
    assert_int_equal(front, expected);
    assert_true(count > 10);
    if (count < front)                       /* they crowd in a corner */
        assert_non_null(strstr(script_of("pareto"),
                               arena_printf(&arena, "%zu of the front\\047s %zu points", count, front)));
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            assert_false(labels[i].left < labels[k].right && labels[k].left < labels[i].right &&
                         labels[i].low < labels[k].high && labels[k].low < labels[i].high);
    assert_non_null(strstr(data_of("pareto"), "a 1"));
    json_decref(rows);
}

/* A front of more points than there is room for labels: the chart says how many have a label. */
static void crowded_fronts(void **state)
{
    json_t *rows = json_array();
    struct label labels[400];
    size_t front, count;

    (void)state;
    for (unsigned i = 0; i < 400; i++)
        json_array_append_new(rows, row_of(arena_printf(&arena, "{\"a\": %u, \"b\": %u}", i, i), "ok",
                                           arena_printf(&arena, "\"metrics\": {\"iteration_time_s\": %u, "
                                                        "\"samples_per_s\": %u}", i + 1, i + 1)));
    draw("pareto", rows, fastest, rate, none, EXIT_NO_TOOL, "gnuplot");
    count = read_labels(labels, COUNT(labels), &front);
    assert_int_equal(front, 400);
    assert_true(count > 5 && count < 400);
    assert_non_null(strstr(script_of("pareto"), arena_printf(&arena, "%zu of the front\\047s 400 points", count)));
    draw("pareto", rows, (struct plot_key){"mfu", true}, rate, none, EXIT_INPUT,
         "no row that ran has both numbers 'mfu'");
    json_decref(rows);
}

/* What others wrote stands in the charts' files as text that gnuplot takes for nothing else. */
static void text_of_others(void **state)
{
    json_t *rows = json_array();

    (void)state;
    for (int i = 0; i < 4; i++)
        json_array_append_new(rows, row_of(
            arena_printf(&arena, "{\"a`b\": \"\\\"%d`touch x`\\n\", \"c\": {\"d\": [%d]}}", i / 2, i % 2),
            i ? "ok" : "infeasible", "\"rule\": \"`'\\t\", \"metrics\": {\"iteration_time_s\": 1}"));
    draw("heat", rows, none, none, fastest, EXIT_NO_TOOL, "gnuplot");
    assert_null(strpbrk(data_of("heat"), "`'\"@"));
    assert_null(strchr(script_of("heat"), '`'));
    assert_non_null(strstr(data_of("heat"), "0\\140touch x\\140 \t"));
    draw("pareto", rows, fastest, fastest, none, EXIT_NO_TOOL, "gnuplot");
    assert_null(strpbrk(data_of("pareto"), "`'\"@"));
    json_decref(rows);
}

static void quantities_have_units(void **state)
{
    static const struct { const char *key; double most; const char *label, *text; } cases[] = {
        {"iteration_time_s", 62.83, "iteration time (s)", "62.83"},
        {"iteration_time_s", 0.05, "iteration time (ms)", "50"},
        {"tokens_per_s", 133519, "thousand tokens/s", "133.5"}, {"samples_per_s", 20, "samples/s", "20"},
        {"peak_memory_bytes", 0x1p36, "peak memory (GiB)", "64"}, {"mfu", 0.5078, "MFU (%)", "50.78"},
        {"communication_bytes_per_gpu", 2048, "communication per GPU (KiB)", "2"},
        {"bubble_fraction", 0.25, "bubble fraction (%)", "25"},
        {"breakdown_s.exposed_data", 3, "exposed data (s)", "3"},
        {"strategy.tensor", 8, "strategy.tensor", "8"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct quantity quantity = quantity_of(&arena, cases[i].key, cases[i].most);

        assert_string_equal(quantity.label, cases[i].label);
        assert_string_equal(quantity_text(&arena, &quantity, cases[i].most, 4), cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_have_the_best), cmocka_unit_test(cells_say_where_the_best_is),
        cmocka_unit_test(memory_has_a_limit), cmocka_unit_test(axes_are_in_order), cmocka_unit_test(fronts_and_labels),
        cmocka_unit_test(crowded_fronts), cmocka_unit_test(text_of_others),
        cmocka_unit_test(quantities_have_units),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
