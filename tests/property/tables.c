/* The rule of the tables: every table of a run adds up to its result.json over window_s, a row counting as often as its
 * column `replicas` says, to a part in 10^9. Numbers in tables read back equal. It holds for every scenario of the tour
 * and of the table of methods, on both engines, whether collectives are durations or messages. */
#include "simulated.h"
#include "table_file.h"
#include "trials.h"

#include <glob.h>
#include <jansson.h>

struct result { const char *dir, *what; json_t *json; double from, to, iterations, ranks; };

static double result_number(const struct result *result, const char *key)
{
    const json_t *value = json_object_get(result->json, key);

    assert_true(json_is_number(value));
    return json_number_value(value);
}

static double share_of(const struct result *result, const char *key)
{
    const json_t *value = json_object_get(json_object_get(result->json, "breakdown_s"), key);

    assert_true(json_is_number(value));
    return json_number_value(value);
}

/* Sums of seconds, against the time that passed. */
static void expect_seconds(const struct result *result, const char *what, double sum, double expected)
{
    if (!(fabs(sum - expected) <= 1e-9 * result_number(result, "iteration_time_s")))
        fail_msg("%s: %s adds up to %.17g s, not %.17g s", result->what, what, sum, expected);
}

static void check_breakdown(const struct result *result)
{
    const char *key;
    json_t *value;
    double sum = 0, communication = 0;

    json_object_foreach(json_object_get(result->json, "breakdown_s"), key, value) {
        sum += json_number_value(value);
        communication += strncmp(key, "exposed_", 8) || !strcmp(key, "exposed_offload") ? 0 : json_number_value(value);
    }
    expect_seconds(result, "breakdown_s", sum, result_number(result, "iteration_time_s"));
    expect_seconds(result, "exposed communication", communication, result_number(result, "exposed_communication_s"));
    expect_seconds(result, "the bubble", share_of(result, "bubble"),
                   result_number(result, "bubble_fraction") * result_number(result, "iteration_time_s"));
}

/* The shares of every window add up to 1; the shares of the measured window are the breakdown. */
static void check_utilization(const struct result *result)
{
    struct table_file file = table_read(result->dir, "utilization.tsv");
    size_t t0 = column(&file, "t0"), t1 = column(&file, "t1");
    double *sums = xcalloc(file.rows + 1, sizeof *sums);
    const char *key;
    json_t *value;

    assert_true(file.rows > 0);
    json_object_foreach(json_object_get(result->json, "breakdown_s"), key, value) {
        size_t at = column(&file, key);
        double seconds = 0;

        for (size_t i = 0; i < file.rows; i++) {
            double from = cell_number(&file, i, t0), to = cell_number(&file, i, t1);

            sums[i] += cell_number(&file, i, at);
            if (from >= result->from && to <= result->to)
                seconds += cell_number(&file, i, at) * (to - from);
            else
                assert_true(to <= result->from || from >= result->to);
        }
        expect_seconds(result, key, seconds / result->iterations, json_number_value(value));
    }
    for (size_t i = 0; i < file.rows; i++) {
        assert_true(fabs(sums[i] - 1) < 1e-9);
        assert_true(i == 0 || cell_number(&file, i, t0) == cell_number(&file, i - 1, t1));
    }
    free(sums);
    table_release(&file);
}

/* The kinds of spans of compute lanes, and the keys of the breakdown that they add up to. */
static const struct { const char *kind, *key; } computed[] = {
    {"forward", "forward"}, {"backward", "backward"}, {"backward-input", "backward_input"},
    {"backward-weight", "backward_weight"}, {"recompute", "recompute"}, {"update", "update"}, {"pack", "pack"},
};

/* The compute lanes of the mean rank. Each kind of work, without its communication, has the breakdown's time. The rest
 * of the time is waiting; the breakdown divides it into bubble, offload and the rest of communication. */
