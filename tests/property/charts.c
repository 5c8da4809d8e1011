/* The rule of the charts: what a picture is drawn from adds up to result.json. */
#include "simulated.h"

#include <jansson.h>

#include "plots/plot.h"
#include "files/tsv.h"

enum { MOST_ROWS = 400000 };

/* A chart's data: the columns asked for, row by row. */
struct data { double *cells; size_t columns, rows; };

static struct data data_of(const char *dir, const char *kind, const char *const *columns)
{
    struct data data = {0};
    struct error err = {0};
    struct tsv tsv = {0};
    char path[200];

    while (columns[data.columns])
        data.columns++;
    data.cells = xcalloc(MOST_ROWS, sizeof *data.cells);
    snprintf(path, sizeof path, "%s/plots/%s.tsv", dir, kind);
    assert_int_equal(tsv_open(&tsv, path, columns, &err), 0);
    for (; tsv_next(&tsv, &err); data.rows++)
        for (size_t c = 0; c < data.columns; c++) {
            assert_true((data.rows + 1) * data.columns < MOST_ROWS);
            assert_int_equal(tsv_number(&tsv, (int)c, &data.cells[data.rows * data.columns + c], &err), 0);
        }
    tsv_release(&tsv);
    assert_int_equal(err.count, 0);
    return data;
}

static double cell(const struct data *data, size_t row, size_t column)
{
    return data->cells[row * data->columns + column];
}

/* Writes data and script of a chart; there is no gnuplot on the way, so there is no picture. */
static void draw(const char *dir, const char *kind)
{
    char folder[200];
    struct plot_request request = {.kind = kind, .inputs = &dir, .ninputs = 1, .folder = folder,
                                   .view = {.replica = -1}};
    struct error err = {0};
    char *path = strdup(getenv("PATH"));

    snprintf(folder, sizeof folder, "%s/plots", dir);
    setenv("PATH", "/nonexistent", 1);
    assert_int_equal(plot(&request, &err), -1);
    setenv("PATH", path, 1);
    free(path);
    if ((int)error_exit_code(&err) != EXIT_NO_TOOL)
        fail_at(kind, &err);
    error_release(&err);
}

