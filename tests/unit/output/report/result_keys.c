/* `dtsim help result` against what a run writes: every key and column is listed. */
#include "simulated.h"

#include "report/result.h"
#include "report/result_keys.h"

static char *help;                   /* "\n  KEY ..." */

static bool has_line(const char *key)
{
    char line[200];

    snprintf(line, sizeof line, "\n  %s ", key);
    return strstr(help, line);
}

/* Whether the key has a line, or one in which a '*' stands for a part of it. */
static bool explains(const char *key)
{
    bool any = has_line(key);

    for (const char *at = key, *end; *at && !any; at = end + strspn(end, ".: ")) {
        char line[200];

        end = at + strcspn(at, ".:");
        snprintf(line, sizeof line, "%.*s*%s", (int)(at - key), key, end);
        any = has_line(line);
        snprintf(line, sizeof line, "%.*s.*", (int)(end - key), key);        /* an object itself */
        any |= !*end && has_line(line);
        snprintf(line, sizeof line, "\n  %.*s*.", (int)(at - key), key);     /* or one of several */
        any |= !*end && strstr(help, line);
    }
    return any;
}

static void walk(const json_t *json, const char *path)
{
    const char *key;
    json_t *value, *item;
    size_t i;

    json_object_foreach((json_t *)json, key, value) {
        char name[160];

        snprintf(name, sizeof name, "%s%s%s", path, *path ? "." : "", key);
        if (!explains(name))
            fail_msg("'dtsim help result' does not explain %s", name);
        if (json_is_object(value) && strcmp(name, "scenario"))
            walk(value, name);
        strcat(name, "[]");
        json_array_foreach(value, i, item)
            walk(item, name);
    }
}

static void walk_columns(void (*write)(const struct run *, FILE *), const char *file, const struct run *run)
{
    char *text = NULL, *at = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    write(run, out);
    fclose(out);
    text[strcspn(text, "\n")] = 0;
    for (char *column = strtok_r(text, "\t", &at); column; column = strtok_r(NULL, "\t", &at)) {
        char name[160];

        snprintf(name, sizeof name, "%s: %s", file, column);
        if (!explains(name))
            fail_msg("'dtsim help result' does not explain %s", name);
    }
    free(text);
}

/* result.json as a folder has it. */
static void walk_folder(const struct run *run)
{
    static const char *const names[] = {"result.json", "spans.tsv", "groups.tsv", "memory.tsv", "utilization.tsv", "links.tsv"};
    char dir[] = "/tmp/dtsim-test-XXXXXX", path[64];
    struct error err = {0};
    struct folder folder;
    json_t *json;

    assert_non_null(mkdtemp(dir));
    assert_int_equal(folder_open(&folder, dir, &err), 0);
    assert_int_equal(result_write(run, &folder, &err), 0);
    folder_release(&folder);
    snprintf(path, sizeof path, "%s/result.json", dir);
    json = json_load_file(path, 0, NULL);
    walk(json, "");
    json_decref(json);
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(dir), 0);
}

static void check(const char *text)
{
    struct simulated simulated;
    struct error err = {0};

    simulated_load(&simulated, "%s", text);
    struct simulate_options options = simulate_options_of(&simulated.scenario);
    options.links = options.causes = true;
    assert_int_equal(simulate(simulated_workload(&simulated), options, &simulated.run, &err), 0);
    walk_folder(&simulated.run);
    walk_columns(spans_write, "spans.tsv", &simulated.run);
    walk_columns(groups_write, "groups.tsv", &simulated.run);
    walk_columns(memory_write, "memory.tsv", &simulated.run);
    walk_columns(utilization_write, "utilization.tsv", &simulated.run);
    walk_columns(links_write, "links.tsv", &simulated.run);
    simulated_release(&simulated);
}