static void check_spans(const struct result *result)
{
    struct table_file file = table_read(result->dir, "spans.tsv");
    size_t kind = column(&file, "kind"), t0 = column(&file, "t0"), t1 = column(&file, "t1"),
           lane = column(&file, "lane"), inside = column(&file, "communication"), replicas = column(&file, "replicas");
    double seconds[COUNT(computed)] = {0}, all = 0, communication = 0;

    for (size_t i = 0; i < file.rows; i++) {
        double from = cell_number(&file, i, t0), to = cell_number(&file, i, t1), exchanged;
        double times = cell_number(&file, i, replicas) / result->iterations / result->ranks;
        double part = fmax(0, fmin(to, result->to) - fmax(from, result->from));
        size_t k = 0;

        if (strcmp(cell(&file, i, lane), "compute"))
            continue;
        while (k < COUNT(computed) && strcmp(computed[k].kind, cell(&file, i, kind)))
            k++;
        exchanged = to > from ? part * cell_number(&file, i, inside) / (to - from) : 0;
        assert_true(k < COUNT(computed) && exchanged <= part * (1 + 1e-9));
        seconds[k] += times * (part - exchanged);
        all += times * part;
        communication += times * exchanged;
    }
    for (size_t k = 0; k < COUNT(computed); k++)
        expect_seconds(result, computed[k].key, seconds[k], share_of(result, computed[k].key));
    expect_seconds(result, "waiting", result_number(result, "iteration_time_s") - all,
                   result_number(result, "exposed_communication_s") - communication +
                   share_of(result, "exposed_offload") + share_of(result, "bubble"));
    table_release(&file);
}

/* Whether a list of numbers with commas between them has the number. */
static bool lists(const char *list, int number)
{
    for (const char *at = list; *at; at += strcspn(at, ",") + (strchr(at, ',') != NULL))
        if (atoi(at) == number)
            return true;
    return false;
}

/* What each span waits for is over when it begins, and is written as the id of another span. */
static void check_causes(const struct result *result, const struct table_file *file)
{
    size_t id = column(file, "id"), after = column(file, "after"), t0 = column(file, "t0"), t1 = column(file, "t1");
    size_t most = 0, *rows;

    for (size_t i = 0; i < file->rows; i++)
        most = (size_t)fmax((double)most, cell_number(file, i, id));
    rows = xcalloc(most + 1, sizeof *rows);
    for (size_t i = 0; i < file->rows; i++) {
        size_t own = (size_t)cell_number(file, i, id);

        assert_true(!rows[own]);
        rows[own] = i + 1;
    }
    for (size_t i = 0; i < file->rows; i++)
        for (char *at = (char *)cell(file, i, after); *at; at += *at == ',') {
            size_t other = strtoul(at, &at, 10);
            double end;

            assert_true((double)other < cell_number(file, i, id) && rows[other]);
            end = *at == '+' ? cell_number(file, rows[other] - 1, t0) + strtod(at + 1, &at)
                             : cell_number(file, rows[other] - 1, t1);
            assert_true(*at == ',' || !*at);
            if (!(end <= cell_number(file, i, t0) + 1e-9 * result_number(result, "iteration_time_s")))
                fail_msg("%s: span %s begins before what it waits for has ended", result->what, cell(file, i, id));
        }
    free(rows);
}

/* A span's group has its rank and its peer. A rank sends to a peer from one of its own lanes. */
static void check_exchanges(const struct result *result)
{
    struct table_file file = table_read(result->dir, "spans.tsv"), groups = table_read(result->dir, "groups.tsv");
    size_t rank = column(&file, "rank"), op = column(&file, "op"), group = column(&file, "group"),
           bytes = column(&file, "bytes"), peer = column(&file, "peer"), ranks = column(&groups, "ranks");

    check_causes(result, &file);
    for (size_t i = 0; i < file.rows; i++) {
        const char *members;

        assert_true(!*cell(&file, i, bytes) || cell_number(&file, i, bytes) > 0);
        assert_true(!*cell(&file, i, peer) || *cell(&file, i, op));
        if (!*cell(&file, i, group))
            continue;
        assert_true(*cell(&file, i, op) != 0);
        members = cell(&groups, (size_t)cell_number(&file, i, group), ranks);
        if (!lists(members, atoi(cell(&file, i, rank))) ||
            (*cell(&file, i, peer) && !lists(members, atoi(cell(&file, i, peer)))))
            fail_msg("%s: group %s has not the ranks of span %zu", result->what, cell(&file, i, group), i);
    }
    table_release(&groups);
    table_release(&file);
}