static double number_of(const json_t *result, const char *key, const char *member)
{
    const json_t *value = json_object_get(result, key);

    if (member)
        value = json_object_get(value, member);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void expect(const char *what, const char *key, double found, double expected, double slack)
{
    if (!(fabs(found - expected) <= slack))
        fail_msg("%s: %s is %.12g, not %.12g", what, key, found, expected);
}

/* Bars and areas are seconds of the mean rank. */
static void check_shares(const char *dir, const char *what, const json_t *result)
{
    double whole = number_of(result, "iteration_time_s", NULL);
    const char *key;
    json_t *value;

    draw(dir, "breakdown");
    draw(dir, "utilization");
    json_object_foreach(json_object_get(result, "breakdown_s"), key, value) {
        const char *const of_bar[] = {key, NULL}, *const of_area[] = {"time", key, NULL};
        struct data bar = data_of(dir, "breakdown", of_bar), area;
        double seconds = 0;

        expect(what, key, cell(&bar, 0, 0), json_number_value(value), 0);
        free(bar.cells);
        if (strcmp(key, "bubble") == 0)
            continue;                    /* the background: what the others leave */
        area = data_of(dir, "utilization", of_area);
        for (size_t i = 0; i + 1 < area.rows; i += 2)
            seconds += cell(&area, i, 1) * (cell(&area, i + 1, 0) - cell(&area, i, 0));
        expect(what, key, seconds, json_number_value(value), 1e-8 * whole);
        free(area.cells);
    }
}

/* The area of each colour in compute rows is its seconds: one replica stands for those that are alike. */
static void check_gantt(const char *dir, const char *what, const json_t *result)
{
    static const char *const columns[] = {"t0", "t1", "top", "bottom", "band", "colour", "rank", NULL};
    static const char *const keys[] = {"forward", "backward", "backward_input", "backward_weight", "recompute"};
    struct data data;
    double seconds[COUNT(keys)] = {0}, height = 0, ranks = 0;

    draw(dir, "gantt");
    data = data_of(dir, "gantt", columns);
    for (size_t i = 0; i < data.rows; i++) {
        height = fmax(height, cell(&data, i, 3) - cell(&data, i, 2));
        ranks += i == 0 || cell(&data, i, 6) != cell(&data, i - 1, 6);
    }
    for (size_t i = 0; i < data.rows; i++) {
        size_t kind = (size_t)cell(&data, i, 5);

        if (kind < COUNT(keys))
            seconds[kind] += (cell(&data, i, 1) - cell(&data, i, 0)) * (cell(&data, i, 3) - cell(&data, i, 2)) / height *
                             (1 - cell(&data, i, 4)) / ranks;
    }
    for (size_t k = 0; k < COUNT(keys); k++)     /* heights are written with six digits */
        expect(what, keys[k], seconds[k], number_of(result, "breakdown_s", keys[k]),
               1e-4 * number_of(result, "iteration_time_s", NULL));
    free(data.cells);
}

static void check_memory_and_links(const char *dir, const char *what, const json_t *result)
{
    static const char *const kinds[] = {"context", "parameters", "gathered", "gradients", "optimizer", "buffers",
                                        "fragmentation", "activations", "workspace", "other", NULL};
    static const char *const columns[] = {"class", "links", "payload_bytes", "wire_bytes", NULL};
    static const char *const classes[] = {"nvlink", "pcie", "inside", "nic", "uplink", "host"};
    struct data data;
    double most = 0, bytes[COUNT(classes)][2] = {{0}};

    draw(dir, "memory");
    data = data_of(dir, "memory", kinds);
    for (size_t i = 0; i < data.rows; i++) {
        double held = 0;

        for (size_t k = 0; k < data.columns; k++)
            held += cell(&data, i, k);
        most = fmax(most, held);
    }
    free(data.cells);
    expect(what, "peak_memory_bytes", most, number_of(result, "peak_memory_bytes", NULL), 1e-9 * most);
    draw(dir, "links");
    data = data_of(dir, "links", columns);
    for (size_t i = 0; i < data.rows; i++)
        for (int k = 0; k < 2; k++)
            bytes[(size_t)cell(&data, i, 0)][k] += cell(&data, i, 1) * cell(&data, i, 2 + (size_t)k);
    free(data.cells);
    for (size_t c = 0; c < COUNT(classes); c++) {
        const json_t *of_class = json_object_get(json_object_get(result, "link_bytes"), classes[c]);

        if (!of_class) {                     /* of a class that this cluster has no links of */
            assert_true(bytes[c][0] == 0);
            continue;
        }
        expect(what, classes[c], bytes[c][0], number_of(of_class, "payload_bytes", NULL), 1e-9 * bytes[c][0]);
        expect(what, classes[c], bytes[c][1], number_of(of_class, "wire_bytes", NULL), 1e-9 * bytes[c][1]);
    }
}

static void check_run(const char *name, const char *const *sets, size_t count)
{
    char dir[] = "/tmp/dtsim-charts-XXXXXX", command[100], path[300];
    struct simulated simulated = {0};
    struct simulate_options options;
    struct error err = {0};
    struct folder folder;
    json_t *result;

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, DTSIM_SOURCE_DIR "/scenarios/%s.yaml", name);
    if (load_once(path, sets, count, &simulated.scenario, &err) ||
        workload_init(&simulated.workload, &simulated.scenario, &err))
        fail_at(name, &err);
    options = simulate_options_of(&simulated.scenario);
    options.links = true;
    if (folder_open(&folder, dir, &err) || simulate(&simulated.workload, options, &simulated.run, &err) ||
        result_write(&simulated.run, &folder, &err))
        fail_at(name, &err);
    folder_release(&folder);
    snprintf(path, sizeof path, "%s/result.json", dir);
    result = json_load_file(path, 0, NULL);
    assert_non_null(result);
    check_shares(dir, name, result);
    check_gantt(dir, name, result);
    check_memory_and_links(dir, name, result);
    json_decref(result);
    run_release(&simulated.run);
    workload_release(&simulated.workload);
    scenario_release(&simulated.scenario);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

static void charts_add_up(void **state)
{
    static const char *const names[] = {"tour/06-3d", "tour/08-recompute", "tour/23-hybrid-sharding",
                                        "tour/25-offloading"};
    static const char *const overlapped[] = {"strategy.schedule=dualpipe", "strategy.chunks=2", "strategy.pipeline=4",
                                             "batch.global=64"};
    static const char *const ideal[] = {"simulation.engine=ideal"};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++)
        check_run(names[i], ideal, COUNT(ideal));
    check_run("demo", overlapped, COUNT(overlapped));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(charts_add_up)};

    return cmocka_run_group_tests_name("charts", tests, NULL, NULL);
}