static void test_all_keys(void **state)
{
    size_t size;
    FILE *out = open_memstream(&help, &size);

    (void)state;
    result_help(out);
    fclose(out);
    check("model: {preset: gpt2-124m}\ncluster: {platform: dgx-a100, nodes: 1}\n"
          "batch: {global: 16, micro: 1}\nstrategy: {schedule: 1f1b, pipeline: 2}\nmemory: {precision: mixed-bf16}\n");
    check("model: {stages: {forward: 1 s, backward: 2 s}}\ncluster: ideal\nbatch: {micro_batches: 40}\n"
          "strategy: {schedule: pipedream, pipeline: 4}\n");
    check("model: {stages: {forward: 1 s, backward: 2 s}}\ncluster: ideal\nbatch: {micro_batches: 4}\n"
          "strategy: {schedule: 1f1b, pipeline: 2}\nsimulation: {stragglers: {gpu: 1, slower: 1.5}}\n");
    check("model: {stages: {forward: 1 s, backward: 2 s}}\nbatch: {micro_batches: 4}\nstrategy: {schedule: 1f1b, "
          "pipeline: 16}\ncluster: {parts: [{name: a, platform: dgx-a100, nodes: 1}, {name: b, platform: dgx-h100, "
          "nodes: 1}]}\n");
    check("model: {preset: gpt2-124m}\nbatch: {global: 16, micro: 1}\nstrategy: {schedule: 1f1b, pipeline: 2, data: 1, stages: [{on: a}, "
          "{on: b}]}\nmemory: {precision: mixed-bf16}\ncluster: {parts: [{name: a, platform: dgx-a100, nodes: 1}, {name: b, "
          "platform: dgx-h100, nodes: 1}]}\n");
    free(help);
}

/* What a view says as help, and as the sentence of a key. */
static char *told(const struct view *view, const void *of, const char *key)
{
    char *text = NULL, line[128];
    const char *lines[] = {line, NULL};
    size_t size;
    FILE *out = open_memstream(&text, &size);

    snprintf(line, sizeof line, "{%s}", key);
    view_say_all(&(struct view_of){view, of, 0}, 1, lines, out);
    view_help(view, "", out);
    fclose(out);
    return text;
}

static void check_without(const struct view *view, const void *of)
{
    struct view_row *rows = calloc(view->count, sizeof *rows);
    const struct view less = {rows, view->count, view->value};
    json_t *all = view_json(view, of);

    for (size_t i = 0; i < view->count; i++) {
        const char *key = view->rows[i].key;
        json_t *json, *value = json_object_get(all, key);
        char *text, *whole = told(view, of, key), line[200];

        memcpy(rows, view->rows, view->count * sizeof *rows);
        rows[i].key = NULL;
        json = view_json(&less, of);
        text = told(&less, of, key);
        snprintf(line, sizeof line, "  %s ", key);
        assert_null(json_object_get(json, key));
        assert_int_equal(json_object_size(json), json_object_size(all) - (value ? 1 : 0));
        assert_true(!strncmp(text, "  ", 2) && strstr(whole, key));      /* no sentence stands before the help */
        for (char *at = text; (at = strstr(at, line)); at++)
            assert_true(at != text && at[-1] != '\n');
        free(text);
        free(whole);
        json_decref(json);
    }
    json_decref(all);
    free(rows);
}

/* Without a row, JSON (of which the page's fields are made), help and sentences have nothing of its key. */
static void test_without_a_row(void **state)
{
    struct simulated simulated;
    struct error err = {0};

    (void)state;
    simulated_load(&simulated, "%s", "model: {preset: gpt2-124m}\ncluster: {platform: dgx-a100, nodes: 1}\n"
                   "batch: {global: 16, micro: 1}\nstrategy: {schedule: 1f1b, pipeline: 2}\n");
    assert_int_equal(simulated_run(&simulated, &err), 0);
    check_without(&metrics_view, &simulated.run.metrics);
    check_without(&run_view, &simulated.run);
    check_without(&point_view, &simulated.run);
    simulated_release(&simulated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_keys), cmocka_unit_test(test_without_a_row)};

    return cmocka_run_group_tests_name("result_keys", tests, NULL, NULL);
}