/* The most that a rank holds of all kinds is the result's for the fullest rank. Every rank has its lines, in the order
 * of time. */
static void check_memory(const struct result *result)
{
    enum { KINDS = 32 };
    struct table_file file = table_read(result->dir, "memory.tsv");
    size_t bytes = column(&file, "bytes"), rank = column(&file, "rank"), replicas = column(&file, "replicas"),
           kind = column(&file, "kind"), time = column(&file, "t");
    double (*held)[KINDS] = xcalloc(file.rows + 1, sizeof *held), *at = xcalloc(file.rows + 1, sizeof *at);
    double most = 0, ranks = 0;
    json_t *kinds = json_object_get(result->json, "memory_breakdown_bytes");
    int seen = -1;

    assert_true(json_object_size(kinds) <= KINDS);
    for (size_t i = 0; i < file.rows; i++) {
        size_t r = (size_t)atoi(cell(&file, i, rank)), place = 0;
        double sum = 0;
        const char *key;
        json_t *value;

        if ((int)r > seen) {
            seen = (int)r;
            ranks += cell_number(&file, i, replicas);
        }
        assert_true(r < file.rows && cell_number(&file, i, time) >= at[r]);
        at[r] = cell_number(&file, i, time);
        assert_non_null(json_object_get(kinds, cell(&file, i, kind)));
        json_object_foreach(kinds, key, value) {
            if (!strcmp(key, cell(&file, i, kind)))
                held[r][place] = cell_number(&file, i, bytes);
            sum += held[r][place++];
        }
        most = fmax(most, sum);
    }
    assert_true(fabs(most - result_number(result, "peak_memory_bytes")) <= 1e-9 * most);
    assert_true(ranks == result->ranks);
    free(held);
    free(at);
    table_release(&file);
}

/* Each class adds up to the result's; what leaves GPUs, by a port, a NIC or for the host, is all that was sent. (The
 * ideal cluster has no links.) */
static void check_links(const struct result *result, const struct simulated *simulated)
{
    struct table_file file = table_read(result->dir, "links.tsv");
    size_t link = column(&file, "link"), class = column(&file, "class"), replicas = column(&file, "replicas"),
           payload = column(&file, "payload_bytes"), wire = column(&file, "wire_bytes");
    double sent = 0, copied = 0, gpus = scenario_gpus(&simulated->scenario);
    double communicated = result_number(result, "communication_bytes_per_gpu") * gpus;
    double offloaded = result_number(result, "offload_bytes_per_gpu") * gpus;
    const char *key;
    json_t *value;

    assert_int_equal(json_object_size(json_object_get(result->json, "link_bytes")), 4);  /* one of them inside nodes */
    json_object_foreach(json_object_get(result->json, "link_bytes"), key, value) {
        double bytes[2] = {0};

        for (size_t i = 0; i < file.rows; i++)
            if (!strcmp(cell(&file, i, class), key)) {
                bytes[0] += cell_number(&file, i, payload) * cell_number(&file, i, replicas);
                bytes[1] += cell_number(&file, i, wire) * cell_number(&file, i, replicas);
            }
        expect_near(key, bytes[0], json_number_value(json_object_get(value, "payload_bytes")), result->what);
        expect_near(key, bytes[1], json_number_value(json_object_get(value, "wire_bytes")), result->what);
    }
    for (size_t i = 0; i < file.rows; i++) {
        const char *dot = strchr(cell(&file, i, link), '.');

        if (!strcmp(cell(&file, i, class), "host"))
            copied += cell_number(&file, i, payload);
        else if (strcmp(cell(&file, i, class), "uplink") && !strcmp(dot, ".up"))
            sent += cell_number(&file, i, payload);
    }
    expect_near("bytes to the host and back", copied, offloaded, result->what);
    expect_near("bytes sent", sent, simulated->scenario.cluster.ideal ? 0 : communicated, result->what);
    table_release(&file);
}

static void check_tables(const struct simulated *simulated, const char *dir, const char *what)
{
    char path[200];
    struct result result = {.dir = dir, .what = what};
    struct error err = {0};
    struct folder folder;
    json_t *window;

    assert_int_equal(folder_open(&folder, dir, &err), 0);
    assert_int_equal(result_write(&simulated->run, &folder, &err), 0);
    folder_release(&folder);
    assert_int_equal(result_check(dir, &err), 0);
    snprintf(path, sizeof path, "%s/result.json", dir);
    result.json = json_load_file(path, 0, NULL);
    assert_non_null(result.json);
    window = json_object_get(result.json, "window_s");
    result.from = json_number_value(json_array_get(window, 0));
    result.to = json_number_value(json_array_get(window, 1));
    result.iterations = rint((result.to - result.from) / result_number(&result, "iteration_time_s"));
    result.ranks = scenario_gpus(&simulated->scenario) / simulated->scenario.parallelism.tensor;
    check_breakdown(&result);
    check_utilization(&result);
    check_spans(&result);
    if (!strcmp(json_string_value(json_object_get(result.json, "engine")), "fast"))
        check_exchanges(&result);        /* what waits for what does not depend on the engine */
    check_memory(&result);
    check_links(&result, simulated);
    /* A result that lacks a digest is not the whole of one. */
    json_object_del(json_object_get(result.json, "tables_xxh128"), "groups");
    assert_int_equal(json_dump_file(result.json, path, 0), 0);
    assert_int_equal(result_check(dir, &err), -1);
    assert_non_null(strstr(err.messages[0].text, "no digest of groups.tsv"));
    error_release(&err);
    /* Another build may have had no such table. */
    json_object_set_new(result.json, "build", json_string("another"));
    assert_int_equal(json_dump_file(result.json, path, 0), 0);
    assert_int_equal(result_check(dir, &err), 1);
    json_decref(result.json);
}

static void check_scenario(const char *path, const char *const *sets, size_t count, const char *dir)
{
    struct simulated simulated = {0};
    struct error err = {0};
    struct simulate_options options;
    char what[300];

    snprintf(what, sizeof what, "%s with %s", strrchr(path, '/') + 1, sets[count - 1]);
    if (load_once(path, sets, count, &simulated.scenario, &err) ||
        workload_init(&simulated.workload, &simulated.scenario, &err))
        fail_at(what, &err);
    options = simulate_options_of(&simulated.scenario);
    options.links = true;
    if (simulate(&simulated.workload, options, &simulated.run, &err))
        fail_at(what, &err);
    check_tables(&simulated, dir, what);
    run_release(&simulated.run);
    workload_release(&simulated.workload);
    scenario_release(&simulated.scenario);
}

static void check_engine(const char *engine)
{
    char dir[] = "/tmp/dtsim-tables-XXXXXX", command[100];
    const char *const sets[] = {engine, "simulation.collectives=messages", "simulation.fold=off"};
    glob_t files = {0};

    assert_non_null(mkdtemp(dir));
    assert_int_equal(glob(DTSIM_SOURCE_DIR "/scenarios/tour/*.yaml", 0, NULL, &files), 0);
    assert_int_equal(glob(DTSIM_SOURCE_DIR "/scenarios/methods/*.yaml", GLOB_APPEND, NULL, &files), 0);
    assert_true(files.gl_pathc > 30);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        check_scenario(files.gl_pathv[i], sets, 1, dir);
        if (i % (size_t)one_in() == 0)
            check_scenario(files.gl_pathv[i], sets, COUNT(sets), dir);
    }
    globfree(&files);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

static void test_ideal(void **state)
{
    (void)state;
    check_engine("simulation.engine=ideal");
}

static void test_simgrid(void **state)
{
    (void)state;
    check_engine("simulation.engine=simgrid");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ideal), cmocka_unit_test(test_simgrid)};

    return cmocka_run_group_tests_name("tables", tests, NULL, NULL);
}
